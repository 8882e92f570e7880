//! Tables whose records carry their proofs.

use super::*;
use crate::authentication::path_len;

/// The value of `key` in a table that may be authenticated, verified as a client does it.
fn look_up_verified(snapshot: &Snapshot, key: &str) -> Option<String> {
    let key_map = snapshot.key_map().expect("by key");
    let shape = snapshot.view().shape();
    let records = key_map.candidates(key.as_bytes()).map(|candidate| {
        let served = snapshot.view().record(candidate).expect("within");
        snapshot.layout().verified(shape, candidate, served).expect("as built")
    });
    let value = key_map.find(key.as_bytes(), records).expect("buckets")?;
    Some(String::from_utf8(value).expect("text"))
}

#[test]
fn every_record_of_an_authenticated_table_by_key_is_verified() {
    let place = Place::new();
    for keys in [1, 2, 3, 40, 500] {
        let rows: String = (0..keys).map(|n| format!("{{\"n\":\"{n}\",\"x\":{n}}}\n")).collect();
        for key_map in KeyMapKind::ALL {
            let options = BuildOptions { key_map, authenticate: true, ..keyed("n") };
            let report = place.build(&options, place.input("in.jsonl", &rows)).expect("valid");
            let snapshot = place.open();
            let shape = snapshot.view().shape();
            assert!(report.root.is_some() && report.root == snapshot.root());
            assert_eq!(report.path_len, path_len(shape.records()));
            let key_map = snapshot.key_map().expect("by key");
            assert_eq!(report.load, key_map.load());
            assert_eq!(report.record_len, key_map.record_len() + report.path_len);
            assert_eq!(report.record_len, shape.record_len());
            for n in 0..keys {
                let value = look_up_verified(&snapshot, &n.to_string());
                assert_eq!(value, Some(format!("{{\"x\":{n}}}")));
            }
            assert_eq!(look_up_verified(&snapshot, "nobody"), None);
            for index in 0..shape.records() {
                let served = snapshot.view().record(index).expect("within");
                snapshot.layout().verified(shape, index, served).expect("as built");
            }
        }
    }
}

#[test]
fn an_authenticated_table_by_index_gives_its_values_back() {
    let place = Place::new();
    for rows in [1u64, 2, 7, 8, 9] {
        let values: Vec<String> = (0..rows).map(|row| "x".repeat(row as usize)).collect();
        let lines: String = values.iter().map(|value| format!("{{\"v\":\"{value}\"}}\n")).collect();
        let options = BuildOptions {
            raw_value: Some("v".into()),
            authenticate: true,
            ..BuildOptions::default()
        };
        let report = place.build(&options, place.input("in.jsonl", lines)).expect("valid");
        let snapshot = place.open();
        let shape = snapshot.view().shape();
        let RecordLayout::Index(index) = snapshot.layout().records() else {
            panic!("not by index")
        };
        let values_len: u64 = (0..rows).sum();
        assert_eq!(report.load, values_len as f64 / (rows * rows) as f64);
        assert_eq!(shape.record_len(), rows + path_len(rows));
        for (row, value) in (0..).zip(&values) {
            let served = snapshot.view().record(row).expect("within");
            let record = snapshot.layout().verified(shape, row, served).expect("as built");
            assert_eq!(index.value_in(record).expect("well-formed"), value.as_bytes());
        }
    }
}

#[test]
fn the_root_follows_from_the_contents_and_from_nothing_else() {
    let place = Place::new();
    let root = |rows: &str, id: u8, seed: u8| {
        let options = BuildOptions { authenticate: true, ..keyed("k") };
        let selection = selection(&options).expect("valid");
        let source = place.input("in.csv", rows);
        let kept =
            KeptRows::read(vec![source], &selection, &options, &mut |_| Ok(())).expect("valid");
        let (id, seed) = (TableId([id; 16]), PublicSeed::from_bytes([seed; 32]));
        let output = place.path("out.privet");
        let report = write_table(&kept, selection, &options, id, seed, &output, &mut |_| Ok(()));
        report.expect("writable").root.expect("authenticated")
    };
    let root_of = root("k,v\na,1\nb,2\n", 1, 2);
    assert_eq!(root("k,v\na,1\nb,2\n", 9, 2), root_of);
    assert_ne!(root("k,v\na,1\nb,3\n", 1, 2), root_of);
    assert_ne!(root("k,v\na,1\nb,2\n", 1, 3), root_of);
}

/// The tree over the records does not cover the stash, through which a server could give a key
/// another value.
#[test]
fn a_value_in_the_stash_changes_the_root() {
    let place = Place::new();
    let long = |byte: &str| {
        let rows: String = (0..64).map(|n| format!("{n},{n}\n")).collect();
        format!("k,v\n{rows}long,{}\n", byte.repeat(5000))
    };
    let options = BuildOptions { authenticate: true, ..keyed("k") };
    let selection = selection(&options).expect("valid");
    let mut roots = Vec::new();
    for contents in [long("x"), long("y")] {
        let source = place.input("in.csv", contents);
        let kept =
            KeptRows::read(vec![source], &selection, &options, &mut |_| Ok(())).expect("valid");
        let (id, seed) = (TableId([1; 16]), PublicSeed::from_bytes([2; 32]));
        let output = place.path("out.privet");
        write_table(&kept, selection.clone(), &options, id, seed, &output, &mut |_| Ok(()))
            .expect("writable");
        let snapshot = place.open();
        let merkle_root = snapshot.layout().authentication().expect("authenticated").0;
        roots.push((merkle_root, snapshot.root()));
    }
    assert_eq!(roots[0].0, roots[1].0, "the records are the same");
    assert_ne!(roots[0].1, roots[1].1);
}

#[test]
fn records_too_wide_for_their_paths_are_refused() {
    let place = Place::new();
    let value_len = privet_core::table::MAX_RECORD_LEN as usize - 30;
    let rows = format!("v\n{}\nx\n", "y".repeat(value_len));
    let options = BuildOptions { raw_value: Some("v".into()), ..BuildOptions::default() };
    place.build(&options, place.input("in.csv", &rows)).expect("wide, but not too wide");
    let before = place.names();
    let authenticate = BuildOptions { authenticate: true, ..options };
    let error = place.build(&authenticate, place.input("in.csv", &rows)).expect_err("too wide");
    assert_eq!(error.blame(), Blame::ApiMisuse);
    assert!(error.message().starts_with("with a path of 32 bytes behind each record: "), "{error}");
    assert_eq!(place.names(), before);
}
