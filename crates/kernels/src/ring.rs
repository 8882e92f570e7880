//! Polynomials with integer coefficients modulo `X^d + 1`: the arithmetic of ring LWE.
//!
//! The degree `d` is a power of two, at most 2048. Coefficients are integers modulo 2⁶⁴, so a
//! modulus that is a smaller power of two needs a mask and nothing else. Multiplication by `X`
//! moves each coefficient up by one, and the highest comes back at the bottom with the other sign.
//!
//! # Products
//!
//! A product of two polynomials is computed modulo three primes, each a little below 2³⁰ and equal
//! to 1 modulo 4096. Modulo such a prime, `X^d + 1` has `d` roots, and a polynomial is determined
//! by its values there: its [`Residues`]. Values are multiplied one by one. [`Products`] of values
//! go back to coefficients, first modulo each prime and then, by Garner's form of the Chinese
//! remainder theorem, to integers. The product of the primes is 2⁸⁹·⁹⁹⁹⁷, so **a result is exact
//! while its absolute value is below 2⁸⁸**. Only its residue modulo 2⁶⁴ is returned.
//!
//! The transform is the number-theoretic one with the powers of a 2d-th root of unity merged into
//! it, so that no multiplication by them goes before (Pöppelmann, Oder and Güneysu, LATINCRYPT
//! 2015, section 3). Slot `i` holds the value at `ψ^(2r + 1)`, where `r` is `i` with its bits in
//! reverse. Words are reduced by Montgomery's method with 32 bits, and lazily: they stay below four
//! times the prime within a transform (Harvey, Faster arithmetic for number-theoretic transforms,
//! 2014).
//!
//! On one core of a Zen 3, at degree 2048 and for all three primes together:
//!
//! | | portable | AVX2 |
//! |---|---|---|
//! | small coefficients to residues | 36 µs | 9 µs |
//! | coefficients of 64 bits to residues | 44 µs | 13 µs |
//! | multiplication | 5 µs | 1.7 µs |
//! | products to coefficients | 46 µs | 12 µs |
//! | automorphism of residues, of coefficients | 5 µs, 2.2 µs | the same |
//!
//! # Sums over all automorphisms
//!
//! [`Kernels::ring_dft`] is a Fourier transform whose numbers are polynomials and whose root of
//! unity is a power of `X`. So a multiplication by a root is a rotation, and all of the work is
//! additions and movement of memory. For 2048 polynomials of degree 2048, which are 32 MiB, it
//! takes 13 ms with AVX2 and 17 ms in portable form on the same core: three passes over memory. One
//! pass for each of the eleven levels took 25 ms.
//!
//! # Sums over columns
//!
//! [`Kernels::ring_column_sums`] multiplies polynomials of bytes by fixed polynomials: see
//! `ring/column_sums.rs`.
//!
//! # Secrets
//!
//! Clients transform and multiply secrets. No branch and no address depends on a coefficient, in
//! any of these kernels. [`Residues`] and [`Products`] are erased when they are dropped, and
//! transforms of them happen in place. The buffers of [`Kernels::ring_dft`] and
//! [`Kernels::ring_column_sums`] are not erased: those two are for public tables.

mod column_sums;
mod field;
mod residues;

pub use column_sums::ColumnFactors;
pub(crate) use column_sums::{EXACT_SUM, FourierRoots, PART_BITS, PARTS, Spectrum};
#[cfg(target_arch = "x86_64")]
pub(crate) use field::Roots;
pub(crate) use field::{Factor, Field};
pub use residues::{Products, Residues};

use crate::dispatch::Kernels;
use crate::dispatch::on_arm;
use crate::portable;

/// The highest degree: the primes have roots of unity of order 4096.
pub const MAX_RING_DEGREE: usize = 2048;

/// The least degree: a vector of words.
pub const MIN_RING_DEGREE: usize = 16;

