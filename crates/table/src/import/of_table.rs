//! Whether a value is like those of a table that says what its values are.

use super::quoted;
use crate::similar;
use crate::values::{ValueType, Values};
use privet_core::{Error, Reason, Result};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// How many characters of a value an error shows.
const MOST_SHOWN: usize = 40;

/// Checks a new value of a table whose values are `values`: it must have all of the columns, no
/// others, and of the same types. Raw values are not checked.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), naming the column.
pub fn check_value(values: &Values, value: &[u8]) -> Result<()> {
    if values.is_raw {
        return Ok(());
    }
    let differs = |what: String| Err(Error::api_misuse(what).because(Reason::ColumnsDiffer));
    let fields: BTreeMap<String, &RawValue> = serde_json::from_slice(value)
        .map_err(|_| Error::api_misuse("the value is no JSON object"))?;
    let names = || values.columns.iter().map(|column| column.name.as_str());
    let missing: Vec<String> =
        names().filter(|name| !fields.contains_key(*name)).map(quoted).collect();
    if let Some(other) = fields.keys().find(|name| names().all(|known| known != *name)) {
        let known = names().map(quoted).collect::<Vec<_>>().join(", ");
        let meant = similar::meant(other, names());
        let meant = meant.map(|name| format!("; did you mean {}?", quoted(name)));
        return differs(format!(
            "the values of this table have no column {}: they have {known}{}",
            quoted(other),
            meant.unwrap_or_default()
        ));
    }
    if !missing.is_empty() {
        return differs(format!(
            "the values of this table have {} too, and this one has not: give all of their columns",
            missing.join(", ")
        ));
    }
    for column in &values.columns {
        let token = fields.get(&column.name).map_or("null", |field| field.get());
        if !admits(&column.of, token) {
            let shown: String = token.chars().take(MOST_SHOWN).collect();
            return differs(format!(
                "the column {} is {} in the table, and would be {shown} here",
                quoted(&column.name),
                kind(&column.of),
            ));
        }
    }
    Ok(())
}

/// Whether values of a column may be written as this JSON token.
fn admits(of: &ValueType, token: &str) -> bool {
    let first = token.as_bytes().first().copied().unwrap_or_default();
    let is_number = first == b'-' || first.is_ascii_digit();
    match of {
        _ if first == b'n' => true,
        ValueType::Any => true,
        ValueType::Null => false,
        ValueType::Boolean => matches!(first, b't' | b'f'),
        ValueType::Float(_) => {
            is_number || matches!(token, "\"NaN\"" | "\"Infinity\"" | "\"-Infinity\"")
        }
        ValueType::Integer { .. } | ValueType::Number | ValueType::Decimal { .. } => is_number,
        ValueType::List(_) => first == b'[',
        ValueType::Struct(_) | ValueType::Map(_) => first == b'{',
        _ => first == b'"',
    }
}

/// What a column has, in words.
fn kind(of: &ValueType) -> &'static str {
    match of {
        ValueType::Any => "anything",
        ValueType::Null => "null",
        ValueType::Boolean => "true or false",
        ValueType::Integer { .. }
        | ValueType::Float(_)
        | ValueType::Number
        | ValueType::Decimal { .. } => "a number",
        ValueType::List(_) => "a list",
        ValueType::Struct(_) | ValueType::Map(_) => "an object",
        _ => "text",
    }
}
