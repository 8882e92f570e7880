//! Files as an owner leaves them, and what a server learns from them.

use super::*;
use privet_core::{Blame, SecretRng, TableChanges, TableId, TableShape};
use privet_table::edit::TableUpdate;
use privet_table::layout::{IndexLayout, RecordLayout};
use privet_table::snapshot::{SnapshotPlan, SnapshotWriter, ValueForm};
use privet_table::update_log::{LogWriter, PublisherKey, log_path};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

mod successor;

const LEN: u64 = 5;

/// An owner's directory with one table.
pub(crate) struct Owner {
    directory: TempDir,
    key: PublisherKey,
    /// All records as they are now.
    pub(crate) records: Vec<u8>,
    /// How many epochs have been made.
    made: u8,
    /// How many bytes of epochs a compaction leaves in the log.
    keep: u64,
}

impl Owner {
    pub(crate) fn new() -> Self {
        Self::keeping(0)
    }

    fn keeping(keep: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut records = vec![0; 40 * LEN as usize];
        SecretRng::from_os().unwrap().fill(&mut records);
        let key = PublisherKey::generate().unwrap();
        let owner = Self { directory, key, records, made: 0, keep };
        owner.write_snapshot();
        owner
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("t.privet")
    }

    fn log_path(&self) -> PathBuf {
        log_path(&self.path())
    }

    /// Writes a new table of these records, whatever was there.
    fn write_snapshot(&self) {
        let mut id = [0; 16];
        SecretRng::from_os().unwrap().fill(&mut id);
        let plan = SnapshotPlan {
            id: TableId(id),
            epoch: Epoch(self.made.into()),
            shape: TableShape::new(self.records.len() as u64 / LEN, LEN).unwrap(),
            layout: RecordLayout::Index(IndexLayout::for_lengths(LEN, LEN)).into(),
            key_column: None,
            until_column: None,
            value_form: ValueForm::JsonRest,
            mark: None,
        };
        let mut writer = SnapshotWriter::create(&self.path(), plan).unwrap();
        self.records.chunks(LEN as usize).for_each(|record| writer.write_record(record).unwrap());
        writer.finish().unwrap();
    }

    /// Appends an epoch that changes the records with these numbers and adds one, and then compacts
    /// if `compact`.
    pub(crate) fn update(&mut self, numbers: &[u64], compact: bool) {
        self.update_adding(numbers, 1, compact);
    }

    /// As [`update`](Self::update), with so many new records.
    fn update_adding(&mut self, numbers: &[u64], added: usize, compact: bool) {
        self.made += 1;
        let record = vec![100 + self.made; LEN as usize];
        let shape = TableShape::new(self.records.len() as u64 / LEN, LEN).unwrap();
        let new = shape.records()..shape.records() + added as u64;
        let written = numbers.iter().copied().chain(new).map(|index| (index, record.clone()));
        for number in numbers {
            self.records[(number * LEN) as usize..][..LEN as usize].copy_from_slice(&record);
        }
        self.records.extend(record.repeat(added));
        let update = TableUpdate::new(shape, written.collect(), None).unwrap();
        let snapshot = Snapshot::open(&self.path()).unwrap();
        let log = self.log_path();
        if !log.exists() {
            UpdateLog::create(&log, &snapshot, self.key.id()).unwrap();
        }
        let mut writer = LogWriter::open(&log, &snapshot).unwrap();
        writer.append(&self.key, &update).unwrap();
        if compact {
            writer.compact(&self.path(), self.keep).unwrap();
        }
    }

    pub(crate) fn table_file(&self) -> TableFile {
        TableFile::new("t", self.path())
    }

    pub(crate) fn serve(&self) -> Result<(ServedTable, FollowedTable)> {
        self.table_file().open()
    }

    fn follow(&self) -> FollowedTable {
        self.serve().unwrap().1
    }

    /// Checks that `next` is the table as it is now, reached by the signed epochs alone if there
    /// are any.
    fn check(&self, before: &Position, next: &NextVersion) {
        assert_eq!(next.records.to_vec().unwrap(), self.records);
        assert_eq!(next.records_digest, *blake3::hash(&self.records).as_bytes());
        assert_eq!(next.signing.publisher, self.key.id().0);
        assert_eq!(next.identity().unwrap().epoch.0, u64::from(self.made));
        let keys = self.key.id();
        let (identity, layout) = (before.identity, before.layout_digest);
        let mut chain = Chain::knowing_digest(identity, layout, keys, before.previous);
        let mut changes = TableChanges::none(before.identity.shape);
        for step in &next.steps {
            assert_eq!(step.changes.shape_after(), step.identity.shape);
            changes.then(step.changes.clone()).unwrap();
            match &step.epoch {
                Some(epoch) => {
                    let bytes = epoch.read(0, epoch.len() as usize).unwrap();
                    assert_eq!(chain.follow(&bytes).unwrap().after, step.identity);
                }
                None => {
                    chain = Chain::knowing_digest(step.identity, layout, keys, None);
                }
            }
        }
        for (index, _, after) in changes.records() {
            assert_eq!(after, &self.records[(index * LEN) as usize..][..LEN as usize]);
        }
    }

