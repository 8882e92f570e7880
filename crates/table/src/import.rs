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
//! A row whose key is empty, null or, in JSON Lines, missing though rows before have one, has no key.
//! It is refused, or [skipped](OnEmptyKey::Skip) and counted.
//!
//! # Compressed input
//!
//! Input that is compressed with gzip or zstd is recognised by its first bytes, whatever its name,
//! and decompressed as it is read. Bytes are counted as they lie in the file. Parquet, which is
//! compressed within, is copied to a temporary file if it is compressed as a whole.
//!
//! # Input that is not as it should be
//!
//! Every error names the input and the line (CSV, JSON Lines) or row (Parquet), counted from 1. A
//! byte order mark, Windows line ends and blank lines are fine. Bad UTF-8, rows with too few or too
//! many cells, unclosed quotes, lines that are no JSON object, and columns or fields that occur
//! twice are errors. One row may take at most [`MAX_ROW_BYTES`]; reading needs memory for one row
//! (CSV, JSON Lines) or one batch of 256 rows and one page per column (Parquet).

mod compressed;
mod csv;
mod json_lines;
mod json_text;
mod lines;
mod parquet;

#[cfg(test)]
pub(crate) mod tests;

use crate::key_map::BETWEEN_BOUNDS;
use crate::snapshot::ValueForm;
use privet_core::{Blame, Error, Reason, Result};
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
    /// Comma-separated values with a header line (RFC 4180), in UTF-8. Another
    /// [delimiter](Source::delimiter) may stand for the comma.
    Csv,
    /// The same with tabs for commas; quotes mean what they do there.
    Tsv,
    /// One JSON object per line, in UTF-8.
    JsonLines,
    /// Apache Parquet.
    Parquet,
}

impl Format {
    /// The format that a name or a file extension stands for: `csv`; `tsv` or `tab`; `jsonl`,
    /// `ndjson` or `json-lines`; `parquet`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "csv" => Some(Format::Csv),
            "tsv" | "tab" => Some(Format::Tsv),
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
    delimiter: Option<u8>,
    on_empty_key: OnEmptyKey,
}

/// What to do with a row that has no key, where keys are selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnEmptyKey {
    /// Refuse the input, naming the row.
    #[default]
    Error,
    /// Leave the row out, and count it.
    Skip,
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
        Self::of(Input::Path(path))
    }

    /// Anything that can be read, under a name for errors. Needs a [`format`](Source::format).
    pub fn reader(name: impl Into<String>, reader: impl Read + 'static) -> Self {
        Self::of(Input::Reader { name: name.into(), reader: Box::new(reader) })
    }

    fn of(input: Input) -> Self {
        Self { input, format: None, delimiter: None, on_empty_key: OnEmptyKey::Error }
    }

    /// Sets the format.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Sets what separates the cells of a row, for CSV: an ASCII character, no quote and no line
    /// end. An input whose name does not tell its format is CSV then.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.delimiter = Some(delimiter);
        self
    }

    /// Says what becomes of rows without a key.
    #[must_use]
    pub fn on_empty_key(mut self, on_empty_key: OnEmptyKey) -> Self {
        self.on_empty_key = on_empty_key;
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
        const FORMATS: &str = "csv, tsv, jsonl or parquet";
        if let Some(format) = self.format {
            return Ok(format);
        }
        let by_name = match &self.input {
            Input::Path(path) => format_by_name(path),
            Input::Reader { .. } => None,
        };
        match (by_name, &self.input) {
            (Some(format), _) => Ok(format),
            _ if self.delimiter.is_some() => Ok(Format::Csv),
            (None, Input::Reader { .. }) => {
                Err(Error::api_misuse(format!("say which format it has: {FORMATS}")))
            }
            (None, Input::Path(_)) => Err(Error::api_misuse(format!(
                "its name does not tell its format; say which it has: {FORMATS}"
            ))),
        }
    }

    /// What separates cells, for a format that has cells.
    fn dialect(&self, format: Format) -> Result<csv::Dialect> {
        let usual = match format {
            Format::Csv => b',',
            Format::Tsv => b'\t',
            Format::JsonLines | Format::Parquet if self.delimiter.is_some() => {
                return Err(Error::api_misuse(
                    "only CSV has a delimiter, and this is in another format; leave it out",
                ));
            }
            Format::JsonLines | Format::Parquet => b',',
        };
        match self.delimiter {
            Some(delimiter) if !delimiter.is_ascii() || b"\"\r\n".contains(&delimiter) => {
                Err(Error::api_misuse(
                    "the delimiter must be one ASCII character, no quote and no line end",
                ))
            }
            delimiter => Ok(csv::Dialect {
                delimiter: delimiter.unwrap_or(usual),
                is_certain: delimiter.is_some(),
            }),
        }
    }
}

/// The format by a file's extension, or by that before one of a compressed file: `rows.csv.gz`.
fn format_by_name(path: &Path) -> Option<Format> {
    let extension = path.extension()?.to_str()?;
    match extension.to_ascii_lowercase().as_str() {
        "gz" | "gzip" | "zst" | "zstd" => {
            Format::from_name(Path::new(path.file_stem()?).extension()?.to_str()?)
        }
        _ => Format::from_name(extension),
    }
}

