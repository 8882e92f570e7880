//! The server: the table in memory. A query reads one record of each partition.

use super::{DummySubsets, DummySubsetsAnswer, DummySubsetsParameters, DummySubsetsQuery};
use crate::laid_out::in_natural_order;
use crate::record_server::{NamesRecords, RecordServer};
use privet_core::{Result, TableSource};
use privet_kernels::memory::HugeBuffer;

/// Records in their natural order, padded with zero records to whole partitions.
pub type DummySubsetsServer = RecordServer<DummySubsets>;

impl NamesRecords for DummySubsets {
    fn lay_out(
        parameters: &DummySubsetsParameters,
        table: TableSource<'_>,
    ) -> Result<HugeBuffer<u8>> {
        let cut = parameters.cut();
        let len = u64::from(cut.count()) * cut.partition_bytes();
        in_natural_order(table, cut.shape(), len)
    }

    fn answer(server: &DummySubsetsServer, query: &DummySubsetsQuery) -> DummySubsetsAnswer {
        let positions = server.positions(query);
        let (half_0, half_1) = positions.split_at(query.offsets.len());
        server.sums([half_0, half_1])
    }
}

impl DummySubsetsServer {
    /// The XORs of two sets of records, given where they are. All positions lie within the padded
    /// table.
    pub(super) fn sums(&self, halves: [&[u64]; 2]) -> DummySubsetsAnswer {
        let record_len = self.parameters.cut().record_len();
        let mut sums = vec![0; 2 * record_len];
        for (sum, positions) in sums.chunks_exact_mut(record_len).zip(halves) {
            let gathered = self.kernels.gather_xor(&self.records, record_len, positions, sum);
            debug_assert!(gathered.is_ok(), "every partition lies within the padded table");
        }
        DummySubsetsAnswer { sums }
    }

    /// The positions of the named records, those of half 0 and then those of half 1.
    fn positions(&self, query: &DummySubsetsQuery) -> Vec<u64> {
        let half_len = query.offsets.len();
        let offset_bits = self.parameters.cut().offset_bits();
        let mut positions = vec![0; 2 * half_len];
        let mut ones = 0;
        for partition in 0..2 * half_len {
            let half = usize::from(query.halves[partition / 8] >> (partition % 8) & 1);
            let place = if half == 1 { ones } else { partition - ones };
            positions[half * half_len + place] =
                ((partition as u64) << offset_bits) | u64::from(query.offsets[place]);
            ones += half;
        }
        positions
    }
}
