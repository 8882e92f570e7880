//! What clients fetch of a version of a table, wherever it lies.

use super::feed::Epochs;
use crate::hint_cache::CachedEntry;
use crate::table::RecordSource;
use bytes::Bytes;
use privet_core::{Error, Result};
use privet_schemes::offline::{HintSource, PublicWords};
use privet_schemes::registry::ErasedServer;
use std::borrow::Cow;
use std::sync::Arc;

/// A part that clients fetch.
pub(crate) enum Part {
    Memory(Bytes),
    Computed(PublicWords),
    Cached(CachedEntry),
    Records(Box<dyn RecordSource>),
    /// The table as the scheme's server holds it, which lends it.
    Streamed(Arc<dyn ErasedServer>),
    /// Epochs of the update log, read where they lie.
    Epochs(Epochs),
}

impl Part {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Part::Epochs(epochs) => epochs.len(),
            _ => self.bytes().len() as u64,
        }
    }

    /// The bytes from `offset`, at most `max_len`; none beyond the end. Copied, because reading a mapped part may wait for a disk, and that must happen here rather
    /// than wherever the bytes are used.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if a file cannot be read.
    pub(crate) fn copy(&self, offset: u64, max_len: usize) -> Result<Bytes> {
        if let Part::Epochs(epochs) = self {
            return epochs.copy(offset, max_len);
        }
        let bytes = self.bytes();
        let start = usize::try_from(offset).map_or(bytes.len(), |offset| offset.min(bytes.len()));
        let end = start.saturating_add(max_len).min(bytes.len());
        Ok(Bytes::copy_from_slice(&bytes[start..end]))
    }

    /// Says that a reader has come to its end.
    pub(crate) fn release(&self) {
        if let Part::Records(records) = self {
            records.release();
        }
    }

    /// All of it, of a part that is not read piece by piece.
    pub(super) fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Part::Memory(bytes) => Cow::Borrowed(bytes),
            Part::Computed(words) => words.as_bytes(),
            Part::Cached(cached) => Cow::Borrowed(cached.hint()),
            Part::Records(records) => Cow::Borrowed(records.bytes()),
            Part::Streamed(server) => Cow::Borrowed(server.streamed().unwrap_or_default()),
            Part::Epochs(_) => Cow::Borrowed(&[]),
        }
    }

    /// Bytes that it holds in memory of its own, rather than in a file.
    pub(super) fn memory(&self) -> u64 {
        match self {
            Part::Memory(_) | Part::Computed(_) => self.len(),
            Part::Cached(_) | Part::Records(_) | Part::Streamed(_) | Part::Epochs(_) => 0,
        }
    }

    /// Keeps `words` without a copy, unless this machine stores words in another order than they are sent in.
    pub(super) fn computed(words: PublicWords) -> Self {
        if let Cow::Owned(bytes) = words.as_bytes() {
            return Part::Memory(bytes.into());
        }
        Part::Computed(words)
    }
}

/// A hint from which that of the next version is made.
impl HintSource for Part {
    fn len(&self) -> u64 {
        Part::len(self)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let bytes = self.bytes();
        let found = usize::try_from(offset)
            .ok()
            .and_then(|start| bytes.get(start..start.checked_add(out.len())?))
            .ok_or_else(|| Error::corrupted("the hint is shorter than its parameters prescribe"))?;
        out.copy_from_slice(found);
        Ok(())
    }
}
