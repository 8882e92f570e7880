//! The server: a table in memory. Every query reads all of it.

use super::{Dpf, DpfAnswer, DpfParameters, DpfQuery};
use crate::contract::{Answerer, Role, SchemeOf};
use crate::laid_out::in_natural_order;
use privet_core::dpf::{Evaluation, LEAF_BITS, Nodes};
use privet_core::{Result, TableSource};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// log2 of the most chunks in a group. They are enough that each chunk's share of the way down to
/// its group costs little. They are few enough that no thread waits long for another that computes
/// this way.
const GROUP_LEVELS: u32 = 6;

/// A table laid out for answering: its records in their natural order, in huge pages.
pub struct DpfServer {
    parameters: DpfParameters,
    records: HugeBuffer<u8>,
    cut: Cut,
    kernels: Kernels,
    threads: usize,
}

/// How the table is cut, along the nodes of the tree. A *chunk* is so small that its selection bits
/// stay in the processor's first-level cache while its records are read. These bits grow from one
/// node of `chunk_level`. The server computes these nodes for one *group* of chunks at a time: all
/// chunks below one node of `group_level`.
struct Cut {
    group_level: u32,
    chunk_level: u32,
    chunk_records: usize,
    chunks: usize,
}

impl Cut {
    /// Chunks of `chunk_records`, a power of two of leaves, and groups of 2^`group_levels` chunks.
    fn new(parameters: &DpfParameters, chunk_records: usize, group_levels: u32) -> Self {
        let domain = parameters.domain();
        let below_chunk = (chunk_records as u64 / LEAF_BITS).ilog2();
        let chunk_level = domain.depth().saturating_sub(below_chunk);
        let group_level = chunk_level.saturating_sub(group_levels);
        let chunks = domain.records().div_ceil(chunk_records as u64) as usize;
        Self { group_level, chunk_level, chunk_records, chunks }
    }

    /// Chunks in every group but the last.
    fn group_chunks(&self) -> usize {
        1 << (self.chunk_level - self.group_level)
    }

    fn groups(&self) -> usize {
        self.chunks.div_ceil(self.group_chunks())
    }

    /// The nodes from which the bits of a group's chunks grow.
    fn nodes(&self, evaluation: &Evaluation<'_>, group: usize) -> Nodes {
        let top = evaluation.descend(evaluation.root(), self.group_level, group as u64);
        let chunks = self.group_chunks().min(self.chunks - group * self.group_chunks());
        evaluation.nodes(top, self.chunk_level, chunks)
    }
}

impl DpfServer {
    /// Copies `table` into place; the source can be dropped. `threads` of them work on each pass.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of
    /// another shape, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not
    /// enough memory.
    pub fn new<'t>(
        parameters: DpfParameters,
        table: impl Into<TableSource<'t>>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<Self> {
        let shape = parameters.shape();
        let records = in_natural_order(table, shape, shape.bytes())?;
        let chunk_records =
            Kernels::selected_xor_chunk_records(parameters.shape().record_len() as usize);
        let cut = Cut::new(&parameters, chunk_records, GROUP_LEVELS);
        Ok(Self { parameters, records, cut, kernels, threads })
    }

    /// The same server with smaller chunks and groups, so that small tables have many.
    #[cfg(test)]
    pub(super) fn cut_into(mut self, chunk_records: usize, group_levels: u32) -> Self {
        self.cut = Cut::new(&self.parameters, chunk_records, group_levels);
        self
    }
}

impl Answerer for DpfServer {
    const SHARES_PASSES: bool = true;

    fn parameters(&self) -> &DpfParameters {
        &self.parameters
    }

    /// Both servers do the same: the key says which of the two shares it is.
    ///
    /// The first thread that comes to a group grows its nodes, for one query after another. The
    /// server keeps them until the end of the pass, in some 17 bytes for each chunk and query. For
    /// each query that is a thousandth of a table of single bytes, and a thirty-thousandth if
    /// records have 32 bytes or more.
    fn answer(&self, _role: Role, queries: &[DpfQuery]) -> Vec<DpfAnswer> {
        let (cut, parameters) = (&self.cut, &self.parameters);
        let record_len = parameters.shape().record_len() as usize;
        let evaluations: Vec<_> = queries
            .iter()
            .map(|query| Evaluation::new(self.kernels, parameters.table(), &query.key))
            .collect();
        let mut nodes = Vec::new();
        nodes.resize_with(cut.groups() * queries.len(), OnceLock::new);
        let select = |chunk: usize, query: usize, bits: &mut [u128]| {
            let (group, place) = (chunk / cut.group_chunks(), chunk % cut.group_chunks());
            let evaluation = &evaluations[query];
            let nodes =
                nodes[group * queries.len() + query].get_or_init(|| cut.nodes(evaluation, group));
            evaluation.leaves(nodes.node(place), bits);
        };

        let mut sums = vec![Zeroizing::new(vec![0; record_len]); queries.len()];
        let mut out: Vec<&mut [u8]> = sums.iter_mut().map(|sum| sum.as_mut_slice()).collect();
        self.kernels.xor_selected(
            &self.records,
            record_len,
            cut.chunk_records,
            select,
            &mut out,
            self.threads,
        );
        sums.into_iter().map(|sum| DpfAnswer { sum }).collect()
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        self.records.huge_page_bytes().map(|bytes| bytes as u64)
    }

    fn held(&self) -> Vec<&[u8]> {
        vec![&self.records]
    }
}

impl SchemeOf for DpfServer {
    type Scheme = Dpf;
}
