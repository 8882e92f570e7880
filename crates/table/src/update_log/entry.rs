//! One epoch as bytes: the encoding that the [parent module](super) describes. This module checks
//! the form; [`chain`](super::chain) checks whether the epoch follows.

use super::PublisherId;
#[cfg(any(test, feature = "files"))]
use super::PublisherKey;
use crate::digest::DigestParts;
use crate::key_map::number;
use privet_core::codec::Reader;
use privet_core::table::MAX_TABLE_BYTES;
use privet_core::{Epoch, Error, Result, TableChanges, TableDigest, TableId, TableShape};
use std::ops::Range;

const VERSION: u16 = 1;
const SIGNATURE_LEN: usize = 64;
const WHAT: &str = "an epoch of the update log";

/// The hash of an epoch's encoding without its signature: the publisher signs it, and the next
/// epoch names it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EpochHash(pub [u8; 32]);

impl EpochHash {
    /// The hash that the first epoch of a history names.
    pub const NONE: Self = Self([0; 32]);

    fn of(body: &[u8]) -> Self {
        Self(blake3::derive_key("privet update log epoch v1", body))
    }
}

privet_core::shown_in_hexadecimal!(EpochHash);

/// A changed record: its number, its bytes before, its bytes after.
type Changed<'a> = (u64, &'a [u8], &'a [u8]);

/// An epoch with a valid form, read in place: whose it is decides whether its records are copied.
pub(super) struct Entry<'a> {
    bytes: &'a [u8],
    pub(super) id: TableId,
    pub(super) epoch: Epoch,
    pub(super) previous: EpochHash,
    pub(super) digest_before: TableDigest,
    pub(super) records_digest: [u8; 32],
    pub(super) before: TableShape,
    pub(super) after: TableShape,
    layout: Range<usize>,
    edits: EditsPosition,
    appended: Range<usize>,
}

impl<'a> Entry<'a> {
    /// Reads an epoch. Allocates nothing.
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self> {
        let Some((body, _)) = bytes.split_last_chunk::<SIGNATURE_LEN>() else {
            return Err(malformed("it is shorter than a signature"));
        };
        let mut reader = Reader::new(WHAT, body);
        let read = &mut reader;
        let version = read.u16()?;
        if version != VERSION {
            return Err(malformed(&format!(
                "it has version {version}, and this program reads version {VERSION}"
            )));
        }
        let (id, epoch) = (TableId(read.array()?), Epoch(read.u64()?));
        let (previous, digest_before) = (EpochHash(read.array()?), TableDigest(read.array()?));
        let records_digest = read.array()?;
        let (records_before, records_after) = (read.u64()?, read.u64()?);
        let record_len = u64::from(read.u32()?);
        let shape = |records| {
            TableShape::new(records, record_len).map_err(|error| malformed(error.message()))
        };
        let (before, after) = (shape(records_before)?, shape(records_after)?);
        if epoch.0 == 0 || records_after < records_before {
            return Err(malformed("it has an impossible number, or fewer records than before"));
        }

        let position = |read: &Reader<'_>| body.len() - read.remaining();
        // A length that does not fit into a `usize` cannot be there either.
        let layout_len = usize::try_from(read_number(read)?).unwrap_or(usize::MAX);
        let layout = position(read)..position(read) + read.bytes(layout_len)?.len();
        let count = read_number(read)?;
        let edits = EditsPosition { start: position(read), count };
        let mut cursor = edits.cursor(body, before);
        while cursor.next_edit()?.is_some() {}
        let appended = position(&cursor.reader)..body.len();
        if appended.len() as u64 != (records_after - records_before) * record_len {
            return Err(malformed("the appended records have another length than announced"));
        }
        if layout.is_empty() && count == 0 && appended.is_empty() {
            return Err(malformed("it changes nothing"));
        }
        Ok(Self {
            bytes,
            id,
            epoch,
            previous,
            digest_before,
            records_digest,
            before,
            after,
            layout,
            edits,
            appended,
        })
    }

