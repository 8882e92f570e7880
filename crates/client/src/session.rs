//! The client session: everything a client does, without I/O.
//!
//! A [`Session`] is a state machine. A *driver* hands it what arrived and what time it is, and does
//! what [`Session::poll`] says: sockets and files, a browser, or a simulator drive the same
//! machine. It is also given a [`Clock`], to learn how long its own work took.
//!
//! ```text
//!            handle_message, handle_failure            Transmit, Abandon
//! servers  ────────────────────────────────►         ──────────────────────►  servers
//!            handle_part, handle_hints                 Open, OpenHints
//!            handle_persisted                Session   Persist
//! storage  ────────────────────────────────►         ──────────────────────►  storage
//!            handle_preparation                        Prepare
//! worker   ────────────────────────────────►         ──────────────────────►  worker
//!            lookup, handle_timeout                    Event
//! user     ────────────────────────────────►         ──────────────────────►  user
//! ```
//!
//! It runs through these phases, and lookups may be handed in at any time:
//!
//! ```text
//! describe ─► choose table and scheme ─► compare with the pin ─► layout ─► hint, or the table ──────────► ready: lookups
//!                                                                    └──► single-use hints ────────────►   │
//!                                                                              │           ▲
//!                                                                              ▼           │
//!                                                          none: stream the table or ask a server, prepare, switch
//! ```
//!
//! Layout and hint come from storage, or what is missing of them from the server. So does the whole table, for a scheme whose client keeps it: its lookups are read from
//! there. Single-use hints come from storage, with all that happened to them; if there are none, or they are used up, they are prepared first.
//!
//! # Several servers
//!
//! A scheme of two servers hides what is looked up from each of them as long as they do not put together what they saw. All must describe the same table, in the same
//! version, with the same contents and layout, and serve it by the same scheme with the same parameters, or nothing is asked. Parts are fetched from the first, and checked
//! against the digests that all of them announced; of a table that is streamed, each sends a share, or each all of it: the module `compared` says why. A lookup's queries go out at once, one to each, and take their course independently: what becomes of one server's neither
//! holds up nor changes another's. The lookup is over when all are.
//!
//! # Single-use hints
//!
//! A lookup by a scheme with such hints goes through storage before it goes out: *reserve* a hint, have the journal record made durable
//! ([`Persist::Journal`]), and only with the receipt for that very record *send*. The answer *settles* the reservation ([`Persist::Completion`]). What an earlier
//! process reserved and did not settle is sent again, byte for byte, before anything else; a reservation that fails in this session is left to the next, unless hints never run out.
//! While one generation of hints is in use, the next is prepared beside it: the module `preparation` says when.
//!
//! What hints are made from is the table, streamed in its natural order or in one of the scheme's own, or the replies of one of several servers to requests. Such a request holds what no
//! other server may learn. It goes to the server that the scheme names, and when that fails, to the same one again; there is no other to turn to.
//!
//! By some schemes hints never run out, and the next generation is made of the one in use and nothing else: the module `endless` says how. Some schemes verify answers: then queries go one after the
//! other, and the first answer that does not pass is the end of the hints, for this session and all later ones. The module `verified` says how.
//!
//! Hints follow the table from version to version where they can ([`Updatable`](privet_schemes::contract::Updatable)); so does what was downloaded. The modules `following` and `versions` say how a session
//! goes from one version to the next.
//!
//! # Keys
//!
//! A table's key map says how many records a key may lie in, one or two. A lookup fetches all of them, each with a query (and a hint) of its own, and only together do they have an
//! outcome: the module `candidates` says why.
//!
//! # Time
//!
//! Nor may the moment at which something is sent. What depends on an index is done in slots of a
//! public length, and leaves at their ends: the module `timetable` says how.
//!
//! # Invariants
//!
//! What a server sees of a client must not depend on what the client looks for. So, whatever servers do:
//!
//! 1. **Bytes out depend only on public parameters, the history's length and coins.** A lookup is one query to each server for each record that a key of the table may lie in, of lengths fixed by the
//!    parameters, whether its key is there or not; by a scheme whose client holds the table, it is none, whatever is looked up. Which stretch of the table is streamed when, or which hints are asked for, for the next generation of single-use hints, follows from the
//!    number of queries that were sent; and which queries are sent again, by this process or a later one, from which of them were answered.
//! 2. **Traffic after a failed recover equals traffic after a success.** An answer ends its query whatever it holds; nothing is asked again because of what
//!    was or was not in it, and how long it took to read moves nothing. By a scheme that verifies
//!    answers, there is none after one that does not pass: all of each answer is verified, so
//!    whether it does follows from what
//!    the server sent and not from what was looked up. (What is no answer at all, which its length shows, leaves its query to be repeated by the
//!    next session; by a scheme whose hints never run out, by this one, with the next lookup.)
//! 3. **A repeated or locally known index still sends a well-formed query.** There is no cache and no way around the network: a key whose value the client already
//!    holds (in the layout's public stash) costs the same queries as any other, and so does each of several equal keys. Only a scheme whose client holds the whole table does
//!    without queries, and then without any: no lookup of its session sends anything.
//! 4. **A retry re-sends identical bytes.** A query is fixed once, before it is first sent; one that belongs to a single-use hint is read back from the journal
//!    by a later process. No hint serves two different queries.
//! 5. **Every message carries table id, epoch and parameter digest, and all servers must agree** on these and on everything else they say of the table. After any
//!    failure a server is asked to describe itself again before it gets another query. (Only what is streamed in the background may fail without that: it is checked
//!    by digest or, where it is a reply to this client alone, by its length; and no query is to wait for it.)
//!
//! # Failures
//!
//! A server that cannot be reached or is busy is tried again, with growing pauses, for as long as [`Patience`] says; a restarted server that tells
//! the same story as before loses no lookup. One that tells another story ends the session, and so does an answer that does not pass where answers are verified
//! ([`Blame::Integrity`]). A lookup that fails otherwise fails alone. If a journal record may not be durable, no query
//! is sent in this session any more; those on their way take their course.

