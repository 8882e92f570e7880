//! How to read a table's records: what every client downloads before its first lookup.
//!
//! There are two kinds of table. A table *by index* has one record per row of its input, in the
//! same order. The records of a table *by key* are buckets, and a [`KeyMap`] says in which of them
//! a key may lie. [`RecordLayout`] is either, in one encoding:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 2 | version, 1 |
//! | 2 | 1 | kind: 0 by index, 1 by key |
//! | 3 | 1 | by index: bytes of the length before each value, 0 to 4; by key: 0 |
//! | 4 | | by key: the encoded key map; by index: nothing |
//!
//! A table of either kind may be [authenticated](crate::authentication). Then a path follows each
//! record, and a client has to know the Merkle root to which the paths lead. [`TableLayout`] says
//! both. Without authentication it is the record layout and nothing else. With authentication it
//! begins with another version:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 2 | version, 2 |
//! | 2 | 32 | Merkle root of the records |
//! | 34 | | the record layout, as above |
//!
//! A layout may say [what the values are](crate::values). Then that comes before it:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 2 | version, 3 |
//! | 2 | 4 | the length of the description |
//! | 6 | | the description of the values |
//! | | | the layout, in one of the forms above |

use crate::KeyMap;
use crate::authentication::{Authentication, TableRoot, shape_within};
use crate::digest::layout_digest;
use crate::values::Values;
use privet_core::codec::Reader;
use privet_core::{Error, Result, TableShape};

/// The version of a record layout, and so of the layout of a table that is not authenticated.
const VERSION: u16 = 1;

/// The version of the layout of an authenticated table.
const AUTHENTICATED_VERSION: u16 = 2;

/// The version of a layout that describes the values.
const DESCRIBED_VERSION: u16 = 3;

/// How a table's records are read: verified first, if the table is authenticated, and then
/// understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLayout {
    values: Option<Values>,
    authentication: Option<Authentication>,
    records: RecordLayout,
}

impl From<RecordLayout> for TableLayout {
    /// The layout of a table that is not authenticated.
    fn from(records: RecordLayout) -> Self {
        Self { values: None, authentication: None, records }
    }
}

impl TableLayout {
    /// The layout of an authenticated table.
    pub fn authenticated(authentication: Authentication, records: RecordLayout) -> Self {
        Self { values: None, authentication: Some(authentication), records }
    }

    /// The same layout, with what it says of the values.
    #[must_use]
    pub fn describing(self, values: Option<Values>) -> Self {
        Self { values, ..self }
    }

    /// What the values are, if the table's builder knew.
    pub fn values(&self) -> Option<&Values> {
        self.values.as_ref()
    }

    /// What records are verified with, if the table is authenticated.
    pub fn authentication(&self) -> Option<&Authentication> {
        self.authentication.as_ref()
    }

    /// What records mean, their paths taken off.
    pub fn records(&self) -> &RecordLayout {
        &self.records
    }

    /// The root of an authenticated table that has this layout and the shape `shape`.
    pub fn root(&self, shape: TableShape) -> Option<TableRoot> {
        self.authentication.map(|_| TableRoot::of(shape, layout_digest(&self.encode())))
    }

    /// The record in `served`, which came as record number `index` of a table of shape `shape`:
    /// verified, if the table is authenticated, and without its path.
    ///
    /// # Errors
    /// As [`Authentication::verified`].
    pub fn verified<'s>(
        &self,
        shape: TableShape,
        index: u64,
        served: &'s [u8],
    ) -> Result<&'s [u8]> {
        match &self.authentication {
            Some(authentication) => authentication.verified(shape, index, served),
            None => Ok(served),
        }
    }

    /// The layout as bytes, in the one form that [`decode`](Self::decode) accepts.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(values) = &self.values {
            let description = values.encode();
            out.extend_from_slice(&DESCRIBED_VERSION.to_le_bytes());
            out.extend_from_slice(&(description.len() as u32).to_le_bytes());
            out.extend_from_slice(&description);
        }
        if let Some(authentication) = &self.authentication {
            out.extend_from_slice(&AUTHENTICATED_VERSION.to_le_bytes());
            out.extend_from_slice(&authentication.0);
        }
        out.extend_from_slice(&self.records.encode());
        out
    }

    /// Reads a layout that came from outside. Allocates a few times as much as `bytes` is long.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if `bytes` is not an encoded
    /// layout.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("a table layout", bytes);
        if reader.u16()? != DESCRIBED_VERSION {
            return Self::decode_undescribed(bytes);
        }
        let len = reader.u32()? as usize;
        let values = Values::decode(reader.bytes(len)?)?;
        let layout = Self::decode_undescribed(reader.bytes(reader.remaining())?)?;
        Ok(layout.describing(Some(values)))
    }

    fn decode_undescribed(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("a table layout", bytes);
        match reader.u16()? {
            VERSION => RecordLayout::decode(bytes).map(Self::from),
            AUTHENTICATED_VERSION => {
                let authentication = Authentication(reader.array()?);
                let records = RecordLayout::decode(reader.bytes(reader.remaining())?)?;
                Ok(Self::authenticated(authentication, records))
            }
            version => Err(Error::invalid_message(format!(
                "the record layout has version {version}, and this program reads versions {VERSION} to {DESCRIBED_VERSION}"
            ))),
        }
    }

    /// Checks that a table of shape `shape` can have this layout.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage), with the numbers, if it
    /// cannot.
    pub fn check_shape(&self, shape: TableShape) -> Result<()> {
        let within = match self.authentication {
            Some(_) => shape_within(shape)?,
            None => shape,
        };
        self.records.check_shape(within)
    }
}

