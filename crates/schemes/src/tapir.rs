//! TAPIR: SinglePass whose answers are verified. For a query, two servers read one record of each
//! partition, and prove what they read. The client accepts no wrong record, and its refusal reveals
//! nothing.
//!
//! The table is cut, permuted and looked up as with [`singlepass`](crate::singlepass). In addition,
//! there is a vector commitment to each partition ([`privet_core::commit`]), and every answer comes
//! with a proof. Both servers do the same: neither computes hints, so neither gets any secret. The
//! client makes the hints itself while it streams the table once.
//!
//! **Who learns what.** Each server sees uniform offsets, one for each partition, and whether the
//! client goes on. The proof of privacy is that of [`singlepass`](crate::singlepass). **One of the
//! two may behave arbitrarily.** Both servers must announce the same table by the same digest. So
//! if one of them is honest, the hints and the commitments are right, or there are none. Afterwards
//! the client checks *every record of both answers* before it uses any of them, and stops for good
//! at the first wrong one. It checks uniform offsets, whatever the wanted record is. So whether it
//! stops depends on what the lying server did and on random numbers, never on the record. Suppose
//! that the client checked only the wanted record, or only the answer that contains it. Then a
//! server could give wrong records for some offsets, and learn from the client's silence: this is
//! the selective failure attack. Nothing of this holds against two servers that collude.
//!
//! **Each server keeps its role for as long as the hints are used**: the second server later sees
//! what the first one saw. An attacker who sees the queries of both roles sees repetitions.
//!
//! **The client's state is as precious as a key**, as for SinglePass, and the order is stricter:
//! first a query, then its answers, and only then the next query or an update of the table. The
//! types in `order.rs` enforce it.
//!
//! **What it costs**, for `Q` partitions of `M` records of `w` bytes, in addition to the costs of
//! SinglePass:
//!
//! | | |
//! |---|---|
//! | offline, server, once for all clients | 2·n hash computations |
//! | offline, client | n·w down; 2·n hash computations |
//! | answer, each server | (log₂M − t)·32·Q more down; Q hash computations |
//! | recover, client | 2·Q·(log₂M − t + 1) hash computations |
//! | state, client | 32·2^t·Q more, public |
//! | state, server | 32·n more |
//!
//! `t` is the number of levels of each Merkle tree that a client keeps: as many as take no more
//! memory than the rest of its state ([`MerkleForm::commitment`]).
//!
//! **From paper to function** (Falzon, Hetz, O'Toole: *TAPIR: A Two-Server Authenticated PIR Scheme
//! with Preprocessing*):
//!
//! | paper | here |
//! |---|---|
//! | Setup, Figure 4 | [`TapirSetup`] |
//! | RequestHint, VerSetup, Figure 4 | the session compares what both servers announce; [`TapirPreparation`] |
//! | Query, Figure 5 | [`TapirClient`]'s [`reserve`](crate::contract::HintedClient::reserve) and the [`apply`](crate::contract::HintedClient::apply) that follows |
//! | Answer, Figure 5 | [`TapirServer`]'s [`answer`](crate::contract::Answerer::answer) |
//! | Recon, Figure 5 | [`settle`](crate::contract::HintedClient::settle): lines 9 to 15 in `Asked::verify`, the rest as in SinglePass |
//! | UpdateDB, Figure 6 | [`TapirServer`]'s [`successor`](crate::contract::Answerer::successor) |
//! | UpdateHint, Figure 6 | servers' updates are compared in the registry's `apply_deltas`; `Ready::update` |
//!
//! Different from the paper: both servers announce the table's digest *before* it streams. So each
//! byte needs to come from only one of them, which halves the traffic (the session can also compare
//! two streams). A client computes the commitments itself; only the table is streamed.

mod change;
mod client;
mod descriptor;
mod form;
mod generation;
mod messages;
mod order;
mod params;
pub mod planted;
mod preparation;
mod server;
#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used)]
pub mod tests;

pub use client::TapirClient;
pub use descriptor::RegisteredForm;
pub use form::{Form, MerkleForm};
pub use messages::{TapirAnswer, TapirQuery};
pub use params::{TapirParameters, vectors_of};
pub use preparation::TapirPreparation;
pub use server::{TapirServer, TapirSetup};

use crate::SchemeId;
use crate::contract::{Offline, Scheme};
use crate::offline::OfflinePhase;
use privet_core::commit::VectorCommitment;
use std::marker::PhantomData;

/// The name of the form with Merkle trees.
pub(crate) const MERKLE: SchemeId = SchemeId::named("tapir-mt");

/// The scheme's types, without a state.
pub struct Tapir<F: Form>(PhantomData<F>);

impl<F: Form> Scheme for Tapir<F> {
    const ID: SchemeId = F::ID;
    type Parameters = TapirParameters<F>;
    type Query = TapirQuery;
    type Answer = TapirAnswer;

    fn servers(_parameters: &TapirParameters<F>) -> usize {
        2
    }
}

impl<F: Form> Offline for Tapir<F> {
    fn offline_phase(parameters: &TapirParameters<F>) -> OfflinePhase {
        let len = parameters.stream_len();
        match parameters.commitment().announcement_len() {
            0 => OfflinePhase::StreamTable { len },
            _ => OfflinePhase::StreamArranged { len },
        }
    }
}
