//! Polynomials modulo `X^d + 1` in vectors of 32 bytes.

use std::arch::x86_64::*;

use crate::ring::{Field, Roots};
use crate::x86_64::ring::{self, Garner, Words};

pub(crate) mod column_sums;
pub(crate) mod dft;

impl Words for __m256i {
    const COUNT: usize = 8;

    fn squares(roots: &Roots) -> &[u32] {
        &roots.eights
    }

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
    unsafe fn splat(word: u32) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm256_set1_epi32(word as i32) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm256_add_epi32(self, other) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm256_sub_epi32(self, other) }
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm256_min_epu32(self, other) }
    }

    #[inline(always)]
    unsafe fn montgomery(self, word: Self, quotient: Self, prime: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let odd = _mm256_srli_epi64::<32>(self);
            let even_multiple = _mm256_mul_epu32(self, quotient);
            let odd_multiple = _mm256_mul_epu32(odd, _mm256_srli_epi64::<32>(quotient));
            let even = _mm256_mul_epu32(self, word);
            let odd = _mm256_mul_epu32(odd, _mm256_srli_epi64::<32>(word));
            difference([even, odd], [even_multiple, odd_multiple], prime)
        }
    }

    #[inline(always)]
    unsafe fn montgomery_product(self, other: Self, prime_inverse: Self, prime: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let even = _mm256_mul_epu32(self, other);
            let odd =
                _mm256_mul_epu32(_mm256_srli_epi64::<32>(self), _mm256_srli_epi64::<32>(other));
            let even_multiple = _mm256_mul_epu32(even, prime_inverse);
            let odd_multiple = _mm256_mul_epu32(odd, prime_inverse);
            difference([even, odd], [even_multiple, odd_multiple], prime)
        }
    }

    #[inline(always)]
    unsafe fn store_combined(garner: &Garner, digits: [Self; 3], negative: Self, to: *mut u64) {
        // SAFETY: the caller vouches for the instructions and allows the writing.
        unsafe {
            // Words 0, 1, 4, 5 and 2, 3, 6, 7, each as the low half of 64 bits.
            let [v1, v2, v3] = digits;
            let zero = _mm256_setzero_si256();
            let negative = _mm256_srai_epi32::<31>(negative);
            let low = combine(
                garner,
                [
                    _mm256_unpacklo_epi32(v1, zero),
                    _mm256_unpacklo_epi32(v2, zero),
                    _mm256_unpacklo_epi32(v3, zero),
                ],
                _mm256_unpacklo_epi32(negative, negative),
            );
            let high = combine(
                garner,
                [
                    _mm256_unpackhi_epi32(v1, zero),
                    _mm256_unpackhi_epi32(v2, zero),
                    _mm256_unpackhi_epi32(v3, zero),
                ],
                _mm256_unpackhi_epi32(negative, negative),
            );
            let first = _mm256_permute2x128_si256::<0x20>(low, high);
            let second = _mm256_permute2x128_si256::<0x31>(low, high);
            _mm256_storeu_si256(to.cast(), first);
            _mm256_storeu_si256(to.add(4).cast(), second);
        }
    }

    #[inline(always)]
    unsafe fn transpose(square: *mut u32) {
        // SAFETY: the caller vouches for the instructions and allows reading and writing.
        unsafe {
            let mut rows = [Self::splat(0); 8];
            for (i, row) in rows.iter_mut().enumerate() {
                *row = Self::load(square.add(8 * i));
            }
            // Pairs of words, then of pairs, then of halves.
            for i in [0, 2, 4, 6] {
                let [a, b] = [rows[i], rows[i + 1]];
                rows[i] = _mm256_unpacklo_epi32(a, b);
                rows[i + 1] = _mm256_unpackhi_epi32(a, b);
            }
            // Row `i + 2j` has the columns `2j` and `2j + 1` of each half.
            for i in [0, 4] {
                let [a, b, c, d] = [rows[i], rows[i + 1], rows[i + 2], rows[i + 3]];
                rows[i] = _mm256_unpacklo_epi64(a, c);
                rows[i + 1] = _mm256_unpackhi_epi64(a, c);
                rows[i + 2] = _mm256_unpacklo_epi64(b, d);
                rows[i + 3] = _mm256_unpackhi_epi64(b, d);
            }
            for i in 0..4 {
                let [a, b] = [rows[i], rows[i + 4]];
                rows[i] = _mm256_permute2x128_si256::<0x20>(a, b);
                rows[i + 4] = _mm256_permute2x128_si256::<0x31>(a, b);
            }
            for (i, row) in rows.iter().enumerate() {
                row.store(square.add(8 * i));
            }
        }
    }
}

