//! A table that changes under its clients. A random history has inserted, edited and deleted keys,
//! lookups of present and absent keys, killed clients, killed and restarted servers, and a
//! compacted log. It runs with every scheme and the real program, and is compared with a plain map.

use crate::place::Place;
use crate::served::{Served, http_get};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

const KEYS: u64 = 40;
const ACTIONS: usize = 24;

/// The contents of one version of the table.
type Model = BTreeMap<String, String>;

/// A cheap random generator for the choices of the history.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % sides
    }
}

struct History {
    place: Place,
    dice: Dice,
    scheme: &'static str,
    options: &'static str,
    /// In a table by row number (`false`), keys are numbers, and none is ever deleted.
    by_key: bool,
    servers: Vec<(String, Served)>,
    versions: Vec<Model>,
    /// The oldest version that a client may still see. All servers had it before, so every client
    /// that starts now gets this version or a later one.
    oldest: usize,
    value: u64,
}

impl History {
    fn begin(
        scheme: &'static str,
        servers: usize,
        key_map: &str,
        options: &'static str,
        seed: u64,
    ) -> Self {
        let place = Place::new();
        assert_eq!(place.run("keygen -o publisher.key").code(), 0);
        let by_key = !key_map.is_empty();
        let value = |k: u64| if by_key { format!("value {k}") } else { (k % 10).to_string() };
        let first: Model = (0..KEYS).map(|k| (name(by_key, k), value(k))).collect();
        let (mut csv, keyed) = match by_key {
            true => ("key,value\n".to_owned(), format!("--key key --key-map {key_map}")),
            false => ("value\n".to_owned(), String::new()),
        };
        for k in 0..KEYS {
            csv += &match by_key {
                true => format!("{},{}\n", name(by_key, k), value(k)),
                false => format!("{}\n", value(k)),
            };
        }
        place.write("table.csv", csv);
        place.build(&format!(
            "table.csv {keyed} --raw-value value --publisher-key publisher.key -o table.privet"
        ));
        if options.contains("--reference-string") {
            assert_eq!(place.run("setup pointproofs --size 64 -o strings").code(), 0);
        }
        let mut history = Self {
            place,
            dice: Dice(seed),
            scheme,
            options,
            by_key,
            servers: Vec::new(),
            versions: vec![first],
            oldest: 0,
            value: 0,
        };
        for _ in 0..servers {
            let served = history.serve("127.0.0.1:0");
            history.servers.push((served.address().to_owned(), served));
        }
        history
    }

    fn serve(&self, listen: &str) -> Served {
        let Self { scheme, options, .. } = self;
        Served::start_at(
            &self.place,
            listen,
            &format!(
                "table.privet --scheme {scheme} {options} --no-cache --metrics-listen 127.0.0.1:0 --watch 0 --grace 1"
            ),
        )
    }

    fn newest(&self) -> &Model {
        self.versions.last().unwrap()
    }

    fn live(mut self) {
        self.look_up(3);
        for _ in 0..ACTIONS {
            match self.dice.roll(10) {
                0..4 => self.update(),
                4..7 => self.look_up(2),
                7 => self.crash(),
                8 => self.restart_a_server(),
                _ => self.compact(),
            }
        }
        self.update();
        self.look_up(4);
    }

    /// Makes the next version: sets some keys, old or new, and deletes some.
    fn update(&mut self) {
        let mut model = self.newest().clone();
        let (mut set, mut gone) = (String::new(), String::new());
        let mut touched = Vec::new();
        for _ in 0..1 + self.dice.roll(4) {
            let key = name(self.by_key, self.dice.roll(if self.by_key { KEYS + 10 } else { KEYS }));
            if touched.contains(&key) {
                continue;
            }
            touched.push(key.clone());
            if self.by_key && self.dice.roll(3) == 0 && model.remove(&key).is_some() {
                gone += &format!("{key}\n");
                continue;
            }
            self.value += 1;
            let value = match self.by_key {
                true => format!("new {}", self.value),
                false => char::from(b'a' + (self.value % 26) as u8).to_string(),
            };
            set += &match self.by_key {
                true => format!("{key},{value}\n"),
                false => format!(" --set {key}={value}"),
            };
            model.insert(key, value);
        }
        if model == *self.newest() {
            return;
        }
        let mut command = "update table.privet --publisher-key publisher.key --json".to_owned();
        if self.by_key {
            self.place.write("set.csv", format!("key,value\n{set}"));
            self.place.write("gone", &gone);
            if !set.is_empty() {
                command += " --from set.csv";
            }
            if !gone.is_empty() {
                command += " --delete-from gone";
            }
        } else {
            command += &set;
        }
        let report = self.place.run(&command).json();
        self.versions.push(model);
        assert_eq!(report["epoch"], (self.versions.len() - 1) as u64, "{}", self.scheme);
        // Sometimes clients ask before the servers have noticed.
        if self.dice.roll(3) > 0 {
            self.wait_for_servers();
        }
    }

