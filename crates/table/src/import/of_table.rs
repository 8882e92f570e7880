//! Whether a value is like those of a table that says what its values are.

use super::quoted;
use crate::similar;
use crate::values::{ValueColumn, ValueType, Values};
use privet_core::{Error, Reason, Result};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// How many characters of a value an error shows.
const MOST_SHOWN: usize = 40;

/// Which columns a value has to have, and which it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Those that are known, all of them.
    Exactly,
    /// All that are known, and others.
    AtLeast,
    /// Some of those that are known.
    AtMost,
}

/// Checks a new value of a table whose values are `values`: the columns must be there that
/// `columns` says, and of the same types. Raw values are not checked.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), naming the column;
/// [`Reason::ColumnsDiffer`] if it has others.
pub fn check_value(values: &Values, value: &[u8], columns: Columns) -> Result<()> {
    if values.is_raw {
        return Ok(());
    }
    let differs = |what: String| Err(Error::api_misuse(what).because(Reason::ColumnsDiffer));
    let fields: BTreeMap<String, &RawValue> = serde_json::from_slice(value)
        .map_err(|_| Error::api_misuse("the value is no JSON object"))?;
    let names = || values.columns.iter().map(|column| column.name.as_str());
    let missing: Vec<String> =
        names().filter(|name| !fields.contains_key(*name)).map(quoted).collect();
    let other = fields.keys().find(|name| names().all(|known| known != *name));
    if let Some(other) = other.filter(|_| columns != Columns::AtLeast) {
        let known = names().map(quoted).collect::<Vec<_>>().join(", ");
        let meant = similar::meant(other, names());
        let meant = meant.map(|name| format!("; did you mean {}?", quoted(name)));
        return differs(format!(
            "the values of this table have no column {}: they have {known}{}",
            quoted(other),
            meant.unwrap_or_default()
        ));
    }
    if !missing.is_empty() && columns != Columns::AtMost {
        return differs(format!(
            "the values in the table have {} too, and this one has not: give all of their columns",
            missing.join(", ")
        ));
    }
    for column in &values.columns {
        let token = fields.get(&column.name).map_or("null", |field| field.get());
        // Where further columns are fine, so is a type of what never had a value.
        let is_open = columns == Columns::AtLeast && column.of == ValueType::Null;
        if !is_open && !admits(&column.of, token) {
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

/// What all of these JSON objects have in common: the columns, and of these the types. For tables
/// that do not tell what their values are.
pub fn common_columns<V: AsRef<[u8]>>(values: &[V]) -> Values {
    let columns = values.iter().map(|value| {
        let fields: BTreeMap<String, &RawValue> =
            serde_json::from_slice(value.as_ref()).unwrap_or_default();
        let typed = |(name, field): (String, &RawValue)| (name, type_of(field.get()));
        fields.into_iter().map(typed).collect::<BTreeMap<_, _>>()
    });
    let common = columns.reduce(|all, more| {
        let joined = |(name, one): (String, ValueType)| {
            let joined = one.joined(more.get(&name)?);
            Some((name, joined))
        };
        all.into_iter().filter_map(joined).collect()
    });
    let columns = common.unwrap_or_default().into_iter();
    Values { is_raw: false, columns: columns.map(|(name, of)| ValueColumn { name, of }).collect() }
}

/// The type that has this JSON token among its values, as far as one token tells.
fn type_of(token: &str) -> ValueType {
    match token.as_bytes().first() {
        Some(b'"') => ValueType::Text,
        Some(b't' | b'f') => ValueType::Boolean,
        Some(b'-' | b'0'..=b'9') => ValueType::Number,
        Some(b'[') => ValueType::List(Box::new(ValueType::Any)),
        Some(b'{') => ValueType::Map(Box::new(ValueType::Any)),
        _ => ValueType::Any,
    }
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
