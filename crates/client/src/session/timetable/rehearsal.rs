//! Rehearsals: the session looks dummies up, to learn how long slots must be.
//!
//! - The dummies are uniform; in a keyed table they are keys of [`DUMMY_KEY_LEN`] bytes, such as
//!   take longest to bring into the table's form. A longer key may take longer.
//! - Each dummy is a new one. Before each query, and before each answer, the thread rests for a
//!   moment and reads some memory: a real lookup finds the processor and its caches as other work
//!   has left them.
//! - One in [`INTERRUPTED`] does not count, the slowest ones: they may have been interrupted.
//! - What is read is the longest that a record and a value can be ([`RecordReader::rehearse`]).
//! - Rehearsals use copies of single-use hints, and coins of their own; their queries are dropped.
//!   No hint is used up.

use super::super::interface::{ChosenTable, Target};
use super::super::options::Clock;
use super::super::records::{Fullest, RecordReader};
use super::{FINEST, Lengths, OPENING_STEP, SlotMeasurement, Timetable, kind_of, round_up};
use privet_core::{Blame, Error, Result, SecretRng};
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::{ErasedClient, Rehearsal};
use std::time::Duration;

/// The length of keys that are looked up to measure. Few keys are longer.
const DUMMY_KEY_LEN: usize = 1024;

/// Of so many dummies, the slowest one does not count.
const INTERRUPTED: usize = 32;

/// How much is measured. Public, and the same for all sessions except in tests.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Measuring {
    /// How many dummies are looked up …
    pub(in super::super) dummies: usize,
    /// … unless that takes longer than this; …
    pub(in super::super) time: Duration,
    /// … but no fewer than this.
    pub(in super::super) fewest: usize,
    /// Before each query and each answer the thread rests for so long, …
    pub(in super::super) pause: Duration,
    /// … and so many bytes are read.
    pub(in super::super) swept: usize,
    /// How often to look at the clock until it advances. 0: its steps are not measured.
    pub(in super::super) looks: u32,
    /// Coins for the dummies. They are not those of lookups, which must not depend on what was
    /// measured.
    pub(in super::super) coins: fn() -> Result<SecretRng>,
}

impl Default for Measuring {
    fn default() -> Self {
        Self {
            dummies: 96,
            time: Duration::from_millis(48),
            fewest: 8,
            pause: Duration::from_micros(50),
            swept: 2 << 20,
            looks: 1 << 24,
            coins: SecretRng::from_os,
        }
    }
}

#[cfg(test)]
impl Measuring {
    /// For sessions whose clock stands still while they compute. The dummies are the same each
    /// time: where it shows how long they took, equal clients show the same.
    pub(in super::super) fn brief() -> Self {
        let (time, pause) = (Duration::ZERO, Duration::ZERO);
        let coins = || Ok(SecretRng::from_fixed_seed([12; 32]));
        Self { dummies: 2, time, fewest: 1, pause, swept: 0, looks: 0, coins }
    }
}

/// How long a dummy took.
pub(super) struct Took {
    pub(super) query: Duration,
    pub(super) answer: Duration,
}

/// The state of a rehearsal.
struct Rehearsing<'a> {
    clock: Clock,
    records: &'a RecordReader,
    start: &'a dyn Fn() -> Result<Box<dyn ErasedClient>>,
    rehearsal: Box<dyn Rehearsal>,
    /// How long it took to make new copies meanwhile.
    starting: Duration,
    /// One for each server, each as long as a real answer.
    answers: Vec<&'a [u8]>,
    fullest: Fullest,
    pause: Duration,
    memory: Vec<u8>,
}

