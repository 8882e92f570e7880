//! A generation of hints as it is written down: everything a client needs to go on.

use super::DummySubsetsParameters;
use crate::stored_hints::{blank, read};
use privet_core::hints::{HintTable, LiveHint};
use privet_core::{Error, Result};
use zeroize::{Zeroize as _, Zeroizing};

const VERSION: u32 = 1;
const NONE: u32 = u32::MAX;

/// `version (u32) ‖ key (16) ‖ next id (u32) ‖ parities ‖ ids (u32 each, all ones: no hint in that
/// row) ‖ cutoffs (u32 each) ‖ extra records (all ones: none) ‖ above (a bit each)`
///
/// An extra record takes four bytes in tables of fewer than 2^32 - 1 records, otherwise eight.
pub(super) struct Layout {
    rows: usize,
    extra_len: usize,
    pub(super) parities: usize,
    ids: usize,
    cutoffs: usize,
    extras: usize,
    above: usize,
    len: usize,
}

impl Layout {
    pub(super) fn new(parameters: &DummySubsetsParameters) -> Self {
        let rows = parameters.singles() as usize;
        let extra_len = if parameters.shape().records() < u64::from(u32::MAX) { 4 } else { 8 };
        let parities = 24;
        let ids = parities + rows * parameters.cut().record_len();
        let cutoffs = ids + 4 * rows;
        let extras = cutoffs + 4 * rows;
        let above = extras + extra_len * rows;
        Self {
            rows,
            extra_len,
            parities,
            ids,
            cutoffs,
            extras,
            above,
            len: above + rows.div_ceil(8),
        }
    }

    /// Bytes of a generation.
    pub(super) fn len(&self) -> u64 {
        self.len as u64
    }

    /// No hint in any row.
    pub(super) fn empty(&self, key: &[u8; 16], next_id: u32) -> Result<Zeroizing<Vec<u8>>> {
        let mut bytes = blank(VERSION, self.len())?;
        bytes[4..20].copy_from_slice(key);
        bytes[20..24].copy_from_slice(&next_id.to_le_bytes());
        bytes[self.ids..self.cutoffs].fill(0xff);
        bytes[self.extras..self.above].fill(0xff);
        Ok(bytes)
    }

    pub(super) fn put(&self, bytes: &mut [u8], row: usize, hint: LiveHint) {
        let LiveHint { id, cutoff, above, extra } = hint;
        bytes[self.ids + 4 * row..][..4].copy_from_slice(&id.to_le_bytes());
        bytes[self.cutoffs + 4 * row..][..4].copy_from_slice(&cutoff.to_le_bytes());
        let extra = extra.unwrap_or(u64::MAX).to_le_bytes();
        bytes[self.extras + self.extra_len * row..][..self.extra_len]
            .copy_from_slice(&extra[..self.extra_len]);
        bytes[self.above + row / 8] |= u8::from(above) << (row % 8);
    }

    fn get(&self, hints: &[u8], row: usize) -> Option<LiveHint> {
        let word = |at: usize| {
            let at = at - self.ids + 4 * row;
            u32::from_le_bytes(*hints[at..].first_chunk().unwrap_or(&[0xff; 4]))
        };
        let id = Some(word(self.ids)).filter(|id| *id != NONE)?;
        let mut extra = [0; 8];
        let found = &hints[self.extras - self.ids + self.extra_len * row..][..self.extra_len];
        extra[..self.extra_len].copy_from_slice(found);
        let none = found.iter().all(|byte| *byte == 0xff);
        let extra = (!none).then_some(u64::from_le_bytes(extra));
        let above = hints[self.above - self.ids + row / 8] >> (row % 8) & 1 == 1;
        Some(LiveHint { id, cutoff: word(self.cutoffs), above, extra })
    }

    /// Checks what it can without reading the hints: that `bytes` have the length and the version
    /// of a generation. Returns the key and the next id.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if they are not one.
    pub(super) fn check(&self, bytes: &[u8]) -> Result<([u8; 16], u32)> {
        let mut reader = read(VERSION, self.len(), bytes)?;
        let (key, next_id) = (reader.array()?, reader.u32()?);
        if next_id < self.rows as u32 {
            return Err(Error::corrupted("the stored hints have ids that are yet to come"));
        }
        Ok((key, next_id))
    }

    /// Cuts off the description of the hints. Afterwards `bytes` ends with the parities.
    pub(super) fn split_off_hints(&self, bytes: &mut Zeroizing<Vec<u8>>) -> Zeroizing<Vec<u8>> {
        let hints = Zeroizing::new(bytes[self.ids..].to_vec());
        bytes[self.ids..].zeroize();
        bytes.truncate(self.ids);
        hints
    }

    /// The hints, row by row, as [`split_off_hints`](Self::split_off_hints) cut them off.
    pub(super) fn hints<'a>(
        &'a self,
        hints: &'a [u8],
    ) -> impl ExactSizeIterator<Item = Option<LiveHint>> + 'a {
        (0..self.rows).map(|row| self.get(hints, row))
    }

    /// The state of a client between lookups.
    pub(super) fn encode(&self, table: &HintTable, next_id: u32) -> Result<Zeroizing<Vec<u8>>> {
        let mut bytes = self.empty(table.key(), next_id)?;
        let parities = self.ids - self.parities;
        bytes[self.parities..self.ids].copy_from_slice(&table.bytes()[self.parities..][..parities]);
        for row in 0..table.len() {
            if let Some(hint) = table.hint(row) {
                self.put(&mut bytes, row as usize, hint);
            }
        }
        Ok(bytes)
    }
}
