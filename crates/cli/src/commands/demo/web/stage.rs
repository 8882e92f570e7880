//! The servers that the page asks, and what they see.

use super::super::servers::copy;
use super::rows::Rows;
use privet_core::{Error, Result};
use privet_measure::load::MetricsAddress;
use privet_schemes::SchemeId;
use privet_schemes::registry::Tuning;
use privet_server::{RunningServer, Server, ServerConfig, WebOrigin};
use serde::Serialize;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Of what was seen, so much is remembered.
const MOST_SEEN: usize = 256;
const MOST_SEEN_BYTES: usize = 32 << 20;

/// Servers that are asked together, by one scheme.
struct Cast {
    name: &'static str,
    scheme: SchemeId,
    lies: bool,
}

/// One server; two; one that lies and is believed; two of which one lies and is caught.
const CASTS: [Cast; 4] = [
    Cast { name: "one", scheme: SchemeId::SimplePirPacked, lies: false },
    Cast { name: "two", scheme: SchemeId::Dpf, lies: false },
    Cast { name: "believed", scheme: SchemeId::SimplePirPacked, lies: true },
    Cast { name: "caught", scheme: SchemeId::ApirDpf, lies: true },
];

/// What the page's own server is called in what was seen.
pub(super) const PLAIN: &str = "plain";

/// Something that reached a server.
#[derive(Clone, Serialize)]
pub(super) struct Sight {
    /// Counts everything that was seen.
    number: u64,
    /// Which servers are asked together.
    cast: &'static str,
    /// Which of them saw it.
    server: usize,
    /// When it came, in microseconds.
    at: u64,
    length: usize,
    #[serde(skip)]
    pub(super) bytes: Vec<u8>,
}

/// What was seen, the latest last.
pub(super) struct Seen {
    began: Instant,
    sights: Mutex<(u64, VecDeque<Sight>)>,
}

impl Seen {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), sights: Mutex::default() }
    }

    fn sights(&self) -> MutexGuard<'_, (u64, VecDeque<Sight>)> {
        self.sights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, cast: &'static str, server: usize, bytes: Vec<u8>) {
        let at = self.began.elapsed().as_micros() as u64;
        let (number, sights) = &mut *self.sights();
        *number += 1;
        sights.push_back(Sight { number: *number, cast, server, at, length: bytes.len(), bytes });
        let mut held: usize = sights.iter().map(|sight| sight.length).sum();
        while sights.len() > MOST_SEEN || held > MOST_SEEN_BYTES {
            held -= sights.pop_front().map_or(0, |sight| sight.length);
        }
    }

    /// What came after the sight of this number.
    pub(super) fn after(&self, number: u64) -> Vec<Sight> {
        self.sights().1.iter().filter(|sight| sight.number > number).cloned().collect()
    }
}

/// The servers of one cast, for the page.
#[derive(Serialize)]
pub(super) struct Playing {
    name: &'static str,
    scheme: &'static str,
    lies: bool,
    pub(super) urls: Vec<String>,
    #[serde(skip)]
    metrics: Vec<MetricsAddress>,
}

/// The servers. They stop when this is dropped.
pub(super) struct Stage {
    pub(super) playing: Vec<Playing>,
    _servers: Vec<RunningServer>,
}

impl Stage {
    /// Starts all servers of the table, for pages of this origin. Returns one of them apart: that
    /// one waits for the program's end.
    pub(super) async fn start(
        rows: &Rows,
        table: &Path,
        origin: &WebOrigin,
        seen: &Arc<Seen>,
    ) -> Result<(Self, Option<RunningServer>)> {
        let open = |scheme| copy(table, scheme, &Tuning::default());
        let mut lies = open(CASTS[0].scheme)?.records.to_vec()?;
        rows.lie(&mut lies)?;
        let (mut playing, mut servers) = (Vec::new(), Vec::new());
        for Cast { name, scheme, lies: is_lie } in CASTS {
            let mut cast = Playing {
                name,
                scheme: scheme.name(),
                lies: is_lie,
                urls: Vec::new(),
                metrics: Vec::new(),
            };
            let needed = *scheme.about().servers.start() as usize;
            for number in 0..needed {
                let mut served = open(scheme)?;
                // Of several servers, the last one lies.
                let is_liar = is_lie && number + 1 == needed;
                if is_liar {
                    served.records = Box::new(lies.clone());
                }
                let config = config(origin, seen, (name, number), !is_liar);
                let server = Server::start(config, vec![served]).await?;
                cast.urls.push(format!("http://{}", server.local_addr()));
                let metrics = server.metrics_addr().map(|address| address.to_string());
                cast.metrics.extend(metrics.and_then(|address| address.parse().ok()));
                servers.push(server);
            }
            playing.push(cast);
        }
        let last = servers.pop();
        Ok((Self { playing, _servers: servers }, last))
    }

    /// How long the servers of a cast have computed answers so far, in microseconds.
    pub(super) fn busy(&self, cast: &str) -> Result<f64> {
        let playing = self.playing.iter().find(|playing| playing.name == cast);
        let metrics = playing.into_iter().flat_map(|playing| &playing.metrics);
        metrics.map(|address| address.read().map(|work| work.seconds * 1e6)).sum()
    }
}

/// `verified`: whether the server checks its table at the start. A lying one must not.
fn config(
    origin: &WebOrigin,
    seen: &Arc<Seen>,
    (cast, server): (&'static str, usize),
    verified: bool,
) -> ServerConfig {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let seen = Arc::clone(seen);
    ServerConfig {
        web: Some(vec![origin.clone()]),
        metrics_listen: Some(anywhere),
        verify_records: verified,
        query_observer: Some(Arc::new(move |request| {
            seen.note(cast, server, request.query.to_vec());
        })),
        ..ServerConfig::new(anywhere)
    }
}

/// There is no room, or no thread, for what is shown.
pub(super) fn unavailable(what: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::unavailable(what).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_numbered_and_the_earliest_is_forgotten() {
        let seen = Seen::new();
        for number in 0..300 {
            seen.note("one", 0, vec![0; number]);
        }
        let numbers = |after| seen.after(after).iter().map(|it| it.number).collect::<Vec<_>>();
        assert_eq!(numbers(297), [298, 299, 300]);
        assert_eq!(numbers(0).len(), MOST_SEEN);
        seen.note("two", 1, vec![0; MOST_SEEN_BYTES]);
        assert_eq!(numbers(0), [301]);
    }
}
