//! The epochs between two versions of a table, as servers send them. Each is checked to be the next
//! one, and their changes are combined. The module `following` says what for.

use super::hints::Loaded;
use crate::state::Pin;
use privet_core::{Error, Reason, Result, TableChanges, TableDelta, TableIdentity};
use privet_table::update_log::{Chain, EpochHash, EpochUpdate};
use privet_wire::FetchChunk;
use privet_wire::prost::bytes::Bytes;
use privet_wire::updates::EpochReader;

/// The checked epochs from one version to another.
pub(super) struct Followed {
    /// The pin at the start.
    pub(super) pin: Box<Pin>,
    pub(super) to: TableIdentity,
    pub(super) changes: TableChanges,
    /// The epoch that made the later version.
    pub(super) last_epoch: Option<EpochHash>,
}

/// Epochs that are being received.
pub(super) struct Following {
    /// What will follow them.
    pub(super) follower: Follower,
    /// The chain at the start.
    pub(super) start: Chain,
    /// The chain now, as the present server sent it.
    pub(super) chain: Chain,
    pub(super) target: TableIdentity,
    /// The server that is asked, the first of `servers`.
    pub(super) server: usize,
    pub(super) servers: usize,
    pub(super) reader: EpochReader,
    pub(super) received: u64,
    pub(super) changes: TableChanges,
    pub(super) epochs: Vec<ToldEpoch>,
    /// How many epochs the present server has sent.
    pub(super) told: usize,
    /// Versions that must lie on the way.
    pub(super) milestones: Vec<TableIdentity>,
    /// The layout at the start is taken to be that of the target. If that is wrong, the first epoch
    /// does not follow.
    pub(super) layout_is_guessed: bool,
}

pub(super) enum Follower {
    Pins(Box<Pin>),
    Hints(Box<Loaded>),
}

/// How a server's epoch compares with those of the servers before it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// It is the same, or no server was asked before.
    TheSame,
    /// The publisher has signed another epoch with the same number as well.
    Otherwise,
}

/// One epoch.
pub(super) struct ToldEpoch {
    pub(super) hash: EpochHash,
    pub(super) after: TableIdentity,
    /// Its changes, if the hints follow epochs one by one.
    pub(super) delta: Option<TableDelta>,
    /// The commitments after it, from each server.
    pub(super) commitments: Vec<Bytes>,
}

impl Following {
    /// The epochs from `start` to `target`, from the first of so many servers.
    pub(super) fn new(
        follower: Follower,
        start: Chain,
        target: TableIdentity,
        servers: usize,
    ) -> Self {
        Self {
            follower,
            chain: start.clone(),
            changes: TableChanges::none(start.identity().shape),
            start,
            target,
            server: 0,
            servers,
            reader: EpochReader::default(),
            received: 0,
            epochs: Vec::new(),
            told: 0,
            milestones: Vec::new(),
            layout_is_guessed: false,
        }
    }

    pub(super) fn take(&mut self, chunk: &FetchChunk, limit: u64) -> Result<Told> {
        let end = chunk.offset.saturating_add(chunk.data.len() as u64);
        if chunk.offset != self.received {
            return Err(Error::peer_misbehaved(format!(
                "the server sent byte {} of the updates when byte {} was due",
                chunk.offset, self.received
            )));
        }
        if end > limit {
            return Err(Error::api_misuse(format!(
                "the updates since version {} of the table have more than the {limit} bytes that are allowed; allow more, or start over with the table as it is now",
                self.start.identity().epoch.0
            ))
            .because(Reason::TooManyUpdates));
        }
        self.received = end;
        for fetched in self.reader.take(&chunk.data)? {
            if self.chain.identity().epoch >= self.target.epoch {
                return Err(Error::peer_misbehaved(
                    "the server sent updates beyond the version that was asked for",
                ));
            }
            let EpochUpdate { hash, after, changes, .. } = self.chain.follow(&fetched.epoch)?;
            if self.server == 0 {
                let one_by_one = self.servers > 1;
                let delta = one_by_one.then(|| changes.delta());
                self.changes.then(changes)?;
                // Nothing signs them, and only verified hints use them.
                let commitments = one_by_one.then_some(fetched.commitments).into_iter().collect();
                self.epochs.push(ToldEpoch { hash, after, delta, commitments });
            } else {
                let same = self.epochs.get_mut(self.told).filter(|step| step.hash == hash);
                let Some(same) = same else { return Ok(Told::Otherwise) };
                same.commitments.push(fetched.commitments);
            }
            self.told += 1;
        }
        let reached = self.chain.identity();
        if reached.epoch == self.target.epoch && reached != self.target {
            return Err(Error::integrity(format!(
                "the updates that the table's publisher has signed lead to other contents of version {} than the server describes: the server shows a table that is not the publisher's; nothing was asked",
                reached.epoch.0
            )));
        }
        Ok(Told::TheSame)
    }

    pub(super) fn ask_another(&mut self, server: usize) {
        self.server = server;
        self.chain = self.start.clone();
        self.reader = EpochReader::default();
        (self.received, self.told) = (0, 0);
    }

    pub(super) fn is_complete(&self) -> bool {
        self.chain.identity() == self.target && self.reader.is_empty()
    }

    /// Checks that each version that was pinned somewhere lies on the way.
    pub(super) fn check_milestones(&self) -> Result<()> {
        let start = self.start.identity();
        let passed = |pinned: &TableIdentity| {
            *pinned == start || self.epochs.iter().any(|step| step.after == *pinned)
        };
        match self.milestones.iter().find(|pinned| !passed(pinned)) {
            None => Ok(()),
            Some(pinned) => Err(Error::integrity(format!(
                "version {} of the table, as it was pinned at one of the servers, is not one that its publisher's updates lead through; nothing was asked. One of the servers has shown another table before",
                pinned.epoch.0
            ))),
        }
    }
}
