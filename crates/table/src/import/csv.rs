//! Comma-separated values, as RFC 4180 describes them and `csv-core` parses them, and what else
//! programs write line by line: see [`Dialect`].
//!
//! The reader refuses signs of damage: a quote that is never closed, text after a closing quote,
//! and a row with more or fewer cells than the header. It accepts blank lines, either kind of line
//! end, and quotes within unquoted cells. A line `sep=;` at the beginning, as spreadsheets write
//! and read it, says what separates cells.

mod quotes;
mod records;

use super::dialect::{Delimiter, Dialect};
use super::formats::Opened;
use super::json_text::write_name;
use super::lines::{NoRows, not_utf8, without_end};
use super::types::{self, ColumnType, Evidence, is_number};
use super::{
    Format, LinesLeftOut, ResolvedColumns, RowBytes, RowReader, Selection, Source, WantedColumns,
    no_key, quoted,
};
use crate::values::{ValueColumn, ValueType};
use privet_core::{Error, Reason, Result};
use records::Records;
use std::cell::Cell;
use std::io::Read;
use std::net::IpAddr;
use std::rc::Rc;

pub(super) struct CsvRows<R> {
    records: Records<R>,
    delimiter: Delimiter,
    counter: Rc<Cell<u64>>,
    columns: Vec<String>,
    /// Whether the names of the columns come from the first line, …
    has_header: bool,
    /// … and why that may have been a mistake.
    doubt: Option<String>,
    types: Vec<ColumnType>,
    resolved: ResolvedColumns,
    /// Whether a row with more cells than columns is several rows.
    spread: bool,
    /// The line of a record that was read and is the first row, until it was given out.
    first: Option<u64>,
    /// The line of the present row, and the cell that its last column has.
    at: Option<(u64, usize)>,
}

/// Opens an input in CSV or TSV.
pub(super) fn open(source: Source, selection: Selection) -> Result<Opened> {
    let (rows, bytes_total) = source.open_csv(selection)?;
    Ok((Box::new(rows), bytes_total))
}

