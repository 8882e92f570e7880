//! A network in memory: servers that answer truly, a clock that jumps to the next thing to happen, and hooks to lose, delay, repeat and falsify.

pub(super) use privet_core::Blame;
pub(super) use privet_schemes::contract::Role;
pub(super) use privet_wire::{AnswerResponse, FetchChunk, PrepareResponse};

use crate::preparation::{Preparer, StartPreparation};
use crate::session::*;
use crate::state::{
    HintStore, HintsKey, HintsOpened, MemoryState, Opened, PartState, State, patch_part,
};
use privet_core::{Epoch, PublicSeed, TableId, TableIdentity, TableShape, TableView};
use privet_schemes::SchemeId;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::{ErasedServer, ServerOptions};
use privet_table::digest::{DigestParts, layout_digest};
use privet_table::key_map::{KeyMapKind, Pairs, pack_as};
use privet_table::{IndexLayout, RecordLayout};
use privet_wire::prost::Message;
use privet_wire::{SchemeDescription, TableDescription, proto};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Chunks so short that the small hints of these tests come in several.
const CHUNK_LEN: usize = 5000;

/// From a query to one in some role to its answer.
type Answers = dyn Fn(Role, &[u8]) -> Result<Vec<u8>> + Send + Sync;

/// From a request for hints to one in some role to its reply.
type Replies = Answers;

/// An epoch: the version that it leads to, as it was signed, and what belongs to it of the commitments.
pub(super) type SignedEpoch = (u64, Vec<u8>, Vec<u8>);

/// A server of one table.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) description: ServerDescription,
    pub(super) layout: Vec<u8>,
    pub(super) hint: Vec<u8>,
    pub(super) records: Vec<u8>,
    /// Versions before this one that are served as well, the latest first.
    pub(super) earlier: Vec<Peer>,
    /// The epochs that are to be had, each with the version that it leads to and what belongs to it of the commitments.
    pub(super) epochs: Vec<SignedEpoch>,
    /// The server, if the registry knows it.
    pub(super) server: Option<Arc<dyn ErasedServer>>,
    answers: Arc<Answers>,
    replies: Arc<Replies>,
}

/// Key number `k` and its value; values differ in length, and one is so long that it goes to the stash.
pub(super) fn pair(k: usize) -> (Vec<u8>, Vec<u8>) {
    let len = if k == 3 { 700 } else { 3 + k % 5 };
    (format!("key-{k}").into_bytes(), (0..len).map(|i| (k * 31 + i) as u8).collect())
}

struct Keyed(Vec<(Vec<u8>, Vec<u8>)>);

impl Pairs for Keyed {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn key(&self, pair: usize) -> &[u8] {
        &self.0[pair].0
    }
    fn value(&self, pair: usize) -> &[u8] {
        &self.0[pair].1
    }
}

impl Peer {
    /// A table of the first `keys` pairs, one of them in the stash.
    pub(super) fn keyed(keys: usize) -> Self {
        Self::keyed_by(SchemeId::SimplePir, keys)
    }

    /// The same, served by another scheme.
    pub(super) fn keyed_by(scheme: SchemeId, keys: usize) -> Self {
        Self::keyed_as(KeyMapKind::Buckets, scheme, keys)
    }

    /// The same by another kind of key map.
    pub(super) fn keyed_as(kind: KeyMapKind, scheme: SchemeId, keys: usize) -> Self {
        let pairs = Keyed((0..keys).map(pair).collect());
        let packed = pack_as(kind, &pairs, PublicSeed::derive("privet test", b"seed")).unwrap();
        let map = packed.key_map();
        assert_eq!(map.stash_entries() > 0, keys > 3, "the long value is in the stash");
        let mut records = Vec::new();
        let mut record = Vec::new();
        for bucket in 0..map.buckets() {
            packed.write_record(&pairs, bucket, &mut record);
            records.extend(&record);
        }
        let layout = RecordLayout::Keyed(map.clone()).encode();
        Self::new(scheme, layout, &records, map.shape(), 1)
    }

