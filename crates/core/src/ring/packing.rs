//! The server's side, once for each table: packs a block of `d` rows.
//!
//! A block's work is a chain in five parts. The names are those of the [module above](super).
//!
//! 1. The masks of the rows, `ã_k = Σ_j D_{k,j}(X⁻¹)·a_j`, divided by `d`: `A_k`.
//! 2. `Â_t` for all odd `t` at once. With `t = (2v + 1)⁻¹` it is `τ_t(G_v)`, where `G_v` is the sum
//!    over `k` of `(X^k·A_k)·X^(2kv)`: a Fourier transform over the ring, with the root `X²`. (The
//!    sums one by one would take `d` times as long; published code takes 18 seconds for a block.)
//! 3. The key switches, from `t = ±5^i` to `±5^(i−1)`, down to `t = ±1`. They give the digits. The
//!    two signs must not go the same way: see below.
//! 4. The fold, which joins the two, and what is left: the mask.
//! 5. The packing matrix. Column `u` of it is `Σ_t δ_t·X^(u·t')`, `t'` being the exponent after the
//!    switch: the same Fourier transform again.
//!
//! # Two chains that would mirror each other
//!
//! The switches are two chains, one for each sign of `t`. If only row `k` of a block has bytes
//! other than zero, `Â_−t` is `X^(2k)·τ_−1(Â_t)`, and every step would keep that relation. Both
//! chains' contributions to row `k` of `M` would be equal: not two independent sums, but twice the
//! same, and the variance of the noise there would be twice what is counted on. The same goes for
//! the middle one of an odd number of equal rows, as in a table that is all 255. So the first digit
//! of the second chain is rounded the other way in one coefficient. That changes what is dropped by
//! next to nothing, and after one multiplication with a public polynomial the chains have nothing
//! in common.

use super::noise::{expected_norms, norm_allowance};
use super::{Form, MODULUS_BITS, PublicCoefficients, STEP, centred, digit, round};
use crate::{Error, Result};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;
use privet_kernels::ring::{ColumnFactors, Products, Residues, RingTransform, ring_dft_place};

/// Entries of the packing matrix are below this in absolute value.
const MATRIX_BOUND: i64 = 1 << 31;

/// Rows whose masks are computed at a time.
pub(super) const ROWS_AT_ONCE: usize = 64;

/// The public polynomials in the form in which the packing needs them: 48 KiB for each 2048
/// columns, and 144 KiB.
pub struct PackingFactors {
    form: Form,
    transform: RingTransform,
    columns: ColumnFactors,
    packing: Residues,
    fold: Residues,
    /// The powers of 5 modulo 2d, from the 0th to the d/2 − 1st.
    powers: Vec<usize>,
}

/// The memory that packing a block needs besides its result: 48 MiB at degree 2048.
pub struct PackingScratch {
    /// d polynomials.
    polynomials: HugeBuffer<u64>,
    /// The digits `δ_t`, in the order of the second transform's inputs. Signed.
    digits: HugeBuffer<u32>,
    columns: Vec<u8>,
}

/// Where the result of packing a block goes.
pub struct BlockOut<'a> {
    /// `2^31 − M`, where `M` is the packing matrix: column by column, a word for each row of the
    /// block that exists.
    pub matrix: &'a mut [u32],
    /// The digits of the fold, d signed numbers.
    pub fold: &'a mut [u32],
    /// The mask, d numbers of the form's bits. Public: clients need it.
    pub mask: &'a mut [u32],
}

/// What a block's noise depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackingNorms {
    /// The largest ‖M_k‖² of all rows.
    pub matrix: f64,
    /// ‖δ‖² of the fold's digits.
    pub fold: f64,
}

impl PackingFactors {
    /// Prepares the public polynomials.
    pub fn new(kernels: Kernels, form: Form, public: &PublicCoefficients) -> Self {
        let transform = RingTransform::new(form.degree);
        let residues = |coefficients: &[i64]| {
            let mut residues = Residues::zeroed(form.degree);
            kernels.ring_forward(&transform, coefficients, &mut residues);
            residues
        };
        let columns = ColumnFactors::new(form.degree, &public.columns);
        let (packing, fold) = (residues(&public.packing), residues(&public.fold));
        let next = |power: &usize| Some(power * STEP % (2 * form.degree));
        let powers = std::iter::successors(Some(1), next).take(form.degree / 2).collect();
        Self { form, columns, packing, fold, powers, transform }
    }

