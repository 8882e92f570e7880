//! Masked sums: for narrow records, one permutation of bytes makes the mask of 64 bytes from 64
//! selection bits. For wide records, the mask is the same for all bytes of a record. One ternary
//! operation then adds masked bytes to a sum.

use std::arch::x86_64::*;
use std::ops::Range;

use crate::selected_xor::{Bits, GROUP_RECORDS, LINE};
use crate::x86_64::avx512::yardstick::{load_up_to, mask_of};
use crate::x86_64::avx512::{load, store};

/// Selections of narrow records whose masks and sums are in registers at a time.
const SELECTIONS: usize = 4;
/// Wide records that are added to a sum between loading and storing it ...
const ROWS: usize = 8;
/// ... except for the first selection with records of such lengths. For them, hardware prefetching
/// works only if the loads go from front to back. Shorter records are close enough to each other.
/// Longer ones are so far apart that the processor prefetches all of them.
const ONE_ROW: Range<usize> = 129..16 << 10;
/// `a ^ (b & c)` as the truth table of a ternary operation.
const XOR_AND: i32 = 0b0111_1000;

/// See [`crate::portable::selected_xor::one_by_one::narrow`].
///
/// A vector takes as many whole records as it has room for. There is one sum for all vectors, in
/// the first of each selection's lines.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
pub(crate) fn narrow(records: &[u8], pattern: &[[u8; LINE]], bits: Bits, sums: &mut [[u8; LINE]]) {
    for (i, sums) in sums.chunks_mut(SELECTIONS * pattern.len()).enumerate() {
        let first = i * SELECTIONS;
        match sums.len() / pattern.len() {
            4 => several::<4>(records, pattern, bits, first, sums),
            3 => several::<3>(records, pattern, bits, first, sums),
            2 => several::<2>(records, pattern, bits, first, sums),
            _ => several::<1>(records, pattern, bits, first, sums),
        }
    }
}

/// Selections `first..first + SELECTIONS`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
fn several<const SELECTIONS: usize>(
    records: &[u8],
    pattern: &[[u8; LINE]],
    bits: Bits,
    first: usize,
    sums: &mut [[u8; LINE]],
) {
    let record_len = pattern.len();
    if record_len == 1 {
        return bytes::<SELECTIONS>(records, bits, first, sums);
    }
    let vector_records = LINE / record_len;
    let vector_bytes = vector_records * record_len;
    let vectors = GROUP_RECORDS / vector_records;
    let record_of = load(&pattern[0]);
    let next_records = _mm512_set1_epi8(vector_records as i8);

    let mut words: [&[u128]; SELECTIONS] = [&[]; SELECTIONS];
    for (k, words) in words.iter_mut().enumerate() {
        *words = bits.words(first + k);
    }
    let mut sum = [_mm512_setzero_si512(); SELECTIONS];
    // Whole vectors are read even if records end earlier. For the last groups, only the existing
    // bytes are read.
    let groups = records.len().saturating_sub(LINE) / (GROUP_RECORDS * record_len);
    let last = &records[groups * GROUP_RECORDS * record_len..];
    let rest_mask = mask_of(GROUP_RECORDS % vector_records * record_len);
    for g in 0..groups {
        let group = &records[g * GROUP_RECORDS * record_len..];
        let mut masks = [_mm512_setzero_si512(); SELECTIONS];
        for k in 0..SELECTIONS {
            masks[k] = masks_of(words[k][g / 2] >> (g % 2 * GROUP_RECORDS));
        }
        let mut record = record_of;
        for v in 0..vectors {
            let bytes =
                load(group[v * vector_bytes..].first_chunk::<LINE>().expect("not the last group"));
            for k in 0..SELECTIONS {
                sum[k] = add(sum[k], record, masks[k], bytes);
            }
            record = _mm512_add_epi8(record, next_records);
        }
        if rest_mask != 0 {
            let bytes =
                load(group[vectors * vector_bytes..].first_chunk::<LINE>().expect("as before"));
            let bytes = _mm512_maskz_mov_epi8(rest_mask, bytes);
            for k in 0..SELECTIONS {
                sum[k] = add(sum[k], record, masks[k], bytes);
            }
        }
    }
    for (g, group) in last.chunks(GROUP_RECORDS * record_len).enumerate() {
        let g = groups + g;
        let mut record = record_of;
        for bytes in group.chunks(vector_bytes) {
            // Bits of records that do not exist select zeros.
            let bytes = load_up_to(bytes);
            for k in 0..SELECTIONS {
                let masks = masks_of(words[k][g / 2] >> (g % 2 * GROUP_RECORDS));
                sum[k] = add(sum[k], record, masks, bytes);
            }
            record = _mm512_add_epi8(record, next_records);
        }
    }
    for (sums, sum) in sums.chunks_exact_mut(record_len).zip(sum) {
        // Clears the part of the vector after its whole records, which has the beginnings of
        // others.
        let sum = _mm512_maskz_mov_epi8(mask_of(vector_bytes), sum);
        let before = load(&sums[0]);
        store(&mut sums[0], _mm512_xor_si512(before, sum));
    }
}

