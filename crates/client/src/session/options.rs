//! The options of a session.

use crate::addresses::{self, Address};
use crate::state::{Pin, PinElsewhere, State};
use privet_core::{Epoch, Result, TableDigest};
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
#[cfg(doc)]
use privet_schemes::registry::ErasedClient;
use privet_schemes::registry::{Blank, BlankMaker};
use privet_table::TableRoot;
use privet_table::update_log::{Left, PublisherId};
use privet_wire::limits::FETCH_CHUNK_LEN;
use std::sync::Arc;
use std::time::Duration;

/// The most that is received before the first lookup, unless the caller allows more: 4 GiB.
const DEFAULT_MAX_DOWNLOAD: u64 = 4 << 30;

/// Shows the time while a session computes. Only differences count, so it may begin anywhere. It
/// must run as fast as the times that the session is told, in steps as fine as possible. A session
/// that needs a clock refuses one that stands still.
#[derive(Clone)]
pub struct Clock {
    read: Arc<dyn Fn() -> Duration + Send + Sync>,
    rest: Arc<dyn Fn(Duration) + Send + Sync>,
}

impl Clock {
    /// A clock that shows what `read` returns, which must never go back. Threads cannot rest on it:
    /// see [`resting`](Self::resting).
    pub fn new(read: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { read: Arc::new(read), rest: Arc::new(|_| ()) }
    }

    /// A clock with `rest`, which makes a thread wait for a time and leaves the processor to
    /// others. When a session measures how long its lookups take, it rests for some milliseconds in
    /// all. Then it finds the processor in the state in which real lookups will find it. Where
    /// threads cannot rest, as in browsers, it measures without.
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

    /// The length of the clock's steps: the shorter of two. `None`: it stands still over so many
    /// looks.
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

/// What a session is to do, and how long it waits.
#[derive(Clone)]
pub struct SessionOptions {
    /// The name of the table to use. `None`: the only served one. If another table was used at
    /// these servers last, the session refuses this one until the caller names it.
    pub table: Option<String>,
    /// The schemes that may be used, the most wanted first. Empty: any, in an order that is fixed
    /// in the client, in which schemes that verify answers come first. The order in which servers
    /// offer schemes never counts, and the pinned scheme comes before everything else.
    pub schemes: Vec<SchemeId>,
    /// Whether only schemes that verify answers may be used.
    pub verified: bool,
    /// How many servers there are, numbered from 0; server `k` plays the scheme's role `k`. The
    /// caller makes sure that they are distinct.
    pub servers: usize,
    /// Digest of the servers' addresses, in their order. Hints stay with the same servers in the
    /// same order, so a scheme of several servers and secret hints needs this.
    pub addresses_digest: Option<[u8; 32]>,
    /// What was pinned at these servers in earlier sessions. For each server, the table that was
    /// used last comes last.
    pub pins: Vec<KnownPin>,
    /// What was pinned at other servers.
    pub pins_elsewhere: Vec<PinElsewhere>,
    /// The tables that were left for their successors. The session follows nobody back to one.
    pub tables_left: Vec<TableLeft>,
    /// Whether to believe a server that shows another table or version than the pinned one, and to
    /// move the pin there.
    pub accept_new_table: bool,
    /// The root of the table, if the caller knows it. The session refuses a table with another
    /// root, or with none, before it asks anything. `None`: the session verifies the records of an
    /// authenticated table against the root that the servers announced at first use. That shows
    /// damage, but not a server that lied from the beginning.
    pub root: Option<TableRoot>,
    /// The publisher of the table, if the caller knows it. The session refuses a table that another
    /// publisher updates, or none, before it asks anything. `None`: the publisher that the servers
    /// named when the table was first used.
    pub publisher: Option<PublisherId>,
    /// The digest of the version to use. The session asks nothing of servers that do not serve that
    /// very version, and stays with it: an earlier version counts for as long as it is served. By
    /// most schemes a server that lies about the digest is not found out: see
    /// `docs/security/tables.md`.
    pub digest: Option<TableDigest>,
    /// The earliest version to use. The session asks nothing of servers that are behind.
    pub at_least_epoch: Option<Epoch>,
    /// The most bytes that the client receives before the first lookup (layout, hint or table, a
    /// stream, hints from a server, updates), and the most bytes that a stored generation of hints
    /// may take. Servers announce these sizes; the session refuses a larger one before it fetches
    /// anything.
    pub max_download: u64,
    /// For a scheme of several servers that stream the table: have each of them stream all of it,
    /// and take it only as far as they agree, byte for byte. Otherwise each streams a share, and
    /// the digest that all announced checks the whole. Bytes that an earlier process has taken are
    /// not streamed again.
    pub compare_streams: bool,
    /// The instruction set to compute with.
    pub kernels: Kernels,
    /// How many records may be fetched at once, at least 1. A lookup of a key that may lie in
    /// several records begins if there is room for one of them. Other lookups wait for their turn.
    /// (A lookup that needs no query does not count.)
    pub in_flight: usize,
    /// How long to wait for what.
    pub patience: Patience,
    /// Tells the session how long its own work takes, so that the moment at which a query leaves
    /// does not show it.
    pub clock: Clock,
    /// Makes queries ahead, on other threads. `None`: the session makes each when it needs it.
    pub shelf: Option<Arc<dyn Shelf>>,
}

/// Makes queries ahead, for the schemes whose clients can ([`ErasedClient::blanks`]). How many, and
/// when, follows from the number of lookups and from their times.
pub trait Shelf: Send + Sync {
    /// From now on, have blanks made with `maker`, and drop those of earlier makers. `None`: make
    /// no more.
    fn stock(&self, maker: Option<BlankMaker>);

