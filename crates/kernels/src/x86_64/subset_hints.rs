//! Pseudorandom subsets with AES-NI, where a register holds one block, or with the vector AES of
//! AVX-512, where a vector holds the blocks of four neighbouring partitions. Here is what the two
//! have in common.

pub(crate) mod cutoffs;
pub(crate) mod equal;
pub(crate) mod parities;

use std::arch::x86_64::*;

use super::vectors::{Avx2, Avx512, Operations, Vectors};

/// Comparisons of words, for each arm's lanes.
pub(crate) trait Comparisons: Vectors {
    /// The lanes where `a == b`: a bit for each.
    fn equal_u32(self, a: Self::Vector, b: Self::Vector) -> u32;

    /// The first half-words of a slice, as many as a vector has, that equal those of `wanted`.
    fn equal_u16(self, halfwords: &[u16], wanted: Self::Vector) -> u32;

    /// The lanes where `a <= b`.
    fn up_to(self, a: Self::Vector, b: Self::Vector) -> u32;

    /// `counts`, and 1 more where a value is above `limit`.
    fn count_above(self, counts: Self::Vector, values: Self::Vector, limit: u32) -> Self::Vector;

    /// The values in the lanes of `wanted` first, and arbitrary others after them.
    fn compress(self, values: Self::Vector, wanted: u32) -> Self::Vector;
}

impl Comparisons for Avx2 {
    #[inline(always)]
    fn equal_u32(self, a: __m256i, b: __m256i) -> u32 {
        // SAFETY: the arm's value proves that the processor has the instructions, here and below.
        unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b))) as u32 }
    }

    #[inline(always)]
    fn equal_u16(self, halfwords: &[u16], wanted: __m256i) -> u32 {
        let [low, high] = [&halfwords[..8], &halfwords[8..16]];
        // SAFETY: as above; eight half-words are 16 bytes, and the loads need no alignment.
        unsafe {
            let wanted = _mm256_castsi256_si128(wanted);
            let low = _mm_cmpeq_epi16(_mm_loadu_si128(low.as_ptr().cast()), wanted);
            let high = _mm_cmpeq_epi16(_mm_loadu_si128(high.as_ptr().cast()), wanted);
            _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32
        }
    }

    #[inline(always)]
    fn up_to(self, a: __m256i, b: __m256i) -> u32 {
        self.equal_u32(self.min_u32(a, b), a)
    }

    #[inline(always)]
    fn count_above(self, counts: __m256i, values: __m256i, limit: u32) -> __m256i {
        // AVX2 has only a signed comparison. With the highest bits flipped, it compares unsigned
        // numbers.
        const FLIP: u32 = 1 << 31;
        let values = self.xor(values, self.splat_u32(FLIP));
        // SAFETY: as above.
        let above = unsafe { _mm256_cmpgt_epi32(values, self.splat_u32(limit ^ FLIP)) };
        self.sub_u32(counts, above)
    }

    #[inline(always)]
    fn compress(self, values: __m256i, wanted: u32) -> __m256i {
        let order = &COMPRESSED[usize::from(wanted as u8)];
        // SAFETY: as above; the array has 8 bytes, and the load needs no alignment.
        unsafe {
            let order = _mm256_cvtepu8_epi32(_mm_loadl_epi64(order.as_ptr().cast()));
            _mm256_permutevar8x32_epi32(values, order)
        }
    }
}

/// For each set of the lanes of AVX2, these in order, and then lane 0.
static COMPRESSED: [[u8; Avx2::WORDS]; 256] = {
    let mut orders = [[0; Avx2::WORDS]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut lane, mut len) = (0, 0);
        while lane < Avx2::WORDS {
            if set >> lane & 1 == 1 {
                orders[set][len] = lane as u8;
                len += 1;
            }
            lane += 1;
        }
        set += 1;
    }
    orders
};

impl Comparisons for Avx512 {
    #[inline(always)]
    fn equal_u32(self, a: __m512i, b: __m512i) -> u32 {
        // SAFETY: the arm's value proves that the processor has the instructions, here and below.
        unsafe { _mm512_cmpeq_epi32_mask(a, b).into() }
    }

    #[inline(always)]
    fn equal_u16(self, halfwords: &[u16], wanted: __m512i) -> u32 {
        // SAFETY: as above.
        unsafe { _mm512_cmpeq_epi16_mask(self.load(halfwords), wanted) }
    }

    #[inline(always)]
    fn up_to(self, a: __m512i, b: __m512i) -> u32 {
        // SAFETY: as above.
        unsafe { _mm512_cmple_epu32_mask(a, b).into() }
    }

    #[inline(always)]
    fn count_above(self, counts: __m512i, values: __m512i, limit: u32) -> __m512i {
        // SAFETY: as above.
        unsafe {
            let above = _mm512_cmpgt_epu32_mask(values, self.splat_u32(limit));
            _mm512_mask_add_epi32(counts, above, counts, self.splat_u32(1))
        }
    }

    #[inline(always)]
    fn compress(self, values: __m512i, wanted: u32) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_maskz_compress_epi32(wanted as u16, values) }
    }
}
