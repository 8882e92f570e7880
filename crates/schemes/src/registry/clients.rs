//! Clients of any scheme.

use super::SchemePlan;
use super::rehearsal::{HintedRehearsal, Rehearsal, Rehearsed, StatelessRehearsal};
use super::step::HintsStep;
use crate::contract::{
    AnswerOf, Asked, AskingPreparation, Endless, LocalClient, Message, Offline, ParametersOf,
    Preparation, QueryMessage, Record, ReservationId, StatelessClient, Supply, Updatable,
    Verifying,
};
use crate::offline::StreamConsumer;
use crate::reservation::{Lookup, Pending, Prepared, Reservation, Sendable};
use privet_core::{Error, RecordIndex, Result, SecretRng, TableDelta, TableIdentity, TableShape};
use zeroize::Zeroizing;

/// A client of any scheme.
pub trait ErasedClient: Send {
    /// The scheme it queries.
    fn plan(&self) -> &SchemePlan;

    /// Prepares one lookup. A client with single-use hints takes its hint out of use in memory at
    /// once, so that two lookups under way never share one; the reservation's journal record makes
    /// that durable before anything is sent. `rng` has a [new key](SecretRng::rekey) on return, so
    /// that the lookup's coins cannot be computed from it any more.
    fn prepare(&mut self, index: &RecordIndex, rng: &mut SecretRng) -> Result<Prepared>;

    /// What the answers to a lookup's queries, one of each server in order, come to.
    fn recover(&mut self, pending: Pending, answers: &[&[u8]]) -> Result<Recovered>;

    /// The single-use hints, if the client has such.
    fn hints(&mut self) -> Option<&mut dyn ErasedHints> {
        None
    }

    /// A rehearsal of lookups with this client, which never makes one again. `None`: its lookups
    /// ask nobody, so there is nothing to be hidden in how long they take.
    fn into_rehearsal(self: Box<Self>) -> Option<Box<dyn Rehearsal>>;
}

/// What came of one lookup.
pub enum Recovered {
    /// The record: of a scheme without state.
    Record(Record),
    /// The record and a state change, already applied in memory: of a scheme with single-use hints.
    /// The change belongs into the journal, but nothing waits for it: until it is there, a restart
    /// finds the lookup unfinished and sends the same queries again.
    Settled {
        /// The reservation that is settled.
        id: ReservationId,
        /// The state change. Secret.
        change: Zeroizing<Vec<u8>>,
        /// The record. `None`: it waits for the answer of another reservation; ask
        /// [`ErasedHints::take_record`] after each that is settled.
        record: Option<Result<Record>>,
    },
}

/// The state of a client with single-use hints. See [`HintedClient`](crate::contract::HintedClient)
/// for what each does.
pub trait ErasedHints {
    /// Applies a change from the journal, in the order in which changes were written.
    ///
    /// # Errors
    /// As [`HintedClient::apply`](crate::contract::HintedClient::apply); and
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it follows edits of another version
    /// of the table than the hints belong to.
    fn apply(&mut self, change: &[u8]) -> Result<()>;

    /// Settles a reservation whose queries were sent by an earlier process: [`Recovered::Settled`],
    /// with the change applied in memory.
    fn settle(&mut self, id: ReservationId, answers: &[&[u8]]) -> Result<Recovered>;

    /// The record of a settled reservation, once it can be told.
    fn take_record(&mut self, id: ReservationId) -> Option<Result<Record>>;

    /// Reservations that are not settled, oldest first.
    fn open(&self) -> Vec<ReservationId>;

    /// How far the generation is used up.
    fn supply(&self) -> Supply;

    /// What the work of the next lookup grows with. See
    /// [`HintedClient::search_len`](crate::contract::HintedClient::search_len).
    fn search_len(&self) -> u64;

    /// Whether hints never run out: then the next generation is [`condense`](Self::condense)d from
    /// this one, and nobody is asked for it.
    fn is_endless(&self) -> bool;

    /// The next generation, once this one is used up and nothing is open. See [`Endless`].
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is not, or hints do run out.
    fn condense(&self) -> Result<Zeroizing<Vec<u8>>>;

    /// The table in the version that the hints belong to.
    fn table(&self) -> TableIdentity;

