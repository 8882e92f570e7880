//! An owner's changes of a table, and what is refused before anything is signed.

use super::*;
use crate::build::{BuildOptions, build_table};
use crate::edit::Counts;
use crate::import::Source;
use crate::key_map::decode_list;
use crate::snapshot::ValueForm;
use privet_core::table::{MAX_RECORD_LEN, Operation};
use privet_core::{Blame, TableShape, TableUpdate};
use tempfile::TempDir;

fn built(csv: &str, options: &BuildOptions) -> (TempDir, Snapshot) {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("t.privet");
    let source = Source::reader("rows", std::io::Cursor::new(csv.to_owned()));
    let source = source.format(crate::import::Format::Csv);
    build_table(options, source, &path, &mut |_| Ok(())).expect("valid");
    (directory, Snapshot::open(&path).expect("whole"))
}

fn keyed() -> BuildOptions {
    BuildOptions {
        key: Some("name".into()),
        raw_value: Some("value".into()),
        ..BuildOptions::default()
    }
}

const PHONES: &str = "name,value\nada,1\nbob,2\ncyd,3\n";

fn key() -> PublisherKey {
    PublisherKey::generate().expect("entropy")
}

/// The table's value for `name`, according to its log.
fn value(table: &OwnedTable<'_>, name: &str) -> Option<Vec<u8>> {
    let current = table.writer.as_ref().expect("updated").table();
    let map = table.layout().records().key_map().expect("by key");
    let records = map.candidates(name.as_bytes()).map(|number| current.record(number).unwrap());
    map.find(name.as_bytes(), records).expect("whole")
}

#[test]
fn rows_become_an_epoch_and_a_compaction_keeps_it() {
    let (_directory, snapshot) = built(PHONES, &keyed());
    let secret = key();
    let publisher = secret.id();
    let mut table = OwnedTable::open(&snapshot, secret).expect("nobody's yet");
    assert_eq!((table.publisher(), table.unfolded_bytes()), (None, 0));
    assert!(!table.is_worth_compacting(0), "there is nothing to fold in");

    let mut rows = table.editor().expect("not authenticated");
    rows.delete(b"bob").expect("valid");
    rows.delete(b"nobody").expect("valid");
    rows.add(b"ada", b"9").expect("fits");
    rows.set(b"dan", b"4").expect("fits");
    let (edits, counts) = rows.finish().expect("valid");
    assert_eq!(counts, Counts { inserted: 1, replaced: 1, deleted: 1, absent: 1 });
    let identity = table.publish(&edits.expect("something changes")).expect("valid");
    assert_eq!((identity.epoch.0, table.identity()), (1, identity));
    assert_eq!(table.publisher(), Some(publisher));
    for (name, expected) in [("ada", Some("9")), ("bob", None), ("dan", Some("4"))] {
        assert_eq!(value(&table, name).as_deref(), expected.map(str::as_bytes), "{name}");
    }
    // The same rows again do not make an epoch.
    let mut rows = table.editor().expect("not authenticated");
    rows.set(b"dan", b"4").expect("fits");
    assert_eq!(rows.finish().expect("valid").0, None);

    assert!(table.is_worth_compacting(0) && !table.is_worth_compacting(u32::MAX));
    table.compact().expect("writable");
    let compacted = Snapshot::open(snapshot.path()).expect("whole");
    assert_eq!(compacted.identity(), identity);
}

