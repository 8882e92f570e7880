//! The file system as single-use hints see it: a folder of named files, in which writes and names reach the disk only when they are synced.
//!
//! Everything the hints do to a disk goes through these two traits, so that a test can put a disk of its own underneath, stop it before any operation, and let
//! any part of what was not synced survive.

use std::fmt::Debug;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

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

    /// What tells this file from a copy of it, as far as the system says: equal when the file is
    /// opened again, even after a move or a restart, different for a copy or for a restored backup.
    fn place(&self) -> io::Result<[u8; 32]>;

    /// When the file was last touched; `None` if the system does not say.
    fn times(&self) -> io::Result<Option<Times>>;
}

/// When a file was last touched, in milliseconds since 1970 by the file system's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// When anything about it last changed. Nobody can set this.
    pub(crate) changed: u64,
    /// When its contents were last written, on a file system that does not keep births: whatever
    /// makes a faithful copy sets this time, and cannot set the other. (Where births are kept,
    /// they tell a copy, and some servers of shared files are late with this time.)
    pub(crate) written: Option<u64>,
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
pub(crate) struct Directory {
    path: PathBuf,
    /// As on a file system that does not keep the births of files.
    #[cfg(test)]
    hides_births: bool,
}

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
        Ok(Self::existing(path))
    }

    /// The directory `path`, which exists.
    pub(crate) fn existing(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            #[cfg(test)]
            hides_births: false,
        }
    }

    #[cfg(test)]
    pub(crate) fn hiding_births(self) -> Self {
        Self { hides_births: true, ..self }
    }

    fn disk_file(&self, file: File) -> Arc<DiskFile> {
        Arc::new(DiskFile {
            file,
            #[cfg(test)]
            hides_births: self.hides_births,
        })
    }

    fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options
    }

    fn open_file(&self, name: &str, create: bool) -> io::Result<File> {
        let file = Self::options().create(create).open(self.path.join(name))?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a file; move it away"));
        }
        Ok(file)
    }
}

impl Folder for Directory {
    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let names = std::fs::read_dir(&self.path)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    }

    fn open(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>> {
        match self.open_file(name, false) {
            Ok(file) => Ok(Some(self.disk_file(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Medium>> {
        Ok(self.disk_file(self.open_file(name, true)?))
    }

    fn lock(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>> {
        loop {
            let file = self.open_file(name, true)?;
            match file.try_lock() {
                Ok(()) if is_still_at(&file, &self.path.join(name)) => {
                    return Ok(Some(self.disk_file(file)));
                }
                // Whoever had it removed it in between: there is another one now.
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => return Ok(None),
                Err(std::fs::TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match std::fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        #[cfg(unix)]
        File::open(&self.path)?.sync_all()?;
        Ok(())
    }
}

#[derive(Debug)]
struct DiskFile {
    file: File,
    #[cfg(test)]
    hides_births: bool,
}

impl DiskFile {
    /// In nanoseconds since 1970, if the file system keeps it.
    fn born(&self, metadata: &Metadata) -> io::Result<Option<u128>> {
        #[cfg(test)]
        if self.hides_births {
            return Ok(None);
        }
        match metadata.created() {
            Ok(born) => Ok(born.duration_since(UNIX_EPOCH).ok().map(|since| since.as_nanos())),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn attributes(&self) -> io::Result<Attributes> {
        let metadata = self.file.metadata()?;
        let machine = match std::fs::read("/etc/machine-id") {
            Ok(machine) => Some(machine),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            // What cannot be read today for another reason would make the hints look like a copy.
            Err(error) => return Err(error),
        };
        Ok(Attributes {
            #[cfg(unix)]
            inode: Some(std::os::unix::fs::MetadataExt::ino(&metadata)),
            #[cfg(not(unix))]
            inode: None,
            born: self.born(&metadata)?,
            machine,
            snapshot: snapshot_of(&self.file)?,
        })
    }
}

/// What the system says of a file, as far as it stays the same when the machine starts again. (The
/// number of its device does not.)
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes {
    /// The file's number.
    pub(crate) inode: Option<u64>,
    /// When it was created, in nanoseconds since 1970.
    pub(crate) born: Option<u128>,
    /// The machine's name for itself.
    pub(crate) machine: Option<Vec<u8>>,
    /// Which snapshot it lies in, on a file system where snapshots keep numbers and births.
    pub(crate) snapshot: Option<u64>,
}

impl Attributes {
    /// See [`Medium::place`].
    pub(crate) fn place(&self) -> [u8; 32] {
        let Self { inode, born, machine, snapshot } = self;
        let mut hasher =
            blake3::Hasher::new_derive_key("privet 2026-11 where single-use hints are kept");
        if let Some(inode) = inode {
            hasher.update(&inode.to_le_bytes());
        }
        hasher.update(&born.unwrap_or(0).to_le_bytes());
        if let Some(machine) = machine {
            hasher.update(machine);
        }
        if let Some(snapshot) = snapshot {
            hasher.update(b"snapshot").update(&snapshot.to_le_bytes());
        }
        *hasher.finalize().as_bytes()
    }
}

/// Names the snapshot that a file lies in, if its file system is one that makes snapshots file by
/// file. There every container that is started from an image has its own. Of other file systems
/// this name may change when the machine starts again, so it is not asked for.
#[cfg(target_os = "linux")]
fn snapshot_of(file: &File) -> io::Result<Option<u64>> {
    const BTRFS: u64 = 0x9123_683e;
    const ZFS: u64 = 0x2fc1_2fc1;
    let kind = rustix::fs::fstatfs(file)?.f_type as u64 & 0xffff_ffff;
    Ok(match kind {
        BTRFS | ZFS => Some(rustix::fs::fstatvfs(file)?.f_fsid),
        _ => None,
    })
}

#[cfg(not(target_os = "linux"))]
fn snapshot_of(_: &File) -> io::Result<Option<u64>> {
    Ok(None)
}

impl Medium for DiskFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_exact_at(&self.file, out, offset);
        #[cfg(windows)]
        return super::super::files::windows::read_exact_at(&self.file, out, offset);
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, offset);
        #[cfg(windows)]
        return super::super::files::windows::write_all_at(&self.file, bytes, offset);
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn place(&self) -> io::Result<[u8; 32]> {
        Ok(self.attributes()?.place())
    }

    #[cfg(unix)]
    fn times(&self) -> io::Result<Option<Times>> {
        use std::os::unix::fs::MetadataExt;
        let metadata = self.file.metadata()?;
        let milliseconds = |seconds: i64, nanoseconds: i64| {
            seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000).max(0) as u64
        };
        let written = match self.born(&metadata)? {
            Some(_) => None,
            None => Some(milliseconds(metadata.mtime(), metadata.mtime_nsec())),
        };
        let changed = milliseconds(metadata.ctime(), metadata.ctime_nsec());
        Ok(Some(Times { changed, written }))
    }

    #[cfg(not(unix))]
    fn times(&self) -> io::Result<Option<Times>> {
        Ok(None)
    }
}