impl<R: Read> CsvRows<R> {
    pub(super) fn open(
        input: R,
        counter: Rc<Cell<u64>>,
        wanted: WantedColumns,
        dialect: &Dialect,
        format: Format,
    ) -> Result<Self> {
        let mut delimiter = dialect.separator(format);
        let mut is_certain = dialect.delimiter.is_some();
        let no_rows = dialect.no_rows(format);
        let mut records = Records::new(input, no_rows.clone(), delimiter, !dialect.no_quotes);
        if let Some(said) = said_delimiter(&mut records)? {
            if is_certain && delimiter != said {
                return Err(Error::api_misuse(format!(
                    "its first line says that {} separates cells, and {} was asked for: ask for none, or for the same",
                    called(said),
                    called(delimiter)
                )));
            }
            (delimiter, is_certain) = (said, true);
        }
        let has_header = dialect.no_header.is_none();
        let Some(line) = records.next_record()? else {
            return Err(Error::api_misuse(match has_header {
                true => "it is empty; a CSV file begins with a line of column names",
                false => "it is empty; a table needs at least one row",
            }));
        };
        let cells = 0..records.row.count;
        let cells: Vec<String> = cells.map(|column| records.row.cell(column).to_owned()).collect();
        let within = |error: Error| error.within(format!("line {line}"));
        if !is_certain && !is_like_a_comment(&cells[0]) {
            check_delimiter(delimiter, &cells).map_err(within)?;
        }
        let columns = match &dialect.no_header {
            None => cells,
            Some(names) => names_of(names, cells.len(), dialect.spread).map_err(within)?,
        };
        let resolved = ResolvedColumns::resolve(&wanted, &columns).and_then(|resolved| {
            let types = types::resolve(&wanted, &columns, &resolved)?;
            Ok((resolved, types))
        });
        let (resolved, types) = resolved
            .map_err(|error| if has_header { no_header(error, &columns, &no_rows) } else { error })
            .map_err(within)?;
        let doubt = (has_header && !wanted.selection.names_a_column() && wanted.like.is_none())
            .then(|| doubt(&columns))
            .flatten();
        Ok(Self {
            records,
            delimiter,
            counter,
            columns,
            has_header,
            doubt,
            types,
            resolved,
            spread: dialect.spread,
            first: (!has_header).then_some(line),
            at: None,
        })
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
            if skip && self.resolved.key.is_some_and(|key| self.cell(key).is_empty()) {
                continue;
            }
            for (&column, evidence) in self.resolved.value.iter().zip(&mut *evidence) {
                evidence.look(self.cell(column));
            }
            rows += 1;
            if rows.is_multiple_of(64) {
                read(self.counter.get())?;
            }
        }
        read(self.counter.get())
    }

    /// As [`Records::next_record`], and names the column of a cell that is not UTF-8. Where rows
    /// are spread, the same record comes once for each cell from its last column on.
    fn next_record(&mut self) -> Result<Option<u64>> {
        let last = self.columns.len().saturating_sub(1);
        let more = |(_, cell): &(u64, usize)| self.spread && cell + 1 < self.records.row.count;
        if let Some((line, cell)) = self.at.take().filter(more) {
            self.at = Some((line, cell + 1));
            return Ok(Some(line));
        }
        let Self { records, columns, first, .. } = self;
        if let Some(line) = first.take() {
            self.at = Some((line, last));
            return Ok(Some(line));
        }
        let line = records.next_record().map_err(|error| match records.bad_cell() {
            Some((line, valid, cell)) => {
                not_utf8("line", line, valid, columns.get(cell).map(String::as_str))
            }
            None => error,
        })?;
        self.at = line.map(|line| (line, last));
        Ok(line)
    }

    /// The cell of the present row in a column.
    fn cell(&self, column: usize) -> &str {
        let row = &self.records.row;
        match self.at {
            Some((_, cell)) if column + 1 == self.columns.len() => row.cell(cell),
            _ => row.cell(column),
        }
    }

    fn check_cells(&self) -> Result<()> {
        let (found, expected) = (self.records.row.count, self.columns.len());
        if found == expected || self.spread && found > expected {
            return Ok(());
        }
        if found > 0 && is_like_a_comment(self.records.row.cell(0)) {
            return Err(Error::api_misuse(format!(
                "this row has {found} of {expected} cells and begins like a comment; if it is one, say what \
                 comments begin with"
            ))
            .because(Reason::CommentUnclear));
        }
        let first = if self.has_header { "header" } else { "first row" };
        let delimiter = called(self.delimiter);
        Err(Error::api_misuse(match self.delimiter {
            Delimiter::WhiteSpace => {
                format!("this row has {found} cells and the {first} has {expected} columns")
            }
            Delimiter::Character(_) => format!(
                "this row has {found} cells and the {first} has {expected} columns; is {delimiter} unquoted or a quote \
                 missing?"
            ),
        }))
    }

    fn read_row(&self, RowBytes { key, until, value }: &mut RowBytes) -> Result<()> {
        self.check_cells()?;
        if let Some(column) = self.resolved.key {
            let text = self.cell(column);
            if text.is_empty() {
                return Err(no_key(&self.columns[column], "is empty"));
            }
            key.extend_from_slice(text.as_bytes());
        }
        if let Some(column) = self.resolved.until {
            until.extend_from_slice(self.cell(column).as_bytes());
        }
        if self.resolved.raw {
            value.extend_from_slice(self.cell(self.resolved.value[0]).as_bytes());
            return Ok(());
        }
        value.push(b'{');
        for &column in &self.resolved.value {
            write_name(&self.columns[column], value);
            self.types[column].write_cell(&self.columns[column], self.cell(column), value)?;
        }
        value.push(b'}');
        Ok(())
    }
}

/// What a first line such as `sep=;` says that separates cells. Any other line is left to be read.
fn said_delimiter<R: Read>(records: &mut Records<R>) -> Result<Option<Delimiter>> {
    let Some((_, line)) = records.lines.next_row()? else { return Ok(None) };
    let line = without_end(line).trim_matches('"');
    let said = line.split_at_checked(4).filter(|(name, _)| name.eq_ignore_ascii_case("sep="));
    match said.map(|(_, said)| said.as_bytes()) {
        Some(&[said]) if said.is_ascii() && !b"\"\r\n".contains(&said) => {
            records.row.separate_by(said);
            Ok(Some(Delimiter::Character(said)))
        }
        _ => {
            records.lines.once_more();
            Ok(None)
        }
    }
}

