//! A history with every operation on hints, and what must be found afterwards, wherever it was cut
//! off.

use super::super::*;
use crate::disk::Folder;
use crate::disk::simulated::Disk;
use crate::state::{HintStore, HintsKey, NextGeneration, SavedHints};
use privet_core::{Epoch, TableDigest, TableId, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::contract::Reserved;
use privet_schemes::reservation::{JournalRecord, Reservation, StoredRecord};

pub(super) fn key() -> HintsKey {
    let shape = TableShape::new(3, 5).unwrap();
    let (id, epoch) = (TableId([1; 16]), Epoch(4));
    let table = TableIdentity { id, epoch, digest: TableDigest([9; 32]), shape };
    HintsKey { table, scheme: SchemeId::DummySubsets, parameter_digest: [5; 32], servers: [0; 32] }
}

/// The key after the table has reached `epoch`.
pub(super) fn key_at(epoch: u64) -> HintsKey {
    let mut key = key();
    key.table.epoch = Epoch(epoch);
    key.table.digest.0[1] = epoch as u8;
    key.parameter_digest[1] = epoch as u8;
    key
}

/// The record of a reservation: a change, and one query.
pub(super) fn record(change: &[u8], query: &[u8]) -> JournalRecord {
    let (id, queries) = (ReservationId(0), vec![query.to_vec()]);
    Reservation::new(Reserved::new(id, change.to_vec().into(), queries)).record().clone()
}

/// The reservations that are not settled, each with its query.
pub(super) fn unfinished(saved: &SavedHints) -> Vec<(u64, Vec<u8>)> {
    let query = |stored: &StoredRecord| stored.sendable().queries()[0].clone();
    saved.unfinished.iter().map(|(id, stored)| (id.0, query(stored))).collect()
}

pub(super) fn hints(disk: &Disk) -> Result<Box<KeptHints>> {
    let folder = Arc::new(disk.clone()) as Arc<dyn Folder>;
    match KeptHints::open(folder, &key(), true, Others::Refuse)? {
        Opening::Have { hints, .. } => Ok(hints),
        Opening::Busy => panic!("busy"),
    }
}

/// What is visible of hints.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seen {
    pub(super) generation: Option<Vec<u8>>,
    pub(super) changes: Vec<Vec<u8>>,
    pub(super) unfinished: Vec<(u64, Vec<u8>)>,
    pub(super) checkpoint: Option<(u64, Vec<u8>)>,
    pub(super) ready: bool,
    /// The epoch that the generation was prepared for.
    pub(super) prepared_for: Option<u64>,
    /// Where the hints stand, if there are any.
    pub(super) stands_at: Option<u64>,
}

pub(super) fn seen(hints: &mut KeptHints) -> Result<Seen> {
    let saved = hints.load()?;
    let checkpoint = hints.preparation()?.checkpoint()?;
    let ready = saved.next == NextGeneration::Ready;
    let epoch = |table: Option<TableIdentity>| table.unwrap_or(key().table).epoch.0;
    let unfinished = unfinished(&saved);
    let (stands_at, prepared_for) = (saved.stands_at.map(|key| key.table), saved.prepared_for);
    let are_there = saved.generation.is_some() || checkpoint.is_some() || ready;
    Ok(Seen {
        prepared_for: saved.generation.is_some().then(|| epoch(prepared_for)),
        stands_at: are_there.then(|| epoch(stands_at)),
        generation: saved.generation.map(|bytes| bytes.to_vec()),
        changes: saved.changes.iter().map(|bytes| bytes.to_vec()).collect(),
        unfinished,
        checkpoint: checkpoint.map(|(offset, bytes)| (offset, bytes.to_vec())),
        ready,
    })
}

/// The states that the disk may be in: the last one that is certain, and what was attempted since.
#[derive(Clone)]
pub(super) struct Expected {
    states: Vec<Seen>,
    certain: usize,
}

