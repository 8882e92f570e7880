//! Single-use hints: their store, and the worker that prepares the next generation.

use super::{Busy, Driver, Running, Wanted};
use crate::client::Progress;
use crate::preparation::{Preparer, Worker};
use crate::session::{LookupId, PreparationEvent, Prepare};
use crate::state::{HintStore, HintsKey, HintsOpened};
use privet_core::{Error, Result};
use privet_schemes::contract::ReservationId;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::reservation::JournalRecord;
use privet_wire::PartKind;
use std::mem;
use std::time::Instant;

pub(super) fn hints_of(running: &mut Running) -> Result<&mut Box<dyn HintStore>> {
    let hints = running.hints.as_mut();
    hints.ok_or_else(|| Error::api_misuse("single-use hints must be opened before they are used"))
}

impl Driver {
    /// Gives up the hints that are held, if any: this process keeps others from them as any other would.
    pub(super) fn put_hints_back(&mut self, running: &mut Running) -> Result<()> {
        running.stop_worker();
        if running.hints.is_some() {
            self.flush(running)?;
            running.hints = None;
        }
        Ok(())
    }

    pub(super) fn open_hints(
        &mut self,
        key: HintsKey,
        to_follow: bool,
        busy: Option<Busy>,
        running: &mut Running,
    ) {
        let opened = match to_follow {
            true => self.state.open_hints_to_follow(&key),
            false => self.state.open_hints(&key),
        };
        let saved = match opened {
            Ok(HintsOpened::Have { hints, notice }) => {
                if let Some(notice) = notice {
                    (self.progress)(Progress::Notice(notice));
                }
                running.hints.insert(hints).load()
            }
            Ok(HintsOpened::Busy) => {
                let (part, total) = (PartKind::Table, key.table.shape.bytes());
                if busy.is_none() {
                    (self.progress)(Progress::Waiting { part, done: 0, total });
                }
                if let Some(busy) = self.ask_again(0, busy) {
                    running.busy = Some((Wanted::Hints { key, to_follow }, busy));
                    return;
                }
                Err(Error::unavailable(format!(
                    "another process has been using the hints for this table for {} s, and a hint serves only once, so they are not shared; end that process, or use a state directory of your own",
                    self.busy_patience.as_secs()
                )))
            }
            Err(error) => Err(error),
        };
        match saved {
            Ok(saved) => self.session.handle_hints(saved, self.now()),
            Err(error) => self.session.handle_storage_failure(error),
        }
    }

    pub(super) fn reserve(
        &mut self,
        lookup: LookupId,
        id: ReservationId,
        record: &JournalRecord,
        running: &mut Running,
    ) {
        let before = Instant::now();
        let receipt = hints_of(running).and_then(|hints| hints.reserve_one(id, record));
        self.stats().journal_time += before.elapsed();
        match receipt {
            Ok(receipt) => {
                running.unflushed = false;
                self.session.handle_persisted(lookup, receipt, self.now());
            }
            Err(error) => self.session.handle_not_persisted(lookup, error),
        }
    }

    /// Changes over to the prepared generation, or to `condensed`.
    pub(super) fn switch_hints(
        &mut self,
        condensed: Option<&[u8]>,
        running: &mut Running,
    ) -> Result<()> {
        // The worker had the prepared generation's files.
        running.stop_worker();
        running.unflushed = false;
        let hints = hints_of(running)?;
        match condensed {
            Some(generation) => hints.switch_to(generation)?,
            None => hints.switch()?,
        }
        let saved = hints.load()?;
        self.session.handle_hints(saved, self.now());
        Ok(())
    }

    /// Hands a step to the worker. The first one starts it.
    pub(super) fn prepare(&mut self, step: Prepare, running: &mut Running) {
        if matches!(step, Prepare::Begin) {
            if !self.is_ready() {
                self.note_hints_origin(false);
            }
            match self.start_worker(running) {
                Ok(worker) => running.worker = Some(worker),
                Err(error) => {
                    let event = PreparationEvent::Failed(error);
                    return self.session.handle_preparation(event, self.now());
                }
            }
        }
        if let Some(worker) = &running.worker {
            worker.step(step);
        }
    }

    fn start_worker(&self, running: &mut Running) -> Result<Worker> {
        // One at a time has the files.
        running.stop_worker();
        let store = hints_of(running)?.preparation()?;
        let table = self.session.table().ok_or_else(|| {
            Error::api_misuse("hints are prepared for a table that has been chosen")
        })?;
        let prepared = running.prepared.clone();
        Worker::start(Preparer::new(table, store, self.kernels), move |event| {
            // A driver that is gone has no use for it.
            let _ = prepared.send(event);
        })
    }

    /// Whether single-use hints were there, if the scheme has such. What is said first holds.
    pub(super) fn note_hints_origin(&self, stored: bool) {
        let are_kept = self.session.table().is_some_and(|table| {
            matches!(
                table.scheme.plan.offline,
                OfflinePhase::StreamTable { .. }
                    | OfflinePhase::StreamShuffled { .. }
                    | OfflinePhase::Ask { .. }
            )
        });
        if are_kept {
            self.stats().hint_was_stored.get_or_insert(stored);
        }
    }

    /// Makes durable what can be, when there is nothing else to do, and tells those who wait for that.
    pub(super) fn come_to_rest(&mut self, running: &mut Running) {
        if running.unflushed
            && self.session.has_no_lookups()
            && let Err(error) = self.flush(running)
        {
            running.not_kept = true;
            self.session.handle_storage_failure(error);
        }
        if running.not_kept || self.session.is_at_rest() {
            for reply in mem::take(&mut running.finishing) {
                let kept = if running.not_kept {
                    Err(Error::unavailable(
                        "what the last lookups brought may not have been kept; their queries will be sent again",
                    ))
                } else {
                    Ok(())
                };
                let _ = reply.send(kept);
            }
        }
    }

    pub(super) fn flush(&mut self, running: &mut Running) -> Result<()> {
        if !mem::take(&mut running.unflushed) {
            return Ok(());
        }
        hints_of(running)?.flush()
    }
}
