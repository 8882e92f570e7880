//! The XOR of byte strings, compiled for each arm's vectors. It goes word by word, which the
//! compiler turns into vectors; it would not do so for single bytes.

const WORD: usize = size_of::<u64>();

/// XORs strings of the same length, a multiple of eight.
#[inline(always)]
pub(super) fn xor_array<const LEN: usize>(sum: &mut [u8; LEN], bytes: &[u8; LEN]) {
    const { assert!(LEN.is_multiple_of(WORD)) };
    let words = sum.as_chunks_mut::<WORD>().0.iter_mut();
    for (sum, word) in words.zip(bytes.as_chunks::<WORD>().0) {
        *sum = (u64::from_ne_bytes(*sum) ^ u64::from_ne_bytes(*word)).to_ne_bytes();
    }
}

/// XORs strings of equal length.
#[inline(always)]
pub(super) fn xor_bytes(sum: &mut [u8], bytes: &[u8]) {
    let (sum_pieces, sum) = sum.as_chunks_mut::<64>();
    let (pieces, bytes) = bytes.as_chunks::<64>();
    for (sum, piece) in sum_pieces.iter_mut().zip(pieces) {
        xor_array(sum, piece);
    }
    let (sum_words, sum) = sum.as_chunks_mut::<WORD>();
    let (words, bytes) = bytes.as_chunks::<WORD>();
    for (sum, word) in sum_words.iter_mut().zip(words) {
        xor_array(sum, word);
    }
    for (sum, byte) in sum.iter_mut().zip(bytes) {
        *sum ^= byte;
    }
}
