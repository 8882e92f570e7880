//! Parities: eight hints at a time, with their parities in registers, over all partitions of a
//! group.
//!
//! While the records of eight hints are fetched, the places of the next eight are computed, in turn
//! for each quad of partitions. Fetching uses the load units and the places use the cipher, so a
//! processor can do both at once. If the places were computed right before use, the loads would
//! wait for a whole encryption.

use std::arch::x86_64::*;

use super::{SecretCipher, VECTOR_PARTITIONS, consecutive_partitions, each_block};
use crate::subset_hints::{
    Hints, OFFSET_TAG, OFFSETS_PER_BLOCK, PartitionGroup, SELECT_TAG, SELECTS_PER_BLOCK,
};
use crate::x86_64::avx512::yardstick::{load_up_to, mask_of, store_up_to};
use crate::x86_64::prefetch;
use crate::x86_64::subset_hints::parities::{ALL, HINTS, PAIRS, Parities, TILE};
use crate::x86_64::vectors::{Avx512, Operations, Vectors};

/// Partitions of one vector of blocks.
const QUAD: usize = VECTOR_PARTITIONS as usize;
/// The longest records whose whole parity stays in one vector.
const VECTOR: usize = 64;

impl Parities for Avx512 {
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
        unsafe { accumulate::<KIND>(self, key, hints, first_partition, group, parities) }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
fn accumulate<const KIND: u8>(
    arm: Avx512,
    key: &[u8; 16],
    hints: &Hints<'_>,
    first_partition: u32,
    group: &PartitionGroup,
    parities: &mut [u8],
) {
    let cipher = SecretCipher::new(key);
    for first in (0..group.len()).step_by(TILE) {
        let slice = Slice::new(&cipher, first_partition, group, first);
        match group.record_len() {
            0..=16 => short_16::<KIND>(&slice, hints, parities),
            17..=32 => short_32::<KIND>(&slice, hints, parities),
            33..=VECTOR => short_64::<KIND>(&slice, hints, parities),
            _ => long::<KIND>(arm, &slice, hints, parities),
        }
    }
}

/// The places of the records of an octet of hints in a quad of partitions, in records or bytes from
/// the beginning of the partition. The lower and the upper four hints come from two vectors, each
/// with the partitions one after the other.
#[derive(Clone, Copy)]
struct Quad {
    /// The place of the hint's record. With single parities, if the hint does not select the
    /// partition, the place of the record of zeros.
    places: [[[u32; HINTS / 2]; QUAD]; 2],
    /// With pairs of parities or long records: all bits set if the hint selects the partition, and
    /// none otherwise.
    selected: [[[u32; HINTS / 2]; QUAD]; 2],
}

impl Quad {
    const ZERO: Quad =
        Quad { places: [[[0; HINTS / 2]; QUAD]; 2], selected: [[[0; HINTS / 2]; QUAD]; 2] };

    #[inline(always)]
    fn place(&self, partition: usize, hint: usize) -> usize {
        self.places[hint / 4][partition][hint % 4] as usize
    }

    #[inline(always)]
    fn selected(&self, partition: usize, hint: usize) -> i32 {
        self.selected[hint / 4][partition][hint % 4] as i32
    }
}

/// Up to [`TILE`] partitions of a group, and how the places of records in them are computed.
struct Slice<'a> {
    cipher: &'a SecretCipher,
    record_len: usize,
    /// The partitions as [`PartitionGroup::partition`] gives them.
    partitions: [&'a [u8]; TILE],
    len: usize,
    /// The part of the inputs that says which partition, by quads.
    inputs: [__m512i; TILE / QUAD],
    /// In each word, the bits that make an offset.
    mask: __m512i,
    /// In each word, how many units of a place a record takes.
    scale: __m512i,
    /// In each word, the place of the record of zeros.
    zero_record: __m512i,
}

impl<'a> Slice<'a> {
    /// The partitions of the group from `first` on. Places are in bytes for records of up to a
    /// vector, for which 32 bits are enough; otherwise in records.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
    fn new(
        cipher: &'a SecretCipher,
        first_partition: u32,
        group: &'a PartitionGroup,
        first: usize,
    ) -> Slice<'a> {
        let record_len = group.record_len();
        let records = group.records_per_partition();
        let scale = if record_len <= VECTOR { record_len } else { 1 };
        let mut partitions: [&[u8]; TILE] = [&[]; TILE];
        let len = TILE.min(group.len() - first);
        for (k, partition) in partitions[..len].iter_mut().enumerate() {
            *partition = group.partition(first + k);
        }
        let mut inputs = [_mm512_setzero_si512(); TILE / QUAD];
        for (q, input) in inputs.iter_mut().enumerate() {
            let number = first_partition.wrapping_add((first + QUAD * q) as u32);
            *input = _mm512_add_epi32(each_block(0, number, 0), consecutive_partitions());
        }
        Slice {
            cipher,
            record_len,
            partitions,
            len,
            inputs,
            mask: _mm512_set1_epi32((records - 1) as i32),
            scale: _mm512_set1_epi32(scale as i32),
            zero_record: _mm512_set1_epi32((records * scale) as i32),
        }
    }

