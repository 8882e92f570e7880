//! Lookups, waiting and begun, and their fetches.
//!
//! A lookup waits for its turn. Then it *begins*: it makes one fetch for each record in which its
//! key may lie (the module `candidates` says why). One value holds everything about a fetch, from
//! the query to the record's contents.
//!
//! Records are read only after everything that can be sent has been sent. Reading touches different
//! parts of the hint for different indices. How long that takes tells a server nothing, because it
//! is done in a slot of a public length: see the module `timetable`.

use super::candidates::FetchResults;
use super::interface::{ExchangeId, FetchId, LookupId, Target};
use super::planted;
use super::records::Piece;
use privet_core::{Error, Result};
use privet_schemes::contract::{Record, ReservationId};
use privet_schemes::reservation::{Pending, Reservation};
use std::collections::{BTreeMap, HashSet, VecDeque};
use zeroize::Zeroizing;

/// One server's answer. All answers to one query together give its record: in DPF-PIR, their sum is
/// the record. So they are erased when they are dropped.
pub(super) type Answer = Zeroizing<Vec<u8>>;

/// Every lookup that the user has begun and that has no outcome yet.
#[derive(Default)]
pub(super) struct Lookups {
    lookups_named: u64,
    fetches_named: u64,
    /// What was asked for and whose turn has not come, in its order.
    waiting: VecDeque<(LookupId, LookupGoal)>,
    begun: BTreeMap<LookupId, Begun>,
    /// The lookup that began last, and its next candidate, unless all its fetches have begun.
    next: Option<(LookupId, usize)>,
    fetches: BTreeMap<FetchId, Fetch>,
    /// Fetches with an answer from each server, in the order in which they became complete.
    answered: VecDeque<FetchId>,
}

enum LookupGoal {
    Value(Target),
    /// A refresh: the newest version, of which servers tell in this exchange or later ones.
    Newest(ExchangeId),
}

struct Begun {
    target: Target,
    found: FetchResults,
}

/// One record on its way.
struct Fetch {
    lookup: LookupId,
    /// Which of the key's candidates it fetches.
    candidate: usize,
    /// Its reservation, if hints are single-use.
    reservation: Option<ReservationId>,
    stage: FetchStage,
}

/// How far a fetch is.
enum FetchStage {
    /// A later stage is being made of the earlier one, within one call.
    InHand,
    /// Waits for its journal record to be durable.
    Committing(Reservation),
    /// Waits for answers, one from each server.
    Asking(AwaitedAnswers),
    /// Waits until it is read.
    Answered(AwaitedAnswers),
    /// Its reservation is settled, and its turn to be told has not come. The record is there unless
    /// it depends on the answer to an older reservation.
    Settled(Option<Result<Record>>),
}

struct AwaitedAnswers {
    pending: Pending,
    /// The outcome of each server's query. `None`: still open.
    answers: Vec<Option<Result<Answer>>>,
}

/// Waiting and beginning.
impl Lookups {
    pub(super) fn add(&mut self, target: Target) -> LookupId {
        let id = self.add_nothing();
        self.waiting.push_back((id, LookupGoal::Value(target)));
        id
    }

    /// Adds what fetches nothing, and whose turn comes when lookups before it have begun. Only what
    /// servers say in the exchange `since` and later ones counts for it.
    pub(super) fn add_refresh(&mut self, since: ExchangeId) -> LookupId {
        let id = self.add_nothing();
        self.waiting.push_back((id, LookupGoal::Newest(since)));
        id
    }

    /// If it is a refresh's turn: the first exchange that counts for it.
    pub(super) fn refreshes_since(&self) -> Option<ExchangeId> {
        match self.waiting.front()? {
            (_, LookupGoal::Newest(since)) => Some(*since),
            (_, LookupGoal::Value(_)) => None,
        }
    }

    /// Ends the refresh whose turn it is, if it is one's turn.
    pub(super) fn take_refresh(&mut self) -> Option<LookupId> {
        self.refreshes_since()?;
        self.waiting.pop_front().map(|(id, _)| id)
    }

    /// Gives a lookup an id and does nothing else.
    pub(super) fn add_nothing(&mut self) -> LookupId {
        self.lookups_named += 1;
        LookupId(self.lookups_named - 1)
    }

