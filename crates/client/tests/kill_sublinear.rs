//! Clients of SinglePass and of Piano are killed again and again at random moments: while they prepare, reserve, send, receive, write their state down as the next generation and change
//! over to it. Whatever the moment, every answer is right, and no server, of which each keeps all queries that it ever saw, finds two different ones that came from one hint.
//!
//! This program is both: started with `PRIVET_KILL_URLS` it is the client, which looks records up until it is killed.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use common::{any_port, config, cut, options_of, record, records_by};
use privet_client::{Client, Target};
use privet_schemes::SchemeId;
use privet_server::Server;
use std::collections::{HashMap, HashSet};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const RECORDS: u64 = 4096;
/// Of SinglePass, a generation then serves 64 queries; of Piano, 533.
const PARTITION_RECORDS: u64 = 64;
/// So many kills at least, and then until something is to be seen.
const KILLS: u64 = 40;
const MOST_KILLS: u64 = 400;
const QUERIES: usize = 400;

fn main() {
    match std::env::var("PRIVET_KILL_URLS") {
        Ok(urls) => look_up_until_killed(&urls),
        Err(_) => tokio::runtime::Runtime::new().unwrap().block_on(async {
            kill_at_random_moments(SchemeId::SinglePass, 2, 16).await;
            kill_at_random_moments(SchemeId::Piano, 1, 6).await;
        }),
    }
}

fn random(below: u64) -> u64 {
    let mut bytes = [0; 8];
    let mut source = std::fs::File::open("/dev/urandom").unwrap();
    source.read_exact(&mut bytes).unwrap();
    u64::from_le_bytes(bytes) % below
}

fn connect(urls: &str, state: &Path) -> Client {
    let mut options = options_of(&urls.split(' ').collect::<Vec<_>>());
    options.state_dir = Some(state.to_owned());
    options.busy_patience = Duration::from_secs(10);
    Client::connect_blocking(options, |_| {}).unwrap()
}

fn check(client: &Client, indices: &[u64]) {
    let targets: Vec<_> = indices.iter().map(|index| Target::index(*index)).collect();
    for (index, value) in indices.iter().zip(client.get_many_blocking(&targets)) {
        assert_eq!(value.unwrap().unwrap()[..], record(*index), "record {index} came back wrong");
    }
}

/// Looks up records that are asked for again and again, and others; alone and several at once.
fn look_up_until_killed(urls: &str) {
    let state = std::env::var("PRIVET_KILL_STATE").unwrap();
    let client = connect(urls, state.as_ref());
    loop {
        check(&client, &[random(3)]);
        check(&client, &[random(RECORDS), random(3), random(RECORDS), random(RECORDS)]);
        client.finish_blocking().unwrap();
    }
}

type Log = Arc<Mutex<Vec<Vec<u8>>>>;

/// A scheme's queries take so many bits for each offset.
async fn kill_at_random_moments(scheme: SchemeId, servers: usize, offset_bits: usize) {
    let (mut running, mut urls, mut logs) = (Vec::new(), Vec::new(), Vec::<Log>::new());
    for _ in 0..servers {
        let mut config = config(any_port(), None);
        let log = Log::default();
        logs.push(Arc::clone(&log));
        config.query_observer =
            Some(Arc::new(move |request| log.lock().unwrap().push(request.query.to_vec())));
        let server =
            Server::start(config, vec![cut(records_by(scheme, RECORDS), PARTITION_RECORDS)])
                .await
                .unwrap();
        urls.push(format!("http://{}", server.local_addr()));
        running.push(server);
    }
    let urls = urls.join(" ");
    let state = tempfile::tempdir().unwrap();
    let seen_enough = || {
        logs.iter().all(|log| {
            let log = log.lock().unwrap();
            log.len() >= QUERIES && log.iter().collect::<HashSet<_>>().len() < log.len()
        })
    };
    let mut kills = 0;
    while kills < KILLS || (kills < MOST_KILLS && !seen_enough()) {
        kills += 1;
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env("PRIVET_KILL_URLS", &urls)
            .env("PRIVET_KILL_STATE", state.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        tokio::time::sleep(Duration::from_micros(random(200_000))).await;
        assert!(child.try_wait().unwrap().is_none(), "client {kills} ended by itself: {}", {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            said
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let (last_urls, path) = (urls.clone(), state.path().to_owned());
    let last = tokio::task::spawn_blocking(move || {
        let client = connect(&last_urls, &path);
        (0..50).for_each(|index| check(&client, &[index]));
    });
    last.await.unwrap();
    for (role, log) in logs.iter().enumerate() {
        let queries = log.lock().unwrap();
        let repeated = check_log(&queries, offset_bits);
        println!(
            "{scheme}, server {role}: {kills} kills, {} queries, {repeated} of them sent again after a kill, none from a used hint",
            queries.len()
        );
        assert!(queries.len() > QUERIES, "the kills left time for lookups");
        assert!(repeated > 0, "some kills came between a query and its answer");
        the_check_catches_a_hint_used_twice(&queries, offset_bits);
    }
}

/// What a query reads: an offset in each partition.
fn picks(query: &[u8], offset_bits: usize) -> Vec<(usize, u32)> {
    let bit = |at: usize| u32::from(query[at / 8] >> (at % 8) & 1);
    let offset =
        |place: usize| -> u32 { (0..offset_bits).map(|k| bit(place * offset_bits + k) << k).sum() };
    (0..8 * query.len() / offset_bits).map(|place| (place, offset(place))).collect()
}

/// The most picks that a query has in common with an earlier, different one. Two queries from one hint have all but one or two in common; from two hints, about none.
fn most_in_common(queries: &[&Vec<u8>], offset_bits: usize) -> usize {
    let mut by_pick: HashMap<(usize, u32), Vec<usize>> = HashMap::new();
    let mut most = 0;
    for (number, query) in queries.iter().enumerate() {
        let mut common: HashMap<usize, usize> = HashMap::new();
        for pick in picks(query, offset_bits) {
            let earlier = by_pick.entry(pick).or_default();
            earlier.iter().for_each(|other| *common.entry(*other).or_default() += 1);
            earlier.push(number);
        }
        most = most.max(common.into_values().max().unwrap_or(0));
    }
    most
}

fn suspicious(query: &[u8], offset_bits: usize) -> usize {
    picks(query, offset_bits).len() * 3 / 4
}

/// Checks that no two different queries came from one hint; returns how many came more than once.
fn check_log(queries: &[Vec<u8>], offset_bits: usize) -> usize {
    let mut seen = HashSet::new();
    let distinct: Vec<&Vec<u8>> = queries.iter().filter(|query| seen.insert(*query)).collect();
    let common = most_in_common(&distinct, offset_bits);
    let too_many = suspicious(&queries[0], offset_bits);
    assert!(common < too_many, "two queries have {common} picks in common");
    queries.len() - distinct.len()
}

/// The same query with another offset at each end is what a second use of its hint would look like.
fn the_check_catches_a_hint_used_twice(queries: &[Vec<u8>], offset_bits: usize) {
    let mut again = queries[0].clone();
    let last = again.len() - 1;
    (again[0], again[last]) = (again[0] ^ 1, again[last] ^ 1);
    let found = most_in_common(&[&queries[0], &again], offset_bits);
    assert!(found >= suspicious(&again, offset_bits));
}
