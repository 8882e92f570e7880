//! The disk as the store sees it: folders of named files, in which writes and names last only once
//! they are synced.
//!
//! Parts, pins and single-use hints all stand on [`Folder`] and [`Medium`], and know of no other
//! disk, no clock and no waiting. So a test can put a disk of its own underneath, stop it before
//! any operation, and let any part of what was not synced survive. [`Directory`] is the one that
//! the operating system has.

#[cfg(test)]
pub(crate) mod simulated;
mod system;

#[cfg(test)]
pub(crate) use system::Attributes;
pub use system::Directory;

use std::fmt::Debug;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// An open file. Contents written are visible at once and durable after [`sync`](Self::sync).
#[expect(clippy::len_without_is_empty, reason = "a file that is asked for its length is on a disk")]
pub trait Medium: Debug + Send + Sync + 'static {
    /// Length in bytes.
    ///
    /// # Errors
    /// What the disk says.
    fn len(&self) -> io::Result<u64>;

    /// Fills `out` from `offset`.
    ///
    /// # Errors
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the file ends earlier.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// What the disk says. Any part of it may be written then.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file, or extends it with zeros, to `len` bytes.
    ///
    /// # Errors
    /// What the disk says.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes length and contents durable.
    ///
    /// # Errors
    /// What the disk says. Nothing is known then of what is durable.
    fn sync(&self) -> io::Result<()>;

    /// What tells this file from a copy of it, as far as the system says: equal when the file is
    /// opened again, even after a move or a restart, different for a copy or for a restored backup.
    ///
    /// # Errors
    /// What the disk says.
    fn place(&self) -> io::Result<[u8; 32]>;

    /// When the file was last touched; `None` if the system does not say.
    ///
    /// # Errors
    /// What the disk says.
    fn times(&self) -> io::Result<Option<Times>>;

    /// The time by the clock of the machine that writes, in milliseconds since 1970: what is kept
    /// in a file to be compared with its [`times`](Self::times).
    fn now(&self) -> u64;
}

/// When a file was last touched, in milliseconds since 1970 by the file system's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When anything about it last changed. Nobody can set this.
    pub changed: u64,
    /// When its contents were last written, on a file system that does not keep births: whatever
    /// makes a faithful copy sets this time, and cannot set the other. (Where births are kept,
    /// they tell a copy, and some servers of shared files are late with this time.)
    pub written: Option<u64>,
}

/// A folder of files, and of folders. Names hold no path.
pub trait Folder: Debug + Send + Sync + 'static {
    /// The path of what is called `name` in it, for messages; of the folder itself if that is
    /// empty.
    fn path(&self, name: &str) -> PathBuf;

    /// The names of the files in it, in no order.
    ///
    /// # Errors
    /// What the disk says.
    fn names(&self) -> io::Result<Vec<String>>;

    /// The names of the folders in it, in no order.
    ///
    /// # Errors
    /// What the disk says.
    fn folders(&self) -> io::Result<Vec<String>>;

    /// Opens a file; `None` if there is none.
    ///
    /// # Errors
    /// What the disk says; also if it is no file.
    fn open(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>>;

    /// Opens a file that is only read, on a disk that nobody may write to as well; `None` if there
    /// is none.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn open_to_read(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>>;

    /// Opens a file, and creates it if there is none. Its name is durable after
    /// [`sync`](Self::sync).
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn create(&self, name: &str) -> io::Result<Arc<dyn Medium>>;

    /// Opens or creates a file and locks it until the last handle is dropped, or the process is no
    /// more; `None` if somebody else has it locked.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn lock(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>>;

    /// The same, and waits for `patience` at most if somebody else has it locked.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn lock_within(&self, name: &str, patience: Duration) -> io::Result<Option<Arc<dyn Medium>>>;

    /// Gives a file another name, in place of what had that name: after a crash either has it.
    /// Durable after [`sync`](Self::sync).
    ///
    /// # Errors
    /// What the disk says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file if it is there.
    ///
    /// # Errors
    /// What the disk says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names of all files durable.
    ///
    /// # Errors
    /// What the disk says.
    fn sync(&self) -> io::Result<()>;

    /// A folder in it; `None` if there is none.
    ///
    /// # Errors
    /// What the disk says.
    fn folder(&self, name: &str) -> io::Result<Option<Arc<dyn Folder>>>;

    /// Opens a folder in it, and creates it, durably, if there is none.
    ///
    /// # Errors
    /// What the disk says.
    fn create_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>>;

    /// Removes a folder in it that holds nothing any more.
    ///
    /// # Errors
    /// What the disk says; also if it holds anything.
    fn remove_folder(&self, name: &str) -> io::Result<()>;

    /// Lets nobody but its owner into this folder. (That is how one is created; whatever copied it
    /// here may have been more liberal.)
    ///
    /// # Errors
    /// What the disk says.
    fn seclude(&self) -> io::Result<()>;
}
