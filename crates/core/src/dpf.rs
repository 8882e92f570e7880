//! Distributed point functions: a bit string with a single 1, shared between two parties in a few
//! hundred bytes.
//!
//! For a secret index, [`Key::pair`] makes two keys. Each expands to as many pseudorandom bits as a
//! table has records; the two expansions are equal but for the one bit at the index. A server that
//! XORs the records which its expansion selects therefore returns the wanted record, blinded by a
//! sum that the other server returns as well.
//!
//! # The tree
//! The construction is that of Boyle, Gilboa and Ishai (*Function Secret Sharing: Improvements and
//! Extensions*, CCS 2016, §3 and Figure 1), with early termination: one leaf stands for
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
//! - off the path to the secret leaf, both parties' nodes are equal, and so is everything below
//!   them;
//! - on the path, their seeds are unrelated and their control bits differ.
//!
//! Where a path leaves the secret one, one of the parties applies the correction and the other does
//! not: the correction is just the difference of the two nodes there, and makes them equal
//! ([`TreePair`]). The final word makes the two secret leaves differ in the one bit that is wanted.
//!
//! `MMO_k(s) = AES_k(s) ⊕ s` (Matyas, Meyer, Oseas) under two public keys, one for each side, is as
//! fast as the processor's AES instructions: keys are expanded once for all nodes of a lookup. See
//! [`privet_kernels::ggm_tree`].
//!
//! # A payload
//! [`Key::pair_with_payload`] makes keys whose tree goes down to single records
//! ([`Domain::of_payloads`]) and whose leaves XOR to a payload of 128 bits at the index, and to
//! zero elsewhere. The control bits of the last level are then a bit string with a single 1,
//! shared, as they are: one key gives shares of two functions, 1 at the index and the payload at
//! the index ([`Evaluation::ends`]). A payload that is secret and uniform stays so to each party:
//! the final word hides it as it hides the bit. What is said below of keys for bits holds for these
//! as well, with the number of levels that they have: `K` is 26 for 2^25 records, and 49 for 2^48.
//!
//! # Why one key says nothing
//! A key is a nonce, a root, a correction for each level and a final word. To its holder they look
//! like as many uniform bits (but for the lowest bit of the root, which says whose key it is). The
//! nonce is drawn apart from everything else. Going down the levels, the other party's seed on the
//! path is unknown and uniform, so both children that grow from it are pseudorandom; the child off
//! the path masks the level's correction seed, the control bit of the child on the path masks the
//! correction of that control bit, that of the child off the path the other, and the seed on the
//! path is as unknown as the one before. At the end it masks the final word. That is the paper's
//! proof, level by level, with MMO as pseudorandom generator.
//!
//! # How good that generator is
//! With AES as an ideal cipher, whose permutations under known keys are random and unrelated, to
//! tell the children of an unknown seed from uniform bits means to try the seed. A lookup has `K =
//! depth + 1` such seeds, 127 bits each, all of which grow under the same two AES keys, so one
//! computation of AES tries all of them: whoever computes AES `T` times under those keys succeeds
//! with probability at most about T·K/2^126. (That fixed-key constructions pay such a price for
//! every seed that is attacked together: Guo, Katz, Wang and Yu, *Efficient and Secure Multiparty
//! Computation from Fixed-Key Block Ciphers*, IEEE S&P 2020.)
//!
//! **The AES keys are therefore derived anew for each lookup**, by a hash function, from the
//! table's id and a [`Nonce`] that stands in both keys. What is computed against one lookup says
//! nothing about another, of the same client or of a million others; nothing can be computed before
//! a lookup is made; and nobody chooses the AES keys, whoever chose the table's id. So the price is
//! paid for the nodes of one lookup alone: `T` computations, all together and however they are
//! divided among however many lookups, break any of them with probability at most about T·K/2^126.
//! With 2^25 records that is 2^126/19, **121 bits**; with 2^48, the most there can be, `K` is 42
//! and it is 120. The price is the nonce's 16 bytes in each key, and 0.2 µs for each lookup.
//!
//! Nonces are 128 bits at random, so two of 2^32 lookups of one table have the same with
//! probability 2^-65. Nothing is revealed then: only, the seeds of those two are attacked together,
//! `K` counts both, and one bit of the 121 is lost for them. Everything secret is drawn apart from
//! the nonce.
//!
//! Both keys together say everything. A client makes both, so it must send each to its server
//! alone; they are erased from memory when dropped.

mod evaluate;
mod generate;
mod key;
mod nonce;
#[cfg(test)]
mod tests;

pub use evaluate::{Evaluation, Node, Nodes};
pub use generate::TreePair;
pub use key::Key;
pub use nonce::Nonce;

use crate::{RecordIndex, TableShape};

/// Points of the domain that one leaf stands for, if each of them is one bit: the bits of an AES
/// block.
pub const LEAF_BITS: u64 = 128;

/// The lowest bit of a node.
const CONTROL: u128 = 1;

/// What a point function is defined on, cut into leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    // At least 1.
    records: u64,
    // 0, or that of `LEAF_BITS`. A power of two, because an index is not divided in constant time.
    leaf_records_log2: u32,
}

impl Domain {
    /// One bit for each record: record `r` is bit `r % 128` of leaf `r / 128`.
    pub fn of_records(shape: TableShape) -> Self {
        Self { records: shape.records(), leaf_records_log2: LEAF_BITS.ilog2() }
    }

    /// One leaf for each record, so that a point can carry a payload.
    pub fn of_payloads(shape: TableShape) -> Self {
        Self { records: shape.records(), leaf_records_log2: 0 }
    }

    /// The number of points, at least 1.
    pub fn records(self) -> u64 {
        self.records
    }

    /// The number of leaves, at least 1. The tree may have room for more; those are never computed.
    pub fn leaves(self) -> u64 {
        self.records.div_ceil(1 << self.leaf_records_log2)
    }

    /// The leaf that a point belongs to.
    fn leaf_of(self, index: &RecordIndex) -> u64 {
        index.expose() >> self.leaf_records_log2
    }

    /// Levels below the root: the least `depth` with `leaves ≤ 2^depth`. A domain of one leaf has
    /// depth 0.
    pub fn depth(self) -> u32 {
        u64::BITS - (self.leaves() - 1).leading_zeros()
    }
}
