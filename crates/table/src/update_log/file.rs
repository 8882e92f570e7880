//! The update log of a table as a file beside its snapshot.
//!
//! # Layout
//!
//! Numbers are little-endian; offsets are in bytes.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | magic: `89 50 52 56 4c 0d 0a 1a`, which is `PRVL` between bytes that a transfer in text mode damages |
//! | 8 | 4 | format version, 2; 3 if there is a next key or a lineage |
//! | 12 | 16 | table id |
//! | 28 | 8 | base: the epoch after which the log begins |
//! | 36 | 32 | the table's digest at the base |
//! | 68 | 32 | the public key of who publishes the table at the base |
//! | 100 | 32 | hash of the epoch that made the base, zeros if there is none |
//! | 132 | 8 | the number of records when the table's first log was begun: later logs of it carry it on |
//! | 140 | 0 or 69 | version 3: whether that publisher has a next key (1), its digest (32), length (4) and BLAKE3 digest (32) of the lineage before the base |
//! | | 32 | BLAKE3 checksum of everything before it |
//! | 4096 | 80 | commit record of even epochs |
//! | 8192 | 80 | commit record of odd epochs |
//! | 12288 | | the [lineage](super::Lineage) before the base, up to a multiple of 4096 |
//! | | | epochs, base + 1 and following: the length of each (8 bytes), and its [encoding](super) |
//!
//! The gaps are zeros. A commit record says how far the log is whole:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | the last epoch, or the base |
//! | 8 | 8 | offset of the end of the last epoch |
//! | 16 | 32 | hash of the last epoch, or of the one that made the base |
//! | 48 | 32 | BLAKE3 digest of the log's header checksum and the bytes before it |
//!
//! A rotation of keys stands among the epochs. A [succession](super::Succession) to another table
//! is the last thing in a log. It counts as an epoch here, and in commit records and marks, and
//! makes no version of the table.
//!
//! # What a crash leaves
//!
//! To append, the epoch is written after the last one and synced. Then the commit record is written
//! over the older of the two, and synced. The newer record counts. So:
//!
//! | interrupted | the file has | what it means |
//! |---|---|---|
//! | while the epoch is written | any bytes after the committed end | an *unfinished tail*: nobody has seen it, readers ignore it, the next writer cuts it off |
//! | while the commit record is written | one damaged commit record, and one whole epoch after the end that the other names | the epoch counts |
//! | afterwards | two good records | the epoch counts |
//!
//! Everything before the committed end was whole once. If any part of it no longer is, the file is
//! damaged. Then it is refused as a whole, and nothing is cut off: an epoch that clients have seen
//! must not be made a second time with other contents.
//!
//! That is why there are two commit records, written in turn, and not a checksum for each epoch. A
//! torn last epoch, which nobody has seen, and a damaged one that clients have seen would look the
//! same to a checksum.
//!
//! # A log and its snapshot
//!
//! After an interrupted [compaction](super::LogWriter::compact), the snapshot already has some of
//! the log's epochs. These are skipped, once it is certain that they lead to this very snapshot.
//!
//! The snapshot has a [mark](crate::snapshot::Mark) of how far the log has reached. A log that ends
//! before it is an old copy, and is refused. One that ends after it is what a crash leaves between
//! the log and the mark.

use super::chain::{Link, check_next};
use super::current::Written;
use super::recorded::Recorded;
use super::{
    Chain, CurrentRecords, CurrentTable, EpochHash, EpochUpdate, Lineage, PublisherId, Succession,
    TableKeys, find_log_of,
};
use crate::TableLayout;
use crate::new_file::{Existing, NewFile, cannot};
use crate::snapshot::{Mark, Snapshot};
pub(crate) use header::MAGIC as LOG_MAGIC;
use header::{COMMIT_OFFSETS, Commit, HEADER_LEN, Header, LINEAGE_OFFSET};
use privet_core::{Epoch, Error, Result, TableIdentity, TableShape};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

pub(super) mod header;

/// Each epoch is preceded by its length.
const LENGTH_LEN: u64 = 8;

