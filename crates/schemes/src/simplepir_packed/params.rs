//! The layout of a table as a byte matrix, checked against the noise.

use crate::contract::{Parameters, table_seed};
use privet_core::codec::Reader;
use privet_core::ring::{Form, PLANES, PublicCoefficients, PublicPolynomials, noise};
use privet_core::{Error, RecordIndex, Result, TableIdentity, TableShape};
use privet_kernels::Kernels;

/// The most columns: a query of some two MiB.
const MAX_COLUMNS: u64 = 1 << 19;

/// The most rows. For each of them a server holds 8 KiB besides the table: 8 GiB.
const MAX_ROWS: u64 = 1 << 20;

/// Columns of the table are filled up with zeros to a multiple of this, so that the packing matrix
/// begins where tiles are written fastest.
const COLUMN_STEP: u64 = 16;

/// How a table is read as a matrix of `rows` × `columns` bytes: as SimplePIR's. Column `c` is the
/// bytes `[c·rows, (c+1)·rows)` of the table in its natural order, and every record lies whole in
/// one column. Rows are packed in *blocks* of 2048.
#[derive(Clone, Debug)]
pub struct SimplePirPackedParameters {
    shape: TableShape,
    rows: u64,
    columns: u64,
    query_bits: u32,
    form: Form,
    /// Of the columns, the packing key and the fold key.
    polynomials: [PublicPolynomials; 3],
}

impl SimplePirPackedParameters {
    /// The default layout: the one whose first lookup moves the fewest bytes, masks included. It is
    /// near to a square.
    ///
    /// # Errors
    /// As [`with_records_per_column`](Self::with_records_per_column).
    pub fn new(identity: &TableIdentity) -> Result<Self> {
        Self::with_form(identity, Form::STANDARD, None)
    }

    /// A layout with the given number of records in a column. More records make a longer answer and
    /// more masks, and a shorter query.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers, if there would be too
    /// many rows or columns, or the noise of so many columns would make records wrong too often.
    pub fn with_records_per_column(
        identity: &TableIdentity,
        records_per_column: u64,
    ) -> Result<Self> {
        Self::with_form(identity, Form::STANDARD, Some(records_per_column))
    }

    /// The same in another form of the ring, which tests have.
    pub(super) fn with_form(
        identity: &TableIdentity,
        form: Form,
        records_per_column: Option<u64>,
    ) -> Result<Self> {
        let shape = identity.shape;
        let records_per_column =
            records_per_column.unwrap_or_else(|| default_records_per_column(shape, form));
        if records_per_column == 0 || records_per_column > shape.records() {
            return Err(Error::api_misuse(format!(
                "a column of {records_per_column} records does not fit a table of {} records",
                shape.records()
            )));
        }
        let refusal = |what: String| {
            Error::api_misuse(format!(
                "packed SimplePIR on {} records of {} bytes: {what}",
                shape.records(),
                shape.record_len()
            ))
        };
        let columns = shape.records().div_ceil(records_per_column);
        if columns > MAX_COLUMNS {
            return Err(refusal(format!(
                "{columns} columns are more than the {MAX_COLUMNS} that are allowed; put more records into each column"
            )));
        }
        let rows = records_per_column.saturating_mul(shape.record_len());
        if rows > MAX_ROWS {
            return Err(refusal(format!(
                "{rows} rows, for each of which a server holds 8 KiB besides the table, are more than the {MAX_ROWS} that are allowed; cut the table into several, or take simplepir"
            )));
        }
        let query_bits =
            noise::query_bits(form, columns, shape.record_len()).ok_or_else(|| {
                refusal(format!(
                    "with {columns} columns, the noise makes a record wrong with a probability of more than 2^{}; put more records into each column",
                    noise::RECORD_FAILURE_LOG2
                ))
            })?;
        let polynomials = [
            "privet 2026-11 simplepir-packed columns",
            "privet 2026-11 simplepir-packed packing key",
            "privet 2026-11 simplepir-packed fold key",
        ];
        let polynomials =
            polynomials.map(|purpose| PublicPolynomials::new(&table_seed(purpose, identity)));
        Ok(Self { shape, rows, columns, query_bits, form, polynomials })
    }

    /// The table's shape.
    pub fn shape(&self) -> TableShape {
        self.shape
    }

