//! `privet build`: what it reports, and that a refused input leaves nothing behind.

use crate::place::{PHONES, Place, Run};
use insta::assert_snapshot;

/// Runs a build that must fail, and checks that it left no file, not even a temporary one.
fn refused(place: &Place, arguments: &str) -> Run {
    let before = place.files();
    let run = place.run(&format!("build {arguments}"));
    assert_ne!(run.code(), 0, "{run}");
    assert_eq!(run.stdout(), "");
    assert_eq!(place.files(), before);
    run
}

#[test]
fn a_csv_file_becomes_a_table_by_key() {
    let place = Place::new();
    place.write("phones.csv", PHONES);
    assert_snapshot!(place.run("build phones.csv --key name -o phones.privet"), @"");
    assert_eq!(place.files(), ["phones.csv", "phones.privet"]);
    assert_snapshot!(place.run("build phones.csv --key name -o phones.privet --json"), @"");
}

#[test]
fn a_json_lines_file_becomes_a_table_by_key() {
    let place = Place::new();
    place.write(
        "phones.jsonl",
        "{\"name\":\"ada\",\"phone\":1}\n{\"name\":\"bob\",\"phone\":[2,{}]}\n",
    );
    assert_snapshot!(place.run("build phones.jsonl --key name -o phones.privet"), @"");
}

#[test]
fn without_a_key_rows_are_numbered() {
    let place = Place::new();
    place.write("phones.csv", PHONES);
    assert_snapshot!(place.run("build phones.csv -o phones.privet"), @"");
}

#[test]
fn standard_input_needs_a_format() {
    let place = Place::new();
    assert_snapshot!(place.run_with_input("build - -o x.privet", PHONES.as_bytes()), @"");
    assert_eq!(place.files(), Vec::<String>::new());
    let run = place
        .run_with_input("build - --format csv --key name -o x.privet --json", PHONES.as_bytes());
    assert_eq!(run.json()["rows"], 3);
}

#[test]
fn columns_of_the_value_may_be_chosen() {
    let place = Place::new();
    place.write("phones.csv", PHONES);
    place.build("phones.csv --key name --value phone,floor -o two.privet");
    assert_eq!(
        place.run("inspect two.privet --json").json()["value_columns"],
        serde_json::json!(["phone", "floor"])
    );
    let raw = place.build("phones.csv --key name --raw-value phone -o raw.privet --json").json();
    assert_eq!(raw["value_bytes"], "555-1555-25,5".len());
    let report = place.run("inspect raw.privet --json").json();
    assert_eq!(
        (&report["value"], &report["value_columns"]),
        (&"raw".into(), &serde_json::json!(["phone"]))
    );
}

#[test]
fn unknown_columns_are_named_with_those_there_are() {
    let place = Place::new();
    place.write("phones.csv", PHONES);
    assert_snapshot!(refused(&place, "phones.csv --key nmae -o x.privet"), @"");
    assert_snapshot!(refused(&place, "phones.csv --key name --value phone,flor -o x.privet"), @"");
    assert_snapshot!(refused(&place, "phones.csv --key name --raw-value fone -o x.privet"), @"");
    place.write("phones.jsonl", "{\"name\":\"ada\",\"phone\":1}\n");
    assert_snapshot!(refused(&place, "phones.jsonl --key nmae -o x.privet"), @"");
}

#[test]
fn empty_inputs_are_refused() {
    let place = Place::new();
    place.write("empty.csv", "");
    place.write("header.csv", "name,phone\n");
    place.write("empty.jsonl", "\n");
    assert_snapshot!(refused(&place, "empty.csv -o x.privet"), @"");
    assert_snapshot!(refused(&place, "header.csv --key name -o x.privet"), @"");
    assert_snapshot!(refused(&place, "empty.jsonl -o x.privet"), @"");
}

#[test]
fn bad_input_is_located() {
    let place = Place::new();
    place.write("latin.csv", b"name,phone\nada,1\nJ\xfcrgen,2\n");
    place.write("ragged.csv", "name,phone\nada,1\nbob\n");
    place.write("latin.jsonl", b"{\"name\":\"ada\"}\n{\"name\":\"J\xfcrgen\"}\n");
    place.write("broken.jsonl", "{\"name\":\"ada\"}\n{\"name\":\n");
    assert_snapshot!(refused(&place, "latin.csv --key name -o x.privet"), @"");
    assert_snapshot!(refused(&place, "ragged.csv --key name -o x.privet"), @"");
    assert_snapshot!(refused(&place, "latin.jsonl --key name -o x.privet"), @"");
    assert_snapshot!(refused(&place, "broken.jsonl --key name -o x.privet"), @"");
    assert_snapshot!(refused(&place, "broken.jsonl --format parquet -o x.privet"), @"");
}

#[test]
fn duplicate_keys_are_an_error_unless_one_is_chosen() {
    let place = Place::new();
    place.write("twice.csv", "name,phone\nada,1\nbob,2\nada,33\n");
    assert_snapshot!(refused(&place, "twice.csv --key name -o x.privet"), @"");
    let report = |choice: &str| {
        let arguments = format!(
            "twice.csv --key name --raw-value phone --on-duplicate {choice} -o {choice}.privet --json"
        );
        let report = place.build(&arguments).json();
        (
            report["rows"].clone(),
            report["duplicates_dropped"].clone(),
            report["value_bytes"].clone(),
        )
    };
    assert_eq!(report("first"), (3.into(), 1.into(), "12".len().into()));
    assert_eq!(report("last"), (3.into(), 1.into(), "332".len().into()));
    assert_snapshot!(refused(&place, "twice.csv --key name --on-duplicate both -o x.privet"), @"");
}

#[test]
fn values_longer_than_asked_for_are_refused() {
    let place = Place::new();
    place.write("phones.csv", PHONES);
    assert_snapshot!(refused(&place, "phones.csv --key name --max-value 10 -o x.privet"), @"");
    assert_snapshot!(refused(&place, "phones.csv --max-value 10 -o x.privet"), @"");
    place.build("phones.csv --key name --raw-value phone --max-value 5 -o x.privet");
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let place = Place::new();
    place.write("phones.csv", PHONES);
    place.write("phones.txt", PHONES);
    std::fs::create_dir(place.path("directory")).unwrap();
    assert_snapshot!(refused(&place, "missing.csv -o x.privet"), @"");
    assert_snapshot!(refused(&place, "phones.txt -o x.privet"), @"");
    assert_snapshot!(refused(&place, "phones.csv -o nowhere/x.privet"), @"");
    assert_snapshot!(refused(&place, "phones.csv -o directory"), @"");
    assert_snapshot!(refused(&place, "directory --format csv -o x.privet"), @"");
}

#[test]
fn a_refused_build_leaves_the_table_that_was_there() {
    let place = Place::with_phones();
    let before = std::fs::read(place.path("phones.privet")).unwrap();
    place.write("phones.csv", "name,phone\nada,1\nada,2\n");
    refused(&place, "phones.csv --key name -o phones.privet");
    assert_eq!(std::fs::read(place.path("phones.privet")).unwrap(), before);
}
