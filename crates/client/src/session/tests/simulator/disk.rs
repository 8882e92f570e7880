//! A disk that is cut off in the middle of operations.
//!
//! Synced writes survive. Of the unsynced ones, some prefix does; an operation that is cut off may
//! have been done or not.

use super::super::world::Dice;
use super::slow::Passing;
use crate::state::{HintStore, HintsKey, NextGeneration, PreparationStore, SavedHints};
use privet_core::{Error, Result, TableIdentity};
use privet_schemes::contract::ReservationId;
use privet_schemes::reservation::{
    Journal, JournalEntry, JournalReader, JournalRecord, Receipt, StoredRecord,
};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use zeroize::Zeroizing;

/// How long the sync of a journal record takes.
const SYNC: Duration = Duration::from_micros(700);

/// A flaw that a test gives a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DiskFlaw {
    #[default]
    None,
    /// The last journal record is gone after a crash.
    ForgetsTheLastRecord,
    /// Gives a receipt for a record that is not synced.
    CertifiesBeforeSyncing,
    /// Hands back an unfinished query with a bit changed.
    ChangesWhatIsUnfinished,
    /// Answers that complete hints are changed.
    LosesAnswers,
    /// Says that the end of hints is kept before it is.
    CertifiesTheEndBeforeSyncing,
    /// Forgets the change by which hints followed their table.
    ForgetsThatItFollowed,
}

enum Entry {
    Reserved(ReservationId, Vec<u8>),
    Settled(ReservationId, Vec<u8>),
    /// A change that belongs to no reservation.
    Changed(Vec<u8>),
}

type Checkpoint = (u64, Zeroizing<Vec<u8>>);

#[derive(Default)]
pub(super) struct Kept {
    /// The key of the hints, and the key that they were opened for.
    key: Option<HintsKey>,
    asked: Option<HintsKey>,
    /// The version that the generation was prepared for.
    prepared_for: Option<TableIdentity>,
    generation: Option<Vec<u8>>,
    synced: Vec<Entry>,
    unsynced: Vec<Entry>,
    checkpoint: Option<Checkpoint>,
    next: Option<Vec<u8>>,
    flaw: DiskFlaw,
    /// How many steps are left before everything stops. `None`: it does not stop.
    pub(super) steps_left: Option<u64>,
    pub(super) is_cut_off: bool,
    /// Every query that got a receipt.
    pub(super) certified: HashSet<Vec<u8>>,
    /// The queries that the process found unfinished.
    pub(super) found_unfinished: HashSet<Vec<u8>>,
    pub(super) switches: u64,
    /// How often they were opened.
    pub(super) opened: u64,
    pub(super) followed: u64,
    pub(super) restarted: u64,
    pub(super) condensed: u64,
    pub(super) resumed: u64,
    /// How often something was synced.
    pub(super) syncs: u64,
    /// When journal records were written since the last look at this, and how long they are.
    pub(super) written: Vec<(Duration, usize)>,
    passing: Passing,
    dice: Dice,
}

#[derive(Clone)]
pub(super) struct Disk(Arc<Mutex<Kept>>);

impl Disk {
    pub(super) fn new(seed: u64, flaw: DiskFlaw, passing: Passing) -> Self {
        let dice = Dice(seed ^ 0xd15c);
        Self(Arc::new(Mutex::new(Kept { flaw, dice, passing, ..Kept::default() })))
    }

    pub(super) fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap()
    }

    /// Opens the hints for `key`. Hints of another version make room unless they may follow.
    pub(super) fn open(&self, key: &HintsKey, to_follow: bool) {
        let mut kept = self.kept();
        let suits = match &kept.key {
            Some(there) => there == key || (to_follow && !kept.is_empty()),
            None => false,
        };
        if !suits {
            kept.begin_anew(key);
        }
        kept.asked = Some(key.clone());
        kept.opened += 1;
    }

    /// Starts again after a crash or an end.
    pub(super) fn restart(&self, steps_left: Option<u64>) {
        let mut kept = self.kept();
        if kept.is_cut_off {
            let written = kept.unsynced.len() as u64;
            let survives = kept.dice.roll(written + 1) as usize;
            kept.unsynced.truncate(survives);
            if kept.flaw == DiskFlaw::ForgetsTheLastRecord
                && let Some(Entry::Reserved(..)) = kept.synced.last()
            {
                kept.synced.pop();
            }
        }
        kept.sync();
        (kept.steps_left, kept.is_cut_off) = (steps_left, false);
    }

    /// One step of the process. False: it is cut off here.
    pub(super) fn step(&self) -> bool {
        let mut kept = self.kept();
        match &mut kept.steps_left {
            Some(0) => kept.is_cut_off = true,
            Some(left) => *left -= 1,
            None => {}
        }
        !kept.is_cut_off
    }

    /// A step that does `operation` to the disk, unless the disk is cut off before or during it.
    fn operate<T>(&self, operation: impl FnOnce(&mut Kept) -> T) -> Result<T> {
        let was_cut_off = self.kept().is_cut_off;
        let goes_on = self.step();
        let mut kept = self.kept();
        let is_done = goes_on || (!was_cut_off && kept.dice.roll(2) == 0);
        let done = is_done.then(|| operation(&mut kept));
        done.filter(|_| goes_on).ok_or_else(|| Error::unavailable("the power is gone"))
    }
}

