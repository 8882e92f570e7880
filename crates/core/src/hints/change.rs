//! The changes of a generation of hints: the journal's records of the schemes that share a
//! [`HintTable`](super::HintTable).

use crate::codec::Reader;
use crate::{Error, Result, TableDelta};
use privet_kernels::taint::declassify;
use zeroize::Zeroizing;

/// One state change.
pub enum StateChange {
    /// A reservation.
    Exchange(Exchange),
    /// The values that follow from the answers to a reservation's queries.
    Answer {
        /// Which reservation.
        id: u64,
        /// One record or more. The scheme defines how many, and what they are.
        values: Zeroizing<Vec<u8>>,
    },
    /// Edits of the table.
    Delta(TableDelta),
}

/// A hint goes out of use, and another takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The reservation.
    pub id: u64,
    /// The id of the hint that is used. `None`: no hint contained the record.
    pub hint: Option<u32>,
    /// The number of the hint that takes its place. The scheme defines how hints are numbered.
    pub successor: u32,
    /// The wanted record, which the successor will contain.
    pub index: u64,
    /// Which half of the query is the real one, for schemes whose queries have halves.
    pub real_half: bool,
    /// Other data of the scheme.
    pub note: u64,
}

const EXCHANGE: u8 = 1;
const ANSWER: u8 = 2;
const DELTA: u8 = 3;

impl StateChange {
    /// `1 ‖ id (u64) ‖ hint (u32, all ones: none) ‖ successor (u32) ‖ index (u64) ‖ real half (u8)
    /// ‖ note (u64)`, `2 ‖ id (u64) ‖ values` or `3 ‖ delta`, as [`TableDelta::write`] says.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let room = match self {
            StateChange::Exchange(_) => 34,
            StateChange::Answer { values, .. } => 9 + values.len(),
            StateChange::Delta(delta) => 1 + delta.encoded_len(),
        };
        // Reserves room for everything at once: a vector that grows would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(room));
        match self {
            StateChange::Exchange(exchange) => {
                bytes.push(EXCHANGE);
                bytes.extend(exchange.id.to_le_bytes());
                bytes.extend(exchange.hint.unwrap_or(u32::MAX).to_le_bytes());
                bytes.extend(exchange.successor.to_le_bytes());
                bytes.extend(exchange.index.to_le_bytes());
                bytes.push(u8::from(exchange.real_half));
                bytes.extend(exchange.note.to_le_bytes());
            }
            StateChange::Answer { id, values } => {
                bytes.push(ANSWER);
                bytes.extend(id.to_le_bytes());
                bytes.extend_from_slice(values);
            }
            StateChange::Delta(delta) => {
                bytes.push(DELTA);
                delta.write(&mut bytes);
            }
        }
        bytes
    }

    /// Reads a change, for a table with records of `record_len` bytes and answers whose values have
    /// `values_len` bytes.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](crate::Blame::Corrupted) if it is not one.
    pub fn decode(bytes: &[u8], record_len: usize, values_len: usize) -> Result<Self> {
        Self::read(bytes, record_len, values_len).map_err(|error| {
            Error::corrupted("the journal of used hints holds a change that does not parse")
                .caused_by(error)
        })
    }

    fn read(bytes: &[u8], record_len: usize, values_len: usize) -> Result<Self> {
        let mut reader = Reader::new("a change of hints", bytes);
        let change = match reader.u8()? {
            EXCHANGE => StateChange::Exchange(Exchange {
                id: reader.u64()?,
                hint: {
                    let hint = reader.u32()?;
                    // A hint is missing with negligible probability, so this reveals nothing:
                    // see the schemes.
                    declassify(hint != u32::MAX).then_some(hint)
                },
                successor: reader.u32()?,
                index: reader.u64()?,
                real_half: {
                    let half = reader.u8()?;
                    if declassify(half > 1) {
                        return Err(Error::invalid_message("there are two halves, 0 and 1"));
                    }
                    half == 1
                },
                note: reader.u64()?,
            }),
            ANSWER => StateChange::Answer {
                id: reader.u64()?,
                values: Zeroizing::new(reader.bytes(values_len)?.to_vec()),
            },
            DELTA => StateChange::Delta(TableDelta::read(&mut reader, record_len as u64)?),
            other => {
                return Err(Error::invalid_message(format!("there is no change of kind {other}")));
            }
        };
        reader.finish()?;
        Ok(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Blame, TableShape};
    use proptest::prelude::*;

    const RECORD_LEN: usize = 5;

    fn shape(records: u64) -> TableShape {
        TableShape::new(records, RECORD_LEN as u64).unwrap()
    }

    proptest! {
        #[test]
        fn changes_survive_being_written_down(
            id in any::<u64>(),
            hint in proptest::option::of(0..u32::MAX),
            successor in any::<u32>(),
            index in any::<u64>(),
            real_half in any::<bool>(),
            note in any::<u64>(),
            edits in proptest::collection::vec((0..107u64, any::<[u8; 5]>()), 0..5),
            commitments in proptest::collection::vec(any::<u8>(), 0..5),
        ) {
            let exchange = Exchange { id, hint, successor, index, real_half, note };
            let encoded = StateChange::Exchange(exchange).encode();
            let StateChange::Exchange(decoded) = StateChange::decode(&encoded, RECORD_LEN, 10).unwrap() else { panic!() };
            prop_assert_eq!(decoded, exchange);

            let values = Zeroizing::new(vec![7; 10]);
            let encoded = StateChange::Answer { id, values }.encode();
            let StateChange::Answer { id: found, values } = StateChange::decode(&encoded, RECORD_LEN, 10).unwrap() else { panic!() };
            prop_assert_eq!((found, values.as_slice()), (id, [7; 10].as_slice()));

            let edits = edits.into_iter().map(|(index, difference)| (index, difference.to_vec())).collect();
            let delta = TableDelta::growing(shape(100), shape(107), edits, commitments).unwrap();
            let encoded = StateChange::Delta(delta.clone()).encode();
            let StateChange::Delta(found) = StateChange::decode(&encoded, RECORD_LEN, 10).unwrap() else { panic!() };
            prop_assert_eq!(found, delta);
            for cut in 0..encoded.len() {
                let error = StateChange::decode(&encoded[..cut], RECORD_LEN, 10).err().unwrap();
                prop_assert_eq!(error.blame(), Blame::Corrupted);
            }
        }

        #[test]
        fn bytes_that_are_no_change_are_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = StateChange::decode(&bytes, RECORD_LEN, 10);
        }
    }

    #[test]
    fn a_change_of_many_edits_allocates_no_more_than_it_has_bytes() {
        let mut bytes = vec![DELTA];
        bytes.extend([1, 1, u64::MAX].map(u64::to_le_bytes).as_flattened());
        let error = StateChange::decode(&bytes, RECORD_LEN, 10).err().unwrap();
        assert_eq!(error.blame(), Blame::Corrupted);
    }
}
