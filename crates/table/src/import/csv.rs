//! Comma-separated values, as RFC 4180 describes them and `csv-core` parses them.
//!
//! The reader refuses signs of damage: a quote that is never closed, and a row with more or fewer
//! cells than the header. It accepts blank lines, either kind of line end, and quotes within
//! unquoted cells. Text after a closing quote belongs to the cell: `"a"b` is `ab`.

use super::json_text::write_string;
use super::lines::{Lines, not_utf8, row_too_long, without_end};
use super::types::{self, ColumnType, Evidence};
use super::{
    MAX_ROW_BYTES, ResolvedColumns, RowReader, Wanted, no_key, push_between_bounds, quoted,
};
use crate::values::{ValueColumn, ValueType};
use privet_core::{Error, Reason, Result};
use std::cell::Cell;
use std::io::Read;
use std::rc::Rc;

/// What separates the cells of a row.
#[derive(Clone, Copy)]
pub(super) struct Dialect {
    pub(super) delimiter: u8,
    /// Whether the caller named the delimiter. If not, it is the usual one of the format.
    pub(super) is_certain: bool,
}

pub(super) struct CsvRows<R> {
    records: Records<R>,
    delimiter: u8,
    counter: Rc<Cell<u64>>,
    columns: Vec<String>,
    types: Vec<ColumnType>,
    resolved: ResolvedColumns,
}

impl<R: Read> CsvRows<R> {
    pub(super) fn open(
        input: R,
        counter: Rc<Cell<u64>>,
        wanted: Wanted,
        dialect: Dialect,
    ) -> Result<Self> {
        let mut records = Records::new(input, dialect.delimiter);
        let Some(line) = records.next_record()? else {
            return Err(Error::api_misuse(
                "it is empty; a CSV file begins with a line of column names",
            ));
        };
        let columns: Vec<String> =
            (0..records.row.count).map(|column| records.row.cell(column).to_owned()).collect();
        let (resolved, types) = check_delimiter(dialect, &columns)
            .and_then(|()| {
                let resolved = ResolvedColumns::resolve(&wanted, &columns)?;
                let types = types::resolve(&wanted, &columns, &resolved)?;
                Ok((resolved, types))
            })
            .map_err(|error| error.within(format!("line {line}")))?;
        Ok(Self { records, delimiter: dialect.delimiter, counter, columns, types, resolved })
    }

    /// The names of the columns that make the value.
    pub(super) fn value_names(&self) -> Vec<String> {
        self.resolved.value.iter().map(|&column| self.columns[column].clone()).collect()
    }

    /// Shows each cell of the value columns to the evidence of its column, for all rows. With
    /// `skip`, rows without a key are left out. Reports now and then how many bytes are read.
    pub(super) fn look(
        &mut self,
        evidence: &mut [Evidence],
        skip: bool,
        read: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let mut rows = 0u64;
        while let Some(line) = self.next_record()? {
            self.check_cells().map_err(|error| error.within(format!("line {line}")))?;
            let row = &self.records.row;
            if skip && self.resolved.key.is_some_and(|key| row.cell(key).is_empty()) {
                continue;
            }
            for (&column, evidence) in self.resolved.value.iter().zip(&mut *evidence) {
                evidence.look(row.cell(column));
            }
            rows += 1;
            if rows.is_multiple_of(64) {
                read(self.counter.get())?;
            }
        }
        read(self.counter.get())
    }

    /// As [`Records::next_record`], and names the column of a cell that is not UTF-8.
    fn next_record(&mut self) -> Result<Option<u64>> {
        let Self { records, columns, .. } = self;
        records.next_record().map_err(|error| match records.bad_cell() {
            Some((line, valid, cell)) => {
                not_utf8(line, valid, columns.get(cell).map(String::as_str))
            }
            None => error,
        })
    }

    fn check_cells(&self) -> Result<()> {
        let (found, expected) = (self.records.row.count, self.columns.len());
        if found != expected {
            return Err(Error::api_misuse(format!(
                "this row has {found} cells and the header has {expected} columns; is {} unquoted or a quote \
                 missing?",
                called(self.delimiter)
            )));
        }
        Ok(())
    }

