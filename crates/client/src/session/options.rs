//! What a session is told when it begins.

use crate::state::{Pin, PinElsewhere};
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use privet_table::TableRoot;
use privet_table::update_log::PublisherId;
use privet_wire::limits::FETCH_CHUNK_LEN;
use std::sync::Arc;
use std::time::Duration;

/// What is received before the first lookup unless more is allowed: 4 GiB.
const DEFAULT_MAX_DOWNLOAD: u64 = 4 << 30;

/// Says what time it is while a session computes. Only how much passes is asked, so it may begin
/// anywhere; it goes as fast as the times that the session is told, and in steps as fine as can be
/// had. A session that needs it refuses one that stands still.
#[derive(Clone)]
pub struct Clock {
    read: Arc<dyn Fn() -> Duration + Send + Sync>,
    rest: Arc<dyn Fn(Duration) + Send + Sync>,
}

impl Clock {
    /// A clock that shows what `read` returns, which never goes back. It lets no thread rest: see
    /// [`resting`](Self::resting).
    pub fn new(read: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { read: Arc::new(read), rest: Arc::new(|_| ()) }
    }

    /// With `rest`, by which a thread waits for so long and leaves the processor to others. A
    /// session rests for some milliseconds in all when it measures how long its lookups take, so
    /// that it finds the processor as real lookups will. Where threads cannot rest, as in browsers,
    /// it measures without.
    #[must_use]
    pub fn resting(self, rest: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        Self { rest: Arc::new(rest), ..self }
    }

    pub(super) fn now(&self) -> Duration {
        (self.read)()
    }

    pub(super) fn rest(&self, time: Duration) {
        (self.rest)(time);
    }

    /// The steps in which it goes on: the shorter of two. `None`: it does not while it is looked at
    /// so often.
    pub(super) fn step(&self, looks: u32) -> Option<Duration> {
        let mut shown = self.now();
        let mut steps = (0..looks).filter_map(|_| {
            let step = self.now().checked_sub(shown).filter(|step| !step.is_zero())?;
            shown += step;
            Some(step)
        });
        // The first step may have begun before the first look.
        let (_, first, second) = (steps.next()?, steps.next()?, steps.next()?);
        Some(first.min(second))
    }
}

/// What a session is to do, and how patiently.
pub struct SessionOptions {
    /// The name of the table to use. `None`: the only one that is served.
    pub table: Option<String>,
    /// The schemes that may be used, the most wanted first. Empty: any, by an order of this
    /// client's own, in which those that verify answers come first. The order in which servers
    /// offer schemes is never looked at, and what was pinned comes before everything else.
    pub schemes: Vec<SchemeId>,
    /// Whether only schemes that verify answers may be used.
    pub verified: bool,
    /// How many servers there are, numbered from 0; server `k` plays the scheme's role `k`. That no
    /// two of them are one is for the caller to see to.
    pub servers: usize,
    /// Digest of the servers' addresses, in their order. Hints are used with the same servers in
    /// the same order only, so a scheme of several servers and secret hints cannot be used without
    /// it.
    pub addresses_digest: Option<[u8; 32]>,
    /// What was pinned at these servers in earlier sessions; of each server, the table that was
    /// used last comes last.
    pub pins: Vec<KnownPin>,
    /// What was pinned at other servers.
    pub pins_elsewhere: Vec<PinElsewhere>,
    /// Whether to believe a server that shows another table or version than the pinned one, and to
    /// pin that instead.
    pub accept_new_table: bool,
    /// The root of the table, if the caller knows it: a table with another root, or with none, is
    /// refused before anything is asked. `None`: the records of a table that is authenticated are
    /// verified against the root that the servers announce with it.
    pub root: Option<TableRoot>,
    /// Who publishes the table, if the caller knows: a table with updates by somebody else, or by
    /// nobody, is refused before anything is asked. `None`: whoever the servers named when the
    /// table was first used.
    pub publisher: Option<PublisherId>,
    /// The most bytes that are received before the first lookup (layout, hint or table, a stream,
    /// hints from a server, updates), and the most that a generation of hints may take that is
    /// kept. How many there are is for servers to say: more is refused before it is fetched.
    pub max_download: u64,
    /// By a scheme of several servers that stream the table: have each of them stream all of it,
    /// and take it only as far as they sent the same, byte for byte. Otherwise each streams a
    /// share, and all of it together is checked against the digest that each has announced. What an
    /// earlier process has taken is not streamed again.
    pub compare_streams: bool,
    /// The instruction set to compute with.
    pub kernels: Kernels,
    /// How many records may be fetched at once, at least 1; a lookup of a key that may lie in
    /// several records is begun if there is room for one. Other lookups wait their turn. (What
    /// needs no query is never under way.)
    pub in_flight: usize,
    /// How long to wait for what.
    pub patience: Patience,
    /// How the session learns how long its own work takes: when a query leaves must not tell that.
    pub clock: Clock,
}

