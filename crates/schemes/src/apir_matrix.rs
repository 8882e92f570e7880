//! APIR-Matrix with a Merkle tree. There are two servers, which do not collude; one of them may
//! lie. The client keeps only the root of the tree. Privacy rests on no assumption except good
//! random bits.
//!
//! The table is a matrix. Each row holds some consecutive records. After them comes the row's
//! *path* in a Merkle tree over the whole table: the siblings on the way from the row's node to the
//! root. The client sends one server a uniformly random bit for each row and the other the same
//! bits, except that the bit of the wanted row is flipped. Each server XORs the rows that its bits
//! select; the two sums differ by the wanted row. The client computes the row's node from its
//! records, and a root from this node and the path. It compares this root with the one that both
//! servers announced.
//!
//! ```text
//! row r            record r·C  …  record r·C + C − 1 ‖ sibling next to the row's node ‖ … ‖ sibling below the root
//! leaf i           hash of i and record i; records beyond the table's end are zeros, and are hashed like all others
//! node of row r    the root over its C leaves: C is a power of two
//! root             over the nodes of all rows; a node with no row below it is 32 zero bytes
//! ```
//!
//! **Who learns what.** Each server learns that a query was made, and when. Its bits are uniform
//! and independent of the index, if the client's random generator is good: there is no other
//! assumption. **An attacker who sees both queries of a lookup knows the row**: two servers that
//! share their logs, one operator of both servers, or an eavesdropper on both connections if they
//! are not encrypted. The client learns the whole row in which its record lies (the table is not
//! kept secret from clients).
//!
//! **A lie is rejected, whatever the index.** Suppose that one server is honest: the root belongs
//! to its table, and its answers are right. Let `e` be the difference between the other server's
//! answer and the right one. Then the client checks `row ⊕ e`.
//!
//! - *Only the committed row is accepted.* The root is computed from every byte of a row: each
//!   record is part of a leaf, and each sibling is one half of a node's input. The row's place
//!   decides the numbers in the leaves, and which half a sibling is. If another row at the same
//!   place gave the same root, then two different inputs would have the same hash somewhere below
//!   the root. So an answer with `e ≠ 0` is accepted only with a collision of BLAKE3 (2^128
//!   computations), and `e = 0` is no lie.
//! - *Seeing whether the client accepts reveals nothing.* It accepts if `e = 0` and rejects
//!   otherwise, for every index alike; and the server knows whether it lied. A client that checked
//!   only the wanted record, by its leaf and its path, would accept a row with errors in other
//!   places. A server could then alter the first record of every row. The client's reaction would
//!   show whether the wanted record is the first of its row. This attack is called selective
//!   failure. For the same reason the client checks the padding of the last row like records.
//!
//! The client cannot know which of the two lied. Nothing is promised if both lie and collude.
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
//! Different from the published code: that code stores a whole path with each record, so a row has
//! `C·(record_len + 32·log₂ n)` bytes. But the records of one row share the upper part of their
//! paths, and the lower part follows from the row's own records. So one path of `log₂ rows` hashes
//! is enough for each row.

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
    /// The root: the client must get the same one from both servers.
    fn offline_phase(_parameters: &ApirMatrixParameters) -> OfflinePhase {
        OfflinePhase::Download { len: tree::NODE_LEN as u64 }
    }
}
