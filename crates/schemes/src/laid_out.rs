//! A table laid out in the memory from which its server answers. Records are read straight into
//! their places, so that a table that lies in a file is in memory only once.

use privet_core::{Error, PIECE_BYTES, Result, TableShape, TableSource};
use privet_kernels::byte_matrix::TiledBytes;
use privet_kernels::memory::{HugeBuffer, MemoryError};

/// Columns are put into place fastest in multiples of this.
const COLUMNS: usize = 16;

/// Memory for `len` bytes that begins with the records of `table`, in their natural order, and has
/// zeros behind them.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table is not of the shape that the
/// parameters are for, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not
/// enough memory; as [`TableSource::copy_to`].
pub fn in_natural_order<'t>(
    table: impl Into<TableSource<'t>>,
    shape: TableShape,
    len: u64,
) -> Result<HugeBuffer<u8>> {
    let table = table.into();
    table.check_shape(shape)?;
    let mut records = zeroed(len)?;
    table.copy_to(&mut records)?;
    Ok(records)
}

/// Zeroed memory for `len` bytes of a table.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
pub fn zeroed(len: u64) -> Result<HugeBuffer<u8>> {
    let len = usize::try_from(len).map_err(|_| Error::unavailable("no memory for the table"))?;
    HugeBuffer::new_zeroed(len).map_err(no_memory)
}

/// How many columns a table of `shape` has, if each has so many records.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table has no such column.
pub(crate) fn columns(shape: TableShape, records_per_column: u64) -> Result<u64> {
    if records_per_column == 0 || records_per_column > shape.records() {
        return Err(Error::api_misuse(format!(
            "a column of {records_per_column} records does not fit a table of {} records",
            shape.records()
        )));
    }
    Ok(shape.records().div_ceil(records_per_column))
}

/// Puts the records of `table` into the first columns of `matrix`, column after column.
///
/// # Errors
/// As [`TableSource::pieces`].
///
/// # Panics
/// If they do not fit.
pub fn in_columns(table: TableSource<'_>, matrix: &mut TiledBytes, threads: usize) -> Result<()> {
    let rows = matrix.rows();
    let columns = (PIECE_BYTES / rows / COLUMNS).max(1) * COLUMNS;
    table.pieces(columns.saturating_mul(rows), |offset, piece| {
        matrix.fill_columns((offset / rows as u64) as usize, piece, threads);
        Ok(())
    })
}

pub(crate) fn no_memory(error: MemoryError) -> Error {
    Error::unavailable("no memory for the table").caused_by(error)
}
