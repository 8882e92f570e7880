//! The server: the table in memory. A query reads the records that it names.

use super::{Harmony, HarmonyAnswer, HarmonyParameters, HarmonyQuery};
use crate::contract::Message as _;
use crate::laid_out::in_natural_order;
use crate::record_server::{NamesRecords, RecordServer};
use privet_core::{Result, TableSource};
use privet_kernels::memory::HugeBuffer;

/// Records in their natural order, and one of zeros behind them, which an empty reads.
pub type HarmonyServer = RecordServer<Harmony>;

impl NamesRecords for Harmony {
    fn lay_out(parameters: &HarmonyParameters, table: TableSource<'_>) -> Result<HugeBuffer<u8>> {
        let shape = parameters.shape();
        in_natural_order(table, shape, shape.bytes() + shape.record_len())
    }

    fn answer(server: &HarmonyServer, query: &HarmonyQuery) -> HarmonyAnswer {
        // An empty is the number of records, so it reads the zeros behind them.
        let positions: Vec<u64> = query.values.iter().map(|value| u64::from(*value)).collect();
        let RecordServer { parameters, records: held, kernels } = server;
        let mut records = vec![0; HarmonyAnswer::encoded_len(parameters)];
        let gathered =
            kernels.gather_records(held, parameters.record_len(), &positions, &mut records);
        debug_assert!(gathered.is_ok(), "every value is at most the number of records");
        HarmonyAnswer { records }
    }
}
