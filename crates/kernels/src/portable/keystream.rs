//! Counter-mode keystream through the `aes` crate, which uses the processor's AES instructions
//! where it finds them. In WebAssembly there are none, and that crate does not use vectors.

use crate::keystream::{BLOCK_WORDS, GROUP_ROWS};
use cipher::{BATCH, Cipher};

/// Fills `out` with keystream words from block `first_block` on.
pub(crate) fn aes128_ctr_words(key: &[u8; 16], first_block: u64, out: &mut [u32]) {
    ctr_words(&Cipher::new(key), first_block, out);
}

fn ctr_words(cipher: &Cipher, first_block: u64, out: &mut [u32]) {
    let mut block = first_block;
    for words in out.chunks_mut(BATCH * BLOCK_WORDS) {
        cipher.batch(block, words);
        block = block.wrapping_add(BATCH as u64);
    }
}

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
mod cipher {
    use super::BLOCK_WORDS;
    use aes::Aes128;
    use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

    /// Blocks encrypted in one call of the cipher.
    pub(super) const BATCH: usize = 32;

    pub(super) struct Cipher(Aes128);

    impl Cipher {
        pub(super) fn new(key: &[u8; 16]) -> Self {
            Self(Aes128::new(&Array(*key)))
        }

        /// Fills `words` from block `first` on, with [`BATCH`] blocks at most.
        pub(super) fn batch(&self, first: u64, words: &mut [u32]) {
            let mut blocks = [Array([0u8; 16]); BATCH];
            let blocks = &mut blocks[..words.len().div_ceil(BLOCK_WORDS)];
            for (number, block) in (0..).zip(blocks.iter_mut()) {
                block[..8].copy_from_slice(&first.wrapping_add(number).to_le_bytes());
            }
            self.0.encrypt_blocks(blocks);
            for (words, block) in words.chunks_mut(BLOCK_WORDS).zip(blocks.iter()) {
                for (word, bytes) in words.iter_mut().zip(block.0.as_chunks::<4>().0) {
                    *word = u32::from_le_bytes(*bytes);
                }
            }
        }
    }
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod cipher {
    use super::BLOCK_WORDS;
    use crate::wasm32::aes::{Aes128, LANES};
    use core::arch::wasm32::{u32x4_extract_lane, u64x2, v128};

    /// Blocks encrypted in one call of the cipher.
    pub(super) const BATCH: usize = LANES;

    pub(super) struct Cipher(Aes128);

    impl Cipher {
        pub(super) fn new(key: &[u8; 16]) -> Self {
            Self(Aes128::new(key))
        }

        /// Fills `words` from block `first` on, with [`BATCH`] blocks at most.
        #[inline]
        pub(super) fn batch(&self, first: u64, words: &mut [u32]) {
            let counter = |block| u64x2(first.wrapping_add(block as u64), 0);
            let blocks = self.0.encrypt(std::array::from_fn(counter));
            let (whole, rest) = words.as_chunks_mut::<BLOCK_WORDS>();
            let last = blocks.get(whole.len());
            for (words, block) in whole.iter_mut().zip(blocks) {
                *words = words_of(block);
            }
            if let Some(last) = last {
                rest.copy_from_slice(&words_of(*last)[..rest.len()]);
            }
        }
    }

    #[inline(always)]
    fn words_of(block: v128) -> [u32; BLOCK_WORDS] {
        [
            u32x4_extract_lane::<0>(block),
            u32x4_extract_lane::<1>(block),
            u32x4_extract_lane::<2>(block),
            u32x4_extract_lane::<3>(block),
        ]
    }
}

/// The product of consecutive rows of keystream, the first at block `first_block`, with `vector`.
pub(crate) fn keystream_times_vector(
    key: &[u8; 16],
    first_block: u64,
    vector: &[u32],
    out: &mut [u32],
) {
    let cipher = Cipher::new(key);
    let mut words = [0u32; 4 * BATCH * BLOCK_WORDS];
    let mut block = first_block;
    for out in out {
        *out = 0;
        for piece in vector.chunks(words.len()) {
            let words = &mut words[..piece.len()];
            ctr_words(&cipher, block, words);
            block = block.wrapping_add((piece.len() / BLOCK_WORDS) as u64);
            *out = out.wrapping_add(dot(words, piece));
        }
    }
}

/// Adds to each of `out` the product of one vector with some columns of consecutive rows of
/// keystream. The first word of `out` belongs to the column that begins at block `first_block` in
/// the first row. Rows are `row_blocks` blocks apart. All of `out` are equally long. `vectors` has
/// the words of all vectors for the first rows, then for the next rows, and so on.
pub(crate) fn vectors_times_keystream(
    key: &[u8; 16],
    first_block: u64,
    row_blocks: u64,
    vectors: &[[u32; GROUP_ROWS]],
    out: &mut [&mut [u32]],
) {
    let cipher = Cipher::new(key);
    let columns = out.first().map_or(0, |out| out.len());
    let mut words = vec![0; columns];
    let mut block = first_block;
    for group in vectors.chunks_exact(out.len().max(1)) {
        for row in 0..GROUP_ROWS {
            ctr_words(&cipher, block, &mut words);
            block = block.wrapping_add(row_blocks);
            for (out, vector) in out.iter_mut().zip(group) {
                for (out, word) in out.iter_mut().zip(&words) {
                    *out = out.wrapping_add(word.wrapping_mul(vector[row]));
                }
            }
        }
    }
}

/// The product of a row-major matrix with `vector`.
pub(crate) fn words_times_vector(matrix: &[u32], vector: &[u32], out: &mut [u32]) {
    for (j, out) in out.iter_mut().enumerate() {
        *out = dot(&matrix[j * vector.len()..(j + 1) * vector.len()], vector);
    }
}

fn dot(row: &[u32], vector: &[u32]) -> u32 {
    row.iter().zip(vector).fold(0, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(*b)))
}
