//! How a table is cut, as in SinglePass, and committed to.

use super::Form;
use crate::contract::{Parameters, refused};
use crate::singlepass::SinglePassParameters;
use privet_core::codec::Reader;
use privet_core::commit::{VectorCommitment, Vectors, stream_len};
use privet_core::{Error, Result, TableIdentity, TableShape};

/// The most memory that a client uses to verify answers, besides its hints: 2 GiB (512 MiB where
/// addresses have 32 bits), whatever servers announce.
const MAX_VERIFIER_BYTES: u64 = if cfg!(target_pointer_width = "32") { 1 << 29 } else { 1 << 31 };

/// The parameters of SinglePass, and a commitment to each partition.
pub struct TapirParameters<F: Form> {
    pass: SinglePassParameters,
    commitment: F::Commitment,
}

impl<F: Form> Clone for TapirParameters<F> {
    fn clone(&self) -> Self {
        Self { pass: self.pass.clone(), commitment: self.commitment.clone() }
    }
}

impl<F: Form> TapirParameters<F> {
    /// A cut and a commitment to it.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the commitment is on another cut, or
    /// a client would need too much memory.
    pub fn new(pass: SinglePassParameters, commitment: F::Commitment) -> Result<Self> {
        if commitment.vectors() != vectors_of(&pass)? {
            return Err(Error::api_misuse("the commitment belongs to a table with another cut"));
        }
        let memory = F::verifier_memory(&commitment);
        if memory > MAX_VERIFIER_BYTES {
            return Err(Error::api_misuse(format!(
                "a client would need {memory} bytes of memory to verify answers; the limit is {MAX_VERIFIER_BYTES}. Larger partitions need less"
            )));
        }
        Ok(Self { pass, commitment })
    }

    /// How the table is cut.
    pub fn pass(&self) -> &SinglePassParameters {
        &self.pass
    }

    /// How it is committed to.
    pub fn commitment(&self) -> &F::Commitment {
        &self.commitment
    }

    /// The table's shape.
    pub fn shape(&self) -> TableShape {
        self.pass.shape()
    }

    /// Bytes of the stream from which a client makes its hints.
    pub fn stream_len(&self) -> u64 {
        stream_len(&self.commitment.vectors(), self.commitment.announcement_len())
    }

    /// What a client keeps of a generation, in bytes: hints, permutations, and the verifier of
    /// answers.
    pub fn state_bytes(&self) -> u64 {
        self.pass.state_bytes() + self.commitment.verifier_len()
    }

    /// The parameters of the same table with more records. The partitions keep their size, and
    /// there may be more of them.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is not the same table with more
    /// records, or is too large.
    pub fn grown(&self, after: TableShape) -> Result<Self> {
        let records = u64::from(self.pass.partition_records());
        let pass = SinglePassParameters::with_partition_records(after, records)?;
        let commitment = self.commitment.grown(vectors_of(&pass)?)?;
        Self::new(pass, commitment)
    }
}

/// The partitions as vectors that are committed to.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if they do not suit a commitment.
pub fn vectors_of(pass: &SinglePassParameters) -> Result<Vectors> {
    Vectors::new(pass.shape(), pass.partition_records(), pass.partitions())
}

impl<F: Form> Parameters for TapirParameters<F> {
    /// The number of records in a partition (u64), and the form's encoding of its commitment.
    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.pass.encode();
        bytes.extend(F::encode(&self.commitment));
        bytes
    }

    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("the parameters of TAPIR", bytes);
        let partition_records = reader.u64()?;
        let pass = SinglePassParameters::with_partition_records(identity.shape, partition_records)
            .map_err(refused)?;
        let vectors = vectors_of(&pass).map_err(refused)?;
        let commitment = F::decode(vectors, &mut reader).map_err(refused)?;
        reader.finish()?;
        Self::new(pass, commitment).map_err(refused)
    }
}
