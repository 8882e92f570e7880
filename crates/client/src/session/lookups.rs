//! Lookups: waiting, and begun; and their fetches.
//!
//! A lookup waits for its turn. Then it *begins*: it is as many fetches as there are records that
//! its key may lie in (the module `candidates` says why). Everything about one of them stands in
//! one value, from the query to what its record says.
//!
//! Reading a record comes after everything that can be sent has been. It touches different parts of
//! the hint for different indices; how long that takes tells nobody anything, because it is done in
//! a slot of a public length: see the module `timetable`.

use super::candidates::Found;
use super::interface::{FetchId, LookupId, Target};
use super::records::Piece;
use privet_core::{Error, Result};
use privet_schemes::contract::{Record, ReservationId};
use privet_schemes::reservation::{Pending, Reservation};
use std::collections::{BTreeMap, VecDeque};
use zeroize::Zeroizing;

/// What one server answered. Those to one query hold its record together: of DPF-PIR, it is their
/// sum. So they are erased when they are dropped.
pub(super) type Answer = Zeroizing<Vec<u8>>;

/// Everything that a user asked for and has not been told.
#[derive(Default)]
pub(super) struct Lookups {
    lookups_named: u64,
    fetches_named: u64,
    /// Those whose turn has not come, in its order.
    waiting: VecDeque<(LookupId, Target)>,
    begun: BTreeMap<LookupId, Begun>,
    /// The lookup that began last, and its next candidate, if not all of its fetches have begun.
    next: Option<(LookupId, usize)>,
    fetches: BTreeMap<FetchId, Fetch>,
    /// Fetches with an answer of each server, in the order in which they got it.
    answered: VecDeque<FetchId>,
}

struct Begun {
    target: Target,
    found: Found,
}

/// One record on its way.
struct Fetch {
    lookup: LookupId,
    /// Which of the key's candidates it is.
    candidate: usize,
    /// Of a single-use hint.
    reservation: Option<ReservationId>,
    stage: Stage,
}

/// How far a fetch is.
enum Stage {
    /// Something is made of what it had, in this very call.
    InHand,
    /// Waits for its journal record to be durable.
    Committing(Reservation),
    /// Waits for answers, one from each server.
    Asking(Asked),
    /// Waits to be read.
    Answered(Asked),
    /// Its reservation is settled, and its turn to be told has not come. The record is there unless
    /// it depends on the answer to an older reservation.
    Settled(Option<Result<Record>>),
}

struct Asked {
    pending: Pending,
    /// What became of each server's query. `None`: still open.
    answers: Vec<Option<Result<Answer>>>,
}

/// Waiting and beginning.
impl Lookups {
    pub(super) fn add(&mut self, target: Target) -> LookupId {
        let id = self.add_nothing();
        self.waiting.push_back((id, target));
        id
    }

    /// Only a name.
    pub(super) fn add_nothing(&mut self) -> LookupId {
        self.lookups_named += 1;
        LookupId(self.lookups_named - 1)
    }

    /// Whether there is something to ask for, while no more than `limit` fetches are between their
    /// first query and their last answer. (A lookup that has begun is not held up by it.)
    pub(super) fn may_ask(&self, limit: usize) -> bool {
        let asks = |fetch: &&Fetch| !matches!(fetch.stage, Stage::Answered(_) | Stage::Settled(_));
        let under_way = self.fetches.values().filter(asks).count();
        self.next.is_some() || (!self.waiting.is_empty() && under_way < limit)
    }

    /// Begins the next fetch: of a lookup that has begun, or of the next one, which is `fetches`.
    /// It is over only with [`end`](Self::end).
    pub(super) fn begin_next(&mut self, fetches: usize) -> Option<FetchId> {
        let (lookup, candidate) = match self.next {
            Some(next) => next,
            None => {
                let (id, target) = self.waiting.pop_front()?;
                self.begun.insert(id, Begun { target, found: Found::nothing_of(fetches) });
                (id, 0)
            }
        };
        self.next = (candidate + 1 < fetches).then_some((lookup, candidate + 1));
        let id = FetchId(self.fetches_named);
        self.fetches_named += 1;
        let fetch = Fetch { lookup, candidate, reservation: None, stage: Stage::InHand };
        self.fetches.insert(id, fetch);
        Some(id)
    }

