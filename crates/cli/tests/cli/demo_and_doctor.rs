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
    let found: Vec<String> = lookups
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .map(|line| {
            line.split_whitespace().take_while(|word| !word.ends_with("ms")).collect::<Vec<_>>()
        })
        .map(|words| words[..words.len() - 1].join(" "))
        .collect();
    assert_snapshot!(found.join("\n"), @"");
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
    assert_snapshot!(place.run("demo --entries 0"), @"");
    assert_snapshot!(place.run("demo --entries 10000001"), @"");
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