    /// The look finds the table as it is now, and the server takes it.
    fn check_found(&self, table: &mut FollowedTable) -> NextVersion {
        let before = table.position.clone();
        let next = found(table);
        self.check(&before, &next);
        table.taken();
        assert!(table.look().unwrap().is_none(), "it is found once");
        next
    }
}

/// The new version that the look finds.
fn found(table: &mut FollowedTable) -> NextVersion {
    match table.look().unwrap().expect("something new") {
        Next::Version(next) => next,
        Next::Successor(_) => panic!("the same table"),
    }
}

fn epochs(next: &NextVersion) -> Vec<(u64, bool)> {
    let of = |step: &VersionStep| (step.identity.epoch.0, step.epoch.is_some());
    next.steps.iter().map(of).collect()
}

fn refused(table: &mut FollowedTable) -> Error {
    table.look().err().expect("this cannot be followed")
}

#[test]
fn epochs_are_found_as_they_come_and_a_log_when_it_appears() {
    let mut owner = Owner::new();
    let mut table = owner.follow();
    assert!(!table.has_changed());
    assert!(table.look().unwrap().is_none());
    owner.update(&[3, 7], false);
    assert!(table.has_changed());
    assert_eq!(epochs(&owner.check_found(&mut table)), [(1, true)]);
    assert!(!table.has_changed());
    // Several epochs together make one version.
    (0..3).for_each(|_| owner.update(&[3, 9], false));
    assert_eq!(epochs(&owner.check_found(&mut table)), [(2, true), (3, true), (4, true)]);
}

/// What compactions leave in the log: nothing, or all epochs.
const KEEPS: [u64; 2] = [0, u64::MAX];

#[test]
fn what_the_server_did_not_take_is_found_again_with_what_came_since() {
    for keep in KEEPS {
        let mut owner = Owner::keeping(keep);
        let mut table = owner.follow();
        owner.update(&[1], false);
        assert!(table.look().unwrap().is_some());
        let before = table.position.clone();
        let again = found(&mut table);
        owner.check(&before, &again);
        owner.update(&[2], true);
        let both = found(&mut table);
        assert_eq!(epochs(&both), [(1, true), (2, true)]);
        owner.check(&before, &both);
        owner.update(&[3], true);
        let three = found(&mut table);
        owner.check(&before, &three);
        assert_eq!(three.identity().unwrap().epoch, Epoch(3));
    }
}

/// Pieces of the records then lie wholly in the log, or behind all that the table had before.
#[test]
fn a_table_may_grow_by_more_than_a_piece_at_once() {
    let more = PIECE_BYTES / LEN as usize + 1;
    let mut owner = Owner::new();
    owner.update(&[1], false);
    let (mut table, mut late) = (owner.follow(), owner.follow());
    owner.update(&[2], true);
    owner.check_found(&mut table);
    owner.update_adding(&[3], more, false);
    assert_eq!(epochs(&owner.check_found(&mut table)), [(3, true)]);
    owner.update(&[4], true);
    owner.check_found(&mut table);
    // It never saw the log that this was in.
    assert_eq!(epochs(&owner.check_found(&mut late)), [(2, true), (4, false)]);
}

#[test]
fn a_start_follows_the_log_from_the_snapshot() {
    for (keep, first, kept) in [(0, 1, 0), (u64::MAX, 0, 1)] {
        let mut owner = Owner::keeping(keep);
        owner.update(&[1], true);
        owner.update(&[2, 3], false);
        owner.update(&[4], false);
        let (served, mut table) = owner.serve().unwrap();
        assert_eq!(served.identity.epoch, Epoch(1));
        let updates = served.updates.unwrap();
        let publisher = updates.signing.publisher;
        assert_eq!((publisher, updates.first_epoch), (owner.key.id().0, Epoch(first)));
        assert_eq!(updates.epochs.len(), kept);
        let next = updates.next.unwrap();
        assert_eq!(epochs(&next), [(2, true), (3, true)]);
        assert_eq!(next.records.to_vec().unwrap(), owner.records);
        assert!(table.look().unwrap().is_none());
        owner.update(&[5], false);
        assert_eq!(epochs(&owner.check_found(&mut table)), [(4, true)]);
    }
}

