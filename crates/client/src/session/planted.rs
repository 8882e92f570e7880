//! Mistakes that tests plant in a session, to show that servers' views would reveal them, and
//! artificial durations of work. Compiled only for this crate's tests.

use super::Value;
use super::interface::{LookupId, Target};
use super::open::Open;
use super::shared::Shared;
use super::timetable::Work;
use privet_core::Result;
use std::cell::Cell;

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionFlaw {
    /// Records of keys in the stash, which the client has, are not asked for.
    StashNotAskedFor,
    /// A key that was not found is asked for once more.
    AsksAgainWhenNotFound,
    /// A failed lookup is made once more.
    AsksAgainWhenFailed,
}

/// How long work of one kind takes, as a function of a secret.
pub(super) type Pace = fn(Work, &[u8]);

thread_local! {
    static PACE: Cell<Option<Pace>> = const { Cell::new(None) };
    static PLANTED: Cell<Option<SessionFlaw>> = const { Cell::new(None) };
    static ASKED_AGAIN: Cell<bool> = const { Cell::new(false) };
    static REHEARSED: Cell<usize> = const { Cell::new(0) };
}

/// A rehearsal in this thread read a value of so many bytes.
pub(super) fn rehearsed(value_len: usize) {
    REHEARSED.set(REHEARSED.get() + value_len);
}

/// How many bytes of values rehearsals have read since the last call.
pub(super) fn take_rehearsed() -> usize {
    REHEARSED.take()
}

/// Plants a mistake in this thread, or removes it.
pub(super) fn plant(flaw: Option<SessionFlaw>) {
    PLANTED.set(flaw);
    ASKED_AGAIN.set(false);
}

/// Has the session's own work take time in this thread, besides that of the scheme's client.
pub(super) fn set_pace(pace: Pace) {
    PACE.set(Some(pace));
}

fn is(flaw: SessionFlaw) -> bool {
    PLANTED.get() == Some(flaw)
}

impl Shared {
    /// Stands where work is done whose duration may depend on the target.
    pub(super) fn takes_time(&self, work: Work, target: &Target) {
        // Without slots, nothing is ever sent.
        if let (Some(pace), Some(_)) = (PACE.get(), self.timetable.lengths) {
            match target {
                Target::Key(key) | Target::Written(key) => pace(work, key),
                Target::Index(index) => pace(work, &index.to_le_bytes()),
            }
        }
    }

    /// [`SessionFlaw::AsksAgainWhenNotFound`] and [`SessionFlaw::AsksAgainWhenFailed`]: each once.
    pub(super) fn ask_again(&mut self, target: &Target, outcome: &Result<Option<Value>>) {
        let again = match outcome {
            Ok(Some(_)) => false,
            Ok(None) => is(SessionFlaw::AsksAgainWhenNotFound),
            Err(_) => is(SessionFlaw::AsksAgainWhenFailed),
        };
        if again && !ASKED_AGAIN.replace(true) {
            self.lookups.add(target.clone());
        }
    }
}

impl Open {
    /// [`SessionFlaw::StashNotAskedFor`].
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
