//! The rows of Arrow's record batches, as a table takes them in.

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, MapArray, RecordBatch, RecordBatchReader,
    StructArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    Field, Fields, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use privet_core::{Error, Result};
use privet_table::import::{Cell, Cells};
use privet_table::values::{ValueColumn, ValueType};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows of batches that come one after the other.
pub(crate) struct ArrowCells {
    batches: Box<dyn RecordBatchReader + Send>,
    described: Vec<ValueColumn>,
    /// The columns of the present batch, their dictionaries unpacked.
    columns: Vec<ArrayRef>,
    rows: usize,
    /// One past the present row.
    next: usize,
    /// Whether the rest is no longer wanted.
    stopped: Arc<AtomicBool>,
}

impl ArrowCells {
    pub(crate) fn new(
        batches: Box<dyn RecordBatchReader + Send>,
        stopped: Arc<AtomicBool>,
    ) -> Self {
        let described = described(batches.schema().fields());
        Self { batches, described, columns: Vec::new(), rows: 0, next: 0, stopped }
    }

    fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = batch.columns().iter().map(|column| match unpacked(column.data_type()) {
            Some(plain) => cast(column, &plain).map_err(cannot_read),
            None => Ok(Arc::clone(column)),
        });
        self.columns = columns.collect::<Result<_>>()?;
        (self.rows, self.next) = (batch.num_rows(), 0);
        Ok(())
    }

    fn row(&self) -> usize {
        self.next - 1
    }
}

fn cannot_read(error: arrow::error::ArrowError) -> Error {
    Error::api_misuse(format!("its rows cannot be read: {error}")).caused_by(error)
}

/// The columns as a table describes them.
fn described(fields: &Fields) -> Vec<ValueColumn> {
    let column = |field: &Arc<Field>| ValueColumn {
        name: field.name().clone(),
        of: value_type(field.data_type()),
    };
    fields.iter().map(column).collect()
}

fn value_type(of: &DataType) -> ValueType {
    let integer = |bits, is_signed| ValueType::Integer { bits, is_signed };
    match of {
        DataType::Null => ValueType::Null,
        DataType::Boolean => ValueType::Boolean,
        DataType::Int8 => integer(8, true),
        DataType::Int16 => integer(16, true),
        DataType::Int32 => integer(32, true),
        DataType::Int64 => integer(64, true),
        DataType::UInt8 => integer(8, false),
        DataType::UInt16 => integer(16, false),
        DataType::UInt32 => integer(32, false),
        DataType::UInt64 => integer(64, false),
        DataType::Float16 => ValueType::Float(16),
        DataType::Float32 => ValueType::Float(32),
        DataType::Float64 => ValueType::Float(64),
        DataType::Decimal32(digits, places)
        | DataType::Decimal64(digits, places)
        | DataType::Decimal128(digits, places)
        | DataType::Decimal256(digits, places) => match u8::try_from(*places) {
            Ok(places) => ValueType::Decimal { digits: *digits, places },
            Err(_) => ValueType::Number,
        },
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ValueType::Text,
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => ValueType::Bytes,
        DataType::Date32 | DataType::Date64 => ValueType::Date,
        DataType::Time32(unit) | DataType::Time64(unit) => ValueType::Time(places(*unit)),
        DataType::Timestamp(unit, zone) => {
            ValueType::Timestamp { places: places(*unit), zone: zone.as_deref().map(str::to_owned) }
        }
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => ValueType::List(Box::new(value_type(item.data_type()))),
        DataType::Struct(fields) => ValueType::Struct(described(fields)),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                ValueType::Map(Box::new(value_type(pair[1].data_type())))
            }
            _ => ValueType::Any,
        },
        DataType::Dictionary(_, values) => value_type(values),
        DataType::RunEndEncoded(_, values) => value_type(values.data_type()),
        _ => ValueType::Any,
    }
}

fn places(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

/// The type without dictionaries and runs, at any depth; `None` if it has none.
fn unpacked(of: &DataType) -> Option<DataType> {
    let field = |field: &Arc<Field>| {
        let plain = unpacked(field.data_type())?;
        Some(Arc::new(field.as_ref().clone().with_data_type(plain)))
    };
    Some(match of {
        DataType::Dictionary(_, values) => unpacked(values).unwrap_or_else(|| (**values).clone()),
        DataType::RunEndEncoded(_, values) => {
            unpacked(values.data_type()).unwrap_or_else(|| values.data_type().clone())
        }
        DataType::List(item) => DataType::List(field(item)?),
        DataType::LargeList(item) => DataType::LargeList(field(item)?),
        DataType::FixedSizeList(item, len) => DataType::FixedSizeList(field(item)?, *len),
        DataType::Map(entry, sorted) => DataType::Map(field(entry)?, *sorted),
        DataType::Struct(fields) => {
            if !fields.iter().any(|of| unpacked(of.data_type()).is_some()) {
                return None;
            }
            let plain = fields.iter().map(|of| field(of).unwrap_or_else(|| Arc::clone(of)));
            DataType::Struct(plain.collect())
        }
        _ => return None,
    })
}

impl Cells for ArrowCells {
    fn columns(&self) -> &[ValueColumn] {
        &self.described
    }

    fn next_row(&mut self) -> Result<bool> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Error::api_misuse("it was interrupted"));
        }
        while self.next == self.rows {
            match self.batches.next() {
                None => return Ok(false),
                Some(batch) => self.take(&batch.map_err(cannot_read)?)?,
            }
        }
        self.next += 1;
        Ok(true)
    }

    fn cell(&self, column: usize) -> Result<Option<Cell<'_>>> {
        cell(self.columns[column].as_ref(), self.row())
    }

    fn write_json(&self, column: usize, out: &mut Vec<u8>) -> Result<()> {
        write_json(self.columns[column].as_ref(), self.row(), out)
    }

    fn size(&self) -> Option<(u64, u64)> {
        None
    }
}

