//! What every request and response passes: slots, a deadline, a watch over clients that do not
//! read, and counters.
//!
//! A request that finds no free slot is refused with RESOURCE_EXHAUSTED before its body is read, so
//! that overload costs little. A slot is free again when the response has been sent to its end, or
//! given up. Downloads and requests for hints have slots of their own, because each takes far
//! longer than a query: clients that prepare can never block clients that look up.
//! RESOURCE_EXHAUSTED always means that the server is there and busy: clients pause and ask again,
//! and do not take the server for gone.
//!
//! Slots for hints are few and held for minutes, so a request for hints gets one only when all of
//! it has arrived. Until then it has one of the many slots of requests, with their deadline; its
//! own deadline begins with its own slot. Otherwise a few clients could begin such requests, never
//! end them, and so keep all others from hints.
//!
//! The transport takes a response as fast as its client reads, but takes each piece as a whole. So
//! responses are cut here. Otherwise an answer of megabytes would count as sent, and its slot as
//! free, while all of it still lay in memory.
//!
//! A client that does not read its response would hold a slot and the memory behind it for ever:
//! HTTP/2 lets it stay connected, and answer pings, while its window is closed. So a response that
//! makes no progress for the *stall limit* closes its client's connection.

use crate::connections::ConnectionHandle;
use crate::observe::Metrics;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use privet_wire::StatusCode;
use prometheus_client::metrics::counter::Counter;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::AbortHandle;
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

/// What the transport gets at a time, in bytes: no more than it may send at once.
const PIECE_LEN: usize = 1 << 16;

/// The limits of [`ServerConfig`](crate::ServerConfig) that are enforced here.
#[derive(Clone, Copy)]
pub(crate) struct AdmissionLimits {
    pub(crate) max_concurrent_requests: usize,
    pub(crate) max_concurrent_fetches: usize,
    pub(crate) max_preparations: usize,
    pub(crate) request_deadline: Duration,
    pub(crate) preparation_deadline: Duration,
    pub(crate) stall_limit: Duration,
}

/// Puts [`Admitted`] around a service. All clones share their slots.
#[derive(Clone)]
pub(crate) struct AdmissionLayer(Arc<Admission>);

struct Admission {
    requests: Arc<Semaphore>,
    fetches: Arc<Semaphore>,
    preparations: Arc<Semaphore>,
    limits: AdmissionLimits,
    metrics: Arc<Metrics>,
}

impl AdmissionLayer {
    pub(crate) fn new(limits: AdmissionLimits, metrics: Arc<Metrics>) -> Self {
        Self(Arc::new(Admission {
            requests: Arc::new(Semaphore::new(limits.max_concurrent_requests)),
            fetches: Arc::new(Semaphore::new(limits.max_concurrent_fetches)),
            preparations: Arc::new(Semaphore::new(limits.max_preparations)),
            limits,
            metrics,
        }))
    }
}

impl<S> Layer<S> for AdmissionLayer {
    type Service = Admitted<S>;

    fn layer(&self, inner: S) -> Admitted<S> {
        Admitted { inner, admission: Arc::clone(&self.0) }
    }
}

/// A service behind the slots.
#[derive(Clone)]
pub(crate) struct Admitted<S> {
    inner: S,
    admission: Arc<Admission>,
}

impl<S> Service<Request<Body>> for Admitted<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // Call the service that was polled ready; its clone is not ready yet.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let admission = Arc::clone(&self.admission);
        let mut outcome =
            Outcome::new(method(request.uri().path()), Arc::clone(&admission.metrics));
        let mut slot = match admission.slot(outcome.method) {
            Ok(slot) => slot,
            Err(refusal) => {
                outcome.end(StatusCode::from_number(refusal.code() as i32));
                return Box::pin(async move { Ok(refusal.into_http()) });
            }
        };
        let (bytes_in, bytes_out) = admission.metrics.body_bytes(outcome.method);
        let connection = request.extensions().get::<ConnectionHandle>().cloned();
        let (arrival, mut arrived) = Arrival::of(outcome.method, &admission);
        let request = request.map(|body| Body::new(Counted { body, bytes: bytes_in, arrival }));
        Box::pin(async move {
            let limits = admission.limits;
            let mut answering = pin!(inner.call(request));
            let response = tokio::select! {
                biased;
                Ok(preparation_slot) = &mut arrived => {
                    slot = preparation_slot;
                    tokio::time::timeout(limits.preparation_deadline, answering).await
                }
                response = tokio::time::timeout(limits.request_deadline, &mut answering) => response,
            };
            let Ok(response) = response else {
                outcome.end(StatusCode::DeadlineExceeded);
                let status =
                    Status::deadline_exceeded("the server did not answer in time; try again later");
                return Ok(status.into_http());
            };
            let response = response?;
            // The reply was computed so quickly that slot and response came at once.
            slot = arrived.try_recv().unwrap_or(slot);
            outcome.status = status_in(response.headers());
            let progress = Arc::new(AtomicU64::new(0));
            let watch = connection.filter(|_| !response.body().is_end_stream()).map(|connection| {
                let watched = Arc::clone(&progress);
                tokio::spawn(close_when_stalled(watched, limits.stall_limit, connection))
                    .abort_handle()
            });
            Ok(response.map(|body| {
                let bytes = bytes_out;
                Body::new(Sent {
                    body,
                    rest: Bytes::new(),
                    bytes,
                    progress,
                    watch,
                    outcome,
                    _slot: slot,
                })
            }))
        })
    }
}

