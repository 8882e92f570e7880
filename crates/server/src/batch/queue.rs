//! What waits in one lane, and whose turn it is.

use super::Lane;
use crate::admission::Peer;
use crate::secret_bytes::SecretBytes;
use privet_core::Result;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;

/// When it is a lane's turn. The least goes first: one that has just got its first query comes
/// right before the lane that was served last, and after all others that wait.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    /// The number of the last batch that was taken then.
    pub(super) after: u64,
    /// Whether that was a batch of this lane.
    pub(super) served: bool,
}

/// What waits in a lane.
pub(super) struct Queue {
    pub(super) lane: Arc<Lane>,
    pub(super) turn: Turn,
    /// The jobs of each peer, by age. None is empty.
    jobs: HashMap<Peer, VecDeque<Job>>,
    /// The peers in `jobs`, in the order in which it is their turn.
    turns: VecDeque<Peer>,
    /// Queries.
    pub(super) waiting: usize,
}

/// The queries of a request, or a part of them.
pub(super) struct Job {
    pub(super) request: Arc<SecretBytes>,
    /// In bytes of the request.
    pub(super) queries: Range<usize>,
    pub(super) count: usize,
    pub(super) arrived: Instant,
    pub(super) reply: Reply,
}

pub(super) type Reply = oneshot::Sender<Result<Vec<u8>>>;

impl Queue {
    pub(super) fn new(lane: Arc<Lane>, turn: Turn) -> Self {
        Self { lane, turn, jobs: HashMap::new(), turns: VecDeque::new(), waiting: 0 }
    }

    pub(super) fn push(&mut self, peer: Peer, job: Job) {
        self.waiting += job.count;
        let jobs = self.jobs.entry(peer).or_insert_with(|| {
            self.turns.push_back(peer);
            VecDeque::new()
        });
        jobs.push_back(job);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// When the youngest job of `peer` came.
    pub(super) fn youngest(&self, peer: Peer) -> Option<Instant> {
        Some(self.jobs.get(&peer)?.back()?.arrived)
    }

    /// When the oldest of its jobs came.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.jobs.values().filter_map(|jobs| Some(jobs.front()?.arrived)).min()
    }

    /// The next job of the peer whose turn it is and that has one of at most as many queries as
    /// there is `room` for of that peer.
    pub(super) fn pop(&mut self, room: impl Fn(Peer) -> usize) -> Option<(Peer, Job)> {
        for _ in 0..self.turns.len() {
            let peer = self.turns.pop_front()?;
            let jobs = self.jobs.get_mut(&peer)?;
            let job = jobs.pop_front_if(|job| job.count <= room(peer));
            match jobs.is_empty() {
                true => drop(self.jobs.remove(&peer)),
                false => self.turns.push_back(peer),
            }
            if let Some(job) = job {
                self.waiting -= job.count;
                return Some((peer, job));
            }
        }
        None
    }

    /// The youngest job of `peer`.
    pub(super) fn pop_youngest(&mut self, peer: Peer) -> Option<Job> {
        let jobs = self.jobs.get_mut(&peer)?;
        let job = jobs.pop_back()?;
        if jobs.is_empty() {
            self.jobs.remove(&peer);
            self.turns.retain(|other| *other != peer);
        }
        self.waiting -= job.count;
        Some(job)
    }
}
