//! The server: a byte matrix in memory, multiplied with queries.

use super::{SimplePir, SimplePirAnswer, SimplePirParameters, SimplePirQuery};
use crate::contract::{Answerer, Role, SchemeOf};
use privet_core::lwe::SECRET_DIMENSION;
use privet_core::{Error, Result, TableView};
use privet_kernels::Kernels;
use privet_kernels::byte_matrix::TiledBytes;
use privet_kernels::memory::HugeBuffer;

/// A table laid out for answering. The bytes are copied once, in the order in which a pass reads them; the source can be dropped.
pub struct SimplePirServer {
    parameters: SimplePirParameters,
    table: TiledBytes,
    kernels: Kernels,
    threads: usize,
}

/// The hint `H = D·A`, `rows` × 1024 words: public, the same for every client.
pub struct SimplePirHint(HugeBuffer<u32>);

impl SimplePirHint {
    /// The hint as it is downloaded and stored: little-endian words, row by row.
    pub fn as_bytes(&self) -> std::borrow::Cow<'_, [u8]> {
        privet_kernels::memory::little_endian_bytes(&self.0)
    }
}

impl SimplePirServer {
    /// Copies `table` into place. `threads` of them work on each pass.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of another shape,
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the memory cannot be had.
    pub fn new(
        parameters: SimplePirParameters,
        table: TableView<'_>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<Self> {
        if parameters.shape() != table.shape() {
            return Err(Error::api_misuse("the parameters belong to a table of another shape"));
        }
        let tiled = TiledBytes::from_columns(table.bytes(), parameters.rows() as usize, threads)
            .map_err(|error| Error::unavailable("no memory for the table").caused_by(error))?;
        Ok(Self { parameters, table: tiled, kernels, threads })
    }

    /// Computes the hint: the long part of the offline phase. `progress` hears of the share done, from 0 to 1.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the memory cannot be had.
    pub fn hint(&self, progress: impl Fn(f64) + Sync) -> Result<SimplePirHint> {
        let mut hint =
            HugeBuffer::new_zeroed(self.parameters.rows() as usize * SECRET_DIMENSION)
                .map_err(|error| Error::unavailable("no memory for the hint").caused_by(error))?;
        let matrix = self.parameters.matrix();
        let rows_of_matrix = |first: usize, _count: usize, out: &mut [u32]| {
            matrix.rows(self.kernels, first as u64, out)
        };
        self.kernels
            .multiply_matrix(
                &self.table,
                SECRET_DIMENSION,
                rows_of_matrix,
                &mut hint,
                self.threads,
                progress,
            )
            .map_err(|error| {
                Error::unavailable("no memory to compute the hint").caused_by(error)
            })?;
        Ok(SimplePirHint(hint))
    }

    /// Memory held for the table, padding included, in bytes.
    pub fn resident_bytes(&self) -> u64 {
        self.table.bytes() as u64
    }

    /// How much of that memory the system backs with huge pages, if it says.
    pub fn huge_page_bytes(&self) -> Option<u64> {
        self.table.huge_page_bytes().map(|bytes| bytes as u64)
    }
}

impl Answerer for SimplePirServer {
    fn parameters(&self) -> &SimplePirParameters {
        &self.parameters
    }

    fn answer(&self, _role: Role, queries: &[SimplePirQuery]) -> Vec<SimplePirAnswer> {
        let words: Vec<&[u32]> = queries.iter().map(|query| query.words.as_slice()).collect();
        let mut answers = vec![vec![0; self.parameters.rows() as usize]; queries.len()];
        let mut out: Vec<&mut [u32]> = answers.iter_mut().map(Vec::as_mut_slice).collect();
        self.kernels.multiply(&self.table, &words, &mut out, self.threads);
        answers.into_iter().map(|words| SimplePirAnswer { words }).collect()
    }
}

impl SchemeOf for SimplePirServer {
    type Scheme = SimplePir;
}