/// An open update log, checked from its base to its end.
///
/// Keeps in memory the records that the log has written since the snapshot, and the position of
/// each epoch. A compaction replaces the file; this value goes on reading the old one, to which
/// nothing is added any more. A server opens snapshot and log again when either has a new file.
pub struct UpdateLog {
    path: Arc<Path>,
    // The file has one position, which all readers share.
    file: Arc<Mutex<File>>,
    pub(super) header: Header,
    snapshot: TableIdentity,
    pub(super) chain: Chain,
    /// How to read records at the chain's end.
    pub(super) layout: TableLayout,
    /// The encodings of the epochs, from base + 1 on.
    epochs: Vec<Stored>,
    /// The successions that lead to the table, and its rotations.
    pub(super) lineage: Lineage,
    /// The succession that ends the log.
    pub(super) ended: Option<Succession>,
    pub(super) written: Arc<Written>,
    /// How far the file was read.
    pub(super) end: u64,
    /// Whether the commit record of the last epoch, or of the one before it, is unreadable.
    pub(super) commit_damaged: bool,
}

/// The encoding of an epoch in the file: its position, and its digest when it was checked.
#[derive(Clone)]
pub(super) struct Stored {
    place: Range<u64>,
    digest: [u8; 32],
}

impl Stored {
    /// An epoch whose checked bytes `bytes` lie at `place`.
    pub(super) fn new(place: Range<u64>, bytes: &[u8]) -> Self {
        Self { place, digest: *blake3::hash(bytes).as_bytes() }
    }

    /// Where it ends in the file.
    pub(super) fn end(&self) -> u64 {
        self.place.end
    }
}

/// How the file is used: it decides how to treat bytes after the committed end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// A writer may be at work at the same time.
    Shared,
    /// No writer is.
    Exclusive,
}

impl UpdateLog {
    /// Makes an empty log at `path` for the table in `snapshot`, with the publisher and the next
    /// key of `keys` from now on.
    ///
    /// Not for a table that has had a log before: the new log's first epoch would name no epoch
    /// before, and a client that has followed one would refuse it as another history.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the file exists already.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be written.
    pub fn create(path: &Path, snapshot: &Snapshot, keys: impl Into<TableKeys>) -> Result<Self> {
        Self::create_after(path, snapshot, keys.into(), &Lineage::default())
    }

    /// The same for a table to which `lineage` leads.
    ///
    /// # Errors
    /// As [`create`](Self::create); [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) also if the
    /// lineage leads to another table, or to other keys.
    pub fn create_after(
        path: &Path,
        snapshot: &Snapshot,
        keys: TableKeys,
        lineage: &Lineage,
    ) -> Result<Self> {
        let end = lineage.end();
        if end.is_some_and(|end| end != (snapshot.identity(), keys)) {
            return Err(Error::api_misuse(format!(
                "the succession that was signed leads to another table than {}, or to other keys",
                snapshot.path().display()
            )));
        }
        let encoded = lineage.encode();
        let header = Header::new(snapshot.identity(), keys, EpochHash::NONE).after(&encoded);
        write_log(path, (&header, &encoded), &[], EpochHash::NONE, Existing::Keep)?;
        Self::open(path, snapshot)
    }

    /// Opens the log beside `snapshot`. `None` if the table has never had one.
    ///
    /// # Errors
    /// As [`open`](Self::open). [`Blame::Unavailable`](privet_core::Blame::Unavailable) also if the
    /// table has had a log, and it is gone; [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if
    /// there are two.
    pub fn of(snapshot: &Snapshot) -> Result<Option<Self>> {
        find_log_of(snapshot)?.map(|path| Self::open(&path, snapshot)).transpose()
    }

    /// Opens the log at `path` of the table in `snapshot` and checks all of it. Ignores an
    /// unfinished tail: another process may be writing it.
    ///
    /// # Errors
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be read, or begins
    ///   after the snapshot: then a compaction came in between, and both must be opened again. Or
    ///   it ends before the snapshot's [mark](crate::snapshot::Mark): then it is an old copy.
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is not an update log, has
    ///   another version, or belongs to another table.
    /// - [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is damaged, or does not belong
    ///   to this snapshot.
    /// - [`Blame::Integrity`](privet_core::Blame::Integrity) if it has another history than the
    ///   snapshot's mark.
    pub fn open(path: &Path, snapshot: &Snapshot) -> Result<Self> {
        Self::open_for(path, snapshot, Access::Shared)
    }

