//! A matrix of bytes in the order that suits the vector units, and its products with vectors and
//! matrices of 32-bit words modulo 2³².
//!
//! This is the server's work in SimplePIR and DoublePIR: one query is a vector with a word per
//! column, the answer a vector with a word per row, and the client's hint a product with a public
//! matrix.
//!
//! # Layout
//!
//! The table arrives in its natural order: one column is `rows` consecutive bytes. A processor's
//! dot-product instruction (`vpdpbusd`) multiplies four neighbouring bytes by four others and adds
//! the products into one 32-bit lane, so four *columns* of one row must lie side by side.
//! [`TiledBytes`] re-tiles the table once, at load:
//!
//! ```text
//! panel   = 64 rows x all columns, contiguous; a product reads it from front to back
//! group   = 64 rows x 4 columns = 256 bytes:  byte 4*row + column
//!           = 4 vectors of 64 bytes, each 16 rows x 4 columns: lane = row
//! ```
//!
//! Rows are padded with zeros to a multiple of 64, columns to a multiple of 4. Lanes are rows, so
//! the sums of a panel are its 64 answer words in their order, and no horizontal addition is
//! needed.
//!
//! The reason for tiles instead of the natural order: with them, one product is one sequential
//! stream. Measured on Zen 4, one query runs at 0.95 to 1.0 × read bandwidth, and eight at 0.97 of
//! the multiplier's limit. An experiment in the natural order reached 0.79 and 0.82. The table is
//! held once, tiled: a server releases the pages of the file that it was read from.
//!
//! # Arithmetic
//!
//! Bytes are unsigned. A word is split into digits that suit the arm's multiplier, with exact
//! results: AVX-512 into four signed bytes (balanced digits in base 256), AVX2 into two signed
//! half-words, and the portable arm multiplies words. All sums are modulo 2³², and all arms agree.

use crate::dispatch::on_arm;
use std::ops::Range;

use crate::dispatch::Kernels;
use crate::memory::{HugeBuffer, MemoryError};
use crate::threads;

mod product;
mod strassen;

pub(crate) use strassen::WideGroup;
#[cfg(test)]
pub(crate) use strassen::pays as goes_in_parts;

/// Rows of one panel.
pub(crate) const PANEL_ROWS: usize = 64;
/// Columns of one group.
pub(crate) const GROUP_COLUMNS: usize = 4;
/// Bytes of one group.
pub(crate) const GROUP_BYTES: usize = PANEL_ROWS * GROUP_COLUMNS;
/// How many columns are tiled together: each panel then gets one run of 1 KiB, from 16 read
/// streams.
const COLUMNS_PER_RUN: usize = 16;

/// A matrix of `rows` × `columns` bytes in tiles (see the [module](self)), in huge pages where the
/// system grants them.
#[derive(Debug)]
pub struct TiledBytes {
    buffer: HugeBuffer<u8>,
    rows: usize,
    columns: usize,
    /// Bytes from one panel to the next: at least 64 × padded columns.
    stride: usize,
}

impl TiledBytes {
    /// A matrix of zeros, to be filled with [`fill_columns`](TiledBytes::fill_columns). Either
    /// number may be 0.
    ///
    /// # Errors
    ///
    /// [`MemoryError`] when the padded size exceeds the address space or the system refuses.
    pub fn zeroed(rows: usize, columns: usize) -> Result<TiledBytes, MemoryError> {
        let too_large = MemoryError::TooLarge { elements: usize::MAX, element_bytes: 1 };
        let layout = || {
            let panels = rows.div_ceil(PANEL_ROWS);
            let groups = columns.div_ceil(GROUP_COLUMNS);
            let mut stride = groups.checked_mul(GROUP_BYTES)?;
            // A fill writes to all panels in turn. Panels at distances of a multiple of 4 KiB would
            // compete for the same few cache lines.
            if stride > 0 && stride.is_multiple_of(4096) && panels > 1 {
                stride = stride.checked_add(GROUP_BYTES)?;
            }
            Some((stride, stride.checked_mul(panels)?))
        };
        let (stride, bytes) = layout().ok_or(too_large)?;
        Ok(TiledBytes { buffer: HugeBuffer::new_zeroed(bytes)?, rows, columns, stride })
    }

