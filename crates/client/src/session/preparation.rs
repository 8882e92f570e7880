//! When the next generation of hints is prepared, and how far.
//!
//! Hints serve once. Before the last one has, the next generation must have been prepared, and for that the whole table must have been streamed. So that neither
//! a query waits for it nor a short-lived process is kept from ending, the table is streamed by the piece, with the queries (this is section 2.4 of Piano, which
//! spreads the work of the next preprocessing over the present window of queries).
//!
//! # The schedule
//!
//! A server sees when a client fetches which stretch of the table. That must tell it nothing it does not know, so it is a function of what it has seen itself,
//! the number of queries, and of public sizes ([`Schedule::due`]):
//!
//! ```text
//! queries used    0 ───────── total/4 ───────────────────────────── 3·total/4 ───────── total
//! table streamed  nothing     piece 1, 2, 3, … one after another, evenly spread    all of it
//! ```
//!
//! The last quarter is a reserve, for pieces that failed. A piece has a 64th of the table, or as many bytes as the client's state if that is more (because after each
//! piece a checkpoint of about that size is written), and at least 1 MiB. After a lookup has been *sent*, the pieces that are due are fetched, at most
//! two of them; a failure is tried again as patiently as any, and then with the next lookup. Only if the hints are used up is the rest fetched without
//! waiting for lookups.
//!
//! If there is no generation to begin with, the whole table is due at once.
//!
//! # Memory
//!
//! What arrives goes to the worker, who may be slower than the network. So the table is fetched in strides, and a new one only when less than one is left to do.

use privet_schemes::contract::Supply;
use std::time::Duration;

/// Sizes that a session goes by. Public, and the same for all sessions except in tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// A piece has at least this many bytes.
    pub(super) shortest_piece: u64,
    /// The most that one request asks for.
    pub(super) stride: u64,
    /// After so many bytes of a first generation there is a checkpoint, …
    pub(super) checkpoint_interval: u64,
    /// … and after so long a time: that bounds what a process that is killed loses, and the share of the time that goes into checkpoints.
    pub(super) checkpoint_every: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            shortest_piece: 1 << 20,
            stride: 1 << 24,
            checkpoint_interval: 1 << 30,
            checkpoint_every: Duration::from_secs(5),
        }
    }
}

/// How much of the table is due when. See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    table_len: u64,
    piece: u64,
}

impl Schedule {
    /// For a table of `table_len` bytes and a client whose state has about `state_len`.
    pub(super) fn new(table_len: u64, state_len: u64, pace: &Pace) -> Self {
        let piece = (table_len / 64).max(state_len).max(pace.shortest_piece).max(1);
        Self { table_len, piece }
    }

    /// How many bytes of the table should have been streamed once `supply.used` queries were sent.
    pub(super) fn due(&self, supply: Supply) -> u64 {
        let (begin, end) = (supply.total / 4, supply.total - supply.total / 4);
        if supply.used < begin {
            return 0;
        }
        let pieces = self.table_len.div_ceil(self.piece);
        let due = if supply.used >= end {
            pieces
        } else {
            // Both factors are bounded by what a client holds in memory; 128 bits hold their product whatever a server announced.
            let (used, span) = (u128::from(supply.used - begin), u128::from(end - begin));
            (used * u128::from(pieces) / span + 1) as u64
        };
        due.saturating_mul(self.piece).min(self.table_len)
    }
}

/// The next thing to do for the preparation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Begin,
    Fetch { offset: u64, len: u64 },
    Checkpoint,
    Finish,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The worker is not at work.
    Idle,
    /// The worker reads the checkpoint.
    Beginning,
    Streaming,
    /// Everything was handed over.
    Finishing,
    Complete,
    /// The worker failed. Not before more is due.
    Broken,
}

