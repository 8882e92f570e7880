//! Lookups: waiting, being asked, and answered but not yet read.
//!
//! Reading a record comes after everything that can be sent has been. It touches different parts of
//! the hint for different indices; how long that takes tells nobody anything, because it is done in
//! a slot of a public length: see the module `timetable`.

use super::interface::{LookupId, Target};
use privet_core::{Error, Result};
use privet_schemes::reservation::{Pending, Reservation};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use zeroize::Zeroizing;

/// What one server answered. Those to one lookup hold its record together: of DPF-PIR, it is their sum. So they are erased when they are dropped.
pub(super) type Answer = Zeroizing<Vec<u8>>;

/// How far a lookup is.
pub(super) enum Stage {
    /// Waits for its turn.
    Waiting,
    /// Waits for its journal record to be durable.
    Committing(Reservation),
    /// Waits for answers, one from each server.
    Asking(Asked),
}

pub(super) struct Asked {
    pub(super) pending: Pending,
    /// What became of each server's query. `None`: still open.
    pub(super) answers: Vec<Option<Result<Answer>>>,
}

/// A lookup that has all it will ever get.
pub(super) struct Answered {
    pub(super) id: LookupId,
    pub(super) target: Target,
    pub(super) pending: Pending,
    pub(super) answers: Vec<Result<Answer>>,
}

/// A fetch whose turn has come.
pub(super) struct Next {
    pub(super) id: LookupId,
    pub(super) target: Target,
    pub(super) candidate: usize,
    /// All fetches of the lookup that begins with this one.
    pub(super) begins: Vec<LookupId>,
}

#[derive(Default)]
pub(super) struct Lookups {
    count: u64,
    open: BTreeMap<LookupId, (Target, Stage)>,
    waiting: VecDeque<LookupId>,
    /// Fetches of a lookup that is under way, and the number of the candidate of each: they go out before anything else.
    next_candidates: VecDeque<(LookupId, usize)>,
    answered: VecDeque<Answered>,
    /// How many wait for their journal records to be durable.
    committing: usize,
}

impl Lookups {
    pub(super) fn add(&mut self, target: Target) -> LookupId {
        let id = LookupId(self.count);
        self.count += 1;
        self.open.insert(id, (target, Stage::Waiting));
        self.waiting.push_back(id);
        id
    }

    /// Only an identity.
    pub(super) fn add_nothing(&mut self) -> LookupId {
        self.count += 1;
        LookupId(self.count - 1)
    }

    /// Whether there is something to ask for, while no more than `limit` fetches are between their first query and their last answer. (A lookup that has begun to be asked for
    /// is not held up by it.)
    pub(super) fn may_ask(&self, limit: usize) -> bool {
        let under_way = self.open.len() - self.waiting.len();
        !self.next_candidates.is_empty() || (!self.waiting.is_empty() && under_way < limit)
    }

