//! Permutations in plain Rust.

/// See [`Kernels::xor_accumulate_permuted`](crate::Kernels::xor_accumulate_permuted).
#[inline(always)]
pub(crate) fn xor_accumulate(
    partition: &[u8],
    record_len: usize,
    permutation: &[u16],
    sums: &mut [u8],
) {
    for (sum, &number) in sums.chunks_exact_mut(record_len).zip(permutation) {
        let start = usize::from(number) * record_len;
        for (sum, byte) in sum.iter_mut().zip(&partition[start..start + record_len]) {
            *sum ^= byte;
        }
    }
}
