//! A client that keeps to the rules, at an address of its own. It asks one thing after the other,
//! on a thread of its own, so that attackers in this process do not delay it more than those
//! elsewhere would.

use crate::attack::{HINTS, TABLE, defaults};
use crate::common::*;
use crate::process::Attacked;
use privet_schemes::offline::OfflinePhase;
use privet_wire::{PartKind, PrepareRequest, TableDescription, proto};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tonic::transport::Endpoint;

/// An errand that takes longer has failed, unless other programs crowd the machine.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many threads there are for each core, from 1 to 3: how many times [`PATIENCE`] an errand may
/// take. To be read before an attack, which raises it: attackers must not lengthen it themselves.
pub(crate) fn crowd() -> f64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    let threads: f64 = load.split_whitespace().next().unwrap().parse().unwrap();
    let cores = std::thread::available_parallelism().unwrap().get();
    (threads / cores as f64).clamp(1.0, 3.0)
}

/// What the client does, over and over again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Errand {
    /// A lookup on a connection that is kept.
    Lookup,
    /// A new connection, a description of what is served, and a lookup.
    Visit,
    /// A download of the hint.
    Download,
    /// A request for hints of its own.
    Hints,
}

/// One after the other, and then again.
pub(crate) const ROUND: [Errand; 8] = [
    Errand::Lookup,
    Errand::Visit,
    Errand::Lookup,
    Errand::Download,
    Errand::Lookup,
    Errand::Visit,
    Errand::Lookup,
    Errand::Hints,
];

/// How an errand went.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) errand: Errand,
    pub(crate) took: Duration,
    pub(crate) failure: Option<String>,
}

/// The client at work. Dropping it stops it.
pub(crate) struct Honest {
    outcomes: Arc<Mutex<Vec<Outcome>>>,
    count: watch::Receiver<usize>,
    stop: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Honest {
    /// Begins to work. `table` is the table to look records up in, by a scheme whose clients
    /// download a hint; `hints` the one to ask for hints for. `crowd`: see [`crowd`].
    pub(crate) fn start(
        endpoint: Endpoint,
        table: &'static str,
        hints: &'static str,
        crowd: f64,
    ) -> Self {
        let outcomes = Arc::new(Mutex::new(Vec::new()));
        let (counter, count) = watch::channel(0);
        let (stop, stopped) = watch::channel(false);
        let done = Arc::clone(&outcomes);
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let mut client = Client::new(endpoint, table, hints, crowd).await;
                for errand in ROUND.into_iter().cycle() {
                    if *stopped.borrow() {
                        return;
                    }
                    let outcome = client.run(errand).await;
                    held(&done).push(outcome);
                    counter.send_modify(|count| *count += 1);
                }
            });
        };
        let thread = std::thread::Builder::new().name("honest".to_owned()).spawn(work);
        Self { outcomes, count, stop, thread: Some(thread.unwrap()) }
    }

    /// Waits until `count` errands are done, from the start on.
    pub(crate) async fn until_done(&mut self, count: usize) {
        let reached = self.count.wait_for(|done| *done >= count).await;
        reached.expect("the honest client has ended; its panic is above");
    }

    /// The errands that are done so far.
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        held(&self.outcomes).clone()
    }

    /// Waits until the client has closed its connections.
    pub(crate) fn end(mut self) {
        self.stop.send_replace(true);
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Honest {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The client itself.
pub(crate) struct Client {
    endpoint: Endpoint,
    kept: Stub,
    table: TableClient,
    hints: TableDescription,
    next_index: u64,
    patience: Duration,
}

impl Client {
    pub(crate) async fn new(endpoint: Endpoint, table: &str, hints: &str, crowd: f64) -> Self {
        let mut kept = unlimited(&stub_on(endpoint.connect().await.unwrap()));
        let hints = describe(&mut kept).await.table(hints).unwrap().clone();
        let table = TableClient::new(&mut kept, table).await;
        Self { endpoint, kept, table, hints, next_index: 0, patience: PATIENCE.mul_f64(crowd) }
    }

    pub(crate) async fn run(&mut self, errand: Errand) -> Outcome {
        let began = Instant::now();
        let done = tokio::time::timeout(self.patience, async {
            match errand {
                Errand::Lookup => {
                    let stub = self.kept.clone();
                    self.look_up(stub).await
                }
                Errand::Visit => self.visit().await,
                Errand::Download => self.download().await,
                Errand::Hints => self.ask_for_hints().await,
            }
        });
        let failure = match done.await {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(failure),
            Err(_) => Some("no answer in time".to_owned()),
        };
        Outcome { errand, took: began.elapsed(), failure }
    }

    async fn look_up(&mut self, mut stub: Stub) -> Result<(), String> {
        let index = self.next_index % self.table.description.identity.shape.records();
        self.next_index += 1;
        let record = said(self.table.look_up(&mut stub, index)).await?;
        assert_eq!(record, self.table.expected(index), "record {index}");
        Ok(())
    }

    async fn visit(&mut self) -> Result<(), String> {
        let channel = self.endpoint.connect().await.map_err(|error| format!("connect: {error}"))?;
        let mut stub = stub_on(channel);
        said(stub.describe(proto::DescribeRequest { protocol_version: 1 })).await?;
        self.look_up(stub).await
    }

    async fn download(&mut self) -> Result<(), String> {
        let request = fetch_request(&self.table.description, PartKind::Hint, 0);
        let hint = said(fetch(&mut self.kept, request)).await?;
        let announced = self.table.description.schemes[0].hint.unwrap();
        assert_eq!(announced.digest, *blake3::hash(&hint).as_bytes());
        Ok(())
    }

    async fn ask_for_hints(&mut self) -> Result<(), String> {
        let request = request_for_hints(&self.hints);
        said(self.kept.prepare(proto::PrepareRequest::from(request))).await.map(drop)
    }
}

/// A valid request for hints.
pub(crate) fn request_for_hints(table: &TableDescription) -> PrepareRequest {
    let scheme = &table.schemes[0];
    let OfflinePhase::Ask { role, request_len, .. } = scheme.plan.offline else {
        panic!("clients of {} ask for no hints", table.name);
    };
    PrepareRequest {
        table: table.identity.id,
        epoch: table.identity.epoch,
        parameter_digest: scheme.parameter_digest,
        role,
        request: records(request_len, 9).into(),
    }
}

async fn said<T>(call: impl Future<Output = Result<T, tonic::Status>>) -> Result<T, String> {
    call.await.map_err(|status| format!("{:?}: {}", status.code(), status.message()))
}

/// However busy the machine is.
#[tokio::test]
async fn a_server_that_stands_still_has_not_answered_in_time() {
    let name = "honest::a_server_that_stands_still_has_not_answered_in_time";
    let attacked = Attacked::start(name, defaults).await;
    let mut honest = Client::new(endpoint(attacked.address), TABLE, HINTS, crowd()).await;
    assert_eq!(honest.run(Errand::Lookup).await.failure, None);
    attacked.freeze();
    assert_eq!(honest.run(Errand::Lookup).await.failure.as_deref(), Some("no answer in time"));
}