    /// Memory for [`pack`](Self::pack), for one thread.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if there is not enough.
    pub fn scratch(&self) -> Result<PackingScratch> {
        let square = self.form.degree * self.form.degree;
        let no_memory = |error| Error::unavailable("no memory to pack the table").caused_by(error);
        Ok(PackingScratch {
            polynomials: HugeBuffer::new_zeroed(square).map_err(no_memory)?,
            digits: HugeBuffer::new_zeroed(square).map_err(no_memory)?,
            columns: Vec::new(),
        })
    }

    /// Packs a block of `rows` rows, at most d. `read(first, count, bytes)` fills `bytes` with rows
    /// `first .. first + count` of the block, column by column. It is called for `ROWS_AT_ONCE`
    /// rows or fewer.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if the block's noise could be larger than
    /// [`noise`](super::noise) counts on. That happens to no table that was not made for it.
    ///
    /// # Panics
    /// If there are no rows or more than d, a part of `out` has another length than it should, or
    /// there are more columns than polynomials for them.
    pub fn pack(
        &self,
        kernels: Kernels,
        rows: usize,
        read: impl FnMut(usize, usize, &mut Vec<u8>),
        scratch: &mut PackingScratch,
        out: &mut BlockOut<'_>,
    ) -> Result<PackingNorms> {
        let degree = self.form.degree;
        assert!((1..=degree).contains(&rows), "a block has rows");
        assert_eq!(out.matrix.len(), rows * degree, "the matrix has d columns");
        assert_eq!((out.fold.len(), out.mask.len()), (degree, degree), "there are d digits");
        self.row_masks(kernels, rows, read, scratch);
        kernels.ring_dft(degree, &mut scratch.polynomials);
        let [plus, minus] = self.switch_keys(kernels, scratch);
        self.fold(kernels, plus, &minus, out);
        for (polynomial, digit) in scratch.polynomials.iter_mut().zip(scratch.digits.iter()) {
            *polynomial = *digit as i32 as u64;
        }
        kernels.ring_dft(degree, &mut scratch.polynomials);
        let norms = PackingNorms {
            matrix: self.write_matrix(rows, &scratch.polynomials, out.matrix)?,
            fold: out.fold.iter().map(|digit| f64::from(*digit as i32).powi(2)).sum(),
        };
        self.check(norms)?;
        Ok(norms)
    }

    /// `X^k·A_k` for all rows `k`.
    fn row_masks(
        &self,
        kernels: Kernels,
        rows: usize,
        mut read: impl FnMut(usize, usize, &mut Vec<u8>),
        scratch: &mut PackingScratch,
    ) {
        let degree = self.form.degree;
        let PackingScratch { polynomials, columns, .. } = scratch;
        let (of_rows, missing) = polynomials.split_at_mut(rows * degree);
        missing.fill(0);
        for (part, sums) in of_rows.chunks_mut(ROWS_AT_ONCE * degree).enumerate() {
            let count = sums.len() / degree;
            read(part * ROWS_AT_ONCE, count, columns);
            kernels.ring_column_sums(&self.columns, columns, count, 0, sums);
        }
        let (half, shift) = (degree as i64 / 2, degree.ilog2());
        for (row, mask) in of_rows.chunks_exact_mut(degree).enumerate() {
            for coefficient in mask.iter_mut() {
                *coefficient = ((centred(*coefficient, MODULUS_BITS) + half) >> shift) as u64;
            }
            mask.rotate_right(row);
            negate(&mut mask[..row]);
        }
    }

    /// The component `Â_t` for `t = sign·5^power`.
    fn component(
        &self,
        kernels: Kernels,
        polynomials: &[u64],
        [sign, power]: [usize; 2],
        component: &mut [u64],
    ) {
        let degree = self.form.degree;
        let exponent = self.exponent(sign, power);
        // 5^(d/2) is 1.
        let inverse = self.exponent(sign, (degree / 2 - power) % (degree / 2));
        let place = ring_dft_place((inverse - 1) / 2, degree);
        kernels.ring_automorphism(exponent, &polynomials[place * degree..][..degree], component);
    }

    /// `sign·5^power` modulo 2d, where the sign is 1 or 2d − 1.
    fn exponent(&self, sign: usize, power: usize) -> usize {
        sign * self.powers[power] % (2 * self.form.degree)
    }

