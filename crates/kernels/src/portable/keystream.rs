//! Counter-mode keystream through the `aes` crate, which uses the processor's AES instructions
//! where it finds them.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

use crate::keystream::{BLOCK_WORDS, GROUP_ROWS};

/// Blocks encrypted in one call of the cipher.
const BATCH: usize = 32;

/// Fills `out` with keystream words from block `first_block` on.
pub(crate) fn aes128_ctr_words(key: &[u8; 16], first_block: u64, out: &mut [u32]) {
    let cipher = Aes128::new(&Array(*key));
    ctr_words(&cipher, first_block, out);
}

fn ctr_words(cipher: &Aes128, first_block: u64, out: &mut [u32]) {
    let mut counter = first_block;
    for words in out.chunks_mut(BATCH * BLOCK_WORDS) {
        let mut blocks = [Array([0u8; 16]); BATCH];
        let blocks = &mut blocks[..words.len().div_ceil(BLOCK_WORDS)];
        for block in blocks.iter_mut() {
            block[..8].copy_from_slice(&counter.to_le_bytes());
            counter = counter.wrapping_add(1);
        }
        cipher.encrypt_blocks(blocks);
        for (words, block) in words.chunks_mut(BLOCK_WORDS).zip(blocks.iter()) {
            for (word, bytes) in words.iter_mut().zip(block.0.as_chunks::<4>().0) {
                *word = u32::from_le_bytes(*bytes);
            }
        }
    }
}

/// The product of consecutive rows of keystream, the first at block `first_block`, with `vector`.
pub(crate) fn keystream_times_vector(
    key: &[u8; 16],
    first_block: u64,
    vector: &[u32],
    out: &mut [u32],
) {
    let cipher = Aes128::new(&Array(*key));
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
    let cipher = Aes128::new(&Array(*key));
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
