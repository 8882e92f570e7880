//! When the next generation of hints is prepared, and how far.
//!
//! Hints serve once. Before the last one is used, the next generation must be ready, and for that
//! the whole table must have been streamed. No query may wait for that, and a short-lived process
//! must be able to end. So the table is streamed in pieces, together with the queries. (This is
//! section 2.4 of Piano, which spreads the work of the next preprocessing over the present window
//! of queries.)
//!
//! # The schedule
//!
//! A server sees when a client fetches which stretch of the table. That must tell it nothing new.
//! So it is a function of the number of queries, which the server has seen, and of public sizes
//! ([`Schedule::due`]):
//!
//! ```text
//! queries used    0 ───────── total/4 ───────────────────────────── 3·total/4 ───────── total
//! table streamed  nothing     piece 1, 2, 3, … one after another, evenly spread    all of it
//! ```
//!
//! The last quarter is a reserve, for pieces that failed. A piece is a 64th of the table, or as
//! many bytes as the client's state if that is more (because a checkpoint of about that size is
//! written after each piece), and at least 1 MiB. It is rounded up to whole steps, so that it
//! begins where a download may [go on](super::boundaries). After a lookup has been *sent*, the
//! session fetches the pieces that are due, at most two of them. It tries a failed piece again with
//! the usual patience, and then with the next lookup. Once the hints are used up, it fetches the
//! rest without waiting for lookups, and the next lookup waits for that. This too follows from the
//! number of queries.
//!
//! If there is no generation to begin with, the whole table is due at once.
//!
//! # Other streams
//!
//! A scheme may stream the table in an order of its own; nothing else changes. Or one server
//! computes the hints, in reply to requests. Then the stream is the replies, one after the other,
//! and the amount that is due is rounded up to whole replies. There is one request at a time. The
//! worker makes it, because it is a part of the secret state. If a request fails, the same bytes
//! are sent again.
//!
//! Hints that never run out have no next generation to prepare: see the module `endless`.
//!
//! # Memory
//!
//! Received bytes go to the worker, which may be slower than the network. So the table is fetched
//! in strides, and the next stride only when less than one is left to do.

use super::boundaries::Boundaries;
use super::compared::{Sources, Stream};
use privet_schemes::contract::Supply;
use std::ops::Range;
use std::time::Duration;

/// Sizes that govern a session. Public, and the same for all sessions except in tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// A piece has at least this many bytes.
    pub(super) shortest_piece: u64,
    /// The most that one request asks for.
    pub(super) stride: u64,
    /// After so many bytes of a first generation there is a checkpoint, …
    pub(super) checkpoint_interval: u64,
    /// … and after so long a time. That bounds what a killed process loses, and the share of time
    /// that checkpoints take.
    pub(super) checkpoint_every: Duration,
    /// The shortest step between two of the [boundaries](Boundaries) at which a download goes on.
    pub(super) shortest_step: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            shortest_piece: 1 << 20,
            stride: 1 << 24,
            checkpoint_interval: 1 << 30,
            checkpoint_every: Duration::from_secs(5),
            shortest_step: 1 << 20,
        }
    }
}

/// How much of the table is due when. See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    stream: Stream,
    piece: u64,
}

impl Schedule {
    /// For a table of `table_len` bytes and a client whose state has about `state_len`.
    pub(super) fn new(table_len: u64, state_len: u64, pace: &Pace) -> Self {
        let piece = (table_len / 64).max(state_len).max(pace.shortest_piece).max(1);
        let step = Boundaries::of(table_len, pace).step();
        let piece = piece.checked_next_multiple_of(step).unwrap_or(piece);
        Self { stream: Stream { len: table_len, step }, piece }
    }

    /// How many bytes of the table should have been streamed once `supply.used` queries were sent.
    pub(super) fn due(&self, supply: Supply) -> u64 {
        let (begin, end) = (supply.total / 4, supply.total - supply.total / 4);
        if supply.used < begin {
            return 0;
        }
        let pieces = self.stream.len.div_ceil(self.piece);
        let due = if supply.used >= end {
            pieces
        } else {
            // Both factors are bounded by what a client holds in memory; 128 bits hold their
            // product for any announced sizes.
            let (used, span) = (u128::from(supply.used - begin), u128::from(end - begin));
            (used * u128::from(pieces) / span + 1) as u64
        };
        due.saturating_mul(self.piece).min(self.stream.len)
    }
}

/// The next thing to do for the preparation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PreparationStep {
    Begin,
    Fetch { offset: u64, len: u64 },
    Ask,
    Checkpoint,
    Finish,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PreparingStage {
    /// The worker has not begun.
    Idle,
    /// The worker reads the checkpoint.
    Beginning,
    Streaming,
    /// All bytes were handed to the worker.
    Finishing,
    Complete,
    /// The worker failed. It starts again when more is due.
    Broken,
}

