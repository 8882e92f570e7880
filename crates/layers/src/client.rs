//! The client's side: follows announcements, prepares for layers before they take over, and queries
//! all of them.

mod prepared;

use super::announcement::{Announcement, LayerDescription};
use super::entries::read_held;
use super::view::View;
use super::{KeyChange, LayeredParameters, MAX_KEY_LEN, Span, version};
use prepared::{Asked, PreparedLayer};
use privet_core::{Error, Result, SecretRng, TableId};
use privet_kernels::Kernels;
use privet_schemes::contract::{Record, ReservationId, Role};
use privet_schemes::registry::Recovered;
use privet_schemes::reservation::{Pending, Sendable};
use std::collections::BTreeMap;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A store in which a client keeps hints that must outlive it, for each layer and each generation
/// of its hints. For schemes without hints, [`NoHints`].
///
/// **Implementations are trusted**, like those of a
/// [`Journal`](privet_schemes::reservation::Journal): a query is sent once
/// [`reserved`](Self::reserved) has taken its record, and what [`log`](Self::log) returns is sent
/// again.
pub trait HintStore {
    /// Keeps a prepared generation of hints: secret. Durable on return; the client uses it only
    /// after that.
    ///
    /// # Errors
    /// If it may not have reached the disk.
    fn generation(&mut self, layer: Span, number: u64, bytes: &[u8]) -> Result<()>;

    /// Appends the record of a reservation: secret, durable on return. Its queries are sent only
    /// after that.
    ///
    /// # Errors
    /// If it may not have reached the disk.
    fn reserved(&mut self, layer: Span, generation: u64, record: &[u8]) -> Result<()>;

    /// Appends the state change of answers: secret. Nothing waits for it. If it is lost, a restart
    /// finds the lookup unfinished.
    ///
    /// # Errors
    /// If it may not have been written.
    fn settled(&mut self, layer: Span, generation: u64, change: &[u8]) -> Result<()>;

    /// Everything that was appended for a generation, in order.
    ///
    /// # Errors
    /// If it cannot be read, or has changed.
    fn log(&mut self, layer: Span, generation: u64) -> Result<Vec<Logged>>;

    /// The generation is not needed any more.
    fn forget(&mut self, layer: Span, generation: u64);
}

/// The store of schemes without hints: there is nothing to keep.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHints;

impl HintStore for NoHints {
    fn generation(&mut self, _layer: Span, _number: u64, _bytes: &[u8]) -> Result<()> {
        Err(needs_store())
    }

    fn reserved(&mut self, _layer: Span, _generation: u64, _record: &[u8]) -> Result<()> {
        Err(needs_store())
    }

    fn settled(&mut self, _layer: Span, _generation: u64, _change: &[u8]) -> Result<()> {
        Err(needs_store())
    }

    fn log(&mut self, _layer: Span, _generation: u64) -> Result<Vec<Logged>> {
        Err(needs_store())
    }

    fn forget(&mut self, _layer: Span, _generation: u64) {}
}

fn needs_store() -> Error {
    Error::api_misuse("a scheme with single-use hints needs a store that keeps them")
}

/// What was appended for one generation of hints. Secret.
pub enum Logged {
    /// By [`HintStore::reserved`].
    Reserved(Zeroizing<Vec<u8>>),
    /// By [`HintStore::settled`].
    Settled(Zeroizing<Vec<u8>>),
}

/// What a client must fetch now. What is due, and when, depends on the numbers of changes and of
/// lookups and on public sizes.
#[derive(Debug, PartialEq, Eq)]
pub enum Due {
    /// Bytes that clients [fetch](super::Layer::fetched) of a layer, from any server.
    Fetch {
        /// The layer.
        layer: Span,
        /// The first byte.
        offset: u64,
        /// How many, at least 1.
        len: u64,
    },
    /// The reply to a request that no other server may see.
    Ask {
        /// The layer.
        layer: Span,
        /// The server.
        role: Role,
        /// The request. Secret.
        request: Zeroizing<Vec<u8>>,
    },
}

/// Numbers a client's lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LookupNumber(u64);

/// The queries of one lookup. Send all of them before looking at any answer.
pub struct Queries {
    /// The lookup.
    pub lookup: LookupNumber,
    queries: Vec<(Span, Sendable)>,
}

/// One query to one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerQuery<'a> {
    /// The layer that it is for.
    pub layer: Span,
    /// The server.
    pub role: Role,
    /// The bytes to send, the same at each attempt.
    pub bytes: &'a [u8],
}

