//! Single-use hints that live as long as the process: the rules of [`HintStore`] and
//! [`PreparationStore`], without a disk.

use crate::state::{
    HintStore, HintsKey, NextGeneration, Pin, PreparationStore, SavedHints, after_the_end,
    check_follows, check_not_lent, check_numbers, check_restarts, no_hints_to_end, unsettled,
};
use privet_core::{Error, Result, TableIdentity};
use privet_schemes::contract::ReservationId;
use privet_schemes::reservation::{
    Journal, JournalEntry, JournalReader, JournalRecord, Receipt, StoredRecord,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zeroize::Zeroizing;

type Secret = Zeroizing<Vec<u8>>;

/// The hints of one table and scheme, whichever handle uses them now.
pub(super) type Kept = Arc<Mutex<StoredHints>>;

#[derive(Default)]
pub(super) struct StoredHints {
    /// Where the hints stand.
    key: Option<HintsKey>,
    /// The version that the generation in use was prepared for.
    prepared_for: Option<TableIdentity>,
    /// How many handles exist: one for the hints, and one where the next generation is prepared.
    handles: usize,
    preparing: bool,
    generation: Option<Secret>,
    reserved: u64,
    changes: Vec<Secret>,
    unfinished: Vec<(ReservationId, Secret)>,
    checkpoint: Option<(u64, Secret)>,
    prepared: Option<Secret>,
    ended: Option<String>,
}

fn lock(kept: &Kept) -> MutexGuard<'_, StoredHints> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn secret(bytes: &[u8]) -> Secret {
    Zeroizing::new(bytes.to_vec())
}

impl StoredHints {
    fn is_empty(&self) -> bool {
        self.generation.is_none() && self.prepared.is_none() && self.checkpoint.is_none()
    }
}

/// Whether hints are in use, or one of `pins` needs them.
pub(super) fn are_wanted(kept: &Kept, pins: &[Pin]) -> bool {
    let contents = lock(kept);
    let digest = contents.key.as_ref().map(|key| key.parameter_digest);
    contents.handles > 0
        || contents.ended.is_some()
        || pins.iter().any(|pin| Some(pin.parameter_digest) == digest)
}

/// The only handle to the hints.
pub(super) struct MemoryHints {
    kept: Kept,
    /// The key that they were opened with.
    asked: HintsKey,
}

impl MemoryHints {
    /// `None` if a handle exists already. If `to_follow`, hints of another version are accepted if
    /// they were used with the same servers. All other hints are erased.
    pub(super) fn open(kept: &Kept, key: &HintsKey, to_follow: bool) -> Option<Self> {
        let mut contents = lock(kept);
        if contents.handles > 0 {
            return None;
        }
        let suits = |there: &HintsKey| match to_follow {
            true => there.servers == key.servers && !contents.is_empty(),
            false => there == key,
        };
        let stays = contents.ended.is_some() || contents.key.as_ref().is_some_and(suits);
        if !stays {
            *contents = StoredHints { key: Some(key.clone()), ..StoredHints::default() };
        }
        contents.handles = 1;
        Some(Self { kept: Arc::clone(kept), asked: key.clone() })
    }
}

impl Drop for MemoryHints {
    fn drop(&mut self) {
        lock(&self.kept).handles -= 1;
    }
}

impl HintStore for MemoryHints {
    fn load(&mut self) -> Result<SavedHints> {
        let mut contents = lock(&self.kept);
        let stored = StoredRecord::read_all(&mut *contents)?;
        let ids = contents.unfinished.iter().map(|(id, _)| *id);
        let unfinished = ids.zip(stored).collect();
        let next = match (&contents.prepared, &contents.checkpoint) {
            (Some(_), _) => NextGeneration::Ready,
            (None, Some((offset, _))) => NextGeneration::Partial { offset: *offset },
            (None, None) => NextGeneration::None,
        };
        let stands_at = contents.key.clone().filter(|key| *key != self.asked);
        let prepared_for =
            contents.prepared_for.filter(|table| *table != self.asked.table || stands_at.is_some());
        Ok(SavedHints {
            generation: contents.generation.clone(),
            changes: contents.changes.clone(),
            unfinished,
            next,
            prepared_for,
            ended: contents.ended.clone(),
            stands_at,
        })
    }

    fn reserve(&mut self, batch: &[(ReservationId, &JournalRecord)]) -> Result<Vec<Receipt>> {
        let mut contents = lock(&self.kept);
        if contents.generation.is_none() {
            return Err(Error::api_misuse("there are no hints to reserve from"));
        }
        if contents.ended.is_some() {
            return Err(after_the_end());
        }
        check_numbers(batch, contents.reserved)?;
        Receipt::append_all(&mut *contents, batch.iter().map(|(_, record)| *record))
    }

