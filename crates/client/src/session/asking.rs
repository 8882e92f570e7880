//! Lookups: from a target to queries, from answers to a value.

use super::boundaries::Boundaries;
use super::calls::Purpose;
use super::hints::NextLookup;
use super::interface::{ChosenTable, Errand, ExchangeId, FetchId, Output, Persist, Request};
use super::open::{Open, OpenStage};
use super::preparation::Preparing;
use super::query::Query;
use super::shared::Shared;
use super::timetable::Work;
use super::versions::Moving;
use privet_core::Error;
use privet_schemes::contract::Supply;
use privet_schemes::reservation::{Lookup, Prepared, Sendable};
use privet_wire::AnswerResponse;
use std::time::Duration;
use zeroize::Zeroizing;

/// With this many unanswered reservations, no more are made: something is wrong with the server,
/// and each takes memory.
const UNFINISHED_LIMIT: usize = 256;

/// The outcome of asking for the next lookup.
pub(super) enum AskOutcome {
    Nothing,
    Something,
    /// A later version of the table exists, and the session can go on with it.
    ToOpenAgain,
}

/// Asking.
impl Open {
    /// Asks for the next waiting lookup, if its turn has come, or reads it from the kept table.
    pub(super) fn ask_next(&mut self, shared: &mut Shared, now: Duration) -> AskOutcome {
        if !self.is_ready() {
            return AskOutcome::Nothing;
        }
        if self.resend_next(shared, now) {
            return AskOutcome::Something;
        }
        // A lookup of several records that has begun ends before the next begins.
        let begins = !shared.lookups.is_amid_one();
        if begins {
            match self.moves_on(shared) {
                Moving::Stays => {}
                Moving::Waits => return AskOutcome::Nothing,
                Moving::Now => return AskOutcome::ToOpenAgain,
            }
        }
        if !shared.lookups.may_ask(shared.options.in_flight) {
            return AskOutcome::Nothing;
        }
        if begins && self.asks_for_versions(shared, now) {
            return AskOutcome::Nothing;
        }
        if begins && let Some(refresh) = shared.lookups.take_refresh() {
            let table = self.chosen.identity;
            shared.outputs.push_back(Errand::Refreshed { refresh, table }.into());
            return AskOutcome::Something;
        }
        let refused = match self.next_lookup(shared) {
            NextLookup::Go => None,
            NextLookup::Wait => return AskOutcome::Nothing,
            NextLookup::Switch => {
                self.switch(shared, false);
                return AskOutcome::Something;
            }
            NextLookup::AwaitHints => {
                self.prepare(shared, now);
                return AskOutcome::Nothing;
            }
            NextLookup::SendAgain => return AskOutcome::Something,
            NextLookup::Condense => {
                let condensed = self.condense(shared);
                shared.timetable.end_opening();
                match condensed {
                    Ok(()) => return AskOutcome::Something,
                    Err(error) => Some(error),
                }
            }
            NextLookup::Refuse(error) => Some(error),
        };
        match self.begin_next(shared, refused, now) {
            true => AskOutcome::Something,
            false => AskOutcome::Nothing,
        }
    }

    /// Begins the next fetch, which ends at once if it is `refused`. Returns whether there was one.
    fn begin_next(&mut self, shared: &mut Shared, refused: Option<Error>, now: Duration) -> bool {
        let search_len = self.hinted().map_or(1, |hints| hints.search_len());
        let (OpenStage::Ready(client), Some(records)) = (&mut self.stage, &self.records) else {
            return false;
        };
        let Some(fetch) = shared.lookups.begin_next(records.fetches()) else { return false };
        let Some((target, candidate)) = shared.lookups.wanted(fetch) else { return false };
        // The index has no part in a blank, so its time belongs to no slot.
        let blank = match (refused, &self.blanks) {
            (Some(error), _) => Err(error),
            (None, None) => Ok(None),
            (None, Some(make)) => {
                let made = shared.options.shelf.as_ref().and_then(|shelf| shelf.take());
                made.map_or_else(|| make(&mut shared.parts.rng), Ok).map(Some)
            }
        };
        let now = if let Ok(Some(_)) = blank { shared.timetable.end_public() } else { now };
        shared.takes_time(Work::Query, target);
        let rng = &mut shared.parts.rng;
        let prepared = blank.and_then(|blank| {
            let index = records.locate(target, candidate)?;
            match blank {
                Some(blank) => client.prepare_from(blank, &index, rng),
                None => client.prepare(&index, rng),
            }
        });
        match prepared {
            Ok(Prepared::Ready(prepared)) => self.ask(shared, fetch, prepared, now),
            // From the kept table: no query leaves, and no server can see anything.
            Ok(Prepared::Known(record)) => self.tell(shared, fetch, Ok(record)),
            Ok(Prepared::Reserved(reservation)) => {
                let (id, record) = (reservation.id(), reservation.record().clone());
                shared.lookups.mark_committing(fetch, reservation);
                shared.outputs.push_back(Output::Persist(Persist::Journal { fetch, id, record }));
            }
            Err(error) => {
                self.fetch_ended(shared, fetch, Err(error));
                shared.timetable.end_unseen(Work::Query, search_len, 1);
                return true;
            }
        }
        shared.timetable.end_query(search_len);
        true
    }

