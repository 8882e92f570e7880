use super::*;
use crate::hosted::HostedTables;
use crate::{CheckedBytes, NextVersion, RunningServer, ServedTable, Server, VersionStep};
use privet_core::{Epoch, TableChanges, TableId, TableIdentity, TableShape};
use privet_laboratory::{FINITE_DIFFERENCES, FINITE_DIFFERENCES_MANY};
use privet_schemes::SchemeId;
use privet_schemes::contract::Role;
use privet_schemes::registry::{ErasedServer, SchemePlan};
use privet_table::digest::DigestParts;
use privet_wire::{FetchRequest, PartKind};
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use tokio_stream::StreamExt;
use tracing::field::Field;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const RECORDS: u64 = 300;
const RECORD_LEN: u64 = 8;

/// A table whose records follow from its id.
pub(crate) fn table(name: &str, id: u8, scheme: SchemeId) -> ServedTable {
    let shape = TableShape::new(RECORDS, RECORD_LEN).unwrap();
    let word = |at: u64| (at + u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    let records: Vec<u8> = (0..RECORDS).flat_map(word).collect();
    let parts = DigestParts {
        layout: *blake3::hash(b"layout").as_bytes(),
        records: *blake3::hash(&records).as_bytes(),
    };
    let digest = parts.combine(shape);
    let identity = TableIdentity { id: TableId([id; 16]), epoch: Epoch(0), digest, shape };
    ServedTable::new(name, identity, *b"layout", records, scheme)
}

/// The version after that of `table`: one record is changed.
pub(crate) fn next(table: &ServedTable) -> NextVersion {
    let (identity, mut records) = (table.identity, table.records.to_vec().unwrap());
    let len = identity.shape.record_len() as usize;
    let (before, after) = (records[7 * len..8 * len].to_vec(), vec![0x5a; len]);
    records[7 * len..8 * len].copy_from_slice(&after);
    let digest = *blake3::hash(&records).as_bytes();
    let parts = DigestParts { layout: *blake3::hash(&table.layout).as_bytes(), records: digest };
    let digest_after = parts.combine(identity.shape);
    let step = VersionStep {
        identity: TableIdentity { epoch: Epoch(1), digest: digest_after, ..identity },
        changes: TableChanges::new(identity.shape, identity.shape, [(7, before, after)]).unwrap(),
        epoch: Some(Arc::new(CheckedBytes::from(vec![1; 100]))),
    };
    NextVersion {
        signing: [9; 32].into(),
        layout: Arc::clone(&table.layout),
        records: Box::new(records),
        records_digest: digest,
        steps: vec![step],
        keep_from: Epoch(0),
    }
}

pub(crate) fn config() -> ServerConfig {
    ServerConfig {
        threads: 1,
        scrub_rate: 1 << 40,
        scrub_interval: Duration::from_millis(1),
        ..ServerConfig::new("127.0.0.1:0".parse().unwrap())
    }
}

pub(crate) fn tables(server: &RunningServer) -> Arc<HostedTables> {
    server.table_updates().tables()
}

pub(crate) fn version(tables: &HostedTables, name: &str) -> Arc<Version> {
    Arc::clone(tables.now().current(name).unwrap())
}

/// Waits until the digests of the version's data are known.
pub(crate) async fn is_known(version: &Arc<Version>) {
    let version = Arc::clone(version);
    spawn_blocking(move || assert!(!version.held_digests().is_empty())).await.unwrap();
}

/// Whether requests about a version are accepted.
pub(crate) fn is_served(tables: &HostedTables, version: &Version) -> Result<()> {
    let identity = version.identity;
    tables.now().find(identity.id, identity.epoch, &version.parameter_digest).map(drop)
}

/// Whether damage is found within a minute.
async fn is_found(bent: &Version) -> bool {
    let found = async {
        while !bent.condition.has_ended() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), found).await.is_ok()
}

/// Flips a bit of this process's memory without the knowledge of any other code, as a failing
/// memory would.
pub(crate) fn flip(address: usize) {
    let memory = File::options().read(true).write(true).open("/proc/self/mem").unwrap();
    let mut byte = [0];
    memory.read_exact_at(&mut byte, address as u64).unwrap();
    byte[0] ^= 0x10;
    memory.write_all_at(&byte, address as u64).unwrap();
}

