//! How the vector arms find a cutoff: first they find the select values that may be the cutoff, and
//! then the right one among them.
//!
//! The `p` select values of a hint are independent and uniform, so the one of rank `rank` lies near
//! `2³² · rank / p`, with a standard deviation of at most `2³² / (2 √p)`. An arm makes the values,
//! counts those below a [`Window`] around that point, and keeps those inside, about `3.5 √p` of
//! `p`. Among these few, [`narrow`] brackets the wanted value: it counts the values below guessed
//! pivots, which is fast with vectors, until the remaining values fit into one vector. The result
//! is exact: if a window misses the value, the arm tries a wider one, and the last window holds all
//! numbers.

/// The numbers among which a hint's cutoff is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// The first of them.
    pub(crate) low: u32,
    /// The last of them.
    pub(crate) high: u32,
    /// An arm may stop keeping values at this number. If fewer are kept, these are all.
    pub(crate) capacity: usize,
}

impl Window {
    /// 3.5 standard deviations to each side, which misses one hint in two thousand, doubled
    /// `doublings` times. Doubled 32 times, the window holds all numbers.
    fn around(partitions: u32, rank: u32, doublings: u32) -> Window {
        let centre = (u64::from(rank) << 32) / u64::from(partitions);
        // 3.5 standard deviations: 3.5 · 2³² / 2 = 7 · 2³⁰.
        let reach = (7 << 30) / u64::from(partitions).isqrt();
        let reach = reach.min(u64::from(u32::MAX)) << doublings;
        let low = centre.saturating_sub(reach) as u32;
        let high = (centre + reach).min(u64::from(u32::MAX)) as u32;
        let width = u64::from(high - low) + 1;
        let mean = ((u64::from(partitions) * width) >> 32) as usize;
        // The mean plus eight standard deviations of the number of values inside, and some more for
        // small numbers.
        let enough = mean + 8 * mean.isqrt() + 64;
        Window { low, high, capacity: enough.min(partitions as usize + 1) }
    }

    /// Wider and wider windows, of which the last holds all numbers.
    pub(crate) fn all(partitions: u32, rank: u32) -> impl Iterator<Item = Window> {
        (0..=32).map(move |doublings| Window::around(partitions, rank, doublings))
    }
}

/// The numbers `low..=high`, which include the value of the wanted rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bracket {
    pub(crate) low: u32,
    pub(crate) high: u32,
    /// How many values are below `low`: at most the rank.
    pub(crate) below: usize,
    /// How many values are not above `high`: more than the rank.
    pub(crate) up_to: usize,
}

/// Narrows `bracket` around the value of rank `rank` until it holds at most `few` values, or only
/// one number. `count_below` gives the number of values below its argument.
///
/// For uniform values, two or three counts are enough. Other values may mislead the interpolation.
/// So after some guesses the interval is halved instead, and 32 halvings leave one number.
#[inline(always)]
pub(crate) fn narrow(
    mut bracket: Bracket,
    rank: usize,
    few: usize,
    count_below: impl Fn(u32) -> usize,
) -> Bracket {
    const GUESSES: u32 = 8;
    let mut guesses = 0;
    while bracket.up_to - bracket.below > few && bracket.low < bracket.high {
        let pivot = if guesses < GUESSES { guess(&bracket, rank, few) } else { middle(&bracket) };
        guesses += 1;
        let count = count_below(pivot);
        if count <= rank {
            (bracket.low, bracket.below) = (pivot, count);
        } else {
            (bracket.high, bracket.up_to) = (pivot - 1, count);
        }
    }
    bracket
}

/// A number in `low + 1..=high`, on the side where the bracket's end is farther from the wanted
/// value. If the values are spread evenly, a little less than half of `few` values lie between it
/// and the wanted one.
#[inline(always)]
fn guess(bracket: &Bracket, rank: usize, few: usize) -> u32 {
    let inside = bracket.up_to - bracket.below;
    let before = rank - bracket.below;
    let margin = few * 7 / 16;
    let target = if before < inside - before {
        (before + margin).min(inside)
    } else {
        before.saturating_sub(margin)
    };
    let width = u64::from(bracket.high - bracket.low);
    let step = width * target as u64 / inside as u64;
    bracket.low + (step as u32).clamp(1, bracket.high - bracket.low)
}

/// The first number of the upper half.
#[inline(always)]
fn middle(bracket: &Bracket) -> u32 {
    bracket.low + (bracket.high - bracket.low).div_ceil(2)
}
