//! Counter-mode keystream with vector AES: four blocks in a vector, eight vectors at a time,
//! because a round takes several cycles, but a new one can begin in each cycle.

use std::arch::x86_64::*;

pub(crate) use crate::x86_64::keystream::avx512::words_times_vector;

use zeroize::{Zeroize, Zeroizing};

use super::{load, store};
use crate::keystream::{BLOCK_WORDS, GROUP_ROWS};
use crate::x86_64::aes_key::round_keys;

/// The number of vectors that are computed at a time.
pub(super) const LANES: usize = 8;
/// Blocks of one vector.
pub(super) const VECTOR_BLOCKS: usize = 4;
/// Words of one vector.
const VECTOR_WORDS: usize = VECTOR_BLOCKS * BLOCK_WORDS;
/// How many rows of the keystream matrix are multiplied at a time: one vector of each.
const ROWS: usize = LANES;

/// An expanded key, each round key in all four lanes. Erased when dropped.
pub(crate) struct Cipher {
    pub(in crate::x86_64) keys: [__m512i; 11],
}

impl Drop for Cipher {
    fn drop(&mut self) {
        self.keys.zeroize();
    }
}

impl Cipher {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
    pub(in crate::x86_64) fn new(key: &[u8; 16]) -> Cipher {
        let narrow = round_keys(key);
        let mut keys = [_mm512_setzero_si512(); 11];
        for r in 0..11 {
            keys[r] = _mm512_broadcast_i32x4(narrow[r]);
        }
        Cipher { keys }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
    pub(super) fn encrypt<const VECTORS: usize>(&self, blocks: &mut [__m512i; VECTORS]) {
        for block in blocks.iter_mut() {
            *block = _mm512_xor_si512(*block, self.keys[0]);
        }
        for key in &self.keys[1..10] {
            for block in blocks.iter_mut() {
                *block = _mm512_aesenc_epi128(*block, *key);
            }
        }
        for block in blocks.iter_mut() {
            *block = _mm512_aesenclast_epi128(*block, self.keys[10]);
        }
    }
}

/// The counter blocks `block..block + 4`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
pub(super) fn counters(block: u64) -> __m512i {
    _mm512_add_epi64(each_block(block), _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0))
}

/// The same number in the counter half of four blocks.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
pub(super) fn each_block(number: u64) -> __m512i {
    let number = number as i64;
    _mm512_set_epi64(0, number, 0, number, 0, number, 0, number)
}

