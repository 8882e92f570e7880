//! What happens before the first query: the server computes what clients receive, and the client
//! prepares its state from that.

use super::online::HintJournal;
use super::table::BenchTable;
use crate::watch::{Amount, Watch};
use privet_core::{Error, Result, TableView};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;
use privet_schemes::SchemeId;
use privet_schemes::contract::Role;
use privet_schemes::offline::{Download, OfflinePhase, StreamConsumer as _};
use privet_schemes::registry::{
    self, ErasedClient, ErasedPreparation, ErasedServer, SchemePlan, ServerOptions, Tuning,
};
use privet_wire::limits::FETCH_CHUNK_LEN;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server that can answer, and what its clients receive first.
pub(super) struct ReadyServer {
    pub(super) server: Box<dyn ErasedServer>,
    pub(super) received: Received,
    /// Seconds that both took.
    pub(super) seconds: f64,
}

/// What clients receive before their first query.
pub(super) struct Received {
    /// The hint; empty if there is none.
    hint: Vec<u8>,
    /// BLAKE3 digest of what clients receive: the hint, or the table.
    digest: [u8; 32],
}

impl Received {
    /// Memory that the server keeps for the hint, beside the table.
    pub(super) fn kept_len(&self) -> u64 {
        self.hint.len() as u64
    }
}

/// A client that can make queries.
pub(super) struct ReadyClient {
    pub(super) client: Box<dyn ErasedClient>,
    /// Where the client makes its state changes durable. `None` for clients without such changes.
    pub(super) journal: Option<HintJournal>,
    /// Bytes that the client keeps between queries.
    pub(super) state_bytes: u64,
    /// Seconds of its own work.
    pub(super) seconds: f64,
    /// Seconds that a server took to compute this client's hints. `None` if no server computes any.
    pub(super) prepare_s: Option<f64>,
}

/// Starts the server, and computes what clients receive and its digest. Afterwards it drops its
/// copy of the table.
pub(super) fn server(
    scheme: SchemeId,
    table: &BenchTable,
    tuning: &Tuning,
    options: ServerOptions,
    watch: Watch<'_>,
) -> Result<ReadyServer> {
    let len = usize::try_from(table.shape().bytes())
        .map_err(|_| Error::api_misuse("the table does not fit this machine's memory"))?;
    let mut bytes = HugeBuffer::<u8>::new_zeroed(len)
        .map_err(|error| Error::unavailable("no memory for the table").caused_by(error))?;
    table.contents().fill(&mut bytes);
    let view = TableView::new(table.identity(), &bytes)?;
    let computed = watch("computing the hint", Amount::Thousandths);
    let start = Instant::now();
    let setup = registry::setup(scheme, view, tuning, options)?;
    let precomputed = setup.precompute(&|share| computed((share * 1000.0) as u64))?;
    let server = setup.finish(&precomputed.kept.as_bytes(), &|_| {})?;
    let hint = precomputed.hint.as_bytes().into_owned();
    let digest = match server.plan().offline {
        OfflinePhase::StreamTable { .. } | OfflinePhase::KeepTable { .. } => {
            *blake3::hash(&bytes).as_bytes()
        }
        OfflinePhase::StreamArranged { .. } => {
            *blake3::hash(server.streamed().unwrap_or_default()).as_bytes()
        }
        _ => *blake3::hash(&hint).as_bytes(),
    };
    let seconds = start.elapsed().as_secs_f64();
    Ok(ReadyServer { server, received: Received { hint, digest }, seconds })
}

/// Receives what the server offers, checks its digest, and starts the client.
pub(super) fn client(
    plan: &SchemePlan,
    table: &BenchTable,
    server: &dyn ErasedServer,
    received: Received,
    kernels: Kernels,
    watch: Watch<'_>,
) -> Result<ReadyClient> {
    match plan.offline {
        OfflinePhase::StreamTable { .. } | OfflinePhase::StreamArranged { .. } => {
            streaming(plan, table, server.streamed(), received.digest, kernels, watch)
        }
        OfflinePhase::Ask { role, .. } => asking(plan, table, server, role, kernels, watch),
        OfflinePhase::KeepTable { len } => {
            let mut kept = vec![0; len as usize];
            table.contents().fill(&mut kept);
            downloading(plan, table, Received { hint: kept, ..received }, kernels)
        }
        _ => downloading(plan, table, received, kernels),
    }
}