impl Queries {
    /// The queries, in the order in which [`settle`](LayeredClient::settle) takes their answers.
    pub fn iter(&self) -> impl Iterator<Item = LayerQuery<'_>> {
        self.queries.iter().flat_map(|(layer, sendable)| {
            (0..).zip(sendable.queries()).map(|(role, bytes)| LayerQuery {
                layer: *layer,
                role: Role(role),
                bytes,
            })
        })
    }
}

/// A client of a layered table. A state machine: it does no I/O, starts no threads, and does not
/// know the time.
///
/// ```text
/// follow(announcement) ──► due() ──► fetched from the layer ──► absorb(bytes) ──► due() ──► …  until nothing is
/// lookup(key) ──► Queries ──► answers ──► settle(lookup, answers) ──► take(lookup) ──► the value, or that there is none
/// ```
///
/// **A server sees** which announcements a client fetched, which due pieces it fetched, and for
/// each lookup one query to each layer in charge, all at once. These layers and the lengths of
/// their messages are public, and each query is as private as its scheme promises. So everything
/// depends on the number of changes and lookups. It does not depend on which keys are looked up,
/// where they are, or whether they exist.
///
/// **Hints are used in order**: one call reserves the hints of all layers and has their records
/// stored before it returns the queries. If the store fails, its contents are unknown, and no
/// lookup is made any more: load the client from its store again.
pub struct LayeredClient {
    table: TableId,
    parameters: LayeredParameters,
    kernels: Kernels,
    view: View,
    /// Layers in charge, coming layers, and replaced layers whose lookups are under way.
    layers: BTreeMap<Span, PreparedLayer>,
    lookups: BTreeMap<u64, UnderWay>,
    next_lookup: u64,
    failed: bool,
}

/// A lookup whose value was not taken yet.
struct UnderWay {
    key: Zeroizing<Vec<u8>>,
    /// The key's entry in the list.
    listed: Option<Option<Record>>,
    /// One for each query, the oldest layer first.
    parts: Vec<Part>,
    settled: bool,
}

struct Part {
    layer: Arc<LayerDescription>,
    generation: u64,
    record: PartRecord,
}

enum PartRecord {
    Sent(Pending),
    /// The layer returns it once other reservations are settled.
    Waiting(ReservationId),
    Told(Result<Record>),
}

impl LayeredClient {
    /// A client of the layered table `table`, which knows nothing of it yet: it must follow the
    /// server's [`state`](super::LayeredServer::state) next.
    pub fn new(table: TableId, parameters: LayeredParameters, kernels: Kernels) -> Self {
        let view = View::empty(table, parameters.list);
        Self {
            table,
            parameters,
            kernels,
            view,
            layers: BTreeMap::new(),
            lookups: BTreeMap::new(),
            next_lookup: 0,
            failed: false,
        }
    }

    /// Takes in an announcement. It may repeat what is known already, so the client can follow the
    /// server's [`state`](super::LayeredServer::state) at any time.
    ///
    /// # Errors
    /// [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) if events before it are
    /// missing, or it makes no sense; [`Blame::Integrity`](privet_core::Blame::Integrity) if it
    /// contradicts an earlier announcement. After an error nothing has changed.
    pub fn follow(
        &mut self,
        announcement: &Announcement,
        store: &mut impl HintStore,
    ) -> Result<()> {
        let view = self.view.after(announcement)?;
        let in_charge = view.layers.iter().map(|(span, layer)| (span, layer, span.last));
        let coming = view.coming.iter().map(|(span, (layer, at))| (span, layer, *at));
        let mut new = Vec::new();
        for (span, layer, takes_over_at) in in_charge.chain(coming) {
            if !self.layers.contains_key(span) {
                let pace = (view.changes, takes_over_at);
                let scheme = self.parameters.scheme;
                new.push(PreparedLayer::new(self.table, scheme, layer, pace, self.kernels)?);
            }
        }
        self.layers.extend(new.into_iter().map(|layer| (layer.description.span, layer)));
        self.view = view;
        self.drop_replaced(store);
        Ok(())
    }

    /// The next piece to fetch, if any is due now. Ask again after it was [absorbed](Self::absorb).
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is no entropy or no memory.
    pub fn due(&mut self) -> Result<Option<Due>> {
        let changes = self.view.changes;
        // Fetch first for the layer that takes over next. Replaced layers need no more hints.
        let spans = self.view.layers.keys().chain(self.view.coming.keys());
        let mut wanted: Vec<Span> = spans.copied().collect();
        let takes_over = |span: &Span| self.view.coming.get(span).map_or(0, |(_, at)| *at);
        wanted.sort_by_key(takes_over);
        for span in wanted {
            if let Some(layer) = self.layers.get_mut(&span)
                && let Some(due) = layer.due(changes)?
            {
                return Ok(Some(due));
            }
        }
        Ok(None)
    }

