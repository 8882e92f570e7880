mod keys;

use super::*;
use crate::import::tests::file_of_texts;
use crate::key_map::{KeyMap, decode_list};
use crate::snapshot::Snapshot;
use crate::values::{ValueColumn, ValueType};
use privet_core::{Blame, Reason};
use std::fs;
use std::io::Cursor;
use std::path::PathBuf;
use tempfile::TempDir;

/// A directory for one test, with inputs and outputs.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(TempDir::new().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn input(&self, name: &str, contents: impl AsRef<[u8]>) -> Source {
        fs::write(self.path(name), contents).expect("writable");
        Source::path(self.path(name))
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("readable");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn build(&self, options: &BuildOptions, source: Source) -> Result<BuildReport> {
        build_table(options, source, &self.path("out.privet"), &mut |_| Ok(()))
    }

    fn open(&self) -> Snapshot {
        let snapshot = Snapshot::open(&self.path("out.privet")).expect("just built");
        snapshot.verify(|_, _| {}).expect("just built");
        snapshot
    }
}

fn keyed(key: &str) -> BuildOptions {
    BuildOptions { key: Some(key.into()), ..BuildOptions::default() }
}

fn look_up(snapshot: &Snapshot, key: &str) -> Option<String> {
    let key_map = snapshot.key_map().expect("by key");
    let records = key_map
        .candidates(key.as_bytes())
        .map(|candidate| snapshot.view().record(candidate).expect("within"));
    let value = key_map.find(key.as_bytes(), records).expect("buckets")?;
    Some(String::from_utf8(value).expect("text"))
}

fn value_at(snapshot: &Snapshot, row: u64) -> Vec<u8> {
    let RecordLayout::Index(index) = snapshot.layout().records() else { panic!("not by index") };
    index.value_in(snapshot.view().record(row).expect("within")).expect("well-formed").to_vec()
}

#[test]
fn a_table_by_key_gives_its_values_back() {
    let place = Place::new();
    let source = place.input("in.jsonl", "{\"n\":\"a\",\"x\":1.10}\n{\"x\":[2, 3],\"n\":\"b\"}\n");
    let report = place.build(&keyed("n"), source).expect("valid");
    let snapshot = place.open();
    assert_eq!(look_up(&snapshot, "a").as_deref(), Some("{\"x\":1.10}"));
    assert_eq!(look_up(&snapshot, "b").as_deref(), Some("{\"x\":[2,3]}"));
    assert_eq!(look_up(&snapshot, "c"), None);
    assert_eq!(snapshot.identity().digest, report.digest);
    assert_eq!(snapshot.identity().id, report.id);
    assert_eq!((report.rows, report.value_bytes), (2, 21));
    assert_eq!(report.file_bytes, snapshot.file_bytes());
    assert_eq!(report.key_map.expect("by key").bytes, snapshot.layout_bytes().len() as u64);
    assert_eq!(snapshot.header().key_column.as_deref(), Some("n"));
    assert_eq!(place.names(), ["in.jsonl", "out.privet"]);
}

#[test]
fn a_table_has_the_key_map_that_was_asked_for() {
    let place = Place::new();
    let rows: String = (0..500).map(|n| format!("{{\"n\":\"{n}\",\"x\":{n}}}\n")).collect();
    for key_map in KeyMapKind::ALL {
        let options = BuildOptions { key_map, ..keyed("n") };
        let report = place.build(&options, place.input("in.jsonl", &rows)).expect("valid");
        let snapshot = place.open();
        assert_eq!(snapshot.key_map().expect("by key").kind(), key_map);
        assert_eq!(report.key_map.expect("by key").kind, key_map);
        for n in 0..500 {
            let value = look_up(&snapshot, &n.to_string());
            assert_eq!(value.as_deref(), Some(format!("{{\"x\":{n}}}").as_str()));
        }
        assert_eq!(look_up(&snapshot, "500"), None);
    }
    assert_eq!(BuildOptions::default().key_map, KeyMapKind::Buckets);
}

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
            let authentication = report.authentication.expect("authenticated");
            assert_eq!(Some(authentication.root), snapshot.root());
            assert_eq!(authentication.path_len, path_len(shape.records()));
            let key_map = snapshot.key_map().expect("by key");
            assert_eq!(report.load, key_map.load());
            assert_eq!(report.record_len, key_map.record_len() + authentication.path_len);
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
        report.expect("writable").authentication.expect("authenticated").root
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
        let merkle_root = snapshot.layout().authentication().expect("authenticated").merkle_root();
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

