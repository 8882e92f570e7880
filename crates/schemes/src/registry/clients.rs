//! Clients of any scheme.

use super::rehearsal::{HintedRehearsal, Rehearsal, StatelessRehearsal};
use super::{SchemePlan, step};
use crate::contract::{
    Ahead, AnswerOf, HintedClient, LocalClient, Message, Offline, ParametersOf, Preparation,
    QueryMessage, QueryOf, Record, ReservationId, StatelessClient, Supply,
};
use crate::offline::StreamConsumer;
use crate::reservation::{Lookup, Pending, Prepared, Reservation, Sendable};
use privet_core::{Error, RecordIndex, Result, SecretRng, TableDelta, TableIdentity, TableShape};
use std::any::Any;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A client of any scheme.
pub trait ErasedClient: Send {
    /// The scheme it queries.
    fn plan(&self) -> &SchemePlan;

    /// Prepares one lookup. A client with single-use hints takes its hint out of use in memory at
    /// once, so that two concurrent lookups never share one. The reservation's journal record makes
    /// that durable before anything is sent. The lookup's coins are drawn
    /// [apart](SecretRng::apart).
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the system gives no entropy, and
    /// the errors of the scheme. Then there is no query.
    fn prepare(&mut self, index: &RecordIndex, rng: &mut SecretRng) -> Result<Prepared>;

    /// Makes blanks for [`prepare_from`](Self::prepare_from), if queries can be made ahead.
    fn blanks(&self) -> Option<BlankMaker> {
        None
    }

    /// As [`prepare`](Self::prepare), in less time: of a blank of the [maker](Self::blanks).
    fn prepare_from(
        &mut self,
        _blank: Blank,
        _index: &RecordIndex,
        _rng: &mut SecretRng,
    ) -> Result<Prepared> {
        Err(not_made_ahead())
    }

    /// The result of the answers to a lookup's queries: one answer from each server, in order.
    fn recover(&mut self, pending: Pending, answers: &[&[u8]]) -> Result<Recovered>;

    /// The single-use hints, if the client has any.
    fn hints(&mut self) -> Option<&mut dyn ErasedHints> {
        None
    }

    /// A rehearsal of lookups with this client, which never makes a real one again. `None`: its
    /// lookups ask no server, so the time that they take need not be hidden.
    fn into_rehearsal(self: Box<Self>) -> Option<Box<dyn Rehearsal>>;
}

fn not_made_ahead() -> Error {
    Error::api_misuse("queries of this scheme are not made ahead")
}

/// All of a query but its index, for a client of any scheme. See [`Ahead`].
pub struct Blank(Box<dyn Any + Send>);

impl Blank {
    /// A blank, as its maker made it.
    pub fn of(blank: impl Send + 'static) -> Self {
        Self(Box::new(blank))
    }
}

/// Makes blanks, on any thread. Each blank's coins are drawn [apart](SecretRng::apart). A clone of
/// the process has the blanks that are made already, so none is kept for long.
pub type BlankMaker = Arc<dyn Fn(&mut SecretRng) -> Result<Blank> + Send + Sync>;

/// The result of one lookup.
pub enum Recovered {
    /// The record: of a scheme without state.
    Record(Record),
    /// The record and a state change, already applied in memory: of a scheme with single-use hints.
    /// The change belongs in the journal, but nothing waits for it: until it is there, a client
    /// that restarts finds the lookup unfinished and sends the same queries again.
    Settled {
        /// The reservation that is settled.
        id: ReservationId,
        /// The state change. Secret.
        change: Zeroizing<Vec<u8>>,
        /// The record. `None`: it waits for the answer of another reservation; call
        /// [`ErasedHints::take_record`] after each reservation that is settled.
        record: Option<Result<Record>>,
    },
}

/// The state of a client with single-use hints. [`HintedClient`]
/// explains the methods.
pub trait ErasedHints {
    /// Applies a change from the journal, in the order in which changes were written.
    ///
    /// # Errors
    /// As [`HintedClient::apply`]; and
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it follows edits of another version
    /// of the table than that of the hints.
    fn apply(&mut self, change: &[u8]) -> Result<()>;

    /// Settles a reservation whose queries were sent by an earlier process: [`Recovered::Settled`],
    /// with the change applied in memory.
    fn settle(&mut self, id: ReservationId, answers: &[&[u8]]) -> Result<Recovered>;

    /// The record of a settled reservation, once it is known.
    fn take_record(&mut self, id: ReservationId) -> Option<Result<Record>>;

    /// Reservations that are not settled, oldest first.
    fn open(&self) -> Vec<ReservationId>;

    /// How far the generation is used up.
    fn supply(&self) -> Supply;

    /// Whether every record waits for the answers to all earlier queries. See the method of
    /// [`HintedClient`].
    fn waits_for_all_answers(&self) -> bool;

    /// The number that the work of the next lookup is proportional to. See
    /// [`HintedClient::search_len`].
    fn search_len(&self) -> u64;

