//! `privet bench`: one scheme on one shape, in one process, through the same erased client and
//! server that the network uses.
//!
//! | module | what it holds |
//! |---|---|
//! | [`table`] | a table whose records can be computed again |
//! | [`offline`] | what happens before the first query: on the server, and on the client |
//! | [`online`] | queries, their journal, answers, records |
//! | [`edits`] | the cost of following edits, for clients and for servers that can |
//! | [`plain`] | the lookup that is not private, for comparison |
//! | [`report`] | what is printed |
//!
//! Times are medians; bytes are those of the encoded messages. The machine's yardsticks are taken
//! in the same run, because figures from a shared machine only mean something as ratios to them.

mod edits;
mod offline;
mod online;
mod plain;
mod report;
mod table;

use crate::arguments::{Bench, Subject};
use crate::display;
use crate::exit::Outcome;
use crate::laboratory::reference_string;
use crate::laboratory::schemes::zero_bit;
use crate::{traffic, yardsticks};
use offline::{ReadyClient, ReadyServer, Timed};
use online::Timings;
use privet_core::{Error, Result, TableShape};
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use privet_schemes::registry::{PARTITION_RECORDS, ServerOptions, Tuning, Work};
use report::{BenchReport, EditsInPlace, Offline, Online, Ratios, ServerTime};
use std::time::Instant;
use table::BenchTable;

/// Runs the measurement and prints its report.
pub(crate) fn run(arguments: &Bench) -> Result<Outcome> {
    let report = measure(arguments)?;
    display::report(arguments.json, &report, || report.page())?;
    Ok(Outcome::Done)
}

/// Runs the measurement.
pub(crate) fn measure(arguments: &Bench) -> Result<BenchReport> {
    let kernels = kernels(arguments)?;
    let threads = arguments.threads.map_or_else(display_threads, usize::from);
    let shape = TableShape::new(arguments.records, arguments.record_len)?;
    if arguments.batch > MOST_IN_A_BATCH {
        return Err(Error::api_misuse(format!(
            "a batch has at most {MOST_IN_A_BATCH} queries, not {}",
            arguments.batch
        )));
    }
    let mut table = BenchTable::new(arguments.seed, shape);
    if let Some(zero) = zero_bit(&arguments.options) {
        table = table.of_single_bits(zero);
    }
    let measured = match arguments.scheme {
        Subject::Scheme(scheme) => {
            measure_scheme(scheme, arguments, &mut table, ServerOptions { kernels, threads })?
        }
        Subject::Plain if arguments.options.has(&PARTITION_RECORDS) => {
            return Err(Error::api_misuse(
                "plain lookups do not cut the table into partitions, so their size cannot be chosen",
            ));
        }
        Subject::Plain => {
            arguments.options.read(None)?;
            plain::measure(arguments, &table, kernels)?
        }
    };
    let yardsticks = yardsticks::take(kernels, measured.work.reads(shape))?;
    let online = measured.online.against(measured.work, &yardsticks);
    Ok(BenchReport {
        scheme: arguments.scheme.name(),
        records: shape.records(),
        record_len: shape.record_len(),
        queries: whole_batches(arguments) * arguments.batch,
        batch: arguments.batch,
        threads,
        verified: true,
        ratios: Ratios::new(measured.work, shape, &online, &yardsticks),
        offline: measured.offline,
        online,
        edit_us: measured.edit_us,
        edits: measured.edits,
        client_state_bytes: measured.client_state_bytes,
        server_extra_bytes: measured.server_extra_bytes,
        kernel: kernels.arm().to_string(),
        yardsticks,
        work: measured.work,
    })
}

/// The most queries that a server collects for one pass.
const MOST_IN_A_BATCH: u64 = 1024;

/// The result of one run. The yardsticks are taken after it, when its memory is free again.
struct Run {
    offline: Offline,
    online: Online,
    edit_us: Option<f64>,
    edits: Option<EditsInPlace>,
    client_state_bytes: u64,
    server_extra_bytes: u64,
    work: Work,
}

fn whole_batches(arguments: &Bench) -> u64 {
    // The limit keeps the number of batches times their size from overflowing.
    arguments.queries.div_ceil(arguments.batch).min(u64::MAX / arguments.batch)
}

