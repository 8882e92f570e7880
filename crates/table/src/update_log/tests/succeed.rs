//! Successions in files: what a log keeps of them, and what its owner can no longer do.

use super::files::{Room, write_snapshot};
use super::*;
use crate::snapshot::Snapshot;
use privet_core::Blame;
use std::fs;

fn keys(publisher: u8, next: impl Into<Option<u8>>) -> TableKeys {
    let next = next.into().map(|number| key(number).id().as_next_key());
    TableKeys { publisher: key(publisher).id(), next }
}

/// A table whose publisher has the next key 2, with three epochs.
fn room(first: TableKeys) -> (Room, Model) {
    let mut model = Model { epoch: 0, ..Model::new(5) };
    let room = Room::under(&model, first);
    for byte in 1..4 {
        room.append(&mut model, &[edit(0, byte)]);
    }
    (room, model)
}

/// A file with another table.
fn successor(room: &Room, id: u8) -> (Model, Snapshot) {
    let model = Model { id: TableId([id; 16]), epoch: 0, ..Model::new(9) };
    let snapshot = write_snapshot(&model, &room.directory.path().join(format!("{id}.privet")));
    (model, snapshot)
}

fn both<'k>(publisher: &'k PublisherKey, next: &'k PublisherKey) -> Signers<'k> {
    Signers { publisher: Some(publisher), next: Some(next) }
}

#[test]
fn a_succession_is_the_last_entry_and_the_new_log_begins_with_it() {
    let (room, model) = room(keys(1, 2));
    let (old_start, new_keys) = (model.chain_under(keys(1, 2)), keys(2, 3));
    let (new, snapshot) = successor(&room, 8);
    let (one, two) = (key(1), key(2));
    let mut writer = room.writer();
    let (_, lineage) = writer.succeed(both(&one, &two), &snapshot, new_keys).expect("both sign");
    // Again, as after a crash: nothing changes.
    let file = fs::read(room.log_path()).expect("readable");
    assert_eq!(writer.succeed(both(&one, &two), &snapshot, new_keys).expect("done").1, lineage);
    assert_eq!(fs::read(room.log_path()).expect("readable"), file);
    drop(writer);

    // The old log still opens, at its last version, and says that it has ended.
    let log = room.log();
    assert_eq!(log.current(), model.identity());
    let record = log.succession().expect("it has a successor");
    assert_eq!(record.new_table(), new.identity());
    assert_eq!(log.stored_from(Epoch(0)).expect("all").len(), 3);
    let reopened = Snapshot::open(room.snapshot.path()).expect("whole");
    assert_eq!(reopened.mark().map(|mark| mark.hash), Some(record.hash()));

    // Nothing may follow it.
    let mut writer = room.writer();
    let refused = [
        writer.append(&one, &model.update(&[edit(0, 9)])).map(drop),
        writer.rotate(both(&one, &two), keys(2, 4)).map(drop),
        writer.succeed(both(&one, &two), &successor(&room, 9).1, new_keys).map(drop),
    ];
    for error in refused.map(|outcome| outcome.expect_err("it has ended")) {
        assert_eq!(error.blame(), Blame::ApiMisuse);
        assert!(error.message().contains("succeeds it"), "{error}");
    }
    let error = writer.compact(room.snapshot.path(), 0).expect_err("it has ended");
    assert!(error.message().contains("succeeds it"), "{error}");

    // The new log leads here from each version of the old table.
    let path = log_path(snapshot.path());
    let error =
        UpdateLog::create_after(&path, &snapshot, keys(2, 4), &lineage).expect_err("others");
    assert_eq!(error.blame(), Blame::ApiMisuse);
    let log = UpdateLog::create_after(&path, &snapshot, new_keys, &lineage).expect("there is none");
    assert_eq!((log.lineage(), log.keys()), (&lineage, new_keys));
    let walk = lineage.walk(&old_start, &[]).expect("signed").expect("of this table");
    assert_eq!(walk.end.identity(), log.current());
    // It goes on, and a compaction keeps the lineage.
    let mut new = Model { publisher: 2, ..new };
    let mut writer = LogWriter::open(&path, &snapshot).expect("whole");
    writer.append(&two, &new.update(&[edit(0, 1)])).expect("the new publisher signs");
    new.next(&[edit(0, 1)], None);
    let compacted = writer.compact(snapshot.path(), 0).expect("nobody else is there");
    let log = UpdateLog::open(&path, &compacted).expect("whole");
    assert_eq!((log.current(), log.lineage(), log.keys()), (new.identity(), &lineage, new_keys));
}

#[test]
fn only_those_who_have_to_sign_end_a_table() {
    let (room, _) = room(keys(1, 2));
    let (_, snapshot) = successor(&room, 8);
    let (one, two, six) = (key(1), key(2), key(6));
    let before = fs::read(room.log_path()).expect("readable");
    let mut writer = room.writer();
    for (signers, new, how) in [
        (Signers { publisher: Some(&one), next: None }, keys(1, None), "has to sign this too"),
        (both(&one, &six), keys(6, None), "clients know that it is"),
        (both(&six, &two), keys(2, None), "this is the key of"),
        (both(&one, &two), keys(5, None), "becomes the publisher's key"),
    ] {
        let error = writer.succeed(signers, &snapshot, new).expect_err(how);
        assert_eq!(error.blame(), Blame::ApiMisuse);
        assert!(error.message().contains(how), "{how}: {error}");
    }
    assert_eq!(fs::read(room.log_path()).expect("readable"), before);
    // The next key alone revokes.
    let (record, _) = writer
        .succeed(Signers { publisher: None, next: Some(&two) }, &snapshot, keys(2, None))
        .expect("it may");
    assert!(record.revokes());
}

