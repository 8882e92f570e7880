//! A public pseudorandom permutation of the numbers below any `n`: the order in which a table is
//! shuffled.
//!
//! Some schemes can answer all lookups only if no part of the table is asked for too often. They
//! store the records in an order that is independent of their contents. So lookups that are chosen
//! without regard to that order spread evenly. The order is public and follows from a seed, so
//! nobody stores it. A client computes where *its* record lies, and the server where every record
//! lies.
//!
//! **Construction.** A number below `a·b` is a pair `(x, y)` with `x < a` and `y < b`, and ten
//! rounds change `x` and `y` in turn: `x ← x + F(y) mod a`, then `y ← y + F(x) mod b`, and so on.
//! This is a Feistel network over two moduli, with the same number of rounds as FF1 of NIST SP
//! 800-38G. `F` is 64 bits of AES-128 of the round's number and the argument, scaled to the
//! modulus. With `a = ⌈√n⌉` and `b = ⌈n/a⌉`, fewer than `√n + 1` of the `a·b` numbers are `n` or
//! above. A result that is `n` or above is permuted again until it is below (*cycle walking*). The
//! outcome is a permutation of the numbers below `n`.
//!
//! **What it is good for.** The key is public, so this hides nothing from anyone. It must look like
//! a random order if numbers are chosen without regard to the seed. An attacker who knows the seed
//! can choose numbers that lie together, with any construction.
//!
//! **Secret numbers.** [`position`](Permutation::position) takes the same time for every index: no
//! branch and no address depends on it. It walks a fixed number of times, which is too small only
//! with a probability below 2^-64, and keeps the first number that is below `n`. For the whole
//! table, [`Permutation::tabulate`] is twenty times as fast per record, and not for secrets.

use crate::{PublicSeed, RecordIndex};
use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use privet_kernels::taint::declassify;
use subtle::{Choice, ConditionallySelectable, ConstantTimeLess};

/// The largest `n`: the most records of a table with records of one byte.
pub const MAX_DOMAIN: u64 = 1 << 48;

const ROUNDS: u32 = 10;
/// The most blocks that one call of the cipher encrypts.
const BATCH: usize = 32;

/// A permutation of the numbers from 0 below [`domain`](Self::domain).
#[derive(Clone, Debug)]
pub struct Permutation {
    cipher: Aes128,
    domain: u64,
    rows: u64,
    columns: u64,
    walks: u64,
}

impl Permutation {
    /// The permutation of `0..domain` that belongs to `seed`.
    ///
    /// # Panics
    /// If `domain` is 0 or more than [`MAX_DOMAIN`].
    pub fn new(domain: u64, seed: &PublicSeed) -> Self {
        assert!((1..=MAX_DOMAIN).contains(&domain), "a permutation of 1 to 2^48 numbers");
        let rows = (domain - 1).isqrt() + 1;
        let columns = domain.div_ceil(rows);
        let walks = sufficient_walks(rows * columns, rows * columns - domain);
        Self { cipher: Aes128::new(&Array(seed.aes_key())), domain, rows, columns, walks }
    }

    /// How many numbers are permuted.
    pub fn domain(&self) -> u64 {
        self.domain
    }

    /// Where the record `index` lies in the shuffled table. Secret, like the index; takes the same
    /// time for every index.
    ///
    /// # Panics
    /// If `index` was made for a table of more records than [`domain`](Self::domain) and lies
    /// beyond.
    pub fn position(&self, index: &RecordIndex) -> u64 {
        let (mut x, mut y) = index.divide(self.columns);
        let is_inside = (x < self.rows) & (x * self.columns + y < self.domain);
        assert!(declassify(is_inside), "an index of another table");
        let mut position = 0;
        let mut found = Choice::from(0);
        for _ in 0..self.walks {
            (x, y) = self.permute(x, y);
            let number = x * self.columns + y;
            let first_below = number.ct_lt(&self.domain) & !found;
            position.conditional_assign(&number, first_below);
            found |= first_below;
        }
        // Happens with a probability below 2^-64.
        while !declassify(bool::from(found)) {
            (x, y) = self.permute(x, y);
            position = x * self.columns + y;
            found = position.ct_lt(&self.domain);
        }
        position
    }

    /// Which record lies at `position` of the shuffled table. Not for secrets.
    ///
    /// # Panics
    /// If `position` is not below [`domain`](Self::domain).
    pub fn index_at(&self, position: u64) -> u64 {
        assert!(position < self.domain, "a position within the table");
        let (mut x, mut y) = (position / self.columns, position % self.columns);
        loop {
            for round in (0..ROUNDS).rev() {
                if round % 2 == 0 {
                    x = subtract(x, self.round(round, y, self.rows), self.rows);
                } else {
                    y = subtract(y, self.round(round, x, self.columns), self.columns);
                }
            }
            if x * self.columns + y < self.domain {
                return x * self.columns + y;
            }
        }
    }

