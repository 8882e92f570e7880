//! Permuted records with AVX2.

/// See [`Kernels::xor_accumulate_permuted`](crate::Kernels::xor_accumulate_permuted).
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(crate) fn xor_accumulate(
    partition: &[u8],
    record_len: usize,
    permutation: &[u16],
    sums: &mut [u8],
) {
    crate::x86_64::permutations::xor_accumulate(partition, record_len, permutation, sums);
}
