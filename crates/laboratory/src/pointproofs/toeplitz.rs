//! All openings of a vector at once.
//!
//! Let `s` be the [bases of openings](super::ReferenceString), 2V − 1 points with infinity in the
//! middle, and write exponents as factors. Then the opening of record `i` is `Σ_j m_j · s[V − 1 −
//! i + j]`. These V sums are the product of a Toeplitz matrix of points and a vector of scalars,
//! and so a part of the convolution of `s` with the reversed records. The Fourier transform turns
//! convolutions into products. It works for points as for numbers: a root of unity modulo the
//! order of the group is an exponent. That is Feist and Khovratovich's method (*Fast amortized KZG
//! proofs*, 2023). It takes n/2·log₂ n + n powers instead of V², where n is the least power of two
//! not below 2V − 1.

use privet_laboratory_kernels::bls12_381::{G1, G1Sum, Scalar};

pub(super) struct Toeplitz {
    len: usize,
    /// The powers of a primitive n-th root of unity, from the one with exponent 0 on.
    roots: Vec<Scalar>,
    /// The transform of the bases.
    transformed: Vec<G1Sum>,
}

impl Toeplitz {
    /// For vectors of the length V, given the 2V − 1 bases.
    pub(super) fn new(bases: &[G1]) -> Self {
        let roots = roots_of_unity(bases.len().next_power_of_two());
        let mut transformed: Vec<G1Sum> = bases.iter().map(G1::to_sum).collect();
        transformed.resize(roots.len(), G1Sum::default());
        transform(&mut transformed, &roots);
        Self { len: bases.len().div_ceil(2), roots, transformed }
    }

    /// How many records may change in a vector before it is cheaper to compute all openings again
    /// than to patch every opening for each changed record.
    pub(super) fn worthwhile_changes(&self) -> usize {
        let size = self.roots.len();
        (size / 2 * size.ilog2() as usize + size) / self.len
    }

    /// The openings of all records.
    pub(super) fn openings(&self, records: &[Scalar]) -> Vec<G1> {
        let size = self.roots.len();
        let mut reversed = vec![Scalar::ZERO; size];
        for (place, scalar) in reversed.iter_mut().zip(records.iter().rev()) {
            *place = *scalar;
        }
        transform(&mut reversed, &self.roots);
        // The transform back is the transform with the inverse roots, divided by n.
        let divisor = Scalar::from(size as u128).inverse();
        let mut product: Vec<G1Sum> = self
            .transformed
            .iter()
            .zip(&reversed)
            .map(|(base, scalar)| base.power(&(*scalar * divisor)))
            .collect();
        let inverse_roots: Vec<Scalar> = (0..size).map(|k| self.roots[(size - k) % size]).collect();
        transform(&mut product, &inverse_roots);
        let openings: Vec<G1Sum> = (0..self.len).map(|i| product[2 * self.len - 2 - i]).collect();
        G1Sum::all_to_affine(&openings)
    }
}

/// All powers of a primitive root of unity of order `size`, a power of two up to 2^32.
fn roots_of_unity(size: usize) -> Vec<Scalar> {
    // 7 generates the multiplicative group, whose order r − 1 is 2^32 times an odd number.
    let exponent = (Scalar::ZERO - Scalar::ONE) * Scalar::from(size as u128).inverse();
    let mut root = Scalar::ONE;
    for byte in exponent.to_bytes().iter().rev() {
        for bit in (0..8).rev() {
            root = root * root;
            if byte >> bit & 1 == 1 {
                root = root * Scalar::from(7);
            }
        }
    }
    let powers = std::iter::successors(Some(Scalar::ONE), |power| Some(*power * root));
    powers.take(size).collect()
}

/// Values that can be transformed.
trait Element: Copy {
    fn plus(&self, other: &Self) -> Self;
    fn minus(&self, other: &Self) -> Self;
    fn times(&self, factor: &Scalar) -> Self;
}

impl Element for Scalar {
    fn plus(&self, other: &Self) -> Self {
        *self + *other
    }

    fn minus(&self, other: &Self) -> Self {
        *self - *other
    }

    fn times(&self, factor: &Scalar) -> Self {
        *self * *factor
    }
}

impl Element for G1Sum {
    fn plus(&self, other: &Self) -> Self {
        let mut sum = *self;
        sum.add(other);
        sum
    }

    fn minus(&self, other: &Self) -> Self {
        self.plus(&other.negated())
    }

    fn times(&self, factor: &Scalar) -> Self {
        self.power(factor)
    }
}

/// The Fourier transform in place (Cooley and Tukey). There are as many values as roots, a power of
/// two.
fn transform<E: Element>(values: &mut [E], roots: &[Scalar]) {
    let size = values.len();
    if size == 1 {
        return;
    }
    let bits = size.ilog2();
    for place in 0..size {
        let other = place.reverse_bits() >> (usize::BITS - bits);
        if place < other {
            values.swap(place, other);
        }
    }
    let mut half = 1;
    while half < size {
        let stride = size / (2 * half);
        for block in values.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (k, (low, high)) in low.iter_mut().zip(high).enumerate() {
                // The first root is 1.
                let turned = if k == 0 { *high } else { high.times(&roots[k * stride]) };
                (*low, *high) = (low.plus(&turned), low.minus(&turned));
            }
        }
        half *= 2;
    }
}
