//! Transforms modulo a prime with vectors.
//!
//! While the halves of a block are whole vectors, a level is a loop over vectors with one factor.
//! The remaining levels, of blocks no longer than a vector, take as many vectors as one has words,
//! and transpose this square. Then a vector has the same word of neighbouring blocks, and a factor
//! for each of them.

use std::arch::x86_64::*;

use super::vectors::{Avx2, Avx512, MOST_WORDS, Operations, Vectors, entries};
use crate::portable::ring as portable;
use crate::ring::{Factor, Field, Roots};

pub(crate) mod column_sums;
pub(crate) mod dft;

entries! {
    fn reduce(field: &Field, coefficients: &[i64], words: &mut [u32]);
    fn forward(field: &Field, words: &mut [u32]);
    fn inverse(field: &Field, words: &mut [u32]);
    fn multiply(field: &Field, a: &[u32], b: &[u32], products: &mut [u32]);
    fn multiply_add(field: &Field, a: &[u32], b: &[u32], products: &mut [u32]);
    fn combine_residues(fields: &[Field; 3], residues: &[u32], coefficients: &mut [u64]);
}

/// What transforms need besides the operations that all kernels share.
pub(crate) trait Transforms: Vectors {
    /// The factors of the levels within a square, in the order of [`Roots::squares`].
    fn squares(roots: &Roots) -> &[u32];

    /// Stores the numbers of three digits: the first, plus the second times the first prime, plus
    /// the third times the first two primes. Less all three primes' product where `negative` is
    /// negative. Modulo 2⁶⁴.
    fn store_combined(
        self,
        garner: &Garner,
        digits: [Self::Vector; 3],
        negative: Self::Vector,
        to: &mut [u64],
    );
}

/// The constants that make a number of its digits to the bases of the primes.
pub(crate) struct Garner {
    /// The first prime.
    first: u32,
    /// The product of the first two.
    pair: u64,
    /// The product of all three, modulo 2⁶⁴.
    all: u64,
}

impl Garner {
    /// Numbers of their digits, which are the low halves of 64 bits.
    #[inline(always)]
    fn combine<A: Vectors>(&self, arm: A, [v1, v2, v3]: [A::Vector; 3]) -> A::Vector {
        let high = arm.mul_even_u32(v3, arm.splat_u64(self.pair >> 32));
        let low = arm.mul_even_u32(v3, arm.splat_u64(u64::from(self.pair as u32)));
        let third = arm.add_u64(arm.shift_left_u64(high, 32), low);
        let second = arm.mul_even_u32(v2, arm.splat_u64(u64::from(self.first)));
        arm.add_u64(arm.add_u64(third, second), v1)
    }
}

/// See [`portable::reduce`], which the compiler vectorises for each arm.
#[inline(always)]
fn reduce<A>(_: A, field: &Field, coefficients: &[i64], words: &mut [u32]) {
    portable::reduce(field, coefficients, words);
}

/// `a · word / 2³²` modulo the prime, where `quotient` is `word` times the prime's inverse. With a
/// sign: below the prime in absolute value, if `word` is below the prime.
#[inline(always)]
fn montgomery<A: Vectors>(
    arm: A,
    a: A::Vector,
    [word, quotient]: [A::Vector; 2],
    prime: A::Vector,
) -> A::Vector {
    let odd = arm.shift_right_u64(a, 32);
    let multiples =
        [arm.mul_even_u32(a, quotient), arm.mul_even_u32(odd, arm.shift_right_u64(quotient, 32))];
    let products =
        [arm.mul_even_u32(a, word), arm.mul_even_u32(odd, arm.shift_right_u64(word, 32))];
    difference(arm, products, multiples, prime)
}

/// The same for two factors, one of which is below the prime.
#[inline(always)]
fn montgomery_product<A: Vectors>(
    arm: A,
    [a, b]: [A::Vector; 2],
    prime_inverse: A::Vector,
    prime: A::Vector,
) -> A::Vector {
    let even = arm.mul_even_u32(a, b);
    let odd = arm.mul_even_u32(arm.shift_right_u64(a, 32), arm.shift_right_u64(b, 32));
    let multiples = [arm.mul_even_u32(even, prime_inverse), arm.mul_even_u32(odd, prime_inverse)];
    difference(arm, [even, odd], multiples, prime)
}

/// The high halves of the products of the even and the odd words, less those of the multiples of
/// the prime with the same low halves. The multiples are the low halves of `multiples`.
#[inline(always)]
fn difference<A: Vectors>(
    arm: A,
    products: [A::Vector; 2],
    multiples: [A::Vector; 2],
    prime: A::Vector,
) -> A::Vector {
    let even = arm.sub_u64(products[0], arm.mul_even_u32(multiples[0], prime));
    let odd = arm.sub_u64(products[1], arm.mul_even_u32(multiples[1], prime));
    arm.blend(arm.shift_right_u64(even, 32), odd)
}

