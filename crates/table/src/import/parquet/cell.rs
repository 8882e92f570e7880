//! Cells out of the entries of leaves.

use super::super::MAX_ROW_BYTES;
use super::super::cell::{Cell, out_of_range};
use super::super::json_text::write_name;
use super::super::lines::row_too_long;
use super::leaf::{Leaf, Stored};
use super::schema::{Column, Node, Unsupported};
use crate::values::ValueType;
use chrono::{DateTime, TimeDelta};
use num_bigint::BigInt;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as PhysicalType};
use parquet::data_type::Int96;
use parquet::schema::types::Type;
use privet_core::{Error, Result};
use std::borrow::Cow;

/// What the stored values of a leaf mean.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum CellType {
    Null,
    Boolean,
    Signed,
    /// An unsigned integer of this many bits.
    Unsigned(u32),
    Float,
    Half,
    /// An integer, divided by this power of ten.
    Decimal(u32),
    Text,
    Bytes,
    Uuid,
    /// Days since 1970.
    Date,
    /// The time since midnight, in this many units to a second.
    Time(i64),
    /// The time since the start of 1970, in `per_second` units to a second.
    Timestamp {
        per_second: i64,
        is_utc: bool,
    },
    /// The nanoseconds of a day, and the number of the day.
    Int96Timestamp,
}

impl CellType {
    /// # Errors
    /// For a type that cannot be imported.
    pub(super) fn of(leaf: &Type) -> Result<Self, Unsupported> {
        use PhysicalType::{BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT96};
        let info = leaf.get_basic_info();
        let logical = info.logical_type_ref();
        if logical == Some(&LogicalType::Unknown) {
            return Ok(CellType::Null);
        }
        let found = match leaf.get_physical_type() {
            BOOLEAN => Some(CellType::Boolean),
            FLOAT | DOUBLE => Some(CellType::Float),
            INT96 => Some(CellType::Int96Timestamp),
            physical => {
                let is_bytes = matches!(physical, BYTE_ARRAY | FIXED_LEN_BYTE_ARRAY);
                match logical {
                    Some(logical) => Self::of_logical(logical, is_bytes),
                    None => Self::of_converted(leaf, is_bytes),
                }
            }
        };
        found.ok_or_else(|| {
            Unsupported(match logical {
                Some(logical) => format!("{logical:?}"),
                None => info.converted_type().to_string(),
            })
        })
    }

    fn of_logical(logical: &LogicalType, is_bytes: bool) -> Option<Self> {
        let per_second = |unit: TimeUnit| match unit {
            TimeUnit::MILLIS => 1_000,
            TimeUnit::MICROS => 1_000_000,
            TimeUnit::NANOS => 1_000_000_000,
        };
        Some(match logical {
            LogicalType::Decimal(decimal) => CellType::Decimal(u32::try_from(decimal.scale).ok()?),
            LogicalType::Integer(integer) if !is_bytes => match integer.is_signed {
                true => CellType::Signed,
                false => CellType::Unsigned(u32::try_from(integer.bit_width).ok()?),
            },
            LogicalType::Date if !is_bytes => CellType::Date,
            LogicalType::Time(time) if !is_bytes => CellType::Time(per_second(time.unit)),
            LogicalType::Timestamp(timestamp) if !is_bytes => CellType::Timestamp {
                per_second: per_second(timestamp.unit),
                is_utc: timestamp.is_adjusted_to_u_t_c,
            },
            LogicalType::String | LogicalType::Json if is_bytes => CellType::Text,
            LogicalType::Uuid if is_bytes => CellType::Uuid,
            LogicalType::Float16 if is_bytes => CellType::Half,
            // Enums too: the format does not say that they are text.
            _ if is_bytes => CellType::Bytes,
            _ => return None,
        })
    }

    /// The type by the older annotation, the only one that writers before 2018 knew.
    fn of_converted(leaf: &Type, is_bytes: bool) -> Option<Self> {
        let converted = leaf.get_basic_info().converted_type();
        Some(match (converted, is_bytes) {
            (ConvertedType::DECIMAL, _) => CellType::Decimal(u32::try_from(leaf.get_scale()).ok()?),
            (ConvertedType::UTF8 | ConvertedType::JSON, true) => CellType::Text,
            (ConvertedType::NONE | ConvertedType::BSON | ConvertedType::ENUM, true) => {
                CellType::Bytes
            }
            (_, true) => return None,
            (ConvertedType::NONE, _) => CellType::Signed,
            (ConvertedType::INT_8 | ConvertedType::INT_16, _) => CellType::Signed,
            (ConvertedType::INT_32 | ConvertedType::INT_64, _) => CellType::Signed,
            (ConvertedType::UINT_8, _) => CellType::Unsigned(8),
            (ConvertedType::UINT_16, _) => CellType::Unsigned(16),
            (ConvertedType::UINT_32, _) => CellType::Unsigned(32),
            (ConvertedType::UINT_64, _) => CellType::Unsigned(64),
            (ConvertedType::DATE, _) => CellType::Date,
            (ConvertedType::TIME_MILLIS, _) => CellType::Time(1_000),
            (ConvertedType::TIME_MICROS, _) => CellType::Time(1_000_000),
            (ConvertedType::TIMESTAMP_MILLIS, _) => {
                CellType::Timestamp { per_second: 1_000, is_utc: true }
            }
            (ConvertedType::TIMESTAMP_MICROS, _) => {
                CellType::Timestamp { per_second: 1_000_000, is_utc: true }
            }
            _ => return None,
        })
    }

