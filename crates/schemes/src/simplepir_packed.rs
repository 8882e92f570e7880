//! SimplePIR with a packed hint: one server, ring learning with errors, and next to nothing to
//! fetch first.
//!
//! SimplePIR's hint has 4 KiB for each row of the byte matrix. Here the server packs its answer for
//! 2048 rows under one mask, with keys that the client sends along. The masks of all blocks are
//! what is left of the hint: 4352 bytes for each 2048 rows. They are needed only to *read* an
//! answer. So a client may send its first query at once, and fetch the masks beside it.
//!
//! **Who learns what.** As with SimplePIR, the server learns that a query was made, and when. It
//! learns nothing of the index, however many queries it sees and whatever it sends back, as long as
//! ring LWE with the keys' key-dependent messages is hard. The estimate is 2^141 gates
//! (`docs/security/ring-lwe.md`); the assumption is stronger than SimplePIR's plain LWE. The client
//! learns the whole column in which its record lies, and through the masks a linear function of the
//! table (the table is not kept secret from clients). A server that answers wrongly makes the
//! client recover wrong bytes; nothing notices that.
//!
//! **What it costs**, for a table laid out as `rows` × `columns` bytes, both ≈ √(table bytes), and
//! `blocks` = rows / 2048:
//!
//! | | bytes | work |
//! |---|---|---|
//! | offline, server, once per table | – | for each block: a product of 2048 polynomials with the table's, 2046 key switches, two Fourier transforms over the ring |
//! | offline, client, once per version | 4352 · blocks down, beside the first query | its digest |
//! | query, client | 24 to 28 bits for each column and 20 KiB of keys up | columns / 2048 + 2 products of polynomials |
//! | answer, server | 10 bits for each row down | rows · (columns + 8192) multiply-adds: one pass, shared by a batch; a product of polynomials for each block |
//! | recover, client | – | 2048 · record_len multiply-adds, or a product of polynomials |
//! | edits | the masks again | what the touched blocks cost offline; on demand, and three blocks |
//! | state | the masks (public) on the client; table and 8 KiB for each row on the server | – |
//!
//! For 1 GiB that is 124 KiB up, 40 down, and 68 KiB of masks; SimplePIR's hint has 128 MiB. It
//! costs the server a quarter more work for each query. For smaller tables the share is larger:
//! 8192 / columns.
//!
//! **Measured.** On one core of a shared Zen 3 machine that reads 14 to 16 GB/s, with 1 GiB in
//! records of 32 bytes: 107 to 134 ms for the server, 1.2 to 1.36 times SimplePIR in the same
//! run, and 46 to 56 ms for each of eight; 0.8 to 1.1 and 0.1 ms for the client; 10 to 14 s to
//! set up. The papers have, on other machines: YPIR, single bits, 846 KB up and 12 down, 129 to
//! 140 ms, 26 to 32 s; InsPIRe, records of 64 bytes, 224 to 392 KB up and 12 down, 280 to 650
//! ms, 77 to 99 s.
//!
//! **Masks on demand** ([`Masks::OnDemand`]), for clients that keep nothing. The masks are a second
//! byte matrix: a column for each block, of 4352 rows. A query has a second vector, a word for each
//! block, and the answer has the wanted mask, packed in the same way with the same keys. The client
//! recovers the mask first, and the record with it. What it downloads beside its first query are
//! the masks of that second matrix, of which there are three, whatever the table: 13,056 bytes. A
//! block then holds whole records, 2048 / record_len of them. The masks of a longer record, of all
//! its blocks, are one column.
//!
//! A first lookup in 1 GiB then moves 167 KiB instead of 232, and 410 instead of 631 in 8 GiB. (In
//! 32 MiB it moves 60 instead of 57.) The second matrix is 2.4 % more work for the server at 1 GiB.
//! The layout with the fewest bytes has more rows and fewer columns than without it, so the share
//! of the packing grows: in all it is 15 % more work at 1 GiB, 6 % at 8 GiB, 36 % at 128 MiB.
//!
//! Both vectors are encrypted under one secret, with public polynomials of their own. So their
//! words are a few more samples of ring LWE, and a secret still serves one query: what is made
//! ahead for both is consumed by both ([`privet_core::ring::Blank`]).
//!
//! **Parameters.** Degree 2048, q = 2^50, plaintext modulus 256, a ternary secret, an error of
//! deviation 8.45, at most 2^19 columns. [`privet_core::ring`] has the numbers and
//! [`privet_core::ring::noise`] the proof that a record comes back right except with probability
//! 2^-40, and each byte except with 2^-57, whatever the table holds. (A mask that comes with the
//! answer counts in the former. At 1 GiB it is wrong with probability 2^-80.) The public
//! polynomials follow from the table's id, so all lookups of all clients in all versions share
//! them.
//!
//! **From paper to function**:
//!
//! | paper | here |
//! |---|---|
//! | database as a matrix over ℤ_p; the pass (SimplePIR, USENIX Security 2023, §4) | [`SimplePirPackedParameters`]: bytes as they are, p = 256, a column is `rows` consecutive bytes of the table |
//! | ring LWE queries (YPIR, USENIX Security 2024, §4; InsPIRe, ePrint 2025/1352, §3) | [`privet_core::ring::encrypt_zero`], and [`SimplePirPackedClient`]'s [`Ahead::fill`](crate::contract::Ahead::fill) |
//! | InspiRING offline: aggregate and collapse (InsPIRe, Algorithms 1 to 3) | [`privet_core::ring::PackingFactors::pack`], by [`SimplePirPackedSetup`]'s [`Setup::precompute`](crate::contract::Setup::precompute) |
//! | InspiRING online: `b − M·y` | [`privet_core::ring::pass_words`]: columns of the same byte matrix, in [`SimplePirPackedServer`]'s [`Answerer::answer`](crate::contract::Answerer::answer) |
//! | Extract | [`privet_core::ring::RingKey::decrypt`], by [`SimplePirPackedClient`]'s [`StatelessClient::recover`](crate::contract::StatelessClient::recover) |
//!
//! Different from the papers: what packing does to an answer is linear in the key, so it is stored
//! as four planes of bytes and done by the pass itself. One digit is enough for each key. The masks
//! do not depend on the query, so they are not sent with each answer.

mod client;
mod descriptor;
mod layout;
mod matrix;
mod messages;
mod packing;
mod params;
mod server;
#[cfg(test)]
mod tests;
mod update;

pub use client::SimplePirPackedClient;
pub use descriptor::MASKS_ON_DEMAND;
pub use messages::{SimplePirPackedAnswer, SimplePirPackedQuery};
pub use params::{Masks, SimplePirPackedParameters};
pub use server::{SimplePirPackedServer, SimplePirPackedSetup};

use crate::SchemeId;
use crate::contract::{Offline, Scheme};
use crate::offline::OfflinePhase;

/// The scheme's types, without a state.
pub struct SimplePirPacked;

impl Scheme for SimplePirPacked {
    const ID: SchemeId = SchemeId::named("simplepir-packed");
    type Parameters = SimplePirPackedParameters;
    type Query = SimplePirPackedQuery;
    type Answer = SimplePirPackedAnswer;

    fn servers(_parameters: &SimplePirPackedParameters) -> usize {
        1
    }
}

impl Offline for SimplePirPacked {
    fn offline_phase(parameters: &SimplePirPackedParameters) -> OfflinePhase {
        OfflinePhase::Download { len: parameters.hint_bytes() }
    }
}
