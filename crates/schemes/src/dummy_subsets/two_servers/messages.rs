//! The client's messages to either server, before and with a lookup.

use super::{DummySubsetsParameters, ONLINE};
use crate::contract::{Message, QueryMessage, Role};
use crate::dummy_subsets::DummySubsetsQuery;
use privet_core::codec::Reader;
use privet_core::{Error, Result, Secret};

/// About how many bytes the parities of one request have. Each request costs the offline server a
/// pass over its table.
const REPLY_BYTES: usize = 1 << 20;
/// The number of hints of a request is a multiple of this, because as many share a block of the
/// pseudorandom function.
const HINT_BLOCK: usize = 8;

/// Hints of each request. The last request may ask for some more than are needed; they are not
/// used.
pub(super) fn hints_per_request(parameters: &DummySubsetsParameters) -> usize {
    let hints = REPLY_BYTES / parameters.cut().record_len() / HINT_BLOCK * HINT_BLOCK;
    hints.max(HINT_BLOCK).min(parameters.singles() as usize)
}

/// How many requests it takes to have all hints.
pub(super) fn requests(parameters: &DummySubsetsParameters) -> u64 {
    u64::from(parameters.singles()).div_ceil(hints_per_request(parameters) as u64)
}

/// A request of the offline phase: the parities of the hints of consecutive ids.
///
/// Encoding: `key (16) ‖ first id (u32) ‖ cutoffs (u32 each)`.
pub struct HintsRequest {
    pub(super) key: Secret<[u8; 16]>,
    /// A multiple of 8.
    pub(super) first_id: u32,
    /// One for each hint.
    pub(super) cutoffs: Vec<u32>,
}

/// One record for each hint: its parity.
pub struct HintsReply {
    pub(super) parities: Vec<u8>,
}

/// Asks for both parities of a pair: the XOR of the pair's records in the partitions below its
/// cutoff, and in the others.
///
/// Encoding: `key (16) ‖ id (u32) ‖ cutoff (u32)`.
pub struct Replenishment {
    pub(super) key: Secret<[u8; 16]>,
    pub(super) id: u32,
    pub(super) cutoff: u32,
}

/// A query to either server.
pub enum TwoServersQuery {
    /// To the offline server.
    Replenish(Replenishment),
    /// To the online server.
    Subsets(DummySubsetsQuery),
}

impl Message<DummySubsetsParameters> for HintsRequest {
    fn encoded_len(parameters: &DummySubsetsParameters) -> usize {
        20 + 4 * hints_per_request(parameters)
    }

    fn encode(&self) -> Vec<u8> {
        // Reserves room for everything at once: a vector that grows would leave copies behind.
        let mut bytes = Vec::with_capacity(20 + 4 * self.cutoffs.len());
        bytes.extend(self.key.expose());
        bytes.extend(self.first_id.to_le_bytes());
        self.cutoffs.iter().for_each(|cutoff| bytes.extend(cutoff.to_le_bytes()));
        bytes
    }

    fn decode(parameters: &DummySubsetsParameters, bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("a request for hints", bytes);
        let key = Secret::new(reader.array()?);
        let first_id = reader.u32()?;
        let count = hints_per_request(parameters);
        let cutoffs = reader.words(count)?;
        reader.finish()?;
        if !first_id.is_multiple_of(8) || first_id.checked_add(count as u32).is_none() {
            return Err(Error::invalid_message(
                "a request for hints begins with an id that is a multiple of 8, and ends below 2^32",
            ));
        }
        Ok(Self { key, first_id, cutoffs })
    }
}

impl Message<DummySubsetsParameters> for HintsReply {
    fn encoded_len(parameters: &DummySubsetsParameters) -> usize {
        hints_per_request(parameters) * parameters.cut().record_len()
    }

    fn encode(&self) -> Vec<u8> {
        self.parities.clone()
    }

    fn decode(parameters: &DummySubsetsParameters, bytes: &[u8]) -> Result<Self> {
        let parities =
            Reader::all("a reply with hints", bytes, Self::encoded_len(parameters))?.to_vec();
        Ok(Self { parities })
    }
}

impl QueryMessage<DummySubsetsParameters> for TwoServersQuery {
    fn query_len(parameters: &DummySubsetsParameters, role: Role) -> usize {
        if role == ONLINE { DummySubsetsQuery::encoded_len(parameters) } else { 24 }
    }

    fn encode_query(&self) -> Vec<u8> {
        match self {
            TwoServersQuery::Subsets(query) => query.encode(),
            TwoServersQuery::Replenish(Replenishment { key, id, cutoff }) => {
                let mut bytes = Vec::with_capacity(24);
                bytes.extend(key.expose());
                bytes.extend(id.to_le_bytes());
                bytes.extend(cutoff.to_le_bytes());
                bytes
            }
        }
    }

    fn decode_query(parameters: &DummySubsetsParameters, role: Role, bytes: &[u8]) -> Result<Self> {
        if role == ONLINE {
            return DummySubsetsQuery::decode(parameters, bytes).map(TwoServersQuery::Subsets);
        }
        let mut reader = Reader::new("a request to replenish a hint", bytes);
        let key = Secret::new(reader.array()?);
        let (id, cutoff) = (reader.u32()?, reader.u32()?);
        reader.finish()?;
        Ok(TwoServersQuery::Replenish(Replenishment { key, id, cutoff }))
    }
}