    /// What the cells of `leaf`, which is of this type, are as values.
    pub(super) fn value_type(self, leaf: &Type) -> ValueType {
        let info = leaf.get_basic_info();
        let is_long = leaf.get_physical_type() == PhysicalType::INT64;
        let places = |per_second: i64| per_second.ilog10() as u8;
        match self {
            CellType::Null => ValueType::Null,
            CellType::Boolean => ValueType::Boolean,
            CellType::Signed => {
                let bits = match (info.logical_type_ref(), info.converted_type()) {
                    (Some(LogicalType::Integer(integer)), _) => integer.bit_width as u8,
                    (_, ConvertedType::INT_8) => 8,
                    (_, ConvertedType::INT_16) => 16,
                    _ if is_long => 64,
                    _ => 32,
                };
                ValueType::Integer { bits, is_signed: true }
            }
            CellType::Unsigned(bits) => ValueType::Integer { bits: bits as u8, is_signed: false },
            CellType::Float if leaf.get_physical_type() == PhysicalType::FLOAT => {
                ValueType::Float(32)
            }
            CellType::Float => ValueType::Float(64),
            CellType::Half => ValueType::Float(16),
            CellType::Decimal(places) => {
                let digits = match info.logical_type_ref() {
                    Some(LogicalType::Decimal(decimal)) => decimal.precision,
                    _ => leaf.get_precision(),
                };
                match (u8::try_from(digits), u8::try_from(places)) {
                    (Ok(digits), Ok(places)) => ValueType::Decimal { digits, places },
                    _ => ValueType::Number,
                }
            }
            CellType::Text | CellType::Uuid => ValueType::Text,
            CellType::Bytes => ValueType::Bytes,
            CellType::Date => ValueType::Date,
            CellType::Time(per_second) => ValueType::Time(places(per_second)),
            CellType::Timestamp { per_second, is_utc } => ValueType::Timestamp {
                places: places(per_second),
                zone: is_utc.then(|| "UTC".to_owned()),
            },
            CellType::Int96Timestamp => ValueType::Timestamp { places: 9, zone: None },
        }
    }

