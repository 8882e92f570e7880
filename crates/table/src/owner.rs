//! A table at its owner: changes go in, and signed epochs come out, in the log beside the table's
//! file.
//!
//! ```no_run
//! use privet_table::owner::OwnedTable;
//! use privet_table::snapshot::Snapshot;
//! use privet_table::update_log::PublisherKey;
//!
//! # fn main() -> privet_core::Result<()> {
//! let snapshot = Snapshot::open("packages.privet".as_ref())?;
//! let key = PublisherKey::from_file("publisher.key".as_ref())?;
//! let mut table = OwnedTable::open(&snapshot, key)?;
//! let mut rows = table.editor()?;
//! rows.set(b"openssl", b"3.5.1")?;
//! let (update, counts) = rows.finish()?;
//! if let Some(update) = update {
//!     table.publish(&update)?;
//! }
//! println!("{} keys are new in epoch {}", counts.inserted, table.identity().epoch.0);
//! # Ok(())
//! # }
//! ```

#[cfg(test)]
mod tests;

use crate::build::{BuildOptions, KeptRows, OnDuplicate, Progress, RangeColumns};
use crate::edit::replacement::{EPOCH_BYTES, check_columns, replacement};
use crate::edit::{HowReplaced, Replacement, RowEditor, TableUpdate, not_edited};
use crate::import::{Selection, Source};
use crate::key_map::{Directory, Room, RowKey, decode_list};
use crate::snapshot::{Mark, Snapshot};
use crate::update_log::{
    LogWriter, NextKeyDigest, PublisherId, PublisherKey, Signers, Succession, TableKeys, UpdateLog,
    find_log, find_log_of, lock, log_path,
};
use crate::{RecordLayout, TableLayout};
use privet_core::{Epoch, Error, Reason, Result, SecretRng, TableIdentity};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// A compaction leaves the last epochs in the log, up to one part in this many of the table file's
/// size: clients at one of these epochs can still follow.
const KEPT_SHARE: u64 = 4;

/// Begins the signed history of the table at `path`: `publisher` signs its updates from now on. For
/// a table that was built without a log; or one whose log is lost for good, which goes on as
/// another table then, from what its file has. Does nothing if that was done already and nothing
/// was signed since.
///
/// Clients that know the table as it was refuse it until their users accept it as a new one.
///
/// # Errors
/// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table has a log with epochs, or of
///   another publisher, or is authenticated.
/// - [`Blame::Corrupted`](privet_core::Blame::Corrupted) if its records are damaged.
/// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the files cannot be written, or
///   another process is writing to them.
pub fn begin_history(path: &Path, publisher: PublisherId) -> Result<()> {
    let snapshot = Snapshot::open(path)?;
    let log_path = log_path(path);
    let _lock = lock(&log_path)?;
    if snapshot.layout().authentication().is_some() {
        return Err(not_edited());
    }
    if let Some(found) = find_log(path)? {
        let log = UpdateLog::open(&found, &snapshot)?;
        if log.publisher() == publisher && log.current().epoch == Epoch(0) {
            return Ok(());
        }
        return Err(Error::api_misuse(format!(
            "the table has its history already: {} is of the publisher {}, and reaches epoch {}. \
             Go on with it, and begin none",
            found.display(),
            log.publisher(),
            log.current().epoch.0
        )));
    }
    let mut identity = snapshot.identity();
    let reached = snapshot.mark().map_or(identity.epoch, |mark| mark.epoch);
    if reached.0 > 0 {
        // Under the same id, the new epochs would contradict those that clients have followed.
        SecretRng::from_os()?.fill(&mut identity.id.0);
        identity.epoch = Epoch(0);
    }
    let record = |number| snapshot.view().record(number);
    let mark = Mark::before_the_first(Epoch(0));
    snapshot.write_version(path, identity, snapshot.layout(), mark, record)?;
    UpdateLog::create(&log_path, &Snapshot::open(path)?, publisher).map(drop)
}

/// How a table is handed on, to other keys or to its successor.
#[derive(Clone, Copy)]
pub struct Handover<'k> {
    /// The present publisher's key. Without it a succession revokes.
    pub publisher: Option<&'k PublisherKey>,
    /// The key of who publishes from then on: the next key, if the table has one. `None`: who did
    /// so before.
    pub to: Option<&'k PublisherKey>,
    /// The digest of the next key from then on.
    pub next: Option<NextKeyDigest>,
}