    fn read_row(&self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<()> {
        self.check_cells()?;
        if let Some(column) = self.resolved.key {
            let text = self.records.row.cell(column);
            if text.is_empty() {
                return Err(no_key(&self.columns[column], "is empty"));
            }
            key.extend_from_slice(text.as_bytes());
        }
        if let Some(column) = self.resolved.until {
            push_between_bounds(key);
            key.extend_from_slice(self.records.row.cell(column).as_bytes());
        }
        if self.resolved.raw {
            value.extend_from_slice(self.records.row.cell(self.resolved.value[0]).as_bytes());
            return Ok(());
        }
        let mut separator = b'{';
        for &column in &self.resolved.value {
            value.push(separator);
            write_string(&self.columns[column], value);
            value.push(b':');
            self.types[column].write_cell(
                &self.columns[column],
                self.records.row.cell(column),
                value,
            )?;
            separator = b',';
        }
        if separator == b'{' {
            value.push(b'{');
        }
        value.push(b'}');
        Ok(())
    }
}

/// Refuses a header of one column that contains another common delimiter, unless the caller named
/// the delimiter.
fn check_delimiter(dialect: Dialect, columns: &[String]) -> Result<()> {
    let ([column], false) = (columns, dialect.is_certain) else { return Ok(()) };
    let others = b";\t|,".iter().filter(|other| **other != dialect.delimiter);
    match others.copied().find(|other| column.as_bytes().contains(other)) {
        None => Ok(()),
        Some(other) => Err(Error::api_misuse(format!(
            "the header is one column, {}: perhaps the cells are separated by {2} and not by {1}; say \
             which delimiter there is",
            quoted(column),
            called(dialect.delimiter),
            called(other)
        ))
        .because(Reason::DelimiterUnclear)),
    }
}

/// A delimiter in a sentence.
fn called(delimiter: u8) -> String {
    match delimiter {
        b',' => "a comma".to_owned(),
        b';' => "a semicolon".to_owned(),
        b'\t' => "a tab".to_owned(),
        b'|' => "a vertical bar".to_owned(),
        other => format!("{:?}", char::from(other)),
    }
}

impl<R: Read> RowReader for CsvRows<R> {
    fn next_row(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Option<u64>> {
        let Some(line) = self.next_record()? else { return Ok(None) };
        self.read_row(key, value).map_err(|error| error.within(format!("line {line}")))?;
        Ok(Some(line))
    }

    fn unit(&self) -> &'static str {
        "line"
    }

    fn value_columns(&self) -> Option<Vec<ValueColumn>> {
        let of = |column: usize| match self.types[column] {
            ColumnType::Text => ValueType::Text,
            ColumnType::Number => ValueType::Number,
            ColumnType::Boolean => ValueType::Boolean,
        };
        let columns = self.resolved.value.iter();
        let described = |&column: &usize| {
            let name = self.columns[column].clone();
            ValueColumn { name, of: of(column) }
        };
        Some(columns.map(described).collect())
    }

    fn bytes_read(&self) -> u64 {
        self.counter.get()
    }
}

/// Joins lines into records.
struct Records<R> {
    lines: Lines<R>,
    row: RowCells,
    /// The number of the cell with a byte that is not UTF-8, if the row was refused for that.
    bad_cell: Option<usize>,
}

impl<R: Read> Records<R> {
    fn new(input: R, delimiter: u8) -> Self {
        Self { lines: Lines::new(input), row: RowCells::new(delimiter), bad_cell: None }
    }

    /// Reads the next record and returns the line on which it begins, or `None` after the last.
    /// After an error, it goes on with the next line.
    fn next_record(&mut self) -> Result<Option<u64>> {
        self.row.clear();
        self.bad_cell = None;
        let first_line = self.read_record();
        if first_line.is_err() {
            if let Some(valid) = self.lines.valid_part() {
                // The valid part ends `count` cells. The bad byte is in the next one.
                self.bad_cell = self.row.push(valid).ok().map(|_| self.row.count);
            }
            self.row.reset();
        }
        first_line
    }

