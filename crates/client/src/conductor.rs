//! The client without a runtime: a [`Session`], what it keeps, and what it reports.
//!
//! A [`Conductor`] does everything that a session asks for and that needs no socket, thread or
//! person. It leaves the rest to a *shell*, as [`Errand`]s. The shell of a native client is
//! `driver.rs`; a browser or a simulator has another. A shell hands in what arrived and the time,
//! and polls.
//!
//! ```text
//!         lookup, finish                                   Reply, Finished, Ready, Tell
//! user   ────────────────►                                ──────────────────────────────►  user
//!         handle_delivery    Conductor = Session + State   Send, Abandon
//! server ────────────────►         + HintStore + Desk     ──────────────────────────────►  server
//!         handle_timeout                                   Wait, wake_at
//! clock  ────────────────►                                ──────────────────────────────►  clock
//! ```
//!
//! # Waiting
//!
//! A session computes in slots of a public length (the module `timetable` in `session` says why).
//! Nothing leaves before a slot ends. Other work that began during a slot would begin at a moment
//! that shows how long the slot's work took. So [`Errand::Wait`] asks the polling thread to do
//! nothing at all until a moment, to the microsecond if it can.
//!
//! # Journal records go together
//!
//! The session reserves for one lookup after the other, each in a slot of its own, while there are
//! lookups that may be asked for. The conductor gathers their records, makes all of them durable at
//! once ([`HintStore::reserve`](crate::state::HintStore::reserve)), and hands the receipts back.
//! Then the queries leave together. So lookups that are handed in together cost one sync in all,
//! not one each.
//!
//! Answers are settled without a sync: the next lookup's sync makes that durable too, or one of its
//! own after a pause of 20 ms, or a call that waits for everything to be kept.
//!
//! That shows a server nothing new. The number of gathered records follows from the lookups handed
//! in so far, the lookups that may be under way, and the hints that are left. Each slot takes the
//! same time whatever was looked up in it. How long the sync takes follows from the number and
//! length of the records, which the parameters fix. Queries leave after the last slot and the sync.
//! Between the first record and the receipts the conductor does nothing else with stored state, and
//! reads no answer: see [`Session::poll`].
//!
//! # Time
//!
//! There is one clock: the session's ([`SessionOptions::clock`]). All times count from the same
//! start as those that the shell tells. If the shell tells a time late, the clock's time counts
//! ([`Session::time`]).

mod desk;
mod hints;
pub(crate) mod keeper;
mod report;
mod requests;
pub(crate) mod shelf;

pub use crate::session::{Errand, FinishId, OpenTable, Progress};
pub use desk::{Desk, SameThread};
pub use report::{Stats, Traffic};
pub use shelf::{IdleShelf, Moment};

use crate::exchange::{Delivery, ResponseLimits, request_len};
use crate::session::{
    ExchangeId, LookupId, Output, Patch, Persist, Request, Session, SessionOptions, Target,
};
use crate::state::{HintsKey, Opened, PartKey, PartState, State};
use keeper::{Keeper, Reserved};
use privet_core::quantities::seconds;
use privet_core::{Error, Reason, Result};
use privet_wire::PartKind;
use report::Phase;
use requests::Requests;
use std::collections::{HashSet, VecDeque};
use std::mem;
use std::time::Duration;

/// How often to ask whether another process has completed a download.
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// How long what was settled may wait for the next lookup, whose sync makes it durable as well. If
/// the process is killed before, the next one sends those queries again.
const FLUSH_PAUSE: Duration = Duration::from_millis(20);

/// What a conductor is to do, and how long it waits.
pub struct ConductorOptions {
    /// What its session is to do.
    pub session: SessionOptions,
    /// The servers' addresses, in their order.
    pub addresses: Vec<String>,
    /// How long another process's download of the same part may stand still before this one gives
    /// up waiting for it.
    pub busy_patience: Duration,
    /// The time by which everything must be over, or it fails. `None`: never.
    pub max_time: Option<Duration>,
}

/// Something that another process holds.
struct Busy {
    done: u64,
    /// When it last grew.
    grew: Duration,
    ask_again: Duration,
}

enum Awaited {
    /// A part that another process is downloading.
    Part(PartKey),
    /// A part that another process is making out of an earlier one.
    Patch(Box<Patch>),
    /// Single-use hints, which only one process may hold at a time.
    Hints { key: HintsKey, to_follow: bool },
}