    /// Whether some of a lookup's fetches have begun and others have not.
    pub(super) fn is_amid_one(&self) -> bool {
        self.next.is_some()
    }

    /// Whether nobody waits for anything.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.begun.is_empty()
    }

    /// Whether no fetch waits for anything that comes from elsewhere, or to be read.
    pub(super) fn none_under_way(&self) -> bool {
        self.next.is_none() && self.fetches.values().all(Fetch::is_settled)
    }

    /// Has every lookup that has begun wait for its turn again, before all that have not.
    pub(super) fn begin_again(&mut self) {
        for (id, begun) in std::mem::take(&mut self.begun).into_iter().rev() {
            self.waiting.push_front((id, begun.target));
        }
        self.drop_fetches();
    }

    /// Drops the lookups that wait for their turn. One that has begun comes to its end.
    pub(super) fn drop_waiting(&mut self) -> Vec<LookupId> {
        std::mem::take(&mut self.waiting).into_iter().map(|(id, _)| id).collect()
    }

    /// Drops all lookups. Returns them, and why each of them failed: its own reason if it had one
    /// before; `of_settled` if it lacked only older reservations' answers; or else `error`.
    pub(super) fn drop_all(&mut self, error: &Error, of_settled: &Error) -> Vec<(LookupId, Error)> {
        let mut open: Vec<LookupId> = self.next.iter().map(|(lookup, _)| *lookup).collect();
        let unsettled = self.fetches.values().filter(|fetch| !fetch.is_settled());
        open.extend(unsettled.map(|fetch| fetch.lookup));
        let begun = std::mem::take(&mut self.begun).into_iter().map(|(id, begun)| {
            let why = if open.contains(&id) { error } else { of_settled };
            (id, begun.found.into_failure().unwrap_or_else(|| why.clone()))
        });
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let mut dropped: Vec<_> = begun.chain(waiting.map(|(id, _)| (id, error.clone()))).collect();
        dropped.sort_by_key(|(id, _)| *id);
        self.drop_fetches();
        dropped
    }

    fn drop_fetches(&mut self) {
        self.fetches.clear();
        self.answered.clear();
        self.next = None;
    }
}

/// A fetch.
impl Lookups {
    /// What a fetch is for: what its lookup looks up, and which candidate of that.
    pub(super) fn wanted(&self, id: FetchId) -> Option<(&Target, usize)> {
        let fetch = self.fetches.get(&id)?;
        Some((&self.begun.get(&fetch.lookup)?.target, fetch.candidate))
    }

    /// A hint is reserved for it, and the journal record is handed out.
    pub(super) fn commits(&mut self, id: FetchId, reservation: Reservation) {
        if let Some(fetch) = self.fetches.get_mut(&id) {
            fetch.reservation = Some(reservation.id());
            fetch.stage = Stage::Committing(reservation);
        }
    }

    /// Whether a journal record was handed out and nothing is known of it yet.
    pub(super) fn await_receipts(&self) -> bool {
        self.fetches.values().any(|fetch| matches!(fetch.stage, Stage::Committing(_)))
    }

    /// The reservation of a fetch of whose journal record something is known now.
    pub(super) fn committed(&mut self, id: FetchId) -> Option<Reservation> {
        let fetch = self.fetches.get_mut(&id)?;
        match std::mem::replace(&mut fetch.stage, Stage::InHand) {
            Stage::Committing(reservation) => Some(reservation),
            other => {
                fetch.stage = other;
                None
            }
        }
    }

    /// Its queries go out, to so many servers.
    pub(super) fn asks(&mut self, id: FetchId, pending: Pending, servers: usize) {
        let answers = (0..servers).map(|_| None).collect();
        if let Some(fetch) = self.fetches.get_mut(&id) {
            fetch.stage = Stage::Asking(Asked { pending, answers });
        }
    }

