//! A table that changes: the epochs that follow a snapshot. Each is signed and tied to the one
//! before.
//!
//! The records of a snapshot are never altered. Later changes come in *epochs*: an epoch is one
//! batch of changed records, and its number is the table's version so far plus one. A server or
//! client that has one version of the table, and gets the epochs that follow, has the next versions
//! too: a server updates its records, a client its hints. So epochs travel from the owner's file to
//! every client, through servers that need no trust. Each of them makes the same checks:
//!
//! - They are *signed* by the table's publisher (Ed25519, RFC 8032). A server cannot invent one.
//! - They are *chained*: each names the hash of the epoch before and the table's digest before. A
//!   server can withhold epochs, but nothing else: if it leaves one out, goes back, or joins two
//!   histories, the next check finds it.
//! - They hold the records' bytes *before* as well as after. Some schemes patch their hints with
//!   XOR differences, others with differences modulo a number.
//!
//! The chain does not show a second history that the publisher's own key has signed: a client that
//! follows the first refuses the second, and the other way round. Nor does it show whether the
//! newest epoch has arrived.
//!
//! # One epoch, as bytes
//!
//! Numbers are little-endian. *Variable* numbers have seven bits per byte, the lowest first, the
//! top bit set on all bytes but the last, and no needless bytes.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 2 | format version, 1 |
//! | 2 | 16 | table id |
//! | 18 | 8 | epoch, at least 1 |
//! | 26 | 32 | hash of the epoch before; zeros if there was none |
//! | 58 | 32 | the table's digest before |
//! | 90 | 32 | BLAKE3 digest of all records after |
//! | 122 | 8 | number of records before |
//! | 130 | 8 | number of records after, not fewer |
//! | 138 | 4 | bytes of a record, before and after |
//! | 142 | variable | length of the layout after; 0 if it is the one before |
//! | | | the encoded [`TableLayout`](crate::TableLayout) after |
//! | | variable | how many of the records before are changed |
//! | | | these by ascending index, each once: how many records lie between it and the one before (variable; for the first: its index), its bytes before, its bytes after, which must differ |
//! | | | the bytes of the appended records |
//! | end − 64 | 64 | Ed25519 signature of the hash of everything before it |
//!
//! The hash is BLAKE3 in its key-derivation mode with the context `privet update log epoch v1`. The
//! publisher signs it, and the next epoch names it. The table's digest after follows from the
//! digest of the records, the layout and the shape as [`digest`](crate::digest) says. An epoch must
//! change something. It has one valid encoding, and any other is refused.
//!
//! | item | what it is for |
//! |---|---|
//! | [`Chain`] | follows epochs one by one and refuses those that do not follow |
//! | [`EpochUpdate`] | an epoch that followed: it brings a scheme or a table up to date |
//! | [`PublisherId`] | the publisher's public key |
//! | [`Succession`] | the record that another table continues this one, or that its keys change |
//! | [`Lineage`] | all tables that one continues: leads a client from the one that it has pinned |
//! | [`RecordsDigest`] | the digest of all records, kept up to date without reading all of them |
//! | [`EpochSource`] | an epoch in memory or in a file, to be sent on |
//! | `PublisherKey` | signs (feature `files`, as all that follows) |
//! | `UpdateLog` | the file beside a snapshot, for servers |
//! | `LogWriter` | the file beside a snapshot, for its owner: appends epochs, and makes a new snapshot of them |
//! | `CurrentTable` | the table after the last epoch, for its owner |
//! | `CurrentRecords` | its records, for servers, which read them piece by piece |

mod chain;
mod entry;
mod epoch_source;
mod lineage;
mod publisher;
mod recorded;
mod records_digest;
mod succession;

#[cfg(feature = "files")]
mod current;
#[cfg(feature = "files")]
mod file;
#[cfg(feature = "files")]
mod place;
#[cfg(feature = "files")]
mod succeed;
#[cfg(feature = "files")]
mod writer;

#[cfg(test)]
mod tests;

pub use chain::{Chain, EpochUpdate};
pub use entry::EpochHash;
pub use epoch_source::EpochSource;
pub use lineage::{Left, Lineage, MAX_LINEAGE_LEN, MAX_RECORDS, Walk};
#[cfg(any(test, feature = "files"))]
pub use publisher::PublisherKey;
#[cfg(feature = "files")]
pub(crate) use publisher::SECRET_KEY_PREFIX;
pub use publisher::{NextKeyDigest, PublisherId};
pub use records_digest::{RecordBytes, RecordsDigest};
pub use succession::{MAX_SUCCESSION_LEN, Succession, TableKeys};

#[cfg(feature = "files")]
pub use current::{CurrentRecords, CurrentTable};
#[cfg(feature = "files")]
pub(crate) use file::LOG_MAGIC;
#[cfg(feature = "files")]
pub use file::UpdateLog;
#[cfg(feature = "files")]
pub(crate) use place::{earlier_log_path, find_log_of};
#[cfg(feature = "files")]
pub use place::{find_log, log_path};
#[cfg(feature = "files")]
pub use succeed::Signers;
#[cfg(feature = "files")]
pub use writer::LogWriter;
#[cfg(feature = "files")]
pub(crate) use writer::{check_can_be_sent, lock};
