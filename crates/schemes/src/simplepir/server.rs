//! The server: a byte matrix in memory, multiplied with queries.

use super::{SimplePir, SimplePirAnswer, SimplePirParameters, SimplePirQuery};
use crate::contract::{Answerer, Role, SchemeOf, Setup};
use crate::laid_out::{in_columns, no_memory};
use crate::offline::{Precomputed, PublicWords};
use privet_core::{Result, TableSource};
use privet_kernels::Kernels;
use privet_kernels::byte_matrix::TiledBytes;

/// A table laid out for answering. The bytes are copied once, in the order in which a pass reads
/// them; the source can be dropped.
pub struct SimplePirServer {
    parameters: SimplePirParameters,
    table: TiledBytes,
    kernels: Kernels,
    threads: usize,
}

impl SimplePirServer {
    /// Copies `table` into place. `threads` of them work on each pass.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of
    /// another shape, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not
    /// enough memory.
    pub fn new<'t>(
        parameters: SimplePirParameters,
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

    /// Computes the hint `H = D·A`, `rows` × 1024 words: public, the same for every client. The
    /// long part of the offline phase. `progress` is called with the share done, from 0 to 1.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    pub fn hint(&self, progress: impl Fn(f64) + Sync) -> Result<PublicWords> {
        let matrix = self.parameters.matrix();
        matrix.left_product(self.kernels, &self.table, self.threads, progress).map(PublicWords::new)
    }
}

impl Setup for SimplePirServer {
    type Server = Self;

    fn kept_len(&self) -> u64 {
        0
    }

    fn precompute(&self, progress: &(dyn Fn(f64) + Sync)) -> Result<Precomputed> {
        Ok(Precomputed { hint: self.hint(progress)?, kept: PublicWords::default() })
    }

    fn finish(self, _kept: &[u8]) -> Result<Self> {
        Ok(self)
    }
}

impl Answerer for SimplePirServer {
    const SHARES_PASSES: bool = true;

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

    fn huge_page_bytes(&self) -> Option<u64> {
        self.table.huge_page_bytes().map(|bytes| bytes as u64)
    }

    fn held(&self) -> Vec<&[u8]> {
        vec![self.table.as_bytes()]
    }

    /// It keeps nothing but the table.
    fn kept(&self) -> Result<Option<PublicWords>> {
        Ok(Some(PublicWords::default()))
    }
}

impl SchemeOf for SimplePirServer {
    type Scheme = SimplePir;
}
