//! What five rounds do, as constants to be XORed.
//!
//! Let `K_0 … K_4` be the round keys of a phase and `V` their span. Gaussian elimination gives `V`
//! a *reduced basis*: `d ≤ 5` vectors, each with a leading bit (its *pivot*) that no other vector
//! has. In ascending order of pivots, `B_0 … B_(d−1)`. Then, for any `x`:
//!
//! - The *rank* of `x` is the number `e` of `d` bits whose bit `i` is that of pivot `i` in `x`. The
//!   members of a coset in ascending order have the ranks 0, 1, 2 and so on, for two members differ
//!   in a vector of `V`, whose leading bit is a pivot. So rank 0 is the representative, and it is
//!   `x` with `B_i` XORed for every pivot that `x` has.
//! - Ranks are linear: `rank(x ⊕ K_j) = rank(x) ⊕ κ_j` with `κ_j = rank(K_j)`, and `κ_j` is 0 only
//!   if `K_j` is. Let `ℓ` be the leading bit of `κ_j`. Of the pair `{x, x ⊕ K_j}`, the smaller
//!   member is the one without bit `ℓ` in its rank. Its rank without that bit is the number of the
//!   pair, among the pairs in the order of their smaller members. So the number of the pair is a
//!   linear function `L_j` of the rank of either member, with `L_j(κ_j) = 0`.
//!
//! A value is therefore accompanied by a word of five *counts* of five bits, one for each round,
//! which say where the coins of its pairs are. They are linear in the rank but for a constant. Each
//! pivot that the value has XORs a constant to the representative and one to the counts. Then each
//! round whose coin is 1 XORs `K_j` to the value and a constant to the counts, also to those of
//! rounds that are past, so that the rounds can run in either order.

use std::hint::black_box;

use zeroize::Zeroize;

/// Rounds that share an encryption.
pub(crate) const ROUNDS_PER_PHASE: usize = 5;

/// Bits of a count: that of round `j` begins at bit `5 j`.
pub(crate) const COUNT_BITS: u32 = 5;

/// The counts of a representative. The coin of pair `i` in round `j` is bit `16 (j % 2) + i` of
/// word `j / 2` of the encryption. Its count is 31 less that number: a shift of the word to the
/// left by the count brings the coin to the highest bit. Subtracting from 31 flips all bits, so
/// counts are linear but for a constant, as is needed.
pub(crate) const REPRESENTATIVE_COUNTS: u32 = {
    let mut counts = 0;
    let mut round = 0;
    while round < ROUNDS_PER_PHASE as u32 {
        counts |= (31 - 16 * (round % 2)) << (COUNT_BITS * round);
        round += 1;
    }
    counts
};

/// The constants of a phase. Unused places are 0, where the basis has fewer than five vectors.
#[derive(Clone, Copy, Zeroize)]
pub(crate) struct Phase {
    /// The leading bits of the basis, each alone in a word.
    pub(crate) pivots: [u32; ROUNDS_PER_PHASE],
    /// The basis: what the representative of a value that has pivot `i` is less by.
    pub(crate) basis: [u32; ROUNDS_PER_PHASE],
    /// What pivot `i` changes in the counts.
    pub(crate) pivot_counts: [u32; ROUNDS_PER_PHASE],
    pub(crate) round_keys: [u32; ROUNDS_PER_PHASE],
    /// What a swap in round `j` changes in the counts.
    pub(crate) swap_counts: [u32; ROUNDS_PER_PHASE],
}

impl Phase {
    /// From round keys below `2^bits`. No branch depends on them.
    pub(super) fn new(round_keys: &[u32; ROUNDS_PER_PHASE], bits: u32) -> Phase {
        let mut phase = Phase {
            pivots: [0; ROUNDS_PER_PHASE],
            basis: [0; ROUNDS_PER_PHASE],
            pivot_counts: [0; ROUNDS_PER_PHASE],
            round_keys: *round_keys,
            swap_counts: [0; ROUNDS_PER_PHASE],
        };
        phase.reduce(bits);
        let ranks = phase.round_keys.map(|round_key| phase.rank(round_key));
        for i in 0..ROUNDS_PER_PHASE {
            phase.pivot_counts[i] = counts(1 << i, &ranks) & is_nonzero(phase.pivots[i]);
        }
        phase.swap_counts = ranks.map(|rank| counts(rank, &ranks));
        phase
    }

    /// Gaussian elimination, from the highest bit downwards: finds the basis and its pivots.
    fn reduce(&mut self, bits: u32) {
        let mut vectors = self.round_keys;
        for bit in (0..bits).rev() {
            // The first vector that has the bit, or 0.
            let mut found = 0;
            for vector in vectors {
                found |= vector & mask(vector, bit) & !is_nonzero(found);
            }
            // The vector itself becomes 0.
            for vector in vectors.iter_mut().chain(&mut self.basis) {
                *vector ^= found & mask(*vector, bit);
            }
            // Goes in front of those with higher pivots, behind which is still room. A compiler
            // that knows the mask to be all bits or none selects addresses instead of words.
            let is_found = black_box(is_nonzero(found));
            for i in (1..ROUNDS_PER_PHASE).rev() {
                self.basis[i] = select(is_found, self.basis[i - 1], self.basis[i]);
                self.pivots[i] = select(is_found, self.pivots[i - 1], self.pivots[i]);
            }
            self.basis[0] = select(is_found, found, self.basis[0]);
            self.pivots[0] = select(is_found, 1 << bit, self.pivots[0]);
        }
    }

    fn rank(&self, vector: u32) -> u32 {
        let has = self.pivots.map(|pivot| is_nonzero(vector & pivot));
        (0..ROUNDS_PER_PHASE).fold(0, |rank, i| rank | (has[i] & (1 << i)))
    }
}

/// How the counts of a value differ from those of its representative, where these are the ranks of
/// the value and of the round keys.
fn counts(rank: u32, round_key_ranks: &[u32; ROUNDS_PER_PHASE]) -> u32 {
    let mut counts = 0;
    for (round, &round_key_rank) in (0..).zip(round_key_ranks) {
        // All bits from the leading one down. Counting zeros instead would become a table lookup.
        let mut down = round_key_rank | round_key_rank >> 1;
        down |= down >> 2;
        down |= down >> 4;
        let below = down >> 1;
        let has_leading = is_nonzero(rank & (down ^ below));
        let smaller = rank ^ (round_key_rank & has_leading);
        let pair = (smaller & below) | ((smaller >> 1) & !below);
        counts |= pair << (COUNT_BITS * round);
    }
    counts
}

/// All bits if `word` has the bit, and none otherwise.
fn mask(word: u32, bit: u32) -> u32 {
    ((word >> bit) & 1).wrapping_neg()
}

/// All bits if `word` is not 0, and none otherwise.
#[inline(always)]
pub(crate) fn is_nonzero(word: u32) -> u32 {
    ((word | word.wrapping_neg()) >> 31).wrapping_neg()
}

fn select(mask: u32, then: u32, otherwise: u32) -> u32 {
    otherwise ^ (mask & (then ^ otherwise))
}
