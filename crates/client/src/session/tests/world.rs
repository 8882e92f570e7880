//! A network in memory: a clock that jumps to the next event, and hooks to lose, delay, repeat and
//! falsify messages to and from [`peer`](super::peer)s.

pub(super) use super::peer::{Peer, SignedEpoch, described, pair};
pub(super) use privet_core::Blame;
pub(super) use privet_schemes::contract::Role;
pub(super) use privet_wire::{AnswerResponse, FetchChunk, PrepareResponse};

use crate::conductor::keeper::Keeper;
use crate::conductor::{Desk, SameThread};
use crate::exchange::request_len;
use crate::session::timetable::Measuring;
use crate::session::*;
use crate::state::{HintsKey, HintsOpened, MemoryState, Opened, PartState, State};
use privet_kernels::Kernels;
use privet_schemes::reservation::{
    Journal, JournalEntry, JournalReader, JournalRecord, StoredRecord,
};
use privet_wire::prost::Message;
use privet_wire::{PartKind, proto};
use std::collections::{BTreeMap, HashMap, HashSet};
use zeroize::Zeroizing;

/// What the network does to one exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// Responses come, each a millisecond after the one before.
    Arrives,
    /// The same, beginning after so many milliseconds.
    Late(u64),
    /// Responses come, each so many milliseconds after the one before.
    Drips(u64),
    /// Nothing ever comes.
    Lost,
    /// Only the first so many responses come.
    Cut(usize),
    /// Every response comes twice.
    Twice,
    /// The connection breaks.
    Breaks,
    /// The server is busy.
    TurnedAway,
}

/// Decides what happens to a message, given its number and its contents.
type Decide = Box<dyn FnMut(usize, &Request) -> Fate>;

pub(super) type Falsify = Box<dyn FnMut(&Request, Vec<Result<Response>>) -> Vec<Result<Response>>>;

pub(super) struct World {
    pub(super) session: Session,
    pub(super) peers: Vec<Peer>,
    pub(super) keeper: Keeper<SameThread>,
    pub(super) now: Duration,
    /// Everything that was sent, in order.
    pub(super) sent: Vec<(usize, Request)>,
    /// Journal records, in order, with how much had been sent before each.
    pub(super) journal: Vec<(usize, Vec<Vec<u8>>)>,
    pub(super) journal_breaks: bool,
    /// Whether the end of hints cannot be kept.
    pub(super) end_breaks: bool,
    /// The ends of hints that were kept, and how many outcomes there were before each.
    pub(super) ends: Vec<(String, usize)>,
    /// Generations that were condensed from the one before.
    pub(super) condensed: u64,
    /// Parts that were made out of those of an earlier version.
    pub(super) patched: usize,
    /// State changes that completed lookups, with how many journal records there were before each.
    pub(super) completions: Vec<(usize, Vec<u8>)>,
    pub(super) fate: Decide,
    /// The fate of every message to or from one server, unless it is [`Fate::Arrives`]: then `fate`
    /// decides.
    pub(super) fates: Vec<Fate>,
    pub(super) falsify: Falsify,
    pub(super) events: Vec<String>,
    pub(super) failure: Option<Error>,
    pub(super) outcomes: HashMap<LookupId, Result<Option<Value>>>,
    /// What is on its way, by time of arrival.
    on_its_way: BTreeMap<(Duration, u64), (ExchangeId, Result<Response>)>,
    count: u64,
    /// Exchanges that the session no longer waits for. Their responses still come, and the session
    /// must ignore them.
    pub(super) abandoned: HashSet<ExchangeId>,
}

/// Storage in memory for a client of so many servers.
pub(super) fn keeper(servers: usize) -> Keeper<SameThread> {
    let addresses = (0..servers).map(|server| format!("server {server}")).collect();
    let state = Box::new(MemoryState::default());
    Keeper::new(state, addresses, SameThread::default(), Kernels::detect())
}

/// A clock by which computing takes no time.
pub(super) fn standing_still() -> Clock {
    Clock::new(|| Duration::ZERO)
}

/// Options with ten minutes of patience, so that only tests of impatience reach its end.
pub(super) fn options(servers: usize) -> SessionOptions {
    let mut options = SessionOptions::new(servers, Kernels::detect(), standing_still());
    options.addresses_digest = Some([9; 32]);
    options.patience.first_contact = Duration::from_secs(600);
    options.patience.give_up_after = Duration::from_secs(600);
    options
}

/// The parts of a session of the registry's schemes, for parts that are short.
pub(super) fn parts() -> Parts {
    let mut parts = Parts { measuring: Measuring::brief(), ..Parts::of_the_registry().unwrap() };
    parts.pace.shortest_step = 1;
    parts
}

