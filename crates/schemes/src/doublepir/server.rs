//! The server: two byte matrices in memory, the second made of the first one's hint.

use super::params::HINT_ROW_BYTES;
use super::{DoublePir, DoublePirAnswer, DoublePirParameters, DoublePirQuery};
use crate::contract::{Answerer, Role, SchemeOf, Setup};
use crate::laid_out::{in_columns, no_memory};
use crate::offline::{Precomputed, PublicWords, check_len};
use privet_core::lwe::SECRET_DIMENSION;
use privet_core::{Result, TableSource};
use privet_kernels::Kernels;
use privet_kernels::byte_matrix::TiledBytes;
use privet_kernels::memory::little_endian_bytes;

/// A server that holds the table. It must still compute the hints of both levels, or read them
/// back.
pub struct DoublePirSetup {
    parameters: DoublePirParameters,
    table: TiledBytes,
    kernels: Kernels,
    threads: usize,
}

/// A server that can answer.
pub struct DoublePirServer {
    parameters: DoublePirParameters,
    /// `rows` × `columns` bytes: the table.
    table: TiledBytes,
    /// `4096 · record_len` × `records_per_column` bytes: column `r` is the bytes of those rows of
    /// the first hint that belong to record `r` of a column.
    second: TiledBytes,
    kernels: Kernels,
    threads: usize,
}

/// About the first level's share of the work of [`Setup::precompute`]: the second matrix of a large
/// table has a sixteenth of the table's bytes.
const FIRST_SHARE: f64 = 0.94;

impl DoublePirSetup {
    /// Copies `table` into place; the source can be dropped. `threads` of them work on each pass.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of
    /// another shape, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not
    /// enough memory.
    pub fn new<'t>(
        parameters: DoublePirParameters,
        table: impl Into<TableSource<'t>>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<Self> {
        let table = table.into();
        table.check_shape(parameters.shape())?;
        let (rows, columns) = (parameters.rows() as usize, parameters.columns() as usize);
        let mut tiled = TiledBytes::zeroed(rows, columns).map_err(no_memory)?;
        in_columns(table, &mut tiled, threads)?;
        Ok(Self { parameters, table: tiled, kernels, threads })
    }

    /// The second matrix. The first hint's words, row by row in little-endian order, are its
    /// columns in their natural order.
    fn second(&self, first_hint: &[u8]) -> Result<TiledBytes> {
        let rows = self.parameters.second_rows() as usize;
        TiledBytes::from_columns(first_hint, rows, self.threads).map_err(no_memory)
    }
}

impl Setup for DoublePirSetup {
    type Server = DoublePirServer;

    fn kept_len(&self) -> u64 {
        self.parameters.kept_bytes()
    }

    /// The hint is `H₂ = second · A₂`. The server keeps `H₁ = table · A₁`, whose bytes make the
    /// second matrix.
    fn precompute(&self, progress: &(dyn Fn(f64) + Sync)) -> Result<Precomputed> {
        let (kernels, threads) = (self.kernels, self.threads);
        let first = self.parameters.first_matrix();
        let first_hint = first
            .left_product(kernels, &self.table, threads, |share| progress(share * FIRST_SHARE))?;
        let second = self.second(&little_endian_bytes(&first_hint))?;
        let hint =
            self.parameters.second_matrix().left_product(kernels, &second, threads, |share| {
                progress(FIRST_SHARE + share * (1.0 - FIRST_SHARE))
            })?;
        Ok(Precomputed { hint: PublicWords::new(hint), kept: PublicWords::new(first_hint) })
    }

    fn finish(self, kept: &[u8]) -> Result<DoublePirServer> {
        check_len("the first hint", kept.len() as u64, self.kept_len())?;
        let second = self.second(kept)?;
        let Self { parameters, table, kernels, threads } = self;
        Ok(DoublePirServer { parameters, table, second, kernels, threads })
    }
}

impl Answerer for DoublePirServer {
    const SHARES_PASSES: bool = true;

    fn parameters(&self) -> &DoublePirParameters {
        &self.parameters
    }

    fn answer(&self, _role: Role, queries: &[DoublePirQuery]) -> Vec<DoublePirAnswer> {
        let columns: Vec<&[u32]> = queries.iter().map(|query| query.column.as_slice()).collect();
        let records: Vec<&[u32]> = queries.iter().map(|query| query.record.as_slice()).collect();
        let first = self.products(&self.table, &columns);
        let hint_rows = self.products(&self.second, &records);
        let first =
            if self.parameters.folds_first_product() { self.fold(&first, &records) } else { first };
        let answers = hint_rows.into_iter().zip(first);
        answers.map(|(hint_rows, first)| DoublePirAnswer { hint_rows, first }).collect()
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        self.table.huge_page_bytes().map(|bytes| bytes as u64)
    }

    fn held(&self) -> Vec<&[u8]> {
        vec![self.table.as_bytes(), self.second.as_bytes()]
    }
}

impl DoublePirServer {
    fn products(&self, matrix: &TiledBytes, vectors: &[&[u32]]) -> Vec<Vec<u32>> {
        let mut products = vec![vec![0; matrix.rows()]; vectors.len()];
        let mut out: Vec<&mut [u32]> = products.iter_mut().map(Vec::as_mut_slice).collect();
        self.kernels.multiply(matrix, vectors, &mut out, self.threads);
        products
    }

    /// Sends the first products through the second level. Their bytes, `4 · record_len` for each
    /// record of a column, are a matrix with as many rows. The result for each query is this matrix
    /// times A₂, which is the hint that the client lacks, and then the matrix times the vector that
    /// chooses the record.
    fn fold(&self, first: &[Vec<u32>], records: &[&[u32]]) -> Vec<Vec<u32>> {
        let bytes_per_record = 4 * self.parameters.shape().record_len() as usize;
        let planes: Vec<Vec<u32>> =
            first.iter().flat_map(|words| byte_planes(words, bytes_per_record)).collect();
        let mut folded = vec![vec![0; bytes_per_record * (SECRET_DIMENSION + 1)]; first.len()];
        let (mut hint_rows, mut masked) = (Vec::new(), Vec::new());
        for folded in &mut folded {
            let (rows, bytes) = folded.split_at_mut(bytes_per_record * SECRET_DIMENSION);
            hint_rows.extend(rows.chunks_exact_mut(SECRET_DIMENSION));
            masked.push(bytes);
        }
        let weights: Vec<&[u32]> = planes.iter().map(Vec::as_slice).collect();
        let matrix = self.parameters.second_matrix();
        matrix.add_weighted_rows(self.kernels, &weights, &mut hint_rows, self.threads);
        for ((masked, planes), record) in
            masked.into_iter().zip(planes.chunks(bytes_per_record)).zip(records)
        {
            self.kernels.words_times_vector(&planes.concat(), record, masked);
        }
        folded
    }
}

/// The words of a first product as a matrix of their bytes, a byte in each word: row `4j + t` holds
/// byte `t` of word `j` of each record, in the records' order.
fn byte_planes(words: &[u32], bytes_per_record: usize) -> Vec<Vec<u32>> {
    let words_per_record = bytes_per_record / 4;
    let plane = |place: usize| {
        let words = words[place / 4..].iter().step_by(words_per_record);
        words.map(|word| word >> (8 * (place % 4)) & 0xff).collect()
    };
    (0..bytes_per_record).map(plane).collect()
}

impl SchemeOf for DoublePirServer {
    type Scheme = DoublePir;
}

// The bytes of a row of the first hint are rows of the second matrix.
const _: () = assert!(HINT_ROW_BYTES == 4 * SECRET_DIMENSION as u64);
