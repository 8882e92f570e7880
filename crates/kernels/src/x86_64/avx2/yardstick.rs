//! Yardsticks with AVX2.

use std::arch::x86_64::*;

pub(crate) use super::byte_matrix::multiply_accumulate;
use super::keystream::{LANES, encrypt_counters, store_blocks};
use crate::portable::yardstick::xor_blocks;
use crate::x86_64::aes_key::round_keys;
pub(crate) use crate::x86_64::yardstick::avx2::read_sum;

/// See [`crate::portable::yardstick::gather_xor`].
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(crate) fn gather_xor(table: &[u8], record_len: usize, positions: &[u64], out: &mut [u8]) {
    crate::x86_64::gather::xor_records(table, record_len, positions, out);
}

/// See [`crate::portable::yardstick::aes_blocks`].
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
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