    /// The line with a byte that is not UTF-8, how many of its bytes come before that byte, and the
    /// number of the cell; `None` if the last record was not refused for that.
    fn bad_cell(&self) -> Option<(u64, usize, usize)> {
        Some((self.lines.number(), self.lines.valid_part()?.len(), self.bad_cell?))
    }

    fn read_record(&mut self) -> Result<Option<u64>> {
        let Self { lines, row, .. } = self;
        let mut first_line = None;
        loop {
            let Some(line) = lines.next_line()? else {
                return match first_line {
                    None => Ok(None),
                    Some(first_line) => Err(Error::api_misuse(format!(
                        "line {first_line}: a quoted cell in the row that begins here is never closed"
                    ))),
                };
            };
            if first_line.is_none() && without_end(line).is_empty() {
                continue;
            }
            let ended = row.push_line(line);
            let first_line = *first_line.get_or_insert(lines.number());
            if ended.map_err(|error| error.within(format!("line {first_line}")))? {
                return Ok(Some(first_line));
            }
        }
    }
}

/// The cells of one row, one after the other in `text`; cell i ends at `ends[i]`. `text_len` and
/// `count` say how much of the two buffers is in use.
struct RowCells {
    parser: csv_core::Reader,
    text: Vec<u8>,
    text_len: usize,
    ends: Vec<usize>,
    count: usize,
}

impl RowCells {
    /// For an ASCII delimiter.
    fn new(delimiter: u8) -> Self {
        // With its other terminator, CRLF, the parser would end a row at a carriage return alone as
        // well.
        let terminator = csv_core::Terminator::Any(b'\n');
        let parser =
            csv_core::ReaderBuilder::new().delimiter(delimiter).terminator(terminator).build();
        let mut row = Self { parser, text: vec![], text_len: 0, ends: vec![], count: 0 };
        row.reset();
        row
    }

    /// Makes the parser expect the beginning of a row.
    fn reset(&mut self) {
        self.parser.reset();
        // The parser would drop a byte order mark at the start of its first input. So it first gets
        // this line end, which it does not consume, as there is no room for output.
        let _ = self.parser.read_record(b"\n", &mut [], &mut []);
    }

    fn clear(&mut self) {
        self.text_len = 0;
        self.count = 0;
    }

    fn cell(&self, column: usize) -> &str {
        let start = if column == 0 { 0 } else { self.ends[column - 1] };
        let cell = &self.text[start..self.ends[..self.count][column]];
        std::str::from_utf8(cell).expect("the lines are UTF-8, and are cut at ASCII characters")
    }

    /// Adds a line to the row and says whether the row ends with it. If not, the line ends within
    /// quotes.
    fn push_line(&mut self, line: &str) -> Result<bool> {
        let ended = self.push(line.as_bytes())?
            // The last line of a file need not have an end.
            || !line.ends_with('\n') && self.push(b"\n")?;
        if ended && line.strip_suffix('\n').unwrap_or(line).ends_with('\r') {
            // The `\r` stands outside quotes, so the parser has taken it for the last character of
            // the row.
            self.text_len -= 1;
            self.ends[self.count - 1] = self.text_len;
        }
        Ok(ended)
    }

    /// Parses a part of the row and says whether it ends the row.
    fn push(&mut self, mut part: &[u8]) -> Result<bool> {
        use csv_core::ReadRecordResult::{End, InputEmpty, OutputEndsFull, OutputFull, Record};
        loop {
            let (result, parsed, written, ended) = self.parser.read_record(
                part,
                &mut self.text[self.text_len..],
                &mut self.ends[self.count..],
            );
            part = &part[parsed..];
            self.text_len += written;
            self.count += ended;
            match result {
                Record => return Ok(true),
                InputEmpty | End => return Ok(false),
                OutputFull if self.text.len() >= MAX_ROW_BYTES => return Err(row_too_long()),
                OutputFull => {
                    self.text.resize((2 * self.text.len()).clamp(256, MAX_ROW_BYTES), 0);
                }
                OutputEndsFull => self.ends.resize((2 * self.ends.len()).max(16), 0),
            }
        }
    }
}
