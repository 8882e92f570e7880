//! The server: the table as a byte matrix in memory, packed, and its masks as another if they are
//! on demand.

use super::matrix::{KeptMatrix, PackedMatrix, pack_all, room, tiled};
use super::{
    SimplePirPacked, SimplePirPackedAnswer, SimplePirPackedParameters, SimplePirPackedQuery,
};
use crate::contract::{Answerer, Role, SchemeOf, Setup};
use crate::laid_out::in_columns;
use crate::offline::{Precomputed, PublicWords, check_len};
use privet_core::ring::{Folding, PublicKeys};
use privet_core::{Error, Result, TableChanges, TableSource};
use privet_kernels::Kernels;
use privet_kernels::byte_matrix::TiledBytes;
use privet_kernels::memory::{HugeBuffer, little_endian_bytes};
use privet_kernels::progress::ProgressReporter;

/// A server that holds the table. It must still pack it, or read back what it packed.
pub struct SimplePirPackedSetup {
    parameters: SimplePirPackedParameters,
    matrix: TiledBytes,
    kernels: Kernels,
    threads: usize,
}

/// A server that can answer.
pub struct SimplePirPackedServer {
    pub(super) parameters: SimplePirPackedParameters,
    pub(super) table: PackedMatrix,
    /// The table's masks, if they are on demand.
    pub(super) masks: Option<PackedMatrix>,
    /// The masks that clients download: the table's, or those of its masks.
    pub(super) downloaded: Vec<u8>,
    pub(super) folding: Folding,
    pub(super) kernels: Kernels,
    pub(super) threads: usize,
}

impl SimplePirPackedSetup {
    /// Copies `table` into place; the source can be dropped. `threads` of them work on each pass.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of
    /// another shape, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not
    /// enough memory.
    pub fn new<'t>(
        parameters: SimplePirPackedParameters,
        table: impl Into<TableSource<'t>>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<Self> {
        let table = table.into();
        table.check_shape(parameters.shape())?;
        let mut matrix = room(parameters.table_layout())?;
        in_columns(table, &mut matrix, threads)?;
        Ok(Self { parameters, matrix, kernels, threads })
    }
}

impl Setup for SimplePirPackedSetup {
    type Server = SimplePirPackedServer;

    fn kept_len(&self) -> u64 {
        self.parameters.kept_bytes()
    }

    /// Packs all blocks. For each of them the server keeps the packing matrix, the digits of the
    /// fold and the mask. Clients download the masks. If they are on demand, they are packed in the
    /// same way, and clients download the masks of that.
    fn precompute(&self, progress: &(dyn Fn(f64) + Sync)) -> Result<Precomputed> {
        let Self { parameters, matrix, kernels, threads } = self;
        let words = parameters.kept_bytes() / 4;
        let mut kept = HugeBuffer::new_zeroed(words as usize).map_err(|error| {
            Error::unavailable("no memory for the packed table").caused_by(error)
        })?;
        let blocks: u64 = parameters.matrices().map(|layout| layout.blocks()).sum();
        let progress = ProgressReporter::new(blocks.into(), progress);
        let table = parameters.table_layout();
        let (of_table, of_masks) = kept.split_at_mut(table.kept_bytes() as usize / 4);
        pack_all(table, matrix, *kernels, *threads, of_table, &progress)?;
        let mut masks = KeptMatrix::new(table, &little_endian_bytes(of_table)).masks(table);
        if let Some(layout) = parameters.masks_layout() {
            let matrix = tiled(layout, &masks, *threads)?;
            pack_all(layout, &matrix, *kernels, *threads, of_masks, &progress)?;
            masks = KeptMatrix::new(layout, &little_endian_bytes(of_masks)).masks(layout);
        }
        Ok(Precomputed { hint: PublicWords::from_bytes(&masks)?, kept: PublicWords::new(kept) })
    }