mod agreement;
mod asking;
mod calls;
mod candidates;
mod choose;
mod compared;
mod endless;
mod following;
mod hints;
mod interface;
mod lookups;
mod opening;
mod pins;
#[cfg(test)]
mod planted;
mod preparation;
mod query;
mod records;
mod resends;
mod streaming;
#[cfg(test)]
mod tests;
mod timetable;
mod value;
mod verified;
mod versions;

pub use interface::{
    ChosenTable, Clock, Event, ExchangeId, FetchId, KnownPin, LookupId, Output, Patch, Patience,
    Persist, PreparationEvent, Prepare, Request, Response, SessionOptions, Target,
};
pub use query::Query;
pub use value::Value;

use crate::preparation::{Preparer, StartPreparation};
use crate::state::{PartKey, PartState, PreparationStore, SavedHints};
use agreement::server_name;
use calls::{Calls, Ended, GivenUp, Purpose};
use following::{Followed, Following};
use hints::{Hints, Loaded};
use lookups::Lookups;
use preparation::Pace;
use privet_core::{Blame, Error, Reason, Result, SecretRng, TableIdentity};
use privet_kernels::Kernels;
use privet_schemes::offline::{Download, HintSource};
use privet_schemes::registry::{self, ErasedClient, SchemePlan};
use privet_schemes::reservation::Receipt;
use privet_wire::prost::bytes::Bytes;
use privet_wire::{DescribeRequest, PartDescription, PartKind, ServerDescription};
use records::Records;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use timetable::{Measuring, Timetable};
use versions::Versions;
use zeroize::Zeroizing;

/// Starts a client with what it downloaded: a hint, the table, or nothing.
type StartClient =
    fn(SchemePlan, &TableIdentity, Arc<dyn HintSource>, Kernels) -> Result<Box<dyn ErasedClient>>;

/// Starts a client with single-use hints.
type StartHinted =
    fn(SchemePlan, &TableIdentity, Zeroizing<Vec<u8>>, Kernels) -> Result<Box<dyn ErasedClient>>;

/// What a session is made of that tests replace.
struct Parts {
    start_client: StartClient,
    start_hinted: StartHinted,
    start_preparation: StartPreparation,
    pace: Pace,
    measuring: Measuring,
    rng: SecretRng,
    #[cfg(test)]
    timetable_flaw: timetable::Flaw,
}

