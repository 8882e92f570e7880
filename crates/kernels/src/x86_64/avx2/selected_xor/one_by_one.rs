//! Sums of selected records: a mask of 32 bytes comes from 32 selection bits, of which each byte of it looks
//! up its own (narrow records), or is the same for all of a record (wide ones).

use std::arch::x86_64::*;
use std::ops::Range;

use crate::portable::selected_xor::one_by_one;
use crate::selected_xor::{GROUP_RECORDS, LINE, Prefetch};
use crate::x86_64::avx2::{load, store};
use crate::x86_64::prefetch_ahead;

/// Records whose bits make a mask: half a group.
const HALF_RECORDS: usize = GROUP_RECORDS / 2;
/// Bytes of a vector.
const VECTOR: usize = LINE / 2;
/// Halves of groups of narrow records that are added to a sum between loading and storing it.
const HALVES: usize = 4;
/// Wide records likewise.
const ROWS: usize = 8;

/// See [`crate::portable::selected_xor::one_by_one::narrow`].
///
/// Of the sums only those of the first 32 places are used, but for a rest.
#[target_feature(enable = "avx2,aes")]
pub(crate) fn narrow(
    records: &[u8],
    pattern: &[[u8; LINE]],
    bits: &[u128],
    sums: &mut [[u8; LINE]],
    prefetch: Prefetch,
) {
    match prefetch {
        Prefetch::Stream(distance) => narrow_ahead::<1>(records, pattern, bits, sums, distance),
        Prefetch::NextPiece(distance) => narrow_ahead::<2>(records, pattern, bits, sums, distance),
        Prefetch::Nothing => narrow_ahead::<0>(records, pattern, bits, sums, 0),
    }
}

#[inline]
#[target_feature(enable = "avx2,aes")]
fn narrow_ahead<const LEVEL: usize>(
    records: &[u8],
    pattern: &[[u8; LINE]],
    bits: &[u128],
    sums: &mut [[u8; LINE]],
    distance: usize,
) {
    let vectors = pattern.len();
    let batches = records.chunks_exact(HALVES * HALF_RECORDS * vectors);
    let rest = batches.remainder();
    let (words, words_of_rest) = bits.split_at(batches.len());
    // The first half of the pattern is that of 32 records.
    let whole_pattern = pattern;
    let pattern = &pattern.as_flattened().as_chunks::<VECTOR>().0[..vectors];
    let half_sums = &mut sums.as_flattened_mut().as_chunks_mut::<VECTOR>().0[..vectors];
    for (records, &word) in batches.zip(words) {
        let mut bits = [_mm256_setzero_si256(); HALVES];
        for (h, bits) in bits.iter_mut().enumerate() {
            *bits = _mm256_set1_epi32((word >> (h * HALF_RECORDS)) as i32);
        }
        let records = records.as_chunks::<VECTOR>().0;
        let (first, records) = records.split_at(vectors);
        let (second, records) = records.split_at(vectors);
        let (third, fourth) = records.split_at(vectors);
        let halves = [first, second, third, &fourth[..vectors]];
        for j in 0..vectors {
            let (byte, bit) = byte_and_bit(&pattern[j]);
            let mut sum = load(&half_sums[j]);
            for h in 0..HALVES {
                if j % 2 == 0 {
                    prefetch_ahead::<LEVEL, _>(&halves[h][j], distance);
                }
                let own = _mm256_and_si256(_mm256_shuffle_epi8(bits[h], byte), bit);
                let mask = _mm256_cmpeq_epi8(own, bit);
                sum = _mm256_xor_si256(sum, _mm256_and_si256(mask, load(&halves[h][j])));
            }
            store(&mut half_sums[j], sum);
        }
    }
    one_by_one::narrow(rest, whole_pattern, words_of_rest, sums, Prefetch::Nothing);
}

/// For each byte of a vector the byte of a mask of 32 bits that its own one is in, and that bit.
#[inline]
#[target_feature(enable = "avx2,aes")]
fn byte_and_bit(pattern: &[u8; VECTOR]) -> (__m256i, __m256i) {
    let record = load(pattern);
    let byte = _mm256_and_si256(_mm256_srli_epi16::<3>(record), _mm256_set1_epi8(3));
    // A shuffle looks at the lowest four bits, of which the highest makes no difference here.
    let bits = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    (byte, _mm256_shuffle_epi8(bits, record))
}