    /// Switches all components to those under `s` and `τ_−1(s)`, and notes the digits.
    fn switch_keys(&self, kernels: Kernels, scratch: &mut PackingScratch) -> [Vec<u64>; 2] {
        let degree = self.form.degree;
        let PackingScratch { polynomials, digits, .. } = scratch;
        digits.fill(0);
        let (mut key, mut of_digits) = (Residues::zeroed(degree), Residues::zeroed(degree));
        let (mut products, mut product) = (Products::zeroed(degree), vec![0; degree]);
        let mut signed = vec![0; degree];
        [1, 2 * degree - 1].map(|sign| {
            let (mut sum, mut next) = (vec![0; degree], vec![0; degree]);
            let last = degree / 2 - 1;
            self.component(kernels, polynomials, [sign, last], &mut sum);
            for power in (0..last).rev() {
                let exponent = self.exponent(sign, power);
                for (digit_, coefficient) in signed.iter_mut().zip(&sum) {
                    *digit_ = digit(*coefficient, self.form.digit_bits);
                }
                if sign != 1 && power + 1 == last {
                    // Breaks the symmetry of the two chains: see the module.
                    signed[0] = centred((signed[0] + 1) as u64, self.form.digit_bits) as i32;
                }
                let place = (exponent - 1) / 2;
                let noted = &mut digits[place * degree..][..degree];
                noted.iter_mut().zip(&signed).for_each(|(noted, digit)| *noted = *digit as u32);
                kernels.ring_forward_small(&self.transform, &signed, &mut of_digits);
                kernels.ring_permute(&self.transform, exponent, &self.packing, &mut key);
                kernels.ring_multiply(&self.transform, &of_digits, &key, &mut products);
                kernels.ring_inverse(&self.transform, &mut products, &mut product);
                self.component(kernels, polynomials, [sign, power], &mut next);
                for ((sum, next), product) in sum.iter_mut().zip(&next).zip(&product) {
                    *sum = next.wrapping_sub(*product);
                }
            }
            sum
        })
    }

    /// Joins the two components that are left.
    fn fold(&self, kernels: Kernels, mut plus: Vec<u64>, minus: &[u64], out: &mut BlockOut<'_>) {
        let degree = self.form.degree;
        let digits: Vec<i32> =
            minus.iter().map(|number| digit(*number, self.form.fold_digit_bits)).collect();
        let mut of_digits = Residues::zeroed(degree);
        let (mut products, mut product) = (Products::zeroed(degree), vec![0; degree]);
        kernels.ring_forward_small(&self.transform, &digits, &mut of_digits);
        kernels.ring_multiply(&self.transform, &of_digits, &self.fold, &mut products);
        kernels.ring_inverse(&self.transform, &mut products, &mut product);
        plus.iter_mut().zip(&product).for_each(|(plus, product)| {
            *plus = plus.wrapping_sub(*product);
        });
        out.fold.iter_mut().zip(&digits).for_each(|(out, digit)| *out = *digit as u32);
        for (out, number) in out.mask.iter_mut().zip(&plus) {
            *out = round(*number, MODULUS_BITS, self.form.mask_bits) as u32;
        }
    }

    /// Writes `2^31 − M`. `polynomials` are the second transform's result. Returns the largest
    /// ‖M_k‖².
    pub(super) fn write_matrix(
        &self,
        rows: usize,
        polynomials: &[u64],
        matrix: &mut [u32],
    ) -> Result<f64> {
        let degree = self.form.degree;
        let mut norms = vec![0.0; rows];
        let mut largest = 0;
        for (number, column) in matrix.chunks_exact_mut(rows).enumerate() {
            let polynomial = &polynomials[ring_dft_place(number, degree) * degree..][..degree];
            // X^number times the polynomial: its last coefficients come first, negated.
            let (head, tail) = polynomial.split_at(degree - number);
            let wrapped = tail.iter().map(|coefficient| -(*coefficient as i64));
            let entries = wrapped.chain(head.iter().map(|coefficient| *coefficient as i64));
            for ((word, norm), entry) in column.iter_mut().zip(&mut norms).zip(entries) {
                largest = largest.max(entry.unsigned_abs());
                *norm += (entry as f64).powi(2);
                *word = (MATRIX_BOUND - entry) as u32;
            }
        }
        if largest >= MATRIX_BOUND.unsigned_abs() {
            return Err(too_noisy());
        }
        Ok(norms.into_iter().fold(0.0, f64::max))
    }

    pub(super) fn check(&self, norms: PackingNorms) -> Result<()> {
        let [matrix, fold] =
            expected_norms(self.form).map(|expected| expected * norm_allowance(self.form));
        match norms.matrix <= matrix && norms.fold <= fold {
            true => Ok(()),
            false => Err(too_noisy()),
        }
    }
}

fn negate(coefficients: &mut [u64]) {
    coefficients.iter_mut().for_each(|coefficient| *coefficient = coefficient.wrapping_neg());
}

fn too_noisy() -> Error {
    Error::api_misuse(
        "this table cannot be packed under its id, because lookups would fail too often: it seems to be made for that. Publish it under another id, or take a scheme that does not pack",
    )
}
