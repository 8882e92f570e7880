//! When what depends on the index is done: within a time that does not.
//!
//! A server sees when messages come. So all work of which the index may change the duration is done
//! in *slots* of a public length: preparing a query (from the key to the journal record, or to the
//! query where there is no journal), and reading an answer (to what the user is told). Memory that
//! lies in a cache or does not, a search that ends early, a long key: none of it moves a message.
//!
//! ```text
//! handed in                          sent            answered                    told
//!     │◄──────────── D ──────────────►│                  │◄─────────── R ─────────►│
//!     │ computing the query │ waiting │                  │ reading │    waiting    │
//! ```
//!
//! A slot begins at a public moment, and nothing leaves the session before it ends: not what the
//! work came to, and not what the session makes of messages that arrive meanwhile, which it takes
//! to have arrived when the slot ends. Slots come one after the other. So all that is sent goes out
//! at a moment that follows from when lookups were handed in, when messages came, and the lengths
//! of slots.
//!
//! # How long slots are
//!
//! D is five quarters of the slowest of some thirty dummy queries, measured when the session opens,
//! and R the same of answers. The price is more than a quarter of the client's time, because slots
//! do not overlap, most lookups find the caches warmer than dummies do, and no slot is shorter than
//! [`SHORTEST`]; it is not a coarse clock. What takes longer than its slot ends at the next multiple
//! of a quarter of it ([`Lengths`]). So a server may see in rare cases *that* something took longer,
//! to a quarter of D.
//!
//! If those cases are not rare, because the processor has less time for this than when the session
//! opened, then slots grow, up to four times, and shrink again slowly ([`Stretch`]).
//!
//! What the session measures ([`Session::rehearse`]):
//!
//! - The dummies are uniform, and of a keyed table they are keys of [`DUMMY_KEY_LEN`] bytes. A
//!   longer key may take longer to hash.
//! - Before each, the thread sleeps for a moment and some memory is read, because a real lookup
//!   finds the processor and its caches as others have left them.
//! - The same dummies are looked up three times over, and each counts with the median of its times.
//!   What slows one of them down once is an interruption. Its fastest time would be that of warm
//!   caches, a third of what real lookups take.
//! - Copies of single-use hints are used for it, and coins of its own; what it would have sent is
//!   dropped. No hint is used up.
//!
//! Where the work grows with the number of lookups ([`ErasedHints::search_len`]), so does D, at
//! once. It is measured again when scheme, parameters or shape have changed, and with each
//! generation of hints, unless that was done a short while ago.
//!
//! Loading hints and condensing them reads what depends on former indices. It ends at a multiple of
//! [`OPENING_STEP`].
//!
//! # What this does not hide
//!
//! What the processor does for others: a query that disturbs the caches of what comes after it may
//! delay that, by as much as any other program does. And the system's own time from a moment to the
//! sending: a thread that slept longer before it wakes up later. What else may take longer than its
//! slot, `docs/security/side-channels.md` says.

use super::Session;
use super::interface::{ChosenTable, Clock, Target};
use super::records::Records;
use privet_core::{Blame, Result, SecretRng, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::offline::OfflinePhase;
#[cfg(doc)]
use privet_schemes::registry::ErasedHints;
use privet_schemes::registry::{ErasedClient, Rehearsal};
use std::time::Duration;
use zeroize::Zeroizing;

/// The length of keys that are looked up to measure. Few keys are longer.
const DUMMY_KEY_LEN: usize = 1024;

/// No slot is shorter: what is too short to be measured well shall not be cut to measure.
const SHORTEST: Duration = Duration::from_micros(32);

/// How long a slot is if nothing could be measured.
const UNMEASURED: Duration = Duration::from_millis(1);

/// Opening and condensing hints ends at a multiple of this.
pub(super) const OPENING_STEP: Duration = Duration::from_millis(4);

/// It is not measured again before so many times the time that it took have passed.
const PAUSES: u32 = 16;

/// How much is measured. Public, and the same for all sessions except in tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measuring {
    /// How many dummies are looked up …
    pub(super) dummies: usize,
    /// … unless that takes too long; but no fewer than this …
    pub(super) fewest: usize,
    /// … and how often, …
    pub(super) rounds: u32,
    /// … in about this time, all rounds together.
    pub(super) time: Duration,
    /// Before each the thread sleeps for so long, …
    pub(super) pause: Duration,
    /// … and so many bytes are read, as well as before each answer.
    pub(super) swept: usize,
}