    /// Whether the next lookup can have a hint.
    fn next_lookup(&mut self, shared: &Shared) -> NextLookup {
        let Some(hints) = self.hinted() else { return NextLookup::Go };
        let (supply, open, endless) = (hints.supply(), hints.open().len(), hints.is_endless());
        let verifies = hints.verifies();
        if let Some(error) = &self.hints.broken {
            return NextLookup::Refuse(error.clone());
        }
        if supply.left() == 0 && endless {
            return self.next_at_the_end(shared, open);
        }
        if supply.left() == 0 {
            let ready = self.hints.preparing.as_ref().is_some_and(Preparing::is_complete);
            if ready {
                return match self.hints_are_idle(shared) {
                    true => NextLookup::Switch,
                    false => NextLookup::Wait,
                };
            }
            if self.hints.preparing.as_mut().is_some_and(Preparing::demand_all) {
                return NextLookup::AwaitHints;
            }
            return NextLookup::Refuse(Error::exhausted(
                "the hints are used up, and preparing the next ones has just failed, so nothing \
                 was asked; try again",
            ));
        }
        if verifies {
            return self.next_in_strict_order(shared, open);
        }
        // If hints never run out, answers to earlier queries become part of the next hint.
        match self.next_after_unanswered(shared) {
            NextLookup::Go => {}
            other => return other,
        }
        if open.saturating_sub(shared.lookups.reservations_under_way().count()) >= UNFINISHED_LIMIT
        {
            // Some of them are being sent again now.
            if !self.hints.resends.is_empty() {
                return NextLookup::Wait;
            }
            return NextLookup::Refuse(Error::unavailable(format!(
                "{UNFINISHED_LIMIT} earlier queries have never been answered, so no new one is asked; they are sent again at each start of the client: make sure that the server answers, and start again"
            )));
        }
        NextLookup::Go
    }

    /// Sends a fetch's queries, one to each server.
    pub(super) fn ask(
        &mut self,
        shared: &mut Shared,
        fetch: FetchId,
        Lookup { sendable, pending }: Lookup,
        now: Duration,
    ) {
        if sendable.queries().len() != shared.options.servers {
            let error = Error::api_misuse("the scheme made queries for another number of servers");
            return self.fetch_ended(shared, fetch, Err(error));
        }
        shared.lookups.mark_asked(fetch, pending, shared.options.servers);
        self.send(shared, &sendable, Purpose::Answer(fetch), now);
        if let Some(id) = shared.lookups.reservation_of(fetch) {
            self.keep_sent(id, sendable);
        }
        self.lookup_sent(shared, now);
    }

    /// Sends the next query of an earlier process again, if its turn has come.
    fn resend_next(&mut self, shared: &mut Shared, now: Duration) -> bool {
        let Some((id, sendable)) = self.hints.resends.next_waiting() else { return false };
        self.send(shared, &sendable, Purpose::Resend(id), now);
        self.keep_sent(id, sendable);
        true
    }

    fn send(&self, shared: &mut Shared, sendable: &Sendable, purpose: Purpose, now: Duration) {
        let ChosenTable { identity, scheme, .. } = &self.chosen;
        let queries = Query::all(sendable, identity, scheme.parameter_digest);
        for (server, query) in queries.into_iter().enumerate() {
            let request = Request::Answer(query);
            shared.start(Boundaries::NONE, server, purpose, request, now);
        }
    }

    pub(super) fn answered(
        &mut self,
        shared: &mut Shared,
        exchange: ExchangeId,
        response: AnswerResponse,
    ) {
        let Some(call) = shared.calls.answered(exchange) else { return };
        let Request::Answer(request) = &call.request else { return };
        let answer = response.check_belongs_to(request).and_then(|()| {
            let (len, due) = (response.answer.len(), self.chosen.scheme.plan.answer_len);
            if len != due {
                return Err(Error::invalid_message(format!(
                    "an answer has {due} bytes here, the server sent {len}"
                )));
            }
            Ok(Zeroizing::new(response.answer.to_vec()))
        });
        let answer = answer.map_err(|error| shared.caused_by(call.server, error));
        match call.purpose {
            Purpose::Answer(fetch) => {
                shared.lookups.server_answered(fetch, call.server, answer);
            }
            Purpose::Resend(id) => self.hints.resends.settled(id, call.server, answer),
            _ => {}
        }
    }

    /// A lookup's queries are on their way. Now fetch the share of the next generation that is due
    /// with them.
    fn lookup_sent(&mut self, shared: &mut Shared, now: Duration) {
        let supply: Option<Supply> = self.hinted().map(|hints| hints.supply());
        if let (Some(supply), Some(preparing)) = (supply, &mut self.hints.preparing) {
            preparing.lookup_sent(supply);
            self.prepare(shared, now);
        }
    }
}
