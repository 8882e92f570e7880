//! Vector commitments: a short value that fixes a vector of records, and proofs that a given record
//! is the one at a given place (Catalano and Fiore, *Vector Commitments and their Applications*,
//! PKC 2013).
//!
//! The commitment to a table is one to each of its [`Vectors`], which have equal length. An opening
//! is always for *one record of each vector*, because the servers of TAPIR answer with these. So a
//! proof here is for a whole answer. With [`merkle`] it has some hashes for each vector, and the
//! only assumption is the hash function.
//!
//! Commitments are deterministic: servers with the same table have the same ones, and clients
//! compare them.

pub mod merkle;
mod stream;

pub use stream::{VectorStream, stream_len};

use crate::{Error, Result, TableShape};
use privet_kernels::Kernels;

/// A table cut into vectors of equal length. The last one may reach beyond the table's end; records
/// there count as zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vectors {
    shape: TableShape,
    vector_len: u32,
    vectors: u32,
}

impl Vectors {
    /// The table as vectors of `vector_len` records, at least `at_least` of them. Missing records
    /// count as zeros.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) unless a vector has 1 to 2^16 records and
    /// there are fewer than 2^32 of them.
    pub fn new(shape: TableShape, vector_len: u32, at_least: u32) -> Result<Self> {
        let refused = || {
            Error::api_misuse(format!(
                "a table of {} records cannot be cut into vectors of {vector_len}",
                shape.records()
            ))
        };
        if !(1..=1 << 16).contains(&vector_len) {
            return Err(refused());
        }
        let vectors = shape.records().div_ceil(u64::from(vector_len)).max(u64::from(at_least));
        let vectors = u32::try_from(vectors).map_err(|_| refused())?;
        Ok(Self { shape, vector_len, vectors })
    }

    /// The table's shape.
    pub fn shape(&self) -> TableShape {
        self.shape
    }

    /// How many vectors.
    pub fn count(&self) -> u32 {
        self.vectors
    }

    /// Records in each, 1 to 2^16.
    pub fn vector_len(&self) -> u32 {
        self.vector_len
    }

    /// Bytes of a record.
    pub fn record_len(&self) -> usize {
        self.shape.record_len() as usize
    }

    /// Bytes of a vector.
    pub fn vector_bytes(&self) -> u64 {
        u64::from(self.vector_len) * self.shape.record_len()
    }

    /// Bytes of all vectors, zeros beyond the table's end included.
    pub fn padded_bytes(&self) -> u64 {
        u64::from(self.vectors) * self.vector_bytes()
    }
}

/// A vector commitment on one table: its public parameters.
pub trait VectorCommitment: Clone + Send + Sync + 'static {
    /// The server's side.
    type Prover: Prover;
    /// The client's side while the table streams past.
    type Gathering: Gathering<Verifier = Self::Verifier>;
    /// The client's side.
    type Verifier: Verifier;

    /// How the table is cut.
    fn vectors(&self) -> Vectors;

    /// Bytes of the proof for one record of each vector.
    fn proof_len(&self) -> usize;

    /// Bytes that a client must receive besides the table, because it cannot compute them from it:
    /// [`Prover::announcement`].
    fn announcement_len(&self) -> u64;

    /// Bytes of an encoded [`Verifier`].
    fn verifier_len(&self) -> u64;

    /// Bytes of what [`precompute`](Self::precompute) returns.
    fn kept_len(&self) -> u64;

    /// Data that takes a server long to compute and may be kept in a file. `table` is
    /// [`Vectors::padded_bytes`] long. `progress` is called with the share done, from 0 to 1.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if there is not enough memory.
    fn precompute(
        &self,
        table: &[u8],
        kernels: Kernels,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<Vec<u8>>;

    /// The server's side, with what was precomputed just now or read back.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](crate::Blame::Corrupted) if `kept` is not of the prescribed form,
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if there is not enough memory.
    fn prover(&self, table: &[u8], kept: &[u8], kernels: Kernels) -> Result<Self::Prover>;

    /// The client's side, before the table streams past.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if there is not enough memory.
    fn gathering(&self, kernels: Kernels) -> Result<Self::Gathering>;

    /// Reads what [`Gathering::encode`] wrote.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](crate::Blame::Corrupted) if it is not of the prescribed form.
    fn resume_gathering(&self, bytes: &[u8], kernels: Kernels) -> Result<Self::Gathering>;

    /// Reads what [`Verifier::encode`] wrote, [`verifier_len`](Self::verifier_len) bytes.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](crate::Blame::Corrupted) if it is not of the prescribed form.
    fn read_verifier(&self, bytes: &[u8], kernels: Kernels) -> Result<Self::Verifier>;

    /// The same commitment on a table that has grown to `after`, which differs from the present
    /// table only in the number of records.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if it differs in anything else, or has shrunk.
    fn grown(&self, after: Vectors) -> Result<Self>;
}

