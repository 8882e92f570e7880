//! What `plan` says, beside what happens.

#![allow(clippy::unwrap_used)]

use privet_client::{Client, ClientOptions, Target};
use privet_core::TableShape;
use privet_host::TableFile;
use privet_measure::accuracy::{Step, compare};
use privet_measure::machine::Machine;
use privet_measure::plan::{PlanOptions, Subject, compare as plan};
use privet_measure::watch::unwatched;
use privet_schemes::SchemeId;
use privet_server::{RunningServer, Server, ServerConfig};
use privet_table::build::{BuildOptions, build_table_from};
use privet_table::import::{Format, Source};
use privet_table::snapshot::Snapshot;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Schemes of the product that need nothing beside a table.
const SCHEMES: usize = 14;
const TYPICAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/machine/typical.json");

/// What `plan` says of each scheme for this table, if two operators do not talk to each other.
fn planned(subject: &Subject) -> Vec<Value> {
    let machine = Machine::of(Some(Path::new(TYPICAL)), || 1.0, &unwatched).unwrap();
    let options = PlanOptions { servers: 2, ..PlanOptions::new(|_| true) };
    let report = serde_json::to_value(plan(subject, machine, &options).unwrap()).unwrap();
    let schemes = report["schemes"].as_array().unwrap().clone();
    assert_eq!(schemes.len(), SCHEMES, "{report}");
    schemes
}

async fn served(file: &Path, scheme: SchemeId) -> RunningServer {
    let config = ServerConfig::new("127.0.0.1:0".parse().unwrap());
    let file = TableFile { scheme: Some(scheme), ..TableFile::new("t", file) };
    let (table, _) = file.open().unwrap();
    Server::start(config, vec![table]).await.unwrap()
}

/// For each scheme, a client on loopback. It counts the messages that it sends and receives.
#[test]
fn bytes_are_those_that_clients_send_and_receive() {
    const LOOKUPS: u64 = 3;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.privet");
    let rows: String = (0..3000).map(|row| format!("{row:05}\n")).collect();
    let rows = std::io::Cursor::new(format!("value\n{rows}"));
    let options = BuildOptions { raw_value: Some("value".to_owned()), ..BuildOptions::default() };
    let rows = Source::reader("rows", rows).format(Format::Csv);
    build_table_from(&options, vec![rows], &file, &mut |_| Ok(())).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut before = Vec::new();
    for planned in planned(&Subject::of_file(&file).unwrap()) {
        let scheme: SchemeId = planned["scheme"].as_str().unwrap().parse().unwrap();
        let servers = planned["servers"].as_u64().unwrap();
        let start = async || {
            let mut servers_of_it = Vec::new();
            for _ in 0..servers {
                servers_of_it.push(served(&file, scheme).await);
            }
            servers_of_it
        };
        let servers = runtime.block_on(start());
        let urls = servers.iter().map(|server| format!("http://{}", server.local_addr()));
        let options =
            ClientOptions { proxies: vec!["none".to_owned()], ..ClientOptions::new(urls) };
        let client = Client::connect_blocking(options, |_| {}).unwrap();
        for row in 0..LOOKUPS {
            client.get_target_blocking(Target::index(row)).unwrap().unwrap();
        }
        let stats = client.stats();
        let bytes = |of: &Value, way: &str, times: u64| of[way].as_u64().unwrap() * times;
        let lookups = |way| bytes(&planned["lookup"], way, LOOKUPS);
        let moved = (stats.lookup.up, stats.lookup.down);
        assert_eq!(moved, (lookups("up"), lookups("down")), "{scheme}: lookups");
        let first = |way| bytes(&planned["first"], way, 1) as i64;
        let up = (stats.prepare.up + stats.background.up) as i64 - first("up");
        let down = (stats.prepare.down + stats.background.down) as i64 - first("down");
        before.push((scheme, (up, down)));
    }
    // The layout comes with the description, which clients do not count.
    let layout = Snapshot::open(&file).unwrap().layout_bytes().len() as i64;
    assert!(before.iter().all(|(_, unplanned)| *unplanned == (0, -layout)), "{before:?}");
}

/// A step of a scheme: the least time that was planned for it, and the least that it took, in
/// several takes. What runs beside a test makes yardsticks and steps slower, and never faster.
#[derive(Clone, Copy, Debug)]
struct Least {
    planned: f64,
    measured: f64,
}

