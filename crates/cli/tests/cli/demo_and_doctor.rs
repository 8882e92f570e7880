//! `privet demo` and `privet doctor`.

use crate::place::Place;
use insta::assert_snapshot;
use serde_json::Value;

#[test]
fn the_demonstration_looks_up_six_names_and_every_query_looks_alike() {
    let run = Place::new().run("demo --entries 2000");
    assert_eq!((run.code(), run.stderr()), (0, ""), "{run}");
    let (_, lookups) = run.stdout().split_once("4. Lookups").unwrap();
    let (lookups, seen) = lookups.split_once("5. What the server saw").unwrap();
    let lines: Vec<&str> = lookups.lines().filter(|line| line.starts_with("  ")).collect();
    // Name and value stand in columns of their own; then come the time, and the bytes.
    let found: Vec<&str> = lines.iter().map(|line| line[..65].trim_end()).collect();
    assert_snapshot!(found.join("\n"), @r#"
    Ada Archer 1           {"phone":"555-0000000","floor":"0"}
    Tony Smith 25          {"phone":"555-6666679","floor":"9"}
    Tony Smith 25          {"phone":"555-6666679","floor":"9"}
    Tony Smith 50          {"phone":"555-0987679","floor":"19"}
    Nobody Nowhere 1       not found
    Eve Dropper 7          not found
    "#);
    let bytes: Vec<&str> = lines.iter().map(|line| line.split_once("s, ").unwrap().1).collect();
    assert!(bytes.iter().all(|sent| *sent == bytes[0]), "{bytes:?}");
    let lengths: Vec<&str> = seen
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("query "))
        .map(|line| line.split_once(": ").unwrap().0.split_whitespace().nth(1).unwrap())
        .collect();
    assert_eq!(lengths.len(), 6, "{run}");
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
