//! Products of rows of bytes with fixed polynomials, four rows at a time.

use crate::portable::ring::column_sums as portable;
use crate::ring::ColumnFactors;

/// See [`portable::sum`].
#[target_feature(enable = "avx2")]
pub(crate) fn sum(
    factors: &ColumnFactors,
    columns: &[u8],
    column_len: usize,
    first_row: usize,
    sums: &mut [u64],
) {
    portable::in_lanes::<4>(factors, columns, column_len, first_row, sums);
}
