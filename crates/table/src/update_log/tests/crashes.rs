//! States that a crash can leave behind, made byte by byte; and states that only damage can cause.

use super::files::Room;
use super::*;
use crate::update_log::file::header::{COMMIT_OFFSETS, Commit, LINEAGE_OFFSET};
use privet_core::Blame;
use std::fs;

/// A log's file with two epochs, before and after the second was appended.
struct Appended {
    room: Room,
    before: (Model, Vec<u8>),
    after: (Model, Vec<u8>),
}

impl Appended {
    fn new() -> Self {
        let mut model = Model::new(5);
        let room = Room::new(&model);
        room.append(&mut model, &[edit(1, 1), add(2)]);
        let before = (model.clone(), fs::read(room.log_path()).expect("readable"));
        room.append(&mut model, &[edit(2, 3), edit(5, 4)]);
        let after = (model, fs::read(room.log_path()).expect("readable"));
        Self { room, before, after }
    }

    /// The commit record that the second epoch writes.
    fn commit(&self) -> std::ops::Range<usize> {
        let offset = COMMIT_OFFSETS[(self.after.0.epoch % 2) as usize] as usize;
        offset..offset + Commit::LEN
    }

    /// Checks that readers and the next writer find `model` in `file`, and that the next writer can
    /// go on.
    fn assert_opens_as(&self, file: &[u8], model: &Model) {
        fs::write(self.room.log_path(), file).expect("writable");
        self.room.assert_is(model);
        assert_eq!(
            fs::read(self.room.log_path()).expect("readable"),
            file,
            "reading changes nothing"
        );
        // The next writer leaves a whole log behind, before it appends anything.
        drop(self.room.writer());
        let log = self.room.log();
        assert!(!log.commit_damaged);
        assert_eq!(log.file_len().expect("known"), log.end);
        let mut model = model.clone();
        self.room.append(&mut model, &[edit(0, 10)]);
        self.room.assert_is(&model);
    }

    fn assert_refused(&self, file: &[u8]) {
        fs::write(self.room.log_path(), file).expect("writable");
        let open = UpdateLog::open(&self.room.log_path(), &self.room.snapshot);
        assert_eq!(open.expect_err("damaged").blame(), Blame::Corrupted);
        let open = LogWriter::open(&self.room.log_path(), &self.room.snapshot);
        assert_eq!(open.expect_err("damaged").blame(), Blame::Corrupted);
        let now = fs::read(self.room.log_path()).expect("readable");
        assert!(now == file, "nothing is cut off");
    }
}

#[test]
fn an_epoch_that_was_not_committed_is_cut_off() {
    let appended = Appended::new();
    let (before, after) = (&appended.before.1[..], &appended.after.1[..]);
    let tail = &after[before.len()..];
    for len in 0..=tail.len() {
        appended.assert_opens_as(&[before, &tail[..len]].concat(), &appended.before.0);
    }
    // Some file systems give the file its length before its contents: then it has zeros, or old
    // contents of the disk.
    for filler in [0, 0xa5] {
        for len in [1, 7, 8, 9, 60, tail.len() - 1, tail.len(), tail.len() + 1] {
            let model = &appended.before.0;
            appended.assert_opens_as(&[before, &vec![filler; len]].concat(), model);
        }
    }
}

#[test]
fn a_commit_that_was_interrupted_is_completed() {
    let appended = Appended::new();
    let mut file = appended.after.1.clone();
    let commit = appended.commit();
    let (old, new) = (&appended.before.1[commit.clone()], &appended.after.1[commit.clone()]);
    for len in 0..=Commit::LEN {
        file[commit.clone()].copy_from_slice(old);
        file[commit.start..commit.start + len].copy_from_slice(&new[..len]);
        // The old and the new record may begin and end with the same bytes: then it is still the
        // old one, or already the new one.
        let model =
            if file[commit.clone()] == *old { &appended.before.0 } else { &appended.after.0 };
        appended.assert_opens_as(&file, model);
    }
    for filler in [0, 0xa5] {
        file[commit.clone()].fill(filler);
        appended.assert_opens_as(&file, &appended.after.0);
        // The writer that was to cut the tail off was interrupted too.
        let tail = vec![filler; 100];
        appended.assert_opens_as(&[&file[..], &tail].concat(), &appended.after.0);
    }
}