/// `word`, or `word - bound` if that is not negative.
#[inline(always)]
fn below<A: Vectors>(arm: A, word: A::Vector, bound: A::Vector) -> A::Vector {
    arm.min_u32(word, arm.sub_u32(word, bound))
}

/// `word · factor`, between 1 and twice the prime.
#[inline(always)]
fn times<A: Vectors>(
    arm: A,
    word: A::Vector,
    factor: [A::Vector; 2],
    prime: A::Vector,
) -> A::Vector {
    arm.add_u32(montgomery(arm, word, factor, prime), prime)
}

#[inline(always)]
fn splat_factor<A: Vectors>(arm: A, factor: Factor) -> [A::Vector; 2] {
    [arm.splat_u32(factor.word), arm.splat_u32(factor.quotient)]
}

/// A butterfly on the way to values: `a + factor · b` and `a - factor · b`. From words below `4p`
/// to words below `4p`.
#[inline(always)]
fn split<A: Vectors>(
    arm: A,
    [a, b]: [A::Vector; 2],
    factor: [A::Vector; 2],
    [prime, twice]: [A::Vector; 2],
) -> [A::Vector; 2] {
    let low = arm.add_u32(below(arm, a, twice), prime);
    let high = montgomery(arm, b, factor, prime);
    [arm.add_u32(low, high), arm.sub_u32(low, high)]
}

/// A butterfly on the way back: `a + b` and `factor · (a - b)`. From words below `2p` to words
/// below `2p`.
#[inline(always)]
fn join<A: Vectors>(
    arm: A,
    [a, b]: [A::Vector; 2],
    factor: [A::Vector; 2],
    [prime, twice]: [A::Vector; 2],
) -> [A::Vector; 2] {
    let difference = arm.sub_u32(arm.add_u32(a, twice), b);
    [below(arm, arm.add_u32(a, b), twice), times(arm, difference, factor, prime)]
}

/// A butterfly towards values, or with `BACK` back.
#[inline(always)]
fn butterfly<A: Vectors, const BACK: bool>(
    arm: A,
    pair: [A::Vector; 2],
    factor: [A::Vector; 2],
    primes: [A::Vector; 2],
) -> [A::Vector; 2] {
    match BACK {
        false => split(arm, pair, factor, primes),
        true => join(arm, pair, factor, primes),
    }
}

/// The butterflies of a block's first half with its second half. Both are whole vectors.
#[inline(always)]
fn butterflies<A: Vectors, const BACK: bool>(
    arm: A,
    block: &mut [u32],
    factor: [A::Vector; 2],
    primes: [A::Vector; 2],
) {
    let (a, b) = block.split_at_mut(block.len() / 2);
    for (a, b) in a.chunks_exact_mut(A::WORDS).zip(b.chunks_exact_mut(A::WORDS)) {
        let [low, high] = butterfly::<A, BACK>(arm, [arm.load(a), arm.load(b)], factor, primes);
        arm.store(low, a);
        arm.store(high, b);
    }
}

/// The rows of a square of words, which are the columns of its transpose.
#[inline(always)]
fn load_square<A: Vectors>(arm: A, square: &[u32]) -> [A::Vector; MOST_WORDS] {
    let mut rows = [arm.zero(); MOST_WORDS];
    for (row, words) in rows.iter_mut().zip(square.chunks_exact(A::WORDS)) {
        *row = arm.load(words);
    }
    arm.transpose(&mut rows[..A::WORDS]);
    rows
}

#[inline(always)]
fn store_square<A: Vectors>(arm: A, mut rows: [A::Vector; MOST_WORDS], square: &mut [u32]) {
    arm.transpose(&mut rows[..A::WORDS]);
    for (row, words) in rows.iter().zip(square.chunks_exact_mut(A::WORDS)) {
        arm.store(*row, words);
    }
}

/// The level of a transposed square with so many blocks. They are constant, so that the compiler
/// keeps the rows in registers.
#[inline(always)]
fn level<A: Vectors, const BLOCKS: usize, const BACK: bool>(
    arm: A,
    rows: &mut [A::Vector; MOST_WORDS],
    factors: &[u32],
    primes: [A::Vector; 2],
) {
    let half = A::WORDS / BLOCKS / 2;
    for block in 0..BLOCKS {
        let factor = &factors[2 * A::WORDS * (BLOCKS - 1 + block)..];
        let factor = [arm.load(factor), arm.load(&factor[A::WORDS..])];
        for a in 2 * half * block..2 * half * block + half {
            let pair = [rows[a], rows[a + half]];
            [rows[a], rows[a + half]] = butterfly::<A, BACK>(arm, pair, factor, primes);
        }
    }
}

