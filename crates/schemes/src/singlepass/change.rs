//! The state changes, as the journal has them.

use super::SinglePassParameters;
use super::draws::Seed;
use crate::in_order::{Change, encode_answers, encode_lookup};
use privet_core::codec::Reader;
use privet_core::{RecordIndex, Result, Secret};
use zeroize::Zeroizing;

/// One state change.
pub(super) type SinglePassChange<'a> = Change<'a, SinglePassReservation>;

/// A reservation.
pub(super) struct SinglePassReservation {
    /// Its number.
    pub(super) id: u64,
    /// The record that is wanted.
    pub(super) index: RecordIndex,
    /// The seed from which all random numbers of the lookup are drawn.
    pub(super) seed: Seed,
}

impl SinglePassReservation {
    /// `index (u64) ‖ seed (32)`, after the number.
    pub(super) fn encode(&self) -> Zeroizing<Vec<u8>> {
        encode_lookup(self.id, 40, |bytes| {
            bytes.extend(self.index.expose().to_le_bytes());
            bytes.extend(self.seed.expose());
        })
    }

    fn read(reader: &mut Reader<'_>, parameters: &SinglePassParameters) -> Result<Self> {
        Ok(Self {
            id: reader.u64()?,
            index: RecordIndex::new(reader.u64()?, parameters.shape())?,
            seed: Secret::new(reader.array()?),
        })
    }
}

/// The values that follow from two answers: `others ‖ differences`. The others are the XOR of the
/// records that server 1 sent, without the decoy: one record. The differences are, for each
/// partition, the XOR of the records that the two servers sent: `Q` records.
pub(super) fn encode_values(
    id: u64,
    others: &[u8],
    fresh: &[u8],
    used: &[u8],
) -> Zeroizing<Vec<u8>> {
    let differences = fresh.iter().zip(used).map(|(fresh, used)| fresh ^ used);
    encode_answers(id, others.len() + used.len(), others.iter().copied().chain(differences))
}

/// Reads a change.
///
/// # Errors
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it does not parse.
pub(super) fn decode<'a>(
    parameters: &SinglePassParameters,
    bytes: &'a [u8],
) -> Result<SinglePassChange<'a>> {
    let values_len = parameters.record_len() + parameters.answer_len();
    Change::decode(bytes, values_len, parameters.shape().record_len(), |reader| {
        SinglePassReservation::read(reader, parameters)
    })
}
