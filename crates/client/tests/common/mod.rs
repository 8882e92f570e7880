//! Small tables, servers for them on loopback, and clients that do not wait long.

#![allow(dead_code, clippy::unwrap_used)]

use privet_client::{ClientOptions, Patience};
use privet_core::{Epoch, PublicSeed, TableId, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::harmony::SEGMENT_RECORDS;
use privet_schemes::registry::{PARTITION_RECORDS, Tuning};
use privet_server::{RunningServer, ServedTable, Server, ServerConfig, TlsFiles};
use privet_table::digest::{DigestParts, layout_digest};
use privet_table::key_map::{KeyMapKind, Pairs, pack_as};
use privet_table::{IndexLayout, RecordLayout};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const KEYS: usize = 300;

/// Key number `k` and its value in the table of version `version`.
pub(crate) fn pair(k: usize, version: u8) -> (Vec<u8>, Vec<u8>) {
    let value = (0..10 + k % 23).map(|i| (k * 7 + i) as u8 ^ version).collect();
    (format!("package-{k}").into_bytes(), value)
}

struct Keyed(Vec<(Vec<u8>, Vec<u8>)>);

impl Pairs for Keyed {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn key(&self, pair: usize) -> &[u8] {
        &self.0[pair].0
    }
    fn value(&self, pair: usize) -> &[u8] {
        &self.0[pair].1
    }
}

/// A table of [`KEYS`] keys.
pub(crate) fn table(name: &str, id: u8, version: u8) -> ServedTable {
    table_by(SchemeId::SimplePir, name, id, version)
}

/// The same, served by another scheme.
pub(crate) fn table_by(scheme: SchemeId, name: &str, id: u8, version: u8) -> ServedTable {
    keyed_as(KeyMapKind::Buckets, scheme, name, id, version)
}

/// The same by another kind of key map.
pub(crate) fn keyed_as(
    kind: KeyMapKind,
    scheme: SchemeId,
    name: &str,
    id: u8,
    version: u8,
) -> ServedTable {
    let pairs = Keyed((0..KEYS).map(|k| pair(k, version)).collect());
    let packed = pack_as(kind, &pairs, PublicSeed::derive("privet test", &[id])).unwrap();
    let map = packed.key_map();
    let (mut records, mut record) = (Vec::new(), Vec::new());
    for bucket in 0..map.buckets() {
        packed.write_record(&pairs, bucket, &mut record);
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

/// The value of a metric of `server`, named with its labels; `None` if there is no such metric.
pub(crate) async fn find_metric(server: &RunningServer, name: &str) -> Option<f64> {
    let mut stream = TcpStream::connect(server.metrics_addr().unwrap()).await.unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
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
