//! Damage to the files of a changing table: its table file, and its update log.

use super::*;
use crate::damage::laid_into_a_file;
use privet_core::{Blame, ReadRecords, Result};
use privet_server::Server;
use privet_wire::{FetchRequest, PartKind, TableDescription};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use tonic::Code;

fn scrubbing() -> ServerConfig {
    ServerConfig { scrub_rate: 1 << 30, scrub_interval: Duration::from_millis(10), ..keeping() }
}

/// Passes over undamaged data find nothing.
async fn is_found_whole(server: &RunningServer, table: &str) {
    let passes = format!("privet_scrub_passes_total{{table=\"{table}\"}}");
    let before = metric(server, &passes).await;
    // Of up to three versions.
    until_metric_is(server, &passes, |passes| passes >= before + 9.0).await;
    let damaged = format!("privet_table_damaged{{table=\"{table}\"}}");
    assert_eq!(metric(server, &damaged).await, 0.0);
    assert_eq!(health(server, "/healthz").await, (200, "ready\n".to_owned()));
}

async fn health(server: &RunningServer, path: &str) -> (u16, String) {
    http(server.metrics_addr().unwrap(), "GET", path).await
}

/// What clients at that version fetch.
fn updates_from(table: &TableDescription, epoch: u64) -> FetchRequest {
    FetchRequest { epoch: Epoch(epoch), ..fetch_request(table, PartKind::Updates, 0) }
}

/// Damage is found in the table `t`, whose service ends completely. No other table is affected:
/// `whole` is still served and updated.
async fn ends_the_service_of_that_table_alone(
    server: &RunningServer,
    next: NextVersion,
    next_of_whole: NextVersion,
) {
    until_metric(server, "privet_table_damaged{table=\"t\"}", 1.0).await;
    assert_eq!(health(server, "/healthz").await, (503, "damaged: t\n".to_owned()));
    assert_eq!(health(server, "/healthz/t").await, (503, "damaged\n".to_owned()));
    assert_eq!(health(server, "/healthz/whole").await, (200, "ready\n".to_owned()));

    let mut stub = stub(server).await;
    let described = describe(&mut stub).await;
    let bent = described.table("t").unwrap();
    let requests = [fetch_request(bent, PartKind::Layout, 0), updates_from(bent, 5)];
    for request in requests {
        let refused = fetch(&mut stub, request).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable, "{refused}");
        assert!(refused.message().contains("has found its copy damaged"), "{refused}");
    }
    let refused = server.update("t", next).await.unwrap_err();
    assert!(refused.message().contains("damage was found"), "{refused}");

    let whole = described.table("whole").unwrap().clone();
    fetch(&mut stub, updates_from(&whole, 5)).await.unwrap();
    server.update("whole", next_of_whole).await.unwrap();
    assert_eq!(metric(server, "privet_table_damaged{table=\"whole\"}").await, 0.0);
}

/// Another table of the same scheme, which changes as well.
fn whole(scheme: SchemeId) -> Changing {
    let identity = identity(60, 4, 2);
    let first = (identity, records(identity.shape.bytes() as usize, 2));
    Changing { name: "t", id: 1, scheme, versions: vec![first] }
}

fn served_whole(changing: &Changing) -> ServedTable {
    let (identity, records) = changing.versions[0].clone();
    let table = served_by(changing.scheme, table("whole", 60, 4, 2));
    ServedTable { identity, records: Box::new(records), ..table }
}

/// The earlier version is still served beside the new one, from the file that it began with.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bit_that_flips_in_the_table_file_is_found_beneath_updates() {
    for scheme in [SchemeId::Download, SchemeId::DummySubsets] {
        let (mut changing, mut whole) = (Changing::new(scheme, 300, 7), whole(scheme));
        let (bent, is_bad) = laid_into_a_file(changing.served(), false);
        let server = start(scrubbing(), vec![bent, served_whole(&whole)]).await;
        server.update("t", changing.next(3, 1)).await.unwrap();
        server.update("whole", whole.next(3, 1)).await.unwrap();
        is_found_whole(&server, "t").await;

        is_bad.store(true, Ordering::SeqCst);
        let (next, next_of_whole) = (changing.next(2, 0), whole.next(2, 0));
        ends_the_service_of_that_table_alone(&server, next, next_of_whole).await;
    }
}

/// An epoch in a log, with a bit flipped, or with its end cut off.
struct InLog {
    bytes: Vec<u8>,
    damage: fn(&mut Vec<u8>),
    is_bad: Arc<AtomicBool>,
}

