//! The owner's side of an update log: appends epochs to it, and makes a new snapshot of it.

use super::entry::Draft;
use super::file::header::{COMMIT_OFFSETS, Commit};
use super::file::{Access, Stored, write_log};
use super::place::{earlier_log_path, log_path};
use super::{CurrentTable, EpochHash, PublisherKey, RecordsDigest, UpdateLog};
use crate::TableLayout;
use crate::edit::TableUpdate;
use crate::new_file::{Existing, cannot};
use crate::snapshot::{Mark, Snapshot, mark};
use privet_core::table::{MAX_EPOCH_LEN, MAX_LAYOUT_LEN};
use privet_core::{Epoch, Error, Result, TableChanges, TableIdentity};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// More bytes than an epoch has besides the layout and the records.
const EPOCH_FIELDS_LEN: u64 = 1024;

/// An update log that is open for writing. Only one exists at a time, across processes, until it is
/// dropped.
pub struct LogWriter<'s> {
    pub(super) snapshot: &'s Snapshot,
    pub(super) log: UpdateLog,
    pub(super) file: File,
    // The digest of the present table; computed when it is first needed.
    digest: Option<RecordsDigest>,
    /// A write failed halfway: only the file shows how far it got.
    pub(super) stopped: bool,
    /// Whether the table file has a mark.
    pub(super) is_marked: bool,
    // Held as long as this value lives. It is a file of its own, which is never removed: a
    // compaction replaces the log itself, and the lock must outlive that.
    _lock: File,
}

impl<'s> LogWriter<'s> {
    /// Opens the log at `path` of the table in `snapshot` for writing. Cuts off an interrupted
    /// writer's unfinished tail.
    ///
    /// # Errors
    /// As [`UpdateLog::open`]; [`Blame::Unavailable`](privet_core::Blame::Unavailable) also if
    /// another process is writing to it.
    pub fn open(path: &Path, snapshot: &'s Snapshot) -> Result<Self> {
        let lock = lock(path)?;
        let log = UpdateLog::open_for(path, snapshot, Access::Exclusive)?;
        let failed = |error| cannot("write", path, error);
        let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
        if log.file_len()? > log.end {
            file.set_len(log.end).map_err(failed)?;
        }
        let is_marked = snapshot.mark().is_some();
        let mut writer =
            Self { snapshot, log, file, digest: None, stopped: false, is_marked, _lock: lock };
        if writer.log.commit_damaged {
            // Write the last epoch's record first: until that is good, the other record may be the
            // only good one.
            let commit = writer.commit_record(writer.log.end);
            let other = COMMIT_OFFSETS.into_iter().filter(|offset| *offset != commit.offset());
            for offset in std::iter::once(commit.offset()).chain(other) {
                writer.write_synced(offset, &commit.encode(&writer.log.header))?;
            }
        }
        Ok(writer)
    }

    /// The log.
    pub fn log(&self) -> &UpdateLog {
        &self.log
    }

