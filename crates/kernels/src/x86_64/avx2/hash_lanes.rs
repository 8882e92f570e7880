//! Keyed BLAKE3 with AVX2: eight inputs, one in each lane of a vector of words. State and message
//! together do not fit into the registers, so the message stays in memory.

use std::arch::x86_64::*;

use super::{load, store};
use crate::hash_lanes::{BLOCK_LEN, INITIAL, Inputs, QUARTERS, SCHEDULE, key_words};

/// Inputs hashed at a time.
const LANES: usize = 8;

/// See [`Kernels::blake3_keyed_many`](crate::Kernels::blake3_keyed_many).
#[target_feature(enable = "avx2,aes,popcnt")]
pub(crate) fn blake3_keyed(key: &[u8; 32], inputs: &Inputs<'_>, outputs: &mut [[u8; 32]]) {
    let key = key_words(key).map(|word| _mm256_set1_epi32(word as i32));
    for (group, outputs) in outputs.chunks_mut(LANES).enumerate() {
        let mut chained = key;
        for block in 0..inputs.blocks() {
            let message = load_blocks(inputs, group * LANES, outputs.len(), block);
            compress(&mut chained, &message, inputs.length_and_flags(block));
        }
        let hashes = transpose(chained);
        for (output, hash) in outputs.iter_mut().zip(hashes) {
            store(output, hash);
        }
    }
}

/// Block `block` of the `count` inputs from `first` on: word `w` of all of them in vector `w`.
#[inline]
#[target_feature(enable = "avx2,aes,popcnt")]
fn load_blocks(inputs: &Inputs<'_>, first: usize, count: usize, block: usize) -> [__m256i; 16] {
    let mut left = [_mm256_setzero_si256(); LANES];
    let mut right = [_mm256_setzero_si256(); LANES];
    let (place, start) = inputs.place(first, block);
    if place.len() == BLOCK_LEN {
        let records = inputs.records[start..].chunks(inputs.record_len);
        for (lane, record) in records.take(count).enumerate() {
            let (halves, _) = record[..BLOCK_LEN].as_chunks::<32>();
            left[lane] = load(&halves[0]);
            right[lane] = load(&halves[1]);
        }
    } else {
        // All are written before the first is read: a read of data that was just written in smaller
        // pieces would stall.
        let mut blocks = [[0; BLOCK_LEN]; LANES];
        for (lane, bytes) in blocks[..count].iter_mut().enumerate() {
            inputs.write_block(first + lane, block, bytes);
        }
        for (lane, bytes) in blocks.iter().enumerate() {
            let (halves, _) = bytes.as_chunks::<32>();
            left[lane] = load(&halves[0]);
            right[lane] = load(&halves[1]);
        }
    }
    let mut message = [_mm256_setzero_si256(); 16];
    message[..8].copy_from_slice(&transpose(left));
    message[8..].copy_from_slice(&transpose(right));
    message
}

/// Vectors of words as a square matrix, transposed.
#[inline]
#[target_feature(enable = "avx2,aes,popcnt")]
fn transpose([a, b, c, d, e, f, g, h]: [__m256i; LANES]) -> [__m256i; LANES] {
    let above = transpose_halves([a, b, c, d]);
    let below = transpose_halves([e, f, g, h]);
    let mut columns = [_mm256_setzero_si256(); LANES];
    for j in 0..4 {
        columns[j] = _mm256_permute2x128_si256::<0x20>(above[j], below[j]);
        columns[4 + j] = _mm256_permute2x128_si256::<0x31>(above[j], below[j]);
    }
    columns
}

