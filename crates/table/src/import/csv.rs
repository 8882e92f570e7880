//! Comma-separated values, as RFC 4180 describes them.
//!
//! The reader is strict where leniency would hide a damaged file (quotes must be closed and followed by a comma or
//! the end of the line, and all rows have as many cells as the header) and lenient where nothing is lost (blank lines,
//! either kind of line end, quotes within unquoted cells).

use super::json_text::write_string;
use super::lines::{Lines, row_too_long, without_end};
use super::{Counted, MAX_ROW_BYTES, ResolvedColumns, RowReader, Selection, bad_key};
use privet_core::{Error, Result};
use std::cell::Cell;
use std::io::Read;
use std::rc::Rc;

pub(super) struct CsvRows<R> {
    records: Records<Counted<R>>,
    counter: Rc<Cell<u64>>,
    columns: Vec<String>,
    resolved: ResolvedColumns,
}

impl<R: Read> CsvRows<R> {
    pub(super) fn open(
        input: Counted<R>,
        counter: Rc<Cell<u64>>,
        selection: Selection,
    ) -> Result<Self> {
        let mut records = Records::new(input);
        let Some(line) = records.next_record()? else {
            return Err(Error::api_misuse(
                "it is empty; a CSV file begins with a line of column names",
            ));
        };
        let columns: Vec<String> = records.cells().map(str::to_owned).collect();
        let resolved = ResolvedColumns::resolve(&selection, &columns)
            .map_err(|error| error.within(format!("line {line}")))?;
        Ok(Self { records, counter, columns, resolved })
    }

    fn read_row(&self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<()> {
        let (found, expected) = (self.records.ends.len(), self.columns.len());
        if found != expected {
            return Err(Error::api_misuse(format!(
                "this row has {found} cells and the header has {expected} columns; is a comma unquoted or a quote \
                 missing?"
            )));
        }
        if let Some(column) = self.resolved.key {
            let text = self.records.cell(column);
            if text.is_empty() {
                return Err(bad_key(&self.columns[column], "is empty"));
            }
            key.extend_from_slice(text.as_bytes());
        }
        if self.resolved.raw {
            value.extend_from_slice(self.records.cell(self.resolved.value[0]).as_bytes());
            return Ok(());
        }
        let mut separator = b'{';
        for &column in &self.resolved.value {
            value.push(separator);
            write_string(&self.columns[column], value);
            value.push(b':');
            write_string(self.records.cell(column), value);
            separator = b',';
        }
        if separator == b'{' {
            value.push(b'{');
        }
        value.push(b'}');
        Ok(())
    }
}

impl<R: Read> RowReader for CsvRows<R> {
    fn next_row(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Option<u64>> {
        let Some(line) = self.records.next_record()? else { return Ok(None) };
        self.read_row(key, value).map_err(|error| error.within(format!("line {line}")))?;
        Ok(Some(line))
    }

    fn unit(&self) -> &'static str {
        "line"
    }

    fn bytes_read(&self) -> u64 {
        self.counter.get()
    }
}

/// Splits lines into cells. The cells of the current record lie one after the other in `text`; cell i ends at `ends[i]`.
struct Records<R> {
    lines: Lines<R>,
    text: String,
    ends: Vec<usize>,
}

impl<R: Read> Records<R> {
    fn new(input: R) -> Self {
        Self { lines: Lines::new(input), text: String::new(), ends: Vec::new() }
    }

    fn cell(&self, column: usize) -> &str {
        let start = if column == 0 { 0 } else { self.ends[column - 1] };
        &self.text[start..self.ends[column]]
    }

    fn cells(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).map(|column| self.cell(column))
    }

    /// Reads the next record and returns the line on which it begins, or `None` after the last.
    fn next_record(&mut self) -> Result<Option<u64>> {
        let Self { lines, text, ends } = self;
        text.clear();
        ends.clear();
        // Where in a record the last line ended; a quoted cell goes on in the next line.
        let mut in_quotes = false;
        let mut first_line = 0;
        loop {
            let Some(line) = lines.next_line()? else {
                if in_quotes {
                    return Err(Error::api_misuse(format!(
                        "line {first_line}: a quoted cell in the row that begins here is never closed"
                    )));
                }
                return Ok(None);
            };
            if text.len() + line.len() > MAX_ROW_BYTES {
                return Err(row_too_long().within(format!("line {first_line}")));
            }
            if !in_quotes && without_end(line).is_empty() {
                continue;
            }
            let split = split_line(line, in_quotes, text, ends);
            if !in_quotes {
                first_line = lines.number();
            }
            match split {
                Ok(LineEnd::Record) => return Ok(Some(first_line)),
                Ok(LineEnd::Quoted) => in_quotes = true,
                Err(error) => return Err(error.within(format!("line {}", lines.number()))),
            }
        }
    }
}

enum LineEnd {
    /// The record is complete.
    Record,
    /// The line ended within quotes.
    Quoted,
}

/// Appends the cells of `line` to `text` and their ends to `ends`. `in_quotes`: the line before ended within quotes.
fn split_line(
    line: &str,
    in_quotes: bool,
    text: &mut String,
    ends: &mut Vec<usize>,
) -> Result<LineEnd> {
    let mut rest = line;
    let mut quoted = in_quotes;
    loop {
        if !quoted && let Some(after) = rest.strip_prefix('"') {
            (rest, quoted) = (after, true);
        }
        if quoted {
            match unquote(rest, text) {
                None => return Ok(LineEnd::Quoted),
                Some(after) => rest = after,
            }
        } else {
            let cells = without_end(rest);
            let end = cells.find(',').unwrap_or(cells.len());
            text.push_str(&cells[..end]);
            rest = &rest[end..];
        }
        ends.push(text.len());
        if without_end(rest).is_empty() {
            return Ok(LineEnd::Record);
        }
        let Some(after) = rest.strip_prefix(',') else {
            return Err(Error::api_misuse(
                "there is text after a closing quote; within a quoted cell, write a quote as two",
            ));
        };
        (rest, quoted) = (after, false);
    }
}

/// Appends what comes before the closing quote to `text` and returns what comes after it, or `None` if none closes.
fn unquote<'a>(mut rest: &'a str, text: &mut String) -> Option<&'a str> {
    loop {
        let Some(quote) = rest.find('"') else {
            text.push_str(rest);
            return None;
        };
        text.push_str(&rest[..quote]);
        rest = &rest[quote + 1..];
        match rest.strip_prefix('"') {
            Some(after) => {
                text.push('"');
                rest = after;
            }
            None => return Some(rest),
        }
    }
}
