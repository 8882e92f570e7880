//! Finding the hints that contain a record.
//!
//! **The work is the same for every record.** How long a search takes delays the query, so the server sees it. All hints are looked at, always: no early exit. What
//! comes after (a closer look at the few hints whose offset fits, about λ_hint of them) is done a fixed number of times, with empty places where there are
//! fewer. It depends on nothing but public parameters and the number of queries made before.
//!
//! The choice among the hints that contain the record is uniform, not the first as in the papers. Either keeps the hints' distribution
//! (see [`table`](super::table)); this one lets a hint's successor stand anywhere, so that hints can be searched block by block of the pseudorandom function.

use zeroize::Zeroizing;

/// Hint ids that deserve a closer look, in as many places as there can be but for a probability below 2^-64; surplus places hold ids from all over and are not
/// `taken`.
pub(crate) struct Candidates {
    pub(crate) ids: Zeroizing<Vec<u32>>,
    pub(crate) taken: Zeroizing<Vec<bool>>,
    /// Words of marks and places that were looked at.
    pub(crate) steps: usize,
}

/// How many places a search needs for `expected` candidates on average: the mean, ten standard deviations and some for hints whose extra record is the wanted
/// one.
pub(crate) fn places(expected: f64, hints: usize, hint_security: u32) -> usize {
    let likely = expected + 10.0 * expected.sqrt() + f64::from(hint_security) + 40.0;
    (likely.ceil() as usize).min(hints)
}

impl Candidates {
    /// The positions of the ones in `marks`, in a number of steps that depends on `marks.len()` and `places` alone (unless there are more ones than places).
    pub(crate) fn of(marks: &[u64], places: usize) -> Self {
        let (words, mut steps) = marked_words(marks, places);
        let mut ids = Zeroizing::new(vec![0; places]);
        let mut taken = Zeroizing::new(vec![false; places]);
        let (mut at, mut rest) = (0, marks.get(words[0] as usize).copied().unwrap_or(0));
        // A surplus place is looked up like any other, so it must not lie where the processor has just been.
        let mut elsewhere = 0u32;
        for (id, taken) in ids.iter_mut().zip(taken.iter_mut()) {
            steps += 1;
            elsewhere = elsewhere.wrapping_add(0x9e37_79b9);
            let spread = (u64::from(elsewhere) * (marks.len() as u64 * 64)) >> 32;
            *taken = rest != 0;
            *id = if *taken { words[at] * 64 + rest.trailing_zeros() } else { spread as u32 };
            rest &= rest.wrapping_sub(1);
            // Words are listed once each, and unused places name the first word beyond the end.
            let next = (at + 1).min(places);
            at = if rest == 0 { next } else { at };
            let fresh = marks.get(words[at] as usize).copied().unwrap_or(0);
            rest = if rest == 0 { fresh } else { rest };
        }
        let marked: u32 = marks.iter().map(|word| word.count_ones()).sum();
        if marked as usize > places {
            return Self::of(marks, marked as usize);
        }
        Self { ids, taken, steps }
    }
}

/// The numbers of the words that are not zero, and then `marks.len()` in all places up to `places`, one more included. And how many words were looked at.
fn marked_words(marks: &[u64], places: usize) -> (Zeroizing<Vec<u32>>, usize) {
    let mut words = Zeroizing::new(vec![marks.len() as u32; places + 1]);
    let (mut filled, mut steps) = (0, 0);
    for (number, word) in marks.iter().enumerate() {
        steps += 1;
        #[cfg(any(test, feature = "planted-leaks"))]
        if EARLY_EXIT.get() && filled > 0 {
            break;
        }
        // The last place takes what is not to be kept.
        words[filled] = number as u32;
        filled = (filled + usize::from(*word != 0)).min(places);
    }
    words[filled..].fill(marks.len() as u32);
    (words, steps)
}

#[cfg(any(test, feature = "planted-leaks"))]
thread_local! {
    /// Plants a leak: the search ends with the first word that has a mark.
    pub static EARLY_EXIT: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
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
                    assert_eq!(ids(&Candidates::of(&marks, places.max(1))), expected);
                }
            }
        }
    }
}
