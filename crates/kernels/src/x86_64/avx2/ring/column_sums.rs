//! Products of rows of bytes with fixed polynomials, four rows at a time.

use std::arch::x86_64::*;

use crate::portable::ring::column_sums::{Lanes, in_lanes};
use crate::ring::ColumnFactors;

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

/// See [`crate::portable::ring::column_sums::sum`].
#[target_feature(enable = "avx2")]
pub(crate) fn sum(
    factors: &ColumnFactors,
    columns: &[u8],
    column_len: usize,
    first_row: usize,
    sums: &mut [u64],
) {
    // SAFETY: this function is compiled for the instructions, and only called if the processor has
    // them.
    unsafe { in_lanes::<__m256d, 4>(factors, columns, column_len, first_row, sums) };
}
