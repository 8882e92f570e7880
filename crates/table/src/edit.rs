//! Turns what an owner changes in a table into the records that change: the next epoch of its
//! [update log](crate::update_log).
//!
//! A [`TableEditor`] takes operations one by one. Each operation sees what those before it did, and
//! one [`TableUpdate`] holds the result of all. Tables by key take keys and values
//! ([`set`](TableEditor::set), [`set_all`](TableEditor::set_all), [`delete`](TableEditor::delete));
//! tables by index take row numbers and values ([`set_row`](TableEditor::set_row),
//! [`append_row`](TableEditor::append_row)). A [`RowEditor`] takes rows as files have them, for
//! tables of either kind.
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

use crate::key_map::{Editor, Effect, KeyMap};
use crate::layout::{IndexLayout, RecordLayout, TableLayout};
use crate::values::Values;
use privet_core::{Error, Reason, Result, TableShape};
use std::collections::BTreeMap;

/// Operations on one table, collected.
///
/// `read` gives the record with a number below the table's, as it was before the first operation.
pub struct TableEditor<'a, R> {
    shape: TableShape,
    values: Option<&'a Values>,
    rows: Rows<'a, R>,
}

enum Rows<'a, R> {
    ByKey(Box<Editor<'a, R>>),
    ByIndex(NumberedRows<R>),
}

/// The rows of a table by index: how values lie in them, how many there are, and which were written
/// or appended.
struct NumberedRows<R> {
    layout: IndexLayout,
    read: R,
    rows: u64,
    written: BTreeMap<u64, Vec<u8>>,
}

/// What an owner changes in a table at once: its next epoch, before it is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableUpdate {
    before: TableShape,
    after: TableShape,
    written: BTreeMap<u64, Vec<u8>>,
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
    pub fn new(
        before: TableShape,
        written: BTreeMap<u64, Vec<u8>>,
        layout: Option<TableLayout>,
    ) -> Result<Self> {
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
    pub fn written(&self) -> &BTreeMap<u64, Vec<u8>> {
        &self.written
    }
}

impl<'a, R: FnMut(u64) -> Result<Vec<u8>>> TableEditor<'a, R> {
    /// An editor of a table of that layout and shape.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table is authenticated.
    pub fn new(layout: &'a TableLayout, shape: TableShape, read: R) -> Result<Self> {
        if layout.authentication().is_some() {
            return Err(not_edited());
        }
        let values = layout.values();
        let rows = match layout.records() {
            RecordLayout::Keyed(key_map) => Rows::ByKey(Box::new(Editor::new(key_map, read))),
            RecordLayout::Index(layout) => {
                let (rows, written) = (shape.records(), BTreeMap::new());
                Rows::ByIndex(NumberedRows { layout: *layout, read, rows, written })
            }
        };
        Ok(Self { shape, values, rows })
    }

    /// Gives `key` the value `value`, whether the table has the key or not.
    ///
    /// # Errors
    /// As [`Editor::set`]; [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table is by
    /// index. Nothing has changed then.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<Effect> {
        self.by_key()?.set(key, value)
    }

    /// Gives `key` these values, in this order, and no others.
    ///
    /// # Errors
    /// As [`Editor::set_all`]; [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table is
    /// by index. Nothing has changed then.
    pub fn set_all<V: AsRef<[u8]>>(&mut self, key: &[u8], values: &[V]) -> Result<Effect> {
        self.by_key()?.set_all(key, values)
    }

    /// Removes `key` and all that the table has for it, if it has the key.
    ///
    /// # Errors
    /// As [`Editor::delete`]; [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table is
    /// by index. Nothing has changed then.
    pub fn delete(&mut self, key: &[u8]) -> Result<Effect> {
        self.by_key()?.delete(key)
    }

    /// Gives row `row` the value `value`: a row that the table has, or one that was just appended.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is no such row, the value does
    /// not fit, or the table is by key. Nothing has changed then.
    pub fn set_row(&mut self, row: u64, value: &[u8]) -> Result<()> {
        let record = self.record_of(value)?;
        let NumberedRows { rows, written, .. } = self.by_index()?;
        if row >= *rows {
            return Err(Error::api_misuse(format!(
                "there is no row {row}: the table has {rows}, numbered from 0"
            )));
        }
        written.insert(row, record);
        Ok(())
    }

    /// Appends a row, and returns its number.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the value does not fit, or the table
    /// is by key. Nothing has changed then.
    pub fn append_row(&mut self, value: &[u8]) -> Result<u64> {
        let record = self.record_of(value)?;
        let NumberedRows { rows, written, .. } = self.by_index()?;
        written.insert(*rows, record);
        *rows += 1;
        Ok(*rows - 1)
    }

    /// The result of all operations together. `None` if they change nothing.
    ///
    /// # Errors
    /// Whatever `read` fails with; [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table
    /// would be too large.
    pub fn finish(self) -> Result<Option<TableUpdate>> {
        let changed = match self.rows {
            Rows::ByKey(editor) => editor.finish()?,
            Rows::ByIndex(NumberedRows { mut read, written, .. }) => {
                let mut changed = BTreeMap::new();
                for (row, record) in written {
                    if row >= self.shape.records() || read(row)? != record {
                        changed.insert(row, record);
                    }
                }
                (changed, None)
            }
        };
        update_of(changed, self.shape, self.values)
    }

    /// The record that holds a value, in a table by index.
    fn record_of(&mut self, value: &[u8]) -> Result<Vec<u8>> {
        let record_len = self.shape.record_len();
        let layout = self.by_index()?.layout;
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

    fn by_key(&mut self) -> Result<&mut Editor<'a, R>> {
        match &mut self.rows {
            Rows::ByKey(editor) => Ok(editor),
            Rows::ByIndex(_) => Err(other_kind("by index", "row numbers and values")),
        }
    }

    fn by_index(&mut self) -> Result<&mut NumberedRows<R>> {
        match &mut self.rows {
            Rows::ByKey(_) => Err(other_kind("by key", "keys and values")),
            Rows::ByIndex(numbered) => Ok(numbered),
        }
    }
}

/// The update of these records, with a key map if that changes. `None` if nothing does.
fn update_of(
    (written, key_map): (BTreeMap<u64, Vec<u8>>, Option<KeyMap>),
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

fn other_kind(kind: &str, takes: &str) -> Error {
    Error::api_misuse(format!("this is a table {kind}: it takes {takes}"))
}
