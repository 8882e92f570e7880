//! Private lookups of records: the client's side of Privet.
//!
//! | module | what it holds |
//! |---|---|
//! | [`session`] | everything a client does, as a state machine without I/O or clock; states the invariants that keep the index secret |
//! | [`conductor`] | the session together with its stored state; only sockets, threads and people are left out |
//! | [`addresses`] | servers' addresses, and whether two of them are two servers |
//! | [`exchange`](mod@exchange) | the messages between a client and one server, and the trait of what carries them |
//! | [`preparation`] | the next generation of single-use hints, from stored checkpoint to stored generation |
//! | [`state`] | what a client keeps between runs: the traits, and an implementation in memory |
//! | [`store`] | the same in folders of files, safe against crashes and concurrent processes |
//! | [`disk`] | the disk under the store: the traits, and the operating system's implementation |
//! | [`client`] | [`Client`]: all of it put together, for programs that just want their records |
//!
//! The last needs sockets and threads: the feature `net`, on by default, which also brings the one
//! transport so far, gRPC. The feature `disk`, part of it, brings the operating system's files.
//! Without both, the others build for browsers too.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod addresses;
#[cfg(feature = "net")]
pub mod client;
pub mod conductor;
pub mod disk;
#[cfg(feature = "net")]
mod driver;
pub mod exchange;
pub mod preparation;
#[cfg(feature = "net")]
mod proxies;
pub mod session;
pub mod state;
pub mod store;
#[cfg(feature = "net")]
mod transport;

#[cfg(feature = "net")]
pub use client::{BatchId, Begun, Client, ClientOptions};
pub use conductor::{Progress, Stats, Traffic};
pub use privet_table::TableRoot;
pub use privet_table::update_log::PublisherId;
pub use session::{ChosenTable, Patience, Session, Target, Value};
