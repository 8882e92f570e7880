//! Fourier transforms of polynomials: the portable loops, compiled for this arm.

use crate::portable::ring::dft as portable;

/// See [`portable::transform`].
#[target_feature(enable = "avx2")]
pub(crate) fn transform(degree: usize, polynomials: &mut [u64]) {
    portable::in_vectors(degree, polynomials);
}
