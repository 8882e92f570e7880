//! The layout of a table as a byte matrix over a second byte matrix, checked against the limits of
//! LWE and against one for the hint.

use crate::contract::{Parameters, announced, table_seed};
use crate::laid_out::columns;
use crate::simplepir::SimplePirParameters;
use privet_core::lwe::{EncryptionParameters, MAX_COLUMNS, PublicMatrix, SECRET_DIMENSION};
use privet_core::{Error, RecordIndex, Result, TableIdentity, TableShape};

/// Rows of the second matrix for each byte of a record: the bytes of one row of the first hint.
pub(super) const HINT_ROW_BYTES: u64 = SECRET_DIMENSION as u64 * 4;

/// Bytes that must come out of the second level right for each byte of a record: a row of the first
/// hint, and a word of the first product.
const SECOND_LEVEL_BYTES: u64 = HINT_ROW_BYTES + 4;

/// Hints of at most 1 GiB, that is records of at most 64 bytes.
pub const MAX_HINT_BYTES: u64 = 1 << 30;

/// Below this many bytes, the second matrix may be larger than a sixteenth of the table: its cost
/// is small anyway.
const SMALL_SECOND_MATRIX: u64 = 1 << 24;

/// How a table is read: as in SimplePIR, `rows` × `columns` bytes, where column `c` is the bytes
/// `[c·rows, (c+1)·rows)` of the table in its natural order and holds `records_per_column` whole
/// records. The second matrix, made of the first hint, has one column for each record of a column.
#[derive(Clone, Debug)]
pub struct DoublePirParameters {
    shape: TableShape,
    first_level: EncryptionParameters,
    second_level: EncryptionParameters,
    first_matrix: PublicMatrix,
    second_matrix: PublicMatrix,
}

impl DoublePirParameters {
    /// The default layout: of those whose second matrix takes at most a sixteenth of the table (or
    /// 16 MiB, for tables up to 256 MiB), the one whose query and answer together are shortest.
    ///
    /// # Errors
    /// As [`with_records_per_column`](Self::with_records_per_column).
    pub fn new(identity: &TableIdentity) -> Result<Self> {
        Self::with_records_per_column(identity, default_records_per_column(identity.shape))
    }

    /// A layout with the given number of records in a column. More records make a shorter query for
    /// the column, a longer one for the record within it, and a larger second matrix. The hint is
    /// the same for every layout.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers, if the hint would be
    /// larger than [`MAX_HINT_BYTES`], or if either matrix has so many columns that no error of the
    /// encryption is both safe and small enough.
    pub fn with_records_per_column(
        identity: &TableIdentity,
        records_per_column: u64,
    ) -> Result<Self> {
        let shape = identity.shape;
        let columns = columns(shape, records_per_column)?;
        check_hint(identity)?;
        let encryption = |columns, decryptions| {
            EncryptionParameters::new(columns, decryptions)
                .map_err(|error| error.within(format!("DoublePIR on {shape}")))
        };
        let first_level = encryption(columns, 1)?;
        let second_level = encryption(records_per_column, SECOND_LEVEL_BYTES)?;
        let matrix = |purpose| PublicMatrix::new(&table_seed(purpose, identity));
        Ok(Self {
            shape,
            first_level,
            second_level,
            first_matrix: matrix("privet 2026-11 doublepir first public matrix"),
            second_matrix: matrix("privet 2026-11 doublepir second public matrix"),
        })
    }

    /// The table's shape.
    pub fn shape(&self) -> TableShape {
        self.shape
    }

    /// Width of the first matrix; the number of words of a query that choose the column.
    pub fn columns(&self) -> u64 {
        self.first_level.columns()
    }

    /// Height of the first matrix.
    pub fn rows(&self) -> u64 {
        self.records_per_column() * self.shape.record_len()
    }

    /// Width of the second matrix; the number of words of a query that choose the record within its
    /// column.
    pub fn records_per_column(&self) -> u64 {
        self.second_level.columns()
    }

    /// The errors with which the two halves of a query are encrypted: the column, and the record
    /// within it.
    pub fn encryption(&self) -> [EncryptionParameters; 2] {
        [self.first_level, self.second_level]
    }

    /// Height of the second matrix; the number of words of an answer that carry masked bytes of the
    /// first hint.
    pub fn second_rows(&self) -> u64 {
        second_rows(self.shape)
    }

    /// Size of the hint: 1024 words for each row of the second matrix, 16 MiB for each byte of a
    /// record.
    pub fn hint_bytes(&self) -> u64 {
        hint_bytes(self.shape)
    }

    /// Size of the first hint, which only the server holds: the bytes of the second matrix.
    pub fn kept_bytes(&self) -> u64 {
        self.rows() * HINT_ROW_BYTES
    }

