//! Counting thresholds with AVX2.

use crate::thresholds::Halves;

/// See [`Kernels::count_thresholds_above`](crate::Kernels::count_thresholds_above).
#[target_feature(enable = "avx2,aes,popcnt")]
pub(crate) fn count_above(thresholds: &[Halves], high: &[u64], low: &[u64], counts: &mut [u64]) {
    crate::portable::thresholds::in_lanes(thresholds, high, low, counts);
}
