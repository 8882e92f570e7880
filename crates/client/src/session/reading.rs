//! Reading: from answers to records, and from records to lookups' outcomes.
//!
//! Records that hints brought are told in the order of their queries. If a record was looked up
//! through a hint whose value is still on its way, it must wait for that value. The wait must not
//! show which records those are.

use super::hints::drop_records;
use super::interface::FetchId;
use super::lookups::Answer;
use super::open::{Open, OpenStage};
use super::records::Piece;
use super::shared::Shared;
use super::timetable::Work;
use super::verified::for_this_session;
use privet_core::{Blame, Error, Result};
use privet_schemes::contract::{Record, ReservationId};
use privet_schemes::registry::Recovered;

impl Open {
    /// Reads one record from its answers, or tells one that was read. Returns whether there was
    /// anything.
    ///
    /// # Errors
    /// If an answer fails verification where answers are verified: the session ends.
    pub(super) fn read_next(&mut self, shared: &mut Shared) -> Result<bool> {
        if matches!(self.stage, OpenStage::Ending { .. }) {
            return Ok(false);
        }
        let (pieces_of_work, outcome) = self.read_or_tell(shared);
        if pieces_of_work > 0 {
            shared.timetable.end_unseen(Work::Answer, 1, pieces_of_work);
        }
        outcome.map(|()| pieces_of_work > 0)
    }

    /// Returns how many pieces of work were done.
    fn read_or_tell(&mut self, shared: &mut Shared) -> (u32, Result<()>) {
        if let Some((id, answers)) = self.hints.resends.next_answered() {
            // This may concern every later reservation. When all are over, their records are
            // erased, and which records those are depends on what was looked up.
            let used = self.hinted().map_or(0, |hints| hints.supply().used);
            let first = self.hints.resends.first();
            self.settle_resent(shared, id, answers);
            self.drop_unwanted();
            let since = if self.hints.resends.is_empty() { first.unwrap_or(id) } else { id };
            let concerned = used.saturating_sub(since.0);
            return (u32::try_from(concerned).unwrap_or(u32::MAX).max(1), Ok(()));
        }
        if self.late.is_some() {
            return (0, Ok(()));
        }
        let OpenStage::Ready(client) = &mut self.stage else { return (0, Ok(())) };
        // Records are told after everything that can be sent: by a scheme that verifies, the next
        // query waited for the settling of this one.
        let Some((fetch, pending, answers)) = shared.lookups.next_answered() else {
            return (u32::from(self.tell_waiting(shared)), Ok(()));
        };
        let recovered = answers.and_then(|answers| {
            let answers: Vec<&[u8]> = answers.iter().map(|answer| answer.as_slice()).collect();
            client.recover(pending, &answers).map_err(as_selective_failure)
        });
        // This may concern every lookup that waits for it.
        let id = shared.lookups.reservation_of(fetch);
        let waiting = id.map_or(0, |id| shared.lookups.settled_since(id));
        let pieces_of_work =
            u32::try_from(waiting).map_or(u32::MAX, |waiting| waiting.saturating_add(1));
        match recovered {
            Ok(Recovered::Record(record)) => self.tell(shared, fetch, Ok(record)),
            Ok(Recovered::Settled { id, change, record }) => {
                if self.keep_settled(shared, id, change, Some(fetch)) {
                    shared.lookups.mark_settled(fetch, record);
                }
            }
            Err(error) if error.blame() == Blame::Integrity => {
                let error = for_this_session(&error);
                self.fetch_ends_all(shared, fetch, &error);
                return (pieces_of_work, Err(error));
            }
            Err(error) => self.tell(shared, fetch, Err(error)),
        }
        (pieces_of_work, Ok(()))
    }

    /// Takes the answer to a query of an earlier process. If it is not an answer, the reservation
    /// stays as it is, for the next session.
    fn settle_resent(
        &mut self,
        shared: &mut Shared,
        id: ReservationId,
        answers: Vec<Result<Answer>>,
    ) {
        let Ok(answers) = answers.into_iter().collect::<Result<Vec<_>>>() else { return };
        let answers: Vec<&[u8]> = answers.iter().map(|answer| answer.as_slice()).collect();
        let Some(hints) = self.hinted() else { return };
        if let Ok(Recovered::Settled { id, change, record }) = hints.settle(id, &answers)
            && self.keep_settled(shared, id, change, None)
        {
            self.hints.unwanted(id, record.is_none());
        }
    }

    /// Tells the record of a settled reservation: the next in the order in which reservations were
    /// made, when all older ones are answered or given up. A record that does not depend on an
    /// older answer could be told sooner. But then a server could hold an answer back, and see from
    /// a user who acts on the other records which of them depend on it. Returns whether there was
    /// one.
    fn tell_waiting(&mut self, shared: &mut Shared) -> bool {
        let Some((id, fetch)) = self.next_to_tell(shared) else { return false };
        let Some(hints) = self.hinted() else { return false };
        let resolved = hints.take_record(id);
        let record = shared.lookups.take_settled(fetch).or(resolved);
        if record.is_none() {
            self.hints.unwanted(id, true);
        }
        self.tell(shared, fetch, record.unwrap_or_else(|| Err(unanswered_before())));
        true
    }

    /// Tells all records that can be told: the session is over.
    pub(super) fn tell_all_waiting(&mut self, shared: &mut Shared) {
        let mut told = 0;
        while self.tell_waiting(shared) {
            told += 1;
        }
        if told > 0 {
            shared.timetable.end_unseen(Work::Answer, 1, told);
        }
    }

