//! Pseudorandom subsets with vector AES: a vector holds the blocks of four neighbouring partitions.

mod cutoffs;
mod parities;
mod search;

use std::arch::x86_64::*;

use super::keystream::Cipher;

pub(crate) use cutoffs::cutoffs;
#[cfg(test)]
pub(crate) use cutoffs::order_statistic;
pub(crate) use parities::{accumulate_all, accumulate_pairs, accumulate_single};
pub(crate) use search::{
    equal_halfwords, equal_words, group_matches, offset_matches, rebuild, selects_at,
};

/// Partitions of one vector of blocks.
const VECTOR_PARTITIONS: u32 = 4;

/// An expanded secret key.
struct SecretCipher(Cipher);

impl SecretCipher {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
    fn new(key: &[u8; 16]) -> SecretCipher {
        SecretCipher(Cipher::new(key))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
    fn encrypt<const VECTORS: usize>(&self, blocks: &mut [__m512i; VECTORS]) {
        self.0.encrypt(blocks);
    }
}

/// Four times the input block `first`, `second`, `tag`, 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
fn each_block(first: u32, second: u32, tag: u32) -> __m512i {
    _mm512_broadcast_i32x4(_mm_set_epi32(0, tag as i32, second as i32, first as i32))
}

/// The difference between four equal inputs and those of consecutive partitions.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
fn consecutive_partitions() -> __m512i {
    _mm512_set_epi32(0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0)
}

/// The difference between four equal inputs and those of consecutive groups of hints.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
fn consecutive_hints() -> __m512i {
    _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0)
}
