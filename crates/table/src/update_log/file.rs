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

use super::{
    Chain, CurrentRecords, CurrentTable, EpochHash, Lineage, PublisherId, Succession, TableKeys,
    find_log_of,
};
use crate::TableLayout;
use crate::edit::Written;
use crate::new_file::{Existing, NewFile, cannot};
use crate::snapshot::Snapshot;
pub(super) use epochs::Stored;
pub(crate) use header::MAGIC as LOG_MAGIC;
use header::{COMMIT_OFFSETS, Commit, HEADER_LEN, Header, LINEAGE_OFFSET};
use privet_core::{Epoch, Error, Result, TableIdentity, TableShape};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

mod epochs;
pub(super) mod header;
mod reading;

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
        log.read_on(access).map_err(named)?;
        if let Some(mark) = snapshot.mark() {
            log.check_reaches(mark, snapshot.path()).map_err(named)?;
        }
        Ok(log)
    }

    /// Reads the epochs that were appended since the log was opened or last read. Returns how many
    /// there were.
    ///
    /// # Errors
    /// As [`open`](Self::open). After an error this log may have followed some of the epochs: open
    /// it again.
    pub fn catch_up(&mut self) -> Result<usize> {
        let before = self.epochs.len();
        self.read_on(Access::Shared).map_err(|error| error.within(self.path.display()))?;
        Ok(self.epochs.len() - before)
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