/// Adds what is pinned for each server, as a caller does.
pub(super) fn know_pins(options: &mut SessionOptions, state: &mut dyn State) {
    for server in 0..options.servers {
        let pins = state.pins(&format!("server {server}")).unwrap();
        options.pins.extend(pins.into_iter().map(|(name, pin)| KnownPin { server, name, pin }));
    }
}

impl World {
    /// As many servers as the scheme takes, each of them `peer`.
    pub(super) fn of(peer: &Peer) -> Self {
        Self::with(peer, |_| ())
    }

    /// The same, with options that `change` changes.
    pub(super) fn with(peer: &Peer, change: impl FnOnce(&mut SessionOptions)) -> Self {
        let servers = peer.scheme().plan.servers;
        let mut options = options(servers);
        change(&mut options);
        Self::with_options(vec![peer.clone(); servers], options)
    }

    /// From now on, every server is `peer`.
    pub(super) fn serve(&mut self, peer: &Peer) {
        self.peers.fill(peer.clone());
    }

    pub(super) fn with_options(peers: Vec<Peer>, options: SessionOptions) -> Self {
        Self::with_parts(peers, options, parts())
    }

    /// Another session, at these servers, after `former` is gone with everything that it held. It
    /// has what that one stored.
    pub(super) fn after(former: Self, peers: Vec<Peer>, mut options: SessionOptions) -> Self {
        let mut state = former.keeper.state;
        drop((former.keeper.hints, former.session));
        know_pins(&mut options, &mut *state);
        let mut world = Self::with_options(peers, options);
        world.keeper.state = state;
        world
    }

    pub(super) fn with_parts(peers: Vec<Peer>, options: SessionOptions, parts: Parts) -> Self {
        Self {
            session: Session::with_parts(options, Duration::ZERO, parts).unwrap(),
            fates: vec![Fate::Arrives; peers.len()],
            keeper: keeper(peers.len()),
            peers,
            now: Duration::ZERO,
            sent: Vec::new(),
            journal: Vec::new(),
            journal_breaks: false,
            end_breaks: false,
            ends: Vec::new(),
            condensed: 0,
            patched: 0,
            completions: Vec::new(),
            fate: Box::new(|_, _| Fate::Arrives),
            falsify: Box::new(|_, responses| responses),
            events: Vec::new(),
            failure: None,
            outcomes: HashMap::new(),
            on_its_way: BTreeMap::new(),
            count: 0,
            abandoned: HashSet::new(),
        }
    }

    /// Lets time pass until no event is left.
    pub(super) fn run(&mut self) {
        for _ in 0..100_000 {
            if !self.step() {
                return;
            }
        }
        let last = self.trace().split_off(self.sent.len().saturating_sub(12));
        panic!("the session never comes to rest: {last:?}");
    }

    /// Does what the session says, then lets the next event happen. Returns whether there was one.
    pub(super) fn step(&mut self) -> bool {
        while let Some(output) = self.session.poll(self.now) {
            self.carry_out(output);
        }
        let arrival = self.on_its_way.keys().next().map(|(time, _)| *time);
        let timeout = self.session.next_timeout();
        let Some(next) = [arrival, timeout].into_iter().flatten().min() else { return false };
        self.now = self.now.max(next);
        match self.on_its_way.first_entry() {
            Some(entry) if arrival == Some(next) => match entry.remove() {
                (exchange, Ok(response)) => {
                    self.session.handle_message(exchange, response, self.now)
                }
                (exchange, Err(error)) => self.session.handle_failure(exchange, error, self.now),
            },
            _ => self.session.handle_timeout(self.now),
        }
        true
    }

    /// Does all that the session says before anything else happens.
    pub(super) fn carry_out_all(&mut self) {
        while let Some(output) = self.poll() {
            self.carry_out(output);
        }
    }

    /// The next output, when its time has come.
    pub(super) fn poll(&mut self) -> Option<Output> {
        loop {
            if let Some(output) = self.session.poll(self.now) {
                return Some(output);
            }
            self.now = self.session.busy_until()?;
        }
    }

    /// Looks one target up, to the end.
    pub(super) fn get(&mut self, target: Target) -> Result<Option<Value>> {
        let lookup = self.session.lookup(target);
        self.run();
        self.outcomes.remove(&lookup).expect("every lookup has an outcome")
    }

    pub(super) fn found(&mut self, target: Target) -> Vec<u8> {
        self.get(target).unwrap().expect("it is in the table").to_vec()
    }

