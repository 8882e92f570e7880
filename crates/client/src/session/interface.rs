//! What goes into a session and what comes out of it.

use super::query::Query;
use super::value::Value;
use crate::state::{HintsKey, PartKey, Pin, PinElsewhere};
use privet_core::{Epoch, Error, TableChanges, TableIdentity};
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use privet_schemes::contract::ReservationId;
use privet_schemes::registry::SchemePlan;
use privet_schemes::reservation::JournalRecord;
use privet_table::TableRoot;
use privet_table::update_log::PublisherId;
use privet_wire::limits::FETCH_CHUNK_LEN;
use privet_wire::prost::bytes::Bytes;
use privet_wire::{
    AnswerResponse, DescribeRequest, FetchChunk, FetchRequest, PartDescription, PartKind,
    PrepareRequest, PrepareResponse, SchemeDescription, ServerDescription, UpdatesDescription,
};
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

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
    /// The schemes that may be used, the most wanted first. Empty: any, by an order of this client's
    /// own, in which those that verify answers come first. The order in which servers offer schemes is
    /// never looked at, and what was pinned comes before everything else.
    pub schemes: Vec<SchemeId>,
    /// Whether only schemes that verify answers may be used.
    pub verified: bool,
    /// How many servers there are, numbered from 0; server `k` plays the scheme's role `k`. That no two of them are one is for the caller to see to.
    pub servers: usize,
    /// Digest of the servers' addresses, in their order. Hints are used with the same servers in the same order only, so a scheme of several servers and secret hints cannot be used without
    /// it.
    pub addresses_digest: Option<[u8; 32]>,
    /// What was pinned at these servers in earlier sessions; of each server, the table that was used
    /// last comes last.
    pub pins: Vec<KnownPin>,
    /// What was pinned at other servers.
    pub pins_elsewhere: Vec<PinElsewhere>,
    /// Whether to believe a server that shows another table or version than the pinned one, and to pin that instead.
    pub accept_new_table: bool,
    /// The root of the table, if the caller knows it: a table with another root, or with none, is refused before anything is asked. `None`: the records of a table that is
    /// authenticated are verified against the root that the servers announce with it.
    pub root: Option<TableRoot>,
    /// Who publishes the table, if the caller knows: a table with updates by somebody else, or by nobody, is refused before anything is asked. `None`: whoever the servers named when the table was first used.
    pub publisher: Option<PublisherId>,
    /// The most bytes that are received before the first lookup (layout, hint or table, a stream,
    /// hints from a server, updates), and the most that a generation of hints may take that is
    /// kept. How many there are is for servers to say: more is refused before it is fetched.
    pub max_download: u64,
    /// By a scheme of several servers that stream the table: have each of them stream all of it, and take it only as far as they sent the same, byte for byte. Otherwise each streams a share, and
    /// all of it together is checked against the digest that each has announced. What an earlier process has taken is not streamed again.
    pub compare_streams: bool,
    /// The instruction set to compute with.
    pub kernels: Kernels,
    /// How many records may be fetched at once, at least 1; a lookup of a key that may lie in several records is begun if there is room for one. Other lookups wait their turn. (What needs no query is
    /// never under way.)
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

/// How long to wait for what. Pauses between attempts double from the first to the longest; a random part of up to half is taken off each, so
/// that clients of a restarted server do not all return at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For a server to describe itself.
    pub describe: Duration,
    /// After so long without a word on which version of the table is served, servers are asked again before the next lookup: only of a table with an update log.
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
    /// For a server that has never been reached: it is perhaps just starting, but more likely the address is wrong.
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
    /// it for a response, and half of it for a server that fails. Never more than that for anything.
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

/// Names one request on its way, so that its response can be told from a late one to an earlier attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExchangeId(pub(super) u64);

/// Names one lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LookupId(pub(super) u64);

/// Names one fetch: of one of the records that a lookup's key may lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FetchId(pub(super) u64);

/// What to look up. Secret: prints without its content and is erased when dropped.
#[derive(Clone)]
pub enum Target {
    /// A value by its key.
    Key(Zeroizing<Vec<u8>>),
    /// A value by its record's number.
    Index(Zeroizing<u64>),
}

