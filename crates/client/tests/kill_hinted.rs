//! A client with single-use hints is killed three hundred times at random moments: while it streams the table, reserves, sends, receives, prepares its next hints. Whatever
//! the moment, every answer is right, and the server, which keeps all queries it ever saw, finds no two different ones that came from one hint.
//!
//! This program is both: started with `PRIVET_KILL_URL` it is the client, which looks records up until it is killed.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use common::{any_port, config, options};
use privet_client::Client;
use privet_core::{Epoch, TableId, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::registry::Tuning;
use privet_server::{ServedTable, Server};
use privet_table::digest::{DigestParts, layout_digest};
use privet_table::{IndexLayout, RecordLayout};
use std::collections::{HashMap, HashSet};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const KILLS: u64 = 300;
const RECORDS: u64 = 4096;
const RECORD_LEN: u64 = 8;
/// The cut that follows from 4096 records.
const PARTITIONS: usize = 64;
const OFFSET_BITS: usize = 6;

fn main() {
    match std::env::var("PRIVET_KILL_URL") {
        Ok(url) => look_up_until_killed(&url),
        Err(_) => tokio::runtime::Runtime::new().unwrap().block_on(kill_at_random_moments()),
    }
}

fn record(index: u64) -> [u8; 8] {
    *blake3::hash(&index.to_le_bytes()).as_bytes().first_chunk().unwrap()
}

fn random(below: u64) -> u64 {
    let mut bytes = [0; 8];
    let mut source = std::fs::File::open("/dev/urandom").unwrap();
    source.read_exact(&mut bytes).unwrap();
    u64::from_le_bytes(bytes) % below
}

fn connect(url: &str, state: &Path) -> Client {
    let mut options = options(url);
    options.state_dir = Some(state.to_owned());
    options.busy_patience = Duration::from_secs(10);
    Client::connect_blocking(options, |_| {}).unwrap()
}

fn check(client: &Client, index: u64) {
    let value = client.get_index(index);
    let value = futures(value).unwrap();
    assert_eq!(value[..], record(index), "record {index} came back wrong");
}

fn futures<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Looks up records that are asked for again and again, and others; alone and several at once.
fn look_up_until_killed(url: &str) {
    let state = std::env::var("PRIVET_KILL_STATE").unwrap();
    let client = connect(url, state.as_ref());
    loop {
        check(&client, random(3));
        check(&client, random(RECORDS));
        let targets: Vec<_> = (0..4).map(|_| random(RECORDS)).collect();
        let wanted: Vec<_> =
            targets.iter().map(|index| privet_client::Target::index(*index)).collect();
        for (index, value) in targets.iter().zip(client.get_many_blocking(&wanted)) {
            assert_eq!(value.unwrap().unwrap()[..], record(*index));
        }
        client.finish_blocking().unwrap();
    }
}

fn table() -> ServedTable {
    let shape = TableShape::new(RECORDS, RECORD_LEN).unwrap();
    let records: Vec<u8> = (0..RECORDS).flat_map(record).collect();
    let layout = RecordLayout::Index(IndexLayout::for_lengths(RECORD_LEN, RECORD_LEN)).encode();
    let parts =
        DigestParts { layout: layout_digest(&layout), records: *blake3::hash(&records).as_bytes() };
    let identity = TableIdentity {
        id: TableId([4; 16]),
        epoch: Epoch(0),
        digest: parts.combine(shape),
        shape,
    };
    let (name, layout, scheme) = ("records".to_owned(), layout.into(), SchemeId::DummySubsets);
    ServedTable {
        name,
        identity,
        layout,
        records: Box::new(records),
        scheme,
        tuning: Tuning::default(),
        planned_for: None,
        points: None,
        updates: None,
    }
}

async fn kill_at_random_moments() {
    let log: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let mut config = config(any_port(), None);
    let seen = Arc::clone(&log);
    config.query_observer =
        Some(Arc::new(move |request| seen.lock().unwrap().push(request.query.to_vec())));
    let server = Server::start(config, vec![table()]).await.unwrap();
    let url = format!("http://{}", server.local_addr());
    let state = tempfile::tempdir().unwrap();
    for kill in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env("PRIVET_KILL_URL", &url)
            .env("PRIVET_KILL_STATE", state.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        tokio::time::sleep(Duration::from_micros(random(240_000))).await;
        assert!(child.try_wait().unwrap().is_none(), "client {kill} ended by itself: {}", {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            said
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let (last_url, path) = (url.clone(), state.path().to_owned());
    let last = tokio::task::spawn_blocking(move || {
        let client = connect(&last_url, &path);
        (0..50).for_each(|index| check(&client, index));
    });
    last.await.unwrap();
    let queries = log.lock().unwrap();
    let repeated = check_log(&queries);
    println!(
        "{KILLS} kills, {} queries, {repeated} of them sent again after a kill, none from a used hint",
        queries.len()
    );
    assert!(queries.len() > 1000, "the kills left time for lookups");
    assert!(repeated > 0, "some kills came between a query and its answer");
    the_check_catches_a_hint_used_twice(&queries);
}

/// What a query reads: for each partition its half, and an offset.
fn picks(query: &[u8]) -> Vec<(usize, u16)> {
    let offset = |place: usize| -> u16 {
        let bits = (0..OFFSET_BITS).map(|bit| {
            let at = place * OFFSET_BITS + bit;
            u16::from(query[PARTITIONS / 8 + at / 8] >> (at % 8) & 1) << bit
        });
        bits.sum()
    };
    let mut filled = [0; 2];
    let of_partition = |partition: usize| {
        let half = usize::from(query[partition / 8] >> (partition % 8) & 1);
        filled[half] += 1;
        (partition, offset(filled[half] - 1))
    };
    (0..PARTITIONS).map(of_partition).collect()
}

/// The most picks that a query has in common with an earlier, different one. Two queries from one hint have at least `p/2 - 1` in common; from two hints, about one.
fn most_in_common(queries: &[&Vec<u8>]) -> u32 {
    let mut by_pick: HashMap<(usize, u16), Vec<usize>> = HashMap::new();
    let mut most = 0;
    for (number, query) in queries.iter().enumerate() {
        let mut common: HashMap<usize, u32> = HashMap::new();
        for pick in picks(query) {
            let earlier = by_pick.entry(pick).or_default();
            earlier.iter().for_each(|other| *common.entry(*other).or_default() += 1);
            earlier.push(number);
        }
        most = most.max(common.into_values().max().unwrap_or(0));
    }
    most
}

const SUSPICIOUS: u32 = PARTITIONS as u32 / 2 - 8;

/// Checks that no two different queries came from one hint; returns how many came more than once.
fn check_log(queries: &[Vec<u8>]) -> usize {
    let mut seen = HashSet::new();
    let distinct: Vec<&Vec<u8>> = queries.iter().filter(|query| seen.insert(*query)).collect();
    let common = most_in_common(&distinct);
    assert!(common < SUSPICIOUS, "two queries have {common} of {PARTITIONS} picks in common");
    queries.len() - distinct.len()
}

/// The same query with one partition of either half exchanged is what a second use of its hint would look like.
fn the_check_catches_a_hint_used_twice(queries: &[Vec<u8>]) {
    let mut again = queries[0].clone();
    let half = |query: &[u8], k: usize| query[k / 8] >> (k % 8) & 1;
    let zero = (0..PARTITIONS).rfind(|k| half(&again, *k) == 0).unwrap();
    let one = (0..PARTITIONS).rfind(|k| half(&again, *k) == 1).unwrap();
    again[zero / 8] ^= 1 << (zero % 8);
    again[one / 8] ^= 1 << (one % 8);
    assert!(most_in_common(&[&queries[0], &again]) >= SUSPICIOUS);
}
