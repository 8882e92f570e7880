//! The changes from one version of a table to the next, as XOR differences.

use super::TableShape;
use crate::codec::Reader;
use crate::{Error, Result};

/// [`TableChanges`](super::TableChanges) as XOR differences, in the form in which journals keep
/// them, with what servers announce of their commitments. Public. Edits apply in order; one record
/// may be edited several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDelta {
    before: TableShape,
    after: TableShape,
    edits: Vec<(u64, Vec<u8>)>,
    commitments: Vec<u8>,
}

impl TableDelta {
    /// A delta for tables of shape `shape` that does not change the shape.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](crate::Blame::InvalidMessage) if an edit lies beyond the table or
    /// is not as wide as its records.
    pub fn new(shape: TableShape, edits: Vec<(u64, Vec<u8>)>) -> Result<Self> {
        Self::growing(shape, shape, edits, Vec::new())
    }

    /// A delta from a table of shape `before` to one of shape `after`, with as many records or
    /// more. New records count as zeros before. `commitments` is what clients that verify answers
    /// must know of the new commitments to the table; empty if the scheme does not verify.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](crate::Blame::InvalidMessage) if an edit lies beyond the table or
    /// is not as wide as its records, or the table would shrink or its records change their width.
    pub fn growing(
        before: TableShape,
        after: TableShape,
        edits: Vec<(u64, Vec<u8>)>,
        commitments: Vec<u8>,
    ) -> Result<Self> {
        before.check_becomes(after)?;
        for (index, difference) in &edits {
            if *index >= after.records() || difference.len() as u64 != after.record_len() {
                return Err(Error::invalid_message(format!(
                    "an edit of record {index} with {} bytes does not fit a table of {} records of {} bytes",
                    difference.len(),
                    after.records(),
                    after.record_len()
                )));
            }
        }
        Ok(Self { before, after, edits, commitments })
    }

    /// The delta of changes that fit their tables.
    pub(super) fn of_checked(
        before: TableShape,
        after: TableShape,
        edits: Vec<(u64, Vec<u8>)>,
    ) -> Self {
        Self { before, after, edits, commitments: Vec::new() }
    }

    /// The shape of the table before.
    pub fn shape(&self) -> TableShape {
        self.before
    }

    /// The shape of the table afterwards.
    pub fn shape_after(&self) -> TableShape {
        self.after
    }

    /// Checks that this is a delta for tables of shape `shape`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if it is not.
    pub fn check_before(&self, shape: TableShape) -> Result<()> {
        if self.before != shape {
            return Err(Error::api_misuse("the edits belong to a table of another shape"));
        }
        Ok(())
    }

    /// The edits, in order: which record, and its bytes before XORed with its bytes after.
    pub fn edits(&self) -> &[(u64, Vec<u8>)] {
        &self.edits
    }

    /// What clients that verify answers must know of the new commitments.
    pub fn commitments(&self) -> &[u8] {
        &self.commitments
    }

    /// The same delta, with what clients that verify answers must know of the new commitments.
    pub fn with_commitments(self, commitments: Vec<u8>) -> Self {
        Self { commitments, ..self }
    }

    /// Size of the [encoding](Self::write) in bytes.
    pub fn encoded_len(&self) -> usize {
        let edits = self.edits.len() * (8 + self.before.record_len() as usize);
        28 + edits + self.commitments.len()
    }

    /// `records before (u64) ‖ records after (u64) ‖ number of edits (u64) ‖ for each: index (u64)
    /// ‖ difference ‖ length of the commitments (u32) ‖ commitments`
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.before.records().to_le_bytes());
        out.extend(self.after.records().to_le_bytes());
        out.extend((self.edits.len() as u64).to_le_bytes());
        for (index, difference) in &self.edits {
            out.extend(index.to_le_bytes());
            out.extend_from_slice(difference);
        }
        out.extend((self.commitments.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.commitments);
    }

    /// Reads what [`write`](Self::write) wrote of a table of records of `record_len` bytes.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](crate::Blame::InvalidMessage) if it does not parse,
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if no table has such a shape.
    pub fn read(reader: &mut Reader<'_>, record_len: u64) -> Result<Self> {
        let before = TableShape::new(reader.u64()?, record_len)?;
        let after = TableShape::new(reader.u64()?, record_len)?;
        let mut edits = Vec::new();
        for _ in 0..reader.u64()? {
            let index = reader.u64()?;
            edits.push((index, reader.bytes(record_len as usize)?.to_vec()));
        }
        let commitments = reader.u32()? as usize;
        Self::growing(before, after, edits, reader.bytes(commitments)?.to_vec())
    }
}