    fn body(&self) -> &'a [u8] {
        &self.bytes[..self.bytes.len() - SIGNATURE_LEN]
    }

    pub(super) fn hash(&self) -> EpochHash {
        EpochHash::of(self.body())
    }

    /// Whether `publisher` signed it.
    pub(super) fn is_signed_by(&self, publisher: &PublisherId) -> bool {
        let signature = self.bytes.last_chunk::<SIGNATURE_LEN>();
        signature.is_some_and(|signature| publisher.has_signed(&self.hash().0, signature))
    }

    /// The encoded layout after, if it has changed.
    pub(super) fn layout(&self) -> Option<&[u8]> {
        Some(&self.bytes[self.layout.clone()]).filter(|layout| !layout.is_empty())
    }

    /// The table's digest after, if its layout after has the digest `layout`.
    pub(super) fn digest_after(&self, layout: [u8; 32]) -> TableDigest {
        DigestParts { layout, records: self.records_digest }.combine(self.after)
    }

    /// The changes of its records. They take a multiple of the epoch's bytes if records are short.
    pub(super) fn changes(&self) -> Result<TableChanges> {
        let mut edits = self.edits.cursor(self.body(), self.before);
        // Decoding the epoch has read all of them, so none is malformed.
        let edited = std::iter::from_fn(move || edits.next_edit().ok().flatten());
        let appended = self.bytes[self.appended.clone()].chunks_exact(record_len(self.before));
        let absent = vec![0; record_len(self.before)];
        let appended =
            (self.before.records()..).zip(appended).map(|(index, new)| (index, &*absent, new));
        let changed = edited.chain(appended);
        let changed = changed.map(|(index, old, new)| (index, old.to_vec(), new.to_vec()));
        TableChanges::new(self.before, self.after, changed)
    }
}

/// The position of the changed records in an epoch.
#[derive(Clone, Copy, PartialEq, Eq)]
struct EditsPosition {
    start: usize,
    count: u64,
}

impl EditsPosition {
    fn cursor<'a>(&self, body: &'a [u8], before: TableShape) -> EditCursor<'a> {
        EditCursor {
            reader: Reader::new(WHAT, &body[self.start..]),
            left: self.count,
            least: 0,
            before,
        }
    }
}

struct EditCursor<'a> {
    reader: Reader<'a>,
    left: u64,
    /// The smallest index that the next one can have.
    least: u64,
    before: TableShape,
}

impl<'a> EditCursor<'a> {
    fn next_edit(&mut self) -> Result<Option<Changed<'a>>> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        // Neither term reaches 2^49.
        let index = self.least + read_number(&mut self.reader)?;
        if index >= self.before.records() {
            return Err(malformed("it changes a record beyond the table"));
        }
        let len = record_len(self.before);
        let (old, new) = (self.reader.bytes(len)?, self.reader.bytes(len)?);
        if old == new {
            return Err(malformed("a record that it changes stays the same"));
        }
        (self.left, self.least) = (left, index + 1);
        Ok(Some((index, old, new)))
    }
}

/// The contents of an epoch, before it is signed.
#[cfg(any(test, feature = "files"))]
pub(super) struct Draft<'a> {
    pub(super) before: privet_core::TableIdentity,
    pub(super) previous: EpochHash,
    pub(super) epoch: Epoch,
    pub(super) records_digest: [u8; 32],
    /// The encoded layout after, if it has changed.
    pub(super) layout: Option<&'a [u8]>,
    /// The changes; they include every new record.
    pub(super) changes: &'a TableChanges,
}

#[cfg(any(test, feature = "files"))]
impl Draft<'_> {
    /// The epoch as bytes, signed.
    pub(super) fn sign(&self, key: &PublisherKey) -> Vec<u8> {
        let privet_core::TableIdentity { id, digest, shape, .. } = self.before;
        let mut out = Vec::new();
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&id.0);
        out.extend_from_slice(&self.epoch.0.to_le_bytes());
        for hash in [self.previous.0, digest.0, self.records_digest] {
            out.extend_from_slice(&hash);
        }
        out.extend_from_slice(&shape.records().to_le_bytes());
        out.extend_from_slice(&self.changes.shape_after().records().to_le_bytes());
        // At most 2^24.
        out.extend_from_slice(&(shape.record_len() as u32).to_le_bytes());
        let layout = self.layout.unwrap_or_default();
        number::write(&mut out, layout.len() as u64);
        out.extend_from_slice(layout);
        let of_table = |(index, ..): &(u64, &[u8], &[u8])| *index < shape.records();
        number::write(&mut out, self.changes.records().filter(of_table).count() as u64);
        let mut least = 0;
        // Edited records come first, because appended ones have the highest numbers.
        for (index, old, new) in self.changes.records() {
            if index < shape.records() {
                number::write(&mut out, index - least);
                out.extend_from_slice(old);
                least = index + 1;
            }
            out.extend_from_slice(new);
        }
        let signature = key.sign(&EpochHash::of(&out).0);
        out.extend_from_slice(&signature);
        out
    }
}

/// At most 2^24.
fn record_len(shape: TableShape) -> usize {
    shape.record_len() as usize
}

/// A variable number. No number in an epoch is larger than a table can be.
fn read_number(reader: &mut Reader<'_>) -> Result<u64> {
    let number = number::take(MAX_TABLE_BYTES, || reader.u8().ok()).map_err(malformed)?;
    Ok(number as u64)
}

pub(super) fn malformed(how: &str) -> Error {
    Error::invalid_message(format!(
        "an epoch of the update log is malformed ({how}): it was damaged on the way, or a newer program made it"
    ))
}