/// Two faults at once: nobody can know whether clients have seen the epoch.
#[test]
fn a_commit_that_cannot_be_completed_is_left_as_it_is() {
    let appended = Appended::new();
    let whole = &appended.after.1;
    for len in appended.before.1.len() + 1..whole.len() {
        let mut file = whole[..len].to_vec();
        file[appended.commit()].fill(0);
        fs::write(appended.room.log_path(), &file).expect("writable");
        let open = LogWriter::open(&appended.room.log_path(), &appended.room.snapshot);
        assert_eq!(open.expect_err("damaged").blame(), Blame::Corrupted);
        assert!(
            fs::read(appended.room.log_path()).expect("readable") == file,
            "nothing is cut off"
        );
    }
}

/// A server goes on reading while a commit record is unreadable, because a writer may just be
/// writing it.
#[test]
fn a_reader_reads_on_over_an_interrupted_commit() {
    let appended = Appended::new();
    let path = appended.room.log_path();
    fs::write(&path, &appended.before.1).expect("writable");
    let mut server = appended.room.log();
    let mut file = appended.after.1.clone();
    file[appended.commit()].fill(0);
    // The file is rewritten in place, as a writer would.
    for len in appended.before.1.len()..file.len() {
        fs::write(&path, &file[..len]).expect("writable");
        assert_eq!(server.catch_up().expect("nothing is wrong"), 0);
    }
    fs::write(&path, &file).expect("writable");
    assert_eq!(server.catch_up().expect("whole"), 1);
    assert_eq!(server.current(), appended.after.0.identity());
    assert_eq!(server.catch_up().expect("whole"), 0);
    let mut model = appended.after.0.clone();
    appended.room.append(&mut model, &[edit(0, 10)]);
    assert_eq!(server.catch_up().expect("whole"), 1);
    assert_eq!(server.current(), model.identity());
}

#[test]
fn what_was_committed_is_never_cut_off() {
    let appended = Appended::new();
    let file = &appended.after.1;
    let first = LINEAGE_OFFSET as usize;
    for len in (0..first).step_by(61).chain(first..file.len()) {
        appended.assert_refused(&file[..len]);
    }
    for position in first..file.len() {
        let mut file = file.clone();
        file[position] ^= 0x40;
        appended.assert_refused(&file);
    }
    // A region that a broken disk returns empty, up to the end.
    let mut emptied = file.clone();
    emptied[first..].fill(0);
    appended.assert_refused(&emptied);
    let mut file = file.clone();
    for offset in COMMIT_OFFSETS {
        file[offset as usize] ^= 1;
    }
    appended.assert_refused(&file);
}

#[test]
fn an_altered_header_is_refused() {
    let appended = Appended::new();
    for position in 0..crate::update_log::file::header::HEADER_LEN {
        let mut file = appended.after.1.clone();
        file[position] ^= 1;
        fs::write(appended.room.log_path(), &file).expect("writable");
        let error = UpdateLog::open(&appended.room.log_path(), &appended.room.snapshot)
            .expect_err("altered");
        // The magic and the version identify the file. Version 3 exists as well.
        let expected = match position {
            8 | 12.. => Blame::Corrupted,
            _ => Blame::ApiMisuse,
        };
        assert_eq!(error.blame(), expected, "{error}");
    }
}

/// The next writer repairs a single damaged commit record, of either epoch.
#[test]
fn one_commit_record_is_enough() {
    let appended = Appended::new();
    for offset in COMMIT_OFFSETS {
        for position in 0..Commit::LEN {
            let mut file = appended.after.1.clone();
            file[offset as usize + position] ^= 1;
            appended.assert_opens_as(&file, &appended.after.0);
        }
    }
}

/// A disk that loses bits while a server runs: clients do not get the damaged bytes.
#[test]
fn an_epoch_that_changes_later_is_not_sent() {
    let appended = Appended::new();
    let mut file = appended.after.1.clone();
    let log = appended.room.log();
    let sent = || log.epochs_from(Epoch(4)).expect("kept").next().expect("one epoch");
    let whole = sent().expect("whole");
    let start = file.len() - whole.len();
    assert_eq!(file[start..], whole);
    for position in start..file.len() {
        file[position] ^= 1;
        fs::write(appended.room.log_path(), &file).expect("writable");
        assert_eq!(sent().expect_err("damaged").blame(), Blame::Corrupted);
        file[position] ^= 1;
    }
    fs::write(appended.room.log_path(), &file[..file.len() - 1]).expect("writable");
    assert_eq!(sent().expect_err("cut").blame(), Blame::Corrupted);
}
