//! Rows from files: CSV, JSON Lines and Parquet behind one iterator.
//!
//! A [`Source`] says where the rows come from, a [`Selection`] what is wanted of each: which column
//! is the key, and what makes the value. [`Rows`] then gives one [`Row`] after the other, in the
//! order of the input.
//!
//! # What a value looks like
//!
//! A value is a compact JSON object of the selected columns, in the order of the input (or of the
//! selection), or the bytes of a single column.
//!
//! | input | in a JSON value | as a key or a raw value |
//! |---|---|---|
//! | CSV cell | a string | its text |
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
//! An empty key is refused: in CSV it means that there is none.
//!
//! # Input that is not as it should be
//!
//! Every error names the input and the line (CSV, JSON Lines) or row (Parquet), counted from 1. A
//! byte order mark, Windows line ends and blank lines are fine. Bad UTF-8, rows with too few or too
//! many cells, unclosed quotes, lines that are no JSON object, and columns or fields that occur
//! twice are errors. One row may take at most [`MAX_ROW_BYTES`]; reading needs memory for one row
//! (CSV, JSON Lines) or one batch of 256 rows and one page per column (Parquet).

mod csv;
mod json_lines;
mod json_text;
mod lines;
mod parquet;
mod parquet_values;

#[cfg(test)]
mod tests;

use crate::similar;
use crate::snapshot::ValueForm;
use privet_core::{Blame, Error, Result};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The most bytes that one row may take in CSV and JSON Lines.
pub const MAX_ROW_BYTES: usize = 64 << 20;

/// A file format that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Comma-separated values with a header line (RFC 4180), in UTF-8.
    Csv,
    /// One JSON object per line, in UTF-8.
    JsonLines,
    /// Apache Parquet.
    Parquet,
}

impl Format {
    /// The format that a name or a file extension stands for: `csv`; `jsonl`, `ndjson` or
    /// `json-lines`; `parquet`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "csv" => Some(Format::Csv),
            "jsonl" | "ndjson" | "json-lines" => Some(Format::JsonLines),
            "parquet" => Some(Format::Parquet),
            _ => None,
        }
    }
}

/// Where rows come from.
pub struct Source {
    input: Input,
    format: Option<Format>,
}

enum Input {
    Path(PathBuf),
    Reader { name: String, reader: Box<dyn Read> },
}

impl Source {
    /// A file. Its format follows from its extension, unless [`format`](Source::format) says
    /// otherwise. The name `-` stands for standard input.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        if path.as_os_str() == "-" {
            return Self::reader("standard input", io::stdin());
        }
        Self { input: Input::Path(path), format: None }
    }

    /// Anything that can be read, under a name for errors. Needs a [`format`](Source::format).
    pub fn reader(name: impl Into<String>, reader: impl Read + 'static) -> Self {
        Self { input: Input::Reader { name: name.into(), reader: Box::new(reader) }, format: None }
    }

    /// Sets the format.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// The name of the input, as errors give it.
    pub fn name(&self) -> String {
        match &self.input {
            Input::Path(path) => path.display().to_string(),
            Input::Reader { name, .. } => name.clone(),
        }
    }

    fn resolve_format(&self) -> Result<Format> {
        const FORMATS: &str = "csv, jsonl or parquet";
        if let Some(format) = self.format {
            return Ok(format);
        }
        let Input::Path(path) = &self.input else {
            return Err(Error::api_misuse(format!("say which format it has: {FORMATS}")));
        };
        path.extension().and_then(|extension| Format::from_name(extension.to_str()?)).ok_or_else(
            || {
                Error::api_misuse(format!(
                    "its name does not tell its format; say which it has: {FORMATS}"
                ))
            },
        )
    }
}

/// What is wanted of each row.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The column that gives the key, if any.
    pub key: Option<String>,
    /// What makes the value.
    pub value: ValueForm,
}

/// One row of the input.
#[derive(Debug)]
pub struct Row<'a> {
    /// The line on which it begins (CSV, JSON Lines) or its number (Parquet), counted from 1.
    pub position: u64,
    /// The bytes of its key; empty if none was selected.
    pub key: &'a [u8],
    /// The bytes of its value.
    pub value: &'a [u8],
}

/// The rows of an input, one after the other.
pub struct Rows {
    name: String,
    reader: Box<dyn RowReader>,
    bytes_total: Option<u64>,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// What a format has to offer. Its errors name the line or row, but not the input.
trait RowReader {
    /// Writes the next row's key and value over `key` and `value` and returns its position, or
    /// `None` after the last.
    fn next_row(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Option<u64>>;

    /// What positions count: "line" or "row".
    fn unit(&self) -> &'static str;

    /// About how many bytes of the input are read.
    fn bytes_read(&self) -> u64;
}

impl Rows {
    /// Opens `source` and finds the columns of `selection` in it.
    ///
    /// # Errors
    /// - [`Blame::Unavailable`] if it cannot be opened or read.
    /// - [`Blame::ApiMisuse`] if its format is unknown, its beginning is not of that format, or it
    ///   lacks a column.
    pub fn open(source: Source, selection: Selection) -> Result<Self> {
        let name = source.name();
        Self::open_unnamed(source, selection).map_err(|error| error.within(name))
    }

