//! The server: the table in memory. A query reads one record of each partition.

use super::{DummySubsets, DummySubsetsAnswer, DummySubsetsParameters, DummySubsetsQuery};
use crate::contract::{Answerer, Role, SchemeOf};
use crate::laid_out::in_natural_order;
use privet_core::{Result, TableSource};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;

/// A table laid out for answering: its records in their natural order in huge pages, padded with
/// zero records to whole partitions.
pub struct DummySubsetsServer {
    parameters: DummySubsetsParameters,
    records: HugeBuffer<u8>,
    kernels: Kernels,
}

impl DummySubsetsServer {
    /// Copies `table` into place; the source can be dropped.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of
    /// another shape, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not
    /// enough memory.
    pub fn new<'t>(
        parameters: DummySubsetsParameters,
        table: impl Into<TableSource<'t>>,
        kernels: Kernels,
    ) -> Result<Self> {
        let shape = parameters.shape();
        let records =
            u64::from(parameters.partitions()) * u64::from(parameters.partition_records());
        let records = in_natural_order(table, shape, records * shape.record_len())?;
        Ok(Self { parameters, records, kernels })
    }

    fn answer_one(&self, query: &DummySubsetsQuery) -> DummySubsetsAnswer {
        let positions = self.positions(query);
        let (half_0, half_1) = positions.split_at(query.offsets.len());
        self.sums([half_0, half_1])
    }

    /// All records, padded with zeros to whole partitions.
    pub(super) fn records(&self) -> &[u8] {
        &self.records
    }

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

impl Answerer for DummySubsetsServer {
    const SHARES_PASSES: bool = false;

    fn parameters(&self) -> &DummySubsetsParameters {
        &self.parameters
    }

    fn answer(&self, _role: Role, queries: &[DummySubsetsQuery]) -> Vec<DummySubsetsAnswer> {
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

impl SchemeOf for DummySubsetsServer {
    type Scheme = DummySubsets;
}