impl Parts {
    fn of_the_registry() -> Result<Self> {
        Ok(Self {
            start_client: registry::client,
            start_hinted: registry::hinted_client,
            start_preparation: registry::preparation,
            pace: Pace::default(),
            measuring: Measuring::default(),
            rng: SecretRng::from_os()?,
            #[cfg(test)]
            timetable_flaw: timetable::Flaw::None,
        })
    }
}

/// A client's side of everything it does with one table. See the [module](self).
pub struct Session {
    options: SessionOptions,
    parts: Parts,
    calls: Calls,
    lookups: Lookups,
    phase: Phase,
    chosen: Option<Box<ChosenTable>>,
    /// The versions that all servers serve, the latest first.
    served: Vec<ChosenTable>,
    /// What led from the pinned version to the latest.
    followed: Option<Followed>,
    versions: Versions,
    records: Option<Records>,
    hints: Hints,
    /// Bytes that came before the first lookup, whatever they were, and what came for nothing since.
    came: u64,
    timetable: Timetable,
    outputs: VecDeque<Output>,
}

enum Phase {
    /// Waits for every server's description.
    Describing(Vec<Option<ServerDescription>>),
    /// Fetches the epochs that lead to the chosen version.
    Following(Box<Following>),
    /// Waits for the hints to be those of the chosen version.
    MovingHints { loaded: Box<Loaded>, outstanding: usize },
    /// Waits to hear what is stored of a part. `again`: the stored part turned out to be damaged once.
    Opening { part: PartKey, again: bool },
    /// Fetches what is missing of a part.
    Fetching { part: PartKey, download: Box<Download> },
    /// Waits for a fetched part to be stored as complete.
    Completing(PartKey),
    /// Waits to hear what is kept of the single-use hints.
    OpeningHints,
    /// Prepares the first generation of hints.
    Preparing,
    /// Waits for the prepared generation to be the one in use. `first`: lookups have not begun.
    Switching { first: bool },
    /// Looks things up.
    Ready(Box<dyn ErasedClient>),
    /// An answer did not pass. Waits for the end of the hints to be durable, and tells it then:
    /// first of all to the fetch that it was for, if there is one.
    Ending { fetch: Option<FetchId>, error: Error },
    /// Over, and why.
    Over(Error),
}

impl Session {
    /// A session that has yet to begin: [`poll`](Self::poll) it. `now` is the time since whatever start the driver chose, here and everywhere.
    ///
    /// # Errors
    /// [`Blame::Unavailable`] if the system gives no entropy, [`Blame::ApiMisuse`]
    /// if there is no server or nothing may be under way.
    pub fn new(options: SessionOptions, now: Duration) -> Result<Self> {
        Self::with_parts(options, now, Parts::of_the_registry()?)
    }

    fn with_parts(options: SessionOptions, now: Duration, parts: Parts) -> Result<Self> {
        if options.servers == 0 || options.in_flight == 0 {
            return Err(Error::api_misuse(
                "a session needs at least one server and at least one lookup under way",
            ));
        }
        let timetable = Timetable::new(options.clock.clone(), now, parts.measuring);
        #[cfg(test)]
        let timetable = timetable.with_flaw(parts.timetable_flaw);
        let mut session = Self {
            parts,
            timetable,
            calls: Calls::new(options.servers, options.patience),
            lookups: Lookups::default(),
            phase: Phase::Describing(vec![None; options.servers]),
            chosen: None,
            served: Vec::new(),
            followed: None,
            versions: Versions::of(options.servers),
            records: None,
            hints: Hints::default(),
            came: 0,
            outputs: VecDeque::new(),
            options,
        };
        for server in 0..session.options.servers {
            let request = Request::Describe(DescribeRequest::default());
            session.calls.start(server, Purpose::Describe, request, now, &mut session.outputs);
        }
        Ok(session)
    }

    /// The table and scheme, once they are chosen.
    pub fn table(&self) -> Option<&ChosenTable> {
        self.chosen.as_deref()
    }

    /// What time it is if somebody says that it is `told`: that, or what the session's own [`Clock`]
    /// shows, whichever is later.
    pub fn time(&self, told: Duration) -> Duration {
        self.timetable.shown(told)
    }