impl Admission {
    /// The slot that a request needs to be read.
    fn slot(&self, method: &'static str) -> Result<OwnedSemaphorePermit, Status> {
        if method == "Prepare" && self.preparations.available_permits() == 0 {
            return Err(self.all_preparations_taken());
        }
        let AdmissionLimits { max_concurrent_requests, max_concurrent_fetches, .. } = self.limits;
        let (slots, reason, limit) = match method {
            "Fetch" => (&self.fetches, "fetches", max_concurrent_fetches),
            _ => (&self.requests, "requests", max_concurrent_requests),
        };
        Arc::clone(slots).try_acquire_owned().map_err(|_| self.busy(reason, limit))
    }

    /// The slot that a request for hints needs when it has been read.
    fn preparation_slot(&self) -> Result<OwnedSemaphorePermit, Status> {
        let slots = Arc::clone(&self.preparations);
        slots.try_acquire_owned().map_err(|_| self.all_preparations_taken())
    }

    fn all_preparations_taken(&self) -> Status {
        self.busy("preparations", self.limits.max_preparations)
    }

    fn busy(&self, reason: &'static str, limit: usize) -> Status {
        self.metrics.shed(reason);
        Status::resource_exhausted(format!(
            "the server is busy: {limit} {reason} are under way already; try again in a moment"
        ))
    }
}

/// The name under which a method is counted. All unknown methods share one name: a client must not
/// be able to create metrics.
fn method(path: &str) -> &'static str {
    match path {
        "/privet.v1.Privet/Describe" => "Describe",
        "/privet.v1.Privet/Fetch" => "Fetch",
        "/privet.v1.Privet/Prepare" => "Prepare",
        "/privet.v1.Privet/Answer" => "Answer",
        _ => "other",
    }
}

fn status_in(headers: &HeaderMap) -> Option<StatusCode> {
    let number = headers.get("grpc-status")?.to_str().ok()?.parse().ok()?;
    Some(StatusCode::from_number(number))
}

/// Closes the connection once a whole `limit` goes by without progress. Aborted when the response
/// ends.
async fn close_when_stalled(
    progress: Arc<AtomicU64>,
    limit: Duration,
    connection: ConnectionHandle,
) {
    let mut before = progress.load(Ordering::Relaxed);
    loop {
        tokio::time::sleep(limit).await;
        let now = progress.load(Ordering::Relaxed);
        if now == before {
            tracing::info!("a client does not read its response; its connection is closed");
            connection.close();
            return;
        }
        before = now;
    }
}

/// Counts a request when it ends, in any way.
struct Outcome {
    method: &'static str,
    started: Instant,
    status: Option<StatusCode>,
    metrics: Arc<Metrics>,
}

impl Outcome {
    fn new(method: &'static str, metrics: Arc<Metrics>) -> Self {
        Self { method, started: Instant::now(), status: None, metrics }
    }

    fn end(mut self, status: StatusCode) {
        self.status = Some(status);
    }
}

impl Drop for Outcome {
    fn drop(&mut self) {
        // Without a status, the client gave it up, or its connection ended.
        let status = self.status.unwrap_or(StatusCode::Cancelled);
        let elapsed = self.started.elapsed();
        self.metrics.request(self.method, status, elapsed);
        tracing::debug!(
            method = self.method,
            status = status.name(),
            seconds = elapsed.as_secs_f64(),
            "request"
        );
    }
}

/// Gives a request for hints its slot when it has arrived.
struct Arrival {
    admission: Arc<Admission>,
    arrived: oneshot::Sender<OwnedSemaphorePermit>,
}

impl Arrival {
    /// For a request for hints, with the channel on which its slot will come. For others `None`,
    /// and the channel stays empty.
    fn of(
        method: &'static str,
        admission: &Arc<Admission>,
    ) -> (Option<Self>, oneshot::Receiver<OwnedSemaphorePermit>) {
        let (arrived, slot) = oneshot::channel();
        let admission = Arc::clone(admission);
        ((method == "Prepare").then_some(Self { admission, arrived }), slot)
    }

    fn take_slot(self) -> Result<(), Status> {
        // If the request has been given up, this frees the slot at once.
        let _ = self.arrived.send(self.admission.preparation_slot()?);
        Ok(())
    }
}

/// A request body whose bytes are counted. At its end a request for hints gets its slot. If no slot
/// is free, the body ends with the refusal, so the service never sees the request.
struct Counted {
    body: Body,
    bytes: Counter,
    arrival: Option<Arrival>,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.bytes.inc_by(data.len() as u64);
        } else if let Some(arrival) = self.arrival.take()
            // Trailers also end a body, and so do errors: the reader may take a client's cancelling
            // for the end of a complete message.
            && let Err(refusal) = arrival.take_slot()
        {
            return Poll::Ready(Some(Err(refusal)));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A response body: cuts it into pieces, counts bytes, reports progress, reads the status from the
/// trailers, and keeps the slot until the response is sent.
struct Sent {
    body: Body,
    /// The rest of the data that the body gave last.
    rest: Bytes,
    bytes: Counter,
    progress: Arc<AtomicU64>,
    watch: Option<AbortHandle>,
    outcome: Outcome,
    _slot: OwnedSemaphorePermit,
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.progress.fetch_add(1, Ordering::Relaxed);
        if self.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            if let Some(trailers) = frame.trailers_ref() {
                self.outcome.status = status_in(trailers);
            }
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            }
        }
        let len = self.rest.len().min(PIECE_LEN);
        let piece = self.rest.split_to(len);
        self.bytes.inc_by(len as u64);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower().saturating_add(rest));
        if let Some(upper) = body.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.abort();
        }
    }
}
