//! Piano: one server that reads about √n/2 records for each query (or twice as many, in the older
//! form); a client with secret hints, each good for one query.
//!
//! **Who learns what.** The server learns that a query was made, and when: a query is a row of
//! uniform offsets, whatever the record and whatever was asked before, as long as AES is a
//! pseudorandom function. The client learns the record (and streams the whole table before its
//! first query: the table is not kept secret from clients). A server that answers wrongly makes the
//! client recover wrong bytes, now and, through the hint that the answer completes, perhaps later;
//! this scheme does not notice. Nothing the client sends depends on answers.
//!
//! **What it does not promise.** Hints are for a *window* of `Q` queries, and they suffice but with
//! probability 2^-40 for records that are chosen without regard to the public order in which the
//! table is shuffled. Two parties can see to it that they do not suffice:
//!
//! - *Who builds the table*, which is often who runs the server. The order follows from the table's
//!   id, and a key map leaves its maker much choice of where keys lie. So a class of keys can be
//!   put into one chunk, and a client that looks up many of that class in a window runs out of
//!   hints there.
//! - *Who chooses what is looked up*: the order is public, and records of one chunk can be asked
//!   for.
//!
//! Such a lookup fails with an error that says so. The server sees a query like any other; but a
//! client that acts on the failure where the server sees it tells that its lookups lay together,
//! and if the table's maker put a class of keys there, of which class they were. For tables that
//! are looked up by key, dummy subsets are the better choice: they have no such limit.
//!
//! **A hint must never serve two queries**: two queries through one hint show which record differs
//! between them. So the client's state is as precious as a key: see
//! [`reservation`](crate::reservation) for how it survives crashes.
//!
//! **Two forms of answers** share this folder ([`AnswerForm`]): [`SingleParity`] ([`Piano`], the
//! default) and [`AllParities`] ([`PianoAllParities`], as first published).
//!
//! **What it costs**, for `p` chunks of `s` records, `p·s ≈ n`, `s ≈ 2·√n` by default; `Q = √n·ln
//! n` queries in a window, `M₁` primary hints and `M₂` spares for each chunk (323 968 and 96 for
//! 2^24 records):
//!
//! | | bytes | work |
//! |---|---|---|
//! | offline, client, once for `Q` queries | the table down | `p·(M₁ + p·M₂)` record XORs, an eighth as many AES blocks |
//! | query, client | p·log₂(s)/8 up | `(M₁ + Q)/8 + p` AES blocks at most to find a hint, 2·p to rebuild it |
//! | answer, server, single parity | 1 record down | p random reads |
//! | answer, server, all parities | p records down | 2·p random reads |
//! | recover, client | – | three XORs of records |
//! | an edit, client | – | `(M₁ + Q)/8 + p·M₂/8` AES blocks, about `(M₁ + p·M₂)/s` XORs of records |
//! | state | `M₁ + p·M₂ + Q` records, secret, on the client, and `p·M₂` more with a single parity; the shuffled table on the server | – |
//!
//! **From paper to function** (Zhou, Park, Zheng, Shi: *Piano: Extremely Simple, Single-Server PIR
//! with Sublinear Server Computation*, S&P 2024):
//!
//! | paper | here |
//! |---|---|
//! | offline preprocessing, one pass (§2.4) | [`PianoPreparation`] |
//! | query and refresh (§2.4) | [`PianoClient`]; the hints in use are a [`HintTable`](privet_core::hints::HintTable) |
//! | PossibleParities (§2.4) | [`PianoServer`] |
//! | duplicate suppression, random queries (§2.3) | `lookups.rs`, [`privet_core::permutation`] |
//! | choice of parameters (§4.1, theorem 3.4) | `params.rs`, with a bound that is calculated |
//! | the next window's hints during the current one (§2.4) | the session that runs the client |
//!
//! Different from the paper: the order of records follows from the table's identity, so that no
//! client or server chooses it for itself (the table's maker can choose what lies where in it: see
//! above); the choice among suitable hints is uniform and a hint's successor is in use from the
//! reservation on; searching takes the same work for every record; a chunk whose spares are used up
//! leads to a cover and an error, not to a hint without a parity. The single-parity form is the
//! authors' later one: each chunk also leaves `M₂` random records with the client, and one of them
//! stands in the query where the wanted record would.

mod client;
mod descriptor;
mod generation;
mod lookups;
mod messages;
mod params;
mod preparation;
mod server;
#[cfg(test)]
mod tests;

pub use client::PianoClient;
pub use messages::{PianoAnswer, PianoQuery};
pub use params::{PianoParameters, STATISTICAL_SECURITY};
pub use preparation::PianoPreparation;
pub use server::PianoServer;

use crate::SchemeId;
use crate::contract::{Offline, Scheme};
use crate::offline::OfflinePhase;
use std::marker::PhantomData;

/// How a query hides the wanted record's chunk, and what comes back.
pub trait AnswerForm: Send + Sync + 'static {
    /// The scheme's name in this form.
    const ID: SchemeId;
    /// Whether a query names another record of the wanted one's chunk in its place, so that a
    /// single parity comes back; or leaves that chunk out, so that one comes back for each chunk
    /// that may be the one.
    const REPLACES_THE_WANTED: bool;
}

/// A query names a record in every chunk, and the answer is their XOR. Where the wanted record
/// would be stands another one of its chunk, which the client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SingleParity {}

/// A query names a record in every chunk but the wanted one's, without saying which that is, and
/// the answer has the XOR for each of the possibilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllParities {}

impl AnswerForm for SingleParity {
    const ID: SchemeId = SchemeId::named("piano");
    const REPLACES_THE_WANTED: bool = true;
}

impl AnswerForm for AllParities {
    const ID: SchemeId = SchemeId::named("piano-all-parities");
    const REPLACES_THE_WANTED: bool = false;
}

/// The scheme's types, without a state.
pub struct PianoScheme<F>(PhantomData<F>);

/// Piano with a single parity.
pub type Piano = PianoScheme<SingleParity>;

/// Piano with all parities.
pub type PianoAllParities = PianoScheme<AllParities>;

impl<F: AnswerForm> Scheme for PianoScheme<F> {
    const ID: SchemeId = F::ID;
    type Parameters = PianoParameters;
    type Query = PianoQuery<F>;
    type Answer = PianoAnswer<F>;

    fn servers(_parameters: &PianoParameters) -> usize {
        1
    }
}

impl<F: AnswerForm> Offline for PianoScheme<F> {
    fn offline_phase(parameters: &PianoParameters) -> OfflinePhase {
        OfflinePhase::StreamArranged { len: parameters.shape().bytes() }
    }
}