    fn finish(self, kept: &[u8]) -> Result<SimplePirPackedServer> {
        check_len("the packed table", kept.len() as u64, self.kept_len())?;
        let Self { parameters, matrix, kernels, threads } = self;
        let layout = parameters.table_layout();
        let (of_table, of_masks) = kept.split_at(layout.kept_bytes() as usize);
        let of_table = KeptMatrix::new(layout, of_table);
        let mut downloaded = of_table.masks(layout);
        let table = PackedMatrix::new(layout.clone(), matrix, &of_table, threads);
        let masks = match parameters.masks_layout() {
            None => None,
            Some(layout) => {
                let matrix = tiled(layout, &downloaded, threads)?;
                let of_masks = KeptMatrix::new(layout, of_masks);
                downloaded = of_masks.masks(layout);
                Some(PackedMatrix::new(layout.clone(), matrix, &of_masks, threads))
            }
        };
        let folding = Folding::new(parameters.form());
        Ok(SimplePirPackedServer {
            parameters,
            table,
            masks,
            downloaded,
            folding,
            kernels,
            threads,
        })
    }
}

impl SimplePirPackedServer {
    fn matrices(&self) -> impl Iterator<Item = &PackedMatrix> {
        std::iter::once(&self.table).chain(&self.masks)
    }
}

impl Answerer for SimplePirPackedServer {
    const SHARES_PASSES: bool = true;

    fn parameters(&self) -> &SimplePirPackedParameters {
        &self.parameters
    }

    /// A pass over the table for all queries, and one over its masks if they are on demand.
    fn answer(&self, _role: Role, queries: &[SimplePirPackedQuery]) -> Vec<SimplePirPackedAnswer> {
        let Self { parameters, kernels, folding, .. } = self;
        let (form, query_bits) = (parameters.form(), parameters.query_bits());
        let answer = || SimplePirPackedAnswer { form, symbols: Vec::new() };
        let mut answers: Vec<_> = queries.iter().map(|_| answer()).collect();
        let mut first = 0;
        for matrix in self.matrices() {
            let columns = matrix.layout().columns() as usize;
            let asked = queries.iter();
            let asked: Vec<(&[u32], &PublicKeys)> =
                asked.map(|query| (&query.words[first..][..columns], &query.keys)).collect();
            let symbols = matrix.answer(*kernels, folding, query_bits, &asked, self.threads);
            for (answer, symbols) in answers.iter_mut().zip(symbols) {
                answer.symbols.extend(symbols);
            }
            first += columns;
        }
        answers
    }

    fn resident_bytes(&self) -> u64 {
        let packed: usize = self.matrices().map(PackedMatrix::resident_bytes).sum();
        (packed + self.downloaded.len()) as u64
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        let bytes: Option<usize> = self.matrices().map(PackedMatrix::huge_page_bytes).sum();
        bytes.map(|bytes| bytes as u64)
    }

    fn held(&self) -> Vec<&[u8]> {
        self.matrices().flat_map(PackedMatrix::held).chain([&self.downloaded[..]]).collect()
    }

    fn announced(&self) -> Option<&[u8]> {
        Some(&self.downloaded)
    }

    fn kept(&self) -> Result<Option<PublicWords>> {
        let mut kept =
            HugeBuffer::new_zeroed(self.parameters.kept_bytes() as usize / 4).map_err(|error| {
                Error::unavailable("no memory for what is kept of the packed table")
                    .caused_by(error)
            })?;
        let table = self.parameters.table_layout();
        let (of_table, of_masks) = kept.split_at_mut(table.kept_bytes() as usize / 4);
        let downloaded = |block: u64, mask: &mut [u8]| {
            mask.copy_from_slice(&self.downloaded[block as usize * mask.len()..][..mask.len()]);
        };
        match &self.masks {
            None => self.table.kept(of_table, downloaded)?,
            Some(masks) => {
                let per_unit = table.blocks_per_unit();
                self.table.kept(of_table, |block, mask| {
                    let row = block % per_unit * mask.len() as u64;
                    masks.read_bytes(block / per_unit, row, mask);
                })?;
                masks.kept(of_masks, downloaded)?;
            }
        }
        Ok(Some(PublicWords::new(kept)))
    }

    fn successor(
        &self,
        parameters: SimplePirPackedParameters,
        table: TableSource<'_>,
        changes: &TableChanges,
        threads: usize,
    ) -> Result<Option<(Self, Vec<u8>)>> {
        let server = self.packed_again(parameters, table, changes, threads)?;
        Ok(server.map(|server| (server, Vec::new())))
    }
}

impl SchemeOf for SimplePirPackedServer {
    type Scheme = SimplePirPacked;
}
