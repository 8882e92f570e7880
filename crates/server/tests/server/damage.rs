//! Damaged tables: at the start, and while they are served.

use crate::common::*;
use privet_core::{Blame, Error, ReadRecords, Result, SecretRng};
use privet_laboratory::pointproofs::ReferenceString;
use privet_laboratory::tapir_pp::REFERENCE_STRING;
use privet_schemes::SchemeId;
use privet_schemes::registry::{PARTITION_RECORDS, Tuning};
use privet_server::{HintOrigin, RecordSource, ServedTable, Server, ServerConfig};
use privet_wire::PartKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tonic::Code;

/// Records as in a file: at any moment they are the good ones or the bad ones.
pub(crate) struct File {
    path: PathBuf,
    good: Vec<u8>,
    bad: Vec<u8>,
    is_bad: Arc<AtomicBool>,
    /// Whether the system reports that another program has written to it.
    tells: bool,
}

impl ReadRecords for File {
    fn len(&self) -> u64 {
        ReadRecords::len(&self.good)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let now = if self.is_bad.load(Ordering::SeqCst) { &self.bad } else { &self.good };
        now.read(offset, into)
    }
}

impl RecordSource for File {
    fn check_unchanged(&self) -> Result<()> {
        match self.tells && self.is_bad.load(Ordering::SeqCst) {
            true => Err(Error::corrupted(format!("{} was written to", self.path.display()))),
            false => Ok(()),
        }
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn memory(&self) -> u64 {
        0
    }
}

/// For vectors of up to 16 records.
fn reference_string() -> Arc<ReferenceString> {
    static STRING: OnceLock<Arc<ReferenceString>> = OnceLock::new();
    let make = || ReferenceString::generate(16, &mut SecretRng::from_fixed_seed([5; 32])).unwrap();
    Arc::clone(STRING.get_or_init(|| Arc::new(make())))
}

/// What the scheme needs beside the table.
fn tuning(scheme: SchemeId) -> Tuning {
    let needs_one = scheme == privet_laboratory::TAPIR_PP;
    Tuning::default()
        .with_some(&REFERENCE_STRING, needs_one.then(reference_string))
        .with_some(&PARTITION_RECORDS, needs_one.then_some(16u64))
}

/// A table whose records lie in such a file, with a bit flipped in the bad ones.
fn in_file(name: &str, scheme: SchemeId, tells: bool) -> (ServedTable, Arc<AtomicBool>) {
    let table = served_by(scheme, table(name, 300, 7, 1));
    laid_into_a_file(ServedTable { tuning: tuning(scheme), ..table }, tells)
}

/// The same table, whose records lie in such a file.
pub(crate) fn laid_into_a_file(table: ServedTable, tells: bool) -> (ServedTable, Arc<AtomicBool>) {
    let good = table.records.to_vec().unwrap();
    let mut bad = good.clone();
    bad[1001] ^= 4;
    let is_bad = Arc::new(AtomicBool::new(false));
    let path = format!("somewhere/{}.privet", table.name).into();
    let file = File { path, good, bad, is_bad: Arc::clone(&is_bad), tells };
    (ServedTable { records: Box::new(file), ..table }, is_bad)
}

fn damaged(scheme: SchemeId) -> ServedTable {
    let (table, is_bad) = in_file("t", scheme, false);
    is_bad.store(true, Ordering::SeqCst);
    table
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_flipped_bit_is_not_served_by_any_scheme() {
    for scheme in privet_laboratory::all() {
        let refused = Server::start(config(), vec![damaged(scheme)]).await.err();
        let refused = refused.unwrap_or_else(|| panic!("{scheme} serves a damaged table"));
        assert_eq!(refused.blame(), Blame::Corrupted, "{scheme}: {refused}");
        let words = refused.to_string();
        assert!(words.contains("table t: somewhere/t.privet: damaged"), "{scheme}: {words}");
    }
}

/// So the test above can fail: the check refuses the table, not the schemes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_check_a_flipped_bit_is_served() {
    let config = || ServerConfig { verify_records: false, ..config() };
    let mut served = 0;
    for scheme in privet_laboratory::all() {
        served += u32::from(Server::start(config(), vec![damaged(scheme)]).await.is_ok());
    }
    // Schemes that announce a digest of the records are not served: they must compute it.
    assert!(served >= 11, "{served}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cached_hint_is_paired_with_verified_records_only() {
    let dir = tempfile::tempdir().unwrap();
    let cached = |verify_records| ServerConfig {
        cache_dir: Some(dir.path().to_owned()),
        verify_records,
        ..config()
    };
    for scheme in [SchemeId::SimplePir, SchemeId::DoublePir, SchemeId::ApirMatrix] {
        let origin = async |verify_records, table| {
            let server = start(cached(verify_records), vec![table]).await;
            server.tables()[0].hint_origin
        };
        let whole = || in_file("t", scheme, false).0;
        // Computed from unchecked records, it is not stored.
        assert_eq!(origin(false, whole()).await, HintOrigin::Computed, "{scheme}");
        assert_eq!(origin(true, whole()).await, HintOrigin::Computed, "{scheme}");
        assert_eq!(origin(true, whole()).await, HintOrigin::Cached, "{scheme}");
        // Nor is a stored one used beside such records, which may be damaged.
        assert_eq!(origin(false, damaged(scheme)).await, HintOrigin::Computed, "{scheme}");
        let refused = Server::start(cached(true), vec![damaged(scheme)]).await.err().unwrap();
        assert_eq!(refused.blame(), Blame::Corrupted, "{scheme}: {refused}");
    }
}

/// Records that were written to while they were copied, according to their file: the hashed bytes
/// may differ from the copied ones. (Here the bytes stay the same; only the file's report counts.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_change_during_the_start_are_refused() {
    struct Changing(File, AtomicBool);
    impl ReadRecords for Changing {
        fn len(&self) -> u64 {
            self.0.len()
        }

        fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
            self.0.good.read(offset, into)
        }
    }

