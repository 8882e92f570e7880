//! Files that keep precomputed data of a table across a restart.
//!
//! A hint costs minutes to compute and follows only from the table and the scheme's parameters, so
//! it is kept in a file whose name is a digest of both. If the scheme's server keeps a part of the
//! computation for itself, the same entry holds that too: each of the two is useless without the
//! other. An entry is believed only as far as its checksums reach. If anything is damaged,
//! truncated, or belongs to something else, the caller gets an error and computes all of it again.
//!
//! # The file
//!
//! ```text
//! offset  bytes
//!      0      8  "privhint"
//!      8      4  format version, 3, little-endian
//!     12      4  zero
//!     16     32  key: what the entry belongs to
//!     48      8  length of the hint in bytes, little-endian
//!     56     32  BLAKE3 digest of the hint
//!     88      8  length of what the server keeps in bytes, little-endian
//!     96     32  BLAKE3 digest of what the server keeps
//!    128     32  BLAKE3 digest of the 128 bytes before
//!    160   3936  zero, up to the end of the first page
//!   4096         the hint, then what the server keeps
//! ```
//!
//! One of the two parts may be empty. If both are, no file is kept.
//!
//! It is written under a temporary name, synced, renamed, and the directory is synced. A crash at
//! any moment leaves either no entry or a whole one (and perhaps a temporary file, which the next
//! start removes). A writer holds a shared lock on the directory meanwhile, and who removes
//! temporary files holds it alone, so no writer loses its own. Entries are not held in memory:
//! clients' downloads are read from the file, piece by piece. The server's part is mapped while a
//! server is being made of it.
//!
//! # What is removed
//!
//! A file's name begins with the table and the scheme. Once a version's entry is there, those of
//! the table's other versions are removed. Tables that are built anew have new names, so entries
//! that are old and in nobody's use are removed as well. Whoever uses an entry holds a shared lock
//! on it, and such an entry stays: another server may be behind by some updates. What is removed by
//! mistake costs the time to compute it again.

use privet_core::codec::Reader;
use privet_core::{Error, PIECE_BYTES, Result, TableId, TableIdentity};
use privet_kernels::memory::FileMapping;
use privet_schemes::SchemeId;
use privet_schemes::registry::SchemePlan;
use privet_table::positioned::read_exact_at;
use std::fs::{self, File};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const MAGIC: &[u8; 8] = b"privhint";
/// Since version 3, entries are computed only from verified records.
const VERSION: u32 = 3;
const SIGNED_LEN: usize = 128;
const HEADER_LEN: usize = 4096;
const TEMPORARY_PREFIX: &str = ".privet-hint-";
const EXTENSION: &str = ".hint";

/// An entry that nobody uses is removed when it was written so long ago.
const UNUSED: Duration = Duration::from_secs(90 * 24 * 3600);

/// Identifies an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheKey {
    table: TableId,
    scheme: SchemeId,
    /// Of the table in its version, the scheme and its parameters.
    digest: [u8; 32],
}

impl CacheKey {
    pub(crate) fn new(plan: &SchemePlan, identity: &TableIdentity) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("privet 2026-11 hint cache key");
        hasher.update(&plan.digest(identity));
        let digest = *hasher.finalize().as_bytes();
        Self { table: identity.id, scheme: plan.scheme, digest }
    }

    /// What the names of all versions' entries begin with.
    fn begins(&self) -> String {
        format!("{}-{}-", self.table, self.scheme)
    }

    fn file_name(&self) -> String {
        format!("{}{}", self.begins(), self.earlier_file_name())
    }

    /// The name that earlier releases gave.
    fn earlier_file_name(&self) -> String {
        format!("{}{EXTENSION}", blake3::Hash::from_bytes(self.digest).to_hex())
    }
}

/// The lengths of an entry's two parts, in bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartLengths {
    pub(crate) hint: u64,
    pub(crate) kept: u64,
}

/// A directory with entries.
pub(crate) struct HintCache {
    dir: PathBuf,
}

/// An entry in a file whose checksums have been verified.
pub(crate) struct CachedEntry {
    mapping: FileMapping,
    kept_start: usize,
    hint_digest: [u8; 32],
}

impl CachedEntry {
    /// The mapped hint, which clients download: [check](Self::check_unchanged) the file after use.
    #[cfg(test)]
    pub(crate) fn hint(&self) -> &[u8] {
        // A mapping shorter than this never passes verification.
        self.mapping.as_slice().get(HEADER_LEN..self.kept_start).unwrap_or_default()
    }

    /// The length of the hint, in bytes.
    pub(crate) fn hint_len(&self) -> u64 {
        (self.kept_start - HEADER_LEN) as u64
    }

    /// Fills `out` with the hint's bytes from byte `offset` on. They must lie within the hint.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted), naming the file, if the bytes are not
    /// there.
    pub(crate) fn read_hint(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        read_exact_at(self.mapping.file(), HEADER_LEN as u64 + offset, out)
            .map_err(|error| unusable(self.file(), "it cannot be read").caused_by(error))
    }

