//! Counting thresholds by a binary search, with vectors of places.

use std::arch::x86_64::*;

use super::vectors::{Avx2, Avx512, Operations, Vectors, entries};
use crate::portable::thresholds as portable;
use crate::thresholds::{NUMBER, Place, SIGN, Thresholds};

entries! {
    fn count_above(thresholds: &Thresholds, places: &[Place], samples: &mut [i8]);
}

/// What the search needs besides the operations that all kernels share.
pub(crate) trait Search: Vectors {
    /// For each byte whether something is so.
    type Mask: Copy;

    /// Block `b` from `16 · b` places after the first.
    fn load_apart(self, places: &[Place]) -> Self::Vector;

    /// Nowhere.
    fn nowhere(self) -> Self::Mask;

    /// Whether `a` is below `b`, as signed numbers; or equal, and `lower` says that the bytes below
    /// are below.
    fn below(self, a: Self::Vector, b: Self::Vector, lower: Self::Mask) -> Self::Mask;

    /// `2 · node`, and 1 more where the mask says so.
    fn child(self, node: Self::Vector, mask: Self::Mask) -> Self::Vector;
}

/// See [`portable::count_above`].
#[inline(always)]
fn count_above<A: Search>(arm: A, thresholds: &Thresholds, places: &[Place], samples: &mut [i8]) {
    let (pairs, last_samples) =
        samples.split_at_mut(samples.len() / (2 * A::BYTES) * (2 * A::BYTES));
    let (whole, last) = places.split_at(pairs.len());
    for (places, samples) in
        whole.chunks_exact(2 * A::BYTES).zip(pairs.chunks_exact_mut(2 * A::BYTES))
    {
        // Two searches, because each is a long chain of comparisons.
        let (first, second) = places.split_at(A::BYTES);
        let [(first, first_signs), (second, second_signs)] =
            [bytes_of(arm, first), bytes_of(arm, second)];
        let (bytes, signs) = ([first, second], [first_signs, second_signs]);
        let mut nodes = [arm.splat_u8(1); 2];
        for level in 0..5 {
            nodes = descend(arm, thresholds, &bytes, nodes, [if level < 4 { 0 } else { 1 }]);
        }
        nodes = descend(arm, thresholds, &bytes, nodes, [2, 3]);
        nodes = descend(arm, thresholds, &bytes, nodes, [4, 5, 6, 7]);
        for (i, samples) in samples.chunks_exact_mut(A::BYTES).enumerate() {
            // The leaves are the numbers from 128 on.
            let count = arm.xor(nodes[i], arm.splat_u8(128));
            arm.store(arm.sub_u8(arm.xor(count, signs[i]), signs[i]), samples);
        }
    }
    portable::count_above(thresholds, last, last_samples);
}

/// Each byte of the places' numbers in a vector of its own, ready for comparisons. And the places'
/// signs: 0 or -1.
#[inline(always)]
fn bytes_of<A: Search>(arm: A, places: &[Place]) -> ([A::Vector; 16], A::Vector) {
    let mut vectors = [arm.zero(); 16];
    for (i, vector) in vectors.iter_mut().enumerate() {
        *vector = arm.load_apart(&places[i..]);
    }
    // The number of a vector and of a byte in its block are four bits each, `pppp bbbb`. Each
    // round takes the highest bit to the lowest place, so four exchange the two.
    for _ in 0..4 {
        let from = vectors;
        for i in 0..8 {
            vectors[2 * i] = arm.zip_low_u8(from[i], from[i + 8]);
            vectors[2 * i + 1] = arm.zip_high_u8(from[i], from[i + 8]);
        }
    }
    let signs = arm.sub_u8(arm.zero(), arm.and(vectors[0], arm.splat_u8(1)));
    for (vector, number) in vectors.iter_mut().zip(NUMBER.to_le_bytes()) {
        *vector = arm.xor(arm.and(*vector, arm.splat_u8(number)), arm.splat_u8(SIGN));
    }
    (vectors, signs)
}

