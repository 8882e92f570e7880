//! Rows as a file has them, or a person types them, for a table of any kind.

use super::{NumberedRows, TableUpdate, not_edited, update_of};
use crate::key_map::{Editor, Effect, KeyFormat, KeyMap, RowKey, no_such_range};
use crate::layout::{RecordLayout, TableLayout};
use crate::values::Values;
use privet_core::{Error, Result, TableShape};
use std::borrow::Cow;
use std::collections::HashMap;

/// Changes of one table, collected. Takes rows: each a key and a value. Keys are written in the
/// table's [format](KeyFormat).
///
/// In a table by key, a row says what the key's value is. Where keys have several values, all rows
/// of a key up to [`end_rows`](Self::end_rows) count together, and replace what it had. In a table
/// by index, rows are appended.
///
/// The errors of [`delete`](Self::delete) and [`end_rows`](Self::end_rows) name the key: they are
/// for the table's owner, who gave it.
pub struct RowEditor<'a, R> {
    shape: TableShape,
    values: Option<&'a Values>,
    rows: Rows<'a, R>,
    lists: ValuesByKey,
    counts: Counts,
}

enum Rows<'a, R> {
    ByKey(&'a KeyMap, Box<Editor<'a, R>>),
    ByIndex(NumberedRows<R>),
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
    /// An editor of a table of that layout and shape. `read` gives the record with a number below
    /// the table's, as it was before anything changed.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table is authenticated.
    pub fn new(layout: &'a TableLayout, shape: TableShape, read: R) -> Result<Self> {
        if layout.authentication().is_some() {
            return Err(not_edited());
        }
        let rows = match layout.records() {
            RecordLayout::Keyed(map) => Rows::ByKey(map, Box::new(Editor::new(map, read))),
            RecordLayout::Index(index) => Rows::ByIndex(NumberedRows::new(*index, shape, read)),
        };
        let (lists, counts) = (ValuesByKey::default(), Counts::default());
        Ok(Self { shape, values: layout.values(), rows, lists, counts })
    }

    /// Removes `key`, if it is there. In a table of ranges, the bounds of a range will do.
    ///
    /// # Errors
    /// As [`Editor::delete`] and [`KeyForm::read`](crate::key_map::KeyForm::read);
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table is by index. Nothing has
    /// changed then.
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        let effect = match &mut self.rows {
            Rows::ByKey(map, editor) => map.key_form().key_of_row(key.into()).and_then(|read| {
                let key = read.unwrap_or(Cow::Borrowed(key));
                editor.delete(&key)
            }),
            Rows::ByIndex(_) => {
                Err(Error::api_misuse("this is a table by index: it takes row numbers and values"))
            }
        };
        let named = || format!("the key {}", KeyFormat::Text.shown(key));
        self.counts.add(effect.map_err(|error| error.within(named()))?);
        Ok(())
    }

    /// Takes a row. A table by index ignores the key.
    ///
    /// # Errors
    /// As [`Editor::set`] and [`KeyForm::read`](crate::key_map::KeyForm::read);
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the value does not fit. Nothing has
    /// changed then. They do not name the key: whoever reads a file knows the row.
    pub fn add<'k>(&mut self, key: impl Into<RowKey<'k>>, value: &[u8]) -> Result<()> {
        match &mut self.rows {
            Rows::ByIndex(rows) => {
                rows.append(value)?;
                self.counts.inserted += 1;
            }
            Rows::ByKey(map, editor) => {
                map.key_form().check_edited_alone()?;
                let key = map.key_form().key_of_row(key.into())?.ok_or_else(no_such_range)?;
                match map.has_lists() {
                    true => self.lists.add(&key, value),
                    false => self.counts.add(editor.set(&key, value)?),
                }
            }
        }
        Ok(())
    }

    /// Gives `key` a value. In a table by index, `key` is the number of a row, in decimal.
    ///
    /// # Errors
    /// As [`add`](Self::add), and [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is
    /// no such row.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let Rows::ByIndex(rows) = &mut self.rows else { return self.add(key, value) };
        let number = std::str::from_utf8(key).ok().and_then(|number| number.parse().ok());
        let row = number.ok_or_else(|| {
            Error::api_misuse("this is a table by row number: write the number of a row as the key")
        })?;
        rows.set(row, value)?;
        self.counts.replaced += 1;
        Ok(())
    }

    /// Ends a series of rows. Where keys have several values, later rows of a key replace the
    /// values that it has got so far.
    ///
    /// # Errors
    /// As [`Editor::set_all`].
    pub fn end_rows(&mut self) -> Result<()> {
        let ValuesByKey { values, .. } = std::mem::take(&mut self.lists);
        let Rows::ByKey(map, editor) = &mut self.rows else { return Ok(()) };
        for (key, values) in values {
            let named = || format!("the key {}", map.key_form().format.shown(&key));
            let effect = editor.set_all(&key, &values);
            self.counts.add(effect.map_err(|error| error.within(named()))?);
        }
        Ok(())
    }

    /// The result of all operations, `None` if they change nothing; and how many keys or rows they
    /// were about.
    ///
    /// # Errors
    /// As [`end_rows`](Self::end_rows); whatever `read` fails with;
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table would be too large.
    pub fn finish(mut self) -> Result<(Option<TableUpdate>, Counts)> {
        self.end_rows()?;
        let changed = match self.rows {
            Rows::ByKey(_, editor) => editor.finish()?,
            Rows::ByIndex(rows) => (rows.finish()?, None),
        };
        Ok((update_of(changed, self.shape, self.values)?, self.counts))
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
