//! APIR-DPF: DPF-PIR whose answers prove themselves. Two servers that do not collude and of which
//! one may lie; no hint, no state, no digest.
//!
//! The client shares two functions between the servers, with one distributed point function
//! ([`privet_core::dpf`]): one is 1 at the wanted record and 0 elsewhere, the other is `α` there, a
//! secret drawn for this lookup alone. Each server returns two sums over the table, one under each
//! of its shares. What the two *values* differ by is the record, what the two *tags* differ by is
//! `α` times the record, and the client believes it if that is so. `α` is an element of a field of
//! 2^128 elements, and records are cut into such elements, each of which is verified
//! ([`privet_kernels::authenticated_sum`] says which field, and why that one).
//!
//! **Who learns what.** Each server learns that a query was made, and when, and nothing of the
//! index or of `α`, as in DPF-PIR and for the same reason: its key looks like uniform bits to it,
//! and to tell it from them takes some 2^121 computations of AES with 2^25 records, and more than
//! 2^120 with any number. Each lookup has AES keys of its own. **Whoever sees both queries of a
//! lookup knows the index, and can forge.**
//!
//! **What a liar can do.** Whatever one server returns instead of its sums, it adds an error to the
//! value and one to the tag, both of which it must choose without knowing `α` or the index. The
//! client accepts if the tag's error is `α` times the value's, in every element. An error in a tag
//! alone is never accepted. For an error in a value, one `α` of 2^128 would do: so a wrong record
//! is accepted with probability at most 2^-128 (`α` is uniform among all elements; 0 is one of
//! them, for which that bound holds as well, so it is not left out), whatever the number of
//! elements: more of them must all agree with the same `α`. (In other words, the bound is that or
//! what it takes to break the generator, whichever is more.) Otherwise the answer is rejected,
//! *whatever the index is*: a liar learns nothing from a client that turns away. That needs the
//! whole answer to be verified. A client that looked only at the elements that it needs would let
//! the liar try one element after another, and see when the client notices.
//!
//! A server that holds another table, or the same in another epoch, is a liar in this sense: what
//! it adds is the difference of the tables under its two shares, which have nothing to do with `α`,
//! so it is found out, even if the record that was asked for is the same in both. Which of the two
//! servers did not tell the truth cannot be known. Nothing is promised if both lie in agreement:
//! then they know `α`. Nor does a proof say that the table is right, only that one honest server
//! would have answered like that.
//!
//! **What it costs**, for `n` records of `w` bytes, with `depth = ⌈log₂ n⌉` and `e = ⌈w/16⌉`:
//!
//! | | bytes | work |
//! |---|---|---|
//! | offline | – | – |
//! | query, client | 16·(depth + 3) + ⌈depth/8⌉ up to each server: 371 for 2^20 records | 4·depth + 2 AES blocks |
//! | answer, each server | w + 16·e down | about 3 AES blocks and e products in the field for every record of each query, which takes longer than to read the table |
//! | recover, client | – | e products, one comparison |
//! | state | the table on both servers | – |
//!
//! The tree goes down to single records, where that of DPF-PIR ends at 128 of them: that is the
//! price of the proof, 128 times the AES blocks.
//!
//! **From paper to function** (Colombo, Nikitin, Corrigan-Gibbs, Wu, Ford: *Authenticated private
//! information retrieval*, USENIX Security 2023; the scheme for point queries with two servers):
//!
//! | paper | here |
//! |---|---|
//! | query: shares of the point function with the value (1, α) | [`privet_core::dpf::Key::pair_with_payload`], in [`ApirDpfClient`]'s [`StatelessClient::query`](crate::contract::StatelessClient::query) |
//! | answer: the sum of the records under the shares | [`privet_core::dpf::Evaluation::ends`], [`Kernels::authenticated_sums`](privet_kernels::Kernels::authenticated_sums), in [`ApirDpfServer`]'s [`Answerer::answer`](crate::contract::Answerer::answer) |
//! | reconstruct: compare the tag with α times the value | [`ApirDpfClient`]'s [`StatelessClient::recover`](crate::contract::StatelessClient::recover) |
//!
//! Different from the paper: the field has characteristic 2 instead of being a prime one, so that
//! shares are added by XOR, the first function costs nothing (it is the control bits of the tree's
//! last level), and any record of any width is cut into elements without coding. The domain is as
//! large as the table; the AES keys belong to one lookup; a server never holds an expansion whole.

mod client;
mod descriptor;
mod messages;
mod params;
mod server;
#[cfg(test)]
mod tests;

pub use client::{ApirDpfClient, ApirDpfPending};
pub use messages::{ApirDpfAnswer, ApirDpfQuery};
pub use params::ApirDpfParameters;
pub use server::ApirDpfServer;

use crate::SchemeId;
use crate::contract::{Offline, Scheme};
use crate::offline::OfflinePhase;

/// The scheme's types, without a state.
pub struct ApirDpf;

impl Scheme for ApirDpf {
    const ID: SchemeId = SchemeId::named("apir-dpf");
    type Parameters = ApirDpfParameters;
    type Query = ApirDpfQuery;
    type Answer = ApirDpfAnswer;

    fn servers(_parameters: &ApirDpfParameters) -> usize {
        2
    }
}

impl Offline for ApirDpf {
    fn offline_phase(_parameters: &ApirDpfParameters) -> OfflinePhase {
        OfflinePhase::Nothing
    }
}
