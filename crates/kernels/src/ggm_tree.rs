//! The tree of a distributed point function: 128-bit nodes, each of which grows two children
//! (Boyle, Gilboa and Ishai, "Function Secret Sharing: Improvements and Extensions", CCS 2016,
//! after the tree of Goldreich, Goldwasser and Micali).
//!
//! A node is a `u128`, as bytes little-endian: a seed whose lowest bit is always 0, with the node's
//! control bit in that place. Children grow by AES-128 under two public keys, one for each side, in
//! the form of Matyas, Meyer and Oseas, `MMO_k(s) = AES_k(s) ^ s`. The same keys serve a whole
//! tree, so they are expanded once ([`TreeKeys`]). Every node takes one block of a cipher for which
//! processors have instructions.
//!
//! Nodes are secret at the client that makes keys: no branch and no address depends on them. (The
//! portable arm is the implementation that the `aes` crate chooses, which also has no table
//! lookups.) The buffers belong to the caller, who must erase them.

use crate::dispatch::on_arm;
use aes::Aes128Enc;
use aes::cipher::{Array, KeyInit};

use crate::dispatch::Kernels;

#[cfg(target_arch = "x86_64")]
mod round_keys;

/// The two keys of a tree, one for each side, expanded for every arm. They are public, and all
/// parties have the same.
#[derive(Clone, Debug)]
pub struct TreeKeys {
    /// For the portable arm: left, right.
    pub(crate) ciphers: [Aes128Enc; 2],
    /// For the vector arms: the left and the right key of each round, side by side.
    #[cfg(target_arch = "x86_64")]
    pub(crate) round_keys: [[[u8; 16]; 2]; 11],
}

impl TreeKeys {
    /// The keys under which left (side 0) and right (side 1) children grow. They should differ.
    /// Otherwise every node's children would be the same, except for their corrections.
    pub fn new(left: [u8; 16], right: [u8; 16]) -> TreeKeys {
        #[cfg(target_arch = "x86_64")]
        let (lefts, rights) = (round_keys::expand(left), round_keys::expand(right));
        TreeKeys {
            ciphers: [left, right].map(|key| Aes128Enc::new(&Array(key))),
            #[cfg(target_arch = "x86_64")]
            round_keys: std::array::from_fn(|round| [lefts[round], rights[round]]),
        }
    }
}

impl Kernels {
    /// One level down: `children[2 i + side] = MMO_side(seed_i) ^ (t_i · corrections[side])`, where
    /// `seed_i` is `parents[i]` with its lowest bit cleared and `t_i` is that bit. Side 0 is left.
    /// The lowest bit of a child is its control bit.
    ///
    /// `children` may lack the right child of the last parent.
    ///
    /// # Panics
    ///
    /// If `children.len()` is neither `2 * parents.len()` nor one less.
    pub fn ggm_expand(
        self,
        keys: &TreeKeys,
        parents: &[u128],
        corrections: [u128; 2],
        children: &mut [u128],
    ) {
        assert_eq!(
            children.len().div_ceil(2),
            parents.len(),
            "every parent has two children, but the last may have one"
        );
        on_arm!(self, ggm_tree::expand(keys, parents, corrections, children));
    }

    /// From the last level to values: `leaves[i] = MMO_left(seed_i) ^ (t_i · correction)`, where
    /// `seed_i` is `nodes[i]` with its lowest bit cleared and `t_i` is that bit. All 128 bits of a
    /// leaf are output.
    ///
    /// # Panics
    ///
    /// If there are not as many leaves as nodes.
    pub fn ggm_convert(
        self,
        keys: &TreeKeys,
        nodes: &[u128],
        correction: u128,
        leaves: &mut [u128],
    ) {
        assert_eq!(nodes.len(), leaves.len(), "one leaf for each node");
        on_arm!(self, ggm_tree::convert(keys, nodes, correction, leaves));
    }
}
