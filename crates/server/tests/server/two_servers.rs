//! DPF-PIR: two servers run the same program, and each is asked for its share; each request names
//! the role.

use crate::common::*;
use bytes::Bytes;
use privet_core::{Epoch, TableIdentity};
use privet_schemes::SchemeId;
use privet_schemes::contract::Role;
use privet_server::{HintOrigin, RunningServer, ServedTable, ServerConfig};
use privet_wire::{AnswerRequest, AnswerResponse, PartKind};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tonic::{Code, Status};

fn dpf(name: &str, count: u64, record_len: u64, id: u8) -> ServedTable {
    served_by(SchemeId::Dpf, table(name, count, record_len, id))
}

/// Two servers of the same tables, and a connection to each.
async fn pair(
    config: &ServerConfig,
    tables: impl Fn() -> Vec<ServedTable>,
) -> ([RunningServer; 2], [Stub; 2]) {
    let servers = [start(config.clone(), tables()).await, start(config.clone(), tables()).await];
    let stubs = [stub(&servers[0]).await, stub(&servers[1]).await];
    (servers, stubs)
}

/// Sends each request to its server, both at once.
async fn ask_both(
    [first, second]: &mut [Stub; 2],
    requests: Vec<AnswerRequest>,
) -> Result<[AnswerResponse; 2], Status> {
    let [one, other]: [AnswerRequest; 2] = requests.try_into().unwrap();
    let (one, other) = tokio::join!(ask(first, one), ask(second, other));
    Ok([one?, other?])
}