    /// What prepares hints for the chosen table, and keeps them in `store`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`] if no table is chosen.
    pub fn preparer(&self, store: Box<dyn PreparationStore>) -> Result<Preparer> {
        let table = self.table().ok_or_else(|| {
            Error::api_misuse("hints are prepared for a table that has been chosen")
        })?;
        let (kernels, start) = (self.options.kernels, self.parts.start_preparation);
        Ok(Preparer::with_start(table, store, kernels, start))
    }

    /// Asks for a value. The outcome is an [`Event`] with the returned id; every lookup gets exactly one.
    pub fn lookup(&mut self, target: Target) -> LookupId {
        match &self.phase {
            Phase::Over(error) => {
                let (lookup, error) = (self.lookups.add_nothing(), error.clone());
                self.event(Event::LookupFailed { lookup, error });
                lookup
            }
            _ => {
                #[cfg(test)]
                if let Some(lookup) = self.known_from_the_stash(&target) {
                    return lookup;
                }
                self.hints.unanswered.lookup_handed_in();
                self.lookups.add(target)
            }
        }
    }

    /// What to do next; `None`: nothing until something is handed in or
    /// [`next_timeout`](Self::next_timeout) has come. What can be sent comes before what only
    /// concerns this side.
    ///
    /// Each call computes one query or reads one answer at most, and what that comes to leaves when
    /// [`busy_until`](Self::busy_until) says.
    ///
    /// Between a journal record ([`Persist::Journal`]) and what the driver says of it, more lookups
    /// may be reserved for, each in a slot of its own, and nothing is read. So a driver may gather
    /// records until there are no more, and make them durable together. How many there are follows
    /// from the number of lookups that were handed in. If it tells of each at once, nothing changes.
    pub fn poll(&mut self, now: Duration) -> Option<Output> {
        if !self.timetable.lets_out(now) {
            return None;
        }
        let now = self.timetable.at(now);
        loop {
            // What was just done has begun a slot, and nothing leaves before its end.
            if self.timetable.ends().is_some() {
                return None;
            }
            if let Some(output) = self.outputs.pop_front() {
                return Some(output);
            }
            let did_something = self.ask_next(now)
                // Queries that wait for receipts do not wait for what is read as well.
                || (!self.lookups.await_receipts() && self.read_next());
            // Nothing may have been done, and something said all the same.
            if !did_something && self.outputs.is_empty() {
                return None;
            }
        }
    }

    /// Whether nothing is under way that is worth waiting for: no lookup, no query of an earlier session, no piece of the next generation of hints that is due
    /// (unless the server cannot give it now). To be asked once [`poll`](Self::poll) has returned `None`.
    pub fn is_at_rest(&self) -> bool {
        let everything_left = self.outputs.is_empty() && self.timetable.ends().is_none();
        everything_left && self.has_come_to_rest()
    }

    fn has_come_to_rest(&self) -> bool {
        match &self.phase {
            Phase::Over(_) => true,
            // The servers could not be had, and nobody waits for them.
            Phase::Describing(_) if self.versions.opened_before => {
                self.lookups.is_empty() && !self.calls.is_open(Purpose::Describe)
            }
            Phase::Ready(_) => {
                self.lookups.is_empty()
                    && self.hints.is_at_rest()
                    && !self.calls.is_in_flight(Purpose::Background)
            }
            _ => false,
        }
    }

    /// Whether no lookup waits for anything. To be asked once [`poll`](Self::poll) has returned `None`.
    pub fn has_no_lookups(&self) -> bool {
        self.lookups.is_empty() && self.timetable.ends().is_none()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), if nothing else happens before.
    pub fn next_timeout(&self) -> Option<Duration> {
        self.timetable.ends().or_else(|| self.calls.next_timeout())
    }

    /// Until when nothing leaves the session, because it has computed something that took a time of
    /// its own. The module `timetable` says why. A driver that does nothing at all until then sends
    /// everything in time: what it might begin now, it would begin at a moment that tells how long
    /// the work took.
    pub fn busy_until(&self) -> Option<Duration> {
        self.timetable.ends()
    }

    /// Tells the time.
    pub fn handle_timeout(&mut self, now: Duration) {
        let now = self.timetable.at(now);
        for (exchange, error) in self.calls.due(now, &mut self.outputs) {
            self.handle_failure(exchange, error, now);
        }
    }

