//! The public polynomials: uniform modulo q, expanded from seeds by AES-128 in counter mode.

use super::{Form, MODULUS_BITS, centred};
use crate::PublicSeed;
use privet_kernels::Kernels;

/// A sequence of uniform polynomials modulo q that a seed expands to. Eight bytes of the keystream
/// make one coefficient: a little-endian number, of which the lowest 50 bits count.
#[derive(Clone, Debug)]
pub struct PublicPolynomials {
    key: [u8; 16],
}

impl PublicPolynomials {
    /// The sequence that `seed` expands to.
    pub fn new(seed: &PublicSeed) -> Self {
        Self { key: seed.aes_key() }
    }

    /// The first `count` polynomials of a degree, one after another. Coefficients are nearest to
    /// zero, from −2^49 to 2^49 − 1.
    pub fn first(&self, kernels: Kernels, degree: usize, count: usize) -> Vec<i64> {
        let mut words = vec![0; 2 * degree * count];
        kernels.aes128_ctr_words(&self.key, 0, &mut words);
        let pairs = words.as_chunks::<2>().0.iter();
        pairs
            .map(|[low, high]| centred(u64::from(*low) | u64::from(*high) << 32, MODULUS_BITS))
            .collect()
    }
}

/// All public polynomials of a table, the same for all clients and all versions of it. Their
/// coefficients are nearest to zero.
pub struct PublicCoefficients {
    /// The polynomials that mask the columns, one after another: enough for all columns.
    pub columns: Vec<i64>,
    /// The one of the packing key.
    pub packing: Vec<i64>,
    /// The one of the fold key.
    pub fold: Vec<i64>,
}

impl PublicCoefficients {
    /// The polynomials for `columns` columns, from three sequences: those that mask columns, and
    /// those of the two keys.
    pub fn expand(
        kernels: Kernels,
        form: Form,
        columns: u64,
        [of_columns, of_packing, of_fold]: &[PublicPolynomials; 3],
    ) -> Self {
        let polynomials = columns.div_ceil(form.degree as u64) as usize;
        Self {
            columns: of_columns.first(kernels, form.degree, polynomials),
            packing: of_packing.first(kernels, form.degree, 1),
            fold: of_fold.first(kernels, form.degree, 1),
        }
    }
}