    /// The table after its last epoch.
    pub fn table(&self) -> CurrentTable<'_> {
        CurrentTable::new(&self.log.chain, self.snapshot.view().bytes(), &self.log.written)
    }

    /// Checks that `key` is the publisher's.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is not.
    pub fn check_key(&self, key: &PublisherKey) -> Result<()> {
        if key.id() != self.log.publisher() {
            return Err(Error::api_misuse(format!(
                "this is the key of {}, and the table's publisher is {}: clients would refuse what it signs",
                key.id(),
                self.log.publisher()
            )));
        }
        Ok(())
    }

    /// Checks that the table has no successor.
    pub(super) fn check_goes_on(&self) -> Result<()> {
        match self.log.succession() {
            None => Ok(()),
            Some(record) => Err(Error::api_misuse(format!(
                "the table {} ended with its version {}: clients were told that the table {} \
                 succeeds it, so update that one",
                self.log.current().id,
                self.log.current().epoch.0,
                record.new_table().id
            ))),
        }
    }

    pub(super) fn check_not_stopped(&self) -> Result<()> {
        if self.stopped {
            return Err(Error::unavailable(
                "an epoch could not be written: open the update log again to see how far it got",
            ));
        }
        Ok(())
    }

    /// Makes `update` the table's next epoch: signs it, writes it after the last one, and syncs it.
    /// Then raises the snapshot's [mark](crate::snapshot::Mark); a snapshot that has none is
    /// written again. Returns the table's identity afterwards.
    ///
    /// The epoch leaves out records that `update` does not really change. The first call reads the
    /// whole table, and checks that it is what it should be.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `key` is not the publisher's,
    ///   `update` was made for another shape, changes nothing or is more than clients accept at
    ///   once, or the layout does not fit the table afterwards.
    /// - [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the snapshot's records are damaged.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the epoch cannot be written.
    ///   Open the log again to see whether it was; this writer refuses to go on.
    pub fn append(&mut self, key: &PublisherKey, update: &TableUpdate) -> Result<TableIdentity> {
        self.check_not_stopped()?;
        self.check_update(key, update)?;
        let layout = update.layout.as_ref().filter(|layout| *layout != self.log.layout());
        let layout = layout.map(TableLayout::encode);
        let changes = changes_by(&self.table(), update, layout.is_none())?;
        let digest = match self.digest.take() {
            Some(digest) => digest,
            None => self.table().verified_digest()?,
        };
        if self.is_marked {
            mark::check_can_be_raised(self.snapshot.path())?;
        }

        let written = Arc::make_mut(&mut self.log.written);
        let put = |(index, new): (&u64, &Vec<u8>)| (*index, written.insert(*index, new.clone()));
        let displaced: Vec<_> = update.written().iter().map(put).collect();
        let appended = self.write_epoch(key, update, &changes, layout.as_deref(), digest);
        if appended.is_err() {
            self.stopped = true;
            let written = Arc::make_mut(&mut self.log.written);
            for (index, old) in displaced {
                match old {
                    Some(old) => written.insert(index, old),
                    None => written.remove(&index),
                };
            }
        }
        appended?;
        self.raise_mark_of_signed()?;
        Ok(self.log.current())
    }

    /// Notes in the table file how far the log reaches, after something was signed.
    pub(super) fn raise_mark_of_signed(&mut self) -> Result<()> {
        // Whatever it was, it was signed: no other blame says that.
        self.raise_mark().map_err(|error| {
            let epoch = self.log.last_epoch();
            Error::unavailable(format!("epoch {epoch} is in the log: {}", error.message()))
                .caused_by(error)
        })
    }

    /// Notes in the table file how far the log reaches.
    fn raise_mark(&mut self) -> Result<()> {
        let (path, mark) = (self.snapshot.path(), self.mark());
        if self.is_marked {
            return mark::raise(path, self.snapshot.identity(), mark);
        }
        // A file without a mark has no room for one.
        let (snapshot, identity) = (self.snapshot, self.snapshot.identity());
        let record = |number| snapshot.view().record(number);
        snapshot.write_version(path, identity, snapshot.layout(), mark, record)?;
        self.is_marked = true;
        Ok(())
    }

    fn mark(&self) -> Mark {
        Mark { epoch: Epoch(self.log.last_epoch()), hash: self.log.last_hash() }
    }

    /// Writes the epoch of `changes`, and of the encoded layout if that changes. The changes are
    /// already made in memory; `digest` is the table's digest before.
    fn write_epoch(
        &mut self,
        key: &PublisherKey,
        update: &TableUpdate,
        changes: &TableChanges,
        layout: Option<&[u8]>,
        mut digest: RecordsDigest,
    ) -> Result<()> {
        let before = self.log.current();
        let len = before.shape.record_len();
        let changed = update.written().keys().map(|index| index * len..(index + 1) * len);
        digest.update(&self.table().with_shape(update.shape_after()), changed);
        let Some(epoch) = before.epoch.0.checked_add(1).map(Epoch) else {
            return Err(Error::api_misuse("the table has had the last possible epoch"));
        };
        let draft = Draft {
            before,
            previous: self.log.last_hash(),
            epoch,
            records_digest: digest.get(),
            layout,
            changes,
        };
        let bytes = draft.sign(key);
        // If this chain does not follow the epoch, no client would.
        let mut chain = self.log.chain.clone();
        let followed = chain.follow(&bytes)?;

        let stored = self.write_item(&bytes, (epoch, followed.hash))?;
        self.log.chain = chain;
        if let Some(layout) = followed.layout {
            self.log.layout = layout;
        }
        self.log.appended(stored);
        self.digest = Some(digest);
        Ok(())
    }

    /// Writes what stands after the last epoch, and then the record that it is committed. Only the
    /// file changes.
    pub(super) fn write_item(
        &mut self,
        bytes: &[u8],
        (number, last): (Epoch, EpochHash),
    ) -> Result<Stored> {
        let len = bytes.len() as u64;
        let start = self.log.end + 8;
        self.write_synced(self.log.end, &[&len.to_le_bytes()[..], bytes].concat())?;
        let commit = Commit { epoch: number.0, end: start + len, last };
        self.write_synced(commit.offset(), &commit.encode(&self.log.header))?;
        Ok(Stored::new(start..start + len, bytes))
    }

    pub(crate) fn check_update(&self, key: &PublisherKey, update: &TableUpdate) -> Result<()> {
        self.check_goes_on()?;
        self.check_key(key)?;
        if update.shape() != self.log.current().shape {
            return Err(Error::api_misuse("these changes were made for a table of another shape"));
        }
        check_can_be_sent(update)?;
        let layout = update.layout.as_ref().unwrap_or(self.log.layout());
        layout.check_shape(update.shape_after()).map_err(|error| Error::api_misuse(error.message()))
    }

    /// A record that the log is whole up to `end`, where its last epoch or its succession ends.
    fn commit_record(&self, end: u64) -> Commit {
        Commit { epoch: self.log.last_epoch(), end, last: self.log.last_hash() }
    }

    fn write_synced(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut write = || {
            self.file.seek(SeekFrom::Start(offset))?;
            self.file.write_all(bytes)?;
            self.file.sync_all()
        };
        write().map_err(|error| cannot("write", self.log.path(), error))
    }

    /// Writes the present table to a new snapshot file `output`, with a log beside it that has the
    /// last epochs, as many as fit into `keep` bytes, and ends the writer. Clients notice nothing:
    /// the table keeps its id, its epoch and its digest, and the next epoch names the last. Clients
    /// that are further behind than the kept epochs can no longer follow from this log.
    ///
    /// If `output` is the snapshot that the log belongs to, both files are replaced: first the
    /// snapshot, then the log. After a crash between the two, the log has epochs that the snapshot
    /// has too, and still opens; the next compaction completes the work. If `output` is another
    /// path, neither file may exist there, and the log is at [`log_path`]: of the two histories
    /// that begin there, only one can be continued.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if another file is at `output`, or any
    ///   at its [`log_path`]; or if the table has a successor.
    /// - [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the snapshot's records are damaged.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if a file cannot be written.
    pub fn compact(self, output: &Path, keep: u64) -> Result<Snapshot> {
        self.check_not_stopped()?;
        self.check_goes_on()?;
        let target = CompactionTarget::of(&self, output)?;
        let is_written = self.is_marked && self.snapshot.identity() == self.log.current();
        if !target.in_place || !is_written {
            self.write_snapshot(output)?;
        }
        self.write_new_log(&target, keep)?;
        Snapshot::open(output)
    }

    /// The first step of a compaction: the snapshot.
    pub(super) fn write_snapshot(&self, output: &Path) -> Result<()> {
        // A damaged table must not replace any file.
        self.table().verified_digest()?;
        let (current, table) = (self.log.current(), self.table());
        let record = |number| table.record(number);
        self.snapshot.write_version(output, current, self.log.layout(), self.mark(), record)
    }

    /// The second step of a compaction: the log.
    pub(super) fn write_new_log(&self, target: &CompactionTarget, keep: u64) -> Result<()> {
        let (header, lineage, epochs) = self.log.latest(keep)?;
        let existing = if target.in_place { Existing::Replace } else { Existing::Keep };
        let header = (&header, &lineage.encode()[..]);
        write_log(&target.log, header, &epochs, self.log.last_hash(), existing)
    }
}