    /// Takes the [due](Self::due) bytes of a layer.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) or
    /// [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) if the bytes are not the
    /// announced ones: the layer is then fetched from the start; the store's errors.
    pub fn absorb(&mut self, layer: Span, bytes: &[u8], store: &mut impl HintStore) -> Result<()> {
        self.layer(layer)?.absorb(bytes, store)
    }

    /// Makes the queries for `key`, one to each layer in charge, and has everything stored that
    /// must be durable before they are sent.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if something must be fetched first,
    /// or another lookup settled first; [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the
    /// key is too long. In these cases nothing has happened, for any key. Otherwise the store's
    /// errors; after one of them, no lookup is made any more.
    pub fn lookup(
        &mut self,
        key: &[u8],
        rng: &mut SecretRng,
        store: &mut impl HintStore,
    ) -> Result<Queries> {
        if self.failed {
            return Err(Error::unavailable(
                "an earlier lookup failed half-way, so it is unknown which hints were used; load the client from its store",
            ));
        }
        if key.len() > MAX_KEY_LEN {
            return Err(Error::api_misuse(format!("no key is longer than {MAX_KEY_LEN} bytes")));
        }
        if self.view.layers.is_empty() {
            return Err(Error::unavailable("the table was not announced yet; follow its state"));
        }
        let in_charge: Vec<Span> = self.view.layers.keys().copied().collect();
        for span in &in_charge {
            self.layer(*span)?.make_ready(store)?;
        }
        let (mut parts, mut queries) = (Vec::new(), Vec::new());
        for span in in_charge {
            let asked = self.layer(span)?.ask(key, rng, store);
            let asked = asked.inspect_err(|_| self.failed = true)?;
            let layer = self.layer(span)?.description.clone();
            for asked in asked {
                let (generation, record) = match asked {
                    Asked::Sent(generation, lookup) => {
                        queries.push((span, lookup.sendable));
                        (generation, PartRecord::Sent(lookup.pending))
                    }
                    Asked::Known(record) => (0, PartRecord::Told(Ok(record))),
                };
                parts.push(Part { layer: layer.clone(), generation, record });
            }
        }
        let lookup = LookupNumber(self.next_lookup);
        self.next_lookup += 1;
        let listed = self.listed(key);
        let key = Zeroizing::new(key.to_vec());
        let under_way = UnderWay { key, listed, settled: queries.is_empty(), parts };
        self.lookups.insert(lookup.0, under_way);
        Ok(Queries { lookup, queries })
    }

    /// Takes the answers to all queries of a lookup, in their order. Each layer takes its own
    /// answer, even if the others' are wrong.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is no such lookup or the number
    /// of answers differs from that of its queries; nothing has happened then. The store's errors.
    /// A wrong answer is reported with the value.
    pub fn settle(
        &mut self,
        lookup: LookupNumber,
        answers: &[&[u8]],
        store: &mut impl HintStore,
    ) -> Result<()> {
        let answers: Vec<_> = answers.iter().copied().map(Some).collect();
        self.settle_each(lookup, &answers, store)
    }

    /// Gives up a lookup if one of its layers was replaced so long ago that it no longer answers:
    /// pass `None` for each of that layer's answers. The answers of all layers in charge are
    /// needed, because later lookups build on them.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is no such lookup, the number
    /// of answers differs from that of its queries, or an answer of a layer in charge is missing:
    /// send that query again. The store's errors.
    pub fn abandon(
        &mut self,
        lookup: LookupNumber,
        answers: &[Option<&[u8]>],
        store: &mut impl HintStore,
    ) -> Result<()> {
        self.settle_each(lookup, answers, store)?;
        self.lookups.remove(&lookup.0);
        self.drop_replaced(store);
        Ok(())
    }

