//! The disk as the store sees it: folders of named files, in which writes and names last only once
//! they are synced.
//!
//! Parts, pins and single-use hints all stand on [`Folder`] and [`Medium`], and use no other disk,
//! no clock and no sleep. So a test can put a disk of its own underneath. It can stop that disk
//! before any operation, and let any part of the unsynced writes survive. [`Directory`] is the
//! operating system's disk.

#[cfg(test)]
pub(crate) mod simulated;
#[cfg(feature = "disk")]
mod system;

#[cfg(test)]
pub(crate) use system::Attributes;
#[cfg(feature = "disk")]
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
    /// The disk's error.
    fn len(&self) -> io::Result<u64>;

    /// Fills `out` from `offset`.
    ///
    /// # Errors
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the file ends earlier.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// The disk's error. Any part of `bytes` may be written then.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file, or extends it with zeros, to `len` bytes.
    ///
    /// # Errors
    /// The disk's error.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes length and contents durable.
    ///
    /// # Errors
    /// The disk's error. After it, it is unknown what is durable.
    fn sync(&self) -> io::Result<()>;

    /// Distinguishes this file from a copy of it, as far as the system can: equal when the file is
    /// opened again, even after a move or a restart; different for a copy or a restored backup.
    ///
    /// # Errors
    /// The disk's error.
    fn place(&self) -> io::Result<[u8; 32]>;

    /// When the file was last touched; `None` if the system does not say.
    ///
    /// # Errors
    /// The disk's error.
    fn times(&self) -> io::Result<Option<Times>>;

    /// The time by the clock of the machine that writes, in milliseconds since 1970. A file keeps
    /// it to compare it with its [`times`](Self::times).
    fn now(&self) -> u64;
}

/// When a file was last touched, in milliseconds since 1970 by the file system's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The last change of anything about the file. No program can set this.
    pub changed: u64,
    /// The last write of its contents, on a file system that does not keep birth times. A tool that
    /// makes a faithful copy sets this time, and cannot set the other. (Where birth times are kept,
    /// they reveal a copy, and some servers of shared files report this time late.)
    pub written: Option<u64>,
}

/// A folder of files and folders. Names are not paths.
pub trait Folder: Debug + Send + Sync + 'static {
    /// The path of the entry `name`, for messages. An empty name means the folder itself.
    fn path(&self, name: &str) -> PathBuf;

    /// The names of the files in it, in no order.
    ///
    /// # Errors
    /// The disk's error.
    fn names(&self) -> io::Result<Vec<String>>;

    /// The names of the folders in it, in no order.
    ///
    /// # Errors
    /// The disk's error.
    fn folders(&self) -> io::Result<Vec<String>>;

    /// Opens a file; `None` if there is none.
    ///
    /// # Errors
    /// The disk's error; also if it is not a file.
    fn open(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>>;

    /// Opens a file that is only read, perhaps on a disk that this process may not write to; `None`
    /// if there is none.
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

    /// Opens or creates a file and locks it until the last handle is dropped or the process ends;
    /// `None` if another holder has locked it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn lock(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>>;

    /// The same, but waits for `patience` at most while another holder has it locked.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn lock_within(&self, name: &str, patience: Duration) -> io::Result<Option<Arc<dyn Medium>>>;

    /// Renames a file and replaces any file of the new name. After a crash that name leads to the
    /// old file or the new one. Durable after [`sync`](Self::sync).
    ///
    /// # Errors
    /// The disk's error.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file if it is there.
    ///
    /// # Errors
    /// The disk's error.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names of all files durable.
    ///
    /// # Errors
    /// The disk's error.
    fn sync(&self) -> io::Result<()>;

    /// A folder in it; `None` if there is none.
    ///
    /// # Errors
    /// The disk's error.
    fn folder(&self, name: &str) -> io::Result<Option<Arc<dyn Folder>>>;

    /// Opens a folder in it, and creates it, durably, if there is none.
    ///
    /// # Errors
    /// The disk's error.
    fn create_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>>;

    /// Removes an empty folder in it.
    ///
    /// # Errors
    /// The disk's error; also if the folder is not empty.
    fn remove_folder(&self, name: &str) -> io::Result<()>;

    /// Makes this folder accessible to its owner alone. (New folders are created like that, but a
    /// tool that copied it here may have set wider permissions.)
    ///
    /// # Errors
    /// The disk's error.
    fn seclude(&self) -> io::Result<()>;
}
