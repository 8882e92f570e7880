//! `privet bench`: one scheme on one shape, in one process, through the same erased client and server that the network uses.
//!
//! The table is a public stream of bytes, so that every record received can be compared with it without keeping a second copy. Times are medians; bytes are those
//! of the encoded messages. The machine's yardsticks are taken in the same run, because figures from a shared machine only mean something as ratios to them.

mod report;
mod traffic;
mod yardsticks;

use crate::arguments::Bench;
use crate::display;
use crate::exit::Outcome;
use privet_core::{
    Epoch, Error, RecordIndex, Result, SecretRng, TableDigest, TableId, TableIdentity, TableShape,
    TableView,
};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;
use privet_schemes::contract::Role;
use privet_schemes::offline::{Download, OfflinePhase, StreamConsumer as _};
use privet_schemes::registry::{self, ErasedClient, ErasedServer, ServerOptions};
use privet_schemes::reservation::{Lookup, Prepared};
use report::{Offline, Online, Report, ServerTime};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs the measurement and prints its report.
pub(crate) fn run(arguments: &Bench) -> Result<Outcome> {
    let report = measure(arguments)?;
    display::report(arguments.json, &report, || report.page())?;
    Ok(Outcome::Done)
}

fn measure(arguments: &Bench) -> Result<Report> {
    let kernels = kernels(arguments)?;
    let threads = arguments.threads.map_or_else(display_threads, usize::from);
    let shape = TableShape::new(arguments.records, arguments.record_len)?;
    let table = BenchTable { seed: arguments.seed, shape };
    let identity = table.identity();

    let (server, hint, offline_server) =
        offline_server(arguments, &table, identity, ServerOptions { kernels, threads })?;
    let hint_len = hint.len() as u64;
    let (mut client, offline_client) = offline_client(server.as_ref(), &identity, hint, kernels)?;
    let mut online = Timings::default();
    let batches = arguments.queries.div_ceil(arguments.batch);
    for batch in 0..batches {
        online.run_batch(&table, server.as_ref(), client.as_mut(), batch, arguments.batch)?;
    }

    let plan = server.plan().clone();
    let wire = traffic::of(&plan, &identity);
    let server_extra_bytes = server.extra_bytes() + hint_len;
    drop(server);
    Ok(Report {
        scheme: arguments.scheme.name(),
        records: shape.records(),
        record_len: shape.record_len(),
        queries: batches * arguments.batch,
        batch: arguments.batch,
        threads,
        verified: true,
        offline: Offline {
            server_s: offline_server.as_secs_f64(),
            client_s: offline_client.as_secs_f64(),
            up_bytes: wire.fetch_request,
            down_bytes: wire.fetch_response,
        },
        online: Online {
            client_query_us: median(online.query),
            journal_us: 0.0,
            client_recover_us: median(online.recover),
            servers: vec![ServerTime { role: 0, answer_us: median(online.answer) }],
            up_bytes: wire.query * plan.servers as u64,
            down_bytes: wire.answer * plan.servers as u64,
        },
        client_state_bytes: hint_len,
        server_extra_bytes,
        kernel: kernels.arm().to_string(),
        yardsticks: yardsticks::take(kernels, shape)?,
    })
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

/// The table's contents: BLAKE3's output stream under the seed, so that any record can be computed again.
struct BenchTable {
    seed: u64,
    shape: TableShape,
}

impl BenchTable {
    fn stream(&self, purpose: &str) -> blake3::OutputReader {
        blake3::Hasher::new_derive_key(purpose).update(&self.seed.to_le_bytes()).finalize_xof()
    }

    fn identity(&self) -> TableIdentity {
        let mut digest = [0; 32];
        self.stream("privet bench table digest").fill(&mut digest);
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        TableIdentity {
            id: TableId(id),
            epoch: Epoch(0),
            digest: TableDigest(digest),
            shape: self.shape,
        }
    }

    fn fill(&self, out: &mut [u8]) {
        self.stream("privet bench table").fill(out);
    }

    fn record(&self, index: u64) -> Vec<u8> {
        let mut record = vec![0; self.shape.record_len() as usize];
        let mut stream = self.stream("privet bench table");
        stream.set_position(index * self.shape.record_len());
        stream.fill(&mut record);
        record
    }

    /// Which record the query numbered `number` asks for.
    fn wanted(&self, number: u64) -> u64 {
        let mut stream = self.stream("privet bench queries");
        stream.set_position(number * 16);
        let mut bytes = [0; 16];
        stream.fill(&mut bytes);
        (u128::from_le_bytes(bytes) % u128::from(self.shape.records())) as u64
    }
}

/// Starts the server and computes what clients download. The table's own bytes are dropped again.
fn offline_server(
    arguments: &Bench,
    table: &BenchTable,
    identity: TableIdentity,
    options: ServerOptions,
) -> Result<(Box<dyn ErasedServer>, Vec<u8>, Duration)> {
    let len = usize::try_from(table.shape.bytes())
        .map_err(|_| Error::api_misuse("the table does not fit this machine's memory"))?;
    let mut bytes = HugeBuffer::<u8>::new_zeroed(len)
        .map_err(|error| Error::unavailable("no memory for the table").caused_by(error))?;
    table.fill(&mut bytes);
    let view = TableView::new(identity, &bytes)?;
    let bar = display::share_progress("computing the hint");
    let start = Instant::now();
    let server = registry::server(arguments.scheme, view, options)?;
    let precomputed = server.precompute(&|share| bar.set_position((share * 1000.0) as u64))?;
    let elapsed = start.elapsed();
    bar.finish_and_clear();
    let hint =
        precomputed.map(|precomputed| precomputed.as_bytes().into_owned()).unwrap_or_default();
    Ok((server, hint, elapsed))
}

/// Receives the hint as a client does, checking its digest, and starts the client.
fn offline_client(
    server: &dyn ErasedServer,
    identity: &TableIdentity,
    hint: Vec<u8>,
    kernels: Kernels,
) -> Result<(Box<dyn ErasedClient>, Duration)> {
    let digest = *blake3::hash(&hint).as_bytes();
    let start = Instant::now();
    if let OfflinePhase::Download { len } = server.plan().offline {
        let mut download = Download::new(len, digest);
        for chunk in hint.chunks(privet_wire::limits::FETCH_CHUNK_LEN) {
            download.absorb(download.next_offset(), chunk)?;
        }
        download.finish()?;
    }
    let client = registry::client(server.plan().clone(), identity, Arc::new(hint), kernels)?;
    Ok((client, start.elapsed()))
}

/// Microseconds of each step of each query.
#[derive(Default)]
struct Timings {
    query: Vec<f64>,
    answer: Vec<f64>,
    recover: Vec<f64>,
}

impl Timings {
    /// Queries, answers in one pass, recovers and compares one batch.
    fn run_batch(
        &mut self,
        table: &BenchTable,
        server: &dyn ErasedServer,
        client: &mut dyn ErasedClient,
        batch: u64,
        size: u64,
    ) -> Result<()> {
        let mut rng = SecretRng::from_os()?;
        let wanted: Vec<u64> = (0..size).map(|place| table.wanted(batch * size + place)).collect();
        let mut lookups = Vec::with_capacity(wanted.len());
        for index in &wanted {
            let index = RecordIndex::new(*index, table.shape)?;
            let start = Instant::now();
            let prepared = client.prepare(&index, &mut rng)?;
            self.query.push(microseconds(start));
            lookups.push(ready(prepared)?);
        }
        let queries: Vec<&[u8]> =
            lookups.iter().map(|lookup| lookup.sendable.queries()[0].as_slice()).collect();
        let start = Instant::now();
        let answers = server.answer(Role(0), &queries);
        self.answer.push(microseconds(start) / size as f64);
        for ((lookup, index), answer) in lookups.into_iter().zip(&wanted).zip(answers) {
            let answer = answer?;
            let start = Instant::now();
            let record = client.recover(lookup.pending, &[&answer])?.record;
            self.recover.push(microseconds(start));
            if *record != table.record(*index) {
                return Err(Error::integrity(
                    "a record came back wrong: this build of Privet must not be used",
                ));
            }
        }
        Ok(())
    }
}

fn ready(prepared: Prepared) -> Result<Lookup> {
    match prepared {
        Prepared::Ready(lookup) => Ok(lookup),
        Prepared::Reserved(_) => {
            Err(Error::api_misuse("schemes with a journal are not measured yet"))
        }
    }
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
    }

    #[test]
    fn records_computed_again_are_those_of_the_table() {
        let table = BenchTable { seed: 9, shape: TableShape::new(100, 7).unwrap() };
        let mut bytes = vec![0; 700];
        table.fill(&mut bytes);
        for index in [0, 1, 50, 99] {
            assert_eq!(table.record(index), &bytes[index as usize * 7..][..7]);
            assert!(table.wanted(index) < 100);
        }
    }
}
