use super::*;
use crate::snapshot::{Snapshot, SnapshotPlan, SnapshotWriter, ValueForm};
use privet_core::{Blame, ReadRecords, TableSource};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A snapshot file of a model's table, with a log beside it.
pub(super) struct Room {
    pub(super) directory: TempDir,
    pub(super) snapshot: Snapshot,
}

impl Room {
    pub(super) fn new(model: &Model) -> Self {
        Self::under(model, key(model.publisher).id().into())
    }

    pub(super) fn under(model: &Model, keys: TableKeys) -> Self {
        let directory = TempDir::new().expect("a directory");
        let snapshot = write_snapshot(model, &directory.path().join("t.privet"));
        UpdateLog::create(&log_path(snapshot.path()), &snapshot, keys).expect("there is none");
        Self { directory, snapshot }
    }

    pub(super) fn log_path(&self) -> PathBuf {
        log_path(self.snapshot.path())
    }

    pub(super) fn log(&self) -> UpdateLog {
        UpdateLog::open(&self.log_path(), &self.snapshot).expect("whole")
    }

    pub(super) fn writer(&self) -> LogWriter<'_> {
        LogWriter::open(&self.log_path(), &self.snapshot).expect("whole, and nobody else is there")
    }

    pub(super) fn append(&self, model: &mut Model, operations: &[Operation]) {
        let update = model.update(operations);
        model.next(operations, None);
        let after = self.writer().append(&key(1), &update).expect("valid");
        assert_eq!(after, model.identity());
    }

    pub(super) fn assert_is(&self, model: &Model) {
        let log = self.log();
        assert_eq!(log.current(), model.identity());
        assert_eq!(log.chain(), &model.chain());
        let table = log.table(&self.snapshot).expect("of this snapshot");
        assert_eq!(table.to_vec(), model.records);
        table.verified_digest().expect("undamaged");
        let snapshot = Snapshot::open_guarded(self.snapshot.path()).expect("whole");
        let records = log.records(&Arc::new(snapshot)).expect("of this snapshot");
        let source = TableSource::new(model.identity(), &records).expect("as many");
        for len in [1, 3, RECORD_LEN as usize, 1000] {
            let mut read = Vec::new();
            let all = source.pieces(len, |_, piece| {
                read.extend_from_slice(piece);
                Ok(())
            });
            all.expect("within the file or the log");
            assert_eq!(read, model.records, "in pieces of {len}");
        }
    }
}

pub(super) fn write_snapshot(model: &Model, path: &Path) -> Snapshot {
    let plan = SnapshotPlan {
        id: model.id,
        epoch: Epoch(model.epoch),
        shape: model.shape(),
        layout: model.layout.clone(),
        key_column: Some("name".into()),
        until_column: None,
        value_form: ValueForm::JsonRest,
        mark: None,
    };
    let mut writer = SnapshotWriter::create(path, plan).expect("writable");
    for record in model.records.chunks(RECORD_LEN as usize) {
        writer.write_record(record).expect("in order");
    }
    writer.finish().expect("complete");
    Snapshot::open(path).expect("whole")
}