/// A generation in the making, as the session sees it.
pub(super) struct Preparing {
    schedule: Schedule,
    pace: Pace,
    stage: Stage,
    /// Whether lookups wait for it: it is the first generation.
    pub(super) foreground: bool,
    /// How much of the table is due.
    due: u64,
    /// How much may be fetched before another lookup is sent.
    granted: u64,
    /// Where the fetch under way ends.
    fetching_to: Option<u64>,
    /// A fetch was given up: not before the next lookup.
    held: bool,
    /// The next byte that the worker has not been handed.
    received: u64,
    /// The next byte that the worker has not taken.
    absorbed: u64,
    /// Where the last checkpoint was ordered, …
    checkpointed: u64,
    /// … and when: or else when there was first something to keep.
    checkpointed_at: Option<Duration>,
    /// Checkpoints that were ordered and not saved yet.
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

    /// The next generation, of which everything before `offset` need not be streamed again.
    pub(super) fn next_generation(schedule: Schedule, pace: Pace, offset: u64) -> Self {
        Self {
            schedule,
            pace,
            stage: Stage::Idle,
            foreground: false,
            due: 0,
            granted: 0,
            fetching_to: None,
            held: false,
            received: offset,
            absorbed: offset,
            checkpointed: offset,
            checkpointed_at: None,
            saving: 0,
        }
    }

    /// A generation that waits to be used.
    pub(super) fn complete(schedule: Schedule, pace: Pace) -> Self {
        let mut preparing = Self::next_generation(schedule, pace, schedule.table_len);
        preparing.stage = Stage::Complete;
        preparing
    }

    pub(super) fn is_complete(&self) -> bool {
        self.stage == Stage::Complete
    }

    /// Whether the worker has something to do, or to wait for other than the server.
    pub(super) fn is_at_work(&self) -> bool {
        match self.stage {
            Stage::Beginning | Stage::Finishing => true,
            Stage::Streaming => self.saving > 0 || self.absorbed < self.received,
            Stage::Idle | Stage::Complete | Stage::Broken => false,
        }
    }

    /// A lookup was sent, after which the supply is this.
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

    /// A lookup was refused because the hints are used up: what failed is tried again.
    pub(super) fn lookup_refused(&mut self) {
        self.try_again();
        self.granted = u64::MAX;
        self.held = false;
    }

    /// After a failure of the worker's (a full disk, say), begins with a new one, from the last checkpoint.
    fn try_again(&mut self) {
        if self.stage == Stage::Broken {
            self.stage = Stage::Idle;
            (self.received, self.absorbed, self.saving) = (0, 0, 0);
            self.checkpointed_at = None;
        }
    }

    /// The worker began, and wants the bytes from `offset`.
    pub(super) fn resumed(&mut self, offset: u64) {
        if self.stage == Stage::Beginning {
            self.stage = Stage::Streaming;
            let offset = offset.min(self.schedule.table_len);
            (self.received, self.absorbed, self.checkpointed) = (offset, offset, offset);
        }
    }

    pub(super) fn absorbed(&mut self, offset: u64) {
        self.absorbed = offset.min(self.received);
    }

    pub(super) fn saved(&mut self) {
        self.saving = self.saving.saturating_sub(1);
    }

    /// The worker is done for good: with success, or without.
    pub(super) fn ended(&mut self, complete: bool) {
        self.stage = if complete { Stage::Complete } else { Stage::Broken };
    }

    /// Where the stream is, and where the fetch under way ends, if there is one.
    pub(super) fn awaited(&self) -> Option<(u64, u64)> {
        self.fetching_to.map(|end| (self.received, end))
    }

    /// So many bytes more were handed to the worker.
    pub(super) fn received(&mut self, len: u64) {
        self.received += len;
    }

    /// The fetch under way is over.
    pub(super) fn fetched(&mut self, given_up: bool) {
        self.fetching_to = None;
        self.held = given_up;
    }