    /// A table of `records` records of `len` bytes, by index.
    pub(super) fn indexed(records: u64, len: u64, id: u8) -> Self {
        Self::indexed_by(SchemeId::SimplePir, records, len, id)
    }

    /// The same, served by another scheme.
    pub(super) fn indexed_by(scheme: SchemeId, records: u64, len: u64, id: u8) -> Self {
        let layout = RecordLayout::Index(IndexLayout::for_lengths(len, len)).encode();
        let bytes: Vec<u8> =
            (0..records * len).map(|i| (i * 13 + i / 251 + u64::from(id)) as u8).collect();
        Self::new(scheme, layout, &bytes, TableShape::new(records, len).unwrap(), id)
    }

    /// Any table by any scheme.
    pub(super) fn new(
        scheme: SchemeId,
        layout: Vec<u8>,
        records: &[u8],
        shape: TableShape,
        id: u8,
    ) -> Self {
        let parts = DigestParts {
            layout: layout_digest(&layout),
            records: *blake3::hash(records).as_bytes(),
        };
        let digest = parts.combine(shape);
        let identity = TableIdentity { id: TableId([id; 16]), epoch: Epoch(1), digest, shape };
        Self::of(scheme, identity, layout, records)
    }

    /// The table `identity`.
    pub(super) fn of(
        scheme: SchemeId,
        identity: TableIdentity,
        layout: Vec<u8>,
        records: &[u8],
    ) -> Self {
        let table = TableView::new(identity, records).unwrap();
        let options = ServerOptions { kernels: Kernels::detect(), threads: 1 };
        let setup = registry::setup(scheme, table, &registry::Tuning::default(), options).unwrap();
        let precomputed = setup.precompute(&|_| {}).unwrap();
        let server = setup.finish(&precomputed.kept.as_bytes(), &|_| {}).unwrap();
        let hint = precomputed.hint.as_bytes().into_owned();
        Self::with_server(Arc::from(server), identity, layout, records, hint)
    }

    /// The table `identity` at a server that was made before, with what clients download of it.
    pub(super) fn with_server(
        server: Arc<dyn ErasedServer>,
        identity: TableIdentity,
        layout: Vec<u8>,
        records: &[u8],
        hint: Vec<u8>,
    ) -> Self {
        let hint = match server.streamed() {
            Some(streamed) => streamed.to_vec(),
            None => hint,
        };
        let received = match server.plan().offline {
            OfflinePhase::Nothing | OfflinePhase::Ask { .. } => None,
            OfflinePhase::Download { .. } | OfflinePhase::StreamShuffled { .. } => {
                Some(described(&hint))
            }
            _ => Some(described(records)),
        };
        let scheme = SchemeDescription::new(server.plan().clone(), &identity, received).unwrap();
        let description = describe(&[("table", identity, described(&layout), scheme)]);
        let (asked, kept) = (Arc::clone(&server), Arc::clone(&server));
        let replies = Arc::new(move |role, request: &[u8]| asked.prepare(role, request));
        let answers = Arc::new(move |role, query: &[u8]| answer(&*server, role, query));
        Self {
            description,
            layout,
            hint,
            records: records.to_vec(),
            earlier: Vec::new(),
            epochs: Vec::new(),
            server: Some(kept),
            answers,
            replies,
        }
    }

    /// The same table, served by something that the registry does not know. `hint` is what takes the table's place in a stream.
    pub(super) fn served_by(
        mut self,
        plan: SchemePlan,
        hint: Vec<u8>,
        replies: impl Fn(Role, &[u8]) -> Result<Vec<u8>> + Send + Sync + 'static,
        answers: impl Fn(&[u8]) -> Result<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        self.hint = hint;
        self.replies = Arc::new(replies);
        let streamed = match plan.offline {
            OfflinePhase::StreamTable { .. } => Some(described(&self.records)),
            OfflinePhase::StreamShuffled { .. } => Some(described(&self.hint)),
            _ => None,
        };
        let scheme = SchemeDescription::new(plan, &self.identity(), streamed).unwrap();
        self.description = describe(&[("table", self.identity(), described(&self.layout), scheme)]);
        self.answers = Arc::new(move |_, query: &[u8]| answers(query));
        self
    }

