//! Finding the hints that contain a record.
//!
//! **The steps are the same for every record.** A search checks all hints, and never stops early.
//! Then it checks the few hints whose offset fits, about λ_hint of them, more closely. It makes a
//! fixed number of these closer checks; if there are fewer candidates, surplus places fill up the
//! number. The number of steps depends only on public parameters and the number of earlier queries,
//! and no branch depends on the record. The addresses of the closer checks do:
//! [`table`](super::table) says what that means.
//!
//! The choice among the hints that contain the record is uniform; the papers take the first. Both
//! keep the hints' distribution (see [`table`](super::table)). With a uniform choice, a hint's
//! successor may be in any place, so that a search can go block by block of the pseudorandom
//! function.

use crate::planted;
use privet_kernels::taint::{admit, conceal, declassify};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};
use zeroize::Zeroizing;

/// Hint ids for closer checks. The number of places is fixed, and is too small only with a
/// probability below 2^-64. Surplus places hold ids from anywhere, and are not `taken`.
pub(crate) struct Candidates {
    pub(crate) ids: Zeroizing<Vec<u32>>,
    pub(crate) taken: Zeroizing<Vec<bool>>,
    /// The number of words of marks and of places that were checked.
    pub(crate) steps: usize,
}

/// How many places a search needs for `expected` random candidates on average, and `others`: the
/// mean, ten standard deviations and a few more.
pub(crate) fn places(expected: f64, others: u32, hints: usize) -> usize {
    let likely = expected + 10.0 * expected.sqrt() + f64::from(others) + 40.0;
    (likely.ceil() as usize).min(hints).max(1)
}

impl Candidates {
    /// The positions of the ones in `marks`. The number of steps depends only on `marks.len()` and
    /// `places` (unless there are more ones than places).
    pub(crate) fn of(marks: &[u64], places: usize, mut elsewhere: u32) -> Self {
        let MarkedWords { numbers: words, count, mut steps } = MarkedWords::of(marks, places);
        // A secret address: that of one of the few words with a mark.
        let word = |at: usize| {
            let number = admit(conceal(words[at])) as usize;
            conceal(marks.get(number).copied().unwrap_or(0))
        };
        let mut ids = Zeroizing::new(vec![0; places]);
        let mut taken = Zeroizing::new(vec![false; places]);
        let (mut at, mut rest) = (0u64, word(0));
        // A surplus place is checked like any other, so its memory must not be in the caches
        // already: the caller begins at another place each time. Most candidates are not in the
        // caches either. Those of a record that was asked for recently may be.
        for (id, taken) in ids.iter_mut().zip(taken.iter_mut()) {
            steps += 1;
            elsewhere = elsewhere.wrapping_add(0x9e37_79b9);
            let spread = (u64::from(elsewhere) * (marks.len() as u64 * 64)) >> 32;
            let any = !rest.ct_eq(&0);
            *taken = any.unwrap_u8() == 1;
            // A secret address, in a list of a few cache lines.
            let marked = conceal(words[admit(at) as usize])
                .wrapping_mul(64)
                .wrapping_add(rest.trailing_zeros());
            *id = u32::conditional_select(&(spread as u32), &marked, any);
            rest &= rest.wrapping_sub(1);
            // Each word is listed once, and unused places name the first word beyond the end.
            let done = rest.ct_eq(&0);
            at.conditional_assign(&(at + 1).min(places as u64), done);
            // Always reads: no branch may depend on whether a word is done.
            rest.conditional_assign(&word(admit(at) as usize), done);
        }
        // Happens with a probability below 2^-64, if hints are as they should be.
        if declassify((count > places) | (rest != 0)) {
            return Self::of(marks, 2 * places, elsewhere);
        }
        Self { ids, taken, steps }
    }
}

