//! Mistakes that tests plant in a session, to show that they would be noticed in what servers see,
//! and time that they have it take. Compiled for this crate's tests and for nothing else.

use super::Value;
use super::interface::{Event, LookupId, Target};
use super::open::Open;
use super::shared::Shared;
use super::timetable::Work;
use privet_core::Result;
use std::cell::Cell;

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// What lies in the stash, which the client has, is not asked for.
    StashNotAskedFor,
    /// What was not found is asked for once more.
    AsksAgainWhenNotFound,
    /// A lookup that failed is made once more.
    AsksAgainWhenFailed,
}

/// How work takes time: of one kind, on a secret.
pub(super) type Pace = fn(Work, &[u8]);

thread_local! {
    static PACE: Cell<Option<Pace>> = const { Cell::new(None) };
    static PLANTED: Cell<Option<Flaw>> = const { Cell::new(None) };
    static ASKED_AGAIN: Cell<bool> = const { Cell::new(false) };
    static REHEARSED: Cell<usize> = const { Cell::new(0) };
}

/// A value of so many bytes was read for nothing in this thread.
pub(super) fn rehearsed(value_len: usize) {
    REHEARSED.set(REHEARSED.get() + value_len);
}

/// How many bytes of values were read for nothing since this was asked last.
pub(super) fn take_rehearsed() -> usize {
    REHEARSED.take()
}

/// Plants a mistake in this thread, or none any more.
pub(super) fn plant(flaw: Option<Flaw>) {
    PLANTED.set(flaw);
    ASKED_AGAIN.set(false);
}

/// Has work beside that of the scheme's client take time in this thread.
pub(super) fn set_pace(pace: Pace) {
    PACE.set(Some(pace));
}

fn is(flaw: Flaw) -> bool {
    PLANTED.get() == Some(flaw)
}

impl Shared {
    /// Work is done here that may take another time for each target.
    pub(super) fn takes_time(&self, work: Work, target: &Target) {
        // Without slots, nothing is ever sent.
        if let (Some(pace), Some(_)) = (PACE.get(), self.timetable.lengths) {
            match target {
                Target::Key(key) => pace(work, key),
                Target::Index(index) => pace(work, &index.to_le_bytes()),
            }
        }
    }

    /// [`Flaw::AsksAgainWhenNotFound`] and [`Flaw::AsksAgainWhenFailed`]: each once.
    pub(super) fn ask_again(&mut self, target: &Target, outcome: &Result<Option<Value>>) {
        let again = match outcome {
            Ok(Some(_)) => false,
            Ok(None) => is(Flaw::AsksAgainWhenNotFound),
            Err(_) => is(Flaw::AsksAgainWhenFailed),
        };
        if again && !ASKED_AGAIN.replace(true) {
            self.lookups.add(target.clone());
        }
    }
}

impl Open {
    /// [`Flaw::StashNotAskedFor`].
    pub(super) fn known_from_the_stash(
        &self,
        shared: &mut Shared,
        target: &Target,
    ) -> Option<LookupId> {
        let records = self.records.as_ref().filter(|_| is(Flaw::StashNotAskedFor))?;
        let nothing = vec![None; records.fetches()];
        let value = records.value(target, &nothing).ok().flatten()?;
        let lookup = shared.lookups.add_nothing();
        shared.event(Event::Found { lookup, value });
        Some(lookup)
    }
}