    /// What to do now, if anything. To be done by the caller, who asks again afterwards.
    pub(super) fn next(&mut self, now: Duration) -> Option<Step> {
        let wanted = self.due.min(self.received.saturating_add(self.granted));
        let checkpoint_is_due =
            self.stage == Stage::Streaming && self.checkpoint_is_due(wanted, now);
        match self.stage {
            // All of it may have been streamed by a process that ended before the last step.
            Stage::Idle if wanted > self.received || self.due == self.schedule.table_len => {
                self.stage = Stage::Beginning;
                Some(Step::Begin)
            }
            Stage::Streaming if self.received == self.schedule.table_len => {
                if self.fetching_to.is_some() {
                    return None;
                }
                self.stage = Stage::Finishing;
                Some(Step::Finish)
            }
            Stage::Streaming if checkpoint_is_due => {
                self.checkpointed = self.received;
                self.checkpointed_at = Some(now);
                self.saving += 1;
                Some(Step::Checkpoint)
            }
            Stage::Streaming if self.fetching_to.is_some() => None,
            Stage::Streaming
                if wanted > self.received
                    && !self.held
                    && self.received - self.absorbed < self.pace.stride =>
            {
                let (offset, len) = (self.received, self.pace.stride.min(wanted - self.received));
                self.granted -= len;
                self.fetching_to = Some(offset + len);
                Some(Step::Fetch { offset, len })
            }
            _ => None,
        }
    }

    /// In the background after each piece, because the process may end at any time; otherwise now and then, so that little of the time goes into it.
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
mod tests {
    use super::*;

    const SMALL: Pace = Pace {
        shortest_piece: 1,
        stride: 1 << 20,
        checkpoint_interval: 1 << 20,
        checkpoint_every: Duration::MAX,
    };

    fn due_at(schedule: Schedule, total: u64) -> Vec<u64> {
        (0..=total).map(|used| schedule.due(Supply { used, total })).collect()
    }

    #[test]
    fn preparation_begins_at_a_quarter_and_is_complete_at_three() {
        for (table_len, total) in
            [(1, 1), (1, 7), (100, 4), (1000, 64), (12_345, 401), (1 << 30, 9)]
        {
            let due = due_at(Schedule::new(table_len, 0, &SMALL), total);
            let (begin, end) = ((total / 4) as usize, (total - total / 4) as usize);
            assert!(due[..begin].iter().all(|due| *due == 0));
            assert!(due[begin] > 0, "{table_len} {total}");
            assert!(due[end..].iter().all(|due| *due == table_len), "{table_len} {total}");
            assert!(due.windows(2).all(|pair| pair[0] <= pair[1]));
        }
    }

    #[test]
    fn pieces_are_spread_evenly() {
        let due = due_at(Schedule::new(6400, 0, &SMALL), 400);
        for (used, due) in due.iter().enumerate().take(300).skip(100) {
            // 64 pieces of 100 bytes over 200 queries.
            let exact = (used - 100) as f64 * 32.0;
            assert!((0.0..=132.0).contains(&(*due as f64 - exact)), "{used}: {due}");
            assert_eq!(due % 100, 0);
        }
    }

    #[test]
    fn pieces_are_no_shorter_than_the_state_or_a_mebibyte() {
        let first = |schedule: Schedule| schedule.due(Supply { used: 25, total: 100 });
        assert_eq!(first(Schedule::new(1 << 30, 0, &Pace::default())), 1 << 24);
        assert_eq!(first(Schedule::new(1 << 30, 1 << 27, &Pace::default())), 1 << 27);
        assert_eq!(first(Schedule::new(1 << 22, 0, &Pace::default())), 1 << 20);
        assert_eq!(first(Schedule::new(1000, 0, &Pace::default())), 1000);
    }

    /// Everything that is asked for while each fetch and each step succeeds at once.
    fn run(preparing: &mut Preparing) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some(step) = preparing.next(Duration::ZERO) {
            steps.push(step);
            match step {
                Step::Begin => preparing.resumed(preparing.received),
                Step::Fetch { len, .. } => {
                    preparing.received(len);
                    preparing.fetched(false);
                    preparing.absorbed(preparing.received);
                }
                Step::Checkpoint => preparing.saved(),
                Step::Finish => preparing.ended(true),
            }
        }
        steps
    }