    pub(super) fn identity(&self) -> TableIdentity {
        self.description.tables[0].identity
    }

    pub(super) fn scheme(&self) -> &SchemeDescription {
        &self.description.tables[0].schemes[0]
    }

    /// Tells of another identity, and otherwise does as before.
    pub(super) fn with_identity(mut self, change: impl Fn(&mut TableIdentity)) -> Self {
        let mut identity = self.identity();
        change(&mut identity);
        let scheme = self.scheme().clone();
        let scheme = SchemeDescription::new(scheme.plan, &identity, scheme.hint).unwrap();
        self.description = describe(&[("table", identity, described(&self.layout), scheme)]);
        self
    }

    /// Serves another layout, and describes it truly.
    pub(super) fn with_layout(mut self, layout: Vec<u8>) -> Self {
        let scheme = self.scheme().clone();
        self.description = describe(&[("table", self.identity(), described(&layout), scheme)]);
        self.layout = layout;
        self
    }

    /// The version that a request is about, if it is served.
    fn version(&self, request: &Request) -> Result<&Self> {
        let (epoch, digest) = match request {
            Request::Describe(_) => return Ok(self),
            // What the epochs lead to.
            Request::Fetch(request) if request.part == PartKind::Updates => return Ok(self),
            Request::Fetch(request) => (request.epoch, request.parameter_digest),
            Request::Prepare(request) => (request.epoch, request.parameter_digest),
            Request::Answer(request) => (request.epoch, request.parameter_digest),
        };
        let versions = std::iter::once(self).chain(&self.earlier);
        let mut named = versions.filter(|version| {
            (version.identity().epoch, version.scheme().parameter_digest) == (epoch, digest)
        });
        named.next().ok_or_else(|| Error::peer_misbehaved("that version is not served here"))
    }

    /// The epochs from the version `request` names to the one that its parameter digest does.
    fn updates(&self, request: &privet_wire::FetchRequest) -> Vec<u8> {
        let versions = std::iter::once(self).chain(&self.earlier);
        let mut to = versions
            .filter(|version| version.scheme().parameter_digest == request.parameter_digest);
        let to = to.next().expect("a version that is served").identity().epoch.0;
        let mut bytes = Vec::new();
        for (epoch, signed, commitments) in &self.epochs {
            if *epoch > request.epoch.0 && *epoch <= to {
                privet_wire::updates::encode(signed, commitments, &mut bytes).unwrap();
            }
        }
        bytes
    }

    /// The true responses to `request`.
    pub(super) fn respond(&self, request: &Request) -> Vec<Result<Response>> {
        // A peer of one version is asked about that one only, unless a test wants to see what becomes of it.
        match self.version(request) {
            Ok(version) => version.respond_as_it_is(request),
            Err(_) if self.epochs.is_empty() => self.respond_as_it_is(request),
            Err(error) => vec![Err(error)],
        }
    }

    fn respond_as_it_is(&self, request: &Request) -> Vec<Result<Response>> {
        match request {
            Request::Describe(_) => vec![Ok(Response::Described(self.description.clone()))],
            Request::Fetch(request) => {
                let updates;
                let part = match request.part {
                    PartKind::Layout => &self.layout,
                    PartKind::Hint => &self.hint,
                    PartKind::Updates => {
                        updates = self.updates(request);
                        &updates
                    }
                    _ => &self.records,
                };
                let start = request.offset as usize;
                let len = if request.len == 0 { part.len() } else { request.len as usize };
                let end = part.len().min(start + len);
                let chunks = part[start..end].chunks(CHUNK_LEN).enumerate().map(|(k, data)| {
                    let offset = (start + k * CHUNK_LEN) as u64;
                    Ok(Response::Chunk(FetchChunk { offset, data: data.to_vec().into() }))
                });
                chunks.chain([Ok(Response::End)]).collect()
            }
            Request::Prepare(request) => {
                vec![(self.replies)(request.role, &request.request).map(|reply| {
                    let (table, epoch, parameter_digest) =
                        (request.table, request.epoch, request.parameter_digest);
                    let reply = reply.into();
                    Response::Prepared(PrepareResponse { table, epoch, parameter_digest, reply })
                })]
            }
            Request::Answer(request) => {
                vec![(self.answers)(request.role, &request.query).map(|answer| {
                    let (table, epoch, parameter_digest) =
                        (request.table, request.epoch, request.parameter_digest);
                    Response::Answered(AnswerResponse {
                        table,
                        epoch,
                        parameter_digest,
                        answer: answer.into(),
                    })
                })]
            }
        }
    }
}

