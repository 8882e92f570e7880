mod authenticated;
mod duplicates;
mod inputs;
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
    assert_eq!(report.layout_bytes, snapshot.layout_bytes().len() as u64);
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
        assert_eq!(report.key_map, Some(key_map.name()));
        for n in 0..500 {
            let value = look_up(&snapshot, &n.to_string());
            assert_eq!(value.as_deref(), Some(format!("{{\"x\":{n}}}").as_str()));
        }
        assert_eq!(look_up(&snapshot, "500"), None);
    }
    assert_eq!(BuildOptions::default().key_map, KeyMapKind::Buckets);
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
fn long_values_are_refused() {
    let place = Place::new();
    let options = BuildOptions { max_value: Some(5), raw_value: Some("v".into()), ..keyed("k") };
    let input = || place.input("in.csv", "k,v\na,12345\nlong one,123456\n");
    place.build(&options, input()).expect_err("too long");
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
        (keyed("k"), "in.csv", "k,v\na,1\nb\n", "is a comma unquoted or a quote missing?"),
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
    let by_number = place.build(&BuildOptions::default(), source("a,1\n,2\n"));
    assert_eq!(by_number.expect_err("no key column").reason(), Some(Reason::NoKeyColumn));
}

#[test]
fn the_shape_of_the_keys_is_told() {
    let place = Place::new();
    let rows = "k,v\nab,1\nC ,2\nab,3\n";
    let options = BuildOptions { on_duplicate: OnDuplicate::First, ..keyed("k") };
    let report = place.build(&options, place.input("in.csv", rows)).expect("valid");
    let shape = report.key_shape.expect("by key");
    assert_eq!((shape.shortest, shape.longest, shape.spaced), (2, 2, 1));
    assert_eq!(shape.first, ["\"ab\"", "\"C \""]);
    assert_eq!(shape.characters, "letters of both cases and spaces");
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
