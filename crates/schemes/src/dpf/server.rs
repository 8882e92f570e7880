//! The server: a table in memory, of which every query reads all.

use super::{Dpf, DpfAnswer, DpfParameters, DpfQuery};
use crate::contract::{Answerer, Role, SchemeOf};
use privet_core::dpf::{Evaluation, LEAF_BITS};
use privet_core::{Error, Result, TableView};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;
use zeroize::Zeroizing;

/// log2 of the roots from which the selection bits of a chunk are grown: enough that AES blocks fill the processor's pipeline from the first level on.
const CHUNK_ROOT_LEVELS: u32 = 4;

/// log2 of the most chunks in a section: 256 KiB of roots for each query, and pieces of the table so large that starting threads for each does not count.
const SECTION_LEVELS: u32 = 10;

/// A table laid out for answering: its records in their natural order, in huge pages.
pub struct DpfServer {
    parameters: DpfParameters,
    records: HugeBuffer<u8>,
    cut: Cut,
    kernels: Kernels,
    threads: usize,
}

/// How the table is cut, along the nodes of the tree: the records of one *chunk* are read while their selection bits are in the processor's first-level cache. Those bits grow
/// from some neighbouring nodes of `root_level`, which are computed together for all chunks of one *section*; each section lies below one node of `section_level`.
struct Cut {
    section_level: u32,
    root_level: u32,
    chunk_records: usize,
    chunk_roots: usize,
    section_chunks: usize,
}

impl Cut {
    /// Chunks of `chunk_records`, a power of two of leaves, and sections of 2^`section_levels` chunks.
    fn new(parameters: &DpfParameters, chunk_records: usize, section_levels: u32) -> Self {
        let depth = parameters.domain().depth();
        let below_chunk = (chunk_records as u64 / LEAF_BITS).ilog2();
        let chunk_level = depth.saturating_sub(below_chunk);
        let root_level = depth.min(chunk_level + CHUNK_ROOT_LEVELS);
        let section_level = chunk_level.saturating_sub(section_levels);
        Self {
            section_level,
            root_level,
            chunk_records,
            chunk_roots: 1 << (root_level - chunk_level),
            section_chunks: 1 << (chunk_level - section_level),
        }
    }
}

impl DpfServer {
    /// Copies `table` into place; the source can be dropped. `threads` of them work on each pass.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of another shape,
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the memory cannot be had.
    pub fn new(
        parameters: DpfParameters,
        table: TableView<'_>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<Self> {
        if parameters.shape() != table.shape() {
            return Err(Error::api_misuse("the parameters belong to a table of another shape"));
        }
        let mut records = HugeBuffer::new_zeroed(table.bytes().len())
            .map_err(|error| Error::unavailable("no memory for the table").caused_by(error))?;
        records.copy_from_slice(table.bytes());
        let chunk_records =
            Kernels::selected_xor_chunk_records(parameters.shape().record_len() as usize);
        let cut = Cut::new(&parameters, chunk_records, SECTION_LEVELS);
        Ok(Self { parameters, records, cut, kernels, threads })
    }

    /// The same server with a table cut otherwise, so that small tables have many chunks and sections.
    #[cfg(test)]
    pub(super) fn cut_into(mut self, chunk_records: usize, section_levels: u32) -> Self {
        self.cut = Cut::new(&self.parameters, chunk_records, section_levels);
        self
    }
}

impl Answerer for DpfServer {
    const SHARES_PASSES: bool = true;

    fn parameters(&self) -> &DpfParameters {
        &self.parameters
    }

    /// Both servers do the same: which of the two shares this is, the key says.
    fn answer(&self, _role: Role, queries: &[DpfQuery]) -> Vec<DpfAnswer> {
        let Cut { section_level, root_level, chunk_records, chunk_roots, section_chunks } =
            self.cut;
        let depth = self.parameters.domain().depth();
        let record_len = self.parameters.shape().record_len() as usize;
        let section_bytes = record_len.saturating_mul(chunk_records).saturating_mul(section_chunks);
        let keys = self.parameters.tree_keys();
        let evaluations: Vec<Evaluation<'_>> =
            queries.iter().map(|query| Evaluation::new(self.kernels, keys, &query.key)).collect();

        let mut sums = vec![Zeroizing::new(vec![0; record_len]); queries.len()];
        let mut out: Vec<&mut [u8]> = sums.iter_mut().map(|sum| sum.as_mut_slice()).collect();
        for (section, records) in self.records.chunks(section_bytes).enumerate() {
            let leaves = (records.len() / record_len).div_ceil(LEAF_BITS as usize);
            let count = leaves.div_ceil(1 << (depth - root_level));
            let mut roots = vec![0; count * queries.len()];
            for (evaluation, roots) in evaluations.iter().zip(roots.chunks_exact_mut(count)) {
                let top = evaluation.node(section_level, section as u64);
                evaluation.nodes(section_level, &[top], root_level, roots);
            }
            let select = |chunk: usize, query: usize, bits: &mut [u128]| {
                let roots = &roots[query * count..][..count];
                evaluations[query].leaves(root_level, &roots[chunk * chunk_roots..], bits);
            };
            self.kernels.xor_selected(
                records,
                record_len,
                chunk_records,
                select,
                &mut out,
                self.threads,
            );
        }
        sums.into_iter().map(|sum| DpfAnswer { sum }).collect()
    }

    fn resident_bytes(&self) -> u64 {
        self.records.len() as u64
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        self.records.huge_page_bytes().map(|bytes| bytes as u64)
    }
}

impl SchemeOf for DpfServer {
    type Scheme = Dpf;
}
