//! Pseudorandom subsets with vector AES: a vector holds the blocks of four neighbouring partitions.

mod parities;
mod search;

use std::arch::x86_64::*;

use super::keystream::Cipher;

pub(crate) use crate::x86_64::subset_hints::cutoffs::avx512::*;
pub(crate) use crate::x86_64::subset_hints::equal::avx512::*;
pub(crate) use crate::x86_64::subset_hints::parities::avx512::*;
pub(crate) use search::{group_matches, offset_matches, rebuild, selects_at};

/// Partitions of one vector of blocks.
const VECTOR_PARTITIONS: u32 = 4;

/// An expanded secret key.
pub(crate) struct SecretCipher(Cipher);

impl SecretCipher {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
    pub(in crate::x86_64) fn new(key: &[u8; 16]) -> SecretCipher {
        SecretCipher(Cipher::new(key))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
    pub(in crate::x86_64) fn encrypt<const VECTORS: usize>(&self, blocks: &mut [__m512i; VECTORS]) {
        self.0.encrypt(blocks);
    }
}

/// Four times the input block `first`, `second`, `tag`, 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
pub(in crate::x86_64) fn each_block(first: u32, second: u32, tag: u32) -> __m512i {
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
