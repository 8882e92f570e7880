//! Fetching epochs: from any version, to any served version, from any byte on.

use super::*;
use privet_wire::updates::{EpochReader, encode};
use privet_wire::{FetchRequest, PartKind, TableDescription};
use tonic::Code;

/// Asks for the epochs that lead from `from` to the version `to`.
fn updates_request(to: &TableDescription, from: u64) -> FetchRequest {
    FetchRequest { epoch: Epoch(from), ..fetch_request(to, PartKind::Updates, 0) }
}

/// The epochs after `from`, up to `to`.
fn encoded(from: u64, to: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for epoch in from + 1..=to {
        encode(&epoch_bytes(Epoch(epoch)), &[], &mut bytes).unwrap();
    }
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn epochs_lead_from_any_version_to_any_that_is_served() {
    let mut changing = Changing::new(SchemeId::Dpf, 50, 4);
    changing.change(1, 0);
    changing.change(1, 1);
    // Served first: version 7, and epochs 6 and 7 at hand.
    let server = start(keeping(), vec![changing.served_with_log()]).await;
    server.update("t", changing.next(3, 0)).await.unwrap();
    changing.change(1, 0);
    changing.change(1, 2);
    server.update("t", changing.steps(3)).await.unwrap();
    let mut stub = stub(&server).await;
    let described = describe(&mut stub).await.tables[0].clone();
    let announced = described.updates.unwrap();
    assert_eq!((announced.publisher, announced.first_epoch), (PUBLISHER, Epoch(5)));
    let versions: Vec<_> = described.versions().collect();
    assert_eq!(versions_served(&server).await, [10, 8, 7]);
    for to in versions {
        let last = to.identity.epoch.0;
        for from in 5..=last {
            let whole = fetch(&mut stub, updates_request(to, from)).await.unwrap();
            assert_eq!(whole, encoded(from, last), "{from} to {last}");
            for offset in 0..=whole.len() {
                let request = FetchRequest { offset: offset as u64, ..updates_request(to, from) };
                // Each resumption to the end, and one byte of it.
                if offset % 23 == 0 || offset == whole.len() {
                    assert_eq!(fetch(&mut stub, request).await.unwrap(), whole[offset..]);
                }
                if offset % 31 == 0 && offset < whole.len() {
                    let one = FetchRequest { len: 1, ..request };
                    assert_eq!(fetch(&mut stub, one).await.unwrap(), whole[offset..=offset]);
                }
            }
            let beyond = updates_request(to, from);
            let beyond = FetchRequest { offset: whole.len() as u64 + 1, ..beyond };
            let refused = fetch(&mut stub, beyond).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument);
        }
        for from in [0, 4, last + 1, u64::MAX] {
            let refused = fetch(&mut stub, updates_request(to, from)).await.unwrap_err();
            assert_eq!(refused.code(), Code::NotFound, "{from} to {last}: {refused}");
        }
    }
    let request = updates_request(&described, 5);
    let unknown = FetchRequest { parameter_digest: [1; 32], ..request };
    let refused = fetch(&mut stub, unknown).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let elsewhere = FetchRequest { table: privet_core::TableId([8; 16]), ..request };
    assert_eq!(fetch(&mut stub, elsewhere).await.unwrap_err().code(), Code::NotFound);

    // The reader of the other side takes them apart again.
    let mut reader = EpochReader::default();
    let found = reader.take(&fetch(&mut stub, request).await.unwrap()).unwrap();
    let found: Vec<_> = found.iter().map(|epoch| epoch.epoch.to_vec()).collect();
    assert_eq!(found, (6..=10).map(|epoch| epoch_bytes(Epoch(epoch))).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_without_a_log_has_no_epochs_until_it_has_one() {
    let mut changing = Changing::new(SchemeId::Dpf, 50, 4);
    let server = start(keeping(), vec![changing.served()]).await;
    let mut stub = stub(&server).await;
    let described = describe(&mut stub).await.tables[0].clone();
    assert_eq!(described.updates, None);
    let refused = fetch(&mut stub, updates_request(&described, 5)).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    server.update("t", changing.next(1, 0)).await.unwrap();
    let described = describe(&mut stub).await.tables[0].clone();
    assert_eq!(described.updates.unwrap().first_epoch, Epoch(5));
    let fetched = fetch(&mut stub, updates_request(&described, 5)).await.unwrap();
    assert_eq!(fetched, encoded(5, 6));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn epochs_that_are_not_kept_or_not_known_move_the_beginning_up() {
    let mut changing = Changing::new(SchemeId::Dpf, 50, 4);
    let server = start(keeping(), vec![changing.served_with_log()]).await;
    let first_epoch = async || {
        let described = describe(&mut stub(&server).await).await.tables[0].clone();
        described.updates.unwrap().first_epoch.0
    };
    for _ in 0..3 {
        server.update("t", changing.next(1, 0)).await.unwrap();
    }
    assert_eq!(first_epoch().await, 5);
    let next = NextVersion { keep_from: Epoch(7), ..changing.next(1, 0) };
    server.update("t", next).await.unwrap();
    assert_eq!(first_epoch().await, 7);
    // No server here has followed epochs 10 to 12.
    let before = changing.versions.len() - 1;
    (0..3).for_each(|_| changing.change(1, 1));
    let mut next = changing.steps(before);
    let (old, new) = (&changing.versions[before], changing.last());
    let changes = TableChanges::between((old.0.shape, &old.1), (new.0.shape, &new.1)).unwrap();
    next.steps = vec![VersionStep { identity: new.0, changes, epoch: None }];
    server.update("t", next).await.unwrap();
    assert_eq!((first_epoch().await, versions_served(&server).await[0]), (12, 12));
    server.update("t", changing.next(1, 0)).await.unwrap();
    assert_eq!(first_epoch().await, 12);
    let mut stub = stub(&server).await;
    let described = describe(&mut stub).await.tables[0].clone();
    let fetched = fetch(&mut stub, updates_request(&described, 12)).await.unwrap();
    assert_eq!(fetched, encoded(12, 13));
}

/// An epoch that is no longer there.
struct Lost;

impl EpochSource for Lost {
    fn len(&self) -> u64 {
        40
    }

    fn read(&self, _offset: u64, _len: usize) -> privet_core::Result<Vec<u8>> {
        Err(privet_core::Error::unavailable("the file is gone"))
    }

    fn digest(&self) -> [u8; 32] {
        [0; 32]
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_epoch_that_cannot_be_read_ends_the_stream_with_an_error() {
    let mut changing = Changing::new(SchemeId::Dpf, 50, 4);
    let server = start(keeping(), vec![changing.served()]).await;
    let mut next = changing.next(1, 0);
    next.steps[0].epoch = Some(Arc::new(Lost));
    server.update("t", next).await.unwrap();
    let mut stub = stub(&server).await;
    let described = describe(&mut stub).await.tables[0].clone();
    let cut_off = fetch(&mut stub, updates_request(&described, 5)).await.unwrap_err();
    assert_eq!(cut_off.code(), Code::Unavailable);
}
