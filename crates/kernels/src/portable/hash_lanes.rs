//! Keyed BLAKE3 in plain Rust: one input after the other.

use crate::hash_lanes::{BLOCK_LEN, INITIAL, Inputs, QUARTERS, SCHEDULE, key_words};

/// See [`Kernels::blake3_keyed_many`](crate::Kernels::blake3_keyed_many).
pub(crate) fn blake3_keyed(key: &[u8; 32], inputs: &Inputs<'_>, outputs: &mut [[u8; 32]]) {
    let mut bytes = [0; BLOCK_LEN];
    for (input, output) in outputs.iter_mut().enumerate() {
        let mut chained = key_words(key);
        for block in 0..inputs.blocks() {
            inputs.write_block(input, block, &mut bytes);
            let (words, _) = bytes.as_chunks::<4>();
            let message = std::array::from_fn(|word| u32::from_le_bytes(words[word]));
            compress(&mut chained, &message, inputs.length_and_flags(block));
        }
        for (bytes, word) in output.as_chunks_mut::<4>().0.iter_mut().zip(chained) {
            *bytes = word.to_le_bytes();
        }
    }
}

/// The compression function. The counter, which numbers chunks, is always 0.
fn compress(chained: &mut [u32; 8], message: &[u32; 16], length_and_flags: [u32; 2]) {
    let mut state = [0; 16];
    state[..8].copy_from_slice(chained);
    state[8..12].copy_from_slice(&INITIAL);
    state[14..].copy_from_slice(&length_and_flags);
    round::<0>(&mut state, message);
    round::<1>(&mut state, message);
    round::<2>(&mut state, message);
    round::<3>(&mut state, message);
    round::<4>(&mut state, message);
    round::<5>(&mut state, message);
    round::<6>(&mut state, message);
    for (word, chained) in chained.iter_mut().enumerate() {
        *chained = state[word] ^ state[word + 8];
    }
}

/// A round: columns, then diagonals. Each is a function, because the compiler must see every place
/// of a word to keep the state in registers.
#[inline(always)]
fn round<const ROUND: usize>(state: &mut [u32; 16], message: &[u32; 16]) {
    let order = &const { SCHEDULE[ROUND] };
    for (quarter, places) in QUARTERS.iter().enumerate() {
        mix(state, *places, message[order[2 * quarter]], message[order[2 * quarter + 1]]);
    }
}

/// A quarter-round.
#[inline(always)]
fn mix(state: &mut [u32; 16], [a, b, c, d]: [usize; 4], first: u32, second: u32) {
    state[a] = state[a].wrapping_add(state[b]).wrapping_add(first);
    state[d] = (state[d] ^ state[a]).rotate_right(16);
    state[c] = state[c].wrapping_add(state[d]);
    state[b] = (state[b] ^ state[c]).rotate_right(12);
    state[a] = state[a].wrapping_add(state[b]).wrapping_add(second);
    state[d] = (state[d] ^ state[a]).rotate_right(8);
    state[c] = state[c].wrapping_add(state[d]);
    state[b] = (state[b] ^ state[c]).rotate_right(7);
}
