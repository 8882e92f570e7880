//! Parities: computes the places of eight hints at a time, in all partitions of a group. Then it
//! adds the records of four hints at a time, with their parities in registers.

use std::arch::x86_64::*;

use super::{SecretCipher, input};
use crate::subset_hints::{
    Hints, OFFSET_TAG, OFFSETS_PER_BLOCK, PartitionGroup, SELECT_TAG, SELECTS_PER_BLOCK,
};
use crate::x86_64::avx2::{load, store};
use crate::x86_64::subset_hints::parities::{ALL, HINTS, PAIRS, Parities, TILE};
use crate::x86_64::vectors::Avx2;

/// How many partitions' blocks are computed together; they are six blocks.
const STEP: usize = 2;
/// The longest records whose whole parity stays in one vector.
const VECTOR: usize = 32;

impl Parities for Avx2 {
    #[inline(always)]
    fn accumulate<const KIND: u8>(
        self,
        key: &[u8; 16],
        hints: &Hints<'_>,
        first_partition: u32,
        group: &PartitionGroup,
        parities: &mut [u8],
    ) {
        // SAFETY: the arm's value proves that the processor has the instructions.
        unsafe { accumulate::<KIND>(key, hints, first_partition, group, parities) }
    }
}

#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn accumulate<const KIND: u8>(
    key: &[u8; 16],
    hints: &Hints<'_>,
    first_partition: u32,
    group: &PartitionGroup,
    parities: &mut [u8],
) {
    let record_len = group.record_len();
    let octet_bytes = HINTS * record_len * if KIND == PAIRS { 2 } else { 1 };
    let locator = Locator::new(key, group);
    let mut tile = [Places::ZERO; TILE];
    for first in (0..group.len()).step_by(TILE) {
        let mut partitions: [&[u8]; TILE] = [&[]; TILE];
        let partitions = &mut partitions[..TILE.min(group.len() - first)];
        for (k, partition) in partitions.iter_mut().enumerate() {
            *partition = group.partition(first + k);
        }
        let first_partition = first_partition.wrapping_add(first as u32);
        for (o, parities) in parities.chunks_exact_mut(octet_bytes).enumerate() {
            let id = hints.first_id + (HINTS * o) as u32;
            let tile = &mut tile[..partitions.len()];
            match hints.cutoffs.get(o) {
                Some(cutoffs) => locator.locate(id, cutoffs, first_partition, tile),
                None => locator.locate_all(id, first_partition, tile),
            }
            if record_len <= VECTOR {
                short::<KIND>(partitions, tile, record_len, parities);
            } else {
                long::<KIND>(partitions, tile, record_len, parities);
            }
        }
    }
}

/// The places of the records of eight hints in a partition.
#[derive(Clone, Copy)]
struct Places {
    /// The place of the hint's record.
    all: [u32; HINTS],
    /// If hints select partitions: the place of the hint's record if it selects the partition,
    /// otherwise of the record of zeros.
    selected: [u32; HINTS],
}

impl Places {
    const ZERO: Places = Places { all: [0; HINTS], selected: [0; HINTS] };
}

/// Computes places. For records of up to a vector they are in bytes from the beginning of the
/// partition, for which 32 bits are enough; otherwise in records.
struct Locator {
    cipher: SecretCipher,
    mask: __m256i,
    scale: __m256i,
    zero_record: __m256i,
}

impl Locator {
    #[inline]
    #[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
    fn new(key: &[u8; 16], group: &PartitionGroup) -> Locator {
        let scale = if group.record_len() <= VECTOR { group.record_len() } else { 1 };
        let records = group.records_per_partition();
        Locator {
            cipher: SecretCipher::new(key),
            mask: _mm256_set1_epi32((records - 1) as i32),
            scale: _mm256_set1_epi32(scale as i32),
            zero_record: _mm256_set1_epi32((records * scale) as i32),
        }
    }

    /// The places of an octet of hints in consecutive partitions.
    #[inline]
    #[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
    fn locate(&self, id: u32, cutoffs: &[u32; HINTS], first_partition: u32, tile: &mut [Places]) {
        // AVX2 has only a signed comparison. With the highest bits flipped, it compares unsigned
        // numbers.
        let flip = _mm256_set1_epi32(i32::MIN);
        let cutoffs = _mm256_xor_si256(load(cutoffs), flip);
        let quotient = id / SELECTS_PER_BLOCK as u32;
        for (step, tile) in tile.chunks_mut(STEP).enumerate() {
            let mut blocks = [_mm_setzero_si128(); 3 * STEP];
            for (i, blocks) in blocks.as_chunks_mut::<3>().0.iter_mut().enumerate() {
                let partition = first_partition.wrapping_add((STEP * step + i) as u32);
                *blocks = [
                    input(quotient, partition, SELECT_TAG),
                    input(quotient + 1, partition, SELECT_TAG),
                    input(id / OFFSETS_PER_BLOCK as u32, partition, OFFSET_TAG),
                ];
            }
            self.cipher.encrypt(&mut blocks);
            for (places, [low, high, offsets]) in tile.iter_mut().zip(blocks.as_chunks::<3>().0) {
                let selects = _mm256_xor_si256(_mm256_set_m128i(*high, *low), flip);
                let below = _mm256_cmpgt_epi32(cutoffs, selects);
                let offsets = _mm256_and_si256(_mm256_cvtepu16_epi32(*offsets), self.mask);
                let all = _mm256_mullo_epi32(offsets, self.scale);
                store(&mut places.all, all);
                let selected = _mm256_blendv_epi8(self.zero_record, all, below);
                store(&mut places.selected, selected);
            }
        }
    }

