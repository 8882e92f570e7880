//! The layout of a table as a byte matrix, and of its masks as another, checked against the noise.

use super::layout::MatrixLayout;
use crate::contract::{Parameters, announced, table_seed};
use crate::laid_out::columns;
use privet_core::ring::noise::{self, Reading};
use privet_core::ring::{Form, PublicPolynomials};
use privet_core::{Error, RecordIndex, Result, TableIdentity, TableShape, divide_secret};

/// The most columns: a query of some two MiB.
const MAX_COLUMNS: u64 = 1 << 19;

/// The most rows of a matrix. For each of them a server holds 8 KiB besides the matrix: 8 GiB.
const MAX_ROWS: u64 = 1 << 20;

/// The bit of the encoding that says that masks are on demand: no column has that many records.
const ON_DEMAND: u64 = 1 << 63;

/// How clients get the masks of the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masks {
    /// They download all of them, once for each version of the table.
    Downloaded,
    /// They ask for those of their record, with the same query. They download the masks of the
    /// masks.
    OnDemand,
}

/// How a table is read as a matrix of `rows` × `columns` bytes: as SimplePIR's. Column `c` is the
/// bytes `[c·rows, (c+1)·rows)` of the table in its natural order, and every record lies whole in
/// one column. Rows are packed in *blocks* of up to 2048.
///
/// With [masks on demand](Masks::OnDemand), a block never ends within a record, unless the record
/// is longer than a block. The masks of a block, or of all blocks of such a record, are a column of
/// a second matrix.
#[derive(Clone, Debug)]
pub struct SimplePirPackedParameters {
    shape: TableShape,
    query_bits: u32,
    table: MatrixLayout,
    masks: Option<MatrixLayout>,
}

impl SimplePirPackedParameters {
    /// The default layout, whose masks are downloaded: the one whose first lookup moves the fewest
    /// bytes, masks included. It is near to a square.
    ///
    /// # Errors
    /// As [`with_records_per_column`](Self::with_records_per_column).
    pub fn new(identity: &TableIdentity) -> Result<Self> {
        Self::with_masks(identity, Masks::Downloaded)
    }

    /// The layout whose first lookup moves the fewest bytes, if clients get masks in this way.
    ///
    /// # Errors
    /// As [`with_records_per_column`](Self::with_records_per_column).
    pub fn with_masks(identity: &TableIdentity, masks: Masks) -> Result<Self> {
        Self::with_form(identity, Form::STANDARD, masks, None)
    }

    /// A layout with the given number of records in a column. More records make a longer answer and
    /// more masks, and a shorter query.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers, if there would be too
    /// many rows or columns, or the noise of so many columns would make records wrong too often.
    pub fn with_records_per_column(
        identity: &TableIdentity,
        masks: Masks,
        records_per_column: u64,
    ) -> Result<Self> {
        Self::with_form(identity, Form::STANDARD, masks, Some(records_per_column))
    }

    /// The same in another form of the ring, which tests have.
    pub(super) fn with_form(
        identity: &TableIdentity,
        form: Form,
        masks: Masks,
        records_per_column: Option<u64>,
    ) -> Result<Self> {
        let shape = identity.shape;
        let records_per_column =
            records_per_column.unwrap_or_else(|| default_records_per_column(shape, form, masks));
        columns(shape, records_per_column)?;
        let refusal =
            |what: String| Error::api_misuse(format!("packed SimplePIR on {shape}: {what}"));
        let sizes = Sizes::of(shape, form, masks, records_per_column);
        let Sizes { rows, columns, .. } = sizes;
        if columns > MAX_COLUMNS {
            return Err(refusal(format!(
                "{columns} columns are more than the {MAX_COLUMNS} that are allowed; put more records into each column"
            )));
        }
        if rows > MAX_ROWS {
            return Err(refusal(format!(
                "{rows} rows, for each of which a server holds 8 KiB besides the table, are more than the {MAX_ROWS} that are allowed; cut the table into several, or take simplepir"
            )));
        }
        if let Some([mask_rows, _]) = sizes.masks.filter(|[mask_rows, _]| *mask_rows > MAX_ROWS) {
            return Err(refusal(format!(
                "the masks of a record have {mask_rows} bytes, for each of which a server would hold 8 KiB; more than {MAX_ROWS} are not served on demand: let clients download the masks"
            )));
        }
        let query_bits = sizes.query_bits(form, shape).ok_or_else(|| {
            refusal(format!(
                "with {columns} columns, the noise makes a record wrong with a probability of more than 2^{}; put more records into each column",
                noise::RECORD_FAILURE_LOG2
            ))
        })?;
        let polynomials = |purpose| PublicPolynomials::new(&table_seed(purpose, identity));
        let keys = [
            "privet 2026-11 simplepir-packed packing key",
            "privet 2026-11 simplepir-packed fold key",
        ]
        .map(polynomials);
        let layout = |size, unit_rows, purpose| {
            let [packing, fold] = keys.clone();
            MatrixLayout::new(form, size, unit_rows, [polynomials(purpose), packing, fold])
        };
        let table =
            layout([rows, columns], sizes.unit_rows, "privet 2026-11 simplepir-packed columns");
        let masks = sizes.masks.map(|size| {
            // One secret hides both vectors, so no two columns of both may share a polynomial.
            layout(size, size[0], "privet 2026-11 simplepir-packed masks")
        });
        Ok(Self { shape, query_bits, table, masks })
    }