impl EpochSource for InLog {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = self.bytes.clone();
        if self.is_bad.load(Ordering::SeqCst) {
            (self.damage)(&mut bytes);
        }
        let start = offset as usize;
        let cut = || privet_core::Error::corrupted("it is cut off");
        bytes.get(start..start + len).map(<[u8]>::to_vec).ok_or_else(cut)
    }

    fn digest(&self) -> [u8; 32] {
        *blake3::hash(&self.bytes).as_bytes()
    }

    fn file(&self) -> Option<&Path> {
        Some(Path::new("somewhere/t.privet.updates"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bit_that_flips_in_the_update_log_ends_the_service_of_its_table_and_of_no_other() {
    let damages: [fn(&mut Vec<u8>); 2] = [
        |bytes| bytes[40] ^= 1,
        |bytes| {
            bytes.pop();
        },
    ];
    for scheme in [SchemeId::SimplePir, SchemeId::Dpf, SchemeId::Download] {
        for damage in damages {
            let (mut changing, mut whole) = (Changing::new(scheme, 300, 7), whole(scheme));
            let server = start(scrubbing(), vec![changing.served(), served_whole(&whole)]).await;
            let is_bad = Arc::new(AtomicBool::new(false));
            let mut next = changing.next(3, 1);
            let bytes = epoch_bytes(next.steps[0].identity.epoch);
            let is_bad_too = Arc::clone(&is_bad);
            next.steps[0].epoch = Some(Arc::new(InLog { bytes, damage, is_bad: is_bad_too }));
            server.update("t", next).await.unwrap();
            // The damaged one lies between others.
            server.update("t", changing.next(1, 0)).await.unwrap();
            server.update("whole", whole.next(3, 1)).await.unwrap();
            is_found_whole(&server, "t").await;

            is_bad.store(true, Ordering::SeqCst);
            let (next, next_of_whole) = (changing.next(2, 0), whole.next(2, 0));
            ends_the_service_of_that_table_alone(&server, next, next_of_whole).await;
        }
    }
}

/// The data of an update does not have its digest: the served version stays as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_onto_a_damaged_base_is_not_served() {
    for scheme in [SchemeId::SimplePir, SchemeId::Dpf, SchemeId::DummySubsets] {
        let mut changing = Changing::new(scheme, 300, 7);
        let server = start(keeping(), vec![changing.served()]).await;
        let mut next = changing.next(3, 1);
        let mut damaged = next.records.to_vec().unwrap();
        damaged[1001] ^= 4;
        next.records_digest = *blake3::hash(&damaged).as_bytes();
        next.records = Box::new(damaged);
        let refused = server.update("t", next).await.unwrap_err();
        assert_eq!(refused.blame(), Blame::Corrupted, "{scheme}: {refused}");
        assert_eq!(versions_served(&server).await, [5], "{scheme}");
        assert_eq!(health(&server, "/healthz").await.0, 200);
        server.update("t", changing.steps(0)).await.unwrap();
        assert_eq!(versions_served(&server).await, [6, 5], "{scheme}");
    }
}

/// Records that a disk gave rightly once, when they were verified, and gives wrongly from then on.
/// Nobody wrote to them.
struct Misread(Vec<u8>);

impl ReadRecords for Misread {
    fn len(&self) -> u64 {
        ReadRecords::len(&self.0)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        self.0.read(offset, into)?;
        if offset == 0 {
            into[1] ^= 4;
        }
        Ok(())
    }
}

impl RecordSource for Misread {
    fn memory(&self) -> u64 {
        0
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_version_is_not_made_from_records_that_were_read_wrongly() {
    for scheme in [SchemeId::SimplePir, SchemeId::Dpf, SchemeId::Piano, SchemeId::ApirMatrix] {
        for misread in [false, true] {
            let mut changing = Changing::new(scheme, 300, 7);
            changing.change(2, 0);
            let mut table = changing.served_with_log();
            let next = table.updates.as_mut().unwrap().next.as_mut().unwrap();
            if misread {
                next.records = Box::new(Misread(changing.last().1.clone()));
            }
            let started = Server::start(keeping(), vec![table]).await;
            let Some(refused) = started.err() else {
                assert!(!misread, "{scheme} serves what was read wrongly");
                continue;
            };
            assert!(misread, "{scheme}: {refused}");
            assert_eq!(refused.blame(), Blame::Corrupted, "{scheme}: {refused}");
            assert!(refused.message().contains("when they were verified"), "{refused}");
        }
    }
}
