//! A reservation, as the journal has it.

use super::HarmonyParameters;
use crate::in_order::{Change, encode_lookup};
use privet_core::codec::{Reader, words_from_bytes};
use privet_core::{Error, Result};
use privet_kernels::memory::little_endian_bytes;
use privet_kernels::taint::declassify;
use zeroize::Zeroizing;

/// One state change.
pub(super) type HarmonyChange<'a> = Change<'a, HarmonyReservation>;

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

impl HarmonyReservation {
    /// `cell (u32) ‖ contents (u32 each) ‖ segments (u32 each)`, after the number.
    pub(super) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let room = 4 + 4 * (self.contents.len() + self.segments.len());
        encode_lookup(self.id, room, |bytes| {
            bytes.extend(self.cell.to_le_bytes());
            bytes.extend_from_slice(&little_endian_bytes(&self.contents));
            bytes.extend_from_slice(&little_endian_bytes(&self.segments));
        })
    }

    pub(super) fn read(reader: &mut Reader<'_>, parameters: &HarmonyParameters) -> Result<Self> {
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

fn read_words(
    reader: &mut Reader<'_>,
    parameters: &HarmonyParameters,
) -> Result<Zeroizing<Vec<u32>>> {
    let len = 4 * parameters.segment_records() as usize;
    Ok(Zeroizing::new(words_from_bytes(reader.bytes(len)?)))
}
