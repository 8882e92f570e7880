//! What came of lookups, as Arrow's record batches: `key`, `found`, a column for each column of the
//! values, `error`.
//!
//! Columns have the types that the table's builder gave them. A column of which some value is of
//! another type, because an update brought one, is text: the value in JSON.

use crate::errors::Raise as _;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BooleanArray, Int64Array, ListArray, MapArray,
    RecordBatch, RecordBatchIterator, RecordBatchReader as _, StringArray, StructArray,
    UInt64Array, new_null_array,
};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use arrow::error::ArrowError;
use arrow::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow::json::ReaderBuilder;
use arrow::pyarrow::FromPyArrow as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use privet_core::{Error, Result};
use privet_table::values::{ValueColumn, ValueType, Values};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyCapsule, PyInt, PyList, PyString};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::Arc;

/// Rows in a batch.
const ROWS: usize = 1 << 14;

/// One value of one key, or what came instead.
struct Row {
    key: usize,
    value: Option<PyBackedBytes>,
    error: Option<String>,
}

/// The stream of `keys` and their `outcomes`, each of which is `None`, the bytes of a value, a list
/// of them (which makes as many rows), or an exception. The keys are a list, or an object with
/// Arrow's stream of one column. `values` is what a client has encoded.
#[pyfunction]
pub(crate) fn stream<'py>(
    keys: &Bound<'py, PyAny>,
    outcomes: &Bound<'py, PyList>,
    values: Option<&[u8]>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let py = keys.py();
    let values = values.map(Values::decode).transpose().raise(py)?;
    let mut rows = Vec::with_capacity(outcomes.len());
    for (key, outcome) in outcomes.iter().enumerate() {
        let mut push = |value, error| rows.push(Row { key, value, error });
        if outcome.is_instance_of::<PyBytes>() {
            push(Some(outcome.extract()?), None);
        } else if let Ok(list) = outcome.cast::<PyList>() {
            for value in list.iter() {
                push(Some(value.extract()?), None);
            }
        } else if outcome.is_none() {
            push(None, None);
        } else {
            push(None, Some(outcome.str()?.to_string()));
        }
    }
    let keys = match keys.cast::<PyList>() {
        Ok(keys) => keys_of(keys)?,
        Err(_) => column_of(keys)?,
    };
    if keys.len() != outcomes.len() {
        return Err(PyValueError::new_err("there is not one outcome for each key"));
    }
    let batches = py.detach(|| batches(&keys, &rows, values.as_ref())).raise(py)?;
    let reader = match batches.first().map(RecordBatch::schema) {
        Some(schema) => RecordBatchIterator::new(batches.into_iter().map(Ok), schema),
        None => return Err(crate::errors::ended("the stream of no batch")),
    };
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// The keys as an array: numbers, texts or, where some are bytes, bytes.
fn keys_of(keys: &Bound<'_, PyList>) -> PyResult<ArrayRef> {
    if keys.iter().all(|key| key.is_instance_of::<PyString>()) {
        let texts: Vec<String> = keys.extract()?;
        return Ok(Arc::new(StringArray::from(texts)));
    }
    if keys.iter().all(|key| key.is_instance_of::<PyInt>())
        && let Ok(numbers) = keys.extract::<Vec<i64>>()
    {
        return Ok(Arc::new(Int64Array::from(numbers)));
    }
    if let Ok(numbers) = keys.extract::<Vec<u64>>() {
        return Ok(Arc::new(UInt64Array::from(numbers)));
    }
    let mut all = BinaryBuilder::new();
    for key in keys.iter() {
        match key.cast::<PyBytes>() {
            Ok(bytes) => all.append_value(bytes.as_bytes()),
            Err(_) => all.append_value(key.str()?.to_string()),
        }
    }
    Ok(Arc::new(all.finish()))
}

