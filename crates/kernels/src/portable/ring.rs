//! Transforms modulo a prime below 2³⁰, word by word.
//!
//! `p` is the prime. Words within a transform are below `4p`, which is below 2³².

use crate::ring::{Factor, Field};

pub(crate) mod column_sums;
pub(crate) mod dft;

/// Residues of coefficients, below `4p`.
///
/// A coefficient plus 2⁶³ is `low + 2³² · high`, with halves that are not negative.
#[inline]
pub(crate) fn reduce(field: &Field, coefficients: &[i64], words: &mut [u32]) {
    for (word, coefficient) in words.iter_mut().zip(coefficients) {
        let low = *coefficient as u32;
        let high = (*coefficient >> 32) as u32 ^ 1 << 31;
        let [one, two_to_32] = field.reduction;
        let sum = montgomery(low, one, field.prime) + montgomery(high, two_to_32, field.prime);
        *word = below(sum, 2 * field.prime) + field.offset;
    }
}

/// The same for coefficients below 2²⁹ in absolute value. The residues are below `p`. The loop is
/// simple enough for a compiler's vectors, in every arm.
pub(crate) fn reduce_small(field: &Field, coefficients: &[i32], words: &mut [u32]) {
    for (word, coefficient) in words.iter_mut().zip(coefficients) {
        *word = *coefficient as u32;
        *word = word.wrapping_add((*coefficient >> 31) as u32 & field.prime);
    }
}

/// From residues below `4p` to values at the roots, below `p`. On level `l` there are `2^l` blocks,
/// each a polynomial modulo `X^(d / 2^l) - c²`. It becomes two: modulo `X^(d / 2^(l + 1)) - c`, and
/// modulo the same with `+`.
#[inline]
pub(crate) fn forward(field: &Field, words: &mut [u32]) {
    let mut half = words.len() / 2;
    while half > 0 {
        let first = words.len() / (2 * half);
        for (block, pair) in words.chunks_exact_mut(2 * half).enumerate() {
            let root = field.roots.factor(first + block);
            let (a, b) = pair.split_at_mut(half);
            for (a, b) in a.iter_mut().zip(b) {
                let low = below(*a, 2 * field.prime);
                let high = montgomery(*b, root, field.prime);
                *a = low + high;
                *b = low + 2 * field.prime - high;
            }
        }
        half /= 2;
    }
    for word in words {
        *word = below(below(*word, 2 * field.prime), field.prime);
    }
}

/// From products of values, below `2p`, to coefficients below `p`.
#[inline]
pub(crate) fn inverse(field: &Field, words: &mut [u32]) {
    let mut half = 1;
    while half < words.len() {
        let first = words.len() / (2 * half);
        for (block, pair) in words.chunks_exact_mut(2 * half).enumerate() {
            let root = field.inverse_roots.factor(first + block);
            let (a, b) = pair.split_at_mut(half);
            for (a, b) in a.iter_mut().zip(b) {
                let difference = *a + 2 * field.prime - *b;
                *a = below(*a + *b, 2 * field.prime);
                *b = montgomery(difference, root, field.prime);
            }
        }
        half *= 2;
    }
    for word in words {
        *word = below(montgomery(*word, field.scale, field.prime), field.prime);
    }
}

/// `products = a · b / 2³²`, below `p`.
#[inline]
pub(crate) fn multiply(field: &Field, a: &[u32], b: &[u32], products: &mut [u32]) {
    for ((a, b), product) in a.iter().zip(b).zip(products) {
        *product = below(multiply_words(*a, *b, field), field.prime);
    }
}

/// `products += a · b / 2³²`, below `p`.
#[inline]
pub(crate) fn multiply_add(field: &Field, a: &[u32], b: &[u32], products: &mut [u32]) {
    for ((a, b), product) in a.iter().zip(b).zip(products) {
        let sum = *product + below(multiply_words(*a, *b, field), field.prime);
        *product = below(sum, field.prime);
    }
}

