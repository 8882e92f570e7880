//! The noise of a recovered byte, and how often it comes out wrong.
//!
//! A byte is right if the noise stays below 2^-9, half of a byte's unit 2^-8, less what rounding
//! the answer's symbol takes of it, 2^-11. All noise before that rounding is a sum of independent
//! terms with these variances, as fractions of 1. Write σ for the error's deviation, `v` for the
//! bits of a key's words, `z` for those of its digits, and `ε_v² = (σ/q)² + 4^-v/12` for the error
//! of a key's word:
//!
//! | term | variance |
//! |---|---|
//! | the pass over N columns, of any bytes | 128²·N·((σ/q)² + 4^-w/12), with query words of `w` bits |
//! | packing key | ‖M_k‖²·ε_v², where ‖M_k‖² is about (d − 2)·d·4^z/12 |
//! | what digits drop, times `τ_t(s)` | (d − 2)·d·4^-z/12·(2/3) |
//! | fold: the same two | ‖δ‖²·ε_v², ‖δ‖² about d·4^z/12, and d·4^-z/12·(2/3) |
//! | the rounded mask, times `s` | d·4^-m/12·(2/3), with masks of `m` bits |
//! | division by d, times `s` | d³/12·(2/3)·q^-2 |
//!
//! The client knows its own errors and takes off `128·Σe`, so the first term counts centred bytes,
//! which are at most 128 in absolute value: it holds for every table. Errors are discrete
//! Gaussians, rounding errors and dropped bits are uniform, and the secret is uniform on −1, 0, 1:
//! each is sub-Gaussian with its variance as the parameter. So the sum reaches `r` deviations with
//! probability at most `2·exp(−r²/2)`.
//!
//! A lookup may read bytes of several matrices under one secret and one pair of keys, each with its
//! own vector, and need all of them. Their noise is not independent then: the keys' errors are in
//! all of it. That does not matter, because the probabilities of single bytes are added up. So each
//! matrix counts by itself, with its own number of columns.
//!
//! ‖M_k‖² and ‖δ‖² follow from the table. The server measures them, and refuses a table for which
//! one is more than [`norm_allowance`] times as large as expected. The bound here counts on the
//! largest that passes. What stays heuristic is that bits which are dropped or rounded off are
//! uniform.

use super::{Form, MODULUS_BITS};
use std::f64::consts::LN_2;

/// How many deviations of the noise the margin must have, at least: a byte fails with a probability
/// of at most 2^-57.
const LEAST_DEVIATIONS: f64 = 9.0;

/// log2 of the largest probability with which a record may have a wrong byte.
pub const RECORD_FAILURE_LOG2: f64 = -40.0;

/// Query words have at least this many bits.
const LEAST_QUERY_BITS: u32 = 20;

/// Query words have at most this many bits: those of a word of the pass.
const MOST_QUERY_BITS: u32 = 32;

/// How much larger than expected the norms of a table may be: 1.28 times. ‖M_k‖² is a sum of 2048
/// squares, and at degree 2048 the largest of a block's rows was seen at 1.11. If the entries are
/// as good as independent and normal, one row in 2^49 exceeds the allowance. So no honest table of
/// 2^20 rows is refused. More would cost: with this, a table of 1 GiB still has words of 26 bits.
pub fn norm_allowance(form: Form) -> f64 {
    1.0 + 0.28 * (2048.0 / form.degree as f64).sqrt()
}

/// The expected ‖M_k‖² and ‖δ‖².
pub fn expected_norms(form: Form) -> [f64; 2] {
    let degree = form.degree as f64;
    let uniform = |bits: u32| 4f64.powi(bits as i32) / 12.0;
    [(degree - 2.0) * degree * uniform(form.digit_bits), degree * uniform(form.fold_digit_bits)]
}

/// The variance of each term but the pass, in the order of the [module's](self) table, for these
/// ‖M_k‖² and ‖δ‖².
pub fn packing_variances(form: Form, [matrix, fold]: [f64; 2]) -> [f64; 6] {
    let degree = form.degree as f64;
    let coefficients = degree * SECRET_VARIANCE;
    [
        matrix * word_variance(form.key_bits),
        (degree - 2.0) * coefficients * uniform_variance(form.digit_bits),
        fold * word_variance(form.fold_key_bits),
        coefficients * uniform_variance(form.fold_digit_bits),
        coefficients * uniform_variance(form.mask_bits),
        coefficients * degree * degree * uniform_variance(MODULUS_BITS),
    ]
}

/// The variance of the pass over `columns` columns whose bytes have this mean square around 128: at
/// most 128².
pub fn pass_variance(columns: u64, query_bits: u32, mean_square: f64) -> f64 {
    mean_square * columns as f64 * word_variance(query_bits)
}

/// The margin of a recovered byte.
pub fn margin(form: Form) -> f64 {
    2f64.powi(-9) - 2f64.powi(-(form.answer_bits as i32 + 1))
}

/// What a lookup reads of one byte matrix: some bytes of one of its columns.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Columns of the matrix.
    pub columns: u64,
    /// Bytes that are read.
    pub bytes: u64,
}

/// log2 of a bound on the probability that a lookup that needs all `readings` has a wrong byte, for
/// any tables that the server does not refuse.
pub fn failure_bound_log2(form: Form, query_bits: u32, readings: &[Reading]) -> f64 {
    let bound = |reading: &Reading| {
        let squared = deviations_squared(form, reading.columns, query_bits);
        (2.0 * reading.bytes as f64).log2() - squared / 2.0 * std::f64::consts::LOG2_E
    };
    // The logarithm of a sum, without the sum: the terms may be too small for a number.
    let add = |sum: f64, term: f64| sum.max(term) + (-(sum - term).abs()).exp2().ln_1p() / LN_2;
    readings.iter().map(bound).reduce(add).unwrap_or(f64::NEG_INFINITY)
}

/// The least number of bits of a query's words with which bytes and lookups are right often enough;
/// `None` if there are too many columns, or too many bytes are read.
pub fn query_bits(form: Form, readings: &[Reading]) -> Option<u32> {
    (LEAST_QUERY_BITS..=MOST_QUERY_BITS).find(|bits| {
        let enough = |reading: &Reading| {
            deviations_squared(form, reading.columns, *bits) >= LEAST_DEVIATIONS * LEAST_DEVIATIONS
        };
        readings.iter().all(enough)
            && failure_bound_log2(form, *bits, readings) <= RECORD_FAILURE_LOG2
    })
}

fn deviations_squared(form: Form, columns: u64, query_bits: u32) -> f64 {
    let pass = pass_variance(columns, query_bits, 128.0 * 128.0);
    margin(form).powi(2) / (largest_packing_variance(form) + pass)
}

/// The variance of all terms but the pass, for the largest norms that a server accepts.
fn largest_packing_variance(form: Form) -> f64 {
    let largest = expected_norms(form).map(|norm| norm * norm_allowance(form));
    packing_variances(form, largest).iter().sum()
}

/// Of a coefficient that is −1, 0 or 1.
const SECRET_VARIANCE: f64 = 2.0 / 3.0;

/// Of a number that is uniform between two neighbouring fractions of `bits` bits.
fn uniform_variance(bits: u32) -> f64 {
    4f64.powi(-(bits as i32)) / 12.0
}

/// Of a word that has an error and is rounded to `bits` bits.
fn word_variance(bits: u32) -> f64 {
    let error = Form::ERROR.deviation() / 2f64.powi(MODULUS_BITS as i32);
    error * error + uniform_variance(bits)
}
