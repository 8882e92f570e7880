//! Work that depends on the index is done within a time that does not depend on it.
//!
//! A server sees when messages come. So all work whose duration may depend on the index is done in
//! *slots* of a public length: preparing a query (from the key to the journal record, or to the
//! query where there is no journal), and reading an answer (to the outcome that the user is told).
//! Memory that does or does not lie in a cache, a search that ends early, a long key: none of these
//! moves a message.
//!
//! ```text
//! handed in                          sent            answered                    told
//!     │◄──────────── D ──────────────►│                  │◄─────────── R ─────────►│
//!     │ computing the query │ waiting │                  │ reading │    waiting    │
//! ```
//!
//! A slot begins at a public moment, and nothing leaves the session before it ends: neither the
//! result of the work nor any effect of messages that arrive meanwhile. The session treats those as
//! if they had arrived at the slot's end. Slots come one after the other. So the moment at which
//! anything is sent follows from when lookups were handed in, when messages came, and the lengths
//! of slots.
//!
//! A journal record leaves the session at the end of its slot, and its query after the record is
//! durable. The driver may gather the records of several lookups before that. Then each has a slot
//! of its own, and their queries leave together, after the last slot and one sync. The queries of
//! one lookup also leave together, after the last one's slot. A late slot delays all of them, and
//! does not show which one was late.
//!
//! # How long slots are
//!
//! D is five quarters of the slowest of some hundred dummy queries, measured when the session
//! opens; R is the same for answers. This costs more than a quarter of the client's time: slots do
//! not overlap, most lookups find the caches warmer than dummies do, and no slot is shorter than
//! [`SHORTEST`]. But no lookup waits for the tick of a coarse clock. Work that takes longer than
//! its slot ends at the next multiple of a quarter of it ([`Lengths`]). So in rare cases a server
//! may see *that* something took longer, to a quarter of D.
//!
//! If such cases are many, because the processor has less time for this than when the session
//! opened, slots grow, up to four times, and shrink again slowly ([`Stretch`]). They follow the
//! queries that were late, which servers see. The time that reading an answer took lengthens
//! nothing.
//!
//! An answer may bring records for later lookups: those by the same hint, which is secret. So
//! reading it takes as many slots as there may be such lookups.
//!
//! The module [`rehearsal`] says what the session measures.
//!
//! Where the work grows with the number of lookups ([`ErasedHints::search_len`]), D grows with it
//! at once. The session measures again when scheme, parameters, shape or layout have changed, and
//! with each generation of hints, unless it did so a short while ago.
//!
//! Loading hints and condensing them reads data that depends on earlier indices. It ends at a
//! multiple of [`OPENING_STEP`]. The time of the dummies that are measured meanwhile is rounded
//! separately.
//!
//! # Which clock
//!
//! The session uses both the times that it is told and a [`Clock`] of its own, and the later of the
//! two counts. So a driver that tells an old time does not shorten a slot. If a clock runs in
//! coarse steps, as in some browsers, slots are at least four of its steps. Work that ends within a
//! slot's last step counts as late; otherwise the slot's end would show when the work ended.
//!
//! # What this does not hide
//!
//! Effects on other work of the processor: a query that disturbs the caches for what comes after it
//! may delay that, as any other program may. And the system's own time between a moment and the
//! sending: a thread that slept longer wakes up later. `docs/security/side-channels.md` says what
//! else may take longer than its slot.

mod rehearsal;
#[cfg(test)]
mod tests;

pub(super) use rehearsal::Measuring;

use super::interface::ChosenTable;
use super::options::Clock;
use super::planted;
use privet_core::TableShape;
use privet_schemes::SchemeId;
#[cfg(doc)]
use privet_schemes::registry::ErasedHints;
use std::time::Duration;

/// The shortest slot: work that is too short to measure well must not get a slot of just its
/// length.
const SHORTEST: Duration = Duration::from_micros(32);

/// How long a slot is if nothing could be measured.
const UNMEASURED: Duration = Duration::from_millis(1);

/// Opening and condensing hints ends at a multiple of this.
pub(super) const OPENING_STEP: Duration = Duration::from_millis(4);

/// No new measurement begins before so many times the time of the last one have passed.
const PAUSES: u32 = 16;

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// From a key to a query.
    Query,
    /// From an answer to a record, or from a record to a value.
    Answer,
}