    /// Whether hints never run out. If so, the client [`condense`](Self::condense)s the next
    /// generation from this one, and asks no server for it.
    fn is_endless(&self) -> bool;

    /// The next generation, once this one is used up and nothing is open. See
    /// [`HintedClient::condense`].
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the generation is not used up, a
    /// lookup is open, or hints do run out.
    fn condense(&self) -> Result<Zeroizing<Vec<u8>>>;

    /// The identity of the table in the version of the hints.
    fn table(&self) -> TableIdentity;

    /// Whether the hints can follow edits that lead to a table of shape `after`. If not, the client
    /// prepares others for it. See [`HintedClient::follows`].
    fn follows(&self, after: TableShape) -> bool;

    /// Follows edits from `before`, the [table](Self::table) of the hints, to `after`, and returns
    /// the change for the journal. There is one delta from each server, in order. See
    /// [`HintedClient::delta_change`]. Afterwards [`plan`](ErasedClient::plan) is that of `after`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the hints belong to another version
    /// than `before` (so that no edit is applied twice, or before its turn), or `after` is not a
    /// later version of the same table; and the errors of [`HintedClient::delta_change`].
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if the servers send different edits. But
    /// a client that [`verifies`](Self::verifies) then ends: the result is the change that ends it,
    /// and [`ended`](Self::ended) is the error.
    fn apply_deltas(
        &mut self,
        before: &TableIdentity,
        after: &TableIdentity,
        deltas: &[TableDelta],
    ) -> Result<Zeroizing<Vec<u8>>>;

    /// Ends the hints of a client that [`verifies`](Self::verifies), because servers send different
    /// updates of the table. Returns the change that ends them; afterwards [`ended`](Self::ended)
    /// is the error. This is for a difference outside the edits: two different signed updates of
    /// one version.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if the client does not verify answers,
    /// or has ended already.
    fn disagree(&mut self) -> Result<Zeroizing<Vec<u8>>>;

    /// Whether the client verifies answers. If so, it makes each query only when the one before is
    /// settled. See [`HintedClient::verifies`].
    fn verifies(&self) -> bool;

    /// Why the client will never make a query again: an answer or an update did not fit what the
    /// servers had agreed on.
    fn ended(&self) -> Option<Error>;
}

/// A generation of hints in preparation. [`Preparation`] explains the methods.
pub trait ErasedPreparation: StreamConsumer + Send {
    /// What is needed to go on after a restart. Secret.
    fn checkpoint(&self) -> Zeroizing<Vec<u8>>;

    /// The offset at which a checkpoint taken now would go on.
    fn checkpoint_offset(&self) -> u64;

    /// The generation, once [`finish`](StreamConsumer::finish) has succeeded. Secret.
    fn generation(&self) -> Result<Zeroizing<Vec<u8>>>;

    /// The request whose whole reply is to be absorbed next. `None` if hints are made from the
    /// streamed table, or if nothing is left to ask. Secret.
    fn request(&mut self) -> Option<Zeroizing<Vec<u8>>>;
}

impl<P: Preparation + Send> ErasedPreparation for P {
    fn checkpoint(&self) -> Zeroizing<Vec<u8>> {
        Preparation::checkpoint(self)
    }

    fn checkpoint_offset(&self) -> u64 {
        Preparation::checkpoint_offset(self)
    }

    fn generation(&self) -> Result<Zeroizing<Vec<u8>>> {
        Preparation::generation(self)
    }

    fn request(&mut self) -> Option<Zeroizing<Vec<u8>>> {
        self.next_request()
    }
}

/// A client without state.
pub(crate) struct StatelessHost<C: StatelessClient> {
    plan: SchemePlan,
    parameters: ParametersOf<C>,
    client: C,
    /// `Some` if queries can be made ahead.
    ahead: Option<MadeAhead<C>>,
}

/// The additional functions of a client whose queries can be made ahead.
struct MadeAhead<C: StatelessClient> {
    maker: fn(&C) -> BlankMaker,
    copy: fn(&Blank) -> Option<Blank>,
    fill: fn(&C, Blank, &RecordIndex) -> Result<QueriesOf<C>>,
}

/// The query for each server, and what the client keeps.
type QueriesOf<C> = (Vec<QueryOf<C>>, <C as StatelessClient>::Pending);

impl<C: StatelessClient> StatelessHost<C> {
    pub(super) fn new(plan: SchemePlan, parameters: ParametersOf<C>, client: C) -> Self {
        Self { plan, parameters, client, ahead: None }
    }

    /// The same, with queries that can be made ahead.
    pub(super) fn ahead(mut self) -> Self
    where
        C: Ahead,
    {
        fn maker<C: Ahead>(client: &C) -> BlankMaker {
            let make = client.blank_maker();
            Arc::new(move |rng| rng.apart(|rng| Ok(Blank::of(make(rng)))))
        }
        fn fill<C: Ahead>(client: &C, blank: Blank, index: &RecordIndex) -> Result<QueriesOf<C>> {
            let blank = blank.0.downcast::<C::Blank>();
            let foreign = |_| Error::api_misuse("a query was made ahead for another scheme");
            client.fill(*blank.map_err(foreign)?, index)
        }
        fn copy<C: Ahead>(blank: &Blank) -> Option<Blank> {
            Some(Blank::of(C::copy_to_rehearse(blank.0.downcast_ref()?)))
        }
        self.ahead = Some(MadeAhead { maker: maker::<C>, copy: copy::<C>, fill: fill::<C> });
        self
    }

