//! The servers: the table in memory. A query reads one record of each partition. The hint server
//! reads the whole table once for each client.

use super::permutations::draw_all;
use super::{
    SinglePass, SinglePassAnswer, SinglePassParameters, SinglePassQuery, SinglePassReply,
    SinglePassRequest,
};
use crate::contract::{Message as _, Role, asked};
use crate::laid_out::in_natural_order;
use crate::record_server::{NamesRecords, RecordServer};
use privet_core::{Error, Result, TableSource};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;

/// Records in their natural order, padded with zero records to whole partitions. The same for both
/// roles.
pub type SinglePassServer = RecordServer<SinglePass>;

impl NamesRecords for SinglePass {
    fn lay_out(
        parameters: &SinglePassParameters,
        table: TableSource<'_>,
    ) -> Result<HugeBuffer<u8>> {
        let shape = parameters.shape();
        in_natural_order(table, shape, parameters.padded_records() * shape.record_len())
    }

    fn answer(server: &SinglePassServer, query: &SinglePassQuery) -> SinglePassAnswer {
        let RecordServer { parameters, records, kernels } = server;
        SinglePassAnswer { records: parameters.gather(*kernels, records, &query.offsets) }
    }

    fn reply(server: &SinglePassServer, role: Role, request: &[u8]) -> Result<Vec<u8>> {
        let request = asked::<SinglePass>(&server.parameters, role, request)?;
        Ok(server.hints(&request)?.encode())
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

impl SinglePassServer {
    /// The single pass: partition after partition, each permuted and XORed into the hints. Uses one
    /// thread; requests of several clients can run in parallel.
    pub(super) fn hints(&self, request: &SinglePassRequest) -> Result<SinglePassReply> {
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