/// See [`portable::forward`].
#[inline(always)]
fn forward<A: Transforms>(arm: A, field: &Field, words: &mut [u32]) {
    let square_len = A::WORDS * A::WORDS;
    if words.len() < square_len {
        return portable::forward(field, words);
    }
    let primes @ [prime, twice] = [arm.splat_u32(field.prime), arm.splat_u32(2 * field.prime)];
    let mut half = words.len() / 2;
    while half >= A::WORDS {
        let first = words.len() / (2 * half);
        for (i, block) in words.chunks_exact_mut(2 * half).enumerate() {
            let factor = splat_factor(arm, field.roots.factor(first + i));
            butterflies::<A, false>(arm, block, factor, primes);
        }
        half /= 2;
    }
    let factors = A::squares(&field.roots).chunks_exact(2 * (square_len - A::WORDS));
    for (square, factors) in words.chunks_exact_mut(square_len).zip(factors) {
        let mut rows = load_square(arm, square);
        level::<A, 1, false>(arm, &mut rows, factors, primes);
        level::<A, 2, false>(arm, &mut rows, factors, primes);
        level::<A, 4, false>(arm, &mut rows, factors, primes);
        if A::WORDS == 16 {
            level::<A, 8, false>(arm, &mut rows, factors, primes);
        }
        for row in &mut rows[..A::WORDS] {
            *row = below(arm, below(arm, *row, twice), prime);
        }
        store_square(arm, rows, square);
    }
}

/// See [`portable::inverse`].
#[inline(always)]
fn inverse<A: Transforms>(arm: A, field: &Field, words: &mut [u32]) {
    let square_len = A::WORDS * A::WORDS;
    if words.len() < square_len {
        return portable::inverse(field, words);
    }
    let primes @ [prime, _] = [arm.splat_u32(field.prime), arm.splat_u32(2 * field.prime)];
    let factors = A::squares(&field.inverse_roots).chunks_exact(2 * (square_len - A::WORDS));
    for (square, factors) in words.chunks_exact_mut(square_len).zip(factors) {
        let mut rows = load_square(arm, square);
        if A::WORDS == 16 {
            level::<A, 8, true>(arm, &mut rows, factors, primes);
        }
        level::<A, 4, true>(arm, &mut rows, factors, primes);
        level::<A, 2, true>(arm, &mut rows, factors, primes);
        level::<A, 1, true>(arm, &mut rows, factors, primes);
        store_square(arm, rows, square);
    }
    let mut half = A::WORDS;
    while half < words.len() {
        let first = words.len() / (2 * half);
        for (i, block) in words.chunks_exact_mut(2 * half).enumerate() {
            let factor = splat_factor(arm, field.inverse_roots.factor(first + i));
            butterflies::<A, true>(arm, block, factor, primes);
        }
        half *= 2;
    }
    let scale = splat_factor(arm, field.scale);
    for words in words.chunks_exact_mut(A::WORDS) {
        let scaled = times(arm, arm.load(words), scale, prime);
        arm.store(below(arm, scaled, prime), words);
    }
}

/// See [`portable::multiply`].
#[inline(always)]
fn multiply<A: Vectors>(arm: A, field: &Field, a: &[u32], b: &[u32], products: &mut [u32]) {
    multiply_and::<A, false>(arm, field, a, b, products);
}

/// See [`portable::multiply_add`].
#[inline(always)]
fn multiply_add<A: Vectors>(arm: A, field: &Field, a: &[u32], b: &[u32], products: &mut [u32]) {
    multiply_and::<A, true>(arm, field, a, b, products);
}

#[inline(always)]
fn multiply_and<A: Vectors, const ADD: bool>(
    arm: A,
    field: &Field,
    a: &[u32],
    b: &[u32],
    products: &mut [u32],
) {
    assert!(products.len().is_multiple_of(A::WORDS), "a degree is a multiple of a vector");
    let [prime, prime_inverse] = [arm.splat_u32(field.prime), arm.splat_u32(field.prime_inverse)];
    let factors = a.chunks_exact(A::WORDS).zip(b.chunks_exact(A::WORDS));
    for ((a, b), to) in factors.zip(products.chunks_exact_mut(A::WORDS)) {
        let product = montgomery_product(arm, [arm.load(a), arm.load(b)], prime_inverse, prime);
        let mut result = below(arm, arm.add_u32(product, prime), prime);
        if ADD {
            result = below(arm, arm.add_u32(result, arm.load(to)), prime);
        }
        arm.store(result, to);
    }
}

