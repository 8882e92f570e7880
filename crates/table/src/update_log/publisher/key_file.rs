//! The file that holds a secret key: one line, which names its format.
//!
//! ```text
//! privet-publisher-secret-key-1 <64 hexadecimal digits>
//! ```

use super::PublisherKey;
use crate::new_file::cannot;
use crate::secret_file::{Others, is_open_to};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use privet_core::{Error, Reason, Result};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use zeroize::Zeroizing;

pub(crate) const PREFIX: &str = "privet-publisher-secret-key-1 ";
const FILE_LEN: usize = PREFIX.len() + 64 + 1;

impl PublisherKey {
    /// Writes the key to a new file and syncs it. Only its owner can read the file (where the
    /// system knows owners).
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a file of this name exists already,
    ///   or the directory does not.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be written.
    pub fn create_file(&self, path: &Path) -> Result<()> {
        // The buffer has its full size from the beginning: growing would leave a copy behind.
        let mut line = Zeroizing::new(Vec::with_capacity(FILE_LEN));
        line.extend_from_slice(PREFIX.as_bytes());
        line.resize(FILE_LEN, b'\n');
        HEXLOWER.encode_mut(self.0.as_bytes(), &mut line[PREFIX.len()..FILE_LEN - 1]);
        write_private(path, &line).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::api_misuse(format!(
                "{} is there already: a key is never overwritten; choose another name",
                path.display()
            )),
            _ => cannot("write", path, error),
        })
    }

    /// Reads the key from a file that [`create_file`](Self::create_file) wrote.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the file does not exist, holds no
    ///   key, or others can read it.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be read.
    pub fn from_file(path: &Path) -> Result<Self> {
        let misused = |message: &str| Error::api_misuse(message.to_owned()).within(path.display());
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => {
                misused("there is no such key file; make one").because(Reason::NoPublisherKey)
            }
            _ => Error::unavailable(format!("cannot read {}: {error}", path.display()))
                .caused_by(error),
        };
        let file = File::open(path).map_err(failed)?;
        if is_open_to(&file, Others::All).map_err(failed)? {
            return Err(misused(
                "others can read this secret key; if nobody has read it, let only its owner read it (chmod 600); otherwise make another",
            ));
        }
        let mut line = Zeroizing::new(Vec::with_capacity(FILE_LEN + 1));
        file.take(FILE_LEN as u64 + 1).read_to_end(&mut line).map_err(failed)?;
        let digits = line.strip_prefix(PREFIX.as_bytes()).and_then(|rest| rest.strip_suffix(b"\n"));
        let mut secret = Zeroizing::new([0; 32]);
        let read = digits
            .filter(|digits| digits.len() == 64)
            .map(|digits| HEXLOWER_PERMISSIVE.decode_mut(digits, &mut *secret));
        match read {
            Some(Ok(_)) => Ok(Self::from_secret(&secret)),
            _ => Err(misused(
                "this is no secret key of a publisher, or it is damaged; make another if it is lost",
            )
            .because(Reason::NoPublisherKey)),
        }
    }
}

fn write_private(path: &Path, line: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(line)?;
    file.sync_all()?;
    #[cfg(unix)]
    {
        // Updates under this key can be continued only with it, so the file's name must survive a
        // crash too.
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}
