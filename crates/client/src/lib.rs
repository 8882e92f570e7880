//! Private lookups of records: the client's side of Privet.
//!
//! | module | what it holds |
//! |---|---|
//! | [`session`] | everything a client does, as a state machine without I/O or clock; states the invariants that keep the index secret |
//! | [`conductor`] | the session together with its stored state; only sockets, threads and people are left out |
//! | [`exchange`] | the messages between a client and one server, over any transport |
//! | [`preparation`] | the next generation of single-use hints, from stored checkpoint to stored generation |
//! | [`state`] | what a client keeps between runs: the traits, and an implementation in memory |
//! | [`store`] | the same in a state directory, safe against crashes and concurrent processes |
//! | [`disk`] | the disk under a state directory: the traits, and the operating system's implementation |
//! | [`transport`] | exchanges over gRPC, and what their failures mean |
//! | [`client`] | [`Client`]: all of it put together, for programs that just want their records |
//!
//! The last four need files, sockets and threads: the feature `native`, on by default. Without it,
//! the others build for browsers too.

#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg(feature = "native")]
mod addresses;
#[cfg(feature = "native")]
pub mod client;
pub mod conductor;
#[cfg(feature = "native")]
pub mod disk;
#[cfg(feature = "native")]
mod driver;
pub mod exchange;
pub mod preparation;
#[cfg(feature = "native")]
mod proxies;
pub mod session;
pub mod state;
#[cfg(feature = "native")]
pub mod store;
#[cfg(feature = "native")]
pub mod transport;

#[cfg(feature = "native")]
pub use client::{BatchId, Begun, Client, ClientOptions};
pub use conductor::{Progress, Stats, Traffic};
pub use privet_table::TableRoot;
pub use privet_table::update_log::PublisherId;
pub use session::{ChosenTable, Patience, Session, Target, Value};