    /// Whether there is no lookup that waits for anything.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.answered.is_empty()
    }

    /// The next fetch to ask for, and the number of its candidate. It counts as under way from now on. If it is the first of a lookup, others follow, until there are `fetches`;
    /// their names come with it, its own first.
    pub(super) fn next_waiting(&mut self, fetches: usize) -> Option<Next> {
        if let Some((id, candidate)) = self.next_candidates.pop_front() {
            let (target, _) = self.open.get(&id)?;
            return Some(Next { id, target: target.clone(), candidate, begins: Vec::new() });
        }
        let id = self.waiting.pop_front()?;
        let target = self.open.get(&id).map(|(target, _)| target.clone())?;
        let mut begins = vec![id];
        for candidate in 1..fetches {
            let other = self.add_nothing();
            self.open.insert(other, (target.clone(), Stage::Waiting));
            self.next_candidates.push_back((other, candidate));
            begins.push(other);
        }
        Some(Next { id, target, candidate: 0, begins })
    }

    pub(super) fn commits(&mut self, id: LookupId, reservation: Reservation) {
        self.set(id, Stage::Committing(reservation));
        self.committing += 1;
    }

    /// Whether a journal record was handed out and nothing is known of it yet.
    pub(super) fn await_receipts(&self) -> bool {
        self.committing > 0
    }

    /// The reservation of a lookup whose journal record is durable now.
    pub(super) fn committed(&mut self, id: LookupId) -> Option<Reservation> {
        let (_, stage) = self.open.get_mut(&id)?;
        match std::mem::replace(stage, Stage::Waiting) {
            Stage::Committing(reservation) => {
                self.committing -= 1;
                Some(reservation)
            }
            other => {
                *stage = other;
                None
            }
        }
    }

    pub(super) fn asks(&mut self, id: LookupId, pending: Pending, servers: usize) {
        let answers = (0..servers).map(|_| None).collect();
        self.set(id, Stage::Asking(Asked { pending, answers }));
    }

    fn set(&mut self, id: LookupId, new: Stage) {
        if let Some((_, stage)) = self.open.get_mut(&id) {
            *stage = new;
        }
    }

    /// Notes what became of one server's query. A lookup is over only when all of its queries are: whatever one of them came to, the others
    /// take their course.
    pub(super) fn settled(&mut self, id: LookupId, server: usize, answer: Result<Answer>) {
        let Some((_, Stage::Asking(asked))) = self.open.get_mut(&id) else { return };
        asked.answers[server].get_or_insert(answer);
        if asked.answers.iter().any(Option::is_none) {
            return;
        }
        if let Some((target, Stage::Asking(Asked { pending, answers }))) = self.open.remove(&id) {
            let answers = answers.into_iter().flatten().collect();
            self.answered.push_back(Answered { id, target, pending, answers });
        }
    }

    /// Whether some of a lookup's fetches have begun and others have not.
    pub(super) fn is_amid_one(&self) -> bool {
        !self.next_candidates.is_empty()
    }

    /// Whether no lookup has begun: each waits for its turn.
    pub(super) fn none_under_way(&self) -> bool {
        self.open.len() == self.waiting.len() && self.answered.is_empty()
    }

    /// Has every lookup that has begun wait for its turn again, before all that have not. Of one that is several fetches, `whole` names the lookup. `read`: lookups
    /// whose records were read and not told.
    pub(super) fn begin_again(
        &mut self,
        read: impl IntoIterator<Item = (LookupId, Target)>,
        whole: impl Fn(LookupId) -> LookupId,
    ) {
        let mut begun: BTreeMap<LookupId, Target> = BTreeMap::new();
        let waiting: BTreeSet<LookupId> = self.waiting.iter().copied().collect();
        let open = std::mem::take(&mut self.open);
        for (id, (target, stage)) in open {
            match waiting.contains(&id) {
                true => {
                    self.open.insert(id, (target, stage));
                }
                false => {
                    begun.insert(whole(id), target);
                }
            }
        }
        let answered = std::mem::take(&mut self.answered);
        let answered = answered.into_iter().map(|answered| (answered.id, answered.target));
        begun.extend(answered.chain(read).map(|(id, target)| (whole(id), target)));
        self.next_candidates.clear();
        self.committing = 0;
        for (id, target) in begun.into_iter().rev() {
            self.open.insert(id, (target, Stage::Waiting));
            self.waiting.push_front(id);
        }
    }

    pub(super) fn next_answered(&mut self) -> Option<Answered> {
        self.answered.pop_front()
    }

    /// Ends a lookup that waits no more for its turn and gets no answers. Returns whether it was open.
    pub(super) fn end(&mut self, id: LookupId) -> bool {
        let ended = self.open.remove(&id);
        // Whatever is said of its journal record now is said too late.
        self.committing -= usize::from(matches!(ended, Some((_, Stage::Committing(_)))));
        ended.is_some()
    }

    /// Drops the lookups that wait for their turn. One that has begun comes to its end.
    pub(super) fn drop_waiting(&mut self) -> Vec<LookupId> {
        let waiting: Vec<_> = std::mem::take(&mut self.waiting).into();
        for id in &waiting {
            self.open.remove(id);
        }
        waiting
    }

    /// Drops all lookups that have no answer yet.
    pub(super) fn drop_all(&mut self) -> Vec<LookupId> {
        self.waiting.clear();
        self.next_candidates.clear();
        self.committing = 0;
        std::mem::take(&mut self.open).into_keys().collect()
    }
}

impl Answered {
    /// The answers in order, or the first error among them.
    pub(super) fn into_answers(self) -> (LookupId, Target, Pending, Result<Vec<Answer>, Error>) {
        (self.id, self.target, self.pending, self.answers.into_iter().collect())
    }
}
