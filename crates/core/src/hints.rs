//! Secret single-use hints over partitions of a table: the common part of the schemes with
//! sublinear servers.
//!
//! A table is cut into *partitions* of equal size. A *hint* stands for one random record in each of
//! some partitions, and its *parity* is the XOR of those records. A client has a hint that contains
//! the wanted record. It asks for the XOR of the hint's other records, in a form that hides which
//! partition is missing. The difference from the parity is the record. The hint is then used up,
//! and another hint that also contains the record takes its place. Dummy subsets and Piano differ
//! in what a hint contains, how the missing partition is hidden and where the next hint comes from.
//! SinglePass and TAPIR have permutations instead of subsets; they share only the contract, the
//! journal and the succession of generations. Everything else that dummy subsets and Piano share is
//! here:
//!
//! | module | what it holds |
//! |---|---|
//! | [`partitions`] | [`Partitions`]: the cut, and where a record lies in it |
//! | [`partition_stream`] | [`PartitionStream`]: the streamed table, a group of partitions at a time |
//! | [`table`] | [`HintTable`]: the live hints; finds those that contain a record, and replaces one by another |
//! | `search` | candidates among marked bits, in a fixed number of steps |
//! | [`ledger`] | [`Ledger`]: open reservations, which waits for which, and the records that they gave |
//! | [`change`] | [`StateChange`]: state changes as they stand in a journal |
//! | [`offsets`] | rows of small numbers, packed into bytes |
//!
//! The pseudorandom function behind hints is in [`privet_kernels::subset_hints`].

pub mod change;
pub mod ledger;
pub mod offsets;
pub mod partition_stream;
pub mod partitions;
mod search;
pub mod table;

use crate::Error;

pub use change::{Exchange, StateChange};
pub use ledger::Ledger;
pub use partition_stream::PartitionStream;
pub use partitions::Partitions;
pub use table::{Found, HintForm, HintTable, LiveHint};

/// A change in the journal that does not fit the state of the hints.
pub fn impossible(what: &str) -> Error {
    Error::corrupted(format!("the journal of hints does not fit the hints: {what}"))
}

/// XORs bytes of a record onto others, up to the shorter length. It uses numbers of 128 bits and is
/// inlined, because most records are short: a call, and the choice of the longest vectors that fit,
/// would take longer than the work.
#[inline]
pub fn xor(into: &mut [u8], bytes: &[u8]) {
    let len = into.len().min(bytes.len());
    let (pieces, rest) = into[..len].as_chunks_mut();
    let (other_pieces, other_rest) = bytes[..len].as_chunks();
    for (piece, other) in pieces.iter_mut().zip(other_pieces) {
        *piece = (u128::from_ne_bytes(*piece) ^ u128::from_ne_bytes(*other)).to_ne_bytes();
    }
    rest.iter_mut().zip(other_rest).for_each(|(into, byte)| *into ^= byte);
}

#[cfg(test)]
mod tests {
    use super::xor;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_are_xored_as_far_as_both_reach(
            mut into in prop::collection::vec(any::<u8>(), 0..70),
            bytes in prop::collection::vec(any::<u8>(), 0..70),
        ) {
            let mut expected = into.clone();
            expected.iter_mut().zip(&bytes).for_each(|(into, byte)| *into ^= byte);
            xor(&mut into, &bytes);
            prop_assert_eq!(into, expected);
        }
    }
}
