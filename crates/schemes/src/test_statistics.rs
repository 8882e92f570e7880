//! Tests counts by chi-square, and computes the smallest leak that they would show.
//!
//! Every test counts something over a number of *coins*: lookups or histories that differ only in
//! their random numbers. `PRIVET_COINS=10` makes every test toss ten times as many coins, and
//! `PRIVET_SEED=2026-11-23` other coins than by default. `make nightly` does both. A failure prints
//! the size of the leak that this many coins show; see [`size_of_leak`].

use privet_core::SecretRng;

/// A test's number of coins, times what `PRIVET_COINS` says.
pub fn coins(by_default: usize) -> usize {
    by_default * times()
}

fn times() -> usize {
    let Ok(times) = std::env::var("PRIVET_COINS") else { return 1 };
    let parsed = times.parse().ok().filter(|times| (1..=1000).contains(times));
    parsed.unwrap_or_else(|| panic!("PRIVET_COINS is {times:?}, not a number from 1 to 1000"))
}

/// The seed of everything that a statistical test draws: always the same, unless `PRIVET_SEED` is
/// set.
pub fn seed() -> [u8; 32] {
    match std::env::var("PRIVET_SEED") {
        Ok(seed) => *blake3::hash(seed.as_bytes()).as_bytes(),
        Err(_) => [3; 32],
    }
}

/// The same for each of many indices, with different numbers for each.
pub fn rng_for(number: u64) -> SecretRng {
    let mut of_number = [0; 32];
    of_number[..8].copy_from_slice(&(number + 1).to_le_bytes());
    if std::env::var_os("PRIVET_SEED").is_some() {
        of_number = *blake3::hash(&[seed(), of_number].concat()).as_bytes();
    }
    SecretRng::from_fixed_seed(of_number)
}

/// A result deviates from its expectation by more than this, in [`Measured::deviations`], with a
/// probability of about 2·10^-8 (less if there are few cells).
pub const THRESHOLD: f64 = 5.5;

/// How far counts deviate from their expectation.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Chi-square as a number of standard deviations of the normal distribution (Wilson and
    /// Hilferty's formula), so that one threshold works for any number of cells.
    pub deviations: f64,
    coins: f64,
    freedom: f64,
}

impl Measured {
    /// Counts that should all be about the same.
    pub fn uniform(counts: &[u64]) -> Self {
        let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        Self::of(counts, &vec![expected; counts.len()])
    }

    /// Counts, and the expectation of each.
    pub fn of(counts: &[u64], expected: &[f64]) -> Self {
        let cells = counts.iter().zip(expected).filter(|(_, expected)| **expected > 0.0);
        let chi_square =
            cells.map(|(count, expected)| (*count as f64 - expected).powi(2) / expected).sum();
        let coins = counts.iter().sum::<u64>() as f64;
        Self::from_chi_square(chi_square, coins, counts.len() as f64 - 1.0)
    }

    /// Two rows of counts that should have the same distribution, whatever that is.
    pub fn difference(one: &[u64], other: &[u64]) -> Self {
        let (chi_square, freedom) = chi_square_of_two(one, other);
        let (ones, others) = (one.iter().sum::<u64>() as f64, other.iter().sum::<u64>() as f64);
        Self::from_chi_square(chi_square, ones * others / (ones + others), freedom)
    }

    fn from_chi_square(chi_square: f64, coins: f64, freedom: f64) -> Self {
        let spread = 2.0 / (9.0 * freedom);
        let deviations = ((chi_square / freedom).cbrt() - (1.0 - spread)) / spread.sqrt();
        Self { deviations, coins, freedom }
    }

    /// The one with the larger deviation.
    pub fn worse(self, other: Self) -> Self {
        if other.deviations > self.deviations { other } else { self }
    }

    /// The one with the largest deviation.
    pub fn worst(all: impl Iterator<Item = Self>) -> Self {
        all.reduce(Self::worse).expect("something is measured")
    }