/// What is wanted of each row.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The column that gives the key, if any; for a table of ranges, the first point.
    pub key: Option<String>,
    /// The column that gives the last point of a range, if that is another. The key is then both
    /// texts, with [`BETWEEN_BOUNDS`](crate::key_map::BETWEEN_BOUNDS) between them.
    pub until: Option<String>,
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
    on_empty_key: OnEmptyKey,
    empty_keys: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// What a format has to offer. Its errors name the line or row, but not the input.
trait RowReader {
    /// Appends the next row's key and value to `key` and `value`, which are empty, and returns its
    /// position, or `None` after the last. After a row without a key, which is an error for that
    /// [reason](Reason::EmptyKey), it goes on with the next.
    fn next_row(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Option<u64>>;

    /// What positions count: "line" or "row".
    fn unit(&self) -> &'static str;

    /// About how many bytes of the input are read.
    fn bytes_read(&self) -> u64;

    /// The columns that make the value, where every row has the same.
    fn value_columns(&self) -> Option<Vec<&str>>;
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
        let dialect = source.dialect(format)?;
        let on_empty_key = source.on_empty_key;
        let rows = |reader, bytes_total| Self {
            name,
            reader,
            bytes_total,
            on_empty_key,
            empty_keys: 0,
            key: vec![],
            value: vec![],
        };
        let (file, bytes_total): (Box<dyn Read>, _) = match source.input {
            Input::Path(path) => {
                let (mut file, len) = open_file(&path)?;
                if format == Format::Parquet && !compressed::is_compressed(&mut file)? {
                    let reader = Box::new(parquet::ParquetRows::open(file, selection)?);
                    return Ok(rows(reader, Some(len)));
                }
                // A pipe has no length that means anything.
                (Box::new(file), (len > 0).then_some(len))
            }
            Input::Reader { reader, .. } => (reader, None),
        };
        let counter = Rc::new(Cell::new(0));
        let counted = Counted { input: file, counter: Rc::clone(&counter) };
        let input = compressed::decompressed(counted)?;
        let reader: Box<dyn RowReader> = match format {
            Format::Csv | Format::Tsv => {
                Box::new(csv::CsvRows::open(input, counter, selection, dialect)?)
            }
            Format::JsonLines => {
                Box::new(json_lines::JsonLinesRows::open(input, counter, selection))
            }
            Format::Parquet => Box::new(parquet::ParquetRows::spool(input, selection)?),
        };
        Ok(rows(reader, bytes_total))
    }

    /// The next row, or `None` after the last.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`] if the row is not as the [module](self) says it should be.
    /// - [`Blame::Unavailable`] if reading fails.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>> {
        loop {
            self.key.clear();
            self.value.clear();
            return match self.reader.next_row(&mut self.key, &mut self.value) {
                Ok(None) => Ok(None),
                Ok(Some(position)) => {
                    Ok(Some(Row { position, key: &self.key, value: &self.value }))
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

    /// The name of the input.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What positions count: "line" or "row".
    pub fn unit(&self) -> &'static str {
        self.reader.unit()
    }

    /// The columns that make the value, in their order, where every row has the same ones: in CSV
    /// and Parquet. In JSON Lines each row says itself what it has.
    pub fn value_columns(&self) -> Option<Vec<&str>> {
        self.reader.value_columns()
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
    if let Some(damaged) = compressed::damage(&error) {
        return Error::api_misuse(damaged);
    }
    Error::unavailable(format!("cannot read it: {error}")).caused_by(error)
}

/// The error for a column that is not there.
fn no_such_column<'a>(wanted: &str, columns: impl IntoIterator<Item = &'a str>) -> Error {
    const MOST: usize = 40;
    let mut columns = columns.into_iter();
    let mut list: Vec<String> = columns.by_ref().take(MOST).map(quoted).collect();
    if columns.next().is_some() {
        list.push("…".to_owned());
    }
    Error::api_misuse(format!(
        "there is no column {}; the columns are {}",
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
    until: Option<usize>,
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
        let until = selection.until.as_ref().map(find).transpose()?;
        let value = match &selection.value {
            ValueForm::JsonRest => {
                let is_bound = |column: usize| [key, until].contains(&Some(column));
                (0..columns.len()).filter(|&column| !is_bound(column)).collect()
            }
            ValueForm::JsonColumns(names) => names.iter().map(find).collect::<Result<_>>()?,
            ValueForm::Raw(name) => vec![find(name)?],
        };
        Ok(Self { key, until, value, raw: matches!(selection.value, ValueForm::Raw(_)) })
    }
}

/// Ends the first bound of a range.
fn push_between_bounds(key: &mut Vec<u8>) {
    key.push(BETWEEN_BOUNDS as u8);
}

/// The error for a key that cannot be one.
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

/// The error for a raw value that cannot be one.
fn bad_raw_value(column: &str, why: &str) -> Error {
    Error::api_misuse(format!(
        "the column {} {why}; a raw value must be text or bytes (as JSON, any value will do)",
        quoted(column)
    ))
}
