//! Tree growing with vector AES: four nodes in a vector. A vector of children holds left and right
//! ones in turn, as in memory. So its round keys and corrections alternate in the same way.

use std::arch::x86_64::*;

use super::keystream::{Cipher, LANES};
use super::load;
use crate::ggm_tree::TreeKeys;

/// Nodes of one vector.
const VECTOR_NODES: usize = 4;
/// The number of nodes that are grown at a time.
const BATCH: usize = LANES * VECTOR_NODES;

/// See [`Kernels::ggm_expand`](crate::Kernels::ggm_expand).
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
pub(crate) fn expand(
    keys: &TreeKeys,
    parents: &[u128],
    corrections: [u128; 2],
    children: &mut [u128],
) {
    let cipher = both_sides(keys);
    let corrections = pairs(corrections);
    let (batches, rest) = children.as_chunks_mut::<BATCH>();
    let (parents, parents_of_rest) = parents.split_at(batches.len() * BATCH / 2);
    for (children, parents) in batches.iter_mut().zip(parents.as_chunks::<{ BATCH / 2 }>().0) {
        let parents = parents.as_chunks::<VECTOR_NODES>().0;
        let mut nodes = [_mm512_setzero_si512(); LANES];
        for i in 0..LANES / 2 {
            [nodes[2 * i], nodes[2 * i + 1]] = twice(load(&parents[i]));
        }
        let nodes = grow(&cipher, nodes, corrections);
        store(children, nodes);
    }
    let parents = parents_of_rest.chunks(VECTOR_NODES);
    for (children, parents) in rest.chunks_mut(2 * VECTOR_NODES).zip(parents) {
        let nodes = grow(&cipher, twice(load_up_to(parents)), corrections);
        for (children, nodes) in children.chunks_mut(VECTOR_NODES).zip(nodes) {
            store_up_to(children, nodes);
        }
    }
}

/// See [`Kernels::ggm_convert`](crate::Kernels::ggm_convert).
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
pub(crate) fn convert(keys: &TreeKeys, nodes: &[u128], correction: u128, leaves: &mut [u128]) {
    let cipher = left_side(keys);
    let correction = pairs([correction; 2]);
    let (batches, rest) = leaves.as_chunks_mut::<BATCH>();
    let (nodes, nodes_of_rest) = nodes.as_chunks::<BATCH>();
    for (leaves, nodes) in batches.iter_mut().zip(nodes) {
        let nodes = nodes.as_chunks::<VECTOR_NODES>().0;
        let mut vectors = [_mm512_setzero_si512(); LANES];
        for i in 0..LANES {
            vectors[i] = load(&nodes[i]);
        }
        let vectors = grow(&cipher, vectors, correction);
        store(leaves, vectors);
    }
    let nodes = nodes_of_rest.chunks(VECTOR_NODES);
    for (leaves, nodes) in rest.chunks_mut(VECTOR_NODES).zip(nodes) {
        let [vector] = grow(&cipher, [load_up_to(nodes)], correction);
        store_up_to(leaves, vector);
    }
}

/// Grows a child of each node.
///
/// Everything that is XORed with the cipher's output is made part of its last round key.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn grow<const VECTORS: usize>(
    cipher: &Cipher,
    nodes: [__m512i; VECTORS],
    corrections: __m512i,
) -> [__m512i; VECTORS] {
    // `(a & !b) ^ c` as the truth table of a ternary operation: a seed, XORed with a round key.
    const SEED_XOR: i32 = 0b1001_1010;
    let control_bit = pairs([1; 2]);
    let mut blocks = nodes;
    let mut last_keys = nodes;
    for i in 0..VECTORS {
        let node = nodes[i];
        blocks[i] = _mm512_ternarylogic_epi64::<SEED_XOR>(node, control_bit, cipher.keys[0]);
        let last_key = _mm512_ternarylogic_epi64::<SEED_XOR>(node, control_bit, cipher.keys[10]);
        // A mask with the control bit in both halves of a node's place.
        let both = _mm512_shuffle_epi32::<0b01_00_01_00>(node);
        let control = _mm512_test_epi64_mask(both, _mm512_set1_epi64(1));
        last_keys[i] = _mm512_mask_xor_epi64(last_key, control, last_key, corrections);
    }
    for key in &cipher.keys[1..10] {
        for block in &mut blocks {
            *block = _mm512_aesenc_epi128(*block, *key);
        }
    }
    for i in 0..VECTORS {
        blocks[i] = _mm512_aesenclast_epi128(blocks[i], last_keys[i]);
    }
    blocks
}

