//! Mistakes that tests plant in a session, to show that servers' views would reveal them, and
//! artificial durations of work.
//!
//! The session calls one function of this module for each mistake. Unless [`PLANTED_LEAKS`], none
//! can be planted, and nothing is left of these calls.

pub use super::timetable::Work;

use super::Value;
use super::interface::{LookupId, Target};
use super::open::Open;
use super::shared::Shared;
use super::timetable::Stretch;
use privet_core::Result;
use privet_core::planted::PLANTED_LEAKS;
use std::cell::Cell;
use std::time::Duration;

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionFlaw {
    /// Records of keys in the stash, which the client has, are not asked for.
    StashNotAskedFor,
    /// Of a key of two parts, the second is asked for only if the first says that there is one.
    SecondPartIfTold,
    /// A key that was not found is asked for once more.
    AsksAgainWhenNotFound,
    /// A failed lookup is made once more.
    AsksAgainWhenFailed,
    /// A query leaves as soon as it is computed.
    SendsWhenDone,
    /// Later messages wait only until the answer is read.
    ReadsWithoutSlot,
    /// Work that takes longer than its slot leaves as soon as it is done.
    DoesNotRound,
    /// Slots begin at the time that the driver tells, however old that is.
    BelievesWhatItIsTold,
    /// Late answers lengthen later slots.
    GrowsWithAnswers,
}

/// How long work of one kind takes, as a function of a secret.
pub type Pace = fn(Work, &[u8]);

thread_local! {
    static PACE: Cell<Option<Pace>> = const { Cell::new(None) };
    static PLANTED: Cell<Option<SessionFlaw>> = const { Cell::new(None) };
    static ASKED_AGAIN: Cell<bool> = const { Cell::new(false) };
    static REHEARSED: Cell<usize> = const { Cell::new(0) };
    static LENGTHS: Cell<[Duration; 2]> = const { Cell::new([Duration::ZERO; 2]) };
}

/// While this exists, a mistake is planted in this thread.
#[must_use]
#[derive(Debug)]
pub struct Planted(());

impl Drop for Planted {
    fn drop(&mut self) {
        PLANTED.set(None);
    }
}

/// Plants a mistake in this thread, or none. Changes nothing where none can be planted.
pub fn plant(flaw: Option<SessionFlaw>) -> Planted {
    PLANTED.set(flaw);
    ASKED_AGAIN.set(false);
    Planted(())
}

/// Has the session's own work take time in this thread, besides that of the scheme's client.
pub fn set_pace(pace: Pace) {
    PACE.set(Some(pace));
}

/// How many bytes of values rehearsals in this thread have read since the last call.
#[cfg(test)]
pub(super) fn take_rehearsed() -> usize {
    REHEARSED.take()
}

/// The slot lengths of this thread's session, for tests whose work takes just longer.
#[cfg(test)]
pub(super) fn length_of(work: Work) -> Duration {
    LENGTHS.get()[work as usize]
}

#[inline]
fn is(flaw: SessionFlaw) -> bool {
    PLANTED_LEAKS && PLANTED.get() == Some(flaw)
}

/// [`SessionFlaw::BelievesWhatItIsTold`].
#[inline]
pub(super) fn time(counts: Duration, told: Duration) -> Duration {
    if is(SessionFlaw::BelievesWhatItIsTold) { told } else { counts }
}

/// For `length_of`.
#[inline]
pub(super) fn note_lengths(length: impl Fn(Work) -> Option<Duration>) {
    if PLANTED_LEAKS
        && let (Some(query), Some(answer)) = (length(Work::Query), length(Work::Answer))
    {
        LENGTHS.set([query, answer]);
    }
}

/// [`SessionFlaw::GrowsWithAnswers`]: an answer counts as many late queries.
#[inline]
pub(super) fn answer_ended(late: Option<bool>, mut note_query: impl FnMut(bool)) {
    if let (Some(late), true) = (late, is(SessionFlaw::GrowsWithAnswers)) {
        (0..Stretch::MANY).for_each(|_| note_query(late));
    }
}

/// Mistakes in the end of a slot, which is at `end`.
#[inline]
pub(super) fn slot_end(work: Work, end: Duration, length: Duration, took: Duration) -> Duration {
    let flawed = match work {
        Work::Query => is(SessionFlaw::SendsWhenDone),
        Work::Answer => is(SessionFlaw::ReadsWithoutSlot),
    };
    if flawed || (took > length && is(SessionFlaw::DoesNotRound)) { took } else { end }
}

/// [`SessionFlaw::SecondPartIfTold`]: half of a lookup's fetches, until one is made again.
#[inline]
pub(super) fn made(fetches: usize) -> usize {
    let half = is(SessionFlaw::SecondPartIfTold) && !ASKED_AGAIN.get();
    if half { fetches.div_ceil(2) } else { fetches }
}

/// For `take_rehearsed`.
#[inline]
pub(super) fn rehearsed(value: &Result<Option<Value>>) {
    if PLANTED_LEAKS {
        let len = value.as_ref().ok().and_then(Option::as_ref).map_or(0, |value| value.len());
        REHEARSED.set(REHEARSED.get() + len);
    }
}

impl Shared {
    /// Stands where work is done whose duration may depend on the target.
    #[inline]
    pub(super) fn takes_time(&self, work: Work, target: &Target) {
        // Without slots, nothing is ever sent.
        if PLANTED_LEAKS && let (Some(pace), Some(_)) = (PACE.get(), self.timetable.lengths) {
            match target {
                Target::Key(key) | Target::Written(key) => pace(work, key),
                Target::Index(index) => pace(work, &index.to_le_bytes()),
            }
        }
    }

    /// [`SessionFlaw::AsksAgainWhenNotFound`] and [`SessionFlaw::AsksAgainWhenFailed`]: each once.
    /// [`SessionFlaw::SecondPartIfTold`], too, because the first part alone is not the value.
    #[inline]
    pub(super) fn ask_again(&mut self, target: &Target, outcome: &Result<Option<Value>>) {
        let again = match outcome {
            Ok(Some(_)) => false,
            Ok(None) => is(SessionFlaw::AsksAgainWhenNotFound),
            Err(_) => is(SessionFlaw::AsksAgainWhenFailed) || is(SessionFlaw::SecondPartIfTold),
        };
        if again && !ASKED_AGAIN.replace(true) {
            self.lookups.add(target.clone());
        }
    }
}

impl Open {
    /// [`SessionFlaw::StashNotAskedFor`].
    #[inline]
    pub(super) fn known_from_the_stash(
        &self,
        shared: &mut Shared,
        target: &Target,
    ) -> Option<LookupId> {
        let records = self.records.as_ref().filter(|_| is(SessionFlaw::StashNotAskedFor))?;
        let nothing = vec![None; records.fetches()];
        let value = records.value(target, &nothing).ok().flatten()?;
        let lookup = shared.lookups.add_nothing();
        shared.reply(lookup, Ok(Some(value)));
        Some(lookup)
    }
}