    fn open_unnamed(source: Source, selection: Selection) -> Result<Self> {
        let name = source.name();
        let format = source.resolve_format()?;
        let (file, bytes_total): (Box<dyn Read>, _) = match source.input {
            Input::Path(path) => {
                let (file, len) = open_file(&path)?;
                if format == Format::Parquet {
                    let reader = Box::new(parquet::ParquetRows::open(file, selection)?);
                    return Ok(Self {
                        name,
                        reader,
                        bytes_total: Some(len),
                        key: vec![],
                        value: vec![],
                    });
                }
                // A pipe has no length that means anything.
                (Box::new(file), (len > 0).then_some(len))
            }
            Input::Reader { reader, .. } => (reader, None),
        };
        let counter = Rc::new(Cell::new(0));
        let counted = Counted { input: file, counter: Rc::clone(&counter) };
        let reader: Box<dyn RowReader> = match format {
            Format::Csv => Box::new(csv::CsvRows::open(counted, counter, selection)?),
            Format::JsonLines => {
                Box::new(json_lines::JsonLinesRows::open(counted, counter, selection))
            }
            Format::Parquet => Box::new(parquet::ParquetRows::spool(counted, selection)?),
        };
        Ok(Self { name, reader, bytes_total, key: vec![], value: vec![] })
    }

    /// The next row, or `None` after the last.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`] if the row is not as the [module](self) says it should be.
    /// - [`Blame::Unavailable`] if reading fails.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>> {
        self.key.clear();
        self.value.clear();
        match self.reader.next_row(&mut self.key, &mut self.value) {
            Ok(None) => Ok(None),
            Ok(Some(position)) => Ok(Some(Row { position, key: &self.key, value: &self.value })),
            Err(error) => Err(error.within(&self.name)),
        }
    }

    /// The name of the input.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What positions count: "line" or "row".
    pub fn unit(&self) -> &'static str {
        self.reader.unit()
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

fn open_file(path: &Path) -> Result<(File, u64)> {
    let file = File::open(path).and_then(|file| {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            Err(io::ErrorKind::IsADirectory.into())
        } else {
            Ok((file, metadata.len()))
        }
    });
    file.map_err(|error| {
        // Which file to read was the caller's choice; that the disk fails was not.
        let blame = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => Blame::ApiMisuse,
            _ => Blame::Unavailable,
        };
        Error::new(blame, format!("cannot open it: {error}")).caused_by(error)
    })
}

/// Counts the bytes that pass.
struct Counted<R> {
    input: R,
    counter: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.counter.set(self.counter.get() + count as u64);
        Ok(count)
    }
}

fn cannot_read(error: io::Error) -> Error {
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

/// A name from outside, in quotes, with anything unprintable escaped, cut to a readable length.
pub(crate) fn quoted(name: &str) -> String {
    const MOST: usize = 80;
    match name.char_indices().nth(MOST) {
        None => format!("{name:?}"),
        Some((end, _)) => format!("{:?}…", &name[..end]),
    }
}

/// Finds the columns of a selection among those of a table with a fixed set of columns.
struct ResolvedColumns {
    key: Option<usize>,
    value: Vec<usize>,
    raw: bool,
}

impl ResolvedColumns {
    fn resolve(selection: &Selection, columns: &[String]) -> Result<Self> {
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
        let value = match &selection.value {
            ValueForm::JsonRest => {
                (0..columns.len()).filter(|&column| Some(column) != key).collect()
            }
            ValueForm::JsonColumns(names) => names.iter().map(find).collect::<Result<_>>()?,
            ValueForm::Raw(name) => vec![find(name)?],
        };
        Ok(Self { key, value, raw: matches!(selection.value, ValueForm::Raw(_)) })
    }
}

/// The error for a key that cannot be one.
fn bad_key(column: &str, why: &str) -> Error {
    Error::api_misuse(format!(
        "the key (column {}) {why}; every row needs a text or a number there",
        quoted(column)
    ))
}

/// The error for a raw value that cannot be one.
fn bad_raw_value(column: &str, why: &str) -> Error {
    Error::api_misuse(format!(
        "the column {} {why}; a raw value must be text or bytes (as JSON, any value will do)",
        quoted(column)
    ))
}
