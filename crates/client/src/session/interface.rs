//! A session's input and output.

use super::query::Query;
use super::value::Value;
use crate::state::{HintsKey, PartKey, Pin};
use privet_core::{Epoch, Error, Result, TableChanges, TableIdentity};
use privet_schemes::contract::ReservationId;
use privet_schemes::registry::SchemePlan;
use privet_schemes::reservation::JournalRecord;
use privet_table::TableRoot;
use privet_table::update_log::Left;
use privet_table::values::Values;
use privet_wire::prost::bytes::Bytes;
use privet_wire::{
    AnswerResponse, DescribeRequest, FetchChunk, FetchRequest, PartDescription, PartKind,
    PrepareRequest, PrepareResponse, SchemeDescription, ServerDescription, UpdatesDescription,
};
use std::time::Duration;
use zeroize::Zeroizing;

/// Names one request on its way. It distinguishes its response from a late one to an earlier
/// attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExchangeId(pub(crate) u64);

/// Names one lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LookupId(pub(super) u64);

/// Names one fetch: of one of the records in which a lookup's key may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FetchId(pub(super) u64);

/// What to look up. Secret: prints without its content and is erased when dropped.
#[derive(Clone)]
pub enum Target {
    /// A value by its key, as bytes.
    Key(Zeroizing<Vec<u8>>),
    /// A value by its key, written as the keys of the table are: in hexadecimal, say.
    Written(Zeroizing<Vec<u8>>),
    /// A value by its record's number.
    Index(Zeroizing<u64>),
}

impl Target {
    /// The value of `key`.
    pub fn key(key: impl AsRef<[u8]>) -> Self {
        Target::Key(Zeroizing::new(key.as_ref().to_vec()))
    }

    /// The value of the key that somebody wrote as `written`, in the table's
    /// [format](privet_table::key_map::KeyFormat).
    pub fn written(written: impl AsRef<[u8]>) -> Self {
        Target::Written(Zeroizing::new(written.as_ref().to_vec()))
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
            Target::Written(_) => "Written(..)",
            Target::Index(_) => "Index(..)",
        })
    }
}

/// A request to one server. Clones share the bytes of queries and of requests for hints, which are
/// erased when the last of them is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Asks what is served.
    Describe(DescribeRequest),
    /// The bytes of a part, or a stretch of them: answered by any number of [`Response::Chunk`] and
    /// then [`Response::End`].
    Fetch(FetchRequest),
    /// Hints for this client alone, from a secret that no other server may learn.
    Prepare(PrepareRequest),
    /// The answer to a query that may be sent: no other query has this type.
    Answer(Query),
}

/// A response, or a piece of one. It is already valid on its own; the session checks whether it
/// belongs to the request.
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

/// What a client wants of its shell, which has sockets, a clock and people.
#[derive(Debug)]
pub enum Errand {
    /// Send this, and hand in the outcome.
    Send {
        /// Names the exchange when its outcome is handed in.
        exchange: ExchangeId,
        /// To which server.
        server: usize,
        /// What.
        request: Request,
        /// How long the session will wait for the (next) response.
        patience: Duration,
    },
    /// Nothing waits for this exchange any more; whatever still comes of it is ignored.
    Abandon(ExchangeId),
    /// The outcome of a lookup, or why a refresh failed. A failed lookup does not end the session.
    Reply {
        /// Which one.
        lookup: LookupId,
        /// Its value, or all values of the key; `None`: the table does not have the key. Erasing a
        /// long value takes long, so drop it where nothing waits for that.
        outcome: Result<Option<Value>>,
    },
    /// The servers were asked for later versions, and lookups are made in this one now.
    Refreshed {
        /// The refresh.
        refresh: LookupId,
        /// The newest version that the session can use.
        table: TableIdentity,
    },
    /// News for people.
    Tell(Progress),
    /// Do nothing at all until this moment, then poll again. Work that began in the meantime would
    /// begin at a moment that may depend on what is looked up. Only a
    /// [`Conductor`](crate::conductor::Conductor) has this errand and those below.
    Wait {
        /// When.
        until: Duration,
    },
    /// Lookups can begin, or never will. Comes once.
    Ready(Result<Box<OpenTable>>),
    /// Nothing is under way any more and everything is kept; or something may not be kept.
    Finished {
        /// Which call asked for this.
        ticket: FinishId,
        /// Whether everything is kept.
        outcome: Result<()>,
    },
}

/// A table whose records can be looked up.
#[derive(Clone, Debug)]
pub struct OpenTable {
    /// The table and its scheme.
    pub table: ChosenTable,
    /// Whether records are looked up by key, and not by number.
    pub is_by_key: bool,
    /// What its values are, if its builder knew.
    pub values: Option<Values>,
}