    fn cell(self, stored: Stored<'_>) -> Result<Cell<'_>> {
        let text = |text: String| Cell::Text(Cow::Owned(text));
        Ok(match (self, stored) {
            (CellType::Null, _) => Cell::Null,
            (CellType::Boolean, Stored::Boolean(value)) => Cell::boolean(value),
            (CellType::Signed, Stored::Integer(value)) => Cell::integer(value),
            (CellType::Unsigned(bits), Stored::Integer(value)) => {
                let mask = u64::MAX.checked_shr(64_u32.saturating_sub(bits)).unwrap_or(0);
                Cell::integer(value as u64 & mask)
            }
            (CellType::Float, Stored::Float(value)) => Cell::float(value),
            (CellType::Float, Stored::Double(value)) => Cell::float(value),
            (CellType::Half, Stored::Bytes(&[low, high])) => {
                Cell::float(half::f16::from_le_bytes([low, high]).to_f32())
            }
            (CellType::Decimal(scale), Stored::Integer(value)) => {
                Cell::decimal(value.to_string(), scale)
            }
            (CellType::Decimal(scale), Stored::Bytes(bytes)) if (1..=32).contains(&bytes.len()) => {
                Cell::decimal(BigInt::from_signed_bytes_be(bytes).to_string(), scale)
            }
            (CellType::Text, Stored::Bytes(bytes)) => {
                let valid = std::str::from_utf8(bytes);
                Cell::text(valid.map_err(|_| damaged("a text is not UTF-8"))?)
            }
            (CellType::Bytes, Stored::Bytes(bytes)) => Cell::Bytes(bytes),
            (CellType::Uuid, Stored::Bytes(bytes)) if bytes.len() == 16 => text(uuid(bytes)),
            (CellType::Date, Stored::Integer(days)) => Cell::date(days)?,
            (CellType::Time(per_second), Stored::Integer(value)) => Cell::time(value, per_second)?,
            (CellType::Timestamp { per_second, is_utc }, Stored::Integer(value)) => {
                Cell::timestamp(value, per_second, is_utc)?
            }
            (CellType::Int96Timestamp, Stored::Int96(value)) => text(int96(value)?),
            _ => return Err(damaged("a value is not of its column's type")),
        })
    }
}

fn damaged(what: &str) -> Error {
    Error::api_misuse(format!("{what}: the file is damaged, write it again"))
}

/// A timestamp in ISO 8601, from the nanoseconds of the day and the Julian day number.
fn int96(value: &Int96) -> Result<String> {
    const JULIAN_DAY_OF_1970: i64 = 2_440_588;
    let &[low, high, day] = value.data() else { return Err(out_of_range()) };
    let nanos =
        i64::try_from(u64::from(high) << 32 | u64::from(low)).map_err(|_| out_of_range())?;
    let midnight = (i64::from(day) - JULIAN_DAY_OF_1970) * 86_400;
    let midnight = DateTime::from_timestamp(midnight, 0).ok_or_else(out_of_range)?;
    let moment = midnight.checked_add_signed(TimeDelta::nanoseconds(nanos));
    Ok(format!("{:?}", moment.ok_or_else(out_of_range)?.naive_utc()))
}

fn uuid(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (position, byte) in bytes.iter().enumerate() {
        if matches!(position, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

impl Column {
    /// This row's cell, or `None` if it is a list, a struct or a map.
    pub(super) fn cell<'l>(&self, leaves: &'l mut [Leaf]) -> Result<Option<Cell<'l>>> {
        let (mut node, mut is_null) = (&self.node, false);
        if let Node::Optional { present, inner } = node {
            let leaf = &mut leaves[inner.first_leaf()];
            leaf.rewind();
            is_null = leaf.definition().is_none_or(|definition| definition < *present);
            node = inner;
        }
        let Node::Leaf { number, cells, .. } = node else {
            // Moves the leaves past this row.
            self.write_json(leaves, &mut Vec::new())?;
            return Ok(is_null.then_some(Cell::Null));
        };
        let leaf = &mut leaves[*number];
        leaf.rewind();
        Ok(Some(match leaf.take() {
            Some(stored) => cells.cell(stored)?,
            None if is_null => Cell::Null,
            None => return Err(damaged("a value is missing")),
        }))
    }

    /// Appends this row's cell as JSON.
    pub(super) fn write_json(&self, leaves: &mut [Leaf], out: &mut Vec<u8>) -> Result<()> {
        self.node.each_leaf(&mut |leaf| leaves[leaf].rewind());
        self.node.write_json(leaves, out)
    }
}

impl Node {
    fn each_leaf(&self, visit: &mut impl FnMut(usize)) {
        match self {
            Node::Leaf { number, .. } => visit(*number),
            Node::Optional { inner, .. } => inner.each_leaf(visit),
            Node::Struct(fields) => fields.iter().for_each(|(_, field)| field.each_leaf(visit)),
            Node::Repeated { key, value, .. } => {
                key.iter().for_each(|key| key.each_leaf(visit));
                value.each_leaf(visit);
            }
        }
    }

    /// Whether the definition level of the present entry is at least `definition`. If not, all
    /// leaves below move past their entries.
    fn is_there(&self, definition: i16, leaves: &mut [Leaf]) -> Result<bool> {
        let found = leaves[self.first_leaf()].definition();
        let is_there = found.ok_or_else(|| damaged("a column ends too early"))? >= definition;
        if !is_there {
            self.each_leaf(&mut |leaf| {
                leaves[leaf].take();
            });
        }
        Ok(is_there)
    }

    fn write_json(&self, leaves: &mut [Leaf], out: &mut Vec<u8>) -> Result<()> {
        match self {
            Node::Leaf { number, cells, .. } => {
                let stored = leaves[*number].take().ok_or_else(|| damaged("a value is missing"))?;
                cells.cell(stored)?.write_json(out);
                // A value in a dictionary may stand in a row many times.
                if out.len() > MAX_ROW_BYTES {
                    return Err(row_too_long());
                }
            }
            Node::Optional { present, inner } => {
                if inner.is_there(*present, leaves)? {
                    inner.write_json(leaves, out)?;
                } else {
                    out.extend_from_slice(b"null");
                }
            }
            Node::Struct(fields) => {
                out.push(b'{');
                for (name, field) in fields {
                    write_name(name, out);
                    field.write_json(leaves, out)?;
                }
                out.push(b'}');
            }
            Node::Repeated { filled, repetition, key, value } => {
                let [begin, end] = if key.is_some() { *b"{}" } else { *b"[]" };
                out.push(begin);
                let mut goes_on = self.is_there(*filled, leaves)?;
                while goes_on {
                    if let Some(key) = key {
                        key.write_json(leaves, out)?;
                        out.push(b':');
                    }
                    value.write_json(leaves, out)?;
                    goes_on = leaves[self.first_leaf()].repetition() == *repetition;
                    out.extend(goes_on.then_some(b','));
                }
                out.push(end);
            }
        }
        Ok(())
    }
}
