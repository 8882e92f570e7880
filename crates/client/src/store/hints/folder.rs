//! The file system as single-use hints see it: a folder of named files, in which writes and names reach the disk only when they are synced.
//!
//! Everything the hints do to a disk goes through these two traits, so that a test can put a disk of its own underneath, stop it before any operation, and let
//! any part of what was not synced survive.

use std::fmt::Debug;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::store::files::is_still_at;

/// An open file. Contents written are visible at once and durable after [`sync`](Self::sync).
pub(crate) trait Medium: Debug + Send + Sync + 'static {
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Fills `out` from `offset`; [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the file ends earlier.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file, or extends it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes length and contents durable.
    fn sync(&self) -> io::Result<()>;

    /// What tells this file from a copy of it, as far as the system says: equal when the file is opened again, even after a move or a restart, different for a
    /// copy or for a restored backup.
    fn place(&self) -> io::Result<[u8; 32]>;

    /// When anything about the file last changed, in milliseconds since 1970 by the file system's clock, which nobody can set; `None` if the system does not say.
    fn changed(&self) -> io::Result<Option<u64>>;
}

/// A folder of files.
pub(crate) trait Folder: Debug + Send + Sync + 'static {
    /// The path of a file in it, for messages.
    fn path(&self, name: &str) -> PathBuf;

    /// The names of the files in it, in no order.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Opens a file; `None` if there is none.
    fn open(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>>;

    /// Opens a file, and creates it if there is none.
    fn create(&self, name: &str) -> io::Result<Arc<dyn Medium>>;

    /// Opens or creates a file and locks it until the last handle is dropped; `None` if somebody else has it locked.
    fn lock(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>>;

    /// Gives a file another name, in place of what had that name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file if it is there.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all names durable.
    fn sync(&self) -> io::Result<()>;
}

/// A folder of the real file system, for its owner alone.
#[derive(Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// Opens the directory `path`, and creates it if need be.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path)?;
        // Whatever copied it here may have been more liberal.
        #[cfg(unix)]
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        Ok(Self(path.to_owned()))
    }

    /// The directory `path`, which exists.
    pub(crate) fn existing(path: &Path) -> Self {
        Self(path.to_owned())
    }

    fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options
    }

    fn open_file(&self, name: &str, create: bool) -> io::Result<File> {
        let file = Self::options().create(create).open(self.0.join(name))?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a file; move it away"));
        }
        Ok(file)
    }
}

impl Folder for Directory {
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let names = std::fs::read_dir(&self.0)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    }

    fn open(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>> {
        match self.open_file(name, false) {
            Ok(file) => Ok(Some(Arc::new(DiskFile(file)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Medium>> {
        Ok(Arc::new(DiskFile(self.open_file(name, true)?)))
    }

    fn lock(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>> {
        loop {
            let file = self.open_file(name, true)?;
            match file.try_lock() {
                Ok(()) if is_still_at(&file, &self.0.join(name)) => {
                    return Ok(Some(Arc::new(DiskFile(file))));
                }
                // Whoever had it removed it in between: there is another one now.
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => return Ok(None),
                Err(std::fs::TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.0.join(from), self.0.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match std::fs::remove_file(self.0.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        #[cfg(unix)]
        File::open(&self.0)?.sync_all()?;
        Ok(())
    }
}

#[derive(Debug)]
struct DiskFile(File);

impl Medium for DiskFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_exact_at(&self.0, out, offset);
        #[cfg(windows)]
        return super::super::files::windows::read_exact_at(&self.0, out, offset);
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::write_all_at(&self.0, bytes, offset);
        #[cfg(windows)]
        return super::super::files::windows::write_all_at(&self.0, bytes, offset);
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    /// The file's number and birth, and the machine's name for itself. Not the device's number, which changes from one start of the machine to the next.
    fn place(&self) -> io::Result<[u8; 32]> {
        let metadata = self.0.metadata()?;
        let mut hasher =
            blake3::Hasher::new_derive_key("privet 2026-11 where single-use hints are kept");
        #[cfg(unix)]
        hasher.update(&std::os::unix::fs::MetadataExt::ino(&metadata).to_le_bytes());
        let born = match metadata.created() {
            Ok(born) => {
                born.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos())
            }
            Err(error) if error.kind() == io::ErrorKind::Unsupported => 0,
            Err(error) => return Err(error),
        };
        hasher.update(&born.to_le_bytes());
        match std::fs::read("/etc/machine-id") {
            Ok(machine) => hasher.update(&machine),
            // What cannot be read today for another reason would make the hints look like a copy.
            Err(error) if error.kind() == io::ErrorKind::NotFound => &mut hasher,
            Err(error) => return Err(error),
        };
        Ok(*hasher.finalize().as_bytes())
    }

    fn changed(&self) -> io::Result<Option<u64>> {
        #[cfg(unix)]
        let seconds =
            u64::try_from(std::os::unix::fs::MetadataExt::ctime(&self.0.metadata()?)).ok();
        #[cfg(not(unix))]
        let seconds: Option<u64> = None;
        Ok(seconds.map(|seconds| seconds.saturating_mul(1000)))
    }
}
