//! How to read a table's records: what every client downloads before its first lookup.
//!
//! There are two kinds of table. A table *by index* has one record per row of its input, in the same order. A table *by
//! key* has buckets, and a [`KeyMap`] that says which. [`RecordLayout`] is either, in one encoding:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 2 | version, 1 |
//! | 2 | 1 | kind: 0 by index, 1 by key |
//! | 3 | 1 | by index: bytes of the length before each value, 0 to 4; by key: 0 |
//! | 4 | | by key: the encoded key map; by index: nothing |

use crate::KeyMap;
use privet_core::codec::Reader;
use privet_core::{Error, Result, TableShape};

const VERSION: u16 = 1;

/// What a table's records mean.
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

    /// Reads a layout that came from outside. Allocates no more than `bytes` is long.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if `bytes` is not an encoded layout.
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
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage), with the numbers, if it cannot.
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
/// Values of different lengths are padded with zeros to the width of the longest. So that the exact value comes back, each
/// is preceded by its length, a little-endian number of as few bytes as the longest value needs. Where all values
/// have the same length, and it is not zero, the record is the value.
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

    /// How many bytes at the start of a record give the length of the value; 0 where the record is the value.
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
         not belong together; fetch the layout again"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
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
        }
    }
}
