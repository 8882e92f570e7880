//! Small tables, servers for them on loopback, and clients that do not wait long.

#![allow(dead_code, clippy::unwrap_used)]

pub(crate) mod relay;

use privet_client::{Client, ClientOptions, Patience};
use privet_core::{Epoch, Error, PublicSeed, TableId, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::harmony::SEGMENT_RECORDS;
use privet_schemes::registry::{PARTITION_RECORDS, Tuning};
use privet_server::{RunningServer, ServedTable, Server, ServerConfig, TlsFiles};
use privet_table::digest::{DigestParts, layout_digest};
use privet_table::key_map::{KeyMapKind, pack_as};
use privet_table::{IndexLayout, RecordLayout};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const KEYS: usize = 300;

/// Key number `k` and its value in the table of version `version`.
pub(crate) fn pair(k: usize, version: u8) -> (Vec<u8>, Vec<u8>) {
    let value = (0..10 + k % 23).map(|i| (k * 7 + i) as u8 ^ version).collect();
    (format!("package-{k}").into_bytes(), value)
}

/// A table of [`KEYS`] keys.
pub(crate) fn table(name: &str, id: u8, version: u8) -> ServedTable {
    table_by(SchemeId::SimplePir, name, id, version)
}

/// The same, served by another scheme.
pub(crate) fn table_by(scheme: SchemeId, name: &str, id: u8, version: u8) -> ServedTable {
    let pairs: Vec<_> = (0..KEYS).map(|k| pair(k, version)).collect();
    let seed = PublicSeed::derive("privet test", &[id]);
    let packed = pack_as(KeyMapKind::Buckets, &pairs[..], seed).unwrap();
    let map = packed.key_map();
    let (mut records, mut record) = (Vec::new(), Vec::new());
    for bucket in 0..map.buckets() {
        packed.write_record(&pairs[..], bucket, &mut record);
        records.extend(&record);
    }
    let layout = RecordLayout::Keyed(map.clone()).encode();
    served(name, scheme, layout, records, map.shape(), (id, version))
}

/// A table of `count` records of 32 bytes by index.
pub(crate) fn records_by(scheme: SchemeId, count: u64) -> ServedTable {
    let records = (0..count).flat_map(record).collect();
    indexed_by(scheme, records, TableShape::new(count, 32).unwrap())
}

/// The same table, cut into partitions or segments of `piece_records`.
pub(crate) fn cut(table: ServedTable, piece_records: u64) -> ServedTable {
    let option = match table.scheme {
        SchemeId::Harmony => &SEGMENT_RECORDS,
        _ => &PARTITION_RECORDS,
    };
    ServedTable { tuning: Tuning::default().with(option, piece_records), ..table }
}

/// The number of the generation of hints that is in use in a state directory of one table.
pub(crate) fn generation_in(state: &Path) -> u64 {
    let (mut directories, mut numbers) = (vec![state.to_owned()], Vec::new());
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            // The next generation has no journal yet.
            let journal = name.strip_prefix("journal-").and_then(|rest| rest.split_once('-'));
            numbers.extend(journal.map(|(number, _)| number.parse::<u64>().unwrap()));
            if entry.file_type().unwrap().is_dir() {
                directories.push(entry.path());
            }
        }
    }
    numbers.into_iter().max().unwrap()
}

pub(crate) fn record(index: u64) -> [u8; 32] {
    *blake3::hash(&index.to_le_bytes()).as_bytes()
}

/// A table of these records by index.
pub(crate) fn indexed_by(scheme: SchemeId, records: Vec<u8>, shape: TableShape) -> ServedTable {
    let len = shape.record_len();
    let layout = RecordLayout::Index(IndexLayout::for_lengths(len, len)).encode();
    served("records", scheme, layout, records, shape, (3, 0))
}

fn served(
    name: &str,
    scheme: SchemeId,
    layout: Vec<u8>,
    records: Vec<u8>,
    shape: TableShape,
    (id, version): (u8, u8),
) -> ServedTable {
    let parts =
        DigestParts { layout: layout_digest(&layout), records: *blake3::hash(&records).as_bytes() };
    let identity = TableIdentity {
        id: TableId([id; 16]),
        epoch: Epoch(version.into()),
        digest: parts.combine(shape),
        shape,
    };
    ServedTable::new(name, identity, layout, records, scheme)
}

pub(crate) fn config(listen: SocketAddr, tls: Option<&Path>) -> ServerConfig {
    let mut config = ServerConfig::new(listen);
    config.threads = 1;
    config.drain_limit = Duration::from_secs(5);
    config.tls = tls.map(|directory| TlsFiles {
        cert: directory.join("cert.pem"),
        key: directory.join("key.pem"),
    });
    config
}

pub(crate) fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub(crate) async fn serve(tables: Vec<ServedTable>) -> (RunningServer, String) {
    let server = Server::start(config(any_port(), None), tables).await.unwrap();
    let url = format!("http://{}", server.local_addr());
    (server, url)
}

/// Stops a server, and starts one of `table` at its address.
pub(crate) async fn restarted(server: RunningServer, table: ServedTable) -> RunningServer {
    let address = server.local_addr();
    server.shutdown();
    server.wait().await.unwrap();
    Server::start(config(address, None), vec![table]).await.unwrap()
}

/// A listener at a free port, and its address.
pub(crate) async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

/// A certificate for `name`, signed by itself, in `directory`.
pub(crate) fn write_certificate(directory: &Path, name: &str) {
    let certified = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    std::fs::write(directory.join("cert.pem"), certified.cert.pem()).unwrap();
    let key = directory.join("key.pem");
    std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

/// The metrics of `server`, with the head of the response.
pub(crate) async fn metrics(server: &RunningServer) -> String {
    let mut stream = TcpStream::connect(server.metrics_addr().unwrap()).await.unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    page
}

/// The value of a metric of `server`, named with its labels; `None` if there is no such metric.
pub(crate) async fn find_metric(server: &RunningServer, name: &str) -> Option<f64> {
    let text = metrics(server).await;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map(|value| value.parse().unwrap())
}

/// The same for a metric that is there.
pub(crate) async fn metric(server: &RunningServer, name: &str) -> f64 {
    find_metric(server, name).await.expect("there is such a metric")
}

pub(crate) fn options(url: &str) -> ClientOptions {
    options_of(&[url])
}

/// The same with a state directory.
pub(crate) fn stored(url: &str, state: &Path) -> ClientOptions {
    ClientOptions { state_dir: Some(state.to_owned()), ..options(url) }
}

pub(crate) fn options_of(urls: &[&str]) -> ClientOptions {
    let mut options = ClientOptions::new(urls.iter().copied());
    // Whatever proxy the tests' environment has.
    options.proxies = vec!["none".to_owned()];
    options.session.patience = Patience {
        first_contact: Duration::from_millis(300),
        longest_pause: Duration::from_millis(200),
        ..Patience::default()
    };
    options
}

pub(crate) async fn connect(options: ClientOptions) -> Client {
    Client::connect(options, |_| {}).await.unwrap()
}

/// Why no client can be opened.
pub(crate) async fn refusal(options: ClientOptions) -> Error {
    Client::connect(options, |_| {}).await.err().expect("it is refused")
}

/// Looks key number `k` up in version `version`.
pub(crate) async fn check(client: &Client, k: usize, version: u8) {
    let (key, value) = pair(k, version);
    assert_eq!(client.get(&key).await.unwrap().unwrap().to_vec(), value);
}