impl<'k> Handover<'k> {
    /// The keys afterwards.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if nobody would publish.
    pub fn keys(&self) -> Result<TableKeys> {
        let publisher = self.to.or(self.publisher).ok_or_else(|| {
            Error::api_misuse("nobody is to publish the table: give the key of whoever does")
        })?;
        Ok(TableKeys { publisher: publisher.id(), next: self.next })
    }

    /// Those who sign, for a table with the keys `held`.
    fn signers(&self, held: TableKeys) -> Signers<'k> {
        Signers { publisher: self.publisher, next: self.to.filter(|_| held.next.is_some()) }
    }
}

/// Ends the table at `old` for the one at `new`, which was built with a log but has none yet: has
/// it signed that this one succeeds it, and begins its log. Clients that know the old table follow
/// to the new one. If it fails after the old table has ended, [`complete_succession`] goes on.
/// Returns what was signed.
///
/// # Errors
/// As [`LogWriter::succeed`] and [`UpdateLog::create_after`];
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) also if the old table has no publisher.
pub fn succeed(old: &Path, new: &Path, handover: Handover<'_>) -> Result<Succession> {
    let snapshot = Snapshot::open(old)?;
    let mut writer = LogWriter::open(&log_to_end(&snapshot)?, &snapshot)?;
    let (successor, keys) = (Snapshot::open(new)?, handover.keys()?);
    let signers = handover.signers(writer.log().keys());
    let (record, lineage) = writer.succeed(signers, &successor, keys)?;
    UpdateLog::create_after(&log_path(new), &successor, keys, &lineage)?;
    Ok(record)
}

/// Checks, before a successor of the table at `old` is built, that [`succeed`] can have it signed.
///
/// # Errors
/// As [`succeed`].
pub fn check_may_succeed(old: &Path, handover: Handover<'_>) -> Result<()> {
    let snapshot = Snapshot::open(old)?;
    let writer = LogWriter::open(&log_to_end(&snapshot)?, &snapshot)?;
    writer.check_may_hand_on(handover.signers(writer.log().keys()), handover.keys()?)
}

fn log_to_end(snapshot: &Snapshot) -> Result<PathBuf> {
    find_log_of(snapshot)?.ok_or_else(|| {
        Error::api_misuse(format!(
            "{} was built without a publisher, so nobody can sign that another table succeeds it: \
             the users of clients have to accept the new table",
            snapshot.path().display()
        ))
    })
}

/// Begins the log of the table at `new` if the table at `old` has ended for it, and that has not
/// been done. Returns whether it was that.
///
/// # Errors
/// As [`UpdateLog::of`] and [`UpdateLog::create_after`].
pub fn complete_succession(old: &Path, new: &Path) -> Result<bool> {
    let Some(log) = UpdateLog::of(&Snapshot::open(old)?)? else { return Ok(false) };
    let Some(record) = log.succession() else { return Ok(false) };
    let Ok(successor) = Snapshot::open(new) else { return Ok(false) };
    if successor.identity() != record.new_table() || find_log(new)?.is_some() {
        return Ok(false);
    }
    let lineage = log.lineage().with(record)?;
    UpdateLog::create_after(&log_path(new), &successor, record.keys(), &lineage)?;
    Ok(true)
}

/// A table file with its update log, open for its publisher alone.
pub struct OwnedTable<'s> {
    snapshot: &'s Snapshot,
    key: PublisherKey,
    writer: LogWriter<'s>,
}