    /// The table's shape.
    pub fn shape(&self) -> TableShape {
        self.shape
    }

    /// How clients get masks.
    pub fn masks(&self) -> Masks {
        if self.masks.is_some() { Masks::OnDemand } else { Masks::Downloaded }
    }

    /// Height of the byte matrix.
    pub fn rows(&self) -> u64 {
        self.table.rows()
    }

    /// Width of the table as a matrix.
    pub fn columns(&self) -> u64 {
        self.table.columns()
    }

    /// Bits of a word of a query.
    pub fn query_bits(&self) -> u32 {
        self.query_bits
    }

    /// The form of the ring.
    pub fn form(&self) -> Form {
        self.table.form()
    }

    /// How many blocks of the table are packed.
    pub fn blocks(&self) -> u64 {
        self.table.blocks()
    }

    /// Size of what clients download: 4352 bytes for each block, of the table or, if masks are on
    /// demand, of the masks.
    pub fn hint_bytes(&self) -> u64 {
        self.masks.as_ref().unwrap_or(&self.table).mask_bytes()
    }

    /// Size of what a server keeps of the packing: 8 KiB for each row, and 16 KiB for each block.
    pub fn kept_bytes(&self) -> u64 {
        self.matrices().map(MatrixLayout::kept_bytes).sum()
    }

    /// Words of a query: one for each column of each matrix.
    pub fn query_words(&self) -> u64 {
        self.vector_lens().iter().sum()
    }

    /// Symbols of an answer: one for each row of each matrix.
    pub fn answer_symbols(&self) -> u64 {
        self.matrices().map(MatrixLayout::rows).sum()
    }

    /// Bytes that a server multiplies for a query, those of the packing included.
    pub fn pass_bytes(&self) -> u64 {
        self.matrices().map(|matrix| matrix.rows() * matrix.pass_columns()).sum()
    }

    /// log2 of a bound on the probability that a recovered record has a wrong byte, for any
    /// contents of a table that a server does not refuse.
    pub fn failure_bound_log2(&self) -> f64 {
        let Self { shape, table, masks, query_bits } = self;
        let sizes = masks.as_ref().map(|masks| [masks.rows(), masks.columns()]);
        let readings = readings(*shape, table.columns(), sizes);
        noise::failure_bound_log2(self.form(), *query_bits, &readings)
    }

    /// The layout of the table.
    pub(super) fn table_layout(&self) -> &MatrixLayout {
        &self.table
    }

    /// The layout of the masks, if they are on demand.
    pub(super) fn masks_layout(&self) -> Option<&MatrixLayout> {
        self.masks.as_ref()
    }

    /// Both layouts.
    pub(super) fn matrices(&self) -> impl Iterator<Item = &MatrixLayout> {
        std::iter::once(&self.table).chain(&self.masks)
    }

    /// How many words a query has for each matrix.
    pub(super) fn vector_lens(&self) -> Vec<u64> {
        self.matrices().map(MatrixLayout::columns).collect()
    }

    /// Where a record lies. All of it is secret.
    pub(super) fn place(&self, index: &RecordIndex) -> MatrixPlace {
        let (column, place) = index.divide(self.records_per_column());
        let (unit, _) = divide_secret(place, self.table.unit_rows() / self.shape.record_len());
        MatrixPlace { column, unit, first_row: place * self.shape.record_len() }
    }