    /// Whether the hints can follow edits that make the table one of the shape `after`. If not,
    /// others are prepared for that. See [`Updatable::follows`].
    fn follows(&self, after: TableShape) -> bool;

    /// Follows edits that make `before`, the [table](Self::table) that the hints belong to, the
    /// table `after`, as every server tells them in order; and returns the change for the journal.
    /// See [`Updatable`]. From then on [`plan`](ErasedClient::plan) is that of `after`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the hints belong to another version
    /// than `before` (so that no edit is applied twice, or before its turn), or `after` is not a
    /// later one of the same table; beside what [`Updatable`] says.
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if the servers tell different edits. Of
    /// a client that [`verifies`](Self::verifies), that has a change as well, one that ends it:
    /// then the result is that change, and [`ended`](Self::ended) the error.
    fn apply_deltas(
        &mut self,
        before: &TableIdentity,
        after: &TableIdentity,
        deltas: &[TableDelta],
    ) -> Result<Zeroizing<Vec<u8>>>;

    /// Ends the hints of a client that [`verifies`](Self::verifies), because servers tell different
    /// updates of the table: returns the change that does it, and [`ended`](Self::ended) is the
    /// error from then on. For a difference that is not in the edits: two signed updates of one
    /// version.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if the client does not verify, or has
    /// ended already.
    fn disagree(&mut self) -> Result<Zeroizing<Vec<u8>>>;

    /// Whether answers are verified: then queries go strictly one after the other, each when the
    /// one before is settled. See [`Verifying`].
    fn verifies(&self) -> bool;

    /// Why no query will ever be made again: an answer or an update did not belong to what the
    /// servers had agreed on.
    fn ended(&self) -> Option<Error>;
}

/// A generation of hints in the making. See [`Preparation`] for what each does.
pub trait ErasedPreparation: StreamConsumer + Send {
    /// What is needed to go on after a restart. Secret.
    fn checkpoint(&self) -> Zeroizing<Vec<u8>>;

    /// Where a checkpoint taken now would go on.
    fn checkpoint_offset(&self) -> u64;

    /// The generation, once [`finish`](StreamConsumer::finish) has succeeded. Secret.
    fn generation(&self) -> Result<Zeroizing<Vec<u8>>>;

    /// The request whose reply is to be absorbed next, whole: if hints are asked for rather than
    /// made from the streamed table, and not everything was. Secret.
    fn request(&mut self) -> Option<Zeroizing<Vec<u8>>>;
}

/// A generation in the making.
pub(crate) struct PreparationHost<P> {
    preparation: P,
    /// Bytes of all replies, if a server is asked.
    asked_len: u64,
    request: fn(&mut P) -> Option<Zeroizing<Vec<u8>>>,
}

impl<P: Preparation> PreparationHost<P> {
    /// One that consumes the table.
    pub(crate) fn streaming(preparation: P) -> Self {
        Self { preparation, asked_len: 0, request: |_| None }
    }

    /// One that asks a server, whose replies have `asked_len` bytes in all.
    pub(crate) fn asking(preparation: P, asked_len: u64) -> Self
    where
        P: AskingPreparation,
        P::Scheme: Asked,
    {
        let request = |preparation: &mut P| Some(Zeroizing::new(preparation.request().encode()));
        Self { preparation, asked_len, request }
    }
}

impl<P: Preparation> StreamConsumer for PreparationHost<P> {
    fn next_offset(&self) -> u64 {
        self.preparation.next_offset()
    }

    fn absorb(&mut self, offset: u64, chunk: &[u8]) -> Result<()> {
        self.preparation.absorb(offset, chunk)
    }

    fn finish(&mut self) -> Result<()> {
        self.preparation.finish()
    }
}

impl<P: Preparation + Send> ErasedPreparation for PreparationHost<P> {
    fn checkpoint(&self) -> Zeroizing<Vec<u8>> {
        self.preparation.checkpoint()
    }

    fn checkpoint_offset(&self) -> u64 {
        self.preparation.checkpoint_offset()
    }

    fn generation(&self) -> Result<Zeroizing<Vec<u8>>> {
        self.preparation.generation()
    }

    fn request(&mut self) -> Option<Zeroizing<Vec<u8>>> {
        if self.next_offset() >= self.asked_len {
            return None;
        }
        (self.request)(&mut self.preparation)
    }
}

