//! Rows from files, and those that a program supplies: CSV, JSON Lines, Parquet and [`Cells`]
//! behind one iterator.
//!
//! A [`Source`] says where the rows come from. A [`Selection`] says what is wanted of each row:
//! which column is the key, and what makes the value. [`Rows`] then gives one [`Row`] after the
//! other, in the order of the input.
//!
//! # What a value looks like
//!
//! A value is a compact JSON object of the selected columns, in the order of the input (or of the
//! selection), or the bytes of a single column.
//!
//! | input | in a JSON value | as a key or a raw value |
//! |---|---|---|
//! | CSV cell | a string; a number, a boolean or `null` in columns that were [given a type](ColumnType) | its text |
//! | JSON string | the same string, written without needless escapes | its text |
//! | JSON number | as written: `1.10` stays `1.10`, and no digit of a large number is lost | as written; not as a raw value |
//! | JSON `true`, `false` | as it is | its name; not as a raw value |
//! | JSON object, array | as it is, without white space between tokens | refused |
//! | `null`, missing column | `null`; left out | refused |
//! | Parquet number, decimal | a number; `NaN` and the infinities are strings | its text; not as a raw value |
//! | Parquet date, time, timestamp | an ISO 8601 string, in UTC with a `Z` where it is an instant | its text; not as a raw value |
//! | Parquet text | a string | its text |
//! | Parquet binary | a string in base64 | its bytes |
//! | Parquet list, struct, map | an array, an object, an object with text keys | refused |
//!
//! A row has no key if its key is empty or null. In JSON Lines, a row whose key is missing has none
//! either, if an earlier row had the column. Such a row is refused, or [skipped](OnEmptyKey::Skip)
//! and counted.
//!
//! # Compressed input
//!
//! Input that is compressed with gzip or zstd is recognised by its first bytes, whatever its name,
//! and decompressed as it is read. Progress counts compressed bytes. A Parquet file that is
//! compressed as a whole, not only within, is first copied to a temporary file.
//!
//! # Input that is not as it should be
//!
//! Every error names the input and the line (CSV, JSON Lines) or row (Parquet, an array in JSON),
//! counted from 1. A
//! byte order mark, UTF-16, Windows line ends and blank lines are fine. Bad UTF-8, rows with too
//! few or too many cells, unclosed quotes and text after them, lines that are no JSON object, and
//! columns or fields that occur twice are errors. A [`Dialect`] says where a file is written by
//! other rules. One row may take at most [`MAX_ROW_BYTES`]; reading needs memory for one row
//! (CSV, JSON Lines) or one batch of 256 rows and one page per column (Parquet, whose pages have
//! limits of their own).

mod cell;
mod cells;
mod compressed;
mod csv;
mod dialect;
mod formats;
mod json_array;
mod json_fields;
mod json_lines;
mod json_text;
mod lines;
mod of_table;
mod parquet;
mod source;
mod text;
mod types;
mod unreadable;

#[cfg(test)]
pub(crate) mod tests;

pub use cell::Cell;
pub use cells::Cells;
pub use dialect::{Delimiter, Dialect};
pub use formats::Format;
pub use json_fields::Fields;
pub use of_table::{Columns, check_value, common_columns};
pub use source::{OnEmptyKey, Source, text_of};
pub use types::{ColumnType, ColumnTypes, Types};
pub(crate) use {source::Like, types::guess as guess_types};

use crate::key_map::RowKey;
pub(crate) use crate::key_map::quoted;
use crate::similar;
use crate::snapshot::ValueForm;
use crate::values::ValueColumn;
use privet_core::{Error, Reason, Result};
use serde::Serialize;
use std::io::{self, Read};
use std::rc::Rc;
use unreadable::Unreadable;

/// The most bytes that one row may take.
pub const MAX_ROW_BYTES: usize = 64 << 20;

/// What is wanted of each row.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The column that gives the key, if any; for a table of ranges, the first point.
    pub key: Option<String>,
    /// The column that gives the last point of a range, if it is not the column of the first.
    pub until: Option<String>,
    /// What makes the value.
    pub value: ValueForm,
}

impl Selection {
    /// Whether it names any column, so that one was found by its name.
    fn names_a_column(&self) -> bool {
        self.key.is_some() || !self.value.columns().is_empty()
    }

    /// Whether the column gives the key, or a part of it.
    fn is_bound(&self, column: &str) -> bool {
        [&self.key, &self.until].into_iter().flatten().any(|bound| bound == column)
    }
}

/// One row of the input.
#[derive(Debug)]
pub struct Row<'a> {
    /// The line on which it begins (CSV, JSON Lines) or its number (Parquet), counted from 1.
    pub position: u64,
    /// Its key; empty if none was selected.
    pub key: RowKey<'a>,
    /// The bytes of its value.
    pub value: &'a [u8],
}