    #[test]
    fn a_generation_is_prepared_by_the_piece() {
        let pace = Pace {
            shortest_piece: 10,
            stride: 4,
            checkpoint_interval: 1 << 20,
            checkpoint_every: Duration::MAX,
        };
        let schedule = Schedule::new(25, 0, &pace);
        let mut preparing = Preparing::next_generation(schedule, pace, 0);
        let mut steps = Vec::new();
        for used in 1..=8 {
            preparing.lookup_sent(Supply { used, total: 8 });
            steps.extend(run(&mut preparing));
        }
        let fetch = |offset, len| Step::Fetch { offset, len };
        let expected = [
            Step::Begin,
            fetch(0, 4),
            fetch(4, 4),
            fetch(8, 2),
            Step::Checkpoint,
            fetch(10, 4),
            fetch(14, 4),
            fetch(18, 2),
            Step::Checkpoint,
            fetch(20, 4),
            fetch(24, 1),
            Step::Finish,
        ];
        assert_eq!(steps, expected);
        assert!(preparing.is_complete());
    }

    #[test]
    fn a_late_start_catches_up_by_two_pieces_a_lookup_until_the_hints_are_used_up() {
        let pace = Pace {
            shortest_piece: 10,
            stride: 100,
            checkpoint_interval: 1 << 20,
            checkpoint_every: Duration::MAX,
        };
        let schedule = Schedule::new(100, 0, &pace);
        let mut preparing = Preparing::next_generation(schedule, pace, 30);
        let fetched = |steps: Vec<Step>| -> Vec<(u64, u64)> {
            let fetched = steps.into_iter().filter_map(|step| match step {
                Step::Fetch { offset, len } => Some((offset, len)),
                _ => None,
            });
            fetched.collect()
        };
        preparing.lookup_sent(Supply { used: 38, total: 40 });
        assert_eq!(fetched(run(&mut preparing)), [(30, 20)]);
        preparing.lookup_sent(Supply { used: 39, total: 40 });
        assert_eq!(fetched(run(&mut preparing)), [(50, 20)]);
        preparing.lookup_sent(Supply { used: 40, total: 40 });
        assert_eq!(fetched(run(&mut preparing)), [(70, 30)]);
    }

    #[test]
    fn no_more_than_a_stride_waits_for_the_worker_when_another_is_asked_for() {
        let pace = Pace {
            shortest_piece: 10,
            stride: 10,
            checkpoint_interval: 1 << 20,
            checkpoint_every: Duration::MAX,
        };
        let mut preparing = Preparing::foreground(100, pace);
        assert_eq!(preparing.next(Duration::ZERO), Some(Step::Begin));
        assert_eq!(preparing.next(Duration::ZERO), None, "the worker has not said where to go on");
        preparing.resumed(0);
        assert_eq!(preparing.next(Duration::ZERO), Some(Step::Fetch { offset: 0, len: 10 }));
        assert_eq!(preparing.next(Duration::ZERO), None, "one fetch at a time");
        preparing.received(10);
        preparing.fetched(false);
        assert_eq!(preparing.next(Duration::ZERO), None, "a whole stride waits for the worker");
        preparing.absorbed(1);
        assert_eq!(preparing.next(Duration::ZERO), Some(Step::Fetch { offset: 10, len: 10 }));
    }