/// See [`crate::portable::selected_xor::one_by_one::wide`].
#[target_feature(enable = "avx2,aes")]
pub(crate) fn wide(
    records: &[u8],
    record_len: usize,
    columns: Range<usize>,
    bits: u128,
    sums: &mut [[u8; LINE]],
    prefetch: Prefetch,
) {
    match prefetch {
        // A batch is not read from front to back, so its prefetches should be for later ones.
        Prefetch::Stream(distance) if distance < ROWS * record_len => {
            wide_ahead::<1, 1>(records, record_len, columns, bits, sums, distance);
        }
        Prefetch::Stream(distance) => {
            wide_ahead::<ROWS, 1>(records, record_len, columns, bits, sums, distance);
        }
        Prefetch::NextPiece(distance) => {
            wide_ahead::<ROWS, 2>(records, record_len, columns, bits, sums, distance);
        }
        Prefetch::Nothing => wide_ahead::<ROWS, 0>(records, record_len, columns, bits, sums, 0),
    }
}

#[inline]
#[target_feature(enable = "avx2,aes")]
fn wide_ahead<const ROWS: usize, const LEVEL: usize>(
    records: &[u8],
    record_len: usize,
    columns: Range<usize>,
    mut bits: u128,
    sums: &mut [[u8; LINE]],
    distance: usize,
) {
    let batches = records.chunks_exact(ROWS * record_len);
    let rest = batches.remainder();
    for records in batches {
        let mut rows = [records; ROWS];
        for r in 0..ROWS {
            rows[r] = &records[r * record_len..(r + 1) * record_len];
        }
        add_rows::<ROWS, LEVEL>(rows, columns.clone(), bits, sums, distance);
        bits >>= ROWS;
    }
    for record in rest.chunks_exact(record_len) {
        add_rows::<1, LEVEL>([record], columns.clone(), bits, sums, distance);
        bits >>= 1;
    }
}

/// Adds those of `rows`, all of the same length, up whose bit is set.
#[inline]
#[target_feature(enable = "avx2,aes")]
fn add_rows<const ROWS: usize, const LEVEL: usize>(
    rows: [&[u8]; ROWS],
    columns: Range<usize>,
    bits: u128,
    sums: &mut [[u8; LINE]],
    distance: usize,
) {
    let mut masks = [_mm256_setzero_si256(); ROWS];
    for (r, mask) in masks.iter_mut().enumerate() {
        *mask = _mm256_set1_epi64x(((bits >> r) as i64 & 1).wrapping_neg());
    }
    let (first, whole) = (columns.start / LINE, columns.len() / LINE);
    let mut lines: [&[[u8; LINE]]; ROWS] = [&[]; ROWS];
    for r in 0..ROWS {
        lines[r] = &rows[r][columns.clone()].as_chunks().0[..whole];
    }
    let (sums, last_sum) = sums[first..].split_at_mut(whole);
    for (i, sum) in sums.iter_mut().enumerate() {
        let mut line = [&[0; LINE]; ROWS];
        for r in 0..ROWS {
            prefetch_ahead::<LEVEL, _>(&lines[r][i], distance);
            line[r] = &lines[r][i];
        }
        add_lines(line, masks, sum);
    }
    if columns.len() > whole * LINE {
        let mut line = [&[0; LINE]; ROWS];
        for r in 0..ROWS {
            line[r] = rows[r].last_chunk().expect("wide records are longer than a line");
        }
        add_lines(line, masks, &mut last_sum[0]);
    }
}

/// `sum ^= line & mask` for each line.
#[inline]
#[target_feature(enable = "avx2,aes")]
fn add_lines<const ROWS: usize>(
    lines: [&[u8; LINE]; ROWS],
    masks: [__m256i; ROWS],
    sum: &mut [u8; LINE],
) {
    for (half, sum) in sum.as_chunks_mut::<VECTOR>().0.iter_mut().enumerate() {
        let mut vector = load(sum);
        for r in 0..ROWS {
            let record = load(&lines[r].as_chunks::<VECTOR>().0[half]);
            vector = _mm256_xor_si256(vector, _mm256_and_si256(masks[r], record));
        }
        store(sum, vector);
    }
}
