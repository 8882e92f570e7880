//! Keys and values as the table was built with them: from files with the same columns, and from
//! what is typed.

use crate::arguments::InputFormat;
use crate::commands::build::format_of;
use privet_core::{Error, Result};
use privet_table::import::{Format, Rows, Selection, Source};
use privet_table::similar::meant;
use privet_table::snapshot::{SnapshotHeader, ValueForm};
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::path::Path;

/// Hands key and value of each row of a file to `take`. The key is empty in a table by row number.
pub(super) fn read(
    path: &Path,
    format: Option<InputFormat>,
    header: &SnapshotHeader,
    mut take: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    let mut source = Source::path(path);
    if let Some(format) = format {
        source = source.format(format_of(format));
    }
    let mut rows = Rows::open(source, selection(header))?;
    let (name, unit) = (rows.name().to_owned(), rows.unit());
    while let Some(row) = rows.next_row()? {
        take(row.key, row.value)
            .map_err(|error| error.within(format!("{unit} {}", row.position)).within(&name))?;
    }
    Ok(())
}

/// The value that was typed for `key`: its bytes, or for a table of JSON objects, an object with
/// the value's columns, in the form that values have there.
pub(super) fn value(header: &SnapshotHeader, key: &str, typed: &str) -> Result<Vec<u8>> {
    if let ValueForm::Raw(_) = header.value_form {
        return Ok(typed.as_bytes().to_vec());
    }
    let columns = typed.trim_start().strip_prefix('{').ok_or_else(|| {
        Error::api_misuse(
            "the values of this table are JSON objects: write KEY='{\"column\":\"value\"}'",
        )
    })?;
    // The key's column goes with the others, as in a file.
    let line = match &header.key_column {
        Some(column) => {
            let comma = if columns.trim_start().starts_with('}') { "" } else { "," };
            format!("{{{}:{}{comma}{columns}", json(column), json(key))
        }
        None => typed.to_owned(),
    };
    let line = line.replace('\n', " ");
    let source = Source::reader("the value", std::io::Cursor::new(line)).format(Format::JsonLines);
    let mut rows = Rows::open(source, selection(header))?;
    let value = match rows.next_row()? {
        Some(row) => row.value.to_vec(),
        None => return Err(Error::api_misuse("the value is empty")),
    };
    check_columns(header, typed)?;
    Ok(value)
}

/// Refuses fields that a table of named columns has no place for: a file may have more columns than
/// the table took, and what is typed has a slip in it then.
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

/// A key in a message.
pub(super) fn named(key: &[u8]) -> String {
    format!("the key {:?}", String::from_utf8_lossy(key))
}

fn selection(header: &SnapshotHeader) -> Selection {
    Selection { key: header.key_column.clone(), value: header.value_form.clone() }
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
