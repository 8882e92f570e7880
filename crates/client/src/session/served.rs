//! The versions of the table that servers serve, as far as they have said.

use privet_core::{Epoch, TableId};
use std::time::Duration;

/// What a session knows of its servers' versions.
#[derive(Default)]
pub(super) struct Versions {
    pub(super) servers: Vec<ServerVersions>,
    /// The caller accepts whatever the servers show, in this opening.
    pub(super) accepting: bool,
}

#[derive(Clone, Default)]
pub(super) struct ServerVersions {
    /// When it last described itself.
    pub(super) asked: Option<Duration>,
    /// The versions that it serves of the table that is open.
    pub(super) epochs: Vec<Epoch>,
    /// The oldest version from which the updates of that table start.
    pub(super) first_epoch: Option<Epoch>,
    /// The other table that it serves in that one's place, if signed successions may lead there.
    pub(super) successor: Option<TableId>,
}

impl Versions {
    pub(super) fn of(servers: usize) -> Self {
        Self { servers: vec![ServerVersions::default(); servers], ..Self::default() }
    }

    /// A server described itself.
    pub(super) fn asked(&mut self, server: usize, now: Duration) {
        if let Some(server) = self.servers.get_mut(server) {
            server.asked = Some(now);
        }
    }

    /// A server was given up while it had to describe itself. The next request makes it describe
    /// itself first.
    pub(super) fn given_up(&mut self, server: usize) {
        self.asked(server, Duration::MAX);
    }

    /// The latest version that all servers serve.
    pub(super) fn newest_everywhere(&self) -> Option<Epoch> {
        let (first, others) = self.servers.split_first()?;
        let everywhere = |epoch: &&Epoch| others.iter().all(|server| server.epochs.contains(epoch));
        first.epochs.iter().filter(everywhere).max().copied()
    }

    /// Whether all servers serve the same other table in place of the one that is open.
    pub(super) fn succeeded_everywhere(&self) -> bool {
        let first = self.servers.first().and_then(|first| first.successor);
        first.is_some() && self.servers.iter().all(|server| server.successor == first)
    }

    /// The oldest version from which all servers have the updates.
    pub(super) fn first_epoch_everywhere(&self) -> Option<Epoch> {
        let first_epochs: Option<Vec<Epoch>> =
            self.servers.iter().map(|server| server.first_epoch).collect();
        first_epochs?.into_iter().max()
    }
}
