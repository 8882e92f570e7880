//! What stands in a log: epochs, rotations among them, and a succession at the end of some.

use super::Succession;
use super::entry::Entry;
use privet_core::Result;

/// One item of a log, with a valid form.
pub(super) enum Recorded<'a> {
    Epoch(Entry<'a>),
    Succession(Succession),
}

impl<'a> Recorded<'a> {
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self> {
        match Succession::is_claimed_by(bytes) {
            true => Succession::decode(bytes).map(Self::Succession),
            false => Entry::decode(bytes).map(Self::Epoch),
        }
    }
}

#[cfg(feature = "files")]
impl Recorded<'_> {
    pub(super) fn number(&self) -> privet_core::Epoch {
        match self {
            Self::Epoch(entry) => entry.epoch,
            Self::Succession(record) => record.number(),
        }
    }

    pub(super) fn hash(&self) -> super::EpochHash {
        match self {
            Self::Epoch(entry) => entry.hash(),
            Self::Succession(record) => record.hash(),
        }
    }

    /// The hash of the item before.
    pub(super) fn previous(&self) -> super::EpochHash {
        match self {
            Self::Epoch(entry) => entry.previous,
            Self::Succession(record) => record.previous(),
        }
    }

    /// The table's digest before.
    pub(super) fn digest_before(&self) -> privet_core::TableDigest {
        match self {
            Self::Epoch(entry) => entry.digest_before,
            Self::Succession(record) => record.digest_before(),
        }
    }
}
