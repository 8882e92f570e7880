//! The cost of keeping a table up to date in layers, compared with building it anew for each batch
//! of changes, and with the bound of the paper.
//!
//! ```text
//! cargo run --release -p privet-layers --example layers -- dummy-subsets 2^18
//! ```
//!
//! Makes as many changes as the table has keys, twice, in batches: once to fill the levels, and
//! once to measure. Compares every value that comes back with a map. Prints one line of JSON for
//! each table. Without arguments: dummy subsets, SimplePIR and DPF-PIR with 2^16, 2^18 and 2^20
//! keys.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use privet_core::{Error, Result, SecretRng, TableId};
use privet_kernels::Kernels;
use privet_layers::{
    Announcement, Due, HintStore, KeyChange, LayeredClient, LayeredParameters, LayeredServer,
    Logged, Span,
};
use privet_schemes::SchemeId;
use privet_schemes::registry::ServerOptions;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

const VALUE_LEN: usize = 32;
/// Changes in one batch.
const BATCH: u64 = 16;
/// One lookup after so many batches, so that lookups come at all stages of a list.
const LOOKUP_EVERY: u64 = 61;

/// This process ends before it needs its hints again.
struct Forgetful;

impl HintStore for Forgetful {
    fn generation(&mut self, _: Span, _: u64, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn reserved(&mut self, _: Span, _: u64, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn settled(&mut self, _: Span, _: u64, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn log(&mut self, _: Span, _: u64) -> Result<Vec<Logged>> {
        Err(Error::api_misuse("nothing was kept"))
    }

    fn forget(&mut self, _: Span, _: u64) {}
}

/// Time that this thread has spent on a processor: other programs on the machine do not count.
/// (Nothing here uses more than one thread.)
#[derive(Clone, Copy)]
struct ProcessorTime(Duration);

impl ProcessorTime {
    fn now() -> Self {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Self(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }

    fn elapsed(self) -> Duration {
        Self::now().0 - self.0
    }
}

/// Sums and maxima over updates.
#[derive(Default)]
struct Cost {
    sum: f64,
    most: f64,
}

impl Cost {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.most = self.most.max(value);
    }
}

struct World {
    server: LayeredServer,
    client: LayeredClient,
    oracle: BTreeMap<u64, Vec<u8>>,
    rng: SecretRng,
}

impl World {
    /// Follows announcements and fetches what is due. Returns the bytes, and the time that it took
    /// the client.
    fn follow(&mut self, announcements: &[Announcement]) -> (u64, Duration) {
        let encoded: Vec<_> = announcements.iter().map(Announcement::encode).collect();
        let mut bytes: u64 = encoded.iter().map(|encoded| encoded.len() as u64).sum();
        let mut time = Duration::ZERO;
        let start = ProcessorTime::now();
        for encoded in &encoded {
            let announcement = Announcement::decode(encoded).unwrap();
            self.client.follow(&announcement, &mut Forgetful).unwrap();
        }
        time += start.elapsed();
        loop {
            let start = ProcessorTime::now();
            let due = self.client.due().unwrap();
            time += start.elapsed();
            let (span, piece) = match due {
                None => return (bytes, time),
                Some(Due::Fetch { layer, offset, len }) => {
                    let held = self.server.layer(layer).unwrap();
                    (layer, held.fetched()[offset as usize..][..len as usize].to_vec())
                }
                Some(Due::Ask { layer, role, request }) => {
                    bytes += request.len() as u64;
                    let held = self.server.layer(layer).unwrap();
                    (layer, held.server().prepare(role, &request).unwrap())
                }
            };
            bytes += piece.len() as u64;
            let start = ProcessorTime::now();
            self.client.absorb(span, &piece, &mut Forgetful).unwrap();
            time += start.elapsed();
        }
    }

    /// Looks a key up and checks its value. Returns the bytes sent and received, and the time of
    /// the servers.
    fn look_up(&mut self, key: u64) -> (u64, Duration) {
        let queries =
            self.client.lookup(&key.to_le_bytes(), &mut self.rng, &mut Forgetful).unwrap();
        let start = ProcessorTime::now();
        let answer = |query: privet_layers::LayerQuery<'_>| {
            self.server.layer(query.layer).unwrap().answer(query.role, query.bytes).unwrap()
        };
        let answers: Vec<_> = queries.iter().map(answer).collect();
        let time = start.elapsed();
        let sent: usize = queries.iter().map(|query| query.bytes.len()).sum();
        let received: usize = answers.iter().map(Vec::len).sum();
        let answers: Vec<_> = answers.iter().map(Vec::as_slice).collect();
        self.client.settle(queries.lookup, &answers, &mut Forgetful).unwrap();
        let value = self.client.take(queries.lookup).unwrap().unwrap();
        assert_eq!(value.as_ref().map(|value| value.to_vec()), self.oracle.get(&key).cloned());
        (sent as u64 + received as u64, time)
    }

    /// A change of a random key: it is inserted, deleted or gets another value.
    fn change(&mut self, keys: u64) -> KeyChange {
        let number = self.rng.below(2 * keys);
        let value = match (self.oracle.contains_key(&number), self.rng.below(2)) {
            (true, 0) => None,
            _ => Some(value(&mut self.rng)),
        };
        match &value {
            Some(value) => self.oracle.insert(number, value.clone()),
            None => self.oracle.remove(&number),
        };
        KeyChange { key: number.to_le_bytes().to_vec(), value }
    }
}

fn value(rng: &mut SecretRng) -> Vec<u8> {
    let mut value = vec![0; VALUE_LEN];
    rng.fill(&mut value);
    value
}

fn measure(scheme: SchemeId, keys: u64, list: u32) {
    let mut rng = SecretRng::from_os().unwrap();
    // Half of all possible keys.
    let oracle: BTreeMap<u64, _> = (0..keys).map(|of| (2 * of, value(&mut rng))).collect();
    let first = oracle.iter().map(|(key, value)| (key.to_le_bytes().to_vec(), value.clone()));
    let first: Vec<_> = first.collect();
    let options = ServerOptions { kernels: Kernels::detect(), threads: 1 };
    let parameters = LayeredParameters::new(scheme, list).unwrap();
    let table = TableId([1; 16]);
    let start = ProcessorTime::now();
    let server = LayeredServer::new(table, parameters.clone(), options, first).unwrap();
    let anew_server = start.elapsed().as_secs_f64();
    let client = LayeredClient::new(table, parameters, options.kernels);
    let mut world = World { server, client, oracle, rng };
    let state = world.server.state();
    let (anew_bytes, anew_client) = world.follow(&[state]);
    let anew_client = anew_client.as_secs_f64();
    let mut static_lookup = Cost::default();
    for key in 0..32 {
        static_lookup.add(world.look_up(key).1.as_secs_f64());
    }

    let (mut update, mut build, mut built) = (Cost::default(), Cost::default(), 0);
    let (mut client, mut bytes) = (Cost::default(), Cost::default());
    let (mut layers, mut lookup, mut lookup_bytes) =
        (Cost::default(), Cost::default(), Cost::default());
    let mut lookups = 0u32;
    for batch in 0..2 * keys / BATCH {
        if batch == keys / BATCH {
            (update, build, built) = Default::default();
            (client, bytes) = Default::default();
            (layers, lookup, lookup_bytes, lookups) = Default::default();
        }
        let changes = (0..BATCH).map(|_| world.change(keys)).collect();
        let start = ProcessorTime::now();
        let mut announcements = vec![world.server.update(changes).unwrap()];
        update.add(start.elapsed().as_secs_f64());
        for waiting in world.server.builds() {
            let start = ProcessorTime::now();
            let layer = waiting.run().unwrap();
            build.add(start.elapsed().as_secs_f64());
            announcements.push(world.server.install(layer));
            let span = waiting.span();
            built += world.server.layer(span).map_or(0, |layer| layer.entries());
        }
        let (fetched, time) = world.follow(&announcements);
        client.add(time.as_secs_f64());
        bytes.add(fetched as f64);
        if batch % LOOKUP_EVERY == 0 {
            let key = world.rng.below(2 * keys);
            let (moved, time) = world.look_up(key);
            lookups += 1;
            lookup.add(time.as_secs_f64());
            lookup_bytes.add(moved as f64);
            layers.add(world.client.layers().len() as f64);
        }
    }
    for _ in 0..256 {
        let key = world.rng.below(2 * keys);
        world.look_up(key);
    }

    let (keys_f, lookups) = (keys as f64, f64::from(lookups));
    let levels = (keys / u64::from(list)).max(1).ilog2();
    // The paper counts one rebuild of each entry for each of the levels from 0 to L.
    let paper = f64::from(levels + 1);
    let report = json!({
        "scheme": scheme.name(), "keys": keys, "value_bytes": VALUE_LEN, "list": list, "levels": levels,
        "changes": keys, "batch": BATCH,
        "server_us_per_change": {
            "update": 1e6 * update.sum / keys_f, "builds": 1e6 * build.sum / keys_f,
            "anew_for_each_batch": 1e6 * anew_server / BATCH as f64,
            "paper": 1e6 * anew_server / keys_f * paper,
        },
        "server_worst_ms": { "update": 1e3 * update.most, "build_in_background": 1e3 * build.most, "anew": 1e3 * anew_server },
        "entries_built_per_change": { "measured": built as f64 / keys_f, "paper": paper },
        "client_us_per_change": {
            "measured": 1e6 * client.sum / keys_f,
            "anew_for_each_batch": 1e6 * anew_client / BATCH as f64,
            "paper": 1e6 * anew_client / keys_f * paper,
        },
        "client_worst_ms": { "batch": 1e3 * client.most, "anew": 1e3 * anew_client },
        "client_bytes_per_change": {
            "measured": bytes.sum / keys_f,
            "anew_for_each_batch": anew_bytes as f64 / BATCH as f64,
            "paper": anew_bytes as f64 / keys_f * paper,
        },
        "client_worst_bytes": { "batch": bytes.most, "anew": anew_bytes },
        "lookup": {
            "layers": layers.sum / lookups, "most_layers": layers.most,
            "server_ms": 1e3 * lookup.sum / lookups, "one_table_server_ms": 1e3 * static_lookup.sum / 32.0,
            "bytes": lookup_bytes.sum / lookups,
        },
        "values_checked": lookups + 256.0 + 32.0,
    });
    println!("{report}");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (mut schemes, mut sizes) = (Vec::new(), Vec::new());
    let mut list = 1 << 10;
    for argument in &arguments {
        if let Some(power) = argument.strip_prefix("2^") {
            sizes.push(1u64 << power.parse::<u32>().unwrap());
        } else if let Some(power) = argument.strip_prefix("list=2^") {
            list = 1u32 << power.parse::<u32>().unwrap();
        } else {
            schemes.push(argument.parse().unwrap());
        }
    }
    if schemes.is_empty() {
        schemes = vec![SchemeId::DummySubsets, SchemeId::SimplePir, SchemeId::Dpf];
    }
    if sizes.is_empty() {
        sizes = vec![1 << 16, 1 << 18, 1 << 20];
    }
    for scheme in schemes {
        for keys in &sizes {
            measure(scheme, *keys, list);
        }
    }
}
