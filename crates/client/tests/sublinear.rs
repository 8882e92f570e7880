//! Clients whose servers read few records for each query, over loopback: by hints that one of two servers computes and that never run out, and by hints from a table that is streamed in an
//! order of the scheme's own.

#![allow(clippy::unwrap_used)]

mod common;

use common::{
    KEYS, any_port, config, cut, generation_in, keyed_as, options_of, pair, record, records_by,
};
use privet_client::{Client, ClientOptions, Target};
use privet_schemes::SchemeId;
use privet_server::{RunningServer, ServedTable, Server};
use privet_table::key_map::KeyMapKind;
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

const RECORDS: u64 = 1024;

/// Servers of one table, and every query that each of them saw.
struct Served {
    servers: Vec<RunningServer>,
    seen: Vec<Arc<Mutex<Vec<Vec<u8>>>>>,
}

fn servers_of(scheme: SchemeId) -> usize {
    match scheme {
        SchemeId::SinglePass | SchemeId::DummySubsetsTwo | SchemeId::TapirMerkle => 2,
        _ => 1,
    }
}

async fn serve(table: impl Fn() -> ServedTable) -> Served {
    let mut served = Served { servers: Vec::new(), seen: Vec::new() };
    for _ in 0..servers_of(table().scheme) {
        let log: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let mut config = config(any_port(), None);
        let seen = Arc::clone(&log);
        config.query_observer =
            Some(Arc::new(move |request| seen.lock().unwrap().push(request.query.to_vec())));
        served.servers.push(Server::start(config, vec![table()]).await.unwrap());
        served.seen.push(log);
    }
    served
}

/// A small table, cut so that generations of hints are short: of SinglePass and TAPIR 64 queries, of dummy subsets with two servers about 90, of Piano 222.
fn short_generations(scheme: SchemeId) -> ServedTable {
    let partition_records = if scheme == SchemeId::DummySubsetsTwo { 2 } else { 32 };
    cut(records_by(scheme, RECORDS), partition_records)
}

/// Checks that the hints that are kept in `state` have been handed over twice at least.
fn check_handed_over(scheme: SchemeId, state: &Path) {
    let generation = generation_in(state);
    assert!(generation >= 3, "{scheme}: generation {generation} is still in use");
}

impl Served {
    fn options(&self, state: Option<&Path>) -> ClientOptions {
        let urls = self.servers.iter().map(|server| format!("http://{}", server.local_addr()));
        let urls: Vec<_> = urls.collect();
        let mut options = options_of(&urls.iter().map(String::as_str).collect::<Vec<_>>());
        options.state_dir = state.map(Path::to_owned);
        options
    }

    /// Checks that every server saw so many queries.
    fn check_number(&self, queries: usize) {
        assert!(self.seen.iter().all(|seen| seen.lock().unwrap().len() == queries));
    }

    /// Checks that every server saw `lookups` queries, no two of them equal.
    fn check(&self, lookups: usize) {
        self.check_number(lookups);
        for seen in &self.seen {
            let seen = seen.lock().unwrap();
            assert_eq!(seen.iter().collect::<HashSet<_>>().len(), lookups, "a query was repeated");
        }
    }
}

async fn get_all(client: &Client, indices: impl Iterator<Item = u64>) {
    let indices: Vec<_> = indices.map(|index| index % RECORDS).collect();
    let targets: Vec<_> = indices.iter().map(|index| Target::index(*index)).collect();
    for (index, value) in indices.iter().zip(client.get_many(&targets).await) {
        assert_eq!(value.unwrap().unwrap().to_vec(), record(*index), "record {index}");
    }
}

/// A client that looks twenty records up in each of `rounds` rounds, through several generations of hints.
async fn lives_long(scheme: SchemeId, rounds: u64, never_run_out: bool) {
    let served = serve(|| short_generations(scheme)).await;
    let state = tempfile::tempdir().unwrap();
    let client = Client::connect(served.options(Some(state.path())), |_| {}).await.unwrap();
    assert_eq!(client.table().scheme.plan.scheme, scheme);
    assert!(client.stats().prepare.down > 0);
    for round in 0..rounds {
        // Of a few records again and again, of others in any order.
        get_all(&client, (0..20).map(|k| [k % 3, k * 389 + round * 7][round as usize % 2])).await;
        client.finish().await.unwrap();
    }
    assert_eq!(client.stats().background.down == 0, never_run_out);
    served.check(20 * rounds as usize);
    check_handed_over(scheme, state.path());
}

#[tokio::test]
async fn a_client_of_singlepass_lives_long() {
    lives_long(SchemeId::SinglePass, 12, true).await;
}

#[tokio::test]
async fn a_client_of_tapir_lives_long() {
    lives_long(SchemeId::TapirMerkle, 12, true).await;
}

#[tokio::test]
async fn a_client_of_dummy_subsets_with_two_servers_lives_long() {
    lives_long(SchemeId::DummySubsetsTwo, 12, true).await;
}

#[tokio::test]
async fn a_client_of_piano_lives_long() {
    lives_long(SchemeId::Piano, 30, false).await;
}

#[tokio::test]
async fn a_client_of_piano_with_all_parities_lives_long() {
    lives_long(SchemeId::PianoAllParities, 30, false).await;
}

#[tokio::test]
async fn short_lived_clients_go_on_with_what_is_stored_through_generations() {
    for (scheme, processes) in [
        (SchemeId::SinglePass, 8),
        (SchemeId::TapirMerkle, 8),
        (SchemeId::DummySubsetsTwo, 11),
        (SchemeId::Piano, 25),
    ] {
        let served = serve(|| short_generations(scheme)).await;
        let state = tempfile::tempdir().unwrap();
        for process in 0..processes {
            let options = served.options(Some(state.path()));
            let client = Client::connect(options, |_| {}).await.unwrap();
            let stats = client.stats();
            assert_eq!(stats.hint_was_stored, Some(process > 0), "{scheme}: process {process}");
            assert_eq!(stats.prepare.down == 0, process > 0, "{scheme}: process {process}");
            get_all(&client, (0..20).map(|k| k * 13 + process % 3)).await;
            client.finish().await.unwrap();
        }
        served.check(20 * processes as usize);
        check_handed_over(scheme, state.path());
    }
}

/// Each key may lie in one of two records, and both are fetched, with a hint for each.
#[tokio::test]
async fn keys_with_two_candidates_are_found_and_missed_at_the_same_cost() {
    for scheme in
        [SchemeId::SimplePir, SchemeId::SinglePass, SchemeId::TapirMerkle, SchemeId::Piano]
    {
        let served = serve(|| keyed_as(KeyMapKind::Cuckoo, scheme, "packages", 1, 0)).await;
        let client = Client::connect(served.options(None), |_| {}).await.unwrap();
        let (mut before, mut costs, mut lookups) = (client.stats().lookup, Vec::new(), 0);
        for k in (0..KEYS + 50).step_by(13) {
            let (key, value) = pair(k, 0);
            let found = client.get(&key).await.unwrap().map(|value| value.to_vec());
            assert_eq!(found, (k < KEYS).then_some(value), "{scheme}: key {k}");
            let after = client.stats().lookup;
            costs.push((after.up - before.up, after.down - before.down));
            before = after;
            lookups += 1;
        }
        assert!(costs.windows(2).all(|pair| pair[0] == pair[1]), "{scheme}: {costs:?}");
        assert_eq!(client.stats().lookups, lookups);
        // Of a table as small as this one, two queries may be equal by chance.
        served.check_number(2 * lookups as usize);
    }
}
