//! What a client has done so far.

use crate::session::Request;
use std::time::Duration;

/// Bytes of messages that crossed the wire, with gRPC's five bytes before each, without HTTP/2 and
/// TLS. Queries that a shell sends together count as if each was sent alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// To the servers.
    pub up: u64,
    /// From the servers.
    pub down: u64,
}

/// What a client has done so far.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Asking the servers what they serve.
    pub describe: Traffic,
    /// Before the first lookup: fetching layout and hint, or the table, or asking for hints.
    pub prepare: Traffic,
    /// While lookups go on: streaming the table, or asking, for the next generation of single-use
    /// hints.
    pub background: Traffic,
    /// Queries and answers. None for schemes whose client holds the table.
    pub lookup: Traffic,
    /// Lookups that are over, with any outcome.
    pub lookups: u64,
    /// Total time of computing queries and of waiting for the ends of their slots: see
    /// [`Session::busy_until`](crate::session::Session::busy_until).
    pub query_time: Duration,
    /// The same for reading records, from answers or from the kept table.
    pub recover_time: Duration,
    /// Total time of waiting until journal records are durable: for schemes with single-use hints.
    pub journal_time: Duration,
    /// From the beginning to the first possible lookup.
    pub ready_after: Duration,
    /// Whether the state directory had the whole hint, the whole table, or single-use hints that
    /// are not used up. `None`: the scheme has none of these, or the client has not looked yet.
    pub hint_was_stored: Option<bool>,
}

/// The part of the traffic that an exchange counts as.
#[derive(Clone, Copy)]
pub(super) enum Phase {
    Describe,
    Prepare,
    /// What the next generation of hints is made from.
    Background,
    Lookup,
}

impl Phase {
    /// `is_ready`: lookups have begun.
    pub(super) fn of(request: &Request, is_ready: bool) -> Self {
        match request {
            Request::Describe(_) => Self::Describe,
            Request::Fetch(_) | Request::Prepare(_) if is_ready => Self::Background,
            Request::Fetch(_) | Request::Prepare(_) => Self::Prepare,
            Request::Answer(_) => Self::Lookup,
        }
    }
}

impl Stats {
    pub(super) fn traffic(&mut self, phase: Phase) -> &mut Traffic {
        match phase {
            Phase::Describe => &mut self.describe,
            Phase::Prepare => &mut self.prepare,
            Phase::Background => &mut self.background,
            Phase::Lookup => &mut self.lookup,
        }
    }
}