impl Target {
    /// The value of `key`.
    pub fn key(key: impl AsRef<[u8]>) -> Self {
        Target::Key(Zeroizing::new(key.as_ref().to_vec()))
    }

    /// The value in record `index`.
    pub fn index(index: u64) -> Self {
        Target::Index(Zeroizing::new(index))
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Target::Key(_) => "Key(..)",
            Target::Index(_) => "Index(..)",
        })
    }
}

/// A request to one server. Clones share the bytes of queries and of requests for hints, which are erased when the last of them is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// What is served?
    Describe(DescribeRequest),
    /// The bytes of a part, or a stretch of them: answered by any number of [`Response::Chunk`] and then [`Response::End`].
    Fetch(FetchRequest),
    /// Hints for this client alone, from a secret that no other server may learn.
    Prepare(PrepareRequest),
    /// The answer to a query: one that may be sent, and nothing else.
    Answer(Query),
}

/// A response, or a piece of one. Already validated on its own; whether it belongs to the request is for the session to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// To [`Request::Describe`].
    Described(ServerDescription),
    /// To [`Request::Fetch`], in order.
    Chunk(FetchChunk),
    /// To [`Request::Fetch`]: there are no more chunks.
    End,
    /// To [`Request::Prepare`].
    Prepared(PrepareResponse),
    /// To [`Request::Answer`].
    Answered(AnswerResponse),
}

/// What a session wants from its driver.
#[derive(Debug)]
pub enum Output {
    /// Send this.
    Transmit {
        /// Names the exchange in [`Session::handle_message`](super::Session::handle_message) and
        /// [`Session::handle_failure`](super::Session::handle_failure).
        exchange: ExchangeId,
        /// To which server.
        server: usize,
        /// What.
        request: Request,
        /// How long the session will wait for the (next) response.
        patience: Duration,
    },
    /// The session does not wait for this exchange any more; whatever still comes of it is ignored.
    Abandon(ExchangeId),
    /// Say what is stored of this part, with [`Session::handle_part`](super::Session::handle_part).
    Open(PartKey),
    /// Open the single-use hints of this key and say what is kept of them, with [`Session::handle_hints`](super::Session::handle_hints).
    OpenHints {
        /// Which.
        key: HintsKey,
        /// Whether hints of another version will do, because they can follow: [`State::open_hints_to_follow`](crate::state::State::open_hints_to_follow) instead of
        /// [`open_hints`](crate::state::State::open_hints).
        to_follow: bool,
    },
    /// Make a part out of the one that is kept for an earlier version of the table, and say what is stored of it then, with [`Session::handle_part`](super::Session::handle_part): complete, or, if that
    /// could not be done, as much of it as [`Open`](Self::Open) would say.
    Patch(Box<Patch>),
    /// Keep this.
    Persist(Persist),
    /// Work on the next generation of hints, beside everything else: see [`Prepare`].
    Prepare(Prepare),
    /// News for whoever uses the session.
    Event(Event),
}

/// How a part that is kept becomes that of a later version.
#[derive(Debug)]
pub struct Patch {
    /// The part that is kept.
    pub from: PartKey,
    /// The part that it is to become.
    pub to: PartKey,
    /// The scheme, in the version before …
    pub before: SchemePlan,
    /// … and after.
    pub after: SchemePlan,
    /// What became of the table's records in between.
    pub changes: TableChanges,
}

