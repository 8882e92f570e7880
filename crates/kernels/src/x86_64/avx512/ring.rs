//! Polynomials modulo `X^d + 1` in vectors of 64 bytes.

use std::arch::x86_64::*;

use crate::ring::{Field, Roots};
use crate::x86_64::ring::{self, Garner, Words};

pub(crate) mod column_sums;
pub(crate) mod dft;

impl Words for __m512i {
    const COUNT: usize = 16;

    fn squares(roots: &Roots) -> &[u32] {
        &roots.sixteens
    }

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
    unsafe fn splat(word: u32) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm512_set1_epi32(word as i32) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm512_add_epi32(self, other) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm512_sub_epi32(self, other) }
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm512_min_epu32(self, other) }
    }

    #[inline(always)]
    unsafe fn montgomery(self, word: Self, quotient: Self, prime: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let odd = _mm512_srli_epi64::<32>(self);
            let even_multiple = _mm512_mul_epu32(self, quotient);
            let odd_multiple = _mm512_mul_epu32(odd, _mm512_srli_epi64::<32>(quotient));
            let even = _mm512_mul_epu32(self, word);
            let odd = _mm512_mul_epu32(odd, _mm512_srli_epi64::<32>(word));
            difference([even, odd], [even_multiple, odd_multiple], prime)
        }
    }

    #[inline(always)]
    unsafe fn montgomery_product(self, other: Self, prime_inverse: Self, prime: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let even = _mm512_mul_epu32(self, other);
            let odd =
                _mm512_mul_epu32(_mm512_srli_epi64::<32>(self), _mm512_srli_epi64::<32>(other));
            let even_multiple = _mm512_mul_epu32(even, prime_inverse);
            let odd_multiple = _mm512_mul_epu32(odd, prime_inverse);
            difference([even, odd], [even_multiple, odd_multiple], prime)
        }
    }

    #[inline(always)]
    unsafe fn store_combined(garner: &Garner, digits: [Self; 3], negative: Self, to: *mut u64) {
        // SAFETY: the caller vouches for the instructions and allows the writing.
        unsafe {
            let negative = _mm512_cmplt_epi32_mask(negative, _mm512_setzero_si512());
            let [v1, v2, v3] = digits;
            let low = combine(garner, [lower(v1), lower(v2), lower(v3)], negative as u8);
            let high = combine(garner, [upper(v1), upper(v2), upper(v3)], (negative >> 8) as u8);
            _mm512_storeu_si512(to.cast(), low);
            _mm512_storeu_si512(to.add(8).cast(), high);
        }
    }

    #[inline(always)]
    unsafe fn transpose(square: *mut u32) {
        // SAFETY: the caller vouches for the instructions and allows reading and writing.
        unsafe {
            let mut rows = [Self::splat(0); 16];
            for (i, row) in rows.iter_mut().enumerate() {
                *row = Self::load(square.add(16 * i));
            }
            // Pairs of words, then of pairs, then of quarters, then of halves.
            for i in (0..16).step_by(2) {
                let [a, b] = [rows[i], rows[i + 1]];
                rows[i] = _mm512_unpacklo_epi32(a, b);
                rows[i + 1] = _mm512_unpackhi_epi32(a, b);
            }
            for i in (0..16).step_by(4) {
                let [a, b, c, d] = [rows[i], rows[i + 1], rows[i + 2], rows[i + 3]];
                rows[i] = _mm512_unpacklo_epi64(a, c);
                rows[i + 1] = _mm512_unpackhi_epi64(a, c);
                rows[i + 2] = _mm512_unpacklo_epi64(b, d);
                rows[i + 3] = _mm512_unpackhi_epi64(b, d);
            }
            // Row `4i + j` has column `4q + j` of the rows `4i..4i + 4` in its quarter `q`.
            for j in 0..4 {
                let [a, b, c, d] = [rows[j], rows[4 + j], rows[8 + j], rows[12 + j]];
                let even_low = _mm512_shuffle_i32x4::<0x88>(a, b);
                let odd_low = _mm512_shuffle_i32x4::<0xdd>(a, b);
                let even_high = _mm512_shuffle_i32x4::<0x88>(c, d);
                let odd_high = _mm512_shuffle_i32x4::<0xdd>(c, d);
                rows[j] = _mm512_shuffle_i32x4::<0x88>(even_low, even_high);
                rows[4 + j] = _mm512_shuffle_i32x4::<0x88>(odd_low, odd_high);
                rows[8 + j] = _mm512_shuffle_i32x4::<0xdd>(even_low, even_high);
                rows[12 + j] = _mm512_shuffle_i32x4::<0xdd>(odd_low, odd_high);
            }
            for (i, row) in rows.iter().enumerate() {
                row.store(square.add(16 * i));
            }
        }
    }
}

