//! Swap-or-not with vector AES: sixteen values in a vector, and their blocks in four.

use std::arch::x86_64::*;

use super::keystream;
use crate::swap_or_not::{COUNT_BITS, Direction, SwapOrNot};
use crate::x86_64::swap_or_not::{self, Cipher, Lanes};

/// See [`Kernels::permute`](crate::Kernels::permute).
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
pub(crate) fn apply(permutation: &SwapOrNot, direction: Direction, values: &mut [u32]) {
    let cipher = keystream::Cipher::new(&permutation.coin_key);
    // SAFETY: this function is compiled for the instructions, and only called if the processor has
    // them.
    unsafe { swap_or_not::apply::<__m512i>(&cipher, permutation, direction, values) }
}

impl Lanes for __m512i {
    const COUNT: usize = 16;

    type Having = __mmask16;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self {
        // SAFETY: the caller allows the reading, and the load needs no alignment.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: the caller allows the writing, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn splat(word: &u32) -> Self {
        // SAFETY: the caller vouches for the instructions, here and below.
        unsafe { _mm512_set1_epi32(*word as i32) }
    }

    #[inline(always)]
    unsafe fn having(self, pivot: &u32) -> __mmask16 {
        // SAFETY: as above.
        unsafe { _mm512_test_epi32_mask(self, Self::splat(pivot)) }
    }

    #[inline(always)]
    unsafe fn xor_having(self, having: __mmask16, word: &u32) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_mask_xor_epi32(self, having, self, Self::splat(word)) }
    }

    #[inline(always)]
    unsafe fn coins(self, counts: Self, round: usize) -> Self {
        // SAFETY: as above.
        unsafe {
            // A rotation takes the lowest five bits of its count.
            let count = _mm512_srlv_epi32(counts, Self::splat(&(COUNT_BITS * round as u32)));
            // All bits like the highest.
            _mm512_srai_epi32::<31>(_mm512_rolv_epi32(self, count))
        }
    }

    #[inline(always)]
    unsafe fn xor_coins(self, coins: Self, word: &u32) -> Self {
        // `a ^ (b & c)` as the truth table of a ternary operation.
        const XOR_OF_AND: i32 = 0b0111_1000;
        // SAFETY: as above.
        unsafe { _mm512_ternarylogic_epi32::<XOR_OF_AND>(self, coins, Self::splat(word)) }
    }
}

impl Cipher<__m512i> for keystream::Cipher {
    /// Four blocks in a vector: those of values `i`, `4 + i`, `8 + i` and `12 + i`.
    type Blocks = [__m512i; 4];

    #[inline(always)]
    unsafe fn begin(&self, phase: usize, representatives: __m512i) -> Self::Blocks {
        // Places where a block begins.
        const FIRST_WORDS: __mmask16 = 0b0001_0001_0001_0001;
        let first_key = self.keys[0];
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            // The first round key is XORed to the representatives and to the rest of the block,
            // which all of them share.
            let whitened = _mm512_xor_si512(representatives, _mm512_shuffle_epi32::<0>(first_key));
            let phase = _mm512_broadcast_i32x4(_mm_set_epi32(0, 0, phase as i32, 0));
            let shared = _mm512_xor_si512(first_key, phase);
            [
                _mm512_mask_shuffle_epi32::<0>(shared, FIRST_WORDS, whitened),
                _mm512_mask_shuffle_epi32::<1>(shared, FIRST_WORDS, whitened),
                _mm512_mask_shuffle_epi32::<2>(shared, FIRST_WORDS, whitened),
                _mm512_mask_shuffle_epi32::<3>(shared, FIRST_WORDS, whitened),
            ]
        }
    }

    #[inline(always)]
    unsafe fn round(&self, blocks: &mut Self::Blocks, round: usize) {
        for block in blocks {
            // SAFETY: as above.
            *block = unsafe { _mm512_aesenc_epi128(*block, self.keys[round]) };
        }
    }

    #[inline(always)]
    unsafe fn end(&self, mut blocks: Self::Blocks) -> [__m512i; 3] {
        for block in &mut blocks {
            // SAFETY: as above.
            *block = unsafe { _mm512_aesenclast_epi128(*block, self.keys[10]) };
        }
        let [a, b, c, d] = blocks;
        // SAFETY: as above.
        unsafe {
            // Transposes each lane.
            let low = [_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d)];
            let high = [_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d)];
            [
                _mm512_unpacklo_epi64(low[0], low[1]),
                _mm512_unpackhi_epi64(low[0], low[1]),
                _mm512_unpacklo_epi64(high[0], high[1]),
            ]
        }
    }
}