/// What has to be kept.
pub enum Persist {
    /// What was seen at a server. Kept before anything that depends on it.
    Pin {
        /// Which server.
        server: usize,
        /// The table's name there.
        name: String,
        /// What was seen.
        pin: Pin,
    },
    /// The next bytes of a part.
    Append {
        /// Which part.
        part: PartKey,
        /// Where in the part they begin.
        offset: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// All bytes of the part are there and have the right digest. To be answered with [`Session::handle_part`](super::Session::handle_part).
    Complete(PartKey),
    /// The bytes of the part are wrong.
    Discard(PartKey),
    /// A journal record. To be answered with [`Session::handle_persisted`](super::Session::handle_persisted); the query is not sent before.
    Journal {
        /// Of which fetch.
        fetch: FetchId,
        /// Which reservation it is.
        id: ReservationId,
        /// The record, for [`HintStore::reserve`](crate::state::HintStore::reserve).
        record: JournalRecord,
    },
    /// The state change that settles a reservation whose journal record was written before, in this session or an earlier one. Nothing waits for it; until
    /// it is durable, a restart finds the reservation unfinished.
    Completion {
        /// Which reservation.
        id: ReservationId,
        /// The change, for [`HintStore::settle`](crate::state::HintStore::settle).
        change: Zeroizing<Vec<u8>>,
    },
    /// A change that ends the hints, because an answer did not pass or servers told different updates
    /// of the table. It has to be durable, and to be answered with
    /// [`Session::handle_hints_ended`](super::Session::handle_hints_ended); nobody is told of it before.
    EndHints {
        /// Which reservation's answer it was, if it was one.
        id: Option<ReservationId>,
        /// The change, for [`HintStore::end`](crate::state::HintStore::end).
        change: Zeroizing<Vec<u8>>,
        /// What happened, for people.
        why: String,
    },
    /// The change by which the hints follow edits of the table. To be answered with [`Session::handle_hints_followed`](super::Session::handle_hints_followed); no query is sent before.
    FollowHints {
        /// The change, for [`HintStore::follow`](crate::state::HintStore::follow).
        change: Zeroizing<Vec<u8>>,
        /// The hints' new key.
        to: HintsKey,
    },
    /// The hints cannot follow the table: erase them, begin anew for this key ([`HintStore::restart`](crate::state::HintStore::restart)), and say what is kept now, with
    /// [`Session::handle_hints`](super::Session::handle_hints).
    RestartHints(HintsKey),
    /// The generation in use is used up, the next one is prepared, and nothing is under way: replace the one by the other, and say what is kept now, with
    /// [`Session::handle_hints`](super::Session::handle_hints).
    SwitchHints,
    /// The generation in use is used up, all its queries are answered, and this is what it came to: make it the next generation and the one in use, and say what is kept
    /// then, with [`Session::handle_hints`](super::Session::handle_hints).
    CondenseHints {
        /// The next generation, for [`HintStore::switch_to`](crate::state::HintStore::switch_to).
        generation: Zeroizing<Vec<u8>>,
    },
}

/// A step towards the next generation of hints. Steps are done in order, by a [`Preparer`](crate::preparation::Preparer): on a thread of its own where there
/// are threads, because they take long and no query is to wait for them. What comes of them is told with
/// [`Session::handle_preparation`](super::Session::handle_preparation).
pub enum Prepare {
    /// Begin, or go on from the checkpoint that is kept: [`PreparationEvent::Resumed`].
    Begin,
    /// Say what to ask the server next, of a scheme that asks one for its hints: [`PreparationEvent::Request`].
    Ask,
    /// Take these bytes of the stream (the table, or replies): [`PreparationEvent::Absorbed`].
    Absorb {
        /// Where in the stream they begin.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// Save a checkpoint: [`PreparationEvent::Saved`].
    Checkpoint,
    /// All of the stream was taken: check it, make the generation and save it: [`PreparationEvent::Complete`].
    Finish,
}

/// What came of a [`Prepare`].
pub enum PreparationEvent {
    /// The stream is to go on at `offset`.
    Resumed {
        /// The next byte that is wanted.
        offset: u64,
    },
    /// What to ask the server for.
    Request {
        /// Where in the stream the reply belongs.
        offset: u64,
        /// The request. Secret: for the one server that is asked for hints, and for no other.
        request: Zeroizing<Vec<u8>>,
    },
    /// Everything before `offset` was taken.
    Absorbed {
        /// The next byte that is wanted.
        offset: u64,
    },
    /// A checkpoint was saved.
    Saved {
        /// Where the stream would go on from it.
        offset: u64,
    },
    /// The next generation is prepared and saved.
    Complete,
    /// It cannot be prepared. No more steps will be done.
    Failed(Error),
}

// Bytes may be secret: of a server's replies, and of the requests for them.
impl std::fmt::Debug for Prepare {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Prepare::Begin => formatter.write_str("Begin"),
            Prepare::Ask => formatter.write_str("Ask"),
            Prepare::Absorb { offset, bytes } => {
                write!(formatter, "Absorb({} bytes at {offset})", bytes.len())
            }
            Prepare::Checkpoint => formatter.write_str("Checkpoint"),
            Prepare::Finish => formatter.write_str("Finish"),
        }
    }
}

