//! SinglePass: two servers that read about √n records for each query, or far fewer; a client whose
//! hints come from a single pass over the table and never run out.
//!
//! The table is cut into `Q` partitions of `M` records. For each the client has a secret
//! permutation `σ`, and for each `m` below `M` it has a hint: the XOR of record `σ(m)` of every
//! partition. The wanted record is in one hint. The client asks server 1 for the other records of
//! that hint, having put a random offset in the place of the wanted one, and XORs them off. What it
//! has shown is no secret any more, so it is shuffled in again: server 0 sends one random record of
//! each partition, and in all partitions but the wanted record's the shown offset and this one
//! change places.
//!
//! **Who learns what.** The servers have roles. *Server 0*, the hint server, learns the
//! permutations as they were in the beginning, because it computes the hints; of queries it sees
//! uniform offsets that have nothing to do with anything. *Server 1* must never see the seed of the
//! permutations, and so sees uniform offsets as well, whatever the records and whatever was asked
//! before, repetitions included. Either learns that a query was made, and when. That holds against
//! *one* server: **whoever sees what both see knows the index**, be it two servers that share their
//! logs, one operator behind both, or somebody who listens on both connections if they are not
//! encrypted. The client learns the record (and the XORs of others: the table is not kept secret
//! from clients).
//!
//! A server that answers wrongly makes the client recover wrong bytes, now and, through the hints
//! that the answer changes, later, and this scheme does not notice. Nothing the client sends
//! depends on answers. Both servers must hold the same table in the same epoch.
//!
//! **The client's state is as precious as a key**: a state that is used twice shows server 1 the
//! same hint twice, which tells the partition of the record. See
//! [`reservation`](crate::reservation) for how it survives crashes.
//!
//! **What it costs**, for `Q` partitions of `M` records of `w` bytes; [`SinglePassParameters::new`]
//! says how they are chosen:
//!
//! | | bytes | work |
//! |---|---|---|
//! | offline, server 0, once | 32 up, M·w down | n random numbers, n XORs of records |
//! | offline, client, once | – | n random numbers |
//! | query, client | 2·Q up to each server | M comparisons to find the hint, two numbers read and exchanged in each of Q permutations |
//! | answer, each server | Q·w down | Q random reads |
//! | recover, client | – | 4·Q XORs of records |
//! | an edit, client | – | M comparisons to find the hint, an XOR of records |
//! | state | 2·Q·M + M·w, secret, on the client; the table on both servers | – |
//!
//! **From paper to function** (Lazzaretti and Papamanthou: *Single Pass Client-Preprocessing
//! Private Information Retrieval*, USENIX Security 2024, as told in §4.1 of Falzon, Hetz, O'Toole:
//! *TAPIR*, whose Figures 4 and 5 without the commitments are this scheme, and whose Lemma A.1.1 is
//! its proof):
//!
//! | paper | here |
//! |---|---|
//! | hint request, Figure 4 | [`SinglePassPreparation`], [`SinglePassServer`]'s [`prepare`](crate::contract::PreparingServer::prepare) |
//! | Permute | `permutations.rs`, from the numbers of `draws.rs` |
//! | Query, Figure 5, lines 5 to 10 and 13; line 12 | [`SinglePassClient`]'s [`reserve`](crate::contract::HintedClient::reserve); the [`apply`](crate::contract::HintedClient::apply) that follows |
//! | Answer | [`SinglePassServer`]'s [`answer`](crate::contract::Answerer::answer) |
//! | Recon, lines 17 to 20 | `SinglePassClient`'s `take_in` |
//! | edits, Figure 6 | [`SinglePassClient`]'s [`apply_delta`](crate::contract::Updatable::apply_delta) |
//!
//! Different from the paper: the inverse permutations, in which it looks up where the wanted record
//! is, are not kept. They are as large as the permutations themselves and would have to be changed
//! at two random places for each number exchanged; to find a record, all of its partition's
//! permutation is gone through instead, which takes microseconds: the same steps wherever the
//! record is, but less time where a row lies in a cache. That tells nobody anything, because a
//! session sends queries at moments that do not depend on how long they took to make. Queries may
//! be made before earlier ones are answered: what the answers bring is then taken in in the order
//! of the queries.

mod change;
mod client;
pub(crate) mod descriptor;
pub(crate) mod draws;
pub(crate) mod generation;
mod messages;
mod params;
pub(crate) mod permutations;
mod preparation;
mod server;
#[cfg(test)]
pub(crate) mod tests;

pub use client::SinglePassClient;
pub use messages::{SinglePassAnswer, SinglePassQuery, SinglePassReply, SinglePassRequest};
pub use params::SinglePassParameters;
pub use preparation::SinglePassPreparation;
pub use server::SinglePassServer;

use crate::SchemeId;
use crate::contract::{Asked, Message, Offline, Role, Scheme};
use crate::offline::OfflinePhase;

/// The scheme's types, without a state.
pub struct SinglePass;

impl Scheme for SinglePass {
    const ID: SchemeId = SchemeId::named("singlepass");
    type Parameters = SinglePassParameters;
    type Query = SinglePassQuery;
    type Answer = SinglePassAnswer;

    fn servers(_parameters: &SinglePassParameters) -> usize {
        2
    }
}

impl Offline for SinglePass {
    fn offline_phase(parameters: &SinglePassParameters) -> OfflinePhase {
        OfflinePhase::Ask {
            role: Self::ASKED,
            requests: 1,
            request_len: SinglePassRequest::encoded_len(parameters),
            reply_len: SinglePassReply::encoded_len(parameters),
        }
    }
}

impl Asked for SinglePass {
    const ASKED: Role = Role(0);
    type Request = SinglePassRequest;
    type Reply = SinglePassReply;
}