    /// Checks that the file is still as it was loaded, as far as the system can say without reading
    /// it.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted), naming the file, if it is not.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        self.mapping.check_unchanged().map_err(|error| {
            unusable(self.file(), "it was changed while it was in use").caused_by(error)
        })
    }

    /// The file.
    pub(crate) fn file(&self) -> &Path {
        self.mapping.path()
    }

    pub(crate) fn hint_digest(&self) -> [u8; 32] {
        self.hint_digest
    }

    /// The mapped part that the server needs to answer: [check](Self::check_unchanged) the file
    /// after use.
    pub(crate) fn kept(&self) -> &[u8] {
        self.mapping.as_slice().get(self.kept_start..).unwrap_or_default()
    }

    /// Says that the caller will not read [`kept`](Self::kept) again. Nothing of the mapping then
    /// stays in memory: the hint is sent with ordinary reads.
    pub(crate) fn release(&self) {
        self.mapping.release_pages(0..self.mapping.len());
    }
}

impl HintCache {
    /// The cache in `dir`. If the directory is missing, it is created for this user alone.
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        create_private_dir(dir).map_err(|source| {
            Error::unavailable(format!("cannot use {} as a cache directory", dir.display()))
                .caused_by(source)
        })?;
        let cache = Self { dir: dir.to_owned() };
        cache.remove_leftovers();
        Ok(cache)
    }

    /// The path of the entry for `key`, whether or not it exists.
    pub(crate) fn path(&self, key: &CacheKey) -> PathBuf {
        self.dir.join(key.file_name())
    }

    /// The entry for `key`, whose parts must have these lengths; `None` if there is none.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted), naming the file, if the entry cannot be
    /// used.
    pub(crate) fn load(&self, key: &CacheKey, lengths: PartLengths) -> Result<Option<CachedEntry>> {
        let path = self.path(key);
        // Mostly there is none, and no such name.
        let _ = fs::rename(self.dir.join(key.earlier_file_name()), &path);
        let mapping = match FileMapping::open(&path) {
            Ok(mapping) => mapping.guarded(),
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(unusable(&path, "it cannot be opened").caused_by(error)),
        };
        // Held as long as the mapping. Where files have no locks, nothing is removed either.
        let _ = mapping.file().try_lock_shared();
        let was_read = |range| mapping.release_pages(range);
        let (hint, hint_digest) = verify(mapping.as_slice(), key, lengths, &was_read)
            .map_err(|error| unusable(&path, error.message()).caused_by(error))?;
        let kept_start = HEADER_LEN + hint.len();
        let entry = CachedEntry { mapping, kept_start, hint_digest };
        entry.check_unchanged()?;
        Ok(Some(entry))
    }

    /// Writes the entry for `key`, and replaces any that is there.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be written; no
    /// half-written entry is left.
    pub(crate) fn store(&self, key: &CacheKey, hint: &[u8], kept: &[u8]) -> Result<()> {
        self.write(key, hint, kept).map_err(|source| {
            Error::unavailable(format!("cannot write {}", self.path(key).display()))
                .caused_by(source)
        })
    }

    fn write(&self, key: &CacheKey, hint: &[u8], kept: &[u8]) -> std::io::Result<()> {
        // Where directories have no locks, nothing is removed from them.
        let dir = File::open(&self.dir).ok();
        let _writing = dir.filter(|dir| dir.lock_shared().is_ok());
        let mut file = tempfile::Builder::new().prefix(TEMPORARY_PREFIX).tempfile_in(&self.dir)?;
        file.write_all(&header(key, hint, kept))?;
        file.write_all(hint)?;
        file.write_all(kept)?;
        file.as_file().sync_all()?;
        file.persist(self.path(key)).map_err(|error| error.error)?;
        sync_dir(&self.dir)
    }

    /// Removes the entries of other versions of the key's table that nobody uses.
    pub(crate) fn remove_other_versions(&self, key: &CacheKey) {
        let (begins, name) = (key.begins(), key.file_name());
        // The name of a scheme may begin with another's.
        let is_of_table = |other: &str| other.strip_prefix(&begins).is_some_and(is_digest);
        self.remove_idle(|other, _| is_of_table(other) && other != name);
    }

    /// Removes entries that are old and that nobody uses: of tables that are no longer served.
    pub(crate) fn remove_unused(&self) {
        let old = SystemTime::now() - UNUSED;
        let is_ours = |name: &str| name.rsplit('-').next().is_some_and(is_digest);
        self.remove_idle(|name, modified| is_ours(name) && modified < old);
    }

    /// Removes those entries that nobody uses of which `is_it` is true, by name and age.
    fn remove_idle(&self, is_it: impl Fn(&str, SystemTime) -> bool) {
        let Ok(entries) = fs::read_dir(&self.dir) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| name.ends_with(EXTENSION)) else {
                continue;
            };
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            if !modified.is_ok_and(|modified| is_it(name, modified)) {
                continue;
            }
            // Whoever opens it after the lock is taken still has it, without a name.
            if File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok())
                && fs::remove_file(entry.path()).is_ok()
            {
                tracing::info!(file = %entry.path().display(), "cached hint removed: out of date");
            }
        }
    }

    /// Removes temporary files of writers that ended amid their work, unless one is at work now.
    fn remove_leftovers(&self) {
        let dir = File::open(&self.dir).ok();
        let Some(_alone) = dir.filter(|dir| dir.try_lock().is_ok()) else { return };
        let Ok(entries) = fs::read_dir(&self.dir) else { return };
        for entry in entries.flatten() {
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(TEMPORARY_PREFIX)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Whether the name of an entry goes on with nothing but its digest.
fn is_digest(rest: &str) -> bool {
    let digest = rest.strip_suffix(EXTENSION).unwrap_or_default();
    blake3::Hash::from_hex(digest).is_ok()
}

fn header(key: &CacheKey, hint: &[u8], kept: &[u8]) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER_LEN);
    header.extend(MAGIC);
    header.extend(VERSION.to_le_bytes());
    header.extend([0; 4]);
    header.extend(key.digest);
    for part in [hint, kept] {
        header.extend((part.len() as u64).to_le_bytes());
        header.extend(blake3::hash(part).as_bytes());
    }
    header.extend(blake3::hash(&header).as_bytes());
    header.resize(HEADER_LEN, 0);
    header
}