/// A generation that is being prepared, as the session sees it.
pub(super) struct Preparing {
    schedule: Schedule,
    pace: Pace,
    stage: PreparingStage,
    /// Whether lookups wait for it: it is the first generation.
    pub(super) foreground: bool,
    /// How much of the table is due.
    due: u64,
    /// How much may be fetched before another lookup is sent.
    granted: u64,
    /// The size of replies, if the stream consists of replies.
    reply_len: Option<u64>,
    /// The servers that send the stream.
    pub(super) sources: Sources,
    /// The worker is making a request.
    asking: bool,
    /// Where the fetch under way ends, or the reply.
    fetching_to: Option<u64>,
    /// A fetch was given up: no new one before the next lookup.
    held: bool,
    /// Lookups wait for it.
    awaited: bool,
    /// The next byte to hand to the worker.
    received: u64,
    /// The next byte that the worker will take.
    absorbed: u64,
    /// Where the last checkpoint was ordered, …
    checkpointed: u64,
    /// … and when; before the first one: when there was first something to save.
    checkpointed_at: Option<Duration>,
    /// Checkpoints that were ordered and are not saved yet.
    saving: u32,
}

impl Preparing {
    /// The first generation: everything is due.
    pub(super) fn foreground(table_len: u64, pace: Pace) -> Self {
        let schedule = Schedule::new(table_len, 0, &pace);
        let mut preparing = Self::next_generation(schedule, pace, 0);
        (preparing.foreground, preparing.due, preparing.granted) = (true, table_len, table_len);
        preparing
    }

    /// The next generation; the bytes before `offset` need not be streamed again.
    pub(super) fn next_generation(schedule: Schedule, pace: Pace, offset: u64) -> Self {
        Self {
            schedule,
            pace,
            stage: PreparingStage::Idle,
            foreground: false,
            due: 0,
            granted: 0,
            reply_len: None,
            sources: Sources::First,
            asking: false,
            fetching_to: None,
            held: false,
            awaited: false,
            received: offset,
            absorbed: offset,
            checkpointed: offset,
            checkpointed_at: None,
            saving: 0,
        }
    }

    /// The same for replies of `reply_len` bytes; `None`: the table is streamed.
    pub(super) fn of_replies(self, reply_len: Option<u64>) -> Self {
        Self { reply_len, ..self }
    }

    /// The same for a stream from `sources`.
    pub(super) fn from(self, sources: Sources) -> Self {
        Self { sources, ..self }
    }

    /// The servers to ask for the stretch that begins at `offset`.
    pub(super) fn servers(&self, offset: u64) -> Range<usize> {
        self.sources.servers(offset, self.schedule.stream)
    }

    /// Where a fetch of the stretch that begins at `offset` may go on.
    pub(super) fn boundaries(&self, offset: u64) -> Boundaries {
        let stream = self.schedule.stream;
        Boundaries::of(stream.len, &self.pace).from(self.sources.share(offset, stream).start)
    }

    /// A generation that waits to be used.
    pub(super) fn complete(schedule: Schedule, pace: Pace) -> Self {
        let mut preparing = Self::next_generation(schedule, pace, schedule.stream.len);
        preparing.stage = PreparingStage::Complete;
        preparing
    }

    pub(super) fn is_complete(&self) -> bool {
        self.stage == PreparingStage::Complete
    }

    /// Whether the worker is busy, or waits for anything but the server.
    pub(super) fn is_at_work(&self) -> bool {
        match self.stage {
            PreparingStage::Beginning | PreparingStage::Finishing => true,
            PreparingStage::Streaming => {
                self.asking || self.saving > 0 || self.absorbed < self.received
            }
            PreparingStage::Idle | PreparingStage::Complete | PreparingStage::Broken => false,
        }
    }

    /// A lookup was sent, and left this supply.
    pub(super) fn lookup_sent(&mut self, supply: Supply) {
        let due = self.schedule.due(supply).max(self.due);
        if due > self.due || supply.left() == 0 {
            self.try_again();
        }
        self.due = due;
        self.granted =
            if supply.left() == 0 { u64::MAX } else { self.schedule.piece.saturating_mul(2) };
        self.held = false;
    }

    /// A lookup waits for it, because the hints are used up. All of it is due then, and what failed
    /// before is tried again. `false`: that failed as well, so the lookup has to fail; the next one
    /// begins another attempt.
    pub(super) fn demand_all(&mut self) -> bool {
        let failed = self.held || self.stage == PreparingStage::Broken;
        self.awaited = !(self.awaited && failed);
        if self.awaited {
            self.try_again();
            (self.due, self.granted, self.held) = (self.schedule.stream.len, u64::MAX, false);
        }
        self.awaited
    }

