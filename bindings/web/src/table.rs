//! What a client says of its table and of itself.

use crate::shell::{in_milliseconds, object};
use js_sys::{Array, Object};
use privet_client::Stats;
use privet_client::conductor::OpenTable;
use privet_table::values::{ValueColumn, ValueType, Values};
use wasm_bindgen::JsValue;

pub(crate) fn table(opened: &OpenTable) -> Object {
    let OpenTable { table, is_by_key, values } = opened;
    let identity = &table.identity;
    object([
        ("name", table.name.as_str().into()),
        ("id", identity.id.to_string().into()),
        ("epoch", (identity.epoch.0 as f64).into()),
        ("digest", identity.digest.to_string().into()),
        ("records", (identity.shape.records() as f64).into()),
        ("recordLength", (identity.shape.record_len() as f64).into()),
        ("scheme", table.scheme.plan.scheme.name().into()),
        ("servers", (table.scheme.plan.servers as f64).into()),
        ("software", table.software.as_str().into()),
        ("isByKey", (*is_by_key).into()),
        ("values", values.as_ref().map_or(JsValue::UNDEFINED, described)),
    ])
}

fn described(values: &Values) -> JsValue {
    let columns = columns(&values.columns);
    object([("isRaw", values.is_raw.into()), ("columns", columns)]).into()
}

fn columns(columns: &[ValueColumn]) -> JsValue {
    let column = |column: &ValueColumn| list([column.name.as_str().into(), kind(&column.of)]);
    columns.iter().map(column).collect::<Array>().into()
}

/// A type as a list: its name and what it is made of.
fn kind(of: &ValueType) -> JsValue {
    match of {
        ValueType::Null => list(["null".into()]),
        ValueType::Boolean => list(["boolean".into()]),
        ValueType::Integer { bits, is_signed } => {
            list(["integer".into(), (*bits).into(), (*is_signed).into()])
        }
        ValueType::Float(bits) => list(["float".into(), (*bits).into()]),
        ValueType::Number => list(["number".into()]),
        ValueType::Decimal { digits, places } => {
            list(["decimal".into(), (*digits).into(), (*places).into()])
        }
        ValueType::Text => list(["text".into()]),
        ValueType::Bytes => list(["bytes".into()]),
        ValueType::Date => list(["date".into()]),
        ValueType::Time(places) => list(["time".into(), (*places).into()]),
        ValueType::Timestamp { places, zone } => {
            list(["timestamp".into(), (*places).into(), zone.as_deref().into()])
        }
        ValueType::List(of) => list(["list".into(), kind(of)]),
        ValueType::Struct(fields) => list(["struct".into(), columns(fields)]),
        ValueType::Map(of) => list(["map".into(), kind(of)]),
        _ => list(["any".into()]),
    }
}

fn list<const N: usize>(items: [JsValue; N]) -> JsValue {
    items.into_iter().collect::<Array>().into()
}

/// `made_ahead`: how many queries were there before they were needed.
pub(crate) fn stats(stats: &Stats, made_ahead: u64) -> Object {
    let bytes = |bytes: u64| JsValue::from(bytes as f64);
    object([
        ("describeSent", bytes(stats.describe.up)),
        ("describeReceived", bytes(stats.describe.down)),
        ("prepareSent", bytes(stats.prepare.up)),
        ("prepareReceived", bytes(stats.prepare.down)),
        ("backgroundSent", bytes(stats.background.up)),
        ("backgroundReceived", bytes(stats.background.down)),
        ("lookupSent", bytes(stats.lookup.up)),
        ("lookupReceived", bytes(stats.lookup.down)),
        ("lookups", (stats.lookups as f64).into()),
        ("madeAhead", (made_ahead as f64).into()),
        ("queryTime", in_milliseconds(stats.query_time).into()),
        ("recoverTime", in_milliseconds(stats.recover_time).into()),
        ("readyAfter", in_milliseconds(stats.ready_after).into()),
    ])
}