    /// A response, or a piece of one, came. Late and repeated ones are ignored.
    pub fn handle_message(&mut self, exchange: ExchangeId, response: Response, now: Duration) {
        let now = self.timetable.at(now);
        let Some(call) = self.calls.waiting_for(exchange) else { return };
        let (server, asked) = (call.server, matches!(call.request, Request::Prepare(_)));
        if let Purpose::Fetch | Purpose::Stream = call.purpose {
            self.came = self.came.saturating_add(match &response {
                Response::Chunk(chunk) => chunk.data.len() as u64,
                Response::Prepared(response) => response.reply.len() as u64,
                _ => 0,
            });
        }
        match (call.purpose, response) {
            (Purpose::Describe, Response::Described(description)) => {
                self.described(exchange, description, now)
            }
            (Purpose::Fetch, Response::Chunk(chunk)) => self.chunk(exchange, &chunk, now),
            (Purpose::Stream | Purpose::Background, Response::Chunk(chunk)) if !asked => {
                self.streamed_chunk(exchange, chunk, now)
            }
            (Purpose::Fetch | Purpose::Stream | Purpose::Background, Response::End) if !asked => {
                self.stream_ended(exchange, now)
            }
            (Purpose::Stream | Purpose::Background, Response::Prepared(response)) if asked => {
                self.replied(exchange, &response, now)
            }
            (Purpose::Answer(_) | Purpose::Resend(_), Response::Answered(response)) => {
                self.answered(exchange, response)
            }
            _ => {
                let name = server_name(server, self.options.servers);
                let error = Error::peer_misbehaved(format!(
                    "the response of {name} does not belong to the request"
                ));
                self.handle_failure(exchange, error, now);
            }
        }
        if self.came > self.options.max_download {
            let error = Error::exhausted(format!(
                "more came than the {} bytes that are allowed before the first lookup; if the table that you expect has as much, allow more",
                self.options.max_download
            ));
            self.fail(error.because(Reason::TooMuchToDownload));
        }
    }

    /// An exchange failed: the server could not be reached, or refused, or sent what cannot be valid.
    pub fn handle_failure(&mut self, exchange: ExchangeId, error: Error, now: Duration) {
        let now = self.timetable.at(now);
        if self.everything_arrived(exchange) {
            return self.finish_fetch(exchange, now);
        }
        let ended = self.calls.failed(exchange, error, now, &mut self.parts.rng, &mut self.outputs);
        // Before what it ends: that may be the session.
        if let Some(GivenUp { server, error }) = self.calls.take_given_up() {
            self.server_given_up(server, error);
        }
        for ended in ended {
            self.call_ended(ended);
        }
        // A fetch in the background may have been given up: what came of it is kept.
        self.prepare(now);
    }

    /// What is stored of the part that was to be opened or completed.
    pub fn handle_part(&mut self, state: PartState, now: Duration) {
        let now = self.timetable.at(now);
        match (&self.phase, state) {
            (Phase::Opening { part, again }, PartState::Complete(source)) => {
                let (part, again) = (part.clone(), *again);
                self.progress(&part, part.len, false);
                self.use_part(part, source, again);
            }
            (Phase::Completing(part), PartState::Complete(source)) => {
                self.use_part(part.clone(), source, true)
            }
            (Phase::Opening { part, .. }, PartState::Partial(download)) => {
                self.fetch(part.clone(), download, now)
            }
            // Nobody asked.
            _ => {}
        }
    }

    /// What is kept of the single-use hints that were to be opened, or switched.
    pub fn handle_hints(&mut self, saved: SavedHints, now: Duration) {
        let now = self.timetable.at(now);
        if let Phase::OpeningHints | Phase::Switching { .. } = self.phase {
            if let Err(error) = self.use_hints(saved, now) {
                self.fail(error);
            }
            self.timetable.end_opening();
        }
    }

    /// The journal record of a fetch is durable: `receipt` proves it.
    pub fn handle_persisted(&mut self, fetch: FetchId, receipt: Receipt, now: Duration) {
        let now = self.timetable.at(now);
        let Some(reservation) = self.lookups.committed(fetch) else { return };
        match reservation.commit_with(receipt) {
            Ok(prepared) => self.ask(fetch, prepared, now),
            Err(error) => self.fetch_ended(fetch, Err(error)),
        }
    }

