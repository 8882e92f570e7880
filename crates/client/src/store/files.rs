//! The few file operations that the store is made of. Every error names the file.
//!
//! Files are readable and writable by their owner alone (0600, directories 0700): a hint is public, but which tables somebody asks for is not.

use privet_core::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// An error of the storage: says which file and what to do.
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

/// Puts the file's name before an error about its contents. What does not parse in a file of ours is damage.
pub(crate) fn blame(path: &Path, error: Error) -> Error {
    match error.blame() {
        privet_core::Blame::Unavailable => error,
        _ => Error::corrupted(error.message()).within(path.display()),
    }
}

pub(crate) fn create_directory(path: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    if path.is_dir() {
        return Ok(());
    }
    builder.create(path).map_err(|error| failed(path, "create the directory", error))?;
    // What will be kept in it is durable only once its name is, and the names above it, which may be new as well.
    #[cfg(unix)]
    for parent in path.ancestors().skip(1).take(3).filter(|parent| !parent.as_os_str().is_empty()) {
        // A directory that may be entered but not read cannot be synced; it was there before.
        if let Ok(parent) = File::open(parent) {
            let _ = parent.sync_all();
        }
    }
    Ok(())
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

pub(crate) fn open_if_there(path: &Path) -> Result<Option<File>> {
    match options().open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path, "open", error)),
    }
}

pub(crate) fn open_or_create(path: &Path) -> Result<File> {
    options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|error| failed(path, "open", error))
}

pub(crate) fn size(file: &File, path: &Path) -> Result<u64> {
    let metadata = file.metadata().map_err(|error| failed(path, "look at", error))?;
    if !metadata.is_file() {
        return Err(Error::unavailable(format!("{} is not a file; move it away", path.display())));
    }
    Ok(metadata.len())
}

/// Fills `out` from `offset`. A file that ends earlier is damaged.
pub(crate) fn read_exact_at(file: &File, path: &Path, offset: u64, out: &mut [u8]) -> Result<()> {
    #[cfg(unix)]
    let result = std::os::unix::fs::FileExt::read_exact_at(file, out, offset);
    #[cfg(windows)]
    let result = windows::read_exact_at(file, out, offset);
    result.map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::corrupted(format!("{} is truncated", path.display()))
        }
        _ => failed(path, "read", error),
    })
}

pub(crate) fn write_all_at(file: &File, path: &Path, offset: u64, bytes: &[u8]) -> Result<()> {
    #[cfg(unix)]
    let result = std::os::unix::fs::FileExt::write_all_at(file, bytes, offset);
    #[cfg(windows)]
    let result = windows::write_all_at(file, bytes, offset);
    result.map_err(|error| failed(path, "write", error))
}

#[cfg(windows)]
pub(crate) mod windows {
    use std::fs::File;
    use std::io;
    use std::os::windows::fs::FileExt;

    pub(crate) fn read_exact_at(
        file: &File,
        mut out: &mut [u8],
        mut offset: u64,
    ) -> io::Result<()> {
        while !out.is_empty() {
            match file.seek_read(out, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => {
                    out = &mut out[count..];
                    offset += count as u64;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match file.seek_write(bytes, offset)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => {
                    bytes = &bytes[count..];
                    offset += count as u64;
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn truncate(file: &File, path: &Path, len: u64) -> Result<()> {
    file.set_len(len).map_err(|error| failed(path, "cut", error))
}

pub(crate) fn sync(file: &File, path: &Path) -> Result<()> {
    file.sync_all().map_err(|error| failed(path, "sync", error))
}

/// Renames a synced file and syncs the directory, so that the new name survives a power failure too.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).map_err(|error| failed(to, "write", error))?;
    #[cfg(unix)]
    if let Some(directory) = to.parent() {
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| failed(directory, "sync", error))?;
    }
    Ok(())
}

/// Replaces the file at `path` as a whole: after a crash it holds the old bytes or the new ones. Two writers at once need a lock of their own.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = path.with_extension("new");
    let file = open_or_create(&temporary)?;
    truncate(&file, &temporary, 0)?;
    write_all_at(&file, &temporary, 0, bytes)?;
    sync(&file, &temporary)?;
    rename(&temporary, path)
}

/// Reads a whole file of at most `limit` bytes; `None` if there is none.
pub(crate) fn read_if_there(path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
    let Some(file) = open_if_there(path)? else { return Ok(None) };
    let size = size(&file, path)?;
    if size > limit {
        let error =
            Error::corrupted(format!("it has {size} bytes, more than any file of its kind"));
        return Err(blame(path, error));
    }
    let mut bytes = vec![0; size as usize];
    read_exact_at(&file, path, 0, &mut bytes)?;
    Ok(Some(bytes))
}

pub(crate) fn remove_if_there(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path, "remove", error)),
        _ => Ok(()),
    }
}

/// A lock that ends with the process that holds it, however that ends.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock at `path`; `None` if somebody else has it.
    pub(crate) fn try_take(path: &Path) -> Result<Option<Self>> {
        loop {
            let file = open_or_create(path)?;
            match file.try_lock() {
                Ok(()) if is_still_at(&file, path) => return Ok(Some(Self { _file: file })),
                // Whoever had it removed it in between: there is another one now.
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => return Ok(None),
                Err(std::fs::TryLockError::Error(error)) => {
                    return Err(failed(path, "lock", error));
                }
            }
        }
    }
}

/// The first half of a hash: enough against damage.
pub(crate) fn half(hash: blake3::Hash) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_bytes()[..16]);
    half
}

/// Whether the open file is the one that its path leads to. Where the system does not say, files that are open or locked are not removed by anybody else either.
pub(crate) fn is_still_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        match (file.metadata(), std::fs::metadata(path)) {
            (Ok(open), Ok(named)) => identity(open) == identity(named),
            _ => false,
        }
    }
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        true
    }
}
