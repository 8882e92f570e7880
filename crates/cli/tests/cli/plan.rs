//! `privet plan`: bytes are those of `privet bench`, who is trusted decides what is refused, and
//! what is printed is what a script can rely on.

use crate::place::Place;
use crate::served::Served;
use privet_core::{Epoch, TableDigest, TableId, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::registry::{Situation, choose, choose_for};
use serde_json::Value;
use std::collections::BTreeMap;

/// Yardsticks of a machine, so that nothing is measured.
const MACHINE: &str = include_str!("../../../measure/src/machine/typical.json");

fn place() -> Place {
    let place = Place::new();
    place.write("machine.json", MACHINE);
    place
}

fn plan(place: &Place, arguments: &str) -> Value {
    place.run(&format!("plan {arguments} --machine machine.json --json")).json()
}

fn schemes(plan: &Value) -> BTreeMap<&str, &Value> {
    let schemes = plan["schemes"].as_array().unwrap().iter();
    schemes.map(|scheme| (scheme["scheme"].as_str().unwrap(), scheme)).collect()
}

fn reason<'p>(plan: &'p Value, scheme: &str) -> &'p str {
    let refused = plan["refused"].as_array().unwrap();
    let refused = refused.iter().find(|refused| refused["scheme"] == scheme);
    refused.unwrap_or_else(|| panic!("{scheme} is not refused"))["reason"].as_str().unwrap()
}

fn identity(records: u64, record_len: u64) -> TableIdentity {
    let shape = TableShape::new(records, record_len).unwrap();
    TableIdentity { id: TableId([0; 16]), epoch: Epoch(0), digest: TableDigest([0; 32]), shape }
}

/// The scheme that a plan recommends.
fn taken(plan: &Value) -> &str {
    let recommendation = plan["recommendation"].as_str().unwrap();
    recommendation.strip_prefix("Take ").unwrap().split_once('.').unwrap().0
}

/// `plan` recommends what the rule says, and where nothing is said of the use, what a server takes
/// that knows the table alone.
#[test]
fn plan_and_server_follow_the_rule() {
    let place = place();
    let all = |_| true;
    let said = |situation: &Situation<'_>| {
        let storage = match situation.client_storage {
            u64::MAX => String::new(),
            bytes => format!(" --client-storage {bytes}"),
        };
        let hints = if situation.keeps_hints { " --keep-hints" } else { "" };
        let lies = if situation.must_verify { " --may-lie" } else { "" };
        let (operators, lookups) = (situation.operators, situation.lookups / 10);
        format!("--servers {operators} --lookups {lookups}{storage}{hints}{lies}")
    };
    let usual = Situation { allows: &all, ..Situation::default() };
    let situations = [
        usual,
        Situation { operators: 2, ..usual },
        Situation { operators: 2, must_verify: true, ..usual },
        Situation { lookups: 500, ..usual },
        Situation { lookups: 1_000_000, ..usual },
        Situation { lookups: 1_000_000, client_storage: 300 << 20, ..usual },
        Situation { lookups: 1_000_000, client_storage: 300 << 20, keeps_hints: true, ..usual },
    ];
    let mut met = std::collections::BTreeSet::new();
    for (records, record_len) in
        [(5, 10), (1 << 16, 32), (1 << 20, 32), (154_321, 3_744), (3, 1 << 20)]
    {
        for situation in &situations {
            let table = identity(records, record_len);
            let said = format!("--records {records} --record-len {record_len} {}", said(situation));
            let plan = plan(&place, &said);
            let allows = |scheme: SchemeId| schemes(&plan).contains_key(scheme.name());
            let situation = Situation { allows: &allows, ..*situation };
            let by_the_rule = choose_for(&table, &situation).scheme.unwrap();
            assert_eq!(taken(&plan), by_the_rule.name(), "{said}");
            met.insert(by_the_rule.name());
        }
        let unsaid = plan(&place, &format!("--records {records} --record-len {record_len}"));
        assert_eq!(taken(&unsaid), choose(&identity(records, record_len)).name());
    }
    let five = ["apir-matrix-mt", "download", "dpf", "dummy-subsets", "simplepir-packed"];
    assert_eq!(met.into_iter().collect::<Vec<_>>(), five);

    let long = "x".repeat(1000);
    for rows in [3, 5_000] {
        let rows = (0..rows).map(|row| format!("{row},{long}\n"));
        place.write("rows.csv", format!("key,value\n{}", rows.collect::<String>()));
        place.build("rows.csv --key key -o rows.privet");
        let plan = plan(&place, "rows.privet");
        let served = Served::start(&place, "rows.privet --no-cache");
        let scheme = format!(", {}, ", taken(&plan));
        assert!(served.announcement.contains(&scheme), "{}", served.announcement);
        assert!(served.announcement.contains("10 lookups of each in a day"));
    }
}

