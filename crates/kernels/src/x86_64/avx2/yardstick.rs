//! Yardsticks with AVX2.

use std::arch::x86_64::*;

pub(crate) use super::byte_matrix::multiply_accumulate;
use super::keystream::{LANES, encrypt_counters, store_blocks};
use super::{load, store_words};
use crate::portable;
use crate::portable::yardstick::xor_blocks;
use crate::x86_64::aes_key::round_keys;
use crate::x86_64::prefetch;

/// How far ahead of the loads a sequential reading prefetches, in bytes.
const READ_AHEAD: usize = 4096;

/// See [`crate::portable::yardstick::read_sum`].
#[target_feature(enable = "avx2,aes")]
pub(crate) fn read_sum(bytes: &[u8]) -> u64 {
    let (batches, rest) = bytes.as_chunks::<256>();
    let mut sum = [_mm256_setzero_si256(); 8];
    for batch in batches {
        let vectors = batch.as_chunks::<32>().0;
        for i in 0..8 {
            if i % 2 == 0 {
                prefetch(&vectors[i], READ_AHEAD);
            }
            sum[i] = _mm256_add_epi64(sum[i], load(&vectors[i]));
        }
    }
    let mut total = portable::yardstick::read_sum(rest);
    for sum in sum {
        let mut words = [0u32; 8];
        store_words(&mut words, sum);
        for [low, high] in words.as_chunks::<2>().0 {
            total = total.wrapping_add(u64::from(*low) | u64::from(*high) << 32);
        }
    }
    total
}

/// See [`crate::portable::yardstick::gather_xor`].
#[target_feature(enable = "avx2,aes")]
pub(crate) fn gather_xor(table: &[u8], record_len: usize, positions: &[u64], out: &mut [u8]) {
    crate::x86_64::gather::xor_records(table, record_len, positions, out);
}

/// See [`crate::portable::yardstick::aes_blocks`].
#[target_feature(enable = "avx2,aes")]
pub(crate) fn aes_blocks(key: &[u8; 16], blocks: u64) -> [u8; 16] {
    let keys = round_keys(key);
    let batch = LANES as u64;
    let mut counter = _mm_setzero_si128();
    let mut sum = _mm_setzero_si128();
    for _ in 0..blocks / batch {
        for block in encrypt_counters(&keys, &mut counter) {
            sum = _mm_xor_si128(sum, block);
        }
    }
    // The rest is less than a batch, and goes through the ordinary keystream.
    let mut words = [0u32; 4 * LANES];
    let words = &mut words[..4 * (blocks % batch) as usize];
    super::keystream::aes128_ctr_words(key, blocks - blocks % batch, words);
    let mut total = xor_blocks(words);
    let mut words = [0; 4 * LANES];
    let mut last = [_mm_setzero_si128(); LANES];
    last[0] = sum;
    store_blocks(&mut words, last);
    total ^= xor_blocks(&words);
    total.to_le_bytes()
}