#[test]
fn all_values_of_a_key_go_together() {
    let options = BuildOptions { on_duplicate: crate::build::OnDuplicate::All, ..keyed() };
    let (_directory, snapshot) = built("name,value\nada,1\nada,2\nbob,3\n", &options);
    let mut table = OwnedTable::open(&snapshot, key()).expect("nobody's yet");
    let mut rows = table.editor().expect("not authenticated");
    for (name, value) in [("ada", "5"), ("cyd", "6"), ("ada", "7")] {
        rows.add(name.as_bytes(), value.as_bytes()).expect("fits");
    }
    rows.end_rows().expect("fits");
    rows.add(b"cyd", b"8").expect("fits");
    let (edits, counts) = rows.finish().expect("valid");
    assert_eq!(counts, Counts { inserted: 1, replaced: 2, ..Counts::default() });
    table.publish(&edits.expect("something changes")).expect("valid");
    let values = |name: &str| {
        let held = value(&table, name).expect("there");
        decode_list(&held).expect("whole").into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    assert_eq!(values("ada"), [b"5", b"7"]);
    assert_eq!(values("cyd"), [b"8"]);
}

#[test]
fn an_owner_sees_what_a_key_has() {
    let (_directory, snapshot) = built(PHONES, &keyed());
    let mut table = OwnedTable::open(&snapshot, key()).expect("nobody's yet");
    let values = |table: &OwnedTable<'_>, key: &[u8]| table.values_of(key).expect("whole");
    assert_eq!(values(&table, b"ada"), [b"1"]);
    assert_eq!(values(&table, b"eve"), Vec::<Vec<u8>>::new());
    let mut rows = table.editor().expect("not authenticated");
    rows.set(b"ada", b"9").expect("fits");
    assert_eq!(values(&table, b"ada"), [b"1"], "nothing is published yet");
    let (edits, _) = rows.finish().expect("valid");
    table.publish(&edits.expect("something changes")).expect("valid");
    assert_eq!(values(&table, b"ada"), [b"9"]);

    let options = BuildOptions { on_duplicate: crate::build::OnDuplicate::All, ..keyed() };
    let (_directory, snapshot) = built("name,value\nada,1\nada,2\nbob,3\n", &options);
    let table = OwnedTable::open(&snapshot, key()).expect("nobody's yet");
    assert_eq!(values(&table, b"ada"), [b"1", b"2"]);

    let options = BuildOptions { key: None, ..keyed() };
    let (_directory, snapshot) = built(PHONES, &options);
    let table = OwnedTable::open(&snapshot, key()).expect("nobody's yet");
    assert_eq!(values(&table, b"2"), [b"3"]);
    for number in ["3", "-1", "ada", ""] {
        assert_eq!(values(&table, number.as_bytes()), Vec::<Vec<u8>>::new(), "{number}");
    }

    let options = BuildOptions { authenticate: true, ..keyed() };
    let (_directory, snapshot) = built(PHONES, &options);
    let table = OwnedTable::open(&snapshot, key()).expect("nobody's yet");
    assert_eq!(table.values_of(b"ada").expect_err("not updated").blame(), Blame::ApiMisuse);
}

#[test]
fn nobody_else_continues_a_table_and_no_history_is_begun_twice() {
    let (_directory, snapshot) = built(PHONES, &keyed());
    let secret = key();
    let publish = |table: &mut OwnedTable<'_>| {
        let mut rows = table.editor().expect("not authenticated");
        rows.delete(b"ada").expect("valid");
        let (edits, _) = rows.finish().expect("valid");
        table.publish(&edits.expect("something changes")).expect("valid")
    };
    let mut table = OwnedTable::open(&snapshot, secret).expect("nobody's yet");
    publish(&mut table);
    drop(table);
    let other = OwnedTable::open(&snapshot, key()).err().expect("another publisher");
    assert_eq!(other.blame(), Blame::ApiMisuse);

    // The table file has epochs in it, and its log is gone.
    let (_directory, snapshot) = built(PHONES, &keyed());
    let mut table = OwnedTable::open(&snapshot, key()).expect("nobody's yet");
    publish(&mut table);
    table.compact().expect("writable");
    let compacted = Snapshot::open(snapshot.path()).expect("whole");
    std::fs::remove_file(log_path(compacted.path())).expect("it is there");
    let lost = OwnedTable::open(&compacted, key()).err().expect("it cannot be continued");
    assert_eq!(lost.blame(), Blame::ApiMisuse);
    assert!(lost.message().contains("bring it back"), "{lost}");
}

#[test]
fn what_no_client_takes_is_never_signed() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("t.privet");
    let shape = TableShape::new(1, MAX_RECORD_LEN).expect("valid");
    let layout = crate::IndexLayout::for_lengths(MAX_RECORD_LEN, MAX_RECORD_LEN);
    let plan = crate::snapshot::SnapshotPlan {
        id: privet_core::TableId([1; 16]),
        epoch: privet_core::Epoch(0),
        shape,
        layout: crate::RecordLayout::Index(layout).into(),
        key_column: None,
        until_column: None,
        value_form: ValueForm::Raw("value".into()),
    };
    let mut writer = crate::snapshot::SnapshotWriter::create(&path, plan).expect("writable");
    writer.write_record(&vec![0; MAX_RECORD_LEN as usize]).expect("in order");
    writer.finish().expect("complete");
    let snapshot = Snapshot::open(&path).expect("whole");

    // 15 records of 16 MiB are less than 256 MiB, and 16 more, with what else an epoch has.
    let added = |records: usize| {
        let record = || Operation::Add { record: vec![0; MAX_RECORD_LEN as usize] };
        let update = TableUpdate::new(shape, (0..records).map(|_| record()).collect());
        TableEdits { update: update.expect("valid"), layout: None }
    };
    check_can_be_sent(&added(15).update, None).expect("clients take it");
    let mut table = OwnedTable::open(&snapshot, key()).expect("nobody's yet");
    let refused = table.publish(&added(16)).expect_err("no client takes it");
    assert_eq!(refused.blame(), Blame::ApiMisuse);
    assert!(refused.message().contains("make several updates"), "{refused}");
    assert!(!log_path(&path).exists(), "nothing was signed, so nobody is the publisher");

    // Also where there is a log, and by the writer itself.
    let secret = key();
    let mut writer = LogWriter::create(&log_path(&path), &snapshot, secret.id()).expect("none yet");
    let refused = writer.append(&secret, &added(16).update, None).expect_err("no client takes it");
    assert_eq!(refused.blame(), Blame::ApiMisuse);
    assert_eq!(writer.log().current().epoch.0, 0);
    let one = added(1);
    writer.append(&secret, &one.update, None).expect("it goes on");
}
