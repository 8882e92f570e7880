//! The schemes of private information retrieval, one folder each, behind one contract.
//!
//! | module | what it holds |
//! |---|---|
//! | [`contract`] | the small traits that a scheme implements, each only if it has the capability |
//! | [`reservation`] | reserve → commit → send: a query of a scheme with single-use hints cannot be sent before its state change is on disk |
//! | [`offline`] | the phase before the first query: nothing, a download, or the whole table, streamed or kept |
//! | [`record_server`], [`streamed_hints`] | what rooms share: the server that reads the records that a query names, and the offline phase in which hints take in the table |
//! | [`planted`] | mistakes that tests plant in the code that clients run |
//! | [`registry`] | from a [`SchemeId`] to a server and a client with erased types; generics end there |
//! | [`simplepir`] | one server, LWE, a public reusable hint |
//! | [`simplepir_packed`] | one server, ring LWE, a packed hint of some KiB |
//! | [`doublepir`] | one server, LWE twice, a public reusable hint whose size does not depend on the number of records |
//! | [`dpf`] | two servers that do not collude, distributed point functions, nothing kept |
//! | [`apir_dpf`] | two servers that do not collude, one of which may lie; distributed point functions with a tag; nothing kept |
//! | [`apir_matrix`] | two servers that do not collude, one of which may lie; rows of the table XORed; nothing kept except one hash |
//! | [`dummy_subsets`] | one server, about √n records read for each query, secret single-use hints |
//! | [`harmony`] | one server, a few random reads, one secret permutation, secret single-use hints |
//! | [`singlepass`] | two servers that do not collude, secret hints from one pass over the table that never run out |
//! | [`tapir`] | SinglePass whose answers are verified: one of the two servers may lie |
//! | [`piano`] | one server, one random read for each of about √n/2 chunks of the shuffled table, secret single-use hints for a window of queries |
//! | [`download`] | the trivial scheme: the client fetches the whole table once |
//!
//! Other crates have rooms, too: [`registry::add_rooms`] makes them known. With the feature
//! `testing`, their tests take the suites from here.
//!
//! Every scheme's folder has the same files (`params`, `messages`, `server`, `client`, …). A scheme
//! without a file does not have that capability.

pub mod apir_dpf;
pub mod apir_matrix;
#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used)]
pub mod conformance;
pub mod contract;
pub mod doublepir;
pub mod download;
pub mod dpf;
pub mod dummy_subsets;
pub mod harmony;
mod hint_rows;
mod in_order;
pub mod laid_out;
pub mod offline;
pub mod piano;
pub mod planted;
pub mod record_server;
pub mod registry;
pub mod reservation;
mod scheme_id;
pub mod sharing;
pub mod simplepir;
pub mod simplepir_packed;
pub mod singlepass;
mod stored_hints;
pub mod streamed_hints;
pub mod tapir;
#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used)]
pub mod test_statistics;
#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used)]
pub mod test_tables;
#[cfg(test)]
mod toy;

pub use scheme_id::SchemeId;