    pub(super) fn open_for(path: &Path, snapshot: &Snapshot, access: Access) -> Result<Self> {
        let mut file = File::open(path).map_err(|error| cannot_read(path, error))?;
        let named = |error: Error| error.within(path.display());
        let mut bytes = Vec::with_capacity(HEADER_LEN);
        let read = (&mut file).take(HEADER_LEN as u64).read_to_end(&mut bytes);
        read.map_err(|error| cannot_read(path, error))?;
        let header = Header::parse(&bytes).map_err(named)?;
        let identity = snapshot.identity();
        header.check_belongs_to(identity).map_err(named)?;
        let chain =
            Chain::new(identity, snapshot.layout().clone(), header.keys, Some(header.previous))
                .map_err(named)?;
        let (end, lineage_place) = (header.first_epoch(), header.lineage_place());
        let mut log = Self {
            path: path.into(),
            file: Arc::new(Mutex::new(file)),
            header,
            snapshot: identity,
            chain,
            layout: snapshot.layout().clone(),
            epochs: Vec::new(),
            lineage: Lineage::default(),
            ended: None,
            written: Arc::default(),
            end,
            commit_damaged: false,
        };
        let lineage = log.read(lineage_place).map_err(named)?;
        log.lineage = log.header.read_lineage(&lineage).map_err(named)?;
        log.read_on(access, |_| {}).map_err(named)?;
        if let Some(mark) = snapshot.mark() {
            log.check_reaches(mark, snapshot.path()).map_err(named)?;
        }
        Ok(log)
    }

    /// Checks that the log has the epoch of the mark in the table file `table`.
    fn check_reaches(&self, mark: Mark, table: &Path) -> Result<()> {
        let last = self.last_epoch();
        if last < mark.epoch.0 {
            return Err(Error::unavailable(format!(
                "it ends with epoch {last}, and {} has had epoch {}: it is an older copy than the \
                 table. If both are being copied just now, wait; if not, copy the log again, or \
                 bring back the newer one",
                table.display(),
                mark.epoch.0
            )));
        }
        // The log begins at or before the snapshot, and a mark is not before its snapshot.
        let hash = match mark.epoch.0.checked_sub(self.header.base.0) {
            None => return Ok(()),
            Some(0) => self.header.previous,
            Some(number) => {
                match usize::try_from(number - 1).ok().and_then(|at| self.epochs.get(at)) {
                    Some(stored) => Recorded::decode(&self.read(stored.place.clone())?)?.hash(),
                    None => self.last_hash(),
                }
            }
        };
        if hash != mark.hash {
            return Err(Error::integrity(format!(
                "its epoch {} is another than {} has had: the two files are of different \
                 histories, so bring back the log that belongs to the table",
                mark.epoch.0,
                table.display()
            )));
        }
        Ok(())
    }

    /// Reads and returns the epochs that were appended since the log was opened or last read, in
    /// order.
    ///
    /// # Errors
    /// As [`open`](Self::open). After an error this log may have followed some of the epochs: open
    /// it again.
    pub fn catch_up(&mut self) -> Result<Vec<EpochUpdate>> {
        let mut updates = Vec::new();
        let read = self.read_on(Access::Shared, |update| updates.push(update));
        read.map_err(|error| error.within(self.path.display()))?;
        Ok(updates)
    }

    /// The table after the last epoch.
    pub fn current(&self) -> TableIdentity {
        self.chain.identity()
    }

    /// How to read its records after the last epoch.
    pub fn layout(&self) -> &TableLayout {
        &self.layout
    }

    /// The position after all of it.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The epoch after which the log begins: clients at this epoch or later can follow.
    pub fn base(&self) -> Epoch {
        self.header.base
    }

    /// The table's publisher after the last epoch.
    pub fn publisher(&self) -> PublisherId {
        self.keys().publisher
    }

    /// The publisher after the last epoch, and the publisher's next key.
    pub fn keys(&self) -> TableKeys {
        self.chain.keys()
    }

