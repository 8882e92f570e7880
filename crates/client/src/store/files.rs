//! The few operations on a [disk](crate::disk) that the store uses. Every error names the file.
//!
//! Most files are written under a temporary name, synced and renamed. Files of single-use hints are
//! mostly overwritten in place, so that no secret stays behind in blocks that a rename frees.

use crate::disk::{Folder, Medium};
use privet_core::codec::Reader;
use privet_core::{Error, Result};
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

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

/// Opens a file that is only read; `None` if there is none.
pub(crate) fn open_to_read(folder: &dyn Folder, name: &str) -> Result<Option<Arc<dyn Medium>>> {
    folder.open_to_read(name).map_err(|error| failed(&folder.path(name), "open", error))
}

pub(crate) fn open_or_create(folder: &dyn Folder, name: &str) -> Result<Arc<dyn Medium>> {
    folder.create(name).map_err(|error| failed(&folder.path(name), "open", error))
}

pub(crate) fn size(file: &dyn Medium, path: &Path) -> Result<u64> {
    file.len().map_err(|error| failed(path, "look at", error))
}

/// Fills `out` from `offset`. A file that ends before is damaged.
pub(crate) fn read_at(file: &dyn Medium, path: &Path, offset: u64, out: &mut [u8]) -> Result<()> {
    file.read_at(offset, out).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::corrupted(format!("{} is truncated", path.display()))
        }
        _ => failed(path, "read", error),
    })
}

pub(crate) fn write_at(file: &dyn Medium, path: &Path, offset: u64, bytes: &[u8]) -> Result<()> {
    file.write_at(offset, bytes).map_err(|error| failed(path, "write", error))
}

pub(crate) fn truncate(file: &dyn Medium, path: &Path, len: u64) -> Result<()> {
    file.set_len(len).map_err(|error| failed(path, "cut", error))
}

pub(crate) fn sync(file: &dyn Medium, path: &Path) -> Result<()> {
    file.sync().map_err(|error| failed(path, "sync", error))
}

/// Renames a synced file and syncs the folder, so that the new name survives a power failure too.
pub(crate) fn rename(folder: &dyn Folder, from: &str, to: &str) -> Result<()> {
    folder.rename(from, to).map_err(|error| failed(&folder.path(to), "write", error))?;
    folder.sync().map_err(|error| failed(&folder.path(""), "sync", error))
}

/// Replaces the file called `name` as a whole: after a crash it holds the old bytes or the new
/// ones. The caller must hold a lock against a second writer.
pub(crate) fn replace(folder: &dyn Folder, name: &str, bytes: &[u8]) -> Result<()> {
    let temporary = Path::new(name).with_extension("new").to_string_lossy().into_owned();
    let path = folder.path(&temporary);
    let file = open_or_create(folder, &temporary)?;
    truncate(&*file, &path, 0)?;
    write_at(&*file, &path, 0, bytes)?;
    sync(&*file, &path)?;
    rename(folder, &temporary, name)
}

/// Reads a whole file of at most `limit` bytes; `None` if there is none.
pub(crate) fn read_if_there(
    folder: &dyn Folder,
    name: &str,
    limit: u64,
) -> Result<Option<Vec<u8>>> {
    let path = folder.path(name);
    let Some(file) = open_to_read(folder, name)? else { return Ok(None) };
    let size = size(&*file, &path)?;
    if size > limit {
        let error =
            Error::corrupted(format!("it has {size} bytes, more than any file of its kind"));
        return Err(blame(&path, error));
    }
    let mut bytes = vec![0; size as usize];
    read_at(&*file, &path, 0, &mut bytes)?;
    Ok(Some(bytes))
}

pub(crate) fn remove_if_there(folder: &dyn Folder, name: &str) -> Result<()> {
    folder.remove(name).map_err(|error| failed(&folder.path(name), "remove", error))
}

/// Takes the lock called `name`; `None` if another holder has it. It ends with its last handle, or
/// with the process, however that ends.
pub(crate) fn lock(folder: &dyn Folder, name: &str) -> Result<Option<Arc<dyn Medium>>> {
    folder.lock(name).map_err(|error| failed(&folder.path(name), "lock", error))
}

/// The first half of a hash: enough against damage.
pub(crate) fn half(hash: blake3::Hash) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_bytes()[..16]);
    half
}
