//! APIR-Matrix with a Merkle tree: two servers that do not collude, of which one may lie; nothing
//! kept but the root of the tree, and no assumption for privacy but good random bits.
//!
//! The table is a matrix. Each row holds some consecutive records and behind them the row's *path*
//! in a Merkle tree over the whole table: the siblings on the way from the row's node to the root.
//! The client sends one server a uniformly random bit for each row and the other the same bits,
//! except that the bit of the wanted row is flipped. Each server XORs the rows that its bits
//! select; the two sums differ by the wanted row. From the records in it the client computes the
//! row's node, from this and the path a root, and compares that with the root that both servers
//! announced.
//!
//! ```text
//! row r            record r·C  …  record r·C + C − 1 ‖ sibling next to the row's node ‖ … ‖ sibling below the root
//! leaf i           hash of i and record i; records beyond the table's end are zeros, and are hashed like all others
//! node of row r    the root over its C leaves: C is a power of two
//! root             over the nodes of all rows; a node with no row below it is 32 zero bytes
//! ```
//!
//! **Who learns what.** Each server learns that a query was made, and when. Its bits are uniform
//! and independent of the index, as far as the client's generator of randomness is good: there is
//! no other assumption. **Whoever sees both queries of a lookup knows the row**: two servers that
//! share their logs, one operator behind both, or somebody who listens on both connections if they
//! are not encrypted. The client learns the whole row in which its record lies (the table is not
//! kept secret from clients).
//!
//! **A lie is rejected, whatever the index.** Suppose that one server is honest, so that the root
//! belongs to its table and its answers are as they should be, and let `e` be the difference
//! between the other's answer and the right one. What the client then checks is `row ⊕ e`.
//!
//! - *Only the committed row is accepted.* The root is computed from every byte of a row: each
//!   record is part of a leaf, each sibling one half of what a node is the hash of, and the place
//!   of the row decides the numbers in the leaves and which half that is. If another row at the
//!   same place gave the same root, then somewhere on the way down from it two different inputs
//!   would have the same hash. So with `e ≠ 0` being accepted takes a collision of BLAKE3 (2^128
//!   computations), and `e = 0` is no lie.
//! - *Seeing whether the client accepts tells nothing.* It accepts if `e = 0` and rejects
//!   otherwise, for every index alike; and the server knows whether it lied. A client that checked
//!   the wanted record alone, by its leaf and its path, would accept a row spoilt in other places:
//!   a server could spoil the first record of every row, and learn from the client's reaction
//!   whether the wanted one is the first of its row. This is called selective failure. For the same
//!   reason the bytes that fill the last row up are checked like records.
//!
//! Which of the two lied cannot be known. If both do, and agree with each other, nothing is
//! promised.
//!
//! **What it costs**, for `n` records, in rows of `C = 2^c`: there are `rows = ⌈n/C⌉` of them, of
//! `row_len = C·record_len + 32·⌈log₂ rows⌉` bytes. With 2^20 records of 32 bytes, C = 64:
//!
//! | | bytes | with 2^20 × 32 B | work |
//! |---|---|---|---|
//! | offline, server, once per table | – | – | a hash for each record and each node of the tree |
//! | offline, client, once per epoch | 32 down (the root) | 32 | – |
//! | query, client | ⌈rows/8⌉ up to each server | 2 048 | as many random bytes |
//! | answer, each server | row_len down | 2 496 | one pass over rows · row_len bytes (40.9 MB), shared by a batch |
//! | recover, client | – | – | 2·C − 1 hashes and one for each level above: 141 |
//! | state | the root on the client; the matrix on both servers | 40.9 MB | |
//!
//! [`ApirMatrixParameters`] says how C is chosen.
//!
//! **From paper to function** (Colombo, Nikitin, Corrigan-Gibbs, Wu, Ford: *Authenticated private
//! information retrieval*, USENIX Security 2023; the linear scheme below it is from Chor,
//! Goldreich, Kushilevitz, Sudan: *Private information retrieval*, FOCS 1995):
//!
//! | paper | here |
//! |---|---|
//! | Merkle tree over pairs of index and record, every record with its proof | [`ApirMatrixSetup`]: its [`Setup::precompute`](crate::contract::Setup::precompute) computes the tree, its [`Setup::finish`](crate::contract::Setup::finish) lays the paths out |
//! | digest, that all servers must agree on | the root, the hint of [`Precomputed`](crate::offline::Precomputed) |
//! | Query and Answer of the PIR scheme below it | [`ApirMatrixClient`]'s [`StatelessClient::query`](crate::contract::StatelessClient::query), [`ApirMatrixServer`]'s [`Answerer::answer`](crate::contract::Answerer::answer) |
//! | Reconstruct: refuse unless the proof is right | [`ApirMatrixClient`]'s [`StatelessClient::recover`](crate::contract::StatelessClient::recover) |
//!
//! Different from the published code: that stores a whole path with each record, so a row has
//! `C·(record_len + 32·log₂ n)` bytes. The records of one row share the upper part of their paths,
//! and the lower part follows from the row's own records, which are all there; what remains is one
//! path of `log₂ rows` hashes for each row.

mod client;
mod descriptor;
mod messages;
mod params;
mod server;
#[cfg(test)]
mod tests;
mod tree;

pub use client::{ApirMatrixClient, ApirMatrixPending};
pub use messages::{ApirMatrixAnswer, ApirMatrixQuery};
pub use params::ApirMatrixParameters;
pub use server::{ApirMatrixServer, ApirMatrixSetup};

use crate::SchemeId;
use crate::contract::{Offline, Scheme};
use crate::offline::OfflinePhase;

/// The scheme's types, without a state.
pub struct ApirMatrix;

impl Scheme for ApirMatrix {
    const ID: SchemeId = SchemeId::named("apir-matrix-mt");
    type Parameters = ApirMatrixParameters;
    type Query = ApirMatrixQuery;
    type Answer = ApirMatrixAnswer;

    fn servers(_parameters: &ApirMatrixParameters) -> usize {
        2
    }
}

impl Offline for ApirMatrix {
    /// The root: whoever fetches it must hear the same of both servers.
    fn offline_phase(_parameters: &ApirMatrixParameters) -> OfflinePhase {
        OfflinePhase::Download { len: tree::NODE_LEN as u64 }
    }
}
