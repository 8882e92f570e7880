//! Harmony: one server that reads a few dozen records for each query. The client's hints come from
//! one secret permutation of the table, and each is good for one query.
//!
//! The records lie in twice as many *cells*, or more, in the order of a secret permutation; the
//! other cells are empty. The cells are cut into *segments* of `T`. For each segment the client has
//! a hint: the XOR of the records in it. To look a record up, the client asks for what lies in the
//! cells of the record's segment, with something else in the record's place, and XORs it off the
//! hint. The segment is used up then. What lay in it moves to cells that were empty, so that it
//! lies at places of which the server knows nothing.
//!
//! **Who learns what.** The server learns that a query was made, and when. A query is `T` draws
//! without replacement from the records and empties that are left, whatever the record is and
//! whatever was asked before; the proof is below. It rests on AES: if its blocks are pseudorandom,
//! a generation of hints tells a server anything with probability below 2⁻⁶³ (for tables of up to
//! 2^27 records; see [`privet_kernels::swap_or_not`]). The client learns the record (and streams
//! the whole table before its first query: the table is not kept secret from clients). A server
//! that answers wrongly makes the client recover wrong bytes, in this lookup and in later ones:
//! each record of an answer is XORed onto a hint, so a wrong answer spoils **up to `T` hints**.
//! This scheme does not notice. Nothing that the client sends depends on answers.
//!
//! **A segment must never serve two queries**: the second one would show which records lie
//! together. So the client's state is as precious as a key: see [`reservation`](crate::reservation)
//! for how it survives crashes.
//!
//! **What it costs**, for `N` records in `C = 2^k` cells, `C ≥ 2N`, and `M = C/T` segments, at
//! least 256. By default `T` is the power of two next to `√N/64`, and at least 8. A value of the
//! permutation takes 137 to 202 AES blocks, 182 for 2^24 records:
//!
//! | | bytes | work |
//! |---|---|---|
//! | offline, client, once for `M/2` queries | the table down | `N` values, `N` record XORs |
//! | query, client | `T·⌈log2(N + 1)⌉/8` up | `1.5·T` values at first, `4·T` at last, and a few for the wanted record |
//! | answer, server | `T` records down | as many random reads as it names records: about `T/2` at first, `T` at last |
//! | recover, client | – | `2·T` record XORs |
//! | an edit, client | – | a value at first, two at last; one record XOR |
//! | state | `M` records and `7·M` bytes, secret, on the client; the table on the server | – |
//! | journal | `T` records and `8·T` bytes for each lookup, besides the query | – |
//!
//! **Measured.** On one core of a shared Zen 3 machine that reads 15 GB/s, with 2^24 records of
//! 32 bytes and `T` = 64: 6.2 to 7.7 s to prepare 262,144 queries; 260 bytes up and 2.1 KiB
//! down; 2.4 µs for the server; 47 to 55 and 6 to 8 µs for the client, with fresh hints; 8 to 10
//! µs for an edit. With 2^23 records and `T` = 32, the client keeps 20 MB and a lookup moves 1.2
//! KB; HarmonyPIR's paper has 17 MB and 0.84 KB, with rounds for servers that do not adapt.
//!
//! State times the length of an answer is the same for every `T`, and so is the state times the
//! table's bytes that are streamed for a lookup. The option `segment-records` chooses `T`.
//!
//! **Correctness.** Every lookup finds its record, whatever is looked up.
//!
//! # Why queries reveal nothing
//!
//! Let `L` be the number of cells in unused segments. They hold `L` *contents*, one each: the `N`
//! records, and `L - N` empties. Let `q` be the wanted record, `g` its segment, and `G` the
//! contents of `g` in the order of their cells. The client draws `y`, uniformly **from all `L`
//! contents**. If `y` is in `G`, it sends `G` as it is. Otherwise it sends `G` with `y` in the
//! place of `q`.
//!
//! *Claim 1. If the contents are arranged uniformly at random, a query is `T` draws without
//! replacement from the `L` contents, whatever `q` is.* `G` has `q` in a uniform place, and in the
//! others `T - 1` draws without replacement from the `L - 1` other contents. If `y` is not in `G`,
//! it is uniform among the contents that are not. So all orders in a row are equally likely:
//!
//! | orders of `T` contents | how many | sent | so each has probability |
//! |---|---|---|---|
//! | with `q` | `T·(L - 1)!/(L - T)!` | if `y` is in `G`: with probability `T/L` | `(L - T)!/L!` |
//! | without `q` | `(L - 1)!/(L - T - 1)!` | otherwise: with probability `(L - T)/L` | `(L - T)!/L!` |
//!
//! Both are the same, so every order is as likely as any other. A query shows even less: it does
//! not say which empty is which.
//!
//! *Claim 2. Afterwards the contents that are left are again arranged uniformly, whatever `G` and
//! `y` were, and so whatever the server has seen.* Given `G` and `y`, the contents outside of `g`
//! are arranged uniformly in the cells outside of `g`: neither depends on which cell holds what
//! there. Then `T` empties are taken out, numbers `nT` to `nT + T - 1` in step `n`: some of them
//! from outside of `g`, the others from `G`. What remains of `G` is as many as those outside. It
//! takes their cells, one each, by a rule that depends on `G` alone. So the same uniform
//! arrangement is there with other names.
//!
//! By induction, each query has the distribution of claim 1, independent of all queries before it.
//!
//! *How much of the permutation is used.* `y` is drawn from the contents, not from the cells, so it
//! takes no value of the permutation. The queries of a generation follow from coins and from what
//! lies in the used segments: at most `M/2` of them, so from `C/2` values. (A walk meets only cells
//! of used segments before its last one.) For that many, swap-or-not is proved: whoever sees them,
//! chosen adaptively and in both directions, does not tell the permutation from a random one.
//!
//! # The rule as it was published
//!
//! HarmonyPIR draws a cell that lies *outside* of `g`, or is that of `q`. Then `q` is in its own
//! query with probability `1/(L - T + 1)`, where draws without replacement have `T/L`. A server can
//! test that for each record: for one that is asked for again and again, it adds up to a likelihood
//! ratio of about 2 in a generation. A published implementation (Bitcoin-PIR/harmonypir) leaves out
//! all of `g`, and so never has `q` in its own query. With both rules planted in this client,
//! `tests/statistics.rs` notices.
//!
//! **From paper to function** (HarmonyPIR, ePrint 2026/437):
//!
//! | paper | here |
//! |---|---|
//! | the permutation | [`privet_kernels::swap_or_not`] |
//! | offline phase | [`HarmonyPreparation`] |
//! | access and locate | `history.rs`: `access`, `locate`, `follow` |
//! | Algorithm 3, query | [`HarmonyClient`]'s [`reserve`](crate::contract::HintedClient::reserve) |
//! | answer | [`HarmonyServer`] |
//! | Algorithm 7, relocation | `history.rs`: `destinations`; `HarmonyClient`'s `take_in` |
//! | edits | [`delta_change`](crate::contract::HintedClient::delta_change) |
//!
//! Different from the paper, besides the rule: the rounds of the permutation are those that the
//! *adaptive* bound wants, for 2⁻⁶⁴; five of them share a block of AES, in the way proved in the
//! kernel. (The paper's faster form uses FF1, for which there is no proof.) The number of cells is
//! a power of two, so that no walk has to be repeated to stay within the table. Empties are not
//! located: that saves up to half of the work, and their walks need not end. A record is followed
//! from the cell in which it was, not from its first one, and records that are looked up often have
//! shortcuts (`shortcuts.rs`). Queries may be made before earlier ones are answered.

mod change;
mod client;
mod descriptor;
mod generation;
mod history;
mod messages;
mod params;
mod preparation;
mod server;
mod shortcuts;
#[cfg(test)]
mod tests;

pub use client::HarmonyClient;
pub use descriptor::SEGMENT_RECORDS;
pub use messages::{HarmonyAnswer, HarmonyQuery};
pub use params::HarmonyParameters;
pub use preparation::{GrowingHarmony, HarmonyPreparation};
pub use server::HarmonyServer;

use crate::SchemeId;
use crate::contract::{Offline, Scheme};
use crate::offline::OfflinePhase;

/// The scheme's types, without a state.
pub struct Harmony;

impl Scheme for Harmony {
    const ID: SchemeId = SchemeId::named("harmony");
    type Parameters = HarmonyParameters;
    type Query = HarmonyQuery;
    type Answer = HarmonyAnswer;

    fn servers(_parameters: &HarmonyParameters) -> usize {
        1
    }
}

impl Offline for Harmony {
    fn offline_phase(parameters: &HarmonyParameters) -> OfflinePhase {
        OfflinePhase::StreamTable { len: parameters.shape().bytes() }
    }
}