    /// Tiles a table in natural order: column `c` is `table[c * rows..(c + 1) * rows]`, and the
    /// last column, if short, is padded with zeros. There are `ceil(table.len() / rows)` columns.
    /// Uses up to `threads` threads.
    ///
    /// # Errors
    ///
    /// [`MemoryError`], as [`zeroed`](TiledBytes::zeroed).
    ///
    /// # Panics
    ///
    /// If `rows` is 0 and `table` is not empty.
    pub fn from_columns(
        table: &[u8],
        rows: usize,
        threads: usize,
    ) -> Result<TiledBytes, MemoryError> {
        Self::from_columns_with(Kernels::detect(), table, rows, threads)
    }

    pub(crate) fn from_columns_with(
        kernels: Kernels,
        table: &[u8],
        rows: usize,
        threads: usize,
    ) -> Result<TiledBytes, MemoryError> {
        assert!(rows > 0 || table.is_empty(), "a matrix without rows cannot hold bytes");
        let mut matrix = TiledBytes::zeroed(rows, table.len().div_ceil(rows.max(1)))?;
        matrix.fill_columns_with(kernels, 0, table, threads);
        Ok(matrix)
    }

    /// Overwrites consecutive columns, from `first_column` on, with `bytes` in natural order. If
    /// the last one is short, the rest of that column stays as it is. Uses up to `threads` threads.
    ///
    /// Fastest in pieces of at least 16 columns that begin at multiples of 16 columns.
    ///
    /// # Panics
    ///
    /// If `bytes` reach beyond the last column.
    pub fn fill_columns(&mut self, first_column: usize, bytes: &[u8], threads: usize) {
        self.fill_columns_with(Kernels::detect(), first_column, bytes, threads);
    }

    pub(crate) fn fill_columns_with(
        &mut self,
        kernels: Kernels,
        first_column: usize,
        bytes: &[u8],
        threads: usize,
    ) {
        if bytes.is_empty() {
            return;
        }
        assert!(self.rows > 0, "a matrix without rows cannot hold bytes");
        assert!(
            first_column <= self.columns
                && bytes.len().div_ceil(self.rows) <= self.columns - first_column,
            "{} bytes from column {first_column} on do not fit into {} columns of {} rows",
            bytes.len(),
            self.columns,
            self.rows,
        );
        // Whole groups of whole columns go through the vector kernel. The rest on both sides is
        // written byte by byte.
        let (rows, whole) = (self.rows, bytes.len() / self.rows);
        let head = (first_column.next_multiple_of(GROUP_COLUMNS) - first_column).min(whole);
        let body = (whole - head) / GROUP_COLUMNS * GROUP_COLUMNS;
        let (head_bytes, rest) = bytes.split_at(head * rows);
        let (body_bytes, tail_bytes) = rest.split_at(body * rows);
        for (i, column) in head_bytes.chunks(rows).enumerate() {
            self.set_bytes(first_column + i, 0, column);
        }
        self.fill_groups(kernels, first_column + head, body_bytes, threads);
        for (i, column) in tail_bytes.chunks(rows).enumerate() {
            self.set_bytes(first_column + head + body + i, 0, column);
        }
    }

    /// Tiles whole groups of columns. Threads share the work by panels, which do not overlap in
    /// memory.
    fn fill_groups(&mut self, kernels: Kernels, first_column: usize, bytes: &[u8], threads: usize) {
        if bytes.is_empty() {
            return;
        }
        let (rows, stride) = (self.rows, self.stride);
        let columns: Vec<&[u8]> = bytes.chunks(rows).collect();
        let panels_per_item = rows.div_ceil(PANEL_ROWS).div_ceil(threads.max(1));
        let items = self.buffer.chunks_mut(panels_per_item * stride).enumerate().collect();
        threads::for_each(threads, items, |(item, panels): (usize, &mut [u8])| {
            let first_row = item * panels_per_item * PANEL_ROWS;
            for (run, columns) in columns.chunks(COLUMNS_PER_RUN).enumerate() {
                let group = (first_column + run * COLUMNS_PER_RUN) / GROUP_COLUMNS;
                on_arm!(
                    kernels,
                    byte_matrix::tile_rows(columns, first_row, panels, stride, group * GROUP_BYTES)
                );
            }
        });
    }