    fn settle(&mut self, id: ReservationId, change: &[u8]) -> Result<()> {
        let mut contents = lock(&self.kept);
        let found = contents.unfinished.iter().position(|(unfinished, _)| *unfinished == id);
        let at = found
            .ok_or_else(|| Error::api_misuse("a reservation was settled that is not unfinished"))?;
        contents.unfinished.remove(at);
        contents.changes.push(secret(change));
        Ok(())
    }

    fn end(&mut self, id: Option<ReservationId>, change: &[u8], why: &str) -> Result<()> {
        if let Some(id) = id {
            self.settle(id, change)?;
        }
        let mut contents = lock(&self.kept);
        if contents.generation.is_none() {
            return Err(no_hints_to_end());
        }
        if id.is_none() {
            contents.changes.push(secret(change));
        }
        contents.ended = Some(why.to_owned());
        Ok(())
    }

    fn follow(&mut self, change: &[u8], to: &HintsKey) -> Result<()> {
        let mut contents = lock(&self.kept);
        if contents.generation.is_none() {
            return Err(Error::api_misuse("there are no hints that could follow the table"));
        }
        if contents.ended.is_some() {
            return Err(after_the_end());
        }
        check_follows(contents.key.as_ref().unwrap_or(&self.asked), to)?;
        if !contents.unfinished.is_empty() {
            return Err(unsettled());
        }
        check_not_lent(contents.preparing)?;
        contents.changes.push(secret(change));
        contents.key = Some(to.clone());
        (contents.checkpoint, contents.prepared) = (None, None);
        Ok(())
    }

    fn restart(&mut self, key: &HintsKey) -> Result<()> {
        let mut contents = lock(&self.kept);
        if contents.ended.is_some() {
            return Err(after_the_end());
        }
        check_restarts(&self.asked, key)?;
        check_not_lent(contents.preparing)?;
        let handles = contents.handles;
        *contents = StoredHints { key: Some(key.clone()), handles, ..StoredHints::default() };
        drop(contents);
        self.asked = key.clone();
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn preparation(&mut self) -> Result<Box<dyn PreparationStore>> {
        let mut contents = lock(&self.kept);
        if contents.preparing {
            return Err(Error::api_misuse(
                "the next generation of hints is being prepared already",
            ));
        }
        contents.preparing = true;
        contents.handles += 1;
        Ok(Box::new(MemoryPreparation(Arc::clone(&self.kept))))
    }

    fn switch(&mut self) -> Result<()> {
        let mut contents = lock(&self.kept);
        if contents.ended.is_some() {
            return Err(after_the_end());
        }
        let prepared = contents
            .prepared
            .take()
            .ok_or_else(|| Error::api_misuse("there is no prepared generation to switch to"))?;
        contents.generation = Some(prepared);
        contents.prepared_for = contents.key.as_ref().map(|key| key.table);
        contents.reserved = 0;
        contents.changes.clear();
        contents.unfinished.clear();
        Ok(())
    }
}

/// Memory as a journal: a crash erases the records together with everything that would need them.
impl Journal for StoredHints {
    fn append_and_sync(&mut self, entries: &[JournalEntry<'_>]) -> Result<()> {
        for entry in entries {
            self.changes.push(secret(entry.change));
            self.unfinished.push((ReservationId(self.reserved), secret(entry.record)));
            self.reserved += 1;
        }
        Ok(())
    }
}

impl JournalReader for StoredHints {
    fn records(&mut self) -> Result<Vec<Secret>> {
        Ok(self.unfinished.iter().map(|(_, record)| record.clone()).collect())
    }
}

struct MemoryPreparation(Kept);

impl Drop for MemoryPreparation {
    fn drop(&mut self) {
        let mut contents = lock(&self.0);
        contents.preparing = false;
        contents.handles -= 1;
    }
}

fn check_unfinished(contents: &StoredHints) -> Result<()> {
    match contents.prepared {
        None => Ok(()),
        Some(_) => Err(Error::api_misuse("the next generation of hints is complete already")),
    }
}

impl PreparationStore for MemoryPreparation {
    fn checkpoint(&mut self) -> Result<Option<(u64, Secret)>> {
        Ok(lock(&self.0).checkpoint.clone())
    }

    fn save_checkpoint(&mut self, offset: u64, checkpoint: &[u8]) -> Result<()> {
        let mut contents = lock(&self.0);
        check_unfinished(&contents)?;
        contents.checkpoint = Some((offset, secret(checkpoint)));
        Ok(())
    }

    fn save_generation(&mut self, generation: &[u8]) -> Result<()> {
        let mut contents = lock(&self.0);
        check_unfinished(&contents)?;
        contents.prepared = Some(secret(generation));
        contents.checkpoint = None;
        Ok(())
    }

    fn discard(&mut self) -> Result<()> {
        let mut contents = lock(&self.0);
        (contents.checkpoint, contents.prepared) = (None, None);
        Ok(())
    }
}
