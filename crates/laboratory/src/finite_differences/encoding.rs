//! From records to points: the polynomial's values at all points.

pub(super) mod beyond_memory;

#[cfg(test)]
pub(super) mod tests;

use super::{FiniteDifferencesParameters, points};
use crate::stored_setup::SetupStore;
use beyond_memory::{LEAST_PART, Transform};
use privet_core::{Result, TableView};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;
use privet_laboratory_kernels::subset_sums::subset_sums;

/// All points of the polynomial whose coefficients are `records`: each is the XOR of the records
/// whose words are subsets of the point. `progress` is called with the share done.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if records must be single bits and one is
/// not, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
pub(super) fn encode(
    parameters: &FiniteDifferencesParameters,
    records: &[u8],
    kernels: Kernels,
    threads: usize,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<HugeBuffer<u8>> {
    let sums = SubsetSums::new(parameters, records, kernels, threads)?;
    let mut points = points::room_for(parameters.stored_bytes())?;
    // The buffer has room for this many bytes.
    let used = &mut points[..parameters.points_bytes() as usize];
    subset_sums(
        kernels,
        used,
        sums.entry_len,
        threads,
        &|first, block| sums.place(first, block),
        progress,
    );
    Ok(points)
}

/// Computes all points of `table` and writes them to `store`, from byte 0 on:
/// [`stored_bytes`](FiniteDifferencesParameters::stored_bytes) in all. It takes `memory` bytes (at
/// least a record, and two bytes), and about one MiB more for each of the `threads` threads, which
/// also share reads and writes. If all points fit, each is written once. Otherwise each is written
/// twice and read once. If all points take more than about `memory`² / 64 KiB, there is one more
/// round of reading and writing, and so on. The records are read once, in order, without a copy.
/// `progress` is called with the share done: it never falls, and the last is 1.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of another
/// shape, or records must be single bits and one is not,
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory; and the
/// store's errors.
pub fn write_points(
    parameters: &FiniteDifferencesParameters,
    table: TableView<'_>,
    kernels: Kernels,
    threads: usize,
    memory: u64,
    store: &dyn SetupStore,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<()> {
    let records = table.bytes_for(parameters.shape())?;
    let sums = SubsetSums::new(parameters, records, kernels, threads)?;
    sums.write(memory, LEAST_PART, store, progress)
}

/// The sums of the coefficients at all subsets of a point, over XOR. An entry is a point. If
/// records are single bits, it is a byte of eight points, which differ in the three lowest
/// variables.
struct SubsetSums<'a> {
    parameters: &'a FiniteDifferencesParameters,
    records: &'a [u8],
    kernels: Kernels,
    threads: usize,
    entry_len: usize,
}

impl<'a> SubsetSums<'a> {
    fn new(
        parameters: &'a FiniteDifferencesParameters,
        records: &'a [u8],
        kernels: Kernels,
        threads: usize,
    ) -> Result<Self> {
        parameters.check_single_bits(records)?;
        // One byte if records are single bits, which are bytes in the table.
        let entry_len = parameters.shape().record_len() as usize;
        Ok(Self { parameters, records, kernels, threads, entry_len })
    }

    /// Writes the coefficients into a block of entries, which is all zero before and begins with
    /// entry `first`. Sums over the variables within an entry.
    fn place(&self, first: u64, block: &mut [u8]) {
        if !self.parameters.one_bit() {
            let len = self.entry_len;
            for (place, index) in self.coefficients(first, (block.len() / len) as u64) {
                let (place, index) = (place as usize * len, index as usize * len);
                block[place..][..len].copy_from_slice(&self.records[index..][..len]);
            }
            return;
        }
        for (place, index) in self.coefficients(8 * first, 8 * block.len() as u64) {
            block[(place / 8) as usize] |= (self.records[index as usize] & 1) << (place % 8);
        }
        for byte in block {
            *byte ^= (*byte & 0x55) << 1;
            *byte ^= (*byte & 0x33) << 2;
            *byte ^= (*byte & 0x0f) << 4;
        }
    }

    /// Those of `count` points from `first` on that have a coefficient: the number of each among
    /// them, and its record.
    fn coefficients(&self, first: u64, count: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let words = self.parameters.words();
        let (from, to) = (words.rank(first), words.rank(first + count));
        let to = to.min(self.parameters.shape().records());
        words.words_from(from).zip(from..to).map(move |(word, index)| (word - first, index))
    }

    fn write(
        &self,
        memory: u64,
        least_part: u64,
        store: &dyn SetupStore,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<()> {
        let used = self.parameters.points_bytes();
        let padding = vec![0; (self.parameters.stored_bytes() - used) as usize];
        if !padding.is_empty() {
            store.write_at(used, &padding)?;
        }
        beyond_memory::write(self, memory, least_part, self.threads, store, progress)
    }
}

impl Transform for SubsetSums<'_> {
    fn order(&self) -> u64 {
        2
    }

    fn variables(&self) -> u32 {
        (self.parameters.points_bytes() / self.entry_len as u64).ilog2()
    }

    fn entry_len(&self) -> u64 {
        self.entry_len as u64
    }

    fn fill(
        &self,
        word: u64,
        low: u32,
        piece: &mut [u8],
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<()> {
        let place = |first: u64, block: &mut [u8]| {
            // Erases the entries of the piece before.
            block.fill(0);
            self.place((word << low) + first, block);
        };
        subset_sums(self.kernels, piece, self.entry_len, self.threads, &place, progress);
        Ok(())
    }

    fn sum_rows(
        &self,
        rows: &mut [u8],
        row_len: usize,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<()> {
        subset_sums(self.kernels, rows, row_len, self.threads, &|_, _| {}, progress);
        Ok(())
    }
}
