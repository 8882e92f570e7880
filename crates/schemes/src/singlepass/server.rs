//! The servers: the table in memory. A query reads one record of each partition. The hint server
//! reads the whole table once for each client.

use super::permutations::draw_all;
use super::{
    SinglePass, SinglePassAnswer, SinglePassParameters, SinglePassQuery, SinglePassReply,
    SinglePassRequest,
};
use crate::contract::{Answerer, PreparingServer, Role, SchemeOf};
use crate::laid_out::in_natural_order;
use privet_core::{Error, Result, TableSource};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;

/// A table laid out for answering: its records in their natural order in huge pages, padded with
/// zero records to whole partitions. The same for both roles.
pub struct SinglePassServer {
    parameters: SinglePassParameters,
    records: HugeBuffer<u8>,
    kernels: Kernels,
}

impl SinglePassServer {
    /// Copies `table` into place; the source can be dropped.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of
    /// another shape, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not
    /// enough memory.
    pub fn new<'t>(
        parameters: SinglePassParameters,
        table: impl Into<TableSource<'t>>,
        kernels: Kernels,
    ) -> Result<Self> {
        let shape = parameters.shape();
        let len = parameters.padded_records() * shape.record_len();
        let records = in_natural_order(table, shape, len)?;
        Ok(Self { parameters, records, kernels })
    }

    fn answer_one(&self, query: &SinglePassQuery) -> SinglePassAnswer {
        SinglePassAnswer {
            records: self.parameters.gather(self.kernels, &self.records, &query.offsets),
        }
    }
}

impl SinglePassParameters {
    /// The record at the given offset of each partition of `table`, which is padded to whole
    /// partitions.
    pub(crate) fn gather(&self, kernels: Kernels, table: &[u8], offsets: &[u16]) -> Vec<u8> {
        let partition_records = u64::from(self.partition_records());
        let positions: Vec<u64> = offsets
            .iter()
            .zip(0u64..)
            .map(|(offset, partition)| partition * partition_records + u64::from(*offset))
            .collect();
        let mut records = vec![0; self.answer_len()];
        let gathered = kernels.gather_records(table, self.record_len(), &positions, &mut records);
        debug_assert!(gathered.is_ok(), "every partition lies within the padded table");
        records
    }
}

impl Answerer for SinglePassServer {
    const SHARES_PASSES: bool = false;

    fn parameters(&self) -> &SinglePassParameters {
        &self.parameters
    }

    fn answer(&self, _role: Role, queries: &[SinglePassQuery]) -> Vec<SinglePassAnswer> {
        queries.iter().map(|query| self.answer_one(query)).collect()
    }

    fn resident_bytes(&self) -> u64 {
        self.records.len() as u64
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        self.records.huge_page_bytes().map(|bytes| bytes as u64)
    }

    fn held(&self) -> Vec<&[u8]> {
        vec![&self.records]
    }
}

impl PreparingServer for SinglePassServer {
    /// The single pass: partition after partition, each permuted and XORed into the hints. Uses one
    /// thread; requests of several clients can run in parallel.
    fn prepare(&self, request: &SinglePassRequest) -> Result<SinglePassReply> {
        let record_len = self.parameters.record_len();
        let partition_bytes = self.parameters.hint_bytes() as usize;
        let mut hints = Vec::new();
        hints.try_reserve_exact(partition_bytes).map_err(|error| {
            Error::unavailable(format!("no memory for {partition_bytes} bytes of hints"))
                .caused_by(error)
        })?;
        hints.resize(partition_bytes, 0);
        draw_all(&self.parameters, &request.seed, self.kernels, |partition, row| {
            let records = &self.records[partition * partition_bytes..][..partition_bytes];
            self.kernels.xor_accumulate_permuted(records, record_len, row, &mut hints);
        });
        Ok(SinglePassReply { hints })
    }
}

impl SchemeOf for SinglePassServer {
    type Scheme = SinglePass;
}
