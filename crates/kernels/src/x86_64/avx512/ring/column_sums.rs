//! Products of rows of bytes with fixed polynomials, eight rows at a time.

use crate::portable::ring::column_sums as portable;
use crate::ring::ColumnFactors;

/// See [`portable::sum`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn sum(
    factors: &ColumnFactors,
    columns: &[u8],
    column_len: usize,
    first_row: usize,
    sums: &mut [u64],
) {
    portable::in_lanes::<8>(factors, columns, column_len, first_row, sums);
}
