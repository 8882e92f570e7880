//! The server: a table in memory, of which every query reads all.

use super::{Dpf, DpfAnswer, DpfParameters, DpfQuery};
use crate::contract::{Answerer, Role, SchemeOf};
use privet_core::dpf::{Evaluation, LEAF_BITS};
use privet_core::{Error, Result, TableView};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;
use zeroize::Zeroizing;

/// log2 of the most chunks in a section: 64 KiB of subtree roots for each query, and pieces of the table so large that starting threads for each does not count.
const SECTION_LEVELS: u32 = 12;

/// A table laid out for answering: its records in their natural order, in huge pages.
pub struct DpfServer {
    parameters: DpfParameters,
    records: HugeBuffer<u8>,
    cut: Cut,
    kernels: Kernels,
    threads: usize,
}

/// How the table is cut, along the nodes of the tree: below each node of `chunk_level` lie the records of one chunk, which are read while their selection bits are in the
/// processor's first-level cache; below each node of `section_level` lie the chunks of one section, whose subtree roots are computed together.
struct Cut {
    section_level: u32,
    chunk_level: u32,
    chunk_records: usize,
}

impl Cut {
    fn new(parameters: &DpfParameters) -> Self {
        let record_len = parameters.shape().record_len() as usize;
        let chunk_records = Kernels::selected_xor_chunk_records(record_len);
        let below_chunk = (chunk_records as u64 / LEAF_BITS).ilog2();
        let chunk_level = parameters.domain().depth().saturating_sub(below_chunk);
        Self {
            section_level: chunk_level.saturating_sub(SECTION_LEVELS),
            chunk_level,
            chunk_records,
        }
    }

    fn section_chunks(&self) -> usize {
        1 << (self.chunk_level - self.section_level)
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
        let cut = Cut::new(&parameters);
        Ok(Self { parameters, records, cut, kernels, threads })
    }
}

impl Answerer for DpfServer {
    const SHARES_PASSES: bool = true;

    fn parameters(&self) -> &DpfParameters {
        &self.parameters
    }

    /// Both servers do the same: which of the two shares this is, the key says.
    fn answer(&self, _role: Role, queries: &[DpfQuery]) -> Vec<DpfAnswer> {
        let Cut { section_level, chunk_level, chunk_records } = self.cut;
        let record_len = self.parameters.shape().record_len() as usize;
        let chunk_bytes = chunk_records.saturating_mul(record_len);
        let section_bytes = chunk_bytes.saturating_mul(self.cut.section_chunks());
        let keys = self.parameters.tree_keys();
        let evaluations: Vec<Evaluation<'_>> =
            queries.iter().map(|query| Evaluation::new(self.kernels, keys, &query.key)).collect();

        let mut sums = vec![Zeroizing::new(vec![0; record_len]); queries.len()];
        let mut out: Vec<&mut [u8]> = sums.iter_mut().map(|sum| sum.as_mut_slice()).collect();
        for (section, records) in self.records.chunks(section_bytes).enumerate() {
            let chunks = records.len().div_ceil(chunk_bytes);
            let mut roots = vec![0; chunks * queries.len()];
            for (evaluation, roots) in evaluations.iter().zip(roots.chunks_exact_mut(chunks)) {
                let top = evaluation.node(section_level, section as u64);
                evaluation.nodes(section_level, top, chunk_level, roots);
            }
            let select = |chunk: usize, query: usize, bits: &mut [u128]| {
                evaluations[query].leaves(chunk_level, roots[query * chunks + chunk], bits);
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