impl Rehearsing<'_> {
    /// Looks one dummy up. `None`: that is not possible.
    fn look_up(&mut self, target: &Target, candidate: usize, rng: &mut SecretRng) -> Option<Took> {
        let (mut prepared, mut query) = self.prepare(target, candidate, rng);
        if prepared.as_ref().is_err_and(|error| error.blame() == Blame::Exhausted) {
            let begun = self.clock.now();
            self.rehearsal = (self.start)().ok()?.into_rehearsal()?;
            self.starting += self.clock.now().saturating_sub(begun);
            (prepared, query) = self.prepare(target, candidate, rng);
        }
        prepared.ok()?;
        self.rest();
        let begun = self.clock.now();
        // No server sent these answers, so the outcome says nothing.
        let _ = self.rehearsal.recover(&self.answers);
        self.records.rehearse(target, candidate, &self.fullest);
        Some(Took { query, answer: self.clock.now().saturating_sub(begun) })
    }

    fn prepare(
        &mut self,
        target: &Target,
        candidate: usize,
        rng: &mut SecretRng,
    ) -> (Result<()>, Duration) {
        if let Err(error) = self.rehearsal.make_blank(rng) {
            return (Err(error), Duration::ZERO);
        }
        self.rest();
        let begun = self.clock.now();
        let index = self.records.locate(target, candidate);
        let prepared = index.and_then(|index| self.rehearsal.prepare(&index, rng));
        (prepared, self.clock.now().saturating_sub(begun))
    }

    /// Looks dummies up, as many as `measuring` says. Returns the time of each.
    fn all(&mut self, measuring: &Measuring, rng: &mut SecretRng) -> Vec<Took> {
        let mut times = Vec::new();
        let begun = self.clock.now();
        for number in 0..measuring.dummies {
            let spent = self.clock.now().saturating_sub(begun);
            if number >= measuring.fewest && spent >= measuring.time {
                break;
            }
            let target = self.records.dummy(number, DUMMY_KEY_LEN, rng);
            let candidate = number % self.records.fetches();
            let Some(took) = self.look_up(&target, candidate, rng) else { break };
            times.push(took);
        }
        times
    }

    /// Has the processor do something else for a while, as between lookups, and fill its caches
    /// with that.
    fn rest(&mut self) {
        if !self.pause.is_zero() {
            self.clock.rest(self.pause);
        }
        sweep(&mut self.memory);
    }
}

/// The slowest that counts.
pub(super) fn slowest(times: &[Took], kind: fn(&Took) -> Duration) -> Option<Duration> {
    let mut times: Vec<Duration> = times.iter().map(kind).collect();
    times.sort_unstable();
    times.get(times.len().checked_sub(1 + times.len() / INTERRUPTED)?).copied()
}

impl Timetable {
    /// Measures how long lookups take in a table, with copies of the client that `start` makes.
    ///
    /// # Errors
    /// Any error of `start`, and [`Blame::ApiMisuse`] if the clock stands still. If a copy cannot
    /// make lookups (its hints are used up), nothing is measured until the next hints come.
    pub(in super::super) fn rehearse(
        &mut self,
        chosen: &ChosenTable,
        records: &RecordReader,
        start: &dyn Fn() -> Result<Box<dyn ErasedClient>>,
    ) -> Result<()> {
        let in_table = kind_of(chosen);
        if !self.is_time_to_measure(&in_table) {
            return Ok(());
        }
        let plan = &chosen.scheme.plan;
        if matches!(plan.offline, OfflinePhase::KeepTable { .. }) {
            self.lengths = None;
            return Ok(());
        }
        let (clock, measuring) = (self.clock.clone(), self.measuring);
        let step = match measuring.looks {
            0 => FINEST,
            looks => clock.step(looks).ok_or_else(stands_still)?,
        };
        let mut copy = start()?;
        let search_len = copy.hints().map_or(1, |hints| hints.search_len()).max(1);
        let Some(rehearsal) = copy.into_rehearsal() else { return Ok(()) };
        let answers: Vec<Vec<u8>> =
            (0..plan.servers).map(|_| some_memory(plan.answer_len)).collect();
        let rng = &mut (measuring.coins)()?;
        let mut rehearsing = Rehearsing {
            clock: clock.clone(),
            records,
            start,
            rehearsal,
            starting: Duration::ZERO,
            answers: answers.iter().map(Vec::as_slice).collect(),
            fullest: records.fullest(),
            pause: measuring.pause,
            memory: some_memory(measuring.swept),
        };
        let begun = clock.now();
        let times = rehearsing.all(&measuring, rng);
        let took = clock.now().saturating_sub(begun);
        self.rehearsed += took.saturating_sub(rehearsing.starting);
        if let (Some(query), Some(answer)) =
            (slowest(&times, |took| took.query), slowest(&times, |took| took.answer))
        {
            self.lengths = Some(Lengths::of_slowest(query, answer, search_len, step));
            let took = round_up(self.rehearsed, OPENING_STEP);
            self.measured = Some(SlotMeasurement { when: self.now, took, in_table });
        } else if self.measured.as_ref().is_none_or(|last| last.in_table != in_table) {
            self.lengths = Some(Lengths::unmeasured());
            self.measured = None;
        }
        Ok(())
    }
}

fn stands_still() -> Error {
    Error::api_misuse(
        "the clock of this session stands still while it computes, so the time at which queries leave would \
         depend on what is looked up; give it a clock that advances",
    )
}

/// Memory with contents. Fresh pages of zeros are all the same page until they are written, and
/// that page would always lie in a cache.
fn some_memory(len: usize) -> Vec<u8> {
    let mut memory = vec![0; len];
    memory.fill(std::hint::black_box(0));
    memory
}

/// Reads memory, so that it replaces what the caches held.
fn sweep(memory: &mut [u8]) {
    for line in memory.chunks_mut(64) {
        line[0] = line[0].wrapping_add(1);
    }
    std::hint::black_box(memory);
}
