//! What the values of a table are: raw bytes or JSON objects, of which columns, of which types.
//!
//! A program that gets a value could parse it and guess. It would guess that a date is a text, and
//! a byte string too. So a table with column types says so, with the
//! [layout](crate::TableLayout) that every client receives before its first lookup:
//!
//! | bytes | content |
//! |---|---|
//! | 1 | form: 0 a JSON object of the columns, 1 the bytes of the one column |
//! | 2 | the number of columns |
//! | | for each column its name, as its length in 2 bytes and UTF-8, and its type |
//!
//! A type is a byte and what follows it:
//!
//! | byte | type | what follows |
//! |---|---|---|
//! | 0 | anything that JSON has | |
//! | 1 | nothing: always `null` | |
//! | 2 | boolean | |
//! | 3 | whole number | bits; 1 if signed, else 0 |
//! | 4 | float | bits |
//! | 5 | number, written as a decimal of any length | |
//! | 6 | decimal | digits; digits after the point |
//! | 7 | text | |
//! | 8 | bytes, in base64 where the form is JSON | |
//! | 9 | date | |
//! | 10 | time of day | decimal places of seconds |
//! | 11 | timestamp | decimal places of seconds; the time zone, as length in 2 bytes and UTF-8 |
//! | 12 | list | the type of its items |
//! | 13 | struct | its fields, as the columns above |
//! | 14 | map with keys of text | the type of its values |
//!
//! Any value may be `null`; no type says so. A timestamp without a zone has an empty one, and is
//! no instant.

use privet_core::codec::Reader;
use privet_core::{Error, Result};
use std::fmt::{self, Display, Formatter};

/// How deep lists, structs and maps may nest.
const MAX_DEPTH: usize = 64;

/// The bytes of the shortest column.
const LEAST_COLUMN: usize = 3;

/// Room is made for at most this many columns before the first is read.
const MOST_AT_FIRST: usize = 1 << 10;

/// The longest description, encoded.
pub const MAX_VALUES_BYTES: usize = 1 << 20;

/// What all values of a table are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// Whether values are the bytes of the one column, and not JSON objects.
    pub is_raw: bool,
    /// The columns, in the order of the objects.
    pub columns: Vec<ValueColumn>,
}

/// A column of the values, or a field of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub of: ValueType,
}

/// The type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueType {
    /// Anything that JSON has.
    Any,
    /// Always `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer {
        /// 8, 16, 32 or 64.
        bits: u8,
        /// Whether it may be negative.
        is_signed: bool,
    },
    /// A number of 16, 32 or 64 bits, by IEEE 754.
    Float(u8),
    /// A number as it was written.
    Number,
    /// A number with a fixed number of digits after the point.
    Decimal {
        /// Digits in all.
        digits: u8,
        /// Digits after the point.
        places: u8,
    },
    /// Text.
    Text,
    /// Bytes; where the value is JSON, in base64.
    Bytes,
    /// A date, in ISO 8601.
    Date,
    /// A time of day in ISO 8601, with 0, 3, 6 or 9 decimal places of a second.
    Time(u8),
    /// A date and time in ISO 8601.
    Timestamp {
        /// Decimal places of a second: 0, 3, 6 or 9.
        places: u8,
        /// The time zone in which it was recorded, if it is an instant. It is written in UTC.
        zone: Option<String>,
    },
    /// An array.
    List(Box<ValueType>),
    /// An object of these fields.
    Struct(Vec<ValueColumn>),
    /// An object of any fields, all of one type.
    Map(Box<ValueType>),
}

impl Values {
    /// The description as bytes, in the one form that [`decode`](Self::decode) accepts.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.is_raw)];
        write_columns(&self.columns, &mut out);
        out
    }

    /// Reads a description that came from outside. A column of three bytes takes some thirty times
    /// as many in memory, so the length is checked first.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if it is none, or longer than
    /// [`MAX_VALUES_BYTES`].
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        if bytes.len() > MAX_VALUES_BYTES {
            return Err(invalid(&format!(
                "it has {} bytes, and the limit is {MAX_VALUES_BYTES}",
                bytes.len()
            )));
        }
        let mut reader = Reader::new("a description of values", bytes);
        let is_raw = flag(&mut reader)?;
        let columns = read_columns(&mut reader, 0)?;
        reader.finish()?;
        if is_raw && columns.len() != 1 {
            return Err(invalid("raw values are of one column"));
        }
        Ok(Self { is_raw, columns })
    }

    /// Whether names and numbers fit into an encoding.
    #[cfg(any(test, feature = "files"))]
    pub(crate) fn fits(&self) -> bool {
        columns_fit(&self.columns, 0) && self.encode().len() <= MAX_VALUES_BYTES
    }
}

