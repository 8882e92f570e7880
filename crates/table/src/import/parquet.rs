//! Apache Parquet.
//!
//! A library decodes the pages of each column; `schema.rs` says what the columns mean, `leaf.rs`
//! holds a batch of decoded cells, and `cell.rs` puts rows together from them.
//!
//! The decoder has assertions that a damaged file can reach. Every call into it that looks at the
//! file therefore goes through [`guarded`], which turns a panic into an error.

mod bounds;
mod cell;
mod leaf;
mod schema;

use super::cell::{Cell, RowCells, write_row};
use super::formats::Opened;
use super::{
    ResolvedColumns, RowBytes, RowReader, Selection, Source, WantedColumns, cannot_read,
    cannot_spool, quoted,
};
use crate::values::{ValueColumn, ValueType};
use ::parquet::basic::Compression;
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::ParquetMetaData;
use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
use bounds::{PageBytes, Pages};
use leaf::Leaf;
use privet_core::{Error, Result};
use schema::Column;
use std::fs::File;
use std::io::{self, Read};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

pub(super) struct ParquetRows {
    file: SerializedFileReader<Pages>,
    held: Arc<PageBytes>,
    bytes_total: u64,
    rows_total: u64,
    /// The columns that are used, in the order of the file, and the selection in terms of those.
    columns: Vec<Column>,
    resolved: ResolvedColumns,
    /// The number of each leaf in the file. A column has one leaf, or several if it is nested.
    leaf_numbers: Vec<usize>,
    /// The leaves of the present row group.
    leaves: Vec<Leaf>,
    next_group: usize,
    rows_left_in_group: u64,
    row: u64,
}

/// Opens an input in Parquet.
pub(super) fn open(source: Source, selection: Selection) -> Result<Opened> {
    let wanted = source.wanted(selection);
    if let Some((file, len)) = source.plain_file()? {
        return Ok((Box::new(ParquetRows::open(file, wanted)?), Some(len)));
    }
    let input = source.open()?;
    Ok((Box::new(ParquetRows::spool(input.bytes, wanted)?), input.bytes_total))
}

impl ParquetRows {
    fn open(file: File, wanted: WantedColumns) -> Result<Self> {
        let bytes_total = file.metadata().map_err(cannot_read)?.len();
        let held = Arc::new(PageBytes::default());
        let file = Pages { file, held: Arc::clone(&held) };
        let file = guarded(|| SerializedFileReader::new(file))?.map_err(not_parquet)?;
        let metadata = file.metadata().file_metadata();
        let schema = metadata.schema_descr();
        let fields = schema.root_schema().get_fields();
        let all: Vec<String> = fields.iter().map(|field| field.name().to_owned()).collect();
        let resolved = ResolvedColumns::resolve(&wanted, &all)?;

        // Only the columns that are used are read.
        let mut used: Vec<usize> = {
            let ResolvedColumns { key, until, value, .. } = &resolved;
            value.iter().chain(key).chain(until).copied().collect()
        };
        used.sort_unstable();
        used.dedup();
        if used.is_empty() {
            return Err(Error::api_misuse("it has no columns"));
        }
        let (columns, leaf_numbers) = guarded(|| schema::columns(schema, &used))??;
        check_compression(file.metadata(), &leaf_numbers)?;
        held.expect(leaf_numbers.len());
        let renumber = |column: usize| used.binary_search(&column).unwrap_or(usize::MAX);
        let resolved = ResolvedColumns {
            key: resolved.key.map(renumber),
            until: resolved.until.map(renumber),
            value: resolved.value.iter().map(|&column| renumber(column)).collect(),
            raw: resolved.raw,
        };
        let rows_total = u64::try_from(metadata.num_rows()).unwrap_or(0);
        Ok(Self {
            file,
            held,
            bytes_total,
            rows_total,
            columns,
            resolved,
            leaf_numbers,
            leaves: Vec::new(),
            next_group: 0,
            rows_left_in_group: 0,
            row: 0,
        })
    }

    /// Copies the input to a temporary file first: Parquet keeps its table of contents at the end.
    fn spool(mut input: impl Read, wanted: WantedColumns) -> Result<Self> {
        let mut file = tempfile::tempfile().map_err(cannot_spool)?;
        io::copy(&mut input, &mut file).map_err(cannot_spool)?;
        Self::open(file, wanted)
    }

