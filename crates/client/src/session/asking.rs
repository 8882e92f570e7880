//! Lookups: from a target to queries, from answers to a value.

use super::agreement::server_name;
use super::calls::Purpose;
use super::hints::{Turn, ended_before};
use super::interface::{ChosenTable, ExchangeId, FetchId, Output, Persist, Request};
use super::lookups::Answer;
use super::query::Query;
use super::records::Records;
use super::timetable::Work;
use super::verified::for_this_session;
use super::{Phase, Session};
use privet_core::{Blame, Error, Result};
use privet_schemes::contract::{Record, ReservationId};
use privet_schemes::registry::Recovered;
use privet_schemes::reservation::{Lookup, Prepared, Sendable};
use privet_wire::AnswerResponse;
use std::time::Duration;
use zeroize::Zeroizing;

/// Asking.
impl Session {
    /// Asks for the next waiting lookup, if its turn has come, or reads it from the table that is kept. Returns whether anything happened.
    pub(super) fn ask_next(&mut self, now: Duration) -> bool {
        if !matches!(self.phase, Phase::Ready(_)) {
            return self.describes_again(now);
        }
        if self.resend_next(now) {
            return true;
        }
        // A lookup of several records that has begun comes to its end first.
        let begins = !self.lookups.is_amid_one();
        if begins && self.moves_on(now) {
            return !matches!(self.phase, Phase::Ready(_));
        }
        if !self.lookups.may_ask(self.options.in_flight) {
            return false;
        }
        if begins && self.asks_for_versions(now) {
            return false;
        }
        let refused = match self.turn() {
            Turn::Go => None,
            Turn::Wait => return false,
            Turn::Switch => {
                self.switch_between_lookups();
                return true;
            }
            Turn::SendAgain => return true,
            Turn::Condense => {
                let condensed = self.condense();
                self.timetable.end_opening();
                match condensed {
                    Ok(()) => return true,
                    Err(error) => Some(error),
                }
            }
            Turn::Refuse(error) => {
                self.lookup_refused(now);
                Some(error)
            }
        };
        let search_len = self.hinted().map_or(1, |hints| hints.search_len());
        let Some(fetches) = self.records.as_ref().map(Records::fetches) else { return false };
        let Some(fetch) = self.lookups.begin_next(fetches) else { return false };
        let Some((target, candidate)) = self.lookups.wanted(fetch) else { return false };
        #[cfg(test)]
        self.takes_time(Work::Query, target);
        let (Phase::Ready(client), Some(records)) = (&mut self.phase, &self.records) else {
            return false;
        };
        let prepared = match refused {
            Some(error) => Err(error),
            None => records
                .locate(target, candidate)
                .and_then(|index| client.prepare(&index, &mut self.parts.rng)),
        };
        match prepared {
            Ok(Prepared::Ready(prepared)) => self.ask(fetch, prepared, now),
            // From the table that is kept here: there is nobody to ask, and nothing that a server could see.
            Ok(Prepared::Known(record)) => self.tell(fetch, Ok(record)),
            Ok(Prepared::Reserved(reservation)) => {
                let (id, record) = (reservation.id(), reservation.record().clone());
                self.lookups.commits(fetch, reservation);
                self.outputs.push_back(Output::Persist(Persist::Journal { fetch, id, record }));
            }
            Err(error) => {
                self.fetch_ended(fetch, Err(error));
                self.timetable.end_unseen(Work::Query, search_len, 1);
                return true;
            }
        }
        self.timetable.end_query(search_len);
        true
    }

    /// Sends a fetch's queries, one to each server.
    pub(super) fn ask(
        &mut self,
        fetch: FetchId,
        Lookup { sendable, pending }: Lookup,
        now: Duration,
    ) {
        if sendable.queries().len() != self.options.servers {
            let error = Error::api_misuse("the scheme made queries for another number of servers");
            return self.fetch_ended(fetch, Err(error));
        }
        self.lookups.asks(fetch, pending, self.options.servers);
        self.send(&sendable, Purpose::Answer(fetch), now);
        self.keep_sent_for(fetch, sendable);
        self.lookup_sent(now);
    }

    /// Sends the next query of an earlier process again, if its turn has come.
    fn resend_next(&mut self, now: Duration) -> bool {
        let Some((id, sendable)) = self.hints.resends.next_waiting() else { return false };
        self.send(&sendable, Purpose::Resend(id), now);
        self.keep_sent(id, sendable);
        true
    }

    fn send(&mut self, sendable: &Sendable, purpose: Purpose, now: Duration) {
        let Some(chosen) = self.chosen.as_deref() else { return };
        let ChosenTable { identity, scheme, .. } = chosen;
        let queries = Query::all(sendable, identity, scheme.parameter_digest);
        for (server, query) in queries.into_iter().enumerate() {
            let request = Request::Answer(query);
            self.calls.start(server, purpose, request, now, &mut self.outputs);
        }
    }

    pub(super) fn answered(&mut self, exchange: ExchangeId, response: AnswerResponse) {
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
            Ok(Zeroizing::new(response.answer.to_vec()))
        });
        let answer = answer.map_err(|error| match self.options.servers {
            1 => error,
            servers => error.within(server_name(call.server, servers)),
        });
        match call.purpose {
            Purpose::Answer(fetch) => {
                self.lookups.server_answered(fetch, call.server, answer);
            }
            Purpose::Resend(id) => self.hints.resends.settled(id, call.server, answer),
            _ => {}
        }
    }
}