impl<'s> OwnedTable<'s> {
    /// Opens the log beside `snapshot`.
    ///
    /// # Errors
    /// As [`LogWriter::open`]. Besides, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if
    /// the log is gone, and [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table has
    /// another publisher, or none: then [`begin_history`] comes first.
    pub fn open(snapshot: &'s Snapshot, key: PublisherKey) -> Result<Self> {
        if snapshot.layout().authentication().is_some() {
            return Err(not_edited());
        }
        let Some(log_path) = find_log_of(snapshot)? else {
            return Err(Error::api_misuse(format!(
                "{} was built without a publisher, and this would be its first signature: clients \
                 that know the table refuse it from then on, with exit code 4, until their users \
                 accept it as a new table. If clients know it, build a table with the publisher's \
                 key under another name instead, and let them change to that. If none does, or \
                 that is wanted, begin its history",
                snapshot.path().display()
            ))
            .because(Reason::HistoryNotBegun));
        };
        let writer = LogWriter::open(&log_path, snapshot)?;
        writer.check_key(&key)?;
        Ok(Self { snapshot, key, writer })
    }

    /// The table after its last epoch.
    pub fn identity(&self) -> TableIdentity {
        self.writer.log().current()
    }

    /// The publisher, who signs the table's updates.
    pub fn publisher(&self) -> PublisherId {
        self.writer.log().publisher()
    }

    /// Bytes of the epochs that are in the log but not in the table file.
    pub fn unfolded_bytes(&self) -> u64 {
        self.writer.log().unfolded_bytes()
    }

    /// How to read the table.
    pub fn layout(&self) -> &TableLayout {
        self.writer.log().layout()
    }

