//! Moving on to a later version of the table in the middle of a session.
//!
//! A server that follows its table's update log serves the earlier version for a while beside the
//! new one. So a client that learns of a new version has time. It begins no further lookup, lets
//! those under way end, and then *opens again*, from the descriptions on, as a new session would.
//! Lookups that wait for their turn wait for that as well. So there is one way to follow, and it
//! starts only from what is on the disk.
//!
//! A client that did not hear of it in time finds the earlier version gone. Its queries on their
//! way cannot be answered any more, and those lookups begin again in the new version. Whether that
//! happens, and to which lookups, follows from what servers said and when, and not from what was
//! looked up.
//!
//! A successor, which is another table, is moved to in the same way: while servers still serve the
//! table before, only when all of them have the successor. So those who run two servers need not
//! switch at one moment.
//!
//! To hear of new versions, a client of a table with an update log asks the servers to describe
//! themselves before a lookup if their last description is older than
//! [`Patience::description`](super::Patience::description). A caller who wants the newest version
//! now hands in a *refresh*. It waits for its turn like a lookup, has the servers describe
//! themselves, and fetches nothing. So what it sends depends on nothing that was looked up. Only a
//! description that was asked for after the refresh was handed in ends it: which one that is
//! follows from the number of the exchange.

use super::calls::Purpose;
use super::interface::ChosenTable;
use super::open::{Incoming, Open, OpenStage};
use super::options::SessionOptions;
use super::pins::keys_of;
use super::shared::Shared;
use super::{Phase, Session};
use privet_core::{Epoch, Error};
use privet_schemes::offline::OfflinePhase;
use privet_wire::ServerDescription;
use std::time::Duration;

/// Whether a session moves on to a later version now.
pub(super) enum Moving {
    /// There is none, or the session cannot follow to it.
    Stays,
    /// It moves on as soon as nothing is under way: no lookup may begin.
    Waits,
    Now,
}

impl Open {
    /// A server has said which versions it serves.
    pub(super) fn note_version(
        &mut self,
        server: usize,
        description: &ServerDescription,
        now: Duration,
    ) {
        self.versions.asked(server, now);
        let (table, id) = (description.table(&self.chosen.name), self.chosen.identity.id);
        if let Some(server) = self.versions.servers.get_mut(server) {
            let versions = table.into_iter().flat_map(|table| table.versions_of(id));
            server.epochs = versions.map(|version| version.identity.epoch).collect();
            let updates = table.and_then(|table| table.updates_of(id));
            server.first_epoch = updates.map(|updates| updates.first_epoch);
            let other = table.filter(|table| table.identity.id != id);
            let may_succeed =
                other.filter(|table| table.updates.is_some_and(|log| log.lineage.is_some()));
            server.successor = may_succeed.map(|table| table.identity.id);
        }
    }

    /// Whether the session may follow the table to a version later than the chosen one: this needs
    /// a known publisher, and no demand for the chosen one.
    pub(super) fn can_move_to(&self, epoch: Epoch, options: &SessionOptions) -> bool {
        epoch > self.chosen.identity.epoch && self.can_move(options)
    }

    fn can_move(&self, options: &SessionOptions) -> bool {
        options.digest.is_none() && keys_of(&self.chosen, options).is_some()
    }

    /// Whether the session can open again now: it waits for nothing from storage.
    pub(super) fn may_open_again(&self) -> bool {
        !matches!(
            self.stage,
            OpenStage::Ending { .. } | OpenStage::Switching { .. } | OpenStage::MovingHints { .. }
        )
    }

    /// Whether all servers have a later version or a successor, a lookup waits, and nothing is
    /// under way.
    pub(super) fn moves_on(&mut self, shared: &Shared) -> Moving {
        let newest = self.versions.newest_everywhere();
        let newer = newest.is_some_and(|newest| self.can_move_to(newest, &shared.options))
            || (self.versions.succeeded_everywhere() && self.can_move(&shared.options));
        if !newer || self.hints.broken.is_some() || shared.lookups.is_empty() {
            return Moving::Stays;
        }
        // Unanswered queries keep hints at their version for as long as servers serve it.
        let held = self.hinted().is_some_and(|hints| !hints.open().is_empty());
        match (held, self.hints_are_idle(shared)) {
            (true, true) => Moving::Stays,
            (false, true) if shared.lookups.none_under_way() => Moving::Now,
            _ => Moving::Waits,
        }
    }

