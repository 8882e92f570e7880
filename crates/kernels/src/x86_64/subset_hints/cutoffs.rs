//! Cutoffs: four hints at a time, in a step eight partitions with AVX2 and 32 with AVX-512.

use std::arch::x86_64::*;

use zeroize::Zeroizing;

use super::Comparisons;
use crate::subset_hints::{Bracket, SELECT_TAG, SELECTS_PER_BLOCK, Window, narrow};
use crate::x86_64::vectors::{Avx2, Avx512, MOST_WORDS, Operations, Vectors, entries};
use crate::x86_64::{avx2::subset_hints as aes_ni, avx512::subset_hints as vector_aes};

entries! {
    fn cutoffs(key: &[u8; 16], first_id: u32, partitions: u32, rank: u32, out: &mut [u32]);
    #[cfg(test)]
    fn order_statistic(values: &mut [u32], rank: usize, bracket: Bracket) -> u32;
}

/// A vector of select values for each of four hints.
type Square<V> = [V; SELECTS_PER_BLOCK];

/// How an arm computes select values.
pub(crate) trait Selects: Comparisons {
    /// The squares of a step.
    type Squares: IntoIterator<Item = Square<Self::Vector>>;
    /// Partitions of a step.
    const STEP: usize;

    type Cipher;

    fn cipher(self, key: &[u8; 16]) -> Self::Cipher;

    /// The select values of four hints in the partitions of a step, in order: square by square.
    fn select_values(
        self,
        cipher: &Self::Cipher,
        quotient: u32,
        first_partition: u32,
    ) -> Self::Squares;
}

/// See [`Kernels::subset_cutoffs`](crate::Kernels::subset_cutoffs).
#[inline(always)]
fn cutoffs<A: Selects>(
    arm: A,
    key: &[u8; 16],
    first_id: u32,
    partitions: u32,
    rank: u32,
    out: &mut [u32],
) {
    let cipher = arm.cipher(key);
    let mut kept = [(); SELECTS_PER_BLOCK].map(|()| Zeroizing::new(Vec::new()));
    for (quad, out) in out.as_chunks_mut::<SELECTS_PER_BLOCK>().0.iter_mut().enumerate() {
        let quotient = first_id / SELECTS_PER_BLOCK as u32 + quad as u32;
        let mut found = [None; SELECTS_PER_BLOCK];
        // The first window misses so rarely that it costs nothing to search for all of them again.
        for window in Window::all(partitions, rank) {
            let now = look_in_window(arm, &cipher, quotient, partitions, rank, &window, &mut kept);
            for (found, now) in found.iter_mut().zip(now) {
                *found = found.or(now);
            }
            if !found.contains(&None) {
                break;
            }
        }
        *out = found.map(|cutoff| cutoff.expect("the last window holds all values"));
    }
}

/// The cutoffs of four hints that share blocks, `None` for those that lie outside the window, and
/// for hints with too many values inside it.
#[inline(always)]
fn look_in_window<A: Selects>(
    arm: A,
    cipher: &A::Cipher,
    quotient: u32,
    partitions: u32,
    rank: u32,
    window: &Window,
    kept: &mut [Zeroizing<Vec<u32>>; SELECTS_PER_BLOCK],
) -> [Option<u32>; SELECTS_PER_BLOCK] {
    for kept in kept.iter_mut() {
        // A whole vector is stored after the last kept value.
        if kept.len() < window.capacity + A::WORDS {
            *kept = Zeroizing::new(vec![0; window.capacity + A::WORDS]);
        }
    }
    let mut sieve = Sieve {
        arm,
        low: arm.splat_u32(window.low),
        width: arm.splat_u32(window.high - window.low),
        capacity: window.capacity,
        kept: kept.each_mut().map(|kept| &mut kept[..window.capacity + A::WORDS]),
        len: [0; SELECTS_PER_BLOCK],
        below: [0; SELECTS_PER_BLOCK],
    };
    let steps = partitions / A::STEP as u32;
    for step in 0..steps {
        for square in arm.select_values(cipher, quotient, step * A::STEP as u32) {
            sieve.take(square, lowest(A::WORDS));
        }
    }
    let rest = (partitions % A::STEP as u32) as usize;
    if rest > 0 {
        let squares = arm.select_values(cipher, quotient, steps * A::STEP as u32);
        for (i, square) in squares.into_iter().enumerate() {
            sieve.take(square, lowest(rest.saturating_sub(A::WORDS * i).min(A::WORDS)));
        }
    }
    let (len, below) = (sieve.len, sieve.below);
    let mut found = [None; SELECTS_PER_BLOCK];
    for (i, found) in found.iter_mut().enumerate() {
        let Some(rank) = (rank as usize).checked_sub(below[i]) else { continue };
        if rank < len[i] && len[i] < window.capacity {
            let bracket = Bracket { low: window.low, high: window.high, below: 0, up_to: len[i] };
            *found = Some(order_statistic(arm, &mut kept[i], rank, bracket));
        }
    }
    found
}

