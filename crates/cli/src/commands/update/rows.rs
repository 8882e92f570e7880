//! Keys and values in the form of the table: from files with the same columns, and from what was
//! typed.

use privet_core::{Error, Result};
use privet_table::import::{Format, LinesLeftOut, Rows, Selection, Source};
use privet_table::key_map::KeyFormat;
use privet_table::similar::meant;
use privet_table::snapshot::{SnapshotHeader, ValueForm};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// What was read of a file.
#[derive(Default)]
pub(super) struct Read {
    /// Rows that were taken.
    pub(super) rows: u64,
    /// Rows that were skipped for lack of a key.
    pub(super) empty_keys: u64,
    /// Lines that were no rows.
    pub(super) lines: LinesLeftOut,
}

/// Passes the key and the value of each row of `source` to `take`, and whether all rows have the
/// same columns. Keys are written in `format`. In a table by row number, the key is empty.
pub(super) fn read(
    source: Source,
    header: &SnapshotHeader,
    format: KeyFormat,
    mut take: impl FnMut(&[u8], &[u8], bool) -> Result<()>,
) -> Result<Read> {
    let mut rows = Rows::open(source, selection(header))?;
    let (name, unit) = (rows.name().to_owned(), rows.unit());
    let same_columns = rows.value_columns().is_some();
    // A column of bytes has keys that are not written in any format.
    let format = if rows.has_byte_keys() { format } else { KeyFormat::Text };
    let mut count = 0;
    while let Some(row) = rows.next_row()? {
        count += 1;
        take(&format.write(row.key), row.value, same_columns)
            .map_err(|error| error.within(format!("{unit} {}", row.position)).within(&name))?;
    }
    Ok(Read { rows: count, empty_keys: rows.empty_keys(), lines: rows.left_out() })
}

/// Refuses a value that lacks columns which all `present` values of the key have. Somebody who
/// names only a few columns rarely wants to remove the others. For a table that does not say which
/// columns it has.
pub(super) fn check_nothing_is_lost(
    header: &SnapshotHeader,
    present: &[Vec<u8>],
    value: &[u8],
) -> Result<()> {
    if let ValueForm::Raw(_) = header.value_form {
        return Ok(());
    }
    let present = present.iter().map(|value| columns_of(value)).reduce(|all, more| {
        all.into_iter().filter(|(column, _)| more.contains_key(column)).collect()
    });
    let (present, given) = (present.unwrap_or_default(), columns_of(value));
    let missing = present.keys().filter(|column| !given.contains_key(*column));
    let missing: Vec<_> = missing.map(|column| json(column)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::api_misuse(format!(
        "the value in the table has {} too, and this one has not: give all of its columns, or \
         remove them with --replace",
        missing.join(", ")
    )))
}

/// Refuses text where the key's `present` values have a number or a boolean, and the reverse. For a
/// table that does not say what its columns are, as one from JSON Lines.
pub(super) fn check_types_stay(
    header: &SnapshotHeader,
    present: &[Vec<u8>],
    value: &[u8],
) -> Result<()> {
    if let ValueForm::Raw(_) = header.value_form {
        return Ok(());
    }
    let is_text = |json: &RawValue| match json.get().as_bytes().first() {
        Some(b'"') => Some(true),
        Some(b'n') | None => None,
        Some(_) => Some(false),
    };
    let given = columns_of(value);
    for (column, json_before) in present.iter().flat_map(|value| columns_of(value)) {
        let types = (is_text(json_before), given.get(&column).and_then(|json| is_text(json)));
        let (before, now) = match types {
            (Some(true), Some(false)) => ("text", "no text"),
            (Some(false), Some(true)) => ("no text", "text"),
            _ => continue,
        };
        return Err(Error::api_misuse(format!(
            "the column {} is {before} in the table, and would be {now} here: say its type as the table was built \
             (--types), or --replace if it is to change",
            json(&column)
        )));
    }
    Ok(())
}

/// The columns of a value that is a JSON object. Any other value has none.
fn columns_of(value: &[u8]) -> BTreeMap<String, &RawValue> {
    serde_json::from_slice(value).unwrap_or_default()
}

/// The value that was typed for `key`. In a table of JSON objects, this is an object with the typed
/// columns, in the form of the table's values. In any other table, it is the typed bytes.
pub(super) fn value(header: &SnapshotHeader, key: &str, typed: &str) -> Result<Vec<u8>> {
    if let ValueForm::Raw(_) = header.value_form {
        return Ok(typed.as_bytes().to_vec());
    }
    let columns = typed.trim_start().strip_prefix('{').ok_or_else(|| {
        Error::api_misuse(
            "the values of this table are JSON objects: write KEY='{\"column\":\"value\"}'",
        )
    })?;
    // The key's column is among the others, as in a file.
    let line = match &header.key_column {
        Some(column) => {
            let comma = if columns.trim_start().starts_with('}') { "" } else { "," };
            format!("{{{}:{}{comma}{columns}", json(column), json(key))
        }
        None => typed.to_owned(),
    };
    let line = line.replace('\n', " ");
    let source = Source::reader("the value", std::io::Cursor::new(line)).format(Format::JsonLines);
    // A typed key is taken as it is, also in a table of ranges.
    let mut rows = Rows::open(source, Selection { until: None, ..selection(header) })?;
    let value = match rows.next_row()? {
        Some(row) => row.value.to_vec(),
        None => return Err(Error::api_misuse("the value is empty")),
    };
    check_columns(header, typed)?;
    Ok(value)
}

/// Refuses fields that are not among the table's columns. In a file, further columns are normal. In
/// what was typed, they are a mistake.
fn check_columns(header: &SnapshotHeader, typed: &str) -> Result<()> {
    let ValueForm::JsonColumns(columns) = &header.value_form else { return Ok(()) };
    let fields: BTreeMap<String, IgnoredAny> = serde_json::from_str(typed)
        .map_err(|_| Error::api_misuse("the value is no JSON object"))?;
    let listed = || columns.iter().map(|column| json(column)).collect::<Vec<_>>().join(", ");
    match fields.keys().find(|field| !columns.contains(field)) {
        Some(field) => Err(Error::api_misuse(format!(
            "the values of this table have no column {}: they have {}{}",
            json(field),
            listed(),
            meant(field, columns.iter().map(String::as_str))
                .map(|column| format!("; did you mean {}?", json(column)))
                .unwrap_or_default()
        ))),
        None if fields.is_empty() => Err(Error::api_misuse(format!(
            "the value has no column: give it at least one of {}",
            listed()
        ))),
        None => Ok(()),
    }
}

/// A key, as messages name it.
pub(super) fn named(key: &[u8]) -> String {
    format!("the key {}", KeyFormat::Text.shown(key))
}

fn selection(header: &SnapshotHeader) -> Selection {
    Selection {
        key: header.key_column.clone(),
        until: header.until_column.clone(),
        value: header.value_form.clone(),
    }
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
