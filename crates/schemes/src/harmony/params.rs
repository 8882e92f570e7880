//! How many cells there are, and how they are cut into segments.

use crate::contract::{Parameters, announced};
use crate::stored_hints::check_state;
use privet_core::hints::Partitions;
use privet_core::hints::partitions::{MAX_PARTITION_RECORDS, check_grown};
use privet_core::{Error, Result, TableDelta, TableIdentity, TableShape};
use privet_kernels::swap_or_not::{MAX_BITS, phases};

/// The smallest segments by default.
const LEAST_DEFAULT_SEGMENT: u32 = 1 << 3;
/// Segments of this many cells at most: longer answers than these are hardly ever wanted.
const MAX_SEGMENT_RECORDS: u64 = 1 << 16;
/// There are at least 256 segments, so that a generation serves at least half as many lookups.
/// Small tables have more empties for that.
const LEAST_SEGMENTS_LOG2: u32 = 8;

/// The streamed table comes in pieces of about this many bytes.
const PIECE_BYTES: u64 = 1 << 16;

/// The cells, and how they are cut into segments.
///
/// There are `C = 2^k` cells: at least twice as many as records, so `C/2` of them or more are empty
/// at first. A segment has `T` of them, a power of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarmonyParameters {
    shape: TableShape,
    cells_log2: u32,
    segment_log2: u32,
    pieces: Partitions,
}

impl HarmonyParameters {
    /// The default: the power of two next to `√N/64` cells in a segment, at least 8. (Next: by
    /// factors, and the smaller one if both are as near.)
    ///
    /// # Errors
    /// As [`with_segment_records`](Self::with_segment_records).
    pub fn new(shape: TableShape) -> Result<Self> {
        // T is next to √N/64 if N lies between 2^11·T² and 2^13·T².
        let fits = |segment: u32| shape.records() <= u64::from(segment).pow(2) << 13;
        let powers = (0..).map(|log2| LEAST_DEFAULT_SEGMENT << log2);
        let segment = powers.take(16).find(|segment| fits(*segment));
        Self::with_segment_records(shape, segment.unwrap_or(1 << 16).into())
    }

    /// The given number of cells in a segment, and so of records in an answer. More of them mean
    /// less state and fewer lookups in a generation; answers and work grow.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers, if it is no power of
    /// two from 2 to 2^16, the table has more than 2^31 records, or the client's state would be too
    /// large.
    pub fn with_segment_records(shape: TableShape, segment_records: u64) -> Result<Self> {
        if !segment_records.is_power_of_two()
            || !(2..=MAX_SEGMENT_RECORDS).contains(&segment_records)
        {
            return Err(Error::api_misuse(format!(
                "a segment has a power of two of records, from 2 to {MAX_SEGMENT_RECORDS}, not {segment_records}"
            )));
        }
        let segment_log2 = segment_records.trailing_zeros();
        let records_log2 = u64::BITS - (shape.records() - 1).leading_zeros();
        let cells_log2 = (records_log2 + 1).max(segment_log2 + LEAST_SEGMENTS_LOG2);
        if cells_log2 > MAX_BITS {
            return Err(Error::api_misuse(format!(
                "the table has {} records; harmony's proof covers {}",
                shape.records(),
                1u64 << (MAX_BITS - 1)
            )));
        }
        let piece_records = (PIECE_BYTES / shape.record_len()).clamp(1, MAX_PARTITION_RECORDS);
        let pieces = Partitions::new(shape, 1 << piece_records.ilog2(), 1, 1)?;
        let parameters = Self { shape, cells_log2, segment_log2, pieces };
        let what = format!("harmony with segments of {segment_records} records");
        check_state(&what, shape, parameters.state_bytes())?;
        Ok(parameters)
    }

    /// The same with another number of cells.
    #[cfg(test)]
    pub(super) fn with_cells_log2(self, cells_log2: u32) -> Self {
        assert!(self.shape.records() << 1 <= 1 << cells_log2, "half of the cells are empty");
        Self { cells_log2, ..self }
    }

    /// The parameters after `delta`.
    ///
    /// # Errors
    /// As [`grown`](Self::grown), and [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the
    /// delta is for a table of another shape.
    pub(super) fn grown_by(&self, delta: &TableDelta) -> Result<Self> {
        delta.check_before(self.shape)?;
        self.grown(delta.shape_after())
    }

    /// The parameters of the same table with other contents. A table with more records needs new
    /// hints: which value is which empty follows from the number of records.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table has another shape.
    pub(super) fn grown(&self, after: TableShape) -> Result<Self> {
        check_grown(self.shape, after, self.shape.records())?;
        Ok(self.clone())
    }

    /// The table's shape.
    pub fn shape(&self) -> TableShape {
        self.shape
    }

    /// Records, `N`: at most 2^31, and at most half the number of cells.
    pub fn records(&self) -> u32 {
        self.shape.records() as u32
    }

    /// The base-two logarithm of the number of cells, `k`.
    pub fn cells_log2(&self) -> u32 {
        self.cells_log2
    }

    /// Cells, `C`.
    pub fn cells(&self) -> u64 {
        1 << self.cells_log2
    }

    /// Cells in a segment, `T`, which is also the number of records in an answer: a power of two.
    pub fn segment_records(&self) -> u32 {
        1 << self.segment_log2
    }

    /// The base-two logarithm of [`segment_records`](Self::segment_records).
    pub(super) fn segment_log2(&self) -> u32 {
        self.segment_log2
    }

    /// Segments, `M`.
    pub fn segments(&self) -> u32 {
        1 << (self.cells_log2 - self.segment_log2)
    }

    /// Lookups that a generation serves, `M/2`: afterwards half of the permutation has been used.
    /// There are empties enough, because at least half of the cells are empty at first.
    pub fn lookups(&self) -> u32 {
        self.segments() / 2
    }

    /// Bits of a value in a query: a record's index, or `N` for an empty.
    pub fn value_bits(&self) -> u32 {
        u64::BITS - self.shape.records().leading_zeros()
    }

    /// Bytes of a record.
    pub fn record_len(&self) -> usize {
        self.shape.record_len() as usize
    }

    /// Bytes of an answer: a record for each cell of a segment.
    pub(crate) fn answer_len(&self) -> usize {
        self.segment_records() as usize * self.record_len()
    }

    /// Records of the shortcuts to records that were looked up: see `history.rs`.
    pub(super) fn shortcuts(&self) -> u32 {
        (self.segments() / 16).max(16)
    }

    /// AES blocks for one value of the permutation.
    pub(super) fn blocks_per_value(&self) -> u64 {
        phases(self.cells_log2).into()
    }

    /// The streamed table as pieces, in each of which the client permutes all indices at once.
    pub(super) fn pieces(&self) -> &Partitions {
        &self.pieces
    }

    /// What a client keeps of a generation, in bytes: a record for each segment, four bytes for
    /// when it was used, two (on average) for the order in which they were, and one for shortcuts.
    pub fn state_bytes(&self) -> u64 {
        u64::from(self.segments()) * (self.shape.record_len() + 4)
            + 4 * u64::from(self.lookups())
            + 16 * u64::from(self.shortcuts())
    }
}

impl Parameters for HarmonyParameters {
    /// Eight bytes: the number of records in a segment, little-endian. Everything else follows from
    /// the table's shape.
    fn encode(&self) -> Vec<u8> {
        u64::from(self.segment_records()).to_le_bytes().to_vec()
    }

    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self> {
        announced("the parameters of harmony", bytes, |segment_records| {
            Self::with_segment_records(identity.shape, segment_records)
        })
    }
}