#[cfg(any(test, feature = "files"))]
fn columns_fit(columns: &[ValueColumn], depth: usize) -> bool {
    let is_short = |text: &str| text.len() <= usize::from(u16::MAX);
    let fits = |column: &ValueColumn| is_short(&column.name) && column.of.fits(depth + 1);
    columns.len() <= usize::from(u16::MAX) && columns.iter().all(fits)
}

impl ValueType {
    /// The type of a column that is of this type in one input, and of another type in another.
    #[cfg(any(test, feature = "files"))]
    pub(crate) fn joined(self, other: &Self) -> Self {
        match (&self, other) {
            (one, other) if one == other => self,
            (Self::Integer { bits, is_signed }, Self::Integer { bits: other, is_signed: both })
                if is_signed == both =>
            {
                Self::Integer { bits: *bits.max(other), is_signed: *is_signed }
            }
            (Self::Float(bits), Self::Float(other)) => Self::Float(*bits.max(other)),
            (Self::Null, _) => other.clone(),
            (_, Self::Null) => self,
            _ => Self::Any,
        }
    }

    #[cfg(any(test, feature = "files"))]
    fn fits(&self, depth: usize) -> bool {
        depth <= MAX_DEPTH
            && match self {
                Self::List(of) | Self::Map(of) => of.fits(depth + 1),
                Self::Struct(fields) => columns_fit(fields, depth),
                Self::Timestamp { zone: Some(zone), .. } => zone.len() <= usize::from(u16::MAX),
                _ => true,
            }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Any => out.push(0),
            Self::Null => out.push(1),
            Self::Boolean => out.push(2),
            Self::Integer { bits, is_signed } => out.extend([3, *bits, u8::from(*is_signed)]),
            Self::Float(bits) => out.extend([4, *bits]),
            Self::Number => out.push(5),
            Self::Decimal { digits, places } => out.extend([6, *digits, *places]),
            Self::Text => out.push(7),
            Self::Bytes => out.push(8),
            Self::Date => out.push(9),
            Self::Time(places) => out.extend([10, *places]),
            Self::Timestamp { places, zone } => {
                out.extend([11, *places]);
                write_text(zone.as_deref().unwrap_or_default(), out);
            }
            Self::List(of) => {
                out.push(12);
                of.write(out);
            }
            Self::Struct(fields) => {
                out.push(13);
                write_columns(fields, out);
            }
            Self::Map(of) => {
                out.push(14);
                of.write(out);
            }
        }
    }

    fn read(reader: &mut Reader<'_>, depth: usize) -> Result<Self> {
        if depth > MAX_DEPTH {
            return Err(invalid("types nest too deep"));
        }
        Ok(match reader.u8()? {
            0 => Self::Any,
            1 => Self::Null,
            2 => Self::Boolean,
            3 => {
                let (bits, is_signed) = (one_of(reader, &[8, 16, 32, 64])?, flag(reader)?);
                Self::Integer { bits, is_signed }
            }
            4 => Self::Float(one_of(reader, &[16, 32, 64])?),
            5 => Self::Number,
            6 => Self::Decimal { digits: reader.u8()?, places: reader.u8()? },
            7 => Self::Text,
            8 => Self::Bytes,
            9 => Self::Date,
            10 => Self::Time(one_of(reader, &[0, 3, 6, 9])?),
            11 => {
                let (places, zone) = (one_of(reader, &[0, 3, 6, 9])?, read_text(reader)?);
                Self::Timestamp { places, zone: Some(zone).filter(|zone| !zone.is_empty()) }
            }
            12 => Self::List(Box::new(Self::read(reader, depth + 1)?)),
            13 => Self::Struct(read_columns(reader, depth)?),
            14 => Self::Map(Box::new(Self::read(reader, depth + 1)?)),
            other => return Err(invalid(&format!("no type has the number {other}"))),
        })
    }
}

/// The name and the type, as `price decimal(9, 2)`.
impl Display for ValueColumn {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.of)
    }
}

