//! Apache Parquet.
//!
//! The decoder is a library that still has assertions which a damaged file can reach. Every call
//! into it that looks at the file therefore goes through [`guarded`], which turns a panic into an
//! error.

use super::json_text::write_string;
use super::parquet_values::{Scalar, scalar, supported, write_json};
use super::{
    ResolvedColumns, RowReader, Wanted, bad_key, bad_raw_value, cannot_read, cannot_spool, no_key,
    quoted,
};
use arrow::array::{Array, RecordBatch};
use arrow::error::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use privet_core::{Error, Result};
use std::fs::File;
use std::io::{self, Read};
use std::panic::{self, AssertUnwindSafe};

const BATCH_ROWS: usize = 256;

pub(super) struct ParquetRows {
    batches: ParquetRecordBatchReader,
    batch: Option<RecordBatch>,
    row_in_batch: usize,
    row: u64,
    rows_total: u64,
    bytes_total: u64,
    /// Names of the projected columns, and the selection in terms of those.
    columns: Vec<String>,
    resolved: ResolvedColumns,
}

impl ParquetRows {
    pub(super) fn open(file: File, wanted: Wanted) -> Result<Self> {
        let bytes_total = file.metadata().map_err(cannot_read)?.len();
        // Without the Arrow schema that some writers embed: Parquet's own types are fewer and say
        // the same.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let open = || ParquetRecordBatchReaderBuilder::try_new_with_options(file, options);
        let builder = guarded(open)?.map_err(not_parquet)?;
        let schema = builder.schema().clone();
        let all: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let resolved = ResolvedColumns::resolve(&wanted, &all)?;

        // Only the columns that are used are read; the reader gives them in the order of the file.
        let mut used: Vec<usize> = resolved.value.iter().copied().chain(resolved.key).collect();
        used.sort_unstable();
        used.dedup();
        for &column in &used {
            let data_type = schema.field(column).data_type();
            if !supported(data_type) {
                return Err(Error::api_misuse(format!(
                    "the column {} has the type {data_type}, which cannot be imported; leave it out",
                    quoted(&all[column])
                )));
            }
        }
        if used.is_empty() {
            return Err(Error::api_misuse("it has no columns"));
        }
        let renumber = |column: usize| used.binary_search(&column).unwrap_or(usize::MAX);
        let resolved = ResolvedColumns {
            key: resolved.key.map(renumber),
            value: resolved.value.iter().map(|&column| renumber(column)).collect(),
            raw: resolved.raw,
        };
        let columns = used.iter().map(|&column| all[column].clone()).collect();

        let rows_total = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0);
        let mask = ProjectionMask::roots(builder.parquet_schema(), used);
        let builder = builder.with_projection(mask).with_batch_size(BATCH_ROWS);
        let batches = guarded(|| builder.build())?.map_err(not_parquet)?;
        Ok(Self {
            batches,
            batch: None,
            row_in_batch: 0,
            row: 0,
            rows_total,
            bytes_total,
            columns,
            resolved,
        })
    }

    /// Copies the input to a temporary file first: Parquet keeps its table of contents at the end.
    pub(super) fn spool(mut input: impl Read, wanted: Wanted) -> Result<Self> {
        let mut file = tempfile::tempfile().map_err(cannot_spool)?;
        io::copy(&mut input, &mut file).map_err(cannot_spool)?;
        Self::open(file, wanted)
    }

    fn read_row(
        &self,
        batch: &RecordBatch,
        row: usize,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<()> {
        let column = |column: usize| (self.columns[column].as_str(), batch.column(column).as_ref());
        if let Some(number) = self.resolved.key {
            let (name, array) = column(number);
            write_key(name, array, row, key)?;
        }
        if self.resolved.raw {
            let (name, array) = column(self.resolved.value[0]);
            match scalar(array, row)? {
                Some(Scalar::Text(text)) => value.extend_from_slice(text.as_bytes()),
                Some(Scalar::Bytes(bytes)) => value.extend_from_slice(bytes),
                Some(Scalar::Null) => return Err(bad_raw_value(name, "is null")),
                _ => return Err(bad_raw_value(name, "is neither")),
            }
            return Ok(());
        }
        value.push(b'{');
        for &number in &self.resolved.value {
            let (name, array) = column(number);
            if value.len() > 1 {
                value.push(b',');
            }
            write_string(name, value);
            value.push(b':');
            write_json(array, row, value)
                .map_err(|error| error.within(format!("column {}", quoted(name))))?;
        }
        value.push(b'}');
        Ok(())
    }
}

fn write_key(name: &str, array: &dyn Array, row: usize, key: &mut Vec<u8>) -> Result<()> {
    match scalar(array, row)? {
        None => return Err(bad_key(name, "is a list, a struct or a map")),
        Some(Scalar::Null) => return Err(no_key(name, "is null")),
        Some(Scalar::Bytes(bytes)) => key.extend_from_slice(bytes),
        Some(Scalar::Text(text)) => key.extend_from_slice(text.as_bytes()),
        Some(Scalar::Literal(text)) => key.extend_from_slice(text.as_bytes()),
    }
    if key.is_empty() { Err(no_key(name, "is empty")) } else { Ok(()) }
}

impl RowReader for ParquetRows {
    fn next_row(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Option<u64>> {
        loop {
            if let Some(batch) = &self.batch
                && self.row_in_batch < batch.num_rows()
            {
                let read = self.read_row(batch, self.row_in_batch, key, value);
                self.row_in_batch += 1;
                self.row += 1;
                let number = self.row;
                return read
                    .map(|()| Some(number))
                    .map_err(|error| error.within(format!("row {number}")));
            }
            self.batch = guarded(|| self.batches.next())?
                .transpose()
                .map_err(|error| damaged(&error, self.row))?;
            self.row_in_batch = 0;
            if self.batch.is_none() {
                return Ok(None);
            }
        }
    }

    fn unit(&self) -> &'static str {
        "row"
    }

    fn value_columns(&self) -> Option<Vec<&str>> {
        let columns = self.resolved.value.iter();
        Some(columns.map(|&column| self.columns[column].as_str()).collect())
    }

    fn bytes_read(&self) -> u64 {
        let share = self.row as f64 / self.rows_total.max(1) as f64;
        (self.bytes_total as f64 * share.min(1.0)) as u64
    }
}

/// Calls the decoder. After a panic the reader is not used again, so it does not matter in which
/// state it was left.
fn guarded<T>(decode: impl FnOnce() -> T) -> Result<T> {
    panic::catch_unwind(AssertUnwindSafe(decode)).map_err(|_| {
        Error::api_misuse("the Parquet decoder gave up; the file is damaged, write it again")
    })
}

fn not_parquet(error: ParquetError) -> Error {
    Error::api_misuse(format!("this is no readable Parquet file: {error}")).caused_by(error)
}

fn damaged(error: &ArrowError, after: u64) -> Error {
    Error::api_misuse(format!("cannot decode the rows after row {after}: {error}"))
}