/// Names one call of [`Conductor::finish`](crate::conductor::Conductor::finish).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FinishId(pub(crate) u64);

/// What a session wants from its driver. It does not print: what is kept may be secret.
pub enum Output {
    /// What concerns servers and people.
    Errand(Errand),
    /// Say what is stored of this part, with [`Session::handle_part`](super::Session::handle_part).
    Open(PartKey),
    /// Open the single-use hints of this key and say what is stored of them, with
    /// [`Session::handle_hints`](super::Session::handle_hints).
    OpenHints {
        /// The hints' key.
        key: HintsKey,
        /// Whether hints of another version are welcome too, because they can follow: see
        /// [`State::open_hints`](crate::state::State::open_hints).
        to_follow: bool,
    },
    /// Make a part out of the stored one of an earlier version of the table. Then say what is
    /// stored of the new part, with [`Session::handle_part`](super::Session::handle_part): all of
    /// it, or, if the patch failed, as much as [`Open`](Self::Open) would say.
    Patch(Box<Patch>),
    /// Keep this.
    Persist(Persist),
    /// Work on the next generation of hints, beside everything else: see [`Prepare`].
    Prepare(Prepare),
    /// The session is over: it cannot begin, or a server changed its description. Lookups still
    /// open have failed.
    Failed(Error),
}

impl From<Errand> for Output {
    fn from(errand: Errand) -> Self {
        Output::Errand(errand)
    }
}

/// How a stored part becomes that of a later version.
#[derive(Debug)]
pub struct Patch {
    /// The stored part.
    pub from: PartKey,
    /// The part to make.
    pub to: PartKey,
    /// The scheme, in the version before …
    pub before: SchemePlan,
    /// … and after.
    pub after: SchemePlan,
    /// The changes of the table's records in between.
    pub changes: TableChanges,
}

/// State that must be kept.
pub enum Persist {
    /// What was seen at a server. It must be durable before anything that depends on it.
    Pin {
        /// Which server.
        server: usize,
        /// The table's name there.
        name: String,
        /// What was seen.
        pin: Box<Pin>,
        /// The tables that this one succeeds, and that are left with the same write.
        left: Vec<Left>,
    },
    /// Close the single-use hints, if any are open: their table has a successor, whose pin erases
    /// them.
    CloseHints,
    /// The next bytes of a part.
    Append {
        /// Which part.
        part: PartKey,
        /// Where in the part they begin.
        offset: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// All bytes of the part are there and have the right digest. To be answered with
    /// [`Session::handle_part`](super::Session::handle_part).
    Complete(PartKey),
    /// The bytes of the part are wrong.
    Discard(PartKey),
    /// A journal record. To be answered with
    /// [`Session::handle_persisted`](super::Session::handle_persisted); the query is not sent
    /// before.
    Journal {
        /// The fetch that it is for.
        fetch: FetchId,
        /// Its reservation.
        id: ReservationId,
        /// The record, for [`HintStore::reserve`](crate::state::HintStore::reserve).
        record: JournalRecord,
    },
    /// The state change that settles a reservation whose journal record was written before, in this
    /// session or an earlier one. Nothing waits for it. If it is lost, a restart finds the
    /// reservation unfinished.
    Completion {
        /// The reservation.
        id: ReservationId,
        /// The change, for [`HintStore::settle`](crate::state::HintStore::settle).
        change: Zeroizing<Vec<u8>>,
    },
    /// A change that ends the hints, because an answer failed verification or servers sent
    /// different updates of the table. Make it durable and answer with
    /// [`Session::handle_hints_ended`](super::Session::handle_hints_ended). The session reports the
    /// end only after that.
    EndHints {
        /// The reservation whose answer failed, if it was an answer.
        id: Option<ReservationId>,
        /// The change, for [`HintStore::end`](crate::state::HintStore::end).
        change: Zeroizing<Vec<u8>>,
        /// What happened, for people.
        why: String,
    },
    /// The change by which the hints follow edits of the table. To be answered with
    /// [`Session::handle_hints_followed`](super::Session::handle_hints_followed); the session sends
    /// no query before.
    FollowHints {
        /// The change, for [`HintStore::follow`](crate::state::HintStore::follow).
        change: Zeroizing<Vec<u8>>,
        /// The hints' new key.
        to: HintsKey,
    },
    /// The hints cannot follow the table: erase them, begin anew for this key
    /// ([`HintStore::restart`](crate::state::HintStore::restart)), and say what is stored then,
    /// with [`Session::handle_hints`](super::Session::handle_hints).
    RestartHints(HintsKey),
    /// The generation in use is used up, the next one is prepared, and nothing is under way.
    /// Replace the first by the second, and say what is stored then, with
    /// [`Session::handle_hints`](super::Session::handle_hints).
    SwitchHints,
    /// The generation in use is used up, all its queries are answered, and it was condensed. Store
    /// the condensed state as the next generation, switch to it, and say what is stored then, with
    /// [`Session::handle_hints`](super::Session::handle_hints).
    CondenseHints {
        /// The next generation, for [`HintStore::switch_to`](crate::state::HintStore::switch_to).
        generation: Zeroizing<Vec<u8>>,
    },
}

/// A step towards the next generation of hints. A [`Preparer`](crate::preparation::Preparer) does
/// the steps in order. They take long and no query may wait for them, so it has a thread of its own
/// where there are threads. The driver tells their outcomes with
/// [`Session::handle_preparation`](super::Session::handle_preparation). Like its outcome, it does
/// not print: replies of a server, and the requests for them, may be secret.
pub enum Prepare {
    /// Begin, or go on from the stored checkpoint: [`PreparationEvent::Resumed`].
    Begin,
    /// For a scheme that asks one server for its hints: say what to ask for next, with
    /// [`PreparationEvent::Request`].
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
    /// All of the stream was taken. Check it, make the generation and save it:
    /// [`PreparationEvent::Complete`].
    Finish,
}

/// The outcome of a [`Prepare`].
pub enum PreparationEvent {
    /// The stream is to go on at `offset`.
    Resumed {
        /// The next byte to take.
        offset: u64,
    },
    /// What to ask the server for.
    Request {
        /// Where in the stream the reply belongs.
        offset: u64,
        /// The request. Secret: only the one server that is asked for hints may see it.
        request: Zeroizing<Vec<u8>>,
    },
    /// Everything before `offset` was taken.
    Absorbed {
        /// The next byte to take.
        offset: u64,
    },
    /// A checkpoint was saved.
    Saved {
        /// Where the stream goes on after it.
        offset: u64,
    },
    /// The next generation is prepared and saved.
    Complete,
    /// It cannot be prepared. No more steps will be done.
    Failed(Error),
}

/// The table that a session looks things up in, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenTable {
    /// Name and version of the server software, for people.
    pub software: String,
    /// The table's name.
    pub name: String,
    /// The table's id, version and shape.
    pub identity: TableIdentity,
    /// How keys and values lie in records.
    pub layout: PartDescription,
    /// The layout itself, if a server sent it along. It is checked when it is used.
    pub layout_bytes: Option<Vec<u8>>,
    /// The scheme, its parameters, and what is received before the first query.
    pub scheme: SchemeDescription,
    /// Its update log, if it has one.
    pub updates: Option<UpdatesDescription>,
}

