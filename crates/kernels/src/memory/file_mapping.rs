//! Read-only mappings of whole files.

use super::guarded_range::GuardedRange;
use std::fs::{File, Metadata};
use std::io;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file that could not be mapped.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct MappingError {
    path: PathBuf,
    action: &'static str,
    source: io::Error,
}

impl MappingError {
    /// The file that was to be mapped.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file does not exist.
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

/// A whole file, mapped read-only into memory.
///
/// Pages are read from disk when first touched and may be dropped and read again by the system. A
/// table is therefore usable at once after [`open`](FileMapping::open), however large it is.
///
/// # A file that changes underneath
///
/// The mapping shows the file, not a copy of it. If another process *writes* to the file, the bytes
/// seen here change. If another process *truncates* it, touching a page beyond the new end kills
/// this process with `SIGBUS`. That is right for a program that does one task and ends: it must not
/// go on with data that it could not read.
///
/// A server must go on. It [guards](FileMapping::guarded) the mapping, so that a missing page reads
/// as zeros. It calls [`check_unchanged`](FileMapping::check_unchanged) after each read, before it
/// uses the bytes. That detects every write and every truncation since the mapping was made. It
/// does not detect a disk that returns wrong bytes: digests do.
pub struct FileMapping {
    // Declared before the memory that it guards, so that it is dropped first.
    guard: Option<GuardedRange>,
    // None for an empty file, which operating systems refuse to map.
    map: Option<memmap2::Mmap>,
    file: File,
    path: PathBuf,
    stamp: Stamp,
}

/// A file that has changed since it was mapped.
#[derive(Debug, thiserror::Error)]
#[error("{} was {how} while it was in use", path.display())]
pub struct FileChanged {
    path: PathBuf,
    how: &'static str,
}

/// The metadata that every write to a file changes. The time of other changes is left out: a
/// rename, or the removal of one of its names, does not change its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        Stamp { len: metadata.len(), modified: metadata.modified().ok() }
    }
}

impl FileMapping {
    /// Maps the file at `path`. An empty file gives an empty slice.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened or the system refuses the mapping.
    pub fn open(path: &Path) -> Result<FileMapping, MappingError> {
        let failed = |action| move |source| MappingError { path: path.to_owned(), action, source };
        let file = File::open(path).map_err(failed("open"))?;
        FileMapping::of(&file, path)
    }

    /// Maps a file that is already open, even if another file has its name now. `path` is for
    /// messages.
    ///
    /// # Errors
    ///
    /// When it is not a regular file or the system refuses the mapping.
    pub fn of(file: &File, path: &Path) -> Result<FileMapping, MappingError> {
        let failed = |action| move |source| MappingError { path: path.to_owned(), action, source };
        let metadata = file.metadata().map_err(failed("inspect"))?;
        if !metadata.is_file() {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
            return Err(failed("map")(source));
        }
        let kept = file.try_clone().map_err(failed("map"))?;
        let (path, stamp) = (path.to_owned(), Stamp::of(&metadata));
        if metadata.len() == 0 {
            return Ok(FileMapping { guard: None, map: None, file: kept, path, stamp });
        }
        // SAFETY: the mapping is read-only and owned by the value, so the memory stays valid while
        // it is borrowed. Its bytes may change meanwhile: the documentation tells callers to expect
        // that, as with every file mapping.
        let map = unsafe { memmap2::Mmap::map(file) }.map_err(|source| MappingError {
            path: path.clone(),
            action: "map",
            source,
        })?;
        Ok(FileMapping { guard: None, map: Some(map), file: kept, path, stamp })
    }

    /// From now on, a page that is missing, because the file was truncated or its disk fails, reads
    /// as zeros and does not end the process. Readers must call
    /// [`check_unchanged`](FileMapping::check_unchanged) afterwards. Only on Linux; on other
    /// systems this does nothing.
    #[must_use]
    pub fn guarded(mut self) -> FileMapping {
        if self.guard.is_none()
            && let Some(map) = &self.map
        {
            let start = map.as_ptr() as usize;
            self.guard = GuardedRange::new(start..start + map.len());
        }
        self
    }

    /// Checks that all bytes read so far are those of the file when it was mapped, as far as the
    /// system can say: nobody has written to it since, and no page was missing. Costs one system
    /// call.
    ///
    /// # Errors
    ///
    /// With the file's name and what happened to it.
    pub fn check_unchanged(&self) -> Result<(), FileChanged> {
        let changed = |how| Err(FileChanged { path: self.path.clone(), how });
        // Checks the open file, even if another file has its name now.
        match self.file.metadata().map(|metadata| Stamp::of(&metadata)) {
            Ok(now) if now.len < self.stamp.len => changed("truncated"),
            Ok(now) if now != self.stamp => changed("written to"),
            Ok(_) if self.guard.as_ref().is_some_and(GuardedRange::was_hit) => {
                changed("truncated, or unreadable on its disk,")
            }
            Ok(_) => Ok(()),
            Err(_) => changed("taken away"),
        }
    }