/// Small coefficients are below this in absolute value.
pub const SMALL_COEFFICIENTS: i32 = 1 << 29;

/// The constants of the transforms of polynomials modulo `X^d + 1`, for one degree `d`: about 270
/// KiB for degree 2048. Made once, and shared.
#[derive(Debug)]
pub struct RingTransform {
    degree: usize,
    fields: [Field; 3],
    /// The number of each slot with its bits in reverse.
    reversed: Vec<u16>,
}

impl RingTransform {
    /// The constants for a degree.
    ///
    /// # Panics
    ///
    /// If the degree is not a power of two between [`MIN_RING_DEGREE`] and [`MAX_RING_DEGREE`].
    pub fn new(degree: usize) -> RingTransform {
        assert_degree(degree);
        let reversed = (0..degree).map(|slot| reverse_bits(slot, degree.ilog2()) as u16).collect();
        RingTransform { degree, fields: Field::all(degree), reversed }
    }

    /// The degree `d`: how many coefficients a polynomial has.
    pub fn degree(&self) -> usize {
        self.degree
    }

    fn check(&self, residues: &Residues) {
        assert_eq!(residues.degree(), self.degree, "the residues are of the transform's degree");
    }
}

fn assert_degree(degree: usize) {
    assert!(
        degree.is_power_of_two() && (MIN_RING_DEGREE..=MAX_RING_DEGREE).contains(&degree),
        "the degree is a power of two between 16 and 2048"
    );
}

/// Where the output `number` of a [`Kernels::ring_dft`] of length `count` lies: `number` with its
/// bits in reverse order.
///
/// # Panics
///
/// If `count` is not a power of two, or `number` is not below it.
pub fn ring_dft_place(number: usize, count: usize) -> usize {
    assert!(count.is_power_of_two() && number < count, "the number is below a power of two");
    reverse_bits(number, count.ilog2())
}

/// The lowest `bits` bits of a number, which are all it has, in reverse order.
pub(crate) fn reverse_bits(number: usize, bits: u32) -> usize {
    if bits == 0 { 0 } else { number.reverse_bits() >> (usize::BITS - bits) }
}

impl Kernels {
    /// From coefficients to residues. Any coefficients will do, but products of large ones may be
    /// beyond what is exact: see the [module](crate::ring).
    ///
    /// # Panics
    ///
    /// If lengths and degrees differ.
    pub fn ring_forward(
        self,
        transform: &RingTransform,
        coefficients: &[i64],
        residues: &mut Residues,
    ) {
        assert_eq!(coefficients.len(), transform.degree, "one coefficient for each power of X");
        transform.check(residues);
        for (field, words) in transform.fields.iter().zip(residues.fields_mut()) {
            on_arm!(self, ring::reduce(field, coefficients, words));
            on_arm!(self, ring::forward(field, words));
        }
    }

    /// The same for small coefficients, which saves their reduction. Coefficients must be below
    /// [`SMALL_COEFFICIENTS`] in absolute value; others give wrong residues.
    ///
    /// # Panics
    ///
    /// If lengths and degrees differ.
    pub fn ring_forward_small(
        self,
        transform: &RingTransform,
        coefficients: &[i32],
        residues: &mut Residues,
    ) {
        assert_eq!(coefficients.len(), transform.degree, "one coefficient for each power of X");
        transform.check(residues);
        for (field, words) in transform.fields.iter().zip(residues.fields_mut()) {
            portable::ring::reduce_small(field, coefficients, words);
            on_arm!(self, ring::forward(field, words));
        }
    }

    /// `products = a · b`, slot by slot.
    ///
    /// # Panics
    ///
    /// If degrees differ.
    pub fn ring_multiply(
        self,
        transform: &RingTransform,
        a: &Residues,
        b: &Residues,
        products: &mut Products,
    ) {
        let products = products.check(transform, a, b);
        let operands = a.fields().zip(b.fields());
        for ((field, (a, b)), words) in
            transform.fields.iter().zip(operands).zip(products.fields_mut())
        {
            on_arm!(self, ring::multiply(field, a, b, words));
        }
    }

