//! The server: the table in memory. A query reads the records that it names.

use super::{Harmony, HarmonyAnswer, HarmonyParameters, HarmonyQuery};
use crate::contract::{Answerer, Message as _, Role, SchemeOf};
use crate::laid_out::in_natural_order;
use privet_core::{Result, TableSource};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;

/// A table laid out for answering: its records in their natural order in huge pages, and a record
/// of zeros behind them, which an empty reads.
pub struct HarmonyServer {
    parameters: HarmonyParameters,
    records: HugeBuffer<u8>,
    kernels: Kernels,
}

impl HarmonyServer {
    /// Copies `table` into place; the source can be dropped.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of
    /// another shape, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not
    /// enough memory.
    pub fn new<'t>(
        parameters: HarmonyParameters,
        table: impl Into<TableSource<'t>>,
        kernels: Kernels,
    ) -> Result<Self> {
        let shape = parameters.shape();
        let records = in_natural_order(table, shape, shape.bytes() + shape.record_len())?;
        Ok(Self { parameters, records, kernels })
    }

    fn answer_one(&self, query: &HarmonyQuery) -> HarmonyAnswer {
        // An empty is the number of records, so it reads the zeros behind them.
        let positions: Vec<u64> = query.values.iter().map(|value| u64::from(*value)).collect();
        let mut records = vec![0; HarmonyAnswer::encoded_len(&self.parameters)];
        let record_len = self.parameters.record_len();
        let gathered =
            self.kernels.gather_records(&self.records, record_len, &positions, &mut records);
        debug_assert!(gathered.is_ok(), "every value is at most the number of records");
        HarmonyAnswer { records }
    }
}

impl Answerer for HarmonyServer {
    const SHARES_PASSES: bool = false;

    fn parameters(&self) -> &HarmonyParameters {
        &self.parameters
    }

    fn answer(&self, _role: Role, queries: &[HarmonyQuery]) -> Vec<HarmonyAnswer> {
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

impl SchemeOf for HarmonyServer {
    type Scheme = Harmony;
}
