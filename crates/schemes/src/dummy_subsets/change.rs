//! What changes a generation of hints: the journal's records of this scheme.

use privet_core::codec::Reader;
use privet_core::{Error, Result};
use zeroize::Zeroizing;

/// One state change.
pub(crate) enum Change {
    /// A reservation.
    Exchange(Exchange),
    /// The answer to a reservation's query: the XOR of its real half.
    Answer {
        /// Which reservation.
        id: u64,
        /// One record.
        sum: Zeroizing<Vec<u8>>,
    },
}

/// A hint goes out of use, and half of a pair takes its place.
pub(crate) struct Exchange {
    /// The reservation.
    pub(crate) id: u64,
    /// The hint that is used. `None`: no hint contained the record.
    pub(crate) hint: Option<u32>,
    /// The pair, counted from 0.
    pub(crate) pair: u32,
    /// The record that was wanted, and that the pair's half will contain.
    pub(crate) index: u64,
    /// Which half of the query is the real one.
    pub(crate) real_half: bool,
}

const EXCHANGE: u8 = 1;
const ANSWER: u8 = 2;

impl Change {
    /// `1 ‖ id (u64) ‖ hint (u32, all ones: none) ‖ pair (u32) ‖ index (u64) ‖ real half (u8)` or `2 ‖ id (u64) ‖ sum`
    pub(crate) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let room = match self {
            Change::Exchange(_) => 26,
            Change::Answer { sum, .. } => 9 + sum.len(),
        };
        // Room for all of it at once: growing would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(room));
        match self {
            Change::Exchange(Exchange { id, hint, pair, index, real_half }) => {
                bytes.push(EXCHANGE);
                bytes.extend(id.to_le_bytes());
                bytes.extend(hint.unwrap_or(u32::MAX).to_le_bytes());
                bytes.extend(pair.to_le_bytes());
                bytes.extend(index.to_le_bytes());
                bytes.push(u8::from(*real_half));
            }
            Change::Answer { id, sum } => {
                bytes.push(ANSWER);
                bytes.extend(id.to_le_bytes());
                bytes.extend_from_slice(sum);
            }
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8], record_len: usize) -> Result<Self> {
        Self::read(bytes, record_len).map_err(|error| {
            Error::corrupted("the journal of used hints holds a change that does not parse")
                .caused_by(error)
        })
    }

    fn read(bytes: &[u8], record_len: usize) -> Result<Self> {
        let mut reader = Reader::new("a change of hints", bytes);
        let change = match reader.u8()? {
            EXCHANGE => Change::Exchange(Exchange {
                id: reader.u64()?,
                hint: Some(reader.u32()?).filter(|hint| *hint != u32::MAX),
                pair: reader.u32()?,
                index: reader.u64()?,
                real_half: match reader.u8()? {
                    0 => false,
                    1 => true,
                    other => {
                        return Err(Error::invalid_message(format!("there is no half {other}")));
                    }
                },
            }),
            ANSWER => Change::Answer {
                id: reader.u64()?,
                sum: Zeroizing::new(reader.bytes(record_len)?.to_vec()),
            },
            other => {
                return Err(Error::invalid_message(format!("there is no change of kind {other}")));
            }
        };
        reader.finish()?;
        Ok(change)
    }
}
