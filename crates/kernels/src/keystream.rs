//! AES-128 in counter mode as a public matrix that is expanded when needed and never stored.
//!
//! Lattice-based schemes need a large public random matrix `A`. Server and client derive it from
//! one short public seed: word `w` of the keystream under a public key is word `w % 4` of the
//! encryption of counter block `w / 4`. Counter block `i` is the 64-bit little-endian `i` followed
//! by eight zero bytes, and words are little-endian. Row `j` of a matrix of `width` columns is the
//! `width` words from `j * width` on.
//!
//! **Keys of matrices are public.** The keystream alone ([`Kernels::aes128_ctr_words`]) also
//! expands secret seeds: in that function the expanded key is erased, and no branch or address
//! depends on it. Do not use this module to encrypt.

use crate::dispatch::Kernels;
use crate::dispatch::on_arm;
use crate::threads;

/// Words of one AES block.
pub(crate) const BLOCK_WORDS: usize = 4;

/// The number of rows whose words, for all vectors, lie side by side in
/// [`Kernels::vectors_times_keystream`].
pub(crate) const GROUP_ROWS: usize = 8;

/// Columns that one thread takes at a time there.
const COLUMNS_PER_ITEM: usize = 64;

impl Kernels {
    /// Fills `out` with keystream words from block `first_block` on. Any length: words of the last
    /// block that do not fit are dropped. The counter wraps after 2⁶⁴ − 1.
    pub fn aes128_ctr_words(self, key: &[u8; 16], first_block: u64, out: &mut [u32]) {
        on_arm!(self, keystream::aes128_ctr_words(key, first_block, out));
    }

    /// `out[j] = Σ_k A[j][k] · vector[k]` modulo 2³², where `A[j]` is row `first_row + j` of the
    /// keystream matrix with `vector.len()` columns. The matrix passes through registers and is not
    /// stored. Block counters wrap at 2⁶⁴.
    ///
    /// `vector` may be secret: no branch and no address depends on its words, and the copies made
    /// of it are erased.
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
        on_arm!(self, keystream::keystream_times_vector(key, first_block, vector, out));
    }

    /// `out[k][c] += Σ_r vectors[k][r] · A[first_row + r][c]` modulo 2³² for all `k`, where `A` is
    /// the keystream matrix with `width` columns. It is generated once for all vectors, passes
    /// through registers and is not stored. Block counters wrap at 2⁶⁴. Uses up to `threads`
    /// threads, 64 columns each at a time.
    ///
    /// No branch and no address depends on the words of the vectors, but the copies of them are not
    /// erased.
    ///
    /// # Panics
    ///
    /// If `width` is not a multiple of 4, there are not as many outputs as vectors, the vectors
    /// differ in length, or an output's length is not `width`.
    pub fn vectors_times_keystream(
        self,
        key: &[u8; 16],
        first_row: u64,
        width: usize,
        vectors: &[&[u32]],
        out: &mut [&mut [u32]],
        threads: usize,
    ) {
        assert!(
            width.is_multiple_of(BLOCK_WORDS),
            "rows of the keystream matrix are whole blocks of 4 words"
        );
        assert_eq!(vectors.len(), out.len(), "one output for each vector");
        let rows = vectors.first().map_or(0, |vector| vector.len());
        for (vector, out) in vectors.iter().zip(out.iter()) {
            assert_eq!(vector.len(), rows, "all vectors have the same length");
            assert_eq!(out.len(), width, "an output has one word for each column");
        }
        if rows == 0 {
            return;
        }
        let groups = groups_of_rows(vectors, rows);
        let row_blocks = (width / BLOCK_WORDS) as u64;
        let first_block = first_row.wrapping_mul(row_blocks);
        let mut items: Vec<(u64, Vec<&mut [u32]>)> = (0..width)
            .step_by(COLUMNS_PER_ITEM)
            .map(|column| (first_block.wrapping_add((column / BLOCK_WORDS) as u64), Vec::new()))
            .collect();
        for out in out.iter_mut() {
            let pieces = out.chunks_mut(COLUMNS_PER_ITEM);
            items.iter_mut().zip(pieces).for_each(|((_, item), piece)| item.push(piece));
        }
        threads::for_each(threads, items, |(block, mut out)| {
            on_arm!(
                self,
                keystream::vectors_times_keystream(key, block, row_blocks, &groups, &mut out)
            );
        });
    }

    /// `out[j] = Σ_k matrix[j * width + k] · vector[k]` modulo 2³², with `width = vector.len()`:
    /// the product of a row-major matrix of words with a vector, which may be secret.
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
        on_arm!(self, keystream::words_times_vector(matrix, vector, out));
    }
}

/// The vectors' words by group of rows, then by vector. The last group is padded with zeros. This
/// order is needed because vectors often have a power of two of words: reads at such distances
/// would compete for the same few cache lines.
fn groups_of_rows(vectors: &[&[u32]], rows: usize) -> Vec<[u32; GROUP_ROWS]> {
    let mut groups = Vec::with_capacity(rows.div_ceil(GROUP_ROWS) * vectors.len());
    for first in (0..rows).step_by(GROUP_ROWS) {
        let end = rows.min(first + GROUP_ROWS);
        groups.extend(vectors.iter().map(|vector| {
            let mut group = [0; GROUP_ROWS];
            group[..end - first].copy_from_slice(&vector[first..end]);
            group
        }));
    }
    groups
}
