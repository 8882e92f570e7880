//! Dummy subsets with two servers that do not collude: one computes hints, the other answers, and
//! hints never run out.
//!
//! **Who learns what.** The *offline server* (role 0) gets the client's key, so it knows what every
//! hint may be. It computes parities for ids that simply count up, and for each new hint it returns
//! those of *both* halves. So it learns nothing of what is looked up. The *online server* (role 1)
//! sees what the server of the single-server form sees: a random balanced split and uniform
//! offsets. It never sees the key. Both together would learn everything; the assumption is that
//! they do not collude. A server that computes wrongly makes the client recover wrong bytes; this
//! scheme does not notice. The client computes all cutoffs itself. So neither server influences
//! what its hints contain, and neither has to find medians.
//!
//! **What it costs**, for `p` partitions of `s` records and λ =
//! [`DEFAULT_HINT_SECURITY`](super::DEFAULT_HINT_SECURITY) = 80:
//!
//! | | bytes | work |
//! |---|---|---|
//! | offline, once, client | λ·s/1 cutoffs up, λ·s records down | λ·n/4 AES blocks |
//! | offline, once, offline server | – | λ·n/2 record XORs, 0.4·λ·n AES blocks |
//! | query, to each server | 24 bytes / p/8 + p·log₂(s)/16 up | λ·s/8 AES blocks to find a hint, and one more for every 8 queries made, up to λ·s |
//! | answer, each server | 2 records down | p random reads; the offline server also 2·p AES blocks |
//! | an edit, client | – | λ·s/8 to λ·s AES blocks, about λ/2 XORs of records |
//! | state | λ·s records and 12·λ·s bytes, secret, on the client; the table on the servers | – |
//!
//! **Measured.** On one core of a shared Zen 4 machine that reads 31 GB/s, with 2^24 records of
//! 32 bytes: 1.3 MiB up and 10 down at first, 1.1 s for the server and 0.5 s for the client; 3.6
//! KiB up and 246 bytes down for a query; 38 and 33 µs for the servers. The client takes 79 µs
//! at first and 160 µs after 700,000 lookups, because used hints leave gaps. It stops after some
//! 2.3 million, when there are as many groups as hints; `privet state reset` begins anew.
//!
//! **From paper to function** (Ren, Mughees, Sun, §3.3): Algorithm 1 is
//! [`DummySubsetsTwoServer`]'s [`reply`](crate::contract::Answerer::reply) with
//! [`DummySubsetsTwoPreparation`]; Algorithm 2 is [`DummySubsetsTwoClient`]'s
//! [`reserve`](crate::contract::HintedClient::reserve); Algorithm 3 is [`DummySubsetsTwoServer`]'s
//! answer in role 0 and the client's `exchange`. Different from the paper: the client sends cutoffs
//! instead of receiving them. Replenishment goes with the query, in one round. Ids have 32 bits,
//! enough for 4 billion lookups.

mod client;
mod descriptor;
mod generation;
mod messages;
mod preparation;
mod server;
#[cfg(test)]
mod tests;

pub use client::DummySubsetsTwoClient;
pub use messages::{HintsReply, HintsRequest, Replenishment, TwoServersQuery};
pub use preparation::DummySubsetsTwoPreparation;
pub use server::DummySubsetsTwoServer;

use super::{DummySubsetsAnswer, DummySubsetsParameters};
use crate::SchemeId;
use crate::contract::{Asked, Message, Offline, Role, Scheme};
use crate::offline::OfflinePhase;

/// The server that computes hints.
pub(crate) const OFFLINE: Role = Role(0);
/// The server that answers.
pub(crate) const ONLINE: Role = Role(1);

/// The scheme's types, without a state.
pub struct DummySubsetsTwo;

impl Scheme for DummySubsetsTwo {
    const ID: SchemeId = SchemeId::named("dummy-subsets-two");
    type Parameters = DummySubsetsParameters;
    type Query = TwoServersQuery;
    type Answer = DummySubsetsAnswer;

    fn servers(_parameters: &DummySubsetsParameters) -> usize {
        2
    }
}

impl Offline for DummySubsetsTwo {
    fn offline_phase(parameters: &DummySubsetsParameters) -> OfflinePhase {
        OfflinePhase::Ask {
            role: OFFLINE,
            requests: messages::requests(parameters),
            request_len: HintsRequest::encoded_len(parameters),
            reply_len: HintsReply::encoded_len(parameters),
        }
    }
}

impl Asked for DummySubsetsTwo {
    const ASKED: Role = OFFLINE;
    type Request = HintsRequest;
    type Reply = HintsReply;
}
