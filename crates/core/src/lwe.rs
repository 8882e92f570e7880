//! Learning with errors (LWE): Regev encryption of unit vectors, as SimplePIR uses it.
//!
//! A client that wants column `c` of a byte matrix `D` (rows × columns) sends `A·s + e + Δ·u_c`,
//! one word modulo q = 2^32 for each column. Here `A` is public, `s` is a fresh uniform secret, `e`
//! is a small error and `u_c` is the unit vector. The server multiplies by `D`. The client knows
//! `D·A` beforehand (the *hint*), so it can remove the mask, and keeps `Δ·D_c` plus noise.
//!
//! # Parameters
//! Secret dimension 1024, q = 2^32, secret uniform modulo q. The plaintext modulus is 256: one
//! symbol is one byte of the table, so Δ = q/256 = 2^24. The error is a discrete Gaussian. Its
//! standard deviation σ follows from the number of columns ([`EncryptionParameters`]): it is as
//! large as decryption allows, because a wider error is harder to attack. By the estimate in
//! `vectors/estimate_lwe.py` (primal attacks uSVP and BDD, cost model MATZOV) an attacker must
//! compute
//!
//! | columns | σ | gates |
//! |---|---|---|
//! | up to 38,672 | 34.84 | 2^145 |
//! | up to 65,742 | 26.72 | 2^141 |
//! | up to 131,485 | 18.89 | 2^136 |
//! | up to 262,144 ([`MAX_COLUMNS`]) | 11.95 | 2^129 |
//!
//! More columns, and errors below 128 bits, are refused. At DoublePIR's second level, 4100 bytes
//! must be decrypted rightly for each byte of a record. So its narrower errors begin at somewhat
//! fewer columns.
//!
//! # One matrix for all
//! A is the same for every lookup of every client in every version of a table, because the hint is
//! made from it. So an attacker can use one reduction of its lattice, the larger part of BDD's
//! cost, for all of them. The figures above are the cost of the *first* lookup.
//! `vectors/lwe_security.json` has the cost of each further lookup after a larger reduction: with σ
//! = 34.84, 2^146 gates each after a reduction of 2^144 gates, and 2^91 each after one of 2^160. A
//! matrix for each client would need a hint for each client, computed by the server. The shared
//! matrix is accepted here because the first lookup already costs more than 2^128.
//!
//! # Correctness
//! The server multiplies raw bytes `D_ij` in [0, 255]. The client knows its own errors, so it
//! subtracts `128·Σ_j e_j`. That leaves the noise `Σ_j (D_ij − 128)·e_j` of *centred* bytes, which
//! are at most 128 in absolute value. (Without the centring, the noise would be twice as large.)
//! That sum is sub-Gaussian with parameter at most 128·σ·√columns, whatever the table holds.
//! Decryption fails only if it reaches Δ/2 = 2^23 ([`failure_bound_log2`]). That has probability at
//! most 2^-65 for each byte of a record at each level of encryption, and so at most 2^-64 for both
//! levels. On a table of uniform bytes the noise is smaller by √3.

mod error_sampler;
mod parameters;

pub use error_sampler::sample_errors;
pub use parameters::{
    ERROR_WIDTHS, EncryptionParameters, ErrorWidth, LEAST_SECURITY_BITS, LEVEL_FAILURE_LOG2,
    MAX_COLUMNS, failure_bound_log2,
};

use crate::{Error, PublicSeed, Result, SecretRng};
use privet_kernels::Kernels;
use privet_kernels::byte_matrix::TiledBytes;
use privet_kernels::memory::HugeBuffer;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Words in an LWE secret.
pub const SECRET_DIMENSION: usize = 1024;

/// log2 of Δ = q / 256.
const DELTA_BITS: u32 = 24;

/// The public matrix A: one row of [`SECRET_DIMENSION`] words per column of the table, expanded
/// from a seed by AES-128 in counter mode, never stored.
#[derive(Clone, Debug)]
pub struct PublicMatrix {
    key: [u8; 16],
}

impl PublicMatrix {
    /// The matrix that `seed` expands to.
    pub fn new(seed: &PublicSeed) -> Self {
        Self { key: seed.aes_key() }
    }

    /// Writes rows `first_row ..` of A, [`SECRET_DIMENSION`] words each, until `out` is full.
    pub fn rows(&self, kernels: Kernels, first_row: u64, out: &mut [u32]) {
        const BLOCKS_PER_ROW: u64 = SECRET_DIMENSION as u64 / 4;
        kernels.aes128_ctr_words(&self.key, first_row * BLOCKS_PER_ROW, out);
    }

    /// `D·A`, row-major, [`SECRET_DIMENSION`] words for each row of `bytes`: a public hint.
    /// `progress` is called with the share done, from 0 to 1.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if there is not enough memory.
    pub fn left_product(
        &self,
        kernels: Kernels,
        bytes: &TiledBytes,
        threads: usize,
        progress: impl Fn(f64) + Sync,
    ) -> Result<HugeBuffer<u32>> {
        let no_memory =
            |error| Error::unavailable("no memory to compute the hint").caused_by(error);
        let mut hint =
            HugeBuffer::new_zeroed(bytes.rows() * SECRET_DIMENSION).map_err(no_memory)?;
        let rows =
            |first: usize, _count: usize, out: &mut [u32]| self.rows(kernels, first as u64, out);
        kernels
            .multiply_matrix(bytes, SECRET_DIMENSION, rows, &mut hint, threads, progress)
            .map_err(no_memory)?;
        Ok(hint)
    }