/// Every scheme whose servers answer from memory.
pub(crate) const ANSWERING: [SchemeId; 14] = [
    SchemeId::SimplePir,
    SchemeId::DoublePir,
    SchemeId::Dpf,
    SchemeId::ApirDpf,
    SchemeId::ApirMatrix,
    SchemeId::DummySubsets,
    SchemeId::DummySubsetsTwo,
    SchemeId::Harmony,
    SchemeId::Piano,
    SchemeId::PianoAllParities,
    SchemeId::SinglePass,
    SchemeId::TapirMerkle,
    FINITE_DIFFERENCES,
    FINITE_DIFFERENCES_MANY,
];

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bit_that_flips_in_memory_ends_the_service_of_its_table_and_of_no_other() {
    privet_laboratory::register();
    for scheme in ANSWERING {
        let served = vec![table("bent", 1, scheme), table("whole", 2, scheme)];
        let server = Server::start(config(), served).await.unwrap();
        let tables = tables(&server);
        let (bent, whole) = (version(&tables, "bent"), version(&tables, "whole"));
        // Passes over undamaged memory find nothing.
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert!(!bent.condition.has_ended() && !whole.condition.has_ended(), "{scheme}");
        is_served(&tables, &bent).unwrap();
        is_known(&bent).await;

        let addresses: Vec<_> =
            bent.server.held().iter().map(|it| (it.as_ptr(), it.len())).collect();
        let bytes: usize = addresses.iter().map(|(_, len)| len).sum();
        assert!(bytes as u64 >= RECORDS * RECORD_LEN, "{scheme} holds less than its table");
        let (start, len) = addresses[addresses.len() - 1];
        flip(start.addr() + len / 3);
        assert!(is_found(&bent).await, "{scheme}: the flipped bit was not found");
        let refused = is_served(&tables, &bent).unwrap_err();
        assert_eq!(refused.blame(), Blame::Unavailable, "{refused}");
        is_served(&tables, &whole).unwrap();
        assert!(!whole.condition.has_ended(), "{scheme}");
        server.shutdown();
        server.wait().await.unwrap();
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_scrub_a_flipped_bit_is_served() {
    let config = ServerConfig { scrub_rate: 0, ..config() };
    let server = Server::start(config, vec![table("bent", 1, SchemeId::Dpf)]).await.unwrap();
    let tables = tables(&server);
    let bent = version(&tables, "bent");
    flip(bent.server.held()[0].as_ptr().addr());
    tokio::time::sleep(Duration::from_millis(200)).await;
    is_served(&tables, &bent).unwrap();
}

/// What clients fetch of an update that lies in memory.
#[derive(Clone, Copy, Debug)]
enum Fetched {
    Epoch,
    Commitments,
}

/// A server of one table that was updated, or of that and another; and where in memory the data
/// lies that clients fetch of the update.
async fn updated(config: ServerConfig, names: &[&str], what: Fetched) -> (RunningServer, usize) {
    let scheme = SchemeId::TapirMerkle;
    let named = || (1..).zip(names).map(|(id, name)| table(name, id, scheme));
    let server = Server::start(config, named().collect()).await.unwrap();
    let mut address = 0;
    for table in named() {
        let mut next = next(&table);
        let epoch = Arc::new(CheckedBytes::from(vec![1; 100]));
        next.steps[0].epoch = Some(Arc::clone(&epoch) as _);
        server.update(&table.name, next).await.unwrap();
        if table.name == names[0] {
            let now = tables(&server).now();
            let feed = now.current(&table.name).unwrap().feed.as_ref().unwrap();
            let mut commitments = feed.commitments();
            let commitments = commitments.next().unwrap();
            assert!(crate::EpochSource::len(commitments) > 20);
            address = match what {
                Fetched::Epoch => epoch.address(),
                Fetched::Commitments => commitments.address(),
            };
        }
    }
    (server, address)
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bit_that_flips_in_what_belongs_to_an_update_ends_the_service_of_its_table_alone() {
    for what in [Fetched::Epoch, Fetched::Commitments] {
        let (server, address) = updated(config(), &["bent", "whole"], what).await;
        let tables = tables(&server);
        let (bent, whole) = (version(&tables, "bent"), version(&tables, "whole"));
        tokio::time::sleep(Duration::from_millis(50)).await;
        is_served(&tables, &bent).unwrap();
        flip(address + 20);
        assert!(is_found(&bent).await, "{what:?}");
        is_served(&tables, &bent).unwrap_err();
        is_served(&tables, &whole).unwrap();
        assert!(!whole.condition.has_ended(), "{what:?}");
    }
}

/// A client that fetches updates before a scrub finds the damage gets no damaged bytes.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_in_what_belongs_to_an_update_is_not_sent() {
    for what in [Fetched::Epoch, Fetched::Commitments] {
        let config = ServerConfig { scrub_rate: 0, ..config() };
        let (server, address) = updated(config, &["bent"], what).await;
        let tables = tables(&server);
        let bent = version(&tables, "bent");
        let request = FetchRequest {
            table: bent.identity.id,
            epoch: Epoch(0),
            parameter_digest: bent.parameter_digest,
            part: PartKind::Updates,
            offset: 0,
            len: 0,
        };
        let fetch = async || {
            let (part, condition) = tables.now().part(&request)?;
            let wanted = 0..part.len();
            let chunks = crate::fetch::stream(part, condition, wanted);
            let chunks: Vec<_> = chunks.collect().await;
            let chunks: std::result::Result<Vec<_>, _> = chunks.into_iter().collect();
            Ok::<_, Error>(chunks.map(|chunks| chunks.len()))
        };
        assert_eq!(fetch().await.unwrap().unwrap(), 1);
        flip(address + 20);
        let refused = fetch().await.unwrap().unwrap_err();
        assert_eq!(refused.code(), tonic::Code::Unavailable, "{what:?}: {refused}");
        assert!(bent.condition.has_ended(), "{what:?}");
        assert_eq!(fetch().await.unwrap_err().blame(), Blame::Unavailable);
        is_served(&tables, &bent).unwrap_err();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scrub_keeps_to_its_rate_and_keeps_no_version_alive() {
    // Slow enough that the first pass lasts longer than the test.
    let config = ServerConfig { scrub_rate: 100, ..config() };
    let server = Server::start(config, vec![table("slow", 1, SchemeId::Dpf)]).await.unwrap();
    let tables = tables(&server);
    let before = version(&tables, "slow");
    tokio::time::sleep(Duration::from_millis(100)).await;
    // Held by the table and this test only: between its steps the scrub holds nothing.
    let mut holders = Arc::strong_count(&before);
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        holders = holders.min(Arc::strong_count(&before));
    }
    assert_eq!(holders, 2);
}

/// A server that answers nothing from this memory, or from memory that cannot be read again.
pub(crate) struct Holding {
    pub(crate) plan: SchemePlan,
    pub(crate) memory: Option<Vec<u8>>,
}

impl ErasedServer for Holding {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn answer(&self, _role: Role, _queries: &[&[u8]]) -> Vec<Result<Vec<u8>>> {
        Vec::new()
    }

    fn prepare(&self, _role: Role, _request: &[u8]) -> Result<Vec<u8>> {
        Err(Error::invalid_message("there is nothing to prepare here"))
    }

    fn streamed(&self) -> Option<&[u8]> {
        None
    }

    fn shares_passes(&self) -> bool {
        false
    }

    fn resident_bytes(&self) -> u64 {
        0
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        None
    }

    fn held(&self) -> Vec<&[u8]> {
        vec![self.memory.as_deref().expect("planted")]
    }

    fn check_held(&self) -> Result<()> {
        Ok(())
    }
}

/// Keeps the warnings of one thread.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = String::new();
        let mut write = |field: &Field, value: &dyn fmt::Debug| {
            text += &format!("{field}={value:?} ");
        };
        event.record(&mut write);
        self.0.lock().unwrap().push(text);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

#[tokio::test]
async fn a_check_that_cannot_be_done_is_told_and_counted_and_ends_nothing() {
    let table = table("odd", 3, SchemeId::Dpf);
    let server = Arc::new(Holding { plan: table.plan().unwrap(), memory: None });
    let tables = Arc::new(HostedTables::of_checked("odd", table.identity, server));
    let metrics = Arc::new(Metrics::new());
    let failures = |count: usize| {
        let line = format!("privet_scrub_failures_total{{table=\"odd\"}} {count}\n");
        let metrics = metrics.render();
        assert!(metrics.contains(&line), "{metrics}");
    };
    let scrub = Scrub {
        tables: Arc::clone(&tables),
        metrics: Arc::clone(&metrics),
        rate: 1 << 40,
        interval: Duration::from_secs(3600),
    };
    let warnings = Warnings::default();
    let _said = tracing::subscriber::set_default(warnings.clone());
    scrub.take_digests().await;
    failures(1);
    let said = warnings.0.lock().unwrap().clone();
    let [said] = &*said else { panic!("one warning, not {said:?}") };
    for part in ["table=\"odd\"", "epoch=0", "ended unexpectedly", "cannot be checked"] {
        assert!(said.contains(part), "{said}");
    }
    let odd = version(&tables, "odd");
    scrub.pass(Arc::downgrade(&odd)).await;
    failures(2);
    assert_eq!(warnings.0.lock().unwrap().len(), 2);
    is_served(&tables, &odd).unwrap();
}