/// In one line, as `list of int64`.
impl Display for ValueType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Null => f.write_str("null"),
            Self::Boolean => f.write_str("boolean"),
            Self::Integer { bits, is_signed: true } => write!(f, "int{bits}"),
            Self::Integer { bits, is_signed: false } => write!(f, "uint{bits}"),
            Self::Float(bits) => write!(f, "float{bits}"),
            Self::Number => f.write_str("number"),
            Self::Decimal { digits, places } => write!(f, "decimal({digits}, {places})"),
            Self::Text => f.write_str("text"),
            Self::Bytes => f.write_str("bytes"),
            Self::Date => f.write_str("date"),
            Self::Time(places) => write!(f, "time({places})"),
            Self::Timestamp { places, zone: None } => write!(f, "timestamp({places})"),
            Self::Timestamp { places, zone: Some(zone) } => {
                write!(f, "timestamp({places}, {zone})")
            }
            Self::List(of) => write!(f, "list of {of}"),
            Self::Struct(fields) => {
                f.write_str("struct(")?;
                for (number, field) in fields.iter().enumerate() {
                    let before = if number == 0 { "" } else { ", " };
                    write!(f, "{before}{field}")?;
                }
                f.write_str(")")
            }
            Self::Map(of) => write!(f, "map of {of}"),
        }
    }
}

fn write_columns(columns: &[ValueColumn], out: &mut Vec<u8>) {
    out.extend((columns.len() as u16).to_le_bytes());
    for column in columns {
        write_text(&column.name, out);
        column.of.write(out);
    }
}

fn read_columns(reader: &mut Reader<'_>, depth: usize) -> Result<Vec<ValueColumn>> {
    let count = reader.u16()?;
    // No more than can be there, whatever the number says. And few at first: structs in structs may
    // each say that the rest of the bytes is theirs.
    let most = usize::from(count).min(reader.remaining() / LEAST_COLUMN);
    let mut columns = Vec::with_capacity(most.min(MOST_AT_FIRST));
    for _ in 0..count {
        let name = read_text(reader)?;
        columns.push(ValueColumn { name, of: ValueType::read(reader, depth + 1)? });
    }
    Ok(columns)
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
}

fn read_text(reader: &mut Reader<'_>) -> Result<String> {
    let len = reader.u16()?;
    let bytes = reader.bytes(len.into())?;
    String::from_utf8(bytes.to_vec()).map_err(|_| invalid("a name is not UTF-8"))
}

fn one_of(reader: &mut Reader<'_>, allowed: &[u8]) -> Result<u8> {
    let found = reader.u8()?;
    match allowed.contains(&found) {
        true => Ok(found),
        false => Err(invalid(&format!("no type has the size {found}"))),
    }
}

fn flag(reader: &mut Reader<'_>) -> Result<bool> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(invalid(&format!("{other} is neither yes nor no"))),
    }
}