    /// The same permutation with all its round functions in memory, about `40·√n` bytes. For many
    /// records at once; not for secrets.
    pub fn tabulate(&self) -> TabulatedPermutation {
        let rounds = (0..ROUNDS).map(|round| {
            let (arguments, modulus) = match round % 2 {
                0 => (self.columns, self.rows),
                _ => (self.rows, self.columns),
            };
            self.tabulated_round(round, arguments, modulus)
        });
        TabulatedPermutation {
            domain: self.domain,
            rows: self.rows as u32,
            columns: self.columns as u32,
            rounds: rounds.collect(),
        }
    }

    fn tabulated_round(&self, round: u32, arguments: u64, modulus: u64) -> Vec<u32> {
        let mut values = Vec::with_capacity(arguments as usize);
        let mut blocks = [Array([0; 16]); BATCH];
        for first in (0..arguments).step_by(BATCH) {
            let blocks = &mut blocks[..(arguments - first).min(BATCH as u64) as usize];
            (first..).zip(blocks.iter_mut()).for_each(|(argument, block)| {
                *block = Array(input(round, argument));
            });
            self.cipher.encrypt_blocks(blocks);
            values.extend(blocks.iter().map(|block| scale(block, modulus) as u32));
        }
        values
    }

    /// All rounds on one pair.
    fn permute(&self, mut x: u64, mut y: u64) -> (u64, u64) {
        for round in 0..ROUNDS {
            if round % 2 == 0 {
                x = add(x, self.round(round, y, self.rows), self.rows);
            } else {
                y = add(y, self.round(round, x, self.columns), self.columns);
            }
        }
        (x, y)
    }

    fn round(&self, round: u32, argument: u64, modulus: u64) -> u64 {
        let mut block = Array(input(round, argument));
        self.cipher.encrypt_block(&mut block);
        scale(&block, modulus)
    }
}

/// A [`Permutation`] made ready for all numbers: see [`Permutation::tabulate`].
pub struct TabulatedPermutation {
    domain: u64,
    rows: u32,
    columns: u32,
    /// The values of each round's function.
    rounds: Vec<Vec<u32>>,
}

impl TabulatedPermutation {
    /// As [`Permutation::position`], but not for secrets.
    ///
    /// # Panics
    /// If `index` is not below the domain.
    pub fn position_of(&self, index: u64) -> u64 {
        assert!(index < self.domain, "a record of the table");
        let columns = u64::from(self.columns);
        let (mut x, mut y) = ((index / columns) as u32, (index % columns) as u32);
        loop {
            for (round, values) in self.rounds.iter().enumerate() {
                let (argument, value, modulus) = match round % 2 {
                    0 => (y, &mut x, self.rows),
                    _ => (x, &mut y, self.columns),
                };
                let sum = *value + values[argument as usize];
                // If the sum is below the modulus, the difference wraps to more than any modulus.
                *value = sum.min(sum.wrapping_sub(modulus));
            }
            let position = u64::from(x) * columns + u64::from(y);
            if position < self.domain {
                return position;
            }
        }
    }
}

/// The block that is encrypted for a round's function: `argument (u64) ‖ round (u32) ‖ 0 (u32)`.
fn input(round: u32, argument: u64) -> [u8; 16] {
    (u128::from(argument) | (u128::from(round) << 64)).to_le_bytes()
}

/// The first 64 bits of a block as a number below `modulus`, with a bias below `modulus`·2^-64.
fn scale(block: &aes::Block, modulus: u64) -> u64 {
    let value = u128::from_le_bytes(block.0) as u64;
    ((u128::from(value) * u128::from(modulus)) >> 64) as u64
}

/// `a + b mod modulus` for two numbers below `modulus`, which is far below 2^63. Without a branch.
fn add(a: u64, b: u64, modulus: u64) -> u64 {
    subtract(a, modulus - b, modulus)
}

/// `a - b mod modulus` for `a` below `modulus` and `b` at most `modulus`. Without a branch.
fn subtract(a: u64, b: u64, modulus: u64) -> u64 {
    let (difference, borrowed) = a.overflowing_sub(b);
    // A choice is opaque. Of a plain bit, a compiler may make a branch.
    let borrowed = Choice::from(u8::from(borrowed));
    difference.wrapping_add(u64::conditional_select(&0, &modulus, borrowed))
}

/// How often a number below `all` must be permuted until a result is not one of the `outside`
/// excluded numbers, except with a probability below 2^-64. Each result is a new excluded number
/// with probability at most `outside/all`, and there are at most `outside` of them.
fn sufficient_walks(all: u64, outside: u64) -> u64 {
    if outside == 0 {
        return 1;
    }
    let bits = (all as f64 / outside as f64).log2();
    ((64.0 / bits).ceil() as u64).min(outside + 1)
}

#[cfg(test)]
mod tests;
