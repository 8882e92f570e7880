//! Piano: one server that reads about √n/2 records for each query (twice as many in the older
//! form). The client has secret hints, each good for one query.
//!
//! **Who learns what.** The server learns that a query was made, and when. As long as AES is a
//! pseudorandom function, a query is a row of uniform offsets, whatever the record and whatever was
//! asked before. The client learns the record (and streams the whole table before its first query:
//! the table is not kept secret from clients). A server that answers wrongly makes the client
//! recover wrong bytes: in this lookup, and perhaps in later ones, because the answer completes a
//! hint. This scheme does not notice. Nothing that the client sends depends on answers.
//!
//! **What it does not promise.** Hints are for a *window* of `Q` queries. The table is shuffled
//! into a public order. If records are chosen without regard to this order, the hints suffice
//! except with probability 2^-40. Two parties can make them run out:
//!
//! - *The maker of the table*, often the operator of the server. The order follows from the table's
//!   id, and the maker of a key map largely chooses where keys lie. So the maker can put a class of
//!   keys into one chunk. A client that looks up many keys of that class in a window runs out of
//!   hints there.
//! - *An attacker who chooses what is looked up*: the order is public, so the attacker can ask for
//!   records of one chunk.
//!
//! Such a lookup fails with an error that says so. The server sees a query like any other. But if
//! the client's reaction to the failure is visible to the server, it reveals that the client's
//! lookups fell into one chunk. If the table's maker put a class of keys there, it also reveals the
//! class. For lookups by key, dummy subsets are the better choice: they have no such limit.
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
//! **Measured.** On one core of a shared Zen 4 machine that reads 31 GB/s, with 2^24 records of
//! 32 bytes: 1.5 s to prepare 68,140 queries; 3.3 KiB up and 91 bytes down (64 KiB with all
//! parities); 17 µs for the server (47); 58 µs for the client, and 120 µs for an edit; 16 to 22
//! MiB kept.
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
//! Different from the paper: the order of records follows from the table's identity, so no client
//! or server chooses it (but the table's maker can choose where records lie in it: see above). The
//! choice among suitable hints is uniform, and a hint's successor is in use from the reservation
//! on. A search takes the same work for every record. If a chunk's spares are used up, the client
//! sends a cover and reports an error, instead of using a hint without a parity. The single-parity
//! form is the authors' later one: the client also keeps `M₂` random records of each chunk, and one
//! of them takes the wanted record's place in the query.
//!
//! Appendix A.2 (recent changes in a list, older ones in static tables of doubling size) is left
//! out. With 2^20 values of 32 bytes and a list of 1,024 changes, a change cost the server 65 µs
//! with dummy subsets, and a client 457 bytes. But each lookup asked 11.5 tables on average, which
//! cost the server 5.5 times as much.

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
pub use preparation::{GrowingPiano, PianoPreparation};
pub use server::PianoServer;

use crate::SchemeId;
use crate::contract::{Offline, Scheme};
use crate::offline::OfflinePhase;
use std::marker::PhantomData;

/// How a query hides the wanted record's chunk, and what comes back.
pub trait AnswerForm: Send + Sync + 'static {
    /// The scheme's name in this form.
    const ID: SchemeId;
    /// If true, a query names another record of the wanted record's chunk in its place, and a
    /// single parity comes back. If false, it leaves that chunk out, and a parity comes back for
    /// each chunk that this may be.
    const REPLACES_THE_WANTED: bool;
}

/// A query names a record in every chunk, and the answer is their XOR. The wanted record's place
/// holds another record of its chunk, which the client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SingleParity {}

/// A query names a record in every chunk except the wanted record's, and does not say which chunk
/// that is. The answer has the XOR for each possibility.
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
