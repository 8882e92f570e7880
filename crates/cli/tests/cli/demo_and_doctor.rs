//! `privet demo` and `privet doctor`.

use crate::place::Place;
use insta::assert_snapshot;
use serde_json::Value;

#[test]
fn the_demonstration_looks_up_six_names_under_each_scheme_and_every_query_looks_alike() {
    let run = Place::new().run("demo --entries 50000");
    assert_eq!((run.code(), run.stderr()), (0, ""), "{run}");
    let (_, schemes) = run.stdout().split_once("2. With simplepir").unwrap();
    let (simplepir, dummy_subsets) = schemes.split_once("3. With dummy-subsets").unwrap();
    six_names_are_looked_up(simplepir);
    six_names_are_looked_up(dummy_subsets);
    // Queries for one name have no more in common than queries for two, and neither more than chance gives.
    let agreements = |part: &str| -> Vec<f64> {
        let parts = part.split("agree in ").skip(1);
        parts.map(|rest| rest.split_once(" %").unwrap().0.parse().unwrap()).collect()
    };
    let [repeated, different, chance] = agreements(simplepir)[..] else { panic!("{run}") };
    assert!((repeated - 50.0).abs() < 3.0 && (different - 50.0).abs() < 3.0, "{run}");
    assert_eq!(chance, 50.0);
    let [repeated, different, _] = agreements(dummy_subsets)[..] else { panic!("{run}") };
    assert!((repeated - 50.0).abs() < AGREEMENT && (different - 50.0).abs() < AGREEMENT, "{run}");
}

/// Six standard deviations of the share of agreeing bits, in percent, of two queries of dummy subsets: they have 450 bits on the table of 50,000 entries.
const AGREEMENT: f64 = 15.0;

fn six_names_are_looked_up(part: &str) {
    let (_, lookups) = part.split_once("Lookups").unwrap();
    let (lookups, seen) = lookups.split_once("What the server saw").unwrap();
    let lines: Vec<&str> = lookups.lines().filter(|line| line.starts_with("  ")).collect();
    // Name and value stand in columns of their own; then come the time, and the bytes.
    let found: Vec<&str> = lines.iter().map(|line| line[..65].trim_end()).collect();
    insta::allow_duplicates! {
        assert_snapshot!(found.join("\n"), @r#"
    Ada Archer 1           {"phone":"555-0000000","floor":"0"}
    Tony Smith 625         {"phone":"555-0370679","floor":"9"}
    Tony Smith 625         {"phone":"555-0370679","floor":"9"}
    Tony Smith 1250        {"phone":"555-8395679","floor":"19"}
    Nobody Nowhere 1       not found
    Eve Dropper 7          not found
    "#);
    }
    let bytes: Vec<&str> = lines.iter().map(|line| line.split_once("s, ").unwrap().1).collect();
    assert!(bytes.iter().all(|sent| *sent == bytes[0]), "{bytes:?}");
    let lengths: Vec<&str> = seen
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("query "))
        .map(|line| line.split_once(": ").unwrap().0.split_whitespace().nth(1).unwrap())
        .collect();
    assert_eq!(lengths.len(), 6, "{part}");
    assert!(lengths.iter().all(|length| *length == lengths[0]), "{lengths:?}");
    assert!(lengths[0].parse::<u64>().unwrap() > 0);
}

#[test]
fn a_demonstration_has_bounds() {
    let place = Place::new();
    assert_eq!(place.run("demo --entries 1").code(), 0);
    assert_snapshot!(place.run("demo --entries 0"), @r#"
    [exit 2]
    [stderr]
    error: invalid value '0' for '--entries <ENTRIES>': "0" is no positive whole number such as 1000000 or 2^20

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("demo --entries 10000001"), @r#"
    [exit 2]
    [stderr]
    privet: a demonstration has at most 10000000 entries
    "#);
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
