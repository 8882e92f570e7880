//! The epochs between two versions of a table, as servers tell them: each is checked to be the next
//! one, and what they changed is put together. The module `following` says what for.

use super::hints::Loaded;
use crate::state::Pin;
use privet_core::{Error, Reason, Result, TableChanges, TableDelta, TableIdentity};
use privet_table::update_log::{Chain, EpochHash};
use privet_wire::FetchChunk;
use privet_wire::prost::bytes::Bytes;
use privet_wire::updates::EpochReader;

/// What led from one version to another, checked.
pub(super) struct Followed {
    /// The pin that it began with.
    pub(super) pin: Box<Pin>,
    pub(super) to: TableIdentity,
    pub(super) changes: TableChanges,
    /// The epoch that made the later version what it is.
    pub(super) last_epoch: Option<EpochHash>,
}

/// Epochs on their way.
pub(super) struct Following {
    /// What is brought up to date.
    pub(super) follower: Follower,
    /// Where it begins.
    pub(super) start: Chain,
    /// How far it came, by the present server's word.
    pub(super) chain: Chain,
    pub(super) target: TableIdentity,
    /// Which server is asked, the first of `servers`.
    pub(super) server: usize,
    pub(super) servers: usize,
    pub(super) reader: EpochReader,
    pub(super) received: u64,
    pub(super) changes: TableChanges,
    pub(super) epochs: Vec<ToldEpoch>,
    /// How many epochs the present server has told.
    pub(super) told: usize,
    /// Versions that have to lie on the way.
    pub(super) milestones: Vec<TableIdentity>,
    /// The layout that it begins with is taken to be that of the target. If that is wrong, the
    /// first epoch does not follow.
    pub(super) layout_is_guessed: bool,
}

pub(super) enum Follower {
    Pins(Box<Pin>),
    Hints(Box<Loaded>),
}

/// How what a server tells compares with what those before it have told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// It is the same, or nobody was asked before.
    TheSame,
    /// An epoch of the same number that the publisher has signed as well, and that is another.
    Otherwise,
}

/// One epoch.
pub(super) struct ToldEpoch {
    pub(super) hash: EpochHash,
    pub(super) after: TableIdentity,
    /// What it changed, if it is followed one by one.
    pub(super) delta: Option<TableDelta>,
    /// What each server said of the commitments after it.
    pub(super) commitments: Vec<Bytes>,
}

impl Following {
    /// From `start` to `target`, as the first of so many servers tell it.
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
            let update = self.chain.follow(&fetched.epoch)?;
            let hash = update.hash();
            if self.server == 0 {
                let changes = update.changes()?;
                let one_by_one = self.servers > 1;
                let delta = one_by_one.then(|| changes.delta());
                self.changes.then(changes)?;
                // Unsigned, and of no use where nothing is verified.
                let commitments = one_by_one.then_some(fetched.commitments).into_iter().collect();
                self.epochs.push(ToldEpoch { hash, after: update.after(), delta, commitments });
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

    /// Each version that was pinned somewhere is one of those passed through.
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
