//! From files to tables: the tables that servers serve, and what clients need to read them.
//!
//! Private information retrieval works on a *table*: records of equal width, numbered from 0.
//! People have files: packages with names, rows with columns, values of any length. This crate
//! turns one into the other, and back.
//!
//! | module | what it holds | feature |
//! |---|---|---|
//! | [`layout`] | [`TableLayout`]: how to get from a key or a row number to a record, and from a record to a value; downloaded by every client | |
//! | [`authentication`] | tables whose records are verified one by one against a known [root](TableRoot) | |
//! | [`key_map`] | tables by key: a fixed number of records answer a key, and a miss looks like a hit | |
//! | [`digest`] | how a table's digest is computed from its records and its layout | |
//! | [`update_log`] | a table that changes: signed epochs, each the next of the one before, and (with `files`) the file they are kept in | |
//! | [`edit`] | from keys or row numbers and values to the records that change | |
//! | `owner` | a table at its owner: rows change, and a signed epoch is added to the log | `files` |
//! | `snapshot` | a table as a file: checksummed, mapped or read, written whole or not at all | `files` |
//! | `listing` | the values that lie in a table, without their keys | `files` |
//! | `new_file` | how all of these files are written: under a temporary name, synced, renamed | `files` |
//! | `positioned`, `shared_hasher` | reads at a position in a file, and digests, by several threads | `large-files`, part of `files` |
//! | [`pem`] | what a file holds that should be in PEM form | |
//! | `import` | CSV, JSON Lines and Parquet, row by row | `files` |
//! | `similar` | what was meant by a name that was mistyped | `files` |
//! | `build` | everything from an input file to a snapshot | `files` |
//! | `publish` | what a table's owner does: build, update, hand on; and what may be overwritten | `files` |
//!
//! The feature `files` is on by default. Without it the crate touches no file and compiles for
//! browsers: the rest is what a client needs.
//!
//! # The whole way
//!
//! ```no_run
//! # #[cfg(feature = "files")]
//! # fn main() -> privet_core::Result<()> {
//! use privet_table::build::{BuildOptions, build_table};
//! use privet_table::import::Source;
//! use privet_table::snapshot::Snapshot;
//!
//! let options = BuildOptions { key: Some("name".into()), ..BuildOptions::default() };
//! let source = Source::path("packages.jsonl");
//! let report = build_table(&options, source, "packages.privet".as_ref(), &mut |_| Ok(()))?;
//! println!("{} records of {} bytes", report.records, report.record_len);
//!
//! let snapshot = Snapshot::open("packages.privet".as_ref())?;
//! let key_map = snapshot.key_map().expect("built with a key");
//! let records = key_map
//!     .candidates(b"openssl")
//!     .map(|candidate| snapshot.view().record(candidate).expect("within the table"));
//! let value = key_map.find(b"openssl", records)?;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "files"))]
//! # fn main() {}
//! ```

pub mod authentication;
mod choice;
pub mod digest;
pub mod edit;
pub mod key_map;
pub mod layout;
pub mod update_log;
pub mod values;

#[cfg(feature = "files")]
pub mod build;
#[cfg(feature = "files")]
mod file_kind;
#[cfg(feature = "files")]
pub mod file_pass;
#[cfg(feature = "files")]
pub mod import;
#[cfg(feature = "files")]
pub mod listing;
#[cfg(feature = "files")]
pub mod new_file;
#[cfg(feature = "files")]
pub mod owner;
pub mod pem;
#[cfg(feature = "large-files")]
pub mod positioned;
#[cfg(feature = "files")]
pub mod publish;
#[cfg(feature = "large-files")]
pub mod secret_file;
#[cfg(feature = "large-files")]
pub mod shared_hasher;
#[cfg(feature = "files")]
pub mod similar;
#[cfg(feature = "files")]
pub mod snapshot;

pub use authentication::TableRoot;
pub use choice::Choice;
#[cfg(feature = "files")]
pub use file_kind::FileKind;
pub use key_map::KeyMap;
pub use layout::{IndexLayout, RecordLayout, TableLayout};
