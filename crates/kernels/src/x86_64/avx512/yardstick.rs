//! Yardsticks with AVX-512.

use std::arch::x86_64::*;

pub(crate) use super::byte_matrix::multiply_accumulate;
use super::keystream::{Cipher, LANES, VECTOR_BLOCKS, counters, each_block};
use crate::portable::yardstick::xor_blocks;
pub(crate) use crate::x86_64::yardstick::avx512::read_sum;
// Memory is the limit here, and a masked load of a whole vector would also wait for the line after
// the record.
pub(crate) use crate::x86_64::avx2::yardstick::gather_xor;

/// Up to 64 bytes, padded with zeros.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
pub(in crate::x86_64::avx512) fn load_up_to(bytes: &[u8]) -> __m512i {
    // SAFETY: the mask selects the slice's own bytes, and a masked load touches nothing else.
    unsafe { _mm512_maskz_loadu_epi8(mask_of(bytes.len()), bytes.as_ptr().cast()) }
}

/// The first bytes of a vector, as many as `bytes` holds, at most 64.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
pub(in crate::x86_64::avx512) fn store_up_to(bytes: &mut [u8], vector: __m512i) {
    // SAFETY: the mask selects the slice's own bytes, and a masked store touches nothing else.
    unsafe { _mm512_mask_storeu_epi8(bytes.as_mut_ptr().cast(), mask_of(bytes.len()), vector) }
}

/// A mask of the lowest `len` bits.
#[inline(always)]
pub(in crate::x86_64::avx512) fn mask_of(len: usize) -> __mmask64 {
    assert!(len <= 64);
    if len == 0 { 0 } else { u64::MAX >> (64 - len) }
}

/// See [`crate::portable::yardstick::aes_blocks`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
pub(crate) fn aes_blocks(key: &[u8; 16], blocks: u64) -> [u8; 16] {
    const BATCH: u64 = (LANES * VECTOR_BLOCKS) as u64;
    let cipher = Cipher::new(key);
    let step = each_block(VECTOR_BLOCKS as u64);
    let mut counter = counters(0);
    let mut sum = [_mm512_setzero_si512(); LANES];
    for _ in 0..blocks / BATCH {
        let mut batch = [_mm512_setzero_si512(); LANES];
        for block in &mut batch {
            *block = counter;
            counter = _mm512_add_epi64(counter, step);
        }
        cipher.encrypt(&mut batch);
        for i in 0..LANES {
            sum[i] = _mm512_xor_si512(sum[i], batch[i]);
        }
    }
    // The rest is less than a batch, and goes through the ordinary keystream.
    let mut words = [0u32; 4 * BATCH as usize];
    let words = &mut words[..4 * (blocks % BATCH) as usize];
    super::keystream::aes128_ctr_words(key, blocks - blocks % BATCH, words);
    let mut total = xor_blocks(words);
    for vector in sum {
        let mut words = [0; 16];
        super::store(&mut words, vector);
        total ^= xor_blocks(&words);
    }
    total.to_le_bytes()
}
