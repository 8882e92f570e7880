//! Rehearsals: lookups that are computed and never sent, to learn how long a lookup takes.
//!
//! A client turns into a rehearsal for good: there is no way back to one that makes queries, and
//! what a rehearsal would have sent is erased where it was made. So a client with single-use hints
//! is loaded once more for it, and the hints of the one that makes lookups stay as they are.

use super::clients::StatelessHost;
use crate::contract::{
    AnswerOf, HintedClient, Message, QueryMessage, Record, ReservationId, StatelessClient,
    Updatable,
};
use crate::reservation::Reservation;
use privet_core::{Error, RecordIndex, Result, SecretRng};

/// A client whose lookups are for nothing.
pub trait Rehearsal: Send {
    /// Does what preparing a lookup of `index` takes, and drops what would be sent.
    ///
    /// # Errors
    /// As [`ErasedClient::prepare`](super::ErasedClient::prepare):
    /// [`Blame::Exhausted`](privet_core::Blame::Exhausted) if single-use hints are used up, and
    /// another copy of them is needed.
    fn prepare(&mut self, index: &RecordIndex, rng: &mut SecretRng) -> Result<()>;

    /// Does what reading the answers to the last lookup takes, whose bytes may all be zero.
    ///
    /// # Errors
    /// As [`ErasedClient::recover`](super::ErasedClient::recover). Where answers are verified,
    /// these do not pass; the work is that of verifying them all the same.
    fn recover(&mut self, answers: &[&[u8]]) -> Result<()>;
}

/// A client with single-use hints that can be rehearsed with.
pub(crate) trait Rehearsed: HintedClient {
    /// Settles a lookup with answers that no server gave.
    fn settle_rehearsed(&mut self, id: ReservationId, answers: &[AnswerOf<Self>]) -> Result<()> {
        let change = self.settle(id, answers)?;
        self.apply(&change)
    }
}

/// Of a client without state.
pub(super) struct StatelessRehearsal<C: StatelessClient> {
    host: StatelessHost<C>,
    pending: Option<C::Pending>,
}

impl<C: StatelessClient> StatelessRehearsal<C> {
    pub(super) fn new(host: StatelessHost<C>) -> Self {
        Self { host, pending: None }
    }
}

impl<C: StatelessClient + Send> Rehearsal for StatelessRehearsal<C> {
    fn prepare(&mut self, index: &RecordIndex, rng: &mut SecretRng) -> Result<()> {
        let (lookup, pending) = self.host.lookup(index, rng)?;
        drop(lookup);
        self.pending = Some(pending);
        Ok(())
    }

    fn recover(&mut self, answers: &[&[u8]]) -> Result<()> {
        let pending = self.pending.take().ok_or_else(no_lookup)?;
        self.host.read(pending, answers).map(drop)
    }
}

/// Of a client with single-use hints.
pub(super) struct HintedRehearsal<C> {
    client: C,
    open: Option<ReservationId>,
}

impl<C> HintedRehearsal<C> {
    pub(super) fn new(client: C) -> Self {
        Self { client, open: None }
    }
}

impl<C: Updatable + Rehearsed + Send> Rehearsal for HintedRehearsal<C> {
    fn prepare(&mut self, index: &RecordIndex, rng: &mut SecretRng) -> Result<()> {
        let reserved = self.client.reserve(index, rng);
        rng.rekey();
        let reserved = reserved?;
        self.client.apply(&reserved.change)?;
        let reservation = Reservation::new(reserved.encoded(QueryMessage::encode_query));
        self.open = Some(reservation.id());
        Ok(())
    }

    fn recover(&mut self, answers: &[&[u8]]) -> Result<()> {
        let id = self.open.take().ok_or_else(no_lookup)?;
        let parameters = self.client.parameters();
        let answers: Vec<AnswerOf<C>> = answers
            .iter()
            .map(|bytes| Message::decode(parameters, bytes))
            .collect::<Result<_>>()?;
        self.client.settle_rehearsed(id, &answers)?;
        let record: Option<Result<Record>> = self.client.take_record(id);
        record.transpose().map(drop)
    }
}

fn no_lookup() -> Error {
    Error::api_misuse("a rehearsal reads the answers to a lookup that it has prepared")
}
