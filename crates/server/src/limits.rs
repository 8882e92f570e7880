//! What clients may make a server hold, and for how long: all limits, by name.
//!
//! [`Limits::NAMES`] has each with its meaning, and [`Limits::set`] sets it by name. So a program
//! can offer all of them with one option, and its help cannot miss one.

use privet_core::quantities::{typed_bytes, typed_count};
use privet_core::{Error, Result};
use std::time::Duration;

/// No limit is longer: the clock can count so far.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

/// No cap is higher: sums and products of caps are computed.
const HIGHEST: usize = u32::MAX as usize;

/// How many of something there may be at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// Of all clients together.
    pub total: usize,
    /// Of one peer: an IPv4 address, or the first 64 bits of an IPv6 address. `None`: a quarter of
    /// `total`.
    pub per_peer: Option<usize>,
    /// Of one connection. `None`: as many as it may have streams.
    pub per_connection: Option<usize>,
}

impl Cap {
    const fn new(total: usize) -> Self {
        Self { total, per_peer: None, per_connection: None }
    }

    /// How many one peer may have.
    pub fn of_peer(&self) -> usize {
        self.per_peer.unwrap_or(self.total.div_ceil(4)).min(self.total)
    }

    fn peer(&mut self) -> Limit<'_> {
        let unless_set = self.of_peer();
        Limit::Part(&mut self.per_peer, unless_set)
    }
}

/// The limits of a server. [`Default`] has those that fit most.
///
/// Whoever reaches a cap of its own is refused. If a total is reached, the slowest one of the peer
/// that holds most has to leave, unless it is the newcomer that would hold as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections.
    pub connections: Cap,
    /// Requests of one connection that may be under way; more wait in the client.
    pub streams_per_connection: u32,
    /// Requests whose bodies are being read.
    pub bodies: Cap,
    /// Bytes of request bodies that are being read, of all clients together.
    pub body_bytes: u64,
    /// Requests for the server's description.
    pub describes: Cap,
    /// Requests with queries, from when all of one has arrived until its answers are sent.
    pub answers: Cap,
    /// Bytes of these queries and of their answers. Who has none under way may have one request of
    /// any size.
    pub answer_bytes: Cap,
    /// Queries that wait for a pass.
    pub queries: Cap,
    /// Downloads.
    pub fetches: Cap,
    /// Requests for hints, from when all of one has arrived until the last of its reply is sent.
    /// This bounds the memory for replies, which may have megabytes each.
    pub preparations: Cap,
    /// How long a request's body may take to arrive.
    pub body_deadline: Duration,
    /// How long a response may take to begin after its request has arrived; not of requests for
    /// hints.
    pub request_deadline: Duration,
    /// The same for requests for hints, with the wait for their turn: computing a reply takes time
    /// in proportion to the table.
    pub preparation_deadline: Duration,
    /// A client that takes less than `least_rate` bytes a second of a response for so long is cut
    /// off.
    pub stall_limit: Duration,
    /// In bytes a second.
    pub least_rate: u64,
    /// How long a new connection may take until the TLS handshake is done, and again until the
    /// first byte of HTTP.
    pub handshake_limit: Duration,
    /// How often a quiet connection is asked whether it is still there, and how long it may take to
    /// reply.
    pub keepalive: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: Cap::new(4096),
            streams_per_connection: 64,
            bodies: Cap::new(2048),
            body_bytes: 64 << 20,
            describes: Cap::new(64),
            answers: Cap::new(2048),
            answer_bytes: Cap::new(256 << 20),
            queries: Cap::new(1024),
            fetches: Cap { per_connection: Some(8), ..Cap::new(64) },
            preparations: Cap { per_connection: Some(2), ..Cap::new(16) },
            body_deadline: Duration::from_secs(5),
            request_deadline: Duration::from_secs(30),
            preparation_deadline: Duration::from_secs(600),
            stall_limit: Duration::from_secs(60),
            least_rate: 1 << 10,
            handshake_limit: Duration::from_secs(10),
            keepalive: Duration::from_secs(20),
        }
    }
}

