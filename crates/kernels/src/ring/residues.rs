//! Buffers for residues modulo the three primes.

use zeroize::Zeroize;

use super::{RingTransform, assert_degree};

/// Words that begin where a cache line and a long vector begin.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u32; 16]);

/// A polynomial's values at the roots of `X^d + 1` modulo the three primes: `3 · d` words. Erased
/// when dropped.
#[derive(Clone)]
pub struct Residues {
    lines: Vec<Line>,
    degree: usize,
}

impl Residues {
    /// The residues of the polynomial 0.
    ///
    /// # Panics
    ///
    /// If the degree is not one that a [`RingTransform`] may have.
    pub fn zeroed(degree: usize) -> Residues {
        assert_degree(degree);
        Residues { lines: vec![Line([0; 16]); 3 * degree / 16], degree }
    }

    /// The degree `d`.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// All words, those of the first prime first. Each is below its prime.
    pub fn words(&self) -> &[u32] {
        // SAFETY: a line is 16 words and has no padding, and the lifetime is that of `self`.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), 16 * self.lines.len()) }
    }

    pub(super) fn words_mut(&mut self) -> &mut [u32] {
        let words = 16 * self.lines.len();
        // SAFETY: as above, and the reference is the only one.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), words) }
    }

    /// The words of each prime.
    pub(super) fn fields(&self) -> std::slice::ChunksExact<'_, u32> {
        self.words().chunks_exact(self.degree)
    }

    /// The words of each prime.
    pub(super) fn fields_mut(&mut self) -> std::slice::ChunksExactMut<'_, u32> {
        let degree = self.degree;
        self.words_mut().chunks_exact_mut(degree)
    }
}

impl Zeroize for Residues {
    fn zeroize(&mut self) {
        self.words_mut().zeroize();
    }
}

impl Drop for Residues {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl std::fmt::Debug for Residues {
    /// Without the words, which may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Residues").field("degree", &self.degree).finish_non_exhaustive()
    }
}

/// A sum of products of [`Residues`], each of exactly two factors. A type of its own, because its
/// words lack a power of 2³² that only [`ring_inverse`](crate::Kernels::ring_inverse) adds. Erased
/// when dropped.
#[derive(Clone, Debug)]
pub struct Products(Residues);

impl Products {
    /// The empty sum.
    ///
    /// # Panics
    ///
    /// If the degree is not one that a [`RingTransform`] may have.
    pub fn zeroed(degree: usize) -> Products {
        Products(Residues::zeroed(degree))
    }

    pub(super) fn residues_mut(&mut self) -> &mut Residues {
        &mut self.0
    }

    /// Checks the degrees of two factors and their product.
    pub(super) fn check(
        &mut self,
        transform: &RingTransform,
        a: &Residues,
        b: &Residues,
    ) -> &mut Residues {
        transform.check(a);
        transform.check(b);
        transform.check(&self.0);
        &mut self.0
    }
}

impl Zeroize for Products {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}
