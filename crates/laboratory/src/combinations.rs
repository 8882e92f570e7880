//! Words of given weight, and words of at most a given weight, numbered in ascending order.
//!
//! A *word* is a set of up to [`MOST_VARIABLES`] variables: bit `j` says whether variable `j` is in
//! it. The words of one weight, in ascending order as numbers, are the combinatorial number system
//! ([`FixedWeight`]); the words of at most some weight, in the same order, are a Hamming [`Ball`]
//! around 0. Schemes whose table is a polynomial number its coefficients by the former, and the
//! entries of a server's answer by the latter.

use privet_core::{Error, RecordIndex, Result};
use privet_kernels::taint::declassify;
use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};

/// The most variables of a word: no table has more points than fit into 2^48 bytes.
pub const MOST_VARIABLES: u32 = 48;

/// The binomial coefficient: how many subsets of `take` elements a set of `of` elements has. `None`
/// beyond 128 bits, which never happens with `of` up to 128.
pub fn binomial(of: u32, take: u32) -> Option<u128> {
    if take > of {
        return Some(0);
    }
    let mut result = 1u128;
    for step in 0..take.min(of - take) {
        // A product of `step + 1` consecutive numbers is divisible by (step + 1)!, so the quotient
        // is a whole number. Dividing by the common divisor first avoids overflows.
        let (factor, divisor) = (u128::from(of - step), u128::from(step + 1));
        let common = greatest_common_divisor(result, divisor);
        result = (result / common).checked_mul(factor / (divisor / common))?;
    }
    Some(result)
}

fn greatest_common_divisor(mut one: u128, mut other: u128) -> u128 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// Pascal's triangle as far as it is needed: `rows[of][take]`.
fn triangle(variables: u32, most: u32) -> Vec<Vec<u64>> {
    let mut rows: Vec<Vec<u64>> = vec![vec![0; most as usize + 1]; variables as usize + 1];
    for of in 0..rows.len() {
        rows[of][0] = 1;
        if of > 0 {
            for take in 1..=most as usize {
                rows[of][take] = rows[of - 1][take - 1] + rows[of - 1][take];
            }
        }
    }
    rows
}

fn check(variables: u32, weight: u32) -> Result<()> {
    if variables <= MOST_VARIABLES && weight <= variables {
        return Ok(());
    }
    Err(Error::api_misuse(format!(
        "a word has at most {MOST_VARIABLES} variables, and cannot have {weight} of {variables} set"
    )))
}

/// The entry at `place`, which is secret: so all entries are read.
fn selected(entries: &[u64], place: u64) -> u64 {
    (0u64..).zip(entries).fold(0, |found, (at, entry)| {
        // Not a plain mask: the compiler recognises masks of comparisons, and turns them into
        // branches.
        u64::conditional_select(&found, entry, at.ct_eq(&place))
    })
}

/// All words of one weight, numbered in ascending order: the combinatorial number system.
#[derive(Clone, Debug)]
pub struct FixedWeight {
    variables: u32,
    weight: u32,
    binomials: Vec<Vec<u64>>,
}

impl FixedWeight {
    /// The words of `variables` variables in which `weight` of them are set.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there are more than
    /// [`MOST_VARIABLES`], or fewer than `weight`.
    pub fn new(variables: u32, weight: u32) -> Result<Self> {
        check(variables, weight)?;
        Ok(Self { variables, weight, binomials: triangle(variables, weight) })
    }

    /// How many variables there are.
    pub fn variables(&self) -> u32 {
        self.variables
    }

    /// How many of them are set in each word.
    pub fn weight(&self) -> u32 {
        self.weight
    }

    /// How many words there are.
    pub fn count(&self) -> u64 {
        self.binomials[self.variables as usize][self.weight as usize]
    }

    /// The word of a secret number. No branch and no address depends on the number.
    ///
    /// # Panics
    /// If there are no more words than that.
    pub fn secret_word(&self, index: &RecordIndex) -> u64 {
        self.word(index.expose())
    }

