//! Where a signed epoch is read from when it is sent on.

use privet_core::Result;
use std::path::Path;

/// An epoch of an update log, as its publisher signed it, in memory or in a file.
#[expect(clippy::len_without_is_empty, reason = "a signature alone has bytes")]
pub trait EpochSource: Send + Sync {
    /// How many bytes it has: the same on every call.
    fn len(&self) -> u64;

    /// `len` bytes from `offset` on, which must lie within. May wait for a disk.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if they cannot be read,
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if they are not there any more.
    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>>;

    /// The BLAKE3 digest that all of it had when it was verified.
    fn digest(&self) -> [u8; 32];

    /// Its file, if it lies in one.
    fn file(&self) -> Option<&Path> {
        None
    }
}