impl Kept {
    fn is_empty(&self) -> bool {
        self.generation.is_none() && self.checkpoint.is_none() && self.next.is_none()
    }

    fn begin_anew(&mut self, key: &HintsKey) {
        (self.generation, self.checkpoint, self.next) = (None, None, None);
        (self.synced, self.unsynced) = (Vec::new(), Vec::new());
        (self.key, self.prepared_for) = (Some(key.clone()), None);
    }

    fn sync(&mut self) {
        let unsynced = std::mem::take(&mut self.unsynced);
        self.syncs += u64::from(!unsynced.is_empty());
        self.synced.extend(unsynced);
    }

    pub(super) fn everything_is_synced(&self) -> bool {
        self.unsynced.is_empty()
    }

    /// Whether the end of the hints of a toy that verifies is durable.
    pub(super) fn has_ended(&self) -> bool {
        self.synced.iter().any(|entry| matches!(entry, Entry::Settled(_, change) if change[0] == 2))
    }

    /// The queries of reservations that are not settled, as far as they were written.
    pub(super) fn open_queries(&self) -> Vec<Vec<Vec<u8>>> {
        let mut open = Vec::new();
        for entry in self.synced.iter().chain(&self.unsynced) {
            match entry {
                Entry::Reserved(id, record) => open.push((*id, record)),
                Entry::Settled(id, _) => open.retain(|(other, _)| other != id),
                Entry::Changed(_) => {}
            }
        }
        open.into_iter().map(|(_, record)| queries_in(record)).collect()
    }

    fn certify(&mut self, queries: &[Vec<u8>]) {
        self.certified.extend(queries.iter().cloned());
    }

    fn saved(&mut self) -> SavedHints {
        let mut saved = SavedHints {
            generation: self.generation.clone().map(Zeroizing::new),
            next: match (&self.next, &self.checkpoint) {
                (Some(_), _) => NextGeneration::Ready,
                (None, Some((offset, _))) => NextGeneration::Partial { offset: *offset },
                (None, None) => NextGeneration::None,
            },
            prepared_for: self.prepared_for,
            stands_at: self.key.clone().filter(|key| Some(key) != self.asked.as_ref()),
            ..SavedHints::default()
        };
        for entry in &self.synced {
            match entry {
                Entry::Reserved(id, record) => {
                    let change = stored(record.clone()).change().to_vec();
                    saved.changes.push(Zeroizing::new(change));
                    let mut record = record.clone();
                    if self.flaw == DiskFlaw::ChangesWhatIsUnfinished {
                        // In the masked index of the last query.
                        let at = record.len() - 2;
                        record[at] ^= 1;
                    }
                    saved.unfinished.push((*id, stored(record)));
                }
                Entry::Changed(change) => saved.changes.push(Zeroizing::new(change.clone())),
                Entry::Settled(id, change) => {
                    let mut change = change.clone();
                    if self.flaw == DiskFlaw::LosesAnswers {
                        change.truncate(1);
                        change.extend(u64::MAX.to_le_bytes());
                    }
                    saved.changes.push(Zeroizing::new(change));
                    saved.unfinished.retain(|(other, _)| other != id);
                }
            }
        }
        saved
    }
}

/// One record, as a journal keeps it.
struct OneRecord(Vec<u8>);

impl JournalReader for OneRecord {
    fn records(&mut self) -> Result<Vec<Zeroizing<Vec<u8>>>> {
        Ok(vec![Zeroizing::new(std::mem::take(&mut self.0))])
    }
}

fn stored(record: Vec<u8>) -> StoredRecord {
    StoredRecord::read_all(&mut OneRecord(record)).unwrap().remove(0)
}

fn queries_in(record: &[u8]) -> Vec<Vec<u8>> {
    stored(record.to_vec()).sendable().queries().to_vec()
}

/// Reservations on their way to the disk.
struct Appended<'a> {
    disk: &'a Disk,
    ids: Vec<ReservationId>,
}