/// The `count` lowest bits, at most 31 of them.
#[inline(always)]
fn lowest(count: usize) -> u32 {
    (1 << count) - 1
}

/// Counts the values below a window and keeps those inside it, for four hints.
struct Sieve<'a, A: Vectors> {
    arm: A,
    low: A::Vector,
    width: A::Vector,
    capacity: usize,
    // Each has a vector more than `capacity` words, and the first `len` hold values.
    kept: [&'a mut [u32]; SELECTS_PER_BLOCK],
    len: [usize; SELECTS_PER_BLOCK],
    below: [usize; SELECTS_PER_BLOCK],
}

impl<A: Comparisons> Sieve<'_, A> {
    /// Takes the values in the lanes of `present`.
    #[inline(always)]
    fn take(&mut self, values: Square<A::Vector>, present: u32) {
        let arm = self.arm;
        for (i, values) in values.into_iter().enumerate() {
            let below = !arm.up_to(self.low, values) & present;
            let inside = arm.up_to(arm.sub_u32(values, self.low), self.width) & present;
            self.below[i] += below.count_ones() as usize;
            // AVX-512 could compress straight to memory. That is microcoded on Zen 4.
            arm.store(arm.compress(values, inside), &mut self.kept[i][self.len[i]..]);
            self.len[i] = (self.len[i] + inside.count_ones() as usize).min(self.capacity);
        }
    }
}

/// The value `c` of rank `rank` among the first `bracket.up_to` of `values`, which all lie in the
/// bracket, such that exactly `rank` of them are below it; 0 if there is none. After the values
/// there is room for a vector, which is overwritten.
#[inline(always)]
fn order_statistic<A: Comparisons>(
    arm: A,
    values: &mut [u32],
    rank: usize,
    bracket: Bracket,
) -> u32 {
    // These add nothing to any count of smaller values.
    values[bracket.up_to..bracket.up_to + A::WORDS].fill(u32::MAX);
    let values = &values[..bracket.up_to.next_multiple_of(A::WORDS)];
    let bracket = narrow(bracket, rank, A::WORDS, |pivot| count_below(arm, values, pivot));
    if bracket.low == bracket.high {
        return if bracket.below == rank { bracket.low } else { 0 };
    }
    let count = bracket.up_to - bracket.below;
    let few = gather_between(arm, values, bracket.low, bracket.high, count);
    let few = &few[..A::WORDS];
    let vector = arm.load(few);
    let mut smaller = arm.zero();
    for value in few {
        smaller = arm.count_above(smaller, vector, *value);
    }
    // If values are equal, none of them has as many smaller ones as the second of them would need.
    let wanted = arm.splat_u32((rank - bracket.below) as u32);
    let hit = arm.equal_u32(smaller, wanted) & lowest(count);
    few.get(hit.trailing_zeros() as usize).copied().unwrap_or(0)
}

/// How many values are below `pivot`, which is not 0.
#[inline(always)]
fn count_below<A: Comparisons>(arm: A, values: &[u32], pivot: u32) -> usize {
    let mut not_below = arm.zero();
    for values in values.chunks_exact(A::WORDS) {
        not_below = arm.count_above(not_below, arm.load(values), pivot - 1);
    }
    values.len() - arm.sum_u32(not_below) as usize
}