    /// The file that is mapped, for reads that do not go through the mapping.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The path under which it was mapped.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.map.as_deref().unwrap_or(&[])
    }

    /// The file's length in bytes.
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells the system that the file is about to be read once from front to back, so that it reads
    /// further ahead. A hint: failure is ignored, and systems without the call do nothing.
    pub fn advise_sequential(&self) {
        #[cfg(unix)]
        if let Some(map) = &self.map {
            // Only a hint, so nothing depends on its success.
            let _ = map.advise(memmap2::Advice::Sequential);
        }
    }

    /// Tells the system that the file is about to be read here and there, so that it reads no
    /// further than it must. A hint, like [`advise_sequential`](FileMapping::advise_sequential).
    pub fn advise_random(&self) {
        #[cfg(unix)]
        if let Some(map) = &self.map {
            // Only a hint, so nothing depends on its success.
            let _ = map.advise(memmap2::Advice::Random);
        }
    }

    /// Whether the page with byte `place` of the file is in memory, so that a read does not wait
    /// for the disk. `true` if the system does not say, and beyond the end.
    pub fn is_resident(&self, place: usize) -> bool {
        #[cfg(all(target_os = "linux", not(miri)))]
        if let Some(map) = &self.map
            && place < map.len()
        {
            // The smallest page size. On systems with this size, the rounded address begins a page.
            const PAGE: usize = 1 << 12;
            let start = map.as_ptr().wrapping_add(place / PAGE * PAGE).cast_mut();
            let mut states = [0u8; 1];
            // SAFETY: the byte at `place` lies within the mapping, so its page does; `mincore` only
            // looks up the state of that one page (a length of 1 is rounded up to it) and writes
            // one byte, for which there is room. Where pages are larger it refuses an address
            // within one, and that counts as not known.
            let asked = unsafe { libc::mincore(start.cast(), 1, states.as_mut_ptr()) };
            return asked != 0 || states[0] & 1 == 1;
        }
        let _ = place;
        true
    }

    /// Tells the system that the bytes of each of these ranges (cut to the file's length) are about
    /// to be read, so that it reads all of them at once instead of one after the other on first
    /// use. Ranges should be sorted by their start: then a page that neighbours share is requested
    /// once. A hint, like [`advise_sequential`](FileMapping::advise_sequential).
    pub fn advise_needed(&self, ranges: impl IntoIterator<Item = Range<usize>>) {
        #[cfg(unix)]
        if let Some(map) = &self.map {
            const GRAIN: usize = 1 << 12;
            let mut asked = 0..0;
            for range in ranges {
                let start = range.start.min(map.len()) / GRAIN * GRAIN;
                let end = range.end.min(map.len()).next_multiple_of(GRAIN).min(map.len());
                if start >= end || (asked.start <= start && end <= asked.end) {
                    continue;
                }
                // Only a hint, so nothing depends on its success.
                let _ = map.advise_range(memmap2::Advice::WillNeed, start, end - start);
                asked = start..end;
            }
        }
        #[cfg(not(unix))]
        drop(ranges);
    }

    /// Takes the pages that lie wholly within `range` (bytes of the file, cut to its length) out of
    /// this process's resident memory. For loaders that have copied the bytes elsewhere. The bytes
    /// stay readable: the next access reads them from the file again. A hint, like
    /// [`advise_sequential`](FileMapping::advise_sequential).
    pub fn release_pages(&self, range: Range<usize>) {
        #[cfg(unix)]
        if let Some(map) = &self.map {
            // Rounded inwards to 64 KiB, the largest page size in use, so that no page still needed
            // by a reader at either edge is dropped.
            const GRAIN: usize = 1 << 16;
            let start = range.start.min(map.len()).next_multiple_of(GRAIN);
            let end = if range.end >= map.len() { map.len() } else { range.end / GRAIN * GRAIN };
            if start < end {
                // SAFETY: dropping pages of a shared, read-only file mapping loses nothing: the
                // next access brings the same file contents back. (The call is unsafe because on
                // private or anonymous memory it would reset bytes.)
                let _ = unsafe {
                    map.unchecked_advise_range(
                        memmap2::UncheckedAdvice::DontNeed,
                        start,
                        end - start,
                    )
                };
            }
        }
        #[cfg(not(unix))]
        let _ = range;
    }
}

impl Deref for FileMapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl std::fmt::Debug for FileMapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileMapping").field("len", &self.len()).finish()
    }
}