/// The words that have ones.
struct MarkedWords {
    /// Their numbers, and then `marks.len()` in all other places. There is one place more than
    /// `places`.
    numbers: Zeroizing<Vec<u32>>,
    /// How many there are. If that is more than `places`, the others are missing.
    count: usize,
    /// How many words were checked.
    steps: usize,
}

/// The number of words that are checked together for ones.
const STRIDE: usize = 4;

impl MarkedWords {
    fn of(marks: &[u64], places: usize) -> Self {
        // Checks every stride, and then every word of as many strides as there are places.
        let any = |stride: &[u64]| stride.iter().fold(0, |any, word| any | word) != 0;
        let strides = marks.chunks(STRIDE).map(any);
        let (strides, found, mut steps) = positions(strides, places);
        let looked_at = &strides[..places.min(marks.len().div_ceil(STRIDE))];
        let words = looked_at.iter().flat_map(|stride| {
            (0..STRIDE).map(|k| {
                // A secret address, like that of every word with a mark.
                let number = admit(*stride) as usize * STRIDE + k;
                (number as u32, conceal(marks.get(number).copied().unwrap_or(0)) != 0)
            })
        });
        let end = marks.len() as u32;
        let mut numbers = Zeroizing::new(vec![end; places + 1]);
        let mut count = 0;
        for (number, marked) in words {
            steps += 1;
            list(&mut numbers, &mut count, number, marked);
        }
        end_list(&mut numbers, count, end);
        Self { numbers, count: count.max(found), steps }
    }
}

/// The first `places` positions of `true`, padded with positions beyond the end; how many there
/// are; and how many were checked.
fn positions(
    mut marked: impl ExactSizeIterator<Item = bool>,
    places: usize,
) -> (Zeroizing<Vec<u32>>, usize, usize) {
    let end = marked.len() as u32;
    let mut numbers = Zeroizing::new(vec![end; places + 1]);
    let (mut count, mut steps) = (0, 0);
    for number in 0..end {
        let marked = marked.next().unwrap_or(false);
        steps += STRIDE;
        list(&mut numbers, &mut count, number, marked);
        if planted::ends_search(count) {
            break;
        }
    }
    end_list(&mut numbers, count, end);
    (numbers, count, steps)
}

/// Writes a number after the `count` numbers in the list, and counts it if it is marked. Otherwise
/// the next number overwrites it. The last place of the list takes numbers for which there is no
/// room.
fn list(numbers: &mut [u32], count: &mut usize, number: u32, marked: bool) {
    let place = (*count).min(numbers.len() - 1);
    // A secret address, in a list of a few cache lines that are all in use.
    numbers[admit(place)] = number;
    *count += usize::from(marked);
}

/// Writes `end` into all places after the first `count`, and into the last place.
fn end_list(numbers: &mut [u32], count: usize, end: u32) {
    let last = numbers.len() - 1;
    for (place, number) in numbers.iter_mut().enumerate() {
        let kept = (place < count) & (place < last);
        number.conditional_assign(&end, Choice::from(u8::from(!kept)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(candidates: &Candidates) -> Vec<u32> {
        let pairs = candidates.ids.iter().zip(candidates.taken.iter());
        pairs.filter(|(_, taken)| **taken).map(|(id, _)| *id).collect()
    }

    #[test]
    fn candidates_are_the_ones_however_they_lie() {
        let mut state = 7u64;
        let mut random = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        };
        for words in [0, 1, 2, 5, 40] {
            for sparsity in [1, 2, 50, 1000] {
                let mut marks = vec![0u64; words];
                for bit in 0..words * 64 {
                    marks[bit / 64] |= u64::from(random() % sparsity == 0) << (bit % 64);
                }
                let expected: Vec<u32> = (0..words as u32 * 64)
                    .filter(|bit| marks[*bit as usize / 64] >> (bit % 64) & 1 == 1)
                    .collect();
                for places in [1, 3, expected.len(), expected.len() + 9] {
                    assert_eq!(ids(&Candidates::of(&marks, places.max(1), 0)), expected);
                }
            }
        }
    }
}
