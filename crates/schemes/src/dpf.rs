//! DPF-PIR: two servers that do not collude, no hint, no state, and messages of a few hundred
//! bytes.
//!
//! A bit string has its only 1 at the wanted record. The client shares this string between two
//! servers, with a distributed point function: see [`privet_core::dpf`]. Each server expands its
//! key, XORs the records that the bits select, and returns that sum. The difference of the two sums
//! is the wanted record.
//!
//! **Who learns what.** Each server learns that a query was made, and when. It learns nothing of
//! the index, as long as AES under public keys is as good as random permutations. Then an attacker
//! can only try the other party's seeds, of which a lookup has depth + 1. That takes some 2^121
//! computations of AES with 2^25 records, and more than 2^120 with any number. Each lookup has AES
//! keys of its own, from the table's id and a nonce. So neither more lookups nor more clients make
//! it easier to break one of them. A nonce that occurs twice (probability 2^-65 among 2^32 lookups
//! of a table) costs these two lookups one bit of the 121, and nothing else. See
//! [`privet_core::dpf`].
//!
//! That holds against *one* server. **An attacker who sees both queries of a lookup knows the
//! index**: two servers that share their logs, one operator of both servers, or an eavesdropper on
//! both connections if they are not encrypted. The client learns the record. A server that answers
//! wrongly makes the client recover wrong bytes, and can choose which bits are wrong; DPF-PIR does
//! not notice. Both servers must hold the same table in the same epoch, or every answer is noise.
//!
//! **What it costs**, for `n` records, with `depth = max(0, ⌈log₂(n/128)⌉)`:
//!
//! | | bytes | work |
//! |---|---|---|
//! | offline | – | – |
//! | query, client | 16·(depth + 3) + ⌈depth/8⌉ up to each server: 339 for 2^25 records | 4·depth + 2 AES blocks |
//! | answer, each server | record_len down | about 3 AES blocks for every 128 records of each query (786 688 for 2^25 records of 32 bytes), and one pass over the table, shared by a batch |
//! | recover, client | – | one XOR of records |
//! | state | the table on both servers | – |
//!
//! A server's exact number of blocks: one for each of ⌈n/128⌉ leaves. One for each node above these
//! leaves that leads to one of them, from the level of *groups* down. And for each group, two for
//! every level on the way to it. (A group is 64 chunks of the table: [`DpfServer`] computes the way
//! to them together.) Besides, both sides derive and expand two AES keys for each lookup.
//!
//! **From paper to function** (Boyle, Gilboa, Ishai: *Function Secret Sharing: Improvements and
//! Extensions*, CCS 2016):
//!
//! | paper | here |
//! |---|---|
//! | Gen, Figure 1 | [`privet_core::dpf::Key::pair`], in [`DpfClient`]'s [`StatelessClient::query`](crate::contract::StatelessClient::query) |
//! | Eval, Figure 1; early termination and evaluation of the whole domain, §3 | [`privet_core::dpf::Evaluation`] |
//! | two-server PIR from a point function, §1 | [`DpfServer`]'s [`Answerer::answer`](crate::contract::Answerer::answer), [`DpfClient`]'s [`StatelessClient::recover`](crate::contract::StatelessClient::recover) |
//!
//! Different from the paper: the domain is exactly as large as the table, not a power of two. The
//! trees' AES keys belong to one lookup, by a nonce in its keys ([`privet_core::dpf::Nonce`]), not
//! to all lookups. A server expands its key a subtree at a time, right before it reads the records
//! below it, and never holds the whole expansion.

mod client;
mod descriptor;
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
    const ID: SchemeId = SchemeId::named("dpf");
    type Parameters = DpfParameters;
    type Query = DpfQuery;
    type Answer = DpfAnswer;

    fn servers(_parameters: &DpfParameters) -> usize {
        2
    }
}

impl Offline for Dpf {
    fn offline_phase(_parameters: &DpfParameters) -> OfflinePhase {
        OfflinePhase::Nothing
    }
}
