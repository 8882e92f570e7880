//! What measurements and plans have to know of these schemes.

use crate::finite_differences::{DIGITS, ONE_BIT};
use privet_kernels::rates::best;
use privet_laboratory_kernels::bls12_381::{G1, Scalar};
use privet_schemes::SchemeId;
use privet_schemes::registry::Tuning;
use std::hint::black_box;

/// If records are single bits, stored as bytes: the byte that stands for 0.
pub fn zero_bit(tuning: &Tuning) -> Option<u8> {
    tuning.has(&ONE_BIT).then_some(if tuning.has(&DIGITS) { b'0' } else { 0 })
}

/// Whether Privet for browsers has the scheme: it leaves out this crate.
pub fn is_in_browsers(scheme: SchemeId) -> bool {
    let left_out = [crate::TAPIR_PP, crate::FINITE_DIFFERENCES, crate::FINITE_DIFFERENCES_MANY];
    !left_out.contains(&scheme)
}

/// Products of a point and a number that one core computes in a second.
pub fn point_products() -> f64 {
    const PRODUCTS: u64 = 64;
    let exponent = Scalar::from_uniform(&[0x5a; 48]);
    let mut point = G1::generator().to_sum();
    best(PRODUCTS, || {
        for _ in 0..PRODUCTS {
            point = point.power(&exponent);
        }
        black_box(&point);
    })
}
