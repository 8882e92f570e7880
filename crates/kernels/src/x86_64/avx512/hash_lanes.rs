//! Keyed BLAKE3 with AVX-512: sixteen inputs, one in each lane of a vector of words. The state
//! takes half of the registers and the message the other half.

use std::arch::x86_64::*;

use super::store_words;
use crate::hash_lanes::{BLOCK_LEN, INITIAL, Inputs, NUMBER_LEN, QUARTERS, SCHEDULE, key_words};

/// Inputs hashed at a time.
const LANES: usize = 16;

/// See [`Kernels::blake3_keyed_many`](crate::Kernels::blake3_keyed_many).
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
pub(crate) fn blake3_keyed(key: &[u8; 32], inputs: &Inputs<'_>, outputs: &mut [[u8; 32]]) {
    let key = key_words(key).map(|word| _mm512_set1_epi32(word as i32));
    for (group, outputs) in outputs.chunks_mut(LANES).enumerate() {
        let mut chained = key;
        for block in 0..inputs.blocks() {
            let message = load_blocks(inputs, group * LANES, outputs.len(), block);
            compress(&mut chained, &message, inputs.length_and_flags(block));
        }
        store_hashes(chained, outputs);
    }
}

/// Block `block` of the `count` inputs from `first` on: word `w` of all of them in vector `w`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn load_blocks(inputs: &Inputs<'_>, first: usize, count: usize, block: usize) -> [__m512i; LANES] {
    let mut rows = [_mm512_setzero_si512(); LANES];
    for (lane, row) in rows[..count].iter_mut().enumerate() {
        let (place, start) = inputs.place(first + lane, block);
        if place.is_empty() {
            continue;
        }
        let record = &inputs.records[start..start + place.len()];
        let mask = u64::MAX << place.start & u64::MAX >> (BLOCK_LEN - place.end);
        // SAFETY: of the 64 bytes from `place.start` before the record on, the mask selects those
        // of `place`, which are the record's; bytes not selected are not accessed.
        *row = unsafe {
            _mm512_maskz_loadu_epi8(mask, record.as_ptr().wrapping_sub(place.start).cast())
        };
    }
    let mut message = transpose(rows);
    if block == 0 && inputs.prefix_len() == NUMBER_LEN {
        let (mut low, mut high) = ([0; LANES], [0; LANES]);
        for lane in 0..count {
            let number = inputs.number(first + lane);
            (low[lane], high[lane]) = (number as u32, (number >> 32) as u32);
        }
        message[0] = super::load_words(&low);
        message[1] = super::load_words(&high);
    }
    message
}

/// Hash `i` from lane `i` of the eight vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn store_hashes(words: [__m512i; 8], outputs: &mut [[u8; 32]]) {
    let [a, b, c, d, e, f, g, h] = words;
    let first_halves = transpose_quarters([a, b, c, d]);
    let second_halves = transpose_quarters([e, f, g, h]);
    let mut hashes = [[0u32; 16]; LANES / 2];
    for j in 0..4 {
        // Quarter k of these two vectors is of the hash in lane 4k + j.
        let (left, right) = (first_halves[j], second_halves[j]);
        let low = _mm512_shuffle_i32x4::<0x44>(left, right);
        let high = _mm512_shuffle_i32x4::<0xee>(left, right);
        store_words(&mut hashes[j], _mm512_shuffle_i32x4::<0xd8>(low, low));
        store_words(&mut hashes[4 + j], _mm512_shuffle_i32x4::<0xd8>(high, high));
    }
    for (lane, output) in outputs.iter_mut().enumerate() {
        // Lanes 4k + j: k = 0 and 1 are in vector j, 2 and 3 in vector 4 + j.
        let (j, k) = (lane % 4, lane / 4);
        let words = hashes[k / 2 * 4 + j].as_chunks::<8>().0[k % 2];
        for (bytes, word) in output.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
    }
}