impl Default for Measuring {
    fn default() -> Self {
        Self {
            dummies: 32,
            fewest: 8,
            rounds: 3,
            time: Duration::from_millis(48),
            pause: Duration::from_micros(50),
            swept: 1 << 20,
        }
    }
}

#[cfg(test)]
impl Measuring {
    /// For sessions whose clock stands still while they compute.
    pub(super) fn brief() -> Self {
        let (time, pause) = (Duration::ZERO, Duration::ZERO);
        Self { dummies: 2, fewest: 1, rounds: 1, time, pause, swept: 0 }
    }
}

/// Which kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// From a key to a query.
    Query,
    /// From an answer to a record, or from a record to a value.
    Answer,
}

/// How long slots are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) query: Duration,
    pub(super) answer: Duration,
    /// What the work of a query grows with was so much when this was measured; 0: it was not.
    search_len: u64,
}

impl Lengths {
    /// Five quarters of the slowest query and of the slowest answer.
    fn of_slowest(query: Duration, answer: Duration, search_len: u64) -> Self {
        let slot = |slowest: Duration| {
            let length = (slowest + slowest / 4).max(SHORTEST);
            // A quarter of it is a whole number of nanoseconds.
            Duration::from_nanos(nanos(length).next_multiple_of(4))
        };
        Self { query: slot(query), answer: slot(answer), search_len }
    }

    /// What slots are as long as nothing could be measured.
    fn unmeasured() -> Self {
        Self::of_slowest(UNMEASURED, UNMEASURED, 0)
    }

    /// How long a slot is while the work grows with `search_len`.
    fn of(&self, work: Work, search_len: u64) -> Duration {
        match work {
            Work::Answer => self.answer,
            Work::Query if self.search_len == 0 => self.query,
            Work::Query => {
                let grown = u128::from(search_len.max(self.search_len));
                let length = self.query.as_nanos() * grown / u128::from(self.search_len);
                let length = u64::try_from(length).unwrap_or(u64::MAX / 2);
                Duration::from_nanos(length.next_multiple_of(4))
            }
        }
    }
}

/// By how much slots are longer than was measured, in 1024ths of that.
///
/// It follows from how earlier slots ended. Servers see when those of queries did; those of answers
/// show in when a user acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch(u64);

impl Stretch {
    const NONE: Self = Self(1024);
    /// Four times.
    const MOST: u64 = 4 * 1024;

    fn of(self, length: Duration) -> Duration {
        let nanos = length.as_nanos() * u128::from(self.0) / 1024;
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX / 2);
        Duration::from_nanos(nanos.next_multiple_of(4))
    }

    /// A slot has ended: in time, or late. About one in two hundred may be late without it growing.
    fn note(&mut self, late: bool) {
        self.0 = match late {
            true => (self.0 + self.0 / 4).min(Self::MOST),
            false => (self.0 - self.0 / 1024).max(Self::NONE.0),
        };
    }
}

fn nanos(duration: Duration) -> u64 {
    // 292 years of computing fit.
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2)
}

/// How long after its beginning a slot of the given length ends, if the work took so long: then, or
/// at the next multiple of a quarter of it.
fn slot_end(length: Duration, took: Duration) -> Duration {
    if took <= length {
        return length;
    }
    round_up(took, length / 4)
}

fn round_up(took: Duration, step: Duration) -> Duration {
    Duration::from_nanos(nanos(took).next_multiple_of(nanos(step).max(1)))
}

