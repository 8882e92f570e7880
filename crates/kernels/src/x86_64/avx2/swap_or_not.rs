//! Swap-or-not with AES-NI: eight values in a vector, each with a block of its own.

use std::arch::x86_64::*;

use zeroize::Zeroizing;

use super::{load_words, store_words};
use crate::swap_or_not::{
    COUNT_BITS, Direction, Phase, REPRESENTATIVE_COUNTS, ROUNDS_PER_PHASE, SwapOrNot,
};
use crate::x86_64::aes_key::round_keys;

/// Values of one vector.
const VECTOR_VALUES: usize = 8;
/// Vectors that go through the phases together. A vector's own steps depend on each other, so the
/// processor works on several.
const VECTORS: usize = 4;
const BATCH: usize = VECTORS * VECTOR_VALUES;

/// See [`Kernels::permute`](crate::Kernels::permute).
#[target_feature(enable = "avx2,aes")]
pub(crate) fn apply(permutation: &SwapOrNot, direction: Direction, values: &mut [u32]) {
    match direction {
        Direction::Forward => apply_in_order::<false>(permutation, values),
        Direction::Backward => apply_in_order::<true>(permutation, values),
    }
}

#[inline]
#[target_feature(enable = "avx2,aes")]
fn apply_in_order<const BACKWARD: bool>(permutation: &SwapOrNot, values: &mut [u32]) {
    let keys = Zeroizing::new(round_keys(&permutation.coin_key));
    let (batches, rest) = values.as_chunks_mut::<BATCH>();
    for batch in batches {
        pass::<VECTORS, BACKWARD>(&keys, &permutation.phases, batch);
    }
    if rest.is_empty() {
        return;
    }
    let mut batch = Zeroizing::new([0; BATCH]);
    batch[..rest.len()].copy_from_slice(rest);
    match rest.len().div_ceil(VECTOR_VALUES) {
        1 => pass::<1, BACKWARD>(&keys, &permutation.phases, &mut batch),
        2 => pass::<2, BACKWARD>(&keys, &permutation.phases, &mut batch),
        _ => pass::<VECTORS, BACKWARD>(&keys, &permutation.phases, &mut batch),
    }
    rest.copy_from_slice(&batch[..rest.len()]);
}

/// All phases on the first vectors of a batch.
#[inline]
#[target_feature(enable = "avx2,aes")]
fn pass<const USED: usize, const BACKWARD: bool>(
    keys: &[__m128i; 11],
    phases: &[Phase],
    batch: &mut [u32; BATCH],
) {
    let words = batch.as_chunks_mut::<VECTOR_VALUES>().0;
    let mut vectors = [_mm256_setzero_si256(); USED];
    for (vector, words) in vectors.iter_mut().zip(&*words) {
        *vector = load_words(words);
    }
    for step in 0..phases.len() {
        let number = if BACKWARD { phases.len() - 1 - step } else { step };
        let phase = &phases[number];
        // The rounds of a vector stand behind the encryption for the next one, which does not
        // depend on them.
        let mut coins = Coins::toss(keys, number, phase, vectors[0]);
        for i in 1..USED {
            let next = Coins::toss(keys, number, phase, vectors[i]);
            vectors[i - 1] = coins.swap::<BACKWARD>(phase, vectors[i - 1]);
            coins = next;
        }
        vectors[USED - 1] = coins.swap::<BACKWARD>(phase, vectors[USED - 1]);
    }
    for (vector, words) in vectors.into_iter().zip(words) {
        store_words(words, vector);
    }
}

/// The coins of the cosets of eight values, and where those of their pairs are.
struct Coins {
    words: [__m256i; 3],
    counts: __m256i,
}

impl Coins {
    #[inline]
    #[target_feature(enable = "avx2,aes")]
    fn toss(keys: &[__m128i; 11], number: usize, phase: &Phase, values: __m256i) -> Coins {
        let mut representatives = values;
        let mut counts = each(REPRESENTATIVE_COUNTS);
        for i in 0..ROUNDS_PER_PHASE {
            let pivot = each(phase.pivots[i]);
            // A place without a pivot is found everywhere, and changes nothing.
            let has_pivot = _mm256_cmpeq_epi32(_mm256_and_si256(values, pivot), pivot);
            representatives = xor_masked(representatives, has_pivot, phase.basis[i]);
            counts = xor_masked(counts, has_pivot, phase.pivot_counts[i]);
        }
        Coins { words: encrypt(keys, number, representatives), counts }
    }

