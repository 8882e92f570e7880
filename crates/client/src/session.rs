//! The client session: everything a client does, without I/O.
//!
//! A [`Session`] is a state machine. A *driver* hands it what arrived and the time, and does what
//! [`Session::poll`] says. Sockets and files, a browser, or a simulator can drive the same machine.
//! The session also gets a [`Clock`], to learn how long its own work took.
//!
//! ```text
//!            handle_message, handle_failure            Send, Abandon
//! servers  ────────────────────────────────►         ──────────────────────►  servers
//!            handle_part, handle_hints                 Open, OpenHints
//!            handle_persisted                Session   Persist
//! storage  ────────────────────────────────►         ──────────────────────►  storage
//!            handle_preparation                        Prepare
//! worker   ────────────────────────────────►         ──────────────────────►  worker
//!            lookup, handle_timeout                    Reply, Tell
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
//! Layout and hint come from storage, and whatever is missing there comes from the server. (By some
//! schemes, queries leave while the hint is still on its way: the module `late` says when.) So does
//! the whole table, for a scheme whose client keeps it: its lookups read from that. Single-use
//! hints come from storage, with every change that the journal holds. If there are none, or they
//! are used up, the session has new ones prepared first.
//!
//! # Several servers
//!
//! A scheme of two servers hides what is looked up from each of them, as long as the two do not put
//! together what they saw. All must describe the same table, in the same version, with the same
//! contents and layout, and serve it by the same scheme with the same parameters. Otherwise the
//! session asks nothing. It fetches parts from the first server, and checks them against the
//! digests that all servers announced. If the table is streamed, each server sends a share, or each
//! sends all of it: the module `compared` says why. A lookup's queries leave at once, one to each
//! server, and take their course independently: the outcome of one query neither delays nor changes
//! another. The lookup is over when all its queries are.
//!
//! # Single-use hints
//!
//! A lookup by a scheme with such hints goes through storage before it leaves. It *reserves* a
//! hint, has the journal record made durable ([`Persist::Journal`]), and *sends* only with the
//! receipt for that very record. The answer *settles* the reservation ([`Persist::Completion`]). If
//! an earlier process reserved a query and did not settle it, the session sends it again, byte for
//! byte, before anything else. If a reservation fails in this session, the next session sends it
//! again, unless hints never run out. While one generation of hints is in use, the next is prepared
//! beside it: the module `preparation` says when.
//!
//! Hints are made from the table, streamed in its natural order or in an order of the scheme's own,
//! or from one server's replies to requests. Such a request holds a secret that no other server may
//! learn. It goes to the server that the scheme names. If that server fails, the request goes to
//! the same server again, and to no other.
//!
//! In some schemes hints never run out, and the next generation is made of the one in use and
//! nothing else: the module `endless` says how. Some schemes verify answers. Then queries go one
//! after the other, and the first answer that fails verification ends the hints, for this session
//! and all later ones: the module `verified` says how.
//!
//! Hints follow the table from version to version where the scheme allows it
//! ([`follows`](privet_schemes::contract::HintedClient::follows)). So do downloaded hints and
//! tables. The modules `following` and `versions` say how a session goes from one version to the
//! next.
//!
//! # Keys
//!
//! A table's key map says how many records a key may lie in. A lookup fetches all of them, each
//! with a query (and a hint) of its own. The outcome is known only when all are there: the module
//! `candidates` says why.
//!
//! # Time
//!
//! The moment at which something is sent must not depend on the index either. Work that depends on
//! an index is done in slots of a public length, and its result leaves at the slot's end: the
//! module `timetable` says how.
//!
//! # Invariants
//!
//! What a server sees of a client must not depend on what the client looks for. The following holds
//! whatever servers do:
//!
//! 1. **Bytes out depend only on public parameters, the history's length and coins.** A lookup is
//!    one query to each server for each record that a key of the table may lie in. The parameters
//!    fix the queries' lengths, whether the key is there or not. A scheme whose client holds the
//!    table sends no query, whatever is looked up. For the next generation of single-use hints, the
//!    number of queries sent so far decides which stretch of the table is streamed when, or which
//!    hints are asked for. Which queries this process or a later one sends again follows from which
//!    were answered.
//! 2. **Traffic after a failed recover equals traffic after a success.** An answer ends its query
//!    whatever it holds. Nothing is asked again because of what an answer did or did not hold, and
//!    the time that reading took delays nothing. By a scheme that verifies answers, no traffic
//!    follows an answer that fails verification. The client verifies all of each answer, so the
//!    outcome follows from what the server sent and not from what was looked up. (A message of a
//!    wrong length is not an answer. Its query is left for the next session to repeat, or, by a
//!    scheme whose hints never run out, for this session with the next lookup.)
//! 3. **A repeated or locally known index still sends a well-formed query.** There is no cache and
//!    no way around the network. A key whose value the client already holds (in the layout's public
//!    stash) costs the same queries as any other, and so does each of several equal keys. Only a
//!    scheme whose client holds the whole table needs no queries, and then no lookup of its session
//!    sends anything.
//! 4. **A retry re-sends identical bytes.** A query is fixed once, before it is first sent. A later
//!    process reads the query of a single-use hint back from the journal. No hint serves two
//!    different queries.
//! 5. **Every message carries table id, epoch and parameter digest, and all servers must agree** on
//!    these and on everything else they say of the table. After any failure a server must describe
//!    itself again before it gets another query. (Streaming and asking in the background are
//!    exempt: a digest checks what they bring or, for a reply to this client alone, its length
//!    does; and no query may wait for them.)
//!
//! # Failures
//!
//! If a server cannot be reached or is busy, the session tries it again, with growing pauses, for
//! as long as [`Patience`] says. If a server restarts and describes the same as before, no lookup
//! is lost. If it describes something else, the session ends. An answer that fails verification
//! also ends the session. Any other failure of a lookup concerns that lookup alone. If a journal
//! record may not be durable, this session sends no more queries; those on their way take their
//! course.

