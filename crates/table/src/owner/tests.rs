//! An owner's changes of a table, and what is refused before anything is signed.

use super::*;
use crate::build::{BuildOptions, build_table};
use crate::edit::Counts;
use crate::import::Source;
use crate::key_map::decode_list;
use crate::snapshot::ValueForm;
use crate::update_log::earlier_log_path;
use privet_core::table::MAX_RECORD_LEN;
use privet_core::{Blame, TableShape};
use std::path::Path;
use tempfile::TempDir;

fn built(csv: &str, options: &BuildOptions) -> (TempDir, Snapshot) {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("t.privet");
    let source = Source::reader("rows", std::io::Cursor::new(csv.to_owned()));
    let source = source.format(crate::import::Format::Csv);
    build_table(options, source, &path, &mut |_| Ok(())).expect("valid");
    (directory, Snapshot::open(&path).expect("whole"))
}

/// The same, with a history that the [`publisher`] signs.
fn owned(csv: &str, options: &BuildOptions) -> (TempDir, Snapshot) {
    let (directory, snapshot) = built(csv, options);
    begin_history(snapshot.path(), publisher().id()).expect("nobody's yet");
    let snapshot = Snapshot::open(snapshot.path()).expect("whole");
    (directory, snapshot)
}

fn publisher() -> PublisherKey {
    PublisherKey::from_secret(&[5; 32])
}

fn keyed() -> BuildOptions {
    BuildOptions {
        key: Some("name".into()),
        raw_value: Some("value".into()),
        ..BuildOptions::default()
    }
}

const PHONES: &str = "name,value\nada,1\nbob,2\ncyd,3\n";

fn another() -> PublisherKey {
    PublisherKey::from_secret(&[6; 32])
}

/// The table's value for `name`, according to its log.
fn value(table: &OwnedTable<'_>, name: &str) -> Option<Vec<u8>> {
    let current = table.writer.table();
    let map = table.layout().records().key_map().expect("by key");
    let records = map.candidates(name.as_bytes()).map(|number| current.record(number).unwrap());
    map.find(name.as_bytes(), records).expect("whole")
}

#[test]
fn rows_become_an_epoch_and_a_compaction_keeps_it() {
    let (_directory, snapshot) = owned(PHONES, &keyed());
    let mut table = OwnedTable::open(&snapshot, publisher()).expect("its own");
    assert_eq!((table.publisher(), table.unfolded_bytes()), (publisher().id(), 0));
    assert!(!table.is_worth_compacting(0), "there is nothing to fold in");

    let mut rows = table.editor().expect("not authenticated");
    rows.delete(b"bob").expect("valid");
    rows.delete(b"nobody").expect("valid");
    rows.add(b"ada", b"9").expect("fits");
    rows.set(b"dan", b"4").expect("fits");
    let (edits, counts) = rows.finish().expect("valid");
    assert_eq!(counts, Counts { inserted: 1, replaced: 1, deleted: 1, absent: 1, unchanged: 0 });
    let identity = table.publish(&edits.expect("something changes")).expect("valid");
    assert_eq!((identity.epoch.0, table.identity()), (1, identity));
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
    let (_directory, snapshot) = owned("name,value\nada,1\nada,2\nbob,3\n", &options);
    let mut table = OwnedTable::open(&snapshot, publisher()).expect("its own");
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
    let (_directory, snapshot) = owned(PHONES, &keyed());
    let mut table = OwnedTable::open(&snapshot, publisher()).expect("its own");
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
    let (_directory, snapshot) = owned("name,value\nada,1\nada,2\nbob,3\n", &options);
    let table = OwnedTable::open(&snapshot, publisher()).expect("its own");
    assert_eq!(values(&table, b"ada"), [b"1", b"2"]);

    let options = BuildOptions { key: None, ..keyed() };
    let (_directory, snapshot) = owned(PHONES, &options);
    let table = OwnedTable::open(&snapshot, publisher()).expect("its own");
    assert_eq!(values(&table, b"2"), [b"3"]);
    for number in ["3", "-1", "ada", ""] {
        assert_eq!(values(&table, number.as_bytes()), Vec::<Vec<u8>>::new(), "{number}");
    }

    let options = BuildOptions { authenticate: true, ..keyed() };
    let (_directory, snapshot) = built(PHONES, &options);
    let refused = [
        OwnedTable::open(&snapshot, publisher()).err(),
        begin_history(snapshot.path(), publisher().id()).err(),
    ];
    for error in refused {
        assert_eq!(error.expect("not updated").blame(), Blame::ApiMisuse);
    }
}