    /// Notes what became of one server's query. A fetch is answered only when all of its queries
    /// are over: whatever one of them came to, the others take their course.
    pub(super) fn server_answered(&mut self, id: FetchId, server: usize, answer: Result<Answer>) {
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        match std::mem::replace(&mut fetch.stage, Stage::InHand) {
            Stage::Asking(mut asked) => {
                asked.answers[server].get_or_insert(answer);
                fetch.stage = match asked.answers.iter().all(Option::is_some) {
                    true => {
                        self.answered.push_back(id);
                        Stage::Answered(asked)
                    }
                    false => Stage::Asking(asked),
                };
            }
            other => fetch.stage = other,
        }
    }

    /// The next fetch to be read: its answers in order, or the first error among them.
    pub(super) fn next_answered(&mut self) -> Option<(FetchId, Pending, Result<Vec<Answer>>)> {
        while let Some(id) = self.answered.pop_front() {
            let Some(fetch) = self.fetches.get_mut(&id) else { continue };
            if let Stage::Answered(Asked { pending, answers }) =
                std::mem::replace(&mut fetch.stage, Stage::InHand)
            {
                return Some((id, pending, answers.into_iter().flatten().collect()));
            }
        }
        None
    }

    /// Its reservation is settled. It waits until it may be told.
    pub(super) fn settles(&mut self, id: FetchId, record: Option<Result<Record>>) {
        if let Some(fetch) = self.fetches.get_mut(&id) {
            fetch.stage = Stage::Settled(record);
        }
    }

    /// The record of a settled fetch whose turn to be told has come.
    pub(super) fn take_settled(&mut self, id: FetchId) -> Option<Result<Record>> {
        match &mut self.fetches.get_mut(&id)?.stage {
            Stage::Settled(record) => record.take(),
            _ => None,
        }
    }

    /// A fetch is over. Returns its lookup if that is over as well, with all that its fetches came
    /// to.
    pub(super) fn end(
        &mut self,
        id: FetchId,
        found: Result<Piece>,
    ) -> Option<(LookupId, Target, Result<Vec<Piece>>)> {
        let Fetch { lookup, candidate, .. } = self.fetches.remove(&id)?;
        let begun = self.begun.get_mut(&lookup)?;
        if !begun.found.add(candidate, found) {
            return None;
        }
        let Begun { target, found } = self.begun.remove(&lookup)?;
        Some((lookup, target, found.into_pieces()))
    }
}

/// Reservations.
impl Lookups {
    pub(super) fn reservation_of(&self, id: FetchId) -> Option<ReservationId> {
        self.fetches.get(&id)?.reservation
    }

    /// Whether a reservation is between its journal record and its record.
    pub(super) fn have_reservations(&self) -> bool {
        self.fetches.values().any(|fetch| fetch.reservation.is_some())
    }

    /// The reservations between their journal records and the reading of their answers.
    pub(super) fn reservations_under_way(&self) -> impl Iterator<Item = ReservationId> {
        let under_way = self.fetches.values().filter(|fetch| !fetch.is_settled());
        under_way.filter_map(|fetch| fetch.reservation)
    }

    /// The oldest settled reservation, and its fetch.
    pub(super) fn oldest_settled(&self) -> Option<(ReservationId, FetchId)> {
        let settled = self.fetches.iter().filter(|(_, fetch)| fetch.is_settled());
        settled.filter_map(|(id, fetch)| Some((fetch.reservation?, *id))).min()
    }

    /// How many settled reservations there are from the one numbered `id` on.
    pub(super) fn settled_since(&self, id: ReservationId) -> usize {
        let since = |fetch: &&Fetch| fetch.is_settled() && fetch.reservation >= Some(id);
        self.fetches.values().filter(since).count()
    }
}

impl Fetch {
    fn is_settled(&self) -> bool {
        matches!(self.stage, Stage::Settled(_))
    }
}
