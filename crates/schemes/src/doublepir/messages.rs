//! Query and answer: bare words, their numbers fixed by the parameters.

use super::DoublePirParameters;
use crate::contract::Message;
use privet_core::Result;
use privet_core::codec::Reader;
use privet_kernels::memory::little_endian_bytes;

/// Two encrypted unit vectors, one little-endian 32-bit word for each column of either matrix: `4 ·
/// (columns + records_per_column)` bytes.
pub struct DoublePirQuery {
    /// Chooses the column of the table.
    pub(super) column: Vec<u32>,
    /// Chooses the record within the column.
    pub(super) record: Vec<u32>,
}

/// What is left of the table: little-endian 32-bit words.
pub struct DoublePirAnswer {
    /// The second matrix times the query: the masked bytes of the record's rows of the first hint,
    /// `4096 · record_len` words.
    pub(super) hint_rows: Vec<u32>,
    /// The first product, in one of two forms. As it is: `rows` words. Folded: one record has `4 ·
    /// record_len` bytes in it; for each of these first a row of 1024 words, its share of the hint,
    /// and then for each a word, the masked byte.
    pub(super) first: Vec<u32>,
}

impl Message<DoublePirParameters> for DoublePirQuery {
    fn encoded_len(parameters: &DoublePirParameters) -> usize {
        4 * (parameters.columns() + parameters.records_per_column()) as usize
    }

    fn encode(&self) -> Vec<u8> {
        [little_endian_bytes(&self.column), little_endian_bytes(&self.record)].concat()
    }

    fn decode(parameters: &DoublePirParameters, bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("a DoublePIR query", bytes);
        let column = reader.words(parameters.columns() as usize)?;
        let record = reader.words(parameters.records_per_column() as usize)?;
        reader.finish()?;
        Ok(Self { column, record })
    }
}

impl Message<DoublePirParameters> for DoublePirAnswer {
    fn encoded_len(parameters: &DoublePirParameters) -> usize {
        4 * (parameters.second_rows() + parameters.first_words()) as usize
    }

    fn encode(&self) -> Vec<u8> {
        [little_endian_bytes(&self.hint_rows), little_endian_bytes(&self.first)].concat()
    }

    fn decode(parameters: &DoublePirParameters, bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("a DoublePIR answer", bytes);
        let hint_rows = reader.words(parameters.second_rows() as usize)?;
        let first = reader.words(parameters.first_words() as usize)?;
        reader.finish()?;
        Ok(Self { hint_rows, first })
    }
}
