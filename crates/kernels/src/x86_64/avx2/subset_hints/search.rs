//! Finds the hints that hold a record, and the other contents of a hint. The work is the same for
//! all of them: the wanted part of a block decides only what a permutation moves.

use std::arch::x86_64::*;

use super::{SecretCipher, input};
use crate::subset_hints::{OFFSET_TAG, OFFSETS_PER_BLOCK, SELECT_TAG, SELECTS_PER_BLOCK};

/// The number of blocks that are computed at a time.
const BLOCKS: usize = 8;

/// See [`Kernels::subset_offset_matches`](crate::Kernels::subset_offset_matches).
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(crate) fn offset_matches(
    key: &[u8; 16],
    partition: u32,
    offset: u16,
    mask: u16,
    first_word: u32,
    matches: &mut [u64],
) {
    let cipher = SecretCipher::new(key);
    let rest_of_input = input(0, partition, OFFSET_TAG);
    let offset = _mm_set1_epi16(offset as i16);
    let mask = _mm_set1_epi16(mask as i16);
    for (w, word) in (first_word..).zip(matches) {
        // Eight blocks of eight hints: one word.
        let mut blocks = [_mm_setzero_si128(); BLOCKS];
        for (i, block) in blocks.iter_mut().enumerate() {
            *block = _mm_or_si128(
                rest_of_input,
                _mm_cvtsi32_si128((BLOCKS as u32 * w + i as u32) as i32),
            );
        }
        cipher.encrypt(&mut blocks);
        *word = matching_lanes(blocks, offset, mask);
    }
}

/// See [`Kernels::subset_group_matches`](crate::Kernels::subset_group_matches).
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(crate) fn group_matches(
    key: &[u8; 16],
    partition: u32,
    offset: u16,
    mask: u16,
    groups: &[u32],
    matches: &mut [u8],
) {
    let cipher = SecretCipher::new(key);
    let rest_of_input = input(0, partition, OFFSET_TAG);
    let offset = _mm_set1_epi16(offset as i16);
    let mask = _mm_set1_epi16(mask as i16);
    let match_batch = |groups: &[u32; BLOCKS]| {
        let mut blocks = [rest_of_input; BLOCKS];
        for (block, &group) in blocks.iter_mut().zip(groups) {
            *block = _mm_or_si128(*block, _mm_cvtsi32_si128(group as i32));
        }
        cipher.encrypt(&mut blocks);
        matching_lanes(blocks, offset, mask).to_le_bytes()
    };
    let (group_batches, group_rest) = groups.as_chunks::<BLOCKS>();
    let (match_batches, match_rest) = matches.as_chunks_mut::<BLOCKS>();
    for (groups, matches) in group_batches.iter().zip(match_batches) {
        *matches = match_batch(groups);
    }
    if !group_rest.is_empty() {
        let mut padded = [0; BLOCKS];
        padded[..group_rest.len()].copy_from_slice(group_rest);
        match_rest.copy_from_slice(&match_batch(&padded)[..match_rest.len()]);
    }
}

/// Which half-words of some blocks equal `offset` in the bits of `mask`.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn matching_lanes(blocks: [__m128i; BLOCKS], offset: __m128i, mask: __m128i) -> u64 {
    let equal = blocks.map(|block| _mm_cmpeq_epi16(_mm_and_si128(block, mask), offset));
    let mut word = 0;
    for (i, [low, high]) in equal.as_chunks::<2>().0.iter().enumerate() {
        let bits = _mm_movemask_epi8(_mm_packs_epi16(*low, *high)) as u64;
        word |= bits << (2 * OFFSETS_PER_BLOCK * i);
    }
    word
}

/// See [`Kernels::subset_selects_at`](crate::Kernels::subset_selects_at).
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(crate) fn selects_at(key: &[u8; 16], partition: u32, ids: &[u32], out: &mut [u32]) {
    let cipher = SecretCipher::new(key);
    for (ids, out) in ids.chunks(BLOCKS).zip(out.chunks_mut(BLOCKS)) {
        let mut blocks = [_mm_setzero_si128(); BLOCKS];
        for (block, id) in blocks.iter_mut().zip(ids) {
            *block = input(id / SELECTS_PER_BLOCK as u32, partition, SELECT_TAG);
        }
        cipher.encrypt(&mut blocks);
        for ((out, id), block) in out.iter_mut().zip(ids).zip(blocks) {
            *out = word(block, *id);
        }
    }
}

/// See [`Kernels::subset_rebuild`](crate::Kernels::subset_rebuild).
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(crate) fn rebuild(
    key: &[u8; 16],
    id: u32,
    mask: u16,
    selects: &mut [u32],
    offsets: &mut [u16],
) {
    /// Partitions in a step: half of the blocks are for select values, half for offsets.
    const STEP: usize = BLOCKS / 2;
    let cipher = SecretCipher::new(key);
    let steps = selects.chunks_mut(STEP).zip(offsets.chunks_mut(STEP));
    for (step, (selects, offsets)) in steps.enumerate() {
        let mut blocks = [_mm_setzero_si128(); BLOCKS];
        let (select_blocks, offset_blocks) = blocks.split_at_mut(STEP);
        for (i, (select, offset)) in select_blocks.iter_mut().zip(offset_blocks).enumerate() {
            let partition = (STEP * step + i) as u32;
            *select = input(id / SELECTS_PER_BLOCK as u32, partition, SELECT_TAG);
            *offset = input(id / OFFSETS_PER_BLOCK as u32, partition, OFFSET_TAG);
        }
        cipher.encrypt(&mut blocks);
        let (select_blocks, offset_blocks) = blocks.split_at(STEP);
        for (select, block) in selects.iter_mut().zip(select_blocks) {
            *select = word(*block, id);
        }
        for (offset, block) in offsets.iter_mut().zip(offset_blocks) {
            *offset = half_word(*block, id) & mask;
        }
    }
}

/// Word `id % 4` of a block.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn word(block: __m128i, id: u32) -> u32 {
    let wanted = _mm_set1_epi32((id % SELECTS_PER_BLOCK as u32) as i32);
    let moved = _mm_permutevar_ps(_mm_castsi128_ps(block), wanted);
    _mm_cvtsi128_si32(_mm_castps_si128(moved)) as u32
}

/// Half-word `id % 8` of a block.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn half_word(block: __m128i, id: u32) -> u16 {
    let low_byte = 2 * (id % OFFSETS_PER_BLOCK as u32) as i16;
    let wanted = _mm_set1_epi16(low_byte | (low_byte + 1) << 8);
    _mm_cvtsi128_si32(_mm_shuffle_epi8(block, wanted)) as u16
}
