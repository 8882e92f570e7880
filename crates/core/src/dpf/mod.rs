//! Distributed point functions: a bit string with a single 1, shared between two parties in a few hundred bytes.
//!
//! For a secret index, [`Key::pair`] makes two keys. Each expands to as many pseudorandom bits as a table has records; the two expansions are equal but for the one bit at
//! the index. A server that XORs the records which its expansion selects therefore returns the wanted record, blinded by a sum that the other server returns as well.
//!
//! # The tree
//! The construction is that of Boyle, Gilboa and Ishai (*Function Secret Sharing: Improvements and Extensions*, CCS 2016, §3 and Figure 1), with early termination: one leaf stands for
//! [`LEAF_BITS`] records. Both parties grow a binary tree from a random root of their own:
//!
//! ```text
//! node        a seed of 127 bits and, in place of the lowest of 128, a control bit
//! children    MMO_left(seed) and MMO_right(seed); if the control bit is set, XORed with the level's correction
//! leaf        MMO_left(seed) of a node of the last level; if its control bit is set, XORed with the final word
//! ```
//!
//! The corrections are the same in both keys, and chosen such that at every level
//!
//! - off the path to the secret leaf, both parties' nodes are equal, and so is everything below them;
//! - on the path, their seeds are unrelated and their control bits differ.
//!
//! Where a path leaves the secret one, one of the parties applies the correction and the other does not: the correction is just the difference of the two nodes there, and makes
//! them equal ([`TreePair`]). The final word makes the two secret leaves differ in the one bit that is wanted.
//!
//! `MMO_k(s) = AES_k(s) ⊕ s` (Matyas, Meyer, Oseas) under two fixed keys, one for each side, is as fast as the processor's AES instructions: keys are scheduled once for
//! all nodes. See [`privet_kernels::ggm_tree`].
//!
//! # Why one key says nothing
//! A key is a root, a correction for each level and a final word. To its holder they look like as many uniform bits (but for the lowest bit of the root, which says whose key it
//! is): going down the levels, the other party's seed on the path is unknown and uniform, so both children that grow from it are pseudorandom; the child off the path masks the level's
//! correction seed, the control bit of the child on the path masks the correction of that control bit, that of the child off the path the other, and the seed on the path is
//! as unknown as the one before. At the end it masks the final word. That is the paper's proof, level by level, with MMO as
//! pseudorandom generator.
//!
//! How good is that generator? With AES under a public key as an ideal permutation, to tell the children of an unknown seed from uniform bits means to try the seed: whoever computes
//! AES `T` times under the two keys, and holds keys with `K` levels altogether, succeeds with probability at most about T·K/2^126. (That fixed-key constructions pay such a price
//! for every seed that is attacked together: Guo, Katz, Wang and Yu, *Efficient and Secure Multiparty Computation from Fixed-Key Block Ciphers*, IEEE S&P 2020.) **The AES keys
//! are therefore derived for each table** rather than constants of the program: `T` and `K` then count for one table only, nobody can compute for all tables of the world at
//! once, and nothing can be computed before the table exists. Nobody chooses the keys, either: they come out of a hash function.
//!
//! Both keys together say everything. A client makes both, so it must send each to its server alone; they are erased from memory when dropped.

mod evaluate;
mod generate;
mod key;
#[cfg(test)]
mod tests;

pub use evaluate::Evaluation;
pub use generate::TreePair;
pub use key::Key;

use crate::TableShape;

/// Points of the domain that one leaf stands for: the bits of an AES block.
pub const LEAF_BITS: u64 = 128;

/// The lowest bit of a node.
const CONTROL: u128 = 1;

/// What a point function is defined on, cut into leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    // At least 1.
    leaves: u64,
}

impl Domain {
    /// One bit for each record: record `r` is bit `r % 128` of leaf `r / 128`.
    pub fn of_records(shape: TableShape) -> Self {
        Self { leaves: shape.records().div_ceil(LEAF_BITS) }
    }

    /// The number of leaves, at least 1. The tree may have room for more; those are never computed.
    pub fn leaves(self) -> u64 {
        self.leaves
    }

    /// Levels below the root: the least `depth` with `leaves ≤ 2^depth`. A domain of one leaf has depth 0.
    pub fn depth(self) -> u32 {
        u64::BITS - (self.leaves - 1).leading_zeros()
    }
}
