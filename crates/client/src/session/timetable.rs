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
//! A journal record leaves the session at the end of its slot, and its query after the record is
//! durable. Whoever drives the session may gather the records of several lookups before that: then
//! each has a slot of its own, and their queries go out together, after the last slot and one sync.
//! What a late slot delays is all of them, and it does not show which was late.
//!
//! # How long slots are
//!
//! D is five quarters of the slowest of some hundred dummy queries, measured when the session
//! opens, and R the same of answers. The price is more than a quarter of the client's time, because
//! slots do not overlap, most lookups find the caches warmer than dummies do, and no slot is
//! shorter than [`SHORTEST`]; it is not a coarse clock. What takes longer than its slot ends at the
//! next multiple of a quarter of it ([`Lengths`]). So a server may see in rare cases *that*
//! something took longer, to a quarter of D.
//!
//! If those cases are many, because the processor has less time for this than when the session
//! opened, then slots grow, up to four times, and shrink again slowly ([`Stretch`]). They follow
//! queries that were late, which servers see. How long reading an answer took lengthens nothing.
//!
//! An answer may bring records for lookups that came later: those by the same hint, which is
//! secret. So reading it takes as many slots as there may be of these.
//!
//! What the session measures, the module [`rehearsal`] says.
//!
//! Where the work grows with the number of lookups ([`ErasedHints::search_len`]), so does D, at
//! once. It is measured again when scheme, parameters, shape or layout have changed, and with each
//! generation of hints, unless that was done a short while ago.
//!
//! Loading hints and condensing them reads what depends on former indices. It ends at a multiple of
//! [`OPENING_STEP`]. The dummies that are measured at the same time are rounded by themselves.
//!
//! # Which clock
//!
//! Both the times that the session is told and a [`Clock`] of its own go into it, and the later of
//! the two counts. So a driver that tells an old time does not shorten a slot. A clock that goes in
//! coarse steps, as some browsers' do, makes slots of at least four of its steps, and what ends
//! within the last of them counts as late: its end would show otherwise.
//!
//! # What this does not hide
//!
//! What the processor does for others: a query that disturbs the caches of what comes after it may
//! delay that, by as much as any other program does. And the system's own time from a moment to the
//! sending: a thread that slept longer before it wakes up later. What else may take longer than its
//! slot, `docs/security/side-channels.md` says.

mod rehearsal;
#[cfg(test)]
mod tests;

pub(super) use rehearsal::Measuring;

use super::interface::ChosenTable;
use super::options::Clock;
use privet_core::TableShape;
use privet_schemes::SchemeId;
#[cfg(doc)]
use privet_schemes::registry::ErasedHints;
use std::time::Duration;

/// No slot is shorter: what is too short to be measured well shall not be cut to measure.
const SHORTEST: Duration = Duration::from_micros(32);

/// How long a slot is if nothing could be measured.
const UNMEASURED: Duration = Duration::from_millis(1);

/// Opening and condensing hints ends at a multiple of this.
pub(super) const OPENING_STEP: Duration = Duration::from_millis(4);

/// It is not measured again before so many times the time that it took have passed.
const PAUSES: u32 = 16;

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
    /// A slot, and a quarter of it, is a whole number of these: the steps of the clock.
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

    /// What slots are as long as nothing could be measured.
    fn unmeasured() -> Self {
        Self::of_slowest(UNMEASURED, UNMEASURED, 0, FINEST)
    }

    /// How long a slot is while the work grows with `search_len`, and all are longer by `stretch`.
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

/// No clock is looked at in finer steps.
const FINEST: Duration = Duration::from_nanos(1);

/// How long something may have taken for which a clock with such steps showed `took`.
fn at_most(took: Duration, step: Duration) -> Duration {
    took + step.saturating_sub(FINEST)
}

/// A length of which a quarter is a whole number of steps.
fn in_quarters(length: Duration, step: Duration) -> Duration {
    round_up(length, step * 4)
}

/// By how much slots are longer than was measured.
///
/// It follows from how the slots of earlier queries ended, which servers saw. Single ones that were
/// late change nothing. They were interrupted, and longer slots would not help; and a server that
/// does not know when a lookup was handed in would see from the next slots that its query was late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    /// In 1024ths of what was measured.
    factor: u64,
    /// A bit for each of the last queries, the latest lowest: whether it was late.
    late: u64,
}