mod agreement;
mod asking;
mod boundaries;
mod calls;
mod candidates;
mod choose;
mod compared;
mod endless;
mod ends;
mod epochs;
mod following;
mod hints;
mod interface;
mod late;
mod loading;
mod lookups;
mod open;
mod opening;
mod options;
mod pins;
pub mod planted;
mod preparation;
mod query;
mod reading;
mod records;
mod resends;
mod served;
mod shared;
mod streaming;
mod succession;
#[cfg(test)]
pub(crate) mod tests;
mod timetable;
mod value;
mod verified;
mod versions;

pub use interface::{
    ChosenTable, Errand, ExchangeId, FetchId, FinishId, LookupId, OpenTable, Output, Patch,
    Persist, PreparationEvent, Prepare, Progress, Request, Response, Target,
};
pub use options::{Clock, KnownPin, Patience, SessionOptions, Shelf, TableLeft};
pub use query::Query;
pub(crate) use query::erased_at_last;
pub use value::Value;

use crate::preparation::Preparer;
use crate::state::{PartState, PreparationStore, SavedHints};
use asking::AskOutcome;
use calls::{Calls, GivenUp, Purpose};
use lookups::Lookups;
use open::Open;
use privet_core::{Error, Result};
use privet_schemes::reservation::Receipt;
use privet_wire::ServerDescription;
use records::RecordReader;
use shared::{Fault, Parts, Shared};
use std::collections::{HashSet, VecDeque};
use std::time::Duration;
use timetable::Timetable;

/// A client's side of everything it does with one table. See the [module](self).
pub struct Session {
    shared: Shared,
    phase: Phase,
}

enum Phase {
    /// Waits for every server's description.
    Describing(Vec<Option<ServerDescription>>),
    /// Table and scheme are chosen.
    Open(Box<Open>),
    /// Over; why; and the table that was chosen last.
    Over(Error, Option<Box<ChosenTable>>),
}

