//! How a table is cut into partitions.

use crate::{Error, Result, TableShape};

/// Offsets are 16 bits, eight of them to an AES block.
pub const MAX_PARTITION_RECORDS: u64 = 1 << 16;
/// The most partitions, 2^26: they make a query of some 100 MiB, far more than a client would send.
pub const MAX_PARTITIONS: u64 = 1 << 26;

/// Checks that a table of shape `before` may become one of shape `after` with the same cut, which
/// has room for `room` records.
///
/// # Errors
/// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if it may not.
pub fn check_grown(before: TableShape, after: TableShape, room: u64) -> Result<()> {
    if after.record_len() != before.record_len() || after.records() < before.records() {
        return Err(Error::api_misuse("the edits belong to a table of another shape"));
    }
    if after.records() > room {
        return Err(Error::api_misuse(
            "the edits add records to the table, which these hints cannot follow; prepare new ones",
        ));
    }
    Ok(())
}

/// A table as `count` partitions of `records` records. The last ones may reach beyond the table;
/// records there count as zero.
///
/// The number of records in a partition is a power of two, so that a mask maps pseudorandom bits to
/// offsets without bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partitions {
    shape: TableShape,
    records: u32,
    count: u32,
}

impl Partitions {
    /// Partitions of `records` records; their number is a multiple of `multiple` and at least
    /// `least`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse), with the numbers, if `records` is no power of
    /// two up to 2^16 or there would be more than 2^26 partitions.
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

    /// The same partitions of a table with more records, which must fit into the padding.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if they do not fit, or it is not the same
    /// table with more records.
    pub fn grown(&self, after: TableShape) -> Result<Self> {
        check_grown(self.shape, after, u64::from(self.count) * u64::from(self.records))?;
        Ok(Self { shape: after, ..*self })
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