/// The rows of an input, one after the other.
pub struct Rows {
    name: String,
    reader: Box<dyn RowReader>,
    bytes_total: Option<u64>,
    on_empty_key: OnEmptyKey,
    empty_keys: u64,
    has_until: bool,
    cells: RowBytes,
}

/// The bytes of one row.
#[derive(Default)]
struct RowBytes {
    key: Vec<u8>,
    /// The last point of a range, if a column of its own is selected for it.
    until: Vec<u8>,
    value: Vec<u8>,
}

/// A reader of one format. Its errors name the line or row, but not the input.
trait RowReader {
    /// Appends the next row's key and value to those of `row`, which are empty, and returns its
    /// position, or `None` after the last. A row without a key is an error with the
    /// [reason](Reason::EmptyKey) for that; the next call goes on with the row after it.
    fn next_row(&mut self, row: &mut RowBytes) -> Result<Option<u64>>;

    /// What positions count: "line" or "row".
    fn unit(&self) -> &'static str;

    /// About how many bytes of the input are read.
    fn bytes_read(&self) -> u64;

    /// The columns that make the value, if all rows have the same ones.
    fn value_columns(&self) -> Option<Vec<ValueColumn>>;

    /// Whether the column of keys is one of bytes.
    fn has_byte_keys(&self) -> bool {
        false
    }

    /// How many lines so far were no rows.
    fn left_out(&self) -> LinesLeftOut {
        LinesLeftOut::default()
    }

    /// What was read and may have been meant otherwise.
    fn doubt(&self) -> Option<&str> {
        None
    }
}

/// How many lines of a text were no rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinesLeftOut {
    /// Lines before the first that were to be left out.
    #[serde(rename = "skipped_lines")]
    pub first: u64,
    /// Comments.
    #[serde(rename = "comment_lines")]
    pub comments: u64,
    /// Blank lines.
    #[serde(rename = "blank_lines")]
    pub blank: u64,
}

impl std::ops::AddAssign for LinesLeftOut {
    fn add_assign(&mut self, other: Self) {
        self.first += other.first;
        self.comments += other.comments;
        self.blank += other.blank;
    }
}

impl Rows {
    /// Opens `source` and finds the columns of `selection` in it.
    ///
    /// # Errors
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be opened or read.
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if its format is unknown, its
    ///   beginning is not of that format, or it lacks a column.
    pub fn open(source: Source, selection: Selection) -> Result<Self> {
        let name = source.name();
        Self::open_unnamed(source, selection).map_err(|error| error.within(name))
    }

    fn open_unnamed(source: Source, selection: Selection) -> Result<Self> {
        let (name, on_empty_key) = (source.name(), source.on_empty_key);
        let has_until = selection.until.is_some();
        let format = source.resolve_format()?;
        let (reader, bytes_total) = format.open(source, selection)?;
        let (empty_keys, cells) = (0, RowBytes::default());
        Ok(Self { name, reader, bytes_total, on_empty_key, empty_keys, has_until, cells })
    }

    /// The next row, or `None` after the last.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the row is not as the
    ///   [module](self) says it should be.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if reading fails.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>> {
        loop {
            let RowBytes { key, until, value } = &mut self.cells;
            [key, until, value].into_iter().for_each(Vec::clear);
            return match self.reader.next_row(&mut self.cells) {
                Ok(None) => Ok(None),
                Ok(Some(position)) => {
                    let RowBytes { key, until, value } = &self.cells;
                    let until = self.has_until.then_some(until.as_slice());
                    Ok(Some(Row { position, key: RowKey { key, until }, value }))
                }
                Err(error)
                    if error.reason() == Some(Reason::EmptyKey)
                        && self.on_empty_key == OnEmptyKey::Skip =>
                {
                    self.empty_keys += 1;
                    continue;
                }
                Err(error) => Err(error.within(&self.name)),
            };
        }
    }

    /// How many rows were left out so far because they have no key.
    pub fn empty_keys(&self) -> u64 {
        self.empty_keys
    }

    /// How many lines so far were no rows.
    pub fn left_out(&self) -> LinesLeftOut {
        self.reader.left_out()
    }

    /// What was read and may have been meant otherwise, in a sentence.
    pub fn doubt(&self) -> Option<&str> {
        self.reader.doubt()
    }

    /// The name of the input.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What positions count: "line" or "row".
    pub fn unit(&self) -> &'static str {
        self.reader.unit()
    }

    /// The columns that make the value, in their order, if all rows have the same ones. `None` in
    /// JSON Lines, where each row names its own.
    pub fn value_columns(&self) -> Option<Vec<ValueColumn>> {
        self.reader.value_columns()
    }

    /// Whether keys come from a column of bytes: they are not written in any format, but are the
    /// bytes of the key.
    pub fn has_byte_keys(&self) -> bool {
        self.reader.has_byte_keys()
    }

    /// About how many bytes of the input are read.
    pub fn bytes_read(&self) -> u64 {
        self.reader.bytes_read()
    }

    /// How many bytes the input has, if that is known.
    pub fn bytes_total(&self) -> Option<u64> {
        self.bytes_total
    }
}