/// A client without state.
pub(crate) struct StatelessHost<C: StatelessClient> {
    pub(crate) plan: SchemePlan,
    pub(crate) parameters: ParametersOf<C>,
    pub(crate) client: C,
}

impl<C: StatelessClient> StatelessHost<C> {
    pub(crate) fn lookup(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<(Sendable, C::Pending)> {
        let asked = self.client.query(index, rng);
        rng.rekey();
        let (queries, pending) = asked?;
        let queries = queries.iter().map(QueryMessage::encode_query).collect();
        Ok((Sendable::stateless(queries), pending))
    }

    pub(crate) fn read(&self, pending: C::Pending, answers: &[&[u8]]) -> Result<Record> {
        let answers: Vec<AnswerOf<C>> = answers
            .iter()
            .map(|bytes| Message::decode(&self.parameters, bytes))
            .collect::<Result<_>>()?;
        self.client.recover(pending, &answers)
    }
}

impl<C: StatelessClient + Send + 'static> ErasedClient for StatelessHost<C>
where
    ParametersOf<C>: 'static,
{
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn prepare(&mut self, index: &RecordIndex, rng: &mut SecretRng) -> Result<Prepared> {
        let (sendable, pending) = self.lookup(index, rng)?;
        Ok(Prepared::Ready(Lookup { sendable, pending: Pending::new(pending) }))
    }

    fn recover(&mut self, pending: Pending, answers: &[&[u8]]) -> Result<Recovered> {
        let pending = pending.into_inner::<C::Pending>()?;
        self.read(pending, answers).map(Recovered::Record)
    }

    fn into_rehearsal(self: Box<Self>) -> Option<Box<dyn Rehearsal>> {
        Some(Box::new(StatelessRehearsal::new(*self)))
    }
}

/// How a client writes its state down as a generation.
type Condense<C> = fn(&C) -> Result<Zeroizing<Vec<u8>>>;

/// A client with single-use hints.
pub(crate) struct HintedHost<C: Updatable> {
    plan: SchemePlan,
    table: TableIdentity,
    client: C,
    /// If hints never run out.
    condense: Option<Condense<C>>,
    /// If answers are verified.
    verifies: Option<Verifies<C>>,
}

/// What a client that verifies answers has beside the others.
struct Verifies<C> {
    disagreement: fn(&C) -> Zeroizing<Vec<u8>>,
    ended: fn(&C) -> Option<Error>,
}

impl<C: Updatable> HintedHost<C> {
    /// One whose hints run out.
    pub(crate) fn new(plan: SchemePlan, table: TableIdentity, client: C) -> Self {
        Self { plan, table, client, condense: None, verifies: None }
    }

    /// One whose hints never run out.
    pub(crate) fn endless(plan: SchemePlan, table: TableIdentity, client: C) -> Self
    where
        C: Endless,
    {
        Self { condense: Some(C::condense), ..Self::new(plan, table, client) }
    }