    fn quads(&self) -> usize {
        self.len.div_ceil(QUAD)
    }

    /// The places of an octet in the `q`-th quad. Places of partitions beyond the slice's end mean
    /// nothing.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
    fn locate<const KIND: u8>(&self, octet: &Octet, q: usize, quad: &mut Quad) {
        let mut blocks = [self.inputs[q]; 3];
        for (block, hints) in blocks.iter_mut().zip(octet.inputs) {
            *block = _mm512_or_si512(*block, hints);
        }
        if KIND == ALL {
            self.cipher.encrypt(std::array::from_mut(&mut blocks[2]));
        } else {
            self.cipher.encrypt(&mut blocks);
        }
        let [low_selects, high_selects, offsets] = blocks;
        let selects = [low_selects, high_selects];
        let zero = _mm512_setzero_si512();
        let offsets = [_mm512_unpacklo_epi16(offsets, zero), _mm512_unpackhi_epi16(offsets, zero)];
        for half in 0..2 {
            let offsets = _mm512_and_si512(offsets[half], self.mask);
            let places = _mm512_mullo_epi32(offsets, self.scale);
            if KIND == ALL {
                store_square(&mut quad.places[half], places);
                continue;
            }
            let below = _mm512_cmplt_epu32_mask(selects[half], octet.cutoffs[half]);
            if KIND == PAIRS {
                let selected = _mm512_maskz_set1_epi32(below, -1);
                store_square(&mut quad.places[half], places);
                store_square(&mut quad.selected[half], selected);
            } else {
                let places = _mm512_mask_mov_epi32(self.zero_record, below, places);
                store_square(&mut quad.places[half], places);
            }
        }
    }
}

/// Eight hints that share the blocks of offsets.
struct Octet {
    /// The part of the inputs that says which hints, and whether the lower four hints' select
    /// values, the upper four's, or all eight offsets.
    inputs: [__m512i; 3],
    /// The cutoffs of the lower and the upper four hints, for each partition of a quad.
    cutoffs: [__m512i; 2],
}