impl SessionOptions {
    /// Options for `servers` servers, with everything else at its default: no addresses known, the
    /// only table, any scheme, nothing pinned, at most 4 GiB to keep, 8 lookups at once.
    pub fn new(servers: usize, kernels: Kernels, clock: Clock) -> Self {
        Self {
            table: None,
            schemes: Vec::new(),
            verified: false,
            servers,
            addresses_digest: None,
            pins: Vec::new(),
            pins_elsewhere: Vec::new(),
            accept_new_table: false,
            root: None,
            publisher: None,
            max_download: DEFAULT_MAX_DOWNLOAD,
            compare_streams: false,
            kernels,
            in_flight: 8,
            patience: Patience::default(),
            clock,
        }
    }
}

/// A pin from an earlier session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPin {
    /// Which of the session's servers.
    pub server: usize,
    /// The table's name there.
    pub name: String,
    /// What was seen.
    pub pin: Pin,
}

/// How long to wait for what. Pauses between attempts double from the first to the longest; a
/// random part of up to half is taken off each, so that clients of a restarted server do not all
/// return at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For a server to describe itself.
    pub describe: Duration,
    /// After so long without a word on which version of the table is served, servers are asked
    /// again before the next lookup: only of a table with an update log.
    pub description: Duration,
    /// For the next chunk of a download.
    pub chunk: Duration,
    /// For the reply to a request for hints: a server may take long to compute them.
    pub reply: Duration,
    /// For the answer to a query.
    pub answer: Duration,
    /// The pause after a first failure.
    pub first_pause: Duration,
    /// The longest pause between attempts.
    pub longest_pause: Duration,
    /// For a server that has never been reached: it is perhaps just starting, but more likely the
    /// address is wrong.
    pub first_contact: Duration,
    /// For a server that was there once and fails: it is perhaps restarting. Then it is given up,
    /// with all lookups that wait for it.
    pub give_up_after: Duration,
    /// The fewest bytes a second at which a download or a stream may come, on the whole. A server
    /// that is slower is given up after about `chunk` and `give_up_after` together.
    pub least_rate: u64,
}

impl Patience {
    /// The patience of somebody who waits at most for about `limit` until a server gets on: half of
    /// it for a response, and half of it for a server that fails. Never more than that for
    /// anything.
    pub fn within(limit: Duration) -> Self {
        let half = limit / 2;
        let Self { describe, description, chunk, first_pause, longest_pause, .. } = Self::default();
        Self {
            describe: describe.min(half),
            description,
            chunk: chunk.min(half),
            reply: half,
            answer: half,
            first_pause,
            longest_pause: longest_pause.min(half),
            first_contact: Self::default().first_contact.min(half),
            give_up_after: half,
            least_rate: Self::default().least_rate,
        }
    }

    /// The same for a line that is no faster than `least_rate` bytes a second: one chunk may take
    /// as long as it must then.
    #[must_use]
    pub fn at_rate(self, least_rate: u64) -> Self {
        let whole = Duration::from_secs(FETCH_CHUNK_LEN as u64 / least_rate.max(1) + 1);
        Self { chunk: self.chunk.max(whole), least_rate, ..self }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            describe: Duration::from_secs(10),
            description: Duration::from_secs(60),
            chunk: Duration::from_secs(30),
            reply: Duration::from_secs(300),
            answer: Duration::from_secs(60),
            first_pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(5),
            first_contact: Duration::from_secs(2),
            give_up_after: Duration::from_secs(60),
            least_rate: 8 << 10,
        }
    }
}