#[test]
fn a_table_by_index_gives_its_values_back() {
    let place = Place::new();
    let raw = BuildOptions { raw_value: Some("v".into()), ..BuildOptions::default() };
    for (values, prefix_bytes, record_len) in [
        (vec!["x"], 0, 1),
        (vec![""], 1, 1),
        (vec!["ab", "cd"], 0, 2),
        (vec!["ab", "", "abc"], 1, 4),
    ] {
        let rows: String = values.iter().map(|value| format!("{{\"v\":\"{value}\"}}\n")).collect();
        let report = place.build(&raw, place.input("in.jsonl", rows)).expect("valid");
        let snapshot = place.open();
        let RecordLayout::Index(index) = snapshot.layout().records() else {
            panic!("not by index")
        };
        assert_eq!(
            (index.prefix_bytes(), snapshot.view().shape().record_len()),
            (prefix_bytes, record_len)
        );
        assert_eq!(report.records, values.len() as u64);
        for (row, value) in values.iter().enumerate() {
            assert_eq!(value_at(&snapshot, row as u64), value.as_bytes());
        }
    }
    place.build(&BuildOptions::default(), place.input("in.csv", "a,b\n1,2\n3,4\n")).expect("valid");
    assert_eq!(value_at(&place.open(), 1), br#"{"a":"3","b":"4"}"#);
}

#[test]
fn all_formats_give_the_same_table() {
    let place = Place::new();
    let rows: Vec<[String; 3]> = (0..300)
        .map(|number| {
            [format!("key {number}"), "é\"\n".repeat(number % 9), format!("{}", number * number)]
        })
        .collect();
    let mut csv = ::csv::Writer::from_writer(Vec::new());
    csv.write_record(["k", "a", "b"]).expect("in memory");
    rows.iter().for_each(|row| csv.write_record(row).expect("in memory"));
    let json = |row: &[String; 3]| {
        serde_json::json!({"k": row[0], "a": row[1], "b": row[2]}).to_string() + "\n"
    };
    let column = |column: usize| rows.iter().map(|row| row[column].as_str()).collect();
    let parquet = file_of_texts(&[("k", column(0)), ("a", column(1)), ("b", column(2))]);

    let inputs = [
        place.input("in.csv", csv.into_inner().expect("in memory")),
        place.input("in.jsonl", rows.iter().map(json).collect::<String>()),
        place.input("in.parquet", parquet),
    ];
    let mut files = Vec::new();
    for source in inputs {
        let options = keyed("k");
        let selection = selection(&options).expect("valid");
        let kept =
            KeptRows::read(vec![source], &selection, &options, &mut |_| Ok(())).expect("valid");
        let (id, seed) = (TableId([1; 16]), PublicSeed::from_bytes([2; 32]));
        let output = place.path("out.privet");
        write_table(&kept, selection, &options, id, seed, &output, &mut |_| Ok(()))
            .expect("writable");
        assert_eq!(
            look_up(&place.open(), "key 2").as_deref(),
            Some(r#"{"a":"é\"\né\"\n","b":"4"}"#)
        );
        let snapshot = place.open();
        let mut records = vec![0; snapshot.identity().shape.bytes() as usize];
        snapshot.read_records(0, &mut records).expect("readable");
        let layout = snapshot.layout();
        let keys = layout.records().key_map().map(KeyMap::encode);
        files.push((records, keys, layout.values().cloned()));
    }
    assert!(files[0] == files[2]);
    // Each line of JSON Lines has the columns and types that it has.
    assert!((&files[0].0, &files[0].1) == (&files[1].0, &files[1].1));
    let text = |name: &str| ValueColumn { name: name.to_owned(), of: ValueType::Text };
    let described = Values { is_raw: false, columns: vec![text("a"), text("b")] };
    assert_eq!((&files[0].2, &files[1].2), (&Some(described), &None));
}

#[test]
fn two_builds_differ_in_their_seeds_and_ids() {
    let place = Place::new();
    let build = || place.build(&keyed("k"), place.input("in.csv", "k,v\na,1\n")).expect("valid");
    let (first, second) = (build(), build());
    assert_ne!(first.id, second.id);
    assert_ne!(first.digest, second.digest);
}

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
            let of_keys = report.key_map.expect("by key");
            assert_eq!((report.rows, of_keys.keys, report.duplicates_dropped), (204, 152, 0));
            assert_eq!(report.value_bytes, 3 + (0..200).sum::<u64>() * 5);
            assert_eq!(of_keys.parts, parts.map_or(1, u64::from));
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

#[test]
fn long_values_are_refused() {
    let place = Place::new();
    let options = BuildOptions { max_value: Some(5), raw_value: Some("v".into()), ..keyed("k") };
    let input = || place.input("in.csv", "k,v\na,12345\nlong one,123456\n");
    let name = place.path("in.csv").display().to_string();
    let error = place.build(&options, input()).expect_err("too long");
    let message = "line 3: the value of the key \"long one\" has 6 bytes, and the limit is 5; raise the limit or shorten the value";
    assert_eq!(error.message(), format!("{name}: {message}"));
    let error =
        place.build(&BuildOptions { key: None, ..options.clone() }, input()).expect_err("too long");
    let message =
        "line 3: the value has 6 bytes, and the limit is 5; raise the limit or shorten the value";
    assert_eq!(error.message(), format!("{name}: {message}"));
    place.build(&BuildOptions { max_value: Some(6), ..options }, input()).expect("long enough");

    let huge = format!("k,v\na,{}\n", "x".repeat(1 << 24));
    let error = place
        .build(&keyed("k"), place.input("huge.csv", huge))
        .expect_err("no record is that wide");
    assert!(
        error.message().ends_with("and the limit is 16777200; no table can hold it"),
        "{error}"
    );
}

#[test]
fn the_widest_value_of_all_still_fits() {
    let place = Place::new();
    let value = "x".repeat((1 << 24) - 16);
    for key in [Some("k".to_owned()), None] {
        let options = BuildOptions { raw_value: Some("v".into()), key, ..BuildOptions::default() };
        place
            .build(&options, place.input("in.csv", format!("k,v\na,{value}\nb,1\n")))
            .expect("fits");
        place.open();
    }
}

#[test]
fn after_an_error_everything_is_as_it_was() {
    let place = Place::new();
    fs::write(place.path("out.privet"), "what was there before").expect("writable");
    let both =
        BuildOptions { value_columns: vec!["v".into()], raw_value: Some("v".into()), ..keyed("k") };
    let twice = BuildOptions { value_columns: vec!["v".into(), "v".into()], ..keyed("k") };
    for (options, name, contents, message) in [
        (keyed("k"), "in.csv", "k,v\n", "it has no rows; a table needs at least one"),
        (keyed("k"), "in.jsonl", "", "it has no rows; a table needs at least one"),
        (keyed("k"), "in.jsonl", "\n\n", "it has no rows; a table needs at least one"),
        (
            keyed("x"),
            "in.csv",
            "k,v\na,1\n",
            r#"line 1: there is no column "x"; the columns are "k", "v""#,
        ),
        (keyed("k"), "in.csv", "k,v\na,1\nb\n", "is a comma unquoted or a quote missing?"),
        (
            keyed("k"),
            "in.txt",
            "k",
            "its name does not tell its format; say which it has: csv, tsv, jsonl or parquet",
        ),
        (
            both,
            "in.csv",
            "k,v\na,1\n",
            "is either one column's bytes or a JSON object of several columns; choose one",
        ),
        (twice, "in.csv", "k,v\na,1\n", "the value column \"v\" is named twice"),
    ] {
        let error = place.build(&options, place.input(name, contents)).expect_err(message);
        assert_eq!(error.blame(), Blame::ApiMisuse);
        assert!(error.message().ends_with(message), "{error}");
        fs::remove_file(place.path(name)).expect("there");
        assert_eq!(place.names(), ["out.privet"]);
        assert_eq!(fs::read(place.path("out.privet")).expect("readable"), b"what was there before");
    }
    let output = place.path("no/such/directory/out.privet");
    let source = place.input("in.csv", "k,v\na,1\n");
    let error =
        build_table(&keyed("k"), source, &output, &mut |_| Ok(())).expect_err("no directory");
    assert_eq!(error.blame(), Blame::ApiMisuse);
    let error =
        build_table(&keyed("k"), Source::path(place.path("in.csv")), place.0.path(), &mut |_| {
            Ok(())
        });
    assert_eq!(error.expect_err("a directory").blame(), Blame::ApiMisuse);
    assert_eq!(place.names(), ["in.csv", "out.privet"]);
}

#[test]
fn rows_without_a_key_may_be_skipped() {
    use crate::import::OnEmptyKey;
    let place = Place::new();
    let source =
        |rows: &str| place.input("in.csv", format!("k,v\n{rows}")).on_empty_key(OnEmptyKey::Skip);
    let report = place.build(&keyed("k"), source("a,1\n,2\nb,3\n,4\n")).expect("valid");
    assert_eq!((report.rows, report.empty_keys_skipped), (2, 2));
    let error = place.build(&keyed("k"), source(",2\n,4\n")).expect_err("no keys");
    assert!(
        error.message().ends_with(
            "none of the rows, 2 in all, has a key; a table needs at least one that has"
        ),
        "{error}"
    );
    let by_number = place.build(&BuildOptions::default(), source("a,1\n,2\n")).expect("valid");
    assert_eq!((by_number.rows, by_number.empty_keys_skipped), (2, 0));
}

/// What the table has for each of these keys.
fn values(place: &Place, keys: &[&str]) -> Vec<Option<String>> {
    let snapshot = place.open();
    keys.iter().map(|key| look_up(&snapshot, key)).collect()
}

fn some(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|value| Some((*value).to_owned())).collect()
}

#[test]
fn several_inputs_make_one_table() {
    let place = Place::new();
    let build = |options: &BuildOptions, sources: Vec<Source>| {
        let mut told = Vec::new();
        let report =
            build_table_from(options, sources, &place.path("out.privet"), &mut |progress| {
                told.push(progress);
                Ok(())
            });
        report.map(|report| (report, told))
    };
    let sources = || {
        vec![
            place.input("a.csv", "k,v,w\na,1,2\nb,3,4\n"),
            place.input("b.csv", "w,k,v\n6,c,5\n"),
            place.input("none.csv", "w,k,v\n"),
            place.input("c.tsv", "v\tw\tk\n7\t8\td\n"),
        ]
    };
    let (report, told) = build(&keyed("k"), sources()).expect("valid");
    assert_eq!(report.rows, 4);
    let expected = [r#"{"v":"1","w":"2"}"#, r#"{"v":"5","w":"6"}"#, r#"{"v":"7","w":"8"}"#];
    assert_eq!(values(&place, &["a", "c", "d"]), some(&expected));
    // Progress counts the bytes of all inputs.
    assert!(told.is_sorted_by_key(|progress| (progress.stage as u8, progress.bytes_done)));
    let read = told.iter().rfind(|progress| progress.stage == Stage::Reading).expect("reading");
    assert_eq!((read.bytes_done, read.bytes_total), (48, Some(48)));

    // In a table by index, the rows of an input are numbered after those of the input before.
    let by_number = BuildOptions { raw_value: Some("k".into()), ..BuildOptions::default() };
    build(&by_number, sources()).expect("valid");
    let snapshot = place.open();
    let records: Vec<_> = (0..4).map(|row| snapshot.view().record(row).expect("there")).collect();
    assert_eq!(records, [b"a", b"b", b"c", b"d"]);

    let json = |rows: &str| {
        Source::reader("json", Cursor::new(rows.to_owned()))
            .format(crate::import::Format::JsonLines)
    };
    let lines = || vec![json("{\"k\":\"a\",\"v\":1}"), json("{\"k\":\"b\",\"w\":2}")];
    build(&keyed("k"), lines()).expect("each row says what it has");
    assert_eq!(values(&place, &["a", "b"]), some(&[r#"{"v":1}"#, r#"{"w":2}"#]));

    let only_v = BuildOptions { value_columns: vec!["v".into()], ..keyed("k") };
    let more = || vec![place.input("a.csv", "k,v\na,1\n"), place.input("b.csv", "x,v,k\n0,2,b\n")];
    build(&only_v, more()).expect("other columns do not matter");
    assert_eq!(values(&place, &["a", "b"]), some(&[r#"{"v":"1"}"#, r#"{"v":"2"}"#]));

    let parquet = |columns: [(&str, &str); 3]| {
        let columns = columns.map(|(name, value)| (name, vec![value]));
        Source::reader("parquet", Cursor::new(file_of_texts(&columns)))
            .format(crate::import::Format::Parquet)
    };
    let first = [("k", "a"), ("v", "1"), ("w", "2")];
    let second = [("w", "4"), ("v", "3"), ("k", "b")];
    build(&keyed("k"), vec![parquet(first), parquet(second)]).expect("valid");
    let expected = [r#"{"v":"1","w":"2"}"#, r#"{"v":"3","w":"4"}"#];
    assert_eq!(values(&place, &["a", "b"]), some(&expected));

    let refused = |sources, message: &str| {
        let message = message.replace("[a.csv]", &place.path("a.csv").display().to_string());
        let error = build(&keyed("k"), sources).expect_err(&message);
        assert_eq!(error.blame(), Blame::ApiMisuse);
        assert!(error.message().contains(&message), "{error}");
    };
    for (a, b, message) in [
        (
            "k,v\na,1\n",
            "x,v,k\n0,2,b\n",
            r#"b.csv: line 1: it has a column "x", and [a.csv] has none; the inputs of a table have the same columns"#,
        ),
        (
            "k,v,w\na,1,2\n",
            "k,v\nb,1\n",
            r#"b.csv: line 1: there is no column "w"; the columns are "k", "v""#,
        ),
        (
            "k,v\nb,0\na,1\n",
            "k,v\nc,2\na,3\n",
            r#"b.csv: line 3: the key "a" occurs twice, first in [a.csv], line 3; keep one of the rows, or choose which to keep: the first, the last, or all of them"#,
        ),
        (
            "k,v\nb,0\n",
            "k,v\na,2\na,3\n",
            r#"b.csv: line 3: the key "a" occurs twice, first in line 2; keep one of the rows, or choose which to keep: the first, the last, or all of them"#,
        ),
        (
            "k,v\nb,0\n",
            "k,v\na,2,3\n",
            "b.csv: line 2: this row has 3 cells and the header has 2 columns; is a comma unquoted or a quote missing?",
        ),
        ("k,v\n", "k,v\n", "[a.csv] and 1 more: they have no rows; a table needs at least one"),
    ] {
        refused(vec![place.input("a.csv", a), place.input("b.csv", b)], message);
    }
    let csv = || place.input("a.csv", "k,v\na,1\n");
    refused(
        vec![csv(), json("{\"k\":\"b\"}")],
        "json is JSON Lines, and [a.csv] is CSV; build a table from inputs of one format",
    );
    refused(vec![csv(), Source::path("no/such.csv")], "no/such.csv: cannot open it");
    refused(vec![], "there is no input; a table needs at least one row");
}

#[test]
fn types_are_found_out_from_all_rows_of_all_inputs() {
    use crate::import::{ColumnType, Format, OnEmptyKey};
    let place = Place::new();
    let first = "k,n,b,zip,price,long,none,mixed\na,1,true,007,1.50,1234567890123456,,1\nb,-0.5,,8,2,1,,2\n";
    let second = "mixed,k,n,b,zip,price,long,none\nx,c,,false,9,3,2,\n";
    let auto = BuildOptions { guess_types: true, ..keyed("k") };
    // From files, and from what can be read only once.
    let sources: [fn(&Place, &str, &str) -> Source; 2] = [
        |place, name, rows| place.input(name, rows),
        |_, name, rows| Source::reader(name, Cursor::new(rows.to_owned())).format(Format::Csv),
    ];
    for source in sources {
        let build = |options: &BuildOptions, sources: Vec<Source>| {
            build_table_from(options, sources, &place.path("out.privet"), &mut |_| Ok(()))
        };
        let both = || vec![source(&place, "a.csv", first), source(&place, "b.csv", second)];
        let report = build(&auto, both()).expect("valid");
        let typed = |name: &str, one| (name.to_owned(), one);
        assert_eq!(report.types, [typed("n", ColumnType::Number), typed("b", ColumnType::Boolean)]);
        let expected = [
            r#"{"n":1,"b":true,"zip":"007","price":"1.50","long":"1234567890123456","none":"","mixed":"1"}"#,
            r#"{"n":-0.5,"b":null,"zip":"8","price":"2","long":"1","none":"","mixed":"2"}"#,
            r#"{"n":null,"b":false,"zip":"9","price":"3","long":"2","none":"","mixed":"x"}"#,
        ];
        assert_eq!(values(&place, &["a", "b", "c"]), some(&expected));
        // Types that are given win over types that are guessed.
        let said = vec![typed("n", ColumnType::Text), typed("price", ColumnType::Number)];
        let options = BuildOptions { types: said.clone(), ..auto.clone() };
        let report = build(&options, both()).expect("valid");
        assert_eq!(
            report.types,
            [typed("price", ColumnType::Number), typed("b", ColumnType::Boolean)]
        );
        // Without types and without guessing, all columns are text.
        let report = build(&keyed("k"), both()).expect("valid");
        assert_eq!(report.types, []);
        assert_eq!(
            values(&place, &["c"]),
            some(&[
                r#"{"n":"","b":"false","zip":"9","price":"3","long":"2","none":"","mixed":"x"}"#
            ])
        );
        // A row that is skipped says nothing.
        let total =
            vec![source(&place, "a.csv", "k,n\na,1\n,sum\n").on_empty_key(OnEmptyKey::Skip)];
        let report = build(&auto, total).expect("valid");
        assert_eq!(report.types, [typed("n", ColumnType::Number)]);
        let error = build(&auto, vec![source(&place, "a.csv", "k,n\na,1,2\n")]).expect_err("cells");
        assert!(error.message().contains("a.csv: line 2: this row has 3 cells"), "{error}");
    }
    let by_json =
        Source::reader("json", Cursor::new("{\"k\":\"a\",\"v\":\"1\"}")).format(Format::JsonLines);
    place.build(&auto, by_json).expect("it has types of its own");
    assert_eq!(values(&place, &["a"]), some(&[r#"{"v":"1"}"#]));
    let raw = BuildOptions { raw_value: Some("v".into()), ..auto };
    place.build(&raw, place.input("a.csv", "k,v\na,1\n")).expect("values are text");
    assert_eq!(values(&place, &["a"]), some(&["1"]));
}

#[test]
fn the_shape_of_the_keys_is_told() {
    let place = Place::new();
    let rows = "k,v\nab,1\nC ,2\nab,3\n";
    let options = BuildOptions { on_duplicate: OnDuplicate::First, ..keyed("k") };
    let report = place.build(&options, place.input("in.csv", rows)).expect("valid");
    let shape = report.key_map.expect("by key").shape;
    assert_eq!((shape.shortest, shape.longest, shape.spaced), (2, 2, 1));
    assert_eq!(shape.first, ["\"ab\"", "\"C \""]);
    assert_eq!(shape.characters(), "letters of both cases and spaces");
}

#[test]
fn values_are_listed_without_their_keys() {
    let place = Place::new();
    let rows: String = (0..50).map(|number| format!("{number},value {number}\n")).collect();
    let csv = format!("k,v\n{rows}50,value 50\n50,value 51\n");
    let raw = BuildOptions { raw_value: Some("v".into()), ..keyed("k") };
    let all = BuildOptions { on_duplicate: OnDuplicate::All, ..raw.clone() };
    let first = BuildOptions { on_duplicate: OnDuplicate::First, ..raw.clone() };
    let cuckoo = BuildOptions { key_map: KeyMapKind::Cuckoo, ..first.clone() };
    let authenticated = BuildOptions { authenticate: true, ..first.clone() };
    let by_number = BuildOptions { key: None, ..raw.clone() };
    for (options, number) in
        [(&first, 51), (&all, 52), (&cuckoo, 51), (&authenticated, 51), (&by_number, 52)]
    {
        place.build(options, place.input("in.csv", &csv)).expect("valid");
        let snapshot = place.open();
        let shape = snapshot.identity().shape;
        let list = |count| {
            let read = |number| Ok(snapshot.view().record(number).expect("there").to_vec());
            crate::listing::first_values(snapshot.layout(), shape, count, read).expect("whole")
        };
        let expected = (0..number).map(|number| format!("value {number}").into_bytes());
        let mut values = list(1000);
        assert_eq!(list(7), values[..7], "{options:?}");
        assert_eq!(list(0), Vec::<Vec<u8>>::new());
        values.sort();
        let mut expected: Vec<_> = expected.collect();
        expected.sort();
        assert_eq!(values, expected, "{options:?}");
    }
    let parts = BuildOptions { parts: Some(2), ..first };
    place.build(&parts, place.input("in.csv", &csv)).expect("valid");
    let snapshot = place.open();
    let read = |number| Ok(snapshot.view().record(number).expect("there").to_vec());
    let shape = snapshot.identity().shape;
    let error = crate::listing::first_values(snapshot.layout(), shape, 1, read);
    assert_eq!(error.expect_err("in pieces").blame(), Blame::ApiMisuse);
}

#[test]
fn standard_input_and_other_readers_work_for_all_formats() {
    let place = Place::new();
    let parquet = file_of_texts(&[("k", vec!["a"])]);
    use crate::import::Format;
    for (format, bytes) in [
        (Format::Csv, b"k\na\n".to_vec()),
        (Format::JsonLines, b"{\"k\":\"a\"}".to_vec()),
        (Format::Parquet, parquet),
    ] {
        let source = Source::reader("standard input", Cursor::new(bytes)).format(format);
        place.build(&keyed("k"), source).expect("valid");
        assert_eq!(look_up(&place.open(), "a").as_deref(), Some("{}"));
    }
}

#[test]
fn a_build_ends_where_its_caller_stops_it_and_leaves_nothing() {
    let place = Place::new();
    let rows: String = (0..5000).map(|number| format!("{number},{number}\n")).collect();
    let output = place.path("out.privet");
    for stage in [Stage::Guessing, Stage::Reading, Stage::Packing, Stage::Hashing, Stage::Writing] {
        let source = place.input("in.csv", format!("k,v\n{rows}"));
        let options = BuildOptions { authenticate: true, guess_types: true, ..keyed("k") };
        let mut called_after = false;
        let error = build_table(&options, source, &output, &mut |progress| {
            if progress.stage as u8 > stage as u8 {
                called_after = true;
            }
            match progress.stage == stage {
                true => Err(Error::exhausted("the caller's patience")),
                false => Ok(()),
            }
        })
        .expect_err("stopped");
        assert!(error.to_string().contains("the caller's patience"), "{stage:?}: {error}");
        assert!(!called_after, "{stage:?}");
        assert_eq!(place.names(), ["in.csv"], "{stage:?}");
    }
}

#[test]
fn progress_reaches_the_end_of_each_stage() {
    let place = Place::new();
    let rows: String = (0..5000).map(|number| format!("{number},{number}\n")).collect();
    let source = place.input("in.csv", format!("k,v\n{rows}"));
    let len = fs::metadata(place.path("in.csv")).expect("there").len();
    let mut told = Vec::new();
    build_table(&keyed("k"), source, &place.path("out.privet"), &mut |progress| {
        told.push(progress);
        Ok(())
    })
    .expect("valid");
    assert!(told.is_sorted_by_key(|progress| (progress.stage as u8, progress.bytes_done)));
    let read = told.iter().rfind(|progress| progress.stage == Stage::Reading).expect("reading");
    assert_eq!((read.bytes_done, read.bytes_total), (len, Some(len)));
    assert!(told.iter().any(|progress| progress.stage == Stage::Packing));
    let written = told.last().expect("writing");
    assert_eq!((written.stage, Some(written.bytes_done)), (Stage::Writing, written.bytes_total));
}
