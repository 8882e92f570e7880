//! `/metrics` and `/healthz` over plain HTTP/1, on an address of their own, so that an operator can
//! keep it from clients.
//!
//! `/healthz` is for a load balancer that sends a server either all clients or none: the server is
//! not ready once damage was found in one of its tables, nor while it is overloaded.
//! `/healthz/NAME` is about the table of that name alone.

use super::Metrics;
use crate::admission::Peer;
use crate::descriptors::Spare;
use crate::hosted::Condition;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Scrapers are few. One more connection than this takes the place of another.
const MAX_CONNECTIONS: usize = 32;

/// A connection without a request for this long is closed.
const IDLE_LIMIT: Duration = Duration::from_secs(30);

/// Whether the server is ready for clients.
pub(crate) struct Health {
    state: AtomicU8,
    overloaded: AtomicBool,
    tables: OnceLock<Vec<Arc<Condition>>>,
}

impl Health {
    pub(crate) const STARTING: u8 = 0;
    pub(crate) const READY: u8 = 1;
    pub(crate) const DRAINING: u8 = 2;
    /// [Vital](crate::vital) work has failed.
    pub(crate) const FAILED: u8 = 3;

    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU8::new(Self::STARTING),
            overloaded: AtomicBool::new(false),
            tables: OnceLock::new(),
        }
    }

    /// From now on the server is in this state, or in a later one that it has reached.
    pub(crate) fn set(&self, state: u8) {
        self.state.fetch_max(state, Ordering::SeqCst);
    }

    pub(crate) fn is_overloaded(&self) -> bool {
        self.overloaded.load(Ordering::SeqCst)
    }

    pub(crate) fn set_overloaded(&self, overloaded: bool) {
        self.overloaded.store(overloaded, Ordering::SeqCst);
    }

    /// From now on the answer also covers these tables.
    pub(crate) fn of_tables(&self, tables: Vec<Arc<Condition>>) {
        // They never change, so this is called once.
        let _ = self.tables.set(tables);
    }

    /// The tables in which damage was found.
    fn damaged(&self) -> impl Iterator<Item = &str> {
        let tables = self.tables.get().into_iter().flatten();
        tables.filter(|table| table.has_ended()).map(|table| table.table())
    }

    pub(super) fn response(&self) -> (StatusCode, String) {
        let unavailable = |words: &str| (StatusCode::SERVICE_UNAVAILABLE, format!("{words}\n"));
        let damaged: Vec<&str> = self.damaged().collect();
        match self.state.load(Ordering::SeqCst) {
            Self::STARTING => unavailable("starting"),
            Self::READY if !damaged.is_empty() => {
                unavailable(&format!("damaged: {}", damaged.join(" ")))
            }
            Self::READY if self.is_overloaded() => unavailable("overloaded"),
            Self::READY => (StatusCode::OK, "ready\n".to_owned()),
            Self::FAILED => unavailable("failed"),
            _ => unavailable("draining"),
        }
    }

    /// The same for one table, whatever the state of the others; `None` if there is none of that
    /// name.
    pub(super) fn response_for(&self, name: &str) -> Option<(StatusCode, String)> {
        let mut tables = self.tables.get()?.iter();
        let table = tables.find(|table| table.table() == name)?;
        Some(match (self.state.load(Ordering::SeqCst), table.has_ended()) {
            (Self::READY, true) => (StatusCode::SERVICE_UNAVAILABLE, "damaged\n".to_owned()),
            (Self::READY, false) if !self.is_overloaded() => (StatusCode::OK, "ready\n".to_owned()),
            (Self::READY, false) => (StatusCode::SERVICE_UNAVAILABLE, "overloaded\n".to_owned()),
            _ => self.response(),
        })
    }
}

/// What the endpoint shows.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) health: Arc<Health>,
}

impl Endpoint {
    /// Answers until `stop`.
    pub(crate) async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let mut spare = Spare::new();
        let mut callers = Callers::default();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, address)) => {
                    let place = callers.enter(address.ip().into(), &stop);
                    tokio::spawn(self.clone().answer(stream, place));
                }
                Err(error) => spare.refuse_one(&listener, &error).await,
            }
        }
    }

    /// Answers on one connection, as long as it has its place.
    async fn answer(self, stream: TcpStream, place: EndpointPlace) {
        let answer =
            service_fn(|request| std::future::ready(Ok::<_, Infallible>(self.respond(&request))));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE_LIMIT)
            .serve_connection(TokioIo::new(stream), answer);
        tokio::select! {
            () = place.closed.cancelled() => {}
            // The end of a scraper's connection is not an error of the server.
            _ = connection => {}
        }
    }

    fn respond(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        const TEXT: &str = "text/plain; charset=utf-8";
        const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            return text(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET is answered here\n");
        }
        match request.uri().path() {
            "/metrics" => {
                self.health.damaged().for_each(|table| self.metrics.damaged(table));
                text(StatusCode::OK, OPEN_METRICS, self.metrics.render())
            }
            "/healthz" => {
                let (status, word) = self.health.response();
                text(status, TEXT, word)
            }
            path => {
                match path.strip_prefix("/healthz/").and_then(|it| self.health.response_for(it)) {
                    Some((status, word)) => text(status, TEXT, word),
                    None => text(StatusCode::NOT_FOUND, TEXT, "there are /metrics and /healthz\n"),
                }
            }
        }
    }
}

/// Who is connected, in the order of their arrival. An answer is ready as soon as its request has
/// arrived, so whoever has been here for long asks for nothing, or reads nothing. A newcomer
/// therefore never waits.
#[derive(Default)]
struct Callers(Vec<(Peer, CancellationToken)>);

/// The place of a connection, until it is dropped.
struct EndpointPlace {
    /// Somebody else has it now, or the server stops.
    closed: CancellationToken,
    _left: DropGuard,
}

impl Callers {
    /// A place for a connection of `peer`, until `stop`. If all are taken, the peer that has most
    /// of them loses its first one.
    fn enter(&mut self, peer: Peer, stop: &CancellationToken) -> EndpointPlace {
        self.0.retain(|(_, closed)| !closed.is_cancelled());
        if self.0.len() >= MAX_CONNECTIONS {
            let held = |peer: Peer| self.0.iter().filter(|(other, _)| *other == peer).count();
            let most = self.0.iter().map(|(peer, _)| held(*peer)).max();
            let first = self.0.iter().position(|(peer, _)| Some(held(*peer)) == most);
            if let Some(first) = first {
                self.0.remove(first).1.cancel();
            }
        }
        let closed = stop.child_token();
        self.0.push((peer, closed.clone()));
        EndpointPlace { _left: closed.clone().drop_guard(), closed }
    }
}

fn text(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
impl Health {
    /// What `/healthz` says.
    pub(crate) fn word(&self) -> String {
        self.response().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_most_connections_loses_the_first_of_them_to_a_newcomer() {
        let stop = CancellationToken::new();
        let mut callers = Callers::default();
        let [one, many, other] = [1, 2, 3].map(Peer::V4);
        let alone = callers.enter(one, &stop);
        let mut places: Vec<_> = (1..MAX_CONNECTIONS).map(|_| callers.enter(many, &stop)).collect();
        let newcomer = callers.enter(other, &stop);
        assert!(places[0].closed.is_cancelled());
        assert!(places[1..].iter().chain([&alone, &newcomer]).all(|it| !it.closed.is_cancelled()));
        // Who leaves makes room.
        drop(places.pop());
        let again = callers.enter(many, &stop);
        assert!(!places[1].closed.is_cancelled());
        stop.cancel();
        assert!(again.closed.is_cancelled());
    }
}
