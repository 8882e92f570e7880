//! Sums of selected records: the mask of 64 bytes comes from 64 selection bits by one permutation of bytes
//! (narrow records), or is the same for all of a record (wide ones). One ternary operation then adds
//! masked bytes to a sum.

use std::arch::x86_64::*;
use std::ops::Range;

use super::yardstick::load_up_to;
use super::{load, store};
use crate::selected_xor::{GROUP_RECORDS, LINE, Prefetch};
use crate::x86_64::prefetch_ahead;

/// Groups of narrow records that are added to a sum between loading and storing it.
const GROUPS: usize = 4;
/// Wide records likewise.
const ROWS: usize = 8;
/// `a ^ (b & c)` as the truth table of a ternary operation.
const XOR_AND: i32 = 0b0111_1000;

/// See [`crate::portable::selected_xor::narrow`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,vaes,aes")]
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
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,vaes,aes")]
fn narrow_ahead<const LEVEL: usize>(
    records: &[u8],
    pattern: &[[u8; LINE]],
    bits: &[u128],
    sums: &mut [[u8; LINE]],
    distance: usize,
) {
    let lines = pattern.len();
    let sums = &mut sums[..lines];
    let batches = records.chunks_exact(GROUPS * GROUP_RECORDS * lines);
    let rest = batches.remainder();
    let (words, words_of_rest) = bits.split_at(batches.len() * GROUPS / 2);
    for (records, &[low, high]) in batches.zip(words.as_chunks::<2>().0) {
        let masks = [mask_of(low), mask_of(low >> 64), mask_of(high), mask_of(high >> 64)];
        let records = records.as_chunks::<LINE>().0;
        let (first, records) = records.split_at(lines);
        let (second, records) = records.split_at(lines);
        let (third, fourth) = records.split_at(lines);
        let groups = [first, second, third, &fourth[..lines]];
        for j in 0..lines {
            let pattern = load(&pattern[j]);
            let mut sum = load(&sums[j]);
            for g in 0..GROUPS {
                prefetch_ahead::<LEVEL, _>(&groups[g][j], distance);
                let mask = _mm512_permutexvar_epi8(pattern, masks[g]);
                let record = load(&groups[g][j]);
                sum = _mm512_ternarylogic_epi64::<XOR_AND>(sum, mask, record);
            }
            store(&mut sums[j], sum);
        }
    }
    for (g, records) in rest.chunks(GROUP_RECORDS * lines).enumerate() {
        let mask = mask_of(words_of_rest[g / 2] >> (g % 2 * GROUP_RECORDS));
        for ((records, pattern), sum) in records.chunks(LINE).zip(pattern).zip(sums.iter_mut()) {
            let mask = _mm512_permutexvar_epi8(load(pattern), mask);
            // Bits of records that do not exist meet zeros.
            let record = load_up_to(records);
            store(sum, _mm512_ternarylogic_epi64::<XOR_AND>(load(sum), mask, record));
        }
    }
}

/// The lowest 64 bits, each in all bits of a byte.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,vaes,aes")]
fn mask_of(bits: u128) -> __m512i {
    _mm512_movm_epi8(bits as u64)
}

/// See [`crate::portable::selected_xor::wide`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,vaes,aes")]
pub(crate) fn wide(
    records: &[u8],
    record_len: usize,
    columns: Range<usize>,
    bits: u128,
    sums: &mut [[u8; LINE]],
    prefetch: Prefetch,
) {
    match prefetch {
        Prefetch::Stream(distance) => {
            wide_ahead::<1>(records, record_len, columns, bits, sums, distance);
        }
        Prefetch::NextPiece(distance) => {
            wide_ahead::<2>(records, record_len, columns, bits, sums, distance);
        }
        Prefetch::Nothing => wide_ahead::<0>(records, record_len, columns, bits, sums, 0),
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,vaes,aes")]
fn wide_ahead<const LEVEL: usize>(
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
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,vaes,aes")]
fn add_rows<const ROWS: usize, const LEVEL: usize>(
    rows: [&[u8]; ROWS],
    columns: Range<usize>,
    bits: u128,
    sums: &mut [[u8; LINE]],
    distance: usize,
) {
    let mut masks = [_mm512_setzero_si512(); ROWS];
    for r in 0..ROWS {
        masks[r] = _mm512_set1_epi64(((bits >> r) as i64 & 1).wrapping_neg());
    }
    let (first, whole) = (columns.start / LINE, columns.len() / LINE);
    let mut lines: [&[[u8; LINE]]; ROWS] = [&[]; ROWS];
    for r in 0..ROWS {
        lines[r] = &rows[r][columns.clone()].as_chunks().0[..whole];
    }
    let (sums, last_sum) = sums[first..].split_at_mut(whole);
    for (i, line) in sums.iter_mut().enumerate() {
        let mut sum = load(line);
        for r in 0..ROWS {
            prefetch_ahead::<LEVEL, _>(&lines[r][i], distance);
            sum = _mm512_ternarylogic_epi64::<XOR_AND>(sum, masks[r], load(&lines[r][i]));
        }
        store(line, sum);
    }
    if columns.len() > whole * LINE {
        let line = &mut last_sum[0];
        let mut sum = load(line);
        for r in 0..ROWS {
            let last = rows[r].last_chunk().expect("wide records are longer than a line");
            sum = _mm512_ternarylogic_epi64::<XOR_AND>(sum, masks[r], load(last));
        }
        store(line, sum);
    }
}
