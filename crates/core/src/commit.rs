//! Vector commitments: a short value that fixes a vector of records, and proofs that one of them is
//! what it is said to be (Catalano and Fiore, *Vector Commitments and their Applications*, PKC
//! 2013).
//!
//! A table is committed to as [`Vectors`], all of one length, and what is opened is always *one
//! record of each vector*, because that is what the servers of TAPIR answer. So a proof here is for
//! a whole answer. Two implementations:
//!
//! | | a proof has | its verification takes | the server computes for it | is trusted |
//! |---|---|---|---|---|
//! | [`merkle`] | some hashes for each vector | as many hash computations | nothing to speak of | the hash function |
//! | [`pointproofs`] | 48 bytes in all | a pairing for each different offset | a product for each record of the table and one multi-exponentiation | who made the [reference string](pointproofs::ReferenceString) |
//!
//! Commitments are deterministic: servers with the same table have the same ones, and clients
//! compare them.

pub mod merkle;
#[cfg(not(target_family = "wasm"))]
pub mod pointproofs;
mod stream;

pub use stream::{VectorStream, stream_len};

use crate::{Error, Result, TableShape};
use privet_kernels::Kernels;

/// A table cut into vectors of equal length. The last one may reach beyond the table's end; what
/// lies there counts as records of zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vectors {
    shape: TableShape,
    vector_len: u32,
    vectors: u32,
}

impl Vectors {
    /// The table as vectors of `vector_len` records, at least `at_least` of them (what is missing
    /// counts as zeros).
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

    /// Bytes of what a client must receive beside the table, and cannot compute from it:
    /// [`Prover::announcement`].
    fn announcement_len(&self) -> u64;

    /// Bytes of an encoded [`Verifier`].
    fn verifier_len(&self) -> u64;

    /// Bytes of what [`precompute`](Self::precompute) returns.
    fn kept_len(&self) -> u64;

    /// What takes a server long to compute and may be kept in a file. `table` is
    /// [`Vectors::padded_bytes`] long. `progress` hears of the share done, from 0 to 1.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if the memory cannot be had.
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
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if the memory cannot be had.
    fn prover(&self, table: &[u8], kept: &[u8], kernels: Kernels) -> Result<Self::Prover>;

    /// The client's side, before the table streams past.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if the memory cannot be had.
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

    /// The same commitment on a table that has grown to `after`, which differs from the present one
    /// in the number of records alone.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if it differs in more, or has shrunk.
    fn grown(&self, after: Vectors) -> Result<Self>;
}

/// The server's side: opens.
pub trait Prover: Sized + Send + Sync {
    /// What clients must receive beside the table: the same for all servers.
    fn announcement(&self) -> Vec<u8>;

    /// Writes the proof that record `offsets[q]` of vector `q` is `records[q]`, for all `q` at
    /// once. `table` is the table, padded to whole vectors; `role` tells which server's answer this
    /// is.
    ///
    /// Offsets are below the vectors' length and as many as there are vectors; `records` are
    /// theirs; `proof` has [`VectorCommitment::proof_len`] bytes.
    fn open(&self, role: u8, table: &[u8], offsets: &[u16], records: &[u8], proof: &mut [u8]);

    /// The same once more, to follow edits while this one goes on opening.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if the memory cannot be had.
    fn copied(&self) -> Result<Self>;

    /// Follows edits: `table` is the padded table after them, `changed` the numbers of the records
    /// that may have changed, in any order and perhaps repeatedly, each with its bytes before. New
    /// vectors may have come at the end. Returns what clients must know of the new commitments, for
    /// [`Verifier::update`].
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if `after` is not as
    /// [`VectorCommitment::grown`] demands; [`Blame::Unavailable`](crate::Blame::Unavailable) if
    /// the memory cannot be had.
    fn update(&mut self, after: Vectors, table: &[u8], changed: &[Changed<'_>]) -> Result<Vec<u8>>;

    /// Memory held beside the table, in bytes.
    fn resident_bytes(&self) -> u64;

    /// As much of that memory as can be read as bytes: for a digest of them.
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
    /// What it becomes.
    type Verifier: Verifier;

    /// Takes vector `number`; they come in order, padded to their length.
    fn absorb(&mut self, number: u32, records: &[u8]);

    /// What is needed to go on after an interruption. Public.
    fn encode(&self, out: &mut Vec<u8>);

    /// The client's side, given what the servers announced.
    ///
    /// # Errors
    /// [`Blame::PeerMisbehaved`](crate::Blame::PeerMisbehaved) if `announcement` is not one.
    fn finish(self, announcement: &[u8]) -> Result<Self::Verifier>;
}

/// The client's side: verifies.
pub trait Verifier: Send + Sync {
    /// Checks the answers of both servers, every record of both, in an order and an amount of work
    /// that does not depend on what is wrong with them.
    ///
    /// # Errors
    /// Which of them do not belong to the commitments.
    fn verify(&self, answers: [Opened<'_>; 2]) -> std::result::Result<(), Rejected>;

    /// Whether [`verify`](Self::verify) accepts the answers, without finding out which are wrong:
    /// what verifying takes as long as servers tell the truth.
    fn accepts(&self, answers: [Opened<'_>; 2]) -> bool {
        self.verify(answers).is_ok()
    }

    /// The canonical encoding, public.
    fn encode(&self, out: &mut Vec<u8>);

    /// Follows an update, by what [`Prover::update`] returned. The caller has compared what all
    /// servers said. Nothing is changed if it fails.
    ///
    /// # Errors
    /// [`Blame::PeerMisbehaved`](crate::Blame::PeerMisbehaved) if `commitments` is no such thing.
    fn update(&mut self, after: Vectors, commitments: &[u8]) -> Result<()>;
}

/// What one server says of one record of each vector.
#[derive(Clone, Copy)]
pub struct Opened<'a> {
    /// Which record of each vector, as it was asked for.
    pub offsets: &'a [u16],
    /// What it is said to be.
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