/// Garner's algorithm. A number below the product of the primes is `v₁ + p₁·v₂ + p₁·p₂·v₃`, with
/// `vᵢ` below `pᵢ`. It stands for a negative number, by the product of the primes less, if `v₃` is
/// above `p₃ / 2`.
#[inline]
pub(crate) fn combine_residues(fields: &[Field; 3], residues: &[u32], coefficients: &mut [u64]) {
    let degree = coefficients.len();
    let [first, second, third] = [0, 1, 2].map(|i| &residues[i * degree..][..degree]);
    let [p1, p2, p3] = fields.each_ref().map(|field| field.prime);
    let pair = u64::from(p1) * u64::from(p2);
    let all = pair.wrapping_mul(u64::from(p3));
    for (i, coefficient) in coefficients.iter_mut().enumerate() {
        let v1 = first[i];
        let v2 = second[i] + 2 * p2 - v1;
        let v2 = below(montgomery(v2, fields[1].earlier_inverses[0], p2), p2);
        let v3 = montgomery(third[i] + 2 * p3 - v1, fields[2].earlier_inverses[0], p3);
        let v3 = v3 + 2 * p3 - v2;
        let v3 = below(montgomery(v3, fields[2].earlier_inverses[1], p3), p3);
        let number = u64::from(v1)
            .wrapping_add(u64::from(p1) * u64::from(v2))
            .wrapping_add(pair.wrapping_mul(u64::from(v3)));
        let negative = u64::from((p3 / 2).wrapping_sub(v3) >> 31).wrapping_neg();
        *coefficient = number.wrapping_sub(all & negative);
    }
}

/// See [`Kernels::ring_permute`](crate::Kernels::ring_permute). The value of `f(X^t)` at a root is
/// the value of `f` at the root's power `t`.
///
/// `reversed` are the numbers of all slots with their bits in reverse.
pub(crate) fn permute(reversed: &[u16], exponent: usize, words: &[u32], permuted: &mut [u32]) {
    let degree = reversed.len();
    let exponent = exponent % (2 * degree);
    let [a, b, c] = [0, 1, 2].map(|field| &words[field * degree..][..degree]);
    let (first, rest) = permuted.split_at_mut(degree);
    let (second, third) = rest.split_at_mut(degree);
    let slots = first.iter_mut().zip(second).zip(third);
    for (((first, second), third), number) in slots.zip(reversed) {
        // Half of `(2 · number + 1) · exponent - 1`.
        let number = (usize::from(*number) * exponent + exponent / 2) % degree;
        let from = usize::from(reversed[number]);
        (*first, *second, *third) = (a[from], b[from], c[from]);
    }
}

/// See [`Kernels::ring_automorphism`](crate::Kernels::ring_automorphism).
pub(crate) fn automorphism(exponent: usize, coefficients: &[u64], image: &mut [u64]) {
    let degree = coefficients.len();
    let mut place = 0;
    for coefficient in coefficients {
        // The place is public.
        let sign = if place < degree { 0 } else { u64::MAX };
        image[place % degree] = (coefficient ^ sign).wrapping_sub(sign);
        place = (place.wrapping_add(exponent)) % (2 * degree);
    }
}

/// `word · factor`, between 1 and `2p - 1`, for any word. The high half of the product, less that
/// of the multiple of `p` with the same low half.
#[inline(always)]
fn montgomery(word: u32, factor: Factor, prime: u32) -> u32 {
    let multiple = u64::from(word.wrapping_mul(factor.quotient)) * u64::from(prime);
    high_half(u64::from(word) * u64::from(factor.word)) + prime - high_half(multiple)
}

/// `a · b / 2³²`, between 1 and `2p - 1`, if one factor is below `p`.
#[inline(always)]
fn multiply_words(a: u32, b: u32, field: &Field) -> u32 {
    let product = u64::from(a) * u64::from(b);
    let multiple = (product as u32).wrapping_mul(field.prime_inverse);
    high_half(product) + field.prime - high_half(u64::from(multiple) * u64::from(field.prime))
}

fn high_half(product: u64) -> u32 {
    (product >> 32) as u32
}

/// `word`, or `word - bound` if that is not negative, without a branch.
#[inline(always)]
fn below(word: u32, bound: u32) -> u32 {
    word.min(word.wrapping_sub(bound))
}