impl Expected {
    pub(super) fn new() -> Self {
        Self { states: vec![Seen::default()], certain: 0 }
    }

    fn last(&self) -> Seen {
        self.states.last().unwrap().clone()
    }

    /// Attempts something that leads to `state`; if it succeeds, that state is certain.
    fn attempt(&mut self, state: Seen, outcome: impl FnOnce() -> Result<()>) -> Result<()> {
        self.states.push(state);
        outcome()?;
        self.certain = self.states.len() - 1;
        Ok(())
    }

    /// Checks that `seen` is a possible state; it is certain from now on.
    pub(super) fn confirm(&mut self, seen: &Seen) -> Result<(), String> {
        let found = self.states[self.certain..].iter().position(|state| state == seen);
        let expected = &self.states[self.certain..];
        let at = found.ok_or_else(|| format!("found {seen:?}\nexpected one of {expected:#?}"))?;
        self.certain += at;
        Ok(())
    }

    /// A process has seen this, and may have acted on it: the generation, the changes and the
    /// unfinished reservations stay. Preparations may still be lost.
    pub(super) fn acted_upon(&mut self, seen: &Seen) -> Result<(), String> {
        self.clone().confirm(seen)?;
        let kept = |state: &&Seen| {
            (&state.generation, &state.changes, &state.unfinished)
                == (&seen.generation, &seen.changes, &seen.unfinished)
        };
        self.certain += self.states[self.certain..].iter().take_while(|state| !kept(state)).count();
        Ok(())
    }
}

/// Hints in use, with the expected states after every step.
struct Run<'a> {
    hints: Box<KeptHints>,
    expected: &'a mut Expected,
    settled: Vec<(u64, Vec<u8>)>,
    reserved: u64,
    epoch: u64,
}

impl Run<'_> {
    fn with_settled(&self) -> Seen {
        let mut state = self.expected.last();
        for (id, change) in &self.settled {
            state.unfinished.retain(|(unfinished, _)| unfinished != id);
            state.changes.push(change.clone());
        }
        state
    }

    fn reserve(&mut self, len: usize) -> Result<()> {
        let id = self.reserved;
        let change = vec![id as u8 + 1; len];
        let query = vec![0xc0 + id as u8; 700];
        let record = record(&change, &query);
        let mut state = self.with_settled();
        state.changes.push(change);
        state.unfinished.push((id, query));
        let hints = &mut self.hints;
        self.expected.attempt(state, || hints.reserve_one(ReservationId(id), &record).map(drop))?;
        self.settled.clear();
        self.reserved += 1;
        Ok(())
    }

    /// Several reservations at once: all of them, or none.
    fn reserve_batch(&mut self, count: u64) -> Result<()> {
        let mut state = self.with_settled();
        let ids = self.reserved..self.reserved + count;
        let batch = ids.map(|id| {
            let (change, query) = (vec![id as u8 + 1; 40], vec![0xc0 + id as u8; 700]);
            let record = record(&change, &query);
            state.changes.push(change);
            state.unfinished.push((id, query));
            (ReservationId(id), record)
        });
        let batch: Vec<_> = batch.collect();
        let hints = &mut self.hints;
        self.expected.attempt(state, || hints.reserve(&together(&batch)).map(drop))?;
        self.settled.clear();
        self.reserved += count;
        Ok(())
    }

    fn settle(&mut self, id: u64) -> Result<()> {
        let change = vec![0x80 + id as u8; 20];
        self.hints.settle(ReservationId(id), &change)?;
        self.settled.push((id, change));
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let state = self.with_settled();
        let hints = &mut self.hints;
        self.expected.attempt(state, || hints.flush())?;
        self.settled.clear();
        Ok(())
    }

    fn checkpoint(&mut self, offset: u64, len: usize) -> Result<()> {
        let checkpoint = vec![offset as u8; len];
        let state = Seen {
            checkpoint: Some((offset, checkpoint.clone())),
            stands_at: Some(self.epoch),
            ..self.expected.last()
        };
        let mut bench = self.hints.preparation()?;
        self.expected.attempt(state, || bench.save_checkpoint(offset, &checkpoint))
    }

    fn discard(&mut self) -> Result<()> {
        let state = Seen { checkpoint: None, ..self.expected.last() };
        let mut bench = self.hints.preparation()?;
        self.expected.attempt(state, || bench.discard())
    }

    fn prepare(&mut self, generation: &[u8]) -> Result<()> {
        let stands_at = Some(self.epoch);
        let state = Seen { checkpoint: None, ready: true, stands_at, ..self.expected.last() };
        let mut bench = self.hints.preparation()?;
        self.expected.attempt(state, || bench.save_generation(generation))
    }

    fn switch(&mut self, generation: &[u8]) -> Result<()> {
        let state = self.fresh(generation);
        let hints = &mut self.hints;
        self.expected.attempt(state, || hints.switch())?;
        self.settled.clear();
        self.reserved = 0;
        Ok(())
    }
}