    /// An editor of rows, which begins with the table as it is. Nothing is written before
    /// [`publish`](Self::publish).
    ///
    /// # Errors
    /// As [`RowEditor::new`].
    pub fn editor(&self) -> Result<RowEditor<'_, impl FnMut(u64) -> Result<Vec<u8>>>> {
        RowEditor::new(self.layout(), self.identity().shape, self.reader())
    }

    /// The epochs after which the table holds the rows of `source` and nothing else: rows are read
    /// as for a table that is built. [`publish`](Self::publish) them one by one; nothing is written
    /// before. The rows are in memory meanwhile, and the records that change.
    ///
    /// Unless columns may change, rows must have all columns that the table's values have, and of
    /// the same types.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the rows are not as they should be;
    ///   [`Reason::ColumnsDiffer`] if their columns are not.
    /// - [`Reason::DoesNotFit`], with figures, if the table cannot take them.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the input cannot be read, and
    ///   [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the table is damaged.
    pub fn replacement(
        &self,
        source: Source,
        how: HowReplaced,
        progress: &mut dyn FnMut(Progress) -> Result<()>,
    ) -> Result<Replacement> {
        let (header, layout) = (self.snapshot.header(), self.layout());
        let name = source.name();
        let key_map = layout.records().key_map();
        let ranges = key_map.and_then(|map| map.key_form().ranges.as_ref());
        let (key, until) = (header.key_column.clone(), header.until_column.clone());
        let nested = how.nested || ranges.is_some_and(Directory::is_nested);
        let bounds = |from| RangeColumns { from, to: until.clone(), nested };
        let options = BuildOptions {
            ranges: key.clone().filter(|_| ranges.is_some()).map(bounds),
            key: key.clone().filter(|_| ranges.is_none()),
            normalization: key_map.map(|map| map.key_form().normalization).unwrap_or_default(),
            key_format: key_map.map(|map| map.key_form().format),
            on_duplicate: match key_map {
                Some(map) if map.has_lists() => OnDuplicate::All,
                _ if how.on_duplicate == OnDuplicate::All => {
                    return Err(one_value_for_each_key());
                }
                _ => how.on_duplicate,
            },
            ..BuildOptions::default()
        };
        let selection = Selection { key, until, value: header.value_form.clone() };
        let rows = KeptRows::read(vec![source], &selection, &options, progress)?;
        if !how.columns_may_change {
            let columns = check_columns(layout, &rows);
            columns.map_err(|error| error.within(&name))?;
        }
        let made = replacement(layout, self.identity().shape, self.reader(), &rows, EPOCH_BYTES);
        made.map_err(|error| error.within(name))
    }

    /// Reads records of the table as it is.
    fn reader(&self) -> impl Fn(u64) -> Result<Vec<u8>> {
        let table = self.writer.table();
        move |number| {
            let record = table.record(number);
            record.map(<[u8]>::to_vec).ok_or_else(|| {
                Error::corrupted(format!(
                    "the table has no record {number}, and its key map names it"
                ))
            })
        }
    }

    /// The values that the table has for `key` as it is, before anything is edited: none if it does
    /// not have the key, and more than one only in a table of lists. The key is written in the
    /// table's [format](crate::key_map::KeyFormat). In a table by index, it is a row's number, in
    /// decimal.
    ///
    /// # Errors
    /// As [`KeyForm::read`](crate::key_map::KeyForm::read), and
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) or
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if the table is damaged.
    pub fn values_of<'k>(&self, key: impl Into<RowKey<'k>>) -> Result<Vec<Vec<u8>>> {
        let row = key.into();
        let read = self.reader();
        match self.layout().records() {
            RecordLayout::Keyed(map) => {
                // A row of a file may name the bounds of a range. One that is not there has no
                // values.
                let key = &*map.key_form().key_of_row(row)?.unwrap_or(Cow::Borrowed(row.key));
                let records = map.candidates(key).map(&read).collect::<Result<Vec<_>>>()?;
                let value = map.find(key, records.iter().map(Vec::as_slice))?;
                match value {
                    Some(list) if map.has_lists() => {
                        Ok(decode_list(&list)?.into_iter().map(<[u8]>::to_vec).collect())
                    }
                    value => Ok(value.into_iter().collect()),
                }
            }
            RecordLayout::Index(layout) => {
                let number = std::str::from_utf8(row.key).ok();
                let row = number.and_then(|number| number.parse().ok());
                match row.filter(|row| *row < self.identity().shape.records()) {
                    Some(row) => Ok(vec![layout.value_in(&read(row)?)?.to_vec()]),
                    None => Ok(Vec::new()),
                }
            }
        }
    }

    /// How many more keys the table takes, about; `None` for a table by index, which grows.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) or
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the table is damaged.
    pub fn room(&self) -> Result<Option<Room>> {
        let key_map = self.layout().records().key_map();
        key_map.map(|key_map| key_map.room(self.reader())).transpose()
    }

    /// Refuses what [`publish`](Self::publish) would refuse, and writes nothing.
    ///
    /// # Errors
    /// As there, before anything is written.
    pub fn check(&self, update: &TableUpdate) -> Result<()> {
        self.writer.check_update(&self.key, update)
    }

    /// Makes `update` the table's next epoch. Durable on return.
    ///
    /// # Errors
    /// As [`LogWriter::append`]. After [`Blame::Unavailable`](privet_core::Blame::Unavailable) the
    /// epoch may or may not be in the log: look there before making it again. After other errors
    /// nothing was signed.
    pub fn publish(&mut self, update: &TableUpdate) -> Result<TableIdentity> {
        self.writer.append(&self.key, update)
    }

    /// Has `to`, or the same publisher with another next key, sign for the table from now on, by an
    /// epoch that changes nothing else. Returns its identity afterwards.
    ///
    /// # Errors
    /// As [`LogWriter::rotate`].
    pub fn hand_over(
        &mut self,
        to: Option<&PublisherKey>,
        next: Option<NextKeyDigest>,
    ) -> Result<TableIdentity> {
        let handover = Handover { publisher: Some(&self.key), to, next };
        self.writer.rotate(handover.signers(self.keys()), handover.keys()?)
    }

    /// Who signs for the table, and who may hand it on.
    pub fn keys(&self) -> TableKeys {
        self.writer.log().keys()
    }

    /// Whether the log has at least `percent` percent of the table file's bytes.
    pub fn is_worth_compacting(&self, percent: u32) -> bool {
        let (log, file) = (self.unfolded_bytes(), self.snapshot.file_bytes());
        log > 0 && u128::from(log) * 100 >= u128::from(file) * u128::from(percent)
    }

    /// Writes a new table file with all changes, and a log that keeps the last epochs.
    ///
    /// # Errors
    /// As [`LogWriter::compact`]. Also after an error, the log has all epochs.
    pub fn compact(self) -> Result<()> {
        let keep = self.snapshot.file_bytes() / KEPT_SHARE;
        self.writer.compact(self.snapshot.path(), keep).map(drop)
    }
}

fn one_value_for_each_key() -> Error {
    Error::api_misuse("the table has one value for each key, so its keys get no lists of values")
        .because(Reason::OneValueForEachKey)
}
