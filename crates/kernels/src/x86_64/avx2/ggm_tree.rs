//! Tree growing with AES-NI: eight nodes at a time, left and right children in turn.

use std::arch::x86_64::*;

use super::keystream::{LANES, encrypt};
use crate::ggm_tree::TreeKeys;

/// The round keys and the correction for the children of each side.
struct Sides {
    keys: [[__m128i; 11]; 2],
    corrections: [__m128i; 2],
}

/// See [`Kernels::ggm_expand`](crate::Kernels::ggm_expand).
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(crate) fn expand(
    keys: &TreeKeys,
    parents: &[u128],
    corrections: [u128; 2],
    children: &mut [u128],
) {
    let sides = Sides {
        keys: [round_keys(keys, 0), round_keys(keys, 1)],
        corrections: [load(&corrections[0]), load(&corrections[1])],
    };
    let (batches, rest) = children.as_chunks_mut::<LANES>();
    let (parents, parents_of_rest) = parents.split_at(batches.len() * LANES / 2);
    for (children, parents) in batches.iter_mut().zip(parents.as_chunks::<{ LANES / 2 }>().0) {
        let mut nodes = [_mm_setzero_si128(); LANES];
        for (nodes, parent) in nodes.as_chunks_mut::<2>().0.iter_mut().zip(parents) {
            *nodes = [load(parent); 2];
        }
        sides.grow(&mut nodes);
        store(children, &nodes);
    }
    for (children, parent) in rest.chunks_mut(2).zip(parents_of_rest) {
        let mut nodes = [load(parent); 2];
        sides.grow(&mut nodes);
        store(children, &nodes);
    }
}

/// See [`Kernels::ggm_convert`](crate::Kernels::ggm_convert).
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(crate) fn convert(keys: &TreeKeys, nodes: &[u128], correction: u128, leaves: &mut [u128]) {
    let sides = Sides { keys: [round_keys(keys, 0); 2], corrections: [load(&correction); 2] };
    let (batches, rest) = leaves.as_chunks_mut::<LANES>();
    let (nodes, nodes_of_rest) = nodes.as_chunks::<LANES>();
    for (leaves, nodes) in batches.iter_mut().zip(nodes) {
        let mut vectors = [_mm_setzero_si128(); LANES];
        for (vector, node) in vectors.iter_mut().zip(nodes) {
            *vector = load(node);
        }
        sides.grow(&mut vectors);
        store(leaves, &vectors);
    }
    for (leaf, node) in rest.chunks_mut(1).zip(nodes_of_rest) {
        let mut nodes = [load(node)];
        sides.grow(&mut nodes);
        store(leaf, &nodes);
    }
}

impl Sides {
    /// Replaces each node by its child: the left one in even places, the right one in odd places.
    #[inline]
    #[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
    fn grow<const NODES: usize>(&self, nodes: &mut [__m128i; NODES]) {
        let control_bit = _mm_set_epi64x(0, 1);
        let mut feed_forward = *nodes;
        for (i, (node, feed_forward)) in nodes.iter_mut().zip(&mut feed_forward).enumerate() {
            let seed = _mm_andnot_si128(control_bit, *node);
            // Spreads the control bit to all bits of the node's place.
            let control = _mm_slli_epi32::<31>(_mm_shuffle_epi32::<0>(*node));
            let control = _mm_srai_epi32::<31>(control);
            let correction = _mm_and_si128(control, self.corrections[i % 2]);
            *feed_forward = _mm_xor_si128(seed, correction);
            *node = seed;
        }
        encrypt([&self.keys[0], &self.keys[1]], nodes);
        for (node, feed_forward) in nodes.iter_mut().zip(feed_forward) {
            *node = _mm_xor_si128(*node, feed_forward);
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn round_keys(keys: &TreeKeys, side: usize) -> [__m128i; 11] {
    let mut round_keys = [_mm_setzero_si128(); 11];
    for (round_key, sides) in round_keys.iter_mut().zip(&keys.round_keys) {
        // SAFETY: the array has 16 bytes, and the load needs no alignment.
        *round_key = unsafe { _mm_loadu_si128(sides[side].as_ptr().cast()) };
    }
    round_keys
}

#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn load(node: &u128) -> __m128i {
    // SAFETY: the number has 16 bytes, and the load needs no alignment.
    unsafe { _mm_loadu_si128(std::ptr::from_ref(node).cast()) }
}

/// The first nodes, as many as `out` takes.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn store(out: &mut [u128], nodes: &[__m128i]) {
    for (out, node) in out.iter_mut().zip(nodes) {
        // SAFETY: the number has 16 bytes, and the store needs no alignment.
        unsafe { _mm_storeu_si128(std::ptr::from_mut(out).cast(), *node) };
    }
}
