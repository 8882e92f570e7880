//! The form of the scheme, which is the vector commitment: here Merkle trees.
//!
//! A client of TAPIR-MT has streamed the table, so it can compute the upper levels of every tree
//! and keep them. With 2^20 records of 32 bytes, a proof then has 3 or 4 hashes for each partition;
//! a whole path has 10 to 16.

use crate::SchemeId;
use privet_core::Result;
use privet_core::codec::Reader;
use privet_core::commit::merkle::Merkle;
use privet_core::commit::{VectorCommitment, Vectors};

/// A form of TAPIR.
pub trait Form: Send + Sync + 'static {
    /// The scheme's name.
    const ID: SchemeId;
    /// How the table is committed to.
    type Commitment: VectorCommitment;

    /// What a server announces about the commitment, besides the cut of the table.
    fn encode(commitment: &Self::Commitment) -> Vec<u8>;

    /// Memory that a client needs to verify with it, in bytes.
    fn verifier_memory(commitment: &Self::Commitment) -> u64;

    /// A proof of the right form that proves nothing, for answers that no server gave.
    fn proof_in_form(commitment: &Self::Commitment) -> Vec<u8> {
        vec![0; commitment.proof_len()]
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if it does not parse,
    /// [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) or
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it makes no sense.
    fn decode(vectors: Vectors, reader: &mut Reader<'_>) -> Result<Self::Commitment>;
}

/// TAPIR-MT: a Merkle tree for each partition. A client keeps the upper levels of every tree.
pub struct MerkleForm;

impl MerkleForm {
    /// The default commitment: the client keeps as many levels as take no more memory than the rest
    /// of its state.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table does not suit the
    /// commitment.
    pub fn commitment(vectors: Vectors, state_bytes: u64) -> Result<Merkle> {
        Merkle::new(vectors, Merkle::cap_levels_for(vectors, state_bytes))
    }
}

impl Form for MerkleForm {
    const ID: SchemeId = super::MERKLE;
    type Commitment = Merkle;

    /// One byte: how many levels below the root the client keeps.
    fn encode(commitment: &Merkle) -> Vec<u8> {
        vec![commitment.cap_levels()]
    }

    fn verifier_memory(commitment: &Merkle) -> u64 {
        commitment.verifier_len()
    }

    /// A table that has grown keeps its first number of levels. So a server may announce another
    /// number than the default for the present table.
    fn decode(vectors: Vectors, reader: &mut Reader<'_>) -> Result<Merkle> {
        Merkle::new(vectors, reader.u8()?)
    }
}