/// A client of one table, but for its runtime. See the [module](self).
pub struct Conductor<D> {
    pub(crate) session: Session,
    keeper: Keeper<D>,
    /// Journal records that are made durable together.
    gathered: Vec<Reserved>,
    /// When to make durable what was settled, if no lookup comes before.
    flush_at: Option<Duration>,
    busy: Option<(Awaited, Busy)>,
    busy_patience: Duration,
    /// `None` also once that time is over.
    max_time: Option<Duration>,
    /// The time that the shell told last.
    told: Duration,
    /// When the session began the work for which it now waits for the end of a slot.
    working_since: Option<Duration>,
    requests: Requests,
    /// Whether the shell was told if lookups can begin.
    is_ready: bool,
    /// Calls that wait until nothing is under way.
    finishing: Vec<FinishId>,
    finishes: u64,
    stats: Stats,
    errands: VecDeque<Errand>,
}

impl<D: Desk> Conductor<D> {
    /// A client that has yet to begin: [`poll`](Self::poll) it. It keeps its state in `state`, and
    /// has hints prepared at `desk`. `now` is the time since a start that the shell chooses, here
    /// and everywhere.
    ///
    /// # Errors
    /// As [`Session::new`]; [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is not one
    /// address for each server.
    pub fn new(
        options: ConductorOptions,
        state: Box<dyn State>,
        desk: D,
        now: Duration,
    ) -> Result<Self> {
        let ConductorOptions { session, addresses, busy_patience, max_time } = options;
        if addresses.len() != session.servers {
            return Err(Error::api_misuse("a client needs an address for each of its servers"));
        }
        let keeper = Keeper::new(state, addresses, desk, session.kernels);
        let conductor = Self::of(Session::new(session, now)?, keeper, busy_patience);
        Ok(Self { max_time, told: now, ..conductor })
    }

    /// A client that has yet to begin `session`.
    pub(crate) fn of(session: Session, keeper: Keeper<D>, busy_patience: Duration) -> Self {
        Self {
            session,
            keeper,
            gathered: Vec::new(),
            flush_at: None,
            busy: None,
            busy_patience,
            max_time: None,
            told: Duration::ZERO,
            working_since: None,
            requests: Requests::default(),
            is_ready: false,
            finishing: Vec::new(),
            finishes: 0,
            stats: Stats::default(),
            errands: VecDeque::new(),
        }
    }

    /// Asks for a value. The outcome is an [`Errand::Reply`] with the returned id; every lookup
    /// gets exactly one, unless it is [withdrawn](Self::withdraw).
    pub fn lookup(&mut self, target: Target) -> LookupId {
        self.session.lookup(target)
    }

    /// Moves on to the newest version that the servers have: [`Session::refresh`]. The outcome is
    /// an [`Errand::Refreshed`] with the returned id, or an [`Errand::Reply`] with the error.
    pub fn refresh(&mut self) -> LookupId {
        self.session.refresh()
    }

    /// As [`Session::withdraw`].
    pub fn withdraw(&mut self, unwanted: &HashSet<LookupId>) -> Vec<LookupId> {
        self.session.withdraw(unwanted)
    }

    /// Asks to be told, by [`Errand::Finished`], when nothing is under way any more and everything
    /// is kept.
    pub fn finish(&mut self) -> FinishId {
        let ticket = FinishId(self.finishes);
        self.finishes += 1;
        self.finishing.push(ticket);
        ticket
    }

    /// What was done so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Where hints are prepared.
    pub fn desk(&mut self) -> &mut D {
        &mut self.keeper.desk
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), if nothing else happens before.
    pub fn wake_at(&self) -> Option<Duration> {
        let busy = self.busy.as_ref().map(|(_, busy)| busy.ask_again);
        // During a slot nothing is written.
        let flush_at = self.flush_at.filter(|_| self.session.busy_until().is_none());
        let times = [self.session.next_timeout(), busy, flush_at, self.max_time];
        times.into_iter().flatten().min()
    }

