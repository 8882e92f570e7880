//! What a server holds in memory is what `privet plan` tells, at its start and while its table
//! changes; and clients in the middle of something find a way on when memory is short.

use crate::place::Place;
use crate::served::Served;
use std::time::Instant;

/// Large beside what every server takes.
const ROWS: usize = 32 << 10;
/// What every server takes besides: the program, its threads, pieces of files that it reads.
const BESIDES: u64 = 56 << 20;
/// The least share of what is told that must be there: telling too much would cost an operator a
/// larger machine. Some schemes need the rest only when many records change at once.
const TRUE_SHARE: f64 = 0.75;

const SCHEMES: [&str; 5] = ["download", "dpf", "dummy-subsets", "simplepir", "simplepir-packed"];

/// What is told of a scheme, in bytes.
struct Told {
    ready: u64,
    at_start: u64,
    at_update: u64,
}

impl Told {
    fn of(place: &Place, scheme: &str) -> Self {
        let plan = |more: &str| {
            let plan = "plan t.privet --servers 2 --machine machine.json --json";
            let plan = place.run(&format!("{plan} {more}")).json();
            let mut schemes = plan["schemes"].as_array().unwrap().iter();
            let found = schemes.find(|found| found["scheme"] == scheme).unwrap();
            let bytes = |name: &str| found[name].as_u64().unwrap();
            (bytes("server_bytes"), bytes("server_peak_bytes"))
        };
        let (ready, at_start) = plan("");
        let (_, at_update) = plan("--updates-per-day 24");
        Self { ready, at_start, at_update }
    }
}

/// Compares bytes that a server holds with what was told, and with less than that.
fn check(what: &str, seen: u64, told: u64) {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let words = format!("{what}: {:.0} MiB seen, {:.0} told", mib(seen), mib(told));
    assert!(seen <= told + BESIDES, "{words}");
    assert!(seen as f64 >= TRUE_SHARE * told as f64, "{words}");
}

fn place() -> Place {
    let place = Place::new();
    let mut rows = String::from("v\n");
    for row in 0..ROWS {
        rows.push_str(&format!("{row:01000}\n"));
    }
    place.write("rows.csv", rows);
    place.build("rows.csv -o t.privet");
    place.write("machine.json", include_str!("../../../measure/src/machine/typical.json"));
    place
}

/// The value of a row after its update.
fn changed(row: u64) -> String {
    format!("{{\"v\":\"{row:x>1000}\"}}")
}

/// Signs an update of one row.
fn set(place: &Place, table: &str, row: u64) {
    let value = changed(row);
    let run = format!("update {table} --publisher-key publisher.key --set {row}={value}");
    place.run(&run).succeeds();
}

#[test]
fn a_server_holds_what_is_told_at_its_start_and_while_its_table_changes() {
    const UPDATES: u64 = 3;
    let place = place();
    let table = std::fs::metadata(place.path("t.privet")).unwrap().len();
    for scheme in SCHEMES {
        let told = Told::of(&place, scheme);
        if !scheme.starts_with("simplepir") {
            // Nothing is held that the scheme computed.
            assert!(told.at_update <= table * 11 / 5, "{scheme}");
        }
        let name = format!("{scheme}.privet");
        std::fs::copy(place.path("t.privet"), place.path(&name)).unwrap();
        place.begin_history(&name);
        let update = |row: u64| set(&place, &name, row);
        let epoch = format!("privet_table_epoch{{table=\"{scheme}\"}}");
        let options = "--no-cache --watch 0 --metrics-listen 127.0.0.1:0";
        let serve = || Served::start(&place, &format!("{name} --scheme {scheme} {options}"));
        // With a state of its own, a client of single-use hints goes on with them.
        let asks = scheme != "dpf";
        let look_up = |served: &Served, row: u64| {
            let run =
                place.run(&format!("get {} --state state-{scheme} --index {row}", served.url));
            assert_eq!(run.code(), 0, "{scheme}: {run}");
            run.stdout().to_owned()
        };

        let served = serve();
        check(&format!("{scheme}, ready"), served.memory("RssAnon"), told.ready);
        check(&format!("{scheme}, start"), served.memory("VmHWM"), told.at_start);
        drop(served);
        update(0);
        let served = serve();
        check(&format!("{scheme}, ready with an epoch"), served.memory("VmRSS"), told.ready);
        check(&format!("{scheme}, start with an epoch"), served.memory("VmHWM"), told.at_start);
        if asks {
            look_up(&served, 0);
        }
        for row in 1..=UPDATES {
            update(row);
            served.hang_up();
            served.until_metric(&epoch, row + 1);
            if asks {
                assert_eq!(look_up(&served, row), format!("{}\n", changed(row)), "{scheme}");
            }
        }
        check(&format!("{scheme}, updated"), served.memory("VmHWM"), told.at_update);
        check(&format!("{scheme}, at rest"), served.memory("VmRSS"), 2 * told.ready);
        assert_eq!(served.terminate(), Some(0));
    }
}

/// A client begins to prepare hints, which takes longer than it takes the table to change twice.
/// The version that it began with is let go for its memory.
#[test]
fn a_client_whose_version_goes_while_it_prepares_finds_its_record() {
    let place = place();
    for scheme in ["dummy-subsets", "piano"] {
        let name = format!("{scheme}.privet");
        std::fs::copy(place.path("t.privet"), place.path(&name)).unwrap();
        place.begin_history(&name);
        let options = "--no-cache --watch 0 --metrics-listen 127.0.0.1:0";
        let serve = format!("{name} --scheme {scheme} --max-version-memory 0 {options}");
        let served = Served::start(&place, &serve);
        let epoch = format!("privet_table_epoch{{table=\"{scheme}\"}}");
        let update = |row: u64| {
            set(&place, &name, row);
            served.hang_up();
            served.until_metric(&epoch, row);
        };
        // The log names the publisher, whom a client must know to follow.
        update(1);
        let get = format!("get {} --state state-{scheme} --index 7", served.url);
        let mut client = place.command(&get);
        client.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let client = client.spawn().unwrap();
        let fetched = "privet_requests_total{method=\"Fetch\"";
        let began = Instant::now();
        while !served.metrics().contains(fetched) && began.elapsed().as_secs() < 10 {
            std::thread::yield_now();
        }
        for row in 2..=4 {
            update(row);
        }
        let found = client.wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&found.stderr);
        assert_eq!(found.status.code(), Some(0), "{scheme}: {words}");
        assert_eq!(found.stdout, format!("{{\"v\":\"{:01000}\"}}\n", 7).into_bytes(), "{words}");
        assert_eq!(served.terminate(), Some(0));
    }
}
