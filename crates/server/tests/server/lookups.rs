//! Right records, however many clients ask at once.

use crate::common::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_lookups_at_once_are_all_right_and_share_passes() {
    const LOOKUPS: u64 = 1000;
    let server = start(config(), vec![table("t", 700, 9, 1), table("u", 90, 2, 2)]).await;
    let mut first = stub(&server).await;
    let mut clients =
        [TableClient::new(&mut first, "t").await, TableClient::new(&mut first, "u").await];
    let mut stubs = Vec::new();
    for _ in 0..8 {
        stubs.push(stub(&server).await);
    }
    let prepared: Vec<_> = (0..LOOKUPS)
        .map(|number| {
            let client = (number % 2) as usize;
            let index = number * 7919 % clients[client].description.identity.shape.records();
            let (request, pending) = clients[client].prepare(index);
            (client, index, request, pending)
        })
        .collect();
    let in_flight = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let tasks: Vec<_> = prepared
        .into_iter()
        .zip((0..8).cycle())
        .map(|((client, index, request, pending), connection)| {
            let mut stub = stubs[connection].clone();
            let in_flight = Arc::clone(&in_flight);
            tokio::spawn(async move {
                let now = in_flight.0.fetch_add(1, Ordering::SeqCst) + 1;
                in_flight.1.fetch_max(now, Ordering::SeqCst);
                let response = ask(&mut stub, request).await.unwrap();
                in_flight.0.fetch_sub(1, Ordering::SeqCst);
                (client, index, pending, response)
            })
        })
        .collect();
    for task in tasks {
        let (client, index, pending, response) = task.await.unwrap();
        let record = clients[client].recover(pending, &response);
        assert_eq!(record, clients[client].expected(index), "record {index}");
    }
    let passes = metric(&server, "privet_batch_size_count").await;
    let most = in_flight.1.load(Ordering::SeqCst);
    assert!(most > 100, "{most} at once");
    assert_eq!(metric(&server, "privet_batch_size_sum").await, LOOKUPS as f64);
    assert!(passes < LOOKUPS as f64 / 2.0, "{passes} passes");
    assert_eq!(metric(&server, "privet_queue_depth").await, 0.0);
}
