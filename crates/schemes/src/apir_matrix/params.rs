//! How many records make a row: it follows from the table, so there is nothing to announce.

use super::tree::NODE_LEN;
use crate::contract::Parameters;
use privet_core::codec::Reader;
use privet_core::commit::merkle::depth;
use privet_core::{RecordIndex, Result, TableIdentity, TableShape};
use privet_kernels::taint::declassify;

/// log2 of the bytes of the matrix that a server may read to save one byte on the wire. Both take
/// about as long, at 30 GB/s of memory and on a line of 16 Mbit/s.
const SCANNED_PER_SENT_LOG2: u32 = 14;

/// A table as a matrix of `rows` rows. Each row has `C` records, a power of two, and the hashes on
/// the way from the row to the root.
///
/// **The choice of C.** More records in a row make a longer answer and a shorter query. Their sum
/// is smallest where both are about equal. Longer rows also mean fewer paths, so servers read less.
/// C is the power of two that minimises
///
/// ```text
/// 2·(⌈rows/8⌉ + row_len) + rows·row_len / 2^14        bytes sent and received, and bytes read by each server
/// ```
///
/// and the largest of them if there are several. For 2^20 records of 32 bytes:
///
/// | C | query | answer | all four messages | the matrix | of it paths |
/// |---|---|---|---|---|---|
/// | 32 | 4 096 | 1 504 | 11 200 | 49.3 MB | 32 % |
/// | **64** | 2 048 | 2 496 | **9 088** | 40.9 MB | 18 % |
/// | 128 | 1 024 | 4 512 | 11 072 | 37.0 MB | 9 % |
///
/// Paths are less than half of the matrix for every table of more than 2.5 MB. Reading a smaller
/// one takes no noticeable time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApirMatrixParameters {
    shape: TableShape,
    row_records_log2: u32,
}

impl ApirMatrixParameters {
    /// The parameters for a table. They stay the same from epoch to epoch as long as its shape
    /// does.
    pub fn new(identity: &TableIdentity) -> Self {
        let shape = identity.shape;
        // Rows longer than the table would be padding only.
        let row_records_log2 = (0..=depth(shape.records()))
            .rev()
            .min_by_key(|log2| Self { shape, row_records_log2: *log2 }.cost())
            .unwrap_or(0);
        Self { shape, row_records_log2 }
    }

    /// What the [choice](Self) of C minimises.
    fn cost(&self) -> u64 {
        let sent = 2 * (self.query_len() + self.row_len());
        sent + ((self.rows() * self.row_len()) >> SCANNED_PER_SENT_LOG2)
    }

    /// Rows of another number of records, so that small tables have rows of many.
    #[cfg(test)]
    pub(super) fn with_row_records(identity: &TableIdentity, row_records: u64) -> Self {
        assert!(row_records.is_power_of_two());
        Self { shape: identity.shape, row_records_log2: row_records.ilog2() }
    }

    /// The table's shape.
    pub fn shape(&self) -> TableShape {
        self.shape
    }

    /// Records of a row: a power of two.
    pub fn row_records(&self) -> u64 {
        1 << self.row_records_log2
    }

    /// Rows: at least one. The last may reach beyond the table's end.
    pub fn rows(&self) -> u64 {
        self.shape.records().div_ceil(self.row_records())
    }

    /// Hashes on the way from a row to the root: ⌈log₂ rows⌉.
    pub fn path_nodes(&self) -> u32 {
        depth(self.rows())
    }

    /// Bytes of a row's records.
    pub fn records_len(&self) -> u64 {
        self.row_records() * self.shape.record_len()
    }

    /// Bytes of a row, which are those of an answer.
    pub fn row_len(&self) -> u64 {
        self.records_len() + u64::from(self.path_nodes()) * NODE_LEN as u64
    }

    /// Bytes of a query: a bit for each row, in whole bytes.
    pub fn query_len(&self) -> u64 {
        self.rows().div_ceil(8)
    }

    /// log2 of the records of a row.
    pub(super) fn row_records_log2(&self) -> u32 {
        self.row_records_log2
    }

    /// Where a record lies: its row, and its place there. Both secret.
    ///
    /// # Panics
    /// If `index` was made for a larger table than this.
    pub(super) fn place(&self, index: &RecordIndex) -> (u64, u64) {
        let index = index.expose();
        // This branch goes the same way for every index of the table.
        let is_there = declassify(index < self.shape.records());
        assert!(is_there, "the index belongs to another table");
        (index >> self.row_records_log2, index & (self.row_records() - 1))
    }
}

impl Parameters for ApirMatrixParameters {
    /// No bytes.
    fn encode(&self) -> Vec<u8> {
        Vec::new()
    }

    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self> {
        Reader::new("APIR-Matrix's parameters", bytes).finish()?;
        Ok(Self::new(identity))
    }
}
