//! A secret permutation of `2^k` numbers, for `k` from 1 to 32: *swap-or-not* (Hoang, Morris and
//! Rogaway, "An Enciphering Scheme Based on a Card Shuffle", CRYPTO 2012).
//!
//! The `2^k` numbers are shuffled in many rounds. Each round has a secret round key, a number `K`
//! below `2^k`, and pairs every number `x` with `x ⊕ K`. For every pair it tosses a coin, and if it
//! shows heads, swaps the two. Nothing else happens. Each round is its own inverse, so the same
//! rounds in reverse order undo the permutation.
//!
//! # What it promises
//!
//! With random coins, whoever sees at most `Q` values of the permutation, chosen adaptively and in
//! both directions, tells it from a random permutation of `C = 2^k` numbers with an advantage of at
//! most
//!
//! `8 C^1.5 / (r + 4) · ((Q + C) / 2C)^(r/4 + 1)`
//!
//! after `r` rounds (the paper's theorem on chosen-ciphertext attacks, for `r` in place of its
//! `2r`). [`phases`] takes the fewest rounds for which this is at most 2⁻⁶⁴ with `Q = C/2`: a user
//! must not reveal more than half of a permutation. The bound holds for small domains too, even for
//! `k = 1`; keys that are equal, 0 or otherwise dependent are part of it.
//!
//! The coins are bits of AES-128, so to this add what tells AES from a random permutation of
//! blocks, and a random permutation from a random function: `n² / 2^129` for `n` blocks, of which a
//! permutation has at most `phases(k) · 2^k` and, if all five round keys of nearly every phase are
//! independent, a 32nd part of it. For `k = 25` that is 2⁻⁷⁴, for `k = 29` 2⁻⁶⁶, and for `k = 32`,
//! where it outweighs the rest, 2⁻⁶⁰.
//!
//! # Five rounds with one block
//!
//! Five rounds in sequence are a *phase*. With round keys `K_0 … K_4` a number `x` can only move
//! within its *coset* `x ⊕ span(K_0 … K_4)`, which has at most 32 members. So one encryption for
//! each coset yields all coins of its five rounds: at most 16 pairs in each, 80 bits.
//!
//! Exactly, with all numbers little-endian and `AES` AES-128:
//!
//! - The secret key has 32 bytes: the first 16 are the AES key of the coins, the last 16 that of
//!   the round keys.
//! - Round key `i` is the lowest `k` bits of word `i % 4` of the encryption, under the key of the
//!   round keys, of the block of four words `i / 4`, 0, 0, 0. (That is word `i` of
//!   [`Kernels::aes128_ctr_words`].) Phase `p` has the round keys `5 p … 5 p + 4`.
//! - The *representative* of a coset is its smallest member. The coins of phase `p` are the bits of
//!   the encryption, under the key of the coins, of the block of four words *representative*, `p`,
//!   0, 0. Bit `n` of a block is bit `n % 8` of byte `n / 8`, where bit 0 is the lowest.
//! - In round `j` of a phase, for `j` from 0 to 4, the pairs `{y, y ⊕ K_j}` of the coset are
//!   numbered from 0 in the order of their smaller members, and the coin of pair number `i` is bit
//!   `16 j + i`. If it is 1, the pair is swapped. If `K_j` is 0, nothing happens.
//! - Forward: phases in ascending order, and the rounds of each in ascending order.
//!
//! So both members of a pair have the same coin and different pairs have different ones, whatever
//! the round keys are.
//!
//! # How it is computed
//!
//! All of the above is linear over XOR, as the module `phase` explains: a value is brought to its
//! representative, and the numbers of its five pairs are found, by XORing five constants under
//! masks of one bit each. There are no tables, no branches and no addresses that depend on a value.
//! The vector arms take 8 or 16 values in a vector, and encrypt two or four blocks in one where the
//! processor has vector AES.
//!
//! # Secrets
//!
//! Keys, round keys and what follows from them are secret, and are erased when a [`SwapOrNot`] is
//! dropped. The values are secret too. No branch and no address depends on any of them, in any arm,
//! also while a [`SwapOrNot`] is made. (The portable arm encrypts with the implementation that the
//! `aes` crate chooses, which has no table lookups either.) Copies of values in buffers are erased;
//! registers, and what the compiler spilled from them, are not. The slices belong to the caller.

mod phase;

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::dispatch::{Kernels, on_arm_with_vector_aes};
use crate::taint::declassify;

pub(crate) use phase::{COUNT_BITS, Phase, REPRESENTATIVE_COUNTS, ROUNDS_PER_PHASE, is_nonzero};