    /// Hands in lookups of these records.
    pub(super) fn look_up(&mut self, indices: impl IntoIterator<Item = u64>) -> Vec<LookupId> {
        indices.into_iter().map(|index| self.session.lookup(Target::index(index))).collect()
    }

    /// The value that a lookup was told.
    pub(super) fn value(&self, lookup: LookupId) -> Vec<u8> {
        self.outcomes[&lookup].as_ref().unwrap().as_ref().expect("it is in the table").to_vec()
    }

    /// Has `change` applied to every answer from now on; it is told the role.
    pub(super) fn change_answers(&mut self, mut change: impl FnMut(u8, &mut Vec<u8>) + 'static) {
        self.falsify = Box::new(move |request, mut responses| {
            if let (Request::Answer(request), Some(Ok(Response::Answered(response)))) =
                (request, responses.first_mut())
            {
                let mut answer = response.answer.to_vec();
                change(request.role.0, &mut answer);
                response.answer = answer.into();
            }
            responses
        });
    }

    /// From now on, servers tell the truth.
    pub(super) fn true_responses(&mut self) {
        self.falsify = Box::new(|_, responses| responses);
    }

    pub(super) fn carry_out(&mut self, output: Output) {
        match output {
            Output::Errand(Errand::Send { exchange, server, request, .. }) => {
                self.transmit(exchange, server, request)
            }
            Output::Errand(Errand::Abandon(exchange)) => {
                self.abandoned.insert(exchange);
            }
            Output::Open(part) => {
                let opened = self.keeper.open(&part).unwrap();
                self.opened(opened);
            }
            Output::Patch(patch) => {
                let opened = self.keeper.patch(&patch).unwrap();
                self.patched += usize::from(self.opened(opened));
            }
            Output::OpenHints { key, to_follow } => self.open_hints(&key, to_follow),
            Output::Persist(persist) => self.persist(persist),
            Output::Prepare(step) => {
                self.keeper.prepare(step, &mut self.session, self.now);
                while let Some(event) = self.keeper.desk.done() {
                    self.session.handle_preparation(event, self.now);
                }
            }
            Output::Errand(Errand::Reply { lookup, outcome }) => {
                let before = self.outcomes.insert(lookup, outcome);
                assert!(before.is_none(), "a lookup has one outcome");
            }
            Output::Failed(error) => {
                assert!(self.failure.replace(error).is_none(), "a session fails once");
            }
            Output::Errand(Errand::Tell(progress)) => self.events.push(format!("{progress:?}")),
            Output::Errand(errand) => self.events.push(format!("{errand:?}")),
        }
    }

    fn persist(&mut self, persist: Persist) {
        match &persist {
            Persist::Journal { fetch, .. } if self.journal_breaks => {
                let error = Error::unavailable("the disk is full");
                return self.session.handle_not_persisted(*fetch, error);
            }
            Persist::EndHints { .. } if self.end_breaks => {
                let error = Error::unavailable("the disk is full");
                return self.session.handle_storage_failure(error);
            }
            Persist::Journal { record, .. } => {
                self.journal.push((self.sent.len(), queries_in(record)));
            }
            Persist::Completion { change, .. } => {
                self.completions.push((self.journal.len(), change.to_vec()));
            }
            Persist::EndHints { why, .. } => self.ends.push((why.clone(), self.outcomes.len())),
            Persist::CondenseHints { .. } => self.condensed += 1,
            _ => {}
        }
        self.keeper.persist(persist, &mut self.session, self.now).unwrap();
    }

    /// Returns whether all of the part is there.
    fn opened(&mut self, opened: Opened) -> bool {
        let Opened::Have { part, .. } = opened else { panic!("memory is never busy") };
        let is_complete = matches!(part, PartState::Complete(_));
        self.session.handle_part(part, self.now);
        is_complete
    }

    fn open_hints(&mut self, key: &HintsKey, to_follow: bool) {
        // The session that held them before is over, or opens them anew.
        self.keeper.put_hints_back().unwrap();
        let HintsOpened::Have { mut hints, .. } = self.keeper.open_hints(key, to_follow).unwrap()
        else {
            panic!("memory is never busy")
        };
        let saved = hints.load().unwrap();
        self.keeper.hints = Some(hints);
        self.session.handle_hints(saved, self.now);
    }

    /// What is pinned for a server.
    pub(super) fn state_pins(&mut self, server: &str) -> Vec<(String, crate::state::Pin)> {
        self.keeper.state.pins(server).unwrap()
    }

