//! Rows as a file has them, or a person types them, for a table of any kind.

use super::{TableEditor, TableUpdate};
use crate::key_map::{Effect, KeyFormat, KeyMap, RowKey, no_such_range};
use crate::layout::TableLayout;
use privet_core::{Error, Result, TableShape};
use std::borrow::Cow;
use std::collections::HashMap;

/// A [`TableEditor`] that takes rows: each a key and a value. Keys are written in the table's
/// [format](KeyFormat).
///
/// In a table by key, a row says what the key's value is. Where keys have several values, all rows
/// of a key up to [`end_rows`](Self::end_rows) count together, and replace what it had. In a table
/// by index, rows are appended.
///
/// The errors of [`delete`](Self::delete) and [`end_rows`](Self::end_rows) name the key: they are
/// for the table's owner, who gave it.
pub struct RowEditor<'a, R> {
    editor: TableEditor<'a, R>,
    key_map: Option<&'a KeyMap>,
    lists: ValuesByKey,
    counts: Counts,
}

/// What was done to keys, or to rows in a table by index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// New ones.
    pub inserted: u64,
    /// Given a new value, which may equal the old one.
    pub replaced: u64,
    /// Removed.
    pub deleted: u64,
    /// To be removed, but not in the table.
    pub absent: u64,
    /// Found to have the value already that they are to have. Only a
    /// [replacement](super::Replacement) looks.
    pub unchanged: u64,
}

impl<'a, R: FnMut(u64) -> Result<Vec<u8>>> RowEditor<'a, R> {
    /// As [`TableEditor::new`].
    ///
    /// # Errors
    /// As there.
    pub fn new(layout: &'a TableLayout, shape: TableShape, read: R) -> Result<Self> {
        Ok(Self {
            editor: TableEditor::new(layout, shape, read)?,
            key_map: layout.records().key_map(),
            lists: ValuesByKey::default(),
            counts: Counts::default(),
        })
    }

    /// Removes `key`, if it is there. In a table of ranges, the bounds of a range will do.
    ///
    /// # Errors
    /// As [`TableEditor::delete`] and [`KeyForm::read`](crate::key_map::KeyForm::read).
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        let read = self.key_map.map(|map| map.key_form().key_of_row(key.into())).transpose();
        let effect =
            read.and_then(|read| self.editor.delete(&read.flatten().unwrap_or(Cow::Borrowed(key))));
        let named = || format!("the key {}", KeyFormat::Text.shown(key));
        self.counts.add(effect.map_err(|error| error.within(named()))?);
        Ok(())
    }

    /// Takes a row. A table by index ignores the key.
    ///
    /// # Errors
    /// As [`TableEditor::set`], [`TableEditor::append_row`] and
    /// [`KeyForm::read`](crate::key_map::KeyForm::read). They do not name the key: whoever reads a
    /// file knows the row.
    pub fn add<'k>(&mut self, key: impl Into<RowKey<'k>>, value: &[u8]) -> Result<()> {
        let Some(key_map) = self.key_map else {
            self.editor.append_row(value)?;
            self.counts.inserted += 1;
            return Ok(());
        };
        key_map.key_form().check_edited_alone()?;
        let key = key_map.key_form().key_of_row(key.into())?.ok_or_else(no_such_range)?;
        if key_map.has_lists() {
            self.lists.add(&key, value);
        } else {
            self.counts.add(self.editor.set(&key, value)?);
        }
        Ok(())
    }

    /// Gives `key` a value. In a table by index, `key` is the number of a row, in decimal.
    ///
    /// # Errors
    /// As [`add`](Self::add), and [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is
    /// no such row.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.key_map.is_some() {
            return self.add(key, value);
        }
        let number = std::str::from_utf8(key).ok().and_then(|number| number.parse().ok());
        let row = number.ok_or_else(|| {
            Error::api_misuse("this is a table by row number: write the number of a row as the key")
        })?;
        self.editor.set_row(row, value)?;
        self.counts.replaced += 1;
        Ok(())
    }

    /// Ends a series of rows. Where keys have several values, later rows of a key replace the
    /// values that it has got so far.
    ///
    /// # Errors
    /// As [`TableEditor::set_all`].
    pub fn end_rows(&mut self) -> Result<()> {
        let ValuesByKey { values, .. } = std::mem::take(&mut self.lists);
        let format = self.key_map.map_or(KeyFormat::Text, |key_map| key_map.key_form().format);
        for (key, values) in values {
            let named = || format!("the key {}", format.shown(&key));
            let effect = self.editor.set_all(&key, &values);
            self.counts.add(effect.map_err(|error| error.within(named()))?);
        }
        Ok(())
    }

    /// The result of all operations, `None` if they change nothing; and how many keys or rows they
    /// were about.
    ///
    /// # Errors
    /// As [`end_rows`](Self::end_rows) and [`TableEditor::finish`].
    pub fn finish(mut self) -> Result<(Option<TableUpdate>, Counts)> {
        self.end_rows()?;
        Ok((self.editor.finish()?, self.counts))
    }
}

impl Counts {
    fn add(&mut self, effect: Effect) {
        *match effect {
            Effect::Inserted => &mut self.inserted,
            Effect::Replaced => &mut self.replaced,
            Effect::Deleted => &mut self.deleted,
            Effect::Absent => &mut self.absent,
        } += 1;
    }
}

/// The values of each key, in the order of their rows. Keys come in the order of their first rows;
/// `numbers` gives the place of each in `values`.
#[derive(Default)]
struct ValuesByKey {
    numbers: HashMap<Vec<u8>, usize>,
    values: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
}

impl ValuesByKey {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        let number = *self.numbers.entry(key.to_vec()).or_insert(self.values.len());
        if number == self.values.len() {
            self.values.push((key.to_vec(), Vec::new()));
        }
        self.values[number].1.push(value.to_vec());
    }
}
