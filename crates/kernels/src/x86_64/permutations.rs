//! Permuted records, with prefetches of the next ones.

use super::prefetch_second_level;
use super::xor::{xor_array, xor_bytes};
use crate::portable;

/// How many elements of a permutation ahead records are prefetched.
const RECORDS_AHEAD: usize = 32;
/// How many bytes of longer records are prefetched. The processor prefetches the rest by itself.
const PREFETCHED_BYTES: usize = 512;
const LINE: usize = 64;

/// See [`Kernels::xor_accumulate_permuted`](crate::Kernels::xor_accumulate_permuted). To be
/// compiled for each arm's vectors.
#[inline(always)]
pub(super) fn xor_accumulate(
    partition: &[u8],
    record_len: usize,
    permutation: &[u16],
    sums: &mut [u8],
) {
    match record_len {
        8 => accumulate_short::<8>(partition, permutation, sums),
        16 => accumulate_short::<16>(partition, permutation, sums),
        32 => accumulate_short::<32>(partition, permutation, sums),
        64 => accumulate_short::<64>(partition, permutation, sums),
        0..8 => portable::permutations::xor_accumulate(partition, record_len, permutation, sums),
        _ => accumulate_any(partition, record_len, permutation, sums),
    }
}

/// The same for records of a few vectors at most.
#[inline(always)]
fn accumulate_short<const LEN: usize>(partition: &[u8], permutation: &[u16], sums: &mut [u8]) {
    let records = partition.as_chunks::<LEN>().0;
    let sums = sums.as_chunks_mut::<LEN>().0.iter_mut();
    for (x, (sum, &number)) in sums.zip(permutation).enumerate() {
        prefetch_records(partition, LEN, permutation, x);
        xor_array(sum, &records[usize::from(number)]);
    }
}

/// The same for records of any length.
#[inline(always)]
fn accumulate_any(partition: &[u8], record_len: usize, permutation: &[u16], sums: &mut [u8]) {
    let sums = sums.chunks_exact_mut(record_len);
    for (x, (sum, &number)) in sums.zip(permutation).enumerate() {
        prefetch_records(partition, record_len, permutation, x);
        let start = usize::from(number) * record_len;
        xor_bytes(sum, &partition[start..start + record_len]);
    }
}

/// Prefetches the record that will be needed some places after `x`, and as many bytes of the memory
/// after the partition, for the next call.
#[inline(always)]
fn prefetch_records(partition: &[u8], record_len: usize, permutation: &[u16], x: usize) {
    if let Some(&number) = permutation.get(x + RECORDS_AHEAD) {
        for offset in (0..record_len.min(PREFETCHED_BYTES)).step_by(LINE) {
            prefetch_second_level(partition.as_ptr(), usize::from(number) * record_len + offset);
        }
    }
    for offset in (0..record_len).step_by(LINE) {
        prefetch_second_level(partition.as_ptr(), partition.len() + x * record_len + offset);
    }
}