async fn check_both(client: &mut TableClient, stubs: &mut [Stub; 2], index: u64) {
    let (requests, pending) = client.prepare_all(index);
    let responses = ask_both(stubs, requests).await.unwrap();
    let record = client.recover_all(pending, &responses);
    assert_eq!(record, client.expected(index), "record {index}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_share_passes_with_each_other_and_with_queries_that_are_refused() {
    const LOOKUPS: u64 = 60;
    const RECORDS: u64 = 1000;
    let config =
        ServerConfig { batch_window: Duration::from_millis(300), max_batch: 64, ..config() };
    let (servers, mut stubs) = pair(&config, || vec![dpf("t", RECORDS, 7, 1)]).await;
    let mut client = TableClient::new(&mut stubs[0], "t").await;
    let len = client.description.schemes[0].plan.query_lens[0];
    // Three levels: a nonce, a root, three corrections, a byte of which five bits are unused, the
    // final word.
    assert_eq!(len, 16 + 16 + 3 * 16 + 1 + 16);
    let spoiled = |good: &AnswerRequest, number: u64| {
        let mut query = good.query.to_vec();
        match number % 3 {
            // Refused by the scheme, in the middle of a batch.
            0 => query[80] |= 1 << (3 + number % 5),
            // Refused before it is queued.
            1 => query.truncate(len - 1),
            _ => return AnswerRequest { role: Role(2), ..good.clone() },
        }
        AnswerRequest { query: query.into(), ..good.clone() }
    };
    let mut tasks = Vec::new();
    for number in 0..LOOKUPS {
        let index = number * 7919 % RECORDS;
        let (requests, pending) = client.prepare_all(index);
        let bad: Vec<_> = requests.iter().map(|good| spoiled(good, number)).collect();
        let (mut to_both, [mut one, mut other]) = (stubs.clone(), stubs.clone());
        let task = tokio::spawn(async move {
            let [first, second]: [AnswerRequest; 2] = bad.try_into().unwrap();
            tokio::join!(
                ask(&mut one, first),
                ask_both(&mut to_both, requests),
                ask(&mut other, second)
            )
        });
        tasks.push((number, index, pending, task));
    }
    for (number, index, pending, task) in tasks {
        let (first, good, second) = task.await.unwrap();
        let sentence =
            ["has bits for levels that are not there", "has 97 bytes, not 96", "no role 2"]
                [number as usize % 3];
        for refused in [first, second] {
            let status = refused.unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument, "{status}");
            assert!(status.message().contains(sentence), "{sentence:?} is not in {status}");
        }
        let record = client.recover_all(pending, &good.unwrap());
        assert_eq!(record, client.expected(index), "record {index}");
    }
    for server in &servers {
        // The valid ones, and those with bits that only the scheme can check.
        assert_eq!(metric(server, "privet_batch_size_sum").await, (LOOKUPS + LOOKUPS / 3) as f64);
        let passes = metric(server, "privet_batch_size_count").await;
        assert!(passes < LOOKUPS as f64 / 2.0, "{passes} passes");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_that_the_scheme_does_not_have_is_refused_and_parts_do_not_share_passes() {
    let config = ServerConfig { batch_window: Duration::from_millis(300), ..config() };
    let server = start(config, vec![dpf("t", 300, 4, 1), table("u", 50, 4, 2)]).await;
    let mut stub = stub(&server).await;
    let mut client = TableClient::new(&mut stub, "t").await;
    assert_eq!(server.tables()[0].hint_origin, HintOrigin::None);
    assert_eq!(metric(&server, "privet_hints_total{origin=\"none\"}").await, 1.0);
    let hint = fetch(&mut stub, fetch_request(&client.description, PartKind::Hint, 0)).await;
    let status = hint.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert!(status.message().contains("no hint to fetch under dpf"), "{status}");
    let (requests, pending) = client.prepare_all(17);
    for request in &requests {
        for role in [2, 3, 255] {
            let other = AnswerRequest { role: Role(role), ..request.clone() };
            let status = ask(&mut stub, other).await.unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument, "{status}");
            let sentence = format!("there is no role {role} in dpf, a scheme of 2 server(s)");
            assert!(status.message().contains(&sentence), "{status}");
        }
    }
    // A role that only the scheme of another table has is refused here too.
    let (single, _) = TableClient::new(&mut stub, "u").await.prepare(3);
    let status = ask(&mut stub, AnswerRequest { role: Role(1), ..single }).await.unwrap_err();
    assert!(status.message().contains("there is no role 1 in simplepir"), "{status}");
    assert_eq!(metric(&server, "privet_batch_size_count").await, 0.0);
    // One server is asked in both roles at once, which only a client would do that trusts it with
    // everything. It plays each role in a pass of its own.
    let responses = ask_both(&mut [stub.clone(), stub], requests).await.unwrap();
    assert_eq!(client.recover_all(pending, &responses), client.expected(17));
    assert_eq!(metric(&server, "privet_batch_size_sum").await, 2.0);
    assert_eq!(metric(&server, "privet_batch_size_count").await, 2.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_another_version_refuses_the_query_for_this_one() {
    let newer = || {
        let table = dpf("t", 300, 4, 1);
        ServedTable { identity: TableIdentity { epoch: Epoch(6), ..table.identity }, ..table }
    };
    let first = start(config(), vec![dpf("t", 300, 4, 1)]).await;
    let second = start(config(), vec![newer()]).await;
    let mut stubs = [stub(&first).await, stub(&second).await];
    let mut client = TableClient::new(&mut stubs[0], "t").await;
    let (requests, _) = client.prepare_all(17);
    let status = ask_both(&mut stubs, requests).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("epoch 6 here, not 5"), "{status}");
}

/// Queries as one server saw them, with the role that it was asked to play.
type Seen = Arc<Mutex<Vec<(u8, Bytes)>>>;

fn observed(seen: &Seen) -> ServerConfig {
    let seen = Arc::clone(seen);
    let observe = move |request: &AnswerRequest| {
        seen.lock().unwrap().push((request.role.0, request.query.clone()));
    };
    ServerConfig { query_observer: Some(Arc::new(observe)), ..config() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_sees_and_counts_does_not_depend_on_what_is_asked() {
    const QUERIES: u64 = 6;
    let mut all_counts = Vec::new();
    let mut all_queries = HashSet::new();
    for repeated in [true, false] {
        let seen = [Seen::default(), Seen::default()];
        let servers = [
            start(observed(&seen[0]), vec![dpf("t", 1000, 3, 1)]).await,
            start(observed(&seen[1]), vec![dpf("t", 1000, 3, 1)]).await,
        ];
        let mut stubs = [stub(&servers[0]).await, stub(&servers[1]).await];
        let mut client = TableClient::new(&mut stubs[0], "t").await;
        describe(&mut stubs[1]).await;
        for number in 0..QUERIES {
            check_both(&mut client, &mut stubs, if repeated { 999 } else { number * 131 }).await;
        }
        for (role, (server, seen)) in (0..).zip(servers.iter().zip(&seen)) {
            let answered = "privet_requests_total{method=\"Answer\",status=\"OK\"}";
            until_metric(server, answered, QUERIES as f64).await;
            let described = "privet_requests_total{method=\"Describe\",status=\"OK\"}";
            until_metric(server, described, 1.0).await;
            all_counts.push(counts(server).await);
            let seen = seen.lock().unwrap();
            let len = client.description.schemes[0].plan.query_lens[0];
            assert_eq!(seen.len() as u64, QUERIES);
            assert!(seen.iter().all(|(asked, query)| *asked == role && query.len() == len));
            all_queries.extend(seen.iter().map(|(_, query)| query.clone()));
        }
    }
    // No two queries have the same bytes, to either server, for the same record or another one.
    assert_eq!(all_queries.len() as u64, 4 * QUERIES);
    let answered = format!("privet_queries_answered_total{{table=\"t\"}} {QUERIES}");
    assert!(all_counts[0].contains(&answered), "{:?}", all_counts[0]);
    // The same in either role, whatever was asked. (The roles differ in the bytes of their number:
    // a zero is left out.)
    assert_eq!(all_counts[..2], all_counts[2..]);
}