    /// After a failure of the worker (a full disk, say), starts a new one from the last checkpoint.
    fn try_again(&mut self) {
        if self.stage == PreparingStage::Broken {
            self.stage = PreparingStage::Idle;
            (self.received, self.absorbed, self.saving) = (0, 0, 0);
            self.asking = false;
            self.checkpointed_at = None;
        }
    }

    /// The worker began, and needs the bytes from `offset`.
    pub(super) fn resumed(&mut self, offset: u64) {
        if self.stage == PreparingStage::Beginning {
            self.stage = PreparingStage::Streaming;
            let offset = offset.min(self.schedule.stream.len);
            (self.received, self.absorbed, self.checkpointed) = (offset, offset, offset);
        }
    }

    /// The worker made a request, whose reply belongs at `offset`. Returns whether it is the one to
    /// send now.
    pub(super) fn requested(&mut self, offset: u64) -> bool {
        std::mem::take(&mut self.asking)
            && self.stage == PreparingStage::Streaming
            && self.fetching_to.is_some()
            && offset == self.received
    }

    pub(super) fn absorbed(&mut self, offset: u64) {
        self.absorbed = offset.min(self.received);
    }

    pub(super) fn saved(&mut self) {
        self.saving = self.saving.saturating_sub(1);
    }

    /// The worker has ended: with success, or without.
    pub(super) fn ended(&mut self, complete: bool) {
        self.stage = if complete { PreparingStage::Complete } else { PreparingStage::Broken };
    }

    /// Where the stream is, and where the fetch under way ends, if there is one.
    pub(super) fn fetch_range(&self) -> Option<(u64, u64)> {
        self.fetching_to.map(|end| (self.received, end))
    }

    /// So many more bytes were handed to the worker.
    pub(super) fn received(&mut self, len: u64) {
        self.received += len;
    }

    /// The fetch under way is over, or the reply is there, or either was given up.
    pub(super) fn fetched(&mut self, given_up: bool) {
        self.fetching_to = None;
        self.held = given_up;
    }

    /// What to do now, if anything. The caller does it and asks again.
    pub(super) fn next(&mut self, now: Duration) -> Option<PreparationStep> {
        let wanted = self.due.min(self.received.saturating_add(self.granted));
        let checkpoint_is_due =
            self.stage == PreparingStage::Streaming && self.checkpoint_is_due(wanted, now);
        match self.stage {
            // A process that ended before the last step may have streamed all of it.
            PreparingStage::Idle
                if wanted > self.received || self.due == self.schedule.stream.len =>
            {
                self.stage = PreparingStage::Beginning;
                Some(PreparationStep::Begin)
            }
            PreparingStage::Streaming if self.received >= self.schedule.stream.len => {
                if self.fetching_to.is_some() {
                    return None;
                }
                self.stage = PreparingStage::Finishing;
                Some(PreparationStep::Finish)
            }
            PreparingStage::Streaming if checkpoint_is_due => {
                self.checkpointed = self.received;
                self.checkpointed_at = Some(now);
                self.saving += 1;
                Some(PreparationStep::Checkpoint)
            }
            PreparingStage::Streaming if self.fetching_to.is_some() => None,
            PreparingStage::Streaming
                if wanted > self.received
                    && !self.held
                    && self.received - self.absorbed < self.pace.stride =>
            {
                if let Some(len) = self.reply_len {
                    self.granted = self.granted.saturating_sub(len);
                    self.fetching_to = Some(self.received.saturating_add(len));
                    self.asking = true;
                    return Some(PreparationStep::Ask);
                }
                let offset = self.received;
                let end = self.sources.share(offset, self.schedule.stream).end;
                // After an interruption, the next stride begins at a boundary again.
                let stride = offset.saturating_add(self.pace.stride);
                let stride = self.boundaries(offset).at_or_before(stride);
                let stride = if stride > offset { stride } else { end };
                let len = stride.min(wanted).min(end) - offset;
                self.granted -= len;
                self.fetching_to = Some(offset + len);
                Some(PreparationStep::Fetch { offset, len })
            }
            _ => None,
        }
    }

    /// In the background a checkpoint follows each piece, because the process may end at any time.
    /// In the foreground checkpoints are rarer, so that they take little of the time.
    fn checkpoint_is_due(&mut self, wanted: u64, now: Duration) -> bool {
        let since = self.received.saturating_sub(self.checkpointed);
        if since == 0 || self.saving > 0 {
            return false;
        }
        let paused = self.fetching_to.is_none() && (wanted <= self.received || self.held);
        if !self.foreground {
            return paused;
        }
        let began = *self.checkpointed_at.get_or_insert(now);
        let long_ago = now.saturating_sub(began) >= self.pace.checkpoint_every;
        long_ago || (self.fetching_to.is_none() && since >= self.pace.checkpoint_interval)
    }
}

#[cfg(test)]
mod tests;
