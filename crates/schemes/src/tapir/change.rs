//! What changes a generation: the journal's records of this scheme. Lookups and their answers are those of SinglePass; two kinds come on top.

use super::{Form, TapirParameters};
use privet_core::codec::Reader;
use privet_core::{Edit, Error, Result, TableDelta, TableShape};
use zeroize::Zeroizing;

/// One state change, as it is read.
pub(super) enum Change<'a> {
    /// One of SinglePass: a reservation, or what verified answers bring.
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

    /// What a user is told.
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

/// `2 ‖ records before (u64) ‖ records after (u64) ‖ number of edits (u32) ‖ for each: index (u64) ‖ difference ‖ commitments`
pub(super) fn encode_update(delta: &TableDelta) -> Zeroizing<Vec<u8>> {
    let record_len = delta.shape().record_len() as usize;
    let room = 20 + delta.edits().len() * (8 + record_len) + delta.commitments().len();
    let mut bytes = with_room(UPDATE, room);
    bytes.extend(delta.shape().records().to_le_bytes());
    bytes.extend(delta.shape_after().records().to_le_bytes());
    bytes.extend((delta.edits().len() as u32).to_le_bytes());
    for edit in delta.edits() {
        bytes.extend(edit.index.to_le_bytes());
        bytes.extend_from_slice(&edit.difference);
    }
    bytes.extend_from_slice(delta.commitments());
    bytes
}

/// `3 ‖ reason (u8)`
pub(super) fn encode_end(reason: Reason) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(vec![END, reason.code()])
}

/// A change's first byte, and room for all of it at once: growing would leave copies behind.
fn with_room(kind: u8, room: usize) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(1 + room));
    bytes.push(kind);
    bytes
}

impl<'a> Change<'a> {
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
            PASS => Change::Pass(reader.bytes(reader.remaining())?),
            UPDATE => {
                let before = TableShape::new(reader.u64()?, record_len)?;
                let after = TableShape::new(reader.u64()?, record_len)?;
                let count = reader.u32()?;
                let mut edits = Vec::new();
                for _ in 0..count {
                    let index = reader.u64()?;
                    let difference = reader.bytes(record_len as usize)?.to_vec();
                    edits.push(Edit { index, difference });
                }
                let commitments = reader.bytes(reader.remaining())?.to_vec();
                Change::Update(TableDelta::growing(before, after, edits, commitments)?)
            }
            END => Change::End(Reason::from_code(reader.u8()?)?),
            other => {
                return Err(Error::invalid_message(format!("there is no change of kind {other}")));
            }
        };
        reader.finish()?;
        Ok(change)
    }
}