impl Session {
    /// A session that has yet to begin: [`poll`](Self::poll) it. `now` is the time since a start
    /// that the driver chooses, here and everywhere.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the system gives no entropy,
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is no server or no lookup may
    /// be under way.
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
        let mut shared = Shared {
            parts,
            timetable,
            calls: Calls::new(options.servers, options.patience),
            lookups: Lookups::default(),
            opened_before: false,
            outputs: VecDeque::new(),
            options,
        };
        shared.describe_all(now);
        let phase = Phase::Describing(vec![None; shared.options.servers]);
        Ok(Self { shared, phase })
    }

    /// The table and scheme, once they are chosen.
    pub fn table(&self) -> Option<&ChosenTable> {
        match &self.phase {
            Phase::Describing(_) => None,
            Phase::Open(open) => Some(&open.chosen),
            Phase::Over(_, chosen) => chosen.as_deref(),
        }
    }

    /// How records are read, once the layout is there.
    pub(crate) fn records(&self) -> Option<&RecordReader> {
        match &self.phase {
            Phase::Open(open) => open.records.as_ref(),
            _ => None,
        }
    }

    /// The current time: `told`, or the time of the session's own [`Clock`], whichever is later.
    pub fn time(&self, told: Duration) -> Duration {
        self.shared.timetable.shown(told)
    }

    /// What prepares hints for the chosen table, and keeps them in `store`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if no table is chosen.
    pub fn preparer(&self, store: Box<dyn PreparationStore>) -> Result<Preparer> {
        let table = self.table().ok_or_else(|| {
            Error::api_misuse("hints are prepared for a table that has been chosen")
        })?;
        let Shared { options, parts, .. } = &self.shared;
        Ok(Preparer::with_start(table, store, options.kernels, parts.start_preparation))
    }

    /// Asks for a value. The outcome is an [`Errand::Reply`] with the returned id; every lookup
    /// gets exactly one.
    pub fn lookup(&mut self, target: Target) -> LookupId {
        match &mut self.phase {
            Phase::Describing(_) => {}
            Phase::Open(open) => {
                if let Some(lookup) = open.known_from_the_stash(&mut self.shared, &target) {
                    return lookup;
                }
                open.hints.unanswered.lookup_handed_in();
            }
            Phase::Over(error, _) => {
                let (lookup, error) = (self.shared.lookups.add_nothing(), error.clone());
                self.shared.reply(lookup, Err(error));
                return lookup;
            }
        }
        self.shared.lookups.add(target)
    }

    /// Asks the servers which versions they serve, and moves on to the newest one, if the session
    /// may follow the table there. Lookups that are handed in later wait for that. The outcome is
    /// [`Errand::Refreshed`] with the returned id, or an [`Errand::Reply`] with the error.
    pub fn refresh(&mut self) -> LookupId {
        if let Phase::Over(error, _) = &self.phase {
            let (lookup, error) = (self.shared.lookups.add_nothing(), error.clone());
            self.shared.reply(lookup, Err(error));
            return lookup;
        }
        // A description on its way may be older than what the caller knows of.
        self.shared.lookups.add_refresh(self.shared.calls.next_exchange())
    }

    /// The user wants none of `unwanted` any more. Those that wait for their turn never begin:
    /// returns them, and no outcome of them comes. Those that have begun take their course.
    ///
    /// A server sees that fewer lookups come. So the caller may withdraw them for a reason that has
    /// nothing to do with what was looked up: a person ended the program, or its time is up.
    pub fn withdraw(&mut self, unwanted: &HashSet<LookupId>) -> Vec<LookupId> {
        self.shared.lookups.withdraw(unwanted)
    }

    /// What to do next; `None`: nothing until something is handed in or
    /// [`next_timeout`](Self::next_timeout) has come. Output for servers comes before work that
    /// concerns only this side.
    ///
    /// Each call computes one query or reads one answer at most. The result leaves at
    /// [`busy_until`](Self::busy_until).
    ///
    /// After a journal record ([`Persist::Journal`]) and before the driver's reply to it, the
    /// session may reserve for more lookups, each in a slot of its own, and reads nothing. So a
    /// driver may gather records until there are no more, and make them durable together. How many
    /// there are follows from the number of lookups that were handed in. A driver may also reply to
    /// each record at once; the session behaves the same.
    pub fn poll(&mut self, now: Duration) -> Option<Output> {
        if !self.shared.timetable.lets_out(now) {
            return None;
        }
        let now = self.shared.timetable.at(now);
        loop {
            // The last step has begun a slot, and nothing leaves before its end.
            if self.shared.timetable.ends().is_some() {
                return None;
            }
            if let Some(output) = self.shared.outputs.pop_front() {
                return Some(output);
            }
            let did_something = self.ask_next(now)
                // Queries that wait for receipts must not also wait for reading.
                || (!self.shared.lookups.await_receipts() && self.read_next());
            // A step that did nothing may still have given output.
            if !did_something && self.shared.outputs.is_empty() {
                return None;
            }
        }
    }

    /// Whether nothing is under way that is worth waiting for: no lookup, no query of an earlier
    /// session, no due piece of the next generation of hints (unless the server cannot give it
    /// now). Ask only after [`poll`](Self::poll) has returned `None`.
    pub fn is_at_rest(&self) -> bool {
        let Shared { outputs, timetable, lookups, calls, opened_before, .. } = &self.shared;
        let everything_left = outputs.is_empty() && timetable.ends().is_none();
        everything_left
            && match &self.phase {
                // No server could be reached, and no lookup waits for one.
                Phase::Describing(_) => {
                    *opened_before && lookups.is_empty() && !calls.is_open(Purpose::Describe)
                }
                Phase::Open(open) => open.is_at_rest(&self.shared),
                Phase::Over(..) => true,
            }
    }

    /// Whether no lookup waits for anything. Ask only after [`poll`](Self::poll) has returned
    /// `None`.
    pub fn has_no_lookups(&self) -> bool {
        self.shared.lookups.is_empty() && self.shared.timetable.ends().is_none()
    }

    /// Whether [`poll`](Self::poll) has something to return that is there already, so that it
    /// computes nothing.
    pub fn has_output(&self) -> bool {
        !self.shared.outputs.is_empty() && self.shared.timetable.ends().is_none()
    }

    /// Whether further queries of the lookup that was asked for last are to come, or are being
    /// made. How many a lookup has is the same for all of a table. So a driver may hold the earlier
    /// ones back until then, and send all of them in one message.
    ///
    /// Not with single-use hints: there a further query may have to wait until answers are read,
    /// and no query may wait for that. Those that can go together leave after one sync.
    pub fn asks_more(&self) -> bool {
        let Shared { lookups, timetable, .. } = &self.shared;
        !lookups.have_reservations() && (lookups.is_amid_one() || timetable.ends().is_some())
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), if nothing else happens before.
    pub fn next_timeout(&self) -> Option<Duration> {
        self.shared.timetable.ends().or_else(|| self.shared.calls.next_timeout())
    }

    /// Until when nothing leaves the session, because it has computed something whose duration must
    /// stay hidden. The module `timetable` says why. A driver should do nothing at all until then:
    /// other work would begin at a moment that shows how long the computation took.
    pub fn busy_until(&self) -> Option<Duration> {
        self.shared.timetable.ends()
    }

    /// Tells the time.
    pub fn handle_timeout(&mut self, now: Duration) {
        let now = self.shared.timetable.at(now);
        for (exchange, error) in self.shared.calls.due(now, &mut self.shared.outputs) {
            self.handle_failure(exchange, error, now);
        }
    }

    /// A response, or a piece of one, came. The session ignores late and repeated ones.
    pub fn handle_message(&mut self, exchange: ExchangeId, response: Response, now: Duration) {
        let now = self.shared.timetable.at(now);
        let Some(call) = self.shared.calls.waiting_for(exchange) else { return };
        let heard = match (call.purpose, response, &mut self.phase) {
            (Purpose::Describe, Response::Described(description), _) => {
                return self.described(exchange, description, now);
            }
            (Purpose::Describe, ..) => Err(self.shared.does_not_belong(call.server)),
            (_, response, Phase::Open(open)) => {
                open.heard(&mut self.shared, exchange, response, now)
            }
            // The session asks nothing else before a table is chosen, or after its end.
            _ => Ok(()),
        };
        match heard {
            Ok(()) => {}
            Err(Fault::Exchange(error)) => self.handle_failure(exchange, error, now),
            Err(Fault::Session(error)) => self.fail(error),
        }
    }

    /// An exchange failed: the server could not be reached, or refused, or sent what cannot be
    /// valid.
    pub fn handle_failure(&mut self, exchange: ExchangeId, error: Error, now: Duration) {
        let now = self.shared.timetable.at(now);
        if let Phase::Open(open) = &mut self.phase
            && open.everything_arrived(&self.shared, exchange)
        {
            return self.in_open(|open, shared| open.finish_fetch(shared, exchange, now));
        }
        let Shared { calls, parts, outputs, .. } = &mut self.shared;
        let ended = calls.failed(exchange, error, now, &mut parts.rng, outputs);
        // Tell this before the failure that it causes, which may end the session.
        if let Some(GivenUp { server, error }) = calls.take_given_up() {
            self.shared.server_given_up(server, &error);
        }
        for ended in ended {
            self.call_ended(ended);
        }
        // A background fetch may have been given up; keep what it brought.
        if let Phase::Open(open) = &mut self.phase {
            open.prepare(&mut self.shared, now);
        }
    }

    /// The stored state of the part that was to be opened or completed.
    pub fn handle_part(&mut self, state: PartState, now: Duration) {
        let now = self.shared.timetable.at(now);
        self.in_open(|open, shared| open.part_is(shared, state, now));
    }

    /// The stored state of the single-use hints that were to be opened or switched.
    pub fn handle_hints(&mut self, saved: SavedHints, now: Duration) {
        let now = self.shared.timetable.at(now);
        self.in_open(|open, shared| open.hints_are(shared, saved, now));
    }

    /// A step by which the hints follow the table is durable.
    pub fn handle_hints_followed(&mut self, now: Duration) {
        let now = self.shared.timetable.at(now);
        self.in_open(|open, shared| open.hints_followed(shared, now));
    }

    /// The journal record of a fetch is durable: `receipt` proves it.
    pub fn handle_persisted(&mut self, fetch: FetchId, receipt: Receipt, now: Duration) {
        let now = self.shared.timetable.at(now);
        if let Phase::Open(open) = &mut self.phase {
            open.journal_record_is_durable(&mut self.shared, fetch, receipt, now);
        }
    }

    /// The journal record of a fetch may not be durable. The session will not send its query, nor
    /// any other by a scheme with single-use hints. Another session must open the stored hints
    /// again first.
    pub fn handle_not_persisted(&mut self, fetch: FetchId, error: Error) {
        if let Phase::Open(open) = &mut self.phase {
            open.journal_record_failed(&mut self.shared, fetch, error);
        }
    }

    /// The end of the hints is durable: report it now, and end the session.
    pub fn handle_hints_ended(&mut self) {
        self.in_open(|open, shared| open.tell_the_end(shared, None));
    }

    /// The outcome of a step of the preparation.
    pub fn handle_preparation(&mut self, event: PreparationEvent, now: Duration) {
        let now = self.shared.timetable.at(now);
        self.in_open(|open, shared| {
            open.preparation_went_on(shared, event, now)?;
            open.prepare(shared, now);
            Ok(())
        });
    }
}

/// The steps of `poll`.
impl Session {
    /// Asks for the next waiting lookup, if its turn has come, or reads it from the kept table.
    /// Returns whether anything happened.
    fn ask_next(&mut self, now: Duration) -> bool {
        match &mut self.phase {
            Phase::Describing(_) => self.describes_again(now),
            Phase::Open(open) => match open.ask_next(&mut self.shared, now) {
                AskOutcome::Nothing => false,
                AskOutcome::Something => true,
                AskOutcome::ToOpenAgain => {
                    self.open_again(now);
                    true
                }
            },
            Phase::Over(..) => false,
        }
    }

    /// Reads one record from its answers, or reports one that was read. Returns whether there was
    /// one.
    fn read_next(&mut self) -> bool {
        let Phase::Open(open) = &mut self.phase else { return false };
        match open.read_next(&mut self.shared) {
            Ok(did_something) => did_something,
            Err(error) => {
                self.fail(error);
                true
            }
        }
    }
}