/// What a table's records mean: not their paths, if it is authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordLayout {
    /// Record *i* holds the value of row *i*.
    Index(IndexLayout),
    /// Records are buckets of a key map.
    Keyed(KeyMap),
}

impl RecordLayout {
    /// The layout as bytes, in the one form that [`decode`](RecordLayout::decode) accepts.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, prefix_bytes, key_map) = match self {
            RecordLayout::Index(index) => (0, index.prefix_bytes, Vec::new()),
            RecordLayout::Keyed(key_map) => (1, 0, key_map.encode()),
        };
        let mut out = Vec::with_capacity(4 + key_map.len());
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[kind, prefix_bytes]);
        out.extend_from_slice(&key_map);
        out
    }

    /// Reads a layout that came from outside, as [`TableLayout::decode`] does.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if `bytes` is not an encoded
    /// layout.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("a record layout", bytes);
        let version = reader.u16()?;
        if version != VERSION {
            return Err(Error::invalid_message(format!(
                "the record layout has version {version}, and this program reads version {VERSION}"
            )));
        }
        let (kind, prefix_bytes) = (reader.u8()?, reader.u8()?);
        match (kind, prefix_bytes) {
            (0, 0..=MAX_PREFIX_BYTES) => {
                reader.finish()?;
                Ok(RecordLayout::Index(IndexLayout { prefix_bytes }))
            }
            (1, 0) => Ok(RecordLayout::Keyed(KeyMap::decode(reader.bytes(reader.remaining())?)?)),
            _ => Err(Error::invalid_message(format!(
                "the record layout is invalid: no kind {kind} with parameter {prefix_bytes} is known"
            ))),
        }
    }

    /// Checks that a table of shape `shape` can have this layout.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage), with the numbers, if it
    /// cannot.
    pub fn check_shape(&self, shape: TableShape) -> Result<()> {
        match self {
            RecordLayout::Keyed(key_map) if key_map.shape() != shape => {
                Err(Error::invalid_message(format!(
                    "the key map is for {} records of {} bytes, and the table has {} of {}",
                    key_map.buckets(),
                    key_map.record_len(),
                    shape.records(),
                    shape.record_len()
                )))
            }
            RecordLayout::Index(index) if u64::from(index.prefix_bytes) > shape.record_len() => {
                Err(Error::invalid_message(format!(
                    "records of {} bytes cannot begin with a length of {} bytes",
                    shape.record_len(),
                    index.prefix_bytes
                )))
            }
            _ => Ok(()),
        }
    }

    /// The key map, for a table by key.
    pub fn key_map(&self) -> Option<&KeyMap> {
        match self {
            RecordLayout::Keyed(key_map) => Some(key_map),
            RecordLayout::Index(_) => None,
        }
    }
}

const MAX_PREFIX_BYTES: u8 = 4;

/// How a value lies in its record, for a table by index.
///
/// Values of different lengths are padded with zeros to the width of the longest. So that the exact
/// value comes back, each is preceded by its length, a little-endian number of as few bytes as the
/// longest value needs. Where all values have the same length, and it is not zero, the record is
/// the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexLayout {
    prefix_bytes: u8,
}

