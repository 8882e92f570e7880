//! A table as a file.
//!
//! A snapshot file holds one table in one version. It is written once, under a temporary name, and
//! never changed: the next version is another file. Only the [mark](Mark) changes, which says how
//! far the table's log of updates reaches. Code that needs single records, or copies all
//! of them elsewhere, uses a mapping of the file. Code that passes a part of them on reads the
//! file.
//!
//! # Layout
//!
//! All numbers are little-endian. Offsets are in bytes.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | magic: `89 50 52 56 54 0d 0a 1a`, which is `PRVT` between bytes that a transfer in text mode damages |
//! | 8 | 4 | format version: 1, or 2 for a table that has a log of updates |
//! | 12 | 4 | length *h* of the header, checksum included |
//! | 16 | 16 | table id |
//! | 32 | 8 | epoch |
//! | 40 | 8 | number of records |
//! | 48 | 8 | bytes of a record |
//! | 56 | 8 | offset of the layout section, *h* |
//! | 64 | 8 | length of the layout section |
//! | 72 | 8 | offset of the records, a multiple of 4096 |
//! | 80 | 32 | BLAKE3 digest of the layout section |
//! | 112 | 32 | BLAKE3 digest of the records |
//! | 144 | 32 | the table's digest, see [`digest`](crate::digest) |
//! | 176 | 1 | what the values are: 0 JSON objects of all columns but the key, 1 JSON objects of named columns, 2 one column's bytes |
//! | 177 | 1 | 1 if there is a key column, else 0 |
//! | 178 | 2 | number of value columns named |
//! | 180 | | strings, each with its length before it (2 bytes): the program that wrote the file, the key column if any, the value columns |
//! | *h* − 32 | 32 | BLAKE3 checksum of all header bytes before it |
//! | *h* | | layout section: an encoded [`TableLayout`], which says whether the table is authenticated |
//! | | | zeros up to a multiple of 4096 |
//! | records offset − 8192 | 8192 | in version 2 only: the [mark](Mark), twice |
//! | records offset | records × bytes | the records, to the end of the file |
//!
//! # What is checked when
//!
//! [`Snapshot::open`] checks everything before the records (magic, version, checksum, digest of the
//! layout, the zeros in between) and the exact length of the file, so a file that opens is whole.
//! It does not read the records; [`Snapshot::verify`] does, and finds any changed bit.
//!
//! # A file that is changed in place
//!
//! Nobody but a [mark](Mark)'s writer should do that, and somebody will: `cp` over a table writes
//! into the served file. If the file is cut short meanwhile, the system ends a program that has
//! mapped it. That is acceptable for a program that does one thing and ends. A server opens the
//! file [guarded](Snapshot::open_guarded): then missing records read as zeros, and
//! [`check_unchanged`](Snapshot::check_unchanged) says that they must not be used.
//!
//! # A crash while writing
//!
//! [`SnapshotWriter`] writes to a temporary file in the directory of the output, syncs it, renames
//! it to the output and syncs the directory. If anything happens before the rename, the output
//! stays as it was; only a crash of the machine may leave a temporary file behind.

mod header;
pub(crate) mod mark;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use header::MAGIC;
pub use header::{SnapshotHeader, ValueForm};
pub use mark::Mark;
pub use writer::{SnapshotPlan, SnapshotWriter};

use crate::digest::layout_digest;
use crate::file_pass::{Pass, STEP};
use crate::positioned::read_exact_at;
use crate::{KeyMap, TableLayout, TableRoot};
use header::ParsedHeader;
use mark::Slots;
use privet_core::{Error, Reason, Result, TableIdentity, TableView};
use privet_kernels::memory::FileMapping;
use std::num::NonZero;
use std::path::Path;
use std::{io, thread};

/// Records begin at a multiple of this, so that they begin at the start of a page of memory.
pub const PAGE: u64 = 4096;