    /// Who signs what follows the table's version `epoch`, which is not before the
    /// [base](Self::base).
    pub fn keys_at(&self, epoch: Epoch) -> TableKeys {
        let until = self.lineage.until(self.header.id, epoch);
        until.end().map_or(self.header.keys, |(_, keys)| keys)
    }

    /// The successions that lead to this table, and the rotations of its keys.
    pub fn lineage(&self) -> &Lineage {
        &self.lineage
    }

    /// The succession that ends this table: no epoch follows.
    pub fn succession(&self) -> Option<&Succession> {
        self.ended.as_ref()
    }

    /// How many records the table had when its first log was begun; compactions do not change it.
    /// Parameters that depend on the number of records are chosen for this number, so that they are
    /// the same before and after a compaction.
    pub fn first_records(&self) -> u64 {
        self.header.first_records
    }

    /// The table of the snapshot, if it still had its first shape: a scheme is chosen for this
    /// one, and its parameters are.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is no such shape.
    pub fn first_table(&self) -> Result<TableIdentity> {
        let shape = TableShape::new(self.first_records(), self.snapshot.shape.record_len())?;
        Ok(TableIdentity { shape, ..self.snapshot })
    }

    /// The bytes of its epochs.
    pub fn epoch_bytes(&self) -> u64 {
        self.end - self.header.first_epoch()
    }

    /// The bytes of those epochs that the snapshot does not have yet.
    pub fn unfolded_bytes(&self) -> u64 {
        let folded = self.snapshot.epoch.0.saturating_sub(self.header.base.0);
        let first = usize::try_from(folded).ok().and_then(|folded| self.epochs.get(folded));
        first.map_or(0, |first| self.end - (first.place.start - LENGTH_LEN))
    }

    /// The last epochs, encoded, as many as fit into `limit` bytes; and the header and lineage of a
    /// log that begins with them.
    pub(super) fn latest(&self, limit: u64) -> Result<(Header, Lineage, Vec<Vec<u8>>)> {
        let first_records = self.header.first_records;
        let mut header =
            Header { first_records, ..Header::new(self.current(), self.keys(), self.last_hash()) };
        let mut epochs = Vec::new();
        for Stored { place, .. } in self.epochs.iter().rev() {
            if self.end - (place.start - LENGTH_LEN) > limit {
                break;
            }
            let bytes = self.read(place.clone())?;
            let recorded = Recorded::decode(&bytes)?;
            header.base = Epoch(recorded.number().0 - 1);
            (header.digest, header.previous) = (recorded.digest_before(), recorded.previous());
            epochs.push(bytes);
        }
        epochs.reverse();
        let lineage = self.lineage.until(header.id, header.base);
        header.keys = self.keys_at(header.base);
        Ok((header.after(&lineage.encode()), lineage, epochs))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The table after the last epoch, over the snapshot with which the log was opened.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `snapshot` is another one.
    pub fn table<'a>(&'a self, snapshot: &'a Snapshot) -> Result<CurrentTable<'a>> {
        if snapshot.identity() != self.snapshot {
            return Err(Error::api_misuse("this update log was opened with another snapshot"));
        }
        Ok(CurrentTable::new(&self.chain, snapshot.view().bytes(), &self.written))
    }

    /// The same table's records, to be read from the snapshot's file. They stay the same when the
    /// log is read on.
    ///
    /// # Errors
    /// As [`table`](Self::table).
    pub fn records(&self, snapshot: &Arc<Snapshot>) -> Result<CurrentRecords> {
        let shape = self.table(snapshot)?.shape();
        Ok(CurrentRecords::new(Arc::clone(snapshot), shape, Arc::clone(&self.written)))
    }

    /// The epochs after `epoch`, in order, encoded: what a client at `epoch` needs. Empty if that
    /// is the last.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the log begins later (its older
    /// epochs are only in the snapshot), or ends earlier. For each epoch:
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be read,
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it has changed.
    pub fn epochs_from(
        &self,
        epoch: Epoch,
    ) -> Result<impl ExactSizeIterator<Item = Result<Vec<u8>>> + '_> {
        Ok(self.places_from(epoch)?.iter().map(|Stored { place, digest }| {
            let bytes = self.read(place.clone())?;
            // A client would refuse a damaged epoch too, and blame its server.
            match blake3::hash(&bytes) == *digest {
                true => Ok(bytes),
                false => Err(damaged("an epoch has changed since it was read first")
                    .within(self.path.display())),
            }
        }))
    }