/// A cell, or `None` if it is nested.
fn cell(array: &dyn Array, row: usize) -> Result<Option<Cell<'_>>> {
    macro_rules! number {
        ($type:ty, $make:ident) => {
            Cell::$make(array.as_primitive::<$type>().value(row))
        };
    }
    macro_rules! decimal {
        ($type:ty, $scale:expr) => {
            decimal(array.as_primitive::<$type>().value(row).to_string(), $scale)?
        };
    }
    macro_rules! whole {
        ($type:ty) => {
            i64::from(array.as_primitive::<$type>().value(row))
        };
    }
    if array.is_null(row) {
        return Ok(Some(Cell::Null));
    }
    Ok(Some(match array.data_type() {
        DataType::Null => Cell::Null,
        DataType::Boolean => Cell::boolean(array.as_boolean().value(row)),
        DataType::Int8 => number!(Int8Type, integer),
        DataType::Int16 => number!(Int16Type, integer),
        DataType::Int32 => number!(Int32Type, integer),
        DataType::Int64 => number!(Int64Type, integer),
        DataType::UInt8 => number!(UInt8Type, integer),
        DataType::UInt16 => number!(UInt16Type, integer),
        DataType::UInt32 => number!(UInt32Type, integer),
        DataType::UInt64 => number!(UInt64Type, integer),
        DataType::Float16 => Cell::float(array.as_primitive::<Float16Type>().value(row).to_f32()),
        DataType::Float32 => number!(Float32Type, float),
        DataType::Float64 => number!(Float64Type, float),
        DataType::Decimal32(_, scale) => decimal!(Decimal32Type, *scale),
        DataType::Decimal64(_, scale) => decimal!(Decimal64Type, *scale),
        DataType::Decimal128(_, scale) => decimal!(Decimal128Type, *scale),
        DataType::Decimal256(_, scale) => decimal!(Decimal256Type, *scale),
        DataType::Utf8 => Cell::text(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Cell::text(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Cell::text(array.as_string_view().value(row)),
        DataType::Binary => Cell::Bytes(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => Cell::Bytes(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => Cell::Bytes(array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => Cell::Bytes(array.as_fixed_size_binary().value(row)),
        DataType::Date32 => Cell::date(whole!(Date32Type))?,
        DataType::Date64 => Cell::date(whole!(Date64Type).div_euclid(86_400_000))?,
        DataType::Time32(TimeUnit::Second) => Cell::time(whole!(Time32SecondType), 1)?,
        DataType::Time32(_) => Cell::time(whole!(Time32MillisecondType), 1_000)?,
        DataType::Time64(TimeUnit::Microsecond) => {
            Cell::time(whole!(Time64MicrosecondType), 1_000_000)?
        }
        DataType::Time64(_) => Cell::time(whole!(Time64NanosecondType), 1_000_000_000)?,
        DataType::Timestamp(unit, zone) => {
            let (value, per_second) = match unit {
                TimeUnit::Second => (whole!(TimestampSecondType), 1),
                TimeUnit::Millisecond => (whole!(TimestampMillisecondType), 1_000),
                TimeUnit::Microsecond => (whole!(TimestampMicrosecondType), 1_000_000),
                TimeUnit::Nanosecond => (whole!(TimestampNanosecondType), 1_000_000_000),
            };
            Cell::timestamp(value, per_second, zone.is_some())?
        }
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(..)
        | DataType::Struct(_)
        | DataType::Map(..) => return Ok(None),
        other => {
            return Err(Error::api_misuse(format!(
                "it has the type {other}, which cannot be imported; leave the column out"
            )));
        }
    }))
}

fn decimal(digits: String, scale: i8) -> Result<Cell<'static>> {
    let scale = u32::try_from(scale).map_err(|_| {
        Error::api_misuse("it has a decimal type of negative scale, which cannot be imported")
    })?;
    Ok(Cell::decimal(digits, scale))
}

fn write_json(array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<()> {
    if let Some(cell) = cell(array, row)? {
        cell.write_json(out);
        return Ok(());
    }
    match array.data_type() {
        DataType::List(_) => write_items(array.as_list::<i32>().value(row).as_ref(), out),
        DataType::LargeList(_) => write_items(array.as_list::<i64>().value(row).as_ref(), out),
        DataType::FixedSizeList(..) => {
            let lists: &FixedSizeListArray = array.as_fixed_size_list();
            write_items(lists.value(row).as_ref(), out)
        }
        DataType::Struct(_) => write_struct(array.as_struct(), row, out),
        _ => write_map(array.as_map(), row, out),
    }
}

fn write_items(items: &dyn Array, out: &mut Vec<u8>) -> Result<()> {
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

fn write_struct(structs: &StructArray, row: usize, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'{');
    for (number, (field, column)) in structs.fields().iter().zip(structs.columns()).enumerate() {
        if number > 0 {
            out.push(b',');
        }
        Cell::text(field.name()).write_json(out);
        out.push(b':');
        write_json(column.as_ref(), row, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn write_map(maps: &MapArray, row: usize, out: &mut Vec<u8>) -> Result<()> {
    let entries = maps.value(row);
    let (keys, values) = (entries.column(0), entries.column(1));
    out.push(b'{');
    for entry in 0..entries.len() {
        if entry > 0 {
            out.push(b',');
        }
        match cell(keys.as_ref(), entry)? {
            Some(key @ Cell::Text(_)) => key.write_json(out),
            _ => return Err(Error::api_misuse("it has a map whose keys are not texts")),
        }
        out.push(b':');
        write_json(values.as_ref(), entry, out)?;
    }
    out.push(b'}');
    Ok(())
}