impl Octet {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
    fn of(hints: &Hints<'_>, o: usize) -> Octet {
        let cutoffs = hints.cutoffs.get(o).unwrap_or(&[0; HINTS]);
        Octet::new(hints.first_id + (HINTS * o) as u32, cutoffs)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
    fn new(id: u32, cutoffs: &[u32; HINTS]) -> Octet {
        let select_quotient = id / SELECTS_PER_BLOCK as u32;
        let [low, high] = cutoffs.as_chunks::<{ HINTS / 2 }>().0 else {
            unreachable!("eight are twice four")
        };
        Octet {
            inputs: [
                each_block(select_quotient, 0, SELECT_TAG),
                each_block(select_quotient + 1, 0, SELECT_TAG),
                each_block(id / OFFSETS_PER_BLOCK as u32, 0, OFFSET_TAG),
            ],
            cutoffs: [each_four(low), each_four(high)],
        }
    }
}

/// The same four words four times.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
fn each_four(words: &[u32; 4]) -> __m512i {
    // SAFETY: four words are 16 bytes, and the load needs no alignment.
    _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(words.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
fn store_square(words: &mut [[u32; 4]; 4], vector: __m512i) {
    // SAFETY: sixteen words are 64 bytes, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) }
}

/// Makes the function that adds a slice to the parities of hints whose records fit in one vector of
/// the given length.
macro_rules! short {
    (
        $name:ident, $vector_len:literal, $vector:ty, $zero:ident, $load:ident, $store:ident, $xor:ident, $each:ident,
        $ternary:ident, $load_some:ident, $store_some:ident
    ) => {
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
        fn $name<const KIND: u8>(slice: &Slice, hints: &Hints, parities: &mut [u8]) {
            /// Adds the records of an octet in some partitions.
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
            fn fetch<const KIND: u8>(
                partitions: &[&[u8]],
                quad: &Quad,
                below: &mut [$vector; HINTS],
                total: &mut [$vector; HINTS],
            ) {
                /// The ternary function `a ^ (b & c)`.
                const XOR_AND: i32 = 0x78;
                for (k, partition) in partitions.iter().enumerate() {
                    for i in 0..HINTS {
                        let place = quad.place(k, i);
                        debug_assert!(place + $vector_len <= partition.len());
                        // SAFETY: a place is that of one of the partition's records or of its
                        // record of zeros, and all of these may be read in vectors of up to 64
                        // bytes.
                        let record = unsafe { $load(partition.as_ptr().add(place).cast()) };
                        if KIND == PAIRS {
                            let selected = $each(quad.selected(k, i));
                            total[i] = $xor(total[i], record);
                            below[i] = $ternary::<XOR_AND>(below[i], record, selected);
                        } else {
                            below[i] = $xor(below[i], record);
                        }
                    }
                }
            }

            /// Adds vectors to parities side by side. The first `record_len` bytes of each vector
            /// count.
            ///
            /// Masked stores are slow on Zen 4. So a whole vector is stored for each parity, in
            /// order, if it stays within the octet. This overwrites bytes of the next parities.
            /// They have all been read before, and their own stores correct them.
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
            fn add<const PARITIES: usize>(
                parities: &mut [u8],
                sums: &[$vector; PARITIES],
                record_len: usize,
            ) {
                assert!(record_len <= $vector_len && parities.len() == PARITIES * record_len);
                let mask = mask_of(record_len) as _;
                let octet_len = parities.len();
                let fits = |i: usize| i * record_len + $vector_len <= octet_len;
                let start = parities.as_mut_ptr();
                let mut new = *sums;
                for (i, new) in new.iter_mut().enumerate() {
                    // SAFETY: a whole vector fits, or the mask selects the parity's own bytes, and
                    // nothing else is touched.
                    *new = unsafe {
                        let parity = start.add(i * record_len);
                        let old = if fits(i) {
                            $load(parity.cast())
                        } else {
                            $load_some(mask, parity.cast())
                        };
                        $xor(*new, old)
                    };
                }
                for (i, new) in new.into_iter().enumerate() {
                    // SAFETY: as above.
                    unsafe {
                        let parity = start.add(i * record_len);
                        if fits(i) {
                            $store(parity.cast(), new)
                        } else {
                            $store_some(parity.cast(), mask, new)
                        }
                    }
                }
            }

            let record_len = slice.record_len;
            let octet_bytes = HINTS * record_len * if KIND == PAIRS { 2 } else { 1 };
            let Some(last_octet) = (parities.len() / octet_bytes).checked_sub(1) else { return };
            let mut current = &mut [Quad::ZERO; TILE / QUAD];
            let mut next = &mut [Quad::ZERO; TILE / QUAD];
            let octet = Octet::of(hints, 0);
            for q in 0..slice.quads() {
                slice.locate::<KIND>(&octet, q, &mut current[q]);
            }
            for (o, parities) in parities.chunks_exact_mut(octet_bytes).enumerate() {
                for distance in (octet_bytes..2 * octet_bytes).step_by(64) {
                    prefetch(parities.as_ptr(), distance);
                }
                // After the last octet, this computes its places once more, without use.
                let octet = Octet::of(hints, (o + 1).min(last_octet));
                let mut below = [$zero(); HINTS];
                let mut total = [$zero(); HINTS];
                let (quads, rest) = slice.partitions[..slice.len].as_chunks::<QUAD>();
                for (q, partitions) in quads.iter().enumerate() {
                    slice.locate::<KIND>(&octet, q, &mut next[q]);
                    fetch::<KIND>(partitions, &current[q], &mut below, &mut total);
                }
                if !rest.is_empty() {
                    let q = quads.len();
                    slice.locate::<KIND>(&octet, q, &mut next[q]);
                    fetch::<KIND>(rest, &current[q], &mut below, &mut total);
                }
                std::mem::swap(&mut current, &mut next);
                if KIND == PAIRS {
                    let sums = std::array::from_fn::<_, { 2 * HINTS }, _>(|i| {
                        if i % 2 == 0 { below[i / 2] } else { $xor(below[i / 2], total[i / 2]) }
                    });
                    add(parities, &sums, record_len);
                } else {
                    add(parities, &below, record_len);
                }
            }
        }
    };
}

short!(
    short_16,
    16,
    __m128i,
    _mm_setzero_si128,
    _mm_loadu_si128,
    _mm_storeu_si128,
    _mm_xor_si128,
    _mm_set1_epi32,
    _mm_ternarylogic_epi32,
    _mm_maskz_loadu_epi8,
    _mm_mask_storeu_epi8
);
short!(
    short_32,
    32,
    __m256i,
    _mm256_setzero_si256,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_xor_si256,
    _mm256_set1_epi32,
    _mm256_ternarylogic_epi32,
    _mm256_maskz_loadu_epi8,
    _mm256_mask_storeu_epi8
);
short!(
    short_64,
    64,
    __m512i,
    _mm512_setzero_si512,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_xor_si512,
    _mm512_set1_epi32,
    _mm512_ternarylogic_epi32,
    _mm512_maskz_loadu_epi8,
    _mm512_mask_storeu_epi8
);

/// Adds a slice to the parities of hints whose records are longer than a vector. Here most work is
/// in the records. So those that a hint does not take are left out, and computing places in advance
/// gains nothing.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
fn long<const KIND: u8>(arm: Avx512, slice: &Slice, hints: &Hints, parities: &mut [u8]) {
    let record_len = slice.record_len;
    let octet_bytes = HINTS * record_len * if KIND == PAIRS { 2 } else { 1 };
    let mut quads = [Quad::ZERO; TILE / QUAD];
    for (o, parities) in parities.chunks_exact_mut(octet_bytes).enumerate() {
        let octet = Octet::of(hints, o);
        for q in 0..slice.quads() {
            if KIND == ALL {
                slice.locate::<ALL>(&octet, q, &mut quads[q]);
            } else {
                slice.locate::<PAIRS>(&octet, q, &mut quads[q]);
            }
        }
        add_long::<KIND>(arm, &slice.partitions[..slice.len], record_len, parities, |k, i| {
            let quad = &quads[k / QUAD];
            (quad.place(k % QUAD, i), quad.selected(k % QUAD, i) != 0)
        });
    }
}

/// Adds partitions to the parities of an octet whose records are longer than a vector. `place`
/// says which record of partition `k` is hint `i`'s, and whether it selects the partition. Here
/// most work is in the records, so those that a hint does not take are left out.
#[inline(always)]
fn add_long<const KIND: u8>(
    arm: Avx512,
    partitions: &[&[u8]],
    record_len: usize,
    parities: &mut [u8],
    place: impl Fn(usize, usize) -> (usize, bool),
) {
    let mut parities = parities.chunks_exact_mut(record_len);
    for i in 0..HINTS {
        let mut below: [&[u8]; TILE] = [&[]; TILE];
        let mut above = below;
        let mut count = 0;
        for (k, partition) in partitions.iter().enumerate() {
            let (record, selected) = place(k, i);
            let record = &partition[record * record_len..];
            // In the list to which the record does not belong, the next record will overwrite it.
            below[count] = record;
            above[k - count] = record;
            count += usize::from(KIND == ALL || selected);
        }
        let lists = [&below[..count], &above[..partitions.len() - count]];
        for list in &lists[..if KIND == PAIRS { 2 } else { 1 }] {
            let Some(parity) = parities.next() else { return };
            xor_records(arm, list, parity);
        }
    }
}

/// Adds records, each followed by enough bytes for whole vectors, to a parity.
#[inline(always)]
fn xor_records(arm: Avx512, records: &[&[u8]], parity: &mut [u8]) {
    for (i, parity) in parity.chunks_mut(8 * VECTOR).enumerate() {
        let start = 8 * VECTOR * i;
        match parity.len().div_ceil(VECTOR) {
            1 => xor_pieces::<1>(arm, records, start, parity),
            2 => xor_pieces::<2>(arm, records, start, parity),
            3 => xor_pieces::<3>(arm, records, start, parity),
            4 => xor_pieces::<4>(arm, records, start, parity),
            5 => xor_pieces::<5>(arm, records, start, parity),
            6 => xor_pieces::<6>(arm, records, start, parity),
            7 => xor_pieces::<7>(arm, records, start, parity),
            _ => xor_pieces::<8>(arm, records, start, parity),
        }
    }
}

/// Adds the bytes from `start` on of records to a piece of a parity of up to as many vectors.
#[inline(always)]
fn xor_pieces<const VECTORS: usize>(
    arm: Avx512,
    records: &[&[u8]],
    start: usize,
    parity: &mut [u8],
) {
    let mut sums = [arm.zero(); VECTORS];
    for record in records {
        let piece = &record[start..start + VECTORS * VECTOR];
        for (sum, vector) in sums.iter_mut().zip(piece.chunks_exact(VECTOR)) {
            *sum = arm.xor(*sum, arm.load(vector));
        }
    }
    for (parity, sum) in parity.chunks_mut(VECTOR).zip(sums) {
        // SAFETY: the arm's value proves that the processor has the instructions.
        unsafe { store_up_to(parity, arm.xor(load_up_to(parity), sum)) };
    }
}
