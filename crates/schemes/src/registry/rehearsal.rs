//! Rehearsals: lookups that are computed but never sent, to measure how long a lookup takes.
//!
//! A client that becomes a rehearsal stays one: it can never make queries again, and the queries of
//! a rehearsal are erased where they were made. So a client with single-use hints is loaded a
//! second time for it. The hints of the client that makes lookups do not change.

use super::clients::{Blank, StatelessHost};
use crate::contract::{
    AnswerOf, HintedClient, Message, QueryMessage, Record, ReservationId, StatelessClient,
};
use crate::reservation::Reservation;
use privet_core::{Error, RecordIndex, Result, SecretRng};

/// A client whose lookups are never sent.
pub trait Rehearsal: Send {
    /// Does the part of a lookup's work that is done ahead, before the index is known.
    ///
    /// # Errors
    /// As a [`BlankMaker`](super::BlankMaker).
    fn make_blank(&mut self, _rng: &mut SecretRng) -> Result<()> {
        Ok(())
    }

    /// Does the work of preparing a lookup of `index`, and drops the queries.
    ///
    /// # Errors
    /// As [`ErasedClient::prepare`](super::ErasedClient::prepare):
    /// [`Blame::Exhausted`](privet_core::Blame::Exhausted) if single-use hints are used up. Then
    /// another copy of them is needed.
    fn prepare(&mut self, index: &RecordIndex, rng: &mut SecretRng) -> Result<()>;

    /// Does the work of reading the answers to the last lookup. The answers' bytes may all be zero.
    ///
    /// # Errors
    /// As [`ErasedClient::recover`](super::ErasedClient::recover). If answers are verified, these
    /// fail. The work is the same as for right ones.
    fn recover(&mut self, answers: &[&[u8]]) -> Result<()>;
}

/// The rehearsal of a client without state.
pub(super) struct StatelessRehearsal<C: StatelessClient> {
    host: StatelessHost<C>,
    /// Of what all blanks are copies.
    first_blank: Option<Blank>,
    blank: Option<Blank>,
    pending: Option<C::Pending>,
}

impl<C: StatelessClient> StatelessRehearsal<C> {
    pub(super) fn new(host: StatelessHost<C>) -> Self {
        Self { host, first_blank: None, blank: None, pending: None }
    }
}

impl<C: StatelessClient + Send> Rehearsal for StatelessRehearsal<C> {
    fn make_blank(&mut self, rng: &mut SecretRng) -> Result<()> {
        self.blank = self.host.blank_to_rehearse(&mut self.first_blank, rng)?;
        Ok(())
    }

    fn prepare(&mut self, index: &RecordIndex, rng: &mut SecretRng) -> Result<()> {
        let (lookup, pending) = self.host.lookup(self.blank.take(), index, rng)?;
        drop(lookup);
        self.pending = Some(pending);
        Ok(())
    }

    fn recover(&mut self, answers: &[&[u8]]) -> Result<()> {
        let pending = self.pending.take().ok_or_else(no_lookup)?;
        self.host.read(pending, answers).map(drop)
    }
}

/// The rehearsal of a client with single-use hints.
pub(super) struct HintedRehearsal<C> {
    client: C,
    open: Option<ReservationId>,
}

impl<C> HintedRehearsal<C> {
    pub(super) fn new(client: C) -> Self {
        Self { client, open: None }
    }
}

impl<C: HintedClient + Send> Rehearsal for HintedRehearsal<C> {
    fn prepare(&mut self, index: &RecordIndex, rng: &mut SecretRng) -> Result<()> {
        let reserved = rng.apart(|rng| self.client.reserve(index, rng))?;
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