impl Journal for Appended<'_> {
    fn append_and_sync(&mut self, entries: &[JournalEntry<'_>]) -> Result<()> {
        self.disk.operate(|kept| {
            for (id, entry) in self.ids.iter().zip(entries) {
                if kept.flaw == DiskFlaw::None {
                    let all = kept.synced.iter().chain(&kept.unsynced);
                    let before = all.filter(|entry| matches!(entry, Entry::Reserved(..))).count();
                    assert_eq!(id.0, before as u64, "reservations are numbered in their order");
                }
                kept.unsynced.push(Entry::Reserved(*id, entry.record.to_vec()));
            }
            if kept.flaw != DiskFlaw::CertifiesBeforeSyncing {
                kept.sync();
            }
        })?;
        for entry in entries {
            self.disk.kept().certify(&queries_in(entry.record));
        }
        Ok(())
    }
}

impl HintStore for Disk {
    fn follow(&mut self, change: &[u8], to: &HintsKey) -> Result<()> {
        if !self.kept().open_queries().is_empty() {
            return Err(Error::api_misuse("a query is not settled"));
        }
        self.operate(|kept| {
            kept.sync();
            if kept.flaw != DiskFlaw::ForgetsThatItFollowed {
                kept.synced.push(Entry::Changed(change.to_vec()));
            }
            kept.key = Some(to.clone());
            (kept.checkpoint, kept.next) = (None, None);
            kept.followed += 1;
        })
    }

    fn restart(&mut self, key: &HintsKey) -> Result<()> {
        self.operate(|kept| {
            kept.begin_anew(key);
            kept.asked = Some(key.clone());
            kept.restarted += 1;
        })
    }

    fn load(&mut self) -> Result<SavedHints> {
        let mut kept = self.kept();
        let saved = kept.saved();
        kept.found_unfinished.clear();
        for (_, record) in &saved.unfinished {
            let queries = record.sendable().queries();
            kept.found_unfinished.extend(queries.iter().cloned());
            kept.certify(queries);
        }
        Ok(saved)
    }

    fn reserve(&mut self, batch: &[(ReservationId, &JournalRecord)]) -> Result<Vec<Receipt>> {
        let mut kept = self.kept();
        let now = kept.passing.now();
        kept.written.extend(batch.iter().map(|(_, record)| (now, record.record_len())));
        kept.passing.until(now + SYNC);
        drop(kept);
        let ids = batch.iter().map(|(id, _)| *id).collect();
        let records = batch.iter().map(|(_, record)| *record);
        Receipt::append_all(&mut Appended { disk: self, ids }, records)
    }

    fn settle(&mut self, id: ReservationId, change: &[u8]) -> Result<()> {
        self.operate(|kept| kept.unsynced.push(Entry::Settled(id, change.to_vec())))
    }

    fn end(&mut self, id: Option<ReservationId>, change: &[u8], _why: &str) -> Result<()> {
        match id {
            Some(id) => self.settle(id, change)?,
            None => self.operate(|kept| kept.unsynced.push(Entry::Changed(change.to_vec())))?,
        }
        if self.kept().flaw == DiskFlaw::CertifiesTheEndBeforeSyncing {
            return Ok(());
        }
        self.operate(Kept::sync)
    }

    fn flush(&mut self) -> Result<()> {
        self.operate(Kept::sync)
    }

    fn preparation(&mut self) -> Result<Box<dyn PreparationStore>> {
        Ok(Box::new(self.clone()))
    }

    fn switch_to(&mut self, generation: &[u8]) -> Result<()> {
        self.flush()?;
        self.discard()?;
        self.save_generation(generation)?;
        self.switch()?;
        self.kept().condensed += 1;
        Ok(())
    }

    fn switch(&mut self) -> Result<()> {
        self.operate(|kept| {
            kept.generation = Some(kept.next.take().expect("a generation is prepared"));
            (kept.synced, kept.unsynced) = (Vec::new(), Vec::new());
            kept.prepared_for = kept.key.as_ref().map(|key| key.table);
            kept.switches += 1;
        })
    }
}

impl PreparationStore for Disk {
    fn checkpoint(&mut self) -> Result<Option<Checkpoint>> {
        let mut kept = self.kept();
        kept.resumed += u64::from(kept.checkpoint.is_some());
        Ok(kept.checkpoint.clone())
    }

    fn save_checkpoint(&mut self, offset: u64, checkpoint: &[u8]) -> Result<()> {
        let checkpoint = Zeroizing::new(checkpoint.to_vec());
        self.operate(|kept| kept.checkpoint = Some((offset, checkpoint)))
    }

    fn save_generation(&mut self, generation: &[u8]) -> Result<()> {
        self.operate(|kept| {
            kept.next = Some(generation.to_vec());
            kept.checkpoint = None;
        })
    }

    fn discard(&mut self) -> Result<()> {
        self.operate(|kept| (kept.checkpoint, kept.next) = (None, None))
    }
}
