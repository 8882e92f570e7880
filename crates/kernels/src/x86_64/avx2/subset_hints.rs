//! Pseudorandom subsets with AES-NI: a register holds one block.

mod parities;
mod search;

use std::arch::x86_64::*;

use zeroize::Zeroize;

use crate::x86_64::aes_key::round_keys;

pub(crate) use crate::x86_64::subset_hints::cutoffs::avx2::*;
pub(crate) use crate::x86_64::subset_hints::equal::avx2::*;
pub(crate) use crate::x86_64::subset_hints::parities::avx2::*;
pub(crate) use search::{group_matches, offset_matches, rebuild, selects_at};

/// An expanded secret key, erased when dropped.
pub(crate) struct SecretCipher {
    keys: [__m128i; 11],
}

impl SecretCipher {
    #[inline]
    #[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
    pub(in crate::x86_64) fn new(key: &[u8; 16]) -> SecretCipher {
        SecretCipher { keys: round_keys(key) }
    }

    #[inline]
    #[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
    pub(in crate::x86_64) fn encrypt<const BLOCKS: usize>(&self, blocks: &mut [__m128i; BLOCKS]) {
        for block in blocks.iter_mut() {
            *block = _mm_xor_si128(*block, self.keys[0]);
        }
        for key in &self.keys[1..10] {
            for block in blocks.iter_mut() {
                *block = _mm_aesenc_si128(*block, *key);
            }
        }
        for block in blocks.iter_mut() {
            *block = _mm_aesenclast_si128(*block, self.keys[10]);
        }
    }
}

impl Drop for SecretCipher {
    fn drop(&mut self) {
        self.keys.zeroize();
    }
}

/// The input block `hints`, `partition`, `tag`, 0.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(in crate::x86_64) fn input(hints: u32, partition: u32, tag: u32) -> __m128i {
    _mm_set_epi32(0, tag as i32, partition as i32, hints as i32)
}