    /// The same epochs by their positions, to be sent piece by piece.
    ///
    /// # Errors
    /// As [`epochs_from`](Self::epochs_from) of all of them.
    pub fn stored_from(
        &self,
        epoch: Epoch,
    ) -> Result<impl ExactSizeIterator<Item = StoredEpoch> + '_> {
        let stored = |stored: &Stored| StoredEpoch {
            path: Arc::clone(&self.path),
            file: Arc::clone(&self.file),
            stored: stored.clone(),
        };
        Ok(self.places_from(epoch)?.iter().map(stored))
    }

    /// The positions of the epochs after `epoch`.
    fn places_from(&self, epoch: Epoch) -> Result<&[Stored]> {
        let (base, last) = (self.base().0, self.current().epoch.0);
        let Some(known) = epoch.0.checked_sub(base) else {
            return Err(Error::api_misuse(format!(
                "the epochs that follow epoch {} are no longer kept (the log begins after epoch {base}): start again with the table as it is now",
                epoch.0
            )));
        };
        let Some(places) = usize::try_from(known).ok().and_then(|known| self.epochs.get(known..))
        else {
            return Err(Error::api_misuse(format!(
                "there is no epoch {} yet: the table is at epoch {last}",
                epoch.0
            )));
        };
        Ok(places)
    }

    /// Reads from `self.end` to the committed end.
    fn read_on(&mut self, access: Access, mut each: impl FnMut(EpochUpdate)) -> Result<()> {
        let commit = self.last_commit()?;
        let adopted = self.commit_damaged && commit.epoch.checked_add(1) == Some(self.last_epoch());
        if !adopted {
            while self.end < commit.end {
                let place = self.next_place(commit.end)?;
                self.follow_at(place, &mut each)?;
            }
            let read_to =
                Commit { epoch: self.last_epoch(), end: self.end, last: self.last_hash() };
            if read_to != commit {
                return Err(damaged("its epochs are not those that it has committed"));
            }
            if self.commit_damaged {
                self.adopt_uncommitted(access, &mut each)?;
            }
        }
        if self.snapshot_reached() {
            return Ok(());
        }
        Err(damaged("it ends before the epoch that its snapshot has"))
    }

    /// The newer valid commit record, which counts. Notes whether the other one is damaged.
    fn last_commit(&mut self) -> Result<Commit> {
        let mut commits = Vec::new();
        for offset in COMMIT_OFFSETS {
            let end = offset + Commit::LEN as u64;
            let bytes = if end <= self.file_len()? { self.read(offset..end)? } else { Vec::new() };
            commits.extend(Commit::parse(&self.header, &bytes));
        }
        self.commit_damaged = commits.len() < COMMIT_OFFSETS.len();
        let last = commits.into_iter().max_by_key(|commit| commit.epoch);
        last.ok_or_else(|| damaged("both of its commit records are unreadable"))
    }

    /// Takes in the epoch after the committed end, if there is one: the unreadable commit record
    /// may have been that epoch's, and then the epoch is whole.
    fn adopt_uncommitted(
        &mut self,
        access: Access,
        each: &mut impl FnMut(EpochUpdate),
    ) -> Result<()> {
        let file_len = self.file_len()?;
        if file_len == self.end {
            return Ok(());
        }
        let followed = self.next_place(file_len).and_then(|place| self.follow_at(place, each));
        // A reader must accept this: a writer may just be writing it.
        if followed.is_ok() || access == Access::Shared {
            return Ok(());
        }
        Err(damaged(
            "a commit record is unreadable, and the epoch that it may belong to is not whole",
        ))
    }

    /// The position of the next epoch, before `end`.
    fn next_place(&self, end: u64) -> Result<Range<u64>> {
        let start = self.end + 8;
        let cut = || damaged("an epoch ends beyond the end");
        if start > end {
            return Err(cut());
        }
        let mut len = [0; 8];
        len.copy_from_slice(&self.read(self.end..start)?);
        let place_end = start.checked_add(u64::from_le_bytes(len)).filter(|place| *place <= end);
        Ok(start..place_end.ok_or_else(cut)?)
    }

    /// Reads the epoch at `place` and follows it, or skips it if the snapshot has it already.
    fn follow_at(&mut self, place: Range<u64>, each: &mut impl FnMut(EpochUpdate)) -> Result<()> {
        let bytes = self.read(place.clone())?;
        let as_damage = |error: Error| damaged(error.message()).caused_by(error);
        if self.ended.is_some() {
            return Err(damaged("something follows the table's succession"));
        }
        let stored = Stored::new(place, &bytes);
        let recorded = Recorded::decode(&bytes).map_err(as_damage)?;
        match recorded {
            _ if !self.snapshot_reached() => self.pass_over(&recorded).map_err(as_damage)?,
            Recorded::Succession(record) if !record.is_rotation() => {
                self.end_with(record, stored.place.end).map_err(as_damage)?;
                return Ok(());
            }
            _ => {
                let update = self.chain.follow(&bytes).map_err(as_damage)?;
                Arc::make_mut(&mut self.written)
                    .extend(update.written().map(|(index, new)| (index, new.to_vec())));
                if let Some(layout) = update.layout() {
                    self.layout.clone_from(layout);
                }
                if let Recorded::Succession(rotation) = recorded {
                    self.lineage.push(rotation).map_err(as_damage)?;
                }
                each(update);
            }
        }
        self.appended(stored);
        Ok(())
    }

    /// Takes the succession that ends the log, at `end`.
    pub(super) fn end_with(&mut self, record: Succession, end: u64) -> Result<()> {
        check_next(self.current().epoch, record.number())?;
        record.follow(&self.chain)?;
        (self.ended, self.end) = (Some(record), end);
        Ok(())
    }

    /// The number of the last epoch that was read, or of the succession; or the base.
    pub(super) fn last_epoch(&self) -> u64 {
        // At most the number of the last epoch, and 1.
        self.header.base.0 + self.epochs.len() as u64 + u64::from(self.ended.is_some())
    }

    /// The hash of the last epoch or of the succession; for a log without any, of the epoch that
    /// made its base.
    pub(super) fn last_hash(&self) -> EpochHash {
        let ended = self.ended.as_ref().map(Succession::hash);
        // The chain of a log knows it: without epochs, from the header.
        ended.or(self.chain.previous()).unwrap_or(EpochHash::NONE)
    }

    /// Whether all epochs that the snapshot has were read.
    fn snapshot_reached(&self) -> bool {
        self.last_epoch() >= self.snapshot.epoch.0
    }

    /// Checks an epoch that the snapshot already has.
    fn pass_over(&mut self, recorded: &Recorded) -> Result<()> {
        let Header { id, digest, .. } = self.header;
        let digest = self.epochs.is_empty().then_some(digest);
        let (keys, previous) = (self.chain.keys(), self.chain.previous());
        let epoch = Epoch(self.last_epoch());
        let (after, keys) = match recorded {
            Recorded::Epoch(entry) => {
                Link { id, epoch, publisher: keys.publisher, previous, digest }.check(entry)?;
                ((entry.after, entry.digest_after(self.chain.layout_digest())), keys)
            }
            Recorded::Succession(record) => {
                let keys = record.follow_unknown((id, epoch), keys, previous)?;
                let TableIdentity { shape, digest, .. } = record.new_table();
                if !record.is_rotation() {
                    return Err(damaged("its snapshot is later than the table's succession"));
                }
                self.lineage.push(record.clone())?;
                ((shape, digest), keys)
            }
        };
        let leads_here = after == (self.snapshot.shape, self.snapshot.digest);
        if recorded.number() == self.snapshot.epoch && !leads_here {
            return Err(Error::integrity("its epochs do not lead to the snapshot"));
        }
        self.chain.set_passed(recorded.hash(), keys);
        Ok(())
    }

    pub(super) fn file_len(&self) -> Result<u64> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(file.metadata().map_err(|error| cannot_read(&self.path, error))?.len())
    }

    /// The bytes in `range`. Allocates only after checking that they are there.
    fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |error| cannot_read(&self.path, error);
        if range.end > file.metadata().map_err(failed)?.len() {
            return Err(damaged("it ends too early"));
        }
        file.seek(SeekFrom::Start(range.start)).map_err(failed)?;
        let mut bytes = vec![0; (range.end - range.start) as usize];
        file.read_exact(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    /// Notes an epoch that is in the file and committed.
    pub(super) fn appended(&mut self, stored: Stored) {
        self.end = stored.place.end;
        self.epochs.push(stored);
    }
}

