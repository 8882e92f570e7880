//! Turns what an owner changes in a table into the records that change: the next epoch of its
//! [update log](crate::update_log).
//!
//! A [`RowEditor`] takes rows one by one, for tables of either kind. Each sees what those before it
//! did, and one [`TableUpdate`] holds the result of all.
//!
//! The records of a table keep their width. A value that does not fit is refused, and the error
//! says how much would fit. A row of a table by index cannot be deleted, because those after it
//! would move. An [authenticated](crate::authentication) table must be built anew: a changed record
//! changes the proofs in all others.

#[cfg(feature = "files")]
pub(crate) mod replacement;
mod rows;
#[cfg(test)]
mod tests;

#[cfg(feature = "files")]
pub use replacement::{HowReplaced, Replacement};
pub use rows::{Counts, RowEditor};

use crate::key_map::KeyMap;
use crate::layout::{IndexLayout, RecordLayout, TableLayout};
use crate::values::Values;
use privet_core::{Error, Reason, Result, TableShape};
use std::collections::BTreeMap;

/// Records that were written, by their numbers.
pub type Written = BTreeMap<u64, Vec<u8>>;

/// What an owner changes in a table at once: its next epoch, before it is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableUpdate {
    before: TableShape,
    after: TableShape,
    written: Written,
    /// How the table is read from then on, if that has changed. Clients have to fetch it.
    pub layout: Option<TableLayout>,
}

impl TableUpdate {
    /// Gives a table of shape `before` the records `written`, by their numbers. Those beyond its
    /// last record are appended.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a record is not as wide as the
    /// table's, if numbers beyond its last record are left out, or if it would be too large.
    pub fn new(before: TableShape, written: Written, layout: Option<TableLayout>) -> Result<Self> {
        let mut records = before.records();
        for (index, record) in &written {
            records += u64::from(*index == records);
            if *index >= records || record.len() as u64 != before.record_len() {
                return Err(Error::api_misuse(format!(
                    "record {index} with {} bytes does not fit a table of {records} records of {} bytes",
                    record.len(),
                    before.record_len()
                )));
            }
        }
        let after = TableShape::new(records, before.record_len())?;
        Ok(Self { before, after, written, layout })
    }

    /// The shape of the table before.
    pub fn shape(&self) -> TableShape {
        self.before
    }

    /// The shape of the table afterwards.
    pub fn shape_after(&self) -> TableShape {
        self.after
    }

    /// The records that it writes, by their numbers.
    pub fn written(&self) -> &Written {
        &self.written
    }
}

/// The rows of a table by index: how values lie in them, how many there are, and which were written
/// or appended.
struct NumberedRows<R> {
    layout: IndexLayout,
    shape: TableShape,
    read: R,
    rows: u64,
    written: Written,
}

impl<R: FnMut(u64) -> Result<Vec<u8>>> NumberedRows<R> {
    fn new(layout: IndexLayout, shape: TableShape, read: R) -> Self {
        Self { layout, shape, read, rows: shape.records(), written: Written::new() }
    }

    /// Gives row `row` the value `value`: a row that the table has, or one that was just appended.
    fn set(&mut self, row: u64, value: &[u8]) -> Result<()> {
        let record = self.record_of(value)?;
        if row >= self.rows {
            return Err(Error::api_misuse(format!(
                "there is no row {row}: the table has {}, numbered from 0",
                self.rows
            )));
        }
        self.written.insert(row, record);
        Ok(())
    }

    fn append(&mut self, value: &[u8]) -> Result<()> {
        let record = self.record_of(value)?;
        self.written.insert(self.rows, record);
        self.rows += 1;
        Ok(())
    }

    /// The record that holds a value.
    fn record_of(&self, value: &[u8]) -> Result<Vec<u8>> {
        let (layout, record_len) = (self.layout, self.shape.record_len());
        let most = record_len.saturating_sub(layout.prefix_bytes().into());
        let len = value.len() as u64;
        if len > most || (layout.prefix_bytes() == 0 && len != most) {
            return Err(Error::api_misuse(format!(
                "a value of {len} bytes does not fit: the values of this table have {}{most} bytes; build the table anew with it",
                if layout.prefix_bytes() == 0 { "" } else { "at most " }
            ))
            .because(Reason::DoesNotFit));
        }
        let mut record = Vec::new();
        layout.write_record(value, record_len, &mut record);
        Ok(record)
    }

    /// The records that are no longer what they were, and the new ones.
    fn finish(mut self) -> Result<Written> {
        let mut changed = Written::new();
        for (row, record) in self.written {
            if row >= self.shape.records() || (self.read)(row)? != record {
                changed.insert(row, record);
            }
        }
        Ok(changed)
    }
}

/// The update of these records, with a key map if that changes. `None` if nothing does.
fn update_of(
    (written, key_map): (Written, Option<KeyMap>),
    shape: TableShape,
    values: Option<&Values>,
) -> Result<Option<TableUpdate>> {
    let layout = key_map
        .map(|key_map| TableLayout::from(RecordLayout::Keyed(key_map)).describing(values.cloned()));
    if written.is_empty() && layout.is_none() {
        return Ok(None);
    }
    TableUpdate::new(shape, written, layout).map(Some)
}

/// The error for an authenticated table.
pub(crate) fn not_edited() -> Error {
    Error::api_misuse(
        "an authenticated table is not updated: the proofs in all of its records would change; build it anew",
    )
    .because(Reason::DoesNotFit)
}
