//! Products of words with vectors.

use super::prefetch;
use super::vectors::{Vectors, entries};

entries! {
    fn words_times_vector(matrix: &[u32], vector: &[u32], out: &mut [u32]);
}

/// See [`crate::portable::keystream::words_times_vector`].
#[inline(always)]
fn words_times_vector<A: Vectors>(arm: A, matrix: &[u32], vector: &[u32], out: &mut [u32]) {
    for (j, out) in out.iter_mut().enumerate() {
        *out = dot(arm, &matrix[j * vector.len()..(j + 1) * vector.len()], vector);
    }
}

/// The product of two slices of the same length.
#[inline(always)]
pub(super) fn dot<A: Vectors>(arm: A, row: &[u32], vector: &[u32]) -> u32 {
    let mut sum = [arm.zero(); 4];
    let (rows, vectors) = (row.chunks_exact(4 * A::WORDS), vector.chunks_exact(4 * A::WORDS));
    let (row_rest, vector_rest) = (rows.remainder(), vectors.remainder());
    for (row, vector) in rows.zip(vectors) {
        for i in 0..4 {
            let (row, vector) = (&row[i * A::WORDS..], &vector[i * A::WORDS..]);
            prefetch(row.as_ptr(), 4096);
            sum[i] = arm.add_u32(sum[i], arm.mul_u32(arm.load(row), arm.load(vector)));
        }
    }
    let (rows, vectors) = (row_rest.chunks_exact(A::WORDS), vector_rest.chunks_exact(A::WORDS));
    let (row_rest, vector_rest) = (rows.remainder(), vectors.remainder());
    for (row, vector) in rows.zip(vectors) {
        sum[0] = arm.add_u32(sum[0], arm.mul_u32(arm.load(row), arm.load(vector)));
    }
    let [low, high] = [arm.add_u32(sum[0], sum[1]), arm.add_u32(sum[2], sum[3])];
    let mut total = arm.sum_u32(arm.add_u32(low, high));
    for (a, b) in row_rest.iter().zip(vector_rest) {
        total = total.wrapping_add(a.wrapping_mul(*b));
    }
    total
}
