//! `privet demo` and `privet doctor`.

use crate::place::Place;
use insta::assert_snapshot;
use serde_json::Value;

#[test]
fn the_demonstration_fits_on_two_screens_and_shows_three_kinds_and_a_lie() {
    let run = Place::new().run("demo --entries 50000");
    assert_eq!((run.code(), run.stderr()), (0, ""), "{run}");
    assert!(run.stdout().lines().count() <= 48, "{run}");
    assert!(run.stdout().lines().all(|line| line.chars().count() <= 100), "{run}");
    let parts: Vec<&str> = run.stdout().split("\n\n").collect();
    let [table, simplepir, dpf, dummy_subsets, lie, others] = parts[..] else { panic!("{run}") };
    assert!(table.starts_with("1. A table of 50,000 names, built in "), "{run}");
    assert!(simplepir.starts_with("2. simplepir: one server. "), "{run}");
    assert!(dpf.starts_with("3. dpf: two servers that must not collude. "), "{run}");
    assert!(dummy_subsets.starts_with("4. dummy-subsets: one server. "), "{run}");
    assert!(lie.starts_with("5. apir-dpf, and a second server that lies"), "{run}");
    assert!(lie.contains("ends with exit code 4: one of the two servers sent a wrong"), "{run}");
    assert_eq!(others, "`privet demo --all` shows the other 14 schemes as well.\n");
}

#[test]
fn under_each_scheme_the_same_names_are_found_and_queries_look_alike() {
    let run = Place::new().run("demo --all --entries 50000");
    assert_eq!((run.code(), run.stderr()), (0, ""), "{run}");
    let mut parts: Vec<&str> = run.stdout().split("\n\n").skip(1).collect();
    assert!(parts.pop().unwrap().starts_with("19. apir-dpf, and a second server that lies"));
    let headings: Vec<&str> =
        parts.iter().map(|part| part.split_once(['.', ':']).unwrap().1).collect();
    assert_eq!(headings.len(), 17, "{run}");
    let mut shown = 0;
    for part in parts {
        let (_, heading) = part.split_once(". ").unwrap();
        let name = heading.split([':', ' ']).next().unwrap();
        if heading.starts_with("Not with doublepir: DoublePIR's hint has 16 MiB for each byte") {
            assert!(heading.contains("the limit is 1024 MiB"), "{run}");
            continue;
        }
        if heading.starts_with("Not with finite-differences-many: each server would make ") {
            continue;
        }
        shown += 1;
        names_are_looked_up(part);
        if name == "download" {
            assert!(part.contains("The server saw nothing of them"), "{part}");
            continue;
        }
        // Where queries look like coin tosses, two queries for one name agree as often as chance
        // gives, and so do two for different names.
        let sentences = part.replace("\n   ", " ");
        let agreements: Vec<&str> =
            sentences.split("ueries for one name agree in ").skip(1).collect();
        let servers = if part.contains("two servers that must not collude") { 2 } else { 1 };
        assert_eq!(agreements.len(), servers, "{part}");
        for agreements in agreements {
            let (repeated, rest) = agreements.split_once(" % of bits, for two names in ").unwrap();
            let (different, rest) = rest.split_once(" %").unwrap();
            if rest.starts_with("; coins in 50 %.") {
                let is_chance = |percent: &str| {
                    (percent.parse::<f64>().unwrap() - 50.0).abs() < agreement(name)
                };
                assert!(is_chance(repeated) && is_chance(different), "{part}");
            }
        }
        let looks_random = sentences.matches("; coins in 50 %").count();
        let expected = match name {
            "harmony" | "singlepass" | "tapir-mt" | "tapir-pp" | "finite-differences" => 0,
            // The hint server receives numbers that count up.
            "dummy-subsets-two" => 1,
            _ => servers,
        };
        assert_eq!(looks_random, expected, "{part}");
    }
    assert_eq!(shown, 15);
}

/// Six standard deviations, in percent, of the share of agreeing bits of two queries, on a table of
/// 50,000 entries. Queries of dummy subsets have 450 bits, keys of distributed point functions have
/// 1000 or more, and queries of SimplePIR many thousands.
fn agreement(scheme: &str) -> f64 {
    match scheme {
        "simplepir" | "simplepir-packed" => 3.0,
        "dpf" | "apir-dpf" | "apir-matrix-mt" => 10.0,
        _ => 15.0,
    }
}

fn names_are_looked_up(part: &str) {
    // The name and the value are columns, followed by the time and the bytes.
    let names = ["   Ada", "   Tony", "   Alan", "   Eve"];
    let lines = part.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
    let found: Vec<&str> = lines.map(|line| line[..62].trim_end()).collect();
    insta::allow_duplicates! {
        assert_snapshot!(found.join("\n"), @r#"
        Ada Archer 626        {"phone":"555-8025000","floor":"10"}
        Ada Archer 626        {"phone":"555-8025000","floor":"10"}
        Tony Smith 1250       {"phone":"555-8395679","floor":"19"}
        Eve Dropper 7         not found
        "#);
    }
}

#[test]
fn a_demonstration_has_bounds() {
    let place = Place::new();
    assert_eq!(place.run("demo --entries 1").code(), 0);
    assert_snapshot!(place.run("demo --entries 0").mistake(), @r#"
    error: invalid value '0' for '--entries <ENTRIES>': "0" is no positive whole number such as 1000000, 2^20 or 5M

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("demo --entries 10000001").mistake(), @r#"
    privet: a demonstration has at most 10000000 entries
    "#);
}

#[cfg(not(feature = "page"))]
#[test]
fn a_program_without_its_page_says_how_to_get_one() {
    let place = Place::new();
    assert_snapshot!(place.run("demo --web").mistake(), @r#"
    privet: this program was built without its page; `make demo-web` builds one with it
    "#);
}

#[test]
fn the_page_is_for_this_machine_and_for_some_entries() {
    let place = Place::new();
    assert_snapshot!(place.run("demo --web --listen 192.0.2.1:7780").mistake(), @r#"
    privet: 192.0.2.1:7780 can be reached from other machines, and the page shows what was looked up: listen on 127.0.0.1
    "#);
    assert_snapshot!(place.run("demo --web --entries 1000001").mistake(), @r#"
    privet: the page has at most 1000000 entries
    "#);
    assert_eq!(place.run("demo --web --all").code(), 2);
    assert_eq!(place.run("demo --listen 127.0.0.1:0").code(), 2);
}

#[test]
fn the_doctor_reports_each_subject_and_advises_where_one_is_wanting() {
    let place = Place::new();
    let findings = place.run("doctor --json").json();
    let findings = findings.as_array().unwrap();
    let subjects: Vec<&str> =
        findings.iter().map(|finding| finding["subject"].as_str().unwrap()).collect();
    assert_eq!(subjects, ["processor", "kernels", "huge pages", "memory", "open files"]);
    for finding in findings {
        assert_eq!(
            finding["good"].as_bool().unwrap(),
            finding["advice"] == Value::Null,
            "{finding}"
        );
    }
    let page = place.run("doctor");
    assert_eq!((page.code(), page.stderr()), (0, ""));
    assert!(subjects.iter().all(|subject| page.stdout().contains(subject)), "{page}");
}
