//! The client session: everything a client does, without I/O and without a clock.
//!
//! A [`Session`] is a state machine. A *driver* hands it what arrived and what time it is, and does what [`Session::poll`] says: sockets and files, a browser,
//! or a simulator drive the same machine.
//!
//! ```text
//!            handle_message, handle_failure            Transmit, Abandon
//! servers  ────────────────────────────────►         ──────────────────────►  servers
//!            handle_part, handle_persisted   Session   Open, Persist
//! storage  ────────────────────────────────►         ──────────────────────►  storage
//!            lookup, handle_timeout                    Event
//! user     ────────────────────────────────►         ──────────────────────►  user
//! ```
//!
//! It runs through these phases, and lookups may be handed in at any time:
//!
//! ```text
//! describe ─► choose table and scheme ─► compare with the pin ─► layout ─► hint ─► ready: lookups
//!                                                              (each from storage, or what is missing of it from the server)
//! ```
//!
//! # Invariants
//!
//! What a server sees of a client must not depend on what the client looks for. So, whatever servers do:
//!
//! 1. **Bytes out depend only on public parameters, the history's length and coins.** A lookup is one query to each server, of a length fixed by the
//!    parameters, whether its key is there or not.
//! 2. **Traffic after a failed recover equals traffic after a success.** An answer ends its query whatever it holds; nothing is asked again because of what
//!    was or was not in it, and reading records comes after sending.
//! 3. **A repeated or locally known index still sends a well-formed query.** There is no cache and no way around the network: a key whose value the client already
//!    holds (in the layout's public stash) costs the same query as any other, and so does each of several equal keys.
//! 4. **A retry re-sends identical bytes.** A query is fixed once, before it is first sent.
//! 5. **Every message carries table id, epoch and parameter digest, and all servers must agree** on these and on everything else they say of the table. After any
//!    failure a server is asked to describe itself again before it gets another query.
//!
//! # Failures
//!
//! A server that cannot be reached or is busy is tried again, with growing pauses, for as long as [`Patience`] says; a restarted server that tells
//! the same story as before loses no lookup. One that tells another story ends the session
//! ([`Blame::Integrity`]). A lookup that fails otherwise fails alone.

mod calls;
mod choose;
mod interface;
mod lookups;
mod records;
#[cfg(test)]
mod tests;

pub use interface::{
    ChosenTable, Event, ExchangeId, KnownPin, LookupId, Output, Patience, Persist, Request,
    Response, SessionOptions, Target, Value,
};

use crate::state::{PartKey, PartState};
use calls::{Calls, Ended, Purpose};
use choose::{changed_midway, check_pins, choose, pin_of, same};
use lookups::Lookups;
use privet_core::{Blame, Error, Result, SecretRng, TableIdentity};
use privet_kernels::Kernels;
use privet_schemes::contract::Role;
use privet_schemes::offline::{Download, HintSource, OfflinePhase, StreamConsumer};
use privet_schemes::registry::{self, ErasedClient, SchemePlan};
use privet_schemes::reservation::{Lookup, Prepared, Receipt};
use privet_wire::{
    AnswerRequest, AnswerResponse, DescribeRequest, FetchChunk, FetchRequest, PartDescription,
    PartKind, ServerDescription,
};
use records::Records;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Starts a scheme's client: the registry, except in tests.
type StartClient =
    fn(SchemePlan, &TableIdentity, Arc<dyn HintSource>, Kernels) -> Result<Box<dyn ErasedClient>>;

/// A client's side of everything it does with one table. See the [module](self).
pub struct Session {
    options: SessionOptions,
    start_client: StartClient,
    rng: SecretRng,
    calls: Calls,
    lookups: Lookups,
    phase: Phase,
    chosen: Option<Box<ChosenTable>>,
    records: Option<Records>,
    outputs: VecDeque<Output>,
}