/// A cipher for left, right, left and right children in the four blocks of a vector.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn both_sides(keys: &TreeKeys) -> Cipher {
    let mut round_keys = [_mm512_setzero_si512(); 11];
    for (round_key, sides) in round_keys.iter_mut().zip(&keys.round_keys) {
        // SAFETY: the array has 32 bytes, and the load needs no alignment.
        let sides = unsafe { _mm256_loadu_si256(sides.as_ptr().cast()) };
        *round_key = _mm512_broadcast_i64x4(sides);
    }
    Cipher { keys: round_keys }
}

/// A cipher for left children alone.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn left_side(keys: &TreeKeys) -> Cipher {
    let mut round_keys = [_mm512_setzero_si512(); 11];
    for (round_key, [left, _]) in round_keys.iter_mut().zip(&keys.round_keys) {
        // SAFETY: the array has 16 bytes, and the load needs no alignment.
        let left = unsafe { _mm_loadu_si128(left.as_ptr().cast()) };
        *round_key = _mm512_broadcast_i32x4(left);
    }
    Cipher { keys: round_keys }
}

/// The two numbers in turn.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn pairs(numbers: [u128; 2]) -> __m512i {
    let [even, odd] = numbers;
    // Takes the halves of each; the casts truncate on purpose.
    let (even_low, even_high) = (even as i64, (even >> 64) as i64);
    let (odd_low, odd_high) = (odd as i64, (odd >> 64) as i64);
    let pair = _mm256_set_epi64x(odd_high, odd_low, even_high, even_low);
    _mm512_broadcast_i64x4(pair)
}

/// The four nodes of a vector, each twice.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn twice(nodes: __m512i) -> [__m512i; 2] {
    [
        _mm512_shuffle_i64x2::<0b01_01_00_00>(nodes, nodes),
        _mm512_shuffle_i64x2::<0b11_11_10_10>(nodes, nodes),
    ]
}

/// Stores a batch of nodes; no alignment needed.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn store(nodes: &mut [u128; BATCH], vectors: [__m512i; LANES]) {
    for (nodes, vector) in nodes.as_chunks_mut::<VECTOR_NODES>().0.iter_mut().zip(vectors) {
        // SAFETY: the array has 64 bytes, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(nodes.as_mut_ptr().cast(), vector) };
    }
}

/// Up to four nodes, padded with zeros.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn load_up_to(nodes: &[u128]) -> __m512i {
    // SAFETY: the mask selects the slice's own words, and a masked load touches nothing else.
    unsafe { _mm512_maskz_loadu_epi64(mask_of(nodes), nodes.as_ptr().cast()) }
}

/// Stores the first nodes of a vector, as many as `nodes` takes, at most four.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn store_up_to(nodes: &mut [u128], vector: __m512i) {
    // SAFETY: the mask selects the slice's own words, and a masked store touches nothing else.
    unsafe { _mm512_mask_storeu_epi64(nodes.as_mut_ptr().cast(), mask_of(nodes), vector) }
}

/// A mask of both halves of each node.
#[inline(always)]
fn mask_of(nodes: &[u128]) -> __mmask8 {
    assert!(nodes.len() <= VECTOR_NODES);
    ((1u32 << (2 * nodes.len())) - 1) as __mmask8
}
