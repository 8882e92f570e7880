//! SinglePass: two servers that read about √n records for each query, or far fewer. The client's
//! hints come from a single pass over the table, and never run out.
//!
//! The table is cut into `Q` partitions of `M` records. For each the client has a secret
//! permutation `σ`, and for each `m` below `M` it has a hint: the XOR of record `σ(m)` of every
//! partition. The wanted record is in one hint. The client asks server 1 for the other records of
//! that hint, with a random offset in the place of the wanted record, and XORs them off. The
//! offsets that it has shown are no longer secret, so they are shuffled in again. Server 0 sends
//! one random record of each partition. In all partitions except the wanted record's, the shown
//! offset and this random one change places.
//!
//! **Who learns what.** The servers have roles. *Server 0*, the hint server, learns the first state
//! of the permutations, because it computes the hints. In queries it sees uniform offsets that are
//! independent of everything else. *Server 1* must never see the seed of the permutations. So it
//! sees uniform offsets too, whatever the records are and whatever was asked before, even
//! repetitions. Each server learns that a query was made, and when. That holds against *one*
//! server. **An attacker who sees what both servers see knows the index**: two servers that share
//! their logs, one operator of both servers, or an eavesdropper on both connections if they are not
//! encrypted. The client learns the record (and the XORs of others: the table is not kept secret
//! from clients).
//!
//! A server that answers wrongly makes the client recover wrong bytes: in this lookup, and in later
//! ones, because the answer changes hints. This scheme does not notice. Nothing that the client
//! sends depends on answers. Both servers must hold the same table in the same epoch.
//!
//! **The client's state is as precious as a key**: a state that is used twice shows server 1 the
//! same hint twice, which reveals the partition of the record. See
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
//! **Measured.** On one core of a shared Zen 4 machine that reads 31 GB/s, with 2^24 records of
//! 32 bytes: 2 MiB received at first, 0.07 s for server and client; 1.1 KiB up and 16 down for a
//! query; 6 and 4 µs for the servers; 17 and 8 µs for the client, and 4 µs for an edit; 34 MiB
//! kept. With 4,096 records in a partition: 128 KiB at first, 16 and 256 KiB for a query, 39 and
//! 68 µs for the servers.
//!
//! **From paper to function** (Lazzaretti and Papamanthou: *Single Pass Client-Preprocessing
//! Private Information Retrieval*, USENIX Security 2024, as described in §4.1 of Falzon, Hetz,
//! O'Toole: *TAPIR*. Figures 4 and 5 there, without the commitments, are this scheme; Lemma A.1.1
//! is its proof):
//!
//! | paper | here |
//! |---|---|
//! | hint request, Figure 4 | [`SinglePassPreparation`], [`SinglePassServer`]'s [`reply`](crate::contract::Answerer::reply) |
//! | Permute | `permutations.rs`, from the numbers of `draws.rs` |
//! | Query, Figure 5, lines 5 to 10 and 13; line 12 | [`SinglePassClient`]'s [`reserve`](crate::contract::HintedClient::reserve); the [`apply`](crate::contract::HintedClient::apply) that follows |
//! | Answer | [`SinglePassServer`]'s [`answer`](crate::contract::Answerer::answer) |
//! | Recon, lines 17 to 20 | `SinglePassClient`'s `take_in` |
//! | edits, Figure 6 | [`SinglePassClient`]'s [`delta_change`](crate::contract::HintedClient::delta_change) |
//!
//! Different from the paper: the paper looks up the wanted record's place in inverse permutations.
//! They are not kept here. They are as large as the permutations themselves, and each exchange of a
//! number would change them at two random places. Instead, the client searches the whole
//! permutation of the record's partition, which takes microseconds. The steps are the same wherever
//! the record is, but take less time if the row lies in a cache. That reveals nothing, because a
//! session sends queries at times that do not depend on how long they took to make. Queries may be
//! made before earlier ones are answered. The client then takes the answers in, in the order of the
//! queries.

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
pub use descriptor::costs;
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
