//! Which words of a list equal a wanted one.

use super::Comparisons;
use crate::portable::subset_hints as portable;
use crate::x86_64::vectors::entries;

entries! {
    fn equal_words(words: &[u32], wanted: u32, matches: &mut [u64]);
    fn equal_halfwords(words: &[u16], wanted: u16, matches: &mut [u64]);
}

/// See [`Kernels::subset_equal_words`](crate::Kernels::subset_equal_words).
#[inline(always)]
fn equal_words<A: Comparisons>(arm: A, words: &[u32], wanted: u32, matches: &mut [u64]) {
    let wanted_lanes = arm.splat_u32(wanted);
    let (whole, rest) = words.as_chunks::<64>();
    for (words, matches) in whole.iter().zip(matches.iter_mut()) {
        *matches = 0;
        for (v, lanes) in words.chunks_exact(A::WORDS).enumerate() {
            let equal = arm.equal_u32(arm.load(lanes), wanted_lanes);
            *matches |= u64::from(equal) << (A::WORDS * v);
        }
    }
    portable::equal_words(rest, wanted, &mut matches[whole.len()..]);
}

/// See [`Kernels::subset_equal_halfwords`](crate::Kernels::subset_equal_halfwords).
#[inline(always)]
fn equal_halfwords<A: Comparisons>(arm: A, words: &[u16], wanted: u16, matches: &mut [u64]) {
    let wanted_lanes = arm.splat_u16(wanted);
    let (whole, rest) = words.as_chunks::<64>();
    for (words, matches) in whole.iter().zip(matches.iter_mut()) {
        *matches = 0;
        for (v, lanes) in words.chunks_exact(2 * A::WORDS).enumerate() {
            *matches |= u64::from(arm.equal_u16(lanes, wanted_lanes)) << (2 * A::WORDS * v);
        }
    }
    portable::equal_halfwords(rest, wanted, &mut matches[whole.len()..]);
}
