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
//! let (edits, counts) = rows.finish()?;
//! if let Some(edits) = edits {
//!     table.publish(&edits)?;
//! }
//! println!("{} keys are new in epoch {}", counts.inserted, table.identity().epoch.0);
//! # Ok(())
//! # }
//! ```

#[cfg(test)]
mod tests;

use crate::edit::{RowEditor, TableEdits, not_edited};
use crate::key_map::decode_list;
use crate::snapshot::Snapshot;
use crate::update_log::{
    LogWriter, PublisherId, PublisherKey, UpdateLog, check_can_be_sent, log_path,
};
use crate::{RecordLayout, TableLayout};
use privet_core::{Error, Result, TableIdentity};
use std::borrow::Cow;
use std::path::PathBuf;

/// A compaction leaves the last epochs in the log, up to one part in this many of the table file's
/// size: clients at one of these epochs can still follow.
const KEPT_SHARE: u64 = 4;

/// A table file with its update log, if it has one, open for its publisher alone.
pub struct OwnedTable<'s> {
    snapshot: &'s Snapshot,
    key: PublisherKey,
    log_path: PathBuf,
    /// `None` before the first signature.
    writer: Option<LogWriter<'s>>,
}

impl<'s> OwnedTable<'s> {
    /// Opens the log beside `snapshot`, if there is one.
    ///
    /// # Errors
    /// As [`LogWriter::open`]; [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table has
    /// another publisher, or has had updates and its log is gone.
    pub fn open(snapshot: &'s Snapshot, key: PublisherKey) -> Result<Self> {
        let log_path = log_path(snapshot.path());
        let writer = match log_path.exists() {
            true => Some(LogWriter::open(&log_path, snapshot)?),
            false => None,
        };
        let epoch = snapshot.identity().epoch;
        if writer.is_none() && epoch.0 > 0 {
            return Err(Error::api_misuse(format!(
                "the table is at epoch {}, and its update log {} is not there: bring it back. Servers and clients would refuse a new one, because it cannot continue the old",
                epoch.0,
                log_path.display()
            )));
        }
        if let Some(writer) = &writer {
            writer.check_key(&key)?;
        }
        Ok(Self { snapshot, key, log_path, writer })
    }

    fn log(&self) -> Option<&UpdateLog> {
        self.writer.as_ref().map(LogWriter::log)
    }

    /// The table after its last epoch.
    pub fn identity(&self) -> TableIdentity {
        self.log().map_or(self.snapshot.identity(), UpdateLog::current)
    }

    /// The publisher who has signed the table's updates; `None` if there are no updates yet.
    pub fn publisher(&self) -> Option<PublisherId> {
        self.log().map(UpdateLog::publisher)
    }

    /// Bytes of the epochs that are in the log but not in the table file.
    pub fn unfolded_bytes(&self) -> u64 {
        self.log().map_or(0, UpdateLog::unfolded_bytes)
    }

    /// How to read the table.
    pub fn layout(&self) -> &TableLayout {
        self.log().map_or(self.snapshot.layout(), UpdateLog::layout)
    }

    /// An editor of rows, which begins with the table as it is. Nothing is written before
    /// [`publish`](Self::publish).
    ///
    /// # Errors
    /// As [`RowEditor::new`].
    pub fn editor(&self) -> Result<RowEditor<'_, impl FnMut(u64) -> Result<Vec<u8>>>> {
        RowEditor::new(self.layout(), self.identity().shape, self.reader())
    }

    /// Reads records of the table as it is.
    fn reader(&self) -> impl Fn(u64) -> Result<Vec<u8>> {
        let updated = self.writer.as_ref().map(LogWriter::table);
        move |number| {
            let record = match &updated {
                Some(table) => table.record(number),
                None => self.snapshot.view().record(number),
            };
            record.map(<[u8]>::to_vec).ok_or_else(|| {
                Error::corrupted(format!(
                    "the table has no record {number}, and its key map names it"
                ))
            })
        }
    }

    /// The values that the table has for `key` as it is, before anything is edited: none if it does
    /// not have the key, and more than one only in a table of lists. In a table by index, the key
    /// is a row's number, in decimal.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table is authenticated.
    /// - [`Blame::Corrupted`](privet_core::Blame::Corrupted) or
    ///   [`Blame::Integrity`](privet_core::Blame::Integrity) if the table is damaged.
    pub fn values_of(&self, key: &[u8]) -> Result<Vec<Vec<u8>>> {
        if self.layout().authentication().is_some() {
            return Err(not_edited());
        }
        let read = self.reader();
        match self.layout().records() {
            RecordLayout::Keyed(map) => {
                // A row of a file may name the bounds of a range. One that is not there has no
                // values.
                let key = &*map.key_form().key_of_row(key).unwrap_or(Cow::Borrowed(key));
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
                let row = std::str::from_utf8(key).ok().and_then(|number| number.parse().ok());
                match row.filter(|row| *row < self.identity().shape.records()) {
                    Some(row) => Ok(vec![layout.value_in(&read(row)?)?.to_vec()]),
                    None => Ok(Vec::new()),
                }
            }
        }
    }

    /// Makes `edits` the table's next epoch. Durable on return.
    ///
    /// # Errors
    /// As [`LogWriter::append`] and [`LogWriter::create`]. After
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) the epoch may or may not be in the
    /// log: look there before making it again. After other errors nothing was signed.
    pub fn publish(&mut self, edits: &TableEdits) -> Result<TableIdentity> {
        let TableEdits { update, layout } = edits;
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                // Even a log without epochs would tie the table to this key, though nothing was
                // signed. Therefore all checks that could refuse the epoch come before the log is
                // made.
                check_can_be_sent(update, layout.as_ref())?;
                self.snapshot.verify(|_, _| ())?;
                let log = LogWriter::create(&self.log_path, self.snapshot, self.key.id())?;
                self.writer.insert(log)
            }
        };
        writer.append(&self.key, update, layout.as_ref())
    }

    /// Whether the log has at least `percent` percent of the table file's bytes.
    pub fn is_worth_compacting(&self, percent: u32) -> bool {
        let (log, file) = (self.unfolded_bytes(), self.snapshot.file_bytes());
        log > 0 && u128::from(log) * 100 >= u128::from(file) * u128::from(percent)
    }

    /// Writes a new table file with all changes, and a log that keeps the last epochs. Does nothing
    /// if nothing was ever signed.
    ///
    /// # Errors
    /// As [`LogWriter::compact`]. Also after an error, the log has all epochs.
    pub fn compact(self) -> Result<()> {
        let Some(writer) = self.writer else { return Ok(()) };
        let keep = self.snapshot.file_bytes() / KEPT_SHARE;
        writer.compact(self.snapshot.path(), keep).map(drop)
    }
}
