//! One scheme on one shape, in one process, through the same erased client and
//! server that the network uses.
//!
//! | module | what it holds |
//! |---|---|
//! | `table` | a table whose records can be computed again |
//! | `offline` | what happens before the first query: on the server, and on the client |
//! | `online` | queries, their journal, answers, records |
//! | `edits` | the cost of following edits, for clients and for servers that can |
//! | `plain` | the lookup that is not private, for comparison |
//! | `report` | what comes of it |
//!
//! Times are medians; bytes are those of the encoded messages. The machine's yardsticks are taken
//! in the same run, because figures from a shared machine only mean something as ratios to them.

mod edits;
mod offline;
mod online;
mod plain;
mod report;
mod table;

pub use report::BenchReport;
pub(crate) use report::Run;

use crate::watch::Watch;
use crate::{machine, traffic, yardsticks};
use offline::{ReadyClient, ReadyServer};
use online::Timings;
use privet_core::{Error, Reason, Result, TableShape};
use privet_kernels::Kernels;
use privet_kernels::dispatch::Arm;
use privet_schemes::SchemeId;
use privet_schemes::registry::{PARTITION_RECORDS, ServerOptions, Tuning};
use report::{Offline, Online, Ratios, ServerTime};
use std::time::Instant;
use table::BenchTable;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A scheme.
    Scheme(SchemeId),
    /// The lookup that is not private.
    Plain,
}

/// Not a scheme's name, so that no server can offer it and no client can be talked into it.
pub const PLAIN: &str = "plain";

impl Subject {
    /// The name that users type and reports bear.
    pub fn name(self) -> &'static str {
        match self {
            Subject::Scheme(scheme) => scheme.name(),
            Subject::Plain => PLAIN,
        }
    }
}

/// A measurement.
pub struct BenchOptions {
    /// What is measured.
    pub subject: Subject,
    /// Records of the table, and bytes of each.
    pub shape: TableShape,
    /// Queries, which are rounded up to whole batches.
    pub queries: u64,
    /// Queries answered in one pass, at least 1.
    pub batch: u64,
    /// Records to change afterwards, if clients can follow.
    pub edits: u64,
    /// Threads of the server. `None`: as many as there are cores.
    pub threads: Option<u16>,
    /// Of the table's bytes and of the choice of records, never of secrets.
    pub seed: u64,
    /// The instructions to compute with. `None`: the best there are.
    pub kernel: Option<Arm>,
    /// What was chosen about the scheme.
    pub tuning: Tuning,
    /// The seconds that it took to make what nobody chose, if the scheme needs such a thing.
    pub reference_string_s: Option<f64>,
    /// If records are single bits, stored as bytes: the byte that stands for 0.
    pub zero_bit: Option<u8>,
}

impl BenchOptions {
    /// What a person who says nothing else has measured.
    pub fn new(subject: Subject, shape: TableShape) -> Self {
        Self {
            subject,
            shape,
            queries: 16,
            batch: 1,
            edits: 16,
            threads: None,
            seed: 1,
            kernel: None,
            tuning: Tuning::default(),
            reference_string_s: None,
            zero_bit: None,
        }
    }

    fn kernels(&self) -> Result<Kernels> {
        let Some(arm) = self.kernel else { return Ok(Kernels::detect()) };
        Kernels::with_arm(arm).map_err(|error| Error::api_misuse(error.to_string()))
    }

    fn threads(&self) -> usize {
        self.threads.map_or_else(machine::threads, usize::from)
    }

    /// How many batches are measured.
    fn batches(&self) -> u64 {
        // The limit keeps the number of batches times their size from overflowing.
        self.queries.div_ceil(self.batch).min(u64::MAX / self.batch)
    }

    /// The records that the queries of a batch ask for.
    fn wanted(&self, batch: u64, table: &BenchTable) -> Vec<u64> {
        (batch * self.batch..(batch + 1) * self.batch).map(|number| table.wanted(number)).collect()
    }
}

/// Runs the measurement.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the scheme does not suit the shape, or
/// the options do not suit the scheme; [`Blame::Unavailable`](privet_core::Blame::Unavailable) if
/// there is too little memory; [`Blame::Integrity`](privet_core::Blame::Integrity) if a record came
/// back wrong.
pub fn measure(options: &BenchOptions, watch: Watch<'_>) -> Result<BenchReport> {
    let (kernels, shape) = (options.kernels()?, options.shape);
    let mut measured = run(options, watch)?;
    let yardsticks = yardsticks::take(kernels, measured.work.reads(shape))?;
    measured.compare_reads(&yardsticks);
    Ok(BenchReport {
        scheme: options.subject.name(),
        records: shape.records(),
        record_len: shape.record_len(),
        queries: options.batches() * options.batch,
        batch: options.batch,
        threads: options.threads(),
        verified: true,
        ratios: Ratios::new(&measured, shape, &yardsticks),
        measured,
        kernel: kernels.arm().to_string(),
        yardsticks,
    })
}

