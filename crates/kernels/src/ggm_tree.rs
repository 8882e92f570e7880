//! The tree of a distributed point function: 128-bit nodes, each of which grows two children (Boyle,
//! Gilboa and Ishai, "Function Secret Sharing: Improvements and Extensions", CCS 2016, after the tree of
//! Goldreich, Goldwasser and Micali).
//!
//! A node is a `u128`, as bytes little-endian: a seed whose lowest bit is always 0, with the node's
//! control bit in that place. Growing is AES-128 under two fixed public keys, one for each side, in the
//! form of Matyas, Meyer and Oseas, `MMO_k(s) = AES_k(s) ^ s`: since the keys never change, they are
//! expanded once for many nodes, and every node is one block of a cipher that processors have built in.
//!
//! Nodes are secret at the client that makes keys: no branch and no address depends on them. (The portable
//! arm is whatever the `aes` crate chooses, which is free of tables too.) The buffers belong to the
//! caller, who erases them; registers, and what the compiler spilled from them, are not erased.

use crate::dispatch::Kernels;

/// The two fixed keys of a tree, one for each side. They are public, and all parties have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeKeys {
    pub(crate) left: [u8; 16],
    pub(crate) right: [u8; 16],
}

impl TreeKeys {
    /// The keys under which left (side 0) and right (side 1) children grow. They should differ, or every
    /// node's children would be the same but for their corrections.
    pub fn new(left: [u8; 16], right: [u8; 16]) -> TreeKeys {
        TreeKeys { left, right }
    }
}

impl Kernels {
    /// One level down: `children[2 i + side] = MMO_side(seed_i) ^ (t_i · corrections[side])`, where `seed_i`
    /// is `parents[i]` with its lowest bit cleared and `t_i` is that bit. Side 0 is left. The lowest bit of
    /// a child is its control bit.
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
        self.ggm_expand_dispatch(keys, parents, corrections, children);
    }

    /// From the last level to values: `leaves[i] = MMO_left(seed_i) ^ (t_i · correction)`, where `seed_i` is
    /// `nodes[i]` with its lowest bit cleared and `t_i` is that bit. All 128 bits of a leaf are output.
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
        self.ggm_convert_dispatch(keys, nodes, correction, leaves);
    }
}