impl std::fmt::Debug for PreparationEvent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PreparationEvent::Resumed { offset } => write!(formatter, "Resumed({offset})"),
            PreparationEvent::Request { offset, .. } => {
                write!(formatter, "Request(.. at {offset})")
            }
            PreparationEvent::Absorbed { offset } => write!(formatter, "Absorbed({offset})"),
            PreparationEvent::Saved { offset } => write!(formatter, "Saved({offset})"),
            PreparationEvent::Complete => formatter.write_str("Complete"),
            PreparationEvent::Failed(error) => write!(formatter, "Failed({error:?})"),
        }
    }
}

// What is kept may be secret: it prints without its content.
impl std::fmt::Debug for Persist {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Persist::Pin { .. } => "Pin(..)",
            Persist::Append { .. } => "Append(..)",
            Persist::Complete(_) => "Complete(..)",
            Persist::Discard(_) => "Discard(..)",
            Persist::Journal { .. } => "Journal(..)",
            Persist::Completion { .. } => "Completion(..)",
            Persist::EndHints { .. } => "EndHints(..)",
            Persist::FollowHints { .. } => "FollowHints(..)",
            Persist::RestartHints(_) => "RestartHints",
            Persist::SwitchHints => "SwitchHints",
            Persist::CondenseHints { .. } => "CondenseHints(..)",
        })
    }
}

/// The table that a session looks things up in, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenTable {
    /// Name and version of the server software, for people.
    pub software: String,
    /// The table's name.
    pub name: String,
    /// Which table, in which version, of which shape.
    pub identity: TableIdentity,
    /// How keys and values lie in records.
    pub layout: PartDescription,
    /// The scheme, its parameters, and what is received before the first query.
    pub scheme: SchemeDescription,
    /// Its update log, if it has one.
    pub updates: Option<UpdatesDescription>,
}

/// News.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The table and scheme are chosen, and are what was pinned if anything was.
    Described(Box<ChosenTable>),
    /// The table has changed since it was pinned, and its publisher has signed each change.
    Updated {
        /// The version that was pinned.
        from: Epoch,
        /// The version that is used now.
        to: Epoch,
        /// Records that have changed, or are new.
        records: u64,
        /// Bytes of the epochs that led from one to the other.
        bytes: u64,
    },
    /// The single-use hints cannot follow the table, and new ones are prepared: why.
    HintsLeftBehind(String),
    /// The table is authenticated: every record will be verified against this root before anything of it is looked at.
    Authenticated(TableRoot),
    /// A part is at hand up to `done` of `total` bytes.
    Progress {
        /// Which part.
        part: PartKind,
        /// Bytes at hand.
        done: u64,
        /// Bytes in all.
        total: u64,
        /// Whether they came from the server during this session, or were stored.
        fetched: bool,
    },
    /// Everything is there; lookups begin.
    Ready,
    /// The next generation of hints is prepared up to `done` of `total` bytes of what it is made from.
    NextGeneration {
        /// Bytes taken.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// The next generation of hints cannot be prepared in this session. Lookups go on until the present one is used up.
    NotPrepared(Error),
    /// A server failed and will be tried again.
    Retrying {
        /// Which server.
        server: usize,
        /// After how long.
        pause: Duration,
        /// What happened.
        error: Error,
    },
    /// A server was given up: it failed for longer than [`Patience`] allows. All lookups that were
    /// under way or waited fail; a later one is another try.
    GivenUp {
        /// Which server.
        server: usize,
        /// What it last failed with.
        error: Error,
    },
    /// The value that was looked up, or all values of the key.
    Found {
        /// Which lookup.
        lookup: LookupId,
        /// The value.
        value: Value,
    },
    /// The table does not have the key.
    NotFound {
        /// Which lookup.
        lookup: LookupId,
    },
    /// A lookup failed. The session goes on.
    LookupFailed {
        /// Which lookup.
        lookup: LookupId,
        /// Why.
        error: Error,
    },
    /// The session is over: it cannot begin, or the server changed its story. Lookups still open have failed.
    Failed(Error),
}