/// The one column of a stream. Texts and bytes are of the types that all readers know.
fn column_of(keys: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let batches = RecordBatchStreamReader::from_pyarrow_bound(keys)?;
    let field = batches.schema().fields().first().map(|field| field.data_type().clone());
    let columns = batches.map(|batch| batch?.columns().first().cloned().ok_or_else(no_column));
    let column = columns.collect::<Result<Vec<_>, _>>().and_then(|columns| {
        let columns: Vec<&dyn Array> = columns.iter().map(|column| &**column).collect();
        let column = match columns.is_empty() {
            true => new_null_array(&field.ok_or_else(no_column)?, 0),
            false => concat(&columns)?,
        };
        match column.data_type() {
            DataType::Utf8View => cast(&column, &DataType::LargeUtf8),
            DataType::BinaryView => cast(&column, &DataType::LargeBinary),
            _ => Ok(column),
        }
    });
    column.map_err(|error| PyValueError::new_err(format!("the keys are no column: {error}")))
}

fn no_column() -> ArrowError {
    ArrowError::SchemaError("there is none".to_owned())
}

fn batches(keys: &ArrayRef, rows: &[Row], values: Option<&Values>) -> Result<Vec<RecordBatch>> {
    let columns = match values {
        Some(values) => columns(rows, values),
        None => vec![undescribed(rows)],
    };
    let mut fields = vec![
        Arc::new(Field::new("key", keys.data_type().clone(), keys.is_nullable())),
        Arc::new(Field::new("found", DataType::Boolean, false)),
    ];
    for (name, array) in &columns {
        let mut name = name.clone();
        while fields.iter().any(|field| *field.name() == name) || name == "error" {
            name.push_str("_value");
        }
        fields.push(Arc::new(Field::new(name, array.data_type().clone(), true)));
    }
    fields.push(Arc::new(Field::new("error", DataType::Utf8, true)));
    let numbers = Int64Array::from_iter_values(rows.iter().map(|row| row.key as i64));
    let keys = arrow::compute::take(keys, &numbers, None).map_err(unexpected)?;
    let found: BooleanArray = rows.iter().map(|row| Some(row.value.is_some())).collect();
    let errors: StringArray = rows.iter().map(|row| row.error.as_deref()).collect();
    let mut arrays = vec![keys, Arc::new(found)];
    arrays.extend(columns.into_iter().map(|(_, array)| array));
    arrays.push(Arc::new(errors));
    let schema = Arc::new(Schema::new(fields));
    let all = RecordBatch::try_new(schema, arrays).map_err(unexpected)?;
    let starts = (0..all.num_rows().max(1)).step_by(ROWS);
    Ok(starts.map(|start| all.slice(start, ROWS.min(all.num_rows() - start))).collect())
}

/// The values of a table that does not say what they are: text if all of them are.
fn undescribed(rows: &[Row]) -> (String, ArrayRef) {
    let text =
        |row: &Row| row.value.as_deref().is_none_or(|value| std::str::from_utf8(value).is_ok());
    ("value".to_owned(), raw(rows, rows.iter().all(text)))
}

