//! What becomes of a table while it is served: its next versions, and the signed epochs that lead to them.

use privet_core::table::Replacement;
use privet_core::{Epoch, Result, TableIdentity};
use std::path::Path;
use std::sync::Arc;

/// The update log of a table, as far as the version that is served first.
pub struct UpdateFeed {
    /// The Ed25519 public key by which its epochs are signed.
    pub publisher: [u8; 32],
    /// The oldest version from which clients can be brought up to date.
    pub first_epoch: Epoch,
    /// The epochs after that, up to the version of the [`ServedTable`](crate::ServedTable), each with its number. All of them are there.
    pub epochs: Vec<Arc<dyn EpochSource>>,
    /// Epochs that the table still has to follow, before it is served at all. Clients of some schemes have to be told of the commitments to the table after each epoch, and
    /// only a server that knew the version before can say; and whatever of a scheme's parameters was fixed by the first version stays what it was, as far as it can. So a table with an update log is
    /// best handed over as its snapshot has it, with the rest in here.
    pub next: Option<NextVersion>,
}

/// A table's next version, and what leads to it. Whoever makes one has verified it: that the epochs are signed and follow one another, that these are the records after the last of them.
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
    /// Nobody needs the epochs that follow versions before this one any more. [`Epoch(0)`](Epoch): all that are at hand stay so.
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
    /// The records that are another than before, or new.
    pub changes: Vec<Replacement>,
    /// The epoch that says so, as its publisher signed it; the version afterwards is the one after that before then. `None` if there is none at hand, or more than one happened: clients that
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

impl EpochSource for Vec<u8> {
    fn len(&self) -> u64 {
        Vec::len(self) as u64
    }

    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let start = offset as usize;
        Ok(self[start..start + len].to_vec())
    }

    fn digest(&self) -> [u8; 32] {
        *blake3::hash(self).as_bytes()
    }
}