/// The lengths of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) query: Duration,
    pub(super) answer: Duration,
    /// The [`ErasedHints::search_len`] at which this was measured; 0: it was not.
    search_len: u64,
    /// A slot, and a quarter of it, is a whole number of the clock's steps.
    step: Duration,
}

impl Lengths {
    /// Five quarters of the slowest query and of the slowest answer, by a clock with such steps.
    fn of_slowest(query: Duration, answer: Duration, search_len: u64, step: Duration) -> Self {
        let slot = |slowest: Duration| {
            let slowest = at_most(slowest, step);
            in_quarters((slowest + slowest / 4).max(SHORTEST), step)
        };
        Self { query: slot(query), answer: slot(answer), search_len, step }
    }

    /// The lengths if nothing could be measured.
    fn unmeasured() -> Self {
        Self::of_slowest(UNMEASURED, UNMEASURED, 0, FINEST)
    }

    /// How long a slot is for work of `search_len`, if all slots are longer by `stretch`.
    fn of(&self, work: Work, search_len: u64, stretch: Stretch) -> Duration {
        let measured = match work {
            Work::Answer => self.answer.as_nanos(),
            Work::Query if self.search_len == 0 => self.query.as_nanos(),
            Work::Query => {
                let grown = u128::from(search_len.max(self.search_len));
                self.query.as_nanos() * grown / u128::from(self.search_len)
            }
        };
        let length = measured * u128::from(stretch.factor) / u128::from(Stretch::NONE.factor);
        let length = u64::try_from(length).unwrap_or(u64::MAX / 2);
        in_quarters(Duration::from_nanos(length), self.step)
    }
}

/// No clock has finer steps than this.
const FINEST: Duration = Duration::from_nanos(1);

/// The longest time for which a clock with such steps may show `took`.
fn at_most(took: Duration, step: Duration) -> Duration {
    took + step.saturating_sub(FINEST)
}

/// A length whose quarter is a whole number of steps.
fn in_quarters(length: Duration, step: Duration) -> Duration {
    round_up(length, step * 4)
}

/// By how much slots are longer than measured.
///
/// It follows from how the slots of earlier queries ended, which servers saw. A single late query
/// changes nothing: it was interrupted, and longer slots would not help. Also, a server that does
/// not know when a lookup was handed in must not learn from later slots that its query was late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// In 1024ths of the measured length.
    factor: u64,
    /// One bit for each of the last queries, the latest in the lowest bit: whether it was late.
    late: u64,
}

impl Stretch {
    const NONE: Self = Self { factor: 1024, late: 0 };
    /// The factor's limit: four times.
    const MOST: u64 = 4 * 1024;
    /// Slots grow if so many of the last 64 queries were late.
    pub(super) const MANY: u32 = 4;

    /// The slot of a query has ended: in time, or late.
    fn note(&mut self, late: bool) {
        self.late = self.late << 1 | u64::from(late);
        if self.late.count_ones() >= Self::MANY {
            *self = Self { factor: (self.factor + self.factor / 4).min(Self::MOST), late: 0 };
        } else if !late {
            self.factor = (self.factor - self.factor / 1024).max(Self::NONE.factor);
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    // 292 years of computing fit.
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2)
}

/// When a slot of the given length ends, counted from its beginning, if the work took so long:
/// after that length, or at the next multiple of a quarter of it.
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
    /// The time that the session was told and the time that the clock showed, when both began.
    began: [Duration; 2],
    /// The latest public moment: that of the last input or the end of a slot.
    now: Duration,
    /// What the clock showed at the last input: work since then counts from there.
    begun: Duration,
    /// How much of the time since then rehearsals took.
    rehearsed: Duration,
    /// When the slot in progress ends.
    ends: Option<Duration>,
    /// `None`: nothing is ever sent that depends on an index, and there are no slots.
    pub(super) lengths: Option<Lengths>,
    stretch: Stretch,
    /// The last measurement.
    pub(super) measured: Option<SlotMeasurement>,
    measuring: Measuring,
}

/// When lookups were measured, and in what table.
#[derive(Clone, Debug)]
pub(super) struct SlotMeasurement {
    pub(super) when: Duration,
    /// How long it took, to a multiple of [`OPENING_STEP`].
    pub(super) took: Duration,
    /// The kind of table.
    in_table: Kind,
}