/// An open snapshot file, mapped into memory.
pub struct Snapshot {
    mapping: FileMapping,
    parsed: ParsedHeader,
    // A copy: only records are read from the file later.
    section: Vec<u8>,
    layout: TableLayout,
    /// The mark, as it was when the file was opened.
    slots: Option<Slots>,
}

impl Snapshot {
    /// Opens the snapshot file at `path` and checks all of it but the records. Reads a few pages,
    /// however large the table.
    ///
    /// # Errors
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the file cannot be opened or
    ///   mapped.
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is not a snapshot file, or has
    ///   another version.
    /// - [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is damaged or truncated.
    pub fn open(path: &Path) -> Result<Self> {
        Self::over(Self::map(path)?).map_err(|error| error.within(path.display()))
    }

    /// As [`open`](Self::open), for a process that must not end when the file is truncated while it
    /// is open. Missing records then read as zeros. So after reading records through
    /// [`view`](Self::view) and before using them, call [`check_unchanged`](Self::check_unchanged).
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_guarded(path: &Path) -> Result<Self> {
        let open = || {
            let opened = Self::over(Self::map(path)?.guarded());
            let snapshot: Self = opened.map_err(|error| error.within(path.display()))?;
            if snapshot.header().has_log {
                mark::wait_for_writer(snapshot.mapping.file());
            }
            snapshot.check_unchanged()?;
            // What was read of the mapping would stay in this process's memory.
            snapshot.mapping.release_pages(0..snapshot.mapping.len());
            Ok(snapshot)
        };
        // A file that was mapped while its mark was written has another time afterwards.
        open().or_else(|_: Error| open())
    }

    fn map(path: &Path) -> Result<FileMapping> {
        FileMapping::open(path).map_err(|error| {
            if error.is_not_found() {
                let message = format!("{error}; build it");
                return Error::api_misuse(message).because(Reason::NoTableFile).caused_by(error);
            }
            Error::unavailable(error.to_string()).caused_by(error)
        })
    }

    fn over(mapping: FileMapping) -> Result<Self> {
        let bytes = mapping.as_slice();
        let parsed = ParsedHeader::parse(bytes)?;
        let section = bytes[parsed.layout.clone()].to_vec();
        if layout_digest(&section) != parsed.header.parts.layout {
            return Err(header::damaged("the digest of its layout section does not match"));
        }
        let has_log = parsed.header.has_log;
        let marks = match has_log {
            true => parsed.records.start - mark::BYTES as usize..parsed.records.start,
            false => parsed.records.start..parsed.records.start,
        };
        if bytes[parsed.layout.end..marks.start].iter().any(|&byte| byte != 0) {
            return Err(header::damaged("there is something between its sections"));
        }
        let slots = Slots::read(&bytes[marks], &parsed.checksum);
        if has_log && slots.is_none() {
            return Err(header::damaged("both of its marks are unreadable"));
        }
        let as_damage = |error: Error| header::damaged(error.message());
        let layout = TableLayout::decode(&section).map_err(as_damage)?;
        layout.check_shape(parsed.header.identity.shape).map_err(as_damage)?;
        Ok(Self { mapping, parsed, section, layout, slots })
    }

    /// What the header says.
    pub fn header(&self) -> &SnapshotHeader {
        &self.parsed.header
    }

    /// The table's identity.
    pub fn identity(&self) -> TableIdentity {
        self.header().identity
    }