/// Reading.
impl Session {
    /// Reads one record from its answers, or tells one that was read. Returns whether there was
    /// anything.
    pub(super) fn read_next(&mut self) -> bool {
        if matches!(self.phase, Phase::Ending { .. }) {
            return false;
        }
        let pieces_of_work = self.read_or_tell();
        if pieces_of_work > 0 {
            self.timetable.end_unseen(Work::Answer, 1, pieces_of_work);
        }
        pieces_of_work > 0
    }

    /// Returns how many pieces of work it was.
    fn read_or_tell(&mut self) -> u32 {
        if let Some((id, answers)) = self.hints.resends.next_answered() {
            // It may concern every reservation since; and when all are over, their records are
            // erased. Which ones depends on what was looked up.
            let used = self.hinted().map_or(0, |hints| hints.supply().used);
            let first = self.hints.resends.first();
            self.settle_resent(id, answers);
            self.drop_unwanted();
            let since = if self.hints.resends.is_empty() { first.unwrap_or(id) } else { id };
            let concerned = used.saturating_sub(since.0);
            return u32::try_from(concerned).unwrap_or(u32::MAX).max(1);
        }
        let Phase::Ready(client) = &mut self.phase else { return 0 };
        // What was read is told after what can be sent: by a scheme that verifies, the next query
        // waited for it to be settled.
        let Some((fetch, pending, answers)) = self.lookups.next_answered() else {
            return u32::from(self.tell_waiting());
        };
        let recovered = answers.and_then(|answers| {
            let answers: Vec<&[u8]> = answers.iter().map(|answer| answer.as_slice()).collect();
            client.recover(pending, &answers).map_err(where_the_record_leads)
        });
        // It may concern every lookup that waits for it.
        let id = self.lookups.reservation_of(fetch);
        let waiting = id.map_or(0, |id| self.lookups.settled_since(id));
        match recovered {
            Ok(Recovered::Record(record)) => self.tell(fetch, Ok(record)),
            Ok(Recovered::Settled { id, change, record }) => {
                if self.keep_settled(id, change, Some(fetch)) {
                    self.lookups.settles(fetch, record);
                }
            }
            Err(error) if error.blame() == Blame::Integrity => {
                let error = for_this_session(&error);
                self.fetch_ended(fetch, Err(error.clone()));
                self.fail(error);
            }
            Err(error) => self.tell(fetch, Err(error)),
        }
        u32::try_from(waiting).map_or(u32::MAX, |waiting| waiting.saturating_add(1))
    }

    /// An answer to a query of an earlier process. If it is none, the reservation stays as it is, for the next session.
    fn settle_resent(&mut self, id: ReservationId, answers: Vec<Result<Answer>>) {
        let Ok(answers) = answers.into_iter().collect::<Result<Vec<_>>>() else { return };
        let answers: Vec<&[u8]> = answers.iter().map(|answer| answer.as_slice()).collect();
        let Some(hints) = self.hinted() else { return };
        if let Ok(Recovered::Settled { id, change, record }) = hints.settle(id, &answers)
            && self.keep_settled(id, change, None)
        {
            self.hints.unwanted(id, record.is_none());
        }
    }

    /// Tells the record of a settled reservation: of the next in the order in which they were made,
    /// when all older ones are answered or given up. Some could be told sooner, those that do not
    /// depend on an older one's answer; but then a server that holds an answer back could see, from
    /// a user who acts on what comes, which depend on it. Returns whether there was one.
    fn tell_waiting(&mut self) -> bool {
        let Some((id, fetch)) = self.next_to_tell() else { return false };
        let Some(hints) = self.hinted() else { return false };
        let resolved = hints.take_record(id);
        let record = self.lookups.take_settled(fetch).or(resolved);
        if record.is_none() {
            self.hints.unwanted(id, true);
        }
        self.tell(fetch, record.unwrap_or_else(|| Err(unanswered_before())));
        true
    }

    /// Tells all that can be told: the session is over.
    pub(super) fn tell_all_waiting(&mut self) {
        let mut told = 0;
        while self.tell_waiting() {
            told += 1;
        }
        if told > 0 {
            self.timetable.end_unseen(Work::Answer, 1, told);
        }
    }

    fn tell(&mut self, fetch: FetchId, record: Result<Record>) {
        let Some((target, candidate)) = self.lookups.wanted(fetch) else { return };
        #[cfg(test)]
        self.takes_time(Work::Answer, target);
        let piece = record.and_then(|record| match &self.records {
            Some(records) => records.piece(target, candidate, &record),
            None => Err(ended_before()),
        });
        self.fetch_ended(fetch, piece);
    }
}

/// Which part of a hint is read to make sense of an answer follows from the record. So does what
/// comes of a disk that cannot be read there.
fn where_the_record_leads(error: Error) -> Error {
    match error.blame() {
        Blame::Unavailable => Error::selective(format!(
            "{}. Do not look it up again because of that: it may tell the server about the record",
            error.message()
        ))
        .caused_by(error),
        _ => error,
    }
}

/// What becomes of a lookup that waits for an older reservation's answer when that will not come in this session.
fn unanswered_before() -> Error {
    Error::selective(
        "the server did not answer an earlier query, and what this one was to bring cannot be told without that answer. Do not look it up again because of that: a server that held the answer back would learn about the record",
    )
}
