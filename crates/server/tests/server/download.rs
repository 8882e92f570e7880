//! Download: the table is announced and fetched whole, and no query is answered.

use crate::common::*;
use bytes::Bytes;
use privet_core::{Blame, RecordIndex};
use privet_schemes::SchemeId;
use privet_schemes::contract::Role;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::reservation::Prepared;
use privet_server::{HintOrigin, ServedTable, Server, ServerConfig};
use privet_wire::limits::FETCH_CHUNK_LEN;
use privet_wire::{AnswerRequest, PartKind};
use tonic::Code;

fn downloaded(name: &str, count: u64, record_len: u64, id: u8) -> ServedTable {
    served_by(SchemeId::Download, table(name, count, record_len, id))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_table_is_fetched_once_and_every_record_is_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let config = ServerConfig { cache_dir: Some(dir.path().to_owned()), ..config() };
    let shapes = [(1, 1), (3, 5), (700, 9), (FETCH_CHUNK_LEN as u64 / 100, 201)];
    let named = |(count, len): (u64, u64)| format!("t{count}x{len}");
    let tables =
        shapes.iter().zip(1..).map(|(shape, id)| downloaded(&named(*shape), shape.0, shape.1, id));
    let server = start(config, tables.collect()).await;
    // Nothing was computed, nothing is stored for the next start, and no memory is held beyond the
    // source of the records.
    for ready in server.tables() {
        assert_eq!((ready.hint_origin, ready.extra_bytes), (HintOrigin::None, 0));
        assert_eq!(ready.huge_page_bytes, None);
    }
    assert_eq!(metric(&server, "privet_hints_total{origin=\"none\"}").await, 4.0);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);

    let mut stub = stub(&server).await;
    for shape in shapes {
        // Length and digest of what is fetched are the announced ones: `new` compares them.
        let mut client = TableClient::new(&mut stub, &named(shape)).await;
        let scheme = &client.description.schemes[0];
        assert_eq!(scheme.hint_kind(), Some(PartKind::Table));
        let len = client.description.identity.shape.bytes();
        assert_eq!(scheme.plan.offline, OfflinePhase::KeepTable { len });
        for index in 0..shape.0.min(800) {
            let expected = client.expected(index);
            let index = RecordIndex::new(index, client.description.identity.shape).unwrap();
            let Prepared::Known(record) = client.scheme.prepare(&index, &mut client.rng).unwrap()
            else {
                panic!("there is a query to send");
            };
            assert_eq!(*record, expected);
        }
        let no_hint = fetch_request(&client.description, PartKind::Hint, 0);
        let status = fetch(&mut stub, no_hint).await.unwrap_err();
        assert_eq!(status.code(), Code::NotFound);
    }
    // Whatever was looked up, the server heard of no query.
    assert_eq!(
        metric(&server, "privet_requests_total{method=\"Answer\",status=\"OK\"}").await,
        0.0
    );
    assert_eq!(metric(&server, "privet_batch_size_count").await, 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_is_refused_in_plain_words_whatever_it_is() {
    // Beside a table with longer queries, so that long ones reach this table.
    let server = start(config(), vec![downloaded("t", 50, 4, 1), table("u", 5000, 4, 2)]).await;
    let mut stub = stub(&server).await;
    let description = describe(&mut stub).await.table("t").unwrap().clone();
    let query = |len: usize| AnswerRequest {
        table: description.identity.id,
        epoch: description.identity.epoch,
        parameter_digest: description.schemes[0].parameter_digest,
        role: Role(0),
        query: Bytes::from(vec![7; len]),
    };
    let mut words = Vec::new();
    for len in [0, 1, 8, 200] {
        let status = ask(&mut stub, query(len)).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{len}: {status}");
        assert!(status.message().contains("this table is fetched whole"), "{status}");
        words.push(status.message().to_owned());
    }
    assert!(words.windows(2).all(|pair| pair[0] == pair[1]), "{words:?}");
    let status = ask(&mut stub, AnswerRequest { role: Role(1), ..query(0) }).await.unwrap_err();
    assert!(status.message().contains("no role 1"), "{status}");
    // No pass began for any of them, and none counts as answered.
    assert_eq!(metric(&server, "privet_batch_size_count").await, 0.0);
    assert_eq!(metric(&server, "privet_queries_answered_total{table=\"t\"}").await, 0.0);
    TableClient::new(&mut stub, "u").await.check(&mut stub, 4321).await;
}

#[tokio::test]
async fn a_table_that_clients_would_refuse_is_not_served() {
    let good = || downloaded("t", 100, 4, 1);
    let mut damaged = records(400, 1);
    damaged[0] ^= 0x80;
    let records = ServedTable { records: Box::new(damaged), ..good() };
    let mut digest = good();
    digest.identity.digest.0[0] ^= 1;
    for table in [records, digest] {
        let error = Server::start(config(), vec![table]).await.err().unwrap();
        assert_eq!(error.blame(), Blame::Corrupted, "{error}");
        assert!(error.to_string().contains("table t: damaged"), "{error}");
    }
    start(config(), vec![good()]).await;
}
