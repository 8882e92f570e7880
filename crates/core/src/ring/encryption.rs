//! The client's side: encrypts unit vectors and two keys under one secret, and decrypts bytes.

use super::{DELTA_BITS, Form, MODULUS_BITS, PublicCoefficients, STEP, centred, low_bits, round};
use crate::lwe::sample_errors;
use crate::{Error, Result, SecretRng};
use privet_kernels::Kernels;
use privet_kernels::ring::{Products, Residues, RingTransform};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// From this many rows of a block on, the whole product of mask and secret takes less time than the
/// rows' coefficients one by one, with AVX2.
const WHOLE_PRODUCT_ROWS: usize = 128;

/// Columns that are compared together with the wanted one.
const GROUP: usize = 64;

/// The public polynomials, transformed: 24 KiB for each 2048 columns, and 48 KiB.
pub struct EncryptionFactors {
    form: Form,
    transform: RingTransform,
    /// Those of the columns of each vector.
    vectors: Vec<Vec<Residues>>,
    packing: Residues,
    fold: Residues,
}

impl EncryptionFactors {
    /// Transforms the public polynomials, for queries of one vector.
    pub fn new(kernels: Kernels, form: Form, public: &PublicCoefficients) -> Self {
        let transform = RingTransform::new(form.degree);
        let residues = |coefficients: &[i64]| residues(kernels, &transform, coefficients);
        let columns = public.columns.chunks_exact(form.degree).map(residues).collect();
        let (packing, fold) = (residues(&public.packing), residues(&public.fold));
        Self { form, vectors: vec![columns], packing, fold, transform }
    }

    /// The same for queries of one more vector, over the columns of another byte matrix. `columns`
    /// are the polynomials of these columns. Vectors of one query share its secret and its keys, so
    /// each must have polynomials of its own.
    pub fn with_vector(mut self, kernels: Kernels, columns: &[i64]) -> Self {
        let polynomials = columns.chunks_exact(self.form.degree);
        let columns = polynomials.map(|polynomial| residues(kernels, &self.transform, polynomial));
        self.vectors.push(columns.collect());
        self
    }

    /// The form.
    pub fn form(&self) -> Form {
        self.form
    }
}

fn residues(kernels: Kernels, transform: &RingTransform, coefficients: &[i64]) -> Residues {
    let mut residues = Residues::zeroed(transform.degree());
    kernels.ring_forward(transform, coefficients, &mut residues);
    residues
}

/// The two keys that go with a query, rounded to the [form's](Form::key_bits) bits: what the server
/// packs its answer with. They belong to the query's secret.
pub struct PublicKeys {
    /// `w·s + e + 2^27·τ_5(s)`.
    pub packing: Vec<u64>,
    /// `w'·s + e' + 2^32·τ_−1(s)`.
    pub fold: Vec<u64>,
}

/// The client's key for the answer to one query: the secret and the sum of the errors of each of
/// the query's vectors. Erased when dropped.
#[derive(Clone)]
pub struct RingKey {
    secret: Zeroizing<Vec<i32>>,
    /// On the heap: moving the key leaves no copy of it behind.
    error_sums: Zeroizing<Box<[u64]>>,
}

/// Some symbols of an answer: those of neighbouring rows of one block.
pub struct BlockSymbols<'a> {
    /// The vector of the query that this is the answer to: 0 for the first.
    pub vector: usize,
    /// The block's mask, d numbers of the form's bits.
    pub mask: &'a [u32],
    /// The place of the first of the rows in the block.
    pub first_row: usize,
    /// A symbol for each of the rows.
    pub symbols: &'a [u16],
}

/// An encryption of zero vectors with its keys. It becomes a query for one column of each. It is
/// secret until then: its difference from that query says what is looked up. Erased when dropped.
///
/// ```compile_fail
/// # use privet_core::ring::Blank;
/// fn two_queries(blank: Blank) {
///     let first = blank.into_query(&[1]);
///     let second = blank.into_query(&[2]);
/// }
/// ```
pub struct Blank {
    /// Those of all vectors, one after another.
    words: Zeroizing<Vec<u32>>,
    /// How many words each vector has.
    lens: Vec<u64>,
    query_bits: u32,
    packing: Zeroizing<Vec<u64>>,
    fold: Zeroizing<Vec<u64>>,
    key: RingKey,
}

