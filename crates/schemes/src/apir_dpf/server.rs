//! The server: a table in memory. Every query reads all of it.

use super::{ApirDpf, ApirDpfAnswer, ApirDpfParameters, ApirDpfQuery};
use crate::contract::{Answerer, Role, SchemeOf};
use crate::laid_out::in_natural_order;
use privet_core::dpf::Evaluation;
use privet_core::{Result, TableSource};
use privet_kernels::Kernels;
use privet_kernels::authenticated_sum::ELEMENT_BYTES;
use privet_kernels::memory::HugeBuffer;
use zeroize::Zeroizing;

/// A table laid out for answering: its records in their natural order, in huge pages.
pub struct ApirDpfServer {
    parameters: ApirDpfParameters,
    records: HugeBuffer<u8>,
    /// A power of two. The nodes and leaves of a chunk grow from one node of the tree, and stay in
    /// the processor's first-level cache until its records have been read.
    chunk_records: usize,
    kernels: Kernels,
    threads: usize,
}

impl ApirDpfServer {
    /// Copies `table` into place; the source can be dropped. `threads` of them work on each pass.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of
    /// another shape, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not
    /// enough memory.
    pub fn new<'t>(
        parameters: ApirDpfParameters,
        table: impl Into<TableSource<'t>>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<Self> {
        let shape = parameters.shape();
        let records = in_natural_order(table, shape, shape.bytes())?;
        let chunk_records = Kernels::authenticated_sums_chunk_records(parameters.record_len());
        Ok(Self { parameters, records, chunk_records, kernels, threads })
    }

    /// The same server with smaller chunks, so that small tables have many.
    #[cfg(test)]
    pub(super) fn cut_into(mut self, chunk_records: usize) -> Self {
        self.chunk_records = chunk_records;
        self
    }
}

impl Answerer for ApirDpfServer {
    /// Queries do share a pass, but most of a query's time goes into its tree and its products, not
    /// into reading. In measurements, eight queries took as long together as one by one.
    const SHARES_PASSES: bool = false;

    fn parameters(&self) -> &ApirDpfParameters {
        &self.parameters
    }

    /// Both servers do the same: the key says which of the two shares it is.
    ///
    /// The nodes from which the chunks grow are computed first, for all queries. They are kept
    /// until the end of the pass, 16 bytes for each chunk and query: a two-thousandth of a table of
    /// 32-byte records for each query.
    fn answer(&self, _role: Role, queries: &[ApirDpfQuery]) -> Vec<ApirDpfAnswer> {
        let parameters = &self.parameters;
        let (record_len, domain) = (parameters.record_len(), parameters.domain());
        let chunk_level = domain.depth().saturating_sub(self.chunk_records.ilog2());
        let chunks = domain.records().div_ceil(self.chunk_records as u64) as usize;
        let evaluations: Vec<_> = queries
            .iter()
            .map(|query| {
                let tree = Evaluation::new(self.kernels, parameters.table(), &query.key);
                let tops = tree.nodes(tree.root(), chunk_level, chunks);
                (tree, tops)
            })
            .collect();
        let expand = |chunk: usize, query: usize, nodes: &mut [u128], leaves: &mut [u128]| {
            let (tree, tops) = &evaluations[query];
            tree.ends(tops.node(chunk), nodes, leaves);
        };

        let elements = parameters.elements();
        let mut sums = vec![Zeroizing::new(vec![0; 2 * elements]); queries.len()];
        let mut out: Vec<&mut [u128]> = sums.iter_mut().map(|sum| sum.as_mut_slice()).collect();
        self.kernels.authenticated_sums(
            &self.records,
            record_len,
            self.chunk_records,
            expand,
            &mut out,
            self.threads,
        );
        let answer = |sum: Zeroizing<Vec<u128>>| {
            let (values, tag) = sum.split_at(elements);
            let mut value = Zeroizing::new(vec![0; record_len]);
            for (bytes, element) in value.chunks_mut(ELEMENT_BYTES).zip(values) {
                bytes.copy_from_slice(&element.to_le_bytes()[..bytes.len()]);
            }
            ApirDpfAnswer { value, tag: Zeroizing::new(tag.to_vec()) }
        };
        sums.into_iter().map(answer).collect()
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        self.records.huge_page_bytes().map(|bytes| bytes as u64)
    }

    fn held(&self) -> Vec<&[u8]> {
        vec![&self.records]
    }
}

impl SchemeOf for ApirDpfServer {
    type Scheme = ApirDpf;
}