fn answer(server: &dyn ErasedServer, role: Role, query: &[u8]) -> Result<Vec<u8>> {
    server.answer(role, &[query]).remove(0)
}

pub(super) fn described(part: &[u8]) -> PartDescription {
    PartDescription::new(part.len() as u64, *blake3::hash(part).as_bytes())
}

pub(super) fn describe(
    tables: &[(&str, TableIdentity, PartDescription, SchemeDescription)],
) -> ServerDescription {
    let tables = tables.iter().map(|(name, identity, layout, scheme)| {
        TableDescription::new(name, *identity, *layout, vec![scheme.clone()]).unwrap()
    });
    ServerDescription::new("a peer in memory", tables.collect()).unwrap()
}

/// What the network does to one exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// Responses come, each a millisecond after the one before.
    Arrives,
    /// The same, beginning after so many milliseconds.
    Late(u64),
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

/// What happens to the message that is the so-manieth sent.
type Decide = Box<dyn FnMut(usize, &Request) -> Fate>;

pub(super) type Falsify = Box<dyn FnMut(&Request, Vec<Result<Response>>) -> Vec<Result<Response>>>;

pub(super) struct World {
    pub(super) session: Session,
    pub(super) peers: Vec<Peer>,
    pub(super) state: MemoryState,
    pub(super) hints: Option<Box<dyn HintStore>>,
    pub(super) start_preparation: StartPreparation,
    preparer: Option<Preparer>,
    pub(super) now: Duration,
    /// Everything that was sent, in order.
    pub(super) sent: Vec<(usize, Request)>,
    /// Journal records, in order, with how much had been sent before each.
    pub(super) journal: Vec<(usize, Vec<u8>)>,
    pub(super) journal_breaks: bool,
    /// Whether the end of hints cannot be kept.
    pub(super) end_breaks: bool,
    /// The ends of hints that were kept, and how many outcomes there were before each.
    pub(super) ends: Vec<(String, usize)>,
    /// Generations that came of the one before.
    pub(super) condensed: u64,
    /// Parts that were made of those of an earlier version.
    pub(super) patched: usize,
    /// State changes that completed lookups, with how many journal records there were before each.
    pub(super) completions: Vec<(usize, Vec<u8>)>,
    pub(super) fate: Decide,
    /// What happens to every message to or from one server, unless it is [`Fate::Arrives`]: then `fate` decides.
    pub(super) fates: Vec<Fate>,
    pub(super) falsify: Falsify,
    pub(super) events: Vec<String>,
    pub(super) failure: Option<Error>,
    pub(super) outcomes: HashMap<LookupId, Result<Option<Value>>>,
    /// What is on its way, by time of arrival.
    on_its_way: BTreeMap<(Duration, u64), (ExchangeId, Result<Response>)>,
    count: u64,
    /// Exchanges that the session no longer waits for. Their responses still come: a session must not mind.
    pub(super) abandoned: HashSet<ExchangeId>,
}

/// Options that are patient for ten minutes, so that only tests of impatience see it end.
pub(super) fn options(servers: usize) -> SessionOptions {
    let mut options = SessionOptions::new(servers, Kernels::detect());
    options.addresses_digest = Some([9; 32]);
    options.patience.first_contact = Duration::from_secs(600);
    options.patience.give_up_after = Duration::from_secs(600);
    options
}

