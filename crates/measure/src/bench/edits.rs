//! The cost of following edits of the table: for clients whose hints can be patched, and for
//! servers that make a successor of themselves.

use super::microseconds;
use super::report::EditsInPlace;
use super::table::BenchTable;
use privet_core::table::{TableChanges, TableDelta, TableView};
use privet_core::{Epoch, Error, Result, TableIdentity};
use privet_kernels::memory::HugeBuffer;
use privet_schemes::registry::{
    self, ErasedClient, ErasedHints, ErasedServer, ServerOptions, Successor, Tuning,
};
use std::time::Instant;

/// The most records that one run changes.
const MOST_EDITS: u64 = 1 << 20;

/// What was measured. A scheme has one of the two, or neither.
#[derive(Default)]
pub(super) struct EditTimes {
    /// Microseconds per edit of one record, applied to the hints in memory.
    pub(super) single_us: Vec<f64>,
    /// One batch, which the servers follow too: the records that it changes, of which
    /// [`BenchTable::record`] already returns the new values; and its times.
    pub(super) batch: Option<(Vec<u64>, EditsInPlace)>,
}

/// Edits `count` records.
pub(super) fn measure(
    count: u64,
    table: &mut BenchTable,
    server: &mut Box<dyn ErasedServer>,
    client: &mut dyn ErasedClient,
    options: ServerOptions,
) -> Result<EditTimes> {
    if count > MOST_EDITS {
        return Err(Error::api_misuse(format!("at most {MOST_EDITS} records are edited in a run")));
    }
    let plan = client.plan().clone();
    let Some(hints) = client.hints() else { return Ok(EditTimes::default()) };
    if !hints.open().is_empty() {
        return Err(Error::internal("a query is open although all are answered; this is a bug"));
    }
    if plan.scheme.about().commits {
        let batch = Some(in_one_batch(count, table, server, hints, options)?);
        return Ok(EditTimes { single_us: Vec::new(), batch });
    }
    Ok(EditTimes { single_us: one_by_one(count, table, hints, plan.servers)?, batch: None })
}

/// Applies every edit twice. The second time undoes the first and takes as long, so the hints end
/// up unchanged.
fn one_by_one(
    count: u64,
    table: &BenchTable,
    hints: &mut dyn ErasedHints,
    servers: usize,
) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    for number in 0..count {
        let index = table.wanted(number);
        // Any difference will do, and the record's own bytes are at hand.
        let edits = vec![(index, table.record(index))];
        let deltas = vec![TableDelta::new(table.shape(), edits)?; servers];
        for _ in 0..2 {
            let before = hints.table();
            let after = next(before);
            let start = Instant::now();
            hints.apply_deltas(&before, &after, &deltas)?;
            times.push(microseconds(start));
        }
    }
    Ok(times)
}

/// The next version of a table. Its digest stays the same, because nothing here checks it.
fn next(table: TableIdentity) -> TableIdentity {
    TableIdentity { epoch: Epoch(table.epoch.0 + 1), ..table }
}

/// All servers would compute the same, so only one does. The client receives its result once for
/// each server.
fn in_one_batch(
    count: u64,
    table: &mut BenchTable,
    server: &mut Box<dyn ErasedServer>,
    hints: &mut dyn ErasedHints,
    options: ServerOptions,
) -> Result<(Vec<u64>, EditsInPlace)> {
    let mut indices: Vec<u64> = (0..count).map(|number| table.wanted(number)).collect();
    indices.sort_unstable();
    indices.dedup();
    let (before, shape) = (hints.table(), table.shape());
    let after = next(before);
    let mut replaced = Vec::new();
    for index in &indices {
        let before = table.record(*index);
        replaced.push((*index, before, table.edit(*index)));
    }
    let changes = TableChanges::new(shape, shape, replaced)?;
    let mut bytes = HugeBuffer::<u8>::new_zeroed(shape.bytes() as usize)
        .map_err(|error| Error::unavailable("no memory for the table").caused_by(error))?;
    table.contents().fill(&mut bytes);
    for (index, _, record) in changes.records() {
        bytes[index as usize * record.len()..][..record.len()].copy_from_slice(record);
    }
    let view = TableView::new(after, &bytes)?;
    let plan = registry::plan_next(server.plan(), &after, &Tuning::default())?;

    let start = Instant::now();
    let Some(successor) = server.successor(&plan, view.into(), &changes, options)? else {
        return Err(Error::internal("a server has no successor; this is a bug"));
    };
    let Successor { server: of_after, commitments } = successor;
    let server_ms = microseconds(start) / 1e3;
    *server = of_after;
    let deltas = vec![changes.delta().with_commitments(commitments); plan.servers];
    let start = Instant::now();
    hints.apply_deltas(&before, &after, &deltas)?;
    let client_ms = microseconds(start) / 1e3;
    match hints.ended() {
        Some(error) => Err(error),
        None => {
            let records = indices.len() as u64;
            let times =
                EditsInPlace { records, server_update_ms: server_ms, client_update_ms: client_ms };
            Ok((indices, times))
        }
    }
}
