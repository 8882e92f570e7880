//! Lookups: from a target to queries, from answers to a value.

use super::agreement::server_name;
use super::calls::Purpose;
use super::hints::{Turn, Waiting, ended_before};
use super::interface::{ChosenTable, ExchangeId, LookupId, Output, Persist, Request, Target};
use super::lookups::{Answer, Next};
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
        let Some(next) = self.lookups.next_waiting(fetches) else { return false };
        let Next { id: lookup, target, candidate, begins } = next;
        if begins.len() > 1 {
            self.groups.begin(&begins);
        }
        #[cfg(test)]
        self.takes_time(Work::Query, &target);
        let (Phase::Ready(client), Some(records)) = (&mut self.phase, &self.records) else {
            return false;
        };
        let prepared = match refused {
            Some(error) => Err(error),
            None => records
                .locate(&target, candidate)
                .and_then(|index| client.prepare(&index, &mut self.parts.rng)),
        };
        match prepared {
            Ok(Prepared::Ready(prepared)) => self.ask(lookup, prepared, now),
            // From the table that is kept here: there is nobody to ask, and nothing that a server could see.
            Ok(Prepared::Known(record)) => {
                self.lookups.end(lookup);
                self.tell(lookup, &target, Ok(record));
            }
            Ok(Prepared::Reserved(reservation)) => {
                let (id, record) = (reservation.id(), reservation.record().clone());
                self.hints.reserved(lookup, id);
                self.lookups.commits(lookup, reservation);
                self.outputs.push_back(Output::Persist(Persist::Journal { lookup, id, record }));
            }
            Err(error) => {
                self.lookup_failed(lookup, error);
                self.timetable.end_unseen(Work::Query, search_len, 1);
                return true;
            }
        }
        self.timetable.end_query(search_len);
        true
    }

    /// Sends a lookup's queries, one to each server.
    pub(super) fn ask(
        &mut self,
        lookup: LookupId,
        Lookup { sendable, pending }: Lookup,
        now: Duration,
    ) {
        if sendable.queries().len() != self.options.servers {
            let error = Error::api_misuse("the scheme made queries for another number of servers");
            self.hints.given_up(lookup);
            return self.lookup_failed(lookup, error);
        }
        self.lookups.asks(lookup, pending, self.options.servers);
        self.send(&sendable, Purpose::Answer(lookup), now);
        self.keep_sent_for(lookup, sendable);
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
            Purpose::Answer(lookup) => self.lookups.settled(lookup, call.server, answer),
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
            // It may concern every reservation since. Which ones depends on what was looked up.
            let used = self.hinted().map_or(0, |hints| hints.supply().used);
            let since = used.saturating_sub(id.0);
            self.settle_resent(id, answers);
            self.drop_unwanted();
            return u32::try_from(since).unwrap_or(u32::MAX).max(1);
        }
        // What was read is told after what can be sent: by a scheme that verifies, the next query
        // waited for it to be settled.
        let Some(answered) = self.lookups.next_answered() else {
            return u32::from(self.tell_waiting());
        };
        let (lookup, target, pending, answers) = answered.into_answers();
        let Phase::Ready(client) = &mut self.phase else {
            let error = match &self.phase {
                Phase::Over(error) => error.clone(),
                _ => Error::api_misuse("an answer came before the session was ready"),
            };
            self.fetch_failed(lookup, error);
            return 1;
        };
        let recovered = answers.and_then(|answers| {
            let answers: Vec<&[u8]> = answers.iter().map(|answer| answer.as_slice()).collect();
            client.recover(pending, &answers).map_err(where_the_record_leads)
        });
        let id = self.hints.given_up(lookup);
        // It may concern every lookup that waits for it.
        let waiting = id.map_or(0, |id| self.hints.waiting_since(id));
        match recovered {
            Ok(Recovered::Record(record)) => self.tell(lookup, &target, Ok(record)),
            Ok(Recovered::Settled { id, change, record }) => {
                if self.keep_settled(id, change, Some(lookup)) {
                    self.hints.wait_for_older(id, Waiting { lookup, target, record });
                }
            }
            Err(error) if error.blame() == Blame::Integrity => {
                let error = for_this_session(&error);
                self.fetch_failed(lookup, error.clone());
                self.fail(error);
            }
            Err(error) => self.tell(lookup, &target, Err(error)),
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
        let Some(id) = self.hints.next_to_tell() else { return false };
        let Some(hints) = self.hinted() else { return false };
        let resolved = hints.take_record(id);
        if let Some(Waiting { lookup, target, record }) = self.hints.waits_no_more(id) {
            let record = record.or(resolved);
            if record.is_none() {
                self.hints.unwanted(id, true);
            }
            let record = record.unwrap_or_else(|| Err(unanswered_before()));
            self.tell(lookup, &target, record);
        }
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

    fn tell(&mut self, lookup: LookupId, target: &Target, record: Result<Record>) {
        let candidate = self.groups.candidate_of(lookup);
        #[cfg(test)]
        self.takes_time(Work::Answer, target);
        let piece = record.and_then(|record| match &self.records {
            Some(records) => records.piece(target, candidate, &record),
            None => Err(ended_before()),
        });
        self.fetched_record(lookup, target, piece);
    }

    pub(super) fn lookup_failed(&mut self, lookup: LookupId, error: Error) {
        if self.lookups.end(lookup) {
            self.fetch_failed(lookup, error);
        }
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
