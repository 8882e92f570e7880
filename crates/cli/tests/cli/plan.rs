//! `privet plan`: bytes are those of `privet bench`, who is trusted decides what is refused, and
//! what is printed is what a script can rely on.

use crate::place::Place;
use serde_json::Value;
use std::collections::BTreeMap;

/// Yardsticks of a machine, so that nothing is measured.
const MACHINE: &str = include_str!("../../src/machine/typical.json");

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
    assert_eq!(planned.len(), privet_schemes::SchemeId::ALL.len() - 1);
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
    assert!(reason(&liars, "simplepir").contains("does not notice a wrong answer"));
    let nothing = plan(&place, &format!("{shape} --servers 2 --assume none"));
    let names: Vec<&str> = schemes(&nothing).into_keys().collect();
    assert_eq!(names, ["apir-matrix-mt", "download", "finite-differences"]);
    let lwe = plan(&place, &format!("{shape} --assume lwe"));
    assert!(reason(&lwe, "simplepir-packed").contains("over a ring"));
    let small = plan(&place, &format!("{shape} --client-storage 1000"));
    assert!(reason(&small, "download").contains("a client keeps 2.00 MiB"));
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
        let best = plan["schemes"][0]["scheme"].as_str().unwrap();
        let commands: Vec<&str> = plan["commands"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line.as_str().unwrap())
            .collect();
        assert_eq!(
            commands[0],
            format!("privet serve rows.privet --scheme {best} --listen 0.0.0.0:7700")
        );
        assert_eq!(commands[1], "privet get http://server:7700 --key KEY");
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
    assert!(reason(&large, "download").contains("a client keeps 2.00 GiB"));
}
