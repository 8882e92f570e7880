//! Walks over records at given positions, and prefetches them before they are needed.
//!
//! Prefetching is in the baseline of x86-64, and copies wait for memory with any vectors. So both
//! vector arms use the same function to copy records.

use super::prefetch_second_level;
use super::xor::{xor_array, xor_bytes};

/// How many positions ahead records are prefetched.
const POSITIONS_AHEAD: usize = 32;
/// How many bytes of longer records are prefetched. The processor prefetches the rest by itself.
const PREFETCHED_BYTES: usize = 512;

/// See [`Kernels::gather_xor`](crate::Kernels::gather_xor). To be compiled for each arm's vectors.
#[inline(always)]
pub(super) fn xor_records(table: &[u8], record_len: usize, positions: &[u64], out: &mut [u8]) {
    match record_len {
        8 => xor_short_records::<8>(table, positions, out),
        16 => xor_short_records::<16>(table, positions, out),
        32 => xor_short_records::<32>(table, positions, out),
        64 => xor_short_records::<64>(table, positions, out),
        _ => {
            out.fill(0);
            for position in prefetched(table, record_len, positions) {
                xor_bytes(out, record(table, record_len, position));
            }
        }
    }
}

/// The same for records whose sum stays in registers.
#[inline(always)]
fn xor_short_records<const LEN: usize>(table: &[u8], positions: &[u64], out: &mut [u8]) {
    let records = table.as_chunks::<LEN>().0;
    let mut sum = [0; LEN];
    for position in prefetched(table, LEN, positions) {
        xor_array(&mut sum, &records[position as usize]);
    }
    out.copy_from_slice(&sum);
}

/// See [`Kernels::gather_records`](crate::Kernels::gather_records).
pub(crate) fn records(table: &[u8], record_len: usize, positions: &[u64], out: &mut [u8]) {
    match record_len {
        8 => short_records::<8>(table, positions, out),
        16 => short_records::<16>(table, positions, out),
        32 => short_records::<32>(table, positions, out),
        64 => short_records::<64>(table, positions, out),
        _ => {
            let out = out.chunks_exact_mut(record_len);
            for (out, position) in out.zip(prefetched(table, record_len, positions)) {
                out.copy_from_slice(record(table, record_len, position));
            }
        }
    }
}

/// The same for records that take only a few moves and never span more than two lines.
fn short_records<const LEN: usize>(table: &[u8], positions: &[u64], out: &mut [u8]) {
    let table_records = table.as_chunks::<LEN>().0;
    let out = out.as_chunks_mut::<LEN>().0.iter_mut();
    for (out, position) in out.zip(prefetched(table, LEN, positions)) {
        *out = table_records[position as usize];
    }
}

/// See [`Kernels::scatter_xor`](crate::Kernels::scatter_xor).
pub(crate) fn scatter_xor(records: &mut [u8], record_len: usize, positions: &[u32], others: &[u8]) {
    match record_len {
        8 => scatter_xor_short::<8>(records, positions, others),
        16 => scatter_xor_short::<16>(records, positions, others),
        32 => scatter_xor_short::<32>(records, positions, others),
        64 => scatter_xor_short::<64>(records, positions, others),
        _ => {
            for (i, other) in others.chunks_exact(record_len).enumerate() {
                let start = prefetched_position(records, record_len, positions, i) * record_len;
                xor_bytes(&mut records[start..start + record_len], other);
            }
        }
    }
}

/// The same for records that take only a few moves.
fn scatter_xor_short<const LEN: usize>(records: &mut [u8], positions: &[u32], others: &[u8]) {
    for (i, other) in others.as_chunks::<LEN>().0.iter().enumerate() {
        let position = prefetched_position(records, LEN, positions, i);
        xor_array(&mut records.as_chunks_mut::<LEN>().0[position], other);
    }
}

/// Position number `i`, while a later one is prefetched.
#[inline(always)]
fn prefetched_position(table: &[u8], record_len: usize, positions: &[u32], i: usize) -> usize {
    if let Some(&later) = positions.get(i + POSITIONS_AHEAD) {
        prefetch_record(table, record_len, later.into());
    }
    positions[i] as usize
}

/// One record of the table.
#[inline(always)]
fn record(table: &[u8], record_len: usize, position: u64) -> &[u8] {
    let start = position as usize * record_len;
    &table[start..start + record_len]
}

/// The positions. The record of each was prefetched some positions earlier.
#[inline(always)]
fn prefetched(table: &[u8], record_len: usize, positions: &[u64]) -> impl Iterator<Item = u64> {
    let (first, _) = positions.split_at(POSITIONS_AHEAD.min(positions.len()));
    for &position in first {
        prefetch_record(table, record_len, position);
    }
    positions.iter().enumerate().map(move |(i, &position)| {
        if let Some(&later) = positions.get(i + POSITIONS_AHEAD) {
            prefetch_record(table, record_len, later);
        }
        position
    })
}

#[inline(always)]
fn prefetch_record(table: &[u8], record_len: usize, position: u64) {
    let start = (position as usize).wrapping_mul(record_len);
    let len = record_len.min(PREFETCHED_BYTES);
    for offset in (0..len).step_by(64) {
        prefetch_second_level(table.as_ptr(), start.wrapping_add(offset));
    }
    // A record may begin in the middle of a line and so end in one more.
    prefetch_second_level(table.as_ptr(), start.wrapping_add(len - 1));
}