/// The `count` values in `low..=high`, at most as many as a vector holds, and after them other
/// words, which are not less than any value.
#[inline(always)]
fn gather_between<A: Comparisons>(
    arm: A,
    values: &[u32],
    low: u32,
    high: u32,
    count: usize,
) -> [u32; 2 * MOST_WORDS] {
    let (low_vector, width) = (arm.splat_u32(low), arm.splat_u32(high - low));
    let mut few = [u32::MAX; 2 * MOST_WORDS];
    let mut len = 0;
    for values in values.chunks_exact(A::WORDS) {
        let values = arm.load(values);
        let inside = arm.up_to(arm.sub_u32(values, low_vector), width);
        arm.store(arm.compress(values, inside), &mut few[len..]);
        // The padding may count as inside, but comes last.
        len = (len + inside.count_ones() as usize).min(count);
    }
    few[count..].fill(u32::MAX);
    few
}

impl Selects for Avx2 {
    type Squares = [Square<__m256i>; 1];
    const STEP: usize = Avx2::WORDS;

    type Cipher = aes_ni::SecretCipher;

    #[inline(always)]
    fn cipher(self, key: &[u8; 16]) -> Self::Cipher {
        // SAFETY: the arm's value proves that the processor has the instructions, here and below.
        unsafe { Self::Cipher::new(key) }
    }

    #[inline(always)]
    fn select_values(
        self,
        cipher: &Self::Cipher,
        quotient: u32,
        first_partition: u32,
    ) -> Self::Squares {
        // SAFETY: as above.
        unsafe {
            let mut blocks = [_mm_setzero_si128(); Avx2::WORDS];
            for (k, block) in blocks.iter_mut().enumerate() {
                *block = aes_ni::input(quotient, first_partition + k as u32, SELECT_TAG);
            }
            cipher.encrypt(&mut blocks);
            // The first four partitions in the lower halves, the others in the upper halves: two
            // squares of 4 × 4 words, which are transposed side by side.
            let mut vectors = [_mm256_setzero_si256(); SELECTS_PER_BLOCK];
            for (i, vector) in vectors.iter_mut().enumerate() {
                *vector = _mm256_set_m128i(blocks[i + 4], blocks[i]);
            }
            [self.transpose_blocks(vectors)]
        }
    }
}

impl Selects for Avx512 {
    type Squares = [Square<__m512i>; 2];
    const STEP: usize = 2 * Avx512::WORDS;

    type Cipher = vector_aes::SecretCipher;

    #[inline(always)]
    fn cipher(self, key: &[u8; 16]) -> Self::Cipher {
        // SAFETY: the arm's value proves that the processor has the instructions, here and below.
        unsafe { Self::Cipher::new(key) }
    }

    /// Lane `i` of vector `m` of a square's blocks is for partition `4 i + m`, so that after the
    /// transposition, lane `4 i + m` is for that partition.
    #[inline(always)]
    fn select_values(
        self,
        cipher: &Self::Cipher,
        quotient: u32,
        first_partition: u32,
    ) -> Self::Squares {
        // SAFETY: as above.
        unsafe {
            let every_fourth = _mm512_set_epi32(0, 0, 12, 0, 0, 0, 8, 0, 0, 0, 4, 0, 0, 0, 0, 0);
            let input = vector_aes::each_block(quotient, first_partition, SELECT_TAG);
            let input = self.add_u32(input, every_fourth);
            let mut blocks = [input; 2 * SELECTS_PER_BLOCK];
            for (i, block) in blocks.iter_mut().enumerate() {
                let partition = (i / 4 * Avx512::WORDS + i % 4) as u32;
                *block = self.add_u32(input, vector_aes::each_block(0, partition, 0));
            }
            cipher.encrypt(&mut blocks);
            let [a, b, c, d, e, f, g, h] = blocks;
            [self.transpose_blocks([a, b, c, d]), self.transpose_blocks([e, f, g, h])]
        }
    }
}
