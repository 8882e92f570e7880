//! Right records, however many clients ask at once.

use crate::common::*;
use privet_server::ServerConfig;
use privet_wire::limits::queries_together;
use privet_wire::{AnswerRequest, AnswerResponse};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tonic::Code;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_lookups_at_once_are_all_right_and_share_passes() {
    const LOOKUPS: u64 = 1000;
    let config = ServerConfig { batch_window: Duration::from_millis(2), ..config() };
    let server = start(config, vec![table("t", 700, 9, 1), table("u", 90, 2, 2)]).await;
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

/// One, several and as many as may be; and one more, which are refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_queries_of_a_request_are_answered_in_their_order() {
    let server = start(config(), vec![table("t", 700, 9, 1)]).await;
    let mut stub = unlimited(&stub(&server).await);
    assert_eq!(describe(&mut stub).await.max_queries, 64);
    let mut client = TableClient::new(&mut stub, "t").await;
    let plan = client.description.schemes[0].plan.clone();
    let most = queries_together(plan.longest_query(), plan.answer_len);
    assert!(most > 3, "{most}");
    for count in [1, 2, 3, most, most + 1] {
        let indices = (0..count as u64).map(|number| number * 7919 % 700);
        let (requests, lookups): (Vec<_>, Vec<_>) = indices
            .map(|index| {
                let (request, pending) = client.prepare(index);
                (request, (index, pending))
            })
            .unzip();
        let query: Vec<u8> = requests.iter().flat_map(|request| request.query.to_vec()).collect();
        let request = AnswerRequest { query: query.into(), ..requests[0].clone() };
        let answered = ask(&mut stub, request).await;
        if count > most {
            let refused = answered.unwrap_err();
            let of_either = [Code::InvalidArgument, Code::OutOfRange].contains(&refused.code());
            assert!(of_either, "{refused}");
            continue;
        }
        let response = answered.unwrap();
        assert_eq!(response.answer.len(), count * plan.answer_len);
        for (number, (index, pending)) in lookups.into_iter().enumerate() {
            let at = number * plan.answer_len;
            let answer = response.answer.slice(at..at + plan.answer_len);
            let one = AnswerResponse { answer, ..response.clone() };
            assert_eq!(client.recover(pending, &one), client.expected(index), "record {index}");
        }
    }
    assert_eq!(metric(&server, "privet_batch_size_sum").await, (1 + 2 + 3 + most) as f64);
}
