//! Masked sums in plain Rust.

use std::ops::Range;

use crate::selected_xor::{Bits, GROUP_RECORDS, LINE};

/// Adds the selected ones of `records`, of `pattern.len() <= 64` bytes each, to `sums`. The first
/// record begins a word of bits.
///
/// Byte `n` of `pattern` is `n / pattern.len()`. Each selection has as many lines of sums: seen as
/// bytes, place `r % 64` of 64 takes record `r`.
pub(crate) fn narrow(records: &[u8], pattern: &[[u8; LINE]], bits: Bits, sums: &mut [[u8; LINE]]) {
    for (k, sums) in sums.chunks_exact_mut(pattern.len()).enumerate() {
        narrow_one(records, pattern.len(), bits.words(k), sums);
    }
}

/// The same for one selection.
pub(crate) fn narrow_one(
    records: &[u8],
    record_len: usize,
    bits: &[u128],
    sums: &mut [[u8; LINE]],
) {
    let sums = sums.as_flattened_mut();
    // For lengths that the compiler knows, the loop becomes a few instructions.
    match record_len {
        1 => records_of::<1>(records, bits, sums),
        2 => records_of::<2>(records, bits, sums),
        4 => records_of::<4>(records, bits, sums),
        8 => records_of::<8>(records, bits, sums),
        16 => records_of::<16>(records, bits, sums),
        32 => records_of::<32>(records, bits, sums),
        64 => records_of::<64>(records, bits, sums),
        _ => {
            for (r, record) in records.chunks_exact(record_len).enumerate() {
                let mask = mask(bits[r / 128] >> (r % 128));
                let start = r % GROUP_RECORDS * record_len;
                xor(&mut sums[start..start + record_len], record, mask);
            }
        }
    }
}

fn records_of<const LEN: usize>(records: &[u8], bits: &[u128], sums: &mut [u8]) {
    let records = records.as_chunks::<LEN>().0;
    let sums = sums.as_chunks_mut::<LEN>().0;
    let halves = bits.iter().flat_map(|word| [*word as u64, (word >> 64) as u64]);
    for (records, half) in records.chunks(GROUP_RECORDS).zip(halves) {
        for (r, (record, sum)) in records.iter().zip(sums.iter_mut()).enumerate() {
            xor(sum, record, mask(u128::from(half >> r)));
        }
    }
}

/// Adds the columns (bytes) `columns` of the selected ones of `records` to `sums`. There are at
/// most 128 records of `record_len > 64` bytes each, whose bits are in one word. `columns.start` is
/// a multiple of 64, and `columns.end` is one or is `record_len`.
///
/// Each selection has as many lines of sums as it takes to cover a record: line `i` is for columns
/// `64 i..64 (i + 1)`, but the last one is for the last 64 columns. If it overlaps the line before,
/// both take the columns that they cover.
pub(crate) fn wide(
    records: &[u8],
    record_len: usize,
    columns: Range<usize>,
    bits: Bits,
    sums: &mut [[u8; LINE]],
) {
    for (k, sums) in sums.chunks_exact_mut(record_len.div_ceil(LINE)).enumerate() {
        for (r, record) in records.chunks_exact(record_len).enumerate() {
            let mask = mask(bits.word(k) >> r);
            for start in columns.clone().step_by(LINE) {
                let line = &mut sums[start / LINE];
                let start = start.min(record_len - LINE);
                xor(line, &record[start..start + LINE], mask);
            }
        }
    }
}

/// A byte whose bits are all the lowest bit of `bits`.
fn mask(bits: u128) -> u8 {
    (bits as u8 & 1).wrapping_neg()
}

fn xor(sum: &mut [u8], record: &[u8], mask: u8) {
    for (sum, byte) in sum.iter_mut().zip(record) {
        *sum ^= byte & mask;
    }
}
