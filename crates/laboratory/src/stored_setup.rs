//! Data that a server answers from and that was computed and kept before it starts: the points of
//! finite differences. Other schemes compute what they need at each start.

mod apart;

pub use apart::{plan_of_setup, server_of_setup, setup_bytes, stores_setup, write_setup};

use privet_core::{Error, Result};
use privet_kernels::memory::{FileMapping, HugeBuffer};
use std::ops::{Deref, Range};

/// A place for data that need not fit into memory. Bytes can be written and read back at any
/// offset. Several threads may do both at once, in parts that do not overlap.
pub trait SetupStore: Sync {
    /// Writes all of `bytes` from byte `offset` on.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if they cannot be written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Reads what was written from byte `offset` on.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be read.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<()>;
}

/// The data that a server answers from, computed before it starts: in memory, or in a file.
pub struct StoredSetup(SetupStorage);

enum SetupStorage {
    Memory(HugeBuffer<u8>),
    /// From this byte of a file on, to its end.
    File(FileMapping, usize),
}

impl StoredSetup {
    /// Data that stays in a mapped file, from byte `start` on. Each query reads from disk the pages
    /// that the system has not kept in memory. The mapping should be
    /// [guarded](FileMapping::guarded): a server checks after each answer whether the file was
    /// changed, and discards the answer if it was.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the file ends before `start`, or it
    /// does not begin with a cache line.
    pub fn in_file(file: FileMapping, start: usize) -> Result<Self> {
        // Mappings begin with a page, and the data is read by lines of 64 bytes.
        if start > file.len() || !start.is_multiple_of(64) {
            return Err(Error::corrupted("the file does not hold what should begin there"));
        }
        file.advise_random();
        Ok(Self(SetupStorage::File(file, start)))
    }

    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) unless it has `bytes` bytes.
    pub fn check_len(&self, bytes: u64) -> Result<()> {
        match self.len() as u64 {
            len if len == bytes => Ok(()),
            len => Err(Error::corrupted(format!(
                "the points must have {bytes} bytes, but have {len}: they belong to another table, or the file is damaged; compute them again"
            ))),
        }
    }

    /// Announces that these bytes will be read soon. If they lie in a file, the system then fetches
    /// all of them at once. Otherwise it would fetch one page after the other on first use, while
    /// all other queries wait. The announcement takes a system call for each page, ten times as
    /// long as the read itself if the page is already in memory. So it is left out if all of a
    /// `sample` of the bytes are in memory.
    pub fn expect(
        &self,
        sample: impl IntoIterator<Item = Range<u64>>,
        ranges: impl IntoIterator<Item = Range<u64>>,
    ) {
        if let SetupStorage::File(file, start) = &self.0 {
            // A mapping has no more bytes than an address can count.
            let place =
                |range: Range<u64>| start + range.start as usize..start + range.end as usize;
            if !sample.into_iter().all(|range| file.is_resident(place(range).start)) {
                file.advise_needed(ranges.into_iter().map(place));
            }
        }
    }

    /// Checks that nobody has changed the file with the data, if it lies in one.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted), with the file's name, if somebody has.
    pub fn check_unchanged(&self) -> Result<()> {
        match &self.0 {
            SetupStorage::Memory(_) => Ok(()),
            SetupStorage::File(file, _) => file
                .check_unchanged()
                .map_err(|error| Error::corrupted(error.to_string()).caused_by(error)),
        }
    }

    /// All of the data, if it is in memory.
    pub fn in_memory(&self) -> Option<&[u8]> {
        match &self.0 {
            SetupStorage::Memory(buffer) => Some(buffer),
            SetupStorage::File(..) => None,
        }
    }

    /// How many bytes the system backs with huge pages, if it says; none of a file.
    pub fn huge_page_bytes(&self) -> Option<u64> {
        match &self.0 {
            SetupStorage::Memory(buffer) => buffer.huge_page_bytes().map(|bytes| bytes as u64),
            SetupStorage::File(..) => None,
        }
    }

    /// Memory that it holds, in bytes: none for a file, whose pages the system takes back when it
    /// needs them.
    pub fn resident_bytes(&self) -> u64 {
        match &self.0 {
            SetupStorage::Memory(buffer) => buffer.len() as u64,
            SetupStorage::File(..) => 0,
        }
    }
}

impl From<HugeBuffer<u8>> for StoredSetup {
    fn from(buffer: HugeBuffer<u8>) -> Self {
        Self(SetupStorage::Memory(buffer))
    }
}

impl Deref for StoredSetup {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            SetupStorage::Memory(buffer) => buffer,
            SetupStorage::File(file, start) => file.get(*start..).unwrap_or_default(),
        }
    }
}
