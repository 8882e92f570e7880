//! The changes of a generation of hints: the journal's records of this scheme.

use super::SinglePassParameters;
use super::draws::Seed;
use privet_core::codec::Reader;
use privet_core::{Error, RecordIndex, Result, Secret, TableDelta};
use zeroize::Zeroizing;

/// One state change, as it is read.
pub(super) enum SinglePassChange<'a> {
    /// A reservation: the numbers that the query shows are shuffled in again.
    Lookup(SinglePassReservation),
    /// The values from the answers to a reservation's queries.
    Answers {
        /// Which reservation.
        id: u64,
        /// The values.
        brought: Brought<'a>,
    },
    /// Edits of the table.
    Edits(TableDelta),
}

/// A reservation.
pub(super) struct SinglePassReservation {
    /// Its number.
    pub(super) id: u64,
    /// The record that is wanted.
    pub(super) index: RecordIndex,
    /// The seed from which all random numbers of the lookup are drawn.
    pub(super) seed: Seed,
}

/// The values that follow from two answers.
#[derive(Clone, Copy)]
pub(super) struct Brought<'a> {
    /// The XOR of the records that server 1 sent, without the decoy: one record.
    pub(super) others: &'a [u8],
    /// For each partition, the XOR of the records that the two servers sent: `Q` records.
    pub(super) differences: &'a [u8],
}

const LOOKUP: u8 = 1;
const ANSWERS: u8 = 2;
const EDITS: u8 = 3;

impl SinglePassReservation {
    /// `1 ‖ id (u64) ‖ index (u64) ‖ seed (32)`
    pub(super) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = with_room(LOOKUP, 48);
        bytes.extend(self.id.to_le_bytes());
        bytes.extend(self.index.expose().to_le_bytes());
        bytes.extend(self.seed.expose());
        bytes
    }
}

/// `2 ‖ id (u64) ‖ others ‖ differences`. The differences are between the records of server 0 and
/// those of server 1.
pub(super) fn encode_answers(
    id: u64,
    others: &[u8],
    fresh: &[u8],
    used: &[u8],
) -> Zeroizing<Vec<u8>> {
    let mut bytes = with_room(ANSWERS, 8 + others.len() + used.len());
    bytes.extend(id.to_le_bytes());
    bytes.extend_from_slice(others);
    bytes.extend(fresh.iter().zip(used).map(|(fresh, used)| fresh ^ used));
    bytes
}

/// `3 ‖ delta`, as [`TableDelta::write`] says.
pub(super) fn encode_edits(delta: &TableDelta) -> Zeroizing<Vec<u8>> {
    let mut bytes = with_room(EDITS, delta.encoded_len());
    delta.write(&mut bytes);
    bytes
}

/// A change's first byte. Reserves room for the whole change: a vector that grows would leave
/// copies behind.
fn with_room(kind: u8, room: usize) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(1 + room));
    bytes.push(kind);
    bytes
}

impl<'a> SinglePassChange<'a> {
    /// Reads a change.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it does not parse.
    pub(super) fn decode(parameters: &SinglePassParameters, bytes: &'a [u8]) -> Result<Self> {
        Self::read(parameters, bytes).map_err(|error| {
            Error::corrupted("the journal of hints holds a change that does not parse")
                .caused_by(error)
        })
    }

    fn read(parameters: &SinglePassParameters, bytes: &'a [u8]) -> Result<Self> {
        let (shape, record_len) = (parameters.shape(), parameters.record_len());
        let mut reader = Reader::new("a change of hints", bytes);
        let change = match reader.u8()? {
            LOOKUP => SinglePassChange::Lookup(SinglePassReservation {
                id: reader.u64()?,
                index: RecordIndex::new(reader.u64()?, shape)?,
                seed: Secret::new(reader.array()?),
            }),
            ANSWERS => SinglePassChange::Answers {
                id: reader.u64()?,
                brought: Brought {
                    others: reader.bytes(record_len)?,
                    differences: reader.bytes(parameters.answer_len())?,
                },
            },
            EDITS => SinglePassChange::Edits(TableDelta::read(&mut reader, shape.record_len())?),
            other => {
                return Err(Error::invalid_message(format!("there is no change of kind {other}")));
            }
        };
        reader.finish()?;
        Ok(change)
    }
}
