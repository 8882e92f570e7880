//! One cell of a Parquet file, as JSON or as bytes.

use super::json_text::write_string;
use arrow::array::{Array, AsArray};
use arrow::datatypes::{self as arrow_types, DataType, TimeUnit};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use privet_core::{Error, Result};
use std::borrow::Cow;

/// How deep lists, structs and maps may nest.
const MAX_DEPTH: usize = 64;

/// Whether cells of this type can be imported.
pub(super) fn supported(data_type: &DataType) -> bool {
    supported_to_depth(data_type, MAX_DEPTH)
}

fn supported_to_depth(data_type: &DataType, depth: usize) -> bool {
    use DataType::*;
    let Some(below) = depth.checked_sub(1) else { return false };
    match data_type {
        Null | Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => true,
        Float16 | Float32 | Float64 | Decimal32(..) | Decimal64(..) | Decimal128(..)
        | Decimal256(..) => true,
        Utf8 | LargeUtf8 | Binary | LargeBinary | FixedSizeBinary(_) => true,
        Date32 | Time32(_) | Time64(_) | Timestamp(..) => true,
        List(item) | LargeList(item) => supported_to_depth(item.data_type(), below),
        Struct(fields) => fields.iter().all(|field| supported_to_depth(field.data_type(), below)),
        Map(entries, _) => match entries.data_type() {
            Struct(fields) if fields.len() == 2 => {
                fields[0].data_type() == &Utf8 && supported_to_depth(fields[1].data_type(), below)
            }
            _ => false,
        },
        _ => false,
    }
}

/// A cell that is not nested.
pub(super) enum Scalar<'a> {
    Null,
    /// Written as a string in JSON.
    Text(Cow<'a, str>),
    /// Written as a string of base64 in JSON.
    Bytes(&'a [u8]),
    /// Written as it is in JSON: numbers, `true`, `false`.
    Literal(Cow<'a, str>),
}

/// The cell in row `row` of `array`, or `None` if it is a list, a struct or a map.
pub(super) fn scalar(array: &dyn Array, row: usize) -> Result<Option<Scalar<'_>>> {
    use DataType::*;
    if array.is_null(row) || array.data_type() == &Null {
        return Ok(Some(Scalar::Null));
    }
    macro_rules! number {
        ($($data_type:ident => $primitive:ident),*) => {
            match array.data_type() {
                $($data_type => {
                    let text = array.as_primitive::<arrow_types::$primitive>().value(row).to_string();
                    return Ok(Some(Scalar::Literal(Cow::Owned(text))));
                })*
                _ => {}
            }
        };
    }
    number!(Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
            UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type);
    let literal = |text: String| Some(Scalar::Literal(Cow::Owned(text)));
    let text = |text: &'_ str| Some(Scalar::Text(Cow::Owned(text.to_owned())));
    macro_rules! decimal {
        ($primitive:ident) => {
            literal(array.as_primitive::<arrow_types::$primitive>().value_as_string(row))
        };
    }
    Ok(match array.data_type() {
        Boolean => literal(array.as_boolean().value(row).to_string()),
        Float16 => {
            Some(float(array.as_primitive::<arrow_types::Float16Type>().value(row).to_f32()))
        }
        Float32 => Some(float(array.as_primitive::<arrow_types::Float32Type>().value(row))),
        Float64 => Some(float(array.as_primitive::<arrow_types::Float64Type>().value(row))),
        Decimal32(..) => decimal!(Decimal32Type),
        Decimal64(..) => decimal!(Decimal64Type),
        Decimal128(..) => decimal!(Decimal128Type),
        Decimal256(..) => decimal!(Decimal256Type),
        Utf8 => Some(Scalar::Text(Cow::Borrowed(array.as_string::<i32>().value(row)))),
        LargeUtf8 => Some(Scalar::Text(Cow::Borrowed(array.as_string::<i64>().value(row)))),
        Binary => Some(Scalar::Bytes(array.as_binary::<i32>().value(row))),
        LargeBinary => Some(Scalar::Bytes(array.as_binary::<i64>().value(row))),
        FixedSizeBinary(_) => Some(Scalar::Bytes(array.as_fixed_size_binary().value(row))),
        Date32 | Time32(_) | Time64(_) | Timestamp(..) => text(&moment(array, row)?),
        _ => None,
    })
}

/// The shortest number that reads back as the same float; JSON has none for the three that are not
/// finite.
fn float<F: serde::Serialize + Into<f64> + Copy>(value: F) -> Scalar<'static> {
    let wide: f64 = value.into();
    if wide.is_nan() {
        return Scalar::Text(Cow::Borrowed("NaN"));
    }
    if wide.is_infinite() {
        return Scalar::Text(Cow::Borrowed(if wide > 0.0 { "Infinity" } else { "-Infinity" }));
    }
    let text = serde_json::to_string(&value).expect("a finite number can be written");
    Scalar::Literal(Cow::Owned(text))
}