impl std::fmt::Debug for LogWriter<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LogWriter").field("log", &self.log).finish_non_exhaustive()
    }
}

/// Refuses an epoch that servers would not send or clients not accept: a signed epoch cannot be
/// withdrawn.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers.
pub(crate) fn check_can_be_sent(update: &TableUpdate) -> Result<()> {
    let layout_len = update.layout.as_ref().map_or(0, |layout| layout.encode().len() as u64);
    if layout_len > MAX_LAYOUT_LEN {
        return Err(Error::api_misuse(format!(
            "the key map, with its stash, would have {layout_len} bytes, and clients accept at most {MAX_LAYOUT_LEN}: build the table anew with more room"
        )));
    }
    let shape = update.shape();
    // An epoch has, for each record, its number and both its versions, or the one version of a new
    // record.
    let record_len = |index: u64| match index < shape.records() {
        true => 2 * shape.record_len() + 8,
        false => shape.record_len(),
    };
    let records_len: u64 = update.written().keys().map(|index| record_len(*index)).sum();
    let len = layout_len + records_len + EPOCH_FIELDS_LEN;
    if len > MAX_EPOCH_LEN as u64 {
        return Err(Error::api_misuse(format!(
            "these changes take {len} bytes, and clients accept at most {MAX_EPOCH_LEN} at once: make several updates of them, one after the other, or build the table anew"
        )));
    }
    Ok(())
}