/// Runs the measurement without the machine's limits.
pub(crate) fn run(options: &BenchOptions, watch: Watch<'_>) -> Result<Run> {
    let kernels = options.kernels()?;
    if !(1..=MOST_IN_A_BATCH).contains(&options.batch) {
        return Err(Error::api_misuse(format!(
            "a batch has at most {MOST_IN_A_BATCH} queries, not {}",
            options.batch
        )));
    }
    let mut table = BenchTable::new(options.seed, options.shape);
    if let Some(zero) = options.zero_bit {
        table = table.of_single_bits(zero);
    }
    match options.subject {
        Subject::Scheme(scheme) => {
            let server = ServerOptions { kernels, threads: options.threads() };
            measure_scheme(scheme, options, &mut table, server, watch)
        }
        Subject::Plain if options.tuning.number(&PARTITION_RECORDS).is_some() => {
            Err(Error::api_misuse(
                "plain lookups do not cut the table into partitions, so their size cannot be chosen",
            ))
        }
        Subject::Plain => plain::measure(options, &table, kernels),
    }
}

/// The most queries that a server collects for one pass.
const MOST_IN_A_BATCH: u64 = 1024;

fn measure_scheme(
    scheme: SchemeId,
    bench: &BenchOptions,
    table: &mut BenchTable,
    options: ServerOptions,
    watch: Watch<'_>,
) -> Result<Run> {
    let identity = table.identity();
    let queries = bench.batches() * bench.batch;
    let ReadyServer { mut server, received, seconds: server_s } =
        offline::server(scheme, table, &bench.tuning, options, watch)?;
    let plan = server.plan().clone();
    // An early check. The client knows its exact supply, but only after the long work.
    if let Some(supply) = plan.supply(&identity) {
        check_supply(queries, supply)?;
    }
    let received_len = received.kept_len();
    let ReadyClient { mut client, mut journal, state_bytes, seconds: client_s, prepare_s } =
        offline::client(&plan, table, server.as_ref(), received, options.kernels, watch)?;
    if let Some(hints) = client.hints() {
        check_supply(queries, hints.supply().left())?;
        check_order(bench.batch, scheme, hints.verifies())?;
    }

    let mut timings = Timings::default();
    for batch in 0..bench.batches() {
        let wanted = bench.wanted(batch, table);
        timings.run_batch(table, server.as_ref(), client.as_mut(), journal.as_mut(), &wanted)?;
    }

    let edits = edits::measure(bench.edits, table, &mut server, client.as_mut(), options)?;
    if let Some((indices, _)) = &edits.batch {
        // Looks up as many edited records as the generation still serves. Their times are not
        // reported.
        let left = client.hints().map_or(0, |hints| hints.supply().left()).min(VERIFIED_EDITS);
        for index in indices.iter().take(left as usize) {
            let (server, client) = (server.as_ref(), client.as_mut());
            Timings::default().run_batch(table, server, client, journal.as_mut(), &[*index])?;
        }
    }
    let wire = traffic::of(&plan, &identity);
    let extra_bytes = server.resident_bytes().saturating_sub(table.shape().bytes());
    let answers = (0..).zip(timings.answers);
    Ok(Run {
        offline: Offline {
            reference_string_s: bench.reference_string_s,
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
        edits: edits.batch.map(|(_, batch)| batch),
        client_state_bytes: state_bytes,
        server_extra_bytes: extra_bytes + received_len,
        work: plan.work(&identity),
    })
}

/// How many edited records are looked up again, at most.
const VERIFIED_EDITS: u64 = 64;

/// A client that verifies answers makes a query only after the previous answer has come.
fn check_order(batch: u64, scheme: SchemeId, verifies: bool) -> Result<()> {
    if batch == 1 || !verifies {
        return Ok(());
    }
    Err(Error::api_misuse(format!(
        "clients of {scheme} make one query after the other, so that there is no batch of {batch}"
    ))
    .because(Reason::OneQueryAtATime))
}

/// A generation of single-use hints serves a fixed number of queries.
fn check_supply(queries: u64, supply: u64) -> Result<()> {
    if queries <= supply {
        return Ok(());
    }
    Err(Error::api_misuse(format!(
        "a generation of hints for this table serves {supply} queries; {queries} were to be measured, ask for fewer"
    ))
    .because(Reason::HintsServeFewer))
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
