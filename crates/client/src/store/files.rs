//! The few operations on a [disk](crate::disk) that the store uses. Every error names the file.
//!
//! Most files are written under a temporary name, synced and renamed. Files of single-use hints are
//! mostly overwritten in place, so that no secret stays behind in blocks that a rename frees.

use crate::disk::{Folder, Medium, Times};
use privet_core::codec::Reader;
use privet_core::{Error, Result};
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// A storage error: says which file and what to do.
pub(crate) fn failed(path: &Path, what: &str, error: io::Error) -> Error {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; check its owner and permissions, or choose another state directory"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; make room, or choose a state directory on another disk"
        }
        _ => "",
    };
    Error::unavailable(format!("cannot {what} {}: {error}{advice}", path.display()))
        .caused_by(error)
}

/// Puts the file's name before an error about its contents. A file of Privet's that does not parse
/// is damaged.
pub(crate) fn blame(path: &Path, error: Error) -> Error {
    match error.blame() {
        privet_core::Blame::Unavailable => error,
        _ => Error::corrupted(error.message()).within(path.display()),
    }
}

/// Reads how a file begins: with `magic`, and with a version of its format, which it returns.
///
/// # Errors
/// If it begins otherwise, or this program does not know the version.
pub(crate) fn format_version(
    reader: &mut Reader<'_>,
    magic: &[u8; 8],
    known: RangeInclusive<u32>,
) -> Result<u32> {
    if reader.array::<8>()? != *magic {
        return Err(Error::corrupted("it does not begin like a file of Privet's"));
    }
    let version = reader.u32()?;
    if !known.contains(&version) {
        return Err(Error::corrupted(format!(
            "it has format version {version}, this program knows version {}",
            known.end()
        )));
    }
    Ok(version)
}

/// A folder in `folder`, created if there is none.
pub(crate) fn create_folder(folder: &dyn Folder, name: &str) -> Result<Arc<dyn Folder>> {
    let created = folder.create_folder(name);
    created.map_err(|error| failed(&folder.path(name), "create the directory", error))
}

/// A folder in `folder`; `None` if there is none.
pub(crate) fn folder(folder: &dyn Folder, name: &str) -> Result<Option<Arc<dyn Folder>>> {
    folder.folder(name).map_err(|error| failed(&folder.path(name), "open", error))
}

/// The names of the files in `folder`, in order.
pub(crate) fn names(folder: &dyn Folder) -> Result<Vec<String>> {
    sorted(folder, folder.names())
}

/// The names of the folders in `folder`, in order.
pub(crate) fn folders(folder: &dyn Folder) -> Result<Vec<String>> {
    sorted(folder, folder.folders())
}

fn sorted(folder: &dyn Folder, names: io::Result<Vec<String>>) -> Result<Vec<String>> {
    let mut names = names.map_err(|error| failed(&folder.path(""), "list", error))?;
    names.sort();
    Ok(names)
}

/// A file of the store.
#[derive(Clone, Debug)]
pub(crate) struct StoredFile {
    medium: Arc<dyn Medium>,
    path: PathBuf,
}

/// As [`Medium`], with errors that name the file.
impl StoredFile {
    pub(crate) fn new(medium: Arc<dyn Medium>, path: PathBuf) -> Self {
        Self { medium, path }
    }

    /// Its name, for people.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The same file, under the name that it has now.
    pub(crate) fn renamed(self, path: PathBuf) -> Self {
        Self { path, ..self }
    }

    /// As [`blame`].
    pub(crate) fn blame(&self, error: Error) -> Error {
        blame(&self.path, error)
    }

    /// An error that says that this file is damaged, and how.
    pub(crate) fn damaged(&self, how: &str) -> Error {
        self.blame(Error::corrupted(how))
    }

    fn outcome<T>(&self, what: &str, outcome: io::Result<T>) -> Result<T> {
        outcome.map_err(|error| failed(&self.path, what, error))
    }

    pub(crate) fn len(&self) -> Result<u64> {
        self.outcome("look at", self.medium.len())
    }

