//! Distributed point functions: a bit string with a single 1, shared between two parties in a few
//! hundred bytes.
//!
//! For a secret index, [`Key::pair`] makes two keys. Each key expands to as many pseudorandom bits
//! as a table has records. The two expansions are equal except for the one bit at the index. Each
//! server XORs the records that its expansion selects. The two sums differ by the wanted record,
//! and the common part of both blinds it.
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
//! Where a path leaves the secret one, exactly one of the parties applies the correction. The
//! correction is the difference of the two nodes there, so it makes them equal ([`TreePair`]). The
//! final word makes the two secret leaves differ in the one wanted bit.
//!
//! `MMO_k(s) = AES_k(s) ⊕ s` (Matyas, Meyer, Oseas) under two public keys, one for each side, is as
//! fast as the processor's AES instructions, because the keys are expanded once for all nodes of a
//! lookup. See [`privet_kernels::ggm_tree`].
//!
//! # A payload
//! [`Key::pair_with_payload`] makes keys whose tree goes down to single records
//! ([`Domain::of_payloads`]) and whose leaves XOR to a payload of 128 bits at the index, and to
//! zero elsewhere. The control bits of the last level are then shares of a bit string with a
//! single 1. So one key gives shares of two functions: 1 at the index, and the payload at the
//! index ([`Evaluation::ends`]). A secret and uniform payload stays so for each party: the final
//! word hides it as it hides the bit. Everything below about keys for bits holds for these keys
//! too, with their number of levels: `K` is 26 for 2^25 records, and 49 for 2^48.
//!
//! # Why one key reveals nothing
//! A key is a nonce, a root, a correction for each level and a final word. To its holder they look
//! like uniform bits (except for the lowest bit of the root, which says whose key it is). The nonce
//! is drawn independently of everything else. At each level, the other party's seed on the path is
//! unknown and uniform, so both of its children are pseudorandom. The child off the path masks the
//! level's correction seed. The control bit of each child masks the correction of that control bit.
//! The next seed on the path is again unknown and uniform. At the end it masks the final word. That
//! is the paper's proof, level by level, with MMO as pseudorandom generator.
//!
//! # How good that generator is
//! Take AES as an ideal cipher: its permutations under known keys are random and unrelated. Then an
//! attacker who wants to tell the children of an unknown seed from uniform bits must try the seed.
//! A lookup has `K = depth + 1` such seeds of 127 bits each, which all grow under the same two AES
//! keys. So one computation of AES tries all of them. An attacker who computes AES `T` times under
//! those keys succeeds with probability at most about T·K/2^126. (Guo, Katz, Wang and Yu,
//! *Efficient and Secure Multiparty Computation from Fixed-Key Block Ciphers*, IEEE S&P 2020, show
//! that fixed-key constructions pay this price for all seeds that are attacked together.)
//!
//! **So the AES keys are derived anew for each lookup**, by a hash function, from the table's id
//! and a [`Nonce`] that is in both keys. Work against one lookup does not help against another, of
//! the same client or of a million others. An attacker can compute nothing before a lookup is made.
//! And nobody chooses the AES keys, not even the person who chose the table's id. So the loss is
//! only for the nodes of one lookup: `T` computations in total, divided among any number of
//! lookups, break any of them with probability at most about T·K/2^126. With 2^25 records that is
//! 2^126/19, **121 bits**. With 2^48 records, the maximum, `K` is 42 and it is 120 bits. The cost
//! is the nonce's 16 bytes in each key, and 0.2 µs for each lookup.
//!
//! Nonces are 128 random bits, so two of 2^32 lookups of one table have the same nonce with
//! probability 2^-65. Even that reveals nothing: the seeds of these two lookups can only be
//! attacked together, `K` counts both, and they lose one bit of the 121. Everything secret is drawn
//! independently of the nonce.
//!
//! Both keys together reveal the index. A client makes both, so it must send each key only to its
//! server. Keys are erased from memory when dropped.

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

/// The number of points of the domain in one leaf, if each point is one bit: the bits of an AES
/// block.
pub const LEAF_BITS: u64 = 128;

/// The lowest bit of a node.
const CONTROL: u128 = 1;

/// The domain of a point function, cut into leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    // At least 1.
    records: u64,
    // 0, or log2 of `LEAF_BITS`. The number is a power of two, because a division of the index
    // would not take constant time.
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
