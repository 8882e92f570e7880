//! AVX2 with AES-NI: 32-byte vectors, 16 registers.

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
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the array has 32 bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// Stores a vector; no alignment needed.
#[inline]
#[target_feature(enable = "avx2")]
fn store(bytes: &mut [u8; 32], vector: __m256i) {
    // SAFETY: the array has 32 bytes, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), vector) }
}

/// Loads a vector of words; no alignment needed.
#[inline]
#[target_feature(enable = "avx2")]
fn load_words(words: &[u32; 8]) -> __m256i {
    // SAFETY: the array has 32 bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

/// Stores a vector of words; no alignment needed.
#[inline]
#[target_feature(enable = "avx2")]
fn store_words(words: &mut [u32; 8], vector: __m256i) {
    // SAFETY: the array has 32 bytes, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), vector) }
}
