//! One permutation of the offsets for each partition. It says which record of the partition each
//! hint contains.

use super::SinglePassParameters;
use super::draws::{Draws, Purpose, Seed, Streams};
use super::messages::SinglePassQuery;
use crate::planted;
use privet_core::{Error, RecordIndex, Result};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;
use zeroize::{Zeroize as _, Zeroizing};

/// Fills `row` with the permutation that the numbers of a stream make: the Fisher–Yates shuffle, in
/// the form that needs no initial row. For `i` from 1 on, with a number `j` below `i + 1`: `σ(i) =
/// σ(j)`, then `σ(j) = i`.
pub(crate) fn draw(draws: &mut Draws<'_>, row: &mut [u16]) {
    if let Some(first) = row.first_mut() {
        *first = 0;
    }
    for i in 1..row.len() {
        let j = usize::from(draws.below(i as u32 + 1));
        row[i] = row[j];
        row[j] = i as u16;
    }
}

/// Draws the first permutations, one partition after the other: `each` gets the partition and its
/// row.
pub(crate) fn draw_all(
    parameters: &SinglePassParameters,
    seed: &Seed,
    kernels: Kernels,
    mut each: impl FnMut(usize, &[u16]),
) {
    let streams = Streams::new(seed, Purpose::Permutations, kernels);
    let records = parameters.partition_records() as usize;
    let mut row = Zeroizing::new(vec![0; records]);
    for partition in 0..parameters.partitions() {
        draw(&mut streams.stream(partition, records), &mut row);
        each(partition as usize, &row);
    }
}

/// The random numbers of a lookup. They do not depend on the record.
pub(crate) struct Coins {
    /// For each partition a hint, below `M`: its record is shown to the server that knows the first
    /// permutations, and the used hint's record then takes its place.
    pub(crate) partners: Zeroizing<Vec<u16>>,
    /// The offset, below `M`, that is read in the place of the wanted record.
    pub(crate) decoy: u16,
}

impl Coins {
    pub(crate) fn from_seed(
        parameters: &SinglePassParameters,
        seed: &Seed,
        kernels: Kernels,
    ) -> Self {
        let partitions = parameters.partitions() as usize;
        let streams = Streams::new(seed, Purpose::Lookup, kernels);
        let mut draws = streams.stream(0, partitions + 1);
        let records = parameters.partition_records();
        let partners = (0..partitions).map(|_| draws.below(records)).collect();
        Self { partners: Zeroizing::new(partners), decoy: draws.below(records) }
    }

    /// The partners with which the hint that contains the record at `place` changes places. In the
    /// record's own partition, its partner is the hint itself: nothing was shown there, so it stays
    /// in its place.
    pub(crate) fn partners_of(mut self, place: HintPlace) -> Zeroizing<Vec<u16>> {
        self.partners[place.partition as usize] = place.hint;
        self.partners
    }
}

/// Where a record is: its partition, and the hint that contains it. Both secret.
#[derive(Clone, Copy)]
pub(crate) struct HintPlace {
    pub(crate) partition: u32,
    pub(crate) hint: u16,
}

/// The permutations of all partitions. Erased when dropped.
pub(crate) struct Permutations {
    /// Number `m` of partition `q` is at `q·M + m`.
    offsets: HugeBuffer<u16>,
    records: usize,
}

impl Permutations {
    /// Reads permutations of little-endian numbers of two bytes.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if one of them is no permutation,
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    pub(crate) fn decode(parameters: &SinglePassParameters, bytes: &[u8]) -> Result<Self> {
        let records = parameters.partition_records() as usize;
        let numbers = bytes.as_chunks::<2>().0;
        let offsets = HugeBuffer::new_zeroed(numbers.len()).map_err(|error| {
            Error::unavailable("no memory for the permutations of hints").caused_by(error)
        })?;
        let mut read = Self { offsets, records };
        for (offset, number) in read.offsets.iter_mut().zip(numbers) {
            *offset = u16::from_le_bytes(*number);
        }
        let mut seen = Zeroizing::new(vec![false; records]);
        for row in read.offsets.chunks_exact(records) {
            seen.fill(false);
            for offset in row {
                if let Some(seen) = seen.get_mut(usize::from(*offset)) {
                    *seen = true;
                }
            }
            // There are as many different numbers as places.
            if !seen.iter().all(|seen| *seen) {
                return Err(Error::corrupted("the stored hints hold an invalid permutation"));
            }
        }
        Ok(read)
    }