/// When slots end, and how long they are.
pub(super) struct Timetable {
    clock: Clock,
    /// The latest public moment: that of the last input or the end of a slot.
    now: Duration,
    /// What the clock showed when something was handed in last: what is done since has begun then.
    begun: Duration,
    /// When the slot in progress ends.
    ends: Option<Duration>,
    /// `None`: nothing is ever sent that depends on an index, and there are no slots.
    pub(super) lengths: Option<Lengths>,
    /// Of queries, and of answers.
    stretches: [Stretch; 2],
    /// What was measured last.
    pub(super) measured: Option<Measured>,
    measuring: Measuring,
    #[cfg(test)]
    flaw: Flaw,
}

/// When lookups were measured, and which.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) when: Duration,
    /// How long it took, to a multiple of [`OPENING_STEP`].
    pub(super) took: Duration,
    /// What lookups were made in.
    in_table: Kind,
}

/// What says how much work lookups are: scheme, parameters and shape, and how long the layout is.
/// Versions of a table often have it in common.
type Kind = (SchemeId, Vec<u8>, TableShape, u64);

fn kind_of(chosen: &ChosenTable) -> Kind {
    let plan = &chosen.scheme.plan;
    (plan.scheme, plan.parameters.clone(), chosen.identity.shape, chosen.layout.len)
}

/// What is wrong with a timetable on purpose.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Flaw {
    #[default]
    None,
    /// A query leaves as soon as it is computed.
    SendsWhenDone,
    /// What comes after an answer waits for it to be read, and no longer.
    ReadsWithoutSlot,
    /// What takes longer than its slot leaves as soon as it is done.
    DoesNotRound,
}

impl Timetable {
    pub(super) fn new(clock: Clock, now: Duration, measuring: Measuring) -> Self {
        Self {
            begun: clock.now(),
            clock,
            now,
            ends: None,
            lengths: Some(Lengths::unmeasured()),
            stretches: [Stretch::NONE; 2],
            measured: None,
            measuring,
            #[cfg(test)]
            flaw: Flaw::None,
        }
    }

    #[cfg(test)]
    pub(super) fn with_flaw(self, flaw: Flaw) -> Self {
        Self { flaw, ..self }
    }

    /// What is handed in at `now`, or during a slot, which counts as at its end. Returns when.
    pub(super) fn at(&mut self, now: Duration) -> Duration {
        self.begun = self.clock.now();
        self.now = self.now.max(now).max(self.ends.unwrap_or_default());
        #[cfg(test)]
        self.tell_adversary();
        self.now
    }

    /// Whether something may leave at `now`: no slot is in progress, or it ends.
    pub(super) fn lets_out(&mut self, now: Duration) -> bool {
        if self.ends.is_some_and(|ends| now < ends) {
            return false;
        }
        self.ends = None;
        true
    }

    /// When the slot in progress ends.
    pub(super) fn ends(&self) -> Option<Duration> {
        self.ends
    }

    /// Since the last input, work was done that an index may slow down. What came of it leaves when
    /// its slot ends. `search_len`: see [`ErasedHints::search_len`]. `count`: it was so many pieces
    /// of work.
    pub(super) fn end(&mut self, work: Work, search_len: u64, count: u32) {
        let Some(lengths) = self.lengths else { return };
        let took = self.took();
        let stretch = &mut self.stretches[work as usize];
        let length = stretch.of(lengths.of(work, search_len)).saturating_mul(count);
        stretch.note(took > length);
        #[cfg(test)]
        let slot = self.flaw.slot_end(work, length, took);
        #[cfg(not(test))]
        let slot = slot_end(length, took);
        self.occupy(slot);
    }

    /// The same for what is done once for many lookups.
    pub(super) fn end_opening(&mut self) {
        if self.lengths.is_some() {
            self.occupy(round_up(self.took(), OPENING_STEP));
        }
    }

    fn took(&self) -> Duration {
        self.clock.now().saturating_sub(self.begun)
    }

    fn occupy(&mut self, slot: Duration) {
        let begins = self.now.max(self.ends.unwrap_or_default());
        if !slot.is_zero() {
            self.ends = Some(begins + slot);
        }
    }

    /// Whether it is time to measure: for the first time, or in another table, or once more and
    /// not too soon.
    fn is_time_to_measure(&self, in_table: &Kind) -> bool {
        self.measured.as_ref().is_none_or(|last| {
            last.in_table != *in_table || self.now >= last.when + last.took.saturating_mul(PAUSES)
        })
    }
}

