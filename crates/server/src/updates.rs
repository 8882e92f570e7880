//! What becomes of a table while it is served: its next versions, and the signed epochs that lead
//! to them.

use privet_core::{Epoch, Error, Result, TableChanges, TableIdentity};
use std::path::Path;
use std::sync::Arc;

/// The update log of a table, as far as the version that is served first.
pub struct UpdateFeed {
    /// The Ed25519 public key by which its epochs are signed.
    pub publisher: [u8; 32],
    /// The oldest version from which clients can be brought up to date.
    pub first_epoch: Epoch,
    /// The epochs after that, up to the version of the [`ServedTable`](crate::ServedTable), each
    /// with its number. All of them are there.
    pub epochs: Vec<Arc<dyn EpochSource>>,
    /// Epochs that the table still has to follow, before it is served at all. Clients of some
    /// schemes have to be told of the commitments to the table after each epoch, and only a server
    /// that knew the version before can say; and whatever of a scheme's parameters was fixed by the
    /// first version stays what it was, as far as it can. So a table with an update log is best
    /// handed over as its snapshot has it, with the rest in here.
    pub next: Option<NextVersion>,
}

/// A table's next version, and what leads to it. Whoever makes one has verified it: that the epochs
/// are signed and follow one another, that these are the records after the last of them.
pub struct NextVersion {
    /// The Ed25519 public key by which its epochs are signed.
    pub publisher: [u8; 32],
    /// The encoded record layout after the last step.
    pub layout: Arc<[u8]>,
    /// Where all records lie, after the last step.
    pub records: Box<dyn crate::RecordSource>,
    /// Their BLAKE3 digest.
    pub records_digest: [u8; 32],
    /// What happened to the table since the version before, in order: one step at least.
    pub steps: Vec<VersionStep>,
    /// Nobody needs the epochs that follow versions before this one any more. [`Epoch(0)`](Epoch):
    /// all that are at hand stay so.
    pub keep_from: Epoch,
}

impl NextVersion {
    /// Which table this is, in which version: `None` if there is no step.
    pub fn identity(&self) -> Option<TableIdentity> {
        self.steps.last().map(|step| step.identity)
    }
}

/// From one version to a later one.
pub struct VersionStep {
    /// The table afterwards.
    pub identity: TableIdentity,
    /// What became of its records.
    pub changes: TableChanges,
    /// The epoch that says so, as its publisher signed it; the version afterwards is the one after
    /// that before then. `None` if there is none at hand, or more than one happened: clients that
    /// have a version before cannot follow then, and start again.
    pub epoch: Option<Arc<dyn EpochSource>>,
}

/// An epoch of an update log, as its publisher signed it, wherever its bytes lie.
#[expect(clippy::len_without_is_empty, reason = "a signature alone has bytes")]
pub trait EpochSource: Send + Sync {
    /// How many bytes it has: the same on every call.
    fn len(&self) -> u64;

    /// `len` bytes from `offset` on, which lie within. May wait for a disk.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if they cannot be read,
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if they are not there any more.
    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>>;

    /// The BLAKE3 digest that all of it had when it was verified.
    fn digest(&self) -> [u8; 32];

    /// The file in which it lies, if it lies in one.
    fn file(&self) -> Option<&Path> {
        None
    }
}

/// Bytes in memory that clients fetch with updates: epochs, or what servers tell of them. Their
/// digests are taken when they are made. Whatever is read of them is held against these, so no
/// damaged byte is read as a good one.
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
    /// Those from `offset` on, if they lie within and all pieces that they lie in are whole.
    fn checked(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(len)?;
        let read = self.bytes.get(start..end)?.to_vec();
        // Looked at after they were read: what is whole now was whole then.
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
                "what clients fetch with updates has another digest in memory than when it was \
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
    /// Where they lie.
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
            // All else is as good as before.
            for piece in (0..4).filter(|piece| *piece != at / PIECE) {
                let offset = piece * PIECE;
                bytes.read(offset as u64, PIECE.min(LEN - offset)).unwrap();
            }
        }
    }
}
