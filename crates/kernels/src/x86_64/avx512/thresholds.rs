//! Counting thresholds, 64 places at a time.

use std::arch::x86_64::*;

use crate::thresholds::{Place, Thresholds};
use crate::x86_64::thresholds::{self, Bytes};

impl Bytes for __m512i {
    const BLOCKS: usize = 4;

    type Mask = __mmask64;

    #[inline(always)]
    unsafe fn splat_block(block: &[u8; 16]) -> Self {
        // SAFETY: the block has 16 bytes, and the load needs no alignment; the caller vouches for
        // the instructions.
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(block.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        // SAFETY: the caller vouches for the instructions, here and below.
        unsafe { _mm512_set1_epi8(byte as i8) }
    }

    #[inline(always)]
    unsafe fn load_apart(from: *const Place) -> Self {
        // SAFETY: the caller says that the places are there; the loads need no alignment.
        unsafe {
            let [a, b, c, d] = [0, 16, 32, 48].map(|at| _mm_loadu_si128(from.add(at).cast()));
            let blocks = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(a), b);
            _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(blocks, c), d)
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller allows the writing, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn interleave(self, other: Self) -> [Self; 2] {
        // SAFETY: the caller vouches for the instructions, here and below.
        unsafe { [_mm512_unpacklo_epi8(self, other), _mm512_unpackhi_epi8(self, other)] }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_and_si512(self, other) }
    }

    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_or_si512(self, other) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_xor_si512(self, other) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_sub_epi8(self, other) }
    }

    #[inline(always)]
    unsafe fn add_up_to_255(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_adds_epu8(self, other) }
    }

    #[inline(always)]
    unsafe fn shuffle(self, positions: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_shuffle_epi8(self, positions) }
    }

    #[inline(always)]
    unsafe fn nowhere() -> __mmask64 {
        0
    }

    #[inline(always)]
    unsafe fn below(self, other: Self, lower: __mmask64) -> __mmask64 {
        // SAFETY: as above.
        unsafe {
            _mm512_cmplt_epi8_mask(self, other) | _mm512_mask_cmpeq_epi8_mask(lower, self, other)
        }
    }

    #[inline(always)]
    unsafe fn child(self, mask: __mmask64) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_sub_epi8(_mm512_add_epi8(self, self), _mm512_movm_epi8(mask)) }
    }
}

/// See [`crate::portable::thresholds::count_above`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn count_above(thresholds: &Thresholds, places: &[Place], samples: &mut [i8]) {
    // SAFETY: this function is compiled for the instructions, and only called if the processor has
    // them.
    unsafe { thresholds::count_above::<__m512i>(thresholds, places, samples) };
}