impl ChosenTable {
    /// Names one of its parts, as it is stored.
    pub(super) fn part(&self, kind: PartKind, part: PartDescription) -> PartKey {
        PartKey { table: self.identity, kind, len: part.len, digest: part.digest }
    }
}

/// What happens before, and around, the lookups.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress {
    /// The table and scheme are chosen. If the server says that this table continues the pinned
    /// one, that is checked next.
    Described(Box<ChosenTable>),
    /// The table is authenticated: every record will be verified against this root.
    Authenticated(TableRoot),
    /// The table has changed since it was last used, and its publisher has signed each change.
    Updated {
        /// The version that was used before.
        from: Epoch,
        /// The version that is used now.
        to: Epoch,
        /// Records that have changed, or are new.
        records: u64,
        /// Bytes of the updates that led from one version to the other.
        bytes: u64,
    },
    /// `done` of `total` bytes of a part are at hand.
    Part {
        /// Which part.
        part: PartKind,
        /// Bytes at hand.
        done: u64,
        /// Bytes in all.
        total: u64,
        /// Whether they just came from the server, or were stored before.
        fetched: bool,
    },
    /// Another process is downloading the part, or holds the hints that are made of it; this one
    /// waits for it.
    Waiting {
        /// Which part.
        part: PartKind,
        /// Bytes that the other process has, approximately.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// While lookups go on, the next generation of single-use hints is prepared: `done` of the
    /// `total` bytes that it is made from.
    NextGeneration {
        /// Bytes processed.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// Something that a person should know: that a damaged file will be fetched again, say, or that
    /// two servers are on one host.
    Notice(String),
    /// A server failed and will be tried again.
    Retrying {
        /// Its place among the addresses.
        server: usize,
        /// After how long.
        pause: Duration,
        /// What happened.
        error: Error,
    },
    /// A server failed for longer than [`Patience`](super::Patience) allows, and is given
    /// up. Every lookup that was handed in before has failed or will fail; a later one tries the
    /// server again.
    GivenUp {
        /// Its place among the addresses.
        server: usize,
        /// Its last failure.
        error: Error,
    },
    /// Lookups can begin.
    Ready,
}
