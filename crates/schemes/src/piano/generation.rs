//! The layout of a window's hints, in memory and on disk; and single offsets of the pseudorandom
//! function.

use super::{AnswerForm, PianoParameters};
use crate::stored_hints::{blank, fresh_key, read};
use privet_core::{Error, Result, SecretRng};
use privet_kernels::Kernels;
use privet_kernels::subset_hints::PartitionGroup;
use std::ops::Range;
use zeroize::Zeroizing;

const VERSION: u32 = 1;

/// Where in an encoded generation everything lies: `version (u32) ‖ key (16) ‖ a parity for each
/// primary and each backup ‖ the record of each pair`.
///
/// The key is the client's own, and everything else follows from it and the table. Hint `j`
/// consists of the record at offset `r(j, k)` of every chunk `k` (see
/// [`privet_kernels::subset_hints`]). A backup consists only of those outside its own chunk. A
/// pair's record is the one at offset `r(j, k)` of its chunk `k`. Pairs exist only if the answer
/// form uses them.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    record_len: usize,
    primaries: usize,
    pairs: usize,
    len: usize,
}

const KEY: Range<usize> = 4..20;

impl Layout {
    pub(super) fn of<F: AnswerForm>(parameters: &PianoParameters) -> Self {
        let record_len = parameters.record_len();
        let primaries = parameters.primaries() as usize;
        let backups = parameters.backups() as usize;
        let pairs = KEY.end + (primaries + backups) * record_len;
        let len = pairs + if F::REPLACES_THE_WANTED { backups * record_len } else { 0 };
        Self { record_len, primaries, pairs, len }
    }

    /// Where parities begin: those of primaries, and after them those of backups.
    pub(super) fn hints(self) -> usize {
        KEY.end
    }

    /// All parities.
    pub(super) fn all_hints(self) -> Range<usize> {
        KEY.end..self.pairs
    }

    /// The parity of the backup numbered `backup`, from 0 over all chunks.
    pub(super) fn backup(self, backup: usize) -> Range<usize> {
        let start = KEY.end + (self.primaries + backup) * self.record_len;
        start..start + self.record_len
    }

    /// The record of the pair that is numbered like a backup.
    pub(super) fn pair(self, pair: usize) -> Range<usize> {
        let start = self.pairs + pair * self.record_len;
        start..start + self.record_len
    }

    /// A fresh key; everything else is zero.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    pub(super) fn fresh(self, rng: &mut SecretRng) -> Result<Zeroizing<Vec<u8>>> {
        let mut bytes = blank(VERSION, self.len as u64)?;
        bytes[KEY].copy_from_slice(&*fresh_key::<16>(rng));
        Ok(bytes)
    }

    /// Checks that `bytes` are of this layout.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if they are not.
    pub(super) fn check(self, bytes: &[u8]) -> Result<()> {
        read(VERSION, self.len as u64, bytes).map(drop)
    }
}

/// The key of an encoded generation.
pub(super) fn key(bytes: &[u8]) -> Zeroizing<[u8; 16]> {
    let mut key = Zeroizing::new([0; 16]);
    key.copy_from_slice(&bytes[KEY]);
    key
}

/// Computes the offsets of neighbouring hints in one chunk. To do so, it lets them take their
/// records from a chunk in which each record is its own number.
pub(super) struct Offsets {
    numbers: PartitionGroup,
    kernels: Kernels,
}

const NUMBER_LEN: usize = 2;

impl Offsets {
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    pub(super) fn new(parameters: &PianoParameters, kernels: Kernels) -> Result<Self> {
        let numbers = PartitionGroup::new(parameters.chunk_records() as usize, NUMBER_LEN, 1);
        let mut numbers =
            numbers.map_err(|error| Error::unavailable("no memory for hints").caused_by(error))?;
        let places = numbers.partition_mut(0).as_chunks_mut::<NUMBER_LEN>().0;
        for (number, place) in places.iter_mut().enumerate() {
            *place = (number as u16).to_le_bytes();
        }
        numbers.set_len(1);
        Ok(Self { numbers, kernels })
    }

    /// `r(j, chunk)` for the `count` ids `j` from `first_id` on, both multiples of 8.
    pub(super) fn of(
        &self,
        key: &[u8; 16],
        first_id: u32,
        chunk: u32,
        count: u32,
    ) -> Zeroizing<Vec<u16>> {
        let mut found = Zeroizing::new(vec![0; count as usize * NUMBER_LEN]);
        self.kernels.subset_accumulate_all(key, first_id, chunk, &self.numbers, &mut found);
        let numbers = found.as_chunks().0.iter().map(|number| u16::from_le_bytes(*number));
        Zeroizing::new(numbers.collect())
    }
}