    /// A blank of the present maker, if one is ready. Nobody gets it again.
    fn take(&self) -> Option<Blank>;
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
            tables_left: Vec::new(),
            accept_new_table: false,
            root: None,
            publisher: None,
            digest: None,
            at_least_epoch: None,
            max_download: DEFAULT_MAX_DOWNLOAD,
            compare_streams: false,
            kernels,
            in_flight: 8,
            patience: Patience::default(),
            clock,
            shelf: None,
        }
    }

    /// Asks the servers at `addresses`, and takes what was seen there and elsewhere from `state`.
    ///
    /// # Errors
    /// As [`State::pins`].
    pub fn recall(&mut self, state: &mut dyn State, addresses: &[Address]) -> Result<()> {
        self.servers = addresses.len();
        self.addresses_digest = Some(addresses::digest(addresses));
        let urls: Vec<_> = addresses.iter().map(Address::url).collect();
        self.pins.clear();
        for (server, url) in urls.iter().enumerate() {
            let known = state.pins(url)?.into_iter();
            self.pins.extend(known.map(|(name, pin)| KnownPin { server, name, pin }));
        }
        self.pins_elsewhere = state.pins_elsewhere(&urls)?;
        let left = state.tables_left()?.into_iter();
        let here = |server: &String| urls.contains(&server.as_str());
        self.tables_left =
            left.map(|(server, left)| TableLeft { here: here(&server), left }).collect();
        Ok(())
    }
}

/// A pin from an earlier session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPin {
    /// The number of the server.
    pub server: usize,
    /// The table's name there.
    pub name: String,
    /// What was seen there.
    pub pin: Pin,
}

/// A table that was left in this session or an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLeft {
    /// Whether that was at one of this session's servers.
    pub here: bool,
    /// Which table, and by which succession.
    pub left: Left,
}

/// How long to wait for what. Pauses between attempts double from the first to the longest. A
/// random part of up to half is taken off each, so that the clients of a restarted server do not
/// all return at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For a server to describe itself.
    pub describe: Duration,
    /// For a table with an update log: if servers have not said for so long which version they
    /// serve, the session asks them again before the next lookup.
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
    /// For a server that has never been reached: it may be just starting, but more likely the
    /// address is wrong.
    pub first_contact: Duration,
    /// For a server that was reached before and fails: it may be restarting. After this time it is
    /// given up, with all lookups that wait for it.
    pub give_up_after: Duration,
    /// The lowest rate of a download or a stream, in bytes a second, on average. A server that is
    /// slower is given up after about `chunk` and `give_up_after` together.
    pub least_rate: u64,
}

impl Patience {
    /// For a caller who waits about `limit` at most until a server makes progress: half of it for a
    /// response, and half of it for a server that fails. No wait is longer than that.
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
    /// as long as that rate needs.
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