    fn wait_for_servers(&mut self) {
        let epoch = self.versions.len() - 1;
        let began = Instant::now();
        self.servers.iter().for_each(|(_, served)| served.hang_up());
        for (_, served) in &self.servers {
            loop {
                let (_, metrics) = http_get(served.metrics_address(), "/metrics");
                let serves = metrics.lines().any(|line| {
                    line.starts_with("privet_table_epoch") && line.ends_with(&format!(" {epoch}"))
                });
                if serves {
                    break;
                }
                assert!(
                    began.elapsed() < Duration::from_secs(60),
                    "{}: no epoch {epoch}: {metrics}\n{}",
                    self.scheme,
                    std::fs::read_to_string(self.place.path("server.log")).unwrap()
                );
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        self.oldest = epoch;
    }

    /// A `get` command for some keys. In a table with keys, at least one of them is absent.
    fn wanted(&mut self, hits: u64) -> (Vec<String>, String) {
        let known: Vec<String> = self.newest().keys().cloned().collect();
        let mut keys: Vec<String> =
            (0..hits).map(|_| known[self.dice.roll(known.len() as u64) as usize].clone()).collect();
        if self.by_key {
            keys.push(name(true, self.dice.roll(KEYS + 10)));
            keys.push("nobody".to_owned());
        }
        let urls: Vec<String> =
            self.servers.iter().map(|(address, _)| format!("http://{address}")).collect();
        let option = if self.by_key { "--key" } else { "--index" };
        let keys_given: String = keys.iter().map(|key| format!(" {option} {key}")).collect();
        (keys, format!("get {} --state state --json{keys_given}", urls.join(" ")))
    }

    /// Looks keys up. All answers must be from one version, at least as new as the servers were
    /// seen to have.
    fn look_up(&mut self, hits: u64) {
        let (keys, command) = self.wanted(hits);
        let mut run = self.place.run(&command);
        // Hints for so few records serve only a few lookups. The next process prepares new ones.
        if run.code() == 3 && run.stderr().contains("the hints are used up") {
            run = self.place.run(&command);
        }
        assert!(run.code() <= 1, "{}: {run}", self.scheme);
        let found: Vec<Option<String>> = run
            .stdout()
            .lines()
            .map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                let text = line["text"].as_str().map(str::to_owned);
                text.or_else(|| line.get("value").map(|value| value.to_string()))
            })
            .collect();
        let as_in = |model: &Model| {
            keys.iter().map(|key| model.get(key).cloned()).eq(found.iter().cloned())
        };
        assert!(
            self.versions[self.oldest..].iter().any(as_in),
            "{}: {keys:?} came to {found:?}, which is no version from {} to {}\n{run}",
            self.scheme,
            self.oldest,
            self.versions.len() - 1
        );
    }

    /// Kills a client at a random moment.
    fn crash(&mut self) {
        let (_, command) = self.wanted(4);
        let mut command = self.place.command(&command);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // A sleep on purpose: the client may be anywhere by then.
        std::thread::sleep(Duration::from_micros(self.dice.roll(60_000)));
        let _ = child.kill();
        let _ = child.wait();
    }

    fn restart_a_server(&mut self) {
        let at = self.dice.roll(self.servers.len() as u64) as usize;
        let (address, served) = self.servers.remove(at);
        drop(served);
        let served = self.serve(&address);
        self.servers.insert(at, (address, served));
        // The restarted server has the latest version at once. The others may not have noticed it
        // yet.
        self.wait_for_servers();
    }

    fn compact(&mut self) {
        // Clients with a version older than the log's first must start over, and print a notice. So
        // they catch up before the compaction.
        self.wait_for_servers();
        self.look_up(1);
        self.place
            .run("update table.privet --publisher-key publisher.key --compact --json")
            .succeeds();
    }
}

fn name(by_key: bool, k: u64) -> String {
    if by_key { format!("key-{k}") } else { k.to_string() }
}

/// How many histories each scheme has: one, or what `PRIVET_HISTORIES` says, as in `make nightly`.
fn histories() -> u64 {
    std::env::var("PRIVET_HISTORIES").map_or(1, |count| count.parse().unwrap())
}

macro_rules! histories {
    ($($test:ident: $scheme:literal, $servers:literal, $key_map:literal, $options:literal;)*) => {$(
        #[test]
        fn $test() {
            for seed in 1..=histories() {
                History::begin($scheme, $servers, $key_map, $options, seed).live();
            }
        }
    )*};
}

histories! {
    simplepir: "simplepir", 1, "buckets", "";
    simplepir_with_cuckoo: "simplepir", 1, "cuckoo", "";
    doublepir: "doublepir", 1, "", "";
    dpf: "dpf", 2, "cuckoo", "";
    dummy_subsets: "dummy-subsets", 1, "buckets", "";
    dummy_subsets_with_cuckoo: "dummy-subsets", 1, "cuckoo", "";
    dummy_subsets_two: "dummy-subsets-two", 2, "cuckoo", "";
    harmony: "harmony", 1, "cuckoo", "";
    piano: "piano", 1, "cuckoo", "";
    piano_all_parities: "piano-all-parities", 1, "buckets", "";
    singlepass: "singlepass", 2, "cuckoo", "";
    tapir_mt: "tapir-mt", 2, "buckets", "";
    tapir_pp: "tapir-pp", 2, "buckets", "--reference-string strings";
    apir_dpf: "apir-dpf", 2, "buckets", "";
    apir_matrix_mt: "apir-matrix-mt", 2, "cuckoo", "";
    finite_differences: "finite-differences", 2, "buckets", "";
    finite_differences_many: "finite-differences-many", 3, "buckets", "";
    download: "download", 1, "cuckoo", "";
}
