//! Sums of parts for [`byte_matrix::strassen`](crate::byte_matrix): portable loops, which the
//! compiler vectorises for each arm.

use super::vectors::entries;
use crate::byte_matrix::{GROUP_BYTES, WideGroup};
use crate::portable::strassen as portable;

entries! {
    fn sum_groups(
        plus: &[&[[u8; GROUP_BYTES]]],
        minus: &[&[[u8; GROUP_BYTES]]],
        out: &mut [WideGroup],
    );
    fn sum_words(words: &[u32], places: &[(usize, bool)], out: &mut [u32]);
    fn accumulate_words(words: &[u32], minus: bool, out: &mut [u32]);
}

/// See [`portable::sum_groups`].
#[inline(always)]
fn sum_groups<A>(
    _: A,
    plus: &[&[[u8; GROUP_BYTES]]],
    minus: &[&[[u8; GROUP_BYTES]]],
    out: &mut [WideGroup],
) {
    portable::sum_groups(plus, minus, out);
}

/// See [`portable::sum_words`].
#[inline(always)]
fn sum_words<A>(_: A, words: &[u32], places: &[(usize, bool)], out: &mut [u32]) {
    portable::sum_words(words, places, out);
}

/// See [`portable::accumulate_words`].
#[inline(always)]
fn accumulate_words<A>(_: A, words: &[u32], minus: bool, out: &mut [u32]) {
    portable::accumulate_words(words, minus, out);
}