    /// The journal record of a fetch may not be durable: its query will not be sent, nor will any
    /// other by a scheme with single-use hints. What is kept of them has to be opened again first,
    /// by another session.
    pub fn handle_not_persisted(&mut self, fetch: FetchId, error: Error) {
        if self.lookups.committed(fetch).is_some() {
            self.hints.broken.get_or_insert(error.clone());
            self.fetch_ended(fetch, Err(error));
        }
    }

    /// The end of the hints is durable: it is told now, and the session is over.
    pub fn handle_hints_ended(&mut self) {
        self.tell_the_end(None);
    }

    /// What came of a step of the preparation.
    pub fn handle_preparation(&mut self, event: PreparationEvent, now: Duration) {
        let now = self.timetable.at(now);
        self.preparation_went_on(event, now);
        self.prepare(now);
    }

    /// Nobody waits any longer: ends the session, and every lookup that is open, with `error`. An
    /// end of the hints that is being kept is told first.
    pub fn stop(&mut self, error: Error) {
        if !matches!(self.phase, Phase::Ending { .. }) {
            self.fail(error);
        }
    }

    /// Something could not be kept or read. Ends the session unless it is ready. A ready one needs
    /// no more of storage, unless it has single-use hints: then it sends no more queries. If what
    /// is kept contradicts what the servers show, nothing is sent any more at all.
    pub fn handle_storage_failure(&mut self, error: Error) {
        match self.phase {
            Phase::Ending { .. } => self.tell_the_end(Some(&error)),
            Phase::Ready(_) if error.blame() == Blame::Integrity => {
                self.outputs.retain(|output| !matches!(output, Output::Transmit { .. }));
                self.fail(error);
            }
            Phase::Ready(_) => {
                self.hints.broken.get_or_insert(error);
            }
            _ => self.fail(error),
        }
    }
}

/// Endings.
impl Session {
    fn call_ended(&mut self, Ended { server, purpose, error }: Ended) {
        match purpose {
            Purpose::Answer(fetch) => self.lookups.server_answered(fetch, server, Err(error)),
            Purpose::Resend(id) => self.hints.resends.settled(id, server, Err(error)),
            Purpose::Background => {
                // Another server may have been asked for the same stretch, to compare them.
                self.calls.abandon(Purpose::Background, &mut self.outputs);
                self.hints.fetched(true);
            }
            // A server that was given up is asked again when there is something to ask it.
            Purpose::Describe | Purpose::Fetch | Purpose::Stream if self.is_opening_again() => {
                self.put_off(&error);
            }
            Purpose::Describe
                if matches!(self.phase, Phase::Ready(_) | Phase::Switching { first: false }) =>
            {
                self.versions.given_up(server);
            }
            Purpose::Describe | Purpose::Fetch | Purpose::Stream => self.fail(error),
        }
    }

    /// Lookups that wait for their turn would each wait as long for this server as those that it was
    /// given up by. Which those are follows from what servers did and when.
    fn server_given_up(&mut self, server: usize, error: Error) {
        for lookup in self.lookups.drop_waiting() {
            self.event(Event::LookupFailed { lookup, error: error.clone() });
        }
        self.event(Event::GivenUp { server, error });
    }

    /// The session is over.
    fn fail(&mut self, error: Error) {
        if matches!(self.phase, Phase::Over(_)) {
            return;
        }
        self.calls.abandon_all(&mut self.outputs);
        self.tell_all_waiting();
        self.fail_all(&error);
        self.hints = Hints::default();
        self.phase = Phase::Over(error.clone());
        self.event(Event::Failed(error));
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }
}

/// The same scheme with the same parameters in another version of the table.
fn plan_in(plan: &SchemePlan, table: &TableIdentity) -> Result<SchemePlan> {
    #[cfg(test)]
    if let Some(plan) = tests::toy_plan_in(plan, table) {
        return Ok(plan);
    }
    SchemePlan::from_announcement(plan.scheme, table, &plan.parameters)
}

fn part_key(chosen: &ChosenTable, kind: PartKind, part: PartDescription) -> PartKey {
    PartKey { table: chosen.identity, kind, len: part.len, digest: part.digest }
}

/// Bytes for a message that may hold a secret, shared by its copies and erased when the last of them is dropped. (What is made of them on their way to the network is beyond that.)
fn erased_at_last(bytes: Zeroizing<Vec<u8>>) -> Bytes {
    Bytes::from_owner(bytes)
}
