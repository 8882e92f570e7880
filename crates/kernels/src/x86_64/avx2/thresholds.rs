//! Counting thresholds, 32 places at a time.

use std::arch::x86_64::*;

use crate::thresholds::{Place, Thresholds};
use crate::x86_64::thresholds::{self, Bytes};

impl Bytes for __m256i {
    const BLOCKS: usize = 2;

    type Mask = __m256i;

    #[inline(always)]
    unsafe fn splat_block(block: &[u8; 16]) -> Self {
        // SAFETY: the block has 16 bytes, and the load needs no alignment; the caller vouches for
        // the instructions.
        unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(block.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        // SAFETY: the caller vouches for the instructions, here and below.
        unsafe { _mm256_set1_epi8(byte as i8) }
    }

    #[inline(always)]
    unsafe fn load_apart(from: *const Place) -> Self {
        // SAFETY: the caller says that the places are there; the loads need no alignment.
        unsafe { _mm256_loadu2_m128i(from.add(16).cast(), from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller allows the writing, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn interleave(self, other: Self) -> [Self; 2] {
        // SAFETY: the caller vouches for the instructions, here and below.
        unsafe { [_mm256_unpacklo_epi8(self, other), _mm256_unpackhi_epi8(self, other)] }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_and_si256(self, other) }
    }

    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_or_si256(self, other) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_xor_si256(self, other) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_sub_epi8(self, other) }
    }

    #[inline(always)]
    unsafe fn add_up_to_255(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_adds_epu8(self, other) }
    }

    #[inline(always)]
    unsafe fn shuffle(self, positions: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_shuffle_epi8(self, positions) }
    }

    #[inline(always)]
    unsafe fn nowhere() -> Self {
        // SAFETY: as above.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn below(self, other: Self, lower: Self) -> Self {
        // SAFETY: as above.
        unsafe {
            let equal = _mm256_cmpeq_epi8(self, other);
            _mm256_or_si256(_mm256_cmpgt_epi8(other, self), _mm256_and_si256(equal, lower))
        }
    }

    #[inline(always)]
    unsafe fn child(self, mask: Self) -> Self {
        // SAFETY: as above. A byte of the mask is 0 or -1.
        unsafe { _mm256_sub_epi8(_mm256_add_epi8(self, self), mask) }
    }
}

/// See [`crate::portable::thresholds::count_above`].
#[target_feature(enable = "avx2,aes,popcnt")]
pub(crate) fn count_above(thresholds: &Thresholds, places: &[Place], samples: &mut [i8]) {
    // SAFETY: this function is compiled for the instructions, and only called if the processor has
    // them.
    unsafe { thresholds::count_above::<__m256i>(thresholds, places, samples) };
}