/// By scheme and step.
type Steps = BTreeMap<(&'static str, &'static str), Least>;

/// How many times longer or shorter a step may take than the others, each beside its plan, where
/// nothing else runs. Tests are optimised less than what the plan knows, some steps more so than
/// others. Answers that are planned further apart than the square of this come in that order.
const TIMES: f64 = 10.0;
/// In seconds. Shorter steps are lost in what surrounds them.
const SHORTEST: f64 = 5e-6;
/// How often steps that do not fit are measured.
const TAKES: usize = 4;

/// For how long this thread has run, and for how long it has waited for a core: in nanoseconds,
/// where the system tells.
fn ran_and_waited() -> [f64; 2] {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let mut numbers = told.split_whitespace().map(|number| number.parse().unwrap_or(0.0));
    [(); 2].map(|()| numbers.next().unwrap_or(0.0))
}

fn ratio(step: &Least) -> f64 {
    step.measured / step.planned
}

/// By how much the step in the middle takes longer than planned.
fn middle(steps: &Steps) -> f64 {
    let mut ratios: Vec<f64> = steps.values().map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

/// The steps whose factors are wrong by more than `times`. Each is judged beside the step in the
/// middle: what slows all of them down says nothing about one factor.
fn misfits(steps: &Steps, times: f64) -> Vec<(&'static str, &'static str)> {
    let middle = middle(steps);
    let fits = |step: &Least| (1.0 / times..times).contains(&(ratio(step) / middle));
    steps.iter().filter(|(_, step)| !fits(step)).map(|(name, _)| *name).collect()
}

#[test]
fn times_are_as_planned_and_what_is_kept_is_of_the_planned_size() {
    let shape = TableShape::new(1 << 18, 8).unwrap();
    let planned = planned(&Subject::of_shape(shape, false).unwrap());
    let names = planned.iter().map(|planned| planned["scheme"].as_str().unwrap());
    let mut again: Vec<SchemeId> = names.map(|name| name.parse().unwrap()).collect();
    let (mut steps, mut times) = (Steps::new(), TIMES);
    let [ran_before, waited_before] = ran_and_waited();
    for _ in 0..TAKES {
        let machine = Machine::of(None, || 1.0, &unwatched).unwrap();
        for scheme in &again {
            let (taken, (kept, measured)) = compare(*scheme, shape, &machine).unwrap();
            // Hints take less before they are used. What is stored has some bytes of its own.
            let is_kept = (kept / 2..kept + 64).contains(&measured);
            assert!(is_kept, "{scheme}: {kept} B are planned to be kept, and are {measured}");
            for Step { name, planned, measured } in taken {
                let least = steps.entry((scheme.name(), name));
                let least = least.or_insert(Least { planned, measured });
                least.planned = least.planned.min(planned);
                least.measured = least.measured.min(measured);
            }
        }
        // Beside other programs, long steps wait for a core, and short ones hardly ever.
        let [ran, waited] = ran_and_waited();
        times = TIMES * (1.0 + (waited - waited_before) / (ran - ran_before).max(1.0));
        let judged = steps.iter().filter(|(_, step)| step.measured >= SHORTEST);
        let misfits = misfits(&judged.map(|(name, step)| (*name, *step)).collect(), times);
        again.retain(|scheme| misfits.iter().any(|(of, _)| *of == scheme.name()));
        if again.is_empty() {
            break;
        }
    }
    steps.retain(|_, step| step.measured >= SHORTEST);
    // A mistake in all factors alike, such as a wrong unit.
    let all = middle(&steps);
    assert!((1.0 / times..times).contains(&all), "{all} times the plan: {steps:#?}");
    assert_eq!(misfits(&steps, times), [], "beyond {times} times: {steps:#?}");
    assert!(steps.len() > 3 * SCHEMES, "too few steps are long enough: {steps:#?}");
    // The same judge, of one factor that is wrong by more than what is right may be off both ways.
    for (name, step) in &steps {
        for wrong_by in [1.5 * times * times, 1.0 / (1.5 * times * times)] {
            let mut wrong = steps.clone();
            wrong.insert(*name, Least { planned: wrong_by * step.planned, ..*step });
            assert_eq!(misfits(&wrong, times), [*name], "{wrong_by} times the plan of {name:?}");
        }
    }
}