/// Deletes a key of the table: its next epoch.
fn delete(snapshot: &Path, name: &str) -> TableIdentity {
    let snapshot = Snapshot::open(snapshot).expect("whole");
    let mut table = OwnedTable::open(&snapshot, publisher()).expect("its own");
    let mut rows = table.editor().expect("not authenticated");
    rows.delete(name.as_bytes()).expect("valid");
    let (edits, _) = rows.finish().expect("valid");
    table.publish(&edits.expect("something changes")).expect("valid")
}

fn refused(snapshot: &Path) -> Error {
    let snapshot = Snapshot::open(snapshot).expect("whole");
    OwnedTable::open(&snapshot, publisher()).err().expect("refused")
}

#[test]
fn nobody_else_continues_a_table() {
    let (_directory, snapshot) = owned(PHONES, &keyed());
    delete(snapshot.path(), "ada");
    let other = OwnedTable::open(&snapshot, another()).err().expect("another publisher");
    assert_eq!(other.blame(), Blame::ApiMisuse);
    let other = begin_history(snapshot.path(), another().id()).expect_err("it has one");
    assert_eq!(other.blame(), Blame::ApiMisuse);
}

#[test]
fn a_history_is_begun_only_where_that_is_said_and_once() {
    let (_directory, snapshot) = built(PHONES, &keyed());
    let path = snapshot.path();
    let error = refused(path);
    assert_eq!(error.reason(), Some(Reason::HistoryNotBegun), "{error}");
    assert!(!log_path(path).exists(), "nothing was signed, so nobody is the publisher");
    // Until something is signed, it may be said again.
    for _ in 0..2 {
        begin_history(path, publisher().id()).expect("there is none");
        let begun = Snapshot::open(path).expect("whole");
        assert_eq!(begun.identity(), snapshot.identity(), "it is the same table");
    }
    delete(path, "ada");
    let error = begin_history(path, publisher().id()).expect_err("it has one");
    assert!(error.message().contains("has its history already"), "{error}");
}

/// A table that has had an epoch, in the file or only in the log, knows it without its log.
#[test]
fn a_table_without_its_log_is_refused_until_the_log_is_back() {
    for compacted in [false, true] {
        let (_directory, snapshot) = owned(PHONES, &keyed());
        let (path, log) = (snapshot.path(), log_path(snapshot.path()));
        delete(path, "ada");
        let early = std::fs::read(&log).expect("there");
        delete(path, "bob");
        if compacted {
            let snapshot = Snapshot::open(path).expect("whole");
            OwnedTable::open(&snapshot, publisher()).expect("its own").compact().expect("writable");
        }
        let whole = std::fs::read(&log).expect("there");
        std::fs::remove_file(&log).expect("there");
        let error = refused(path);
        assert_eq!((error.blame(), error.reason()), (Blame::Unavailable, Some(Reason::LogLost)));
        assert!(error.message().contains("has reached epoch 2"), "{error}");
        let snapshot = Snapshot::open(path).expect("whole");
        assert_eq!(UpdateLog::of(&snapshot).expect_err("lost").reason(), Some(Reason::LogLost));
        // An old copy ends before what the table has had.
        std::fs::write(&log, early).expect("writable");
        let blame = if compacted { Blame::Corrupted } else { Blame::Unavailable };
        assert_eq!(refused(path).blame(), blame);
        std::fs::write(&log, whole).expect("writable");
        assert_eq!(delete(path, "cyd").epoch, Epoch(3));
        // Lost for good: what is in the file goes on as another table, and from its first version.
        std::fs::remove_file(&log).expect("there");
        begin_history(path, publisher().id()).expect("there is none");
        let other = Snapshot::open(path).expect("whole").identity();
        assert_eq!((other.epoch, other.digest), (Epoch(0), snapshot.identity().digest));
        assert_ne!(other.id, snapshot.identity().id);
        assert_eq!(delete(path, "cyd").epoch, Epoch(1));
    }
}