    impl RecordSource for Changing {
        fn check_unchanged(&self) -> Result<()> {
            self.1.store(true, Ordering::SeqCst);
            Err(Error::corrupted(format!("{} was written to", self.0.path.display())))
        }

        fn file(&self) -> Option<&Path> {
            self.0.file()
        }

        fn memory(&self) -> u64 {
            0
        }
    }
    for scheme in [SchemeId::Dpf, SchemeId::SimplePir, SchemeId::Download] {
        let table = served_by(scheme, table("t", 300, 7, 1));
        let good = table.records.to_vec().unwrap();
        let file = File {
            path: "somewhere/t.privet".into(),
            bad: good.clone(),
            good,
            is_bad: Arc::default(),
            tells: true,
        };
        let records = Box::new(Changing(file, AtomicBool::new(false)));
        let table = ServedTable { records, ..table };
        let refused = Server::start(config(), vec![table]).await.err().unwrap();
        assert_eq!(refused.blame(), Blame::Corrupted, "{scheme}: {refused}");
        assert!(refused.to_string().contains("was written to"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_to_what_clients_fetch_ends_the_service_of_that_table_alone() {
    let config = || ServerConfig {
        scrub_rate: 1 << 30,
        scrub_interval: Duration::from_millis(10),
        ..config()
    };
    for (scheme, tells) in [
        (SchemeId::Download, false),
        (SchemeId::DummySubsets, false),
        // Noticed when the file is looked at, and when it is read for a client.
        (SchemeId::Download, true),
    ] {
        let (bent, is_bad) = in_file("bent", scheme, tells);
        let whole = served_by(scheme, table("whole", 300, 7, 2));
        let server = start(config(), vec![bent, whole]).await;
        let metrics = server.metrics_addr().unwrap();
        let mut stub = stub(&server).await;
        let described = describe(&mut stub).await;
        let request = |name: &str| {
            let table = described.table(name).unwrap();
            fetch_request(table, PartKind::Table, 0)
        };
        fetch(&mut stub, request("bent")).await.unwrap();
        assert_eq!(http(metrics, "GET", "/healthz").await, (200, "ready\n".to_owned()));
        assert_eq!(metric(&server, "privet_table_damaged{table=\"bent\"}").await, 0.0);

        is_bad.store(true, Ordering::SeqCst);
        until_metric(&server, "privet_table_damaged{table=\"bent\"}", 1.0).await;
        for part in [PartKind::Table, PartKind::Layout] {
            let refused =
                fetch(&mut stub, fetch_request(described.table("bent").unwrap(), part, 0));
            let refused = refused.await.unwrap_err();
            assert_eq!(refused.code(), Code::Unavailable, "{refused}");
            assert!(refused.message().contains("damaged"), "{refused}");
        }
        fetch(&mut stub, request("whole")).await.unwrap();
        let health = |path: &'static str| http(metrics, "GET", path);
        assert_eq!(health("/healthz").await, (503, "damaged: bent\n".to_owned()));
        assert_eq!(health("/healthz/bent").await, (503, "damaged\n".to_owned()));
        assert_eq!(health("/healthz/whole").await, (200, "ready\n".to_owned()));
        assert_eq!(health("/healthz/other").await.0, 404);
        for (service, serves) in [("", false), ("bent", false), ("whole", true)] {
            assert_eq!(probe(&server, service).await, Ok(serves), "{service}");
        }
        assert_eq!(metric(&server, "privet_table_damaged{table=\"whole\"}").await, 0.0);
        let passes = "privet_scrub_passes_total{table=\"whole\"}";
        until_metric_is(&server, passes, |passes| passes >= 1.0).await;
    }
}