    /// `products += a · b`, slot by slot. The sum over all calls must be exact: see the
    /// [module](crate::ring).
    ///
    /// # Panics
    ///
    /// If degrees differ.
    pub fn ring_multiply_add(
        self,
        transform: &RingTransform,
        a: &Residues,
        b: &Residues,
        products: &mut Products,
    ) {
        let products = products.check(transform, a, b);
        let operands = a.fields().zip(b.fields());
        for ((field, (a, b)), words) in
            transform.fields.iter().zip(operands).zip(products.fields_mut())
        {
            on_arm!(self, ring::multiply_add(field, a, b, words));
        }
    }

    /// From products to coefficients modulo 2⁶⁴. Overwrites the products, which have no meaning
    /// afterwards.
    ///
    /// # Panics
    ///
    /// If lengths and degrees differ.
    pub fn ring_inverse(
        self,
        transform: &RingTransform,
        products: &mut Products,
        coefficients: &mut [u64],
    ) {
        assert_eq!(coefficients.len(), transform.degree, "one coefficient for each power of X");
        let residues = products.residues_mut();
        transform.check(residues);
        for (field, words) in transform.fields.iter().zip(residues.fields_mut()) {
            on_arm!(self, ring::inverse(field, words));
        }
        on_arm!(self, ring::combine_residues(&transform.fields, residues.words(), coefficients));
    }

    /// The residues of `f(X^exponent)` from those of `f(X)`: an automorphism permutes the slots.
    ///
    /// # Panics
    ///
    /// If the exponent is even or degrees differ.
    pub fn ring_permute(
        self,
        transform: &RingTransform,
        exponent: usize,
        residues: &Residues,
        permuted: &mut Residues,
    ) {
        assert!(exponent % 2 == 1, "automorphisms have odd exponents");
        transform.check(residues);
        transform.check(permuted);
        let (words, permuted) = (residues.words(), permuted.words_mut());
        portable::ring::permute(&transform.reversed, exponent, words, permuted);
    }

    /// The coefficients of `f(X^exponent)` from those of `f(X)`.
    ///
    /// # Panics
    ///
    /// If the exponent is even, the lengths differ, or they are not a power of two.
    pub fn ring_automorphism(self, exponent: usize, coefficients: &[u64], image: &mut [u64]) {
        assert!(exponent % 2 == 1, "automorphisms have odd exponents");
        assert!(coefficients.len().is_power_of_two(), "the degree is a power of two");
        assert_eq!(coefficients.len(), image.len(), "the image has the same degree");
        portable::ring::automorphism(exponent, coefficients, image);
    }

    /// The Fourier transform of `n` polynomials of a degree `d`, whose root of unity is `X^(2d/n)`,
    /// modulo 2⁶⁴ and in place. With `x_v` for input `v`, output `u` is the sum over `v` of
    /// `x_v · X^(2d/n · u · v)`, and lies at [`ring_dft_place`]`(u, n)`. Inputs lie in their
    /// natural order.
    ///
    /// `polynomials` are the `n · d` coefficients, one polynomial after another. Works in a buffer
    /// of one polynomial besides, which it does not erase.
    ///
    /// # Panics
    ///
    /// If the degree is not a power of two between [`MIN_RING_DEGREE`] and [`MAX_RING_DEGREE`], or
    /// `n` is not a power of two up to `2d`.
    pub fn ring_dft(self, degree: usize, polynomials: &mut [u64]) {
        assert_degree(degree);
        let count = polynomials.len() / degree;
        assert!(
            polynomials.len().is_multiple_of(degree)
                && count.is_power_of_two()
                && count <= 2 * degree,
            "there is a power of two of polynomials, at most twice the degree"
        );
        on_arm!(self, ring::dft::transform(degree, polynomials));
    }
}
