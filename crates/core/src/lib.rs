//! The building blocks of private information retrieval (PIR), shared by every scheme.
//!
//! | module | what it holds |
//! |---|---|
//! | [`table`] | a table: shape, identity, epoch, digest, a view of its records |
//! | [`index`] | [`RecordIndex`]: which record is wanted, a secret |
//! | [`secret`] | [`Secret`]: zeroized, never printed, never cloned |
//! | [`randomness`] | [`SecretRng`] for everything secret, [`PublicSeed`] for everything public; unrelated types |
//! | [`codec`] | bounded little-endian reading and writing of bytes from outside |
//! | [`hints`] | secret single-use hints over partitions of a table |
//! | [`dpf`] | distributed point functions: two short keys whose expansions differ in one bit |
//! | [`permutation`] | a public pseudorandom permutation of any number of records, in constant time for a secret record |
//! | [`lwe`] | learning with errors: parameters with their proof, sampling, encryption, decryption |
//! | [`ring`] | ring LWE: encryption, and the packing of many answers into one ring element |
//! | [`quantities`] | numbers and sizes as people read them |
//! | [`error`] | [`Error`]: every error says who is at fault |
//!
//! Nothing in this crate opens a file or a socket, reads a clock or starts a thread.

pub mod codec;
pub mod commit;
pub mod dpf;
pub mod error;
pub mod hints;
pub mod index;
pub mod lwe;
pub mod permutation;
pub mod planted;
pub mod quantities;
pub mod randomness;
pub mod ring;
pub mod secret;
mod stream_digest;
pub mod table;

pub use error::{Blame, Error, Reason, Result};
pub use index::{RecordIndex, divide_secret};
pub use randomness::{PublicSeed, SecretRng};
pub use secret::Secret;
pub use table::{
    Epoch, PIECE_BYTES, ReadRecords, TableChanges, TableDelta, TableDigest, TableId, TableIdentity,
    TableShape, TableSource, TableView,
};
