//! The server: the table in memory. A query reads the records that it names.

use super::{Harmony, HarmonyAnswer, HarmonyParameters, HarmonyQuery};
use crate::contract::{Answerer, Message as _, Role, SchemeOf};
use privet_core::{Error, Result, TableView};
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
    pub fn new(
        parameters: HarmonyParameters,
        table: TableView<'_>,
        kernels: Kernels,
    ) -> Result<Self> {
        let bytes = table.bytes_for(parameters.shape())?;
        let no_memory = || Error::unavailable("no memory for the table");
        let len = bytes.len().checked_add(parameters.record_len()).ok_or_else(no_memory)?;
        let mut records =
            HugeBuffer::new_zeroed(len).map_err(|error| no_memory().caused_by(error))?;
        records[..bytes.len()].copy_from_slice(bytes);
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
