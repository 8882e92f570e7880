//! The two forms of the scheme, which differ in the vector commitment.

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

    /// What a server announces of the commitment, beside how the table is cut.
    fn encode(commitment: &Self::Commitment) -> Vec<u8>;

    /// Reads it. `state_bytes` are the client's hints and permutations.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if it does not parse, [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) or
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it makes no sense.
    fn decode(
        vectors: Vectors,
        state_bytes: u64,
        reader: &mut Reader<'_>,
    ) -> Result<Self::Commitment>;
}

/// TAPIR-MT: a Merkle tree for each partition. A client keeps the upper levels of every tree.
pub struct MerkleForm;

impl MerkleForm {
    /// The default commitment: the client keeps as many levels as take no more memory than the rest of what it keeps.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table does not suit.
    pub fn commitment(vectors: Vectors, state_bytes: u64) -> Result<Merkle> {
        Merkle::new(vectors, Merkle::cap_levels_for(vectors, state_bytes))
    }
}

impl Form for MerkleForm {
    const ID: SchemeId = SchemeId::TapirMerkle;
    type Commitment = Merkle;

    /// One byte: how many levels below the root the client keeps.
    fn encode(commitment: &Merkle) -> Vec<u8> {
        vec![commitment.cap_levels()]
    }

    fn decode(vectors: Vectors, state_bytes: u64, reader: &mut Reader<'_>) -> Result<Merkle> {
        let announced = Merkle::new(vectors, reader.u8()?)?;
        // A table that has grown keeps the levels that it began with, and these may be a few more than would be chosen for it now.
        let most = Merkle::cap_levels_for(vectors, state_bytes.saturating_mul(4).max(1 << 20));
        if announced.cap_levels() > most {
            return Err(privet_core::Error::peer_misbehaved(format!(
                "the server wants clients to keep {} levels of each tree, more than {most}",
                announced.cap_levels()
            )));
        }
        Ok(announced)
    }
}

#[cfg(not(target_family = "wasm"))]
pub use pointproofs::PointproofsForm;

#[cfg(not(target_family = "wasm"))]
mod pointproofs {
    use super::{Form, SchemeId, Vectors};
    use privet_core::Result;
    use privet_core::codec::Reader;
    use privet_core::commit::pointproofs::Pointproofs;

    /// TAPIR-PP: Pointproofs, aggregated over all partitions. The proof in an answer is 48 bytes.
    pub struct PointproofsForm;

    impl Form for PointproofsForm {
        const ID: SchemeId = SchemeId::TapirPointproofs;
        type Commitment = Pointproofs;

        /// The reference string's size (u32) and its digest (32 bytes).
        fn encode(commitment: &Pointproofs) -> Vec<u8> {
            let mut bytes = commitment.size().to_le_bytes().to_vec();
            bytes.extend(commitment.reference_digest());
            bytes
        }

        fn decode(
            vectors: Vectors,
            _state_bytes: u64,
            reader: &mut Reader<'_>,
        ) -> Result<Pointproofs> {
            let size = reader.u32()?;
            Pointproofs::for_client(vectors, size, reader.array()?)
        }
    }
}
