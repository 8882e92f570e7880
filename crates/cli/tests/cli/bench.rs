//! `privet bench`: the report's fields are those that docs/bench.md promises.

use crate::place::Place;
use insta::assert_snapshot;
use privet_kernels::dispatch::Arm;
use serde_json::Value;

/// Each field with the kind of its value, one a line, inner ones after a dot.
fn fields(name: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Object(inner) => {
            let inner_name =
                |key: &String| if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            inner.iter().flat_map(|(key, value)| fields(&inner_name(key), value)).collect()
        }
        Value::Array(inner) => {
            inner.iter().flat_map(|value| fields(&format!("{name}[]"), value)).collect()
        }
        Value::String(_) => vec![format!("{name}: text")],
        Value::Number(number) if number.is_f64() => vec![format!("{name}: fraction")],
        Value::Number(_) => vec![format!("{name}: whole number")],
        Value::Bool(_) => vec![format!("{name}: true or false")],
        Value::Null => vec![format!("{name}: null")],
    }
}

#[test]
fn the_report_has_the_promised_fields() {
    let run = Place::new().run("bench --scheme simplepir --records 2^7 --record-len 3 --queries 5 --batch 2 --threads 1 --seed 7 --json");
    let report = run.json();
    assert_snapshot!(fields("", &report).join("\n"), @"");
    assert_eq!(run.stdout().lines().count(), 1);
    assert_eq!(report["verified"], true);
    // Five queries in batches of two are three whole batches.
    for (field, value) in
        [("records", 128), ("record_len", 3), ("queries", 6), ("batch", 2), ("threads", 1)]
    {
        assert_eq!(report[field], value, "{field}");
    }
    assert_eq!(report["online"]["journal_us"], 0.0);
    for (part, field) in [
        ("online", "client_query_us"),
        ("online", "client_recover_us"),
        ("yardsticks", "read_gbps"),
    ] {
        assert!(report[part][field].as_f64().unwrap() > 0.0, "{part}.{field}");
    }
}

#[test]
fn every_kernel_of_this_machine_may_be_forced() {
    for arm in Arm::available() {
        let report = Place::new()
            .run(&format!("bench --records 10 --record-len 1 --queries 1 --kernel {arm} --json"))
            .json();
        assert_eq!(
            (&report["kernel"], &report["verified"]),
            (&Value::from(arm.to_string()), &Value::from(true))
        );
    }
}

#[test]
fn people_get_a_page() {
    let run = Place::new()
        .run("bench --records 1 --record-len 1 --queries 1 --threads 1 --kernel portable");
    let labels: Vec<&str> =
        run.stdout().lines().map(|line| line.get(..24).unwrap_or(line).trim_end()).collect();
    assert_snapshot!(labels.join("\n"), @"");
    assert_eq!((run.code(), run.stderr()), (0, ""));
}

#[test]
fn shapes_and_names_that_do_not_exist_are_refused() {
    let place = Place::new();
    assert_snapshot!(place.run("bench --records 0 --record-len 1"), @"");
    assert_snapshot!(place.run("bench --records 1 --record-len 0"), @"");
    assert_snapshot!(place.run("bench --records 2^63 --record-len 2^63"), @"");
    assert_snapshot!(place.run("bench --records 2^60 --record-len 1"), @"");
    assert_snapshot!(place.run("bench --scheme onion --records 1 --record-len 1"), @"");
    assert_snapshot!(place.run("bench --kernel mmx --records 1 --record-len 1"), @"");
    assert_snapshot!(place.run("bench --records 1"), @"");
}
