//! What it takes to follow edits of the table: of clients whose hints can be patched, and of servers that change where they are.

use super::microseconds;
use super::table::BenchTable;
use crate::scheme;
use privet_core::table::{Edit, Operation, TableDelta, TableUpdate};
use privet_core::{Error, Result};
use privet_schemes::registry::{ErasedClient, ErasedHints, ErasedServer};
use std::time::Instant;

/// No more records are changed in one run.
const MOST_EDITS: u64 = 1 << 20;

/// What was measured; a scheme has either, or neither.
#[derive(Default)]
pub(super) struct Edits {
    /// Microseconds of each of some edits of one record, applied to the hints in memory.
    pub(super) single_us: Vec<f64>,
    /// One batch, which the servers follow in place.
    pub(super) batch: Option<Batch>,
}

/// One batch of edits.
pub(super) struct Batch {
    /// Records that it changes, which [`BenchTable::record`] has by then with their new values.
    pub(super) indices: Vec<u64>,
    pub(super) server_ms: f64,
    pub(super) client_ms: f64,
}

/// Edits `count` records.
pub(super) fn measure(
    count: u64,
    table: &mut BenchTable,
    server: &mut dyn ErasedServer,
    client: &mut dyn ErasedClient,
) -> Result<Edits> {
    if count > MOST_EDITS {
        return Err(Error::api_misuse(format!("at most {MOST_EDITS} records are edited in a run")));
    }
    let plan = client.plan().clone();
    let Some(hints) = client.hints() else { return Ok(Edits::default()) };
    if !hints.open().is_empty() {
        return Err(Error::api_misuse("a query is open although all are answered; this is a bug"));
    }
    if scheme::is_updated_in_place(plan.scheme) {
        let batch = Some(in_one_batch(count, table, server, hints, plan.servers)?);
        return Ok(Edits { single_us: Vec::new(), batch });
    }
    Ok(Edits { single_us: one_by_one(count, table, hints, plan.servers)?, batch: None })
}

/// Every edit is undone by a second one like it, which takes as long, and the hints are in the end what they were.
fn one_by_one(
    count: u64,
    table: &BenchTable,
    hints: &mut dyn ErasedHints,
    servers: usize,
) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    for number in 0..count {
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
    Ok(times)
}

/// The servers would all compute the same, so one does, and the client hears it from as many as there are.
fn in_one_batch(
    count: u64,
    table: &mut BenchTable,
    server: &mut dyn ErasedServer,
    hints: &mut dyn ErasedHints,
    servers: usize,
) -> Result<Batch> {
    let mut indices: Vec<u64> = (0..count).map(|number| table.wanted(number)).collect();
    indices.sort_unstable();
    indices.dedup();
    let operations =
        indices.iter().map(|index| Operation::Edit { index: *index, record: table.edit(*index) });
    let operations = operations.collect();
    let update = TableUpdate::new(table.shape(), operations)?;

    let start = Instant::now();
    let delta = server.update(&update)?;
    let server_ms = microseconds(start) / 1e3;
    let deltas = vec![delta; servers];
    let start = Instant::now();
    hints.apply_deltas(&deltas)?;
    let client_ms = microseconds(start) / 1e3;
    match hints.ended() {
        Some(error) => Err(error),
        None => Ok(Batch { indices, server_ms, client_ms }),
    }
}
