//! What clients fetch of a version of a table, in memory or in a file.

use super::feed::Epochs;
use crate::hint_cache::CachedEntry;
use crate::table::RecordSource;
use bytes::Bytes;
use privet_core::{Error, Result};
use privet_schemes::offline::{HintSource, PublicWords};
use privet_schemes::registry::ErasedServer;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

/// A part that clients fetch.
pub(crate) enum Part {
    Memory(Bytes),
    Computed(PublicWords),
    Cached(CachedEntry),
    Records(Box<dyn RecordSource>),
    /// The table in the memory of the scheme's server.
    Streamed(Arc<dyn ErasedServer>),
    /// Epochs of the update log, read from their place.
    Epochs(Epochs),
}

impl Part {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Part::Epochs(epochs) => epochs.len(),
            Part::Cached(cached) => cached.hint_len(),
            Part::Records(records) => records.len(),
            _ => self.in_memory().len() as u64,
        }
    }

    /// The bytes from `offset`, at most `max_len`; none beyond the end. They are copied: an
    /// ordinary read of a file may wait for a disk, and that must happen here rather than where the
    /// bytes are used.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if a file cannot be read,
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it has changed since it was opened.
    pub(crate) fn copy(&self, offset: u64, max_len: usize) -> Result<Bytes> {
        if let Part::Epochs(epochs) = self {
            return epochs.copy(offset, max_len);
        }
        let offset = offset.min(self.len());
        let len = (self.len() - offset).min(max_len as u64) as usize;
        let mut out = vec![0; len];
        self.read_at(offset, &mut out)?;
        Ok(out.into())
    }

    /// Checks that its file has not changed since it was opened, as far as the system can say
    /// without reading it.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted), with the file's name, if it was written
    /// to or cut short.
    pub(super) fn check_unchanged(&self) -> Result<()> {
        match self {
            Part::Cached(cached) => cached.check_unchanged(),
            Part::Records(records) => records.check_unchanged(),
            _ => Ok(()),
        }
    }

    /// Its file, if it lies in one.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Part::Cached(cached) => Some(cached.file()),
            Part::Records(records) => records.file(),
            _ => None,
        }
    }

    /// Whether it lies in memory that it shares with a version, rather than in a file.
    pub(crate) fn is_in_memory(&self) -> bool {
        match self {
            Part::Memory(_) | Part::Computed(_) | Part::Streamed(_) => true,
            Part::Records(records) => records.file().is_none(),
            Part::Cached(_) | Part::Epochs(_) => false,
        }
    }

    /// All of it, for a part in memory.
    fn in_memory(&self) -> Cow<'_, [u8]> {
        match self {
            Part::Memory(bytes) => Cow::Borrowed(bytes),
            Part::Computed(words) => words.as_bytes(),
            Part::Streamed(server) => Cow::Borrowed(server.streamed().unwrap_or_default()),
            Part::Cached(_) | Part::Records(_) | Part::Epochs(_) => Cow::Borrowed(&[]),
        }
    }

    /// Bytes that it holds in memory of its own.
    pub(super) fn memory(&self) -> u64 {
        match self {
            Part::Memory(_) | Part::Computed(_) => self.len(),
            Part::Records(records) => records.memory(),
            Part::Cached(_) | Part::Streamed(_) | Part::Epochs(_) => 0,
        }
    }

    /// Keeps `words` without a copy, unless this machine's byte order differs from the wire's.
    pub(super) fn computed(words: PublicWords) -> Self {
        if let Cow::Owned(bytes) = words.as_bytes() {
            return Part::Memory(bytes.into());
        }
        Part::Computed(words)
    }
}

/// As the hint from which the next version's hint is made.
impl HintSource for Part {
    fn len(&self) -> u64 {
        Part::len(self)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > self.len()) {
            return Err(Error::corrupted("the hint is shorter than its parameters prescribe"));
        }
        match self {
            Part::Cached(cached) => cached.read_hint(offset, out)?,
            Part::Records(records) => records.read(offset, out)?,
            // The range lies within memory, so `offset` fits.
            _ => out.copy_from_slice(&self.in_memory()[offset as usize..][..out.len()]),
        }
        self.check_unchanged()
    }
}