    fn transmit(&mut self, exchange: ExchangeId, server: usize, request: Request) {
        let fate = match self.fates[server] {
            Fate::Arrives => (self.fate)(self.sent.len(), &request),
            fate => fate,
        };
        self.sent.push((server, request.clone()));
        let mut arrival = self.now + Duration::from_millis(1);
        let mut responses = match fate {
            Fate::Lost => Vec::new(),
            Fate::Breaks => vec![Err(Error::unavailable("the connection broke"))],
            Fate::TurnedAway => vec![Err(Error::exhausted("the server is busy"))],
            _ => (self.falsify)(&request, self.peers[server].respond(&request)),
        };
        if let Fate::Late(milliseconds) = fate {
            arrival += Duration::from_millis(milliseconds);
        }
        if let Fate::Cut(count) = fate {
            responses.truncate(count);
        }
        for response in responses {
            let repeat = match (&response, fate) {
                (Ok(response), Fate::Twice) => Some(Ok(response.clone())),
                _ => None,
            };
            for response in [Some(response), repeat].into_iter().flatten() {
                self.on_its_way.insert((arrival, self.count), (exchange, response));
                self.count += 1;
                arrival += match fate {
                    Fate::Drips(pause) => Duration::from_millis(pause),
                    _ => Duration::from_millis(1),
                };
            }
        }
    }

    /// What a server sees of each request: which server, which kind, how long.
    pub(super) fn trace(&self) -> Vec<(usize, &'static str, usize)> {
        let seen = |(server, request): &(usize, Request)| {
            let (kind, len) = seen_of(request);
            (*server, kind, len)
        };
        self.sent.iter().map(seen).collect()
    }

    /// The kinds of all requests.
    pub(super) fn kinds(&self) -> Vec<&'static str> {
        self.sent.iter().map(|(_, request)| seen_of(request).0).collect()
    }

    /// Whether nothing was sent but requests for descriptions.
    pub(super) fn asked_nothing(&self) -> bool {
        self.kinds().iter().all(|kind| *kind == "describe")
    }

    /// The bytes of every query to one server, repeats included.
    pub(super) fn queries_to(&self, server: usize) -> Vec<Vec<u8>> {
        let queries = self.sent.iter().filter_map(|(to, request)| match request {
            Request::Answer(request) if *to == server => Some(request.query.to_vec()),
            _ => None,
        });
        queries.collect()
    }

    /// The bytes of every query that was sent, repeats included.
    pub(super) fn queries(&self) -> Vec<Vec<u8>> {
        let queries = self.sent.iter().filter_map(|(_, request)| match request {
            Request::Answer(request) => {
                Some(proto::AnswerRequest::from(request.clone()).encode_to_vec())
            }
            _ => None,
        });
        queries.collect()
    }

    /// Why the session failed.
    pub(super) fn reason(&self) -> Option<privet_core::Reason> {
        self.failure.as_ref().expect("the session failed").reason()
    }

    pub(super) fn failed_with(&self) -> privet_core::Blame {
        self.failure.as_ref().expect("the session failed").blame()
    }
}

/// Whether a request is for (a stretch of) this part.
pub(super) fn is_for(part: PartKind, request: &Request) -> bool {
    matches!(request, Request::Fetch(request) if request.part == part)
}

/// Record `index` of [`Peer::indexed`], of `len` bytes.
pub(super) fn record(index: u64, len: u64) -> Vec<u8> {
    (index * len..(index + 1) * len).map(|i| (i * 13 + i / 251 + 1) as u8).collect()
}

/// What a server sees of a request: its kind and its length.
pub(super) fn seen_of(request: &Request) -> (&'static str, usize) {
    let kind = match request {
        Request::Describe(_) => "describe",
        Request::Fetch(_) => "fetch",
        Request::Prepare(_) => "prepare",
        Request::Answer(_) => "answer",
    };
    (kind, request_len(request) as usize)
}

/// The queries that a journal gets, as it would read them back.
pub(super) fn queries_in(record: &JournalRecord) -> Vec<Vec<u8>> {
    struct Tape(Vec<Zeroizing<Vec<u8>>>);
    impl Journal for Tape {
        fn append_and_sync(&mut self, entries: &[JournalEntry<'_>]) -> Result<()> {
            self.0.extend(entries.iter().map(|entry| Zeroizing::new(entry.record.to_vec())));
            Ok(())
        }
    }
    impl JournalReader for Tape {
        fn records(&mut self) -> Result<Vec<Zeroizing<Vec<u8>>>> {
            Ok(self.0.clone())
        }
    }
    let mut tape = Tape(Vec::new());
    Receipt::append(&mut tape, record).unwrap();
    StoredRecord::read_all(&mut tape).unwrap()[0].sendable().queries().to_vec()
}

/// A cheap generator for tests' own choices.
#[derive(Default)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % sides
    }
}
