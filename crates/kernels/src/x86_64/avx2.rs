//! AVX2 with AES-NI: 32-byte vectors, 16 registers.

pub(crate) mod authenticated_sum;
pub(crate) mod byte_matrix;
pub(crate) mod ggm_tree;
pub(crate) mod keystream;
pub(crate) mod permutations;
pub(crate) mod selected_xor;
pub(crate) mod strassen;
pub(crate) mod subset_hints;
pub(crate) mod swap_or_not;
pub(crate) mod yardstick;

use std::arch::x86_64::*;

use super::vectors::Plain;

pub(crate) use super::hash_lanes::avx2 as hash_lanes;
pub(crate) use super::thresholds::avx2 as thresholds;

pub(crate) mod ring {
    pub(crate) use super::super::ring::avx2::*;
    pub(crate) use super::super::ring::column_sums::avx2 as column_sums;
    pub(crate) use super::super::ring::dft::avx2 as dft;
}

/// Loads a vector of any numbers; no alignment needed.
#[inline]
#[target_feature(enable = "avx2")]
fn load<T: Plain, const COUNT: usize>(numbers: &[T; COUNT]) -> __m256i {
    const { assert!(size_of::<[T; COUNT]>() == size_of::<__m256i>()) };
    // SAFETY: the array is as long as a vector, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(numbers.as_ptr().cast()) }
}

/// Stores a vector as any numbers; no alignment needed.
#[inline]
#[target_feature(enable = "avx2")]
fn store<T: Plain, const COUNT: usize>(numbers: &mut [T; COUNT], vector: __m256i) {
    const { assert!(size_of::<[T; COUNT]>() == size_of::<__m256i>()) };
    // SAFETY: the array is as long as a vector and may hold anything, and the store needs no
    // alignment.
    unsafe { _mm256_storeu_si256(numbers.as_mut_ptr().cast(), vector) }
}
