//! Query and answer.
//!
//! A query names `T` places to read, each a record or none. The answer has `T` records, with zeros
//! where a query names none. So both always have the same size: how many places are empty is
//! public, but nobody saves the bytes.

use super::HarmonyParameters;
use crate::contract::Message;
use privet_core::codec::Reader;
use privet_core::hints::offsets;
use privet_core::{Error, Result};

/// For each cell of a segment a value: the index of a record, or `N`, the number of records, for an
/// empty.
///
/// Encoding: `T` values of `⌈log2(N + 1)⌉` bits, from the lowest bit of each byte on, padded with
/// zeros to whole bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarmonyQuery {
    pub(crate) values: Vec<u32>,
    pub(crate) value_bits: u32,
}

/// For each value of the query the record, or zeros.
pub struct HarmonyAnswer {
    /// `T` records.
    pub(crate) records: Vec<u8>,
}

impl Message<HarmonyParameters> for HarmonyQuery {
    fn encoded_len(parameters: &HarmonyParameters) -> usize {
        offsets::packed_len(parameters.segment_records() as usize, parameters.value_bits())
    }

    fn encode(&self) -> Vec<u8> {
        let len = offsets::packed_len(self.values.len(), self.value_bits);
        let mut bytes = Vec::with_capacity(len);
        offsets::pack(&self.values, self.value_bits, &mut bytes);
        bytes
    }

    fn decode(parameters: &HarmonyParameters, bytes: &[u8]) -> Result<Self> {
        let packed = Reader::all("a query of harmony", bytes, Self::encoded_len(parameters))?;
        let (count, value_bits) = (parameters.segment_records() as usize, parameters.value_bits());
        let values: Vec<u32> = offsets::unpack(packed, count, value_bits)?;
        let records = parameters.records();
        if values.iter().any(|value| *value > records) {
            return Err(Error::invalid_message(format!(
                "a query names records by their indices, below {records}, and nothing by {records}"
            )));
        }
        Ok(Self { values, value_bits })
    }
}

impl Message<HarmonyParameters> for HarmonyAnswer {
    fn encoded_len(parameters: &HarmonyParameters) -> usize {
        parameters.answer_len()
    }

    fn encode(&self) -> Vec<u8> {
        self.records.clone()
    }

    fn decode(parameters: &HarmonyParameters, bytes: &[u8]) -> Result<Self> {
        let records =
            Reader::all("an answer of harmony", bytes, Self::encoded_len(parameters))?.to_vec();
        Ok(Self { records })
    }
}
