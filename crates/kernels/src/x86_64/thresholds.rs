//! Counting thresholds by a binary search, with vectors: the algorithm, for each arm's width.

use crate::portable::thresholds as portable;
use crate::thresholds::{NUMBER, Place, SIGN, Thresholds};

/// A vector of bytes, in blocks of sixteen.
///
/// # Safety
///
/// For all methods: the processor must have the instructions that they use.
pub(super) trait Bytes: Copy {
    /// How many blocks.
    const BLOCKS: usize;

    /// For each byte whether something is so.
    type Mask: Copy;

    /// One block in all places.
    ///
    /// # Safety
    ///
    /// As for all methods, here and below.
    unsafe fn splat_block(block: &[u8; 16]) -> Self;

    /// # Safety
    ///
    /// As for all methods.
    unsafe fn splat(byte: u8) -> Self;

    /// Block `b` from `16 · b` places after `from`.
    ///
    /// # Safety
    ///
    /// There are `16 · BLOCKS - 15` places at `from`.
    unsafe fn load_apart(from: *const Place) -> Self;

    /// # Safety
    ///
    /// `16 · BLOCKS` bytes may be written at `to`; no alignment needed.
    unsafe fn store(self, to: *mut u8);

    /// Within each block, the first halves of two blocks byte by byte in turn, and the second
    /// halves.
    ///
    /// # Safety
    ///
    /// As for all methods, here and below.
    unsafe fn interleave(self, other: Self) -> [Self; 2];

    /// # Safety
    ///
    /// As for all methods.
    unsafe fn and(self, other: Self) -> Self;

    /// # Safety
    ///
    /// As for all methods.
    unsafe fn or(self, other: Self) -> Self;

    /// # Safety
    ///
    /// As for all methods.
    unsafe fn xor(self, other: Self) -> Self;

    /// # Safety
    ///
    /// As for all methods.
    unsafe fn sub(self, other: Self) -> Self;

    /// The sum, or 255 where it is larger.
    ///
    /// # Safety
    ///
    /// As for all methods.
    unsafe fn add_up_to_255(self, other: Self) -> Self;

    /// Bytes of each block, at the positions in the lowest four bits of `positions`. 0 where the
    /// position's highest bit is set.
    ///
    /// # Safety
    ///
    /// As for all methods.
    unsafe fn shuffle(self, positions: Self) -> Self;

    /// Nowhere.
    ///
    /// # Safety
    ///
    /// As for all methods.
    unsafe fn nowhere() -> Self::Mask;

    /// Whether `self` is below `other`, as signed numbers; or equal, and `lower` says that the
    /// bytes below are below.
    ///
    /// # Safety
    ///
    /// As for all methods.
    unsafe fn below(self, other: Self, lower: Self::Mask) -> Self::Mask;

    /// `2 · self`, and 1 more where the mask says so.
    ///
    /// # Safety
    ///
    /// As for all methods.
    unsafe fn child(self, mask: Self::Mask) -> Self;
}

/// See [`portable::count_above`].
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn count_above<V: Bytes>(
    thresholds: &Thresholds,
    places: &[Place],
    samples: &mut [i8],
) {
    let lanes = 16 * V::BLOCKS;
    let (whole, last) = places.split_at(places.len() / (2 * lanes) * (2 * lanes));
    let (whole_samples, last_samples) = samples.split_at_mut(whole.len());
    for (places, samples) in
        whole.chunks_exact(2 * lanes).zip(whole_samples.chunks_exact_mut(2 * lanes))
    {
        // SAFETY: the caller vouches for the instructions; the chunks have a place and a sample for
        // each byte of two vectors.
        unsafe {
            // Two searches, because each is a long chain of comparisons.
            let (first, second) = places.split_at(lanes);
            let [(first, first_signs), (second, second_signs)] =
                [bytes_of::<V>(first), bytes_of::<V>(second)];
            let (bytes, signs) = ([first, second], [first_signs, second_signs]);
            let mut nodes = [V::splat(1); 2];
            for level in 0..5 {
                nodes = descend(thresholds, &bytes, nodes, [if level < 4 { 0 } else { 1 }]);
            }
            nodes = descend(thresholds, &bytes, nodes, [2, 3]);
            nodes = descend(thresholds, &bytes, nodes, [4, 5, 6, 7]);
            for (i, samples) in samples.chunks_exact_mut(lanes).enumerate() {
                // The leaves are the numbers from 128 on.
                let count = nodes[i].xor(V::splat(128));
                count.xor(signs[i]).sub(signs[i]).store(samples.as_mut_ptr().cast());
            }
        }
    }
    portable::count_above(thresholds, last, last_samples);
}

/// Each byte of the places' numbers in a vector of its own, ready for comparisons. And the places'
/// signs: 0 or -1.
///
/// # Safety
///
/// The processor has the instructions of `V`, and there are `16 · BLOCKS` places.
#[inline(always)]
unsafe fn bytes_of<V: Bytes>(places: &[Place]) -> ([V; 16], V) {
    // SAFETY: the caller vouches for the instructions and the number of places.
    unsafe {
        // Loops, because closures are not compiled for the caller's instructions.
        let mut vectors = [V::splat(0); 16];
        for (vector, place) in vectors.iter_mut().zip(places) {
            *vector = V::load_apart(place);
        }
        // The number of a vector and of a byte in its block are four bits each, `pppp bbbb`. Each
        // round takes the highest bit to the lowest place, so four exchange the two.
        for _ in 0..4 {
            let from = vectors;
            for i in 0..8 {
                [vectors[2 * i], vectors[2 * i + 1]] = from[i].interleave(from[i + 8]);
            }
        }
        let signs = V::splat(0).sub(vectors[0].and(V::splat(1)));
        for (vector, number) in vectors.iter_mut().zip(NUMBER.to_le_bytes()) {
            *vector = vector.and(V::splat(number)).xor(V::splat(SIGN));
        }
        (vectors, signs)
    }
}

/// One level down, for two vectors: from nodes that all lie in the given blocks of the tree to
/// their children.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn descend<V: Bytes, const N: usize>(
    thresholds: &Thresholds,
    bytes: &[[V; 16]; 2],
    nodes: [V; 2],
    blocks: [usize; N],
) -> [V; 2] {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        // In all blocks but its own, a node has a position with the highest bit set.
        let mut positions = [[V::splat(0); N]; 2];
        for (positions, node) in positions.iter_mut().zip(nodes) {
            for (position, block) in positions.iter_mut().zip(blocks) {
                *position = match N {
                    1 => node,
                    _ => node.sub(V::splat(16 * block as u8)).add_up_to_255(V::splat(0x70)),
                };
            }
        }
        let mut below = [V::nowhere(); 2];
        for (byte, tree) in thresholds.nodes().iter().enumerate() {
            let mut wanted = [V::splat(0); 2];
            for (n, block) in blocks.into_iter().enumerate() {
                let block = V::splat_block(&tree.as_chunks().0[block]);
                for i in 0..2 {
                    wanted[i] = wanted[i].or(block.shuffle(positions[i][n]));
                }
            }
            for i in 0..2 {
                below[i] = bytes[i][byte].below(wanted[i], below[i]);
            }
        }
        [nodes[0].child(below[0]), nodes[1].child(below[1])]
    }
}
