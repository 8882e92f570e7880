//! Products of polynomials of bytes with fixed polynomials, by Fourier transforms of real numbers.
//!
//! # Why not modulo primes
//!
//! These products are most of the work of packing a table. The one factor is a byte, the other has
//! up to 51 bits. Modulo primes a product takes three transforms of the bytes. With real numbers it
//! takes one, of half as many complex numbers, and a butterfly takes half as many instructions.
//! (The other factor is split in three, but it is fixed, and transformed once.)
//!
//! On one core of a Zen 3, a block of 2048 rows and 2¹⁵ columns takes 150 to 165 ms with four rows
//! in a vector, and 320 to 390 ms in portable form. Modulo primes the AVX2 arm would need 3 µs for
//! each of 2048 · (16 + 1) · 3 transforms alone, 310 ms.
//!
//! # Why the results are exact
//!
//! Write `u` for 2⁻⁵³. A radix-2 level computes with a relative error of at most 23·u in the
//! Euclidean norm. Of this, 16·u are the error of a root: its angle is at most 3π/2, and computed
//! with three roundings. A complex product adds less than √5·u and a sum u; 6.7·u for both is the
//! more generous figure of Higham (Accuracy and Stability of Numerical Algorithms, section 24.1). A
//! radix-4 butterfly is two such levels with fewer roundings. There are at most 10 levels in each
//! of three transforms, the two factors' and the product's, so at most 690·u. The products add 3·u,
//! and a sum of 64 of them adds 64·u. Altogether this is below 2¹⁰·u = 2⁻⁴³.
//!
//! A polynomial of 2048 bytes has a norm of at most 255·√2048, one of parts of at most 2¹⁶ in
//! absolute value 2¹⁶·√2048. By the Cauchy-Schwarz inequality the sum of 64 products' errors is at
//! most `64 · 255 · 2¹⁶ · 2048 · 2⁻⁴³`, below 2⁻², for every coefficient and all bytes. That is
//! below one half, so rounding gives the integer. After 64 polynomials, sums are therefore rounded
//! and added up as integers.

use super::assert_degree;
use crate::dispatch::Kernels;
use crate::dispatch::on_arm;
use crate::portable;

/// The parts of a coefficient. Their bits: 17 each, balanced.
pub(crate) const PARTS: usize = 3;
pub(crate) const PART_BITS: u32 = 17;

/// Coefficients are at most this in absolute value.
const LARGEST: i64 = 1 << 50;

/// Polynomials whose products with bytes can be added up before rounding.
pub(crate) const EXACT_SUM: usize = 64;

/// The fixed polynomials of [`Kernels::ring_column_sums`], transformed: 24 bytes for each
/// coefficient.
#[derive(Debug)]
pub struct ColumnFactors {
    degree: usize,
    roots: FourierRoots,
    /// For each polynomial and each point of the spectrum, the parts' complex values.
    spectra: Vec<Spectrum>,
}

/// One point of the spectrum of the parts of a polynomial.
pub(crate) type Spectrum = [[f64; 2]; PARTS];

impl ColumnFactors {
    /// Transforms polynomials of one degree, one after another. Coefficients must be from -2⁵⁰ to
    /// 2⁵⁰.
    ///
    /// # Panics
    ///
    /// If the degree is not a power of two between 16 and 2048, there is not a whole number of
    /// polynomials, or a coefficient is too large.
    pub fn new(degree: usize, polynomials: &[i64]) -> ColumnFactors {
        assert_degree(degree);
        assert!(polynomials.len().is_multiple_of(degree), "there are whole polynomials");
        let in_range = |c: &i64| (-LARGEST..=LARGEST).contains(c);
        assert!(polynomials.iter().all(in_range), "coefficients have at most 51 bits");
        let roots = FourierRoots::new(degree / 2);
        let spectra = polynomials
            .chunks_exact(degree)
            .flat_map(|polynomial| portable::ring::column_sums::spectrum(&roots, polynomial))
            .collect();
        ColumnFactors { degree, roots, spectra }
    }

