//! The client of Privet for JavaScript: a [`Conductor`](privet_client::conductor::Conductor) whose
//! shell is a worker. `package/src/worker.ts` is that shell.
//!
//! JavaScript calls [`Client::run`] after everything that it hands in. That does what is to be
//! done, and tells a `Shell` what to send and what came of lookups. So JavaScript knows no state of
//! the protocol, and Rust no socket.

mod client;
mod errors;
#[cfg(feature = "planted-leaks")]
mod planted;
mod shell;
mod table;

// The profile of what is shipped has no such assertions. Another crate may have it on as well.
const _: () = assert!(
    cfg!(debug_assertions) || !privet_core::planted::PLANTED_LEAKS,
    "`planted-leaks` is for tests, and on in a build that could be shipped"
);

pub use client::Client;
pub use errors::place_of_panic;
#[cfg(feature = "planted-leaks")]
pub use planted::plant;