/// The bytes of values as they are.
fn raw(rows: &[Row], is_text: bool) -> ArrayRef {
    if is_text {
        let text = |row: &Row| {
            let value = row.value.as_deref()?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        return Arc::new(rows.iter().map(text).collect::<StringArray>());
    }
    let mut bytes = BinaryBuilder::new();
    for row in rows {
        bytes.append_option(row.value.as_deref());
    }
    Arc::new(bytes.finish())
}

fn columns(rows: &[Row], values: &Values) -> Vec<(String, ArrayRef)> {
    if let (true, [column]) = (values.is_raw, values.columns.as_slice()) {
        return vec![(column.name.clone(), raw_column(rows, column))];
    }
    // Each row is parsed once, into the JSON of its columns.
    let parsed: Vec<HashMap<String, &RawValue>> = rows
        .iter()
        .map(|row| row.value.as_deref().and_then(|value| serde_json::from_slice(value).ok()))
        .map(Option::unwrap_or_default)
        .collect();
    let column = |column: &ValueColumn| {
        let cells = || parsed.iter().map(|row| row.get(&column.name).map(|json| json.get()));
        let array = typed(&column.of, cells()).unwrap_or_else(|_| as_json(cells()));
        (column.name.clone(), array)
    };
    values.columns.iter().map(column).collect()
}

fn raw_column(rows: &[Row], column: &ValueColumn) -> ArrayRef {
    match column.of {
        ValueType::Bytes => raw(rows, false),
        ValueType::Text | ValueType::Any => undescribed(rows).1,
        // Raw values are bytes or text; but dates are text that has a type.
        _ => {
            let cell = |row: &Row| {
                let text = std::str::from_utf8(row.value.as_deref()?).ok()?;
                Some(serde_json::Value::from(text).to_string())
            };
            let cells: Vec<_> = rows.iter().map(cell).collect();
            typed(&column.of, cells.iter().map(Option::as_deref))
                .unwrap_or_else(|_| undescribed(rows).1)
        }
    }
}

/// The cells of a column, given in JSON, as an array of its type.
fn typed<'a>(
    of: &ValueType,
    cells: impl Iterator<Item = Option<&'a str>>,
) -> Result<ArrayRef, ArrowError> {
    if let ValueType::Any = of {
        return Ok(as_json(cells));
    }
    let field = Field::new("c", read_as(of), true);
    let schema = Arc::new(Schema::new(vec![field]));
    let wrong = || ArrowError::JsonError("cells are not of their column's type".to_owned());
    let mut lines = Vec::new();
    let mut count = 0;
    for cell in cells {
        if !cell.is_none_or(|json| begins_like(of, json)) {
            return Err(wrong());
        }
        lines.extend_from_slice(b"{\"c\":");
        lines.extend_from_slice(cell.unwrap_or("null").as_bytes());
        lines.extend_from_slice(b"}\n");
        count += 1;
    }
    if count == 0 {
        return finished(new_null_array(&read_as(of), 0), of);
    }
    let mut decoder = ReaderBuilder::new(schema).with_batch_size(count).build_decoder()?;
    let read = decoder.decode(&lines)?;
    if read != lines.len() {
        return Err(wrong());
    }
    let batch = decoder.flush()?.ok_or_else(wrong)?;
    match batch.num_rows() == count {
        true => finished(Arc::clone(batch.column(0)), of),
        false => Err(wrong()),
    }
}

/// Whether JSON may be a value of this type, by its first character. Arrow is less strict: it takes
/// numbers for moments, and numbers in quotation marks for numbers. Within lists and the like it
/// still does.
fn begins_like(of: &ValueType, json: &str) -> bool {
    let first = json.as_bytes().first();
    let is_one_of = |characters: &[u8]| first.is_some_and(|first| characters.contains(first));
    let is_number = is_one_of(b"-0123456789");
    json == "null"
        || match of {
            ValueType::Boolean => is_one_of(b"tf"),
            // JSON has no numbers for some floats.
            ValueType::Float(_) => {
                is_number || ["\"NaN\"", "\"Infinity\"", "\"-Infinity\""].contains(&json)
            }
            ValueType::Integer { .. } | ValueType::Number | ValueType::Decimal { .. } => is_number,
            ValueType::List(_) => is_one_of(b"["),
            ValueType::Struct(_) | ValueType::Map(_) => is_one_of(b"{"),
            ValueType::Null => false,
            ValueType::Any => true,
            // Texts, bytes, and what is written as text.
            _ => is_one_of(b"\""),
        }
}

fn as_json<'a>(cells: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(cells.map(|cell| cell.filter(|json| *json != "null")).collect::<StringArray>())
}