    /// The number of rows, without padding.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns, without padding.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The size in memory in bytes, padding included.
    pub fn bytes(&self) -> usize {
        self.buffer.len()
    }

    /// All bytes as they lie in memory, including padding, for a digest of them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// How many bytes lie in huge pages; see [`HugeBuffer::huge_page_bytes`].
    pub fn huge_page_bytes(&self) -> Option<usize> {
        self.buffer.huge_page_bytes()
    }

    /// Overwrites rows `row..row + bytes.len()` of one column.
    ///
    /// # Panics
    ///
    /// If the column or the rows lie outside the matrix.
    pub fn set_bytes(&mut self, column: usize, row: usize, bytes: &[u8]) {
        self.check_cells(column, row, bytes.len());
        for (row, &byte) in (row..).zip(bytes) {
            let at = self.address(column, row);
            self.buffer[at] = byte;
        }
    }

    /// Copies rows `row..row + out.len()` of one column into `out`.
    ///
    /// # Panics
    ///
    /// If the column or the rows lie outside the matrix.
    pub fn read_bytes(&self, column: usize, row: usize, out: &mut [u8]) {
        self.check_cells(column, row, out.len());
        for (row, byte) in (row..).zip(out) {
            *byte = self.buffer[self.address(column, row)];
        }
    }

    /// Copies rows `first_row..first_row + rows` of the first `columns` columns into `out`: column
    /// by column, `rows` bytes each. Reads each byte once, panel by panel (64 rows that begin at a
    /// multiple of 64) in the order of the memory.
    ///
    /// # Panics
    ///
    /// If the rows or columns lie outside the matrix, or `out` does not have `rows * columns`
    /// bytes.
    pub fn copy_rows(&self, first_row: usize, rows: usize, columns: usize, out: &mut [u8]) {
        assert!(first_row + rows <= self.rows && columns <= self.columns, "the bytes are there");
        assert_eq!(out.len(), rows * columns, "there is room for each byte");
        if out.is_empty() {
            return;
        }
        let mut done = 0;
        while done < rows {
            let (panel, lane) = ((first_row + done) / PANEL_ROWS, (first_row + done) % PANEL_ROWS);
            let count = (PANEL_ROWS - lane).min(rows - done);
            let groups = self.panel_groups(panel, 0..columns.div_ceil(GROUP_COLUMNS));
            for (group, columns) in groups.iter().zip(out.chunks_mut(GROUP_COLUMNS * rows)) {
                let of_rows = &group[lane * GROUP_COLUMNS..][..count * GROUP_COLUMNS];
                for (c, column) in columns.chunks_exact_mut(rows).enumerate() {
                    let bytes = column[done..][..count].iter_mut();
                    for (byte, cells) in bytes.zip(of_rows.as_chunks::<GROUP_COLUMNS>().0) {
                        *byte = cells[c];
                    }
                }
            }
            done += count;
        }
    }

    /// A copy of the matrix.
    ///
    /// # Errors
    ///
    /// [`MemoryError`] when the system refuses.
    pub fn copied(&self) -> Result<TiledBytes, MemoryError> {
        let mut buffer = HugeBuffer::new_zeroed(self.buffer.len())?;
        buffer.copy_from_slice(&self.buffer);
        Ok(TiledBytes { buffer, ..*self })
    }

    fn check_cells(&self, column: usize, row: usize, len: usize) {
        assert!(
            column < self.columns && row <= self.rows && len <= self.rows - row,
            "{len} bytes at row {row} of column {column} lie outside {} x {}",
            self.rows,
            self.columns,
        );
    }

    fn address(&self, column: usize, row: usize) -> usize {
        let (group, lane) = (column / GROUP_COLUMNS, row % PANEL_ROWS);
        row / PANEL_ROWS * self.stride
            + group * GROUP_BYTES
            + lane * GROUP_COLUMNS
            + column % GROUP_COLUMNS
    }

    fn groups(&self) -> usize {
        self.columns.div_ceil(GROUP_COLUMNS)
    }

    /// The given groups of one panel.
    fn panel_groups(&self, panel: usize, groups: Range<usize>) -> &[[u8; GROUP_BYTES]] {
        let start = panel * self.stride;
        let bytes =
            &self.buffer[start + groups.start * GROUP_BYTES..start + groups.end * GROUP_BYTES];
        bytes.as_chunks().0
    }
}
