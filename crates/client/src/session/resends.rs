//! Queries that an earlier process sent, or was about to send, and whose answers it did not keep
//! before it ended.
//!
//! Their bytes come from the journal and leave unchanged: a server sees a repeat of the same
//! message. No lookup waits for the records, but the answers complete the hints that later queries
//! use.

use super::lookups::Answer;
use privet_core::Result;
use privet_schemes::contract::ReservationId;
use privet_schemes::reservation::Sendable;
use std::collections::{BTreeMap, VecDeque};

/// How many are under way at once, beside the session's own lookups.
const UNDER_WAY: usize = 16;

/// One answer of each server, or why there is none. `None`: still open.
type Answers = Vec<Option<Result<Answer>>>;

#[derive(Default)]
pub(super) struct Resends {
    first: Option<ReservationId>,
    waiting: VecDeque<(ReservationId, Sendable)>,
    asking: BTreeMap<ReservationId, Answers>,
    answered: VecDeque<(ReservationId, Vec<Result<Answer>>)>,
}

impl Resends {
    /// Queries to send, oldest first.
    pub(super) fn new(waiting: impl IntoIterator<Item = (ReservationId, Sendable)>) -> Self {
        let waiting: VecDeque<_> = waiting.into_iter().collect();
        Self { first: waiting.front().map(|(id, _)| *id), waiting, ..Self::default() }
    }

    /// The oldest of all, whether it is over or not.
    pub(super) fn first(&self) -> Option<ReservationId> {
        self.first
    }

    /// The next to send, if its turn has come. It counts as under way from now on.
    pub(super) fn next_waiting(&mut self) -> Option<(ReservationId, Sendable)> {
        if self.asking.len() >= UNDER_WAY {
            return None;
        }
        let (id, sendable) = self.waiting.pop_front()?;
        self.asking.insert(id, sendable.queries().iter().map(|_| None).collect());
        Some((id, sendable))
    }

    /// Notes the outcome of one server's query.
    pub(super) fn settled(&mut self, id: ReservationId, server: usize, answer: Result<Answer>) {
        let Some(answers) = self.asking.get_mut(&id) else { return };
        if let Some(open) = answers.get_mut(server) {
            open.get_or_insert(answer);
        }
        if answers.iter().all(Option::is_some)
            && let Some(answers) = self.asking.remove(&id)
        {
            self.answered.push_back((id, answers.into_iter().flatten().collect()));
        }
    }

    pub(super) fn next_answered(&mut self) -> Option<(ReservationId, Vec<Result<Answer>>)> {
        self.answered.pop_front()
    }

    /// The oldest that may still be answered in this session.
    pub(super) fn oldest(&self) -> Option<ReservationId> {
        let waiting = self.waiting.iter().map(|(id, _)| *id);
        let answered = self.answered.iter().map(|(id, _)| *id);
        waiting.chain(answered).chain(self.asking.keys().copied()).min()
    }

    pub(super) fn contains(&self, id: ReservationId) -> bool {
        let mut queued = self.waiting.iter().map(|(queued, _)| queued);
        self.asking.contains_key(&id)
            || queued.any(|queued| *queued == id)
            || self.answered.iter().any(|(answered, _)| *answered == id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.oldest().is_none()
    }
}

/// Sent queries whose answers other lookups or the next generation need: see the module `endless`.
#[derive(Default)]
pub(super) struct Unanswered {
    queries: BTreeMap<ReservationId, Sendable>,
    /// They were sent again, and no lookup was handed in since.
    asked_again: bool,
}

impl Unanswered {
    pub(super) fn sent(&mut self, id: ReservationId, sendable: Sendable) {
        self.queries.insert(id, sendable);
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = ReservationId> {
        self.queries.keys().copied()
    }

    pub(super) fn asked_again(&self) -> bool {
        self.asked_again
    }

    /// All of them, to be sent again. `None`: that was done already, or there are none.
    pub(super) fn send_again(&mut self) -> Option<Resends> {
        if self.asked_again || self.queries.is_empty() {
            return None;
        }
        self.asked_again = true;
        Some(Resends::new(std::mem::take(&mut self.queries)))
    }

    pub(super) fn settled(&mut self, id: ReservationId) {
        self.queries.remove(&id);
    }

    pub(super) fn lookup_handed_in(&mut self) {
        self.asked_again = false;
    }
}
