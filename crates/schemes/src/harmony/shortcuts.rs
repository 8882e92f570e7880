//! Where wanted records were when they were last looked up, so that walks go on from there.
//!
//! A record that is looked up moves, so its walk grows by a step. Both walks of [`History`] would
//! take time in proportion to how often their record has been looked up: the one from the record to
//! its cell, and the one from its cell back. Two small tables of fixed size end that. They are
//! filled with every lookup, and a newer record takes the place of an older one. There are eight
//! lookups to a place in a generation. So a record that is looked up often is nearly always there,
//! and one that is not has a short walk. Nobody can choose records that share a place: it follows
//! from a secret key.
//!
//! [`History`]: super::history::History

use privet_core::Secret;
use privet_kernels::taint::{admit, conceal};
use zeroize::Zeroizing;

/// No record.
const NONE: u32 = u32::MAX;

/// A record, and the cell in which it was before the segment of that cell was used.
type Known = [u32; 2];

/// Records that were looked up, by record and by cell.
pub(super) struct Shortcuts {
    /// The secret factor of a multiply-shift hash function.
    factor: Secret<[u64; 1]>,
    shift: u32,
    by_record: Zeroizing<Vec<Known>>,
    by_cell: Zeroizing<Vec<Known>>,
}

impl Shortcuts {
    /// Tables with `places` places each, a power of two; `key` is the key of the generation.
    pub(super) fn new(places: u32, key: &Secret<[u8; 32]>) -> Self {
        let derived = blake3::derive_key("privet 2026-11 harmony shortcuts", key.expose());
        let derived = Zeroizing::new(derived);
        let half = derived.first_chunk().map_or(0, |half| u64::from_le_bytes(*half));
        let empty = || Zeroizing::new(vec![[NONE; 2]; places as usize]);
        Self {
            factor: Secret::new([half | 1]),
            shift: u64::BITS - places.trailing_zeros(),
            by_record: empty(),
            by_cell: empty(),
        }
    }

    /// Notes that a record is in a cell whose segment is being used.
    pub(super) fn remember(&mut self, record: u32, cell: u32) {
        let (of_record, of_cell) = (self.place(record), self.place(cell));
        self.by_record[admit(of_record)] = [record, cell];
        self.by_cell[admit(of_cell)] = [record, cell];
    }

    /// A cell in which a record was.
    pub(super) fn cell_of(&self, record: u32) -> Option<u32> {
        let [known, cell] = conceal(self.by_record[admit(self.place(record))]);
        admit(known == record).then_some(cell)
    }

    /// The record that was in a cell of a segment that has been used.
    pub(super) fn record_in(&self, cell: u32) -> Option<u32> {
        let [record, known] = conceal(self.by_cell[admit(self.place(cell))]);
        // The last of 2^32 cells has the number of no cell.
        admit(known == cell && record != NONE).then_some(record)
    }

    fn place(&self, of: u32) -> usize {
        (self.factor.expose()[0].wrapping_mul(of.into()) >> self.shift) as usize
    }
}

#[cfg(test)]
impl Shortcuts {
    pub(super) fn forget(&mut self) {
        self.by_record.fill([NONE; 2]);
        self.by_cell.fill([NONE; 2]);
    }
}
