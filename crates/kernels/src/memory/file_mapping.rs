//! Read-only mappings of whole files.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

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
/// Pages are read from disk when first touched and may be dropped and read again by the system. A table
/// is therefore usable at once after [`open`](FileMapping::open), however large it is.
///
/// # A file that changes underneath
///
/// The mapping shows the file, not a copy of it. If another process *writes* to the file, the bytes seen
/// here change. If another process *truncates* it, touching a page beyond the new end kills this
/// process with `SIGBUS`; no check made beforehand can exclude that. Callers therefore map only files
/// that nobody changes in place: Privet's own snapshot files are written under a temporary name, synced
/// and renamed, and a new epoch is a new file. A caller who must read a file that others may truncate
/// reads it with ordinary reads into a [`HugeBuffer`](super::HugeBuffer) instead; so does one who copies
/// the table into memory anyway.
pub struct FileMapping {
    // None for an empty file, which operating systems refuse to map.
    map: Option<memmap2::Mmap>,
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

    /// Maps a file that is open already, whatever has its name by now. `path` is for messages.
    ///
    /// # Errors
    ///
    /// When it is no regular file or the system refuses the mapping.
    pub fn of(file: &File, path: &Path) -> Result<FileMapping, MappingError> {
        let failed = |action| move |source| MappingError { path: path.to_owned(), action, source };
        let metadata = file.metadata().map_err(failed("inspect"))?;
        if !metadata.is_file() {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
            return Err(failed("map")(source));
        }
        if metadata.len() == 0 {
            return Ok(FileMapping { map: None });
        }
        // SAFETY: the mapping is read-only and owned by the value, so the memory stays valid while it is
        // borrowed. That nobody changes the file meanwhile is the documented duty of the caller, as it
        // must be for every file mapping.
        let map = unsafe { memmap2::Mmap::map(file) }.map_err(failed("map"))?;
        Ok(FileMapping { map: Some(map) })
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

    /// Tells the system that the file is about to be read here and there, so that it reads no further than it
    /// must. A hint, like [`advise_sequential`](FileMapping::advise_sequential).
    pub fn advise_random(&self) {
        #[cfg(unix)]
        if let Some(map) = &self.map {
            // Only a hint, so nothing depends on its success.
            let _ = map.advise(memmap2::Advice::Random);
        }
    }

    /// Whether the page that has byte `place` (of the file) is in memory, so that reading it waits for no disk. `true` where
    /// the system does not say, and beyond the end.
    pub fn is_resident(&self, place: usize) -> bool {
        #[cfg(all(target_os = "linux", not(miri)))]
        if let Some(map) = &self.map
            && place < map.len()
        {
            // The smallest page there is, so that the address asked about begins one on every system that has it.
            const PAGE: usize = 1 << 12;
            let start = map.as_ptr().wrapping_add(place / PAGE * PAGE).cast_mut();
            let mut states = [0u8; 1];
            // SAFETY: the byte at `place` lies within the mapping, so its page does; `mincore` only looks up the state of
            // that one page (a length of 1 is rounded up to it) and writes one byte, for which there is room. Where pages are
            // larger it refuses an address within one, and that counts as not known.
            let asked = unsafe { libc::mincore(start.cast(), 1, states.as_mut_ptr()) };
            return asked != 0 || states[0] & 1 == 1;
        }
        let _ = place;
        true
    }

    /// Tells the system that the bytes of each of these ranges (cut to the file's length) are about to be read, so that
    /// it reads all of them at once instead of one after the other as they are touched. Ranges should come
    /// sorted by their start: each page is asked for once where neighbours share it. A hint, like
    /// [`advise_sequential`](FileMapping::advise_sequential).
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

    /// Takes the pages that lie wholly within `range` (bytes of the file, cut to its length) out of this
    /// process's resident memory, for use behind a loader that has copied them elsewhere. The bytes stay
    /// readable: touching them again reads them again. A hint, like
    /// [`advise_sequential`](FileMapping::advise_sequential).
    pub fn release_pages(&self, range: Range<usize>) {
        #[cfg(unix)]
        if let Some(map) = &self.map {
            // Rounded inwards to 64 KiB, the largest page size in use, so that no page still needed by a
            // reader at either edge is dropped.
            const GRAIN: usize = 1 << 16;
            let start = range.start.min(map.len()).next_multiple_of(GRAIN);
            let end = if range.end >= map.len() { map.len() } else { range.end / GRAIN * GRAIN };
            if start < end {
                // SAFETY: dropping pages of a shared, read-only file mapping loses nothing: the next
                // access brings the same file contents back. (The call is unsafe because on private or
                // anonymous memory it would reset bytes.)
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
