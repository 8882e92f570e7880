//! Request and reply of the offline phase, query and answer.

use super::SinglePassParameters;
use super::draws::Seed;
use crate::contract::Message;
use privet_core::codec::Reader;
use privet_core::{Error, Result, Secret};

/// The seed of a client's permutations: 32 uniform bytes, for server 0 alone.
pub struct SinglePassRequest {
    pub(crate) seed: Seed,
}

/// All hints, in order.
pub struct SinglePassReply {
    /// `M` records.
    pub(crate) hints: Vec<u8>,
}

/// One record of each partition.
///
/// Encoding: the offset of the record in its partition, two bytes each, little-endian. (Smaller
/// partitions could do with fewer bits. That would save only a few percent of the size of the
/// answer.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinglePassQuery {
    /// One for each partition, below `M`.
    pub(crate) offsets: Vec<u16>,
}

/// The records that a query names, in order.
pub struct SinglePassAnswer {
    /// `Q` records.
    pub(crate) records: Vec<u8>,
}

impl Message<SinglePassParameters> for SinglePassRequest {
    fn encoded_len(_parameters: &SinglePassParameters) -> usize {
        32
    }

    fn encode(&self) -> Vec<u8> {
        self.seed.expose().to_vec()
    }

    fn decode(_parameters: &SinglePassParameters, bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("a request for hints of SinglePass", bytes);
        let seed = Secret::new(reader.array()?);
        reader.finish()?;
        Ok(Self { seed })
    }
}

impl Message<SinglePassParameters> for SinglePassReply {
    fn encoded_len(parameters: &SinglePassParameters) -> usize {
        parameters.hint_bytes() as usize
    }

    fn encode(&self) -> Vec<u8> {
        self.hints.clone()
    }

    fn decode(parameters: &SinglePassParameters, bytes: &[u8]) -> Result<Self> {
        let hints =
            Reader::all("hints of SinglePass", bytes, Self::encoded_len(parameters))?.to_vec();
        Ok(Self { hints })
    }
}

impl Message<SinglePassParameters> for SinglePassQuery {
    fn encoded_len(parameters: &SinglePassParameters) -> usize {
        2 * parameters.partitions() as usize
    }

    fn encode(&self) -> Vec<u8> {
        self.offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect()
    }

    fn decode(parameters: &SinglePassParameters, bytes: &[u8]) -> Result<Self> {
        let (numbers, _) =
            Reader::all("a query of SinglePass", bytes, Self::encoded_len(parameters))?
                .as_chunks::<2>();
        let offsets: Vec<u16> = numbers.iter().map(|number| u16::from_le_bytes(*number)).collect();
        let records = parameters.partition_records();
        // Compares only the largest offset, so that a refusal does not show which one was too
        // large.
        if offsets.iter().max().is_some_and(|largest| u32::from(*largest) >= records) {
            return Err(Error::invalid_message(format!(
                "a query names a record beyond the {records} of a partition"
            )));
        }
        Ok(Self { offsets })
    }
}

impl Message<SinglePassParameters> for SinglePassAnswer {
    fn encoded_len(parameters: &SinglePassParameters) -> usize {
        parameters.answer_len()
    }

    fn encode(&self) -> Vec<u8> {
        self.records.clone()
    }

    fn decode(parameters: &SinglePassParameters, bytes: &[u8]) -> Result<Self> {
        let records =
            Reader::all("an answer of SinglePass", bytes, parameters.answer_len())?.to_vec();
        Ok(Self { records })
    }
}
