//! Many permutations of equal size, for private lookup after *one pass* over the table (SinglePass,
//! Lazzaretti and Papamanthou, USENIX Security 2024; section 4.1 of the TAPIR paper).
//!
//! A table is cut into partitions of `m` records each, and for every partition `q` a client holds a
//! secret permutation `P(q)` of the numbers `0..m`. Hint `x`, for `x` in `0..m`, is `⊕ over q of
//! record P(q)(x) of partition q`: a sum for each `x`, to which the partitions are added one after
//! the other. Numbers are half-words, so `m` is at most 2¹⁶.
//!
//! # Secrets
//!
//! The server that computes the sums knows the permutations. No query is made here, so addresses
//! may depend on the numbers.

use crate::dispatch::Kernels;
use crate::dispatch::on_arm;

/// The most numbers of a permutation: they are 16 bits.
pub const MAX_PERMUTATION_LEN: usize = 1 << 16;

impl Kernels {
    /// XORs the permuted records of a partition into `sums`: for each `x`, record `permutation[x]`
    /// of the partition is XORed into sum `x`, which is as long as a record. One call for each
    /// partition of a table makes the hints.
    ///
    /// Fastest if partition and sums fit together into the second-level cache, and if partitions
    /// lie one after the other in memory and are passed in this order: the memory after this
    /// partition is prefetched.
    ///
    /// # Panics
    ///
    /// If `record_len` is 0, `sums.len()` is not one record for each element of the permutation,
    /// `partition.len()` is not a multiple of `record_len`, or an element of `permutation` is not
    /// the number of a record of the partition; `sums` may then have been changed.
    pub fn xor_accumulate_permuted(
        self,
        partition: &[u8],
        record_len: usize,
        permutation: &[u16],
        sums: &mut [u8],
    ) {
        assert!(record_len > 0, "records have at least one byte");
        assert!(partition.len().is_multiple_of(record_len), "a partition is of whole records");
        assert_eq!(
            Some(sums.len()),
            permutation.len().checked_mul(record_len),
            "a sum is one record for each element of the permutation"
        );
        on_arm!(self, permutations::xor_accumulate(partition, record_len, permutation, sums));
    }
}
