//! Walking over records at given positions, with their memory on its way before it is needed.
//!
//! Prefetching is in the baseline of x86-64, and copies wait for memory whatever the vectors they use: both
//! vector arms copy records with the one function here.

use super::prefetch_second_level;
use super::xor::{xor_array, xor_bytes};

/// How many positions ahead records are prefetched.
const POSITIONS_AHEAD: usize = 32;
/// Of longer records, how many bytes are prefetched; the processor follows by itself.
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
            for (i, &position) in positions.iter().enumerate() {
                prefetch_record(table, record_len, positions, i);
                xor_bytes(out, record(table, record_len, position));
            }
        }
    }
}

/// The same for records of which the sum stays in registers.
#[inline(always)]
fn xor_short_records<const LEN: usize>(table: &[u8], positions: &[u64], out: &mut [u8]) {
    let records = table.as_chunks::<LEN>().0;
    let mut sum = [0; LEN];
    for (i, &position) in positions.iter().enumerate() {
        prefetch_record(table, LEN, positions, i);
        xor_array(&mut sum, &records[position as usize]);
    }
    out.copy_from_slice(&sum);
}

/// One record of the table.
#[inline(always)]
fn record(table: &[u8], record_len: usize, position: u64) -> &[u8] {
    let start = position as usize * record_len;
    &table[start..start + record_len]
}

/// Asks for the record that will be needed some positions after the `i`-th.
#[inline(always)]
fn prefetch_record(table: &[u8], record_len: usize, positions: &[u64], i: usize) {
    if let Some(&position) = positions.get(i + POSITIONS_AHEAD) {
        let start = (position as usize).wrapping_mul(record_len);
        let len = record_len.min(PREFETCHED_BYTES);
        for offset in (0..len).step_by(64) {
            prefetch_second_level(table.as_ptr(), start.wrapping_add(offset));
        }
        // A record may begin in the middle of a line and so end in one more.
        prefetch_second_level(table.as_ptr(), start.wrapping_add(len - 1));
    }
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
            for (i, (out, &position)) in out.zip(positions).enumerate() {
                prefetch_record(table, record_len, positions, i);
                out.copy_from_slice(record(table, record_len, position));
            }
        }
    }
}

/// The same for records of a length that makes them a few moves and never reach over more than two lines.
fn short_records<const LEN: usize>(table: &[u8], positions: &[u64], out: &mut [u8]) {
    let table_records = table.as_chunks::<LEN>().0;
    for (i, (out, &position)) in out.as_chunks_mut::<LEN>().0.iter_mut().zip(positions).enumerate()
    {
        prefetch_record(table, LEN, positions, i);
        *out = table_records[position as usize];
    }
}
