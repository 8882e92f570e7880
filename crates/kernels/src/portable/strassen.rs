//! Sums of parts and their products, for [`byte_matrix::strassen`](crate::byte_matrix).
//!
//! The sums are written such that a compiler vectorises them. The other arms compile the same code
//! for their instructions.

use crate::byte_matrix::{GROUP_BYTES, PANEL_ROWS, WideGroup};

/// `out` = sum of `plus` − sum of `minus`, byte by byte, widened. A slice shorter than `out` counts
/// as continued with zeros.
#[inline(always)]
pub(crate) fn sum_groups(
    plus: &[&[[u8; GROUP_BYTES]]],
    minus: &[&[[u8; GROUP_BYTES]]],
    out: &mut [WideGroup],
) {
    for (g, out) in out.iter_mut().enumerate() {
        let mut sum = WideGroup([[0i16; 2 * PANEL_ROWS]; 2]);
        for group in plus.iter().filter_map(|part| part.get(g)) {
            add_group(group, &mut sum, i16::wrapping_add);
        }
        for group in minus.iter().filter_map(|part| part.get(g)) {
            add_group(group, &mut sum, i16::wrapping_sub);
        }
        *out = sum;
    }
}

#[inline(always)]
fn add_group(group: &[u8; GROUP_BYTES], sum: &mut WideGroup, add: impl Fn(i16, i16) -> i16) {
    let [even, odd] = &mut sum.0;
    for ((pair, even), odd) in group.as_chunks::<2>().0.iter().zip(even).zip(odd) {
        let pair = u16::from_le_bytes(*pair);
        *even = add(*even, (pair & 0xff) as i16);
        *odd = add(*odd, (pair >> 8) as i16);
    }
}

/// `out` = sum modulo 2³² of the runs of `words` that begin at `places` and are as long as `out`;
/// those marked are subtracted.
#[inline(always)]
pub(crate) fn sum_words(words: &[u32], places: &[(usize, bool)], out: &mut [u32]) {
    out.fill(0);
    for &(first, minus) in places {
        accumulate_words(&words[first..first + out.len()], minus, out);
    }
}

/// Adds `words` to `out`, or subtracts them, modulo 2³².
#[inline(always)]
pub(crate) fn accumulate_words(words: &[u32], minus: bool, out: &mut [u32]) {
    if minus {
        out.iter_mut().zip(words).for_each(|(out, word)| *out = out.wrapping_sub(*word));
    } else {
        out.iter_mut().zip(words).for_each(|(out, word)| *out = out.wrapping_add(*word));
    }
}

/// The words of one vector for the four columns of a group, in the form that this arm's
/// [`multiply_wide`] takes. Here: as they are.
pub(crate) fn prepare_wide(words: [u32; 4]) -> [u32; 4] {
    words
}

/// Multiplies widened groups by several vectors and adds the 64 results for each to `sums`, modulo
/// 2³². `prepared` is laid out as in [`multiply_chunk`](super::byte_matrix::multiply_chunk).
///
/// # Panics
///
/// If `prepared.len()` is not `wide.len() * sums.len()`.
pub(crate) fn multiply_wide(
    wide: &[WideGroup],
    prepared: &[[u32; 4]],
    sums: &mut [[u32; PANEL_ROWS]],
) {
    assert_eq!(prepared.len(), wide.len() * sums.len());
    for (sums, prepared) in sums.iter_mut().zip(prepared.chunks(wide.len().max(1))) {
        for (WideGroup([even, odd]), words) in wide.iter().zip(prepared) {
            let pairs = even.as_chunks::<2>().0.iter().zip(odd.as_chunks::<2>().0);
            for (sum, (even, odd)) in sums.iter_mut().zip(pairs) {
                let [a, c] = even.map(|byte| i32::from(byte) as u32);
                let [b, d] = odd.map(|byte| i32::from(byte) as u32);
                *sum = sum
                    .wrapping_add(a.wrapping_mul(words[0]))
                    .wrapping_add(b.wrapping_mul(words[1]))
                    .wrapping_add(c.wrapping_mul(words[2]))
                    .wrapping_add(d.wrapping_mul(words[3]));
            }
        }
    }
}
