//! DoublePIR: one server, learning with errors twice, a public hint whose size does not depend on
//! the number of records.
//!
//! SimplePIR's hint grows with the table, but a lookup needs only the hint's rows that belong to
//! the record. So the client does not download the hint. It looks these rows up *privately*, by a
//! second lookup of the same kind in a matrix made of the hint's bytes. This second lookup has a
//! hint of its own, 16 MiB for each byte of a record. The client downloads only this one.
//!
//! **Who learns what.** As with SimplePIR, the server learns that a query was made, and when. It
//! learns nothing of the index, however many queries it sees and whatever it sends back, as long as
//! LWE is hard. The estimate is 2^141 gates for tables around a GiB, and never less than 2^128. The
//! two halves of a query are encrypted under independent secrets and public matrices. A server that
//! answers wrongly makes the client recover wrong bytes; DoublePIR does not notice.
//!
//! **What it costs**, for a table of records of `record_len` bytes laid out as `rows` × `columns`
//! bytes, with R records in a column:
//!
//! | | bytes | work |
//! |---|---|---|
//! | offline, server, once per table | – | 1024 · (rows · columns + 4096 · rows) multiply-adds of 32 bits |
//! | offline, client, once per table | 16 MiB · record_len down (the hint) | its digest |
//! | query, client | 4 · (columns + R) up | 1024 · (columns + R) multiply-adds, a quarter as many AES blocks |
//! | answer, server | 16 KiB · record_len, and the first product: min(4 · rows, 16.4 KB · record_len) down | one pass over table and second matrix, shared by a batch; when folding 4096 · rows multiply-adds, and 256 · R AES blocks for the batch |
//! | recover, client | – | reads the hint: 2^22 · record_len multiply-adds |
//! | state | the hint (public) on the client; table, second matrix (4096 · rows bytes, up to a sixteenth of the table or 16 MiB) and hint on the server | – |
//!
//! **Measured.** On one core of a shared Zen 4 machine that reads 31 GB/s, with 2^25 records of
//! 32 bytes: a hint of 512 MiB, 258 KiB up and 576 down; 46 ms for a server, 0.79 times a read
//! of the table; 17 and 53 ms for the client. Eight queries of 2^28 records of one byte share a
//! pass on two threads at 98 GB/s, on one at 51.
//!
//! It suits large tables of short records: the hint is smaller than SimplePIR's if record_len <
//! √(table bytes) / 4096, which is one byte at 16 MiB and eight bytes at 1 GiB. Records of more
//! than 64 bytes are refused ([`params`](DoublePirParameters::with_records_per_column)): their hint
//! would exceed 1 GiB.
//!
//! **Layout.** [`DoublePirParameters::new`] takes the layout with the shortest messages among those
//! whose second matrix has at most a sixteenth of the table's bytes (or 16 MiB).
//!
//! **Parameters.** Those of SimplePIR at both levels, each with the error that its own number of
//! columns allows ([`privet_core::lwe`]): dimension 1024, q = 2^32, plaintext modulus 256, at most
//! 2^18 columns. A byte of a record depends on one byte of the first level and 4100 of the second.
//! Each level makes it wrong with probability 2^-65 at most, whatever the table holds
//! ([`DoublePirParameters::failure_bound_log2`]). All lookups of all clients in all versions share
//! both matrices, as with SimplePIR's.
//!
//! **From paper to function** (Henzinger, Hong, Corrigan-Gibbs, Meiklejohn, Vaikuntanathan: *One
//! Server for the Price of Two*, USENIX Security 2023, §5):
//!
//! | paper | here |
//! |---|---|
//! | hint_s = Decomp(A₁ᵀ · DBᵀ), kept by the server | the first hint H₁ = D·A₁, whose words' bytes are the second matrix ([`Setup`](crate::contract::Setup)) |
//! | hint_c = hint_s · A₂ | the hint H₂ |
//! | Query: c₁, c₂ | [`DoublePirQuery`] |
//! | ans₁ᵀ = Decomp(c₁ᵀ · DBᵀ); h = ans₁ᵀ · A₂; ans_h, ans₂ | [`DoublePirAnswer`] |
//! | Recover | [`DoublePirClient`]'s [`StatelessClient::recover`](crate::contract::StatelessClient::recover) |
//!
//! Different from the paper: the plaintext modulus is 256 at both levels. So the second level works
//! on the bytes of the first level's words as they lie in memory, with the same kernels; the client
//! subtracts `128 · Σe`, which makes that safe. The bytes of a record share one pass of the second
//! level: their rows lie side by side in one column. Where a column has few records (up to 4100),
//! the server sends the first product as it is. That is shorter than after the second level (for
//! 2^25 records of 32 bytes, 64 KiB instead of 512 KiB), and less work.

mod client;
mod descriptor;
mod messages;
mod params;
mod server;
#[cfg(test)]
mod tests;

pub use client::{DoublePirClient, DoublePirPending};
pub use messages::{DoublePirAnswer, DoublePirQuery};
pub use params::{DoublePirParameters, MAX_HINT_BYTES};
pub use server::{DoublePirServer, DoublePirSetup};

use crate::SchemeId;
use crate::contract::{Offline, Scheme};
use crate::offline::OfflinePhase;

/// The scheme's types, without a state.
pub struct DoublePir;

impl Scheme for DoublePir {
    const ID: SchemeId = SchemeId::named("doublepir");
    type Parameters = DoublePirParameters;
    type Query = DoublePirQuery;
    type Answer = DoublePirAnswer;

    fn servers(_parameters: &DoublePirParameters) -> usize {
        1
    }
}

impl Offline for DoublePir {
    fn offline_phase(parameters: &DoublePirParameters) -> OfflinePhase {
        OfflinePhase::Download { len: parameters.hint_bytes() }
    }
}
