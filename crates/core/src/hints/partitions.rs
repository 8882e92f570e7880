//! How a table is cut into partitions.

use crate::{Error, Result, TableShape};

/// Offsets are 16 bits, eight of them to an AES block.
pub const MAX_PARTITION_RECORDS: u64 = 1 << 16;
/// At most 2^26 partitions: a query of some 100 MiB, far beyond what anyone would send.
pub const MAX_PARTITIONS: u64 = 1 << 26;

/// A table as `count` partitions of `records` records. The last ones may reach beyond the table; what lies there counts as zero.
///
/// Records in a partition are a power of two, so that a mask maps pseudorandom bits to offsets without bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partitions {
    shape: TableShape,
    records: u32,
    count: u32,
}

impl Partitions {
    /// Partitions of `records` records; their number is a multiple of `multiple` and at least `least`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse), with the numbers, if `records` is no power of two up to 2^16 or there would be more than 2^26 partitions.
    pub fn new(shape: TableShape, records: u64, multiple: u64, least: u64) -> Result<Self> {
        if !records.is_power_of_two() || records > MAX_PARTITION_RECORDS {
            return Err(Error::api_misuse(format!(
                "a partition has a power of two of records, at most {MAX_PARTITION_RECORDS}, not {records}"
            )));
        }
        let count = shape.records().div_ceil(records).next_multiple_of(multiple).max(least);
        if count > MAX_PARTITIONS {
            return Err(Error::api_misuse(format!(
                "a table of {} records would be cut into {count} partitions; the limit is {MAX_PARTITIONS}",
                shape.records()
            )));
        }
        Ok(Self { shape, records: records as u32, count: count as u32 })
    }

    /// The table's shape.
    pub fn shape(&self) -> TableShape {
        self.shape
    }

    /// Records in a partition, `s`: a power of two.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// The number of partitions, `p`.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Bits of an offset within a partition: log2 of [`records`](Self::records).
    pub fn offset_bits(&self) -> u32 {
        self.records.trailing_zeros()
    }

    /// Bytes of a record.
    pub fn record_len(&self) -> usize {
        self.shape.record_len() as usize
    }

    /// Bytes of a partition.
    pub fn partition_bytes(&self) -> u64 {
        u64::from(self.records) * self.shape.record_len()
    }

    /// Where a record lies: its partition, and its offset there. Both secret, like the index.
    pub fn place(&self, index: u64) -> (u32, u32) {
        ((index >> self.offset_bits()) as u32, index as u32 & (self.records - 1))
    }
}
