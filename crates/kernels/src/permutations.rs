//! Many permutations of equal size, for private lookup after *one pass* over the table (SinglePass, Lazzaretti
//! and Papamanthou, USENIX Security 2024; section 4.1 of the TAPIR paper).
//!
//! A table is cut into `Q` partitions of `m` records each. For every partition `q` a client holds a secret
//! permutation `P(q)` of the numbers `0..m`, and for every `x` in `0..m` the hint
//! `⊕ over q of record P(q)(x) of partition q`. A query shows each of two servers one number for every
//! partition, and then exchanges the two in the permutation, so that what was shown is fresh again.
//!
//! # Layout
//!
//! Numbers are half-words, so `m` is at most 2¹⁶. The permutations lie one after the other in one slice,
//! `forward[q * m + x] = P(q)(x)`, and their inverses likewise: `inverse[q * m + y] = x` where `P(q)(x) = y`.
//! A query touches four cache lines of every permutation, wherever they are; [`HugeBuffer`] keeps the
//! translation of their addresses cheap.
//!
//! [`HugeBuffer`]: crate::HugeBuffer
//!
//! # Secrets
//!
//! The permutations, and which numbers are exchanged, are the client's secrets. No branch depends on any of
//! them, but for checks of bounds, which all go the same way. The addresses in the client's own memory do depend on the numbers, though not on which partition
//! is skipped: whoever shares the caches with the client may learn of them, the servers do not.

use crate::dispatch::Kernels;

/// The most numbers of a permutation: they are 16 bits.
pub const MAX_PERMUTATION_LEN: usize = 1 << 16;

/// What is exchanged in the permutations.
#[derive(Clone, Copy)]
pub(crate) struct Swap<'a> {
    /// The first place, the same in all permutations.
    pub(crate) a: u32,
    /// The second place, one for each permutation.
    pub(crate) b: &'a [u32],
    /// The permutation that stays as it is.
    pub(crate) skip: u32,
}

/// Where to write what stood at the two places before.
pub(crate) struct Shown<'a> {
    pub(crate) a: &'a mut [u16],
    pub(crate) b: &'a mut [u16],
}

impl Kernels {
    /// Exchanges two numbers in each of many permutations of `0..m`, one of which is left alone. For each
    /// permutation `q`, of which there are `b.len()`, what stands at the places `a` and `b[q]` is written to
    /// `shown_a[q]` and `shown_b[q]`, and then, unless `q == skip`, the two are exchanged in `forward` and the
    /// inverse is put right. `b[q] == a` is allowed and changes nothing; a `skip` of `b.len()` or more skips
    /// nothing.
    ///
    /// `a`, `b` and `skip` are secret: no branch depends on them, and the same memory is read and written
    /// whatever `skip` is.
    ///
    /// # Panics
    ///
    /// If `m` is 0 or more than 2¹⁶, `forward` or `inverse` is not `b.len() * m` long, `shown_a` or `shown_b`
    /// is not `b.len()` long, or `a` or an element of `b` is not below `m`. Also if a number in
    /// `forward` is not below `m`; if `forward` is no permutation or `inverse` not its inverse, they are
    /// not afterwards either.
    #[allow(clippy::too_many_arguments)]
    pub fn swap_in_permutations(
        self,
        forward: &mut [u16],
        inverse: &mut [u16],
        m: usize,
        a: u32,
        b: &[u32],
        shown_a: &mut [u16],
        shown_b: &mut [u16],
        skip: u32,
    ) {
        assert!(0 < m && m <= MAX_PERMUTATION_LEN, "a permutation is of 1 to 2^16 numbers");
        let numbers = b.len().checked_mul(m);
        assert!(
            Some(forward.len()) == numbers && Some(inverse.len()) == numbers,
            "there is one permutation, and one inverse, for each second place"
        );
        assert!(
            shown_a.len() == b.len() && shown_b.len() == b.len(),
            "two numbers of each permutation are shown"
        );
        // One comparison of the largest, not one for each: the caller's bug may show, its places do not.
        let largest = b.iter().fold(a, |largest, &b| largest.max(b));
        assert!((largest as usize) < m, "the places are below the number of elements");
        let shown = Shown { a: shown_a, b: shown_b };
        self.swap_in_permutations_dispatch(forward, inverse, m, Swap { a, b, skip }, shown);
    }

    /// XORs the records of a partition, permuted, into `sums`: for each `x`, the sum of that number, which is
    /// as long as a record, is XORed with record `permutation[x]` of the partition. One call for each
    /// partition of a table makes the hints.
    ///
    /// Fastest where partition and sums stay in the second-level cache together, and where partitions lie one
    /// after the other in memory and are passed in this order: what lies behind this one is prefetched.
    ///
    /// # Panics
    ///
    /// If `record_len` is 0, `sums.len()` is not one record for each element of the permutation,
    /// `partition.len()` is not a multiple of `record_len`, or an element of `permutation` is not the number of
    /// a record of the partition; `sums` may then have been changed.
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
        self.xor_accumulate_permuted_dispatch(partition, record_len, permutation, sums);
    }
}