    /// Whether a fetch may begin, when at most `limit` fetches may be between their first query and
    /// their last answer. (The limit does not hold up a lookup that has begun.)
    pub(super) fn may_ask(&self, limit: usize) -> bool {
        let asks = |fetch: &&Fetch| {
            !matches!(fetch.stage, FetchStage::Answered(_) | FetchStage::Settled(_))
        };
        let under_way = self.fetches.values().filter(asks).count();
        self.next.is_some() || (!self.waiting.is_empty() && under_way < limit)
    }

    /// Begins the next fetch: of the lookup that has begun, or of the next lookup, which makes
    /// `fetches` of them. It is over only with [`end`](Self::end).
    pub(super) fn begin_next(&mut self, fetches: usize) -> Option<FetchId> {
        let (lookup, candidate) = match self.next {
            Some(next) => next,
            None => {
                let is_lookup =
                    |(_, wanted): &mut (_, LookupGoal)| matches!(wanted, LookupGoal::Value(_));
                let (id, LookupGoal::Value(target)) = self.waiting.pop_front_if(is_lookup)? else {
                    return None;
                };
                self.begun.insert(id, Begun { target, found: FetchResults::nothing_of(fetches) });
                (id, 0)
            }
        };
        self.next = (candidate + 1 < planted::made(fetches)).then_some((lookup, candidate + 1));
        let id = FetchId(self.fetches_named);
        self.fetches_named += 1;
        let fetch = Fetch { lookup, candidate, reservation: None, stage: FetchStage::InHand };
        self.fetches.insert(id, fetch);
        Some(id)
    }

    /// Whether some of a lookup's fetches have begun and others have not.
    pub(super) fn is_amid_one(&self) -> bool {
        self.next.is_some()
    }