impl World {
    pub(super) fn new(peer: Peer) -> Self {
        Self::with_options(vec![peer], options(1))
    }

    pub(super) fn with_options(peers: Vec<Peer>, options: SessionOptions) -> Self {
        Self::with_session(peers, Session::new(options, Duration::ZERO).unwrap())
    }

    pub(super) fn with_session(peers: Vec<Peer>, session: Session) -> Self {
        Self {
            session,
            fates: vec![Fate::Arrives; peers.len()],
            peers,
            state: MemoryState::default(),
            hints: None,
            start_preparation: registry::preparation,
            preparer: None,
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

    /// Lets time pass until nothing is left to happen.
    pub(super) fn run(&mut self) {
        for _ in 0..100_000 {
            if !self.step() {
                return;
            }
        }
        let last = self.trace().split_off(self.sent.len().saturating_sub(12));
        panic!("the session never comes to rest: {last:?}");
    }

    /// Does what the session says, then lets the next thing happen. Returns whether there was one.
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

    /// Looks one target up, to the end.
    pub(super) fn get(&mut self, target: Target) -> Result<Option<Value>> {
        let lookup = self.session.lookup(target);
        self.run();
        self.outcomes.remove(&lookup).expect("every lookup has an outcome")
    }

    pub(super) fn found(&mut self, target: Target) -> Vec<u8> {
        self.get(target).unwrap().expect("it is in the table").to_vec()
    }

    pub(super) fn carry_out(&mut self, output: Output) {
        match output {
            Output::Transmit { exchange, server, request, .. } => {
                self.transmit(exchange, server, request)
            }
            Output::Abandon(exchange) => {
                self.abandoned.insert(exchange);
            }
            Output::Open(part) => match self.state.open(&part).unwrap() {
                Opened::Have { part, .. } => self.session.handle_part(part, self.now),
                Opened::Busy { .. } => panic!("memory is never busy"),
            },
            Output::Persist(Persist::Pin { server, name, pin }) => {
                self.state.pin(&format!("server {server}"), &name, &pin).unwrap();
            }
            Output::Persist(Persist::Append { part, offset, bytes }) => {
                self.state.append(&part, offset, &bytes).unwrap();
            }
            Output::Persist(Persist::Complete(part)) => {
                let source = self.state.complete(&part).unwrap();
                self.session.handle_part(PartState::Complete(source), self.now);
            }
            Output::Persist(Persist::Discard(part)) => self.state.discard(&part).unwrap(),
            Output::OpenHints { key, to_follow } => match self.open_hints(&key, to_follow) {
                HintsOpened::Have { hints, .. } => {
                    let saved = self.hints.insert(hints).load().unwrap();
                    self.session.handle_hints(saved, self.now);
                }
                HintsOpened::Busy => panic!("memory is never busy"),
            },
            Output::Patch(patch) => {
                let opened = patch_part(&mut self.state, &patch, Kernels::detect()).unwrap();
                let Opened::Have { part, .. } = opened else { panic!("memory is never busy") };
                self.patched += usize::from(matches!(part, PartState::Complete(_)));
                self.session.handle_part(part, self.now);
            }
            Output::Persist(Persist::FollowHints { change, to }) => {
                self.preparer = None;
                self.hints.as_mut().unwrap().follow(&change, &to).unwrap();
                self.session.handle_hints_followed(self.now);
            }
            Output::Persist(Persist::RestartHints(key)) => {
                self.preparer = None;
                let hints = self.hints.as_mut().unwrap();
                hints.restart(&key).unwrap();
                let saved = hints.load().unwrap();
                self.session.handle_hints(saved, self.now);
            }
            Output::Persist(Persist::Journal { lookup, id, record }) => {
                if self.journal_breaks {
                    let error = Error::unavailable("the disk is full");
                    return self.session.handle_not_persisted(lookup, error);
                }
                let receipt = self.hints.as_mut().unwrap().reserve(id, &record).unwrap();
                self.journal.push((self.sent.len(), record.to_vec()));
                self.session.handle_persisted(lookup, receipt, self.now);
            }
            Output::Persist(Persist::Completion { id, change }) => {
                self.hints.as_mut().unwrap().settle(id, &change).unwrap();
                self.completions.push((self.journal.len(), change.to_vec()));
            }
            Output::Persist(Persist::EndHints { id, change, why }) => {
                if self.end_breaks {
                    let error = Error::unavailable("the disk is full");
                    return self.session.handle_storage_failure(error);
                }
                self.hints.as_mut().unwrap().end(id, &change, &why).unwrap();
                self.ends.push((why, self.outcomes.len()));
                self.session.handle_hints_ended();
            }
            Output::Persist(Persist::SwitchHints) => {
                let hints = self.hints.as_mut().unwrap();
                hints.switch().unwrap();
                let saved = hints.load().unwrap();
                self.session.handle_hints(saved, self.now);
            }
            Output::Persist(Persist::CondenseHints { generation }) => {
                let hints = self.hints.as_mut().unwrap();
                hints.switch_to(&generation).unwrap();
                let saved = hints.load().unwrap();
                self.condensed += 1;
                self.session.handle_hints(saved, self.now);
            }
            Output::Prepare(step) => {
                if matches!(step, Prepare::Begin) {
                    self.preparer = None;
                    let store = self.hints.as_mut().unwrap().preparation().unwrap();
                    let (table, kernels) = (self.session.table().unwrap(), Kernels::detect());
                    let start = self.start_preparation;
                    self.preparer = Some(Preparer::with_start(table, store, kernels, start));
                }
                if let Some(event) = self.preparer.as_mut().and_then(|worker| worker.step(step)) {
                    self.session.handle_preparation(event, self.now);
                }
            }
            Output::Event(event) => self.event(event),
        }
    }

    /// What is pinned for a server.
    pub(super) fn state_pins(&mut self, server: &str) -> Vec<(String, crate::state::Pin)> {
        self.state.pins(server).unwrap()
    }

    fn open_hints(&mut self, key: &HintsKey, to_follow: bool) -> HintsOpened {
        // The session that had them before is over, or opens them anew.
        (self.preparer, self.hints) = (None, None);
        let opened = match to_follow {
            true => self.state.open_hints_to_follow(key),
            false => self.state.open_hints(key),
        };
        opened.unwrap()
    }

    fn event(&mut self, event: Event) {
        let (lookup, outcome) = match event {
            Event::Found { lookup, value } => (lookup, Ok(Some(value))),
            Event::NotFound { lookup } => (lookup, Ok(None)),
            Event::LookupFailed { lookup, error } => (lookup, Err(error)),
            Event::Failed(error) => {
                assert!(self.failure.replace(error).is_none(), "a session fails once");
                return;
            }
            other => return self.events.push(format!("{other:?}")),
        };
        assert!(self.outcomes.insert(lookup, outcome).is_none(), "a lookup has one outcome");
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
                arrival += Duration::from_millis(1);
            }
        }
    }

    /// What a server sees of each request: to whom, of which kind, how long.
    pub(super) fn trace(&self) -> Vec<(usize, &'static str, usize)> {
        let trace = self.sent.iter().map(|(server, request)| match request {
            Request::Describe(request) => {
                (*server, "describe", proto::DescribeRequest::from(*request).encoded_len())
            }
            Request::Fetch(request) => {
                (*server, "fetch", proto::FetchRequest::from(*request).encoded_len())
            }
            Request::Prepare(request) => {
                (*server, "prepare", proto::PrepareRequest::from(request.clone()).encoded_len())
            }
            Request::Answer(request) => {
                (*server, "answer", proto::AnswerRequest::from(request.clone()).encoded_len())
            }
        });
        trace.collect()
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

    pub(super) fn failed_with(&self) -> privet_core::Blame {
        self.failure.as_ref().expect("the session failed").blame()
    }
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
