//! Keys that occur again.

use super::*;

#[test]
fn duplicates_are_refused_or_resolved() {
    let place = Place::new();
    let input = || place.input("in.csv", "k,v\na,1\nb,2\n\na,3\na,4\n");
    let error = place.build(&keyed("k"), input()).expect_err("a occurs three times");
    let name = place.path("in.csv").display().to_string();
    assert_eq!(
        error.message(),
        format!(
            "{name}: line 5: the key \"a\" occurs twice, first in line 2; keep one of the rows, or choose which to keep: \
             the first, the last, or all of them"
        )
    );
    assert_eq!(error.reason(), Some(Reason::KeyTwice));
    assert_eq!(place.names(), ["in.csv"]);
    for (on_duplicate, value) in [(OnDuplicate::First, "1"), (OnDuplicate::Last, "4")] {
        let options = BuildOptions { on_duplicate, raw_value: Some("v".into()), ..keyed("k") };
        let report = place.build(&options, input()).expect("resolved");
        assert_eq!((report.rows, report.duplicates_dropped), (2, 2));
        assert_eq!(look_up(&place.open(), "a").as_deref(), Some(value));
        assert_eq!(look_up(&place.open(), "b").as_deref(), Some("2"));
    }
    // By index, equal rows are different records.
    let report = place.build(&BuildOptions::default(), input()).expect("valid");
    assert_eq!(report.records, 4);
}

/// The values of `key` in a table that keeps all rows, verified if the table is authenticated.
fn all_values(snapshot: &Snapshot, key: &str) -> Option<Vec<String>> {
    let key_map = snapshot.key_map().expect("by key");
    let shape = snapshot.view().shape();
    let records = key_map.candidates(key.as_bytes()).map(|candidate| {
        let served = snapshot.view().record(candidate).expect("within");
        snapshot.layout().verified(shape, candidate, served).expect("as built")
    });
    let list = key_map.find(key.as_bytes(), records).expect("buckets")?;
    let values = decode_list(&list).expect("a list").into_iter();
    Some(values.map(|value| String::from_utf8(value.to_vec()).expect("text")).collect())
}

#[test]
fn all_rows_of_a_key_are_kept_in_their_order() {
    let place = Place::new();
    let mut rows = "k,v\na,1\nb,2\na,\na,3\n".to_owned();
    for number in 0..200 {
        rows += &format!("{},{}\n", number % 150, "x".repeat(number * 5));
    }
    for (parts, authenticate) in [(None, false), (Some(4), false), (Some(4), true)] {
        for key_map in KeyMapKind::ALL {
            let options = BuildOptions {
                key_map,
                parts,
                authenticate,
                raw_value: Some("v".into()),
                on_duplicate: OnDuplicate::All,
                ..keyed("k")
            };
            let report = place.build(&options, place.input("in.csv", &rows)).expect("valid");
            assert_eq!((report.rows, report.keys), (204, Some(152)));
            assert_eq!(report.duplicates_dropped, 0);
            assert_eq!(report.value_bytes, 3 + (0..200).sum::<u64>() * 5);
            assert_eq!(report.parts, parts.map_or(1, u64::from));
            let snapshot = place.open();
            assert_eq!(snapshot.root().is_some(), authenticate);
            let found = |key: &str| all_values(&snapshot, key);
            assert_eq!(found("a"), Some(vec!["1".into(), String::new(), "3".into()]));
            assert_eq!(found("b"), Some(vec!["2".into()]));
            assert_eq!(found("c"), None);
            for number in 0..150 {
                let further = (number + 150 < 200).then(|| "x".repeat((number + 150) * 5));
                let values: Vec<_> =
                    [Some("x".repeat(number * 5)), further].into_iter().flatten().collect();
                assert_eq!(found(&number.to_string()), Some(values));
            }
        }
    }
}

#[test]
fn values_that_are_too_long_together_are_refused_by_the_row_that_is_too_much() {
    let place = Place::new();
    let long = "x".repeat(9 << 20);
    let options =
        BuildOptions { raw_value: Some("v".into()), on_duplicate: OnDuplicate::All, ..keyed("k") };
    let rows = format!("{{\"k\":\"a\",\"v\":\"{long}\"}}\n");
    let source = place.input("in.jsonl", format!("{rows}{{\"k\":\"b\",\"v\":\"\"}}\n{rows}"));
    let error = place.build(&options, source).expect_err("too long");
    assert_eq!(error.blame(), Blame::ApiMisuse);
    for told in ["line 3", "the 2 values of the key \"a\"", "18874376 bytes together"] {
        assert!(error.message().contains(told), "{error}");
    }
}