#[test]
fn a_rotated_table_goes_on_under_its_id_and_its_log_is_read_by_all_versions_of_its_file() {
    let (room, mut model) = room(keys(1, 2));
    let begin = Model { epoch: 0, ..Model::new(5) }.chain_under(keys(1, 2));
    let (one, two) = (key(1), key(2));
    let mut writer = room.writer();
    let after = writer.rotate(both(&one, &two), keys(2, 3)).expect("both sign");
    model.epoch += 1;
    assert_eq!(after, model.identity());
    model.previous = writer.log().chain().previous().expect("the rotation");
    model.publisher = 2;
    let error = writer.append(&one, &model.update(&[edit(1, 1)])).expect_err("the old key");
    assert_eq!(error.blame(), Blame::ApiMisuse);
    writer.append(&two, &model.update(&[edit(1, 1)])).expect("the new key");
    model.next(&[edit(1, 1)], None);
    drop(writer);

    let log = room.log();
    assert_eq!((log.current(), log.keys()), (model.identity(), keys(2, 3)));
    assert_eq!(log.lineage().records().len(), 1);
    // A client at any version follows through the rotation.
    let mut chain = begin;
    for bytes in log.epochs_from(Epoch(0)).expect("all") {
        chain.follow(&bytes.expect("readable")).expect("the next epoch");
    }
    assert_eq!(&chain, log.chain());
    drop(log);

    // The snapshot moves on, and the log keeps some of its epochs, or none.
    let path = room.snapshot.path();
    for keep in [1 << 20, 800, 0] {
        let before = Snapshot::open(path).expect("whole");
        let writer = LogWriter::open(&room.log_path(), &before).expect("whole");
        let (lineage, chain) = (writer.log().lineage().clone(), writer.log().chain().clone());
        let after = writer.compact(path, keep).expect("written");
        let log = UpdateLog::of(&after).expect("whole").expect("there is one");
        assert_eq!((log.lineage(), log.keys()), (&lineage, keys(2, 3)), "keeping {keep}");
        assert_eq!(log.chain().identity(), chain.identity());
        assert_eq!(log.chain().previous(), chain.previous());
    }
}

#[test]
fn a_damaged_lineage_is_found() {
    let (room, _) = room(keys(1, None));
    let (_, snapshot) = successor(&room, 8);
    let one = key(1);
    let signers = Signers { publisher: Some(&one), next: None };
    let (_, lineage) = room.writer().succeed(signers, &snapshot, keys(1, None)).expect("it signs");
    let path = log_path(snapshot.path());
    UpdateLog::create_after(&path, &snapshot, keys(1, None), &lineage).expect("there is none");
    let whole = fs::read(&path).expect("readable");
    let at = crate::update_log::file::header::LINEAGE_OFFSET as usize;
    for position in (at..at + lineage.encode().len()).step_by(17) {
        let mut damaged = whole.clone();
        damaged[position] ^= 1;
        fs::write(&path, &damaged).expect("writable");
        let error = UpdateLog::open(&path, &snapshot).expect_err("damaged");
        assert_eq!(error.blame(), Blame::Corrupted, "{error}");
    }
    fs::write(&path, &whole).expect("writable");
    UpdateLog::open(&path, &snapshot).expect("whole");
}

#[test]
fn a_log_that_ends_is_read_after_a_crash_at_any_byte() {
    let (room, model) = room(keys(1, None));
    let (_, snapshot) = successor(&room, 8);
    let before = fs::read(room.log_path()).expect("readable");
    let one = key(1);
    let signers = Signers { publisher: Some(&one), next: None };
    room.writer().succeed(signers, &snapshot, keys(1, None)).expect("it signs");
    let after = fs::read(room.log_path()).expect("readable");
    // The record is there, in part or whole, and its commit record is not.
    for end in (before.len()..after.len()).step_by(29) {
        let torn = [&before[..], &after[before.len()..end]].concat();
        fs::write(room.log_path(), torn).expect("writable");
        let log = UpdateLog::open(&room.log_path(), &room.snapshot).expect("an unfinished tail");
        assert_eq!(log.current(), model.identity());
        assert!(log.succession().is_none());
    }
}

#[test]
fn a_table_without_next_key_or_lineage_has_a_log_that_earlier_programs_read() {
    let model = Model::new(5);
    let room = Room::new(&model);
    let file = fs::read(room.log_path()).expect("readable");
    assert_eq!(file[8..12], 2u32.to_le_bytes());
    let room = Room::under(&model, keys(1, 2));
    let file = fs::read(room.log_path()).expect("readable");
    assert_eq!(file[8..12], 3u32.to_le_bytes());
    assert_eq!(room.log().keys(), keys(1, 2));
}
