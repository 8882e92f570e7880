//! Impossible updates: the earlier version is still served, and the failure is counted.

use super::*;
use privet_core::{Blame, TableDigest, TableId};

/// The first step's changes begin, or end, with another number of records than the table.
fn starts_or_ends_elsewhere(next: &mut NextVersion, starts: bool) {
    let changes = &mut next.steps[0].changes;
    let shape = if starts { changes.shape_after() } else { changes.shape() };
    *changes = TableChanges::none(shape);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_follow_is_refused_and_changes_nothing() {
    for scheme in [SchemeId::SimplePir, SchemeId::DummySubsets] {
        let changing = Changing::new(scheme, 60, 4);
        let server = start(keeping(), vec![changing.served_with_log()]).await;
        let next = || changing.clone().next(3, 1);
        let wrong = |alter: fn(&mut NextVersion)| {
            let mut next = next();
            alter(&mut next);
            next
        };
        let refusals: [(Blame, NextVersion); 10] = [
            (Blame::ApiMisuse, wrong(|next| next.steps.clear())),
            (Blame::ApiMisuse, wrong(|next| next.steps[0].identity.epoch = Epoch(7))),
            (Blame::ApiMisuse, wrong(|next| next.steps[0].identity.epoch = Epoch(5))),
            (Blame::ApiMisuse, wrong(|next| next.steps[0].identity.id = TableId([7; 16]))),
            (Blame::ApiMisuse, wrong(|next| starts_or_ends_elsewhere(next, true))),
            (Blame::ApiMisuse, wrong(|next| starts_or_ends_elsewhere(next, false))),
            (Blame::Corrupted, wrong(|next| next.records_digest = [7; 32])),
            (Blame::Corrupted, wrong(|next| next.steps[0].identity.digest = TableDigest([7; 32]))),
            (Blame::Integrity, wrong(|next| next.signing.publisher = [7; 32])),
            (Blame::ApiMisuse, wrong(|next| next.records = Box::new(vec![0; 7]))),
        ];
        let count = refusals.len() as f64;
        for (blame, next) in refusals {
            let refused = server.update("t", next).await.unwrap_err();
            assert_eq!(refused.blame(), blame, "{refused}");
        }
        let failed = metric(&server, "privet_updates_failed_total{table=\"t\"}").await;
        assert_eq!(failed, count);
        assert_eq!(versions_served(&server).await, [5]);
        // The next good one is the next version.
        server.update("t", next()).await.unwrap();
        assert_eq!(versions_served(&server).await, [6, 5]);
        // And not a second time.
        let again = server.update("t", next()).await.unwrap_err();
        assert_eq!(again.blame(), Blame::ApiMisuse);
        let elsewhere = server.update("other", next()).await.unwrap_err();
        assert_eq!(elsewhere.blame(), Blame::ApiMisuse);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_server_takes_no_updates() {
    let mut changing = Changing::new(SchemeId::Dpf, 60, 4);
    let server = start(keeping(), vec![changing.served()]).await;
    let updates: TableUpdates = server.table_updates();
    server.shutdown();
    server.wait().await.unwrap();
    let refused = updates.update("t", changing.next(1, 0)).await.unwrap_err();
    assert_eq!(refused.blame(), Blame::Unavailable);
}