/// The same for each half of four vectors by itself: half k of result j is word 4k + j of the four.
#[inline]
#[target_feature(enable = "avx2,aes,popcnt")]
fn transpose_halves([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let low_ab = _mm256_unpacklo_epi32(a, b);
    let high_ab = _mm256_unpackhi_epi32(a, b);
    let low_cd = _mm256_unpacklo_epi32(c, d);
    let high_cd = _mm256_unpackhi_epi32(c, d);
    [
        _mm256_unpacklo_epi64(low_ab, low_cd),
        _mm256_unpackhi_epi64(low_ab, low_cd),
        _mm256_unpacklo_epi64(high_ab, high_cd),
        _mm256_unpackhi_epi64(high_ab, high_cd),
    ]
}

/// The compression function in every lane. See [`crate::portable::hash_lanes`].
#[inline]
#[target_feature(enable = "avx2,aes,popcnt")]
fn compress(chained: &mut [__m256i; 8], message: &[__m256i; 16], length_and_flags: [u32; 2]) {
    let [length, flags] = length_and_flags.map(|word| _mm256_set1_epi32(word as i32));
    let mut state = [_mm256_setzero_si256(); 16];
    state[..8].copy_from_slice(chained);
    for (state, word) in state[8..12].iter_mut().zip(INITIAL) {
        *state = _mm256_set1_epi32(word as i32);
    }
    state[14] = length;
    state[15] = flags;
    round::<0>(&mut state, message);
    round::<1>(&mut state, message);
    round::<2>(&mut state, message);
    round::<3>(&mut state, message);
    round::<4>(&mut state, message);
    round::<5>(&mut state, message);
    round::<6>(&mut state, message);
    for word in 0..8 {
        chained[word] = _mm256_xor_si256(state[word], state[word + 8]);
    }
}

/// A round: columns, then diagonals. Each is a function, because the compiler must see every place
/// of a word to keep the state in registers.
#[inline]
#[target_feature(enable = "avx2,aes,popcnt")]
fn round<const ROUND: usize>(state: &mut [__m256i; 16], message: &[__m256i; 16]) {
    half_round::<ROUND, 0>(state, message);
    half_round::<ROUND, 1>(state, message);
}

/// Four quarter-rounds, step by step: none of them waits for another.
#[inline]
#[target_feature(enable = "avx2,aes,popcnt")]
fn half_round<const ROUND: usize, const HALF: usize>(
    state: &mut [__m256i; 16],
    message: &[__m256i; 16],
) {
    let order = &const { SCHEDULE[ROUND] }[8 * HALF..8 * HALF + 8];
    let places = &const { QUARTERS }[4 * HALF..4 * HALF + 4];
    for (q, &[a, b, _, _]) in places.iter().enumerate() {
        state[a] = _mm256_add_epi32(state[a], message[order[2 * q]]);
        state[a] = _mm256_add_epi32(state[a], state[b]);
    }
    for &[a, _, _, d] in places {
        state[d] = rotate_16(_mm256_xor_si256(state[d], state[a]));
    }
    for &[_, b, c, d] in places {
        state[c] = _mm256_add_epi32(state[c], state[d]);
        state[b] = rotate::<12, 20>(_mm256_xor_si256(state[b], state[c]));
    }
    for (q, &[a, b, _, _]) in places.iter().enumerate() {
        state[a] = _mm256_add_epi32(state[a], message[order[2 * q + 1]]);
        state[a] = _mm256_add_epi32(state[a], state[b]);
    }
    for &[a, _, _, d] in places {
        state[d] = rotate_8(_mm256_xor_si256(state[d], state[a]));
    }
    for &[_, b, c, d] in places {
        state[c] = _mm256_add_epi32(state[c], state[d]);
        state[b] = rotate::<7, 25>(_mm256_xor_si256(state[b], state[c]));
    }
}

/// Words rotated to the right by `RIGHT` bits; `LEFT` is 32 minus `RIGHT`.
#[inline]
#[target_feature(enable = "avx2,aes,popcnt")]
fn rotate<const RIGHT: i32, const LEFT: i32>(words: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_srli_epi32::<RIGHT>(words), _mm256_slli_epi32::<LEFT>(words))
}

/// The same by two bytes, which is one instruction.
#[inline]
#[target_feature(enable = "avx2,aes,popcnt")]
fn rotate_16(words: __m256i) -> __m256i {
    let order = _mm_set_epi8(13, 12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2);
    _mm256_shuffle_epi8(words, _mm256_broadcastsi128_si256(order))
}

/// The same by one byte.
#[inline]
#[target_feature(enable = "avx2,aes,popcnt")]
fn rotate_8(words: __m256i) -> __m256i {
    let order = _mm_set_epi8(12, 15, 14, 13, 8, 11, 10, 9, 4, 7, 6, 5, 0, 3, 2, 1);
    _mm256_shuffle_epi8(words, _mm256_broadcastsi128_si256(order))
}
