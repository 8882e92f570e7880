//! Swap-or-not through the `aes` crate, which uses the processor's AES instructions where it finds
//! them and erases its round keys.

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use zeroize::{Zeroize, Zeroizing};

use crate::swap_or_not::{
    COUNT_BITS, Direction, Phase, REPRESENTATIVE_COUNTS, ROUNDS_PER_PHASE, SwapOrNot, is_nonzero,
};

/// Values that go through the phases together.
const BATCH: usize = 32;

/// See [`Kernels::permute`](crate::Kernels::permute).
pub(crate) fn apply(permutation: &SwapOrNot, direction: Direction, values: &mut [u32]) {
    let cipher = Aes128Enc::new(&Array(permutation.coin_key));
    let mut blocks = [Array([0; 16]); BATCH];
    let mut counts = Zeroizing::new([0; BATCH]);
    for values in values.chunks_mut(BATCH) {
        let blocks = &mut blocks[..values.len()];
        let counts = &mut counts[..values.len()];
        let mut pass = |(number, phase): (usize, &Phase)| {
            for ((value, counts), block) in values.iter().zip(&mut *counts).zip(&mut *blocks) {
                let representative;
                (representative, *counts) = representative_and_counts(phase, *value);
                *block = Array((u128::from(representative) | (number as u128) << 32).to_le_bytes());
            }
            cipher.encrypt_blocks(blocks);
            for ((value, counts), block) in values.iter_mut().zip(&*counts).zip(&*blocks) {
                let coins = u128::from_le_bytes(block.0);
                *value = swap(phase, direction, *value, *counts, coins);
            }
        };
        let phases = permutation.phases.iter().enumerate();
        match direction {
            Direction::Forward => phases.for_each(&mut pass),
            Direction::Backward => phases.rev().for_each(&mut pass),
        }
    }
    let blocks: &mut [Block] = &mut blocks;
    blocks.iter_mut().for_each(|block| block.0.zeroize());
}

/// The representative of a value's coset, and the value's counts.
#[inline(always)]
fn representative_and_counts(phase: &Phase, value: u32) -> (u32, u32) {
    let mut representative = value;
    let mut counts = REPRESENTATIVE_COUNTS;
    for i in 0..ROUNDS_PER_PHASE {
        let has_pivot = is_nonzero(value & phase.pivots[i]);
        representative ^= phase.basis[i] & has_pivot;
        counts ^= phase.pivot_counts[i] & has_pivot;
    }
    (representative, counts)
}

/// The five rounds of a phase on one value, with its counts and the coins of its coset.
#[inline(always)]
fn swap(phase: &Phase, direction: Direction, value: u32, counts: u32, coins: u128) -> u32 {
    let (mut value, mut counts) = (value, counts);
    let mut round = |j: usize| {
        // Which word holds the round's coins does not depend on the value.
        let coins = (coins >> (32 * (j / 2))) as u32;
        let count = (counts >> (COUNT_BITS * j as u32)) % 32;
        // All bits like the highest.
        let coin = ((coins << count).cast_signed() >> 31).cast_unsigned();
        value ^= phase.round_keys[j] & coin;
        counts ^= phase.swap_counts[j] & coin;
    };
    match direction {
        Direction::Forward => (0..ROUNDS_PER_PHASE).for_each(&mut round),
        Direction::Backward => (0..ROUNDS_PER_PHASE).rev().for_each(&mut round),
    }
    value
}