    /// Opens row groups until one has rows. `false` if there is none.
    fn open_group(&mut self) -> Result<bool> {
        while self.rows_left_in_group == 0 {
            if self.next_group == self.file.num_row_groups() {
                return Ok(false);
            }
            // The pages of the last group are not needed any more.
            self.leaves.clear();
            let (file, number) = (&self.file, self.next_group);
            let opened = guarded(|| {
                let group = file.get_row_group(number)?;
                let rows = u64::try_from(group.metadata().num_rows()).unwrap_or(0);
                let leaves =
                    self.leaf_numbers.iter().map(|&leaf| Leaf::open(&*group, leaf, &self.held));
                Ok((rows, leaves.collect::<Result<Vec<_>, ParquetError>>()?))
            })?;
            (self.rows_left_in_group, self.leaves) =
                opened.map_err(|error| damaged(&error, self.row))?;
            self.next_group += 1;
        }
        Ok(true)
    }
}

/// The present row. Every leaf stands at the beginning of it.
struct PresentRow<'a> {
    columns: &'a [Column],
    leaves: &'a mut [Leaf],
}

impl RowCells for PresentRow<'_> {
    fn name(&self, column: usize) -> &str {
        &self.columns[column].name
    }

    fn cell(&mut self, column: usize) -> Result<Option<Cell<'_>>> {
        self.columns[column].cell(self.leaves)
    }

    fn write_json(&mut self, column: usize, out: &mut Vec<u8>) -> Result<()> {
        self.columns[column].write_json(self.leaves, out)
    }
}

impl RowReader for ParquetRows {
    fn next_row(&mut self, bytes: &mut RowBytes) -> Result<Option<u64>> {
        if !self.open_group()? {
            return Ok(None);
        }
        for leaf in &mut self.leaves {
            guarded(|| leaf.fill())?.map_err(|error| damaged(&error, self.row))?;
        }
        let mut row = PresentRow { columns: &self.columns, leaves: &mut self.leaves };
        let read = write_row(&mut row, &self.resolved, bytes);
        for leaf in &mut self.leaves {
            leaf.next_row();
        }
        self.rows_left_in_group -= 1;
        self.row += 1;
        let number = self.row;
        read.map(|()| Some(number)).map_err(|error| error.within(format!("row {number}")))
    }

    fn unit(&self) -> &'static str {
        "row"
    }

    fn value_columns(&self) -> Option<Vec<ValueColumn>> {
        let described = |&column: &usize| {
            let Column { name, node } = &self.columns[column];
            ValueColumn { name: name.clone(), of: node.value_type() }
        };
        Some(self.resolved.value.iter().map(described).collect())
    }

    fn has_byte_keys(&self) -> bool {
        let column = self.resolved.key.map(|column| self.columns[column].node.value_type());
        column == Some(ValueType::Bytes)
    }

    fn bytes_read(&self) -> u64 {
        let share = self.row as f64 / self.rows_total.max(1) as f64;
        (self.bytes_total as f64 * share.min(1.0)) as u64
    }
}

/// Refuses the compressions for which the decoder is not built. They are rare.
fn check_compression(metadata: &ParquetMetaData, leaf_numbers: &[usize]) -> Result<()> {
    for group in metadata.row_groups() {
        for column in leaf_numbers.iter().filter_map(|&leaf| group.columns().get(leaf)) {
            let compression = match column.compression() {
                Compression::BROTLI(_) => "Brotli",
                Compression::LZO => "LZO",
                _ => continue,
            };
            let name = quoted(&column.column_path().string());
            return Err(Error::api_misuse(format!(
                "column {name} is compressed with {compression}, which is not read; write the file \
                 again with another compression, such as zstd"
            )));
        }
    }
    Ok(())
}

/// Calls the decoder. The reader is not used after a panic, so its state does not matter then.
fn guarded<T>(decode: impl FnOnce() -> T) -> Result<T> {
    panic::catch_unwind(AssertUnwindSafe(decode)).map_err(|_| {
        Error::api_misuse("the Parquet decoder gave up; the file is damaged, write it again")
    })
}

fn not_parquet(error: ParquetError) -> Error {
    Error::api_misuse(format!("this is no readable Parquet file: {error}")).caused_by(error)
}

fn damaged(error: &ParquetError, after: u64) -> Error {
    Error::api_misuse(format!("cannot decode the rows after row {after}: {error}"))
}