#[cfg(test)]
thread_local! {
    static TOLD: std::cell::Cell<[Duration; 2]> = const { std::cell::Cell::new([Duration::ZERO; 2]) };
}

/// How long the slots of this thread's session are, for tests whose work takes just longer.
#[cfg(test)]
pub(super) fn length_of(work: Work) -> Duration {
    TOLD.get()[work as usize]
}

#[cfg(test)]
impl Timetable {
    fn tell_adversary(&self) {
        let Some(lengths) = self.lengths else { return };
        let told = [Work::Query, Work::Answer];
        TOLD.set(told.map(|work| self.stretches[work as usize].of(lengths.of(work, 1))));
    }
}

#[cfg(test)]
impl Flaw {
    fn slot_end(self, work: Work, length: Duration, took: Duration) -> Duration {
        match self {
            Flaw::SendsWhenDone if work == Work::Query => took,
            Flaw::ReadsWithoutSlot if work == Work::Answer => took,
            Flaw::DoesNotRound if took > length => took,
            _ => slot_end(length, took),
        }
    }
}

/// How long a dummy took.
struct Took {
    query: Duration,
    answer: Duration,
}

/// What dummies are looked up with.
struct Rehearsing<'a> {
    clock: Clock,
    records: &'a Records,
    start: &'a dyn Fn() -> Result<Box<dyn ErasedClient>>,
    rehearsal: Box<dyn Rehearsal>,
    /// As many as servers, and as long as theirs.
    answers: Vec<&'a [u8]>,
    record: &'a [u8],
    pause: Duration,
    memory: Vec<u8>,
}

impl Rehearsing<'_> {
    /// Looks one dummy up. `None`: that cannot be done.
    fn look_up(&mut self, target: &Target, candidate: usize, rng: &mut SecretRng) -> Option<Took> {
        let (mut prepared, mut query) = self.prepare(target, candidate, rng);
        if prepared.as_ref().is_err_and(|error| error.blame() == Blame::Exhausted) {
            self.rehearsal = (self.start)().ok()?.into_rehearsal()?;
            (prepared, query) = self.prepare(target, candidate, rng);
        }
        prepared.ok()?;
        sweep(&mut self.memory);
        let begun = self.clock.now();
        // Whether they pass or not: nobody gave them.
        let _ = self.rehearsal.recover(&self.answers);
        let _ = self.records.piece(target, candidate, self.record);
        // It is not found, but a value that is would be copied: by its record, and by its lookup.
        let value = Some(Zeroizing::new(self.record.to_vec()));
        let _ = self.records.value(target, &vec![value; self.records.fetches()]);
        Some(Took { query, answer: self.clock.now().saturating_sub(begun) })
    }

    fn prepare(
        &mut self,
        target: &Target,
        candidate: usize,
        rng: &mut SecretRng,
    ) -> (Result<()>, Duration) {
        self.rest();
        sweep(&mut self.memory);
        let begun = self.clock.now();
        let index = self.records.locate(target, candidate);
        let prepared = index.and_then(|index| self.rehearsal.prepare(&index, rng));
        (prepared, self.clock.now().saturating_sub(begun))
    }

    /// Looks dummies up, as often as `measuring` says. Returns what each one took, all its times.
    fn rounds(
        &mut self,
        targets: &[Target],
        measuring: &Measuring,
        rng: &mut SecretRng,
    ) -> Vec<Vec<Took>> {
        let mut times: Vec<Vec<Took>> = Vec::new();
        let begun = self.clock.now();
        for round in 0..measuring.rounds {
            let spent = self.clock.now().saturating_sub(begun);
            // No time for another as long as those before.
            if round > 0 && spent / round * (round + 1) > measuring.time {
                break;
            }
            for (number, target) in targets.iter().enumerate() {
                let spent = self.clock.now().saturating_sub(begun);
                let enough = match round {
                    0 => number >= measuring.fewest && spent >= measuring.time / measuring.rounds,
                    _ => number >= times.len(),
                };
                if enough {
                    break;
                }
                let candidate = number % self.records.fetches();
                let Some(took) = self.look_up(target, candidate, rng) else { return times };
                match times.get_mut(number) {
                    Some(times) => times.push(took),
                    None => times.push(vec![took]),
                }
            }
        }
        times
    }

    /// The processor does something else for a while, as between lookups.
    fn rest(&self) {
        #[cfg(not(target_family = "wasm"))]
        if !self.pause.is_zero() {
            std::thread::sleep(self.pause);
        }
    }
}