/// The same for records of one byte: the selections' bits are the masks.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
fn bytes<const SELECTIONS: usize>(
    records: &[u8],
    bits: Bits,
    first: usize,
    sums: &mut [[u8; LINE]],
) {
    let (pairs, rest) = records.as_chunks::<{ 2 * LINE }>();
    let mut sum = [_mm512_setzero_si512(); SELECTIONS];
    let mut words = [bits.words(first); SELECTIONS];
    for (k, words) in words.iter_mut().enumerate() {
        *words = &bits.words(first + k)[..records.len().div_ceil(2 * LINE)];
    }
    for (i, pair) in pairs.iter().enumerate() {
        let lines = pair.as_chunks::<LINE>().0;
        let (low, high) = (load(&lines[0]), load(&lines[1]));
        for k in 0..SELECTIONS {
            let word = words[k][i];
            sum[k] = _mm512_xor_si512(sum[k], _mm512_maskz_mov_epi8(word as u64, low));
            let high = _mm512_maskz_mov_epi8((word >> LINE) as u64, high);
            sum[k] = _mm512_xor_si512(sum[k], high);
        }
    }
    for (half, line) in rest.chunks(LINE).enumerate() {
        let line = load_up_to(line);
        for k in 0..SELECTIONS {
            let word = (words[k][pairs.len()] >> (half * LINE)) as u64;
            sum[k] = _mm512_xor_si512(sum[k], _mm512_maskz_mov_epi8(word, line));
        }
    }
    for (sums, sum) in sums.iter_mut().zip(sum) {
        let before = load(sums);
        store(sums, _mm512_xor_si512(before, sum));
    }
}

/// Spreads each of the lowest 64 bits to all bits of a byte.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
fn masks_of(bits: u128) -> __m512i {
    _mm512_movm_epi8(bits as u64)
}

/// Adds those bytes whose record's mask is set.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
fn add(sum: __m512i, record_of: __m512i, masks: __m512i, bytes: __m512i) -> __m512i {
    let mask = _mm512_permutexvar_epi8(record_of, masks);
    _mm512_ternarylogic_epi64::<XOR_AND>(sum, mask, bytes)
}

/// See [`crate::portable::selected_xor::one_by_one::wide`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
pub(crate) fn wide(
    records: &[u8],
    record_len: usize,
    columns: Range<usize>,
    bits: Bits,
    sums: &mut [[u8; LINE]],
) {
    for (k, sums) in sums.chunks_exact_mut(record_len.div_ceil(LINE)).enumerate() {
        let (columns, bits) = (columns.clone(), bits.word(k));
        if k == 0 && ONE_ROW.contains(&record_len) {
            wide_one::<1>(records, record_len, columns, bits, sums);
        } else {
            wide_one::<ROWS>(records, record_len, columns, bits, sums);
        }
    }
}

/// For one selection, `ROWS` records at a time.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
fn wide_one<const ROWS: usize>(
    records: &[u8],
    record_len: usize,
    columns: Range<usize>,
    mut bits: u128,
    sums: &mut [[u8; LINE]],
) {
    let batches = records.chunks_exact(ROWS * record_len);
    let rest = batches.remainder();
    for records in batches {
        let mut rows = [records; ROWS];
        for r in 0..ROWS {
            rows[r] = &records[r * record_len..(r + 1) * record_len];
        }
        add_rows(rows, columns.clone(), bits, sums);
        bits >>= ROWS;
    }
    for record in rest.chunks_exact(record_len) {
        add_rows([record], columns.clone(), bits, sums);
        bits >>= 1;
    }
}

/// Adds up those of `rows` whose bit is set. All rows have the same length.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
fn add_rows<const ROWS: usize>(
    rows: [&[u8]; ROWS],
    columns: Range<usize>,
    bits: u128,
    sums: &mut [[u8; LINE]],
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
            sum = _mm512_ternarylogic_epi64::<XOR_AND>(sum, masks[r], load(&lines[r][i]));
        }
        store(line, sum);
    }
    if columns.len() > whole * LINE {
        let line = &mut last_sum[0];
        let mut sum = load(line);
        for r in 0..ROWS {
            let last = rows[r].last_chunk::<LINE>().expect("wide records are longer than a line");
            sum = _mm512_ternarylogic_epi64::<XOR_AND>(sum, masks[r], load(last));
        }
        store(line, sum);
    }
}
