//! APIR-DPF: DPF-PIR with verified answers. There are two servers, which do not collude; one of
//! them may lie. There is no hint, no state and no digest.
//!
//! The client shares two functions between the servers, with one distributed point function
//! ([`privet_core::dpf`]): one is 1 at the wanted record and 0 elsewhere. The other is `α` at the
//! wanted record and 0 elsewhere, where `α` is a secret drawn for this lookup alone. Each server
//! returns two sums over the table, one under each of its shares. The difference of the two
//! *values* is the record. The difference of the two *tags* must be `α` times the record: only then
//! does the client accept the record. `α` is an element of a field of 2^128 elements, and records
//! are cut into such elements. The client verifies each of them
//! ([`privet_kernels::authenticated_sum`] says which field, and why that one).
//!
//! **Who learns what.** Each server learns that a query was made, and when. It learns nothing of
//! the index or of `α`, for the same reason as in DPF-PIR: to the server, its key looks like
//! uniform bits. Telling the two apart takes some 2^121 computations of AES with 2^25 records, and
//! more than 2^120 with any number. Each lookup has AES keys of its own. **An attacker who sees
//! both queries of a lookup knows the index, and can forge.**
//!
//! **What a liar can do.** A server that returns something else than its sums adds an error to the
//! value and one to the tag. It must choose both errors without knowing `α` or the index. The
//! client accepts if the tag's error is `α` times the value's, in every element. An error in a tag
//! alone is never accepted. An error in a value is accepted for only one `α` of the 2^128. So a
//! wrong record is accepted with probability at most 2^-128, or with the probability of breaking
//! the generator if that is more. (`α` is uniform among all elements. 0 is one of them; the bound
//! holds for it as well, so it is not left out.) The number of elements does not matter: all of
//! them must agree with the same `α`. In every other case the client rejects the answer, *whatever
//! the index is*: a liar learns nothing from a rejection. For that, the client must verify the
//! whole answer. If it verified only the elements that it needs, the liar could alter one element
//! after another, and see when the client notices.
//!
//! A server that holds another table, or the same table in another epoch, is a liar in this sense.
//! It adds the difference of the tables under its two shares, which have nothing to do with `α`. So
//! the client notices, even if the wanted record is the same in both tables. The client cannot know
//! which of the two servers lied. Nothing is promised if both servers collude: then they know `α`.
//! A proof does not say that the table is right either. It says only that an honest server would
//! have given this answer.
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
//! The tree goes down to single records; the tree of DPF-PIR ends at groups of 128. So the proof
//! costs 128 times the AES blocks.
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
//! Different from the paper: the field has characteristic 2 instead of being a prime field. So
//! shares are added by XOR, the first function costs nothing (it is the control bits of the tree's
//! last level), and a record of any width is cut into elements without coding. The domain is as
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
