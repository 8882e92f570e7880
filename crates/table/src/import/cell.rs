//! Cells that have a type, as JSON or as bytes. Parquet and [other rows](super::Cells) share them,
//! so that the same column makes the same table whichever way it comes.

use super::json_text::{write_name, write_string};
use super::{ResolvedColumns, RowBytes, bad_key, bad_raw_value, no_key, quoted};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, NaiveTime};
use privet_core::{Error, Result};
use std::borrow::Cow;

/// A cell that is not nested.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cell<'a> {
    /// Nothing.
    Null,
    /// Written as a string in JSON.
    Text(Cow<'a, str>),
    /// Written as a string of base64 in JSON.
    Bytes(&'a [u8]),
    /// Written as it is in JSON: numbers, `true`, `false`.
    Literal(Cow<'a, str>),
}

impl<'a> Cell<'a> {
    /// A text.
    pub fn text(text: &'a str) -> Self {
        Cell::Text(Cow::Borrowed(text))
    }

    /// `true` or `false`.
    pub fn boolean(value: bool) -> Self {
        Cell::Literal(Cow::Borrowed(if value { "true" } else { "false" }))
    }

    /// A whole number.
    pub fn integer(value: impl Into<i128>) -> Self {
        Cell::Literal(Cow::Owned(value.into().to_string()))
    }

    /// The shortest number that reads back as the same float. NaN and the infinities become text,
    /// because JSON has no numbers for them.
    pub fn float<F: serde::Serialize + Into<f64> + Copy>(value: F) -> Self {
        let wide: f64 = value.into();
        if wide.is_nan() {
            return Cell::text("NaN");
        }
        if wide.is_infinite() {
            return Cell::text(if wide > 0.0 { "Infinity" } else { "-Infinity" });
        }
        let text = serde_json::to_string(&value).expect("a finite number can be written");
        Cell::Literal(Cow::Owned(text))
    }

    /// The whole number `digits`, which may begin with a sign, divided by ten to the power `scale`.
    pub fn decimal(digits: String, scale: u32) -> Self {
        let scale = scale as usize;
        if scale == 0 {
            return Cell::Literal(Cow::Owned(digits));
        }
        let (sign, digits) = match digits.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", digits.as_str()),
        };
        let digits = format!("{digits:0>width$}", width = scale + 1);
        let (whole, rest) = digits.split_at(digits.len() - scale);
        Cell::Literal(Cow::Owned(format!("{sign}{whole}.{rest}")))
    }

    /// A date, from the days since 1970.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is out of range.
    pub fn date(days: i64) -> Result<Self> {
        let moment = DateTime::from_timestamp(days.saturating_mul(86_400), 0);
        Ok(owned(format!("{:?}", moment.ok_or_else(out_of_range)?.date_naive())))
    }

    /// The time since midnight, of which `per_second` make a second.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is no time of a day.
    pub fn time(value: i64, per_second: i64) -> Result<Self> {
        let (seconds, nanos) = split(value, per_second);
        let seconds = u32::try_from(seconds).map_err(|_| out_of_range())?;
        let time = NaiveTime::from_num_seconds_from_midnight_opt(seconds, nanos);
        Ok(owned(format!("{:?}", time.ok_or_else(out_of_range)?)))
    }

    /// The time since the start of 1970, of which `per_second` make a second.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is out of range.
    pub fn timestamp(value: i64, per_second: i64, is_utc: bool) -> Result<Self> {
        let (seconds, nanos) = split(value, per_second);
        let moment = DateTime::from_timestamp(seconds, nanos).ok_or_else(out_of_range)?;
        let zone = if is_utc { "Z" } else { "" };
        Ok(owned(format!("{:?}{zone}", moment.naive_utc())))
    }

    /// Appends the cell as JSON.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Cell::Null => out.extend_from_slice(b"null"),
            Cell::Text(text) => write_string(text, out),
            Cell::Bytes(bytes) => write_string(&STANDARD.encode(bytes), out),
            Cell::Literal(text) => out.extend_from_slice(text.as_bytes()),
        }
    }
}

fn owned(text: String) -> Cell<'static> {
    Cell::Text(Cow::Owned(text))
}

pub(super) fn out_of_range() -> Error {
    Error::api_misuse("a date or time is out of range")
}

/// Whole seconds, and the nanoseconds after them.
fn split(value: i64, per_second: i64) -> (i64, u32) {
    let rest = value.rem_euclid(per_second) * (1_000_000_000 / per_second);
    (value.div_euclid(per_second), rest as u32)
}

/// The cells of one row.
pub(super) trait RowCells {
    /// The name of a column.
    fn name(&self, column: usize) -> &str;

    /// A cell, or `None` if it is a list, a struct or a map.
    fn cell(&mut self, column: usize) -> Result<Option<Cell<'_>>>;

    /// Appends a cell as JSON, nested or not.
    fn write_json(&mut self, column: usize, out: &mut Vec<u8>) -> Result<()>;
}

/// Appends the key and the value of a row.
pub(super) fn write_row(
    cells: &mut (impl RowCells + ?Sized),
    columns: &ResolvedColumns,
    RowBytes { key, until, value }: &mut RowBytes,
) -> Result<()> {
    if let Some(column) = columns.key {
        write_key(cells, column, key)?;
    }
    if let Some(column) = columns.until {
        write_key(cells, column, until)?;
    }
    if columns.raw {
        return write_raw(cells, columns.value[0], value);
    }
    value.push(b'{');
    for &column in &columns.value {
        write_name(cells.name(column), value);
        let written = cells.write_json(column, value);
        written.map_err(|error| error.within(format!("column {}", quoted(cells.name(column)))))?;
    }
    value.push(b'}');
    Ok(())
}

fn write_key(cells: &mut (impl RowCells + ?Sized), column: usize, key: &mut Vec<u8>) -> Result<()> {
    let is_null = match cells.cell(column)? {
        None => None,
        Some(Cell::Null) => Some(true),
        Some(Cell::Bytes(bytes)) => {
            key.extend_from_slice(bytes);
            Some(false)
        }
        Some(Cell::Text(text) | Cell::Literal(text)) => {
            key.extend_from_slice(text.as_bytes());
            Some(false)
        }
    };
    match is_null {
        None => Err(bad_key(cells.name(column), "is a list, a struct or a map")),
        Some(true) => Err(no_key(cells.name(column), "is null")),
        Some(false) if key.is_empty() => Err(no_key(cells.name(column), "is empty")),
        Some(false) => Ok(()),
    }
}

fn write_raw(
    cells: &mut (impl RowCells + ?Sized),
    column: usize,
    value: &mut Vec<u8>,
) -> Result<()> {
    let why = match cells.cell(column)? {
        Some(Cell::Text(text)) => {
            value.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        Some(Cell::Bytes(bytes)) => {
            value.extend_from_slice(bytes);
            return Ok(());
        }
        Some(Cell::Null) => "is null",
        _ => "is neither text nor bytes",
    };
    Err(bad_raw_value(cells.name(column), why))
}
