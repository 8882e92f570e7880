//! What every request and response passes: places, deadlines, a watch over clients that are slow,
//! and counters.
//!
//! A request has a [place](places) from its headers until the last of its response is sent, or
//! given up. If there is none, it is refused with RESOURCE_EXHAUSTED, which always means that the
//! server is there and busy: clients pause and ask again, and do not take the server for gone.
//! Descriptions, queries, downloads and requests for hints have places of their own, because each
//! takes far longer than the one before: clients that prepare can never block clients that look up.
//!
//! The transport takes a response as fast as its client reads, but takes each piece as a whole. So
//! responses are cut here. Otherwise an answer of megabytes would count as sent, and its place as
//! free, while all of it still lay in memory.
//!
//! A client that does not read its response would hold a place and the memory behind it for ever:
//! HTTP/2 lets it stay connected, and answer pings, while its window is closed. So the connection
//! of a client that takes less than the least rate is closed.

mod bodies;
mod peer;
mod places;

pub(crate) use peer::Peer;
pub(crate) use places::{AdmissionPlace, Places};

use crate::connections::ConnectionHandle;
use crate::grpc::WHAT_LISTENS_HERE;
use crate::observe::Metrics;
use bodies::{Received, Sent};
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use places::{Ousted, Pool, Reached, Refusal};
use privet_core::Error;
use privet_wire::{StatusCode, WireStatus};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

/// Puts [`Admitted`] around a service. All clones share their places.
#[derive(Clone)]
pub(crate) struct AdmissionLayer {
    places: Arc<Places>,
    metrics: Arc<Metrics>,
}

impl AdmissionLayer {
    pub(crate) fn new(places: Arc<Places>, metrics: Arc<Metrics>) -> Self {
        Self { places, metrics }
    }

    /// A browser asks whether a page may ask. The answer follows from the head alone, so it needs
    /// no place. It adds nothing to the peer's allowance: whoever sends nothing else is read
    /// slowly.
    pub(crate) fn preflight(&self) {
        self.metrics.request("preflight", StatusCode::Ok, Duration::ZERO);
    }
}

impl<S> Layer<S> for AdmissionLayer {
    type Service = Admitted<S>;

    fn layer(&self, inner: S) -> Admitted<S> {
        Admitted { inner, admission: self.clone() }
    }
}

/// A service behind the places.
#[derive(Clone)]
pub(crate) struct Admitted<S> {
    inner: S,
    admission: AdmissionLayer,
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
        let AdmissionLayer { places, metrics } = &self.admission;
        let (method, pool) = method(request.uri().path());
        let mut outcome = RequestOutcome::new(method, Arc::clone(metrics));
        let (told, mut ousted) = oneshot::channel();
        let Some(client) = request.extensions().get::<ConnectionHandle>() else {
            // Every connection gives its requests its handle.
            let bug = Status::internal("a request came without a connection; this is a bug");
            return Box::pin(std::future::ready(Ok(outcome.refused(bug))));
        };
        let allowance = Arc::clone(&client.allowance);
        let place = match places.request(pool, client, told) {
            Ok(place) => Arc::new(place),
            Err(refusal) => {
                allowance.refused();
                return Box::pin(std::future::ready(Ok(outcome.refused(refusal.into()))));
            }
        };
        let (bytes_in, bytes_out) = metrics.body_bytes(method);
        let mut request = request.map(|body| {
            let (allowance, place) = (Arc::clone(&allowance), Arc::clone(&place));
            Body::new(Received { body, bytes: bytes_in, allowance, place, pool })
        });
        request.extensions_mut().insert(Arc::clone(&place));
        Box::pin(async move {
            let called = async {
                match request.method() {
                    // As all of gRPC.
                    &Method::POST => inner.call(request).await,
                    _ => Ok(what_listens_here()),
                }
            };
            let response = tokio::select! {
                biased;
                response = called => response?,
                Ok(why) = &mut ousted => return Ok(outcome.refused(why.into())),
            };
            // A request that is answered before all of it has arrived moves now.
            if let Err(refusal) = place.advance(pool) {
                return Ok(outcome.refused(refusal.into()));
            }
            place.responds();
            outcome.status = status_in(response.headers());
            match outcome.status {
                Some(StatusCode::ResourceExhausted) => allowance.refused(),
                _ => allowance.answered(),
            }
            Ok(response.map(|body| {
                let (rest, bytes) = (Bytes::new(), bytes_out);
                Body::new(Sent { body, rest, bytes, allowance, place, outcome })
            }))
        })
    }
}

