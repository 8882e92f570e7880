//! What stands in a log: epochs, rotations among them, and a succession at the end of some.

use super::entry::Entry;
use super::{EpochHash, Succession};
use privet_core::{Epoch, Result, TableDigest};

/// One item of a log, with a valid form.
pub(super) enum Recorded {
    Epoch(Entry),
    Succession(Succession),
}

impl Recorded {
    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        match Succession::is_claimed_by(bytes) {
            true => Succession::decode(bytes).map(Self::Succession),
            false => Entry::decode(bytes).map(Self::Epoch),
        }
    }

    pub(super) fn number(&self) -> Epoch {
        match self {
            Self::Epoch(entry) => entry.epoch,
            Self::Succession(record) => record.number(),
        }
    }

    pub(super) fn hash(&self) -> EpochHash {
        match self {
            Self::Epoch(entry) => entry.hash(),
            Self::Succession(record) => record.hash(),
        }
    }

    /// The hash of the item before.
    pub(super) fn previous(&self) -> EpochHash {
        match self {
            Self::Epoch(entry) => entry.previous,
            Self::Succession(record) => record.previous(),
        }
    }

    /// The table's digest before.
    pub(super) fn digest_before(&self) -> TableDigest {
        match self {
            Self::Epoch(entry) => entry.digest_before,
            Self::Succession(record) => record.digest_before(),
        }
    }
}
