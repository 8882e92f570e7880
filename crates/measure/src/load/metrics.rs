//! What a server says of its own work on `/metrics`: the time that its passes took, and how many
//! queries they answered.

use crate::page::rate;
use privet_core::{Error, Result};
use serde::Serialize;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::str::FromStr;
use std::time::Duration;

/// How long a server may take for its metrics. It writes them down at once.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most bytes of metrics that are read. A server has some ten thousand, and some for each
/// table.
const MOST_BYTES: u64 = 16 << 20;

/// Where a server publishes its metrics: plain HTTP, as Privet's servers do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsAddress {
    /// `HOST:PORT`
    authority: String,
    path: String,
}

impl FromStr for MetricsAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix("http://").unwrap_or(text);
        let (authority, path) = match rest.split_once('/') {
            Some((authority, path)) if !path.is_empty() => (authority, path),
            Some((authority, _)) => (authority, "metrics"),
            None => (rest, "metrics"),
        };
        let port = authority
            .rsplit_once(':')
            .and_then(|(host, port)| (!host.is_empty()).then_some(port)?.parse::<u16>().ok());
        // The path goes into a request as it is.
        let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic());
        if port.is_none() || !is_plain || authority.contains(|c: char| !c.is_ascii_graphic()) {
            return Err(format!(
                "{text:?} is no address of metrics such as http://127.0.0.1:7790/metrics"
            ));
        }
        Ok(Self { authority: authority.to_owned(), path: format!("/{path}") })
    }
}

/// What a server has done since it started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// The sum of the times of all passes.
    pub seconds: f64,
    passes: f64,
    queries: f64,
}

/// What a server did meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Passes {
    /// Seconds of passes in each second. Answers that read only a part of a table are passes of
    /// their own and run side by side, so this may exceed 1.
    pub(super) share: f64,
    /// Queries that a pass answered, on average. 0 if there was no pass.
    pub(super) queries_each: f64,
}

impl MetricsAddress {
    /// Asks the server.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it does not answer,
    /// [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) if these are not the metrics
    /// of a Privet server.
    pub fn read(&self) -> Result<Work> {
        let text = self.get().map_err(|error| {
            Error::unavailable(format!("no metrics at {}", self.authority)).caused_by(error)
        })?;
        Work::parse(&text).ok_or_else(|| {
            Error::peer_misbehaved(format!(
                "http://{}{} does not show the metrics of a Privet server",
                self.authority, self.path
            ))
        })
    }

    fn get(&self) -> std::io::Result<String> {
        let mut addresses = self.authority.to_socket_addrs()?;
        let address = addresses.next().ok_or_else(|| std::io::Error::other("no such host"))?;
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let Self { authority, path } = self;
        // Of version 1.0, so that the body comes in one piece and the connection ends after it.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {authority}\r\nConnection: close\r\n\r\n")?;
        let mut response = Vec::new();
        stream.take(MOST_BYTES).read_to_end(&mut response)?;
        Ok(String::from_utf8_lossy(&response).into_owned())
    }
}

impl Work {
    /// Finds the metrics in a response, whose other lines do not matter.
    fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let mut values = text.lines().filter_map(|line| line.strip_prefix(name));
            values.find_map(|value| value.strip_prefix(' ')?.trim().parse::<f64>().ok())
        };
        Some(Self {
            seconds: value("privet_answer_seconds_sum")?,
            passes: value("privet_answer_seconds_count")?,
            queries: value("privet_batch_size_sum")?,
        })
    }

    /// What came after `earlier`, in `time`.
    pub(super) fn since(&self, earlier: &Self, time: Duration) -> Passes {
        // A server that was started again begins at 0.
        let more = |now: f64, before: f64| if now >= before { now - before } else { now };
        let passes = more(self.passes, earlier.passes);
        Passes {
            share: more(self.seconds, earlier.seconds) / time.as_secs_f64().max(1e-9),
            queries_each: more(self.queries, earlier.queries) / passes.max(1.0),
        }
    }
}

impl Passes {
    /// `passes 0.93 of the time, 12.5 queries each`
    pub(super) fn words(&self) -> String {
        format!("passes {:.2} of the time, {} queries each", self.share, rate(self.queries_each))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const METRICS: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n\
        # HELP privet_batch_size Queries answered in one pass.\n\
        privet_batch_size_sum 23.0\n\
        privet_batch_size_count 4\n\
        privet_answer_seconds_sum 0.5\n\
        privet_answer_seconds_count 4\n\
        privet_answer_seconds_bucket{le=\"0.0005\"} 13\n";

    #[test]
    fn addresses_have_a_host_and_a_port() {
        let parsed = |text: &str| text.parse::<MetricsAddress>().map(|at| (at.authority, at.path));
        let expected = Ok(("127.0.0.1:7790".to_owned(), "/metrics".to_owned()));
        for same in ["127.0.0.1:7790", "http://127.0.0.1:7790", "http://127.0.0.1:7790/metrics"] {
            assert_eq!(parsed(same), expected);
        }
        assert_eq!(parsed("[::1]:80/a/b").unwrap(), ("[::1]:80".to_owned(), "/a/b".to_owned()));
        for wrong in ["", "host", ":80", "host:port", "https://host:1", "h:1/a b", "h:1/a\r\nb"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_a_server_did_is_the_difference() {
        let before = Work::parse(METRICS).unwrap();
        assert_eq!(before, Work { seconds: 0.5, passes: 4.0, queries: 23.0 });
        let after = Work { seconds: 9.8, passes: 14.0, queries: 123.0 };
        let passes = after.since(&before, Duration::from_secs(10));
        assert_eq!(passes, Passes { share: 0.93, queries_each: 10.0 });
        assert_eq!(passes.words(), "passes 0.93 of the time, 10.0 queries each");
        // One that was started again, and one that did nothing.
        assert_eq!(before.since(&after, Duration::from_secs(1)).queries_each, 23.0 / 4.0);
        assert_eq!(after.since(&after, Duration::ZERO), Passes { share: 0.0, queries_each: 0.0 });
        for other in ["", "HTTP/1.1 404 Not Found\r\n\r\n", "privet_batch_size_sum x"] {
            assert_eq!(Work::parse(other), None);
        }
    }

    #[test]
    fn a_server_is_asked_and_may_be_another_or_gone() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address: MetricsAddress = listener.local_addr().unwrap().to_string().parse().unwrap();
        let answer = |text: &'static str| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 17];
            stream.read_exact(&mut request).unwrap();
            assert_eq!(request, *b"GET /metrics HTTP");
            stream.write_all(text.as_bytes()).unwrap();
            // What is left unread would reset the connection.
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        };
        std::thread::scope(|scope| {
            scope.spawn(|| ["nothing", METRICS].map(answer));
            assert!(address.read().unwrap_err().message().contains("a Privet server"));
            assert_eq!(address.read().unwrap().queries, 23.0);
        });
        drop(listener);
        let gone = address.read().unwrap_err();
        assert_eq!(gone.blame(), privet_core::Blame::Unavailable);
    }
}
