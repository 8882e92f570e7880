//! Fourier transforms of polynomials, whose roots of unity are powers of `X`.

use crate::ring::reverse_bits;

/// Levels that are computed in one pass over memory. They take `2^ROUND` polynomials at a time: of
/// degree 2048 a quarter of a megabyte, which fits a second-level cache.
const ROUND: u32 = 4;

/// See [`Kernels::ring_dft`](crate::Kernels::ring_dft). On level `l`, block `k` of `2^l` is a
/// polynomial in `Z`, with polynomials in `X` as its coefficients, modulo `Z^(n / 2^l) - c²`. Here
/// `c` is `X^(d · r / 2^l)`, where `r` is `k` with its `l` bits in reverse.
pub(crate) fn transform(degree: usize, polynomials: &mut [u64]) {
    in_vectors(degree, polynomials);
}

/// The same, to be compiled for the instructions of its caller.
#[inline(always)]
pub(crate) fn in_vectors(degree: usize, polynomials: &mut [u64]) {
    let levels = (polynomials.len() / degree).ilog2();
    let rounds = levels.div_ceil(ROUND);
    let mut rotated = vec![0; degree];
    let mut level = 0;
    for round in 0..rounds {
        // As equal as possible.
        let taken = (levels - level).div_ceil(rounds - round);
        let block_len = polynomials.len() >> level;
        let apart = block_len >> taken;
        for (block, polynomials) in polynomials.chunks_exact_mut(block_len).enumerate() {
            for first in (0..apart).step_by(degree) {
                let polynomials = &mut polynomials[first..];
                transform_group(polynomials, apart, (level, block), taken, &mut rotated);
            }
        }
        level += taken;
    }
}

/// So many levels of those polynomials of a block that are `apart` from each other.
#[inline(always)]
fn transform_group(
    polynomials: &mut [u64],
    apart: usize,
    (level, block): (u32, usize),
    levels: u32,
    rotated: &mut [u64],
) {
    let degree = rotated.len();
    for i in 0..levels {
        let half = 1 << (levels - 1 - i);
        for part in 0..1 << i {
            let exponent = (degree * reverse_bits((block << i) + part, level + i)) >> (level + i);
            for pair in 0..half {
                let a = (2 * half * part + pair) * apart;
                let (low, high) = polynomials.split_at_mut(a + half * apart);
                let (a, b) = (&mut low[a..a + degree], &mut high[..degree]);
                rotate(exponent, b, rotated);
                for ((a, b), rotated) in a.iter_mut().zip(b).zip(&*rotated) {
                    (*a, *b) = (a.wrapping_add(*rotated), a.wrapping_sub(*rotated));
                }
            }
        }
    }
}

/// `rotated` becomes `X^exponent · polynomial`, for an exponent up to the degree.
#[inline(always)]
fn rotate(exponent: usize, polynomial: &[u64], rotated: &mut [u64]) {
    let (low, high) = polynomial.split_at(polynomial.len() - exponent);
    let (lower, upper) = rotated.split_at_mut(exponent);
    upper.copy_from_slice(low);
    for (rotated, high) in lower.iter_mut().zip(high) {
        *rotated = high.wrapping_neg();
    }
}