    /// Asserts that all is well.
    pub fn assert_fits(self, what: &str) {
        assert!(
            self.deviations < THRESHOLD,
            "{what}: {:.1} deviations from what is expected, beyond {THRESHOLD}. (A leak in {:.2} % of {:.0} coins would show.)",
            self.deviations,
            100.0 * size_of_leak(self.coins, self.freedom + 1.0),
            self.coins,
        );
    }

    /// Asserts that a planted mistake shows, and clearly.
    pub fn assert_shows(self, what: &str) {
        assert!(
            self.deviations > 1.5 * THRESHOLD,
            "{what}: {:.1} deviations from what is expected, not clearly beyond {THRESHOLD}. (A leak in {:.2} % of {:.0} coins would show.)",
            self.deviations,
            100.0 * size_of_leak(self.coins, self.freedom + 1.0),
            self.coins,
        );
    }
}

/// The size of leak that `coins` coins over `cells` cells show nearly always (in 999 of 1000
/// runs): the share of coins that, instead of falling anywhere, all fall into one cell.
///
/// A leak of share `e` adds `coins·e²·(cells - 1)` to chi-square, and widens its distribution:
/// the count of that cell is spread around `coins·(e + 1/cells)`.
pub fn size_of_leak(coins: f64, cells: f64) -> f64 {
    let freedom = cells - 1.0;
    let spread = 2.0 / (9.0 * freedom);
    let threshold = freedom * (1.0 - spread + THRESHOLD * spread.sqrt()).powi(3);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let share: f64 = (low + high) / 2.0;
        let added = coins * share.powi(2) * freedom;
        let variance = 2.0 * freedom + 4.0 * added * (1.0 + share * cells);
        let least = freedom + added - 3.0 * variance.sqrt();
        if least < threshold { low = share } else { high = share }
    }
    high
}

/// The bias of one bit that shows nearly always (in 999 of 1000 runs), if `coins` of them are
/// summed and the sum may deviate from its half by `threshold` standard deviations. 0.5 is a bit
/// that is always set.
pub fn size_of_bias(coins: f64, threshold: f64) -> f64 {
    (threshold + 3.0) / (2.0 * coins.sqrt())
}

/// Asserts the sizes in a file's table that show by default and in a nightly run, in percent.
pub fn assert_documented(size: impl Fn(f64) -> f64, coins: f64, documented: (f64, f64)) {
    let percent = |coins: f64| (1000.0 * size(coins)).round() / 10.0;
    assert_eq!((percent(coins), percent(10.0 * coins)), documented, "{coins} coins");
}

/// How far counts deviate from their expectation, in standard deviations of the chi-square
/// distribution.
pub fn excess(counts: &[u64], expected: &[f64]) -> f64 {
    let terms = counts.iter().zip(expected).filter(|(_, expected)| **expected > 0.0);
    let chi_square: f64 =
        terms.map(|(count, expected)| (*count as f64 - expected).powi(2) / expected).sum();
    let freedom = counts.len() as f64 - 1.0;
    (chi_square - freedom) / (2.0 * freedom).sqrt()
}

/// How far two rows of counts are from having the same distribution.
pub fn difference(one: &[u64], other: &[u64]) -> f64 {
    let (chi_square, freedom) = chi_square_of_two(one, other);
    (chi_square - freedom) / (2.0f64 * freedom).sqrt()
}

fn chi_square_of_two(one: &[u64], other: &[u64]) -> (f64, f64) {
    let (ones, others) = (one.iter().sum::<u64>() as f64, other.iter().sum::<u64>() as f64);
    let (mut chi_square, mut freedom) = (0.0, -1.0);
    for (a, b) in one.iter().zip(other).filter(|(a, b)| **a + **b >= 10) {
        let (a, b) = (*a as f64, *b as f64);
        let difference = a * (others / ones).sqrt() - b * (ones / others).sqrt();
        chi_square += difference * difference / (a + b);
        freedom += 1.0;
    }
    assert!(freedom > 0.0, "{one:?} and {other:?} have nothing in which they could differ");
    (chi_square, freedom)
}