    /// Tells the time.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.told = now;
        self.session.handle_timeout(now);
        let now = self.now();
        if let Some(limit) = self.max_time.take_if(|limit| *limit <= now) {
            self.busy = None;
            let error = Error::unavailable(format!(
                "not done within the {} that were allowed; allow more",
                seconds(limit)
            ));
            self.session.stop(error.because(Reason::TimeIsUp));
        }
        if let Some((wanted, busy)) = self.busy.take_if(|(_, busy)| busy.ask_again <= now) {
            match wanted {
                Awaited::Part(part) => self.open(part, Some(busy)),
                Awaited::Patch(patch) => self.patch(patch, Some(busy)),
                Awaited::Hints { key, to_follow } => self.open_hints(key, to_follow, Some(busy)),
            }
        }
    }

    /// The longest message that may come in return to `request`, in bytes. Longer ones are to be
    /// refused before they are received.
    pub fn longest_response(&self, request: &Request) -> usize {
        self.requests.limits.for_response_to(request)
    }

    /// Takes the outcome of an exchange. Ignores late and repeated deliveries.
    pub fn handle_delivery(&mut self, exchange: ExchangeId, delivery: Delivery, now: Duration) {
        self.told = now;
        let Some((phase, deliveries)) = self.requests.delivered(exchange, delivery) else { return };
        for (exchange, delivery) in deliveries {
            match delivery {
                Ok((response, len)) => {
                    self.stats.traffic(phase).down += len;
                    self.session.handle_message(exchange, response, now);
                }
                Err(error) => self.session.handle_failure(exchange, error, now),
            }
        }
    }

    /// What to do next; `None`: nothing until something is handed in, the desk has done something,
    /// or [`wake_at`](Self::wake_at) has come.
    pub fn poll(&mut self, now: Duration) -> Option<Errand> {
        self.told = now;
        if let Some(errand) = self.next_errand() {
            return Some(errand);
        }
        let mut before = self.working_since.take().unwrap_or_else(|| self.now());
        loop {
            if let Some(output) = self.session.poll(now) {
                self.count_work(&output, self.now().saturating_sub(before));
                self.carry_out(output);
            } else if let Some(until) = self.session.busy_until() {
                self.working_since = Some(before);
                return Some(Errand::Wait { until });
            } else if !self.commit() && !self.take_prepared() {
                self.requests.send_all(&mut self.errands);
                self.come_to_rest();
                return self.errands.pop_front();
            }
            if let Some(errand) = self.next_errand() {
                return Some(errand);
            }
            before = self.now();
        }
    }

    /// The next errand that is there. Gathered queries leave once the session has given out all
    /// that it has, and before it computes anything but further queries of the same lookup.
    fn next_errand(&mut self) -> Option<Errand> {
        if self.errands.is_empty() && !self.session.has_output() && !self.session.asks_more() {
            self.requests.send_all(&mut self.errands);
        }
        self.errands.pop_front()
    }

    /// Ends the client. The next process sends again whatever cannot be made durable now.
    pub fn close(mut self) {
        let _ = self.keeper.flush();
    }

    fn now(&self) -> Duration {
        self.session.time(self.told)
    }

    /// Adds the time of the computation, and of the wait for the end of its slot, to the statistics
    /// of the output's kind.
    fn count_work(&mut self, output: &Output, took: Duration) {
        match output {
            Output::Errand(Errand::Send { request: Request::Answer(_), .. })
            | Output::Persist(Persist::Journal { .. }) => {
                self.stats.query_time += took;
            }
            Output::Errand(Errand::Reply { .. }) => {
                self.stats.recover_time += took;
                self.stats.lookups += 1;
            }
            _ => {}
        }
    }

    fn carry_out(&mut self, output: Output) {
        let output = match output {
            Output::Persist(Persist::Journal { fetch, id, record }) => {
                return self.gathered.push(Reserved { fetch, id, record });
            }
            output => output,
        };
        // State must be kept in the order in which the session asked for it.
        self.commit();
        match output {
            Output::Errand(Errand::Send { exchange, server, request, patience }) => {
                let phase = Phase::of(&request, self.is_ready);
                self.stats.traffic(phase).up += request_len(&request);
                let out = &mut self.errands;
                self.requests.send(exchange, server, request, patience, phase, out);
            }
            Output::Errand(Errand::Abandon(exchange)) => {
                self.requests.abandon(exchange, &mut self.errands);
            }
            Output::Errand(Errand::Tell(progress)) => self.pass_on(progress),
            Output::Errand(errand) => self.errands.push_back(errand),
            Output::Open(part) => self.open(part, None),
            Output::Patch(patch) => self.patch(patch, None),
            Output::OpenHints { key, to_follow } => match self.keeper.put_hints_back() {
                Ok(()) => self.open_hints(key, to_follow, None),
                Err(error) => self.session.handle_storage_failure(error),
            },
            Output::Prepare(step) => self.prepare(step),
            Output::Persist(persist) => {
                let kept = self.keeper.persist(persist, &mut self.session, self.told);
                if let Err(error) = kept {
                    self.session.handle_storage_failure(error);
                }
            }
            Output::Failed(error) => self.tell_whether_ready(Err(error)),
        }
    }

    fn open(&mut self, part: PartKey, busy: Option<Busy>) {
        let opened = self.keeper.open(&part);
        self.opened(opened, part.clone(), busy, || Awaited::Part(part));
    }

    fn patch(&mut self, patch: Box<Patch>, busy: Option<Busy>) {
        let opened = self.keeper.patch(&patch);
        self.opened(opened, patch.to.clone(), busy, || Awaited::Patch(patch));
    }

    /// Tells the session the outcome of opening `part`, or asks again in a while for what is
    /// `wanted`.
    fn opened(
        &mut self,
        opened: Result<Opened>,
        part: PartKey,
        busy: Option<Busy>,
        wanted: impl FnOnce() -> Awaited,
    ) {
        match opened {
            Ok(Opened::Have { part: state, notice }) => {
                self.notice(notice);
                self.note_origin(&part, &state);
                self.session.handle_part(state, self.told);
            }
            Ok(Opened::Busy { done }) => {
                let (kind, total) = (part.kind, part.len);
                match self.ask_again(done, busy) {
                    Some(busy) => {
                        let done = done.min(total);
                        self.tell(Progress::Waiting { part: kind, done, total });
                        self.busy = Some((wanted(), busy));
                    }
                    None => {
                        let error = Error::unavailable(format!(
                            "another process has been holding the download of the {kind} without progress for {} s; end it, wait and try again, or use a state directory of your own",
                            self.busy_patience.as_secs()
                        ));
                        let error = error.because(Reason::UsedByAnotherProcess);
                        self.session.handle_storage_failure(error);
                    }
                }
            }
            Err(error) => self.session.handle_storage_failure(error),
        }
    }

    /// When to ask again for something that another process holds; `None` if that process makes no
    /// progress.
    fn ask_again(&self, done: u64, busy: Option<Busy>) -> Option<Busy> {
        let now = self.now();
        let grew = match &busy {
            Some(busy) if busy.done == done => busy.grew,
            _ => now,
        };
        let ask_again = now + BUSY_PAUSE;
        (now.saturating_sub(grew) < self.busy_patience).then_some(Busy { done, grew, ask_again })
    }

    fn note_origin(&mut self, part: &PartKey, state: &PartState) {
        if matches!(part.kind, PartKind::Hint | PartKind::Table) {
            let stored = matches!(state, PartState::Complete(_));
            self.stats.hint_was_stored.get_or_insert(stored);
        }
    }

    fn tell(&mut self, progress: Progress) {
        self.errands.push_back(Errand::Tell(progress));
    }

    fn notice(&mut self, notice: Option<String>) {
        if let Some(notice) = notice {
            self.tell(Progress::Notice(notice));
        }
    }

    fn pass_on(&mut self, progress: Progress) {
        if let Progress::Described(table) = &progress {
            self.requests.limits = ResponseLimits::of(&table.scheme.plan);
        }
        let begins = matches!(progress, Progress::Ready);
        self.tell(progress);
        if begins {
            self.stats.ready_after = self.now();
            self.note_hints_origin(true);
            if let Some((table, records)) = self.session.table().zip(self.session.records()) {
                let (table, is_by_key) = (table.clone(), records.is_by_key());
                let values = records.values().cloned();
                self.tell_whether_ready(Ok(Box::new(OpenTable { table, is_by_key, values })));
            }
        }
    }

    /// Tells the shell, once, whether lookups can begin.
    fn tell_whether_ready(&mut self, outcome: Result<Box<OpenTable>>) {
        if !mem::replace(&mut self.is_ready, true) {
            self.errands.push_back(Errand::Ready(outcome));
        }
    }
}
