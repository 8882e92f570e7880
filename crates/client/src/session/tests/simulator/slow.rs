//! Clients whose computing takes time: a different time for each index, chosen so that it would
//! show.

use super::super::super::planted::{length_of, set_pace};
use super::super::super::timetable::Work;
use super::super::super::*;
use crate::session::shared::{StartClient, StartHinted};
use privet_core::{RecordIndex, SecretRng, TableDelta, TableIdentity, TableShape};
use privet_schemes::contract::{Record, ReservationId, Supply};
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::{
    Blank, BlankMaker, ErasedClient, ErasedHints, Recovered, Rehearsal, SchemePlan,
};
use privet_schemes::reservation::{Pending, Prepared};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zeroize::Zeroizing;

/// How long lookups take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Costs {
    /// No longer than the slowest dummy, and anything between that and nothing.
    Within,
    /// The same, but hints are loaded and written down in no time. Otherwise that would end at a
    /// multiple of the clock's steps, and which multiple would depend on how long it took.
    WithinOnceOpen,
    /// Longer than the slot, however long that is by now, but all up to the same multiple of its
    /// quarter.
    Beyond,
    /// The queries of about half of all indices take longer than their slot, and those of others no
    /// longer than dummies.
    SomeQueriesBeyond,
    /// The same for answers with about half of all records. Queries never take longer.
    SomeAnswersBeyond,
}

/// The slowest dummy query takes so many microseconds, …
const QUERY: u64 = 2000;
/// … and the slowest dummy answer.
const ANSWER: u64 = 800;

/// In microseconds.
fn slowest_dummy(work: Work) -> u64 {
    match work {
        Work::Query => QUERY,
        Work::Answer => ANSWER,
    }
}

impl Costs {
    fn are_within(self) -> bool {
        matches!(self, Costs::Within | Costs::WithinOnceOpen)
    }

    /// The range of nanoseconds that a client's work on `secret` takes.
    fn range(self, work: Work, secret: &[u8]) -> Range<u64> {
        let is_one_of_them = blake3::hash(secret).as_bytes()[0].is_multiple_of(2);
        let is_late = match self {
            Costs::Within | Costs::WithinOnceOpen => false,
            Costs::Beyond => true,
            Costs::SomeQueriesBeyond => work == Work::Query && is_one_of_them,
            Costs::SomeAnswersBeyond => work == Work::Answer && is_one_of_them,
        };
        if is_late {
            let length = length_of(work).as_nanos() as u64;
            return length / 4 * 5 + 1..length / 4 * 6 + 1;
        }
        // The rest is for the work beside it.
        1000..1000 * slowest_dummy(work) / 4 * 3
    }
}

/// The time of a simulated client: it passes while the client computes, and while it waits.
#[derive(Clone, Default)]
pub(in super::super) struct Passing(Arc<AtomicU64>);

impl Passing {
    pub(in super::super) fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// Lets time pass until `moment`.
    pub(in super::super) fn until(&self, moment: Duration) {
        self.0.fetch_max(moment.as_nanos() as u64, Ordering::Relaxed);
    }

    /// A clock that shows this time, in steps of `step`. Each look takes a while.
    pub(in super::super) fn clock(&self, step: Duration, look: Duration) -> Clock {
        let (passing, step) = (self.clone(), step.as_nanos() as u64);
        Clock::new(move || {
            let shown = passing.0.fetch_add(look.as_nanos() as u64, Ordering::Relaxed);
            Duration::from_nanos(shown / step * step)
        })
    }
}

#[derive(Clone)]
struct World {
    passing: Passing,
    costs: Costs,
    start_client: StartClient,
    start_hinted: StartHinted,
}