    #[test]
    fn a_first_generation_is_saved_every_so_often_even_in_the_midst_of_a_fetch() {
        let pace = Pace { stride: 100, checkpoint_every: Duration::from_secs(5), ..SMALL };
        let mut preparing = Preparing::foreground(100, pace);
        let at = Duration::from_secs;
        assert_eq!(preparing.next(at(0)), Some(Step::Begin));
        preparing.resumed(0);
        assert_eq!(preparing.next(at(1)), Some(Step::Fetch { offset: 0, len: 100 }));
        assert_eq!(preparing.next(at(9)), None, "there is nothing to save");
        preparing.received(10);
        assert_eq!(preparing.next(at(10)), None);
        assert_eq!(preparing.next(at(14)), None);
        assert_eq!(preparing.next(at(15)), Some(Step::Checkpoint));
        preparing.received(10);
        assert_eq!(preparing.next(at(30)), None, "the last one is still being saved");
        preparing.saved();
        assert_eq!(preparing.next(at(31)), Some(Step::Checkpoint));
        preparing.saved();
        preparing.received(80);
        assert_eq!(preparing.next(at(60)), None, "the fetch is not over");
        preparing.fetched(false);
        assert_eq!(preparing.next(at(60)), Some(Step::Finish));
    }

    #[test]
    fn a_worker_that_failed_is_tried_again_when_more_is_due_or_the_hints_are_used_up() {
        let mut preparing = Preparing::next_generation(Schedule::new(100, 0, &SMALL), SMALL, 0);
        let lookup = |used| Supply { used, total: 400 };
        let began = |preparing: &mut Preparing| preparing.next(Duration::ZERO) == Some(Step::Begin);
        preparing.lookup_sent(lookup(100));
        assert!(began(&mut preparing));
        preparing.ended(false);
        preparing.lookup_sent(lookup(101));
        assert!(!began(&mut preparing), "nothing more is due");
        preparing.lookup_sent(lookup(110));
        assert!(began(&mut preparing));
        preparing.ended(false);
        preparing.lookup_sent(lookup(399));
        assert!(began(&mut preparing));
        preparing.ended(false);
        preparing.lookup_refused();
        assert!(began(&mut preparing));
        preparing.resumed(40);
        assert_eq!(preparing.next(Duration::ZERO), Some(Step::Fetch { offset: 40, len: 60 }));
        preparing.fetched(true);
        assert_eq!(preparing.next(Duration::ZERO), None, "given up");
        preparing.lookup_refused();
        assert_eq!(preparing.next(Duration::ZERO), Some(Step::Fetch { offset: 40, len: 60 }));
    }

    #[test]
    fn a_given_up_fetch_waits_for_the_next_lookup_and_keeps_what_came() {
        let pace = Pace {
            shortest_piece: 10,
            stride: 10,
            checkpoint_interval: 1 << 20,
            checkpoint_every: Duration::MAX,
        };
        let mut preparing = Preparing::next_generation(Schedule::new(100, 0, &pace), pace, 0);
        preparing.lookup_sent(Supply { used: 20, total: 40 });
        assert_eq!(preparing.next(Duration::ZERO), Some(Step::Begin));
        preparing.resumed(0);
        assert_eq!(preparing.next(Duration::ZERO), Some(Step::Fetch { offset: 0, len: 10 }));
        preparing.received(3);
        preparing.fetched(true);
        assert_eq!(preparing.next(Duration::ZERO), Some(Step::Checkpoint));
        assert_eq!(preparing.next(Duration::ZERO), None);
        preparing.lookup_sent(Supply { used: 21, total: 40 });
        assert_eq!(preparing.next(Duration::ZERO), Some(Step::Fetch { offset: 3, len: 10 }));
    }

    #[test]
    fn a_stream_that_a_process_did_not_live_to_finish_is_finished_by_the_next() {
        let pace = Pace {
            shortest_piece: 10,
            stride: 10,
            checkpoint_interval: 1 << 20,
            checkpoint_every: Duration::MAX,
        };
        let mut preparing = Preparing::next_generation(Schedule::new(100, 0, &pace), pace, 100);
        preparing.lookup_sent(Supply { used: 20, total: 40 });
        assert_eq!(preparing.next(Duration::ZERO), None, "not all of it is due");
        preparing.lookup_sent(Supply { used: 30, total: 40 });
        assert_eq!(run(&mut preparing), [Step::Begin, Step::Finish]);
    }
}
