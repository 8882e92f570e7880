//! Counts thresholds: the inner loop of sampling by inversion, for secret numbers.
//!
//! A sample of a distribution over 0, 1, 2, … is drawn by comparing a uniform number with the
//! distribution's tails, P(X ≥ 1), P(X ≥ 2), …. The number of tails above it is the sample.
//!
//! # Secrets
//!
//! Places and counts are secret, thresholds are public. Every place is compared with every
//! threshold by subtraction; there is no branch and no address that depends on a place.

use crate::dispatch::Kernels;
use crate::dispatch::on_arm;

/// A number below 2¹²⁶ in two halves of 63 bits, the higher first. The highest bit of the
/// difference of two halves shows which one was smaller.
pub type Halves = [u64; 2];

impl Kernels {
    /// `counts[i]` becomes the number of `thresholds` above place `i`, whose halves are `high[i]`
    /// and `low[i]`.
    ///
    /// All halves must be below 2⁶³; others give wrong counts.
    ///
    /// # Panics
    ///
    /// If `high`, `low` and `counts` do not have the same length.
    pub fn count_thresholds_above(
        self,
        thresholds: &[Halves],
        high: &[u64],
        low: &[u64],
        counts: &mut [u64],
    ) {
        assert_eq!(high.len(), counts.len(), "one count for each place");
        assert_eq!(low.len(), counts.len(), "each place has two halves");
        on_arm!(self, thresholds::count_above(thresholds, high, low, counts));
    }
}