/// One level down, for two vectors: from nodes that all lie in the given blocks of the tree to
/// their children.
#[inline(always)]
fn descend<A: Search, const N: usize>(
    arm: A,
    thresholds: &Thresholds,
    bytes: &[[A::Vector; 16]; 2],
    nodes: [A::Vector; 2],
    blocks: [usize; N],
) -> [A::Vector; 2] {
    // In all blocks but its own, a node has a position with the highest bit set.
    let mut positions = [[arm.zero(); N]; 2];
    for (positions, node) in positions.iter_mut().zip(nodes) {
        for (position, block) in positions.iter_mut().zip(blocks) {
            *position = match N {
                1 => node,
                _ => {
                    let within = arm.sub_u8(node, arm.splat_u8(16 * block as u8));
                    arm.add_up_to_255(within, arm.splat_u8(0x70))
                }
            };
        }
    }
    let mut below = [arm.nowhere(); 2];
    for (byte, tree) in thresholds.nodes().iter().enumerate() {
        let mut wanted = [arm.zero(); 2];
        for (n, block) in blocks.into_iter().enumerate() {
            let block = arm.splat_block(&tree.as_chunks().0[block]);
            for i in 0..2 {
                wanted[i] = arm.or(wanted[i], arm.shuffle_blocks(block, positions[i][n]));
            }
        }
        for i in 0..2 {
            below[i] = arm.below(bytes[i][byte], wanted[i], below[i]);
        }
    }
    [arm.child(nodes[0], below[0]), arm.child(nodes[1], below[1])]
}

impl Search for Avx2 {
    type Mask = __m256i;

    #[inline(always)]
    fn load_apart(self, places: &[Place]) -> __m256i {
        let [low, high] = [&places[0], &places[16]];
        // SAFETY: the arm's value proves that the processor has the instructions, here and below. A
        // place has 16 bytes, and the loads need no alignment.
        unsafe { _mm256_loadu2_m128i(high.as_ptr().cast(), low.as_ptr().cast()) }
    }

    #[inline(always)]
    fn nowhere(self) -> __m256i {
        self.zero()
    }

    #[inline(always)]
    fn below(self, a: __m256i, b: __m256i, lower: __m256i) -> __m256i {
        // SAFETY: as above.
        let [below, equal] = unsafe { [_mm256_cmpgt_epi8(b, a), _mm256_cmpeq_epi8(a, b)] };
        self.or(below, self.and(equal, lower))
    }

    #[inline(always)]
    fn child(self, node: __m256i, mask: __m256i) -> __m256i {
        // A byte of the mask is 0 or -1.
        self.sub_u8(self.add_u8(node, node), mask)
    }
}

impl Search for Avx512 {
    type Mask = __mmask64;

    #[inline(always)]
    fn load_apart(self, places: &[Place]) -> __m512i {
        let [a, b, c, d] = [&places[0], &places[16], &places[32], &places[48]];
        // SAFETY: the arm's value proves that the processor has the instructions, here and below. A
        // place has 16 bytes, and the loads need no alignment.
        unsafe {
            let blocks = _mm512_castsi128_si512(_mm_loadu_si128(a.as_ptr().cast()));
            let blocks = _mm512_inserti32x4::<1>(blocks, _mm_loadu_si128(b.as_ptr().cast()));
            let blocks = _mm512_inserti32x4::<2>(blocks, _mm_loadu_si128(c.as_ptr().cast()));
            _mm512_inserti32x4::<3>(blocks, _mm_loadu_si128(d.as_ptr().cast()))
        }
    }

    #[inline(always)]
    fn nowhere(self) -> __mmask64 {
        0
    }

    #[inline(always)]
    fn below(self, a: __m512i, b: __m512i, lower: __mmask64) -> __mmask64 {
        // SAFETY: as above.
        unsafe { _mm512_cmplt_epi8_mask(a, b) | _mm512_mask_cmpeq_epi8_mask(lower, a, b) }
    }

    #[inline(always)]
    fn child(self, node: __m512i, mask: __mmask64) -> __m512i {
        // SAFETY: as above.
        self.sub_u8(self.add_u8(node, node), unsafe { _mm512_movm_epi8(mask) })
    }
}
