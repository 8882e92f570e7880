//! Yardsticks with vectors.

use super::prefetch;
use super::vectors::{Vectors, entries};
use crate::portable::yardstick as portable;

/// How far ahead of the loads a sequential reading prefetches, in bytes.
const READ_AHEAD: usize = 4096;

entries! {
    fn read_sum(bytes: &[u8]) -> u64;
}

/// See [`portable::read_sum`].
#[inline(always)]
fn read_sum<A: Vectors>(arm: A, bytes: &[u8]) -> u64 {
    let batches = bytes.chunks_exact(8 * A::BYTES);
    let mut total = portable::read_sum(batches.remainder());
    let mut sum = [arm.zero(); 8];
    for batch in batches {
        for line in batch.chunks_exact(64) {
            prefetch(line.as_ptr(), READ_AHEAD);
        }
        for (sum, vector) in sum.iter_mut().zip(batch.chunks_exact(A::BYTES)) {
            *sum = arm.add_u64(*sum, arm.load(vector));
        }
    }
    for sum in sum {
        let mut words = [0; 8];
        arm.store(sum, &mut words);
        total = words.into_iter().fold(total, u64::wrapping_add);
    }
    total
}
