//! Fourier transforms of polynomials, whose roots of unity are powers of `X`.

use crate::ring::reverse_bits;

/// See [`Kernels::ring_dft`](crate::Kernels::ring_dft). On level `l`, block `k` of `2^l` is a
/// polynomial in `Z`, with polynomials in `X` as its coefficients, modulo `Z^(n / 2^l) - c²`. Here
/// `c` is `X^(d · r / 2^l)`, where `r` is `k` with its `l` bits in reverse.
pub(crate) fn transform(degree: usize, polynomials: &mut [u64]) {
    in_vectors(degree, polynomials);
}

/// The same, to be compiled for the instructions of its caller.
#[inline(always)]
pub(crate) fn in_vectors(degree: usize, polynomials: &mut [u64]) {
    let mut rotated = vec![0; degree];
    let mut half = polynomials.len() / 2;
    let mut level = 0;
    while half >= degree {
        for (block, pair) in polynomials.chunks_exact_mut(2 * half).enumerate() {
            let exponent = (degree * reverse_bits(block, level)) >> level;
            let (a, b) = pair.split_at_mut(half);
            for (a, b) in a.chunks_exact_mut(degree).zip(b.chunks_exact_mut(degree)) {
                let (low, high) = b.split_at(degree - exponent);
                rotated[exponent..].copy_from_slice(low);
                for (rotated, high) in rotated.iter_mut().zip(high) {
                    *rotated = high.wrapping_neg();
                }
                for ((a, b), rotated) in a.iter_mut().zip(b).zip(&rotated) {
                    (*a, *b) = (a.wrapping_add(*rotated), a.wrapping_sub(*rotated));
                }
            }
        }
        half /= 2;
        level += 1;
    }
}