    /// Adds `weights[k] · A` to `out[k]` for all `k`. Each result is a row of [`SECRET_DIMENSION`]
    /// words: the sum of the matrix's first rows, each multiplied by a word of `weights[k]`.
    pub fn add_weighted_rows(
        &self,
        kernels: Kernels,
        weights: &[&[u32]],
        out: &mut [&mut [u32]],
        threads: usize,
    ) {
        kernels.vectors_times_keystream(&self.key, 0, SECRET_DIMENSION, weights, out, threads);
    }

    /// A·s: one word for each entry of `out`.
    fn times_secret(&self, kernels: Kernels, secret: &[u32], out: &mut [u32]) {
        kernels.keystream_times_vector(&self.key, 0, secret, out);
    }
}

/// The client's key for the answer to one encrypted unit vector: the secret and the sum of its
/// errors. Erased when dropped.
#[derive(Clone)]
pub struct DecryptionKey {
    secret: Zeroizing<Vec<u32>>,
    /// One word, on the heap: moving the key leaves no copy of it behind.
    error_sum: Zeroizing<Box<[u32]>>,
}

impl DecryptionKey {
    /// The secret vector `s`, to be multiplied with rows of the hint.
    pub fn secret(&self) -> &[u32] {
        &self.secret
    }

    /// The table byte behind one word of the answer, given the same row of hint times secret.
    pub fn decrypt(&self, answer: u32, hint_times_secret: u32) -> u8 {
        let centred = answer
            .wrapping_sub(hint_times_secret)
            .wrapping_sub(self.error_sum[0].wrapping_mul(128));
        (centred.wrapping_add(1 << (DELTA_BITS - 1)) >> DELTA_BITS) as u8
    }

    /// The noise of an answer word: the rest after its byte is subtracted. For tests of its
    /// distribution.
    #[cfg(test)]
    fn noise(&self, answer: u32, hint_times_secret: u32, byte: u8) -> i32 {
        answer
            .wrapping_sub(hint_times_secret)
            .wrapping_sub(self.error_sum[0].wrapping_mul(128))
            .wrapping_sub(u32::from(byte) << DELTA_BITS) as i32
    }
}

/// An encryption of the zero vector, `A·s + e`, which becomes that of one unit vector. It is secret
/// until then: its difference from the query that is made of it says what is looked up. Erased when
/// dropped.
pub struct ZeroVector {
    words: Zeroizing<Vec<u32>>,
    key: DecryptionKey,
}

/// Encrypts the zero vector of `parameters.columns()` entries, under a fresh secret. Takes long;
/// the rest of a query does not.
pub fn encrypt_zero_vector(
    kernels: Kernels,
    matrix: &PublicMatrix,
    parameters: EncryptionParameters,
    rng: &mut SecretRng,
) -> ZeroVector {
    let mut secret = Zeroizing::new(vec![0u32; SECRET_DIMENSION]);
    rng.fill_words(&mut secret);
    let mut errors = Zeroizing::new(vec![0u32; parameters.columns() as usize]);
    sample_errors(kernels, parameters.error(), rng, &mut errors);
    ZeroVector::with(kernels, matrix, secret, &errors)
}

impl ZeroVector {
    fn with(
        kernels: Kernels,
        matrix: &PublicMatrix,
        secret: Zeroizing<Vec<u32>>,
        errors: &[u32],
    ) -> Self {
        let mut words = Zeroizing::new(vec![0u32; errors.len()]);
        matrix.times_secret(kernels, &secret, &mut words);
        let mut error_sum: Zeroizing<Box<[u32]>> = Zeroizing::new(Box::from([0]));
        for (word, error) in words.iter_mut().zip(errors) {
            *word = word.wrapping_add(*error);
            error_sum[0] = error_sum[0].wrapping_add(*error);
        }
        Self { words, key: DecryptionKey { secret, error_sum } }
    }

    /// Checks that this was made with such parameters.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if it was made for another number of columns.
    pub fn check(&self, parameters: EncryptionParameters) -> Result<()> {
        match self.words.len() as u64 == parameters.columns() {
            true => Ok(()),
            false => Err(Error::api_misuse("a query was made ahead for a table of another size")),
        }
    }

    /// The same once more, for rehearsals, whose queries are never sent: two queries of one
    /// encryption would say what both ask for.
    pub fn copy_to_rehearse(&self) -> Self {
        Self { words: self.words.clone(), key: self.key.clone() }
    }

    /// An encryption of the unit vector whose 1 is at `column`, a secret. Takes the same time, and
    /// touches the same memory, for every `column`.
    pub fn into_unit_vector(mut self, column: u64) -> (Vec<u32>, DecryptionKey) {
        let mut query = std::mem::take(&mut *self.words);
        for (place, word) in (0u64..).zip(&mut query) {
            let wanted = u32::from(place.ct_eq(&column).unwrap_u8());
            *word = word.wrapping_add(wanted << DELTA_BITS);
        }
        (query, self.key)
    }
}

#[cfg(test)]
mod tests;