/// Encrypts zero vectors of `lens` entries, in words of `query_bits` bits, under one fresh secret.
/// Takes long; the rest of a query does not.
///
/// # Panics
/// If there are more vectors, or longer ones, than `factors` have polynomials for.
pub fn encrypt_zero(
    kernels: Kernels,
    factors: &EncryptionFactors,
    lens: &[u64],
    query_bits: u32,
    rng: &mut SecretRng,
) -> Blank {
    let degree = factors.form.degree;
    let mut secret = Zeroizing::new(vec![0; degree]);
    secret.iter_mut().for_each(|coefficient| *coefficient = rng.below(3) as i32 - 1);
    let words = lens.iter().sum::<u64>() as usize;
    let mut errors = Zeroizing::new(vec![0; words + 2 * degree]);
    sample_errors(kernels, Form::ERROR, rng, &mut errors);
    Blank::with(kernels, factors, (lens, query_bits), secret, &errors)
}

impl Blank {
    /// `errors` are those of the vectors, one after another, and then those of the two keys.
    pub(super) fn with(
        kernels: Kernels,
        factors: &EncryptionFactors,
        (lens, query_bits): (&[u64], u32),
        secret: Zeroizing<Vec<i32>>,
        errors: &[u32],
    ) -> Self {
        let Form { degree, key_bits, digit_bits, fold_key_bits, fold_digit_bits, .. } =
            factors.form;
        let (of_vectors, of_keys) = errors.split_at(errors.len() - 2 * degree);
        assert!(lens.len() <= factors.vectors.len(), "there are polynomials for each vector");
        let mut masks = Masks::new(kernels, &factors.transform, &secret);
        let mut words = Zeroizing::new(vec![0; of_vectors.len()]);
        let mut error_sums = Zeroizing::new(vec![0u64; lens.len()].into_boxed_slice());
        let shift = MODULUS_BITS - query_bits;
        let (mut words_left, mut errors_left) = (&mut words[..], of_vectors);
        for ((polynomials, len), error_sum) in
            factors.vectors.iter().zip(lens).zip(error_sums.iter_mut())
        {
            let (words, other_words) = words_left.split_at_mut(*len as usize);
            let (errors, other_errors) = errors_left.split_at(*len as usize);
            (words_left, errors_left) = (other_words, other_errors);
            assert!(words.len() <= degree * polynomials.len(), "each column has its polynomial");
            for ((public, words), errors) in
                polynomials.iter().zip(words.chunks_mut(degree)).zip(errors.chunks(degree))
            {
                let masks = masks.of(public);
                for ((word, error), mask) in words.iter_mut().zip(errors).zip(masks) {
                    let rounded = round(add_error(*mask, *error), MODULUS_BITS, query_bits);
                    *word = rounded as u32;
                    // With the error of rounding: the client takes off all that it knows.
                    let error = (rounded << shift).wrapping_sub(*mask);
                    *error_sum = error_sum.wrapping_add(error);
                }
            }
        }
        for error_sum in error_sums.iter_mut() {
            *error_sum = centred(*error_sum, MODULUS_BITS) as u64;
        }
        let (of_packing, of_fold) = of_keys.split_at(degree);
        let wide = Zeroizing::new(secret.iter().map(|s| *s as u64).collect::<Vec<_>>());
        let mut image = Zeroizing::new(vec![0; degree]);
        let mut key = |public: &Residues, exponent, errors: &[u32], digit_bits, key_bits| {
            kernels.ring_automorphism(exponent, &wide, &mut image);
            let words = masks.of(public).iter().zip(image.iter()).zip(errors);
            let words = words.map(|((mask, image), error)| {
                let weighted = image.wrapping_shl(Form::digit_weight(digit_bits));
                round(add_error(*mask, *error).wrapping_add(weighted), MODULUS_BITS, key_bits)
            });
            Zeroizing::new(words.collect::<Vec<_>>())
        };
        let packing = key(&factors.packing, STEP, of_packing, digit_bits, key_bits);
        let fold = key(&factors.fold, 2 * degree - 1, of_fold, fold_digit_bits, fold_key_bits);
        let key = RingKey { secret, error_sums };
        Self { words, lens: lens.to_vec(), query_bits, packing, fold, key }
    }

