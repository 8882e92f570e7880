//! A file that appears under its name either whole or not at all.
//!
//! It is written under a temporary name in the directory of the output, synced, and renamed; then
//! the directory is synced. If anything happens before the rename, the output stays as it was. A
//! killed process leaves the temporary file, `.privet-….partial` beside the output; it may be
//! deleted.

use privet_core::{Error, Result};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf, is_separator};
use tempfile::NamedTempFile;

/// What happens to a file that already has the name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// The new file replaces it.
    #[default]
    Replace,
    /// It stays, and the new file is refused.
    Keep,
}

/// A file that is being written under a temporary name. If it is dropped before
/// [`publish`](Self::publish), it leaves nothing.
pub struct NewFile {
    output: PathBuf,
    existing: Existing,
    // Removes the temporary file when dropped.
    temporary: NamedTempFile,
}

impl NewFile {
    /// Begins a file that will be `output`. The user's mask decides who may read it.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `output` cannot be a file, or is a
    ///   file that must be kept.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if nothing can be written there.
    pub fn create(output: &Path, existing: Existing) -> Result<Self> {
        Self::create_for(output, existing, 0o666)
    }

    /// The same, with the permissions that both the file `like` and the user's mask grant: a user
    /// who may not read `like` must not be able to read this file.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_like(output: &Path, existing: Existing, like: &Path) -> Result<Self> {
        #[cfg(unix)]
        let mode = {
            use std::os::unix::fs::PermissionsExt;
            let metadata = like.metadata().map_err(|error| cannot("look at", like, error))?;
            metadata.permissions().mode() & 0o666
        };
        #[cfg(not(unix))]
        let (mode, _) = (0o666, like);
        Self::create_for(output, existing, mode)
    }

    fn create_for(output: &Path, existing: Existing, mode: u32) -> Result<Self> {
        let ends_as_directory = output
            .as_os_str()
            .as_encoded_bytes()
            .last()
            .is_some_and(|last| is_separator((*last).into()));
        if output.file_name().is_none() || ends_as_directory || output.is_dir() {
            let directory = Error::api_misuse("this is a directory; name a file to write to");
            return Err(directory.within(output.display()));
        }
        match output.symlink_metadata() {
            Ok(_) if existing == Existing::Keep => return Err(already_there(output)),
            // A rename would replace a device by a file.
            Ok(_) if output.metadata().is_ok_and(|metadata| !metadata.is_file()) => {
                let other = Error::api_misuse("this is no regular file; name a file to write to");
                return Err(other.within(output.display()));
            }
            _ => {}
        }
        let temporary = temporary_beside(output, mode)
            .map_err(|error| cannot("create a file beside", output, error))?;
        Ok(Self { output: output.to_owned(), existing, temporary })
    }

    /// The name it will have.
    pub fn output(&self) -> &Path {
        &self.output
    }

    /// The file, for writing.
    pub fn as_file(&self) -> &File {
        self.temporary.as_file()
    }

    /// Syncs it to disk and gives it its name.
    ///
    /// # Errors
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be synced or renamed.
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the name was meanwhile given to a
    ///   file that must be kept.
    pub fn publish(self) -> Result<()> {
        let Self { output, existing, temporary } = self;
        temporary.as_file().sync_all().map_err(|error| cannot("write", &output, error))?;
        let renamed = match existing {
            Existing::Replace => temporary.persist(&output),
            Existing::Keep => temporary.persist_noclobber(&output),
        };
        renamed.map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => already_there(&output),
            _ => {
                let failed = cannot("rename to", &output, error.error);
                // The work may have taken hours, and only the name is missing.
                match error.file.keep() {
                    Ok((_, path)) => {
                        failed.within(format!("its contents are complete in {}", path.display()))
                    }
                    Err(_) => failed,
                }
            }
        })?;
        sync_directory(&output).map_err(|error| cannot("sync the directory of", &output, error))
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temporary.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.flush()
    }
}

impl Seek for NewFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.temporary.seek(position)
    }
}

/// The error for a file that cannot be made: what failed, and what may help.
pub fn cannot(what: &str, output: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return Error::api_misuse(format!(
            "cannot write {}: its directory does not exist",
            output.display()
        ));
    }
    let advice = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space",
        io::ErrorKind::PermissionDenied => "; choose another place or ask for permission",
        _ => "",
    };
    Error::unavailable(format!("cannot {what} {}: {error}{advice}", output.display()))
        .caused_by(error)
}

fn already_there(output: &Path) -> Error {
    Error::api_misuse(format!("{} is there already: choose another name", output.display()))
}

fn temporary_beside(output: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".privet-").suffix(".partial");
    #[cfg(unix)]
    {
        // Temporary files are private to their owner by default; this one becomes the output.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(mode));
    }
    #[cfg(not(unix))]
    let _ = mode;
    builder.tempfile_in(directory_of(output))
}

fn directory_of(output: &Path) -> &Path {
    match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes the rename itself survive a crash.
fn sync_directory(output: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(directory_of(output))?.sync_all()?;
    #[cfg(not(unix))]
    let _ = output;
    Ok(())
}
