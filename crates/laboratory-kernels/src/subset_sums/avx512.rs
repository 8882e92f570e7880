//! Subset sums in vectors of 64 bytes.

use std::arch::x86_64::*;

use super::x86_64::{self, Vector};

impl Vector for __m512i {
    const BYTES: usize = 64;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller allows the reading, and the load needs no alignment.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller allows the writing, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller allows the writing and vouches for the alignment.
        unsafe { _mm512_stream_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm512_xor_si512(self, other) }
    }

    #[inline(always)]
    unsafe fn sum_within<const ENTRY_LEN: usize>(self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let mut sum = self;
            if ENTRY_LEN <= 1 {
                sum = _mm512_xor_si512(sum, _mm512_slli_epi16::<8>(sum));
            }
            if ENTRY_LEN <= 2 {
                sum = _mm512_xor_si512(sum, _mm512_slli_epi32::<16>(sum));
            }
            if ENTRY_LEN <= 4 {
                sum = _mm512_xor_si512(sum, _mm512_slli_epi64::<32>(sum));
            }
            if ENTRY_LEN <= 8 {
                sum = _mm512_xor_si512(sum, _mm512_bslli_epi128::<8>(sum));
            }
            if ENTRY_LEN <= 16 {
                // Adds lane 0 to lane 1, and lane 2 to lane 3.
                let lanes = _mm512_maskz_shuffle_i64x2::<0b10_10_00_00>(0b1100_1100, sum, sum);
                sum = _mm512_xor_si512(sum, lanes);
            }
            // Adds lanes 0 and 1 to lanes 2 and 3.
            let lanes = _mm512_maskz_shuffle_i64x2::<0b01_00_01_00>(0b1111_0000, sum, sum);
            _mm512_xor_si512(sum, lanes)
        }
    }
}

/// See [`super::portable::sum_block`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn sum_block(block: &mut [u8], entry_len: usize) {
    // SAFETY: this function is compiled for the instructions, and only called if the processor has
    // them.
    unsafe { x86_64::sum_block::<__m512i>(block, entry_len) }
}

/// See [`super::portable::sum_tile`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn sum_tile(rows: &mut [&mut [u8]], stage: &mut Vec<u8>) {
    // SAFETY: as above.
    unsafe { x86_64::sum_tile::<__m512i>(rows, stage) }
}
