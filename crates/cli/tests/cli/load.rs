//! `privet load`.

use crate::place::{Place, Run};
use crate::served::Served;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

/// A place with a table of 2,000 records by number, and a directory for temporary files.
fn place() -> Place {
    let place = Place::new();
    let rows: String = (0..2000).map(|row| format!("{row},value {row}\n")).collect();
    place.write("rows.csv", format!("number,value\n{rows}"));
    place.build("rows.csv -o rows.privet");
    std::fs::create_dir(place.path("tmp")).unwrap();
    place
}

/// Runs with the place's own directory for temporary files, which must be empty afterwards.
fn load(place: &Place, arguments: &str) -> Run {
    let mut command = place.command(&format!("load {arguments}"));
    let run = Run(command.env("TMPDIR", place.path("tmp")).output().unwrap());
    assert_leaves_nothing(place);
    run
}

fn assert_leaves_nothing(place: &Place) {
    let left = std::fs::read_dir(place.path("tmp")).unwrap().count();
    assert_eq!(left, 0, "temporary files are left behind");
    assert!(!place.path(".local").exists(), "nothing goes to the user's state directory");
}

#[test]
fn a_rate_is_offered_and_measured() {
    let place = place();
    let served = Served::start(&place, "rows.privet --scheme simplepir");
    let url = &served.url;
    let report = load(&place, &format!("{url} --rate 40 --for 500ms --clients 3 -q --json")).json();
    let step = &report["steps"][0];
    assert_eq!(report["steps"].as_array().unwrap().len(), 1, "{report}");
    assert!(step["due"].as_u64().unwrap() >= 1, "{report}");
    assert_eq!((&step["due"], step["rate"].as_f64()), (&step["answered"], Some(40.0)));
    assert_eq!(step["failed"], serde_json::json!({}));
    let latency = |name: &str| step["latency_ms"][name].as_f64().unwrap();
    let latencies = ["p50", "p90", "p99", "p999", "max"].map(latency);
    assert!(latencies.is_sorted() && latencies[0] > 0.0, "{report}");
    assert!(step["late_ms"]["max"].as_f64().unwrap() > 0.0, "{report}");
    let whole = (&report["scheme"], &report["by"], &report["clients"], &report["records"]);
    assert_eq!(whole, (&"simplepir".into(), &"number".into(), &3.into(), &2000.into()));
    assert_eq!((&report["met"], &report["objectives"]), (&().into(), &serde_json::json!([])));
    assert!(report.get("knee").is_none(), "{report}");
    // The hint came once. What else each client received is small.
    let alone = load(&place, &format!("{url} --rate 1 --for 1ms --clients 1 -q --json")).json();
    let received = |report: &serde_json::Value| report["received_bytes"].as_u64().unwrap();
    assert!(received(&alone) > 100_000 && received(&report) < received(&alone) + 10_000);
}

#[test]
fn clients_with_secret_hints_share_none() {
    let place = place();
    let served = Served::start(&place, "rows.privet --scheme dummy-subsets");
    let url = &served.url;
    let run =
        load(&place, &format!("{url} --rate 40 --for 500ms --clients 2 --slo p100=1h")).succeeds();
    assert!(run.stdout().contains("2 clients, lookups by number"), "{run}");
    assert!(run.stdout().contains("p100 ≤ 60 minutes") && run.stdout().contains("met"), "{run}");
    assert!(run.stderr().starts_with("privet: 2 clients are ready after "), "{run}");
}

#[test]
fn a_table_by_key_on_two_servers_is_asked_for_keys() {
    let place = place();
    place.build("rows.csv --key number -o keys.privet");
    let one = Served::start(&place, "keys.privet --scheme dpf");
    let two = Served::start(&place, "keys.privet --scheme dpf");
    let urls = format!("{} {}", one.url, two.url);
    let report = load(&place, &format!("{urls} --rate 40 --for 500ms -q --json")).json();
    assert_eq!((&report["by"], &report["servers"]), (&"key".into(), &2.into()), "{report}");
    let step = &report["steps"][0];
    assert_eq!(step["due"], step["answered"], "{report}");
}

#[test]
fn a_missed_objective_is_exit_code_1() {
    let place = place();
    let served = Served::start(&place, "rows.privet --scheme simplepir");
    let url = &served.url;
    let run = load(&place, &format!("{url} --rate 40 --for 200ms --slo p100=1h,p50=1us -q --json"));
    assert_eq!((run.code(), run.stderr()), (1, ""), "{run}");
    let report: serde_json::Value = serde_json::from_str(run.stdout()).unwrap();
    assert_eq!(report["met"], false);
    let limits = [3_600_000.0, 0.001].map(serde_json::Value::from);
    assert_eq!([0, 1].map(|at| report["objectives"][at]["limit_ms"].clone()), limits);
    // Without a rate, none is found.
    let run = load(&place, &format!("{url} --for 200ms --slo p50=1us -q"));
    assert_eq!((run.code(), run.stderr()), (1, ""), "{run}");
    assert!(run.stdout().contains("this server does not achieve p50 ≤ 1.0 µs"), "{run}");
}

