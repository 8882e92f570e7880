//! What a client's hints take to follow edits of the table.

use super::microseconds;
use super::table::BenchTable;
use privet_core::table::{Edit, TableDelta};
use privet_core::{Error, Result};
use privet_schemes::registry::ErasedClient;
use std::time::Instant;

/// How many records are edited.
const EDITS: u64 = 16;

/// Microseconds of each of some edits of one record, applied to the hints in memory; `None` if the client has none. Every edit is undone by a second one like it, which takes as
/// long, and the hints are in the end what they were.
pub(super) fn measure(
    table: &BenchTable,
    client: &mut dyn ErasedClient,
) -> Result<Option<Vec<f64>>> {
    let servers = client.plan().servers;
    let Some(hints) = client.hints() else { return Ok(None) };
    if !hints.open().is_empty() {
        return Err(Error::api_misuse("a query is open although all are answered; this is a bug"));
    }
    let mut times = Vec::new();
    for number in 0..EDITS {
        let index = table.wanted(number);
        // Any difference will do; a record's own bytes are at hand.
        let edit = Edit { index, difference: table.record(index) };
        let deltas = vec![TableDelta::new(table.shape(), vec![edit])?; servers];
        for _ in 0..2 {
            let start = Instant::now();
            hints.apply_deltas(&deltas)?;
            times.push(microseconds(start));
        }
    }
    Ok(Some(times))
}
