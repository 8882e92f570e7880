//! Sums of selected records in plain Rust.

use std::ops::Range;

use crate::selected_xor::{GROUP_RECORDS, LINE, Prefetch};

/// Adds the selected ones among `records`, of `pattern.len() <= 64` bytes each, up in `sums`, which has one
/// line for each byte of a record: seen as bytes, place `r % 64` of 64 takes record `r`, whose bit is bit
/// `r % 128` of `bits[r / 128]`.
///
/// Byte `n` of `pattern` is `n / pattern.len()`.
pub(crate) fn narrow(
    records: &[u8],
    pattern: &[[u8; LINE]],
    bits: &[u128],
    sums: &mut [[u8; LINE]],
    _prefetch: Prefetch,
) {
    let sums = sums.as_flattened_mut();
    // Lengths that the compiler knows become a few instructions.
    match pattern.len() {
        1 => records_of::<1>(records, bits, sums),
        2 => records_of::<2>(records, bits, sums),
        4 => records_of::<4>(records, bits, sums),
        8 => records_of::<8>(records, bits, sums),
        16 => records_of::<16>(records, bits, sums),
        32 => records_of::<32>(records, bits, sums),
        64 => records_of::<64>(records, bits, sums),
        record_len => {
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

/// Adds columns (bytes) `columns` of the selected ones among `records`, at most 128 of `record_len > 64`
/// bytes each, up in `sums`. Bit `r` of `bits` is for record `r`. `columns.start` is a multiple of 64, and
/// `columns.end` is one or is `record_len`.
///
/// Line `i` of `sums` is for columns `64 i..64 (i + 1)`, but the last one is for the last 64 columns. Where it
/// overlaps the one before, both take what they cover.
pub(crate) fn wide(
    records: &[u8],
    record_len: usize,
    columns: Range<usize>,
    bits: u128,
    sums: &mut [[u8; LINE]],
    _prefetch: Prefetch,
) {
    for (r, record) in records.chunks_exact(record_len).enumerate() {
        let mask = mask(bits >> r);
        for start in columns.clone().step_by(LINE) {
            let line = &mut sums[start / LINE];
            let start = start.min(record_len - LINE);
            xor(line, &record[start..start + LINE], mask);
        }
    }
}

/// The lowest bit, in all bits of a byte.
fn mask(bits: u128) -> u8 {
    (bits as u8 & 1).wrapping_neg()
}

fn xor(sum: &mut [u8], record: &[u8], mask: u8) {
    for (sum, byte) in sum.iter_mut().zip(record) {
        *sum ^= byte & mask;
    }
}