#[test]
fn the_knee_is_between_two_rates() {
    let place = place();
    let served = Served::start(&place, "rows.privet --scheme simplepir");
    let report = load(&place, &format!("{} --for 100ms -q --json", served.url)).json();
    let knee = |name: &str| report["knee"][name].as_f64().unwrap();
    assert!(knee("held") > 0.0 && knee("held") < knee("missed"), "{report}");
    assert!(knee("missed") <= 1.06 * knee("held"), "{report}");
    let steps = report["steps"].as_array().unwrap();
    let rate_of = |step: &serde_json::Value| step["rate"].as_f64().unwrap();
    assert!(steps.iter().any(|step| rate_of(step) == knee("held")), "{report}");
    assert!(steps.iter().all(|step| rate_of(step) >= rate_of(&steps[0])), "{report}");
    // The limit follows from the light load.
    let light = steps[0]["latency_ms"]["p99"].as_f64().unwrap();
    assert_eq!(
        report["objectives"][0]["limit_ms"].as_f64().unwrap().round(),
        (10.0 * light).round()
    );
    assert!(report["met"].is_null(), "nothing was asked for");
    // The server is on this machine, and reads all of the table for each batch.
    let bound = &report["bound"];
    assert_eq!(bound["rate"], report["knee"]["missed"]);
    assert!(bound["yardstick"]["table_reads_per_s"].as_f64().unwrap() > 0.0, "{report}");
}

#[test]
fn a_plot_shows_what_was_measured() {
    let place = place();
    let served = Served::start(&place, "rows.privet --scheme simplepir");
    let url = &served.url;
    let run = load(&place, &format!("{url} --rate 40 --for 200ms --slo p99=1h --plot load.svg -q"));
    assert_eq!((run.code(), run.stderr()), (0, ""), "{run}");
    let svg = std::fs::read_to_string(place.path("load.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
    for text in ["table rows, simplepir", "lookups a second", "p50", "limit: p99 ≤ 60 minutes"] {
        assert!(svg.contains(text), "no {text} in {svg}");
    }
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    // Nothing is measured if the plot cannot be written, and no table is written over.
    let run = load(&place, &format!("{url} --rate 40 --plot nowhere/load.svg -q"));
    assert_eq!((run.code(), run.stdout()), (2, ""), "{run}");
    let run = load(&place, &format!("{url} --rate 40 --plot rows.privet -q"));
    assert_eq!((run.code(), run.stdout()), (2, ""), "{run}");
}

#[test]
fn a_server_says_what_its_passes_took() {
    let place = place();
    let served =
        Served::start(&place, "rows.privet --scheme simplepir --metrics-listen 127.0.0.1:0");
    let metrics = format!("--metrics http://{}/metrics", served.metrics_address());
    let run = load(&place, &format!("{} --rate 40 --for 500ms -q --json {metrics}", served.url));
    let report = run.json();
    let passes = &report["steps"][0]["passes"];
    assert_eq!(passes.as_array().unwrap().len(), 1, "{report}");
    assert!(passes[0]["share"].as_f64().unwrap() > 0.0, "{report}");
    assert!(passes[0]["queries_each"].as_f64().unwrap() >= 1.0, "{report}");
    // Another address shows no metrics.
    let run = load(&place, &format!("{0} --rate 40 --for 500ms -q --metrics {0}", served.url));
    assert_eq!((run.code(), run.stdout().lines().count()), (3, 1), "{run}");
}

#[test]
fn queries_that_a_server_sheds_are_counted_and_asked_again() {
    let place = place();
    let served = Served::start(&place, "rows.privet --scheme simplepir --limit answers=1");
    let report = load(&place, &format!("{} --rate 1000 --for 300ms -q --json", served.url)).json();
    let step = &report["steps"][0];
    assert!(step["shed"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(step["due"], step["answered"], "{report}");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let place = place();
    let served = Served::start(&place, "rows.privet --scheme download");
    let url = served.url.clone();
    load(&place, &format!("{url} --rate 10")).says(2, "ask the server nothing");
    drop(served);
    assert_eq!(load(&place, &format!("{url} --rate 10")).code(), 3);
    load(&place, &format!("{url} --rate 10 --slo p99")).says(2, "p99=250ms");
}

/// Starts the command, and returns once its clients are ready.
fn start(place: &Place, arguments: &str) -> Child {
    let mut command = place.command(&format!("load {arguments}"));
    command.env("TMPDIR", place.path("tmp")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("clients are ready"), "{line}");
    child
}

#[test]
fn lookups_that_fail_are_counted_and_end_with_exit_code_3() {
    let place = place();
    let served = Served::start(&place, "rows.privet --scheme simplepir");
    let child = start(&place, &format!("{} --rate 20 --for 3s --timeout 1 --json", served.url));
    drop(served);
    let run = Run(child.wait_with_output().unwrap());
    assert_eq!(run.code(), 3, "{run}");
    let report: serde_json::Value = serde_json::from_str(run.stdout()).unwrap();
    let step = &report["steps"][0];
    let failed: u64 = step["failed"].as_object().unwrap().values().filter_map(|n| n.as_u64()).sum();
    assert!(failed > 0, "{report}");
    assert_eq!(failed + step["answered"].as_u64().unwrap(), step["due"].as_u64().unwrap());
    assert!(step["latency_ms"]["p999"].is_null(), "a failure is slower than any answer: {report}");
    assert!(run.stderr().contains("failed; the first"), "{run}");
    assert_leaves_nothing(&place);
}

#[test]
fn a_reader_who_goes_away_ends_it_and_leaves_nothing_behind() {
    let place = place();
    let served = Served::start(&place, "rows.privet --scheme dummy-subsets");
    let mut child = start(&place, &format!("{} --for 100ms --slo p50=1h", served.url));
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_leaves_nothing(&place);
}

#[cfg(unix)]
#[test]
fn interrupted_it_leaves_nothing_behind() {
    let place = place();
    // Hints of clients that keep writing a journal, while they look up.
    let served = Served::start(&place, "rows.privet --scheme dummy-subsets");
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let mut child = start(&place, &format!("{} --rate 200 --for 1h", served.url));
        assert_eq!(std::fs::read_dir(place.path("tmp")).unwrap().count(), 1);
        let id = child.id().to_string();
        let kill = std::process::Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(kill.success());
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_leaves_nothing(&place);
    }
}