    /// Whether there is no lookup.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.begun.is_empty()
    }

    /// Whether no fetch waits for a receipt, an answer or to be read.
    pub(super) fn none_under_way(&self) -> bool {
        self.next.is_none() && self.fetches.values().all(Fetch::is_settled)
    }

    /// Has every lookup that has begun wait for its turn again, before all others.
    pub(super) fn begin_again(&mut self) {
        for (id, begun) in std::mem::take(&mut self.begun).into_iter().rev() {
            self.waiting.push_front((id, LookupGoal::Value(begun.target)));
        }
        self.drop_fetches();
    }

    /// Drops the lookups that wait for their turn. A lookup that has begun goes on to its end.
    pub(super) fn drop_waiting(&mut self) -> Vec<LookupId> {
        std::mem::take(&mut self.waiting).into_iter().map(|(id, _)| id).collect()
    }

    /// Drops those of `unwanted` that wait for their turn, and returns them.
    pub(super) fn withdraw(&mut self, unwanted: &HashSet<LookupId>) -> Vec<LookupId> {
        let (withdrawn, waiting): (VecDeque<_>, VecDeque<_>) =
            self.waiting.drain(..).partition(|(id, _)| unwanted.contains(id));
        self.waiting = waiting;
        withdrawn.into_iter().map(|(id, _)| id).collect()
    }

    /// Drops all lookups. Returns them with the reason why each failed: its own, if it had one
    /// before that is as grave; `of_settled`, if it lacked only older reservations' answers;
    /// otherwise `error`.
    pub(super) fn drop_all(&mut self, error: &Error, of_settled: &Error) -> Vec<(LookupId, Error)> {
        let mut open: Vec<LookupId> = self.next.iter().map(|(lookup, _)| *lookup).collect();
        let unsettled = self.fetches.values().filter(|fetch| !fetch.is_settled());
        open.extend(unsettled.map(|fetch| fetch.lookup));
        let begun = std::mem::take(&mut self.begun).into_iter().map(|(id, begun)| {
            let why = if open.contains(&id) { error } else { of_settled };
            let failure = begun.found.into_failure();
            (id, failure.map_or_else(|| why.clone(), |failure| failure.by_gravity(why.clone()).0))
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

/// Stages of a fetch.
impl Lookups {
    /// What a fetch is for: its lookup's target, and which of its candidates.
    pub(super) fn wanted(&self, id: FetchId) -> Option<(&Target, usize)> {
        let fetch = self.fetches.get(&id)?;
        Some((&self.begun.get(&fetch.lookup)?.target, fetch.candidate))
    }

    /// A hint is reserved for it, and its journal record is handed out.
    pub(super) fn mark_committing(&mut self, id: FetchId, reservation: Reservation) {
        if let Some(fetch) = self.fetches.get_mut(&id) {
            fetch.reservation = Some(reservation.id());
            fetch.stage = FetchStage::Committing(reservation);
        }
    }

    /// Whether a journal record was handed out and its outcome is not known yet.
    pub(super) fn await_receipts(&self) -> bool {
        self.fetches.values().any(|fetch| matches!(fetch.stage, FetchStage::Committing(_)))
    }

    /// The reservation of a fetch, now that the outcome of its journal record is known.
    pub(super) fn committed(&mut self, id: FetchId) -> Option<Reservation> {
        let fetch = self.fetches.get_mut(&id)?;
        match std::mem::replace(&mut fetch.stage, FetchStage::InHand) {
            FetchStage::Committing(reservation) => Some(reservation),
            other => {
                fetch.stage = other;
                None
            }
        }
    }

    /// Its queries leave, one to each of so many servers.
    pub(super) fn mark_asked(&mut self, id: FetchId, pending: Pending, servers: usize) {
        let answers = (0..servers).map(|_| None).collect();
        if let Some(fetch) = self.fetches.get_mut(&id) {
            fetch.stage = FetchStage::Asking(AwaitedAnswers { pending, answers });
        }
    }

    /// Notes the outcome of one server's query. A fetch is answered only when all its queries are
    /// over: the outcome of one does not stop the others.
    pub(super) fn server_answered(&mut self, id: FetchId, server: usize, answer: Result<Answer>) {
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        match std::mem::replace(&mut fetch.stage, FetchStage::InHand) {
            FetchStage::Asking(mut asked) => {
                asked.answers[server].get_or_insert(answer);
                fetch.stage = match asked.answers.iter().all(Option::is_some) {
                    true => {
                        self.answered.push_back(id);
                        FetchStage::Answered(asked)
                    }
                    false => FetchStage::Asking(asked),
                };
            }
            other => fetch.stage = other,
        }
    }

    /// The next fetch to be read: its answers in order, or the gravest error among them.
    pub(super) fn next_answered(&mut self) -> Option<(FetchId, Pending, Result<Vec<Answer>>)> {
        while let Some(id) = self.answered.pop_front() {
            let Some(fetch) = self.fetches.get_mut(&id) else { continue };
            if let FetchStage::Answered(AwaitedAnswers { pending, answers }) =
                std::mem::replace(&mut fetch.stage, FetchStage::InHand)
            {
                return Some((id, pending, all_of(answers.into_iter().flatten())));
            }
        }
        None
    }

    /// Its reservation is settled. The fetch waits until its record may be told.
    pub(super) fn mark_settled(&mut self, id: FetchId, record: Option<Result<Record>>) {
        if let Some(fetch) = self.fetches.get_mut(&id) {
            fetch.stage = FetchStage::Settled(record);
        }
    }

    /// The record of a settled fetch whose turn to be told has come.
    pub(super) fn take_settled(&mut self, id: FetchId) -> Option<Result<Record>> {
        match &mut self.fetches.get_mut(&id)?.stage {
            FetchStage::Settled(record) => record.take(),
            _ => None,
        }
    }

    /// A fetch is over. Returns its lookup if that is over as well, with the results of all its
    /// fetches.
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

    /// Whether any reservation has its journal record, and its fetch is not over.
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
        matches!(self.stage, FetchStage::Settled(_))
    }
}

/// All answers, or the gravest error among them.
fn all_of(answers: impl Iterator<Item = Result<Answer>>) -> Result<Vec<Answer>> {
    let mut all = Ok(Vec::new());
    for answer in answers {
        all = match (all, answer) {
            (Ok(mut all), Ok(answer)) => {
                all.push(answer);
                Ok(all)
            }
            (Err(told), Err(error)) => Err(told.by_gravity(error).0),
            (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        };
    }
    all
}