impl From<Refusal> for Error {
    fn from(Refusal { pool, reached, limit }: Refusal) -> Self {
        let what = match pool {
            Pool::Connections => "connections",
            Pool::Bodies => "requests",
            Pool::Describes => "requests for its description",
            Pool::Answers => "requests with queries",
            Pool::AnswerBytes => "bytes of queries and answers",
            Pool::Fetches => "downloads",
            Pool::Preparations => "requests for hints",
        };
        Self::exhausted(match reached {
            Reached::Total => format!(
                "the server is busy: {limit} {what} are under way already; try again in a moment"
            ),
            Reached::Peer => format!(
                "the server allows an address {limit} {what} at once, and this one has them under \
                 way already; try again in a moment"
            ),
            Reached::Connection => format!(
                "the server allows a connection {limit} {what} at once, and this one has them \
                 under way already; try again in a moment"
            ),
        })
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        WireStatus::from(&Error::from(refusal)).into()
    }
}

impl From<Ousted> for Status {
    fn from(why: Ousted) -> Self {
        match why {
            Ousted::Crowded => Self::resource_exhausted(
                "the server is busy, and gave the place of this request to another client; try \
                 again in a moment",
            ),
            Ousted::SlowBody => {
                Self::deadline_exceeded("the request did not arrive in time; send it faster")
            }
            Ousted::Late | Ousted::SlowReader => {
                Self::deadline_exceeded("the server did not answer in time; try again later")
            }
        }
    }
}

/// The name under which a method is counted, and where it has its place. All unknown methods share
/// one name: a client must not be able to create metrics.
fn method(path: &str) -> (&'static str, Pool) {
    match path {
        "/privet.v1.Privet/Describe" => ("Describe", Pool::Describes),
        "/privet.v1.Privet/Fetch" => ("Fetch", Pool::Fetches),
        "/privet.v1.Privet/Prepare" => ("Prepare", Pool::Preparations),
        "/privet.v1.Privet/Answer" => ("Answer", Pool::Answers),
        "/grpc.health.v1.Health/Check" => ("Check", Pool::Describes),
        _ => ("other", Pool::Describes),
    }
}

/// The answer to a browser, in words.
fn what_listens_here() -> Response<Body> {
    let mut response = Response::new(Body::new(WHAT_LISTENS_HERE.to_owned()));
    *response.status_mut() = http::StatusCode::METHOD_NOT_ALLOWED;
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static("POST"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert("grpc-status", HeaderValue::from(StatusCode::Unimplemented as i32));
    response
}

fn status_in(headers: &HeaderMap) -> Option<StatusCode> {
    let number = headers.get("grpc-status")?.to_str().ok()?.parse().ok()?;
    Some(StatusCode::from_number(number))
}

/// Counts a request when it ends, in any way.
struct RequestOutcome {
    method: &'static str,
    started: Instant,
    status: Option<StatusCode>,
    metrics: Arc<Metrics>,
}

impl RequestOutcome {
    fn new(method: &'static str, metrics: Arc<Metrics>) -> Self {
        Self { method, started: Instant::now(), status: None, metrics }
    }

    /// The response with `status`, which ends the request.
    fn refused(mut self, status: Status) -> Response<Body> {
        self.status = Some(StatusCode::from_number(status.code() as i32));
        status.into_http()
    }
}

impl Drop for RequestOutcome {
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
