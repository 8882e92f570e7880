//! Keyed BLAKE3: an input in each lane of a vector of words.
//!
//! In AVX-512, the state takes half of the registers and the message the other half. In AVX2 they
//! do not fit together, so the message stays in memory.

use std::arch::x86_64::*;

use super::vectors::{Avx2, Avx512, Vectors, entries};
use crate::hash_lanes::{BLOCK_LEN, INITIAL, Inputs, NUMBER_LEN, QUARTERS, SCHEDULE, key_words};

entries! {
    fn blake3_keyed(key: &[u8; 32], inputs: &Inputs<'_>, outputs: &mut [[u8; 32]]);
}

/// How an arm brings inputs into lanes, and hashes out of them.
pub(crate) trait Lanes: Vectors {
    /// Block `block` of the `count` inputs from `first` on: word `w` of all of them in vector `w`.
    fn load_blocks(
        self,
        inputs: &Inputs<'_>,
        first: usize,
        count: usize,
        block: usize,
    ) -> [Self::Vector; 16];

    /// Hash `i` from lane `i` of the eight vectors.
    fn store_hashes(self, words: [Self::Vector; 8], outputs: &mut [[u8; 32]]);
}

/// See [`Kernels::blake3_keyed_many`](crate::Kernels::blake3_keyed_many).
#[inline(always)]
fn blake3_keyed<A: Lanes>(arm: A, key: &[u8; 32], inputs: &Inputs<'_>, outputs: &mut [[u8; 32]]) {
    let mut key_vectors = [arm.zero(); 8];
    for (vector, word) in key_vectors.iter_mut().zip(key_words(key)) {
        *vector = arm.splat_u32(word);
    }
    for (group, outputs) in outputs.chunks_mut(A::WORDS).enumerate() {
        let mut chained = key_vectors;
        for block in 0..inputs.blocks() {
            let message = arm.load_blocks(inputs, group * A::WORDS, outputs.len(), block);
            compress(arm, &mut chained, &message, inputs.length_and_flags(block));
        }
        arm.store_hashes(chained, outputs);
    }
}

/// The compression function in every lane. See [`crate::portable::hash_lanes`].
#[inline(always)]
fn compress<A: Vectors>(
    arm: A,
    chained: &mut [A::Vector; 8],
    message: &[A::Vector; 16],
    [length, flags]: [u32; 2],
) {
    let mut state = [arm.zero(); 16];
    state[..8].copy_from_slice(chained);
    for (state, word) in state[8..12].iter_mut().zip(INITIAL) {
        *state = arm.splat_u32(word);
    }
    state[14] = arm.splat_u32(length);
    state[15] = arm.splat_u32(flags);
    round::<A, 0>(arm, &mut state, message);
    round::<A, 1>(arm, &mut state, message);
    round::<A, 2>(arm, &mut state, message);
    round::<A, 3>(arm, &mut state, message);
    round::<A, 4>(arm, &mut state, message);
    round::<A, 5>(arm, &mut state, message);
    round::<A, 6>(arm, &mut state, message);
    for word in 0..8 {
        chained[word] = arm.xor(state[word], state[word + 8]);
    }
}

/// A round: columns, then diagonals. Each is a function, because the compiler must see every place
/// of a word to keep the state in registers.
#[inline(always)]
fn round<A: Vectors, const ROUND: usize>(
    arm: A,
    state: &mut [A::Vector; 16],
    message: &[A::Vector; 16],
) {
    half_round::<A, ROUND, 0>(arm, state, message);
    half_round::<A, ROUND, 1>(arm, state, message);
}

/// Four quarter-rounds, step by step: none of them waits for another.
#[inline(always)]
fn half_round<A: Vectors, const ROUND: usize, const HALF: usize>(
    arm: A,
    state: &mut [A::Vector; 16],
    message: &[A::Vector; 16],
) {
    let order = &const { SCHEDULE[ROUND] }[8 * HALF..8 * HALF + 8];
    let places = &const { QUARTERS }[4 * HALF..4 * HALF + 4];
    for (q, &[a, b, _, _]) in places.iter().enumerate() {
        state[a] = arm.add_u32(state[a], message[order[2 * q]]);
        state[a] = arm.add_u32(state[a], state[b]);
    }
    for &[a, _, _, d] in places {
        state[d] = arm.rotate_right_u32::<16>(arm.xor(state[d], state[a]));
    }
    for &[_, b, c, d] in places {
        state[c] = arm.add_u32(state[c], state[d]);
        state[b] = arm.rotate_right_u32::<12>(arm.xor(state[b], state[c]));
    }
    for (q, &[a, b, _, _]) in places.iter().enumerate() {
        state[a] = arm.add_u32(state[a], message[order[2 * q + 1]]);
        state[a] = arm.add_u32(state[a], state[b]);
    }
    for &[a, _, _, d] in places {
        state[d] = arm.rotate_right_u32::<8>(arm.xor(state[d], state[a]));
    }
    for &[_, b, c, d] in places {
        state[c] = arm.add_u32(state[c], state[d]);
        state[b] = arm.rotate_right_u32::<7>(arm.xor(state[b], state[c]));
    }
}

impl Lanes for Avx2 {
    #[inline(always)]
    fn load_blocks(
        self,
        inputs: &Inputs<'_>,
        first: usize,
        count: usize,
        block: usize,
    ) -> [__m256i; 16] {
        const LANES: usize = Avx2::WORDS;
        // The first halves of the blocks, then the second halves.
        let mut rows = [self.zero(); 2 * LANES];
        let (place, start) = inputs.place(first, block);
        if place.len() == BLOCK_LEN {
            let records = inputs.records[start..].chunks(inputs.record_len);
            for (lane, record) in records.take(count).enumerate() {
                rows[lane] = self.load(&record[..BLOCK_LEN / 2]);
                rows[LANES + lane] = self.load(&record[BLOCK_LEN / 2..BLOCK_LEN]);
            }
        } else {
            // All are written before the first is read: a read of data that was just written in
            // smaller pieces would stall.
            let mut blocks = [[0; BLOCK_LEN]; LANES];
            for (lane, bytes) in blocks[..count].iter_mut().enumerate() {
                inputs.write_block(first + lane, block, bytes);
            }
            for (lane, bytes) in blocks.iter().enumerate() {
                rows[lane] = self.load(&bytes[..BLOCK_LEN / 2]);
                rows[LANES + lane] = self.load(&bytes[BLOCK_LEN / 2..]);
            }
        }
        let (left, right) = rows.split_at_mut(LANES);
        self.transpose(left);
        self.transpose(right);
        rows
    }

    #[inline(always)]
    fn store_hashes(self, mut words: [__m256i; 8], outputs: &mut [[u8; 32]]) {
        self.transpose(&mut words);
        for (output, hash) in outputs.iter_mut().zip(words) {
            self.store(hash, output);
        }
    }
}

impl Lanes for Avx512 {
    #[inline(always)]
    fn load_blocks(
        self,
        inputs: &Inputs<'_>,
        first: usize,
        count: usize,
        block: usize,
    ) -> [__m512i; 16] {
        const LANES: usize = Avx512::WORDS;
        let mut message = [self.zero(); LANES];
        for (lane, row) in message[..count].iter_mut().enumerate() {
            let (place, start) = inputs.place(first + lane, block);
            if place.is_empty() {
                continue;
            }
            let record = &inputs.records[start..start + place.len()];
            let mask = u64::MAX << place.start & u64::MAX >> (BLOCK_LEN - place.end);
            // SAFETY: the arm's value proves that the processor has the instruction. Of the 64
            // bytes from `place.start` before the record on, the mask selects those of `place`,
            // which are the record's; bytes not selected are not accessed.
            *row = unsafe {
                _mm512_maskz_loadu_epi8(mask, record.as_ptr().wrapping_sub(place.start).cast())
            };
        }
        self.transpose(&mut message);
        if block == 0 && inputs.prefix_len() == NUMBER_LEN {
            let (mut low, mut high) = ([0; LANES], [0; LANES]);
            for lane in 0..count {
                let number = inputs.number(first + lane);
                (low[lane], high[lane]) = (number as u32, (number >> 32) as u32);
            }
            message[0] = self.load(&low);
            message[1] = self.load(&high);
        }
        message
    }

    #[inline(always)]
    fn store_hashes(self, [a, b, c, d, e, f, g, h]: [__m512i; 8], outputs: &mut [[u8; 32]]) {
        let first_halves = self.transpose_blocks([a, b, c, d]);
        let second_halves = self.transpose_blocks([e, f, g, h]);
        let mut hashes = [[0u32; 16]; Avx512::WORDS / 2];
        for j in 0..4 {
            // Quarter k of these two vectors is of the hash in lane 4k + j.
            let (left, right) = (first_halves[j], second_halves[j]);
            // SAFETY: the arm's value proves that the processor has the instructions.
            let [low, high] = unsafe {
                let low = _mm512_shuffle_i32x4::<0x44>(left, right);
                let high = _mm512_shuffle_i32x4::<0xee>(left, right);
                [_mm512_shuffle_i32x4::<0xd8>(low, low), _mm512_shuffle_i32x4::<0xd8>(high, high)]
            };
            self.store(low, &mut hashes[j]);
            self.store(high, &mut hashes[4 + j]);
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
}
