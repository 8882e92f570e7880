//! Keys and values in the form of the table: from files with the same columns, and from what was
//! typed.

use crate::build::RowCounts;
use crate::import::{Columns, Format, Rows, Selection, Source, check_value};
use crate::key_map::{KeyFormat, RowKey};
use crate::snapshot::{SnapshotHeader, ValueForm};
use crate::values::{ValueColumn, ValueType, Values};
use privet_core::{Error, Result};

/// Passes the key and the value of each row of `source` to `take`, and whether all rows have the
/// same columns. Keys are written in `format`. In a table by row number, the key is empty.
pub(super) fn read(
    source: Source,
    header: &SnapshotHeader,
    format: KeyFormat,
    mut take: impl FnMut(RowKey<'_>, &[u8], bool) -> Result<()>,
) -> Result<RowCounts> {
    let mut rows = Rows::open(source, selection(header))?;
    let (name, unit) = (rows.name().to_owned(), rows.unit());
    let same_columns = rows.value_columns().is_some();
    // A column of bytes has keys that are not written in any format.
    let format = if rows.has_byte_keys() { format } else { KeyFormat::Text };
    let mut counts = RowCounts::default();
    while let Some(row) = rows.next_row()? {
        counts.kept += 1;
        let key = RowKey { key: &format.write(row.key.key), ..row.key };
        take(key, row.value, same_columns)
            .map_err(|error| error.within(format!("{unit} {}", row.position)).within(&name))?;
    }
    Ok(RowCounts { empty_keys: rows.empty_keys(), left_out: rows.left_out(), ..counts })
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
    // In a file, further columns are normal. In what was typed, they are a mistake.
    if let ValueForm::JsonColumns(names) = &header.value_form {
        let any = |name: &String| ValueColumn { name: name.clone(), of: ValueType::Any };
        let columns = names.iter().map(any).collect();
        check_value(&Values { is_raw: false, columns }, typed.as_bytes(), Columns::AtMost)?;
        if value == b"{}" {
            let names: Vec<_> = names.iter().map(|name| json(name)).collect();
            return Err(Error::api_misuse(format!(
                "the value has no column: give it at least one of {}",
                names.join(", ")
            )));
        }
    }
    Ok(value)
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
