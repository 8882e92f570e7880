//! DoublePIR: right records for many clients at once, with invalid queries among them.

use crate::common::*;
use privet_core::Blame;
use privet_schemes::SchemeId;
use privet_server::{HintOrigin, ServedTable, Server, ServerConfig};
use privet_wire::{AnswerRequest, PartKind};
use std::time::Duration;
use tonic::Code;

/// Its hint has 16 MiB for each byte of a record.
fn doublepir(count: u64, record_len: u64) -> ServedTable {
    served_by(SchemeId::DoublePir, table("t", count, record_len, 1))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_share_passes_with_each_other_and_with_queries_that_are_refused() {
    const LOOKUPS: u64 = 48;
    // All queries that come before the first pass begins are in its batch.
    let config =
        ServerConfig { batch_window: Duration::from_millis(500), max_batch: 64, ..config() };
    let server = start(config, vec![doublepir(1000, 1)]).await;
    assert_eq!(server.tables()[0].hint_origin, HintOrigin::Computed);
    let mut first = stub(&server).await;
    let mut client = TableClient::new(&mut first, "t").await;
    let plan = client.description.schemes[0].plan.clone();
    assert_eq!((plan.scheme, plan.servers), (SchemeId::DoublePir, 1));
    assert_eq!(client.description.schemes[0].hint_kind(), Some(PartKind::Hint));

    let stubs = [first, stub(&server).await, stub(&server).await];
    let mut tasks = Vec::new();
    for number in 0..LOOKUPS {
        let index = number * 7919 % 1000;
        let (good, pending) = client.prepare(index);
        let len = good.query.len();
        assert_eq!(len, plan.query_lens[0]);
        let cut = AnswerRequest { query: good.query.slice(..len - 4), ..good.clone() };
        let (mut stub, mut other) = (stubs[number as usize % 3].clone(), stubs[0].clone());
        tasks.push((
            index,
            pending,
            tokio::spawn(async move { tokio::join!(ask(&mut stub, good), ask(&mut other, cut)) }),
        ));
    }
    for (index, pending, task) in tasks {
        let (good, cut) = task.await.unwrap();
        let status = cut.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains("a query to table t has"), "{status}");
        let response = good.unwrap();
        assert_eq!(response.answer.len(), plan.answer_len);
        assert_eq!(client.recover(pending, &response), client.expected(index), "record {index}");
    }
    assert_eq!(metric(&server, "privet_queries_answered_total{table=\"t\"}").await, 48.0);
    assert_eq!(metric(&server, "privet_batch_size_sum").await, LOOKUPS as f64);
    let passes = metric(&server, "privet_batch_size_count").await;
    assert!(passes < LOOKUPS as f64 / 2.0, "{passes} passes");
}

#[tokio::test]
async fn records_whose_hint_would_be_too_long_are_refused_with_the_numbers() {
    let error = Server::start(config(), vec![doublepir(100, 65)]).await.err().unwrap();
    assert_eq!(error.blame(), Blame::ApiMisuse);
    for words in ["table t: DoublePIR's hint", "1040 MiB for records of 65 bytes", "SimplePIR's"] {
        assert!(error.to_string().contains(words), "{words:?} is not in: {error}");
    }
}
