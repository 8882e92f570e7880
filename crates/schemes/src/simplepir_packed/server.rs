//! The server: a byte matrix in memory, of the table and the packing matrix, multiplied with
//! queries.

use super::packing::{kept_block_words, pack_blocks};
use super::{
    SimplePirPacked, SimplePirPackedAnswer, SimplePirPackedParameters, SimplePirPackedQuery,
};
use crate::contract::{AnnouncingServer, Answerer, Role, SchemeOf, Setup};
use crate::offline::{Precomputed, PublicWords, check_len};
use privet_core::codec::BitWriter;
use privet_core::ring::{Folding, PLANES, pass_words};
use privet_core::{Error, Result, TableView};
use privet_kernels::Kernels;
use privet_kernels::byte_matrix::TiledBytes;
use privet_kernels::memory::HugeBuffer;

/// Columns of the packing matrix that are put into place at a time.
const COLUMNS_AT_ONCE: usize = 16;

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
    /// The table, zeros up to a multiple of 16 columns, and the four planes of the packing matrix.
    pub(super) matrix: TiledBytes,
    /// The digits of the fold, little-endian: 8 KiB for each block.
    pub(super) digits: Vec<u8>,
    /// The masks, as clients download them.
    pub(super) masks: Vec<u8>,
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
    pub fn new(
        parameters: SimplePirPackedParameters,
        table: TableView<'_>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<Self> {
        let bytes = table.bytes_for(parameters.shape())?;
        let (rows, columns) = (parameters.rows() as usize, parameters.pass_columns() as usize);
        let mut matrix = TiledBytes::zeroed(rows, columns)
            .map_err(|error| Error::unavailable("no memory for the table").caused_by(error))?;
        matrix.fill_columns(0, bytes, threads);
        Ok(Self { parameters, matrix, kernels, threads })
    }
}

impl Setup for SimplePirPackedSetup {
    type Server = SimplePirPackedServer;

    fn parameters(&self) -> &SimplePirPackedParameters {
        &self.parameters
    }

    fn kept_len(&self) -> u64 {
        self.parameters.kept_bytes()
    }

    /// Packs all blocks. For each of them the server keeps the packing matrix, the digits of the
    /// fold and the mask; clients download the masks.
    fn precompute(&self, progress: &(dyn Fn(f64) + Sync)) -> Result<Precomputed> {
        let Self { parameters, matrix, kernels, threads } = self;
        let words = parameters.kept_bytes() / 4;
        let mut kept = HugeBuffer::new_zeroed(words as usize).map_err(|error| {
            Error::unavailable("no memory for the packed table").caused_by(error)
        })?;
        let blocks = kept.chunks_mut(kept_block_words(parameters, 0)).enumerate();
        let blocks = blocks.map(|(block, kept)| (block as u64, kept)).collect();
        pack_blocks(parameters, matrix, *kernels, *threads, blocks, progress)?;
        let masks = masks_of(parameters, &kept);
        Ok(Precomputed { hint: PublicWords::from_bytes(&masks)?, kept: PublicWords::new(kept) })
    }

    fn finish(self, kept: &[u8]) -> Result<SimplePirPackedServer> {
        check_len("the packed table", kept.len() as u64, self.kept_len())?;
        let Self { parameters, mut matrix, kernels, threads } = self;
        let kept = Kept::new(&parameters, kept);
        kept.fill_planes(&parameters, &mut matrix, threads);
        let (digits, masks) = (kept.digits(), kept.masks(&parameters));
        let folding = Folding::new(parameters.form());
        Ok(SimplePirPackedServer { parameters, matrix, digits, masks, folding, kernels, threads })
    }
}

/// What was kept, block by block, in bytes.
struct Kept<'a> {
    degree: usize,
    rows: usize,
    blocks: Vec<&'a [[u8; 4]]>,
}

impl<'a> Kept<'a> {
    fn new(parameters: &SimplePirPackedParameters, kept: &'a [u8]) -> Self {
        let (words, _) = kept.as_chunks::<4>();
        let blocks = words.chunks(kept_block_words(parameters, 0)).collect();
        Self { degree: parameters.form().degree(), rows: parameters.rows() as usize, blocks }
    }

