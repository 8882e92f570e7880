//! The points of a table in a file of their own.
//!
//! A server of finite differences does not answer from the table but from its *points*: values of a
//! polynomial that were computed from the table, many times as many bytes. They follow only from
//! the table, the scheme and its parameters. They take minutes and gigabytes to compute, and may
//! not fit into memory. So they are computed once, into a file, and then served from it by any
//! number of servers, after any number of restarts.
//!
//! Points are bytes here, and scheme and parameters are only fields that describe them.
//!
//! # Layout
//!
//! All numbers are little-endian. Offsets are in bytes.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | magic: `89 50 52 56 50 0d 0a 1a`, which is `PRVP` between bytes that a transfer in text mode damages |
//! | 8 | 4 | format version, 1 |
//! | 12 | 4 | length *h* of the header, checksum included |
//! | 16 | 16 | id of the table |
//! | 32 | 8 | epoch of the table |
//! | 40 | 8 | number of the table's records |
//! | 48 | 8 | bytes of a record |
//! | 56 | 32 | the table's digest, see [`digest`](privet_table::digest) |
//! | 88 | 8 | offset of the points: *h*, rounded up to a multiple of 4096 |
//! | 96 | 8 | length of the points, at least 1 |
//! | 104 | 32 | BLAKE3 digest of the points |
//! | 136 | | three strings, each with its length before it (2 bytes): the scheme (1 to 64 bytes), its parameters in their canonical encoding (at most 4096 bytes), the program that wrote the file (at most 64 bytes) |
//! | *h* − 32 | 32 | BLAKE3 checksum of all header bytes before it |
//! | *h* | | zeros up to the points |
//! | points offset | | the points, to the end of the file |
//!
//! # What is checked when
//!
//! [`PointsFile::open`] checks everything before the points (magic, version, checksum, the zeros)
//! and the exact length of the file, so a file that opens is whole.
//! [`check_table`](PointsFile::check_table) checks whether it belongs to a table. The points
//! themselves are compared with their digest when they are [read](PointsFile::read) into memory, or
//! before they are [mapped](PointsFile::map): no server answers from unchecked bytes. BLAKE3 is a
//! tree of hashes, so all cores share that work, in one pass over the file.
//!
//! The checksums find damage, not malice: an attacker who can write the file can give it valid
//! checksums, and wrong points.
//!
//! # A crash while writing
//!
//! [`PointsWriter`] writes to a [new file](privet_table::new_file), whose space on disk is reserved
//! at the beginning. The file has no header until the points are complete. If anything happens
//! before it has its name, the output stays as it was.

mod header;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use header::PointsHeader;
pub(crate) use writer::{PointsPlan, PointsWriter};

use header::{MOST_BEFORE_POINTS, damaged, parse};
use privet_core::{Error, Reason, Result, TableIdentity};
use privet_kernels::memory::FileMapping;
use privet_table::FileKind;
use privet_table::file_pass::{Pass, STEP};
use std::fs::File;
use std::io::{self, Read as _};
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// Points begin at a multiple of this, so that they begin at the start of a page of memory.
pub(crate) const PAGE: u64 = 4096;

/// An open points file.
///
/// It uses ordinary reads, so that a file that is cut short meanwhile gives an error; only
/// [`map`](Self::map) maps it.
pub(crate) struct PointsFile {
    path: PathBuf,
    file: File,
    header: PointsHeader,
    start: u64,
}