    /// Asks servers to describe themselves if they have not done so for long. Returns whether the
    /// session waits for a description.
    pub(super) fn asks_for_versions(&self, shared: &mut Shared, now: Duration) -> bool {
        // By a scheme whose client holds the table, a lookup sends nothing at all: such a session
        // goes on with the table that it has until it is refreshed.
        let keeps_table = matches!(self.chosen.scheme.plan.offline, OfflinePhase::KeepTable { .. });
        let refreshes = shared.lookups.refreshes_since();
        let stays = keeps_table && refreshes.is_none();
        if stays || keys_of(&self.chosen, &shared.options).is_none() {
            return false;
        }
        let lifetime = shared.options.patience.description;
        for (server, known) in self.versions.servers.iter().enumerate() {
            let fresh = |asked| now.saturating_sub(asked) < lifetime;
            match refreshes {
                Some(since) if !shared.calls.is_described_since(server, since) => {
                    shared.calls.describe_since(server, since, now, &mut shared.outputs);
                }
                None if !known.asked.is_some_and(fresh) => {
                    shared.calls.describe_again(server, now, now, &mut shared.outputs);
                }
                _ => {}
            }
        }
        shared.calls.is_open(Purpose::Describe)
    }

    /// Uses an earlier version that is still served, because stored hints have queries to be
    /// answered in it.
    pub(super) fn stay_with(&mut self, shared: &mut Shared, version: ChosenTable) {
        self.chosen = version;
        self.open_layout(shared);
    }
}

impl Session {
    /// Begins anew with what the servers serve now. Lookups that were under way wait for their turn
    /// again.
    pub(super) fn open_again(&mut self, now: Duration) {
        self.shared.lookups.begin_again();
        self.forget_version();
        self.shared.describe_all(now);
    }

    /// Ends everything that is under way in the chosen version. Table and scheme stay the chosen
    /// ones, whatever else servers offer.
    fn forget_version(&mut self) {
        let Shared { calls, options, outputs, .. } = &mut self.shared;
        calls.abandon_all(outputs);
        let describing = Phase::Describing(vec![None; options.servers]);
        if let Phase::Open(open) = std::mem::replace(&mut self.phase, describing) {
            options.table = Some(open.chosen.name);
            options.schemes = vec![open.chosen.scheme.plan.scheme];
        }
    }

    /// Whether lookups have begun before, and the session is on its way to another version.
    pub(super) fn is_opening_again(&self) -> bool {
        let between = match &self.phase {
            Phase::Describing(_) => true,
            Phase::Open(open) => {
                open.late.is_some()
                    || matches!(
                        open.stage,
                        OpenStage::Following(_)
                            | OpenStage::Incoming(
                                Incoming::Opening { .. } | Incoming::Fetching { .. }
                            )
                            | OpenStage::Preparing
                    )
            }
            Phase::Over(..) => false,
        };
        between && self.shared.opened_before
    }

    /// The servers cannot be reached while the session is opening again. Waiting lookups fail, and
    /// the next lookup tries again.
    pub(super) fn put_off(&mut self, error: &Error) {
        self.shared.fail_all(error);
        self.forget_version();
    }

    /// If a server was given up while the session is opening again: asks the servers once more when
    /// a lookup waits for them.
    pub(super) fn describes_again(&mut self, now: Duration) -> bool {
        let Shared { lookups, calls, opened_before, .. } = &self.shared;
        if !opened_before || lookups.is_empty() || calls.is_open(Purpose::Describe) {
            return false;
        }
        self.open_again(now);
        true
    }
}
