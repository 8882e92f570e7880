//! The versions of the table that servers serve, as far as they have said.

use privet_core::Epoch;
use std::time::Duration;

/// What a session knows of its servers' versions.
#[derive(Default)]
pub(super) struct Versions {
    pub(super) servers: Vec<Server>,
    /// The caller accepts whatever the servers show, in this opening.
    pub(super) accepting: bool,
}

#[derive(Clone, Default)]
pub(super) struct Server {
    /// When it last described itself.
    pub(super) asked: Option<Duration>,
    /// The versions that it serves.
    pub(super) epochs: Vec<Epoch>,
    /// The oldest version from which its updates start.
    pub(super) first_epoch: Option<Epoch>,
}

impl Versions {
    pub(super) fn of(servers: usize) -> Self {
        Self { servers: vec![Server::default(); servers], ..Self::default() }
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

    /// The oldest version from which all servers have the updates.
    pub(super) fn first_epoch_everywhere(&self) -> Option<Epoch> {
        let first_epochs: Option<Vec<Epoch>> =
            self.servers.iter().map(|server| server.first_epoch).collect();
        first_epochs?.into_iter().max()
    }
}