    /// Whether the first product goes through the second level too. Otherwise it is sent as it is,
    /// which is shorter if a column has few records.
    pub fn folds_first_product(&self) -> bool {
        folds(self.records_per_column())
    }

    /// Words of an answer that carry the first product.
    pub fn first_words(&self) -> u64 {
        first_words(self.shape, self.records_per_column())
    }

    /// log2 of a bound on the probability that a recovered record has a wrong byte, for any
    /// contents of the table. It counts all bytes that are decrypted, at either level.
    pub fn failure_bound_log2(&self) -> f64 {
        let record_len = (self.shape.record_len() as f64).log2();
        // As logarithms: the probabilities themselves are too small for a double.
        let [first, second] = self.encryption().map(|level| level.failure_log2() + record_len);
        first.max(second) + (1.0 + (-(first - second).abs()).exp2()).log2()
    }

    /// The public matrix of the first level, one row for each column of the table.
    pub(super) fn first_matrix(&self) -> &PublicMatrix {
        &self.first_matrix
    }

    /// The public matrix of the second level, one row for each record of a column.
    pub(super) fn second_matrix(&self) -> &PublicMatrix {
        &self.second_matrix
    }

    /// Where a record lies: its column, and its number within the column. Both secret.
    pub(super) fn place(&self, index: &RecordIndex) -> (u64, u64) {
        index.divide(self.records_per_column())
    }
}

fn second_rows(shape: TableShape) -> u64 {
    shape.record_len() * HINT_ROW_BYTES
}

fn hint_bytes(shape: TableShape) -> u64 {
    second_rows(shape) * HINT_ROW_BYTES
}

/// Refuses records whose hint would be too large, and names the alternative.
fn check_hint(identity: &TableIdentity) -> Result<()> {
    let shape = identity.shape;
    if hint_bytes(shape) <= MAX_HINT_BYTES {
        return Ok(());
    }
    let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
    let instead = SimplePirParameters::new(identity).map_or(String::new(), |simplepir| {
        format!("; SimplePIR's hint for this table has {} MiB", mebibytes(simplepir.hint_bytes()))
    });
    Err(Error::api_misuse(format!(
        "DoublePIR's hint has 16 MiB for each byte of a record, {} MiB for records of {} bytes; the limit is {} MiB, records of {} bytes{instead}",
        mebibytes(hint_bytes(shape)),
        shape.record_len(),
        mebibytes(MAX_HINT_BYTES),
        MAX_HINT_BYTES / (HINT_ROW_BYTES * HINT_ROW_BYTES),
    )))
}

/// Whether folding makes the first product shorter. Folded, it takes 1025 words for each of its
/// bytes, of which there are four for each byte of a record. As it is, it takes one word for each
/// byte of a column.
fn folds(records_per_column: u64) -> bool {
    records_per_column > SECOND_LEVEL_BYTES
}

fn first_words(shape: TableShape, records_per_column: u64) -> u64 {
    shape.record_len() * records_per_column.min(SECOND_LEVEL_BYTES)
}

/// See [`DoublePirParameters::new`].
fn default_records_per_column(shape: TableShape) -> u64 {
    let records = shape.records();
    let second_matrix = (shape.bytes() / 16).max(SMALL_SECOND_MATRIX);
    // Both matrices have at most as many columns as the encryption allows.
    let least = records.div_ceil(MAX_COLUMNS);
    let most = (second_matrix / HINT_ROW_BYTES / shape.record_len())
        .min(MAX_COLUMNS)
        .clamp(least, records);
    let words = |per_column: &u64| {
        records.div_ceil(*per_column) + per_column + first_words(shape, *per_column)
    };
    // The best choice if the first product is sent as it is, the best if it is folded, and the
    // border between the two cases.
    let square_root = |number: f64| number.sqrt().round() as u64;
    let candidates = [
        square_root(records as f64 / (1 + shape.record_len()) as f64),
        square_root(records as f64),
        SECOND_LEVEL_BYTES,
    ];
    let clamped = candidates.map(|per_column| per_column.clamp(least.max(1), most.max(1)));
    clamped.into_iter().min_by_key(words).unwrap_or(1)
}

impl Parameters for DoublePirParameters {
    /// Eight bytes: the number of records in a column, little-endian. Everything else follows from
    /// the table's identity.
    fn encode(&self) -> Vec<u8> {
        self.records_per_column().to_le_bytes().to_vec()
    }

    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self> {
        announced("DoublePIR's parameters", bytes, |records_per_column| {
            Self::with_records_per_column(identity, records_per_column)
        })
    }
}
