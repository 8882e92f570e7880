//! The entries of one leaf, a batch at a time.

use super::bounds::{self, Left, PageBytes};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray,
    FixedLenByteArrayType, FloatType, Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::RowGroupReader;
use std::sync::Arc;

const BATCH_ROWS: usize = 256;

/// A value as the file stores it.
pub(super) enum Stored<'a> {
    Boolean(bool),
    Integer(i64),
    Int96(&'a Int96),
    Float(f32),
    Double(f64),
    Bytes(&'a [u8]),
}

pub(super) struct Leaf {
    values: Values,
    max_definition: i16,
    /// Rows of a batch.
    batch: usize,
    /// Whether a row may have several values.
    several: bool,
    left: Arc<Left>,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    entries: usize,
    row: Position,
    now: Position,
}

/// Where a reader stands in a batch.
#[derive(Clone, Copy, Default)]
struct Position {
    entry: usize,
    /// Counts values only: entries that are null have none.
    value: usize,
}

impl Leaf {
    /// Leaf number `number` of a row group.
    pub(super) fn open(
        group: &dyn RowGroupReader,
        number: usize,
        held: &Arc<PageBytes>,
    ) -> Result<Self> {
        let column = group.metadata().column(number).column_descr();
        let (max_definition, several) = (column.max_def_level(), column.max_rep_level() > 0);
        let left = Arc::new(Left::default());
        Ok(Self {
            values: Values::open(bounds::column(group, number, &left, held)?),
            max_definition,
            batch: if bounds::is_incremental(group, number) { 1 } else { BATCH_ROWS },
            several,
            left,
            definitions: Vec::new(),
            repetitions: Vec::new(),
            entries: 0,
            row: Position::default(),
            now: Position::default(),
        })
    }

    /// Reads the next batch if this one has no rows left.
    pub(super) fn fill(&mut self) -> Result<()> {
        if self.row.entry < self.entries {
            return Ok(());
        }
        self.definitions.clear();
        self.repetitions.clear();
        self.left.begin(self.several);
        let levels = (&mut self.definitions, &mut self.repetitions);
        self.entries = self.values.read(self.batch, levels.0, levels.1)?;
        (self.row, self.now) = (Position::default(), Position::default());
        if self.entries == 0 {
            return Err(ParquetError::General("a column ends before the others".to_owned()));
        }
        Ok(())
    }

    /// Goes back to the beginning of the row.
    pub(super) fn rewind(&mut self) {
        self.now = self.row;
    }

    /// Goes on to the next row, however much of this one has been read.
    pub(super) fn next_row(&mut self) {
        self.rewind();
        loop {
            self.take();
            if self.repetition() == 0 {
                break;
            }
        }
        self.row = self.now;
    }

    /// The definition level of the present entry; `None` after the last of the batch.
    pub(super) fn definition(&self) -> Option<i16> {
        if self.max_definition == 0 {
            return (self.now.entry < self.entries).then_some(0);
        }
        self.definitions.get(self.now.entry).copied()
    }

    /// The repetition level of the present entry. Batches hold whole rows, so after the last entry
    /// a new row begins: 0.
    pub(super) fn repetition(&self) -> i16 {
        self.repetitions.get(self.now.entry).copied().unwrap_or(0)
    }

    /// Takes the value of the present entry, `None` if it has none, and goes on to the next entry.
    pub(super) fn take(&mut self) -> Option<Stored<'_>> {
        let has_value = self.definition() == Some(self.max_definition);
        let value = self.now.value;
        self.now.entry += 1;
        if !has_value {
            return None;
        }
        self.now.value += 1;
        self.values.get(value)
    }
}

/// A batch of values, and where more come from.
enum Values {
    Boolean(ColumnReaderImpl<BoolType>, Vec<bool>),
    Int32(ColumnReaderImpl<Int32Type>, Vec<i32>),
    Int64(ColumnReaderImpl<Int64Type>, Vec<i64>),
    Int96(ColumnReaderImpl<Int96Type>, Vec<Int96>),
    Float(ColumnReaderImpl<FloatType>, Vec<f32>),
    Double(ColumnReaderImpl<DoubleType>, Vec<f64>),
    Bytes(ColumnReaderImpl<ByteArrayType>, Vec<ByteArray>),
    FixedBytes(ColumnReaderImpl<FixedLenByteArrayType>, Vec<FixedLenByteArray>),
}

impl Values {
    fn open(reader: ColumnReader) -> Self {
        match reader {
            ColumnReader::BoolColumnReader(reader) => Values::Boolean(reader, Vec::new()),
            ColumnReader::Int32ColumnReader(reader) => Values::Int32(reader, Vec::new()),
            ColumnReader::Int64ColumnReader(reader) => Values::Int64(reader, Vec::new()),
            ColumnReader::Int96ColumnReader(reader) => Values::Int96(reader, Vec::new()),
            ColumnReader::FloatColumnReader(reader) => Values::Float(reader, Vec::new()),
            ColumnReader::DoubleColumnReader(reader) => Values::Double(reader, Vec::new()),
            ColumnReader::ByteArrayColumnReader(reader) => Values::Bytes(reader, Vec::new()),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                Values::FixedBytes(reader, Vec::new())
            }
        }
    }

    /// Replaces the batch with the next one, of `rows` rows, and returns the number of its
    /// entries.
    fn read(
        &mut self,
        rows: usize,
        definitions: &mut Vec<i16>,
        repetitions: &mut Vec<i16>,
    ) -> Result<usize> {
        fn batch<T: DataType>(
            reader: &mut ColumnReaderImpl<T>,
            rows: usize,
            definitions: &mut Vec<i16>,
            repetitions: &mut Vec<i16>,
            values: &mut Vec<T::T>,
        ) -> Result<usize> {
            values.clear();
            let levels = (Some(definitions), Some(repetitions));
            Ok(reader.read_records(rows, levels.0, levels.1, values)?.2)
        }
        match self {
            Values::Boolean(reader, values) => {
                batch(reader, rows, definitions, repetitions, values)
            }
            Values::Int32(reader, values) => batch(reader, rows, definitions, repetitions, values),
            Values::Int64(reader, values) => batch(reader, rows, definitions, repetitions, values),
            Values::Int96(reader, values) => batch(reader, rows, definitions, repetitions, values),
            Values::Float(reader, values) => batch(reader, rows, definitions, repetitions, values),
            Values::Double(reader, values) => batch(reader, rows, definitions, repetitions, values),
            Values::Bytes(reader, values) => batch(reader, rows, definitions, repetitions, values),
            Values::FixedBytes(reader, values) => {
                batch(reader, rows, definitions, repetitions, values)
            }
        }
    }

    fn get(&self, number: usize) -> Option<Stored<'_>> {
        Some(match self {
            Values::Boolean(_, values) => Stored::Boolean(*values.get(number)?),
            Values::Int32(_, values) => Stored::Integer((*values.get(number)?).into()),
            Values::Int64(_, values) => Stored::Integer(*values.get(number)?),
            Values::Int96(_, values) => Stored::Int96(values.get(number)?),
            Values::Float(_, values) => Stored::Float(*values.get(number)?),
            Values::Double(_, values) => Stored::Double(*values.get(number)?),
            Values::Bytes(_, values) => Stored::Bytes(values.get(number)?.data()),
            Values::FixedBytes(_, values) => Stored::Bytes(values.get(number)?.data()),
        })
    }
}
