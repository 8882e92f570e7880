//! A server that starts after all updates serves the same as one that followed them.

use super::*;
use privet_server::HintOrigin;
use privet_wire::updates::{EpochReader, FetchedEpoch};
use privet_wire::{FetchRequest, PartKind, TableDescription};
use std::path::PathBuf;
use std::time::Instant;

async fn described(server: &RunningServer) -> TableDescription {
    describe(&mut stub(server).await).await.tables[0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whether_a_table_grew_before_the_start_or_after_it_is_served_the_same() {
    for scheme in privet_laboratory::all() {
        if scheme == privet_laboratory::TAPIR_PP {
            continue;
        }
        let mut changing = Changing::new(scheme, 401, 6);
        let running = start(keeping(), vec![changing.served_with_log()]).await;
        for (edits, added) in [(5, 0), (2, 3), (1, 11)] {
            running.update("t", changing.next(edits, added)).await.unwrap();
        }
        let restarted = start(keeping(), vec![changing.served_with_log()]).await;
        let (followed, begun) = (described(&running).await, described(&restarted).await);
        assert_eq!(begun.earlier, Vec::new());
        assert_eq!(followed.schemes, begun.schemes, "{scheme}");
        assert_eq!((followed.identity, followed.updates), (begun.identity, begun.updates));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_patches_the_hint_that_the_cache_has_of_the_version_before() {
    let cache = tempfile::tempdir().unwrap();
    let config = ServerConfig { cache_dir: Some(cache.path().to_owned()), ..keeping() };
    let mut changing = Changing::new(SchemeId::SimplePir, 900, 5);
    let origin = |server: &RunningServer| server.tables()[0].hint_origin;
    let first = start(config.clone(), vec![changing.served_with_log()]).await;
    assert_eq!(origin(&first), HintOrigin::Computed);
    changing.change(20, 0);
    changing.change(20, 0);
    let restarted = start(config.clone(), vec![changing.served_with_log()]).await;
    assert_eq!(origin(&restarted), HintOrigin::Patched);
    let fresh = start(keeping(), vec![changing.served_as_it_is()]).await;
    assert_eq!(described(&restarted).await.schemes, described(&fresh).await.schemes);
    // The first server still uses the one of the version before.
    assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 2);
    let mut stub = stub(&restarted).await;
    let mut client = TableClient::new(&mut stub, "t").await;
    for index in 0..30 {
        let record = client.look_up(&mut stub, index).await.unwrap();
        assert_eq!(record, changing.record(Epoch(7), index));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hint_goes_into_the_cache_when_a_table_rests_and_later_ones_are_made_of_it() {
    let cache = tempfile::tempdir().unwrap();
    let config = ServerConfig {
        cache_dir: Some(cache.path().to_owned()),
        keep_hints_after: Duration::from_millis(50),
        ..keeping()
    };
    let entries = || -> Vec<_> {
        std::fs::read_dir(cache.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let mut changing = Changing::new(SchemeId::SimplePir, 900, 5);
    let running = start(config.clone(), vec![changing.served_with_log()]).await;
    let first = entries();
    running.update("t", changing.next(20, 0)).await.unwrap();
    let is_whole = |path: &PathBuf| path.extension().is_some_and(|end| end == "hint");
    let began = Instant::now();
    while !entries().iter().any(|entry| is_whole(entry) && !first.contains(entry)) {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", entries());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    running.shutdown();
    running.wait().await.unwrap();
    first.iter().for_each(|entry| std::fs::remove_file(entry).unwrap_or_default());
    changing.change(20, 0);
    let restarted = start(config.clone(), vec![changing.served_with_log()]).await;
    assert_eq!(restarted.tables()[0].hint_origin, HintOrigin::Patched);
    let fresh = start(keeping(), vec![changing.served_as_it_is()]).await;
    assert_eq!(described(&restarted).await.schemes, described(&fresh).await.schemes);
    drop(restarted);
    let again = start(config, vec![changing.served_with_log()]).await;
    assert_eq!(again.tables()[0].hint_origin, HintOrigin::Cached);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_clients_that_verify_must_know_is_told_by_every_server_alike() {
    let mut changing = Changing::new(SchemeId::TapirMerkle, 300, 8);
    let running = start(keeping(), vec![changing.served_with_log()]).await;
    running.update("t", changing.next(3, 0)).await.unwrap();
    changing.change(1, 2);
    changing.change(4, 1);
    running.update("t", changing.steps(1)).await.unwrap();
    let restarted = start(keeping(), vec![changing.served_with_log()]).await;
    let mut told: Vec<Vec<FetchedEpoch>> = Vec::new();
    for server in [&running, &restarted] {
        let to = described(server).await;
        assert_eq!(to.updates.unwrap().first_epoch, Epoch(5));
        let request = fetch_request(&to, PartKind::Updates, 0);
        let request = FetchRequest { epoch: Epoch(5), ..request };
        let bytes = fetch(&mut stub(server).await, request).await.unwrap();
        told.push(EpochReader::default().take(&bytes).unwrap());
    }
    assert_eq!(told[0], told[1]);
    assert_eq!(told[0].len(), 3);
    assert!(told[0].iter().all(|epoch| !epoch.commitments.is_empty()));
    // A server knows the epochs before its start, but not their commitments.
    let late = ServedTable {
        updates: Some(UpdateFeed {
            signing: PUBLISHER.into(),
            first_epoch: Epoch(5),
            epochs: (6..=8)
                .map(|epoch| Arc::new(CheckedBytes::from(epoch_bytes(Epoch(epoch)))) as _)
                .collect(),
            next: None,
        }),
        ..changing.served_as_it_is()
    };
    let late = start(keeping(), vec![late]).await;
    assert_eq!(described(&late).await.updates.unwrap().first_epoch, Epoch(8));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn epochs_that_do_not_lead_to_the_table_are_refused() {
    let changing = Changing::new(SchemeId::Dpf, 30, 4);
    let updates = UpdateFeed {
        signing: PUBLISHER.into(),
        first_epoch: Epoch(3),
        epochs: vec![Arc::new(CheckedBytes::from(vec![1]))],
        next: None,
    };
    let table = ServedTable { updates: Some(updates), ..changing.served() };
    let refused = privet_server::Server::start(config(), vec![table]).await.err().unwrap();
    assert_eq!(refused.blame(), privet_core::Blame::ApiMisuse);
}