/// The most bits of a permuted number.
pub const MAX_BITS: u32 = 32;

/// How many phases a permutation of `2^k` numbers takes, for `k` from 1: for the bound in the
/// [module](self), the fewest that make it at most 2⁻⁶⁴. A table, so that no machine rounds
/// differently; a test computes it with integers alone.
const PHASES: [u32; MAX_BITS as usize] = [
    114, 117, 120, 123, 125, 128, 131, 134, 137, 140, 142, 145, 148, 151, 154, 157, 159, 162, 165,
    168, 171, 174, 176, 179, 182, 185, 188, 191, 194, 196, 199, 202,
];

/// How many phases of five rounds a permutation of `2^bits` numbers takes: see the [module](self).
///
/// # Panics
///
/// If `bits` is not in `1..=`[`MAX_BITS`].
pub const fn phases(bits: u32) -> u32 {
    assert!(1 <= bits && bits <= MAX_BITS, "a permutation is of 2 to 2^32 numbers");
    PHASES[bits as usize - 1]
}

/// A secret permutation of the numbers below `2^bits`: see the [module](self). Made once from a
/// key; then [`Kernels::permute`] and [`Kernels::unpermute`] apply it. At most 24 KiB, erased when
/// dropped.
pub struct SwapOrNot {
    /// The AES key of the coins.
    pub(crate) coin_key: [u8; 16],
    pub(crate) phases: Box<[Phase]>,
    bits: u32,
}

impl SwapOrNot {
    /// The permutation of the numbers below `2^bits` that belongs to a secret key. The caller must
    /// erase the key. Takes about a tenth of a millisecond.
    ///
    /// # Panics
    ///
    /// If `bits` is not in `1..=`[`MAX_BITS`].
    pub fn new(key: &[u8; 32], bits: u32) -> SwapOrNot {
        let rounds = phases(bits) as usize * ROUNDS_PER_PHASE;
        let [coin_key, round_keys_key] = key.as_chunks::<16>().0 else {
            unreachable!("32 bytes are two keys");
        };
        let mut round_keys = Zeroizing::new(vec![0; rounds]);
        Kernels::detect().aes128_ctr_words(round_keys_key, 0, &mut round_keys);
        let mask = u32::MAX >> (u32::BITS - bits);
        round_keys.iter_mut().for_each(|round_key| *round_key &= mask);
        SwapOrNot::with_round_keys(coin_key, bits, &round_keys)
    }

    /// The same with given round keys below `2^bits`, a multiple of five.
    pub(crate) fn with_round_keys(coin_key: &[u8; 16], bits: u32, round_keys: &[u32]) -> SwapOrNot {
        let (round_keys, rest) = round_keys.as_chunks::<ROUNDS_PER_PHASE>();
        assert!(rest.is_empty(), "a phase has five rounds");
        let phases = round_keys.iter().map(|round_keys| Phase::new(round_keys, bits)).collect();
        SwapOrNot { coin_key: *coin_key, phases, bits }
    }

    /// The permuted numbers are those below `2^bits`.
    pub fn bits(&self) -> u32 {
        self.bits
    }
}

impl Drop for SwapOrNot {
    fn drop(&mut self) {
        self.coin_key.zeroize();
        self.phases.zeroize();
    }
}

impl ZeroizeOnDrop for SwapOrNot {}

/// Which way a permutation is applied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

impl Kernels {
    /// Replaces each value by its image under the permutation. Any number of values; they need not
    /// differ. Fastest for many at a time: a single one takes nearly as long as 16.
    ///
    /// # Panics
    ///
    /// If a value is not below `2^bits`; the values are then unchanged.
    pub fn permute(self, permutation: &SwapOrNot, values: &mut [u32]) {
        self.apply(permutation, Direction::Forward, values);
    }

    /// Replaces each image by the value that [`permute`](Kernels::permute) maps to it. Takes as
    /// long.
    ///
    /// # Panics
    ///
    /// As [`permute`](Kernels::permute).
    pub fn unpermute(self, permutation: &SwapOrNot, values: &mut [u32]) {
        self.apply(permutation, Direction::Backward, values);
    }

    fn apply(self, permutation: &SwapOrNot, direction: Direction, values: &mut [u32]) {
        // All bits together, so that only the public outcome is branched on.
        let all = values.iter().fold(0, |all, &value| all | u64::from(value));
        assert!(
            declassify(all >> permutation.bits == 0),
            "a permuted value is below 2^{}",
            permutation.bits
        );
        on_arm_with_vector_aes!(
            self,
            swap_or_not::apply or apply_with_vector_aes(permutation, direction, values)
        );
    }
}