    /// Records in a column.
    pub fn records_per_column(&self) -> u64 {
        self.rows() / self.shape.record_len()
    }
}

/// Where a record lies in the table's matrix.
pub(super) struct MatrixPlace {
    pub(super) column: u64,
    /// The unit of its rows.
    pub(super) unit: u64,
    /// The first of its rows.
    pub(super) first_row: u64,
}

/// What follows from the number of records in a column.
struct Sizes {
    rows: u64,
    columns: u64,
    unit_rows: u64,
    /// Rows and columns of the masks' matrix.
    masks: Option<[u64; 2]>,
}

impl Sizes {
    fn of(shape: TableShape, form: Form, masks: Masks, records_per_column: u64) -> Self {
        let (record_len, degree) = (shape.record_len(), form.degree() as u64);
        let rows = records_per_column.saturating_mul(record_len);
        let columns = shape.records().div_ceil(records_per_column);
        let unit_rows = match masks {
            Masks::Downloaded => rows,
            Masks::OnDemand => (degree / record_len).max(1).saturating_mul(record_len).min(rows),
        };
        let masks = match masks {
            Masks::Downloaded => None,
            Masks::OnDemand => {
                let of_unit = unit_rows.div_ceil(degree).saturating_mul(form.mask_bytes());
                Some([of_unit, rows.div_ceil(unit_rows)])
            }
        };
        Self { rows, columns, unit_rows, masks }
    }

    fn query_bits(&self, form: Form, shape: TableShape) -> Option<u32> {
        noise::query_bits(form, &readings(shape, self.columns, self.masks))
    }

    /// What the first lookup moves, in bits, without the keys.
    fn bits_moved(&self, form: Form, shape: TableShape) -> Option<u64> {
        let query_bits = u64::from(self.query_bits(form, shape)?);
        let symbol_bits = u64::from(form.answer_bits());
        let (degree, mask_bits) = (form.degree() as u64, 8 * form.mask_bytes());
        let of_table = self.columns * query_bits + self.rows * symbol_bits;
        Some(match self.masks {
            None => of_table + self.rows.div_ceil(degree) * mask_bits,
            Some([rows, columns]) => {
                let of_masks = columns * query_bits + rows * symbol_bits;
                of_table + of_masks + rows.div_ceil(degree) * mask_bits
            }
        })
    }
}

/// What a lookup reads: a record, and its masks.
fn readings(shape: TableShape, columns: u64, masks: Option<[u64; 2]>) -> Vec<Reading> {
    let record = Reading { columns, bytes: shape.record_len() };
    let masks = masks.map(|[rows, columns]| Reading { columns, bytes: rows });
    std::iter::once(record).chain(masks).collect()
}

/// Tries numbers of records in a column at distances of two percent, and for each of them the next
/// lower that fills its blocks.
fn default_records_per_column(shape: TableShape, form: Form, masks: Masks) -> u64 {
    let (records, record_len, degree) = (shape.records(), shape.record_len(), form.degree() as u64);
    // If no layout is possible, the refusal is that of the one with the fewest rows.
    let least = records.div_ceil(MAX_COLUMNS);
    let most = (MAX_ROWS / record_len).clamp(least, records.max(least));
    let next = |per_column: &u64| {
        let step = (per_column / 50).max(1);
        Some((per_column + step).min(most)).filter(|_| *per_column < most)
    };
    let candidates = std::iter::successors(Some(least), next).flat_map(|per_column| {
        let filled = per_column * record_len / degree * degree / record_len;
        [per_column, filled.max(least)]
    });
    let costs = candidates.filter_map(|candidate| {
        let sizes = Sizes::of(shape, form, masks, candidate);
        Some((sizes.bits_moved(form, shape)?, candidate))
    });
    costs.min().map_or(least, |(_, best)| best)
}

impl Parameters for SimplePirPackedParameters {
    /// Eight bytes: the number of records in a column, little-endian. Its highest bit says that
    /// masks are on demand. Everything else follows from the table's identity.
    fn encode(&self) -> Vec<u8> {
        let on_demand = if self.masks.is_some() { ON_DEMAND } else { 0 };
        (self.records_per_column() | on_demand).to_le_bytes().to_vec()
    }

    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self> {
        announced("packed SimplePIR's parameters", bytes, |number| {
            let masks = if number & ON_DEMAND == 0 { Masks::Downloaded } else { Masks::OnDemand };
            Self::with_records_per_column(identity, masks, number & !ON_DEMAND)
        })
    }
}