impl PointsFile {
    /// Opens the points file at `path` and checks all of it but the points. Reads two pages.
    ///
    /// # Errors
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the file cannot be read.
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it does not exist, is not a points
    ///   file, or has another version.
    /// - [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is damaged or truncated.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let unreadable = |error: io::Error| unreadable(path, error);
        // Check this before opening: opening a pipe waits until another program writes to it.
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(Error::api_misuse("this is no file").within(path.display()));
        }
        let file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        let mut beginning = Vec::new();
        (&file).take(MOST_BEFORE_POINTS).read_to_end(&mut beginning).map_err(unreadable)?;
        let (header, start) =
            parse(&beginning, metadata.len()).map_err(|error| error.within(path.display()))?;
        Ok(Self { path: path.to_owned(), file, header, start })
    }

    /// Whether the file at `path` begins like a points file. `false` for a file that cannot be
    /// read.
    pub(crate) fn is_one(path: &Path) -> bool {
        FileKind::of(path) == Some(FileKind::Points)
    }

    /// What the header says.
    pub(crate) fn header(&self) -> &PointsHeader {
        &self.header
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The length of the file in bytes.
    pub(crate) fn file_bytes(&self) -> u64 {
        // The sum is the checked length of the file.
        self.start + self.header.points_len
    }

    /// Refuses any table but the one, in the one version, that the points were computed from.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the identities of both tables.
    pub(crate) fn check_table(&self, table: &TableIdentity) -> Result<()> {
        let computed_from = &self.header.identity;
        if computed_from == table {
            return Ok(());
        }
        let difference = if computed_from.id != table.id {
            "another table"
        } else if computed_from.epoch != table.epoch {
            "another version of the table"
        } else {
            "a table of the same id and epoch and other contents"
        };
        let words = |table: &TableIdentity| {
            format!(
                "id {}, epoch {}, {} records of {} bytes, digest {}",
                table.id,
                table.epoch.0,
                table.shape.records(),
                table.shape.record_len(),
                table.digest
            )
        };
        Err(Error::api_misuse(format!(
            "these points were computed from {difference}, with {}; the table to be served has {}. Serve them with the table they were computed from, or compute those of this one",
            words(computed_from),
            words(table)
        ))
        .because(Reason::PointsNeeded)
        .within(self.path.display()))
    }

    /// Reads the points into `points`, with so many threads, and compares them with their digest.
    /// `progress` is called with the number of bytes done and the total. After an error, the
    /// contents of `points` are useless.
    ///
    /// # Errors
    /// - [`Blame::Corrupted`](privet_core::Blame::Corrupted) if they differ from what was written.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if they cannot be read.
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) unless `points` has
    ///   [`PointsHeader::points_len`] bytes.
    pub(crate) fn read(
        &self,
        points: &mut [u8],
        threads: NonZero<usize>,
        progress: impl FnMut(u64, u64),
    ) -> Result<()> {
        if points.len() as u64 != self.header.points_len {
            return Err(Error::api_misuse(format!(
                "{} bytes of points do not fit into {}",
                self.header.points_len,
                points.len()
            )));
        }
        let mut pass = self.pass(threads, progress);
        for step in points.chunks_mut(STEP) {
            pass.read(step).map_err(|error| unreadable(&self.path, error))?;
        }
        self.compare(pass)
    }

    /// Reads all points once and compares them with their digest. Needs little memory.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn verify(
        &self,
        threads: NonZero<usize>,
        progress: impl FnMut(u64, u64),
    ) -> Result<()> {
        let mut pass = self.pass(threads, progress);
        pass.read_all().map_err(|error| unreadable(&self.path, error))?;
        self.compare(pass)
    }

    /// Maps the file, for points that should not be held in memory. Returns the mapping, which is
    /// [guarded](FileMapping::guarded), and the position of the points in it. Before using them,
    /// the caller must [verify](Self::verify) them, and check that the mapping is
    /// [unchanged](FileMapping::check_unchanged) since. The mapping is of this very file, even if
    /// the name now leads to another.
    ///
    /// # Errors
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the system does not map it.
    /// - [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it was cut short meanwhile.
    pub(crate) fn map(&self) -> Result<(FileMapping, usize)> {
        let mapping = FileMapping::of(&self.file, &self.path)
            .map_err(|error| Error::unavailable(error.to_string()).caused_by(error))?
            .guarded();
        if mapping.len() as u64 != self.file_bytes() {
            return Err(damaged("it was changed while it was read").within(self.path.display()));
        }
        // It lies within the mapping, so it fits.
        Ok((mapping, self.start as usize))
    }

    fn pass<P: FnMut(u64, u64)>(&self, threads: NonZero<usize>, progress: P) -> Pass<'_, P> {
        Pass::new(&self.file, self.start, self.header.points_len, threads, progress)
    }

    fn compare<P: FnMut(u64, u64)>(&self, pass: Pass<'_, P>) -> Result<()> {
        if pass.digest() == self.header.digest {
            return Ok(());
        }
        Err(damaged("the digest of its points does not match").within(self.path.display()))
    }
}

fn unreadable(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => {
            Error::api_misuse(format!("cannot open {}: {error}; compute it", path.display()))
                .because(Reason::PointsNeeded)
        }
        io::ErrorKind::UnexpectedEof => {
            damaged("it was cut short while it was read").within(path.display())
        }
        _ => Error::unavailable(format!("cannot read {}: {error}", path.display())),
    }
    .caused_by(error)
}