/// See [`portable::combine_residues`].
#[inline(always)]
fn combine_residues<A: Transforms>(
    arm: A,
    fields: &[Field; 3],
    residues: &[u32],
    coefficients: &mut [u64],
) {
    let degree = coefficients.len();
    assert!(degree.is_multiple_of(A::WORDS), "a degree is a multiple of a vector");
    let [first, second, third] = [0, 1, 2].map(|i| &residues[i * degree..][..degree]);
    let [p1, p2, p3] = fields.each_ref().map(|field| field.prime);
    let pair = u64::from(p1) * u64::from(p2);
    let garner = Garner { first: p1, pair, all: pair.wrapping_mul(u64::from(p3)) };
    let [p2, p3] = [arm.splat_u32(p2), arm.splat_u32(p3)];
    let [twice_p2, twice_p3] = [arm.add_u32(p2, p2), arm.add_u32(p3, p3)];
    let half = arm.splat_u32(fields[2].prime / 2);
    let first_in_second = splat_factor(arm, fields[1].earlier_inverses[0]);
    let first_in_third = splat_factor(arm, fields[2].earlier_inverses[0]);
    let second_in_third = splat_factor(arm, fields[2].earlier_inverses[1]);
    for (i, to) in coefficients.chunks_exact_mut(A::WORDS).enumerate() {
        let at = i * A::WORDS;
        let v1 = arm.load(&first[at..]);
        let v2 = arm.sub_u32(arm.add_u32(arm.load(&second[at..]), twice_p2), v1);
        let v2 = below(arm, times(arm, v2, first_in_second, p2), p2);
        let v3 = arm.sub_u32(arm.add_u32(arm.load(&third[at..]), twice_p3), v1);
        let v3 = arm.add_u32(times(arm, v3, first_in_third, p3), twice_p3);
        let v3 = times(arm, arm.sub_u32(v3, v2), second_in_third, p3);
        let v3 = below(arm, v3, p3);
        arm.store_combined(&garner, [v1, v2, v3], arm.sub_u32(half, v3), to);
    }
}

impl Transforms for Avx2 {
    fn squares(roots: &Roots) -> &[u32] {
        &roots.eights
    }

    #[inline(always)]
    fn store_combined(
        self,
        garner: &Garner,
        digits: [__m256i; 3],
        negative: __m256i,
        to: &mut [u64],
    ) {
        // Words 0, 1, 4, 5 and 2, 3, 6, 7, each as the low half of 64 bits.
        let (mut lows, mut highs) = (digits, digits);
        for (i, digit) in digits.into_iter().enumerate() {
            lows[i] = self.zip_low_u32(digit, self.zero());
            highs[i] = self.zip_high_u32(digit, self.zero());
        }
        let (negative, all) = (self.signs(negative), self.splat_u64(garner.all));
        let low_all = self.and(self.zip_low_u32(negative, negative), all);
        let high_all = self.and(self.zip_high_u32(negative, negative), all);
        let low = self.sub_u64(garner.combine(self, lows), low_all);
        let high = self.sub_u64(garner.combine(self, highs), high_all);
        // SAFETY: the arm's value proves that the processor has the instructions.
        let [first, second] = unsafe {
            [
                _mm256_permute2x128_si256::<0x20>(low, high),
                _mm256_permute2x128_si256::<0x31>(low, high),
            ]
        };
        self.store(first, &mut to[..4]);
        self.store(second, &mut to[4..]);
    }
}

impl Transforms for Avx512 {
    fn squares(roots: &Roots) -> &[u32] {
        &roots.sixteens
    }

    #[inline(always)]
    fn store_combined(
        self,
        garner: &Garner,
        digits: [__m512i; 3],
        negative: __m512i,
        to: &mut [u64],
    ) {
        // The first and the last eight words, each as the low half of 64 bits.
        let (mut lows, mut highs) = (digits, digits);
        let all = self.splat_u64(garner.all);
        // SAFETY: the arm's value proves that the processor has the instructions.
        let [low, high] = unsafe {
            for (i, digit) in digits.into_iter().enumerate() {
                lows[i] = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(digit));
                highs[i] = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64::<1>(digit));
            }
            let negative = _mm512_cmplt_epi32_mask(negative, self.zero());
            let [low, high] = [garner.combine(self, lows), garner.combine(self, highs)];
            [
                _mm512_mask_sub_epi64(low, negative as u8, low, all),
                _mm512_mask_sub_epi64(high, (negative >> 8) as u8, high, all),
            ]
        };
        self.store(low, &mut to[..8]);
        self.store(high, &mut to[8..]);
    }
}
