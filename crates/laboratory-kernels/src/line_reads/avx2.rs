//! Parts of scattered lines, prefetched. AVX2 has no instruction that permutes the bytes of a whole
//! line. That does not matter: the wait for a line takes longer than the work on single bytes.

use super::ahead::Ahead;
use super::portable::{bits_of_lines, bytes_of_lines};
use super::{LINE, LINE_BITS, LineBits, LineBytes, LineQuery, LineReads};

/// See [`super::portable::bytes`].
#[target_feature(enable = "avx2")]
pub(crate) fn bytes(
    lines: &[[u8; LINE]],
    reads: &LineReads<LineBytes>,
    queries: &mut [LineQuery<'_>],
) {
    let ahead = Ahead::new(lines, reads.steps(), 1);
    for query in queries {
        let first_line = query.first / LINE as u64;
        ahead.begin(first_line);
        bytes_of_lines(lines, reads, query, |i| ahead.at_step(i, first_line));
    }
}

/// See [`super::portable::bits`].
#[target_feature(enable = "avx2")]
pub(crate) fn bits(
    lines: &[[u8; LINE]],
    reads: &LineReads<LineBits>,
    queries: &mut [LineQuery<'_>],
) {
    let ahead = Ahead::new(lines, reads.steps(), 1);
    for query in queries {
        let first_line = query.first / LINE_BITS as u64;
        ahead.begin(first_line);
        bits_of_lines(lines, reads, query, |i| ahead.at_step(i, first_line));
    }
}
