//! Hash trees (Merkle, *A Digital Signature Based on a Conventional Encryption Function*, CRYPTO
//! 1987).
//!
//! A tree's *leaves* are hashes of records, and every other node is the hash of the two below it. A
//! client that knows the *root* can check any record with the record's *path*: the hashes beside
//! the way from its leaf to the root. [`MerkleHasher`] says what is hashed and how. Anybody with an
//! implementation of BLAKE3 can check it.
//!
//! # Nodes beyond the end
//!
//! Trees have any number of leaves. Think of them as padded to a power of two. **A node with no
//! record below it is 32 bytes of zeros ([`ZERO`]); every other node is hashed**, even if its right
//! child is zeros. No record has such a leaf, and nobody can find one: its hash would have to be
//! zeros. So nodes beyond the end can never be opened, and cost nothing to hash or store.

//!
//! # As a vector commitment
//!
//! [`Merkle`] has one tree for each vector. The client sees the whole table when it prepares, so it
//! can keep more of each tree than the root. The *cap* is all nodes that are `cap_levels` below the
//! root; with `cap_levels` = 0 it is the root itself. A path then ends below the cap. Each level
//! saves 32 bytes and a hash for each vector of every answer. Heights are counted from the leaves:
//! for vectors of 2^5 records and `cap_levels` = 2,
//!
//! ```text
//! height 5                       root             the level of cap_levels = 0
//! height 4              ┌─────────┴─────────┐
//! height 3         ┌────┴────┐         ┌────┴────┐     the cap: 4 nodes, kept by the client
//! height 2       ┌─┴─┐     ┌─┴─┐     ┌─┴─┐     ┌─┴─┐   ┐ kept by the server
//! height 1      ┌┴┐ ┌┴┐   ┌┴┐ ┌┴┐   ┌┴┐ ┌┴┐   ┌┴┐ ┌┴┐  ┘
//! height 0      leaves: a proof's lowest hash is computed from the table when it is asked for
//! ```
//!
//! A proof has, for each vector in turn, the siblings of heights 0, 1, 2: as many hashes as the
//! cap's height. The server keeps the heights from 1 up to the cap, without the cap: at most about
//! 32 bytes for each record.
//!
//! Security rests on BLAKE3 alone: a record that is accepted in place of the committed one is a
//! collision.
//!
//! APIR-Matrix and authenticated tables use the same hashing, for one tree over a whole table.

mod hasher;
mod levels;
mod prover;
mod tree;
mod verifier;

pub use hasher::MerkleHasher;
pub use levels::{depth, width};
pub use prover::MerkleProver;
pub use tree::Tree;
pub use verifier::{MerkleGathering, MerkleVerifier};

use super::{VectorCommitment, Vectors};
use crate::{Error, Result};
use levels::Levels;
use privet_kernels::Kernels;

#[cfg(test)]
mod tests;

/// A hash: a leaf or an inner node.
pub type Node = [u8; 32];

/// A node with no record below it.
pub const ZERO: Node = [0; 32];

/// A tree for each vector, with a cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merkle {
    vectors: Vectors,
    cap_levels: u8,
}

impl Merkle {
    /// A tree for each of `vectors`. The client keeps the nodes that are `cap_levels` below each
    /// root.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if the trees have fewer levels than that.
    pub fn new(vectors: Vectors, cap_levels: u8) -> Result<Self> {
        let depth = depth(vectors.vector_len().into());
        if u32::from(cap_levels) > depth {
            return Err(Error::api_misuse(format!(
                "a hash tree over {} records has {depth} levels above the leaves, so a client cannot keep {cap_levels}",
                vectors.vector_len()
            )));
        }
        Ok(Self { vectors, cap_levels })
    }

    /// The most levels such that the cap has at most `max_bytes`; 0 if not even the roots fit.
    pub fn cap_levels_for(vectors: Vectors, max_bytes: u64) -> u8 {
        let deepest = depth(vectors.vector_len().into()) as u8;
        let fits =
            |cap_levels: &u8| Self { vectors, cap_levels: *cap_levels }.cap_bytes() <= max_bytes;
        (0..=deepest).rev().find(fits).unwrap_or(0)
    }

