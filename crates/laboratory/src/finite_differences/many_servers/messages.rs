//! Query and answer: a point, and the entries around it.

use super::ManyServersParameters;
use privet_core::codec::Reader;
use privet_core::{Error, Result};
use privet_schemes::contract::Message;
use zeroize::Zeroizing;

/// A point z, as the number `Σ_j z_j · q^j` in eight bytes, little-endian. For one server alone it
/// is uniform; any two together reveal the index.
pub struct ManyServersQuery {
    pub(super) point: Zeroizing<u64>,
}

/// The entries at `z + 1_U` for all words U of the ball, in ascending order of U. Erased when
/// dropped: the answers of all servers together give the record.
pub struct ManyServersAnswer {
    pub(super) entries: Zeroizing<Vec<u8>>,
}

impl Message<ManyServersParameters> for ManyServersQuery {
    fn encoded_len(_parameters: &ManyServersParameters) -> usize {
        size_of::<u64>()
    }

    fn encode(&self) -> Vec<u8> {
        self.point.to_le_bytes().into()
    }

    fn decode(parameters: &ManyServersParameters, bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("a query of finite differences with many servers", bytes);
        let point = Zeroizing::new(reader.u64()?);
        reader.finish()?;
        if *point >= parameters.points() {
            return Err(Error::invalid_message(format!(
                "a query of finite differences with many servers names a point that does not exist: there are {}",
                parameters.points()
            )));
        }
        Ok(Self { point })
    }
}

impl Message<ManyServersParameters> for ManyServersAnswer {
    fn encoded_len(parameters: &ManyServersParameters) -> usize {
        usize::try_from(parameters.answer_bytes()).unwrap_or(usize::MAX)
    }

    fn encode(&self) -> Vec<u8> {
        self.entries.to_vec()
    }

    fn decode(parameters: &ManyServersParameters, bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("an answer of finite differences with many servers", bytes);
        let entries = Zeroizing::new(reader.bytes(Self::encoded_len(parameters))?.to_vec());
        reader.finish()?;
        let packings = parameters.packing().packings();
        let largest = entries.iter().fold(0, |largest, byte| *byte.max(&largest));
        if u32::from(largest) >= packings {
            return Err(Error::invalid_message(format!(
                "an answer of finite differences with many servers has a byte that holds no symbols of a field of {} elements: it would have to be below {packings}",
                parameters.field()
            )));
        }
        Ok(Self { entries })
    }
}