impl Run<'_> {
    /// An unused generation.
    fn fresh(&self, generation: &[u8]) -> Seen {
        let (generation, epoch) = (Some(generation.to_vec()), Some(self.epoch));
        Seen { generation, prepared_for: epoch, stands_at: epoch, ..Seen::default() }
    }

    /// The table reaches `epoch`, and the hints follow; what is being prepared does not.
    fn follow(&mut self, epoch: u64) -> Result<()> {
        let change = vec![0x40 + epoch as u8; 60];
        let mut state = self.with_settled();
        state.changes.push(change.clone());
        (state.checkpoint, state.ready, state.stands_at) = (None, false, Some(epoch));
        let hints = &mut self.hints;
        self.expected.attempt(state, || hints.follow(&change, &key_at(epoch)))?;
        self.settled.clear();
        self.epoch = epoch;
        Ok(())
    }

    fn restart(&mut self, epoch: u64) -> Result<()> {
        let hints = &mut self.hints;
        self.expected.attempt(Seen::default(), || hints.restart(&key_at(epoch)))?;
        self.settled.clear();
        (self.reserved, self.epoch) = (0, epoch);
        Ok(())
    }

    /// Drops any stored next generation; `generation` comes, and is in use.
    fn switch_to(&mut self, generation: &[u8]) -> Result<()> {
        let flushed = self.with_settled();
        let erased = Seen { checkpoint: None, ready: false, ..flushed.clone() };
        let stored = Seen { ready: true, ..erased.clone() };
        self.expected.states.extend([flushed, erased, stored]);
        let state = self.fresh(generation);
        let hints = &mut self.hints;
        self.expected.attempt(state, || hints.switch_to(generation))?;
        self.settled.clear();
        self.reserved = 0;
        Ok(())
    }
}

pub(super) fn generation(number: u8) -> Vec<u8> {
    (0..3000u32).map(|k| (k * 7) as u8 ^ number).collect()
}

fn open<'a>(disk: &Disk, expected: &'a mut Expected) -> Result<Run<'a>> {
    let mut hints = hints(disk)?;
    let seen = seen(&mut hints)?;
    expected.confirm(&seen).unwrap();
    let reserved = hints.journal.as_ref().map_or(0, |journal| journal.summary().reserved);
    let epoch = hints.version().table.epoch.0;
    Ok(Run { hints, expected, settled: Vec::new(), reserved, epoch })
}

/// A sequence of operations on hints, up to the first failure.
pub(super) type History = fn(&Disk, &mut Expected) -> Result<()>;

