//! How a served table changes: its next versions, and the signed epochs that lead to them.

use crate::ServedTable;
use bytes::Bytes;
use privet_core::{Epoch, Error, Result, TableChanges, TableIdentity, TableShape};
use privet_table::update_log::EpochSource;
use std::sync::Arc;

/// The update log of a table, up to the version that is served first.
pub struct UpdateFeed {
    /// Who signs the epochs.
    pub signing: Signing,
    /// The oldest version from which clients can follow.
    pub first_epoch: Epoch,
    /// The epochs after that, up to the version of the [`ServedTable`], each
    /// with its number, without gaps.
    pub epochs: Vec<Arc<dyn EpochSource>>,
    /// Epochs that the table must still follow before it is served at all. Clients of some schemes
    /// need the commitments to the table after each epoch, and only a server that knew the earlier
    /// version can compute them. Also, parameters that the first version fixed then stay, as far as
    /// possible. So it is best to hand over a table with an update log as its snapshot has it, with
    /// the later epochs in here.
    pub next: Option<NextVersion>,
}

/// Who signs a table's epochs, and how that came about. Clients are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signing {
    /// The Ed25519 public key of the epochs' signatures.
    pub publisher: [u8; 32],
    /// The digest of the key without which no successor is signed, if one was named.
    pub next_key: Option<[u8; 32]>,
    /// The encoded successions that lead to the table; empty if there are none.
    pub lineage: Bytes,
}

impl From<[u8; 32]> for Signing {
    /// A publisher without a next key, of a table that continues no other.
    fn from(publisher: [u8; 32]) -> Self {
        Self { publisher, next_key: None, lineage: Bytes::new() }
    }
}

/// What takes the place of a table's current version.
pub enum Next {
    /// The table's next version.
    Version(NextVersion),
    /// Another table of the same name. Whoever made it has checked that it continues the one that
    /// is served.
    Successor(Box<ServedTable>),
}

impl Next {
    /// The shape that the table will have.
    pub(crate) fn shape(&self) -> Option<TableShape> {
        let of_version = |next: &NextVersion| next.identity().map(|identity| identity.shape);
        match self {
            Next::Version(next) => of_version(next),
            Next::Successor(table) => {
                let next = table.updates.as_ref().and_then(|updates| updates.next.as_ref());
                Some(next.and_then(of_version).unwrap_or(table.identity.shape))
            }
        }
    }
}

impl From<NextVersion> for Next {
    fn from(next: NextVersion) -> Self {
        Self::Version(next)
    }
}

/// A table's next version, and the steps to it. Its maker has verified that the epochs are signed
/// and follow one another, and that these are the records after the last of them.
pub struct NextVersion {
    /// Who signs the epochs from this version on.
    pub signing: Signing,
    /// The encoded record layout after the last step.
    pub layout: Arc<[u8]>,
    /// The source of all records after the last step.
    pub records: Box<dyn crate::RecordSource>,
    /// Their BLAKE3 digest.
    pub records_digest: [u8; 32],
    /// The table's changes since the earlier version, in order: at least one step.
    pub steps: Vec<VersionStep>,
    /// Epochs that follow versions before this one are no longer needed. [`Epoch(0)`](Epoch): all
    /// epochs stay.
    pub keep_from: Epoch,
}

impl NextVersion {
    /// The identity of this version: `None` if there is no step.
    pub fn identity(&self) -> Option<TableIdentity> {
        self.steps.last().map(|step| step.identity)
    }
}

/// From one version to a later one.
pub struct VersionStep {
    /// The table afterwards.
    pub identity: TableIdentity,
    /// The changes of its records.
    pub changes: TableChanges,
    /// The epoch of this step, as its publisher signed it; its number is that of the version before
    /// plus one. `None` if no epoch is available, or the step is more than one epoch: then clients
    /// that have an earlier version cannot follow, and start again.
    pub epoch: Option<Arc<dyn EpochSource>>,
}

/// Bytes in memory that clients fetch with updates: epochs, or commitments. Their digests are taken
/// when they are made. Every read is compared with the digests, so a damaged byte is never
/// returned.
pub struct CheckedBytes {
    bytes: Vec<u8>,
    digest: [u8; 32],
    /// The BLAKE3 digest of each [`PIECE`] bytes, so that a short read need not hash everything.
    pieces: Vec<[u8; 32]>,
}

/// Bytes of [`CheckedBytes`] that have a digest of their own.
const PIECE: usize = 1 << 16;

impl From<Vec<u8>> for CheckedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        let digest = |bytes: &[u8]| *blake3::hash(bytes).as_bytes();
        Self { digest: digest(&bytes), pieces: bytes.chunks(PIECE).map(digest).collect(), bytes }
    }
}

impl CheckedBytes {
    /// The bytes from `offset` on, if they lie within and all pieces that they touch are whole.
    fn checked(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(len)?;
        let read = self.bytes.get(start..end)?.to_vec();
        // Check after reading: what is whole now was whole then.
        let touched = start / PIECE..end.div_ceil(PIECE);
        let pieces = self.bytes.chunks(PIECE).zip(&self.pieces);
        let mut pieces = pieces.skip(touched.start).take(touched.len());
        pieces.all(|(piece, digest)| blake3::hash(piece) == *digest).then_some(read)
    }
}

impl EpochSource for CheckedBytes {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.checked(offset, len).ok_or_else(|| {
            Error::corrupted(
                "data that clients fetch with updates has another digest in memory than when it was \
                 made",
            )
        })
    }

    fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

#[cfg(test)]
impl CheckedBytes {
    /// The address of the bytes.
    pub(crate) fn address(&self) -> usize {
        self.bytes.as_ptr().addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_core::Blame;

    const LEN: usize = 3 * PIECE + 5;

    fn some() -> CheckedBytes {
        CheckedBytes::from((0..LEN).map(|at| (at % 251) as u8).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_read_of_whole_bytes_is_what_they_are() {
        let bytes = some();
        for (offset, len) in [(0, LEN), (0, 0), (LEN, 0), (PIECE - 1, 2), (PIECE, PIECE), (7, 9)] {
            let read = bytes.read(offset as u64, len).unwrap();
            assert_eq!(read, bytes.bytes[offset..][..len], "{len} at {offset}");
        }
        assert_eq!(bytes.digest(), *blake3::hash(&bytes.bytes).as_bytes());
        for (offset, len) in [(LEN as u64, 1), (0, LEN + 1), (u64::MAX, 1), (1, usize::MAX)] {
            assert!(bytes.read(offset, len).is_err(), "{len} at {offset}");
        }
        assert!(CheckedBytes::from(Vec::new()).read(0, 0).unwrap().is_empty());
    }

    #[test]
    fn no_flipped_bit_is_read_as_a_good_one() {
        for at in [0, 1, PIECE - 1, PIECE, 2 * PIECE + 77, LEN - 1] {
            let mut bytes = some();
            bytes.bytes[at] ^= 0x10;
            assert_ne!(bytes.digest(), *blake3::hash(&bytes.bytes).as_bytes());
            for (offset, len) in [(0, LEN), (at, 1), (at / PIECE * PIECE, 1)] {
                let refused = bytes.read(offset as u64, len).unwrap_err();
                assert_eq!(refused.blame(), Blame::Corrupted, "{len} at {offset}");
            }
            // All other pieces are still whole.
            for piece in (0..4).filter(|piece| *piece != at / PIECE) {
                let offset = piece * PIECE;
                bytes.read(offset as u64, PIECE.min(LEN - offset)).unwrap();
            }
        }
    }
}
