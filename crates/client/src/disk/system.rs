//! The operating system's disk and clock. No other file of the client uses them.
//!
//! Files are readable and writable by their owner alone (0600, folders 0700): a downloaded hint is
//! public, but which tables a user asks for is not.

use super::{Folder, Medium, Times};
use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long to wait before trying again to take a lock that another holder has.
const LOCK_STEP: Duration = Duration::from_millis(5);

/// A directory of the operating system, for its owner alone.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Behaves as on a file system that does not keep birth times.
    #[cfg(test)]
    hides_births: bool,
}

impl Directory {
    /// Opens the directory `path`, and creates it, durably, if there is none.
    ///
    /// # Errors
    /// The system's error.
    pub fn create(path: &Path) -> io::Result<Self> {
        let directory = Self::existing(path);
        directory.create_at(path)?;
        Ok(directory)
    }

    /// The existing directory `path`.
    #[must_use]
    pub fn existing(path: &Path) -> Self {
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

    fn create_at(&self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path)?;
        // Files in it are durable only once its own name is, and the names of its parents, which
        // may be new as well.
        #[cfg(unix)]
        for parent in path.ancestors().skip(1).take(3) {
            // A directory that the process may enter but not read cannot be synced; it existed
            // before.
            if let Ok(parent) = File::open(parent) {
                let _ = parent.sync_all();
            }
        }
        Ok(())
    }

    fn within(&self, name: &str) -> Arc<dyn Folder> {
        Arc::new(Self {
            path: self.path.join(name),
            #[cfg(test)]
            hides_births: self.hides_births,
        })
    }

    fn medium(&self, file: File) -> Arc<dyn Medium> {
        Arc::new(OpenFile {
            file,
            #[cfg(test)]
            hides_births: self.hides_births,
        })
    }

    fn open_file(&self, name: &str, options: &mut OpenOptions) -> io::Result<File> {
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
        let file = options.read(true).open(self.path.join(name))?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a file; move it away"));
        }
        Ok(file)
    }

    fn open_if_there(
        &self,
        name: &str,
        options: &mut OpenOptions,
    ) -> io::Result<Option<Arc<dyn Medium>>> {
        match self.open_file(name, options) {
            Ok(file) => Ok(Some(self.medium(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open_or_create(&self, name: &str) -> io::Result<File> {
        self.open_file(name, OpenOptions::new().write(true).create(true).truncate(false))
    }

    /// The names of the entries: of folders, or of everything else.
    fn listed(&self, folders: bool) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            // What a link leads to counts, not the link.
            let is_folder = kind.is_dir() || (kind.is_symlink() && entry.path().is_dir());
            if is_folder == folders {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }
}

impl Folder for Directory {
    fn path(&self, name: &str) -> PathBuf {
        match name {
            "" => self.path.clone(),
            name => self.path.join(name),
        }
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.listed(false)
    }

    fn folders(&self) -> io::Result<Vec<String>> {
        self.listed(true)
    }

    fn open(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>> {
        self.open_if_there(name, OpenOptions::new().write(true))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>> {
        self.open_if_there(name, &mut OpenOptions::new())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Medium>> {
        Ok(self.medium(self.open_or_create(name)?))
    }

    fn lock(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>> {
        loop {
            let file = self.open_or_create(name)?;
            match file.try_lock() {
                Ok(()) if is_still_at(&file, &self.path.join(name)) => {
                    return Ok(Some(self.medium(file)));
                }
                // The holder of the lock removed the file in the meantime: the next round opens the
                // new one.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    fn lock_within(&self, name: &str, patience: Duration) -> io::Result<Option<Arc<dyn Medium>>> {
        let started = Instant::now();
        loop {
            match self.lock(name)? {
                None if started.elapsed() < patience => std::thread::sleep(LOCK_STEP),
                locked => return Ok(locked),
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

    fn folder(&self, name: &str) -> io::Result<Option<Arc<dyn Folder>>> {
        match std::fs::metadata(self.path.join(name)) {
            Ok(metadata) => Ok(metadata.is_dir().then(|| self.within(name))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn create_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        self.create_at(&self.path.join(name))?;
        Ok(self.within(name))
    }

    fn remove_folder(&self, name: &str) -> io::Result<()> {
        std::fs::remove_dir(self.path.join(name))
    }

    fn seclude(&self) -> io::Result<()> {
        #[cfg(unix)]
        std::fs::set_permissions(&self.path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        Ok(())
    }
}

/// Whether the open file is the one that its path leads to. Where the system does not say, another
/// process cannot remove a file that is open or locked.
fn is_still_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
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

#[derive(Debug)]
struct OpenFile {
    file: File,
    #[cfg(test)]
    hides_births: bool,
}

impl OpenFile {
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
            // An error for another reason must not make the hints look like a copy.
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

/// What the system says of a file, as far as it stays the same across a restart of the machine.
/// (The device number does not.)
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

/// Names the snapshot that a file lies in, if its file system makes snapshots file by file. There
/// every container that starts from an image has a snapshot of its own. On other file systems this
/// name may change when the machine restarts, so it is not used.
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

impl Medium for OpenFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_exact_at(&self.file, out, offset);
        #[cfg(windows)]
        return windows::read_exact_at(&self.file, out, offset);
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, offset);
        #[cfg(windows)]
        return windows::write_all_at(&self.file, bytes, offset);
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn now(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_millis() as u64)
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

#[cfg(windows)]
mod windows {
    use std::fs::File;
    use std::io;
    use std::os::windows::fs::FileExt;

    pub(super) fn read_exact_at(
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

    pub(super) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
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