fn refused<T>(result: privet_core::Result<T>, blame: Blame, how: &str) {
    let error = result.err().expect("an error");
    assert_eq!(error.blame(), blame, "{error}");
    assert!(error.message().contains(how), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A snapshot and its log give the plain vector, whichever writers wrote them in however many
    /// runs. A server that reads on gets each epoch once, and a client at any epoch gets what it
    /// needs.
    #[test]
    fn a_snapshot_and_its_log_are_the_table(
        records in 1..20u64,
        batches in batches(8),
        sittings in prop::collection::vec(any::<bool>(), 8),
        compacts in prop::option::of(0..8usize),
    ) {
        let mut model = Model::new(records);
        let room = Room::new(&model);
        let mut server = room.log();
        let mut history = vec![model.clone()];
        let mut writer = Some(room.writer());
        for (batch, new_sitting) in batches.iter().zip(&sittings) {
            if *new_sitting {
                drop(writer.take());
                writer = Some(room.writer());
            }
            let open = writer.as_mut().expect("always there");
            let operations = batch.operations(model.shape().records());
            let mut update = model.update(&operations);
            update.layout = batch.layout.map(layout);
            let mut next = model.clone();
            next.next(&operations, update.layout.clone().filter(|other| *other != model.layout));
            let appended = open.append(&key(1), &update);
            if next.records == model.records && next.layout == model.layout {
                refused(appended, Blame::ApiMisuse, "nothing would change");
                continue;
            }
            prop_assert_eq!(appended.expect("valid"), next.identity());
            model = next;
            history.push(model.clone());
            prop_assert_eq!(open.table().to_vec(), &model.records[..]);
            prop_assert_eq!(open.table().identity(), model.identity());
            for index in 0..=model.shape().records() {
                let start = (index * RECORD_LEN) as usize;
                prop_assert_eq!(open.table().record(index), model.records.get(start..start + RECORD_LEN as usize));
            }
            prop_assert_eq!(server.catch_up().expect("whole"), 1);
            prop_assert_eq!(server.table(&room.snapshot).expect("its own").to_vec(), &model.records[..]);
            prop_assert_eq!(server.current(), model.identity());
        }
        room.assert_is(&model);
        prop_assert_eq!(server.catch_up().expect("whole"), 0);
        for past in &history {
            let (mut chain, mut records) = (past.chain(), past.records.clone());
            let epochs = server.epochs_from(Epoch(past.epoch)).expect("kept");
            prop_assert_eq!(epochs.len() as u64, model.epoch - past.epoch);
            for epoch in epochs {
                apply(&chain.follow(&epoch.expect("whole")).expect("next"), &mut records);
            }
            prop_assert_eq!(&chain, &model.chain());
            prop_assert_eq!(&records, &model.records);
        }
        refused(server.epochs_from(Epoch(2)).map(drop), Blame::ApiMisuse, "no longer kept");
        refused(server.epochs_from(Epoch(model.epoch + 1)).map(drop), Blame::ApiMisuse, "there is no epoch");

        // The digest is that of a snapshot built from the same records, and a compacted one goes on
        // where the log ended.
        let built = write_snapshot(&model, &room.directory.path().join("built.privet"));
        prop_assert_eq!(built.identity(), model.identity());
        if compacts.is_some() {
            let compacted = writer.expect("always there").compact(room.snapshot.path(), 0).expect("whole");
            prop_assert_eq!(compacted.identity(), model.identity());
            prop_assert_eq!(compacted.layout(), &model.layout);
            prop_assert_eq!(compacted.header().key_column.as_deref(), Some("name"));
            compacted.verify(|_, _| {}).expect("undamaged");
            let room = Room { snapshot: compacted, ..room };
            prop_assert_eq!(room.log().epoch_bytes(), 0);
            room.append(&mut model, &[add(3)]);
            room.assert_is(&model);
        }
    }
}

/// A piece of the records may begin behind all that the file has.
#[test]
fn a_table_that_grew_in_its_log_is_read_in_pieces() {
    let mut model = Model::new(2);
    let room = Room::new(&model);
    room.append(&mut model, &[add(1), add(2), add(3)]);
    room.assert_is(&model);
    room.append(&mut model, &[edit(4, 9), add(4)]);
    room.assert_is(&model);
    let log = room.log();
    let snapshot = Snapshot::open_guarded(room.snapshot.path()).expect("whole");
    let in_file = snapshot.identity().shape.bytes();
    let records = log.records(&Arc::new(snapshot)).expect("of this snapshot");
    for offset in [in_file, model.shape().bytes()] {
        records.read(offset, &mut []).expect("no bytes are within");
    }
}

#[test]
fn there_is_one_writer_at_a_time() {
    let mut model = Model::new(5);
    let room = Room::new(&model);
    let first = room.writer();
    refused(
        LogWriter::open(&room.log_path(), &room.snapshot),
        Blame::Unavailable,
        "another process is writing",
    );
    room.log();
    drop(first);
    room.append(&mut model, &[edit(1, 1)]);
    refused(
        UpdateLog::create(&room.log_path(), &room.snapshot, key(1).id()),
        Blame::ApiMisuse,
        "is there already",
    );
    room.assert_is(&model);
}

#[test]
fn what_cannot_be_appended_changes_nothing() {
    let mut model = Model::new(5);
    let room = Room::new(&model);
    let mut writer = room.writer();
    let before = fs::read(room.log_path()).expect("readable");
    let update = model.update(&[edit(1, 1)]);
    refused(writer.append(&key(2), &update), Blame::ApiMisuse, "clients would refuse");
    let larger = Model::new(6).update(&[edit(1, 1)]);
    refused(writer.append(&key(1), &larger), Blame::ApiMisuse, "another shape");
    let authentication = crate::authentication::Authentication([1; 32]);
    let authenticated = TableLayout::authenticated(authentication, layout(0).records().clone());
    let mut other = update.clone();
    other.layout = Some(authenticated);
    refused(writer.append(&key(1), &other), Blame::ApiMisuse, "no room for a path");
    let same = (Some(0), model.records[..RECORD_LEN as usize].try_into().expect("a record"));
    refused(
        writer.append(&key(1), &model.update(&[same])),
        Blame::ApiMisuse,
        "nothing would change",
    );
    assert_eq!(fs::read(room.log_path()).expect("readable"), before);
    // None of these prevented the next update.
    model.next(&[edit(1, 1)], None);
    assert_eq!(writer.append(&key(1), &update).expect("valid"), model.identity());
}

#[test]
fn a_log_belongs_to_its_snapshot() {
    let mut model = Model::new(5);
    let room = Room::new(&model);
    room.append(&mut model, &[edit(1, 1)]);
    let path = |name: &str| room.directory.path().join(name);
    let open = |snapshot: &Snapshot| UpdateLog::open(&room.log_path(), snapshot);

    let other_table = Model { id: TableId([8; 16]), ..Model::new(5) };
    let other_table = write_snapshot(&other_table, &path("other"));
    refused(open(&other_table), Blame::ApiMisuse, "the snapshot is of the table");
    let other_contents = write_snapshot(&Model::new(6), &path("contents"));
    refused(open(&other_contents), Blame::Corrupted, "other contents");
    let older = write_snapshot(&Model { epoch: 2, ..Model::new(5) }, &path("older"));
    refused(open(&older), Blame::Unavailable, "open both again");
    // It has the number of the log's last epoch, but other contents.
    let diverged = write_snapshot(&Model { epoch: 4, ..Model::new(5) }, &path("diverged"));
    refused(open(&diverged), Blame::Corrupted, "do not lead to the snapshot");
    let beyond = write_snapshot(&Model { epoch: 5, ..model.clone() }, &path("beyond"));
    refused(open(&beyond), Blame::Corrupted, "ends before the epoch");
    let ahead = write_snapshot(&model, &path("ahead"));
    assert_eq!(open(&ahead).expect("leads there").current(), model.identity());

    refused(
        UpdateLog::open(&path("none"), &room.snapshot),
        Blame::ApiMisuse,
        "there is no update log",
    );
    refused(
        UpdateLog::open(room.snapshot.path(), &room.snapshot),
        Blame::ApiMisuse,
        "no update log",
    );
    let log = open(&ahead).expect("leads there");
    refused(log.table(&room.snapshot), Blame::ApiMisuse, "another snapshot");
}

#[test]
fn a_damaged_table_is_not_signed_and_not_compacted() {
    let mut model = Model::new(5);
    let room = Room::new(&model);
    room.append(&mut model, &[edit(2, 2)]);
    let mut bytes = fs::read(room.snapshot.path()).expect("readable");
    *bytes.last_mut().expect("not empty") ^= 1;
    let path = room.directory.path().join("damaged.privet");
    fs::write(&path, &bytes).expect("writable");
    // Only the records are damaged, so it opens.
    let damaged = Snapshot::open(&path).expect("whole");
    let log = fs::read(room.log_path()).expect("readable");
    let open = || LogWriter::open(&room.log_path(), &damaged).expect("whole");
    let update = model.update(&[edit(1, 1)]);
    refused(open().append(&key(1), &update), Blame::Corrupted, "are damaged");
    refused(open().compact(&path, 0), Blame::Corrupted, "are damaged");
    assert_eq!(fs::read(room.log_path()).expect("readable"), log);
    assert_eq!(fs::read(&path).expect("readable"), bytes);
}

/// As when a disk is full: an epoch that was not written is not in memory either, and only a newly
/// opened writer goes on.
#[test]
fn a_writer_that_could_not_write_stops() {
    let mut model = Model::new(5);
    let room = Room::new(&model);
    room.append(&mut model, &[edit(1, 1), add(2)]);
    let mut writer = room.writer();
    writer.file = fs::File::open(room.log_path()).expect("readable, and not writable");
    let update = model.update(&[edit(1, 9), edit(2, 9), add(9)]);
    refused(writer.append(&key(1), &update), Blame::Unavailable, "cannot write");
    assert_eq!(writer.table().to_vec(), model.records);
    assert_eq!(writer.table().identity(), model.identity());
    refused(writer.append(&key(1), &update), Blame::Unavailable, "open the update log again");
    refused(
        writer.compact(room.snapshot.path(), 0),
        Blame::Unavailable,
        "open the update log again",
    );
    room.append(&mut model, &[edit(1, 9)]);
    room.assert_is(&model);
}

#[test]
fn stored_epochs_are_read_in_pieces_and_stay_readable_after_a_compaction() {
    let mut model = Model::new(5);
    let room = Room::new(&model);
    for byte in 1..=3 {
        room.append(&mut model, &[edit(u64::from(byte), 100 + byte), add(byte)]);
    }
    let log = room.log();
    let whole: Vec<_> = log.epochs_from(Epoch(4)).unwrap().map(|epoch| epoch.unwrap()).collect();
    let stored: Vec<_> = log.stored_from(Epoch(4)).unwrap().collect();
    assert!(log.stored_from(Epoch(7)).is_err());
    drop(log);
    room.writer().compact(room.snapshot.path(), 0).expect("room for it");
    assert_eq!(stored.len(), 2);
    for (stored, whole) in stored.iter().zip(&whole) {
        assert_eq!(stored.len(), whole.len() as u64);
        for offset in 0..=whole.len() {
            for len in [0, 1, 7, whole.len() - offset] {
                let read = stored.read(offset as u64, len);
                match whole.get(offset..offset + len) {
                    Some(expected) => assert_eq!(read.unwrap(), expected),
                    None => assert_eq!(read.unwrap_err().blame(), Blame::ApiMisuse),
                }
            }
        }
        assert_eq!(stored.read(u64::MAX, 1).unwrap_err().blame(), Blame::ApiMisuse);
    }
}