/// The server's side: opens.
pub trait Prover: Sized + Send + Sync {
    /// What clients must receive besides the table: the same on all servers.
    fn announcement(&self) -> Vec<u8>;

    /// Writes the proof that record `offsets[q]` of vector `q` is `records[q]`, for all `q` at
    /// once. `table` is the table, padded to whole vectors; `role` says which server's answer this
    /// is.
    ///
    /// There is one offset for each vector, below the vectors' length. `records` are the records at
    /// these offsets. `proof` has [`VectorCommitment::proof_len`] bytes.
    fn open(&self, role: u8, table: &[u8], offsets: &[u16], records: &[u8], proof: &mut [u8]);

    /// A copy, to follow edits while this prover goes on opening.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if there is not enough memory.
    fn copied(&self) -> Result<Self>;

    /// Follows edits. `table` is the padded table after them. `changed` names the records that may
    /// have changed, each with its bytes before, in any order and perhaps more than once. There may
    /// be new vectors at the end. Returns what clients must know of the new commitments, for
    /// [`Verifier::update`].
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if `after` is not as
    /// [`VectorCommitment::grown`] demands; [`Blame::Unavailable`](crate::Blame::Unavailable) if
    /// there is not enough memory.
    fn update(&mut self, after: Vectors, table: &[u8], changed: &[Changed<'_>]) -> Result<Vec<u8>>;

    /// Memory held besides the table, in bytes.
    fn resident_bytes(&self) -> u64;

    /// The part of that memory that can be read as bytes, for a digest of it.
    fn held(&self) -> Vec<&[u8]>;
}

/// A record that an update changed.
#[derive(Clone, Copy, Debug)]
pub struct Changed<'a> {
    /// Which record of the table.
    pub index: u64,
    /// Its bytes before the whole update.
    pub before: &'a [u8],
}

/// The client's side while the table streams past, vector by vector.
pub trait Gathering: Send {
    /// The verifier that it becomes.
    type Verifier: Verifier;

    /// Takes vector `number`. Vectors come in order, padded to their length.
    fn absorb(&mut self, number: u32, records: &[u8]);

    /// What is needed to go on after an interruption. Public.
    fn encode(&self, out: &mut Vec<u8>);

    /// The client's side, from the servers' announcement.
    ///
    /// # Errors
    /// [`Blame::PeerMisbehaved`](crate::Blame::PeerMisbehaved) if `announcement` is not one.
    fn finish(self, announcement: &[u8]) -> Result<Self::Verifier>;
}

/// The client's side: verifies.
pub trait Verifier: Send + Sync {
    /// Checks the answers of both servers, and every record of both. Order and amount of work do
    /// not depend on what is wrong with them.
    ///
    /// # Errors
    /// Which of them do not belong to the commitments.
    fn verify(&self, answers: [Opened<'_>; 2]) -> std::result::Result<(), Rejected>;

    /// Whether [`verify`](Self::verify) accepts the answers, without finding out which are wrong.
    /// This takes as long as verifying true answers.
    fn accepts(&self, answers: [Opened<'_>; 2]) -> bool {
        self.verify(answers).is_ok()
    }

    /// The canonical encoding, public.
    fn encode(&self, out: &mut Vec<u8>);

    /// Follows an update. `commitments` is what [`Prover::update`] returned; the caller has checked
    /// that all servers sent the same. Changes nothing if it fails.
    ///
    /// # Errors
    /// [`Blame::PeerMisbehaved`](crate::Blame::PeerMisbehaved) if `commitments` is not valid.
    fn update(&mut self, after: Vectors, commitments: &[u8]) -> Result<()>;
}

/// One server's claim about one record of each vector.
#[derive(Clone, Copy)]
pub struct Opened<'a> {
    /// The place of the record in each vector, as the client asked for it.
    pub offsets: &'a [u16],
    /// The claimed records.
    pub records: &'a [u8],
    /// The proof.
    pub proof: &'a [u8],
}

/// Answers that do not belong to the commitments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// For each of the two servers whether its answer is wrong.
    pub servers: [bool; 2],
}