/// Vectors of words as a square matrix, transposed.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn transpose(rows: [__m512i; LANES]) -> [__m512i; LANES] {
    let mut quarters = [[_mm512_setzero_si512(); 4]; 4];
    for (quarters, rows) in quarters.iter_mut().zip(rows.as_chunks::<4>().0) {
        *quarters = transpose_quarters(*rows);
    }
    let mut columns = [_mm512_setzero_si512(); LANES];
    for j in 0..4 {
        let [a, b, c, d] = [quarters[0][j], quarters[1][j], quarters[2][j], quarters[3][j]];
        let low_ab = _mm512_shuffle_i32x4::<0x44>(a, b);
        let low_cd = _mm512_shuffle_i32x4::<0x44>(c, d);
        let high_ab = _mm512_shuffle_i32x4::<0xee>(a, b);
        let high_cd = _mm512_shuffle_i32x4::<0xee>(c, d);
        columns[j] = _mm512_shuffle_i32x4::<0x88>(low_ab, low_cd);
        columns[4 + j] = _mm512_shuffle_i32x4::<0xdd>(low_ab, low_cd);
        columns[8 + j] = _mm512_shuffle_i32x4::<0x88>(high_ab, high_cd);
        columns[12 + j] = _mm512_shuffle_i32x4::<0xdd>(high_ab, high_cd);
    }
    columns
}

/// The same for each quarter of four vectors by itself: quarter k of result j is word 4k + j of the
/// four.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn transpose_quarters([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let low_ab = _mm512_unpacklo_epi32(a, b);
    let high_ab = _mm512_unpackhi_epi32(a, b);
    let low_cd = _mm512_unpacklo_epi32(c, d);
    let high_cd = _mm512_unpackhi_epi32(c, d);
    [
        _mm512_unpacklo_epi64(low_ab, low_cd),
        _mm512_unpackhi_epi64(low_ab, low_cd),
        _mm512_unpacklo_epi64(high_ab, high_cd),
        _mm512_unpackhi_epi64(high_ab, high_cd),
    ]
}

/// The compression function in every lane. See [`crate::portable::hash_lanes`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn compress(chained: &mut [__m512i; 8], message: &[__m512i; 16], length_and_flags: [u32; 2]) {
    let [length, flags] = length_and_flags.map(|word| _mm512_set1_epi32(word as i32));
    let mut state = [_mm512_setzero_si512(); 16];
    state[..8].copy_from_slice(chained);
    for (state, word) in state[8..12].iter_mut().zip(INITIAL) {
        *state = _mm512_set1_epi32(word as i32);
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
        chained[word] = _mm512_xor_si512(state[word], state[word + 8]);
    }
}

/// A round: columns, then diagonals. Each is a function, because the compiler must see every place
/// of a word to keep the state in registers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn round<const ROUND: usize>(state: &mut [__m512i; 16], message: &[__m512i; 16]) {
    half_round::<ROUND, 0>(state, message);
    half_round::<ROUND, 1>(state, message);
}

/// Four quarter-rounds, step by step: none of them waits for another.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn half_round<const ROUND: usize, const HALF: usize>(
    state: &mut [__m512i; 16],
    message: &[__m512i; 16],
) {
    let order = &const { SCHEDULE[ROUND] }[8 * HALF..8 * HALF + 8];
    let places = &const { QUARTERS }[4 * HALF..4 * HALF + 4];
    for (q, &[a, b, _, _]) in places.iter().enumerate() {
        state[a] = _mm512_add_epi32(state[a], message[order[2 * q]]);
        state[a] = _mm512_add_epi32(state[a], state[b]);
    }
    for &[a, _, _, d] in places {
        state[d] = _mm512_ror_epi32::<16>(_mm512_xor_si512(state[d], state[a]));
    }
    for &[_, b, c, d] in places {
        state[c] = _mm512_add_epi32(state[c], state[d]);
        state[b] = _mm512_ror_epi32::<12>(_mm512_xor_si512(state[b], state[c]));
    }
    for (q, &[a, b, _, _]) in places.iter().enumerate() {
        state[a] = _mm512_add_epi32(state[a], message[order[2 * q + 1]]);
        state[a] = _mm512_add_epi32(state[a], state[b]);
    }
    for &[a, _, _, d] in places {
        state[d] = _mm512_ror_epi32::<8>(_mm512_xor_si512(state[d], state[a]));
    }
    for &[_, b, c, d] in places {
        state[c] = _mm512_add_epi32(state[c], state[d]);
        state[b] = _mm512_ror_epi32::<7>(_mm512_xor_si512(state[b], state[c]));
    }
}
