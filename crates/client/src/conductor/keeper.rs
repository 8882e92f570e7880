//! Carries out what a session asks of stored state: parts, pins and single-use hints.

use super::desk::Desk;
use crate::session::{FetchId, Patch, Persist, PreparationEvent, Prepare, Session};
use crate::state::{
    HintStore, HintsKey, HintsOpened, Opened, PartKey, PartState, State, patch_part,
};
use privet_core::{Error, Result};
use privet_kernels::Kernels;
use privet_schemes::contract::ReservationId;
use privet_schemes::reservation::{JournalRecord, Receipt};
use std::mem;
use std::time::Duration;

/// The stores, and the desk where hints are prepared.
pub(crate) struct Keeper<D> {
    pub(crate) state: Box<dyn State>,
    pub(crate) hints: Option<Box<dyn HintStore>>,
    pub(crate) desk: D,
    /// The servers' addresses.
    pub(super) addresses: Vec<String>,
    pub(super) kernels: Kernels,
    /// The hint store holds something that is not durable yet.
    pub(super) unflushed: bool,
    /// Results of the last lookups may not have been kept.
    pub(super) not_kept: bool,
}

/// A journal record of a fetch that waits for its receipt.
pub(crate) struct Reserved {
    pub(crate) fetch: FetchId,
    pub(crate) id: ReservationId,
    pub(crate) record: JournalRecord,
}

impl<D: Desk> Keeper<D> {
    pub(crate) fn new(
        state: Box<dyn State>,
        addresses: Vec<String>,
        desk: D,
        kernels: Kernels,
    ) -> Self {
        let (unflushed, not_kept) = (false, false);
        Self { state, hints: None, desk, addresses, kernels, unflushed, not_kept }
    }

    fn hints(&mut self) -> Result<&mut dyn HintStore> {
        match &mut self.hints {
            Some(hints) => Ok(&mut **hints),
            None => Err(Error::api_misuse("single-use hints must be opened before they are used")),
        }
    }

    pub(crate) fn open(&mut self, part: &PartKey) -> Result<Opened> {
        self.state.open(part)
    }

    pub(crate) fn patch(&mut self, patch: &Patch) -> Result<Opened> {
        patch_part(&mut *self.state, patch, self.kernels)
    }

    /// Keeps what `session` asks for, and reports the outcome to it. `now` is the time.
    ///
    /// # Errors
    /// If it may not be kept; the session does not hear of that.
    pub(crate) fn persist(
        &mut self,
        persist: Persist,
        session: &mut Session,
        now: Duration,
    ) -> Result<()> {
        match persist {
            Persist::Pin { server, name, pin, left } => {
                self.state.pin_successor(&self.addresses[server], &name, &pin, &left)
            }
            Persist::CloseHints => self.put_hints_back(),
            Persist::Append { part, offset, bytes } => self.state.append(&part, offset, &bytes),
            Persist::Complete(part) => {
                let source = self.state.complete(&part)?;
                session.handle_part(PartState::Complete(source), now);
                Ok(())
            }
            Persist::Discard(part) => self.state.discard(&part),
            Persist::Journal { fetch, id, record } => {
                let reserved = [Reserved { fetch, id, record }];
                let receipts = self.commit(&reserved);
                tell_receipts(&reserved, receipts, session, now);
                Ok(())
            }
            Persist::Completion { id, change } => {
                self.unflushed = true;
                let settled = self.hints().and_then(|hints| hints.settle(id, &change));
                self.not_kept |= settled.is_err();
                settled
            }
            Persist::EndHints { id, change, why } => {
                // The preparer's files go with the hints.
                self.desk.stop();
                self.hints()?.end(id, &change, &why)?;
                self.unflushed = false;
                session.handle_hints_ended();
                Ok(())
            }
            Persist::FollowHints { change, to } => {
                self.desk.stop();
                self.hints()?.follow(&change, &to)?;
                self.unflushed = false;
                session.handle_hints_followed(now);
                Ok(())
            }
            Persist::RestartHints(key) => {
                self.change_over(session, now, |hints| hints.restart(&key))
            }
            // The preparer had the files of the prepared generation.
            Persist::SwitchHints => self.change_over(session, now, |hints| hints.switch()),
            Persist::CondenseHints { generation } => {
                self.change_over(session, now, |hints| hints.switch_to(&generation))
            }
        }
    }

    /// Makes `reserved` durable with one sync. The receipts come in the same order.
    pub(crate) fn commit(&mut self, reserved: &[Reserved]) -> Result<Vec<Receipt>> {
        let records: Vec<_> =
            reserved.iter().map(|reserved| (reserved.id, &reserved.record)).collect();
        let receipts = self.hints()?.reserve(&records)?;
        // The same sync made durable what was settled before.
        self.unflushed = false;
        Ok(receipts)
    }

    /// Has the hints change to another generation, or to none, and reports it to the session.
    fn change_over(
        &mut self,
        session: &mut Session,
        now: Duration,
        change: impl FnOnce(&mut dyn HintStore) -> Result<()>,
    ) -> Result<()> {
        self.desk.stop();
        self.unflushed = false;
        let hints = self.hints()?;
        change(hints)?;
        let saved = hints.load()?;
        session.handle_hints(saved, now);
        Ok(())
    }

    /// Gives up the hints that are held, if any: while this process holds them, no other can.
    pub(crate) fn put_hints_back(&mut self) -> Result<()> {
        self.desk.stop();
        if self.hints.is_some() {
            self.flush()?;
            self.hints = None;
        }
        Ok(())
    }

    pub(crate) fn open_hints(&mut self, key: &HintsKey, to_follow: bool) -> Result<HintsOpened> {
        self.state.open_hints(key, to_follow)
    }

    /// Hands a step to the desk. The first one starts it.
    pub(crate) fn prepare(&mut self, step: Prepare, session: &mut Session, now: Duration) {
        if matches!(step, Prepare::Begin)
            && let Err(error) = self.start(session)
        {
            return session.handle_preparation(PreparationEvent::Failed(error), now);
        }
        self.desk.step(step);
    }

    fn start(&mut self, session: &Session) -> Result<()> {
        // Only one of them may hold the files at a time.
        self.desk.stop();
        let store = self.hints()?.preparation()?;
        self.desk.start(session.preparer(store)?)
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        if !mem::take(&mut self.unflushed) {
            return Ok(());
        }
        self.hints()?.flush()
    }
}

/// Tells the session the outcome of the commit of `reserved`. A failure counts for all of them.
pub(crate) fn tell_receipts(
    reserved: &[Reserved],
    receipts: Result<Vec<Receipt>>,
    session: &mut Session,
    now: Duration,
) {
    match receipts {
        Ok(receipts) => {
            for (Reserved { fetch, .. }, receipt) in reserved.iter().zip(receipts) {
                session.handle_persisted(*fetch, receipt, now);
            }
        }
        Err(error) => {
            for Reserved { fetch, .. } in reserved {
                session.handle_not_persisted(*fetch, error.clone());
            }
        }
    }
}