    /// Fills `out` from `offset`. A file that ends before is damaged.
    pub(crate) fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.medium.read_at(offset, out).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                Error::corrupted(format!("{} is truncated", self.path.display()))
            }
            _ => failed(&self.path, "read", error),
        })
    }

    /// Reads `len` bytes from `start` on. The caller has checked that the file has that many: `len`
    /// must not be a mere claim.
    pub(crate) fn read_part(&self, start: u64, len: u64) -> Result<Zeroizing<Vec<u8>>> {
        let mut bytes = Zeroizing::new(Vec::new());
        if bytes.try_reserve_exact(len as usize).is_err() {
            return Err(Error::unavailable(format!(
                "there is no memory for the {len} bytes of {}",
                self.path.display()
            )));
        }
        bytes.resize(len as usize, 0);
        self.read_at(start, &mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.outcome("write", self.medium.write_at(offset, bytes))
    }

    /// Overwrites the bytes from `start` to `end` with zeros.
    pub(crate) fn zero(&self, start: u64, end: u64) -> Result<()> {
        const STEP: u64 = 1 << 20;
        let zeros = vec![0; end.saturating_sub(start).min(STEP) as usize];
        let mut at = start;
        while at < end {
            let count = (end - at).min(STEP);
            self.write_at(at, &zeros[..count as usize])?;
            at += count;
        }
        Ok(())
    }

    pub(crate) fn set_len(&self, len: u64) -> Result<()> {
        self.outcome("cut", self.medium.set_len(len))
    }

    pub(crate) fn sync(&self) -> Result<()> {
        self.outcome("sync", self.medium.sync())
    }

    pub(crate) fn place(&self) -> Result<[u8; 32]> {
        self.outcome("look at", self.medium.place())
    }

    pub(crate) fn times(&self) -> Result<Option<Times>> {
        self.outcome("look at", self.medium.times())
    }

    pub(crate) fn now(&self) -> u64 {
        self.medium.now()
    }
}

fn found(
    folder: &dyn Folder,
    name: &str,
    what: &str,
    medium: io::Result<Option<Arc<dyn Medium>>>,
) -> Result<Option<StoredFile>> {
    let path = folder.path(name);
    let medium = medium.map_err(|error| failed(&path, what, error))?;
    Ok(medium.map(|medium| StoredFile::new(medium, path)))
}

/// Opens a file; `None` if there is none.
pub(crate) fn open(folder: &dyn Folder, name: &str) -> Result<Option<StoredFile>> {
    found(folder, name, "open", folder.open(name))
}

/// Opens a file that is only read; `None` if there is none.
pub(crate) fn open_to_read(folder: &dyn Folder, name: &str) -> Result<Option<StoredFile>> {
    found(folder, name, "open", folder.open_to_read(name))
}

/// Opens a file, created if there is none.
pub(crate) fn open_or_create(folder: &dyn Folder, name: &str) -> Result<StoredFile> {
    let path = folder.path(name);
    let medium = folder.create(name).map_err(|error| failed(&path, "open", error))?;
    Ok(StoredFile::new(medium, path))
}

/// Takes the lock called `name`; `None` if another holder has it. It ends with its last handle, or
/// with the process, however that ends.
pub(crate) fn lock(folder: &dyn Folder, name: &str) -> Result<Option<StoredFile>> {
    found(folder, name, "lock", folder.lock(name))
}

/// The same, after a wait of at most `patience`.
pub(crate) fn lock_within(
    folder: &dyn Folder,
    name: &str,
    patience: Duration,
) -> Result<Option<StoredFile>> {
    found(folder, name, "lock", folder.lock_within(name, patience))
}

/// Makes the names in `folder` durable.
pub(crate) fn sync_names(folder: &dyn Folder) -> Result<()> {
    folder.sync().map_err(|error| failed(&folder.path(""), "sync", error))
}

/// Renames a synced file and syncs the folder, so that the new name survives a power failure too.
pub(crate) fn rename(folder: &dyn Folder, from: &str, to: &str) -> Result<()> {
    folder.rename(from, to).map_err(|error| failed(&folder.path(to), "write", error))?;
    sync_names(folder)
}

/// Replaces the file called `name` as a whole: after a crash it holds the old bytes or the new
/// ones. The caller must hold a lock against a second writer.
pub(crate) fn replace(folder: &dyn Folder, name: &str, bytes: &[u8]) -> Result<()> {
    let temporary = Path::new(name).with_extension("new").to_string_lossy().into_owned();
    let file = open_or_create(folder, &temporary)?;
    file.set_len(0)?;
    file.write_at(0, bytes)?;
    file.sync()?;
    rename(folder, &temporary, name)
}

/// Reads a whole file of at most `limit` bytes; `None` if there is none.
pub(crate) fn read_if_there(
    folder: &dyn Folder,
    name: &str,
    limit: u64,
) -> Result<Option<Vec<u8>>> {
    let Some(file) = open_to_read(folder, name)? else { return Ok(None) };
    let size = file.len()?;
    if size > limit {
        return Err(file.damaged(&format!("it has {size} bytes, more than any file of its kind")));
    }
    let mut bytes = vec![0; size as usize];
    file.read_at(0, &mut bytes)?;
    Ok(Some(bytes))
}

pub(crate) fn remove_if_there(folder: &dyn Folder, name: &str) -> Result<()> {
    folder.remove(name).map_err(|error| failed(&folder.path(name), "remove", error))
}

/// The first half of a hash: enough against damage.
pub(crate) fn half(hash: blake3::Hash) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_bytes()[..16]);
    half
}