/// Every operation on hints while their table does not change.
pub(super) fn live(disk: &Disk, expected: &mut Expected) -> Result<()> {
    let mut run = open(disk, expected)?;
    run.checkpoint(10, 900)?;
    run.checkpoint(20, 900)?;
    run.checkpoint(30, 100)?;
    run.prepare(&generation(1))?;
    run.switch(&generation(1))?;
    run.reserve(40)?;
    run.reserve(40)?;
    run.reserve(40)?;
    run.settle(0)?;
    run.reserve(40)?;
    run.settle(2)?;
    run.settle(1)?;
    run.flush()?;
    run.checkpoint(40, 500)?;
    run.discard()?;
    run.checkpoint(15, 500)?;
    run.reserve(5000)?;
    run.reserve_batch(3)?;
    drop(run);

    let mut run = open(disk, expected)?;
    run.checkpoint(25, 500)?;
    run.prepare(&generation(2))?;
    run.settle(3)?;
    run.reserve(0)?;
    run.settle(5)?;
    run.switch(&generation(2))?;
    run.reserve(40)?;
    run.prepare(&generation(9))?;
    run.settle(0)?;
    // The prepared generation is unused.
    run.switch_to(&generation(3))?;
    run.reserve(40)?;
    run.settle(0)?;
    run.checkpoint(60, 300)?;
    run.switch_to(&generation(4))?;
    run.reserve(40)?;
    run.settle(0)?;
    run.flush()?;
    run.reserve(40)
}

/// The table changes: with a settled change that is not durable, with and without a preparation,
/// before and after a switch, and so that the hints cannot follow.
pub(super) fn live_through_changes(disk: &Disk, expected: &mut Expected) -> Result<()> {
    let mut run = open(disk, expected)?;
    run.prepare(&generation(1))?;
    run.switch(&generation(1))?;
    run.reserve(40)?;
    run.settle(0)?;
    run.checkpoint(10, 400)?;
    run.checkpoint(20, 400)?;
    run.follow(5)?;
    run.reserve(40)?;
    run.prepare(&generation(2))?;
    run.settle(1)?;
    run.follow(7)?;
    run.checkpoint(30, 400)?;
    run.reserve(40)?;
    drop(run);

    let mut run = open(disk, expected)?;
    run.prepare(&generation(3))?;
    run.settle(2)?;
    run.switch(&generation(3))?;
    run.reserve(40)?;
    run.settle(0)?;
    run.follow(8)?;
    run.follow(9)?;
    run.reserve(40)?;
    run.settle(1)?;
    run.reserve_batch(3)?;
    run.settle(3)?;
    run.flush()?;
    run.checkpoint(50, 300)?;
    run.prepare(&generation(5))?;
    run.restart(11)?;
    run.checkpoint(60, 300)?;
    run.prepare(&generation(4))?;
    run.switch(&generation(4))?;
    run.reserve(40)?;
    run.settle(0)?;
    run.checkpoint(70, 300)?;
    run.follow(12)?;
    run.reserve(40)
}

/// A disk after the whole history and a close, and its contents.
pub(super) fn lived() -> (Disk, Seen) {
    let disk = Disk::default();
    live(&disk, &mut Expected::new()).unwrap();
    let seen = seen(&mut hints(&disk).unwrap()).unwrap();
    (disk, seen)
}

/// Checks that the found state can be used: makes one more reservation, and finds it when the hints
/// are opened again.
pub(super) fn goes_on(disk: &Disk, found: &Seen) -> Result<()> {
    let mut state = found.clone();
    let mut opened = hints(disk)?;
    if state.generation.is_none() {
        return Ok(());
    }
    let id = opened.journal.as_ref().unwrap().summary().reserved;
    let record = record(b"one more", b"query");
    opened.reserve_one(ReservationId(id), &record)?;
    drop(opened);
    state.changes.push(b"one more".to_vec());
    state.unfinished.push((id, b"query".to_vec()));
    assert_eq!(seen(&mut *hints(disk)?)?, state);
    Ok(())
}

/// Reservations that are handed in together.
pub(super) fn together(
    batch: &[(ReservationId, JournalRecord)],
) -> Vec<(ReservationId, &JournalRecord)> {
    batch.iter().map(|(id, record)| (*id, record)).collect()
}
