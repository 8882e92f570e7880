//! Rows that a program supplies itself, such as those of a table in memory.

use super::cell::{Cell, RowCells, write_row};
use super::formats::Opened;
use super::{ResolvedColumns, RowBytes, RowReader, Selection, Source, WantedColumns};
use crate::values::{ValueColumn, ValueType};
use privet_core::{Error, Result};

/// Rows of typed cells, one after the other. They are read once.
pub trait Cells {
    /// The columns of every row, in their order.
    fn columns(&self) -> &[ValueColumn];

    /// Goes on to the next row, at first to the first one. `false` after the last.
    ///
    /// # Errors
    /// If it cannot be had.
    fn next_row(&mut self) -> Result<bool>;

    /// The cell of the present row in a column, or `None` if it is a list, a struct or a map.
    ///
    /// # Errors
    /// If it has no such form.
    fn cell(&self, column: usize) -> Result<Option<Cell<'_>>>;

    /// Appends the cell of the present row in a column as JSON, nested or not.
    ///
    /// # Errors
    /// If it has no such form.
    fn write_json(&self, column: usize, out: &mut Vec<u8>) -> Result<()>;

    /// The number of the rows, and about how many bytes they take, if that is known.
    fn size(&self) -> Option<(u64, u64)>;
}

pub(super) struct CellRows {
    cells: Box<dyn Cells>,
    columns: ResolvedColumns,
    row: u64,
}

impl CellRows {
    /// Opens an input of cells.
    pub(super) fn open_source(source: Source, selection: Selection) -> Result<Opened> {
        let wanted = source.wanted(selection);
        let cells = source.into_cells()?;
        let bytes_total = cells.size().map(|(_, bytes)| bytes);
        Ok((Box::new(Self::open(cells, &wanted)?), bytes_total))
    }

    fn open(cells: Box<dyn Cells>, wanted: &WantedColumns) -> Result<Self> {
        let names: Vec<_> = cells.columns().iter().map(|column| column.name.clone()).collect();
        let columns = ResolvedColumns::resolve(wanted, &names)?;
        if columns.key.is_none() && columns.value.is_empty() {
            return Err(Error::api_misuse("it has no columns"));
        }
        Ok(Self { cells, columns, row: 0 })
    }
}

impl RowReader for CellRows {
    fn next_row(&mut self, row: &mut RowBytes) -> Result<Option<u64>> {
        if !self.cells.next_row()? {
            return Ok(None);
        }
        self.row += 1;
        let read = write_row(&mut *self.cells, &self.columns, row);
        read.map(|()| Some(self.row)).map_err(|error| error.within(format!("row {}", self.row)))
    }

    fn unit(&self) -> &'static str {
        "row"
    }

    fn bytes_read(&self) -> u64 {
        self.cells.size().map_or(0, |(rows, bytes)| {
            let share = self.row as f64 / rows.max(1) as f64;
            (bytes as f64 * share.min(1.0)) as u64
        })
    }

    fn has_byte_keys(&self) -> bool {
        let column = self.columns.key.map(|column| &self.cells.columns()[column].of);
        column == Some(&ValueType::Bytes)
    }

    fn value_columns(&self) -> Option<Vec<ValueColumn>> {
        let columns = self.cells.columns();
        Some(self.columns.value.iter().map(|&column| columns[column].clone()).collect())
    }
}

impl RowCells for dyn Cells + '_ {
    fn name(&self, column: usize) -> &str {
        &self.columns()[column].name
    }

    fn cell(&mut self, column: usize) -> Result<Option<Cell<'_>>> {
        Cells::cell(self, column)
    }

    fn write_json(&mut self, column: usize, out: &mut Vec<u8>) -> Result<()> {
        Cells::write_json(self, column, out)
    }
}
