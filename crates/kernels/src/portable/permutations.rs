//! Permutations in plain Rust.

use std::hint::black_box;

use crate::permutations::{Shown, Swap};

/// See [`Kernels::swap_in_permutations`](crate::Kernels::swap_in_permutations).
pub(crate) fn swap(
    forward: &mut [u16],
    inverse: &mut [u16],
    m: usize,
    swap: Swap<'_>,
    shown: Shown<'_>,
) {
    let Swap { a, b, skip } = swap;
    for (q, &b) in b.iter().enumerate() {
        let numbers = exchange(&mut forward[q * m..][..m], [a, b], exchange_mask(q, skip));
        [shown.a[q], shown.b[q]] = numbers;
        put_right(&mut inverse[q * m..][..m], numbers, [a, b], exchange_mask(q, skip));
    }
}

/// All bits where permutation `q` is to be changed, none where it is to be skipped.
#[inline(always)]
pub(crate) fn exchange_mask(q: usize, skip: u32) -> u16 {
    // Hidden from the compiler, which would find the choice in the arithmetic below and may make a branch
    // of it.
    black_box(u16::from(q as u64 == u64::from(skip)).wrapping_sub(1))
}

/// Exchanges the numbers at two places of a permutation, or writes them back as they were, and returns them
/// as they were.
#[inline(always)]
pub(crate) fn exchange(forward: &mut [u16], places: [u32; 2], mask: u16) -> [u16; 2] {
    let [a, b] = places.map(|place| place as usize);
    let [at_a, at_b] = [forward[a], forward[b]];
    let difference = (at_a ^ at_b) & mask;
    forward[a] = at_a ^ difference;
    forward[b] = at_b ^ difference;
    [at_a, at_b]
}

/// Does to the inverse what [`exchange`] did to the permutation: `numbers` are those that stood at `places`.
#[inline(always)]
pub(crate) fn put_right(inverse: &mut [u16], numbers: [u16; 2], places: [u32; 2], mask: u16) {
    let [at_a, at_b] = numbers.map(usize::from);
    let [a, b] = places.map(|place| place as u16);
    let difference = (a ^ b) & mask;
    inverse[at_a] = a ^ difference;
    inverse[at_b] = b ^ difference;
}

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