    /// The degree.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// How many polynomials there are.
    pub fn count(&self) -> usize {
        self.spectra.len() / (self.degree / 2)
    }

    pub(crate) fn roots(&self) -> &FourierRoots {
        &self.roots
    }

    /// The spectra of the polynomials, one after another.
    pub(crate) fn spectra(&self) -> &[Spectrum] {
        &self.spectra
    }
}

/// Roots of unity for complex transforms modulo `Z^n - i`, which are real ones modulo `X^(2n) + 1`:
/// the coefficient of `Z^j` is that of `X^j` plus `i` times that of `X^(j + n)`.
///
/// On each level, block `k` of `2^l` is a polynomial modulo `Z^(n / 2^l) - c`, where `c` has the
/// angle `(π/2 + 2π·r) / 2^l`, and `r` is `k` with its `l` bits in reverse.
#[derive(Debug)]
pub(crate) struct FourierRoots {
    points: usize,
    /// For each block of the levels 0, 1, 2, …: the first three powers of the fourth root of its
    /// `c`. Block `k` of `2^l` is entry `2^l - 1 + k`.
    powers: Vec<[[f64; 2]; 3]>,
}

impl FourierRoots {
    fn new(points: usize) -> FourierRoots {
        use std::f64::consts::TAU;
        let levels = (0..points.ilog2()).flat_map(|level| (0..1 << level).map(move |k| (level, k)));
        let powers = levels.map(|(level, block)| {
            let quarters = (1 + 4 * super::reverse_bits(block, level)) as f64;
            let angle = TAU * quarters / (1u64 << (level + 4)) as f64;
            [1.0, 2.0, 3.0].map(|power: f64| {
                let (sine, cosine) = (power * angle).sin_cos();
                [cosine, sine]
            })
        });
        FourierRoots { points, powers: powers.collect() }
    }

    /// The number of complex points.
    pub(crate) fn points(&self) -> usize {
        self.points
    }

    /// The powers for block `block` of `blocks`.
    #[inline(always)]
    pub(crate) fn powers(&self, blocks: usize, block: usize) -> &[[f64; 2]; 3] {
        &self.powers[blocks - 1 + block]
    }
}

impl Kernels {
    /// The products of rows of bytes with fixed polynomials, summed up over the columns.
    ///
    /// `columns` are columns of `column_len` bytes, one after another; what the last one lacks is
    /// zero. Their rows are cut into polynomials of the factors' degree `d`: coefficient `i` of
    /// polynomial `D_j` is the row's byte of column `d·j + i`. Missing columns are zero.
    ///
    /// For each row from `first_row` on, the sum over `j` of `D_j(X⁻¹) · a_j` is written to `sums`,
    /// `d` coefficients modulo 2⁶⁴. Here `a_j` is polynomial `j` of the factors. Rows from
    /// `column_len` on are zero.
    ///
    /// For public bytes: buffers are not erased. Works in buffers of 64 bytes for each column and
    /// less than 1.5 MiB besides.
    ///
    /// # Panics
    ///
    /// If there are more columns than the factors have coefficients, `column_len` is 0, or `sums`
    /// is not a whole number of polynomials.
    pub fn ring_column_sums(
        self,
        factors: &ColumnFactors,
        columns: &[u8],
        column_len: usize,
        first_row: usize,
        sums: &mut [u64],
    ) {
        assert!(column_len > 0, "columns have at least one byte");
        assert!(sums.len().is_multiple_of(factors.degree), "the sums are whole polynomials");
        assert!(
            columns.len().div_ceil(column_len) <= factors.count() * factors.degree,
            "there is a coefficient for each column"
        );
        on_arm!(self, ring::column_sums::sum(factors, columns, column_len, first_row, sums));
    }
}