    /// Writes the planes of the packing matrix after the table's columns.
    fn fill_planes(
        &self,
        parameters: &SimplePirPackedParameters,
        matrix: &mut TiledBytes,
        threads: usize,
    ) {
        let mut bytes = Vec::with_capacity(COLUMNS_AT_ONCE * self.rows);
        for plane in 0..PLANES {
            for first in (0..self.degree).step_by(COLUMNS_AT_ONCE) {
                bytes.clear();
                for column in first..first + COLUMNS_AT_ONCE {
                    for block in &self.blocks {
                        let rows = block.len() / self.degree - 2;
                        let words = &block[column * rows..][..rows];
                        bytes.extend(words.iter().map(|word| word[plane]));
                    }
                }
                let column = parameters.table_columns() as usize + plane * self.degree + first;
                matrix.fill_columns(column, &bytes, threads);
            }
        }
    }

    /// The digits of the fold.
    fn digits(&self) -> Vec<u8> {
        let of_block = |block: &&'a [[u8; 4]]| {
            let words: &'a [[u8; 4]] = &block[block.len() - 2 * self.degree..];
            words[..self.degree].as_flattened()
        };
        self.blocks.iter().flat_map(of_block).copied().collect()
    }

    /// The masks, as clients download them.
    fn masks(&self, parameters: &SimplePirPackedParameters) -> Vec<u8> {
        let mut writer = BitWriter::with_capacity(parameters.hint_bytes() as usize);
        for block in &self.blocks {
            let words = &block[block.len() - self.degree..];
            let words = words.iter().map(|word| u64::from(u32::from_le_bytes(*word)));
            writer.push(words, parameters.form().mask_bits());
        }
        writer.finish()
    }
}

fn masks_of(parameters: &SimplePirPackedParameters, kept: &[u32]) -> Vec<u8> {
    let bytes = privet_kernels::memory::little_endian_bytes(kept);
    Kept::new(parameters, &bytes).masks(parameters)
}

impl Answerer for SimplePirPackedServer {
    const SHARES_PASSES: bool = true;

    fn parameters(&self) -> &SimplePirPackedParameters {
        &self.parameters
    }

    fn answer(&self, _role: Role, queries: &[SimplePirPackedQuery]) -> Vec<SimplePirPackedAnswer> {
        let Self { parameters, kernels, folding, .. } = self;
        let (form, query_bits) = (parameters.form(), parameters.query_bits());
        let table_columns = parameters.table_columns() as usize;
        let words = |SimplePirPackedQuery { words, keys, .. }: &SimplePirPackedQuery| {
            pass_words(form, query_bits, words, keys, table_columns)
        };
        let words: Vec<Vec<u32>> = queries.iter().map(words).collect();
        let words: Vec<&[u32]> = words.iter().map(Vec::as_slice).collect();
        let mut sums = vec![vec![0; parameters.rows() as usize]; queries.len()];
        let mut out: Vec<&mut [u32]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
        kernels.multiply(&self.matrix, &words, &mut out, self.threads);
        let digits = folding.digits(*kernels, &self.digits);
        let answers = queries.iter().zip(&sums);
        answers
            .map(|(query, sums)| SimplePirPackedAnswer {
                form,
                symbols: folding.symbols(*kernels, &digits, &query.keys, sums),
            })
            .collect()
    }

    fn resident_bytes(&self) -> u64 {
        (self.matrix.bytes() + self.digits.len() + self.masks.len()) as u64
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        self.matrix.huge_page_bytes().map(|bytes| bytes as u64)
    }

    fn held(&self) -> Vec<&[u8]> {
        vec![self.matrix.as_bytes(), &self.digits, &self.masks]
    }
}

impl AnnouncingServer for SimplePirPackedServer {
    fn announced(&self) -> &[u8] {
        &self.masks
    }
}

impl SchemeOf for SimplePirPackedSetup {
    type Scheme = SimplePirPacked;
}

impl SchemeOf for SimplePirPackedServer {
    type Scheme = SimplePirPacked;
}