    fn settle_each(
        &mut self,
        lookup: LookupNumber,
        answers: &[Option<&[u8]>],
        store: &mut impl HintStore,
    ) -> Result<()> {
        let Self { lookups, layers, view, .. } = self;
        let under_way = lookups.get_mut(&lookup.0).filter(|lookup| !lookup.settled);
        let under_way = under_way.ok_or_else(no_lookup)?;
        // The answers to each query, side by side.
        let (mut rest, mut of_parts) = (answers, Vec::new());
        for part in &under_way.parts {
            let servers = match (&part.record, layers.get(&part.layer.span)) {
                (PartRecord::Sent(_), Some(layer)) => layer.servers(),
                _ => 0,
            };
            let (own, others) = rest.split_at_checked(servers).ok_or_else(other_number)?;
            let own: Option<Vec<&[u8]>> = own.iter().copied().collect();
            if own.is_none() && view.layers.contains_key(&part.layer.span) {
                return Err(Error::api_misuse(
                    "the answer of a layer in charge is missing; send its query again",
                ));
            }
            of_parts.push(own);
            rest = others;
        }
        if !rest.is_empty() {
            return Err(other_number());
        }
        under_way.settled = true;
        let mut stored = Ok(());
        for (part, own) in under_way.parts.iter_mut().zip(of_parts) {
            let span = part.layer.span;
            let gone = PartRecord::Told(Err(no_answer()));
            part.record = match (std::mem::replace(&mut part.record, gone), own) {
                (PartRecord::Sent(pending), Some(own)) => {
                    let Some(layer) = layers.get_mut(&span) else { continue };
                    let client = layer.client(part.generation);
                    match client.and_then(|client| client.recover(pending, &own)) {
                        Ok(Recovered::Record(record)) => PartRecord::Told(Ok(record)),
                        Ok(Recovered::Settled { id, change, record }) => {
                            stored = stored.and(store.settled(span, part.generation, &change));
                            record.map_or(PartRecord::Waiting(id), PartRecord::Told)
                        }
                        Err(error) => PartRecord::Told(Err(error)),
                    }
                }
                (PartRecord::Sent(_), None) => continue,
                (told, _) => told,
            };
        }
        self.tell_waiting();
        self.drop_replaced(store);
        stored
    }

    /// The value of the key that was looked up; `None` inside if the key has none. Returned once,
    /// when the lookup is settled and, for some schemes, earlier ones too.
    ///
    /// # Errors
    /// If the answer of any layer is wrong, whether the value is in that layer or in another: a
    /// different outcome would tell a server which layer holds it.
    pub fn take(&mut self, lookup: LookupNumber) -> Option<Result<Option<Record>>> {
        let told = |part: &Part| matches!(part.record, PartRecord::Told(_));
        self.lookups.get(&lookup.0).filter(|of| of.settled && of.parts.iter().all(told))?;
        let UnderWay { key, listed, parts, .. } = self.lookups.remove(&lookup.0)?;
        Some(newest(&key, listed, parts))
    }

    /// The number of changes that this client knows of.
    pub fn changes(&self) -> u64 {
        self.view.changes
    }

