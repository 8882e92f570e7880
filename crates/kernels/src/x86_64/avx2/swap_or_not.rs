//! Swap-or-not in vectors of eight values, with AES-NI or with vector AES.

use std::arch::x86_64::*;

use zeroize::Zeroizing;

use crate::swap_or_not::{COUNT_BITS, Direction, SwapOrNot};
use crate::x86_64::aes_key::round_keys;
use crate::x86_64::swap_or_not::{self, Cipher, Lanes};

/// See [`Kernels::permute`](crate::Kernels::permute).
#[target_feature(enable = "avx2,aes")]
pub(crate) fn apply(permutation: &SwapOrNot, direction: Direction, values: &mut [u32]) {
    let cipher = Narrow { keys: Zeroizing::new(round_keys(&permutation.coin_key)) };
    // SAFETY: this function is compiled for the instructions, and only called if the processor has
    // them.
    unsafe { swap_or_not::apply::<__m256i>(&cipher, permutation, direction, values) }
}

/// The same for processors with vector AES.
#[target_feature(enable = "avx2,aes,vaes")]
pub(crate) fn apply_with_vector_aes(
    permutation: &SwapOrNot,
    direction: Direction,
    values: &mut [u32],
) {
    let narrow = Zeroizing::new(round_keys(&permutation.coin_key));
    let mut cipher = Wide { keys: Zeroizing::new([_mm256_setzero_si256(); 11]) };
    for (wide, narrow) in cipher.keys.iter_mut().zip(narrow.iter()) {
        *wide = _mm256_broadcastsi128_si256(*narrow);
    }
    // SAFETY: as above.
    unsafe { swap_or_not::apply::<__m256i>(&cipher, permutation, direction, values) }
}

impl Lanes for __m256i {
    const COUNT: usize = 8;

    type Having = __m256i;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self {
        // SAFETY: the caller allows the reading, and the load needs no alignment.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: the caller allows the writing, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn splat(word: &u32) -> Self {
        // SAFETY: the caller vouches for the instructions, here and below.
        unsafe { _mm256_castps_si256(_mm256_broadcast_ss(&*std::ptr::from_ref(word).cast())) }
    }

    #[inline(always)]
    unsafe fn having(self, pivot: &u32) -> Self {
        // SAFETY: as above.
        unsafe {
            let pivot = Self::splat(pivot);
            _mm256_cmpeq_epi32(_mm256_and_si256(self, pivot), pivot)
        }
    }

    #[inline(always)]
    unsafe fn xor_having(self, having: Self, word: &u32) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_xor_si256(self, _mm256_and_si256(having, Self::splat(word))) }
    }

    #[inline(always)]
    unsafe fn coins(self, counts: Self, round: usize) -> Self {
        // SAFETY: as above.
        unsafe {
            let count = _mm256_srlv_epi32(counts, Self::splat(&(COUNT_BITS * round as u32)));
            let coins = _mm256_sllv_epi32(self, _mm256_and_si256(count, Self::splat(&31)));
            // All bits like the highest.
            _mm256_srai_epi32::<31>(coins)
        }
    }

    #[inline(always)]
    unsafe fn xor_coins(self, coins: Self, word: &u32) -> Self {
        // SAFETY: as above.
        unsafe { self.xor_having(coins, word) }
    }
}

/// AES-NI: a block at a time.
struct Narrow {
    keys: Zeroizing<[__m128i; 11]>,
}

impl Cipher<__m256i> for Narrow {
    type Blocks = [__m128i; 8];

    #[inline(always)]
    unsafe fn begin(&self, phase: usize, representatives: __m256i) -> Self::Blocks {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let (whitened, shared) = whiten(self.keys[0], phase, representatives);
            let low = _mm256_castsi256_si128(whitened);
            let high = _mm256_extracti128_si256::<1>(whitened);
            [
                insert_word::<0>(shared, low),
                insert_word::<1>(shared, low),
                insert_word::<2>(shared, low),
                insert_word::<3>(shared, low),
                insert_word::<0>(shared, high),
                insert_word::<1>(shared, high),
                insert_word::<2>(shared, high),
                insert_word::<3>(shared, high),
            ]
        }
    }

    #[inline(always)]
    unsafe fn round(&self, blocks: &mut Self::Blocks, round: usize) {
        for block in blocks {
            // SAFETY: as above.
            *block = unsafe { _mm_aesenc_si128(*block, self.keys[round]) };
        }
    }

    #[inline(always)]
    unsafe fn end(&self, blocks: Self::Blocks) -> [__m256i; 3] {
        // SAFETY: as above.
        unsafe {
            let mut pairs = [_mm256_setzero_si256(); 4];
            for (i, pair) in pairs.iter_mut().enumerate() {
                let low = _mm_aesenclast_si128(blocks[i], self.keys[10]);
                let high = _mm_aesenclast_si128(blocks[4 + i], self.keys[10]);
                *pair = _mm256_set_m128i(high, low);
            }
            transpose(pairs)
        }
    }
}

/// Vector AES: two blocks at a time, those of values `i` and `4 + i`.
struct Wide {
    keys: Zeroizing<[__m256i; 11]>,
}

impl Cipher<__m256i> for Wide {
    type Blocks = [__m256i; 4];

    #[inline(always)]
    unsafe fn begin(&self, phase: usize, representatives: __m256i) -> Self::Blocks {
        /// Places where a block begins.
        const FIRST_WORDS: i32 = 0b0001_0001;
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let first_key = _mm256_castsi256_si128(self.keys[0]);
            let (whitened, shared) = whiten(first_key, phase, representatives);
            let shared = _mm256_broadcastsi128_si256(shared);
            [
                _mm256_blend_epi32::<FIRST_WORDS>(shared, whitened),
                _mm256_blend_epi32::<FIRST_WORDS>(shared, _mm256_shuffle_epi32::<1>(whitened)),
                _mm256_blend_epi32::<FIRST_WORDS>(shared, _mm256_shuffle_epi32::<2>(whitened)),
                _mm256_blend_epi32::<FIRST_WORDS>(shared, _mm256_shuffle_epi32::<3>(whitened)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn round(&self, blocks: &mut Self::Blocks, round: usize) {
        for block in blocks {
            // SAFETY: as above.
            *block = unsafe { _mm256_aesenc_epi128(*block, self.keys[round]) };
        }
    }

    #[inline(always)]
    unsafe fn end(&self, mut blocks: Self::Blocks) -> [__m256i; 3] {
        for block in &mut blocks {
            // SAFETY: as above.
            *block = unsafe { _mm256_aesenclast_epi128(*block, self.keys[10]) };
        }
        // SAFETY: as above.
        unsafe { transpose(blocks) }
    }
}

/// XORs the first round key to the representatives, and to the rest of the block, which all of them
/// share.
#[inline]
#[target_feature(enable = "avx2,aes")]
fn whiten(first_key: __m128i, phase: usize, representatives: __m256i) -> (__m256i, __m128i) {
    let whitened = _mm256_xor_si256(representatives, _mm256_broadcastd_epi32(first_key));
    (whitened, _mm_xor_si128(first_key, _mm_set_epi32(0, 0, phase as i32, 0)))
}

/// The first three words of the blocks of values 0 to 3 in the low lanes and of values 4 to 7 in
/// the high ones.
#[inline]
#[target_feature(enable = "avx2,aes")]
fn transpose([a, b, c, d]: [__m256i; 4]) -> [__m256i; 3] {
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