#[test]
fn one_server_that_may_lie_calls_for_an_authenticated_table() {
    let place = place();
    let plan = plan(&place, "--records 2^16 --record-len 32 --may-lie");
    let recommendation = plan["recommendation"].as_str().unwrap();
    assert!(recommendation.contains("--authenticate"), "{recommendation}");
    let because = plan["because"].as_array().unwrap();
    assert_eq!(because.len(), 2);
    assert_eq!((&because[0]["answer"], &because[1]["answer"]), (&true.into(), &false.into()));
    let shape = "--keys 3000 --value-len 50 --may-lie --authenticate";
    assert_eq!(taken(&self::plan(&place, shape)), "download");
}

/// What `plan --keys` says of a table is what `build` makes.
#[test]
fn a_table_of_keys_is_planned_as_it_is_built() {
    let place = place();
    let (keys, value_len) = (3_000, 200);
    let value = "v".repeat(value_len);
    let rows = (0..keys).map(|row| format!("key {row},{value}\n"));
    place.write("rows.csv", format!("key,value\n{}", rows.collect::<String>()));
    for flags in ["", "--key-map cuckoo", "--authenticate"] {
        let build =
            format!("rows.csv --key key --raw-value value {flags} -o t.privet --force --json");
        let built = place.build(&build).json();
        let planned = plan(&place, &format!("--keys 3k --value-len 200B {flags}"));
        let number = |of: &Value, field: &str| of[field].as_f64().unwrap();
        assert_eq!(built["records_per_lookup"], planned["records_per_lookup"], "{flags}");
        // Where two shapes cost about the same, the seed of the build decides between them.
        let wider = number(&planned, "record_len") / number(&built, "record_len");
        assert!((0.4..2.5).contains(&wider), "{flags}: {wider} times as wide");
        let bytes = |of: &Value| number(of, "records") * number(of, "record_len");
        let off = (bytes(&planned) - bytes(&built)).abs() / bytes(&built);
        assert!(off < 0.1, "{flags}: {} bytes, not {}", bytes(&planned), bytes(&built));
        // The names of the columns are all that is missing.
        let layout = number(&built, "layout_bytes") - number(&planned, "layout_bytes");
        assert!((0.0..100.0).contains(&layout), "{flags}: {layout}");
    }
}