    /// The layers in charge, the oldest first: those that a lookup asks.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = &Arc<LayerDescription>> {
        self.view.layers.values()
    }

    /// Whether all layers in charge can be queried.
    pub fn is_ready(&self) -> bool {
        let ready = |span| self.layers.get(span).is_some_and(PreparedLayer::is_ready);
        !self.view.layers.is_empty() && self.view.layers.keys().all(ready)
    }

    /// A digest of the table as this client knows it. With several servers,
    /// [each](super::LayeredServer::version) must report the same digest before a lookup: otherwise
    /// they answer for different tables.
    pub fn version(&self) -> [u8; 32] {
        let list = self.view.list.iter().map(|(number, change)| (*number, &**change));
        version(self.table, self.view.layers.values().map(|layer| &**layer), list)
    }

    /// Loads stored hints: a generation of a layer, and what `store` logged of it. Call it for each
    /// generation that was not forgotten, in their order, before fetching anything due. Returns the
    /// queries without an answer: send them again, byte for byte, and give their answers to
    /// [`settle_again`](Self::settle_again).
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the layer is unknown or has this
    /// generation or a later one already; [`Blame::Corrupted`](privet_core::Blame::Corrupted) if
    /// the stored data does not fit it; the store's errors.
    pub fn restore(
        &mut self,
        layer: Span,
        generation: u64,
        bytes: Zeroizing<Vec<u8>>,
        store: &mut impl HintStore,
    ) -> Result<Vec<(ReservationId, Sendable)>> {
        self.layer(layer)?.restore(generation, bytes, store)
    }

    /// Takes the answers to queries that were sent before a restart. Their lookups ended with the
    /// earlier process, so the values are dropped.
    ///
    /// # Errors
    /// If there is no such reservation, or the answers cannot belong to it; the store's errors.
    pub fn settle_again(
        &mut self,
        layer: Span,
        generation: u64,
        id: ReservationId,
        answers: &[&[u8]],
        store: &mut impl HintStore,
    ) -> Result<()> {
        let Some(hints) = self.layer(layer)?.hints_of(generation) else {
            return Err(Error::api_misuse("the layer has no hints of this generation"));
        };
        if let Recovered::Settled { change, .. } = hints.settle(id, answers)? {
            hints.take_record(id);
            store.settled(layer, generation, &change)?;
        }
        Ok(())
    }

    fn layer(&mut self, span: Span) -> Result<&mut PreparedLayer> {
        let layer = self.layers.get_mut(&span);
        layer.ok_or_else(|| Error::api_misuse("this client knows of no such layer"))
    }

    /// The key's entry in the list. Always reads the whole list.
    fn listed(&self, key: &[u8]) -> Option<Option<Record>> {
        let mut newest: Option<&KeyChange> = None;
        for change in self.view.list.values() {
            if change.key == key {
                newest = Some(change);
            }
        }
        newest.map(|change| change.value.clone().map(Zeroizing::new))
    }

    fn tell_waiting(&mut self) {
        let waiting = self.lookups.values_mut().flat_map(|lookup| &mut lookup.parts);
        for part in waiting {
            if let PartRecord::Waiting(id) = part.record
                && let Some(layer) = self.layers.get_mut(&part.layer.span)
                && let Some(hints) = layer.hints_of(part.generation)
                && let Some(record) = hints.take_record(id)
            {
                part.record = PartRecord::Told(record);
            }
        }
    }

    /// Drops replaced layers and used-up generations once no lookup needs them.
    fn drop_replaced(&mut self, store: &mut impl HintStore) {
        let Self { view, layers, lookups, .. } = self;
        let in_use = |span: Span, generation: Option<u64>| {
            lookups.values().flat_map(|lookup| &lookup.parts).any(|part| {
                part.layer.span == span
                    && generation.is_none_or(|of| of == part.generation)
                    && !matches!(part.record, PartRecord::Told(_))
            })
        };
        let gone = |span: &Span, _: &mut PreparedLayer| {
            !view.layers.contains_key(span)
                && !view.coming.contains_key(span)
                && !in_use(*span, None)
        };
        for (_, layer) in layers.extract_if(.., gone) {
            layer.forget(store);
        }
        for (span, layer) in layers {
            layer.forget_used(|generation| in_use(*span, Some(generation)), store);
        }
    }
}

/// The newest entry of the key: the list's, or that of the newest layer that has one. Always looks
/// into all of them.
fn newest(key: &[u8], listed: Option<Option<Record>>, parts: Vec<Part>) -> Result<Option<Record>> {
    let (mut newest, mut wrong) = (None, None);
    for of_layer in parts.chunk_by(|part, next| Arc::ptr_eq(&part.layer, &next.layer)) {
        match held_in(key, of_layer) {
            Ok(held) => newest = held.or(newest),
            Err(error) => wrong = wrong.or(Some(error)),
        }
    }
    match wrong {
        Some(error) => Err(error),
        None => Ok(listed.or(newest).flatten()),
    }
}

/// A layer's entry for a key, if it has one: `parts` are all its records in which the key may lie.
fn held_in(key: &[u8], parts: &[Part]) -> Result<Option<Option<Record>>> {
    let Some(Part { layer, .. }) = parts.first() else { return Ok(None) };
    let mut records = Vec::with_capacity(parts.len());
    for part in parts {
        match &part.record {
            PartRecord::Told(Ok(record)) => records.push(record.as_slice()),
            PartRecord::Told(Err(error)) => return Err(error.clone()),
            PartRecord::Sent(_) | PartRecord::Waiting(_) => return Err(no_lookup()),
        }
    }
    let Some(held) = layer.key_map.find(key, records)?.map(Zeroizing::new) else { return Ok(None) };
    let value = read_held(&held).ok_or_else(|| {
        Error::integrity("a layer holds something that is neither a value nor a tombstone")
    })?;
    Ok(Some(value.map(|value| Zeroizing::new(value.to_vec()))))
}

fn no_answer() -> Error {
    Error::unavailable("a layer was replaced before it answered; look the key up again")
}

fn other_number() -> Error {
    Error::api_misuse("a lookup needs one answer to each of its queries, and no more")
}

fn no_lookup() -> Error {
    Error::api_misuse("there is no such lookup, or it was settled before")
}
