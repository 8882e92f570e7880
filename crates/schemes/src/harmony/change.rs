//! The changes of a generation of hints: the journal's records of this scheme.

use super::HarmonyParameters;
use privet_core::codec::{Reader, words_from_bytes};
use privet_core::{Error, Result, TableDelta};
use privet_kernels::memory::little_endian_bytes;
use privet_kernels::taint::declassify;
use zeroize::Zeroizing;

/// One state change, as it is read.
pub(super) enum HarmonyChange<'a> {
    /// A reservation: a segment is used.
    Lookup(HarmonyReservation),
    /// The answer to a reservation's query.
    Answer {
        /// Which reservation.
        id: u64,
        /// `T` records as the server sent them.
        records: &'a [u8],
    },
    /// Edits of the table.
    Edits(TableDelta),
}

/// A reservation.
pub(super) struct HarmonyReservation {
    /// Its number.
    pub(super) id: u64,
    /// The cell in which the wanted record is.
    pub(super) cell: u32,
    /// What lies in the cells of its segment, in their order: indices of records, and `N` for an
    /// empty. The wanted record is among them. (What was asked for in its place is in the query,
    /// and nothing else depends on it.)
    pub(super) contents: Zeroizing<Vec<u32>>,
    /// For each of these, the segment to which it moves; [`NOWHERE`] for an empty.
    pub(super) segments: Zeroizing<Vec<u32>>,
}

/// Where an empty moves.
pub(super) const NOWHERE: u32 = u32::MAX;

const LOOKUP: u8 = 1;
const ANSWER: u8 = 2;
const EDITS: u8 = 3;

impl HarmonyReservation {
    /// `1 ‖ id (u64) ‖ cell (u32) ‖ contents (u32 each) ‖ segments (u32 each)`
    pub(super) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = with_room(LOOKUP, 12 + 4 * (self.contents.len() + self.segments.len()));
        bytes.extend(self.id.to_le_bytes());
        bytes.extend(self.cell.to_le_bytes());
        bytes.extend_from_slice(&little_endian_bytes(&self.contents));
        bytes.extend_from_slice(&little_endian_bytes(&self.segments));
        bytes
    }

    fn read(reader: &mut Reader<'_>, parameters: &HarmonyParameters) -> Result<Self> {
        let (id, cell) = (reader.u64()?, reader.u32()?);
        let contents = read_words(reader, parameters)?;
        let segments = read_words(reader, parameters)?;
        let place = cell & (parameters.segment_records() - 1);
        let records = parameters.records();
        let of_cell = (0..).zip(contents.iter()).zip(segments.iter());
        // All bits together, so that only the outcome is branched on, which is always the same.
        let wrong =
            of_cell.fold(u64::from(cell) >= parameters.cells(), |wrong, ((at, value), segment)| {
                let is_empty = *value == records;
                let moves = *segment < parameters.segments();
                let stays = *segment == NOWHERE;
                wrong
                    | (*value > records)
                    | ((at == place) & is_empty)
                    | (is_empty != stays)
                    | (is_empty == moves)
            });
        if declassify(wrong) {
            return Err(Error::invalid_message("a lookup names or moves what is not there"));
        }
        Ok(Self { id, cell, contents, segments })
    }
}

/// `2 ‖ id (u64) ‖ records`
pub(super) fn encode_answer(id: u64, records: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut bytes = with_room(ANSWER, 8 + records.len());
    bytes.extend(id.to_le_bytes());
    bytes.extend_from_slice(records);
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

fn read_words(
    reader: &mut Reader<'_>,
    parameters: &HarmonyParameters,
) -> Result<Zeroizing<Vec<u32>>> {
    let len = 4 * parameters.segment_records() as usize;
    Ok(Zeroizing::new(words_from_bytes(reader.bytes(len)?)))
}

impl<'a> HarmonyChange<'a> {
    /// Reads a change.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it does not parse.
    pub(super) fn decode(parameters: &HarmonyParameters, bytes: &'a [u8]) -> Result<Self> {
        Self::read(parameters, bytes).map_err(|error| {
            Error::corrupted("the journal of hints holds a change that does not parse")
                .caused_by(error)
        })
    }

    fn read(parameters: &HarmonyParameters, bytes: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new("a change of hints", bytes);
        let change = match reader.u8()? {
            LOOKUP => HarmonyChange::Lookup(HarmonyReservation::read(&mut reader, parameters)?),
            ANSWER => HarmonyChange::Answer {
                id: reader.u64()?,
                records: {
                    let len = parameters.segment_records() as usize * parameters.record_len();
                    reader.bytes(len)?
                },
            },
            EDITS => {
                let record_len = parameters.shape().record_len();
                HarmonyChange::Edits(TableDelta::read(&mut reader, record_len)?)
            }
            other => {
                return Err(Error::invalid_message(format!("there is no change of kind {other}")));
            }
        };
        reader.finish()?;
        Ok(change)
    }
}