/// What decides how much work a lookup is: scheme, parameters, shape, and the digest of the layout.
/// Versions of a table often share it.
type Kind = (SchemeId, Vec<u8>, TableShape, [u8; 32]);

fn kind_of(chosen: &ChosenTable) -> Kind {
    let plan = &chosen.scheme.plan;
    (plan.scheme, plan.parameters.clone(), chosen.identity.shape, chosen.layout.digest)
}

impl Timetable {
    pub(super) fn new(clock: Clock, now: Duration, measuring: Measuring) -> Self {
        let shown = clock.now();
        Self {
            clock,
            began: [now, shown],
            now,
            begun: shown,
            rehearsed: Duration::ZERO,
            ends: None,
            lengths: Some(Lengths::unmeasured()),
            stretch: Stretch::NONE,
            measured: None,
            measuring,
        }
    }

    /// The time, if the clock shows `shown` and the driver tells `told`.
    fn time(&self, shown: Duration, told: Duration) -> Duration {
        let [now, shown_then] = self.began;
        planted::time(told.max(now + shown.saturating_sub(shown_then)), told)
    }

    /// The time now, if the driver tells `told`.
    pub(super) fn shown(&self, told: Duration) -> Duration {
        self.time(self.clock.now(), told)
    }

    /// Takes an input at `now`; during a slot, the input counts as at the slot's end. Returns the
    /// time that counts.
    pub(super) fn at(&mut self, now: Duration) -> Duration {
        // One look for both: an interruption of the thread from here on counts as work.
        self.begun = self.clock.now();
        self.rehearsed = Duration::ZERO;
        self.now = self.now.max(self.time(self.begun, now)).max(self.ends.unwrap_or_default());
        planted::note_lengths(|work| Some(self.lengths?.of(work, 1, self.stretch)));
        self.now
    }

    /// Work was done since the last input that is the same for every index. What comes next begins
    /// after it. Returns the time that counts.
    pub(super) fn end_public(&mut self) -> Duration {
        let shown = self.clock.now();
        self.now += shown.saturating_sub(self.begun);
        self.begun = shown;
        self.now
    }

    /// Whether something may leave at `now`: no slot is in progress, or it ends now.
    pub(super) fn lets_out(&mut self, now: Duration) -> bool {
        if self.ends.is_some_and(|ends| self.shown(now) < ends) {
            return false;
        }
        self.ends = None;
        true
    }

    /// When the slot in progress ends.
    pub(super) fn ends(&self) -> Option<Duration> {
        self.ends
    }

    /// A query was computed since the last input. It leaves when its slot ends, and servers may see
    /// whether that is late. `search_len`: see [`ErasedHints::search_len`].
    pub(super) fn end_query(&mut self, search_len: u64) {
        if let Some(late) = self.end(Work::Query, search_len, 1) {
            self.stretch.note(late);
        }
    }

    /// Work was done since the last input that may take longer for some indices, and no server may
    /// see when it ended. `count`: how many pieces of work it was.
    pub(super) fn end_unseen(&mut self, work: Work, search_len: u64, count: u32) {
        let late = self.end(work, search_len, count);
        planted::answer_ended(late, |late| self.stretch.note(late));
    }

    /// The result of the work leaves when its slot ends. Returns whether that is late.
    fn end(&mut self, work: Work, search_len: u64, count: u32) -> Option<bool> {
        let lengths = self.lengths?;
        let length = lengths.of(work, search_len, self.stretch).saturating_mul(count);
        let took = at_most(self.took(), lengths.step);
        self.occupy(planted::slot_end(work, slot_end(length, took), length, took));
        Some(took > length)
    }

    /// The same for work that is done once for many lookups. The time of dummies is counted apart:
    /// they take many steps, and other work beside them would decide which step is the last.
    pub(super) fn end_opening(&mut self) {
        if let Some(Lengths { step, .. }) = self.lengths {
            let beside = at_most(self.took().saturating_sub(self.rehearsed), step);
            let whole = round_up(OPENING_STEP, step);
            self.occupy(round_up(self.rehearsed, whole) + round_up(beside, whole));
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

    /// Whether it is time to measure: for the first time, or for another table, or again if the
    /// last time was long enough ago.
    fn is_time_to_measure(&self, in_table: &Kind) -> bool {
        self.measured.as_ref().is_none_or(|last| {
            last.in_table != *in_table || self.now >= last.when + last.took.saturating_mul(PAUSES)
        })
    }
}