/// A date, time of day or timestamp in ISO 8601.
fn moment(array: &dyn Array, row: usize) -> Result<String> {
    macro_rules! text {
        ($method:ident, $primitive:ident) => {
            array
                .as_primitive::<arrow_types::$primitive>()
                .$method(row)
                .map(|moment| format!("{moment:?}"))
        };
    }
    let text = match array.data_type() {
        DataType::Date32 => text!(value_as_date, Date32Type),
        DataType::Time32(TimeUnit::Second) => text!(value_as_time, Time32SecondType),
        DataType::Time32(_) => text!(value_as_time, Time32MillisecondType),
        DataType::Time64(TimeUnit::Microsecond) => text!(value_as_time, Time64MicrosecondType),
        DataType::Time64(_) => text!(value_as_time, Time64NanosecondType),
        DataType::Timestamp(TimeUnit::Second, _) => text!(value_as_datetime, TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            text!(value_as_datetime, TimestampMillisecondType)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            text!(value_as_datetime, TimestampMicrosecondType)
        }
        _ => text!(value_as_datetime, TimestampNanosecondType),
    };
    let mut text = text.ok_or_else(|| Error::api_misuse("a date or time is out of range"))?;
    // Parquet stores instants in UTC, whatever zone the writer was in.
    if matches!(array.data_type(), DataType::Timestamp(_, Some(_))) {
        text.push('Z');
    }
    Ok(text)
}

/// Appends the cell in row `row` of `array` as JSON.
pub(super) fn write_json(array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<()> {
    match scalar(array, row)? {
        Some(Scalar::Null) => out.extend_from_slice(b"null"),
        Some(Scalar::Text(text)) => write_string(&text, out),
        Some(Scalar::Bytes(bytes)) => write_string(&STANDARD.encode(bytes), out),
        Some(Scalar::Literal(text)) => out.extend_from_slice(text.as_bytes()),
        None => write_nested(array, row, out)?,
    }
    Ok(())
}

fn write_nested(array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<()> {
    match array.data_type() {
        DataType::List(_) => write_list(array.as_list::<i32>().value(row).as_ref(), out),
        DataType::LargeList(_) => write_list(array.as_list::<i64>().value(row).as_ref(), out),
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let entries = fields
                .iter()
                .zip(columns)
                .map(|(field, column)| (field.name().as_str(), column, row));
            write_object(entries.map(|(name, column, row)| (name, column.as_ref(), row)), out)
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let (names, values) = (entries.column(0).as_string::<i32>(), entries.column(1));
            write_object(
                (0..entries.len()).map(|entry| (names.value(entry), values.as_ref(), entry)),
                out,
            )
        }
        other => Err(Error::api_misuse(format!("the type {other} cannot be imported"))),
    }
}

fn write_list(items: &dyn Array, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'[');
    for item in 0..items.len() {
        if item > 0 {
            out.push(b',');
        }
        write_json(items, item, out)?;
    }
    out.push(b']');
    Ok(())
}

fn write_object<'a>(
    fields: impl Iterator<Item = (&'a str, &'a dyn Array, usize)>,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'{');
    for (number, (name, array, row)) in fields.enumerate() {
        if number > 0 {
            out.push(b',');
        }
        write_string(name, out);
        out.push(b':');
        write_json(array, row, out)?;
    }
    out.push(b'}');
    Ok(())
}