impl IndexLayout {
    /// The layout for values of `shortest` to `longest` bytes. `longest` must be below 2^32.
    pub fn for_lengths(shortest: u64, longest: u64) -> Self {
        if shortest == longest && longest > 0 {
            return Self { prefix_bytes: 0 };
        }
        let bits = u64::BITS - longest.leading_zeros();
        Self { prefix_bytes: bits.div_ceil(8).clamp(1, MAX_PREFIX_BYTES.into()) as u8 }
    }

    /// The width of the records for values of up to `longest` bytes.
    pub fn record_len(self, longest: u64) -> u64 {
        u64::from(self.prefix_bytes) + longest
    }

    /// How many bytes at the start of a record give the length of the value; 0 where the record is
    /// the value.
    pub fn prefix_bytes(self) -> u8 {
        self.prefix_bytes
    }

    /// Writes the record of `value` over `record`, `record_len` bytes in all.
    pub fn write_record(self, value: &[u8], record_len: u64, record: &mut Vec<u8>) {
        record.clear();
        record.extend_from_slice(&value.len().to_le_bytes()[..usize::from(self.prefix_bytes)]);
        record.extend_from_slice(value);
        record.resize(record_len as usize, 0);
    }

    /// The value in `record`.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if `record` is not what
    /// [`write_record`](IndexLayout::write_record) writes for any value.
    pub fn value_in(self, record: &[u8]) -> Result<&[u8]> {
        let Some((prefix, rest)) = record.split_at_checked(self.prefix_bytes.into()) else {
            return Err(malformed("it is shorter than its length field"));
        };
        if prefix.is_empty() {
            return Ok(record);
        }
        let mut value_len = [0; 8];
        value_len[..prefix.len()].copy_from_slice(prefix);
        let value_len = u64::from_le_bytes(value_len) as usize;
        let Some((value, padding)) = rest.split_at_checked(value_len) else {
            return Err(malformed("its value is cut off"));
        };
        if padding.iter().any(|&byte| byte != 0) {
            return Err(malformed("there are bytes after its end"));
        }
        Ok(value)
    }
}

