//! AVX-512 with VNNI and vector AES: 64-byte vectors, 32 registers.
//!
//! All functions here are compiled for the same set of features, those of
//! [`Arm::Avx512`](crate::Arm::Avx512), so that they inline into each other.

pub(crate) mod authenticated_sum;
pub(crate) mod byte_matrix;
pub(crate) mod ggm_tree;
pub(crate) mod hash_lanes;
pub(crate) mod keystream;
pub(crate) mod line_reads;
pub(crate) mod permutations;
pub(crate) mod ring;
pub(crate) mod selected_xor;
pub(crate) mod strassen;
pub(crate) mod subset_hints;
pub(crate) mod subset_sums;
pub(crate) mod swap_or_not;
pub(crate) mod thresholds;
pub(crate) mod yardstick;

use std::arch::x86_64::*;

/// Loads a vector; no alignment needed.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the array has 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Stores a vector; no alignment needed.
#[inline]
#[target_feature(enable = "avx512f")]
fn store(bytes: &mut [u8; 64], vector: __m512i) {
    // SAFETY: the array has 64 bytes, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), vector) }
}

/// Loads a vector of words; no alignment needed.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_words(words: &[u32; 16]) -> __m512i {
    // SAFETY: the array has 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Stores a vector of words; no alignment needed.
#[inline]
#[target_feature(enable = "avx512f")]
fn store_words(words: &mut [u32; 16], vector: __m512i) {
    // SAFETY: the array has 64 bytes, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) }
}
