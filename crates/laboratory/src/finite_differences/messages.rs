//! Query and answer: a point, and the entries around it.

use super::FiniteDifferencesParameters;
use privet_core::codec::Reader;
use privet_core::{Error, Result};
use privet_schemes::contract::Message;
use zeroize::Zeroizing;

/// A point: one bit for each variable, ⌈m/8⌉ bytes. For one server alone it is uniform; both
/// together reveal the index.
pub struct FiniteDifferencesQuery {
    pub(crate) point: Zeroizing<u64>,
    pub(crate) len: usize,
}

/// The entries at all points within the ball around a query's point, in ascending order of the
/// difference. Bits are packed, the first into the lowest bit of a byte. Erased when dropped: two
/// answers together give the record.
pub struct FiniteDifferencesAnswer {
    pub(crate) entries: Zeroizing<Vec<u8>>,
}

impl Message<FiniteDifferencesParameters> for FiniteDifferencesQuery {
    fn encoded_len(parameters: &FiniteDifferencesParameters) -> usize {
        parameters.query_len()
    }

    fn encode(&self) -> Vec<u8> {
        self.point.to_le_bytes()[..self.len].to_vec()
    }

    fn decode(parameters: &FiniteDifferencesParameters, bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("a query of finite differences", bytes);
        let given = reader.bytes(parameters.query_len())?;
        reader.finish()?;
        let mut point = Zeroizing::new([0; 8]);
        point[..given.len()].copy_from_slice(given);
        let point = Zeroizing::new(u64::from_le_bytes(*point));
        if *point >> parameters.variables() != 0 {
            return Err(Error::invalid_message(
                "a query of finite differences has bits for variables that do not exist",
            ));
        }
        Ok(Self { point, len: parameters.query_len() })
    }
}

impl Message<FiniteDifferencesParameters> for FiniteDifferencesAnswer {
    fn encoded_len(parameters: &FiniteDifferencesParameters) -> usize {
        // A length beyond the address space is refused later, with all other messages that are too
        // long.
        usize::try_from(parameters.answer_bytes()).unwrap_or(usize::MAX)
    }

    fn encode(&self) -> Vec<u8> {
        self.entries.to_vec()
    }

    fn decode(parameters: &FiniteDifferencesParameters, bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("an answer of finite differences", bytes);
        let entries = Zeroizing::new(reader.bytes(Self::encoded_len(parameters))?.to_vec());
        reader.finish()?;
        let used = parameters.ball().count() % 8;
        if parameters.one_bit() && used != 0 && entries.last().is_some_and(|last| last >> used != 0)
        {
            return Err(Error::invalid_message(
                "an answer of finite differences has bits after its last",
            ));
        }
        Ok(Self { entries })
    }
}
