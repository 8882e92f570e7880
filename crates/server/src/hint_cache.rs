//! Files in which precomputed hints survive a restart.
//!
//! A hint costs minutes to compute and follows from the table and the scheme's parameters alone, so it is kept in a file named by a digest of both. An entry is
//! believed only as far as its checksums reach: whatever is damaged, truncated, or belongs to something else is reported to the caller, who computes the
//! hint again.
//!
//! # The file
//!
//! ```text
//! offset  bytes
//!      0      8  "privhint"
//!      8      4  format version, 1, little-endian
//!     12      4  zero
//!     16     32  key: what the hint belongs to
//!     48      8  length of the hint in bytes, little-endian
//!     56     32  BLAKE3 digest of the hint
//!     88     32  BLAKE3 digest of the 88 bytes before
//!    120   3976  zero, up to the end of the first page
//!   4096    len  the hint
//! ```
//!
//! It is written under a temporary name, synced, renamed, and the directory is synced: a crash at any moment leaves either no entry or a whole one (and
//! perhaps a temporary file, removed by a later start). A whole entry is mapped, not read into memory.

use privet_core::codec::Reader;
use privet_core::{Error, Result, TableIdentity};
use privet_kernels::memory::FileMapping;
use privet_schemes::registry::SchemePlan;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const MAGIC: &[u8; 8] = b"privhint";
const VERSION: u32 = 1;
const SIGNED_LEN: usize = 88;
const HEADER_LEN: usize = 4096;
const TEMPORARY_PREFIX: &str = ".privet-hint-";

/// What a hint belongs to: a digest of the table in its version, the scheme and its parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheKey([u8; 32]);

impl CacheKey {
    pub(crate) fn new(plan: &SchemePlan, identity: &TableIdentity) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("privet 2026-11 hint cache key");
        hasher.update(&plan.digest(identity));
        Self(*hasher.finalize().as_bytes())
    }

    fn file_name(&self) -> String {
        format!("{}.hint", blake3::Hash::from_bytes(self.0).to_hex())
    }
}

/// A directory with hints.
pub(crate) struct HintCache {
    dir: PathBuf,
}

/// A hint as it lies in a file whose checksums have been verified.
pub(crate) struct CachedHint {
    mapping: FileMapping,
    digest: [u8; 32],
}

impl CachedHint {
    pub(crate) fn as_slice(&self) -> &[u8] {
        // A mapping shorter than this is never verified.
        self.mapping.as_slice().get(HEADER_LEN..).unwrap_or_default()
    }

    pub(crate) fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

impl HintCache {
    /// The cache in `dir`, which is created for this user alone if it is not there.
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        create_private_dir(dir).map_err(|source| {
            Error::unavailable(format!("cannot use {} as a cache directory", dir.display()))
                .caused_by(source)
        })?;
        let cache = Self { dir: dir.to_owned() };
        cache.remove_leftovers();
        Ok(cache)
    }

    /// Where the entry for `key` is, if it is.
    pub(crate) fn path(&self, key: &CacheKey) -> PathBuf {
        self.dir.join(key.file_name())
    }

    /// The hint for `key`, which must have `len` bytes; `None` if there is no entry.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted), naming the file, if there is an entry that cannot be used.
    pub(crate) fn load(&self, key: &CacheKey, len: u64) -> Result<Option<CachedHint>> {
        let path = self.path(key);
        let mapping = match FileMapping::open(&path) {
            Ok(mapping) => mapping,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(unusable(&path, "it cannot be opened").caused_by(error)),
        };
        let digest = verify(mapping.as_slice(), key, len)
            .map_err(|error| unusable(&path, error.message()).caused_by(error))?;
        Ok(Some(CachedHint { mapping, digest }))
    }

    /// Writes the hint for `key` in place of whatever entry there is.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be written; no half-written entry is left.
    pub(crate) fn store(&self, key: &CacheKey, hint: &[u8]) -> Result<()> {
        self.write(key, hint).map_err(|source| {
            Error::unavailable(format!("cannot write {}", self.path(key).display()))
                .caused_by(source)
        })
    }

    fn write(&self, key: &CacheKey, hint: &[u8]) -> std::io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(TEMPORARY_PREFIX).tempfile_in(&self.dir)?;
        file.write_all(&header(key, hint))?;
        file.write_all(hint)?;
        file.as_file().sync_all()?;
        file.persist(self.path(key)).map_err(|error| error.error)?;
        sync_dir(&self.dir)
    }

    /// Removes temporary files of writers that crashed: those a day old, so that no writer at work loses its file.
    fn remove_leftovers(&self) {
        let Ok(entries) = fs::read_dir(&self.dir) else { return };
        let old = SystemTime::now() - Duration::from_secs(24 * 3600);
        for entry in entries.flatten() {
            let ours =
                entry.file_name().to_str().is_some_and(|name| name.starts_with(TEMPORARY_PREFIX));
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            if ours && modified.is_ok_and(|modified| modified < old) {
                // Another server may have been quicker; then there is nothing left to do.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn header(key: &CacheKey, hint: &[u8]) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER_LEN);
    header.extend(MAGIC);
    header.extend(VERSION.to_le_bytes());
    header.extend([0; 4]);
    header.extend(key.0);
    header.extend((hint.len() as u64).to_le_bytes());
    header.extend(blake3::hash(hint).as_bytes());
    header.extend(blake3::hash(&header).as_bytes());
    header.resize(HEADER_LEN, 0);
    header
}

/// Checks a whole file; returns the digest of the hint in it.
fn verify(file: &[u8], key: &CacheKey, len: u64) -> Result<[u8; 32]> {
    let corrupted = |what: &str| Err(Error::corrupted(what));
    let Some((header, hint)) = file.split_at_checked(HEADER_LEN) else {
        return corrupted("it ends within its header");
    };
    let mut reader = Reader::new("the header of a cached hint", header);
    if reader.array::<8>()? != *MAGIC {
        return corrupted("it is no cached hint");
    }
    if reader.u32()? != VERSION {
        return corrupted("it was written by another release");
    }
    if reader.u32()? != 0 {
        return corrupted("its header is damaged");
    }
    let found = CacheKey(reader.array()?);
    let announced = reader.u64()?;
    let digest: [u8; 32] = reader.array()?;
    if blake3::hash(&header[..SIGNED_LEN]) != blake3::Hash::from_bytes(reader.array()?) {
        return corrupted("its header is damaged");
    }
    if reader.bytes(reader.remaining())?.iter().any(|byte| *byte != 0) {
        return corrupted("its header is damaged");
    }
    if found != *key {
        return corrupted("it belongs to another table, version or scheme");
    }
    if announced != len || hint.len() as u64 != len {
        return Err(Error::corrupted(format!(
            "it holds {} bytes of hint, {len} are prescribed",
            hint.len()
        )));
    }
    if blake3::hash(hint) != blake3::Hash::from_bytes(digest) {
        return corrupted("the hint in it is damaged");
    }
    Ok(digest)
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

/// Makes the renaming of a file in `dir` durable. Systems that cannot open a directory do not need it.
fn sync_dir(dir: &Path) -> std::io::Result<()> {
    if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests;
