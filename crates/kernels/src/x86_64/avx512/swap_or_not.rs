//! Swap-or-not with vector AES: sixteen values in a vector, and their blocks in four.

use std::arch::x86_64::*;

use zeroize::Zeroizing;

use super::keystream::Cipher;
use super::{load_words, store_words};
use crate::swap_or_not::{
    COUNT_BITS, Direction, Phase, REPRESENTATIVE_COUNTS, ROUNDS_PER_PHASE, SwapOrNot,
};

/// Values of one vector.
const VECTOR_VALUES: usize = 16;
/// Vectors that go through the phases together. A vector's own steps depend on each other, so the
/// processor works on several.
const VECTORS: usize = 4;
const BATCH: usize = VECTORS * VECTOR_VALUES;

/// See [`Kernels::permute`](crate::Kernels::permute).
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
pub(crate) fn apply(permutation: &SwapOrNot, direction: Direction, values: &mut [u32]) {
    match direction {
        Direction::Forward => apply_in_order::<false>(permutation, values),
        Direction::Backward => apply_in_order::<true>(permutation, values),
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn apply_in_order<const BACKWARD: bool>(permutation: &SwapOrNot, values: &mut [u32]) {
    let cipher = Cipher::new(&permutation.coin_key);
    let (batches, rest) = values.as_chunks_mut::<BATCH>();
    for batch in batches {
        pass::<VECTORS, BACKWARD>(&cipher, &permutation.phases, batch);
    }
    if rest.is_empty() {
        return;
    }
    let mut batch = Zeroizing::new([0; BATCH]);
    batch[..rest.len()].copy_from_slice(rest);
    match rest.len().div_ceil(VECTOR_VALUES) {
        1 => pass::<1, BACKWARD>(&cipher, &permutation.phases, &mut batch),
        2 => pass::<2, BACKWARD>(&cipher, &permutation.phases, &mut batch),
        _ => pass::<VECTORS, BACKWARD>(&cipher, &permutation.phases, &mut batch),
    }
    rest.copy_from_slice(&batch[..rest.len()]);
}

/// All phases on the first vectors of a batch.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn pass<const USED: usize, const BACKWARD: bool>(
    cipher: &Cipher,
    phases: &[Phase],
    batch: &mut [u32; BATCH],
) {
    let words = batch.as_chunks_mut::<VECTOR_VALUES>().0;
    let mut vectors = [_mm512_setzero_si512(); USED];
    for (vector, words) in vectors.iter_mut().zip(&*words) {
        *vector = load_words(words);
    }
    for step in 0..phases.len() {
        let number = if BACKWARD { phases.len() - 1 - step } else { step };
        let phase = &phases[number];
        // The rounds of a vector stand behind the encryption for the next one, which does not
        // depend on them.
        let mut coins = Coins::toss(cipher, number, phase, vectors[0]);
        for i in 1..USED {
            let next = Coins::toss(cipher, number, phase, vectors[i]);
            vectors[i - 1] = coins.swap::<BACKWARD>(phase, vectors[i - 1]);
            coins = next;
        }
        vectors[USED - 1] = coins.swap::<BACKWARD>(phase, vectors[USED - 1]);
    }
    for (vector, words) in vectors.into_iter().zip(words) {
        store_words(words, vector);
    }
}

/// The coins of the cosets of sixteen values, and where those of their pairs are.
struct Coins {
    words: [__m512i; 3],
    counts: __m512i,
}

impl Coins {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
    fn toss(cipher: &Cipher, number: usize, phase: &Phase, values: __m512i) -> Coins {
        let mut representatives = values;
        let mut counts = each(REPRESENTATIVE_COUNTS);
        for i in 0..ROUNDS_PER_PHASE {
            let has_pivot = _mm512_test_epi32_mask(values, each(phase.pivots[i]));
            representatives = xor_where(has_pivot, representatives, phase.basis[i]);
            counts = xor_where(has_pivot, counts, phase.pivot_counts[i]);
        }
        Coins { words: encrypt(cipher, number, representatives), counts }
    }

    /// The rounds of a phase.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
    fn swap<const BACKWARD: bool>(self, phase: &Phase, values: __m512i) -> __m512i {
        // `a ^ (b & c)` as the truth table of a ternary operation.
        const XOR_OF_AND: i32 = 0b0111_1000;
        let (mut values, mut counts) = (values, self.counts);
        for step in 0..ROUNDS_PER_PHASE {
            let j = if BACKWARD { ROUNDS_PER_PHASE - 1 - step } else { step };
            // A rotation takes the lowest five bits of its count.
            let count = _mm512_srlv_epi32(counts, each(COUNT_BITS * j as u32));
            let coin = _mm512_rolv_epi32(self.words[j / 2], count);
            // All bits like the highest.
            let coin = _mm512_srai_epi32::<31>(coin);
            let round_key = each(phase.round_keys[j]);
            values = _mm512_ternarylogic_epi32::<XOR_OF_AND>(values, coin, round_key);
            let swap_counts = each(phase.swap_counts[j]);
            counts = _mm512_ternarylogic_epi32::<XOR_OF_AND>(counts, coin, swap_counts);
        }
        values
    }
}

/// The first three words of the encrypted blocks of sixteen representatives.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn encrypt(cipher: &Cipher, number: usize, representatives: __m512i) -> [__m512i; 3] {
    // Places where a block begins.
    const FIRST_WORDS: __mmask16 = 0b0001_0001_0001_0001;
    // The first round key is XORed to the representatives and to the rest of the block, which all
    // of them share.
    let first_key = cipher.keys[0];
    let whitened = _mm512_xor_si512(representatives, _mm512_shuffle_epi32::<0>(first_key));
    let number = _mm512_broadcast_i32x4(_mm_set_epi32(0, 0, number as i32, 0));
    let shared = _mm512_xor_si512(first_key, number);
    // Block `i` of each lane's four.
    let mut blocks = [
        _mm512_mask_shuffle_epi32::<0>(shared, FIRST_WORDS, whitened),
        _mm512_mask_shuffle_epi32::<1>(shared, FIRST_WORDS, whitened),
        _mm512_mask_shuffle_epi32::<2>(shared, FIRST_WORDS, whitened),
        _mm512_mask_shuffle_epi32::<3>(shared, FIRST_WORDS, whitened),
    ];
    for key in &cipher.keys[1..10] {
        for block in &mut blocks {
            *block = _mm512_aesenc_epi128(*block, *key);
        }
    }
    let [a, b, c, d] = blocks.map(|block| _mm512_aesenclast_epi128(block, cipher.keys[10]));
    // Transposes each lane.
    let low = [_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d)];
    let high = [_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d)];
    [
        _mm512_unpacklo_epi64(low[0], low[1]),
        _mm512_unpackhi_epi64(low[0], low[1]),
        _mm512_unpacklo_epi64(high[0], high[1]),
    ]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn xor_where(mask: __mmask16, words: __m512i, word: u32) -> __m512i {
    _mm512_mask_xor_epi32(words, mask, words, each(word))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn each(word: u32) -> __m512i {
    _mm512_set1_epi32(word as i32)
}