    /// The same if no hint selects.
    #[inline]
    #[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
    fn locate_all(&self, id: u32, first_partition: u32, tile: &mut [Places]) {
        /// How many partitions' blocks, one of each, are computed together.
        const STEP: usize = 8;
        for (step, tile) in tile.chunks_mut(STEP).enumerate() {
            let mut blocks = [_mm_setzero_si128(); STEP];
            for (i, block) in blocks.iter_mut().enumerate() {
                let partition = first_partition.wrapping_add((STEP * step + i) as u32);
                *block = input(id / OFFSETS_PER_BLOCK as u32, partition, OFFSET_TAG);
            }
            self.cipher.encrypt(&mut blocks);
            for (places, offsets) in tile.iter_mut().zip(blocks) {
                let offsets = _mm256_and_si256(_mm256_cvtepu16_epi32(offsets), self.mask);
                store(&mut places.all, _mm256_mullo_epi32(offsets, self.scale));
            }
        }
    }
}

/// Adds partitions to the parities of an octet whose records fit in one vector.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn short<const KIND: u8>(
    partitions: &[&[u8]],
    tile: &[Places],
    record_len: usize,
    parities: &mut [u8],
) {
    /// The number of hints whose parities are in registers together. Pairs take eight of the 16
    /// registers.
    const FOUR: usize = HINTS / 2;
    let mut parities = parities.chunks_exact_mut(record_len);
    for half in 0..2 {
        let mut below = [_mm256_setzero_si256(); FOUR];
        let mut total = [_mm256_setzero_si256(); FOUR];
        for (partition, places) in partitions.iter().zip(tile) {
            for i in 0..FOUR {
                let of_first = if KIND == ALL { &places.all } else { &places.selected };
                let place = of_first[FOUR * half + i] as usize;
                below[i] = _mm256_xor_si256(below[i], record_at(partition, place));
                if KIND == PAIRS {
                    let any = places.all[FOUR * half + i] as usize;
                    total[i] = _mm256_xor_si256(total[i], record_at(partition, any));
                }
            }
        }
        for (below, total) in below.into_iter().zip(total) {
            let sums = [below, _mm256_xor_si256(below, total)];
            for sum in &sums[..if KIND == PAIRS { 2 } else { 1 }] {
                let Some(parity) = parities.next() else { return };
                add_to(parity, *sum);
            }
        }
    }
}

/// A vector from the beginning of a record on.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn record_at(partition: &[u8], place: usize) -> __m256i {
    debug_assert!(place + VECTOR <= partition.len());
    // SAFETY: a place is that of one of the partition's records or of its record of zeros, and all
    // of these may be read in vectors of up to 64 bytes.
    unsafe { _mm256_loadu_si256(partition.as_ptr().add(place).cast()) }
}

/// Adds the first bytes of a vector to up to as many bytes.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn add_to(bytes: &mut [u8], vector: __m256i) {
    let mut sum = [0; VECTOR];
    if let Ok(whole) = <&[u8; VECTOR]>::try_from(&*bytes) {
        // SAFETY: the array has 32 bytes, and the store needs no alignment.
        unsafe {
            _mm256_storeu_si256(sum.as_mut_ptr().cast(), _mm256_xor_si256(load(whole), vector));
        }
        bytes.copy_from_slice(&sum);
        return;
    }
    // SAFETY: as above.
    unsafe { _mm256_storeu_si256(sum.as_mut_ptr().cast(), vector) };
    for (byte, sum) in bytes.iter_mut().zip(sum) {
        *byte ^= sum;
    }
}

/// Adds partitions to the parities of an octet whose records are longer than a vector. Here most
/// work is in the records, so those that a hint does not take are left out.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn long<const KIND: u8>(
    partitions: &[&[u8]],
    tile: &[Places],
    record_len: usize,
    parities: &mut [u8],
) {
    let mut parities = parities.chunks_exact_mut(record_len);
    for i in 0..HINTS {
        let mut below: [&[u8]; TILE] = [&[]; TILE];
        let mut above = below;
        let mut count = 0;
        for (k, (partition, places)) in partitions.iter().zip(tile).enumerate() {
            let record = &partition[places.all[i] as usize * record_len..];
            // In the list to which the record does not belong, the next record will overwrite it.
            below[count] = record;
            above[k - count] = record;
            count += usize::from(KIND == ALL || places.selected[i] == places.all[i]);
        }
        let lists = [&below[..count], &above[..partitions.len() - count]];
        for list in &lists[..if KIND == PAIRS { 2 } else { 1 }] {
            let Some(parity) = parities.next() else { return };
            xor_records(list, parity);
        }
    }
}

/// Adds records, each followed by enough bytes for whole vectors, to a parity.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn xor_records(records: &[&[u8]], parity: &mut [u8]) {
    const PIECE: usize = 4 * VECTOR;
    for (i, parity) in parity.chunks_mut(PIECE).enumerate() {
        let start = PIECE * i;
        match parity.len().div_ceil(VECTOR) {
            1 => xor_pieces::<1>(records, start, parity),
            2 => xor_pieces::<2>(records, start, parity),
            3 => xor_pieces::<3>(records, start, parity),
            _ => xor_pieces::<4>(records, start, parity),
        }
    }
}

/// Adds the bytes from `start` on of records to a piece of a parity of up to as many vectors.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn xor_pieces<const VECTORS: usize>(records: &[&[u8]], start: usize, parity: &mut [u8]) {
    let mut sums = [_mm256_setzero_si256(); VECTORS];
    for record in records {
        let vectors = record[start..start + VECTOR * VECTORS].as_chunks::<VECTOR>().0;
        for (sum, vector) in sums.iter_mut().zip(vectors) {
            *sum = _mm256_xor_si256(*sum, load(vector));
        }
    }
    for (parity, sum) in parity.chunks_mut(VECTOR).zip(sums) {
        add_to(parity, sum);
    }
}