/// The slowest dummy, by the median of each one's times.
fn slowest(times: &[Vec<Took>], kind: fn(&Took) -> Duration) -> Option<Duration> {
    let medians = times.iter().filter_map(|times| {
        let mut times: Vec<Duration> = times.iter().map(kind).collect();
        times.sort_unstable();
        times.get(times.len().checked_sub(1)? / 2).copied()
    });
    medians.max()
}

impl Session {
    /// Measures how long lookups take, with copies of the client that `start` makes.
    ///
    /// # Errors
    /// What `start` fails with. If a copy cannot make lookups (its hints are used up), nothing is
    /// measured until the next hints are there.
    pub(super) fn rehearse(
        &mut self,
        start: &dyn Fn() -> Result<Box<dyn ErasedClient>>,
    ) -> Result<()> {
        let (Some(chosen), Some(records)) = (self.chosen.as_deref(), &self.records) else {
            return Ok(());
        };
        let in_table = kind_of(chosen);
        if !self.timetable.is_time_to_measure(&in_table) {
            return Ok(());
        }
        let plan = &chosen.scheme.plan;
        if matches!(plan.offline, OfflinePhase::KeepTable { .. }) {
            self.timetable.lengths = None;
            return Ok(());
        }
        let (clock, measuring) = (self.timetable.clock.clone(), self.timetable.measuring);
        let begun = clock.now();
        let mut copy = start()?;
        let search_len = copy.hints().map_or(1, |hints| hints.search_len()).max(1);
        let Some(rehearsal) = copy.into_rehearsal() else { return Ok(()) };
        let answers: Vec<Vec<u8>> =
            (0..plan.servers).map(|_| some_memory(plan.answer_len)).collect();
        let record = vec![0; chosen.identity.shape.record_len() as usize];
        // Coins of its own: those of lookups do not depend on what was measured.
        let rng = &mut SecretRng::from_os()?;
        let targets: Vec<Target> =
            (0..measuring.dummies).map(|_| records.dummy(DUMMY_KEY_LEN, rng)).collect();
        let mut rehearsing = Rehearsing {
            clock: clock.clone(),
            records,
            start,
            rehearsal,
            answers: answers.iter().map(Vec::as_slice).collect(),
            record: &record,
            pause: measuring.pause,
            memory: some_memory(measuring.swept),
        };
        let times = rehearsing.rounds(&targets, &measuring, rng);
        if let (Some(query), Some(answer)) =
            (slowest(&times, |took| took.query), slowest(&times, |took| took.answer))
        {
            self.timetable.lengths = Some(Lengths::of_slowest(query, answer, search_len));
            let took = round_up(clock.now().saturating_sub(begun), OPENING_STEP);
            self.timetable.measured = Some(Measured { when: self.timetable.now, took, in_table });
        } else if self.timetable.measured.as_ref().is_none_or(|last| last.in_table != in_table) {
            self.timetable.lengths = Some(Lengths::unmeasured());
            self.timetable.measured = None;
        }
        Ok(())
    }
}

/// Zeros that take up memory: fresh pages of zeros are all the same one before something is
/// written, and that would always lie in a cache.
fn some_memory(len: usize) -> Vec<u8> {
    let mut memory = vec![0; len];
    memory.fill(std::hint::black_box(0));
    memory
}

/// Reads memory, so that caches hold that instead of what was there.
fn sweep(memory: &mut [u8]) {
    for line in memory.chunks_mut(64) {
        line[0] = line[0].wrapping_add(1);
    }
    std::hint::black_box(memory);
}

#[cfg(test)]
mod tests;