    pub(super) fn blanks(&self) -> Option<BlankMaker> {
        self.ahead.as_ref().map(|ahead| (ahead.maker)(&self.client))
    }

    /// The blank for the next rehearsal, whose queries are never sent: a copy of `first`, which is
    /// made if there is none yet. Making each anew would take long, and shows nothing.
    pub(super) fn blank_to_rehearse(
        &self,
        first: &mut Option<Blank>,
        rng: &mut SecretRng,
    ) -> Result<Option<Blank>> {
        let Some(ahead) = &self.ahead else { return Ok(None) };
        if first.is_none() {
            *first = Some((ahead.maker)(&self.client)(rng)?);
        }
        Ok(first.as_ref().and_then(ahead.copy))
    }

    /// The queries for `index`, of `blank` if there is one.
    pub(super) fn lookup(
        &self,
        blank: Option<Blank>,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<(Sendable, C::Pending)> {
        let asked = match (blank, &self.ahead) {
            (None, _) => rng.apart(|rng| self.client.query(index, rng)),
            (Some(blank), Some(ahead)) => (ahead.fill)(&self.client, blank, index),
            (Some(_), None) => Err(not_made_ahead()),
        };
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
        let (sendable, pending) = self.lookup(None, index, rng)?;
        Ok(Prepared::Ready(Lookup { sendable, pending: Pending::new(pending) }))
    }

    fn blanks(&self) -> Option<BlankMaker> {
        StatelessHost::blanks(self)
    }

    fn prepare_from(
        &mut self,
        blank: Blank,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<Prepared> {
        let (sendable, pending) = self.lookup(Some(blank), index, rng)?;
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

/// A client with single-use hints.
pub(crate) struct HintedHost<C> {
    pub(crate) plan: SchemePlan,
    pub(crate) table: TableIdentity,
    pub(crate) client: C,
}

impl<C: HintedClient<Scheme: Offline>> HintedHost<C> {
    /// Follows the table to its next version.
    fn follow(&mut self, after: TableIdentity, change: &[u8]) -> Result<()> {
        self.client.apply(change)?;
        self.table = after;
        self.plan = SchemePlan::of::<C::Scheme>(self.client.parameters());
        Ok(())
    }
}

impl<C: HintedClient<Scheme: Offline> + Send + 'static> ErasedClient for HintedHost<C> {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn prepare(&mut self, index: &RecordIndex, rng: &mut SecretRng) -> Result<Prepared> {
        let reserved = rng.apart(|rng| self.client.reserve(index, rng))?;
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

impl<C: HintedClient<Scheme: Offline>> ErasedHints for HintedHost<C> {
    fn apply(&mut self, change: &[u8]) -> Result<()> {
        match step::decode(&self.table, change)? {
            None => self.client.apply(change),
            Some((after, change)) => self.follow(after, change),
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

    fn waits_for_all_answers(&self) -> bool {
        self.client.waits_for_all_answers()
    }

    fn search_len(&self) -> u64 {
        self.client.search_len()
    }

    fn is_endless(&self) -> bool {
        C::ENDLESS
    }

    fn condense(&self) -> Result<Zeroizing<Vec<u8>>> {
        self.client.condense()
    }

    fn apply_deltas(
        &mut self,
        before: &TableIdentity,
        after: &TableIdentity,
        deltas: &[TableDelta],
    ) -> Result<Zeroizing<Vec<u8>>> {
        step::check(&self.table, before, after)?;
        let Some((delta, others)) =
            deltas.split_first().filter(|_| deltas.len() == self.plan.servers)
        else {
            return Err(Error::api_misuse(format!(
                "edits must come from {} servers, but came from {}",
                self.plan.servers,
                deltas.len()
            )));
        };
        if others.iter().all(|other| other == delta) {
            if delta.shape_after() != after.shape {
                return Err(Error::api_misuse("the edits lead to a table of another shape"));
            }
            let change = self.client.delta_change(delta)?;
            self.follow(*after, &change)?;
            return Ok(step::encode(before, after, &change));
        }
        self.disagree()
    }

    fn disagree(&mut self) -> Result<Zeroizing<Vec<u8>>> {
        let Some(change) = self.client.disagreement() else {
            return Err(Error::integrity(
                "the servers sent different edits of the same table; at least one of them does not tell the truth",
            ));
        };
        if let Some(error) = self.client.ended() {
            return Err(error);
        }
        self.client.apply(&change)?;
        Ok(change)
    }

    fn verifies(&self) -> bool {
        self.client.verifies()
    }

    fn ended(&self) -> Option<Error> {
        self.client.ended()
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
