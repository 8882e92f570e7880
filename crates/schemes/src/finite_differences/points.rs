//! The points of a table: what a server answers from, in memory or in a file.

use privet_core::{Error, Reason, Result};
#[cfg(not(target_family = "wasm"))]
use privet_kernels::memory::FileMapping;
use privet_kernels::memory::HugeBuffer;
use std::ops::{Deref, Range};

/// A place for points that need not fit into memory: bytes that are written, and read back,
/// anywhere. Several threads may do either at once, in parts that do not overlap.
pub trait PointsStore: Sync {
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

/// A copy of the table's records, from which the points are computed.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the memory cannot be had.
pub(super) fn copy_of(records: &[u8]) -> Result<HugeBuffer<u8>> {
    let mut copy = HugeBuffer::new_zeroed(records.len())
        .map_err(|error| Error::unavailable("no memory for the table").caused_by(error))?;
    copy.copy_from_slice(records);
    Ok(copy)
}

/// Room for so many bytes of points.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the memory cannot be had.
pub(super) fn room_for(bytes: u64) -> Result<HugeBuffer<u8>> {
    zeroed(bytes).map_err(|error| {
        Error::unavailable(format!(
            "no memory for {bytes} bytes of points; compute them into a file, or choose a form that takes less storage, if there is one"
        ))
        .because(Reason::PointsExceedMemory)
        .caused_by(error)
    })
}

/// Room to compute in, for points that go to a store.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the memory cannot be had.
pub(super) fn room_to_compute(bytes: u64) -> Result<HugeBuffer<u8>> {
    zeroed(bytes).map_err(|error| {
        Error::unavailable(format!("no memory to compute in: {bytes} bytes; do with less"))
            .caused_by(error)
    })
}

fn zeroed(bytes: u64) -> Result<HugeBuffer<u8>, privet_kernels::memory::MemoryError> {
    HugeBuffer::new_zeroed(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// The entries of all points, one after the other.
pub struct Points(Place);

enum Place {
    Memory(HugeBuffer<u8>),
    /// From this byte of a file on, to its end.
    #[cfg(not(target_family = "wasm"))]
    File(FileMapping, usize),
}

impl Points {
    /// Points that are left where they are: in a mapped file, from byte `start` on. Each query then
    /// reads as many pages of it as the system has not kept in memory. The mapping should be
    /// [guarded](FileMapping::guarded): a server asks after each answer whether the file was
    /// changed, and takes the answer back if it was.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the file ends before `start`, or they
    /// do not begin with a cache line.
    #[cfg(not(target_family = "wasm"))]
    pub fn in_file(file: FileMapping, start: usize) -> Result<Self> {
        // Mappings begin with a page, and points are read by lines of 64 bytes.
        if start > file.len() || !start.is_multiple_of(64) {
            return Err(Error::corrupted("the file does not hold points where they should begin"));
        }
        file.advise_random();
        Ok(Self(Place::File(file, start)))
    }

    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) unless they are of so many bytes.
    pub(super) fn check_len(&self, bytes: u64) -> Result<()> {
        match self.len() as u64 {
            len if len == bytes => Ok(()),
            len => Err(Error::corrupted(format!(
                "the points take {bytes} bytes, {len} are there: they belong to another table, or the file is damaged; compute them again"
            ))),
        }
    }

    /// Says that these bytes are about to be read. Those in a file are then fetched all at once,
    /// rather than one page after the other as they are touched, while all other queries wait. That
    /// costs a call of the system for each page, ten times as much as the reading where they are in
    /// memory anyway: so nothing is asked for if all of a `sample` of them is there.
    pub(super) fn expect(
        &self,
        sample: impl IntoIterator<Item = Range<u64>>,
        ranges: impl IntoIterator<Item = Range<u64>>,
    ) {
        #[cfg(not(target_family = "wasm"))]
        if let Place::File(file, start) = &self.0 {
            // Points that are mapped can be counted.
            let place =
                |range: Range<u64>| start + range.start as usize..start + range.end as usize;
            if !sample.into_iter().all(|range| file.is_resident(place(range).start)) {
                file.advise_needed(ranges.into_iter().map(place));
            }
        }
        #[cfg(target_family = "wasm")]
        drop((sample, ranges));
    }

    /// That nobody has changed the file that they lie in, if they lie in one.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted), with the file's name, if somebody has.
    pub(super) fn check_unchanged(&self) -> Result<()> {
        match &self.0 {
            Place::Memory(_) => Ok(()),
            #[cfg(not(target_family = "wasm"))]
            Place::File(file, _) => file
                .check_unchanged()
                .map_err(|error| Error::corrupted(error.to_string()).caused_by(error)),
        }
    }

    /// All of them, if they are in memory.
    pub(super) fn in_memory(&self) -> Option<&[u8]> {
        match &self.0 {
            Place::Memory(buffer) => Some(buffer),
            #[cfg(not(target_family = "wasm"))]
            Place::File(..) => None,
        }
    }

    /// How much of them the system backs with huge pages, if it says: nothing of a file.
    pub fn huge_page_bytes(&self) -> Option<u64> {
        match &self.0 {
            Place::Memory(buffer) => buffer.huge_page_bytes().map(|bytes| bytes as u64),
            #[cfg(not(target_family = "wasm"))]
            Place::File(..) => None,
        }
    }

    /// Memory that they hold, in bytes: none for a file, whose pages the system takes back when it
    /// needs them.
    pub fn resident_bytes(&self) -> u64 {
        match &self.0 {
            Place::Memory(buffer) => buffer.len() as u64,
            #[cfg(not(target_family = "wasm"))]
            Place::File(..) => 0,
        }
    }
}

impl From<HugeBuffer<u8>> for Points {
    fn from(buffer: HugeBuffer<u8>) -> Self {
        Self(Place::Memory(buffer))
    }
}

impl Deref for Points {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Place::Memory(buffer) => buffer,
            #[cfg(not(target_family = "wasm"))]
            Place::File(file, start) => file.get(*start..).unwrap_or_default(),
        }
    }
}