/// Checks a whole file; returns the hint in it and its digest. Calls `was_read` with each range
/// that was read to the end, so that the file need not be in memory as a whole: what was computed
/// may still be there.
fn verify<'a>(
    file: &'a [u8],
    key: &CacheKey,
    lengths: PartLengths,
    was_read: &dyn Fn(Range<usize>),
) -> Result<(&'a [u8], [u8; 32])> {
    let corrupted = |what: &str| Err(Error::corrupted(what));
    let Some((header, parts)) = file.split_at_checked(HEADER_LEN) else {
        return corrupted("it ends within its header");
    };
    let mut reader = Reader::new("the header of a cached hint", header);
    if reader.array::<8>()? != *MAGIC {
        return corrupted("it is no cached hint");
    }
    // Check this before the other fields: they have other places in other versions.
    if reader.u32()? != VERSION {
        return corrupted("it was written by another release");
    }
    if reader.u32()? != 0 {
        return corrupted("its header is damaged");
    }
    let found: [u8; 32] = reader.array()?;
    let mut announced =
        || Ok::<_, Error>((reader.u64()?, blake3::Hash::from(reader.array::<32>()?)));
    let (hint_len, hint_digest) = announced()?;
    let (kept_len, kept_digest) = announced()?;
    if blake3::hash(&header[..SIGNED_LEN]) != blake3::Hash::from_bytes(reader.array()?) {
        return corrupted("its header is damaged");
    }
    if reader.bytes(reader.remaining())?.iter().any(|byte| *byte != 0) {
        return corrupted("its header is damaged");
    }
    if found != key.digest {
        return corrupted("it belongs to another table, version or scheme");
    }
    if (PartLengths { hint: hint_len, kept: kept_len }) != lengths {
        return Err(Error::corrupted(format!(
            "it holds {hint_len} bytes of hint and {kept_len} of what the server keeps, {} and {} are prescribed",
            lengths.hint, lengths.kept
        )));
    }
    if hint_len.checked_add(kept_len) != Some(parts.len() as u64) {
        return Err(Error::corrupted(format!(
            "after its header it has {} bytes, not {hint_len} and {kept_len}",
            parts.len()
        )));
    }
    // The hint is no longer than the file, so its length fits.
    let kept_start = HEADER_LEN + hint_len as usize;
    let hash = |part: Range<usize>| {
        let mut hasher = blake3::Hasher::new();
        for start in part.clone().step_by(PIECE_BYTES) {
            let piece = start..part.end.min(start + PIECE_BYTES);
            hasher.update(&file[piece.clone()]);
            was_read(piece);
        }
        hasher.finalize()
    };
    if hash(HEADER_LEN..kept_start) != hint_digest {
        return corrupted("the hint in it is damaged");
    }
    if hash(kept_start..file.len()) != kept_digest {
        return corrupted("what the server keeps in it is damaged");
    }
    Ok((&file[HEADER_LEN..kept_start], *hint_digest.as_bytes()))
}

fn unusable(path: &Path, why: &str) -> Error {
    Error::corrupted(format!("the cached hint {} cannot be used: {why}", path.display()))
}

fn create_private_dir(dir: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Makes the renaming of a file in `dir` durable. Systems that cannot open a directory do not need
/// this.
fn sync_dir(dir: &Path) -> std::io::Result<()> {
    if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests;