fn invalid(how: &str) -> Error {
    Error::invalid_message(format!("the description of the table's values is invalid: {how}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_core::Blame;
    use proptest::prelude::*;
    use serde_json::Value;

    fn any_type() -> impl Strategy<Value = ValueType> {
        let places = || prop::sample::select(vec![0u8, 3, 6, 9]);
        let leaf = prop_oneof![
            prop::sample::select(vec![
                ValueType::Any,
                ValueType::Null,
                ValueType::Boolean,
                ValueType::Number,
                ValueType::Text,
                ValueType::Bytes,
                ValueType::Date,
            ]),
            (prop::sample::select(vec![8u8, 16, 32, 64]), any::<bool>())
                .prop_map(|(bits, is_signed)| ValueType::Integer { bits, is_signed }),
            prop::sample::select(vec![16u8, 32, 64]).prop_map(ValueType::Float),
            any::<(u8, u8)>().prop_map(|(digits, places)| ValueType::Decimal { digits, places }),
            places().prop_map(ValueType::Time),
            (places(), prop::option::of("[A-Z][a-z/]{1,9}"))
                .prop_map(|(places, zone)| ValueType::Timestamp { places, zone }),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                inner.clone().prop_map(|of| ValueType::List(Box::new(of))),
                inner.clone().prop_map(|of| ValueType::Map(Box::new(of))),
                columns_of(inner).prop_map(ValueType::Struct),
            ]
        })
    }

    fn columns_of(of: impl Strategy<Value = ValueType>) -> impl Strategy<Value = Vec<ValueColumn>> {
        prop::collection::vec(("\\PC{0,6}", of), 0..4).prop_map(|columns| {
            columns.into_iter().map(|(name, of)| ValueColumn { name, of }).collect()
        })
    }

    proptest! {
        #[test]
        fn descriptions_come_back_and_nothing_longer_or_shorter_is_accepted(
            columns in columns_of(any_type()),
        ) {
            let values = Values { is_raw: false, columns };
            prop_assert!(values.fits());
            let mut bytes = values.encode();
            prop_assert_eq!(&Values::decode(&bytes).unwrap(), &values);
            for len in 0..bytes.len() {
                let error = Values::decode(&bytes[..len]).unwrap_err();
                prop_assert_eq!(error.blame(), Blame::InvalidMessage);
            }
            bytes.push(0);
            prop_assert!(Values::decode(&bytes).is_err());
        }

        #[test]
        fn no_bytes_panic_and_what_is_read_is_written_the_same(bytes: Vec<u8>) {
            if let Ok(values) = Values::decode(&bytes) {
                prop_assert_eq!(values.encode(), bytes);
            }
        }
    }

    #[test]
    fn types_may_nest_so_deep_and_no_deeper() {
        let nested = |depth: usize| {
            let of = (1..depth).fold(ValueType::Text, |of, _| ValueType::List(Box::new(of)));
            Values { is_raw: false, columns: vec![ValueColumn { name: "a".to_owned(), of }] }
        };
        assert!(nested(MAX_DEPTH).fits());
        assert_eq!(Values::decode(&nested(MAX_DEPTH).encode()).unwrap(), nested(MAX_DEPTH));
        assert!(!nested(MAX_DEPTH + 1).fits());
        let error = Values::decode(&nested(MAX_DEPTH + 1).encode()).unwrap_err();
        assert!(error.to_string().contains("too deep"), "{error}");
    }

    #[test]
    fn types_are_told_in_words() {
        let column = |name: &str, of| ValueColumn { name: name.to_owned(), of };
        let zone = Some("Europe/Paris".to_owned());
        let fields = vec![
            column("a", ValueType::Integer { bits: 8, is_signed: false }),
            column("b", ValueType::Timestamp { places: 6, zone }),
        ];
        let of = ValueType::List(Box::new(ValueType::Struct(fields)));
        let told = column("all of it", ValueType::Map(Box::new(of))).to_string();
        assert_eq!(told, "all of it map of list of struct(a uint8, b timestamp(6, Europe/Paris))");
    }

    #[test]
    fn known_descriptions_are_read_and_written() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/values.json");
        let vectors: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let cases = vectors["cases"].as_array().unwrap();
        assert!(cases.len() > 4);
        for case in cases {
            let hex = case["description"].as_str().unwrap().as_bytes();
            let byte =
                |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
            let bytes: Vec<u8> = hex.chunks(2).map(byte).collect();
            let is_raw = case["is_raw"].as_bool().unwrap();
            let values = Values { is_raw, columns: columns_of_json(&case["columns"]) };
            assert_eq!(Values::decode(&bytes).unwrap(), values);
            assert_eq!(values.encode(), bytes);
        }
    }

    fn columns_of_json(columns: &Value) -> Vec<ValueColumn> {
        let column = |column: &Value| ValueColumn {
            name: column[0].as_str().unwrap().to_owned(),
            of: type_of_json(&column[1]),
        };
        columns.as_array().unwrap().iter().map(column).collect()
    }

    fn type_of_json(of: &Value) -> ValueType {
        let number = |at: usize| u8::try_from(of[at].as_u64().unwrap()).unwrap();
        match of[0].as_str().unwrap() {
            "any" => ValueType::Any,
            "null" => ValueType::Null,
            "boolean" => ValueType::Boolean,
            "integer" => {
                ValueType::Integer { bits: number(1), is_signed: of[2].as_bool().unwrap() }
            }
            "float" => ValueType::Float(number(1)),
            "number" => ValueType::Number,
            "decimal" => ValueType::Decimal { digits: number(1), places: number(2) },
            "text" => ValueType::Text,
            "bytes" => ValueType::Bytes,
            "date" => ValueType::Date,
            "time" => ValueType::Time(number(1)),
            "timestamp" => {
                ValueType::Timestamp { places: number(1), zone: of[2].as_str().map(str::to_owned) }
            }
            "list" => ValueType::List(Box::new(type_of_json(&of[1]))),
            "struct" => ValueType::Struct(columns_of_json(&of[1])),
            "map" => ValueType::Map(Box::new(type_of_json(&of[1]))),
            other => panic!("no type is named {other}"),
        }
    }

    #[test]
    fn raw_values_are_of_one_column() {
        let two = Values {
            is_raw: true,
            columns: vec![ValueColumn { name: String::new(), of: ValueType::Bytes }; 2],
        };
        assert!(Values::decode(&two.encode()).unwrap_err().to_string().contains("one column"));
    }
}
