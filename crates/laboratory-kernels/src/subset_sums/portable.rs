//! Subset sums, one variable after another.

/// Sums all variables of a block: a power of two of entries, side by side.
pub(crate) fn sum_block(block: &mut [u8], entry_len: usize) {
    let mut half = entry_len;
    while half < block.len() {
        for pair in block.chunks_exact_mut(2 * half) {
            let (without, with) = pair.split_at_mut(half);
            xor(with, without);
        }
        half *= 2;
    }
}

/// Sums all variables of a tile: a power of two of rows, all of one length. The buffer is for other
/// arms.
pub(crate) fn sum_tile(rows: &mut [&mut [u8]], _stage: &mut Vec<u8>) {
    let mut half = 1;
    while half < rows.len() {
        for pair in rows.chunks_exact_mut(2 * half) {
            let (without, with) = pair.split_at_mut(half);
            for (with, without) in with.iter_mut().zip(without) {
                xor(with, without);
            }
        }
        half *= 2;
    }
}

fn xor(sum: &mut [u8], bytes: &[u8]) {
    sum.iter_mut().zip(bytes).for_each(|(sum, byte)| *sum ^= byte);
}
