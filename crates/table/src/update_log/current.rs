//! The present table: the records of its snapshot, replaced where epochs have written.

use super::{Chain, RecordBytes, RecordsDigest};
use crate::digest::DigestParts;
use privet_core::{Error, Result, TableIdentity, TableShape};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// Records that were written since the snapshot, with their present contents.
pub(super) type Written = BTreeMap<u64, Vec<u8>>;

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

    /// All records in a row.
    pub fn to_vec(&self) -> Vec<u8> {
        self.range(0..self.byte_len()).into_owned()
    }
}

impl RecordBytes for CurrentTable<'_> {
    fn byte_len(&self) -> u64 {
        self.shape().bytes()
    }

    fn range(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        let len = self.shape().record_len();
        let mut written = self.written.range(range.start / len..range.end.div_ceil(len)).peekable();
        let of_snapshot =
            |range: Range<u64>| &self.snapshot[range.start as usize..range.end as usize];
        if written.peek().is_none() {
            return Cow::Borrowed(of_snapshot(range));
        }
        let mut out = Vec::with_capacity((range.end - range.start) as usize);
        let mut position = range.start;
        for (index, record) in written {
            let start = index * len;
            if position < start {
                out.extend_from_slice(of_snapshot(position..start));
                position = start;
            }
            let end = range.end.min(start + len);
            out.extend_from_slice(&record[(position - start) as usize..(end - start) as usize]);
            position = end;
        }
        if position < range.end {
            out.extend_from_slice(of_snapshot(position..range.end));
        }
        Cow::Owned(out)
    }
}