/// One of the limits, to be read or set.
enum Limit<'a> {
    Count(&'a mut usize),
    /// And what it is unless it is set.
    Part(&'a mut Option<usize>, usize),
    Streams(&'a mut u32),
    Bytes(&'a mut u64),
    Seconds(&'a mut Duration),
}

impl Limits {
    /// Each limit's name and meaning. Those that end in `-per-peer` are a quarter of the total
    /// unless they are set.
    pub const NAMES: [(&'static str, &'static str); 27] = [
        ("connections", "open connections"),
        ("connections-per-peer", "of one address"),
        ("streams-per-connection", "requests of one connection at once; more wait in the client"),
        ("bodies", "requests whose bodies are being read"),
        ("bodies-per-peer", "of one address"),
        ("body-bytes", "bytes of bodies that are being read"),
        ("describes", "requests for the server's description"),
        ("describes-per-peer", "of one address"),
        ("answers", "requests with queries under way"),
        ("answers-per-peer", "of one address"),
        ("answer-bytes", "bytes of these queries and their answers"),
        ("answer-bytes-per-peer", "of one address"),
        ("queries", "queries that wait for a pass"),
        ("queries-per-peer", "of one address"),
        ("fetches", "downloads under way"),
        ("fetches-per-peer", "of one address"),
        ("fetches-per-connection", "of one connection"),
        ("preparations", "requests for hints under way"),
        ("preparations-per-peer", "of one address"),
        ("preparations-per-connection", "of one connection"),
        ("body-deadline", "seconds for a request's body to arrive"),
        ("request-deadline", "seconds until a response begins"),
        ("preparation-deadline", "seconds until a reply with hints begins"),
        ("stall-limit", "seconds for which a response may be slower than least-rate"),
        ("least-rate", "bytes a second of a response that a client has to take"),
        ("handshake-limit", "seconds for a TLS handshake, and to a connection's first request"),
        ("keepalive", "seconds between pings to a quiet connection"),
    ];

    fn limit(&mut self, name: &str) -> Option<Limit<'_>> {
        use Limit::{Bytes, Count, Part, Seconds, Streams};
        let streams = self.streams_per_connection as usize;
        Some(match name {
            "connections" => Count(&mut self.connections.total),
            "connections-per-peer" => self.connections.peer(),
            "streams-per-connection" => Streams(&mut self.streams_per_connection),
            "bodies" => Count(&mut self.bodies.total),
            "bodies-per-peer" => self.bodies.peer(),
            "body-bytes" => Bytes(&mut self.body_bytes),
            "describes" => Count(&mut self.describes.total),
            "describes-per-peer" => self.describes.peer(),
            "answers" => Count(&mut self.answers.total),
            "answers-per-peer" => self.answers.peer(),
            "answer-bytes" => Count(&mut self.answer_bytes.total),
            "answer-bytes-per-peer" => self.answer_bytes.peer(),
            "queries" => Count(&mut self.queries.total),
            "queries-per-peer" => self.queries.peer(),
            "fetches" => Count(&mut self.fetches.total),
            "fetches-per-peer" => self.fetches.peer(),
            "fetches-per-connection" => Part(&mut self.fetches.per_connection, streams),
            "preparations" => Count(&mut self.preparations.total),
            "preparations-per-peer" => self.preparations.peer(),
            "preparations-per-connection" => Part(&mut self.preparations.per_connection, streams),
            "body-deadline" => Seconds(&mut self.body_deadline),
            "request-deadline" => Seconds(&mut self.request_deadline),
            "preparation-deadline" => Seconds(&mut self.preparation_deadline),
            "stall-limit" => Seconds(&mut self.stall_limit),
            "least-rate" => Bytes(&mut self.least_rate),
            "handshake-limit" => Seconds(&mut self.handshake_limit),
            "keepalive" => Seconds(&mut self.keepalive),
            _ => return None,
        })
    }

    /// Sets the limit of that name. Numbers are decimal; seconds may have a fraction.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is no such limit, or it cannot
    /// have that value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let Some(limit) = self.limit(name) else {
            let names: Vec<_> = Self::NAMES.iter().map(|(name, _)| *name).collect();
            return Err(Error::api_misuse(format!(
                "there is no limit named {name:?}; there are {}",
                names.join(", ")
            )));
        };
        let unusable =
            |wanted: &str| Error::api_misuse(format!("{name} has to be {wanted}, not {value:?}"));
        let whole = || unusable("a whole number");
        match limit {
            Limit::Count(limit) => *limit = count(value).ok_or_else(whole)?,
            Limit::Part(limit, _) => *limit = Some(count(value).ok_or_else(whole)?),
            Limit::Streams(limit) => *limit = count(value).ok_or_else(whole)?,
            Limit::Bytes(limit) => {
                *limit = typed_bytes(value)
                    .ok_or_else(|| unusable("a number of bytes, such as 1000000 or 1MiB"))?;
            }
            Limit::Seconds(limit) => {
                let seconds = value.parse().ok();
                let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                *limit = time.ok_or_else(|| unusable("a number of seconds"))?;
            }
        }
        self.check()
    }

    /// The value of the limit of that name, as [`set`](Self::set) takes it.
    pub fn value(mut self, name: &str) -> Option<String> {
        Some(match self.limit(name)? {
            Limit::Count(count) => count.to_string(),
            Limit::Part(count, unless_set) => count.unwrap_or(unless_set).to_string(),
            Limit::Streams(count) => count.to_string(),
            Limit::Bytes(bytes) => bytes.to_string(),
            Limit::Seconds(time) => time.as_secs_f64().to_string(),
        })
    }

    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), naming the limit, if nobody could be
    /// served with it.
    pub(crate) fn check(mut self) -> Result<()> {
        for (name, _) in Self::NAMES {
            if let Some(Limit::Count(&mut count) | Limit::Part(&mut Some(count), _)) =
                self.limit(name)
                && count > HIGHEST
            {
                return Err(Error::api_misuse(format!("{name} can be at most {HIGHEST}")));
            }
            let zero = match self.limit(name) {
                Some(Limit::Count(count)) => *count == 0,
                Some(Limit::Part(count, _)) => *count == Some(0),
                Some(Limit::Streams(count)) => *count == 0,
                Some(Limit::Seconds(time)) if *time > LONGEST => {
                    return Err(Error::api_misuse(format!("{name} can be at most 30 days")));
                }
                Some(Limit::Seconds(time)) => time.is_zero(),
                // No rate means that nobody is too slow.
                Some(Limit::Bytes(bytes)) => name != "least-rate" && *bytes == 0,
                None => false,
            };
            if zero {
                return Err(Error::api_misuse(format!(
                    "{name} must be more than 0: with 0 nobody could be served"
                )));
            }
        }
        Ok(())
    }
}

