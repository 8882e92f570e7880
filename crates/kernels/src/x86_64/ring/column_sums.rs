//! Products of rows of bytes with fixed polynomials: four rows at a time in AVX2, eight in AVX-512.

use std::arch::x86_64::*;

use crate::portable::ring::column_sums::{Lanes, in_lanes};
use crate::ring::ColumnFactors;
use crate::x86_64::vectors::{Avx2, Avx512, entries};

entries! {
    fn sum(
        factors: &ColumnFactors,
        columns: &[u8],
        column_len: usize,
        first_row: usize,
        sums: &mut [u64],
    );
}

/// See [`crate::portable::ring::column_sums::sum`].
#[inline(always)]
fn sum<A: Rows<L>, const L: usize>(
    _: A,
    factors: &ColumnFactors,
    columns: &[u8],
    column_len: usize,
    first_row: usize,
    sums: &mut [u64],
) {
    // SAFETY: the arm's value proves that the processor has the instructions of its lanes.
    unsafe { in_lanes::<A::Lanes, L>(factors, columns, column_len, first_row, sums) };
}

/// An arm whose vectors have lanes for `L` rows.
pub(crate) trait Rows<const L: usize> {
    type Lanes: Lanes<L>;
}

impl Rows<4> for Avx2 {
    type Lanes = __m256d;
}

impl Rows<8> for Avx512 {
    type Lanes = __m512d;
}

impl Lanes<4> for __m256d {
    #[inline(always)]
    unsafe fn from_bytes(bytes: &[u8; 4]) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let bytes = _mm_cvtsi32_si128(i32::from_le_bytes(*bytes));
            _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(bytes))
        }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: a value exists, so the processor has the instructions.
        unsafe { _mm256_add_pd(self, other) }
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_sub_pd(self, other) }
    }

    #[inline(always)]
    fn times(self, factor: f64) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_mul_pd(self, _mm256_set1_pd(factor)) }
    }

    #[inline(always)]
    fn times_plus(self, factor: f64, sum: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_add_pd(sum, self.times(factor)) }
    }

    #[inline(always)]
    fn to_array(self) -> [f64; 4] {
        let mut array = [0.0; 4];
        // SAFETY: as above; the array has room for the lanes, and the store needs no alignment.
        unsafe { _mm256_storeu_pd(array.as_mut_ptr(), self) };
        array
    }
}

impl Lanes<8> for __m512d {
    #[inline(always)]
    unsafe fn from_bytes(bytes: &[u8; 8]) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let bytes = _mm_cvtsi64_si128(i64::from_le_bytes(*bytes));
            _mm512_cvtepi32_pd(_mm256_cvtepu8_epi32(bytes))
        }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: a value exists, so the processor has the instructions.
        unsafe { _mm512_add_pd(self, other) }
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_sub_pd(self, other) }
    }

    #[inline(always)]
    fn times(self, factor: f64) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_mul_pd(self, _mm512_set1_pd(factor)) }
    }

    #[inline(always)]
    fn times_plus(self, factor: f64, sum: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_fmadd_pd(self, _mm512_set1_pd(factor), sum) }
    }

    #[inline(always)]
    fn to_array(self) -> [f64; 8] {
        let mut array = [0.0; 8];
        // SAFETY: as above; the array has room for the lanes, and the store needs no alignment.
        unsafe { _mm512_storeu_pd(array.as_mut_ptr(), self) };
        array
    }
}