    /// Writes the bytes that [`decode`](Self::decode) reads.
    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        encode_row(&self.offsets, bytes);
        planted::encoded_permutations(self.records, bytes);
    }

    /// Where the record `index` is. Takes the same steps for every record of the table, because it
    /// searches the whole permutation of its partition. Caches may show which partition that is.
    pub(crate) fn place_of(&self, index: &RecordIndex) -> HintPlace {
        let (partition, offset) = index.divide(self.records as u64);
        let row = &self.offsets[partition as usize * self.records..][..self.records];
        let offset = offset as u16;
        let hint = row.iter().enumerate().fold(0, |found, (hint, entry)| {
            found | (hint as u16 & u16::from(*entry == offset).wrapping_neg())
        });
        HintPlace { partition: partition as u32, hint }
    }

    /// The two queries of a lookup: the numbers that are shuffled in, for the server that knows the
    /// first permutations; and the used hint, for the server that knows nothing.
    pub(crate) fn show(&self, place: HintPlace, coins: &Coins) -> [SinglePassQuery; 2] {
        let rows = self.offsets.chunks_exact(self.records);
        let hint = usize::from(place.hint);
        let (fresh, mut used): (_, Vec<u16>) = rows
            .zip(coins.partners.iter())
            .zip(0u32..)
            .map(|((row, partner), partition)| {
                let wanted = u16::from(partition == place.partition).wrapping_neg();
                let used = row[hint];
                (row[usize::from(*partner)], used ^ ((used ^ coins.decoy) & wanted))
            })
            .unzip();
        planted::decoy(&mut used, place, &self.offsets);
        [SinglePassQuery { offsets: fresh }, SinglePassQuery { offsets: used }]
    }

    /// The same as [`show`](Self::show) returned before the last [`exchange`](Self::exchange).
    pub(crate) fn shown(&self, place: HintPlace, coins: &Coins) -> [SinglePassQuery; 2] {
        let rows = self.offsets.chunks_exact(self.records);
        let (fresh, used) = rows
            .zip(coins.partners.iter())
            .zip(0u32..)
            .map(|((row, partner), partition)| {
                // They were exchanged in every partition except the wanted record's, where the
                // decoy was shown.
                let wanted = u16::from(partition == place.partition).wrapping_neg();
                let fresh = place.hint ^ ((place.hint ^ partner) & wanted);
                let used = row[usize::from(*partner)];
                (row[usize::from(fresh)], used ^ ((used ^ coins.decoy) & wanted))
            })
            .unzip();
        [SinglePassQuery { offsets: fresh }, SinglePassQuery { offsets: used }]
    }

    /// These permutations, and more at the end, drawn from `seed`, until there are `partitions`.
    /// `None`: there are already as many.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    pub(crate) fn grown(
        &self,
        partitions: u32,
        seed: &Seed,
        kernels: Kernels,
    ) -> Result<Option<Self>> {
        let before = self.offsets.len();
        let after = partitions as usize * self.records;
        if after <= before {
            return Ok(None);
        }
        let mut offsets = HugeBuffer::new_zeroed(after).map_err(|error| {
            Error::unavailable("no memory for the permutations of hints").caused_by(error)
        })?;
        offsets[..before].copy_from_slice(&self.offsets);
        let streams = Streams::new(seed, Purpose::LaterPermutations, kernels);
        let first = (before / self.records) as u32;
        for (row, partition) in offsets[before..].chunks_exact_mut(self.records).zip(first..) {
            let partition = planted::later_partition(partition, first);
            draw(&mut streams.stream(partition, self.records), row);
        }
        Ok(Some(Self { offsets, records: self.records }))
    }

    /// Exchanges the records of `hint` and its partner in every partition.
    pub(crate) fn exchange(&mut self, hint: u16, partners: &[u16]) {
        let rows = self.offsets.chunks_exact_mut(self.records);
        rows.zip(partners).for_each(|(row, partner)| {
            row.swap(usize::from(hint), usize::from(*partner));
        });
    }
}

/// Numbers as two bytes each, little-endian.
pub(crate) fn encode_row(row: &[u16], bytes: &mut [u8]) {
    let places = bytes.as_chunks_mut::<2>().0;
    places.iter_mut().zip(row).for_each(|(place, number)| *place = number.to_le_bytes());
}

impl Drop for Permutations {
    fn drop(&mut self) {
        self.offsets.zeroize();
    }
}