/// The commands that `plan` prints are run as they are, but on a port of this machine.
#[test]
fn what_plan_prints_can_be_run() {
    let place = place();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    place.write("CERT.pem", made.cert.pem());
    place.write_secret("KEY.pem", made.signing_key.serialize_pem());
    place.write("two words.csv", "key,value\nKEY,found\n");
    let args = ["plan", "two words.csv", "--key", "key", "--machine", "machine.json", "--json"];
    let output = place.command("").args(args).output().unwrap();
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let commands: Vec<_> =
        plan["commands"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    let [build, serve, get] = commands[..] else { panic!("{commands:?}") };
    assert_eq!(build, "privet build 'two words.csv' --key key -o 'two words.privet'");
    let words = ["build", "two words.csv", "--key", "key", "-o", "table.privet"];
    assert!(place.command("").args(words).status().unwrap().success());
    let serve = serve.strip_prefix("privet serve 'two words.privet' ").unwrap();
    let (before, rest) = serve.split_once(" --listen 0.0.0.0:7700 ").unwrap();
    let served = Served::start(&place, &format!("table.privet --no-cache {before} {rest}"));
    assert!(served.url.starts_with("https://"), "{}", served.url);
    let get = get.strip_prefix("privet ").unwrap().replace("https://server:7700", &served.url);
    let found = place.run(&format!("{get} --ca-file CERT.pem"));
    assert_eq!((found.code(), found.stdout()), (0, "{\"value\":\"found\"}\n"), "{found}");

    let plan = self::plan(&place, "table.privet --servers 2 --lookups 1");
    assert!(plan["commands"].as_array().unwrap().len() == 2, "{plan}");
    let shape = self::plan(&place, "--keys 100 --value-len 10");
    let bench = shape["commands"][0].as_str().unwrap().strip_prefix("privet ").unwrap();
    assert_eq!(place.run(&format!("{bench} --queries 1 --edits 1")).code(), 0, "{bench}");
}

/// The page has a line for each reason, no time of nothing, and all bytes that come first.
#[test]
fn a_page_says_things_once_and_nothing_of_nothing() {
    let place = place();
    let page = place.run("plan --keys 20k --value-len 100 --machine machine.json");
    let page = page.stdout();
    assert!(!page.contains(" 0.0 µs") && !page.contains(" 0 ns"), "{page}");
    let refused: Vec<&str> = page.split_once("Not:\n").unwrap().1.lines().collect();
    let text = refused.join(" ");
    assert_eq!(text.matches("2 servers are needed").count(), 1, "{page}");
    let layout = page.lines().find(|line| line.starts_with("Every client receives ")).unwrap();
    let layout = layout.split(' ').skip(3).take(2).collect::<Vec<_>>().join(" ");
    let dpf = place.run("plan --keys 20k --value-len 100 --servers 2 --machine machine.json");
    let row = dpf.stdout().lines().find(|line| line.starts_with("  dpf ")).unwrap().to_owned();
    assert!(row.contains(&layout), "{layout}: {row}");
}

/// A scheme for each way in which clients begin. `bench` takes seconds for each.
const OF_EACH_KIND: [&str; 6] =
    ["download", "dpf", "simplepir-packed", "harmony", "piano", "singlepass"];

#[test]
fn bytes_are_those_of_bench() {
    let place = place();
    let shape = "--records 500 --record-len 6";
    let plan = plan(&place, &format!("{shape} --servers 13"));
    let planned = schemes(&plan);
    // All but the one that needs a file.
    assert_eq!(planned.len(), privet_laboratory::all().count() - 1);
    assert!(reason(&plan, "tapir-pp").contains("reference string"));
    for scheme in OF_EACH_KIND {
        let planned = planned[scheme];
        let bench = format!("bench --scheme {scheme} {shape} --queries 1 --edits 1 --json");
        let measured = place.run(&bench).json();
        for (part, whole) in [("first", "offline"), ("lookup", "online")] {
            for direction in ["up", "down"] {
                let measured = &measured[whole][format!("{direction}_bytes")];
                assert_eq!(&planned[part][direction], measured, "{scheme}: {part}, {direction}");
            }
        }
    }
}

#[test]
fn who_is_trusted_decides_what_is_refused() {
    let place = place();
    let shape = "--records 2^16 --record-len 32";
    let alone = plan(&place, shape);
    let dpf = reason(&alone, "dpf");
    assert!(dpf.contains("whose operators do not talk") && dpf.contains("--servers 2"), "{dpf}");
    assert!(schemes(&alone).values().all(|scheme| scheme["servers"] == 1));
    let liars = plan(&place, &format!("{shape} --servers 2 --may-lie"));
    let names: Vec<&str> = schemes(&liars).into_keys().collect();
    assert_eq!(names, ["apir-dpf", "apir-matrix-mt", "tapir-mt"]);
    assert!(reason(&liars, "simplepir").contains("a wrong answer would not be noticed"));
    let nothing = plan(&place, &format!("{shape} --servers 2 --assume none"));
    let names: Vec<&str> = schemes(&nothing).into_keys().collect();
    assert_eq!(names, ["apir-matrix-mt", "download", "finite-differences"]);
    let lwe = plan(&place, &format!("{shape} --assume lwe"));
    assert!(reason(&lwe, "simplepir-packed").contains("over a ring"));
    let small = plan(&place, &format!("{shape} --client-storage 1000"));
    assert!(reason(&small, "download").contains("keep more than 1000 B: 2.00 MiB"));
}

#[test]
fn piano_is_not_recommended_for_a_table_by_key() {
    let place = place();
    let rows: String = (0..3000).map(|row| format!("key{row},value {row}\n")).collect();
    place.write("rows.csv", format!("key,value\n{rows}"));
    place.run("build rows.csv --key key -o rows.privet");
    for table in ["rows.privet", "rows.csv --key key"] {
        let plan = plan(&place, table);
        assert!(reason(&plan, "piano").contains("where keys lie"), "{table}");
        assert!(plan["layout_bytes"].as_u64().unwrap() > 0);
    }
}

#[test]
fn prices_and_use_decide_the_ranking() {
    let place = place();
    let best = |arguments: &str| {
        let plan = plan(&place, &format!("--records 2^20 --record-len 32 {arguments}"));
        let sums: Vec<f64> = plan["schemes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|scheme| scheme["month_sum"].as_f64().unwrap())
            .collect();
        assert!(sums.is_sorted(), "{sums:?}");
        plan["schemes"][0]["scheme"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        best("--prices traffic=1,core=0,memory=0,waiting=0 --lookups 1"),
        "simplepir-packed"
    );
    assert_eq!(best("--prices traffic=0,core=0,memory=0,waiting=1 --lookups 1000"), "download");
    assert_eq!(best("--servers 2 --prices traffic=1,core=0,memory=0,waiting=0"), "dpf");
}

#[test]
fn a_page_a_plot_and_the_yardsticks_are_written() {
    let place = place();
    let run = place.run(
        "plan --records 2^16 --record-len 32 --servers 2 --svg plot.svg --save-machine here.json",
    );
    let page = run.stdout();
    for part in ["Take ", "would cost", "first use", "a month", "tapir-pp"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let svg = read(&place, "plot.svg");
    assert!(svg.contains("simplepir-packed, ") && svg.contains("dpf, "));
    let again = plan_with(&place, "here.json");
    assert_eq!(
        again["kernel"],
        serde_json::from_str::<Value>(&read(&place, "here.json")).unwrap()["kernel"]
    );
    let wrong = place.run("plan --records 2^16 --record-len 32 --machine plot.svg");
    assert!(wrong.stderr().contains("not a machine's yardsticks"), "{}", wrong.stderr());
}

fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path(name)).unwrap()
}

fn plan_with(place: &Place, machine: &str) -> Value {
    place.run(&format!("plan --records 2^16 --record-len 32 --machine {machine} --json")).json()
}

#[test]
fn nonsense_is_refused() {
    let place = place();
    for (arguments, told) in [
        ("", "required"),
        ("--records 5", "--record-len"),
        ("--keys 5", "--value-len"),
        ("--keys 5 --value-len 2 --records 5 --record-len 5", "cannot be used with"),
        ("--keys 5G --value-len 2", "too many for one table"),
        ("--records 5 --record-len 5 --link 20", "no connection"),
        ("--records 5 --record-len 5 --prices gold=1", "no price"),
        ("missing.privet", "missing.privet"),
    ] {
        let run = place.run(&format!("plan {arguments} --machine machine.json"));
        assert!(run.stderr().contains(told), "{arguments}: {}", run.stderr());
    }
}

#[test]
fn build_says_so_where_every_lookup_asks_for_many_records() {
    let place = place();
    let value = "x".repeat(1500);
    let rows = (0..2000).map(|row| format!("{row},{value}\n"));
    place.write("long.csv", format!("key,value\n{}", rows.collect::<String>()));
    let said = |parts: &str| {
        let run = place.build(&format!("long.csv --key key -o long.privet --parts {parts}"));
        run.stdout().lines().last().unwrap().to_owned()
    };
    assert!(said("1").starts_with("  digest"));
    let many = said("16");
    assert!(many.starts_with("  every lookup asks for 16 records: for 1,000 clients"), "{many}");
}

#[test]
fn clients_in_a_browser_compute_longer_and_keep_no_hints() {
    let place = place();
    let of = |client: &str| {
        plan(&place, &format!("--records 2^20 --record-len 32 --servers 3 --client {client}"))
    };
    let (native, python, browser) = (of("native"), of("python"), of("browser"));
    assert_eq!(schemes(&native), schemes(&python));
    let (native, browser) = (schemes(&native), schemes(&browser));
    let number = |value: &Value| value.as_f64().unwrap();
    for scheme in ["simplepir-packed", "dpf", "singlepass"] {
        let (here, there) = (native[scheme], browser[scheme]);
        assert_eq!(here["answer_us"], there["answer_us"], "{scheme}: a server's");
        assert!(number(&here["client_query_us"]) < number(&there["client_query_us"]), "{scheme}");
    }
    // A browser forgets single-use hints after a visit.
    let day =
        |of: &BTreeMap<&str, &Value>, scheme: &str| number(&of[scheme]["received_per_day_bytes"]);
    assert!(day(&native, "dummy-subsets") < 1e6 && day(&browser, "dummy-subsets") > 3e7);
    assert_eq!(day(&native, "dpf"), day(&browser, "dpf"));
    let large = plan(&place, "--records 2^26 --record-len 32 --client browser");
    assert!(reason(&large, "download").contains("keep more than 1.00 GiB: 2.00 GiB"));
}