fn downloading(
    plan: &SchemePlan,
    table: &BenchTable,
    Received { hint, digest }: Received,
    kernels: Kernels,
) -> Result<ReadyClient> {
    let state_bytes = hint.len() as u64;
    let start = Instant::now();
    if let OfflinePhase::Download { len } | OfflinePhase::KeepTable { len } = plan.offline {
        let mut download = Download::new(len, digest);
        for chunk in hint.chunks(FETCH_CHUNK_LEN) {
            download.absorb(download.next_offset(), chunk)?;
        }
        download.finish()?;
    }
    let client = registry::client(plan.clone(), &table.identity(), Arc::new(hint), kernels)?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(ReadyClient { client, journal: None, state_bytes, seconds, prepare_s: None })
}

/// Streams the table to the client. A server that arranges the table in its own order supplies the
/// bytes from memory; otherwise they are computed again. That work, and storing the generation, is
/// not the client's, so it is not measured.
fn streaming(
    plan: &SchemePlan,
    table: &BenchTable,
    streamed: Option<&[u8]>,
    digest: [u8; 32],
    kernels: Kernels,
    watch: Watch<'_>,
) -> Result<ReadyClient> {
    let len = plan.offline.len();
    let streaming = watch("streaming the table", Amount::Bytes(len));
    let mut timed = Stopwatch::default();
    let mut preparation =
        timed.run(|| registry::preparation(plan, &table.identity(), digest, None, kernels))?;
    let mut contents = table.contents();
    let mut buffer = vec![0; FETCH_CHUNK_LEN];
    for offset in (0..len).step_by(FETCH_CHUNK_LEN) {
        let chunk_len = (len - offset).min(FETCH_CHUNK_LEN as u64) as usize;
        let chunk = match streamed {
            Some(streamed) => {
                let start = offset as usize;
                streamed.get(start..start + chunk_len).ok_or_else(|| {
                    Error::internal("a server streams less than it announces; this is a bug")
                })?
            }
            None => {
                contents.fill(&mut buffer[..chunk_len]);
                &buffer[..chunk_len]
            }
        };
        timed.run(|| preparation.absorb(offset, chunk))?;
        streaming(offset);
    }
    drop(streaming);
    prepared(plan, table, preparation, timed, None, kernels)
}

/// Asks a server for hints. The server's work is timed apart from the client's.
fn asking(
    plan: &SchemePlan,
    table: &BenchTable,
    server: &dyn ErasedServer,
    role: Role,
    kernels: Kernels,
    watch: Watch<'_>,
) -> Result<ReadyClient> {
    let asking = watch("asking for hints", Amount::Bytes(plan.offline.len()));
    let (mut timed, mut prepare) = (Stopwatch::default(), Stopwatch::default());
    // No digest of the replies can be announced, since they are for this client alone.
    let mut preparation =
        timed.run(|| registry::preparation(plan, &table.identity(), [0; 32], None, kernels))?;
    while let Some(request) = timed.run(|| preparation.request()) {
        let reply = prepare.run(|| server.prepare(role, &request))?;
        let offset = preparation.next_offset();
        timed.run(|| preparation.absorb(offset, &reply))?;
        asking(preparation.next_offset());
    }
    drop(asking);
    prepared(plan, table, preparation, timed, Some(prepare), kernels)
}

/// The client's last steps: it completes the generation and loads it.
fn prepared(
    plan: &SchemePlan,
    table: &BenchTable,
    mut preparation: Box<dyn ErasedPreparation>,
    mut timed: Stopwatch,
    prepare: Option<Stopwatch>,
    kernels: Kernels,
) -> Result<ReadyClient> {
    let identity = table.identity();
    let generation = timed.run(|| {
        preparation.finish()?;
        preparation.generation()
    })?;
    drop(preparation);
    let state_bytes = generation.len() as u64;
    let journal = Some(HintJournal::new(plan, &identity, &generation)?);
    let client =
        timed.run(|| registry::hinted_client(plan.clone(), &identity, generation, kernels))?;
    let prepare_s = prepare.map(|prepare| prepare.0.as_secs_f64());
    let seconds = timed.0.as_secs_f64();
    Ok(ReadyClient { client, journal, state_bytes, seconds, prepare_s })
}

/// Adds up the time of selected steps of a longer piece of work.
#[derive(Default)]
struct Stopwatch(Duration);

impl Stopwatch {
    fn run<T>(&mut self, step: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = step();
        self.0 += start.elapsed();
        result
    }
}
