//! Records as scalars, and the weights of an answer.

use super::{POINT_LEN, Pointproofs};
use privet_laboratory_kernels::bls12_381::{G1, Scalar};

const RECORD: &str = "privet 2026-11 pointproofs record";
const COMMITMENTS: &str = "privet 2026-11 pointproofs commitments";
const ANSWER: &str = "privet 2026-11 pointproofs answer";
const BOTH_ANSWERS: &str = "privet 2026-11 pointproofs both answers";

/// Turns records into scalars: BLAKE3, reduced modulo the order of the groups. The hash need not
/// include the position of a record, because the commitment binds it.
pub(super) struct RecordHash(blake3::Hasher);

impl RecordHash {
    pub(super) fn new() -> Self {
        Self(blake3::Hasher::new_derive_key(RECORD))
    }

    pub(super) fn scalar(&self, record: &[u8]) -> Scalar {
        let mut bytes = [0; 48];
        self.0.clone().update(record).finalize_xof().fill(&mut bytes);
        Scalar::from_uniform(&bytes)
    }

    /// The scalars of all `records`, of `record_len` bytes each.
    pub(super) fn scalars(
        &self,
        records: &[u8],
        record_len: usize,
    ) -> impl Iterator<Item = Scalar> {
        records.chunks_exact(record_len).map(|record| self.scalar(record))
    }
}

/// The digest of all commitments.
pub(super) fn commitments_digest(commitments: &[[u8; POINT_LEN]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(COMMITMENTS);
    hasher.update(commitments.as_flattened());
    *hasher.finalize().as_bytes()
}

/// One server's claim, hashed.
pub(super) struct Claim {
    digest: [u8; 32],
    /// One for each vector.
    pub(super) weights: Vec<u128>,
}

impl Claim {
    /// `commitments` is the [digest](commitments_digest) of all commitments. The parameters are
    /// hashed first. They fix the length of everything that follows.
    pub(super) fn new(
        parameters: &Pointproofs,
        commitments: &[u8; 32],
        role: u8,
        offsets: &[u16],
        records: &[u8],
    ) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(ANSWER);
        hasher.update(&[role]);
        hasher.update(&parameters.reference_digest);
        hasher.update(&parameters.size.to_le_bytes());
        hasher.update(&parameters.vectors.vector_len().to_le_bytes());
        hasher.update(&parameters.vectors.count().to_le_bytes());
        hasher.update(&(parameters.vectors.record_len() as u64).to_le_bytes());
        hasher.update(commitments);
        let offsets: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
        hasher.update(&offsets);
        hasher.update(records);

        let mut stream = hasher.finalize_xof();
        let mut digest = [0; 32];
        stream.fill(&mut digest);
        let weights = (0..parameters.count())
            .map(|_| {
                let mut bytes = [0; 16];
                stream.fill(&mut bytes);
                u128::from_le_bytes(bytes)
            })
            .collect();
        Self { digest, weights }
    }
}

/// The exponent for server 1's equation before it is multiplied with server 0's. See
/// [`verify`](super::PointproofsVerifier).
pub(super) fn second_weight(claims: [&Claim; 2], proofs: [&G1; 2]) -> u128 {
    let mut hasher = blake3::Hasher::new_derive_key(BOTH_ANSWERS);
    for (claim, proof) in claims.into_iter().zip(proofs) {
        hasher.update(&claim.digest);
        hasher.update(&proof.compress());
    }
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    u128::from_le_bytes(bytes)
}
