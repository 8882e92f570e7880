//! Masked sums: a mask of 32 bytes comes from 32 selection bits. For narrow records, each byte
//! looks up its own bit. For wide records, all bytes of the record have the same bit.

use std::arch::x86_64::*;
use std::ops::Range;

use crate::portable::selected_xor::one_by_one::narrow_one;
use crate::selected_xor::{Bits, GROUP_RECORDS, LINE};
use crate::x86_64::avx2::{load, store};
use crate::x86_64::{prefetch, prefetch_second_level};

/// Records whose bits make a mask: half a group.
const HALF_RECORDS: usize = GROUP_RECORDS / 2;
/// Bytes of a vector.
const VECTOR: usize = LINE / 2;
/// Halves of groups of narrow records that are added to a sum between loading and storing it: the
/// records of one word of bits.
const HALVES: usize = 4;
/// The same number for wide records ...
const ROWS: usize = 8;
/// ... if they are at most this long, or there are several selections. Otherwise memory would not
/// be read roughly from front to back.
const ROWS_LEN: usize = 128;
/// How far ahead of its loads a single selection of narrow records prefetches, in bytes.
const STREAM_AHEAD: usize = 8192;

/// See [`crate::portable::selected_xor::one_by_one::narrow`].
///
/// Uses only the sums of the first 32 places, except for a remainder.
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(crate) fn narrow(records: &[u8], pattern: &[[u8; LINE]], bits: Bits, sums: &mut [[u8; LINE]]) {
    let selections = bits.selections();
    for (k, sums) in sums.chunks_exact_mut(pattern.len()).enumerate() {
        let words = bits.words(k);
        match (selections, k) {
            (1, _) => narrow_ahead::<1>(records, pattern, words, sums, STREAM_AHEAD),
            // Prefetches the next piece. The other selections find this piece in the caches.
            (_, 0) => narrow_ahead::<2>(records, pattern, words, sums, records.len()),
            _ => narrow_ahead::<0>(records, pattern, words, sums, 0),
        }
    }
}

/// For one selection, prefetching `distance` bytes ahead into the cache of this level.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn narrow_ahead<const LEVEL: usize>(
    records: &[u8],
    pattern: &[[u8; LINE]],
    bits: &[u128],
    sums: &mut [[u8; LINE]],
    distance: usize,
) {
    let record_len = pattern.len();
    let batches = records.chunks_exact(HALVES * HALF_RECORDS * record_len);
    let rest = batches.remainder();
    let whole_words = batches.len();
    // The first half of the pattern is that of 32 records.
    let pattern = &pattern.as_flattened().as_chunks::<VECTOR>().0[..record_len];
    let half_sums = &mut sums.as_flattened_mut().as_chunks_mut::<VECTOR>().0[..record_len];
    for (batch, &word) in batches.zip(bits) {
        let mut bits = [_mm256_setzero_si256(); HALVES];
        for (h, bits) in bits.iter_mut().enumerate() {
            *bits = _mm256_set1_epi32((word >> (h * HALF_RECORDS)) as i32);
        }
        let vectors = batch.as_chunks::<VECTOR>().0;
        let (first, vectors) = vectors.split_at(record_len);
        let (second, vectors) = vectors.split_at(record_len);
        let (third, fourth) = vectors.split_at(record_len);
        let halves = [first, second, third, &fourth[..record_len]];
        for j in 0..record_len {
            // Prefetches from front to back, unlike the loads.
            for line in 2 * j..2 * j + 2 {
                prefetch_ahead::<LEVEL, _>(batch.as_ptr(), distance + line * LINE);
            }
            let (byte, bit) = byte_and_bit(&pattern[j]);
            let mut sum = load(&half_sums[j]);
            for h in 0..HALVES {
                let own = _mm256_and_si256(_mm256_shuffle_epi8(bits[h], byte), bit);
                let mask = _mm256_cmpeq_epi8(own, bit);
                sum = _mm256_xor_si256(sum, _mm256_and_si256(mask, load(&halves[h][j])));
            }
            store(&mut half_sums[j], sum);
        }
    }
    narrow_one(rest, record_len, &bits[whole_words..], sums);
}

/// For each byte of a vector: the byte of a mask of 32 bits with its own bit, and that bit.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn byte_and_bit(pattern: &[u8; VECTOR]) -> (__m256i, __m256i) {
    let record = load(pattern);
    let byte = _mm256_and_si256(_mm256_srli_epi16::<3>(record), _mm256_set1_epi8(3));
    // A shuffle uses the lowest four bits. The highest of them makes no difference here.
    let bits = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    (byte, _mm256_shuffle_epi8(bits, record))
}

/// See [`crate::portable::selected_xor::one_by_one::wide`].
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(crate) fn wide(
    records: &[u8],
    record_len: usize,
    columns: Range<usize>,
    bits: Bits,
    sums: &mut [[u8; LINE]],
) {
    let selections = bits.selections();
    for (k, sums) in sums.chunks_exact_mut(record_len.div_ceil(LINE)).enumerate() {
        let bits = bits.word(k);
        let columns = columns.clone();
        match (selections, k) {
            (1, _) if record_len > ROWS_LEN => {
                wide_ahead::<1, 0>(records, record_len, columns, bits, sums, 0);
            }
            (2.., 0) => {
                // Prefetches the next columns of these records; or, if these are all columns, those
                // of the next records.
                let next = if columns.len() < record_len { columns.len() } else { records.len() };
                wide_ahead::<ROWS, 2>(records, record_len, columns, bits, sums, next);
            }
            _ => wide_ahead::<ROWS, 0>(records, record_len, columns, bits, sums, 0),
        }
    }
}

/// For one selection, prefetching `distance` bytes ahead into the cache of this level.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
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

/// Adds up those of `rows` whose bit is set. All rows have the same length.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
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
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
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

/// Asks for the cache line `distance` bytes after `from`, into the cache of the level, 1 or 2; at
/// level 0 it does nothing.
#[inline(always)]
fn prefetch_ahead<const LEVEL: usize, T>(from: *const T, distance: usize) {
    match LEVEL {
        0 => (),
        1 => prefetch(from, distance),
        _ => prefetch_second_level(from, distance),
    }
}