enum Phase {
    /// Waits for every server's description.
    Describing(Vec<Option<ServerDescription>>),
    /// Waits to hear what is stored of a part. `again`: the stored part turned out to be damaged once.
    Opening { part: PartKey, again: bool },
    /// Fetches what is missing of a part.
    Fetching { part: PartKey, download: Box<Download> },
    /// Waits for a fetched part to be stored as complete.
    Completing(PartKey),
    /// Looks things up.
    Ready(Box<dyn ErasedClient>),
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
        Self::with_client(options, now, registry::client)
    }

    fn with_client(
        options: SessionOptions,
        now: Duration,
        start_client: StartClient,
    ) -> Result<Self> {
        if options.servers == 0 || options.in_flight == 0 {
            return Err(Error::api_misuse(
                "a session needs at least one server and at least one lookup under way",
            ));
        }
        let mut session = Self {
            start_client,
            rng: SecretRng::from_os()?,
            calls: Calls::new(options.servers, options.patience),
            lookups: Lookups::default(),
            phase: Phase::Describing(vec![None; options.servers]),
            chosen: None,
            records: None,
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

    /// Asks for a value. The outcome is an [`Event`] with the returned id; every lookup gets exactly one.
    pub fn lookup(&mut self, target: Target) -> LookupId {
        match &self.phase {
            Phase::Over(error) => {
                let (lookup, error) = (self.lookups.add_nothing(), repeat(error));
                self.event(Event::LookupFailed { lookup, error });
                lookup
            }
            _ => self.lookups.add(target),
        }
    }

    /// What to do next; `None`: nothing until something is handed in or [`next_timeout`](Self::next_timeout) has come. What can be sent
    /// comes before what only concerns this side.
    pub fn poll(&mut self, now: Duration) -> Option<Output> {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return Some(output);
            }
            if !self.ask_next(now) && !self.read_next() {
                return None;
            }
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), if nothing else happens before.
    pub fn next_timeout(&self) -> Option<Duration> {
        self.calls.next_timeout()
    }

    /// Tells the time.
    pub fn handle_timeout(&mut self, now: Duration) {
        for (exchange, error) in self.calls.due(now, &mut self.outputs) {
            self.handle_failure(exchange, error, now);
        }
    }

    /// A response, or a piece of one, came. Late and repeated ones are ignored.
    pub fn handle_message(&mut self, exchange: ExchangeId, response: Response, now: Duration) {
        let Some(call) = self.calls.waiting_for(exchange) else { return };
        match (call.purpose, response) {
            (Purpose::Describe, Response::Described(description)) => {
                self.described(exchange, description, now)
            }
            (Purpose::Fetch, Response::Chunk(chunk)) => self.chunk(exchange, &chunk, now),
            (Purpose::Fetch, Response::End) => self.stream_ended(exchange, now),
            (Purpose::Answer(lookup), Response::Answered(response)) => {
                self.answered(exchange, lookup, response)
            }
            _ => {
                let error =
                    Error::peer_misbehaved("the server's response does not belong to the request");
                self.handle_failure(exchange, error, now);
            }
        }
    }

    /// An exchange failed: the server could not be reached, or refused, or sent what cannot be valid.
    pub fn handle_failure(&mut self, exchange: ExchangeId, error: Error, now: Duration) {
        if self.everything_arrived(exchange) {
            return self.finish_download(exchange);
        }
        for ended in self.calls.failed(exchange, error, now, &mut self.rng, &mut self.outputs) {
            self.call_ended(ended);
        }
    }

    /// What is stored of the part that was to be opened or completed.
    pub fn handle_part(&mut self, state: PartState, now: Duration) {
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

    /// The journal record of a lookup is durable: `receipt` proves it.
    pub fn handle_persisted(&mut self, lookup: LookupId, receipt: Receipt, now: Duration) {
        let Some(reservation) = self.lookups.committed(lookup) else { return };
        match reservation.commit_with(receipt) {
            Ok(prepared) => self.ask(lookup, prepared, now),
            Err(error) => self.lookup_failed(lookup, error),
        }
    }

    /// The journal record of a lookup may not be durable: its query will not be sent.
    pub fn handle_not_persisted(&mut self, lookup: LookupId, error: Error) {
        if self.lookups.committed(lookup).is_some() {
            self.lookup_failed(lookup, error);
        }
    }

    /// A part or pin could not be kept or read. Ends the session unless it is ready, when it needs no more of storage.
    pub fn handle_storage_failure(&mut self, error: Error) {
        if !matches!(self.phase, Phase::Ready(_)) {
            self.fail(error);
        }
    }
}

/// Before the first lookup.
impl Session {
    fn described(&mut self, exchange: ExchangeId, description: ServerDescription, now: Duration) {
        let Some(call) = self.calls.answered(exchange) else { return };
        let server = call.server;
        if let Some(chosen) = &self.chosen {
            if !same(chosen, &description) {
                let error = changed_midway(chosen, server, &description);
                return self.fail(error);
            }
            for ended in self.calls.trust(server, now, &mut self.outputs) {
                self.call_ended(ended);
            }
            return;
        }
        self.calls.trust(server, now, &mut self.outputs);
        let Phase::Describing(descriptions) = &mut self.phase else { return };
        descriptions[server] = Some(description);
        if let Some(descriptions) = descriptions.iter().cloned().collect::<Option<Vec<_>>>()
            && let Err(error) = self.begin(&descriptions)
        {
            self.fail(error);
        }
    }

    /// Every server has described itself.
    fn begin(&mut self, descriptions: &[ServerDescription]) -> Result<()> {
        let chosen = choose(&self.options, descriptions)?;
        if !self.options.accept_new_table {
            check_pins(&chosen, &self.options.pins)?;
        }
        let pin = pin_of(&chosen);
        for server in 0..self.options.servers {
            let name = chosen.name.clone();
            let known = KnownPin { server, name: name.clone(), pin };
            if !self.options.pins.contains(&known) {
                self.outputs.push_back(Output::Persist(Persist::Pin { server, name, pin }));
            }
        }
        self.event(Event::Described(Box::new(chosen.clone())));
        let layout = part_key(&chosen, PartKind::Layout, chosen.layout);
        self.chosen = Some(Box::new(chosen));
        self.open(layout, false);
        Ok(())
    }

    fn open(&mut self, part: PartKey, again: bool) {
        self.outputs.push_back(Output::Open(part.clone()));
        self.phase = Phase::Opening { part, again };
    }

    fn fetch(&mut self, part: PartKey, download: Box<Download>, now: Duration) {
        let offset = download.next_offset();
        self.progress(&part, offset, false);
        if offset == part.len {
            // Everything had arrived before, only the last step was missing.
            self.phase = Phase::Fetching { part, download };
            return self.complete_download();
        }
        let Some(request) = self.fetch_request(part.kind, offset) else { return };
        self.phase = Phase::Fetching { part, download };
        self.calls.start(0, Purpose::Fetch, request, now, &mut self.outputs);
    }

    fn fetch_request(&self, part: PartKind, offset: u64) -> Option<Request> {
        let ChosenTable { identity, scheme, .. } = self.chosen.as_deref()?;
        let (table, epoch, parameter_digest) =
            (identity.id, identity.epoch, scheme.parameter_digest);
        Some(Request::Fetch(FetchRequest { table, epoch, parameter_digest, part, offset }))
    }

    fn chunk(&mut self, exchange: ExchangeId, chunk: &FetchChunk, now: Duration) {
        let Phase::Fetching { part, download } = &mut self.phase else { return };
        let due = download.next_offset();
        if chunk.offset.saturating_add(chunk.data.len() as u64) <= due {
            // Said already. Does not count as progress, so a server that only repeats itself is given up.
            return;
        }
        if let Err(error) = download.absorb(chunk.offset, &chunk.data) {
            return self.fail(error);
        }
        let (part, done) = (part.clone(), download.next_offset());
        let bytes = chunk.data.to_vec();
        self.outputs.push_back(Output::Persist(Persist::Append {
            part: part.clone(),
            offset: chunk.offset,
            bytes,
        }));
        self.progress(&part, done, true);
        if let Some(rest) = self.fetch_request(part.kind, done) {
            self.calls.progressed(exchange, rest, now);
        }
    }

    fn stream_ended(&mut self, exchange: ExchangeId, now: Duration) {
        if self.everything_arrived(exchange) {
            return self.finish_download(exchange);
        }
        let error = Error::unavailable("the server ended a download before its end");
        self.handle_failure(exchange, error, now);
    }

    /// Whether `exchange` is a download that lacks nothing but its end.
    fn everything_arrived(&self, exchange: ExchangeId) -> bool {
        let fetches =
            self.calls.waiting_for(exchange).is_some_and(|call| call.purpose == Purpose::Fetch);
        matches!(&self.phase, Phase::Fetching { part, download } if fetches && download.next_offset() == part.len)
    }

    fn finish_download(&mut self, exchange: ExchangeId) {
        self.calls.answered(exchange);
        self.complete_download();
    }

    fn complete_download(&mut self) {
        let Phase::Fetching { part, download } = &mut self.phase else { return };
        let (part, finished) = (part.clone(), download.finish());
        match finished {
            Ok(()) => {
                self.outputs.push_back(Output::Persist(Persist::Complete(part.clone())));
                self.phase = Phase::Completing(part);
            }
            Err(error) => {
                self.outputs.push_back(Output::Persist(Persist::Discard(part.clone())));
                self.fail(error.within(format!("the {}", part.kind)));
            }
        }
    }

    /// A part is complete. `last_chance`: if it cannot be read now, asking for it again will not help.
    fn use_part(&mut self, part: PartKey, source: Arc<dyn HintSource>, last_chance: bool) {
        let outcome = match part.kind {
            PartKind::Layout => self.use_layout(&source),
            _ => self.use_hint(source),
        };
        match outcome {
            Err(error) if error.blame() == Blame::Corrupted && !last_chance => {
                self.open(part, true)
            }
            Err(error) => self.fail(error),
            Ok(()) => {}
        }
    }

    fn use_layout(&mut self, source: &Arc<dyn HintSource>) -> Result<()> {
        let Some(chosen) = self.chosen.as_deref() else { return Ok(()) };
        // The wire's limit for layouts bounds this.
        let mut bytes = vec![0; source.len() as usize];
        source.read_at(0, &mut bytes)?;
        self.records = Some(Records::decode(&bytes, chosen.identity.shape)?);
        match (chosen.scheme.plan.offline, chosen.scheme.hint) {
            (OfflinePhase::Nothing, _) => self.use_hint(Arc::new(Vec::new())),
            (OfflinePhase::Download { .. }, Some(hint)) => {
                let part = part_key(chosen, PartKind::Hint, hint);
                self.open(part, false);
                Ok(())
            }
            _ => Err(Error::api_misuse(format!(
                "this version of the client cannot prepare for {}",
                chosen.scheme.plan.scheme
            ))),
        }
    }

    fn use_hint(&mut self, source: Arc<dyn HintSource>) -> Result<()> {
        let Some(chosen) = self.chosen.as_deref() else { return Ok(()) };
        let plan = chosen.scheme.plan.clone();
        let client = (self.start_client)(plan, &chosen.identity, source, self.options.kernels)?;
        self.phase = Phase::Ready(client);
        self.event(Event::Ready);
        Ok(())
    }

    fn progress(&mut self, part: &PartKey, done: u64, fetched: bool) {
        self.event(Event::Progress { part: part.kind, done, total: part.len, fetched });
    }
}

/// Lookups.
impl Session {
    /// Asks for the next waiting lookup, if its turn has come. Returns whether anything happened.
    fn ask_next(&mut self, now: Duration) -> bool {
        let Phase::Ready(client) = &mut self.phase else { return false };
        if self.lookups.under_way() >= self.options.in_flight {
            return false;
        }
        let Some((lookup, target)) = self.lookups.next_waiting() else { return false };
        let Some(records) = &self.records else { return false };
        let prepared =
            records.locate(&target).and_then(|index| client.prepare(&index, &mut self.rng));
        match prepared {
            Ok(Prepared::Ready(prepared)) => self.ask(lookup, prepared, now),
            Ok(Prepared::Reserved(reservation)) => {
                let record = reservation.record().to_vec();
                self.lookups.commits(lookup, reservation);
                self.outputs.push_back(Output::Persist(Persist::Journal { lookup, record }));
            }
            Err(error) => self.lookup_failed(lookup, error),
        }
        true
    }

    /// Sends a lookup's queries, one to each server.
    fn ask(&mut self, lookup: LookupId, Lookup { sendable, pending }: Lookup, now: Duration) {
        let Some(chosen) = self.chosen.as_deref() else { return };
        let queries = sendable.queries();
        if queries.len() != self.options.servers {
            let error = Error::api_misuse("the scheme made queries for another number of servers");
            return self.lookup_failed(lookup, error);
        }
        self.lookups.asks(lookup, pending, queries.len());
        for (server, query) in queries.iter().enumerate() {
            let request = Request::Answer(AnswerRequest {
                table: chosen.identity.id,
                epoch: chosen.identity.epoch,
                parameter_digest: chosen.scheme.parameter_digest,
                role: Role(server as u8),
                query: query.clone().into(),
            });
            self.calls.start(server, Purpose::Answer(lookup), request, now, &mut self.outputs);
        }
    }

    fn answered(&mut self, exchange: ExchangeId, lookup: LookupId, response: AnswerResponse) {
        let Some(call) = self.calls.answered(exchange) else { return };
        let (Some(chosen), Request::Answer(request)) = (self.chosen.as_deref(), &call.request)
        else {
            return;
        };
        let answer = response.check_belongs_to(request).and_then(|()| {
            let (len, due) = (response.answer.len(), chosen.scheme.plan.answer_len);
            if len != due {
                return Err(Error::invalid_message(format!(
                    "an answer has {due} bytes here, the server sent {len}"
                )));
            }
            Ok(response.answer.to_vec())
        });
        self.lookups.settled(lookup, call.server, answer);
    }

    /// Reads one record from its answers. Returns whether there was one.
    fn read_next(&mut self) -> bool {
        let Some(answered) = self.lookups.next_answered() else { return false };
        let (lookup, target, pending, answers) = answered.into_answers();
        let (Phase::Ready(client), Some(records)) = (&mut self.phase, &self.records) else {
            let error = match &self.phase {
                Phase::Over(error) => repeat(error),
                _ => Error::api_misuse("an answer came before the session was ready"),
            };
            self.event(Event::LookupFailed { lookup, error });
            return true;
        };
        let value = answers.and_then(|answers| {
            let answers: Vec<&[u8]> = answers.iter().map(Vec::as_slice).collect();
            let recovered = client.recover(pending, &answers)?;
            if let Some(change) = recovered.completion {
                self.outputs.push_back(Output::Persist(Persist::Completion { lookup, change }));
            }
            records.value(&target, &recovered.record)
        });
        self.event(match value {
            Ok(Some(value)) => Event::Found { lookup, value },
            Ok(None) => Event::NotFound { lookup },
            Err(error) => Event::LookupFailed { lookup, error },
        });
        true
    }

    fn lookup_failed(&mut self, lookup: LookupId, error: Error) {
        if self.lookups.drop(lookup) {
            self.event(Event::LookupFailed { lookup, error });
        }
    }
}

/// Endings.
impl Session {
    fn call_ended(&mut self, Ended { server, purpose, error }: Ended) {
        match purpose {
            Purpose::Answer(lookup) => self.lookups.settled(lookup, server, Err(error)),
            // A server that was given up is asked again when there is something to ask it.
            Purpose::Describe if matches!(self.phase, Phase::Ready(_)) => {}
            Purpose::Describe | Purpose::Fetch => self.fail(error),
        }
    }

    /// The session is over.
    fn fail(&mut self, error: Error) {
        if matches!(self.phase, Phase::Over(_)) {
            return;
        }
        self.calls.abandon_all(&mut self.outputs);
        for lookup in self.lookups.drop_all() {
            self.event(Event::LookupFailed { lookup, error: repeat(&error) });
        }
        self.phase = Phase::Over(repeat(&error));
        self.event(Event::Failed(error));
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }
}

fn part_key(chosen: &ChosenTable, kind: PartKind, part: PartDescription) -> PartKey {
    PartKey { table: chosen.identity, kind, len: part.len, digest: part.digest }
}

/// The same error for somebody else.
fn repeat(error: &Error) -> Error {
    Error::new(error.blame(), error.message())
}
