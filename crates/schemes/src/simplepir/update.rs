//! A hint follows edits: `H = D·A` changes by `ΔD·A`, and only in the rows where the table has
//! changed.

use super::{SimplePir, SimplePirParameters};
use crate::contract::PatchedDownload;
use crate::offline::{HintSource, check_len};
use privet_core::lwe::SECRET_DIMENSION;
use privet_core::{Error, Result, TableChanges};
use privet_kernels::Kernels;
use std::ops::Range;

/// Rows of the hint that are read, patched and written at a time: a MiB.
const PIECE_ROWS: u64 = 256;

/// Bytes of a row of the hint.
const ROW_BYTES: usize = SECRET_DIMENSION * 4;

/// A changed record where it lies in the matrix.
struct ChangedRecord<'a> {
    first_row: u64,
    column: u64,
    before: &'a [u8],
    after: &'a [u8],
}

impl ChangedRecord<'_> {
    /// Adds the effect of the change to the rows `rows` of the hint. `piece` holds the words of
    /// these rows, and `of_column` is the row of A that belongs to the change's column.
    fn add_to(&self, rows: &Range<u64>, piece: &mut [u8], of_column: &[u32]) {
        for (row, (before, after)) in (self.first_row..).zip(self.before.iter().zip(self.after)) {
            let difference = u32::from(*after).wrapping_sub(u32::from(*before));
            if difference == 0 || !rows.contains(&row) {
                continue;
            }
            let start = (row - rows.start) as usize * ROW_BYTES;
            let words = piece[start..start + ROW_BYTES].as_chunks_mut().0;
            for (word, of_column) in words.iter_mut().zip(of_column) {
                let added = difference.wrapping_mul(*of_column);
                *word = u32::from_le_bytes(*word).wrapping_add(added).to_le_bytes();
            }
        }
    }
}

impl PatchedDownload for SimplePir {
    /// True if a column has as many rows as before. Then every record stays in its place, and new
    /// records make new columns, for which A has more rows.
    fn patches(before: &SimplePirParameters, after: &SimplePirParameters) -> bool {
        before.rows() == after.rows() && before.columns() <= after.columns()
    }

    fn patch(
        before: &SimplePirParameters,
        after: &SimplePirParameters,
        changes: &TableChanges,
        part: &dyn HintSource,
        kernels: Kernels,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        if !Self::patches(before, after) {
            return Err(Error::api_misuse(
                "the table is cut into other columns than before, so its hint has to be downloaded again",
            ));
        }
        check_len("the hint", part.len(), before.hint_bytes())?;
        let record_len = after.shape().record_len();
        let per_column = after.rows() / record_len;
        let mut changes: Vec<ChangedRecord<'_>> = changes
            .records()
            .map(|(index, before, after)| ChangedRecord {
                first_row: index % per_column * record_len,
                column: index / per_column,
                before,
                after,
            })
            .collect();
        changes.sort_unstable_by_key(|change| change.first_row);

        let mut piece = vec![0; PIECE_ROWS.min(after.rows()) as usize * ROW_BYTES];
        let mut of_column = vec![0; SECRET_DIMENSION];
        for start in (0..after.rows()).step_by(PIECE_ROWS as usize) {
            let rows = start..(start + PIECE_ROWS).min(after.rows());
            let piece = &mut piece[..(rows.end - rows.start) as usize * ROW_BYTES];
            part.read_at(start * ROW_BYTES as u64, piece)?;
            let first = changes.partition_point(|change| change.first_row + record_len <= start);
            let end = changes.partition_point(|change| change.first_row < rows.end);
            // Takes the changes by column, so that each row of A is made once for all changes in
            // its column.
            let mut here: Vec<&ChangedRecord<'_>> = changes[first..end].iter().collect();
            here.sort_unstable_by_key(|change| change.column);
            for in_column in here.chunk_by(|one, other| one.column == other.column) {
                after.matrix().rows(kernels, in_column[0].column, &mut of_column);
                in_column.iter().for_each(|change| change.add_to(&rows, piece, &of_column));
            }
            sink(piece)?;
        }
        Ok(())
    }
}