    /// The rounds of a phase.
    #[inline]
    #[target_feature(enable = "avx2,aes")]
    fn swap<const BACKWARD: bool>(self, phase: &Phase, values: __m256i) -> __m256i {
        let (mut values, mut counts) = (values, self.counts);
        for step in 0..ROUNDS_PER_PHASE {
            let j = if BACKWARD { ROUNDS_PER_PHASE - 1 - step } else { step };
            let count = _mm256_srlv_epi32(counts, each(COUNT_BITS * j as u32));
            let count = _mm256_and_si256(count, each(31));
            let coin = _mm256_sllv_epi32(self.words[j / 2], count);
            // All bits like the highest.
            let coin = _mm256_srai_epi32::<31>(coin);
            values = xor_masked(values, coin, phase.round_keys[j]);
            counts = xor_masked(counts, coin, phase.swap_counts[j]);
        }
        values
    }
}

/// The first three words of the encrypted blocks of eight representatives.
#[inline]
#[target_feature(enable = "avx2,aes")]
fn encrypt(keys: &[__m128i; 11], number: usize, representatives: __m256i) -> [__m256i; 3] {
    // The first round key is XORed to the representatives and to the rest of the block, which all
    // of them share.
    let whitened = _mm256_xor_si256(representatives, _mm256_broadcastd_epi32(keys[0]));
    let shared = _mm_xor_si128(keys[0], _mm_set_epi32(0, 0, number as i32, 0));
    let halves = [_mm256_castsi256_si128(whitened), _mm256_extracti128_si256::<1>(whitened)];
    let mut blocks = [shared; VECTOR_VALUES];
    for (half, blocks) in halves.into_iter().zip(blocks.as_chunks_mut::<4>().0) {
        *blocks = [
            insert_word::<0>(shared, half),
            insert_word::<1>(shared, half),
            insert_word::<2>(shared, half),
            insert_word::<3>(shared, half),
        ];
    }
    for key in &keys[1..10] {
        for block in &mut blocks {
            *block = _mm_aesenc_si128(*block, *key);
        }
    }
    for block in &mut blocks {
        *block = _mm_aesenclast_si128(*block, keys[10]);
    }
    // Values 0 to 3 are in the low lane, values 4 to 7 in the high one. Transposes both.
    let [a, b, c, d]: [__m256i; 4] =
        std::array::from_fn(|i| _mm256_set_m128i(blocks[4 + i], blocks[i]));
    let low = [_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d)];
    let high = [_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d)];
    [
        _mm256_unpacklo_epi64(low[0], low[1]),
        _mm256_unpackhi_epi64(low[0], low[1]),
        _mm256_unpacklo_epi64(high[0], high[1]),
    ]
}

/// `block` with word `WORD` of `words` as its first one.
#[inline]
#[target_feature(enable = "avx2,aes")]
fn insert_word<const WORD: i32>(block: __m128i, words: __m128i) -> __m128i {
    let (block, words) = (_mm_castsi128_ps(block), _mm_castsi128_ps(words));
    // The instruction moves bits, whatever number they stand for.
    _mm_castps_si128(match WORD {
        0 => _mm_insert_ps::<0b0000_0000>(block, words),
        1 => _mm_insert_ps::<0b0100_0000>(block, words),
        2 => _mm_insert_ps::<0b1000_0000>(block, words),
        _ => _mm_insert_ps::<0b1100_0000>(block, words),
    })
}

#[inline]
#[target_feature(enable = "avx2,aes")]
fn xor_masked(words: __m256i, masks: __m256i, word: u32) -> __m256i {
    _mm256_xor_si256(words, _mm256_and_si256(masks, each(word)))
}

#[inline]
#[target_feature(enable = "avx2,aes")]
fn each(word: u32) -> __m256i {
    _mm256_set1_epi32(word as i32)
}