#[test]
fn a_compaction_loses_nothing_that_was_in_the_old_log() {
    for (keep, keep_from) in [(0, 2), (u64::MAX, 0)] {
        let mut owner = Owner::keeping(keep);
        owner.update(&[1], false);
        let mut table = owner.follow();
        // The epoch goes into a log that is replaced at once.
        owner.update(&[2], true);
        let next = owner.check_found(&mut table);
        assert_eq!((epochs(&next), next.keep_from), (vec![(2, true)], Epoch(0)));
        owner.update(&[3], false);
        assert_eq!(epochs(&owner.check_found(&mut table)), [(3, true)]);
        owner.update(&[4], true);
        owner.check_found(&mut table);
        owner.update(&[5], false);
        // Epochs of the log before the last are kept, and no earlier ones.
        let next = owner.check_found(&mut table);
        assert_eq!((epochs(&next), next.keep_from), (vec![(5, true)], Epoch(keep_from)));
        // A compaction that adds nothing changes nothing for the server.
        let snapshot = Snapshot::open(&owner.path()).unwrap();
        let writer = LogWriter::open(&owner.log_path(), &snapshot).unwrap();
        writer.compact(&owner.path(), owner.keep).unwrap();
        assert!(table.look().unwrap().is_none());
        owner.update(&[6], false);
        owner.check_found(&mut table);
    }
}

#[test]
fn epochs_that_nobody_saw_are_made_up_for_by_the_records() {
    for keep in KEEPS {
        let mut owner = Owner::keeping(keep);
        owner.update(&[1], false);
        let mut table = owner.follow();
        owner.update(&[2], true);
        owner.update(&[3, 4], false);
        owner.update(&[5], true);
        owner.update(&[6], false);
        // Epoch 2 is in the old log. 3 and 4 are in a log that came and went. 5 is in the new one,
        // which has all of them if they were kept.
        let next = owner.check_found(&mut table);
        match keep {
            0 => assert_eq!(epochs(&next), [(2, true), (4, false), (5, true)]),
            _ => assert_eq!(epochs(&next), [(2, true), (3, true), (4, true), (5, true)]),
        }

        // The same if there was no log at all.
        let mut owner = Owner::keeping(keep);
        let mut table = owner.follow();
        owner.update(&[1], true);
        assert_eq!(epochs(&owner.check_found(&mut table)), [(1, keep > 0)]);
    }
}

#[test]
fn a_damaged_log_is_refused_until_it_is_whole_again() {
    let mut owner = Owner::new();
    owner.update(&[1], false);
    let mut table = owner.follow();
    owner.update(&[2], false);
    let whole = fs::read(owner.log_path()).unwrap();
    for at in [0, 100, 4100, 8200, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(owner.log_path(), &damaged).unwrap();
        let before = table.position.identity;
        // One of two commit records may be undamaged; if anything is found then, it is right.
        match table.look() {
            Ok(None) => {}
            Ok(Some(Next::Version(next))) => {
                assert_eq!(next.records.to_vec().unwrap(), owner.records);
            }
            Ok(Some(Next::Successor(_))) => panic!("the same table"),
            Err(error) => assert_eq!(error.blame(), Blame::Corrupted, "{at}: {error}"),
        }
        assert_eq!(table.position.identity, before);
    }
    fs::write(owner.log_path(), &whole[..9000]).unwrap();
    assert_eq!(refused(&mut table).blame(), Blame::Corrupted);
    fs::write(owner.log_path(), &whole).unwrap();
    assert_eq!(epochs(&owner.check_found(&mut table)), [(2, true)]);
}

#[test]
fn damaged_records_are_not_handed_over() {
    let mut owner = Owner::new();
    let mut table = owner.follow();
    let mut bytes = fs::read(owner.path()).unwrap();
    let at = bytes.len() - 1;
    bytes[at] ^= 1;
    fs::write(owner.path(), &bytes).unwrap();
    // Its owner has another, whole copy.
    bytes[at] ^= 1;
    let elsewhere = owner.directory.path().join("whole.privet");
    fs::write(&elsewhere, &bytes).unwrap();
    let snapshot = Snapshot::open(&elsewhere).unwrap();
    UpdateLog::create(&owner.log_path(), &snapshot, owner.key.id()).unwrap();
    let mut writer = LogWriter::open(&owner.log_path(), &snapshot).unwrap();
    let record = vec![7; LEN as usize];
    owner.records[..LEN as usize].copy_from_slice(&record);
    let written = BTreeMap::from([(0, record)]);
    let update = TableUpdate::new(snapshot.identity().shape, written, None).unwrap();
    writer.append(&owner.key, &update).unwrap();
    let error = refused(&mut table);
    assert_eq!(error.blame(), Blame::Corrupted, "{error}");
    owner.made = 1;
    fs::write(owner.path(), &bytes).unwrap();
    owner.check_found(&mut table);
}

