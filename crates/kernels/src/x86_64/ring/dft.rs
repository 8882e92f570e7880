//! Fourier transforms of polynomials: the portable loops, compiled for each arm.

use crate::portable::ring::dft as portable;
use crate::x86_64::vectors::entries;

entries! {
    fn transform(degree: usize, polynomials: &mut [u64]);
}

/// See [`portable::transform`].
#[inline(always)]
fn transform<A>(_: A, degree: usize, polynomials: &mut [u64]) {
    portable::in_vectors(degree, polynomials);
}
