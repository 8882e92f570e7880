//! How a byte matrix is cut into blocks that are packed together.
//!
//! A matrix is cut into *units* of rows, and each unit into blocks of 2048 rows, the last of which
//! may be shorter. A unit is what has to be known of the masks to read a record: a record lies
//! whole in one unit. If clients download all masks, there is one unit, of all rows. If they ask
//! for masks, a unit has as many records as fit into a block, or one longer record.

use privet_core::ring::{Form, PLANES, PublicCoefficients, PublicPolynomials};
use privet_kernels::Kernels;
use std::ops::Range;

/// Columns are filled up with zeros to a multiple of this, so that the packing matrix begins where
/// tiles are written fastest.
const COLUMN_STEP: u64 = 16;

/// The layout of a byte matrix that is packed.
#[derive(Clone, Debug)]
pub(super) struct MatrixLayout {
    form: Form,
    rows: u64,
    columns: u64,
    unit_rows: u64,
    /// Of the columns, the packing key and the fold key.
    polynomials: [PublicPolynomials; 3],
}

impl MatrixLayout {
    /// A matrix of `rows` × `columns` bytes in units of `unit_rows` rows. If these are more than a
    /// block, all units must be full.
    pub(super) fn new(
        form: Form,
        [rows, columns]: [u64; 2],
        unit_rows: u64,
        polynomials: [PublicPolynomials; 3],
    ) -> Self {
        debug_assert!(unit_rows <= form.degree() as u64 || rows.is_multiple_of(unit_rows));
        Self { form, rows, columns, unit_rows, polynomials }
    }

    pub(super) fn form(&self) -> Form {
        self.form
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn columns(&self) -> u64 {
        self.columns
    }

    /// Rows of each unit but the last.
    pub(super) fn unit_rows(&self) -> u64 {
        self.unit_rows
    }

    pub(super) fn units(&self) -> u64 {
        self.rows.div_ceil(self.unit_rows)
    }

    pub(super) fn blocks_per_unit(&self) -> u64 {
        self.unit_rows.div_ceil(self.form.degree() as u64)
    }

    pub(super) fn blocks(&self) -> u64 {
        self.units() * self.blocks_per_unit()
    }

    /// The rows of a block.
    pub(super) fn block(&self, block: u64) -> Range<u64> {
        let (unit, part) = (block / self.blocks_per_unit(), block % self.blocks_per_unit());
        let degree = self.form.degree() as u64;
        let first = unit * self.unit_rows + part * degree;
        let end_of_unit = ((unit + 1) * self.unit_rows).min(self.rows);
        first..(first + degree).min(end_of_unit)
    }

    /// How many rows each block has.
    pub(super) fn block_rows(&self) -> impl Iterator<Item = u64> {
        (0..self.blocks()).map(|block| {
            let rows = self.block(block);
            rows.end - rows.start
        })
    }

    /// The block in which a row lies.
    pub(super) fn block_of(&self, row: u64) -> u64 {
        let (unit, within) = (row / self.unit_rows, row % self.unit_rows);
        unit * self.blocks_per_unit() + within / self.form.degree() as u64
    }

    /// Size of all masks: 4352 bytes for each block.
    pub(super) fn mask_bytes(&self) -> u64 {
        self.blocks() * self.form.mask_bytes()
    }

    /// Size of the masks of a unit.
    pub(super) fn unit_mask_bytes(&self) -> u64 {
        self.blocks_per_unit() * self.form.mask_bytes()
    }

    /// Words that are kept of a block of `rows` rows: its packing matrix, column by column, the
    /// digits of its fold, and its mask.
    pub(super) fn kept_block_words(&self, rows: u64) -> usize {
        self.form.degree() * (rows as usize + 2)
    }

    /// Size of what a server keeps of the packing: 8 KiB for each row, and 16 KiB for each block.
    pub(super) fn kept_bytes(&self) -> u64 {
        4 * self.form.degree() as u64 * (self.rows + 2 * self.blocks())
    }

    /// Columns of the matrix, and of zeros after it, before those of the packing matrix.
    pub(super) fn padded_columns(&self) -> u64 {
        self.columns.next_multiple_of(COLUMN_STEP)
    }

    /// Columns of the whole matrix that a query is multiplied with.
    pub(super) fn pass_columns(&self) -> u64 {
        self.padded_columns() + (PLANES * self.form.degree()) as u64
    }

    /// The public polynomials of the columns and the keys.
    pub(super) fn public(&self, kernels: Kernels) -> PublicCoefficients {
        PublicCoefficients::expand(kernels, self.form, self.columns, &self.polynomials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_core::PublicSeed;

    #[test]
    fn blocks_are_all_rows_in_order_and_none_has_rows_of_two_units() {
        let polynomials = || {
            ["a", "b", "c"].map(|name| {
                PublicPolynomials::new(&PublicSeed::derive("privet test", name.as_bytes()))
            })
        };
        for (rows, unit_rows, blocks) in [
            (1, 1, 1),
            (64, 64, 1),
            (65, 65, 2),
            (200, 200, 4),
            (200, 64, 4),
            (200, 50, 4),
            (201, 50, 5),
            (130, 65, 4),
            (390, 130, 9),
            (7, 1, 7),
        ] {
            let layout = MatrixLayout::new(Form::insecure(64), [rows, 9], unit_rows, polynomials());
            assert_eq!(layout.blocks(), blocks, "{rows} rows in units of {unit_rows}");
            let ranges: Vec<_> = (0..blocks).map(|block| layout.block(block)).collect();
            assert!(ranges.iter().flat_map(Clone::clone).eq(0..rows));
            for (block, range) in (0..).zip(&ranges) {
                assert!(!range.is_empty() && range.end - range.start <= 64);
                assert_eq!(range.start / unit_rows, (range.end - 1) / unit_rows);
                range.clone().for_each(|row| assert_eq!(layout.block_of(row), block));
            }
            assert!(layout.block_rows().eq(ranges.iter().map(|range| range.end - range.start)));
        }
    }
}