/// The real changes of an update.
fn changes_by(
    table: &CurrentTable<'_>,
    update: &TableUpdate,
    layout_stays: bool,
) -> Result<TableChanges> {
    let absent = vec![0; update.shape().record_len() as usize];
    let records = update.written().iter().filter_map(|(index, new)| match table.record(*index) {
        Some(old) if old == new.as_slice() => None,
        old => Some((*index, old.unwrap_or(&absent).to_vec(), new.clone())),
    });
    let changes = TableChanges::new(update.shape(), update.shape_after(), records)?;
    match layout_stays && changes.is_empty() {
        true => Err(Error::api_misuse("nothing would change: the table has these records already")),
        false => Ok(changes),
    }
}

/// Where a compaction writes.
pub(super) struct CompactionTarget {
    log: PathBuf,
    in_place: bool,
}

impl CompactionTarget {
    pub(super) fn of(writer: &LogWriter<'_>, output: &Path) -> Result<Self> {
        if output == writer.snapshot.path() {
            return Ok(Self { log: writer.log.path().to_owned(), in_place: true });
        }
        let log = log_path(output);
        for path in [output, &log, &earlier_log_path(output)] {
            if path.exists() {
                return Err(Error::api_misuse(format!(
                    "{} is there already: choose another name",
                    path.display()
                )));
            }
        }
        Ok(Self { log, in_place: false })
    }
}

/// Takes the lock that belongs to the log at `path`. It ends with the process that holds it,
/// however that ends.
pub(crate) fn lock(path: &Path) -> Result<File> {
    let mut lock_path = path.as_os_str().to_owned();
    lock_path.push(".lock");
    let lock_path = PathBuf::from(lock_path);
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    let file = options.open(&lock_path).map_err(|error| cannot("create", &lock_path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::unavailable(format!(
            "another process is writing to {}: wait until it is done",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(cannot("lock", &lock_path, error)),
    }
}
