//! Everything behind the transport is real: requests pass admission and the service, and a client
//! that goes away is a dropped future.

mod arriving;

use super::*;
use crate::admission::{AdmissionLayer, Admitted, Peer, Places};
use crate::batch::{BatchSettings, Batcher};
use crate::connections::ConnectionHandle;
use crate::hosted::HostedTables;
use crate::limits::{Cap, Limits};
use crate::service::PrivetService;
use crate::vital::Vital;
use bytes::Bytes;
use privet_core::{Epoch, TableDigest, TableId, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::SchemePlan;
use privet_wire::proto::privet_client::PrivetClient;
use privet_wire::proto::privet_server::PrivetServer;
use privet_wire::{AnswerRequest, PrepareRequest, PrepareResponse, proto};
use prometheus_client::metrics::gauge::Gauge;
use std::sync::{Mutex, mpsc};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc as async_mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::Layer;

const ASKED: Role = Role(1);
const REQUEST_LEN: usize = 4;

/// A scheme whose reply is the request backwards. It refuses requests that begin with 255 and
/// panics on those that begin with 254. Its answers are its queries.
struct Hinting {
    plan: SchemePlan,
    /// The requests that it computed, in order.
    seen: Mutex<Vec<Vec<u8>>>,
    /// The gate reports that a computation begins, and makes it wait. `None`: no gate.
    gate: Option<(async_mpsc::UnboundedSender<()>, Mutex<mpsc::Receiver<()>>)>,
}

/// The test's end of a gate.
struct Gate {
    began: async_mpsc::UnboundedReceiver<()>,
    open: mpsc::Sender<()>,
}

fn identity() -> TableIdentity {
    TableIdentity {
        id: TableId([3; 16]),
        epoch: Epoch(1),
        digest: TableDigest([0; 32]),
        shape: TableShape::new(4, 1).unwrap(),
    }
}

/// A plan of two servers, one of which computes hints. Queries to each have a different length.
fn plan() -> SchemePlan {
    let plan = SchemePlan::from_announcement(SchemeId::SimplePir, &identity(), &2u64.to_le_bytes())
        .unwrap();
    let offline = OfflinePhase::Ask {
        role: ASKED,
        requests: 3,
        request_len: REQUEST_LEN,
        reply_len: REQUEST_LEN,
    };
    SchemePlan { offline, servers: 2, query_lens: vec![6, 2], ..plan }
}

impl Hinting {
    fn new(plan: SchemePlan, gated: bool) -> (Arc<Self>, Gate) {
        let (begin, began) = async_mpsc::unbounded_channel();
        let (open, opened) = mpsc::channel();
        let gate = gated.then(|| (begin, Mutex::new(opened)));
        (Arc::new(Self { plan, seen: Mutex::new(Vec::new()), gate }), Gate { began, open })
    }

    fn seen(&self) -> Vec<Vec<u8>> {
        self.seen.lock().unwrap().clone()
    }
}

impl ErasedServer for Hinting {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn answer(&self, _role: Role, queries: &[&[u8]]) -> Vec<Result<Vec<u8>>> {
        queries.iter().map(|query| Ok(query.to_vec())).collect()
    }

    fn prepare(&self, role: Role, request: &[u8]) -> Result<Vec<u8>> {
        assert_eq!(role, ASKED);
        self.seen.lock().unwrap().push(request.to_vec());
        if let Some((begin, opened)) = &self.gate {
            begin.send(()).unwrap();
            opened.lock().unwrap().recv().unwrap();
        }
        match request.first() {
            Some(254) => panic!("planted"),
            Some(255) => Err(Error::invalid_message("planted")),
            _ => Ok(request.iter().rev().copied().collect()),
        }
    }

    fn streamed(&self) -> Option<&[u8]> {
        None
    }

    fn shares_passes(&self) -> bool {
        false
    }

    fn resident_bytes(&self) -> u64 {
        0
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        None
    }

    fn held(&self) -> Vec<&[u8]> {
        Vec::new()
    }

    fn check_held(&self) -> Result<()> {
        Ok(())
    }
}

/// So many, which one client may have all.
fn all_for_one(total: usize) -> Cap {
    Cap { total, per_peer: Some(total), per_connection: None }
}

fn preparations(total: usize) -> Limits {
    Limits { preparations: all_for_one(total), ..Limits::default() }
}

/// Every request comes on one connection.
#[derive(Clone)]
struct OnConnection<S> {
    inner: S,
    connection: ConnectionHandle,
}

impl<S: tower::Service<http::Request<Body>>> tower::Service<http::Request<Body>>
    for OnConnection<S>
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> S::Future {
        request.extensions_mut().insert(self.connection.clone());
        self.inner.call(request)
    }
}

