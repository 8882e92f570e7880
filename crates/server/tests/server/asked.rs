//! Schemes whose clients ask one of two servers for their hints: both servers are the same program,
//! and each request says which role is asked.

use crate::common::*;
use crate::hinted::*;
use bytes::Bytes;
use privet_core::{Epoch, TableId};
use privet_schemes::SchemeId;
use privet_schemes::contract::Role;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::{PARTITION_RECORDS, Tuning};
use privet_server::{HintOrigin, Limits, RunningServer, ServedTable, Server, ServerConfig};
use privet_wire::{
    AnswerRequest, PartKind, PrepareRequest, PrepareResponse, TableDescription, proto,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tonic::{Code, Status};

const ASKING: [SchemeId; 2] = [SchemeId::DummySubsetsTwo, SchemeId::SinglePass];
const ASKED: Role = Role(0);

/// Two servers of the same tables, and a connection to each.
async fn pair(
    config: &ServerConfig,
    tables: impl Fn() -> Vec<ServedTable>,
) -> ([RunningServer; 2], [Stub; 2]) {
    let servers = [start(config.clone(), tables()).await, start(config.clone(), tables()).await];
    let stubs = [stub(&servers[0]).await, stub(&servers[1]).await];
    (servers, stubs)
}

/// One table of each of the schemes, named after it.
fn one_of_each(count: u64, record_len: u64) -> Vec<ServedTable> {
    let numbered = ASKING.iter().zip(1..);
    let table = |(scheme, id): (&SchemeId, u8)| {
        served_by(*scheme, table(scheme.name(), count, record_len, id))
    };
    numbered.map(table).collect()
}

fn request_for_hints(table: &TableDescription, request: impl Into<Bytes>) -> PrepareRequest {
    PrepareRequest {
        table: table.identity.id,
        epoch: table.identity.epoch,
        parameter_digest: table.schemes[0].parameter_digest,
        role: ASKED,
        request: request.into(),
    }
}

/// Length of a request for hints for this table.
fn request_len(table: &TableDescription) -> usize {
    let OfflinePhase::Ask { role, request_len, .. } = table.schemes[0].plan.offline else {
        panic!("clients of {} ask for no hints", table.name);
    };
    assert_eq!(role, ASKED);
    request_len
}

async fn prepare(stub: &mut Stub, request: PrepareRequest) -> Result<PrepareResponse, Status> {
    let response = stub.prepare(proto::PrepareRequest::from(request.clone())).await?;
    let response = PrepareResponse::try_from(response.into_inner()).unwrap();
    response.check_belongs_to(&request).unwrap();
    Ok(response)
}

/// Asks for all hints of a client. Counts the requests.
async fn prepared_by(asked: &Stub, table: &TableDescription) -> (HintedClient, u64) {
    let mut asked = unlimited(asked);
    let mut preparation = begin_preparation(table, [0; 32]);
    let mut requests = 0;
    while let Some(request) = preparation.request() {
        assert_eq!(request.len(), request_len(table));
        let reply = prepare(&mut asked, request_for_hints(table, request.to_vec())).await;
        preparation.absorb(preparation.next_offset(), &reply.unwrap().reply).unwrap();
        requests += 1;
    }
    (HintedClient::new(table, preparation), requests)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_size_that_was_chosen_is_served_and_one_that_cannot_be_is_refused() {
    let tuned = |partition_records| {
        let tuning = Tuning::default().with(&PARTITION_RECORDS, partition_records);
        let tuned = |table| ServedTable { tuning: tuning.clone(), ..table };
        one_of_each(1000, 5).into_iter().map(tuned).collect::<Vec<_>>()
    };
    let mut seen = Vec::new();
    for partition_records in [16u64, 128] {
        let (servers, mut stubs) = pair(&config(), || tuned(partition_records)).await;
        for table in &describe(&mut stubs[0]).await.tables {
            let (mut client, requests) = prepared_by(&stubs[0], table).await;
            client.check(&mut stubs, 999).await;
            seen.push(table.schemes[0].plan.query_lens[1]);
            // One server computes them. It stores none, because no two clients get the same.
            let prepared = format!("privet_preparations_total{{table=\"{}\"}}", table.name);
            assert_eq!(metric(&servers[0], &prepared).await, requests as f64);
            assert_eq!(metric(&servers[1], &prepared).await, 0.0);
            assert_eq!(table.schemes[0].hint_kind(), None);
            let refused = fetch(&mut stubs[0], fetch_request(table, PartKind::Hint, 0)).await;
            assert_eq!(refused.unwrap_err().code(), Code::NotFound);
        }
        for server in &servers {
            assert!(server.tables().iter().all(|ready| ready.hint_origin == HintOrigin::None));
        }
    }
    // Smaller partitions are more partitions, and a query has a part for each.
    assert!(seen[0] > seen[2] && seen[1] > seen[3], "{seen:?}");

    for table in tuned(0) {
        let name = table.name.clone();
        let error = Server::start(config(), vec![table]).await.err().expect("no such partitions");
        assert!(error.to_string().contains(&format!("table {name}")), "{error}");
    }
    let simplepir = ServedTable { scheme: SchemeId::SimplePir, ..tuned(16).remove(0) };
    let error = Server::start(config(), vec![simplepir]).await.err().expect("nothing to tune");
    assert!(error.to_string().contains("does not cut the table into partitions"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_no_server_should_reply_to_are_refused_and_none_is_computed() {
    let tables = one_of_each(1000, 5).into_iter().chain([table("plain", 50, 4, 9)]).collect();
    let server = start(config(), tables).await;
    let mut stub = unlimited(&stub(&server).await);
    let described = describe(&mut stub).await;
    let other_digest = described.table("plain").unwrap().schemes[0].parameter_digest;
    for scheme in ASKING {
        let table = described.table(scheme.name()).unwrap();
        let len = request_len(table);
        let of_len = |len: usize| request_for_hints(table, vec![1; len]);
        let good = || of_len(len);
        let role = |role| PrepareRequest { role: Role(role), ..good() };
        let cases = [
            ("check the order of the servers' addresses", Code::InvalidArgument, role(1)),
            ("not 2", Code::InvalidArgument, role(2)),
            ("not 255", Code::InvalidArgument, role(255)),
            ("bytes, not 0", Code::InvalidArgument, of_len(0)),
            ("bytes, not", Code::InvalidArgument, of_len(len - 1)),
            ("bytes, not", Code::InvalidArgument, of_len(len + 1)),
            ("no table", Code::NotFound, PrepareRequest { table: TableId([7; 16]), ..good() }),
            ("epoch", Code::FailedPrecondition, PrepareRequest { epoch: Epoch(4), ..good() }),
            (
                "other parameters",
                Code::FailedPrecondition,
                PrepareRequest { parameter_digest: other_digest, ..good() },
            ),
        ];
        for (sentence, code, request) in cases {
            let status = prepare(&mut stub, request).await.unwrap_err();
            assert_eq!(status.code(), code, "{status}");
            assert!(status.message().contains(sentence), "{sentence:?} is not in {status}");
        }
        // A message longer than every valid request is not even read.
        let status = prepare(&mut stub, of_len(1 << 20)).await.unwrap_err();
        assert_eq!(status.code(), Code::OutOfRange, "{status}");

        // A query for one role is not valid for the other, unless both have the same length.
        let lens = table.schemes[0].plan.query_lens.clone();
        let query = |role: u8, len: usize| AnswerRequest {
            table: table.identity.id,
            epoch: table.identity.epoch,
            parameter_digest: table.schemes[0].parameter_digest,
            role: Role(role),
            query: vec![0; len].into(),
        };
        for (role, len) in [(0, lens[0] + 1), (1, lens[1] + 1), (2, lens[0]), (2, lens[1])] {
            let status = ask(&mut stub, query(role, len)).await.unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        }
        if lens[0] != lens[1] {
            for (role, len) in [(0, lens[1]), (1, lens[0])] {
                let status = ask(&mut stub, query(role, len)).await.unwrap_err();
                assert!(status.message().contains("bytes, not"), "{status}");
            }
        }
        let prepared = format!("privet_preparations_total{{table=\"{}\"}}", table.name);
        assert_eq!(metric(&server, &prepared).await, 0.0);
    }
    let without = described.table("plain").unwrap();
    let status = prepare(&mut stub, request_for_hints(without, vec![1; 32])).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert!(status.message().contains("no hints to ask for"), "{status}");
    assert_eq!(metric(&server, "privet_preparation_seconds_count").await, 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_is_not_read_keeps_its_place_and_more_are_refused_until_it_is_free() {
    let config = limited(Limits { preparations: all_for_one(1), ..Limits::default() });
    // Long partitions make long hints: more than fits into a connection that nobody reads.
    let tuning = Tuning::default().with(&PARTITION_RECORDS, 1u64 << 12);
    let tables = || {
        let table = served_by(SchemeId::SinglePass, table("t", 1 << 14, 256, 1));
        vec![ServedTable { tuning: tuning.clone(), ..table }]
    };
    let (servers, mut stubs) = pair(&config, tables).await;
    let described = describe(&mut stubs[0]).await.tables[0].clone();
    let OfflinePhase::Ask { reply_len, .. } = described.schemes[0].plan.offline else {
        panic!("hints are asked for");
    };
    assert_eq!(reply_len, 1 << 20);

    let request = proto::PrepareRequest::from(request_for_hints(&described, vec![1; 32]));
    let unread = unread(&servers[0], "Prepare", request).await;

    let refused =
        prepare(&mut unlimited(&stubs[0]), request_for_hints(&described, vec![2; 32])).await;
    let status = refused.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.message().contains("try again"), "{status}");
    assert_eq!(
        metric(&servers[0], "privet_shed_total{what=\"preparations\",why=\"total\"}").await,
        1.0
    );
    // The other server has a free slot, and queries need none.
    let (mut client, _) = prepared_by(&stubs[1], &described).await;
    client.check(&mut stubs, 12_345).await;

    drop(unread);
    let given_up = "privet_requests_total{method=\"Prepare\",status=\"CANCELLED\"}";
    until_metric(&servers[0], given_up, 1.0).await;
    let (mut client, _) = prepared_by(&stubs[0], &described).await;
    client.check(&mut stubs, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_begun_and_left_keep_nobody_from_hints_and_are_ended() {
    let body_deadline = Duration::from_secs(2);
    let config = limited(Limits { body_deadline, ..Limits::default() });
    let tables = || vec![served_by(SchemeId::SinglePass, table("t", 1000, 3, 1))];
    let (servers, mut stubs) = pair(&config, tables).await;
    let described = describe(&mut stubs[0]).await.tables[0].clone();

    let stream = TcpStream::connect(servers[0].local_addr()).await.unwrap();
    let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let path = format!("http://{}/privet.v1.Privet/Prepare", servers[0].local_addr());
    let idle: Vec<_> = (0..20)
        .map(|_| {
            let head = http::Request::post(&path).header("content-type", "application/grpc");
            requests.send_request(head.body(()).unwrap(), false).unwrap()
        })
        .collect();
    connection_is_served(&mut requests).await;
    prepared_by(&stubs[0], &described).await;

    for (response, _unfinished) in idle {
        let response = tokio::time::timeout(Duration::from_secs(60), response).await.unwrap();
        assert_eq!(response.unwrap().headers()["grpc-status"], "4");
    }
    let ended = "privet_requests_total{method=\"Prepare\",status=\"DEADLINE_EXCEEDED\"}";
    until_metric(&servers[0], ended, 20.0).await;
    assert_eq!(
        metric(&servers[0], "privet_shed_total{what=\"preparations\",why=\"total\"}").await,
        0.0
    );
    connection.abort();
}

/// Waits until the server has taken what was sent before: it takes requests in order, and has
/// answered one that came last.
async fn connection_is_served(requests: &mut h2::client::SendRequest<Bytes>) {
    let head = http::Request::post("http://test/privet.v1.Privet/Nothing").body(()).unwrap();
    let (response, _) = requests.send_request(head, true).unwrap();
    response.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lookups_go_on_while_others_have_hints_computed_without_a_pause() {
    for scheme in ASKING {
        let limits = Limits { preparations: all_for_one(4), ..Limits::default() };
        let config = ServerConfig { preparations_at_once: Some(2), ..limited(limits) };
        let tables = || vec![served_by(scheme, table("t", 20_000, 16, 1))];
        let (servers, mut stubs) = pair(&config, tables).await;
        let described = describe(&mut stubs[0]).await.tables[0].clone();
        let (mut client, _) = prepared_by(&stubs[0], &described).await;
        let prepared = "privet_preparations_total{table=\"t\"}";
        let before = metric(&servers[0], prepared).await;

        let done = Arc::new(AtomicBool::new(false));
        let others: Vec<_> = (0..4)
            .map(|_| {
                let (stub, described, done) = (stubs[0].clone(), described.clone(), done.clone());
                tokio::spawn(async move {
                    while !done.load(Ordering::SeqCst) {
                        prepared_by(&stub, &described).await;
                    }
                })
            })
            .collect();
        // At least thirty lookups, and enough that some run beside every client's preparation.
        let mut lookups = 0;
        while lookups < 30 || metric(&servers[0], prepared).await < before + 8.0 {
            client.check(&mut stubs, lookups * 7919 % 20_000).await;
            lookups += 1;
        }
        done.store(true, Ordering::SeqCst);
        for other in others {
            other.await.unwrap();
        }
        assert_eq!(metric(&servers[0], "privet_preparations_running").await, 0.0);
        assert_eq!(metric(&servers[0], "privet_preparations_waiting").await, 0.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_either_server_counts_is_the_same_whatever_is_looked_up() {
    for scheme in ASKING {
        let mut seen = Vec::new();
        for indices in [[7; 5], [0, 999, 5, 123, 7]] {
            let tables = || vec![served_by(scheme, table("t", 1000, 3, 1))];
            let (servers, mut stubs) = pair(&config(), tables).await;
            let described = describe(&mut stubs[0]).await.tables[0].clone();
            let (mut client, requests) = prepared_by(&stubs[0], &described).await;
            for index in indices {
                client.check(&mut stubs, index).await;
            }
            for server in &servers {
                let answered = "privet_requests_total{method=\"Answer\",status=\"OK\"}";
                until_metric(server, answered, 5.0).await;
            }
            let replied = "privet_requests_total{method=\"Prepare\",status=\"OK\"}";
            until_metric(&servers[0], replied, requests as f64).await;
            let described = "privet_requests_total{method=\"Describe\",status=\"OK\"}";
            until_metric(&servers[0], described, 1.0).await;
            seen.push([counts(&servers[0]).await, counts(&servers[1]).await]);
        }
        assert_eq!(seen[0], seen[1], "{scheme}");
    }
}