    pub(super) fn tell(&mut self, shared: &mut Shared, fetch: FetchId, record: Result<Record>) {
        let Some((target, candidate)) = shared.lookups.wanted(fetch) else { return };
        shared.takes_time(Work::Answer, target);
        let piece = record.and_then(|record| match &self.records {
            Some(records) => records.piece(target, candidate, &record),
            None => Err(ended_before()),
        });
        self.fetch_ended(shared, fetch, piece);
    }

    /// The oldest settled reservation and its fetch, if no older one may still be answered in this
    /// session. (What an even older one should have brought will not come.)
    fn next_to_tell(&self, shared: &Shared) -> Option<(ReservationId, FetchId)> {
        let next = shared.lookups.oldest_settled()?;
        let mut open = shared.lookups.reservations_under_way().chain(self.hints.resends.oldest());
        open.all(|open| open > next.0).then_some(next)
    }

    /// Erases records of repeated queries that no lookup waits for, once all of these queries are
    /// over.
    fn drop_unwanted(&mut self) {
        if self.hints.unwanted.is_empty() || !self.hints.resends.is_empty() {
            return;
        }
        let mut unwanted = std::mem::take(&mut self.hints.unwanted);
        if let Some(hints) = self.hinted() {
            drop_records(hints, &mut unwanted);
        }
        self.hints.unwanted = unwanted;
    }

    /// A fetch is over: tells the outcome of its lookup, if that is over as well.
    pub(super) fn fetch_ended(
        &mut self,
        shared: &mut Shared,
        fetch: FetchId,
        found: Result<Piece>,
    ) {
        let servers = shared.options.servers;
        self.fetch_over(shared, fetch, found.map_err(|error| last_words(error, servers)));
    }

    /// A fetch is over because of `error`, with which the session ends. Every lookup would meet it,
    /// so it tells nothing about the record, and may say what to do.
    pub(super) fn fetch_ends_all(&mut self, shared: &mut Shared, fetch: FetchId, error: &Error) {
        self.fetch_over(shared, fetch, Err(error.clone()));
    }

    fn fetch_over(&mut self, shared: &mut Shared, fetch: FetchId, found: Result<Piece>) {
        let Some((lookup, target, found)) = shared.lookups.end(fetch, found) else { return };
        let value = found.and_then(|pieces| {
            let value = match &self.records {
                Some(records) => records.value(&target, &pieces),
                None => Err(ended_before()),
            };
            value.map_err(|error| last_words(error, shared.options.servers))
        });
        shared.ask_again(&target, &value);
        shared.reply(lookup, value);
    }
}

impl Shared {
    /// Drops all lookups, which failed with `error`.
    pub(super) fn fail_all(&mut self, error: &Error) {
        let of_settled = last_words(ended_before(), self.options.servers);
        for (lookup, error) in self.lookups.drop_all(error, &of_settled) {
            self.reply(lookup, Err(error));
        }
    }
}

/// The record decides which part of a hint is read to use an answer. So an error of a disk that
/// cannot be read there also depends on the record.
fn as_selective_failure(error: Error) -> Error {
    match error.blame() {
        Blame::Unavailable => Error::selective(error.message()),
        _ => error,
    }
}

/// The error of a lookup that waits for an older reservation's answer which will not come in this
/// session.
fn unanswered_before() -> Error {
    Error::selective(
        "the server did not answer an earlier query, and the record of this lookup depends on that answer",
    )
}

/// The error of a lookup that waits for an older reservation's answer when the session is over.
fn ended_before() -> Error {
    Error::selective(
        "the session ended before the answer to an earlier query came, and the record of this lookup depends on that answer",
    )
}

/// `error` as its lookup is told it.
///
/// If it may depend on the record, it must not lead anybody to what a server can see. So all such
/// errors end with the same words, which stand here alone. And they have no reason and no cause,
/// for which a command would add what to do.
fn last_words(error: Error, servers: usize) -> Error {
    if !error.blame().is_final() {
        return error;
    }
    let who = if servers == 1 { "the server" } else { "the servers" };
    Error::new(
        error.blame(),
        format!(
            "{}. Ask those who run {who}. Do not look the same up again: that may tell {who} that this record was wanted",
            error.message().trim_end_matches('.')
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_core::Reason;

    #[test]
    fn what_may_depend_on_the_record_ends_with_the_same_words_and_advises_nothing_else() {
        let cause = || Error::api_misuse("no").because(Reason::TableReplaced);
        for blame in [Blame::Integrity, Blame::Selective, Blame::Corrupted] {
            let error = Error::new(blame, "wrong.").because(Reason::HintsUnusable);
            let told = last_words(error.caused_by(cause()), 1);
            assert_eq!(told.blame(), blame);
            assert_eq!(told.reason(), None);
            assert!(std::error::Error::source(&told).is_none());
            assert_eq!(
                told.message(),
                "wrong. Ask those who run the server. Do not look the same up again: that may tell the server that this record was wanted"
            );
        }
        let away = last_words(Error::unavailable("away").because(Reason::NoAnswerInTime), 1);
        assert_eq!((away.message(), away.reason()), ("away", Some(Reason::NoAnswerInTime)));
        assert!(last_words(Error::corrupted("it"), 2).message().contains("tell the servers"));
    }
}