/// Counts the bytes that pass.
struct Counted<R> {
    input: R,
    counter: Rc<std::cell::Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.counter.set(self.counter.get() + count as u64);
        Ok(count)
    }
}

fn cannot_spool(error: io::Error) -> Error {
    if Unreadable::of(&error).is_some() {
        return cannot_read(error);
    }
    Error::unavailable(format!(
        "cannot copy it to a temporary file, from which it has to be read: {error}"
    ))
    .caused_by(error)
}

/// Why an input cannot be read: a disk that fails, or what is wrong with its bytes.
pub fn cannot_read(error: io::Error) -> Error {
    if let Some(wrong) = Unreadable::of(&error) {
        return Error::api_misuse(wrong);
    }
    Error::unavailable(format!("cannot read it: {error}")).caused_by(error)
}

/// The error for a column that is not there.
fn no_such_column<'a>(wanted: &str, columns: impl IntoIterator<Item = &'a str>) -> Error {
    const MOST: usize = 40;
    let columns: Vec<&str> = columns.into_iter().collect();
    let mut list: Vec<String> = columns.iter().take(MOST).map(|name| quoted(name)).collect();
    if columns.len() > MOST {
        list.push("…".to_owned());
    }
    let meant = similar::meant(wanted, columns);
    let meant = meant.map(|name| format!("; did you mean {}?", quoted(name))).unwrap_or_default();
    Error::api_misuse(format!(
        "there is no column {}; the columns are {}{meant}",
        quoted(wanted),
        list.join(", ")
    ))
}

/// The columns of a selection, by their positions in an input with a fixed set of columns.
struct ResolvedColumns {
    key: Option<usize>,
    until: Option<usize>,
    value: Vec<usize>,
    raw: bool,
}

/// A selection, and what else the source says of its columns.
struct WantedColumns {
    selection: Selection,
    /// The value columns of an input that came before, for a selection of all columns.
    like: Option<Like>,
    types: ColumnTypes,
    /// Types that columns have if they are there and `types` does not name them.
    known_types: ColumnTypes,
}

impl ResolvedColumns {
    fn resolve(wanted: &WantedColumns, columns: &[String]) -> Result<Self> {
        let WantedColumns { selection, like, .. } = wanted;
        let mut seen = std::collections::HashSet::new();
        if let Some(twice) = columns.iter().find(|column| !seen.insert(column.as_str())) {
            return Err(Error::api_misuse(format!(
                "the column {} occurs twice; rename one",
                quoted(twice)
            )));
        }
        let find = |wanted: &String| {
            let found = columns.iter().position(|column| column == wanted);
            found.ok_or_else(|| no_such_column(wanted, columns.iter().map(String::as_str)))
        };
        let key = selection.key.as_ref().map(find).transpose()?;
        let until = selection.until.as_ref().map(find).transpose()?;
        let value = match (&selection.value, like) {
            (ValueForm::JsonRest, Some(like)) => {
                let is_known =
                    |column: &&String| like.columns.contains(column) || selection.is_bound(column);
                if let Some(other) = columns.iter().find(|column| !is_known(column)) {
                    return Err(Error::api_misuse(format!(
                        "it has a column {}, and {} has none; the inputs of a table have the same columns",
                        quoted(other),
                        like.of
                    ))
                    .because(Reason::ColumnsDiffer));
                }
                let like = like.columns.iter().map(find).collect::<Result<_>>();
                like.map_err(|error| error.because(Reason::ColumnsDiffer))?
            }
            (ValueForm::JsonRest, None) => {
                (0..columns.len()).filter(|&column| !selection.is_bound(&columns[column])).collect()
            }
            (ValueForm::JsonColumns(names), _) => names.iter().map(find).collect::<Result<_>>()?,
            (ValueForm::Raw(name), _) => vec![find(name)?],
        };
        Ok(Self { key, until, value, raw: matches!(selection.value, ValueForm::Raw(_)) })
    }
}

/// The error for a cell that cannot be a key.
fn bad_key(column: &str, why: &str) -> Error {
    Error::api_misuse(format!(
        "the key (column {}) {why}; every row needs a text or a number there",
        quoted(column)
    ))
}

/// The error for a row without a key.
fn no_key(column: &str, why: &str) -> Error {
    bad_key(column, why).because(Reason::EmptyKey)
}

/// The error for a cell that cannot be a raw value.
fn bad_raw_value(column: &str, why: &str) -> Error {
    Error::api_misuse(format!(
        "the column {} {why}; a raw value must be text or bytes (as JSON, any value will do)",
        quoted(column)
    ))
}
