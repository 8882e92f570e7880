//! Yardsticks in plain Rust.

use std::hint::black_box;

/// The sum modulo 2⁶⁴ of the little-endian words of `bytes`, the last padded with zeros.
pub(crate) fn read_sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    words
        .iter()
        .fold(u64::from_le_bytes(last), |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}

/// Overwrites `out` with the XOR of the records at `positions`, which lie within the table.
pub(crate) fn gather_xor(table: &[u8], record_len: usize, positions: &[u64], out: &mut [u8]) {
    out.fill(0);
    for &position in positions {
        let start = position as usize * record_len;
        for (sum, byte) in out.iter_mut().zip(&table[start..start + record_len]) {
            *sum ^= byte;
        }
    }
}

/// The XOR of the encryptions of counter blocks `0..blocks`.
pub(crate) fn aes_blocks(key: &[u8; 16], blocks: u64) -> [u8; 16] {
    let mut total = 0;
    let mut words = [0u32; 512];
    let mut block = 0;
    while block < blocks {
        let n = (blocks - block).min(words.len() as u64 / 4);
        let words = &mut words[..4 * n as usize];
        super::keystream::aes128_ctr_words(key, block, words);
        total ^= xor_blocks(words);
        block += n;
    }
    total.to_le_bytes()
}

/// The XOR of blocks of four words, as a little-endian number.
pub(crate) fn xor_blocks(words: &[u32]) -> u128 {
    words.as_chunks::<4>().0.iter().fold(0, |total, block| {
        let [a, b, c, d] = block.map(u128::from);
        total ^ (a | b << 32 | c << 64 | d << 96)
    })
}

/// At least `multiplications` byte-by-word multiply-accumulates on memory in the first-level cache;
/// returns their number.
pub(crate) fn multiply_accumulate(multiplications: u64) -> u64 {
    let chunk = black_box([[3u8; 256]; 16]);
    let words = black_box([[5u32; 4]; 16]);
    let mut sums = [[0u32; 64]];
    let per_round = (chunk.len() * 256) as u64;
    let rounds = multiplications.div_ceil(per_round);
    for _ in 0..rounds {
        super::byte_matrix::multiply_chunk(black_box(&chunk), &words, &mut sums, 0);
    }
    black_box(sums);
    rounds * per_round
}