    /// Levels of each tree between the root and the cap.
    pub fn cap_levels(&self) -> u8 {
        self.cap_levels
    }

    /// The cap's height above the leaves, which is also how many hashes of each vector are in a
    /// proof.
    pub fn cap_height(&self) -> u32 {
        depth(self.vectors.vector_len().into()) - u32::from(self.cap_levels)
    }

    /// Nodes of each tree in the cap, without those that have nothing below them.
    pub fn cap_width(&self) -> u32 {
        width(self.vectors.vector_len().into(), self.cap_height()) as u32
    }

    /// Nodes of the cap of all trees.
    fn cap_nodes(&self) -> u64 {
        u64::from(self.vectors.count()) * u64::from(self.cap_width())
    }

    /// Bytes of the cap of all trees.
    fn cap_bytes(&self) -> u64 {
        self.cap_nodes() * size_of::<Node>() as u64
    }

    /// The heights that a server keeps.
    fn kept_levels(&self) -> Levels {
        Levels::new(self.vectors.vector_len() as usize, 1..=self.cap_height().saturating_sub(1))
    }

    /// The same heights and then the cap; or only the leaves, if they are the cap.
    fn levels_to_cap(&self) -> Levels {
        let height = self.cap_height();
        Levels::new(self.vectors.vector_len() as usize, height.min(1)..=height)
    }

    /// The number of the first record of a vector.
    fn first_index(&self, vector: u32) -> u64 {
        u64::from(vector) * u64::from(self.vectors.vector_len())
    }

    /// The records of a vector, of the whole padded table.
    fn records<'a>(&self, table: &'a [u8], vector: u32) -> &'a [u8] {
        let len = self.vectors.vector_bytes() as usize;
        &table[vector as usize * len..][..len]
    }
}

impl VectorCommitment for Merkle {
    type Prover = MerkleProver;
    type Gathering = MerkleGathering;
    type Verifier = MerkleVerifier;

    fn vectors(&self) -> Vectors {
        self.vectors
    }

    fn proof_len(&self) -> usize {
        self.vectors.count() as usize * self.cap_height() as usize * size_of::<Node>()
    }

    fn announcement_len(&self) -> u64 {
        0
    }

    fn verifier_len(&self) -> u64 {
        self.cap_bytes()
    }

    fn kept_len(&self) -> u64 {
        0
    }

    /// Nothing: hashing a tree takes less time than reading it from a file and checking it.
    fn precompute(&self, _: &[u8], _: Kernels, progress: &(dyn Fn(f64) + Sync)) -> Result<Vec<u8>> {
        progress(1.0);
        Ok(Vec::new())
    }

    fn prover(&self, table: &[u8], kept: &[u8], kernels: Kernels) -> Result<MerkleProver> {
        if !kept.is_empty() {
            return Err(Error::corrupted("hash trees are not kept in a file, but there is one"));
        }
        MerkleProver::new(*self, table, kernels)
    }

    fn gathering(&self, kernels: Kernels) -> Result<MerkleGathering> {
        MerkleGathering::new(*self, kernels)
    }

    fn resume_gathering(&self, bytes: &[u8], kernels: Kernels) -> Result<MerkleGathering> {
        MerkleGathering::resume(*self, bytes, kernels)
    }

    fn read_verifier(&self, bytes: &[u8], kernels: Kernels) -> Result<MerkleVerifier> {
        MerkleVerifier::read(*self, bytes, kernels)
    }

    fn grown(&self, after: Vectors) -> Result<Self> {
        let before = self.vectors;
        let same_but_longer = after.vector_len() == before.vector_len()
            && after.record_len() == before.record_len()
            && after.shape().records() >= before.shape().records()
            && after.count() >= before.count();
        if !same_but_longer {
            return Err(Error::api_misuse(
                "a committed table may gain records, but nothing else of its shape may change",
            ));
        }
        Ok(Self { vectors: after, ..*self })
    }
}