thread_local! {
    /// The world that runs on this thread.
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

fn world() -> World {
    WORLD.with(|world| world.borrow().clone().expect("a simulation runs on this thread"))
}

/// The same parts, but their clients take time, which `passing` shows.
pub(in super::super) fn slowed(parts: Parts, costs: Costs, passing: &Passing) -> Parts {
    let Parts { start_client, start_hinted, .. } = parts;
    let passing = passing.clone();
    WORLD.set(Some(World { passing, costs, start_client, start_hinted }));
    set_pace(beside_the_client);
    Parts {
        start_client: |plan, identity, hint, kernels| {
            Slow::start((world().start_client)(plan, identity, hint, kernels))
        },
        start_hinted: |plan, identity, generation, kernels| {
            // Opening ends at a multiple of a time that is longer than this.
            load(50_000, &generation);
            Slow::start((world().start_hinted)(plan, identity, generation, kernels))
        },
        ..parts
    }
}

/// Computes for as long as `secret` says.
fn compute(work: Work, secret: &[u8]) {
    compute_for(world().costs.range(work, secret), secret);
}

/// Loads a part of the hints, for up to so many nanoseconds. No work takes no time at all: opening
/// would end a step earlier then.
fn load(longest: u64, part: &[u8]) {
    if world().costs != Costs::WithinOnceOpen {
        compute_for(1..longest, part);
    }
}

/// The session's own work with keys, records and values, for as long as `secret` says: no longer
/// than the client leaves of the slowest dummy.
fn beside_the_client(work: Work, secret: &[u8]) {
    if world().costs.are_within() {
        compute_for(0..1000 * slowest_dummy(work) / 8, secret);
    }
}

fn compute_for(range: Range<u64>, secret: &[u8]) {
    let hash = blake3::hash(secret);
    let [low, ..] = hash.as_bytes().as_chunks::<8>().0 else { return };
    spend(range.start + u64::from_le_bytes(*low) % (range.end - range.start));
}

fn spend(nanoseconds: u64) {
    world().passing.0.fetch_add(nanoseconds, Ordering::Relaxed);
}

/// A client that takes its time. The hints of the inner client need `&mut`, so it lies in a cell.
struct Slow {
    plan: SchemePlan,
    client: RefCell<Box<dyn ErasedClient>>,
}

impl Slow {
    fn start(client: Result<Box<dyn ErasedClient>>) -> Result<Box<dyn ErasedClient>> {
        let client = client?;
        Ok(Box::new(Self { plan: client.plan().clone(), client: RefCell::new(client) }))
    }

    fn of_hints<T>(&self, ask: impl FnOnce(&mut dyn ErasedHints) -> T) -> T {
        ask(self.client.borrow_mut().hints().expect("it has hints"))
    }
}

/// Reads the result of an answer, for as long as that says.
fn read(recovered: Result<Recovered>) -> Result<Recovered> {
    match &recovered {
        Ok(Recovered::Record(record)) => compute(Work::Answer, record),
        Ok(Recovered::Settled { change, .. }) => compute(Work::Answer, change),
        Err(_) => compute(Work::Answer, b"no answer"),
    }
    recovered
}

impl ErasedClient for Slow {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn prepare(&mut self, index: &RecordIndex, rng: &mut SecretRng) -> Result<Prepared> {
        // No server sees when a record is read from a kept table.
        if !matches!(self.plan.offline, OfflinePhase::KeepTable { .. }) {
            compute(Work::Query, &index.expose().to_le_bytes());
        }
        self.client.get_mut().prepare(index, rng)
    }

    fn blanks(&self) -> Option<BlankMaker> {
        let make = self.client.borrow().blanks()?;
        // Longer than any slot. The time is the same for all, because the maker knows no index.
        Some(Arc::new(move |rng: &mut SecretRng| {
            spend(1000 * QUERY * 3);
            make(rng)
        }))
    }

    fn prepare_from(
        &mut self,
        blank: Blank,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<Prepared> {
        compute(Work::Query, &index.expose().to_le_bytes());
        self.client.get_mut().prepare_from(blank, index, rng)
    }

    fn recover(&mut self, pending: Pending, answers: &[&[u8]]) -> Result<Recovered> {
        read(self.client.get_mut().recover(pending, answers))
    }

    fn hints(&mut self) -> Option<&mut dyn ErasedHints> {
        let has_hints = self.client.get_mut().hints().is_some();
        if has_hints { Some(self) } else { None }
    }

    fn into_rehearsal(self: Box<Self>) -> Option<Box<dyn Rehearsal>> {
        let rehearsal = self.client.into_inner().into_rehearsal()?;
        Some(Box::new(Dummies(rehearsal)))
    }
}

impl ErasedHints for Slow {
    fn apply(&mut self, change: &[u8]) -> Result<()> {
        load(2000, change);
        self.of_hints(|hints| hints.apply(change))
    }

    fn settle(&mut self, id: ReservationId, answers: &[&[u8]]) -> Result<Recovered> {
        read(self.of_hints(|hints| hints.settle(id, answers)))
    }

    fn take_record(&mut self, id: ReservationId) -> Option<Result<Record>> {
        let record = self.of_hints(|hints| hints.take_record(id));
        if let Some(Ok(record)) = &record
            && world().costs == Costs::Within
        {
            compute_for(0..1000 * ANSWER / 10, record);
        }
        record
    }

    fn open(&self) -> Vec<ReservationId> {
        self.of_hints(|hints| hints.open())
    }

    fn supply(&self) -> Supply {
        self.of_hints(|hints| hints.supply())
    }

    fn waits_for_all_answers(&self) -> bool {
        self.of_hints(|hints| hints.waits_for_all_answers())
    }

    fn search_len(&self) -> u64 {
        self.of_hints(|hints| hints.search_len())
    }

    fn is_endless(&self) -> bool {
        self.of_hints(|hints| hints.is_endless())
    }

    fn condense(&self) -> Result<Zeroizing<Vec<u8>>> {
        let condensed = self.of_hints(|hints| hints.condense())?;
        // Opening and condensing ends at a multiple of a time that is longer than this.
        load(1000 * QUERY / 4 * 3, &condensed);
        Ok(condensed)
    }

    fn table(&self) -> TableIdentity {
        self.of_hints(|hints| hints.table())
    }

    fn follows(&self, after: TableShape) -> bool {
        self.of_hints(|hints| hints.follows(after))
    }

    fn apply_deltas(
        &mut self,
        before: &TableIdentity,
        after: &TableIdentity,
        deltas: &[TableDelta],
    ) -> Result<Zeroizing<Vec<u8>>> {
        self.of_hints(|hints| hints.apply_deltas(before, after, deltas))
    }

    fn disagree(&mut self) -> Result<Zeroizing<Vec<u8>>> {
        self.of_hints(|hints| hints.disagree())
    }

    fn verifies(&self) -> bool {
        self.of_hints(|hints| hints.verifies())
    }

    fn ended(&self) -> Option<Error> {
        self.of_hints(|hints| hints.ended())
    }
}

/// Of the slowest.
struct Dummies(Box<dyn Rehearsal>);

impl Rehearsal for Dummies {
    fn make_blank(&mut self, rng: &mut SecretRng) -> Result<()> {
        spend(1000 * QUERY * 3);
        self.0.make_blank(rng)
    }

    fn prepare(&mut self, index: &RecordIndex, rng: &mut SecretRng) -> Result<()> {
        spend(1000 * QUERY);
        self.0.prepare(index, rng)
    }

    fn recover(&mut self, answers: &[&[u8]]) -> Result<()> {
        spend(1000 * ANSWER);
        self.0.recover(answers)
    }
}