/// The type as which Arrow reads the JSON of `of`. [`finished`] does the rest.
fn read_as(of: &ValueType) -> DataType {
    let unit = |places: u8| match places {
        0 => TimeUnit::Second,
        3 => TimeUnit::Millisecond,
        6 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    };
    match of {
        ValueType::Null => DataType::Null,
        ValueType::Boolean => DataType::Boolean,
        ValueType::Integer { bits, is_signed } => match (bits, is_signed) {
            (8, true) => DataType::Int8,
            (16, true) => DataType::Int16,
            (32, true) => DataType::Int32,
            (_, true) => DataType::Int64,
            (8, false) => DataType::UInt8,
            (16, false) => DataType::UInt16,
            (32, false) => DataType::UInt32,
            (_, false) => DataType::UInt64,
        },
        ValueType::Float(32) | ValueType::Float(16) => DataType::Float32,
        ValueType::Float(_) | ValueType::Number => DataType::Float64,
        ValueType::Decimal { digits, places } if places <= digits => match digits {
            1..=38 => DataType::Decimal128(*digits, *places as i8),
            39..=76 => DataType::Decimal256(*digits, *places as i8),
            _ => DataType::Float64,
        },
        ValueType::Decimal { .. } => DataType::Float64,
        ValueType::Date => DataType::Date32,
        ValueType::Time(places @ (0 | 3)) => DataType::Time32(unit(*places)),
        ValueType::Time(places) => DataType::Time64(unit(*places)),
        ValueType::Timestamp { places, zone } => {
            DataType::Timestamp(unit(*places), zone.as_ref().map(|_| "+00:00".into()))
        }
        ValueType::List(of) => DataType::List(Arc::new(Field::new("item", read_as(of), true))),
        ValueType::Struct(fields) => DataType::Struct(
            fields.iter().map(|field| Field::new(&field.name, read_as(&field.of), true)).collect(),
        ),
        ValueType::Map(of) => {
            let (key, value) = (Field::new("key", DataType::Utf8, false), read_as(of));
            let entries = Fields::from(vec![key, Field::new("value", value, true)]);
            let entries = Field::new("entries", DataType::Struct(entries), false);
            DataType::Map(Arc::new(entries), false)
        }
        _ => DataType::Utf8,
    }
}

/// What Arrow read, as what it was: bytes from base64, half floats, and timestamps in their zone.
fn finished(array: ArrayRef, of: &ValueType) -> Result<ArrayRef, ArrowError> {
    match of {
        ValueType::Bytes => {
            let mut bytes = BinaryBuilder::new();
            for text in array.as_string::<i32>() {
                let decoded = text.map(|text| STANDARD.decode(text)).transpose();
                bytes.append_option(
                    decoded.map_err(|error| ArrowError::JsonError(error.to_string()))?,
                );
            }
            Ok(Arc::new(bytes.finish()))
        }
        ValueType::Float(16) => cast(&array, &DataType::Float16),
        ValueType::Timestamp { zone: Some(zone), .. } => match array.data_type() {
            DataType::Timestamp(unit, _) => {
                cast(&array, &DataType::Timestamp(*unit, Some(zone.as_str().into())))
            }
            _ => Ok(array),
        },
        ValueType::List(item) => {
            let (field, offsets, items, nulls) = array.as_list::<i32>().clone().into_parts();
            let items = finished(items, item)?;
            let field = Arc::new(field.as_ref().clone().with_data_type(items.data_type().clone()));
            Ok(Arc::new(ListArray::try_new(field, offsets, items, nulls)?))
        }
        ValueType::Struct(of) => finished_struct(array.as_struct(), of.iter().map(|of| &of.of)),
        ValueType::Map(of) => {
            let (field, offsets, entries, nulls, is_sorted) = array.as_map().clone().into_parts();
            let entries = finished_struct(&entries, [&ValueType::Text, &**of].into_iter())?;
            let field = field.as_ref().clone().with_data_type(entries.data_type().clone());
            let entries = entries.as_struct().clone();
            Ok(Arc::new(MapArray::try_new(Arc::new(field), offsets, entries, nulls, is_sorted)?))
        }
        _ => Ok(array),
    }
}

fn finished_struct<'a>(
    array: &StructArray,
    of: impl Iterator<Item = &'a ValueType>,
) -> Result<ArrayRef, ArrowError> {
    let (fields, columns, nulls) = array.clone().into_parts();
    let len = array.len();
    let columns = columns.into_iter().zip(of).map(|(column, of)| finished(column, of));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let fields = fields.iter().zip(&columns).map(|(field, column)| {
        Arc::new(field.as_ref().clone().with_data_type(column.data_type().clone()))
    });
    Ok(Arc::new(StructArray::try_new_with_length(fields.collect(), columns, nulls, len)?))
}

fn unexpected(error: ArrowError) -> Error {
    Error::internal("the values make no record batch").caused_by(error)
}
