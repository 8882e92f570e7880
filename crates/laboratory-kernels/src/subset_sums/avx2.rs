//! Subset sums in vectors of 32 bytes.

use std::arch::x86_64::*;

use super::x86_64::{self, Vector};

impl Vector for __m256i {
    const BYTES: usize = 32;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller allows the reading, and the load needs no alignment.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller allows the writing, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller allows the writing and vouches for the alignment.
        unsafe { _mm256_stream_si256(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm256_xor_si256(self, other) }
    }

    #[inline(always)]
    unsafe fn sum_within<const ENTRY_LEN: usize>(self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let mut sum = self;
            if ENTRY_LEN <= 1 {
                sum = _mm256_xor_si256(sum, _mm256_slli_epi16::<8>(sum));
            }
            if ENTRY_LEN <= 2 {
                sum = _mm256_xor_si256(sum, _mm256_slli_epi32::<16>(sum));
            }
            if ENTRY_LEN <= 4 {
                sum = _mm256_xor_si256(sum, _mm256_slli_epi64::<32>(sum));
            }
            if ENTRY_LEN <= 8 {
                sum = _mm256_xor_si256(sum, _mm256_bslli_epi128::<8>(sum));
            }
            // Adds the lower half to the upper half, and zeros to the lower half.
            _mm256_xor_si256(sum, _mm256_permute2x128_si256::<0x08>(sum, sum))
        }
    }
}

/// See [`super::portable::sum_block`].
#[target_feature(enable = "avx2")]
pub(crate) fn sum_block(block: &mut [u8], entry_len: usize) {
    // SAFETY: this function is compiled for the instructions, and only called if the processor has
    // them.
    unsafe { x86_64::sum_block::<__m256i>(block, entry_len) }
}

/// See [`super::portable::sum_tile`].
#[target_feature(enable = "avx2")]
pub(crate) fn sum_tile(rows: &mut [&mut [u8]], stage: &mut Vec<u8>) {
    // SAFETY: as above.
    unsafe { x86_64::sum_tile::<__m256i>(rows, stage) }
}
