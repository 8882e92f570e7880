//! SimplePIR: one server, learning with errors, a public hint that every client downloads once and
//! reuses for ever.
//!
//! **Who learns what.** The server learns that a query was made, and when. It learns nothing of the
//! index, however many queries it sees and whatever it sends back, as long as LWE is hard. The
//! estimate is 2^145 gates for tables around a GiB, and never less than 2^128. The client learns
//! the whole column in which its record lies (the table is not kept secret from clients). A server
//! that answers wrongly makes the client recover wrong bytes; SimplePIR does not notice.
//!
//! **What it costs**, for a table laid out as `rows` × `columns` bytes, rows · columns ≈ table
//! bytes, both ≈ √(table bytes) by default:
//!
//! | | bytes | work |
//! |---|---|---|
//! | offline, server, once per table | – | rows · columns · 1024 multiply-adds of 32 bits |
//! | offline, client, once per table | 4096 · rows down (the hint) | its digest |
//! | query, client | 4 · columns up | 1024 · columns multiply-adds, 256 · columns AES blocks |
//! | answer, server | 4 · rows down | rows · columns multiply-adds: one pass over the table, shared by a batch |
//! | recover, client | – | 1024 · record_len multiply-adds |
//! | edits, client, and server for the hint it announces | – | 1024 multiply-adds for each byte that changes; the hint is read and written once |
//! | state | the hint (public) on the client; table and hint on the server | – |
//!
//! **Parameters.** Dimension 1024, q = 2^32, plaintext modulus 256, at most 2^18 columns. The
//! standard deviation of the error follows from the number of columns: from 34.84 (up to 38,672
//! columns) down to 11.95. [`privet_core::lwe`] has the estimate, and the proof that each byte
//! comes back right except with probability 2^-64, whatever the table holds. The matrix A follows
//! from the table's id, so all lookups of all clients in all versions share it. An attacker who has
//! reduced its lattice once can use the result for all of them; the estimate is for the first.
//! Tables of more than 64 GiB have more rows than columns. A table that does not fit such a layout
//! is refused.
//!
//! **From paper to function** (Henzinger, Hong, Corrigan-Gibbs, Meiklejohn, Vaikuntanathan: *One
//! Server for the Price of Two*, USENIX Security 2023, §4):
//!
//! | paper | here |
//! |---|---|
//! | database as a √N × √N matrix over ℤ_p | [`SimplePirParameters`]: bytes as they are, p = 256, a column is `rows` consecutive bytes of the table |
//! | public matrix A from a random oracle | [`privet_core::lwe::PublicMatrix`], AES-128 in counter mode under a seed derived from the table's id |
//! | Setup: hint_c = DB · A | [`SimplePirServer::hint`] |
//! | Query | [`SimplePirClient`]'s [`StatelessClient::query`](crate::contract::StatelessClient::query) |
//! | Answer | [`SimplePirServer`]'s [`Answerer::answer`](crate::contract::Answerer::answer) |
//! | Recover | [`SimplePirClient`]'s [`StatelessClient::recover`](crate::contract::StatelessClient::recover) |
//!
//! Different from the paper: symbols are whole bytes, and columns are runs of the table in its
//! natural order. So nothing is repacked, and each record lies whole in one column. The client
//! subtracts `128 · Σe`, which halves the noise and makes p = 256 safe. The error is as wide as
//! that allows; the paper has σ = 6.4. Several queries share one pass.

mod client;
mod descriptor;
mod messages;
mod params;
mod server;
#[cfg(test)]
mod tests;
mod update;

pub use client::SimplePirClient;
pub use messages::{SimplePirAnswer, SimplePirQuery};
pub use params::SimplePirParameters;
pub use server::SimplePirServer;

use crate::SchemeId;
use crate::contract::{Offline, Scheme};
use crate::offline::OfflinePhase;

/// The scheme's types, without a state.
pub struct SimplePir;

impl Scheme for SimplePir {
    const ID: SchemeId = SchemeId::named("simplepir");
    type Parameters = SimplePirParameters;
    type Query = SimplePirQuery;
    type Answer = SimplePirAnswer;

    fn servers(_parameters: &SimplePirParameters) -> usize {
        1
    }
}

impl Offline for SimplePir {
    fn offline_phase(parameters: &SimplePirParameters) -> OfflinePhase {
        OfflinePhase::Download { len: parameters.hint_bytes() }
    }
}
