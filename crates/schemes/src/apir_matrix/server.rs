//! The server: a matrix in memory. Every query reads all of it.

use super::tree::{NODE_LEN, RowTree};
use super::{ApirMatrix, ApirMatrixAnswer, ApirMatrixParameters, ApirMatrixQuery};
use crate::contract::{Answerer, Role, SchemeOf, Setup};
use crate::offline::{Precomputed, PublicWords, check_len};
use privet_core::codec::words_from_bytes;
use privet_core::commit::merkle::ZERO;
use privet_core::{Error, Result, TableSource};
use privet_kernels::Kernels;
use privet_kernels::memory::{HugeBuffer, Pod, little_endian_bytes};
use zeroize::Zeroizing;

/// Rows whose bits are one word of a selection.
const WORD_ROWS: usize = 128;

/// 32-bit words of a node.
const NODE_WORDS: usize = NODE_LEN / 4;

/// About how many leaves are hashed before the nodes above them. They are few enough to stay in the
/// processor's cache, and enough to fill its vectors.
const LEAVES_AT_A_TIME: usize = 4096;

/// A server that holds the table in rows. It must still compute the rows' nodes, or read them back.
pub struct ApirMatrixSetup {
    parameters: ApirMatrixParameters,
    /// Row after row, each with zeros where its path will be.
    matrix: HugeBuffer<u8>,
    kernels: Kernels,
    threads: usize,
}

/// A server that can answer.
pub struct ApirMatrixServer {
    parameters: ApirMatrixParameters,
    /// Row after row.
    matrix: HugeBuffer<u8>,
    kernels: Kernels,
    threads: usize,
}

impl ApirMatrixSetup {
    /// Copies `table` into place; the source can be dropped. `threads` of them work on each pass.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of
    /// another shape, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not
    /// enough memory.
    pub fn new<'t>(
        parameters: ApirMatrixParameters,
        table: impl Into<TableSource<'t>>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<Self> {
        let table = table.into();
        table.check_shape(parameters.shape())?;
        let row_len = parameters.row_len() as usize;
        let mut matrix: HugeBuffer<u8> = zeroed(parameters.rows() as usize * row_len)?;
        let mut rows = matrix.chunks_exact_mut(row_len);
        table.pieces(parameters.records_len() as usize, |_, records| {
            if let Some(row) = rows.next() {
                row[..records.len()].copy_from_slice(records);
            }
            Ok(())
        })?;
        Ok(Self { parameters, matrix, kernels, threads })
    }
}

fn zeroed<T: Pod>(len: usize) -> Result<HugeBuffer<T>> {
    HugeBuffer::new_zeroed(len)
        .map_err(|error| Error::unavailable("no memory for the table").caused_by(error))
}

impl Setup for ApirMatrixSetup {
    type Server = ApirMatrixServer;

    /// The rows' nodes: a server that reads them back need not hash the records again. The nodes
    /// above them take no noticeable time.
    fn kept_len(&self) -> u64 {
        self.parameters.rows() * NODE_LEN as u64
    }

    /// The hint is the root; kept are the rows' nodes.
    fn precompute(&self, progress: &(dyn Fn(f64) + Sync)) -> Result<Precomputed> {
        let tree = RowTree::new(&self.parameters, self.kernels);
        let (rows, row_len) = (self.parameters.rows() as usize, self.parameters.row_len() as usize);
        let records_len = self.parameters.records_len() as usize;
        let at_a_time = (LEAVES_AT_A_TIME >> self.parameters.row_records_log2()).max(1);

        let mut kept: HugeBuffer<u32> = zeroed(rows * NODE_WORDS)?;
        let groups = self.matrix.chunks(at_a_time * row_len);
        let words_of_groups = kept.chunks_mut(at_a_time * NODE_WORDS);
        for ((group, bytes), words) in groups.enumerate().zip(words_of_groups) {
            let first_row = group * at_a_time;
            let records = bytes.chunks_exact(row_len).map(|row| &row[..records_len]);
            let nodes = tree.row_nodes(first_row as u64, records);
            words.copy_from_slice(&words_from_bytes(nodes.as_flattened()));
            progress((first_row + nodes.len()) as f64 / rows as f64);
        }

        let mut nodes = little_endian_bytes(&kept).as_chunks().0.to_vec();
        while nodes.len() > 1 {
            nodes = tree.parents(&nodes);
        }
        let mut root: HugeBuffer<u32> = zeroed(NODE_WORDS)?;
        root.copy_from_slice(&words_from_bytes(nodes.as_flattened()));
        Ok(Precomputed { hint: PublicWords::new(root), kept: PublicWords::new(kept) })
    }

    /// Puts every row's path behind its records.
    fn finish(self, kept: &[u8]) -> Result<ApirMatrixServer> {
        check_len("what was kept of the tree", kept.len() as u64, self.kept_len())?;
        let Self { parameters, mut matrix, kernels, threads } = self;
        let tree = RowTree::new(&parameters, kernels);
        let row_len = parameters.row_len() as usize;
        let mut nodes = kept.as_chunks().0.to_vec();
        let mut place = parameters.records_len() as usize;
        for level in 0..parameters.path_nodes() {
            for (row, bytes) in matrix.chunks_exact_mut(row_len).enumerate() {
                let sibling = nodes.get(row >> level ^ 1).unwrap_or(&ZERO);
                bytes[place..place + NODE_LEN].copy_from_slice(sibling);
            }
            nodes = tree.parents(&nodes);
            place += NODE_LEN;
        }
        Ok(ApirMatrixServer { parameters, matrix, kernels, threads })
    }
}

impl Answerer for ApirMatrixServer {
    const SHARES_PASSES: bool = true;

    fn parameters(&self) -> &ApirMatrixParameters {
        &self.parameters
    }

    /// Both servers do the same; only the bits differ.
    fn answer(&self, _role: Role, queries: &[ApirMatrixQuery]) -> Vec<ApirMatrixAnswer> {
        let row_len = self.parameters.row_len() as usize;
        let chunk_rows = Kernels::selected_xor_chunk_records(row_len);
        let select = |chunk: usize, query: usize, bits: &mut [u128]| {
            let bytes = &queries[query].bits[chunk * (chunk_rows / 8)..];
            for (word, bytes) in bits.iter_mut().zip(bytes.chunks(WORD_ROWS / 8)) {
                let mut whole = [0; WORD_ROWS / 8];
                whole[..bytes.len()].copy_from_slice(bytes);
                *word = u128::from_le_bytes(whole);
            }
        };
        let mut sums = vec![Zeroizing::new(vec![0; row_len]); queries.len()];
        let mut out: Vec<&mut [u8]> = sums.iter_mut().map(|sum| sum.as_mut_slice()).collect();
        let (matrix, threads) = (&self.matrix, self.threads);
        self.kernels.xor_selected(matrix, row_len, chunk_rows, select, &mut out, threads);
        sums.into_iter().map(|sum| ApirMatrixAnswer { sum }).collect()
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        self.matrix.huge_page_bytes().map(|bytes| bytes as u64)
    }

    fn held(&self) -> Vec<&[u8]> {
        vec![&self.matrix]
    }
}

impl SchemeOf for ApirMatrixServer {
    type Scheme = ApirMatrix;
}