fn count<T: TryFrom<u64>>(value: &str) -> Option<T> {
    typed_count(value)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_value_and_takes_it_back() {
        for (name, _) in Limits::NAMES {
            let mut limits = Limits::default();
            let value = limits.value(name).unwrap();
            limits.set(name, &value).unwrap();
            assert_eq!(limits.value(name), Some(value), "{name}");
            let other = limits.value(name).unwrap().parse::<f64>().unwrap() + 1.0;
            limits.set(name, &other.to_string()).unwrap();
            assert_eq!(limits.value(name), Some(other.to_string()), "{name}");
            assert_ne!(limits, Limits::default(), "{name}");
            for unusable in ["", "x", "-1", "nan", "1e30"] {
                let error = limits.set(name, unusable).unwrap_err().to_string();
                assert!(error.contains(name), "{error}");
            }
            assert_eq!(limits.set(name, "0").is_err(), name != "least-rate", "{name}");
        }
    }

    #[test]
    fn no_cap_is_so_high_that_computing_with_it_would_overflow() {
        for name in ["queries", "queries-per-peer", "connections"] {
            let highest = u32::MAX.to_string();
            Limits::default().set(name, &highest).unwrap();
            for too_high in ["4294967296", "18446744073709551615"] {
                let error = Limits::default().set(name, too_high).unwrap_err().to_string();
                assert!(error.contains(name) && error.contains(&highest), "{error}");
            }
        }
    }

    #[test]
    fn an_unknown_limit_is_refused_with_the_names_of_all() {
        let error = Limits::default().set("fetch", "3").unwrap_err().to_string();
        assert!(error.contains("\"fetch\"") && error.contains("fetches-per-peer"), "{error}");
    }

    #[test]
    fn a_peer_has_a_quarter_unless_it_is_said_and_never_more_than_all() {
        let cap = |total, per_peer| Cap { per_peer, ..Cap::new(total) };
        assert_eq!(cap(1, None).of_peer(), 1);
        assert_eq!(cap(10, None).of_peer(), 3);
        assert_eq!(cap(10, Some(7)).of_peer(), 7);
        assert_eq!(cap(10, Some(70)).of_peer(), 10);
    }
}
