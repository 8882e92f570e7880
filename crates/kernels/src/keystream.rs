//! AES-128 in counter mode as a public matrix that is expanded when needed and never stored.
//!
//! Lattice-based schemes need a large public random matrix `A`. Server and client derive it from one
//! short public seed: word `w` of the keystream under a public key is word `w % 4` of the encryption of
//! counter block `w / 4`, where counter block `i` is the 64-bit little-endian `i` followed by eight zero
//! bytes, and words are little-endian. Row `j` of a matrix of `width` columns is the `width` words from
//! `j * width` on.
//!
//! **Keys are public here.** They are not erased from memory, and the portable arm is whatever the `aes`
//! crate chooses. Do not use this module to encrypt.

use crate::dispatch::Kernels;

/// Words of one AES block.
pub(crate) const BLOCK_WORDS: usize = 4;

impl Kernels {
    /// Fills `out` with keystream words from block `first_block` on. Any length: words of the last
    /// block that do not fit are dropped. The counter wraps after 2⁶⁴ − 1.
    pub fn aes128_ctr_words(self, key: &[u8; 16], first_block: u64, out: &mut [u32]) {
        self.aes128_ctr_words_dispatch(key, first_block, out);
    }

    /// `out[j] = Σ_k A[j][k] · vector[k]` modulo 2³², where `A[j]` is row `first_row + j` of the
    /// keystream matrix with `vector.len()` columns. The matrix passes through registers and is not
    /// stored. Block counters wrap at 2⁶⁴.
    ///
    /// `vector` may be secret: no branch and no address depends on its words, and the copies made of it
    /// are erased.
    ///
    /// # Panics
    ///
    /// If `vector.len()` is not a multiple of 4.
    pub fn keystream_times_vector(
        self,
        key: &[u8; 16],
        first_row: u64,
        vector: &[u32],
        out: &mut [u32],
    ) {
        assert!(
            vector.len().is_multiple_of(BLOCK_WORDS),
            "rows of the keystream matrix are whole blocks of 4 words"
        );
        let first_block = first_row.wrapping_mul((vector.len() / BLOCK_WORDS) as u64);
        self.keystream_times_vector_dispatch(key, first_block, vector, out);
    }

    /// `out[j] = Σ_k matrix[j * width + k] · vector[k]` modulo 2³², with `width = vector.len()`: the
    /// product of a row-major matrix of words with a vector, which may be secret.
    ///
    /// # Panics
    ///
    /// If `matrix.len()` is not `out.len() * vector.len()`.
    pub fn words_times_vector(self, matrix: &[u32], vector: &[u32], out: &mut [u32]) {
        assert_eq!(
            Some(matrix.len()),
            out.len().checked_mul(vector.len()),
            "a matrix has one row for each output word and one column for each word of the vector"
        );
        self.words_times_vector_dispatch(matrix, vector, out);
    }
}
