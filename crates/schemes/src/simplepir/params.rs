//! The layout of a table as a byte matrix, checked against the limits of LWE.

use crate::contract::{Parameters, announced, table_seed};
use crate::laid_out::columns;
use privet_core::lwe::{EncryptionParameters, MAX_COLUMNS, PublicMatrix, SECRET_DIMENSION};
use privet_core::{Error, RecordIndex, Result, TableIdentity, TableShape};

/// A hint of at most 64 GiB: 2^24 rows.
const MAX_ROWS: u64 = 1 << 24;

/// How a table is read as a matrix of `rows` × `columns` bytes. Column `c` is the bytes `[c·rows,
/// (c+1)·rows)` of the table in its natural order. `rows` is a multiple of `record_len`, so every
/// record lies whole in one column. The last column may end in zeros that belong to no record.
#[derive(Clone, Debug)]
pub struct SimplePirParameters {
    shape: TableShape,
    rows: u64,
    encryption: EncryptionParameters,
    matrix: PublicMatrix,
}

impl SimplePirParameters {
    /// The default layout, as near to a square as whole records allow: upload and download then
    /// cost about the same.
    ///
    /// # Errors
    /// As [`with_records_per_column`](Self::with_records_per_column).
    pub fn new(identity: &TableIdentity) -> Result<Self> {
        let shape = identity.shape;
        let square = (shape.bytes() as f64).sqrt();
        let wanted = (square / shape.record_len() as f64).round().max(1.0) as u64;
        // Very large tables have more rows than columns, because the encryption limits the columns.
        let needed = shape.records().div_ceil(MAX_COLUMNS);
        Self::with_records_per_column(identity, wanted.max(needed).min(shape.records()))
    }

    /// A layout with the given number of records in a column. More records make a longer hint and
    /// answer, and a shorter query.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers, if no error of the
    /// encryption is both safe and small enough for that many columns, or the hint is larger than
    /// 64 GiB.
    pub fn with_records_per_column(
        identity: &TableIdentity,
        records_per_column: u64,
    ) -> Result<Self> {
        let shape = identity.shape;
        let columns = columns(shape, records_per_column)?;
        let encryption = EncryptionParameters::new(columns, 1)
            .map_err(|error| error.within(format!("SimplePIR on {shape}")))?;
        let rows = records_per_column * shape.record_len();
        if rows > MAX_ROWS {
            return Err(Error::api_misuse(format!(
                "SimplePIR on {shape} needs {rows} rows, a hint of {} bytes; the limit is \
                 {MAX_ROWS} rows: cut the table into several, or take a scheme without a hint",
                rows * hint_bytes_per_row()
            )));
        }
        let seed = table_seed("privet 2026-11 simplepir public matrix", identity);
        Ok(Self { shape, rows, encryption, matrix: PublicMatrix::new(&seed) })
    }

    /// Height of the byte matrix; the number of words in an answer.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Width of the byte matrix; the number of words in a query.
    pub fn columns(&self) -> u64 {
        self.encryption.columns()
    }

    /// The error with which queries are encrypted.
    pub fn encryption(&self) -> EncryptionParameters {
        self.encryption
    }

    /// The table's shape.
    pub fn shape(&self) -> TableShape {
        self.shape
    }

    /// Size of the hint: 1024 words for each row.
    pub fn hint_bytes(&self) -> u64 {
        self.rows * hint_bytes_per_row()
    }

    /// log2 of a bound on the probability that a recovered record has a wrong byte, for any
    /// contents of the table.
    pub fn failure_bound_log2(&self) -> f64 {
        self.encryption.failure_log2() + (self.shape.record_len() as f64).log2()
    }

    /// The public matrix A, one row for each column of the table.
    pub(crate) fn matrix(&self) -> &PublicMatrix {
        &self.matrix
    }

    /// Where a record lies: its column, and the row at which it begins. Both secret.
    pub(crate) fn place(&self, index: &RecordIndex) -> (u64, u64) {
        let per_column = self.rows / self.shape.record_len();
        let (column, place) = index.divide(per_column);
        (column, place * self.shape.record_len())
    }
}

fn hint_bytes_per_row() -> u64 {
    SECRET_DIMENSION as u64 * 4
}

impl Parameters for SimplePirParameters {
    /// Eight bytes: the number of records in a column, little-endian. Everything else follows from
    /// the table's identity.
    fn encode(&self) -> Vec<u8> {
        (self.rows / self.shape.record_len()).to_le_bytes().to_vec()
    }

    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self> {
        announced("SimplePIR's parameters", bytes, |records_per_column| {
            Self::with_records_per_column(identity, records_per_column)
        })
    }
}
