//! The three primes, and the constants of a transform modulo one of them.

use super::reverse_bits;

/// The primes, each 1 modulo 4096 and below 2³⁰, with an element of order 4096.
const PRIMES: [(u32, u32); 3] =
    [(1_073_692_673, 77_672_603), (1_073_668_097, 742_249_336), (1_073_655_809, 680_437_621)];

/// A constant factor modulo a prime, for Montgomery's multiplication: the factor times 2³², and
/// that times the prime's inverse modulo 2³².
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Factor {
    pub(crate) word: u32,
    pub(crate) quotient: u32,
}

/// A prime with the constants of transforms of one degree.
#[derive(Debug)]
pub(crate) struct Field {
    /// The prime, `p`.
    pub(crate) prime: u32,
    /// `p⁻¹` modulo 2³².
    pub(crate) prime_inverse: u32,
    /// In entry `k`, `ψ` to the power of `k` with its bits in reverse: on level `l`, the factor
    /// of block `k - 2^l`. Words and quotients apart, so that vectors of each can be loaded.
    pub(crate) roots: Roots,
    /// The inverses of `roots`, entry by entry.
    pub(crate) inverse_roots: Roots,
    /// `2³² / d`: what the inverse transform of a product lacks. (A product of two residues by
    /// Montgomery's method lacks the factor 2³².)
    pub(crate) scale: Factor,
    /// 1, and 2³².
    pub(crate) reduction: [Factor; 2],
    /// `-2⁶³` modulo `p`: see `reduce`.
    pub(crate) offset: u32,
    /// The inverses, modulo this prime, of the primes before it.
    pub(crate) earlier_inverses: [Factor; 2],
}

/// Powers of a root of unity.
#[derive(Debug)]
pub(crate) struct Roots {
    pub(crate) words: Vec<u32>,
    pub(crate) quotients: Vec<u32>,
    /// The factors within squares of 8 times 8 and of 16 times 16 words: see [`Roots::squares`].
    pub(crate) eights: Vec<u32>,
    pub(crate) sixteens: Vec<u32>,
}

impl Roots {
    fn new(factors: impl Iterator<Item = Factor>) -> Roots {
        let (words, quotients) = factors.map(|factor| (factor.word, factor.quotient)).unzip();
        let mut roots = Roots { words, quotients, eights: Vec::new(), sixteens: Vec::new() };
        roots.eights = roots.squares(8);
        roots.sixteens = roots.squares(16);
        roots
    }

    /// Factors for `side` neighbouring blocks of `side` words at a time, which are the lanes of a
    /// vector. For each level within a block, and each part of a block on this level: the words of
    /// all lanes, then their quotients. So a square has `2 · side · (side - 1)` numbers.
    fn squares(&self, side: usize) -> Vec<u32> {
        let degree = self.words.len();
        let mut factors = Vec::new();
        for square in 0..degree / (side * side) {
            for level in 0..side.ilog2() {
                for part in 0..1 << level {
                    let at = |lane: usize| {
                        let block = square * side + lane;
                        ((degree / side + block) << level) + part
                    };
                    factors.extend((0..side).map(|lane| self.words[at(lane)]));
                    factors.extend((0..side).map(|lane| self.quotients[at(lane)]));
                }
            }
        }
        factors
    }

    pub(crate) fn factor(&self, at: usize) -> Factor {
        Factor { word: self.words[at], quotient: self.quotients[at] }
    }
}

impl Field {
    /// The three primes' constants for a degree.
    pub(super) fn all(degree: usize) -> [Field; 3] {
        PRIMES.map(|(prime, root)| Field::new(prime, root, degree))
    }

    fn new(prime: u32, root: u32, degree: usize) -> Field {
        let root = power(root, 4096 / (2 * degree) as u32, prime);
        let inverse_root = power(root, prime - 2, prime);
        let prime_inverse = inverse_word(prime);
        let factor = |value: u64| Field::factor(prime, prime_inverse, value);
        let roots = |root: u32| {
            let exponents = (0..degree).map(|k| reverse_bits(k, degree.ilog2()) as u32);
            let factors = exponents.map(|exponent| factor(power(root, exponent, prime).into()));
            Roots::new(factors)
        };
        let word = 1u64 << 32;
        let inverse = |value: u32| u64::from(power(value % prime, prime - 2, prime));
        Field {
            prime,
            prime_inverse,
            roots: roots(root),
            inverse_roots: roots(inverse_root),
            scale: factor(inverse(degree as u32) * (word % u64::from(prime))),
            reduction: [factor(1), factor(word)],
            offset: prime - ((1u64 << 63) % u64::from(prime)) as u32,
            // Of a prime itself this is 0, and unused.
            earlier_inverses: [factor(inverse(PRIMES[0].0)), factor(inverse(PRIMES[1].0))],
        }
    }

    fn factor(prime: u32, prime_inverse: u32, value: u64) -> Factor {
        let word = (((value % u64::from(prime)) << 32) % u64::from(prime)) as u32;
        Factor { word, quotient: word.wrapping_mul(prime_inverse) }
    }
}

/// `base^exponent` modulo a prime. All arguments are public.
fn power(base: u32, exponent: u32, prime: u32) -> u32 {
    let prime = u64::from(prime);
    let (mut result, mut square) = (1, u64::from(base));
    for bit in 0..32 {
        if exponent >> bit & 1 == 1 {
            result = result * square % prime;
        }
        square = square * square % prime;
    }
    result as u32
}

/// The inverse of an odd number modulo 2³², by Newton's iteration.
fn inverse_word(odd: u32) -> u32 {
    (0..5).fold(odd, |inverse: u32, _| {
        inverse.wrapping_mul(2u32.wrapping_sub(odd.wrapping_mul(inverse)))
    })
}
