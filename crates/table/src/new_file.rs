//! A file that appears under its name whole, or not at all.
//!
//! It is written under a temporary name in the directory of the output, synced, given its name, and
//! the directory is synced. Whatever happens before it has its name leaves the output as it was.
//! Who is killed leaves the temporary file, `.privet-….partial` beside the output, which may be
//! deleted.

use privet_core::{Error, Result};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf, is_separator};
use tempfile::NamedTempFile;

/// What becomes of a file that has the name already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// The new one takes its place.
    #[default]
    Replace,
    /// It stays, and the new one is refused.
    Keep,
}

/// A file that is being written under a temporary name; dropped before [`publish`](Self::publish),
/// it leaves nothing.
pub struct NewFile {
    output: PathBuf,
    existing: Existing,
    // Removes the temporary file when dropped.
    temporary: NamedTempFile,
}

impl NewFile {
    /// Begins a file that will be `output`. Who may read it is what the user's mask grants.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `output` cannot be a file, or is
    ///   one that has to be kept.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if nothing can be written there.
    pub fn create(output: &Path, existing: Existing) -> Result<Self> {
        Self::create_for(output, existing, 0o666)
    }

    /// The same, for whom the file `like` grants as much, and the user's mask as well: nobody who
    /// may not read that one should read this.
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
            // A rename would put a file where a device was.
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

    /// The file as it is written.
    pub fn as_file(&self) -> &File {
        self.temporary.as_file()
    }

    /// Syncs it to disk and gives it its name.
    ///
    /// # Errors
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be synced or renamed.
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a file that has to be kept got the
    ///   name meanwhile.
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
                // It may have taken hours, and nothing but the name is missing.
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

/// The error for a file that cannot be made: what could not be done, and what may help.
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
