//! The changes of a generation: the journal's records of this scheme. Lookups and their answers are
//! those of SinglePass; there are two more kinds.

use super::{Form, TapirParameters};
use privet_core::codec::Reader;
use privet_core::{Error, Result, TableDelta};
use zeroize::Zeroizing;

/// One state change, as it is read.
pub(super) enum TapirChange<'a> {
    /// One of SinglePass: a reservation, or the values from verified answers.
    Pass(&'a [u8]),
    /// The servers' agreed update of the table.
    Update(TableDelta),
    /// The end.
    End(Reason),
}

/// Why a client has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// These servers' answers did not belong to the commitments.
    Answers { servers: [bool; 2] },
    /// The servers told different updates.
    Updates,
}

const PASS: u8 = 1;
const UPDATE: u8 = 2;
const END: u8 = 3;

impl Reason {
    fn code(self) -> u8 {
        match self {
            Reason::Answers { servers: [first, second] } => u8::from(first) | u8::from(second) << 1,
            Reason::Updates => 4,
        }
    }

    fn from_code(code: u8) -> Result<Self> {
        match code {
            1..=3 => Ok(Reason::Answers { servers: [code & 1 != 0, code & 2 != 0] }),
            4 => Ok(Reason::Updates),
            _ => Err(Error::invalid_message(format!("there is no reason {code} to end"))),
        }
    }

    /// The error for the user.
    pub(super) fn error(self) -> Error {
        let what = match self {
            Reason::Answers { servers: [true, false] } => {
                "the first server's answer does not belong to the table on which both servers had agreed"
            }
            Reason::Answers { servers: [false, true] } => {
                "the second server's answer does not belong to the table on which both servers had agreed"
            }
            Reason::Answers { .. } => {
                "neither server's answer belongs to the table on which both had agreed"
            }
            Reason::Updates => "the servers tell different updates of the same table",
        };
        Error::integrity(format!(
            "{what}: it was damaged, or a server does not tell the truth. Nothing of it was used, and these hints will never be used again; ask those who run the servers before you begin with new ones"
        ))
    }
}

/// `1 ‖ change of SinglePass`
pub(super) fn encode_pass(change: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut bytes = with_room(PASS, change.len());
    bytes.extend_from_slice(change);
    bytes
}

/// `2 ‖ delta`, as [`TableDelta::write`] says.
pub(super) fn encode_update(delta: &TableDelta) -> Zeroizing<Vec<u8>> {
    let mut bytes = with_room(UPDATE, delta.encoded_len());
    delta.write(&mut bytes);
    bytes
}

/// `3 ‖ reason (u8)`
pub(super) fn encode_end(reason: Reason) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(vec![END, reason.code()])
}

/// A change's first byte. Reserves room for the whole change: a vector that grows would leave
/// copies behind.
fn with_room(kind: u8, room: usize) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(1 + room));
    bytes.push(kind);
    bytes
}

impl<'a> TapirChange<'a> {
    /// Reads a change.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it does not parse.
    pub(super) fn decode<F: Form>(
        parameters: &TapirParameters<F>,
        bytes: &'a [u8],
    ) -> Result<Self> {
        Self::read(parameters.shape().record_len(), bytes).map_err(|error| {
            Error::corrupted("the journal of hints holds a change that does not parse")
                .caused_by(error)
        })
    }

    fn read(record_len: u64, bytes: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new("a change of hints", bytes);
        let change = match reader.u8()? {
            PASS => TapirChange::Pass(reader.bytes(reader.remaining())?),
            UPDATE => TapirChange::Update(TableDelta::read(&mut reader, record_len)?),
            END => TapirChange::End(Reason::from_code(reader.u8()?)?),
            other => {
                return Err(Error::invalid_message(format!("there is no change of kind {other}")));
            }
        };
        reader.finish()?;
        Ok(change)
    }
}
