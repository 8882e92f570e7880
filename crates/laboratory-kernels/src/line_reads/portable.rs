//! Parts of scattered lines, byte by byte and bit by bit.

use super::{
    LINE, LINE_BITS, LineBits, LineBytes, LineClass, LineQuery, LineReads, class_of, line_of,
};

/// Takes the bytes of a pattern for queries that name bytes in the table, as wide as the pattern or
/// wider.
pub(crate) fn bytes(
    lines: &[[u8; LINE]],
    reads: &LineReads<LineBytes>,
    queries: &mut [LineQuery<'_>],
) {
    for query in queries {
        bytes_of_lines(lines, reads, query, |_| ());
    }
}

/// The same for bits, and queries that name bits.
pub(crate) fn bits(
    lines: &[[u8; LINE]],
    reads: &LineReads<LineBits>,
    queries: &mut [LineQuery<'_>],
) {
    for query in queries {
        bits_of_lines(lines, reads, query, |_| ());
    }
}

/// [`bytes`] for one query. It reports the number of each step before it takes the step.
#[inline(always)]
pub(crate) fn bytes_of_lines(
    lines: &[[u8; LINE]],
    reads: &LineReads<LineBytes>,
    query: &mut LineQuery<'_>,
    at_step: impl Fn(usize),
) {
    let (first_line, flip) = (query.first / LINE as u64, query.first as usize % LINE);
    let mut at = 0;
    for (i, &step) in reads.steps().iter().enumerate() {
        at_step(i);
        let line = &lines[line_of(step, first_line)];
        let class = &reads.classes()[class_of(step)];
        let places = &class.order()[..class.count()];
        for (out, &place) in query.out[at..at + places.len()].iter_mut().zip(places) {
            *out = line[(usize::from(place) ^ flip) % LINE];
        }
        at += places.len();
    }
}

/// [`bits`] for one query. It reports the number of each step before it takes the step.
#[inline(always)]
pub(crate) fn bits_of_lines(
    lines: &[[u8; LINE]],
    reads: &LineReads<LineBits>,
    query: &mut LineQuery<'_>,
    at_step: impl Fn(usize),
) {
    let (first_line, flip) = (query.first / LINE_BITS as u64, query.first as usize % LINE_BITS);
    query.out.fill(0);
    let mut taken = 0;
    for (i, &step) in reads.steps().iter().enumerate() {
        at_step(i);
        let line = &lines[line_of(step, first_line)];
        for (word, &mask) in reads.classes()[class_of(step)].words().iter().enumerate() {
            let mut left = mask;
            while left != 0 {
                let place = (64 * word + left.trailing_zeros() as usize) ^ flip;
                let bit = line[place / 8] >> (place % 8) & 1;
                query.out[taken / 8] |= bit << (taken % 8);
                taken += 1;
                left &= left - 1;
            }
        }
    }
}
