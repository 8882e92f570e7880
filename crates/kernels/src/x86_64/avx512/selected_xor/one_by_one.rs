//! Sums of selected records: the mask of 64 bytes comes from 64 selection bits by one permutation of bytes
//! (narrow records), or is the same for all of a record (wide ones). One ternary operation then adds
//! masked bytes to a sum.

use std::arch::x86_64::*;
use std::ops::Range;

use crate::selected_xor::{GROUP_RECORDS, LINE, Prefetch};
use crate::x86_64::avx512::yardstick::load_up_to;
use crate::x86_64::avx512::{load, store};
use crate::x86_64::prefetch_ahead;

/// Wide records that are added to a sum between loading and storing it.
const ROWS: usize = 8;
/// `a ^ (b & c)` as the truth table of a ternary operation.
const XOR_AND: i32 = 0b0111_1000;

/// See [`crate::portable::selected_xor::one_by_one::narrow`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
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
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
fn narrow_ahead<const LEVEL: usize>(
    records: &[u8],
    pattern: &[[u8; LINE]],
    bits: &[u128],
    sums: &mut [[u8; LINE]],
    distance: usize,
) {
    match pattern.len() {
        // Patterns and sums stay in registers.
        1 => few_lines::<1, LEVEL>(records, pattern, bits, sums, distance),
        2 => few_lines::<2, LEVEL>(records, pattern, bits, sums, distance),
        3 => few_lines::<3, LEVEL>(records, pattern, bits, sums, distance),
        4 => few_lines::<4, LEVEL>(records, pattern, bits, sums, distance),
        _ if LEVEL == 0 => many_lines::<1, LEVEL>(records, pattern, bits, sums, distance),
        _ => many_lines::<2, LEVEL>(records, pattern, bits, sums, distance),
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
fn few_lines<const LINES: usize, const LEVEL: usize>(
    records: &[u8],
    pattern: &[[u8; LINE]],
    bits: &[u128],
    sums: &mut [[u8; LINE]],
    distance: usize,
) {
    let mut patterns = [_mm512_setzero_si512(); LINES];
    let mut sum = [_mm512_setzero_si512(); LINES];
    for j in 0..LINES {
        patterns[j] = load(&pattern[j]);
    }
    let groups = records.as_chunks::<LINE>().0.as_chunks::<LINES>().0;
    let mut pairs = groups.chunks_exact(2);
    for (pair, &word) in (&mut pairs).zip(bits) {
        for (g, lines) in pair.iter().enumerate() {
            let mask = mask_of(word >> (g * GROUP_RECORDS));
            for j in 0..LINES {
                prefetch_ahead::<LEVEL, _>(&lines[j], distance);
                sum[j] = add_line(sum[j], patterns[j], mask, load(&lines[j]));
            }
        }
    }
    for j in 0..LINES {
        let before = load(&sums[j]);
        store(&mut sums[j], _mm512_xor_si512(before, sum[j]));
    }
    let pairs = groups.len() / 2;
    let rest = &records[2 * pairs * LINES * LINE..];
    many_lines::<1, 0>(rest, pattern, &bits[pairs..], sums, 0);
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
fn many_lines<const GROUPS: usize, const LEVEL: usize>(
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
    let first_group_of_rest = batches.len() * GROUPS;
    for (i, records) in batches.enumerate() {
        let mut masks = [_mm512_setzero_si512(); GROUPS];
        let mut groups: [&[[u8; LINE]]; GROUPS] = [&[]; GROUPS];
        for g in 0..GROUPS {
            let group = i * GROUPS + g;
            masks[g] = mask_of(bits[group / 2] >> (group % 2 * GROUP_RECORDS));
            groups[g] = &records.as_chunks().0[g * lines..(g + 1) * lines];
        }
        for j in 0..lines {
            let pattern = load(&pattern[j]);
            let mut sum = load(&sums[j]);
            for g in 0..GROUPS {
                prefetch_ahead::<LEVEL, _>(&groups[g][j], distance);
                sum = add_line(sum, pattern, masks[g], load(&groups[g][j]));
            }
            store(&mut sums[j], sum);
        }
    }
    for (g, records) in rest.chunks(GROUP_RECORDS * lines).enumerate() {
        let group = first_group_of_rest + g;
        let mask = mask_of(bits[group / 2] >> (group % 2 * GROUP_RECORDS));
        for ((line, pattern), sum) in records.chunks(LINE).zip(pattern).zip(sums.iter_mut()) {
            // Bits of records that do not exist meet zeros.
            let line = load_up_to(line);
            store(sum, add_line(load(sum), load(pattern), mask, line));
        }
    }
}

/// Adds those bytes of a line whose record's mask is set.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
fn add_line(sum: __m512i, pattern: __m512i, mask: __m512i, line: __m512i) -> __m512i {
    let mask = _mm512_permutexvar_epi8(pattern, mask);
    _mm512_ternarylogic_epi64::<XOR_AND>(sum, mask, line)
}

/// The lowest 64 bits, each in all bits of a byte.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
fn mask_of(bits: u128) -> __m512i {
    _mm512_movm_epi8(bits as u64)
}

/// See [`crate::portable::selected_xor::one_by_one::wide`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
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
        Prefetch::Nothing if std::env::var("ROWS").is_ok() => wide_ahead::<1, 0>(records, record_len, columns, bits, sums, 0),
        Prefetch::Nothing => wide_ahead::<ROWS, 0>(records, record_len, columns, bits, sums, 0),
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
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
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
fn add_rows<const ROWS: usize, const LEVEL: usize>(
    rows: [&[u8]; ROWS],
    columns: Range<usize>,
    bits: u128,
    sums: &mut [[u8; LINE]],
    distance: usize,
) {
    let mut masks = [_mm512_setzero_si512(); ROWS];
    for (r, mask) in masks.iter_mut().enumerate() {
        *mask = _mm512_set1_epi64(((bits >> r) as i64 & 1).wrapping_neg());
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