type Served = OnConnection<Admitted<PrivetServer<PrivetService>>>;
type Client = PrivetClient<Served>;

/// A server without its sockets.
struct World {
    service: Served,
    client: Client,
    scheme: Arc<Hinting>,
    gate: Gate,
    preparations: Arc<Preparations>,
    metrics: Arc<Metrics>,
    digest: [u8; 32],
}

impl World {
    fn new(plan: SchemePlan, gated: bool, max_preparations: usize, at_once: usize) -> Self {
        Self::limited(plan, gated, preparations(max_preparations), at_once)
    }

    fn limited(plan: SchemePlan, gated: bool, limits: Limits, at_once: usize) -> Self {
        let metrics = Arc::new(Metrics::new());
        let digest = plan.digest(&identity());
        let (scheme, gate) = Hinting::new(plan, gated);
        let tables = HostedTables::of("t", identity(), Arc::clone(&scheme) as _);
        let settings = BatchSettings {
            threads: 1,
            window: Duration::ZERO,
            max_batch: 4,
            queries: all_for_one(100),
        };
        let batcher = Batcher::start(settings, Arc::clone(&metrics), &Vital::default()).unwrap();
        let preparations = Arc::new(Preparations::new(at_once, Arc::clone(&metrics)));
        let service = PrivetService::new(
            Arc::new(tables),
            Arc::new(batcher),
            Arc::clone(&preparations),
            None,
        );
        let places = Places::new(limits, Arc::clone(&metrics));
        places.start_sweeping(&Vital::default());
        let admission = AdmissionLayer::new(places, Arc::clone(&metrics));
        let service = OnConnection {
            inner: admission.layer(PrivetServer::new(service)),
            connection: ConnectionHandle::new(0, Peer::V4(0), CancellationToken::new()),
        };
        let client = PrivetClient::new(service.clone());
        Self { service, client, scheme, gate, preparations, metrics, digest }
    }

    fn request(&self, bytes: &[u8]) -> PrepareRequest {
        PrepareRequest {
            table: identity().id,
            epoch: identity().epoch,
            parameter_digest: self.digest,
            role: ASKED,
            request: Bytes::copy_from_slice(bytes),
        }
    }

    async fn ask(&self, request: PrepareRequest) -> Result<Vec<u8>, Status> {
        let mut client = self.client.clone();
        let response = client.prepare(proto::PrepareRequest::from(request.clone())).await?;
        let response = PrepareResponse::try_from(response.into_inner()).unwrap();
        response.check_belongs_to(&request).unwrap();
        Ok(response.reply.to_vec())
    }

    /// A client that asks for hints, beside the test, with a request of four times `number`.
    fn asking(&self, number: u8) -> JoinHandle<Result<Vec<u8>, Status>> {
        let request = proto::PrepareRequest::from(self.request(&[number; REQUEST_LEN]));
        let mut client = self.client.clone();
        tokio::spawn(async move {
            client.prepare(request).await.map(|response| response.into_inner().reply.to_vec())
        })
    }

    async fn until_waiting(&self, count: i64) {
        until(&self.metrics.preparations_waiting, count).await;
    }

    async fn until_running(&self, count: i64) {
        until(&self.metrics.preparations_running, count).await;
    }

    fn shows(&self, line: &str) -> bool {
        self.metrics.render().lines().any(|shown| shown == line)
    }
}

async fn until(gauge: &Gauge, count: i64) {
    let reached = async {
        while gauge.get() != count {
            tokio::task::yield_now().await;
        }
    };
    let reached = tokio::time::timeout(Duration::from_secs(60), reached).await;
    assert!(reached.is_ok(), "{} instead of {count}", gauge.get());
}