#[test]
fn another_history_or_an_older_one_is_refused() {
    let mut owner = Owner::new();
    owner.update(&[1], false);
    let older = (fs::read(owner.path()).unwrap(), fs::read(owner.log_path()).unwrap());
    owner.update(&[2], false);
    let mut table = owner.follow();
    let (current, path) = (fs::read(owner.log_path()).unwrap(), owner.path());
    let snapshot = older.0;
    // Each as a new file, like a copy by other programs.
    let put = |log: &[u8]| {
        for (path, bytes) in [(path.clone(), snapshot.as_slice()), (log_path(&path), log)] {
            fs::remove_file(&path).unwrap();
            fs::write(&path, bytes).unwrap();
        }
    };
    put(&older.1);
    assert_eq!(refused(&mut table).blame(), Blame::Integrity, "a rollback");

    // The publisher signs another second epoch.
    let mut fork = Owner {
        directory: tempfile::tempdir().unwrap(),
        records: owner.records[..41 * LEN as usize].to_vec(),
        made: 1,
        key: owner.key,
        keep: owner.keep,
    };
    fs::write(fork.path(), &snapshot).unwrap();
    fs::write(fork.log_path(), &older.1).unwrap();
    for what in ["as many epochs", "more epochs"] {
        fork.update(&[9], false);
        put(&fs::read(fork.log_path()).unwrap());
        assert_eq!(refused(&mut table).blame(), Blame::Integrity, "{what}");
    }
    put(&current);
    assert!(table.look().unwrap().is_none());
    owner.key = fork.key;
    owner.update(&[3], false);
    owner.check_found(&mut table);
}

#[test]
fn another_table_or_publisher_and_a_lost_log_are_refused() {
    let mut owner = Owner::new();
    let unsigned = fs::read(owner.path()).unwrap();
    owner.update(&[1], false);
    let mut table = owner.follow();
    let kept = [owner.path(), owner.log_path()].map(|path| fs::read(path).unwrap());
    fs::remove_file(owner.log_path()).unwrap();
    let error = refused(&mut table);
    assert_eq!(error.blame(), Blame::Unavailable, "{error}");
    assert!(error.message().contains("bring it back"), "{error}");
    // Its records once more, under another publisher.
    let mut other = Owner { key: PublisherKey::generate().unwrap(), made: 0, ..owner };
    other.records.truncate(40 * LEN as usize);
    fs::remove_file(other.path()).unwrap();
    fs::write(other.path(), unsigned).unwrap();
    let snapshot = Snapshot::open(&other.path()).unwrap();
    other.records.copy_from_slice(snapshot.view().bytes());
    other.update(&[1], false);
    assert_eq!(refused(&mut table).blame(), Blame::Integrity);
    for (path, bytes) in [other.path(), other.log_path()].into_iter().zip(kept) {
        fs::write(path, bytes).unwrap();
    }
    assert!(table.look().unwrap().is_none());
    // A table built anew in its place.
    fs::remove_file(other.log_path()).unwrap();
    other.made = 0;
    other.write_snapshot();
    assert_eq!(refused(&mut table).blame(), Blame::Integrity);
}

#[test]
fn a_publisher_who_was_named_has_to_be_the_logs() {
    let mut owner = Owner::new();
    let serve = |owner: &Owner, publisher| {
        TableFile { publisher: Some(publisher), ..owner.table_file() }.open()
    };
    let (own, other) = (owner.key.id(), PublisherKey::generate().unwrap().id());
    // Nobody has signed anything yet.
    let mut refusing = serve(&owner, other).unwrap().1;
    let mut table = serve(&owner, own).unwrap().1;
    owner.update(&[1], false);
    assert_eq!(refused(&mut refusing).blame(), Blame::Integrity);
    assert_eq!(epochs(&owner.check_found(&mut table)), [(1, true)]);
    assert!(serve(&owner, own).is_ok());
    let error = serve(&owner, other).err().expect("the log is another's");
    assert_eq!(error.blame(), Blame::Integrity, "{error}");
}
