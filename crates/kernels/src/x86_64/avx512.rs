//! AVX-512 with VNNI and vector AES: 64-byte vectors, 32 registers.
//!
//! All functions here are compiled for the same set of features, those of
//! [`Arm::Avx512`](crate::Arm::Avx512), so that they inline into each other.

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

pub(crate) use super::hash_lanes::avx512 as hash_lanes;
pub(crate) use super::thresholds::avx512 as thresholds;

pub(crate) mod ring {
    pub(crate) use super::super::ring::avx512::*;
    pub(crate) use super::super::ring::column_sums::avx512 as column_sums;
    pub(crate) use super::super::ring::dft::avx512 as dft;
}

/// Loads a vector of any numbers; no alignment needed.
#[inline]
#[target_feature(enable = "avx512f")]
fn load<T: Plain, const COUNT: usize>(numbers: &[T; COUNT]) -> __m512i {
    const { assert!(size_of::<[T; COUNT]>() == size_of::<__m512i>()) };
    // SAFETY: the array is as long as a vector, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) }
}

/// Stores a vector as any numbers; no alignment needed.
#[inline]
#[target_feature(enable = "avx512f")]
fn store<T: Plain, const COUNT: usize>(numbers: &mut [T; COUNT], vector: __m512i) {
    const { assert!(size_of::<[T; COUNT]>() == size_of::<__m512i>()) };
    // SAFETY: the array is as long as a vector and may hold anything, and the store needs no
    // alignment.
    unsafe { _mm512_storeu_si512(numbers.as_mut_ptr().cast(), vector) }
}
