//! The width of the error: as wide as the number of columns allows, and never too narrow.
//!
//! A wider error is safer; a narrower one makes wrong answers rarer. The widths and their estimates
//! are published: `vectors/estimate_lwe.py` writes them to `vectors/lwe_security.json`, and tests
//! compare this file with that.

use super::DELTA_BITS;
use super::error_sampler::BASE_DEVIATION;
use crate::quantities::decimal;
use crate::{Error, Result};

/// The most columns of a matrix at which a safe error is still small enough.
pub const MAX_COLUMNS: u64 = 1 << 18;

/// log2 of the least cost, in gates, of breaking an encryption, by the estimate.
pub const LEAST_SECURITY_BITS: f64 = 128.0;

/// log2 of the largest probability, by the bound, with which one level of encryption may make a
/// byte of a record wrong. There are at most two levels, so a byte fails with probability 2^-64 at
/// most.
pub const LEVEL_FAILURE_LOG2: f64 = -65.0;

/// A width of the error: the weights of the two Gaussians whose sum it is, and the estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorWidth {
    weights: [u32; 2],
    security_bits: f64,
}

/// All widths, from wide to narrow. The last is below [`LEAST_SECURITY_BITS`]. It is here so that
/// tests see it refused.
pub const ERROR_WIDTHS: [ErrorWidth; 5] = [
    ErrorWidth { weights: [1, 4], security_bits: 145.3 },
    ErrorWidth { weights: [1, 3], security_bits: 141.1 },
    ErrorWidth { weights: [1, 2], security_bits: 136.0 },
    ErrorWidth { weights: [1, 1], security_bits: 129.5 },
    ErrorWidth { weights: [1, 0], security_bits: 125.0 },
];

impl ErrorWidth {
    /// The standard deviation σ of the error.
    pub fn deviation(self) -> f64 {
        let [one, other] = self.weights.map(f64::from);
        BASE_DEVIATION * (one * one + other * other).sqrt()
    }

    /// log2 of the gates that the cheaper of two attacks takes (uSVP and BDD, cost model MATZOV),
    /// rounded down to a tenth.
    pub fn security_bits(self) -> f64 {
        self.security_bits
    }

    pub(super) fn weights(self) -> [u32; 2] {
        self.weights
    }

    /// An invalid width, which tests must catch.
    #[cfg(test)]
    pub(super) fn planted(weights: [u32; 2]) -> Self {
        Self { weights, security_bits: f64::INFINITY }
    }
}

/// log2 of an upper bound on the probability that one byte of an answer decrypts wrongly, for any
/// table of `columns` columns whose bytes do not depend on the errors: `2·exp(−(2^23)² /
/// (2·128²·deviation²·columns))`.
///
/// It is a bound on the sum of [`centred`](super#correctness) bytes times errors. An error is a
/// weighted sum of discrete Gaussians, each of which is sub-Gaussian with its deviation as the
/// parameter, and stays so when its tail is cut and its probabilities are rounded towards zero.
pub fn failure_bound_log2(columns: u64, deviation: f64) -> f64 {
    let margin = f64::from(1u32 << (DELTA_BITS - 1));
    let variance = (128.0 * deviation).powi(2) * columns as f64;
    1.0 - margin * margin / (2.0 * variance) * std::f64::consts::LOG2_E
}

/// A number of columns, and an error for them that is both safe and small enough. No other value of
/// this type exists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EncryptionParameters {
    columns: u64,
    error: ErrorWidth,
    failure_log2: f64,
}

impl EncryptionParameters {
    /// One byte of a record depends on `decryptions` bytes of an answer. This takes the widest
    /// error with which all of them are right, except with probability 2^-65.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse), with the numbers, if no error is both small
    /// enough and safe, as is the case beyond [`MAX_COLUMNS`].
    pub fn new(columns: u64, decryptions: u64) -> Result<Self> {
        let fits =
            |width: &&ErrorWidth| failure_log2(columns, decryptions, **width) <= LEVEL_FAILURE_LOG2;
        let narrowest = ERROR_WIDTHS[ERROR_WIDTHS.len() - 1];
        let widest = ERROR_WIDTHS.iter().find(fits).copied().unwrap_or(narrowest);
        Self::with_error(columns, decryptions, widest)
    }

    /// The same with a given error.
    ///
    /// # Errors
    /// As [`new`](Self::new): if there are too many columns, the error is too wide for them, or the
    /// estimate for it is below [`LEAST_SECURITY_BITS`].
    pub fn with_error(columns: u64, decryptions: u64, error: ErrorWidth) -> Result<Self> {
        let failure_log2 = failure_log2(columns, decryptions, error);
        let least = LEAST_SECURITY_BITS as u32;
        let deviation = || decimal(error.deviation(), 2);
        let refusal = if !(1..=MAX_COLUMNS).contains(&columns) {
            format!(
                "a matrix of {columns} columns cannot be used: only with 1 to {MAX_COLUMNS} is \
                 there an error both large enough for {least} bits of security and small enough \
                 to decrypt; put more records into each column"
            )
        } else if error.security_bits < LEAST_SECURITY_BITS {
            format!(
                "an error of deviation {} gives {} bits of security by the estimate, and at least \
                 {least} are needed",
                deviation(),
                error.security_bits as u32
            )
        } else if failure_log2 > LEVEL_FAILURE_LOG2 {
            format!(
                "an error of deviation {} on {columns} columns makes a byte wrong with probability \
                 up to 2^{}, and at most 2^{} is allowed",
                deviation(),
                decimal(failure_log2, 1),
                LEVEL_FAILURE_LOG2 as i32
            )
        } else {
            return Ok(Self { columns, error, failure_log2 });
        };
        Err(Error::api_misuse(refusal))
    }

    /// The number of columns, which is the number of LWE samples under one secret.
    pub fn columns(&self) -> u64 {
        self.columns
    }

    /// The error.
    pub fn error(&self) -> ErrorWidth {
        self.error
    }

    /// log2 of a bound on the probability that any of the bytes that a byte of a record depends on
    /// is wrong.
    pub fn failure_log2(&self) -> f64 {
        self.failure_log2
    }
}

fn failure_log2(columns: u64, decryptions: u64, error: ErrorWidth) -> f64 {
    failure_bound_log2(columns, error.deviation()) + (decryptions as f64).log2()
}
