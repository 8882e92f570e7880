//! Dummy subsets: one server that reads about √n records for each query; a client with secret
//! hints, each good for one query.
//!
//! **Who learns what.** The server learns that a query was made, and when. As long as AES is a
//! pseudorandom function, a query is a random balanced split of the table's partitions and uniform
//! offsets, whatever the record and whatever was asked before. The client learns the record (and
//! streams the whole table before its first query: the table is not kept secret from clients). A
//! server that answers wrongly makes the client recover wrong bytes: in this lookup, and perhaps in
//! later ones, because the answer completes a hint. This scheme does not notice. Nothing that the
//! client sends depends on answers.
//!
//! **A hint must never serve two queries**: two queries through one hint show which record differs
//! between them. So the client's state is as precious as a key: see
//! [`reservation`](crate::reservation) for how it survives crashes.
//!
//! **What it costs**, for `p` partitions of `s` records, `p·s ≈ n`, both ≈ √n by default, and λ =
//! [`DEFAULT_HINT_SECURITY`] = 80:
//!
//! | | bytes | work |
//! |---|---|---|
//! | offline, client, once for λ·s/2 queries | the table down | 1.5·λ·n record XORs, 0.94·λ·n AES blocks |
//! | query, client | p/8 + p·log₂(s)/16 up | λ·s/8 to 1.5·λ·s/8 AES blocks to find a hint and some hundred to look closer, 2·p to rebuild it |
//! | answer, server | 2 records down | p random reads |
//! | recover, client | – | two XORs of records |
//! | an edit, client | – | 1.5·λ·s/8 AES blocks, about λ XORs of records |
//! | state | 2·λ·s records and 6·λ·s bytes, secret, on the client; the table on the server | – |
//!
//! **Measured.** On one core of a shared Zen 4 machine that reads 31 GB/s, with 2^24 records of
//! 32 bytes: 3.1 s to prepare 163,840 queries; 3.6 KiB up and 123 bytes down; 34 to 40 µs for
//! the server, 26 of them for its random reads alone; 85 µs for the client, and 130 µs for an
//! edit.
//!
//! **Correctness.** A hint contains a given record with probability above 1/(2s), so the
//! probability that none of the `M` live hints does is below e^(-λ/2): see
//! [`DummySubsetsParameters::failure_probability`]. In that case the client sends a cover, and the
//! lookup fails.
//!
//! **From paper to function** (Ren, Mughees, Sun: *Simple and Practical Amortized Sublinear Private
//! Information Retrieval using Dummy Subsets*, CCS 2024, §3):
//!
//! | paper | here |
//! |---|---|
//! | hints and how they are stored (§3.2) | `generation.rs`; the pseudorandom function in [`privet_kernels::subset_hints`] |
//! | Algorithm 4, streaming offline phase | [`DummySubsetsPreparation`] |
//! | Algorithm 2, query | [`DummySubsetsClient`]'s [`reserve`](crate::contract::HintedClient::reserve), `search.rs` |
//! | Algorithm 5, replenishing from backup pairs | `DummySubsetsClient`'s `exchange` and `resolve` |
//! | the server's two parities | [`DummySubsetsServer`] |
//!
//! Different from the paper: a single hint's extra index is the partition of the next rank
//! (`generation.rs`). Both halves of a query share offsets (`messages.rs`). The choice among
//! suitable hints is uniform, and a hint's successor is in use from the reservation on
//! (`client.rs`). A search takes the same work for every record (`search.rs`). `n` need not be a
//! square: the number of records in a partition is a power of two, and records beyond the table are
//! zero.

mod client;
mod descriptor;
mod generation;
mod messages;
mod params;
mod preparation;
mod query;
mod server;
#[cfg(test)]
mod tests;
pub mod two_servers;

pub use client::DummySubsetsClient;
pub use messages::{DummySubsetsAnswer, DummySubsetsQuery};
pub use params::{DEFAULT_HINT_SECURITY, DummySubsetsParameters};
pub use preparation::{DummySubsetsPreparation, GrowingDummySubsets};
pub use server::DummySubsetsServer;

use crate::SchemeId;
use crate::contract::{Offline, Scheme};
use crate::offline::OfflinePhase;

/// The scheme's types, without a state.
pub struct DummySubsets;

impl Scheme for DummySubsets {
    const ID: SchemeId = SchemeId::named("dummy-subsets");
    type Parameters = DummySubsetsParameters;
    type Query = DummySubsetsQuery;
    type Answer = DummySubsetsAnswer;

    fn servers(_parameters: &DummySubsetsParameters) -> usize {
        1
    }
}

impl Offline for DummySubsets {
    fn offline_phase(parameters: &DummySubsetsParameters) -> OfflinePhase {
        OfflinePhase::StreamTable { len: parameters.shape().bytes() }
    }
}