    /// Checks that this was made for such queries.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if it was not.
    pub fn check(&self, form: Form, lens: &[u64], query_bits: u32) -> Result<()> {
        let made_for = (&self.lens[..], self.query_bits, self.packing.len());
        match made_for == (lens, query_bits, form.degree) {
            true => Ok(()),
            false => Err(Error::api_misuse("a query was made ahead for a table of another size")),
        }
    }

    /// The same once more, for rehearsals, whose queries are never sent: two queries of one blank
    /// would say what both ask for.
    pub fn copy_to_rehearse(&self) -> Self {
        let Self { words, lens, query_bits, packing, fold, key } = self;
        let (words, lens, packing) = (words.clone(), lens.clone(), packing.clone());
        Self { words, lens, query_bits: *query_bits, packing, fold: fold.clone(), key: key.clone() }
    }

    /// The query whose 1 is at one of `columns` in each vector: words of the query's bits, vector
    /// after vector. `columns` are secret: this takes the same time, and touches the same memory,
    /// whichever they are.
    ///
    /// # Panics
    /// If there is not one column for each vector.
    pub fn into_query(mut self, columns: &[u64]) -> (Vec<u32>, PublicKeys, RingKey) {
        assert_eq!(columns.len(), self.lens.len(), "each vector has one wanted column");
        // Δ in the unit of the words. It is a whole number of units, so errors do not depend on the
        // column.
        let delta = DELTA_BITS - (MODULUS_BITS - self.query_bits);
        let mask = low_bits(self.query_bits) as u32;
        let mut words = std::mem::take(&mut *self.words);
        // Comparisons are many times slower than the rest, so there is one for each place within a
        // group, and one for each group.
        let is = |number: usize, other: u64| u32::from((number as u64).ct_eq(&other).unwrap_u8());
        let mut left = &mut words[..];
        for (column, len) in columns.iter().zip(&self.lens) {
            let (vector, others) = left.split_at_mut(*len as usize);
            left = others;
            let (group, within) = (column / GROUP as u64, column % GROUP as u64);
            let deltas: Zeroizing<[u32; GROUP]> =
                Zeroizing::new(std::array::from_fn(|place| is(place, within) << delta));
            for (number, words) in vector.chunks_mut(GROUP).enumerate() {
                let here = is(number, group).wrapping_neg();
                for (word, delta) in words.iter_mut().zip(deltas.iter()) {
                    *word = word.wrapping_add(delta & here) & mask;
                }
            }
        }
        let keys = PublicKeys {
            packing: std::mem::take(&mut *self.packing),
            fold: std::mem::take(&mut *self.fold),
        };
        (words, keys, self.key)
    }
}

fn add_error(mask: u64, error: u32) -> u64 {
    mask.wrapping_add(error as i32 as u64)
}

/// Products of public polynomials with one secret.
struct Masks<'a> {
    kernels: Kernels,
    transform: &'a RingTransform,
    secret: Residues,
    products: Products,
    mask: Zeroizing<Vec<u64>>,
}

impl<'a> Masks<'a> {
    fn new(kernels: Kernels, transform: &'a RingTransform, secret: &[i32]) -> Self {
        let degree = transform.degree();
        let mut residues = Residues::zeroed(degree);
        kernels.ring_forward_small(transform, secret, &mut residues);
        let (products, mask) = (Products::zeroed(degree), Zeroizing::new(vec![0; degree]));
        Self { kernels, transform, secret: residues, products, mask }
    }