    /// The table: its records, straight from the mapping.
    pub fn view(&self) -> TableView<'_> {
        TableView::new(self.identity(), self.records()).expect(
            "the length of the records was checked against the shape when the file was opened",
        )
    }

    fn records(&self) -> &[u8] {
        &self.mapping[self.parsed.records.clone()]
    }

    /// How far the table's log of updates reached when the file was opened, if it has one.
    pub fn mark(&self) -> Option<Mark> {
        self.slots.as_ref().and_then(Slots::latest).map(|(mark, _)| mark)
    }

    /// How to read the records.
    pub fn layout(&self) -> &TableLayout {
        &self.layout
    }

    /// The encoded [`TableLayout`], which is what clients download.
    pub fn layout_bytes(&self) -> &[u8] {
        &self.section
    }

    /// The key map, for a table by key.
    pub fn key_map(&self) -> Option<&KeyMap> {
        self.layout.records().key_map()
    }

    /// The root of the table, if it is [authenticated](crate::authentication).
    pub fn root(&self) -> Option<TableRoot> {
        self.layout.root(self.identity().shape)
    }

    /// The length of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.mapping.len() as u64
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.mapping.path()
    }

    /// Reads bytes of the records into all of `into`, from byte `offset` of the records on. Uses an
    /// ordinary read: a file that was cut short gives an error.
    ///
    /// # Errors
    /// - [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the file ends before.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be read.
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if that goes beyond the last record.
    pub fn read_records(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let records = &self.parsed.records;
        if offset.saturating_add(into.len() as u64) > records.len() as u64 {
            return Err(Error::api_misuse("there are not so many records"));
        }
        read_exact_at(self.mapping.file(), records.start as u64 + offset, into)
            .map_err(|error| self.unreadable(error))
    }

    fn unreadable(&self, error: io::Error) -> Error {
        let path = self.path().display();
        match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                header::damaged("it was cut short while it was in use").within(path)
            }
            _ => Error::unavailable(format!("cannot read {path}: {error}")),
        }
        .caused_by(error)
    }

    /// Checks that the file was not written to or cut short since it was opened, as far as the
    /// system says: then everything that was read so far is right. A new [mark](Mark) does not
    /// count.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it was.
    pub fn check_unchanged(&self) -> Result<()> {
        let unchanged = self.mapping.check_unchanged().or_else(|_| {
            mark::wait_for_writer(self.mapping.file());
            self.mapping.check_unchanged()
        });
        unchanged.map_err(|error| Error::corrupted(error.to_string()).caused_by(error))
    }

    /// Reads all records and compares their digest with the header's, on all cores. For an
    /// authenticated table, then also verifies each record against its root. `progress` is called
    /// with the number of bytes done and the total.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if they differ, or a record does not
    /// belong to the root, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the file
    /// cannot be read.
    pub fn verify(&self, progress: impl FnMut(u64, u64)) -> Result<()> {
        let (start, len) = (self.parsed.records.start as u64, self.parsed.records.len());
        let threads = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        let mut pass = Pass::new(self.mapping.file(), start, len as u64, threads, progress);
        let shape = self.identity().shape;
        let record_len = shape.record_len() as usize;
        let authenticated = self.layout().authentication().is_some();
        // Read whole records.
        let step = STEP.max(record_len) / record_len * record_len;
        let mut buffer = vec![0; step.min(len)];
        let (mut index, mut stranger) = (0, None);
        while index < shape.records() {
            let left = usize::try_from(shape.records() - index).unwrap_or(usize::MAX);
            let records = &mut buffer[..left.saturating_mul(record_len).min(step)];
            pass.read(records).map_err(|error| self.unreadable(error))?;
            for record in records.chunks_exact(record_len) {
                if authenticated && stranger.is_none() {
                    let verified = self.layout().verified(shape, index, record);
                    stranger = verified.err().map(|error| (index, error));
                }
                index += 1;
            }
        }
        let damaged = |what: &str| header::damaged(what).within(self.path().display());
        if pass.digest() != self.header().parts.records {
            return Err(damaged("the digest of its records does not match"));
        }
        stranger.map_or(Ok(()), |(index, error)| {
            let what = format!("record {index} does not belong to its root");
            Err(damaged(&what).caused_by(error))
        })
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Snapshot")
            .field("path", &self.path())
            .field("header", self.header())
            .finish()
    }
}