    /// Its answers are verified.
    pub(crate) fn verifying(mut self) -> Self
    where
        C: Verifying,
    {
        self.verifies = Some(Verifies { disagreement: C::disagreement, ended: C::ended });
        self
    }
}

impl<C: Updatable> HintedHost<C>
where
    C::Scheme: Offline,
{
    /// Follows the table to its next version.
    fn follow(&mut self, step: &HintsStep, change: &[u8]) -> Result<()> {
        self.client.apply(change)?;
        self.table = step.after;
        self.plan = SchemePlan::of::<C::Scheme>(self.client.parameters());
        Ok(())
    }
}

impl<C: Updatable + Rehearsed + Send + 'static> ErasedClient for HintedHost<C>
where
    C::Scheme: Offline,
{
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn prepare(&mut self, index: &RecordIndex, rng: &mut SecretRng) -> Result<Prepared> {
        let reserved = self.client.reserve(index, rng);
        rng.rekey();
        let reserved = reserved?;
        self.client.apply(&reserved.change)?;
        Ok(Prepared::Reserved(Reservation::new(reserved.encoded(QueryMessage::encode_query))))
    }

    fn recover(&mut self, pending: Pending, answers: &[&[u8]]) -> Result<Recovered> {
        let id = pending.into_inner::<ReservationId>()?;
        self.settle(id, answers)
    }

    fn hints(&mut self) -> Option<&mut dyn ErasedHints> {
        Some(self)
    }

    fn into_rehearsal(self: Box<Self>) -> Option<Box<dyn Rehearsal>> {
        Some(Box::new(HintedRehearsal::new(self.client)))
    }
}

impl<C: Updatable> ErasedHints for HintedHost<C>
where
    C::Scheme: Offline,
{
    fn apply(&mut self, change: &[u8]) -> Result<()> {
        match HintsStep::split_off(&self.table, change)? {
            None => self.client.apply(change),
            Some((step, change)) => self.follow(&step, change),
        }
    }

    fn table(&self) -> TableIdentity {
        self.table
    }

    fn follows(&self, after: TableShape) -> bool {
        self.client.follows(after)
    }

    fn settle(&mut self, id: ReservationId, answers: &[&[u8]]) -> Result<Recovered> {
        let answers: Vec<AnswerOf<C>> = answers
            .iter()
            .map(|bytes| Message::decode(self.client.parameters(), bytes))
            .collect::<Result<_>>()?;
        let change = self.client.settle(id, &answers)?;
        self.client.apply(&change)?;
        let record = self.client.take_record(id);
        Ok(Recovered::Settled { id, change, record })
    }

    fn take_record(&mut self, id: ReservationId) -> Option<Result<Record>> {
        self.client.take_record(id)
    }

    fn open(&self) -> Vec<ReservationId> {
        self.client.open()
    }

    fn supply(&self) -> Supply {
        self.client.supply()
    }

    fn search_len(&self) -> u64 {
        self.client.search_len()
    }

    fn is_endless(&self) -> bool {
        self.condense.is_some()
    }

    fn condense(&self) -> Result<Zeroizing<Vec<u8>>> {
        let condense = self.condense.ok_or_else(|| {
            Error::api_misuse("hints that run out are prepared anew, not condensed")
        })?;
        condense(&self.client)
    }

    fn apply_deltas(
        &mut self,
        before: &TableIdentity,
        after: &TableIdentity,
        deltas: &[TableDelta],
    ) -> Result<Zeroizing<Vec<u8>>> {
        let step = HintsStep::new(&self.table, before, after)?;
        let Some((delta, others)) =
            deltas.split_first().filter(|_| deltas.len() == self.plan.servers)
        else {
            return Err(Error::api_misuse(format!(
                "{} servers tell of edits, {} did",
                self.plan.servers,
                deltas.len()
            )));
        };
        if others.iter().all(|other| other == delta) {
            if delta.shape_after() != after.shape {
                return Err(Error::api_misuse("the edits lead to a table of another shape"));
            }
            let change = self.client.delta_change(delta)?;
            self.follow(&step, &change)?;
            return Ok(step.before_change(&change));
        }
        self.disagree()
    }

    fn disagree(&mut self) -> Result<Zeroizing<Vec<u8>>> {
        let Some(verifies) = &self.verifies else {
            return Err(Error::integrity(
                "the servers tell different edits of the same table; at least one of them does not tell the truth",
            ));
        };
        if let Some(error) = (verifies.ended)(&self.client) {
            return Err(error);
        }
        let change = (verifies.disagreement)(&self.client);
        self.client.apply(&change)?;
        Ok(change)
    }

    fn verifies(&self) -> bool {
        self.verifies.is_some()
    }

    fn ended(&self) -> Option<Error> {
        self.verifies.as_ref().and_then(|verifies| (verifies.ended)(&self.client))
    }
}

/// A client that holds the table.
pub(crate) struct LocalHost<C> {
    pub(crate) plan: SchemePlan,
    pub(crate) client: C,
}

impl<C: LocalClient + Send> ErasedClient for LocalHost<C> {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn prepare(&mut self, index: &RecordIndex, _rng: &mut SecretRng) -> Result<Prepared> {
        self.client.record(index).map(Prepared::Known)
    }

    fn recover(&mut self, _pending: Pending, _answers: &[&[u8]]) -> Result<Recovered> {
        Err(Error::api_misuse("a client that holds the table sends no queries and gets no answers"))
    }

    fn into_rehearsal(self: Box<Self>) -> Option<Box<dyn Rehearsal>> {
        None
    }
}