/// The largest deviation of counts from half of `coins`, in standard deviations.
pub fn deviation_of_coins(counts: &[u32], coins: usize) -> f64 {
    let half = coins as f64 / 2.0;
    let worst = counts.iter().map(|count| (f64::from(*count) - half).abs()).fold(0.0, f64::max);
    worst / (coins as f64).sqrt() * 2.0
}

/// In how many rows each bit is set.
pub fn count_bits<I: Iterator<Item = bool>>(rows: impl Iterator<Item = I>) -> Vec<u32> {
    let mut counts = Vec::new();
    for row in rows {
        for (place, bit) in row.enumerate() {
            if place == counts.len() {
                counts.push(0);
            }
            counts[place] += u32::from(bit);
        }
    }
    counts
}

/// Lookups of one client, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct History<'a> {
    pub indices: &'a [u64],
    /// The number of lookups after which there are other hints.
    pub hand_over: Option<usize>,
    pub answered: bool,
}

impl<'a> From<&'a [u64]> for History<'a> {
    fn from(indices: &'a [u64]) -> Self {
        Self { indices, hand_over: None, answered: true }
    }
}

impl History<'_> {
    /// What servers see of these lookups, by a new client in `world`.
    pub fn views<W, C, V>(
        &self,
        world: &mut W,
        new: impl Fn(&mut W) -> C,
        hand_over: impl Fn(&mut W, C) -> C,
        look_up: impl Fn(&mut W, &mut C, u64, bool) -> V,
    ) -> Vec<V> {
        let mut client = new(world);
        let mut views = Vec::new();
        for (number, index) in self.indices.iter().enumerate() {
            if self.hand_over == Some(number) {
                client = hand_over(world, client);
            }
            views.push(look_up(world, &mut client, *index, self.answered));
        }
        views
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of coins; a share of them always falls into cell 0.
    fn counts(coins: u64, cells: u64, share: f64, rng: &mut SecretRng) -> Vec<u64> {
        let mut counts = vec![0; cells as usize];
        for _ in 0..coins {
            let leaks = (rng.below(1 << 32) as f64) < share * 2f64.powi(32);
            counts[if leaks { 0 } else { rng.below(cells) as usize }] += 1;
        }
        counts
    }

    const SIZES: [(u64, u64); 5] = [(6000, 2), (6000, 8), (2000, 16), (20_000, 512), (4000, 4096)];

    #[test]
    fn a_leak_of_the_size_that_is_said_shows_and_a_tenth_of_it_does_not() {
        let mut rng = SecretRng::from_fixed_seed([8; 32]);
        for (coins, cells) in SIZES {
            let size = size_of_leak(coins as f64, cells as f64);
            for _ in 0..30 {
                let leaking = Measured::uniform(&counts(coins, cells, size, &mut rng));
                assert!(leaking.deviations > THRESHOLD, "{coins} coins, {cells} cells");
                let less = Measured::uniform(&counts(coins, cells, size / 10.0, &mut rng));
                assert!(less.deviations < THRESHOLD, "{coins} coins, {cells} cells");
            }
        }
    }

    #[test]
    fn honest_coins_stay_far_below_the_threshold() {
        let mut rng = SecretRng::from_fixed_seed([9; 32]);
        for (coins, cells) in SIZES {
            for _ in 0..100 {
                let (one, other) =
                    (counts(coins, cells, 0.0, &mut rng), counts(coins, cells, 0.0, &mut rng));
                assert!(Measured::uniform(&one).deviations < 4.5, "{coins} coins, {cells} cells");
                if coins > 10 * cells {
                    let difference = Measured::difference(&one, &other).deviations;
                    assert!(difference < 4.5, "{coins} coins, {cells} cells: {difference}");
                }
            }
        }
    }

    #[test]
    fn a_hundred_times_the_coins_show_a_tenth_of_the_leak() {
        let ratio = size_of_leak(10_000.0, 8.0) / size_of_leak(1_000_000.0, 8.0);
        assert!((ratio - 10.0).abs() < 1.0, "{ratio}");
    }
}