/// An epoch of a log, in the log's file. It can be read as long as this value lives, even if the
/// file is replaced.
#[derive(Clone)]
pub struct StoredEpoch {
    path: Arc<Path>,
    file: Arc<Mutex<File>>,
    stored: Stored,
}

#[expect(clippy::len_without_is_empty, reason = "a signature alone has bytes")]
impl StoredEpoch {
    /// How many bytes it has.
    pub fn len(&self) -> u64 {
        self.stored.place.end - self.stored.place.start
    }

    /// The BLAKE3 digest of its bytes when the log was read and the epoch was checked.
    pub fn digest(&self) -> [u8; 32] {
        self.stored.digest
    }

    /// The file, under the name that it had when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `len` of its bytes from `offset` on, as they are now: they are not checked again.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the epoch ends before;
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if they cannot be read;
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the file was cut short.
    pub fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        if offset.checked_add(len as u64).is_none_or(|end| end > self.len()) {
            return Err(Error::api_misuse(format!("the epoch has {} bytes", self.len())));
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = vec![0; len];
        let read = file
            .seek(SeekFrom::Start(self.stored.place.start + offset))
            .and_then(|_| file.read_exact(&mut bytes));
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged("an epoch that was read before is cut off"),
            _ => Error::unavailable("an epoch of the update log can no longer be read")
                .caused_by(error),
        })?;
        Ok(bytes)
    }
}

