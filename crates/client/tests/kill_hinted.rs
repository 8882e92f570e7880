//! Clients with single-use hints are killed again and again at random moments, those of dummy
//! subsets three hundred times: while they prepare, reserve, send, receive, write their state down
//! as the next generation and change over to it. At any moment, every answer is right. Each server
//! keeps all queries that it ever saw, and none finds two different ones from one hint.
//!
//! This program is both: started with `PRIVET_KILL_URLS` it is the client, which looks records up
//! until it is killed.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use common::{any_port, config, cut, generation_in, options_of, record, records_by};
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
/// The most kills, even if too little has been seen by then.
const MOST_KILLS: u64 = 400;
/// Processes are killed within this time, and within more on a busy machine.
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(3);

/// What a query is made of.
#[derive(Clone, Copy)]
enum Form {
    /// An offset in each partition, with its number of bits.
    Offsets(usize),
    /// A half and an offset for each of `partitions`. The offsets of each half come from one row of
    /// offsets of `offset_bits` bits.
    Halves { partitions: usize, offset_bits: usize },
    /// A key (16 bytes), the number of a hint, which no other query may use, and where it is cut (4
    /// bytes each).
    Pair,
    /// `count` values of `bits` bits each: a record's index, or the number of records for nothing.
    Values { count: usize, bits: usize },
}

struct Case {
    scheme: SchemeId,
    /// Of a partition, or of a segment.
    piece_records: u64,
    /// The fewest kills.
    kills: u64,
    /// The fewest queries that each server must see.
    queries: usize,
    /// The forms of the queries to each server.
    forms: &'static [Form],
}

/// The case with many kills; the others run beside it, one after the other. A generation serves
/// 1280.
const OFTEN: Case = Case {
    scheme: SchemeId::DummySubsets,
    piece_records: 32,
    kills: 300,
    queries: 1000,
    forms: &[Form::Halves { partitions: 128, offset_bits: 5 }],
};
const OTHERS: [Case; 6] = [
    // Each generation of the next two serves 64 queries.
    Case {
        scheme: SchemeId::SinglePass,
        piece_records: 64,
        kills: 40,
        queries: 400,
        forms: &[Form::Offsets(16), Form::Offsets(16)],
    },
    Case {
        scheme: SchemeId::TapirMerkle,
        piece_records: 64,
        kills: 40,
        queries: 400,
        forms: &[Form::Offsets(16), Form::Offsets(16)],
    },
    // A generation serves about 600 queries.
    Case {
        scheme: SchemeId::DummySubsetsTwo,
        piece_records: 16,
        kills: 40,
        queries: 400,
        forms: &[Form::Pair, Form::Halves { partitions: 256, offset_bits: 4 }],
    },
    // A generation of the next two serves 533 queries.
    Case {
        scheme: SchemeId::Piano,
        piece_records: 64,
        kills: 40,
        queries: 400,
        forms: &[Form::Offsets(6)],
    },
    Case {
        scheme: SchemeId::PianoAllParities,
        piece_records: 64,
        kills: 40,
        queries: 400,
        forms: &[Form::Offsets(6)],
    },
    // 128, of which each asks for 16 records and 16 times nothing, on average.
    Case {
        scheme: SchemeId::Harmony,
        piece_records: 32,
        kills: 40,
        queries: 400,
        forms: &[Form::Values { count: 32, bits: 13 }],
    },
];