    /// The `index`-th word.
    ///
    /// # Panics
    /// If there are no more words than that.
    pub fn word(&self, index: u64) -> u64 {
        // This branch goes the same way for every valid number.
        let is_there = declassify(index < self.count());
        assert!(is_there, "there are no more words than their number");
        let (mut rest, mut left, mut word) = (index, u64::from(self.weight), 0u64);
        for variable in (0..self.variables).rev() {
            // Words without this variable come first, and their number is known. There is no
            // branch, because the index may be secret.
            let without = selected(&self.binomials[variable as usize], left);
            let (remaining, borrowed) = rest.overflowing_sub(without);
            let set = u64::from(!borrowed) & u64::from(left > 0);
            rest = (remaining & set.wrapping_neg()) | (rest & set.wrapping_sub(1));
            word |= set << variable;
            left -= set;
        }
        word
    }

    /// The number of words of this weight that are smaller than `word`: the place in the order
    /// where its successors begin. `word` may have any weight, and may be 2^variables.
    pub fn rank(&self, word: u64) -> u64 {
        if word >> self.variables != 0 {
            return self.count();
        }
        let (mut below, mut left) = (0, self.weight as usize);
        for variable in (0..self.variables).rev().filter(|variable| word >> variable & 1 == 1) {
            below += self.binomials[variable as usize][left];
            match left.checked_sub(1) {
                Some(fewer) => left = fewer,
                // All set variables are above this one: the smaller words have already been
                // counted.
                None => break,
            }
        }
        below
    }

    /// The words from the `first`-th on.
    pub fn words_from(&self, first: u64) -> impl Iterator<Item = u64> + use<> {
        let count = self.count().saturating_sub(first);
        let mut word = if count > 0 { self.word(first) } else { 0 };
        (0..count).map(move |_| {
            let current = word;
            // The top of the lowest run of ones moves up by one, and the rest of the run moves down
            // to bit 0.
            if word > 0 {
                let carried = word + (word & word.wrapping_neg());
                word = carried | ((carried ^ word) >> word.trailing_zeros() >> 2);
            }
            current
        })
    }
}

/// All words of at most some weight, numbered in ascending order: a Hamming ball around 0.
#[derive(Clone, Debug)]
pub struct Ball {
    variables: u32,
    radius: u32,
    /// `[of][radius]`: how many words of `of` variables have at most that weight.
    sizes: Vec<Vec<u64>>,
}

impl Ball {
    /// The words of `variables` variables in which at most `radius` of them are set.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there are more than
    /// [`MOST_VARIABLES`], or fewer than `radius`.
    pub fn new(variables: u32, radius: u32) -> Result<Self> {
        check(variables, radius)?;
        let mut sizes = triangle(variables, radius);
        for row in &mut sizes {
            for weight in 1..row.len() {
                row[weight] += row[weight - 1];
            }
        }
        Ok(Self { variables, radius, sizes })
    }

    /// How many variables there are.
    pub fn variables(&self) -> u32 {
        self.variables
    }

    /// The most variables that are set in a word.
    pub fn radius(&self) -> u32 {
        self.radius
    }

    /// How many words there are.
    pub fn count(&self) -> u64 {
        self.sizes[self.variables as usize][self.radius as usize]
    }

    /// The place of `word`, which must be in the ball.
    pub fn rank(&self, word: u64) -> u64 {
        debug_assert!(word >> self.variables == 0 && word.count_ones() <= self.radius);
        let (mut rest, mut left, mut below) = (word, self.radius as usize, 0);
        while rest != 0 {
            // Counts all words that agree above this variable and do not have it.
            let variable = rest.ilog2();
            below += self.sizes[variable as usize][left];
            left -= 1;
            rest ^= 1 << variable;
        }
        below
    }

    /// All words in ascending order.
    pub fn words(&self) -> impl Iterator<Item = u64> + use<> {
        let (mut word, radius) = (0u64, self.radius);
        (0..self.count()).map(move |_| {
            let current = word;
            // If the word can have one more variable, the next number is in the ball. Otherwise
            // every number up to the next multiple of the lowest set bit has too many variables.
            word += match word.count_ones() < radius {
                true => 1,
                false => word & word.wrapping_neg(),
            };
            current
        })
    }
}

#[cfg(test)]
mod tests;
