//! The present table: the records of its snapshot, replaced where epochs have written.

use super::{Chain, RecordBytes, RecordsDigest};
use crate::digest::DigestParts;
use crate::edit::Written;
use crate::snapshot::Snapshot;
use privet_core::{Error, ReadRecords, Result, TableIdentity, TableShape};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// A table after the last epoch of its log.
#[derive(Clone, Copy)]
pub struct CurrentTable<'a> {
    identity: TableIdentity,
    layout_digest: [u8; 32],
    snapshot: &'a [u8],
    written: &'a Written,
}

impl<'a> CurrentTable<'a> {
    /// `written` must have every record beyond the snapshot's.
    pub(super) fn new(chain: &Chain, snapshot: &'a [u8], written: &'a Written) -> Self {
        let (identity, layout_digest) = (chain.identity(), chain.layout_digest());
        Self { identity, layout_digest, snapshot, written }
    }

    /// The same records with another shape, whose new records are in `written`.
    pub(super) fn with_shape(mut self, shape: TableShape) -> Self {
        self.identity.shape = shape;
        self
    }

    /// The table's identity.
    pub fn identity(&self) -> TableIdentity {
        self.identity
    }

    /// Number and width of the records.
    pub fn shape(&self) -> TableShape {
        self.identity.shape
    }

    /// The record numbered `number`, or `None` beyond the end. For the owner of a table, to whom
    /// nothing in it is secret.
    pub fn record(&self, number: u64) -> Option<&'a [u8]> {
        if let Some(record) = self.written.get(&number) {
            return Some(record);
        }
        let len = self.shape().record_len();
        let start = number.checked_mul(len)?;
        let end = start.checked_add(len)?;
        self.snapshot.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    /// All records in a row.
    #[cfg(test)]
    pub(super) fn to_vec(self) -> Vec<u8> {
        self.range(0..self.byte_len()).into_owned()
    }

    /// The digest of all records: reads all of them, and checks that they are the table's.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if they are not.
    pub fn verified_digest(&self) -> Result<RecordsDigest> {
        let digest = RecordsDigest::of(self);
        let parts = DigestParts { layout: self.layout_digest, records: digest.get() };
        if parts.combine(self.shape()) == self.identity.digest {
            return Ok(digest);
        }
        Err(Error::corrupted(format!(
            "the records of the table are damaged: their digest at epoch {} is not what its publisher signed; copy the snapshot again from where it is whole",
            self.identity.epoch.0
        )))
    }
}

impl RecordBytes for CurrentTable<'_> {
    fn byte_len(&self) -> u64 {
        self.shape().bytes()
    }

    fn range(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        let len = self.shape().record_len();
        let (start, end) = (range.start as usize, range.end as usize);
        if self.written.range(range.start / len..range.end.div_ceil(len)).next().is_none() {
            return Cow::Borrowed(&self.snapshot[start..end]);
        }
        let of_snapshot = &self.snapshot[start.min(self.snapshot.len())..];
        let mut out = of_snapshot[..of_snapshot.len().min(end - start)].to_vec();
        out.resize(end - start, 0);
        put_written(self.written, len, range.start, &mut out);
        Cow::Owned(out)
    }
}

/// Puts those of the `written` records, of `len` bytes, that lie within `into` in their places.
/// `into` begins at byte `offset` of all records.
fn put_written(written: &Written, len: u64, offset: u64, into: &mut [u8]) {
    let end = offset + into.len() as u64;
    for (index, record) in written.range(offset / len..end.div_ceil(len)) {
        let start = index * len;
        let (first, last) = (start.max(offset), (start + len).min(end));
        let part = &record[(first - start) as usize..(last - start) as usize];
        into[(first - offset) as usize..][..part.len()].copy_from_slice(part);
    }
}

/// The records of a table in one version: those of its snapshot's file, replaced where epochs have
/// written. They are read with ordinary reads, so in memory there is only what the epochs wrote.
pub struct CurrentRecords {
    snapshot: Arc<Snapshot>,
    shape: TableShape,
    written: Arc<Written>,
}

impl From<Arc<Snapshot>> for CurrentRecords {
    /// The records as the file has them.
    fn from(snapshot: Arc<Snapshot>) -> Self {
        Self { shape: snapshot.identity().shape, snapshot, written: Arc::default() }
    }
}

impl CurrentRecords {
    /// `written` must have every record beyond the snapshot's.
    pub(super) fn new(snapshot: Arc<Snapshot>, shape: TableShape, written: Arc<Written>) -> Self {
        Self { snapshot, shape, written }
    }

    /// The file below.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// About how many bytes of memory they hold. Other versions may hold the same bytes.
    pub fn memory(&self) -> u64 {
        /// The number of a record, where it lies, what the allocator adds, and a place in the tree.
        const BESIDES: u64 = 64;
        self.written.len() as u64 * (self.shape.record_len() + BESIDES)
    }
}

impl ReadRecords for CurrentRecords {
    fn len(&self) -> u64 {
        self.shape.bytes()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let in_file = self.snapshot.identity().shape.bytes().saturating_sub(offset);
        let in_file = usize::try_from(in_file).map_or(into.len(), |len| len.min(into.len()));
        // What grew lies behind the file's last record, in the log alone.
        if in_file > 0 {
            self.snapshot.read_records(offset, &mut into[..in_file])?;
        }
        put_written(&self.written, self.shape.record_len(), offset, into);
        Ok(())
    }
}
