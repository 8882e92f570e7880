//! What it takes to compress the answers of finite differences by encryption, beside plain answers
//! and beside `dpf`.
//!
//! ```text
//! cargo run --release -p privet-schemes --example compressed_answers [-- ARGUMENTS]
//! ```
//!
//! Arguments are five numbers: records, the length of a record, variables, degree, lookups.
//!
//! Looks records up in all three ways, evenly spread over a random table (all of them, if there are
//! as many lookups as records), and compares each with the table. Prints bytes to and from both
//! servers, and the least time of a server and of the client, on one thread. Beside them stands the
//! time of as many random reads of cache lines from the points as a plain answer takes. Without
//! arguments: all 462 records of a small table, 2^24 records of one byte, and 2^20 of 32 bytes.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use privet_core::table::{TableDigest, TableId};
use privet_core::{
    Epoch, Error, RecordIndex, Result, SecretRng, TableIdentity, TableShape, TableView,
};
use privet_kernels::Kernels;
use privet_schemes::contract::{Answerer, Message, Record, Role, StatelessClient};
use privet_schemes::dpf::{DpfClient, DpfParameters, DpfServer};
use privet_schemes::finite_differences::compressed::{
    CompressedClient, CompressedParameters, CompressedServer,
};
use privet_schemes::finite_differences::costs::Setting;
use privet_schemes::finite_differences::{
    FiniteDifferencesClient, FiniteDifferencesParameters, FiniteDifferencesSetup,
};
use std::hint::black_box;
use std::slice::from_ref;
use std::time::{Duration, Instant};

/// The length of a line of the processor's caches.
const LINE: usize = 64;

fn main() -> Result<()> {
    let arguments: Vec<u64> =
        std::env::args().skip(1).map(|argument| argument.parse().unwrap()).collect();
    if let [records, record_len, variables, degree, lookups] = arguments[..] {
        return measure(records, record_len, [variables as u32, degree as u32], lookups);
    }
    measure(462, 1, [11, 5], 462)?;
    measure(1 << 24, 1, [28, 11], 12)?;
    measure(1 << 24, 1, [31, 9], 12)?;
    measure(1 << 20, 32, [25, 9], 12)
}

/// Times of one way of looking records up.
struct Times {
    way: &'static str,
    moved_bytes: usize,
    server: Vec<Duration>,
    client: Vec<Duration>,
}

impl Times {
    fn new(way: &'static str) -> Self {
        Self { way, moved_bytes: 0, server: Vec::new(), client: Vec::new() }
    }