/// The names of the columns of a file without a header, whose first row has `cells` cells.
fn names_of(names: &[String], cells: usize, spread: bool) -> Result<Vec<String>> {
    let named = names.len();
    if named == 0 {
        return Ok((1..=cells).map(|number| number.to_string()).collect());
    }
    if named != cells && !(spread && named < cells) {
        return Err(Error::api_misuse(format!(
            "{} named, and this row has {cells}; name each",
            if named == 1 { "1 column is".to_owned() } else { format!("{named} columns are") },
        )));
    }
    Ok(names.to_vec())
}

/// An error about the columns that a header names, with a word on what else the line may be.
fn no_header(error: Error, columns: &[String], no_rows: &NoRows) -> Error {
    let (what, reason) = match columns.first() {
        Some(first) if no_rows.comment.is_none() && is_like_a_comment(first) => {
            ("if this line is a comment, say what comments begin with", Reason::CommentUnclear)
        }
        _ if columns.iter().any(|cell| is_data(cell)) => {
            ("if this line is a row and there are no names, say so", Reason::HeaderUnclear)
        }
        _ => return error,
    };
    Error::api_misuse(format!("{error}; {what}")).because(reason)
}

/// Why the first line may be a row, and not the names of the columns.
fn doubt(columns: &[String]) -> Option<String> {
    let is_host = |name: &str| {
        let last = name.rsplit_once('.').map(|(_, last)| last);
        last.is_some_and(|last| {
            last.len() > 1 && last.bytes().all(|byte| byte.is_ascii_alphabetic())
        }) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
    };
    let is_data = |cell: &&String| is_data(cell) || columns.len() == 1 && is_host(cell);
    let (cell, what) = match columns.first() {
        Some(first) if is_like_a_comment(first) => (first, "a comment"),
        _ => (columns.iter().find(is_data)?, "data"),
    };
    let cell = quoted(cell);
    Some(format!("the first line was taken for names of columns, and {cell} looks like {what}"))
}

/// Whether a cell is hardly the name of a column: a number, an address, a hash, a link.
fn is_data(cell: &str) -> bool {
    let address = cell.split_once('/').map_or(cell, |(address, _)| address);
    let is_hash = cell.len() >= 16 && cell.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number(cell) || address.parse::<IpAddr>().is_ok() || is_hash || cell.contains("://")
}

fn is_like_a_comment(cell: &str) -> bool {
    cell.starts_with('#') || cell.starts_with("//")
}

/// Refuses a first line of one cell that contains another common delimiter.
fn check_delimiter(delimiter: Delimiter, cells: &[String]) -> Result<()> {
    let [cell] = cells else { return Ok(()) };
    let others = b";\t|,".map(Delimiter::Character).into_iter();
    let stands_in = |other: &Delimiter| match other {
        Delimiter::Character(other) => cell.as_bytes().contains(other),
        Delimiter::WhiteSpace => false,
    };
    match others.filter(|other| *other != delimiter).find(stands_in) {
        None => Ok(()),
        Some(other) => Err(Error::api_misuse(format!(
            "the header is one column, {}: perhaps the cells are separated by {2} and not by {1}; say \
             which delimiter there is",
            quoted(cell),
            called(delimiter),
            called(other)
        ))
        .because(Reason::DelimiterUnclear)),
    }
}

/// A delimiter in a sentence.
fn called(delimiter: Delimiter) -> String {
    match delimiter {
        Delimiter::Character(b',') => "a comma".to_owned(),
        Delimiter::Character(b';') => "a semicolon".to_owned(),
        Delimiter::Character(b'\t') => "a tab".to_owned(),
        Delimiter::Character(b'|') => "a vertical bar".to_owned(),
        Delimiter::Character(other) => format!("{:?}", char::from(other)),
        Delimiter::WhiteSpace => "white space".to_owned(),
    }
}

impl<R: Read> RowReader for CsvRows<R> {
    fn next_row(&mut self, row: &mut RowBytes) -> Result<Option<u64>> {
        let Some(line) = self.next_record()? else { return Ok(None) };
        self.read_row(row).map_err(|error| error.within(format!("line {line}")))?;
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

    fn left_out(&self) -> LinesLeftOut {
        self.records.lines.left_out()
    }

    fn doubt(&self) -> Option<&str> {
        self.doubt.as_deref()
    }
}
