//! Counting thresholds. The loop is plain Rust for all arms. It works on arrays of lanes, so that a
//! compiler can use its vectors.

use crate::thresholds::Halves;

/// Places that are compared at once: two vectors of the longest kind.
const LANES: usize = 16;

/// See [`Kernels::count_thresholds_above`](crate::Kernels::count_thresholds_above).
pub(crate) fn count_above(thresholds: &[Halves], high: &[u64], low: &[u64], counts: &mut [u64]) {
    in_lanes(thresholds, high, low, counts);
}

/// The same, to be compiled for the instructions of its caller.
#[inline(always)]
pub(crate) fn in_lanes(thresholds: &[Halves], high: &[u64], low: &[u64], counts: &mut [u64]) {
    let (high, high_rest) = high.as_chunks::<LANES>();
    let (low, low_rest) = low.as_chunks::<LANES>();
    let (counts, counts_rest) = counts.as_chunks_mut::<LANES>();
    for ((high, low), counts) in high.iter().zip(low).zip(counts) {
        let mut sums = [0u64; LANES];
        for [high_threshold, low_threshold] in thresholds {
            for lane in 0..LANES {
                let borrow = low[lane].wrapping_sub(*low_threshold) >> 63;
                let difference = high[lane].wrapping_sub(*high_threshold).wrapping_sub(borrow);
                sums[lane] = sums[lane].wrapping_add(difference >> 63);
            }
        }
        *counts = sums;
    }
    for ((high, low), count) in high_rest.iter().zip(low_rest).zip(counts_rest) {
        let above = |[high_threshold, low_threshold]: &Halves| {
            let borrow = low.wrapping_sub(*low_threshold) >> 63;
            high.wrapping_sub(*high_threshold).wrapping_sub(borrow) >> 63
        };
        *count = thresholds.iter().map(above).sum();
    }
}