/// After the log and before the mark: the log reaches further, and the next update makes up for it.
#[test]
fn a_crash_before_the_mark_is_made_up_for() {
    let (_directory, snapshot) = owned(PHONES, &keyed());
    let path = snapshot.path();
    delete(path, "ada");
    let before = std::fs::read(path).expect("readable");
    delete(path, "bob");
    assert_eq!(std::fs::metadata(path).expect("there").len(), before.len() as u64);
    std::fs::write(path, before).expect("writable");
    let crashed = Snapshot::open(path).expect("whole");
    assert_eq!(crashed.mark().expect("signed").epoch, Epoch(1));
    let log = UpdateLog::of(&crashed).expect("whole").expect("signed");
    assert_eq!(log.current().epoch, Epoch(2));
    delete(path, "cyd");
    assert_eq!(Snapshot::open(path).expect("whole").mark().expect("signed").epoch, Epoch(3));
}

/// Two histories of one table, equally long.
#[test]
fn the_log_of_another_history_is_refused() {
    let (_directory, snapshot) = owned(PHONES, &keyed());
    let (path, log) = (snapshot.path(), log_path(snapshot.path()));
    let begun = [path, &log].map(|path| std::fs::read(path).expect("readable"));
    delete(path, "ada");
    let other = std::fs::read(&log).expect("readable");
    for (path, bytes) in [path, &log].into_iter().zip(begun) {
        std::fs::write(path, bytes).expect("writable");
    }
    delete(path, "bob");
    std::fs::write(&log, other).expect("writable");
    let error = refused(path);
    assert_eq!(error.blame(), Blame::Integrity, "{error}");
}

/// Tables and logs that earlier versions wrote: a file without a mark, a log of another name.
#[test]
fn a_log_under_its_earlier_name_goes_on_and_the_table_gets_its_mark() {
    let (_directory, snapshot) = built(PHONES, &keyed());
    let (path, earlier) = (snapshot.path(), earlier_log_path(snapshot.path()));
    UpdateLog::create(&earlier, &snapshot, publisher().id()).expect("there is none");
    assert_eq!(Snapshot::open(path).expect("whole").mark(), None);
    delete(path, "ada");
    assert_eq!(Snapshot::open(path).expect("whole").mark().expect("signed").epoch, Epoch(1));
    assert!(!log_path(path).exists());
    std::fs::copy(&earlier, log_path(path)).expect("writable");
    let error = refused(path);
    assert_eq!(error.blame(), Blame::ApiMisuse);
    assert!(error.message().contains("are both there"), "{error}");
    // Moved to the name that it would have now.
    std::fs::remove_file(&earlier).expect("there");
    assert_eq!(delete(path, "bob").epoch, Epoch(2));
    assert!(!earlier.exists());
}

/// What has the file open, or mapped, may go on with it: only the mark changes.
#[test]
fn a_new_mark_is_no_change_of_the_table_file() {
    let (_directory, snapshot) = owned(PHONES, &keyed());
    let path = snapshot.path();
    let server = Snapshot::open_guarded(path).expect("whole");
    let before = std::fs::read(path).expect("readable");
    for name in ["ada", "bob", "cyd"] {
        delete(path, name);
        server.check_unchanged().expect("no record has changed");
    }
    let after = std::fs::read(path).expect("readable");
    let changed = (0..before.len()).filter(|&at| before[at] != after[at]);
    let records = before.len() as u64 - server.identity().shape.bytes();
    assert!(changed.max().is_some_and(|last| (last as u64) < records));
    server.verify(|_, _| {}).expect("no record has changed");
    // Any other write counts.
    std::fs::write(path, &before).expect("writable");
    server.check_unchanged().expect_err("written to");
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
        mark: None,
    };
    let mut writer = crate::snapshot::SnapshotWriter::create(&path, plan).expect("writable");
    writer.write_record(&vec![0; MAX_RECORD_LEN as usize]).expect("in order");
    writer.finish().expect("complete");

    // 15 records of 16 MiB are less than 256 MiB, and 16 more, with what else an epoch has.
    let added = |records: u64| {
        let new = (1..=records).map(|index| (index, vec![0; MAX_RECORD_LEN as usize]));
        TableUpdate::new(shape, new.collect(), None).expect("valid")
    };
    begin_history(&path, publisher().id()).expect("there is none");
    let snapshot = Snapshot::open(&path).expect("whole");
    let mut table = OwnedTable::open(&snapshot, publisher()).expect("its own");
    let refused = table.publish(&added(16)).expect_err("no client takes it");
    assert_eq!(refused.blame(), Blame::ApiMisuse);
    assert!(refused.message().contains("make several updates"), "{refused}");
    assert_eq!(table.identity().epoch, Epoch(0));
    table.publish(&added(1)).expect("it goes on");
}