    fn print(&self) {
        let least =
            |times: &[Duration]| times.iter().min().map_or(0.0, |time| time.as_secs_f64() * 1e3);
        let (server, client) = (least(&self.server), least(&self.client));
        let Self { way, moved_bytes, .. } = self;
        println!("  {way:11}{moved_bytes:>10} B  server {server:>9.3} ms  client {client:>6.3} ms");
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// A lookup in both servers' presence. Counts the bytes of all messages, and takes the times.
fn look_up<Q, A, P, M>(
    times: &mut Times,
    ask: impl FnOnce() -> Result<(Vec<Q>, P)>,
    answer: impl Fn(usize, &Q) -> Result<A>,
    recover: impl FnOnce(P, Vec<A>) -> Result<Record>,
) -> Result<Record>
where
    Q: Message<M>,
    A: Message<M>,
{
    let (asked, of_query) = timed(ask);
    let (queries, pending) = asked?;
    let mut answers = Vec::new();
    times.moved_bytes = 0;
    for (server, query) in queries.iter().enumerate() {
        let (answered, of_answer) = timed(|| answer(server, query));
        let answered = answered?;
        times.moved_bytes += query.encode().len() + answered.encode().len();
        answers.push(answered);
        times.server.push(of_answer);
    }
    let (record, of_recovery) = timed(|| recover(pending, answers));
    times.client.push(of_query + of_recovery);
    record
}

fn measure(
    records: u64,
    record_len: u64,
    [variables, degree]: [u32; 2],
    lookups: u64,
) -> Result<()> {
    let kernels = Kernels::detect();
    let mut rng = SecretRng::from_os()?;
    let shape = TableShape::new(records, record_len)?;
    let mut table = vec![0; shape.bytes() as usize];
    rng.fill(&mut table);
    let (id, digest) = (TableId([1; 16]), TableDigest([0; 32]));
    let identity = TableIdentity { id, epoch: Epoch(0), digest, shape };
    let view = TableView::new(identity, &table)?;

    let setting = Setting { servers: 2, field: 2, variables, degree };
    let plain = FiniteDifferencesParameters::with(shape, false, setting)?;
    let points = FiniteDifferencesSetup::new(plain.clone(), view, kernels, 1)?.finish(&|_| {})?;
    let parameters = CompressedParameters::new(&identity, plain.clone())?;
    let client = CompressedClient::new(parameters.clone(), kernels);
    let server = CompressedServer::new(parameters.clone(), points, kernels)?;
    let plain_client = FiniteDifferencesClient::new(plain.clone());
    let of_dpf = DpfParameters::new(&identity);
    let dpf_server = DpfServer::new(of_dpf.clone(), view, kernels, 1)?;
    let dpf_client = DpfClient::new(of_dpf, kernels);

    println!(
        "{records} records of {record_len} B, m = {variables}, D = {degree}: {} points read on {} lines; cut after {}, {} blocks, {} multiply-adds",
        plain.ball().count(),
        plain.cache_lines(),
        parameters.cut(),
        parameters.blocks(),
        parameters.multiply_adds()
    );
    let [mut of_plain, mut compressed, mut dpf] = ["plain", "compressed", "dpf"].map(Times::new);
    let lookups = lookups.min(records);
    for lookup in 0..lookups {
        let number = (u128::from(lookup) * u128::from(records) / u128::from(lookups)) as u64;
        let (index, rng) = (RecordIndex::new(number, shape)?, &mut rng);
        let found = [
            look_up::<_, _, _, FiniteDifferencesParameters>(
                &mut of_plain,
                || plain_client.query(&index, rng),
                |role, query| first(server.plain().answer(Role(role as u8), from_ref(query))),
                |pending, answers| plain_client.recover(pending, &answers),
            )?,
            look_up::<_, _, _, CompressedParameters>(
                &mut compressed,
                || {
                    let (queries, pending) = client.query(&index, rng);
                    Ok((queries.into(), pending))
                },
                |_, query| server.answer(query),
                |pending, answers| client.recover(pending, &answers),
            )?,
            look_up::<_, _, _, DpfParameters>(
                &mut dpf,
                || dpf_client.query(&index, rng),
                |role, query| first(dpf_server.answer(Role(role as u8), from_ref(query))),
                |pending, answers| dpf_client.recover(pending, &answers),
            )?,
        ];
        let expected = &table[(number * record_len) as usize..][..record_len as usize];
        assert!(found.iter().all(|found| found[..] == *expected), "record {number} is wrong");
    }
    println!("  {lookups} records looked up in all three ways, all right");
    [of_plain, compressed, dpf].iter().for_each(Times::print);
    random_reads(kernels, server.plain().held()[0], plain.cache_lines());
    Ok(())
}

fn first<A>(answers: Vec<A>) -> Result<A> {
    answers.into_iter().next().ok_or_else(|| Error::api_misuse("a server gave no answer"))
}

/// The machine's limit: reads of `lines` lines from random places of the points.
fn random_reads(kernels: Kernels, points: &[u8], lines: u64) {
    let whole = &points[..points.len() / LINE * LINE];
    let mut state = 1u64;
    let mut place = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((u128::from(state) * (whole.len() / LINE) as u128) >> 64) as u64
    };
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let positions: Vec<u64> = (0..lines).map(|_| place()).collect();
        let mut sum = [0; LINE];
        let (read, time) = timed(|| kernels.gather_xor(whole, LINE, &positions, &mut sum));
        black_box((read.is_ok(), sum));
        best = best.min(time);
    }
    println!("  {lines} random reads of lines take {:.3} ms", best.as_secs_f64() * 1e3);
}