/// The high halves of the products of the even and the odd words, less those of the multiples of
/// the prime with the same low halves. The multiples are the low halves of `multiples`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn difference(products: [__m512i; 2], multiples: [__m512i; 2], prime: __m512i) -> __m512i {
    let even = _mm512_sub_epi64(products[0], _mm512_mul_epu32(multiples[0], prime));
    let odd = _mm512_sub_epi64(products[1], _mm512_mul_epu32(multiples[1], prime));
    _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64::<32>(even), odd)
}

/// The first eight words, each as the low half of 64 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn lower(words: __m512i) -> __m512i {
    _mm512_cvtepu32_epi64(_mm512_castsi512_si256(words))
}

/// The last eight words, each as the low half of 64 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn upper(words: __m512i) -> __m512i {
    _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64::<1>(words))
}

/// Eight numbers of their digits, which are the low halves of 64 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn combine(garner: &Garner, [v1, v2, v3]: [__m512i; 3], negative: __mmask8) -> __m512i {
    let high = _mm512_mul_epu32(v3, _mm512_set1_epi64((garner.pair >> 32) as i64));
    let low = _mm512_mul_epu32(v3, _mm512_set1_epi64(garner.pair as u32 as i64));
    let third = _mm512_add_epi64(_mm512_slli_epi64::<32>(high), low);
    let second = _mm512_mul_epu32(v2, _mm512_set1_epi64(i64::from(garner.first)));
    let number = _mm512_add_epi64(_mm512_add_epi64(third, second), v1);
    _mm512_mask_sub_epi64(number, negative, number, _mm512_set1_epi64(garner.all as i64))
}

/// See [`crate::portable::ring::forward`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn forward(field: &Field, words: &mut [u32]) {
    // SAFETY: this function is compiled for the instructions, and only called if the processor has
    // them.
    unsafe { ring::forward::<__m512i>(field, words) }
}

/// See [`crate::portable::ring::inverse`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn inverse(field: &Field, words: &mut [u32]) {
    // SAFETY: as above.
    unsafe { ring::inverse::<__m512i>(field, words) }
}

/// See [`crate::portable::ring::multiply`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn multiply(field: &Field, a: &[u32], b: &[u32], products: &mut [u32]) {
    // SAFETY: as above.
    unsafe { ring::multiply::<__m512i, false>(field, a, b, products) }
}

/// See [`crate::portable::ring::multiply_add`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn multiply_add(field: &Field, a: &[u32], b: &[u32], products: &mut [u32]) {
    // SAFETY: as above.
    unsafe { ring::multiply::<__m512i, true>(field, a, b, products) }
}

/// See [`crate::portable::ring::combine_residues`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn combine_residues(fields: &[Field; 3], residues: &[u32], coefficients: &mut [u64]) {
    // SAFETY: as above.
    unsafe { ring::combine::<__m512i>(fields, residues, coefficients) }
}

/// See [`crate::portable::ring::reduce`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn reduce(field: &Field, coefficients: &[i64], words: &mut [u32]) {
    crate::portable::ring::reduce(field, coefficients, words);
}
