//! Counter-mode keystream with AES-NI: eight blocks at a time, because a round takes several
//! cycles, but a new one can begin in each cycle.

use std::arch::x86_64::*;

pub(crate) use crate::x86_64::keystream::avx2::words_times_vector;

use super::{load, store};
use crate::keystream::{BLOCK_WORDS, GROUP_ROWS};
use crate::x86_64::aes_key::round_keys;
use crate::x86_64::keystream::dot;
use crate::x86_64::vectors::Avx2;
use zeroize::Zeroizing;

/// The number of blocks that are computed at a time.
pub(super) const LANES: usize = 8;
/// Words of keystream that [`keystream_times_vector`] makes at a time: 4 KiB, well within the
/// first-level cache. Sixteen registers are too few to multiply without storing.
const BUFFER: usize = 1024;

/// Encrypts the counter blocks `counter..counter + 8` and advances the counter.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(super) fn encrypt_counters(keys: &[__m128i; 11], counter: &mut __m128i) -> [__m128i; LANES] {
    let one = _mm_set_epi64x(0, 1);
    let mut blocks = [*counter; LANES];
    for block in &mut blocks {
        *block = *counter;
        *counter = _mm_add_epi64(*counter, one);
    }
    encrypt([keys; 2], &mut blocks);
    blocks
}

/// Encrypts the blocks, those at even places under the first key.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(super) fn encrypt<const BLOCKS: usize>(
    keys: [&[__m128i; 11]; 2],
    blocks: &mut [__m128i; BLOCKS],
) {
    for i in 0..BLOCKS {
        blocks[i] = _mm_xor_si128(blocks[i], keys[i % 2][0]);
    }
    for (even, odd) in keys[0][1..10].iter().zip(&keys[1][1..10]) {
        let round = [*even, *odd];
        for i in 0..BLOCKS {
            blocks[i] = _mm_aesenc_si128(blocks[i], round[i % 2]);
        }
    }
    for i in 0..BLOCKS {
        blocks[i] = _mm_aesenclast_si128(blocks[i], keys[i % 2][10]);
    }
}

/// See [`crate::portable::keystream::aes128_ctr_words`].
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(crate) fn aes128_ctr_words(key: &[u8; 16], first_block: u64, out: &mut [u32]) {
    ctr_words(&Zeroizing::new(round_keys(key)), first_block, out);
}

#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn ctr_words(keys: &[__m128i; 11], first_block: u64, out: &mut [u32]) {
    const BATCH: usize = LANES * BLOCK_WORDS;
    let mut counter = _mm_set_epi64x(0, first_block as i64);
    let (batches, rest) = out.as_chunks_mut::<BATCH>();
    for batch in batches {
        store_blocks(batch, encrypt_counters(keys, &mut counter));
    }
    if !rest.is_empty() {
        let mut batch = [0; BATCH];
        store_blocks(&mut batch, encrypt_counters(keys, &mut counter));
        rest.copy_from_slice(&batch[..rest.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(super) fn store_blocks(words: &mut [u32; LANES * BLOCK_WORDS], blocks: [__m128i; LANES]) {
    let pairs = blocks.as_chunks::<2>().0;
    for (words, [low, high]) in words.as_chunks_mut::<8>().0.iter_mut().zip(pairs) {
        store(words, _mm256_set_m128i(*high, *low));
    }
}

/// See [`crate::portable::keystream::keystream_times_vector`].
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(crate) fn keystream_times_vector(
    key: &[u8; 16],
    first_block: u64,
    vector: &[u32],
    out: &mut [u32],
) {
    let arm = Avx2::new();
    let keys = round_keys(key);
    let mut buffer = [0; BUFFER];
    let mut block = first_block;
    // Several short rows at a time, or one long row in pieces.
    let rows_at_a_time = (BUFFER / vector.len().max(1)).max(1);
    for out in out.chunks_mut(rows_at_a_time) {
        out.fill(0);
        for vector in vector.chunks(BUFFER) {
            let words = &mut buffer[..out.len() * vector.len()];
            ctr_words(&keys, block, words);
            block = block.wrapping_add((words.len() / BLOCK_WORDS) as u64);
            for (out, row) in out.iter_mut().zip(words.chunks(vector.len())) {
                *out = out.wrapping_add(dot(arm, row, vector));
            }
        }
    }
}

/// See [`crate::portable::keystream::vectors_times_keystream`].
///
/// Makes eight columns of half a group of rows at a time, and multiplies them with all vectors. A
/// row's last four columns may extend into the next row; that part is dropped.
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(crate) fn vectors_times_keystream(
    key: &[u8; 16],
    first_block: u64,
    row_blocks: u64,
    vectors: &[[u32; GROUP_ROWS]],
    out: &mut [&mut [u32]],
) {
    const ROWS: usize = GROUP_ROWS / 2;
    const WORDS: usize = 2 * BLOCK_WORDS;
    let keys = round_keys(key);
    let tiles = out.first().map_or(0, |out| out.len().div_ceil(WORDS));
    let mut sums = vec![[0; WORDS]; tiles * out.len()];
    let mut block = first_block;
    for group in vectors.chunks_exact(out.len().max(1)) {
        for half in 0..2 {
            for (tile, sums) in sums.chunks_exact_mut(out.len()).enumerate() {
                let mut blocks = [_mm_setzero_si128(); 2 * ROWS];
                let mut number = block.wrapping_add(2 * tile as u64);
                for row in blocks.as_chunks_mut::<2>().0 {
                    row[0] = _mm_set_epi64x(0, number as i64);
                    row[1] = _mm_set_epi64x(0, number.wrapping_add(1) as i64);
                    number = number.wrapping_add(row_blocks);
                }
                encrypt([&keys; 2], &mut blocks);
                let mut rows = [_mm256_setzero_si256(); ROWS];
                for r in 0..ROWS {
                    rows[r] = _mm256_set_m128i(blocks[2 * r + 1], blocks[2 * r]);
                }
                for (sums, words) in sums.iter_mut().zip(group) {
                    let mut sum = load(sums);
                    for r in 0..ROWS {
                        let word = _mm256_set1_epi32(words[half * ROWS + r] as i32);
                        sum = _mm256_add_epi32(sum, _mm256_mullo_epi32(rows[r], word));
                    }
                    store(sums, sum);
                }
            }
            block = block.wrapping_add(row_blocks.wrapping_mul(ROWS as u64));
        }
    }
    for (tile, sums) in sums.chunks_exact(out.len().max(1)).enumerate() {
        for (out, sums) in out.iter_mut().zip(sums) {
            for (out, sum) in out[tile * WORDS..].iter_mut().zip(sums) {
                *out = out.wrapping_add(*sum);
            }
        }
    }
}