impl std::fmt::Debug for UpdateLog {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("UpdateLog")
            .field("path", &self.path)
            .field("base", &self.base())
            .field("current", &self.current())
            .finish_non_exhaustive()
    }
}

/// Writes a log with the encoded lineage that its header names, and with the epochs `epochs`, which
/// end with `last`.
pub(super) fn write_log(
    path: &Path,
    (header, lineage): (&Header, &[u8]),
    epochs: &[Vec<u8>],
    last: EpochHash,
    existing: Existing,
) -> Result<()> {
    let lengths = epochs.iter().map(|epoch| LENGTH_LEN + epoch.len() as u64);
    let end = header.first_epoch() + lengths.sum::<u64>();
    let commit = Commit { epoch: header.base.0 + epochs.len() as u64, end, last };
    let mut bytes = header.encode();
    for offset in COMMIT_OFFSETS {
        bytes.resize(offset as usize, 0);
        bytes.extend_from_slice(&commit.encode(header));
    }
    bytes.resize(LINEAGE_OFFSET as usize, 0);
    bytes.extend_from_slice(lineage);
    bytes.resize(header.first_epoch() as usize, 0);
    let mut file = NewFile::create(path, existing)?;
    let mut write =
        |bytes: &[u8]| file.write_all(bytes).map_err(|error| cannot("write", path, error));
    write(&bytes)?;
    for epoch in epochs {
        write(&(epoch.len() as u64).to_le_bytes())?;
        write(epoch)?;
    }
    file.publish()
}

fn cannot_read(path: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return Error::api_misuse(format!("there is no update log at {}", path.display()));
    }
    Error::unavailable(format!("cannot read {}: {error}", path.display())).caused_by(error)
}

/// The error for a file that differs from what was written.
pub(super) fn damaged(how: &str) -> Error {
    Error::corrupted(format!(
        "the update log is damaged: {how}; copy it again from where it is whole, together with its snapshot. Do not make a new one from an old snapshot: clients refuse a second history"
    ))
}
