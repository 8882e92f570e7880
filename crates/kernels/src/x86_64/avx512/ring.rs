//! Polynomials modulo `X^d + 1`: the portable loops, compiled for this arm.

use crate::portable::ring as portable;
use crate::ring::Field;

pub(crate) mod column_sums;
pub(crate) mod dft;

/// See [`portable::reduce`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn reduce(field: &Field, coefficients: &[i64], words: &mut [u32]) {
    portable::reduce(field, coefficients, words);
}

/// See [`portable::forward`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn forward(field: &Field, words: &mut [u32]) {
    portable::forward(field, words);
}

/// See [`portable::inverse`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn inverse(field: &Field, words: &mut [u32]) {
    portable::inverse(field, words);
}

/// See [`portable::multiply`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn multiply(field: &Field, a: &[u32], b: &[u32], products: &mut [u32]) {
    portable::multiply(field, a, b, products);
}

/// See [`portable::multiply_add`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn multiply_add(field: &Field, a: &[u32], b: &[u32], products: &mut [u32]) {
    portable::multiply_add(field, a, b, products);
}

/// See [`portable::combine`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn combine(fields: &[Field; 3], residues: &[u32], coefficients: &mut [u64]) {
    portable::combine(fields, residues, coefficients);
}