fn main() {
    match std::env::var("PRIVET_KILL_URLS") {
        Ok(urls) => look_up_until_killed(&urls),
        Err(_) => tokio::runtime::Runtime::new().unwrap().block_on(async {
            let others = async {
                for case in OTHERS {
                    kill_at_random_moments(case).await;
                }
            };
            // They mostly wait.
            tokio::join!(kill_at_random_moments(OFTEN), others);
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

/// Looks up some records again and again, and others once; alone and several at once.
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

async fn kill_at_random_moments(case: Case) {
    let Case { scheme, piece_records, kills: least, queries: enough, forms } = case;
    let (mut running, mut urls, mut logs) = (Vec::new(), Vec::new(), Vec::<Log>::new());
    for _ in forms {
        let mut config = config(any_port(), None);
        let log = Log::default();
        logs.push(Arc::clone(&log));
        config.query_observer =
            Some(Arc::new(move |request| log.lock().unwrap().push(request.query.to_vec())));
        let server = Server::start(config, vec![cut(records_by(scheme, RECORDS), piece_records)])
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
            log.len() >= enough && log.iter().collect::<HashSet<_>>().len() < log.len()
        })
    };
    let mut kills = 0;
    // Processes get longer where most are killed before they ask: on a busy machine.
    let mut longest = SHORTEST;
    // Where they ask little before they are killed, more are.
    let is_enough = || seen_enough() && generation_in(state.path()) > 1;
    while kills < least || (kills < MOST_KILLS && !is_enough()) {
        kills += 1;
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env("PRIVET_KILL_URLS", &urls)
            .env("PRIVET_KILL_STATE", state.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let asked = || logs[0].lock().unwrap().len();
        let before = asked();
        tokio::time::sleep(Duration::from_micros(random(longest.as_micros() as u64))).await;
        assert!(child.try_wait().unwrap().is_none(), "client {kills} ended by itself: {}", {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            said
        });
        child.kill().unwrap();
        child.wait().unwrap();
        longest = match asked() > before {
            true => SHORTEST.max(longest * 3 / 4),
            false => LONGEST.min(longest * 5 / 4),
        };
    }
    let (last_urls, path) = (urls.clone(), state.path().to_owned());
    let last = tokio::task::spawn_blocking(move || {
        let client = connect(&last_urls, &path);
        let mut looked_up = (0..RECORDS).inspect(|index| check(&client, &[*index]));
        // Where processes were killed before they did much, the first generation lasts till here.
        looked_up.find(|index| *index >= 50 && generation_in(&path) > 1);
    });
    last.await.unwrap();
    let generation = generation_in(state.path());
    assert!(generation > 1, "{scheme}: the first generation is still in use");
    for (role, (log, form)) in logs.iter().zip(forms).enumerate() {
        let queries = log.lock().unwrap();
        let repeated = check_log(&queries, *form);
        println!(
            "{scheme}, server {role}: {kills} kills, {} queries, {repeated} of them sent again after a kill, none from a used hint, generation {generation}",
            queries.len()
        );
        assert!(queries.len() >= enough, "the kills left time for lookups");
        assert!(repeated > 0, "some kills came between a query and its answer");
        the_check_catches_a_hint_used_twice(&queries, *form);
    }
}

/// What a query reads: an offset in each partition, whatever half the partition belongs to. Or
/// which hint it asks for.
fn picks(query: &[u8], form: Form) -> Vec<(usize, u32)> {
    let bit = |at: usize| u32::from(query[at / 8] >> (at % 8) & 1);
    let number = |at: usize, bits: usize| (0..bits).map(|k| bit(at + k) << k).sum();
    match form {
        Form::Offsets(bits) => {
            (0..8 * query.len() / bits).map(|place| (place, number(place * bits, bits))).collect()
        }
        Form::Halves { partitions, offset_bits } => {
            let mut filled = [0; 2];
            let of_partition = |partition| {
                let place = &mut filled[bit(partition) as usize];
                *place += 1;
                (partition, number(partitions + (*place - 1) * offset_bits, offset_bits))
            };
            (0..partitions).map(of_partition).collect()
        }
        Form::Pair => vec![(0, number(8 * 16, 32))],
        Form::Values { count, bits } => {
            let values = (0..count).map(|place| (place, number(place * bits, bits)));
            values.filter(|(_, value)| u64::from(*value) < RECORDS).collect()
        }
    }
}

/// The most picks that a query shares with an earlier, different one. Two queries from one hint
/// share all but one or two, or as many in a half; queries from two hints share about as many as by
/// chance.
fn most_in_common(queries: &[&Vec<u8>], form: Form) -> usize {
    let mut by_pick: HashMap<(usize, u32), Vec<usize>> = HashMap::new();
    let mut most = 0;
    for (number, query) in queries.iter().enumerate() {
        let mut common = vec![0; number];
        for pick in picks(query, form) {
            let earlier = by_pick.entry(pick).or_default();
            earlier.iter().for_each(|other| common[*other] += 1);
            earlier.push(number);
        }
        most = most.max(common.into_iter().max().unwrap_or(0));
    }
    most
}

fn suspicious(query: &[u8], form: Form) -> usize {
    match form {
        Form::Offsets(_) | Form::Values { .. } => picks(query, form).len() * 3 / 4,
        Form::Halves { partitions, .. } => partitions / 2 - 8,
        Form::Pair => 1,
    }
}

/// Checks that no two different queries came from one hint; returns how many came more than once.
fn check_log(queries: &[Vec<u8>], form: Form) -> usize {
    let mut seen = HashSet::new();
    let distinct: Vec<&Vec<u8>> = queries.iter().filter(|query| seen.insert(*query)).collect();
    let common = most_in_common(&distinct, form);
    let too_many = suspicious(&queries[0], form);
    assert!(common < too_many, "two queries have {common} picks in common");
    queries.len() - distinct.len()
}

/// A second use of a hint would look like this: the same query with another offset at each end,
/// with one partition of either half exchanged, cut elsewhere, or with another value.
fn the_check_catches_a_hint_used_twice(queries: &[Vec<u8>], form: Form) {
    let mut again = queries[0].clone();
    let last = again.len() - 1;
    match form {
        Form::Offsets(_) => (again[0], again[last]) = (again[0] ^ 1, again[last] ^ 1),
        Form::Halves { partitions, .. } => {
            for half in [0, 1] {
                let is_in = |k: &usize| queries[0][k / 8] >> (k % 8) & 1 == half;
                let partition = (0..partitions).rfind(is_in).unwrap();
                again[partition / 8] ^= 1 << (partition % 8);
            }
        }
        Form::Pair => again[last] ^= 1,
        Form::Values { .. } => again[0] ^= 1,
    }
    let found = most_in_common(&[&queries[0], &again], form);
    assert!(found >= suspicious(&again, form));
}
