//! DPF-PIR: two servers that do not collude, no hint, no state, and messages of a few hundred bytes.
//!
//! The client shares the bit string whose only 1 stands at the wanted record between two servers, with a distributed point function: see [`privet_core::dpf`]. Each server expands
//! its key, XORs the records that the bits select, and returns that sum; the two sums differ by the wanted record.
//!
//! **Who learns what.** Each server learns that a query was made, and when: nothing of the index, however many queries it sees, as long as AES under a public key is hard to tell from
//! a random permutation (about 2^126 work for one seed; see [`privet_core::dpf`]). That holds against *one* server. **Whoever sees both queries of a lookup knows the index**:
//! two servers that share their logs, one operator behind both, or somebody who listens on both connections if they are not encrypted. The client learns the record. A
//! server that answers wrongly makes the client recover wrong bytes, and can choose which bits are wrong; DPF-PIR does not notice. Both servers must hold the same
//! table in the same epoch, or every answer is noise.
//!
//! **What it costs**, for `n` records, with `depth = ⌈log₂(n/128)⌉`:
//!
//! | | bytes | work |
//! |---|---|---|
//! | offline | – | – |
//! | query, client | 16·(depth + 2) + ⌈depth/8⌉ up to each server: 323 for 2^25 records | 4·depth + 2 AES blocks |
//! | answer, each server | record_len down | 3 AES blocks for every 128 records, and one pass over the table, shared by a batch |
//! | recover, client | – | one XOR of records |
//! | state | the table on both servers | – |
//!
//! **From paper to function** (Boyle, Gilboa, Ishai: *Function Secret Sharing: Improvements and Extensions*, CCS 2016):
//!
//! | paper | here |
//! |---|---|
//! | Gen, Figure 1 | [`privet_core::dpf::Key::pair`], in [`DpfClient`]'s [`StatelessClient::query`](crate::contract::StatelessClient::query) |
//! | Eval, Figure 1; early termination and evaluation of the whole domain, §3 | [`privet_core::dpf::Evaluation`] |
//! | two-server PIR from a point function, §1 | [`DpfServer`]'s [`Answerer::answer`](crate::contract::Answerer::answer), [`DpfClient`]'s [`StatelessClient::recover`](crate::contract::StatelessClient::recover) |
//!
//! Different from the paper: the domain is as large as the table and no larger, not a power of two; the tree's AES keys belong to the table ([`DpfParameters`]); a server expands its
//! key a subtree at a time, right before it reads the records below it, and never holds the expansion whole.

mod client;
mod messages;
mod params;
mod server;
#[cfg(test)]
mod tests;

pub use client::{DpfClient, DpfPending};
pub use messages::{DpfAnswer, DpfQuery};
pub use params::DpfParameters;
pub use server::DpfServer;

use crate::SchemeId;
use crate::contract::{Offline, Scheme};
use crate::offline::OfflinePhase;

/// The scheme's types, without a state.
pub struct Dpf;

impl Scheme for Dpf {
    const ID: SchemeId = SchemeId::Dpf;
    const SERVERS: usize = 2;
    type Parameters = DpfParameters;
    type Query = DpfQuery;
    type Answer = DpfAnswer;
}

impl Offline for Dpf {
    fn offline_phase(_parameters: &DpfParameters) -> OfflinePhase {
        OfflinePhase::Nothing
    }
}
