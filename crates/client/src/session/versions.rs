//! Moving on to a later version of the table in the midst of a session.
//!
//! A server that follows its table's update log serves the version before for a while beside the new one. So a client that learns of a new version has time: no further lookup is begun, those under way
//! come to their end, and then the session *opens again*, from the descriptions on, as a new one would. Lookups that wait for their turn wait for that as well.
//!
//! A client that did not hear of it in time finds the version gone. What was on its way then cannot be answered any more, and those lookups begin again in the new version. Whether that happens, and to which
//! lookups, follows from what servers said and when, and not from what was looked up.
//!
//! To hear of new versions, a client of a table with an update log asks the servers to describe themselves before a lookup if the last word is older than
//! [`Patience::description`](super::Patience::description).

use super::calls::Purpose;
use super::choose::publisher_of;
use super::hints::Hints;
use super::interface::{ChosenTable, Request};
use super::{Phase, Session};
use privet_core::Epoch;
use privet_wire::{DescribeRequest, ServerDescription};
use std::time::Duration;

/// What a session knows of its servers' versions.
#[derive(Default)]
pub(super) struct Versions {
    servers: Vec<Server>,
    /// Lookups have begun before: the session is not as it was when it was new.
    pub(super) opened_before: bool,
}

#[derive(Clone, Copy, Default)]
struct Server {
    /// When it last described itself.
    asked: Option<Duration>,
    /// The latest version that it serves.
    newest: Option<Epoch>,
}

impl Versions {
    pub(super) fn of(servers: usize) -> Self {
        Self { servers: vec![Server::default(); servers], opened_before: false }
    }

    /// A server described itself.
    pub(super) fn asked(&mut self, server: usize, now: Duration) {
        if let Some(server) = self.servers.get_mut(server) {
            server.asked = Some(now);
        }
    }

    /// A server was given up when it was to describe itself. The next request will have it do so before anything else.
    pub(super) fn given_up(&mut self, server: usize) {
        self.asked(server, Duration::MAX);
    }

    fn newest_everywhere(&self) -> Option<Epoch> {
        self.servers.iter().map(|server| server.newest).min().flatten()
    }
}

impl Session {
    /// A server has said what it serves.
    pub(super) fn note_version(
        &mut self,
        server: usize,
        description: &ServerDescription,
        now: Duration,
    ) {
        self.versions.asked(server, now);
        let Some(chosen) = self.chosen.as_deref() else { return };
        let table = description.table(&chosen.name);
        if let Some(server) = self.versions.servers.get_mut(server) {
            server.newest = table.map(|table| table.identity.epoch);
        }
    }

    /// Whether a later version than the chosen one may be had by following the table: it is known who signs its epochs.
    pub(super) fn can_move_to(&self, epoch: Epoch) -> bool {
        self.can_follow()
            && self.chosen.as_deref().is_some_and(|chosen| epoch > chosen.identity.epoch)
    }

    fn can_follow(&self) -> bool {
        self.chosen.as_deref().is_some_and(|chosen| publisher_of(chosen, &self.options).is_some())
    }

    /// Whether the session can be opened again now: it is not over, and waits for nothing that storage has been told to do.
    pub(super) fn may_open_again(&self) -> bool {
        !matches!(
            self.phase,
            Phase::Over(_)
                | Phase::Ending { .. }
                | Phase::Switching { .. }
                | Phase::MovingHints { .. }
        )
    }

    /// Moves on if all servers have a later version and nothing is under way. Returns whether no lookup may begin: because that is so, or because it is waited for.
    pub(super) fn moves_on(&mut self, now: Duration) -> bool {
        let newest = self.versions.newest_everywhere();
        if !newest.is_some_and(|newest| self.can_move_to(newest)) || self.hints.broken.is_some() {
            return false;
        }
        // What was sent and never answered keeps hints where they are for as long as that version is served.
        let held = self.hinted().is_some_and(|hints| !hints.open().is_empty());
        if held && self.hints.is_idle() {
            return false;
        }
        if !held && self.hints.is_idle() && self.lookups.none_under_way() {
            self.open_again(now);
        }
        true
    }

    /// Has servers describe themselves if they have not for long. Returns whether an answer is waited for.
    pub(super) fn asks_for_versions(&mut self, now: Duration) -> bool {
        if !self.can_follow() {
            return false;
        }
        let lifetime = self.options.patience.description;
        for server in 0..self.options.servers {
            let stale = self.versions.servers.get(server).is_some_and(|known| {
                known.asked.is_none_or(|asked| now.saturating_sub(asked) >= lifetime)
            });
            if stale {
                self.calls.describe_now(server, now, &mut self.outputs);
            }
        }
        self.calls.is_open(Purpose::Describe)
    }

    /// Begins anew with what the servers serve now. Lookups that were under way wait for their turn again.
    pub(super) fn open_again(&mut self, now: Duration) {
        self.calls.abandon_all(&mut self.outputs);
        let waiting = std::mem::take(&mut self.hints).into_waiting();
        self.lookups.begin_again(waiting, |fetch| self.groups.whole_of(fetch));
        self.groups.drop_all();
        self.hints = Hints::default();
        self.hints.unanswered.lookup_handed_in();
        (self.chosen, self.records, self.followed) = (None, None, None);
        self.served.clear();
        let servers = self.options.servers;
        self.versions = Versions { opened_before: true, ..Versions::of(servers) };
        self.phase = Phase::Describing(vec![None; servers]);
        for server in 0..servers {
            let request = Request::Describe(DescribeRequest::default());
            self.calls.start(server, Purpose::Describe, request, now, &mut self.outputs);
        }
    }

    /// In a session that is opening again, and was given up by a server: asks the servers once more if there is a lookup that waits for them.
    pub(super) fn describes_again(&mut self, now: Duration) -> bool {
        let describing = matches!(self.phase, Phase::Describing(_)) && self.versions.opened_before;
        if !describing || self.lookups.is_empty() || self.calls.is_open(Purpose::Describe) {
            return false;
        }
        self.open_again(now);
        true
    }

    /// Uses an earlier version that is still served, because hints that are kept have queries to be answered in it.
    pub(super) fn stay_with(&mut self, version: ChosenTable) {
        self.chosen = Some(Box::new(version));
        self.open_layout();
    }
}