/// See [`crate::portable::keystream::aes128_ctr_words`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
pub(crate) fn aes128_ctr_words(key: &[u8; 16], first_block: u64, out: &mut [u32]) {
    const BATCH: usize = LANES * VECTOR_WORDS;
    let cipher = Cipher::new(key);
    let mut counter = counters(first_block);
    let step = each_block(VECTOR_BLOCKS as u64);
    let (batches, rest) = out.as_chunks_mut::<BATCH>();
    for batch in batches {
        keystream_batch(&cipher, &mut counter, step, batch);
    }
    if !rest.is_empty() {
        let mut batch = Zeroizing::new([0; BATCH]);
        keystream_batch(&cipher, &mut counter, step, &mut batch);
        rest.copy_from_slice(&batch[..rest.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn keystream_batch(
    cipher: &Cipher,
    counter: &mut __m512i,
    step: __m512i,
    out: &mut [u32; LANES * VECTOR_WORDS],
) {
    let mut blocks = [_mm512_setzero_si512(); LANES];
    for block in &mut blocks {
        *block = *counter;
        *counter = _mm512_add_epi64(*counter, step);
    }
    cipher.encrypt(&mut blocks);
    for (words, block) in out.as_chunks_mut::<VECTOR_WORDS>().0.iter_mut().zip(blocks) {
        store(words, block);
    }
}

/// See [`crate::portable::keystream::keystream_times_vector`].
///
/// Eight rows advance together, 16 columns at a time. If the number of columns is not a multiple of
/// 16, a row extends into the next row's keystream; there the vector's copy is padded with zeros.
/// The last rows are also computed eight at a time, and the surplus is dropped.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
pub(crate) fn keystream_times_vector(
    key: &[u8; 16],
    first_block: u64,
    vector: &[u32],
    out: &mut [u32],
) {
    let cipher = Cipher::new(key);
    let row_blocks = (vector.len() / BLOCK_WORDS) as u64;
    let mut padded =
        Zeroizing::new(vec![[0u32; VECTOR_WORDS]; vector.len().div_ceil(VECTOR_WORDS)]);
    padded.as_flattened_mut()[..vector.len()].copy_from_slice(vector);

    let mut row_offset = [_mm512_setzero_si512(); ROWS];
    for (r, offset) in row_offset.iter_mut().enumerate() {
        *offset = each_block(row_blocks.wrapping_mul(r as u64));
    }
    let step = each_block(VECTOR_BLOCKS as u64);
    let mut block = first_block;
    for out in out.chunks_mut(ROWS) {
        let mut counter = counters(block);
        let mut sum = [_mm512_setzero_si512(); ROWS];
        for words in padded.iter() {
            let words = load(words);
            let mut blocks = [_mm512_setzero_si512(); ROWS];
            for r in 0..ROWS {
                blocks[r] = _mm512_add_epi64(counter, row_offset[r]);
            }
            counter = _mm512_add_epi64(counter, step);
            cipher.encrypt(&mut blocks);
            for r in 0..ROWS {
                sum[r] = _mm512_add_epi32(sum[r], _mm512_mullo_epi32(blocks[r], words));
            }
        }
        for (out, sum) in out.iter_mut().zip(sum) {
            *out = _mm512_reduce_add_epi32(sum) as u32;
        }
        block = block.wrapping_add(row_blocks.wrapping_mul(ROWS as u64));
    }
}

/// See [`crate::portable::keystream::vectors_times_keystream`].
///
/// Makes sixteen columns of a group of eight rows at a time, and multiplies them with all vectors.
/// As in [`keystream_times_vector`], the part that extends into the next row is dropped.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
pub(crate) fn vectors_times_keystream(
    key: &[u8; 16],
    first_block: u64,
    row_blocks: u64,
    vectors: &[[u32; GROUP_ROWS]],
    out: &mut [&mut [u32]],
) {
    let cipher = Cipher::new(key);
    let mut row_offset = [_mm512_setzero_si512(); GROUP_ROWS];
    for (r, offset) in row_offset.iter_mut().enumerate() {
        *offset = each_block(row_blocks.wrapping_mul(r as u64));
    }
    let tiles = out.first().map_or(0, |out| out.len().div_ceil(VECTOR_WORDS));
    let mut sums = vec![[0; VECTOR_WORDS]; tiles * out.len()];
    let mut block = first_block;
    for group in vectors.chunks_exact(out.len().max(1)) {
        for (tile, sums) in sums.chunks_exact_mut(out.len()).enumerate() {
            let counter = counters(block.wrapping_add((tile * VECTOR_BLOCKS) as u64));
            let mut blocks = [_mm512_setzero_si512(); GROUP_ROWS];
            for r in 0..GROUP_ROWS {
                blocks[r] = _mm512_add_epi64(counter, row_offset[r]);
            }
            cipher.encrypt(&mut blocks);
            for (sums, words) in sums.iter_mut().zip(group) {
                let mut sum = load(sums);
                for r in 0..GROUP_ROWS {
                    let word = _mm512_set1_epi32(words[r] as i32);
                    sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(blocks[r], word));
                }
                store(sums, sum);
            }
        }
        block = block.wrapping_add(row_blocks.wrapping_mul(GROUP_ROWS as u64));
    }
    for (tile, sums) in sums.chunks_exact(out.len().max(1)).enumerate() {
        for (out, sums) in out.iter_mut().zip(sums) {
            for (out, sum) in out[tile * VECTOR_WORDS..].iter_mut().zip(sums) {
                *out = out.wrapping_add(*sum);
            }
        }
    }
}