    /// Height of the byte matrix; the number of symbols in an answer.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Width of the table as a matrix; the number of words in a query.
    pub fn columns(&self) -> u64 {
        self.columns
    }

    /// Bits of a word of a query.
    pub fn query_bits(&self) -> u32 {
        self.query_bits
    }

    /// The form of the ring.
    pub fn form(&self) -> Form {
        self.form
    }

    /// How many blocks are packed.
    pub fn blocks(&self) -> u64 {
        self.rows.div_ceil(self.form.degree() as u64)
    }

    /// Rows of a block: all but the last have 2048.
    pub fn block_rows(&self, block: u64) -> u64 {
        let degree = self.form.degree() as u64;
        degree.min(self.rows - block * degree)
    }

    /// Size of the masks, which clients download: 4352 bytes for each block.
    pub fn hint_bytes(&self) -> u64 {
        self.blocks() * self.form.mask_bytes()
    }

    /// Size of what a server keeps of the packing: 8 KiB for each row, and 16 KiB for each block.
    pub fn kept_bytes(&self) -> u64 {
        4 * self.form.degree() as u64 * (self.rows + 2 * self.blocks())
    }

    /// Columns of the table, and of zeros after it, before those of the packing matrix.
    pub fn table_columns(&self) -> u64 {
        self.columns.next_multiple_of(COLUMN_STEP)
    }

    /// Columns of the whole matrix that a query is multiplied with.
    pub fn pass_columns(&self) -> u64 {
        self.table_columns() + (PLANES * self.form.degree()) as u64
    }

    /// log2 of a bound on the probability that a recovered record has a wrong byte, for any
    /// contents of a table that a server does not refuse.
    pub fn failure_bound_log2(&self) -> f64 {
        noise::failure_bound_log2(self.form, self.columns, self.query_bits, self.shape.record_len())
    }

    /// The public polynomials of the table.
    pub(super) fn public(&self, kernels: Kernels) -> PublicCoefficients {
        PublicCoefficients::expand(kernels, self.form, self.columns, &self.polynomials)
    }

    /// Where a record lies: its column, and the first of its rows. Both secret.
    pub(super) fn place(&self, index: &RecordIndex) -> (u64, u64) {
        let (column, place) = index.divide(self.records_per_column());
        (column, place * self.shape.record_len())
    }

    /// Records in a column.
    pub fn records_per_column(&self) -> u64 {
        self.rows / self.shape.record_len()
    }
}

/// Tries numbers of records in a column at distances of two percent, and for each of them the next
/// lower that fills its blocks.
fn default_records_per_column(shape: TableShape, form: Form) -> u64 {
    let (records, record_len, degree) = (shape.records(), shape.record_len(), form.degree() as u64);
    // If no layout is possible, the refusal is that of the one with the fewest rows.
    let least = records.div_ceil(MAX_COLUMNS);
    let most = (MAX_ROWS / record_len).clamp(least, records.max(least));
    let bits = |per_column: u64| {
        let (columns, rows) = (records.div_ceil(per_column), per_column * record_len);
        let query_bits = noise::query_bits(form, columns, record_len)?;
        let masks = rows.div_ceil(degree) * 8 * form.mask_bytes();
        Some(columns * u64::from(query_bits) + rows * u64::from(form.answer_bits()) + masks)
    };
    let next = |per_column: &u64| {
        let step = (per_column / 50).max(1);
        Some((per_column + step).min(most)).filter(|_| *per_column < most)
    };
    let candidates = std::iter::successors(Some(least), next).flat_map(|per_column| {
        let filled = per_column * record_len / degree * degree / record_len;
        [per_column, filled.max(least)]
    });
    let costs = candidates.filter_map(|candidate| Some((bits(candidate)?, candidate)));
    costs.min().map_or(least, |(_, best)| best)
}

impl Parameters for SimplePirPackedParameters {
    /// Eight bytes: the number of records in a column, little-endian. Everything else follows from
    /// the table's identity.
    fn encode(&self) -> Vec<u8> {
        self.records_per_column().to_le_bytes().to_vec()
    }

    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("packed SimplePIR's parameters", bytes);
        let records_per_column = reader.u64()?;
        reader.finish()?;
        Self::with_records_per_column(identity, records_per_column).map_err(|error| {
            Error::peer_misbehaved("the server announced parameters that are refused")
                .caused_by(error)
        })
    }
}
