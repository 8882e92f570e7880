//! Walking over records at given positions, with their memory on its way before it is needed.

use super::prefetch;

/// How many positions ahead records are prefetched.
const POSITIONS_AHEAD: usize = 32;
/// Of longer records, how many bytes are prefetched; the processor follows by itself.
const PREFETCHED_BYTES: usize = 512;

/// One record of the table.
#[inline(always)]
pub(super) fn record(table: &[u8], record_len: usize, position: u64) -> &[u8] {
    let start = position as usize * record_len;
    &table[start..start + record_len]
}

/// Asks for the record that will be needed some positions after the `i`-th.
#[inline(always)]
pub(super) fn prefetch_record(table: &[u8], record_len: usize, positions: &[u64], i: usize) {
    if let Some(&position) = positions.get(i + POSITIONS_AHEAD) {
        let start = (position as usize).wrapping_mul(record_len);
        let len = record_len.min(PREFETCHED_BYTES);
        for offset in (0..len).step_by(64) {
            prefetch(table.as_ptr(), start.wrapping_add(offset));
        }
        // A record may begin in the middle of a line and so end in one more.
        prefetch(table.as_ptr(), start.wrapping_add(len - 1));
    }
}