    fn of(&mut self, public: &Residues) -> &[u64] {
        let Self { kernels, transform, secret, products, mask } = self;
        kernels.ring_multiply(transform, public, secret, products);
        kernels.ring_inverse(transform, products, mask);
        mask
    }
}

impl RingKey {
    /// The bytes behind symbols of an answer.
    ///
    /// # Panics
    /// If the query had no such vector, the rows reach beyond the block, the mask is not of the
    /// degree, or there are not as many bytes as symbols.
    pub fn decrypt(
        &self,
        kernels: Kernels,
        factors: &EncryptionFactors,
        BlockSymbols { vector, mask, first_row, symbols }: BlockSymbols<'_>,
        bytes: &mut [u8],
    ) {
        let error_sum = self.error_sums[vector];
        let of_errors = error_sum.wrapping_mul(128) << (64 - MODULUS_BITS);
        let byte =
            |fraction: u64| (fraction.wrapping_sub(of_errors).wrapping_add(1 << 55) >> 56) as u8;
        let form = factors.form;
        assert_eq!(mask.len(), form.degree, "a mask has a coefficient for each row");
        assert!(first_row + symbols.len() <= form.degree, "the rows are of one block");
        assert_eq!(symbols.len(), bytes.len(), "there is a byte for each symbol");
        let mask = mask.iter().map(|word| centred(u64::from(*word), form.mask_bits) as i32);
        let mask = Zeroizing::new(mask.collect::<Vec<_>>());
        let removed = Zeroizing::new(match symbols.len() < WHOLE_PRODUCT_ROWS {
            true => self.some_products(&mask, first_row, symbols.len()),
            false => {
                let mut residues = Residues::zeroed(form.degree);
                kernels.ring_forward_small(&factors.transform, &mask, &mut residues);
                let mut masks = Masks::new(kernels, &factors.transform, &self.secret);
                masks.of(&residues)[first_row..][..symbols.len()].to_vec()
            }
        });
        for ((read, symbol), removed) in bytes.iter_mut().zip(symbols).zip(removed.iter()) {
            let symbol = u64::from(*symbol) << (64 - form.answer_bits);
            *read = byte(symbol.wrapping_sub(removed << (64 - form.mask_bits)));
        }
    }

    /// Coefficients of the product of a mask and the secret, one by one.
    fn some_products(&self, mask: &[i32], first: usize, count: usize) -> Vec<u64> {
        // X^u · X^(row - u), and for higher powers X^u · X^(row + d - u) = -X^row. So from high to
        // low powers, the mask goes on with its negative.
        let negative = mask.iter().rev().map(|word| -word);
        let extended: Vec<i32> = mask.iter().rev().copied().chain(negative).collect();
        let coefficient = |row: usize| {
            let from_row = &extended[mask.len() - 1 - row..];
            // At most 2^11 · 2^16.
            let product: i32 = from_row.iter().zip(&**self.secret).map(|(m, s)| m * s).sum();
            i64::from(product) as u64
        };
        (first..first + count).map(coefficient).collect()
    }

    /// The secret, for tests of the noise.
    #[cfg(any(test, feature = "known-answers"))]
    pub fn secret(&self) -> &[i32] {
        &self.secret
    }

    /// The sum of the effective errors of a vector, for tests of the noise.
    #[cfg(any(test, feature = "known-answers"))]
    pub fn error_sum(&self, vector: usize) -> i64 {
        self.error_sums[vector] as i64
    }
}

/// The products of the columns' public polynomials with a secret, for tests of the noise.
#[cfg(test)]
pub(super) fn tests_masks(
    kernels: Kernels,
    factors: &EncryptionFactors,
    secret: &[i32],
) -> Vec<Vec<u64>> {
    let mut masks = Masks::new(kernels, &factors.transform, secret);
    factors.vectors[0].iter().map(|public| masks.of(public).to_vec()).collect()
}