fn malformed(how: &str) -> Error {
    Error::integrity(format!(
        "a record of the table is malformed ({how}): the answer was recovered wrongly, or the table and its layout do \
         not belong together"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::{ValueColumn, ValueType};
    use privet_core::Blame;

    #[test]
    fn values_come_back_at_every_prefix_width() {
        for longest in [0usize, 1, 2, 255, 256, 65_535, 65_536] {
            let layout = IndexLayout::for_lengths(0, longest as u64);
            let record_len = layout.record_len(longest as u64);
            for len in [0, longest / 2, longest] {
                let value = vec![0xa5; len];
                let mut record = Vec::new();
                layout.write_record(&value, record_len, &mut record);
                assert_eq!(record.len() as u64, record_len);
                assert_eq!(layout.value_in(&record).expect("just written"), value);
            }
        }
        let prefix = |longest| IndexLayout::for_lengths(0, longest).prefix_bytes();
        assert_eq!([0, 1, 255, 256, 65_535, 65_536].map(prefix), [1, 1, 1, 2, 2, 3]);
        assert_eq!(IndexLayout::for_lengths(32, 32).prefix_bytes(), 0);
    }

    #[test]
    fn malformed_records_are_an_integrity_error() {
        let layout = IndexLayout::for_lengths(0, 3);
        for record in [&[4u8, 1, 2, 3][..], &[2, 1, 2, 3], &[]] {
            let error = layout.value_in(record).expect_err("malformed");
            assert_eq!(error.blame(), Blame::Integrity);
        }
    }

    #[test]
    fn layouts_come_back_and_nothing_else_is_accepted() {
        for prefix_bytes in 0..=4 {
            let layout = RecordLayout::Index(IndexLayout { prefix_bytes });
            assert_eq!(RecordLayout::decode(&layout.encode()).expect("valid"), layout);
        }
        for bytes in
            [&[][..], &[1, 0], &[2, 0, 0, 0], &[1, 0, 0, 5], &[1, 0, 2, 0], &[1, 0, 0, 0, 0]]
        {
            let error = RecordLayout::decode(bytes).expect_err("invalid");
            assert_eq!(error.blame(), Blame::InvalidMessage, "{bytes:?}");
            let error = TableLayout::decode(bytes).expect_err("invalid");
            assert_eq!(error.blame(), Blame::InvalidMessage, "{bytes:?}");
        }
    }

    #[test]
    fn layouts_of_both_versions_come_back() {
        let records = RecordLayout::Index(IndexLayout { prefix_bytes: 1 });
        let plain = TableLayout::from(records.clone());
        // What was written before there were authenticated tables.
        assert_eq!(plain.encode(), [1, 0, 0, 1]);
        assert_eq!(TableLayout::decode(&[1, 0, 0, 1]).expect("valid"), plain);
        assert_eq!(plain.root(TableShape::new(2, 40).expect("a shape")), None);

        let layout = TableLayout::authenticated(Authentication([7; 32]), records);
        let bytes = [&[2, 0][..], &[7; 32], &[1, 0, 0, 1]].concat();
        assert_eq!(layout.encode(), bytes);
        assert_eq!(TableLayout::decode(&bytes).expect("valid"), layout);
        // No bytes but these, and no authentication within an authentication.
        for len in 0..bytes.len() {
            let error = TableLayout::decode(&bytes[..len]).expect_err("cut off");
            assert_eq!(error.blame(), Blame::InvalidMessage, "{len}");
        }
        for invalid in [[&bytes[..], &[0]].concat(), [&bytes[..34], &bytes].concat()] {
            let error = TableLayout::decode(&invalid).expect_err("invalid");
            assert_eq!(error.blame(), Blame::InvalidMessage);
        }
        let error = TableLayout::decode(&[4, 0, 0, 1]).expect_err("of the future");
        assert!(error.message().contains("version 4, and this program reads versions 1 to 3"));
    }

    #[test]
    fn a_layout_with_a_description_is_the_layout_and_the_description() {
        let column = ValueColumn { name: "v".to_owned(), of: ValueType::Text };
        let values = Values { is_raw: true, columns: vec![column] };
        let records = RecordLayout::Index(IndexLayout { prefix_bytes: 1 });
        let plain = TableLayout::from(records.clone());
        let authenticated = TableLayout::authenticated(Authentication([7; 32]), records);
        for layout in [plain, authenticated] {
            let described = layout.clone().describing(Some(values.clone()));
            let bytes = described.encode();
            assert!(bytes.ends_with(&layout.encode()));
            assert_eq!(TableLayout::decode(&bytes).expect("valid"), described);
            for len in 0..bytes.len() {
                let error = TableLayout::decode(&bytes[..len]).expect_err("cut off");
                assert_eq!(error.blame(), Blame::InvalidMessage);
            }
            // No description within a description.
            let mut twice = bytes[..bytes.len() - layout.encode().len()].to_vec();
            twice.extend_from_slice(&bytes);
            assert!(TableLayout::decode(&twice).is_err());
        }
    }

    #[test]
    fn an_authenticated_layout_needs_room_for_paths() {
        let records = RecordLayout::Index(IndexLayout { prefix_bytes: 2 });
        let layout = TableLayout::authenticated(Authentication([7; 32]), records);
        let check = |records, record_len| {
            layout.check_shape(TableShape::new(records, record_len).expect("a shape"))
        };
        // Five records have paths of three hashes; what is left must hold a length of two bytes.
        for (records, record_len, possible) in [
            (5, 98, true),
            (5, 97, false),
            (5, 96, false),
            (5, 95, false),
            (1, 2, true),
            (1, 1, false),
        ] {
            let checked = check(records, record_len);
            assert_eq!(checked.is_ok(), possible, "{records} of {record_len}");
            let blame = checked.err().map(|error| error.blame());
            assert!(blame.is_none_or(|blame| blame == Blame::InvalidMessage));
        }
    }

    #[test]
    fn the_root_is_of_the_whole_layout_and_of_the_shape() {
        let layout = |merkle_root, prefix_bytes| {
            TableLayout::authenticated(
                Authentication([merkle_root; 32]),
                RecordLayout::Index(IndexLayout { prefix_bytes }),
            )
        };
        let root = |layout: TableLayout, records, record_len| {
            layout.root(TableShape::new(records, record_len).expect("a shape"))
        };
        let right = root(layout(1, 1), 4, 100);
        assert_eq!(root(layout(1, 1), 4, 100), right);
        let others = [
            root(layout(2, 1), 4, 100),
            root(layout(1, 2), 4, 100),
            root(layout(1, 1), 3, 100),
            root(layout(1, 1), 4, 101),
        ];
        assert!(others.iter().all(|other| other.is_some() && *other != right));
    }
}