impl Stretch {
    const NONE: Self = Self { factor: 1024, late: 0 };
    /// Four times.
    const MOST: u64 = 4 * 1024;
    /// Of the last 64 queries, so many must have been late for slots to grow.
    const MANY: u32 = 4;

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
    /// What the session was told, and what the clock showed, when both began.
    began: [Duration; 2],
    /// The latest public moment: that of the last input or the end of a slot.
    now: Duration,
    /// What the clock showed when something was handed in last: what is done since has begun then.
    begun: Duration,
    /// How much of the time since then dummies took.
    rehearsed: Duration,
    /// When the slot in progress ends.
    ends: Option<Duration>,
    /// `None`: nothing is ever sent that depends on an index, and there are no slots.
    pub(super) lengths: Option<Lengths>,
    stretch: Stretch,
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

/// What says how much work lookups are: scheme, parameters and shape, and the digest of the layout.
/// Versions of a table often have it in common.
type Kind = (SchemeId, Vec<u8>, TableShape, [u8; 32]);

fn kind_of(chosen: &ChosenTable) -> Kind {
    let plan = &chosen.scheme.plan;
    (plan.scheme, plan.parameters.clone(), chosen.identity.shape, chosen.layout.digest)
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
    /// Slots begin when the driver says that it is, however long ago it looked.
    BelievesWhatItIsTold,
    /// Answers that were late lengthen later slots.
    GrowsWithAnswers,
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
            #[cfg(test)]
            flaw: Flaw::None,
        }
    }

    /// The time, if the clock shows `shown` and somebody says that it is `told`.
    fn time(&self, shown: Duration, told: Duration) -> Duration {
        let [now, shown_then] = self.began;
        #[cfg(test)]
        if self.flaw == Flaw::BelievesWhatItIsTold {
            return told;
        }
        told.max(now + shown.saturating_sub(shown_then))
    }

    /// The time now, if somebody says that it is `told`.
    pub(super) fn shown(&self, told: Duration) -> Duration {
        self.time(self.clock.now(), told)
    }

    #[cfg(test)]
    pub(super) fn with_flaw(self, flaw: Flaw) -> Self {
        Self { flaw, ..self }
    }

    /// What is handed in at `now`, or during a slot, which counts as at its end. Returns when.
    pub(super) fn at(&mut self, now: Duration) -> Duration {
        // One look for both: whatever interrupts the thread from here on counts as work.
        self.begun = self.clock.now();
        self.rehearsed = Duration::ZERO;
        self.now = self.now.max(self.time(self.begun, now)).max(self.ends.unwrap_or_default());
        #[cfg(test)]
        self.tell_adversary();
        self.now
    }

    /// Whether something may leave at `now`: no slot is in progress, or it ends.
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

    /// Since the last input, a query was computed. It leaves when its slot ends, and servers may
    /// see whether that is late. `search_len`: see [`ErasedHints::search_len`].
    pub(super) fn end_query(&mut self, search_len: u64) {
        if let Some(late) = self.end(Work::Query, search_len, 1) {
            self.stretch.note(late);
        }
    }

    /// Since the last input, work was done that an index may slow down, and nobody may see when it
    /// ended. `count`: it was so many pieces of work.
    pub(super) fn end_unseen(&mut self, work: Work, search_len: u64, count: u32) {
        let _late = self.end(work, search_len, count);
        #[cfg(test)]
        if let (Flaw::GrowsWithAnswers, Some(late)) = (self.flaw, _late) {
            // As if it were one of many.
            (0..Stretch::MANY).for_each(|_| self.stretch.note(late));
        }
    }

    /// What came of the work leaves when its slot ends. Returns whether that is late.
    fn end(&mut self, work: Work, search_len: u64, count: u32) -> Option<bool> {
        let lengths = self.lengths?;
        let length = lengths.of(work, search_len, self.stretch).saturating_mul(count);
        let took = at_most(self.took(), lengths.step);
        #[cfg(test)]
        let slot = self.flaw.slot_end(work, length, took);
        #[cfg(not(test))]
        let slot = slot_end(length, took);
        self.occupy(slot);
        Some(took > length)
    }

    /// The same for what is done once for many lookups. Dummies are counted apart: they take many
    /// steps, and what is done beside them would otherwise decide which one is the last.
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
        TOLD.set(told.map(|work| lengths.of(work, 1, self.stretch)));
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