fn invalid(refused: Result<Vec<u8>, Status>, sentence: &str) {
    let status = refused.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert!(status.message().contains(sentence), "{sentence:?} is not in {status}");
}

#[tokio::test]
async fn hints_are_computed_for_whoever_asks_the_right_server_for_the_right_table() {
    let world = World::new(plan(), false, 4, 1);
    let good = || world.request(&[1, 2, 3, 4]);
    assert_eq!(world.ask(good()).await.unwrap(), [4, 3, 2, 1]);

    for role in [0, 2, 255] {
        let refused = world.ask(PrepareRequest { role: Role(role), ..good() }).await;
        invalid(refused, &format!("computed by the server of role 1, not {role}"));
    }
    for len in [0, REQUEST_LEN - 1, REQUEST_LEN + 1, 1000] {
        let refused = world.ask(world.request(&vec![1; len])).await;
        invalid(refused, &format!("has 4 bytes, not {len}"));
    }
    let elsewhere = PrepareRequest { table: TableId([4; 16]), ..good() };
    assert_eq!(world.ask(elsewhere).await.unwrap_err().code(), Code::NotFound);
    let before = PrepareRequest { epoch: Epoch(0), ..good() };
    assert_eq!(world.ask(before).await.unwrap_err().code(), Code::FailedPrecondition);
    let other = PrepareRequest { parameter_digest: [9; 32], ..good() };
    assert_eq!(world.ask(other).await.unwrap_err().code(), Code::FailedPrecondition);
    assert_eq!(world.scheme.seen(), [[1, 2, 3, 4]], "what is refused is not computed");

    invalid(world.ask(world.request(&[255; 4])).await, "planted");
    let bug = world.ask(world.request(&[254; 4])).await.unwrap_err();
    assert_eq!(bug.code(), Code::Unavailable);
    assert!(bug.message().contains("this is a bug in it"), "{bug}");
    // Neither of them keeps the only turn.
    assert_eq!(world.ask(good()).await.unwrap(), [4, 3, 2, 1]);
    assert!(world.shows("privet_preparations_total{table=\"t\"} 2"));
    assert!(world.shows("privet_preparation_seconds_count 2"));
}

#[tokio::test]
async fn a_table_whose_clients_ask_for_no_hints_refuses_every_request() {
    let world = World::new(SchemePlan { offline: OfflinePhase::Nothing, ..plan() }, false, 4, 1);
    for (role, len) in [(0, 0), (0, REQUEST_LEN), (1, REQUEST_LEN), (200, 1)] {
        let request = PrepareRequest { role: Role(role), ..world.request(&vec![1; len]) };
        invalid(world.ask(request).await, "no hints to ask for");
    }
    assert!(world.scheme.seen().is_empty());
}

#[tokio::test]
async fn a_few_are_computed_at_once_the_others_wait_in_order_and_more_are_refused() {
    let mut world = World::new(plan(), true, 4, 2);
    let mut asking = Vec::new();
    for number in 1..=4 {
        asking.push(world.asking(number));
        if number <= 2 {
            world.gate.began.recv().await.unwrap();
        } else {
            world.until_waiting(i64::from(number) - 2).await;
        }
    }
    assert_eq!(world.metrics.preparations_running.get(), 2);
    for _ in 0..3 {
        let refused = world.ask(world.request(&[9; 4])).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert!(refused.message().contains("4 requests for hints are under way"), "{refused}");
        assert!(refused.message().contains("try again"), "{refused}");
    }
    assert!(world.shows("privet_shed_total{what=\"preparations\",why=\"total\"} 3"));
    assert!(
        world.shows("privet_requests_total{method=\"Prepare\",status=\"RESOURCE_EXHAUSTED\"} 3")
    );

    // One by one: otherwise the two waiting requests could begin together, in any order of threads.
    for _ in 3..=4 {
        world.gate.open.send(()).unwrap();
        world.gate.began.recv().await.unwrap();
    }
    (0..2).for_each(|_| world.gate.open.send(()).unwrap());
    for (number, reply) in (1..).zip(asking) {
        assert_eq!(reply.await.unwrap().unwrap(), [number; REQUEST_LEN]);
    }
    let first_bytes: Vec<u8> = world.scheme.seen().iter().map(|request| request[0]).collect();
    assert_eq!(first_bytes, [1, 2, 3, 4]);

    // All places are free again.
    world.gate.open.send(()).unwrap();
    world.ask(world.request(&[5; 4])).await.unwrap();
}