/// The high halves of the products of the even and the odd words, less those of the multiples of
/// the prime with the same low halves. The multiples are the low halves of `multiples`.
#[inline]
#[target_feature(enable = "avx2")]
fn difference(products: [__m256i; 2], multiples: [__m256i; 2], prime: __m256i) -> __m256i {
    let even = _mm256_sub_epi64(products[0], _mm256_mul_epu32(multiples[0], prime));
    let odd = _mm256_sub_epi64(products[1], _mm256_mul_epu32(multiples[1], prime));
    _mm256_blend_epi32::<0xaa>(_mm256_srli_epi64::<32>(even), odd)
}

/// Four numbers of their digits, which are the low halves of 64 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn combine(garner: &Garner, [v1, v2, v3]: [__m256i; 3], negative: __m256i) -> __m256i {
    let high = _mm256_mul_epu32(v3, _mm256_set1_epi64x((garner.pair >> 32) as i64));
    let low = _mm256_mul_epu32(v3, _mm256_set1_epi64x(garner.pair as u32 as i64));
    let third = _mm256_add_epi64(_mm256_slli_epi64::<32>(high), low);
    let second = _mm256_mul_epu32(v2, _mm256_set1_epi64x(i64::from(garner.first)));
    let number = _mm256_add_epi64(_mm256_add_epi64(third, second), v1);
    let all = _mm256_and_si256(negative, _mm256_set1_epi64x(garner.all as i64));
    _mm256_sub_epi64(number, all)
}

/// See [`crate::portable::ring::forward`].
#[target_feature(enable = "avx2")]
pub(crate) fn forward(field: &Field, words: &mut [u32]) {
    // SAFETY: this function is compiled for the instructions, and only called if the processor has
    // them.
    unsafe { ring::forward::<__m256i>(field, words) }
}

/// See [`crate::portable::ring::inverse`].
#[target_feature(enable = "avx2")]
pub(crate) fn inverse(field: &Field, words: &mut [u32]) {
    // SAFETY: as above.
    unsafe { ring::inverse::<__m256i>(field, words) }
}

/// See [`crate::portable::ring::multiply`].
#[target_feature(enable = "avx2")]
pub(crate) fn multiply(field: &Field, a: &[u32], b: &[u32], products: &mut [u32]) {
    // SAFETY: as above.
    unsafe { ring::multiply::<__m256i, false>(field, a, b, products) }
}

/// See [`crate::portable::ring::multiply_add`].
#[target_feature(enable = "avx2")]
pub(crate) fn multiply_add(field: &Field, a: &[u32], b: &[u32], products: &mut [u32]) {
    // SAFETY: as above.
    unsafe { ring::multiply::<__m256i, true>(field, a, b, products) }
}

/// See [`crate::portable::ring::combine_residues`].
#[target_feature(enable = "avx2")]
pub(crate) fn combine_residues(fields: &[Field; 3], residues: &[u32], coefficients: &mut [u64]) {
    // SAFETY: as above.
    unsafe { ring::combine::<__m256i>(fields, residues, coefficients) }
}

/// See [`crate::portable::ring::reduce`].
#[target_feature(enable = "avx2")]
pub(crate) fn reduce(field: &Field, coefficients: &[i64], words: &mut [u32]) {
    crate::portable::ring::reduce(field, coefficients, words);
}