fn measure_scheme(
    scheme: SchemeId,
    arguments: &Bench,
    table: &mut BenchTable,
    options: ServerOptions,
) -> Result<Run> {
    let identity = table.identity();
    let queries = whole_batches(arguments) * arguments.batch;
    let Timed { value: tuning, seconds: reference_string_s } = tuning(scheme, arguments, table)?;
    let Timed { value: ReadyServer { mut server, received }, seconds: server_s } =
        offline::server(scheme, table, &tuning, options)?;
    drop(tuning);
    let plan = server.plan().clone();
    // An early check. The client knows its exact supply, but only after the long work.
    if let Some(supply) = plan.supply(&identity) {
        check_supply(queries, supply)?;
    }
    let received_len = received.kept_len();
    let Timed { value: ready, seconds: client_s } =
        offline::client(&plan, table, server.as_ref(), received, options.kernels)?;
    let ReadyClient { mut client, mut journal, state_bytes, prepare_s } = ready;
    if let Some(hints) = client.hints() {
        check_supply(queries, hints.supply().left())?;
        check_order(arguments.batch, scheme, hints.verifies())?;
    }

    let mut timings = Timings::default();
    for batch in 0..whole_batches(arguments) {
        let first = batch * arguments.batch;
        let wanted: Vec<u64> =
            (first..first + arguments.batch).map(|number| table.wanted(number)).collect();
        timings.run_batch(table, server.as_ref(), client.as_mut(), journal.as_mut(), &wanted)?;
    }

    let edits = edits::measure(arguments.edits, table, &mut server, client.as_mut(), options)?;
    if let Some(batch) = &edits.batch {
        // Looks up as many edited records as the generation still serves. Their times are not
        // reported.
        let left = client.hints().map_or(0, |hints| hints.supply().left()).min(VERIFIED_EDITS);
        for index in batch.indices.iter().take(left as usize) {
            let (server, client) = (server.as_ref(), client.as_mut());
            Timings::default().run_batch(table, server, client, journal.as_mut(), &[*index])?;
        }
    }
    let wire = traffic::of(&plan, &identity);
    let extra_bytes = server.resident_bytes().saturating_sub(table.shape().bytes());
    let answers = (0..).zip(timings.answers);
    Ok(Run {
        offline: Offline {
            reference_string_s: (reference_string_s > 0.0).then_some(reference_string_s),
            server_s,
            prepare_s,
            client_s,
            up_bytes: wire.offline_up,
            down_bytes: wire.offline_down,
        },
        online: Online {
            client_query_us: median(timings.query),
            journal_us: median(timings.journal),
            client_recover_us: median(timings.recover),
            servers: answers
                .zip(&wire.lookups)
                .map(|((role, answers), lookup)| ServerTime::new(role, median(answers), *lookup))
                .collect(),
            up_bytes: wire.lookups.iter().map(|lookup| lookup.query).sum(),
            down_bytes: wire.lookups.iter().map(|lookup| lookup.answer).sum(),
        },
        edit_us: (!edits.single_us.is_empty()).then(|| median(edits.single_us)),
        edits: edits.batch.map(|batch| EditsInPlace {
            records: batch.indices.len() as u64,
            server_update_ms: batch.server_ms,
            client_update_ms: batch.client_ms,
        }),
        client_state_bytes: state_bytes,
        server_extra_bytes: extra_bytes + received_len,
        work: plan.work(&identity),
    })
}

/// How many edited records are looked up again, at most.
const VERIFIED_EDITS: u64 = 64;

/// The scheme's tuning, and the seconds that it took to make the parts that nobody supplied.
fn tuning(scheme: SchemeId, arguments: &Bench, table: &BenchTable) -> Result<Timed<Tuning>> {
    let typed = arguments.options.read(Some(scheme))?;
    let is_missing = reference_string::is_missing(scheme, &table.identity(), &typed);
    let start = Instant::now();
    let value = reference_string::completed(typed, scheme, &table.identity())?;
    let seconds = if is_missing { start.elapsed().as_secs_f64() } else { 0.0 };
    Ok(Timed { value, seconds })
}

/// A client that verifies answers makes a query only after the previous answer has come.
fn check_order(batch: u64, scheme: SchemeId, verifies: bool) -> Result<()> {
    if batch == 1 || !verifies {
        return Ok(());
    }
    Err(Error::api_misuse(format!(
        "clients of {scheme} make one query after the other, so that there is no batch of {batch}: leave out --batch"
    )))
}

fn kernels(arguments: &Bench) -> Result<Kernels> {
    match arguments.kernel {
        None => Ok(Kernels::detect()),
        Some(arm) => Kernels::with_arm(arm).map_err(|error| Error::api_misuse(error.to_string())),
    }
}

fn display_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// A generation of single-use hints serves a fixed number of queries.
fn check_supply(queries: u64, supply: u64) -> Result<()> {
    if queries <= supply {
        return Ok(());
    }
    Err(Error::api_misuse(format!(
        "a generation of hints for this table serves {supply} queries; {queries} were to be measured, ask for fewer (--queries)"
    )))
}

fn microseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        len if len % 2 == 1 => values[len / 2],
        len => (values[len / 2 - 1] + values[len / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(vec![]), 0.0);
    }

    #[test]
    fn a_supply_serves_as_many_queries_as_it_has() {
        check_supply(5, 5).unwrap();
        let error = check_supply(6, 5).unwrap_err().to_string();
        assert!(error.contains("serves 5 queries; 6 were"), "{error}");
    }
}