#[tokio::test]
async fn queries_are_answered_while_hints_are_computed_and_others_wait_for_them() {
    let mut world = World::new(plan(), true, 3, 1);
    let asking = [1, 2, 3].map(|number| world.asking(number));
    world.gate.began.recv().await.unwrap();
    world.until_waiting(2).await;
    let query = |role: u8, len: usize| {
        proto::AnswerRequest::from(AnswerRequest {
            table: identity().id,
            epoch: identity().epoch,
            parameter_digest: world.digest,
            role: Role(role),
            query: vec![7; len].into(),
        })
    };
    let mut client = world.client.clone();
    for (role, len) in [(0, 6), (1, 2), (0, 6)] {
        let answer = client.answer(query(role, len)).await.unwrap().into_inner().answer;
        assert_eq!(answer, vec![7; len]);
        // Queries to each role have a different length; a number that is not a role has no queries.
        for (role, len) in [(role, 9 - len), (2, len), (255, len)] {
            let refused = client.answer(query(role, len)).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument);
        }
    }
    assert_eq!(world.metrics.preparations_running.get(), 1);
    (0..3).for_each(|_| world.gate.open.send(()).unwrap());
    for reply in asking {
        reply.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_client_that_goes_away_while_it_waits_leaves_its_place_and_is_not_computed() {
    let mut world = World::new(plan(), true, 2, 1);
    let first = world.asking(1);
    world.gate.began.recv().await.unwrap();
    let second = world.asking(2);
    world.until_waiting(1).await;
    second.abort();
    assert!(second.await.unwrap_err().is_cancelled());
    assert_eq!(world.metrics.preparations_waiting.get(), 0);
    let third = world.asking(3);
    world.until_waiting(1).await;
    (0..2).for_each(|_| world.gate.open.send(()).unwrap());
    assert_eq!(first.await.unwrap().unwrap(), [1; 4]);
    assert_eq!(third.await.unwrap().unwrap(), [3; 4]);
    assert_eq!(world.scheme.seen(), [[1; 4], [3; 4]]);
}

#[tokio::test]
async fn a_client_that_goes_away_during_the_computation_does_not_make_room_for_a_second_one() {
    let mut world = World::new(plan(), true, 8, 1);
    let first = world.asking(1);
    world.gate.began.recv().await.unwrap();
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let second = world.asking(2);
    world.until_waiting(1).await;
    assert_eq!(world.metrics.preparations_running.get(), 1);
    assert_eq!(world.scheme.seen(), [[1; 4]]);
    world.gate.open.send(()).unwrap();
    world.gate.began.recv().await.unwrap();
    world.gate.open.send(()).unwrap();
    assert_eq!(second.await.unwrap().unwrap(), [2; 4]);
    world.until_running(0).await;
}

#[tokio::test]
async fn a_stop_refuses_what_waits_and_waits_for_what_is_computed() {
    let mut world = World::new(plan(), true, 8, 1);
    let running = world.asking(1);
    world.gate.began.recv().await.unwrap();
    let waiting = world.asking(2);
    world.until_waiting(1).await;
    let preparations = Arc::clone(&world.preparations);
    let stop = tokio::spawn(async move { preparations.stop().await });
    assert_eq!(waiting.await.unwrap().unwrap_err().code(), Code::Unavailable);
    let late = world.ask(world.request(&[3; 4])).await.unwrap_err();
    assert!(late.message().contains("the server is stopping"), "{late}");
    assert!(!stop.is_finished());
    world.gate.open.send(()).unwrap();
    stop.await.unwrap();
    assert_eq!(world.metrics.preparations_running.get(), 0);
    assert_eq!(running.await.unwrap().unwrap(), [1; 4]);
    assert_eq!(world.scheme.seen(), [[1; 4]]);
}
