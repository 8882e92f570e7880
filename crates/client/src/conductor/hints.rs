//! Single-use hints: opening them, their journal, the next generation, and coming to rest.

use super::desk::Desk;
use super::keeper::tell_receipts;
use super::{Awaited, Busy, Conductor, Errand, FLUSH_PAUSE};
use crate::session::{Prepare, Progress};
use crate::state::{HintsKey, HintsOpened};
use privet_core::{Error, Reason};
use privet_schemes::offline::OfflinePhase;
use privet_wire::PartKind;
use std::mem;

impl<D: Desk> Conductor<D> {
    pub(super) fn open_hints(&mut self, key: HintsKey, to_follow: bool, busy: Option<Busy>) {
        let saved = match self.keeper.open_hints(&key, to_follow) {
            Ok(HintsOpened::Have { hints, notice }) => {
                self.notice(notice);
                self.keeper.hints.insert(hints).load()
            }
            Ok(HintsOpened::Busy) => {
                let (part, total) = (PartKind::Table, key.table.shape.bytes());
                if busy.is_none() {
                    self.tell(Progress::Waiting { part, done: 0, total });
                }
                if let Some(busy) = self.ask_again(0, busy) {
                    self.busy = Some((Awaited::Hints { key, to_follow }, busy));
                    return;
                }
                Err(Error::unavailable(format!(
                    "another process has been using the hints for this table for {} s, and a hint serves only once, so they are not shared; end that process, or use a state directory of your own",
                    self.busy_patience.as_secs()
                ))
                .because(Reason::UsedByAnotherProcess))
            }
            Err(error) => Err(error),
        };
        match saved {
            Ok(saved) => self.session.handle_hints(saved, self.told),
            Err(error) => self.session.handle_storage_failure(error),
        }
    }

    /// Makes the gathered journal records durable, all at once, and has their queries sent. Returns
    /// whether there were any.
    pub(super) fn commit(&mut self) -> bool {
        if self.gathered.is_empty() {
            return false;
        }
        let before = self.now();
        let receipts = self.keeper.commit(&self.gathered);
        self.stats.journal_time += self.now().saturating_sub(before);
        tell_receipts(&self.gathered, receipts, &mut self.session, self.told);
        self.gathered.clear();
        true
    }

    pub(super) fn prepare(&mut self, step: Prepare) {
        if matches!(step, Prepare::Begin) && !self.is_ready {
            self.note_hints_origin(false);
        }
        self.keeper.prepare(step, &mut self.session, self.told);
    }

    /// Hands the session the outcome of one step of the preparation. Returns whether there was one.
    pub(super) fn take_prepared(&mut self) -> bool {
        let Some(event) = self.keeper.desk.done() else { return false };
        self.session.handle_preparation(event, self.told);
        true
    }

    /// Notes whether single-use hints were stored, if the scheme has such hints. The first call
    /// counts.
    pub(super) fn note_hints_origin(&mut self, stored: bool) {
        let are_kept = self.session.table().is_some_and(|table| {
            matches!(
                table.scheme.plan.offline,
                OfflinePhase::StreamTable { .. }
                    | OfflinePhase::StreamArranged { .. }
                    | OfflinePhase::Ask { .. }
            )
        });
        if are_kept {
            self.stats.hint_was_stored.get_or_insert(stored);
        }
    }

    /// Whether what was settled is to be made durable now, and not with the next lookup.
    fn flush_is_due(&mut self) -> bool {
        if !self.keeper.unflushed || !self.session.has_no_lookups() {
            self.flush_at = None;
            return false;
        }
        let now = self.now();
        let due = *self.flush_at.get_or_insert(now + FLUSH_PAUSE);
        if due > now && self.finishing.is_empty() {
            return false;
        }
        self.flush_at = None;
        true
    }

    /// Makes durable what can be, when there is nothing else to do, and notifies those who
    /// wait for that.
    pub(super) fn come_to_rest(&mut self) {
        if self.flush_is_due()
            && let Err(error) = self.keeper.flush()
        {
            self.keeper.not_kept = true;
            self.session.handle_storage_failure(error);
        }
        if self.keeper.not_kept || self.session.is_at_rest() {
            for ticket in mem::take(&mut self.finishing) {
                let outcome = if self.keeper.not_kept {
                    Err(Error::unavailable(
                        "results of the last lookups may not have been kept; their queries will be sent again",
                    ))
                } else {
                    Ok(())
                };
                self.errands.push_back(Errand::Finished { ticket, outcome });
            }
        }
    }
}
