//! Hints that never run out: from a generation that is used up to the next, without asking anybody.
//!
//! By some schemes, every query brings what replaces the hint that it used. A generation of such
//! hints serves a fixed number of queries all the same, so that its journal does not grow without
//! end; then the state is *condensed* into the next one, which holds what all the answers have
//! brought. Nothing is prepared beside lookups.
//!
//! **A generation is condensed only when it is used up and all its queries are answered.** The next
//! one holds hints that this one holds as well. As long as one query more could be made through
//! this one, by this process or by another after a crash, both could use the same hint. So:
//!
//! ```text
//! used up ──► answers outstanding? ──none──► condense ──► store ──► switch ──► lookups go on
//!                   │        ▲
//!                   wait, or send them again
//! ```
//!
//! Until the switch, which is a single step on the disk, the used-up generation is the one in use,
//! and it serves no query. A process that finds it so, whatever is stored beside it, condenses it
//! anew: what an earlier process condensed may lack an answer that only the journal has, and is
//! erased.
//!
//! # Answers that did not come
//!
//! By some of these schemes each record depends on the answers to all queries before its own. So an
//! answer that did not come in time is asked for again as soon as another lookup is handed in, with
//! the same bytes, which are kept for this: otherwise no lookup of this session would succeed any
//! more, until another session reads them from the journal. Such a lookup waits until nothing else
//! is under way, and goes out beside what is sent again. At the end of a generation it waits for
//! the answers themselves; if they fail as well, it is refused. Either way everything is sent again
//! once for all lookups that wait, and once more for those that are handed in later.

use super::hints::NextLookup;
use super::interface::{Output, Persist};
use super::open::{Open, Stage};
use super::shared::Shared;
use privet_core::{Error, Result};
use privet_schemes::contract::ReservationId;
use privet_schemes::reservation::Sendable;

impl Open {
    /// Keeps what was sent for a reservation until it is settled, if the scheme needs that.
    pub(super) fn keep_sent(&mut self, id: ReservationId, sendable: Sendable) {
        if self.hinted().is_some_and(|hints| hints.is_endless()) {
            self.hints.unanswered.sent(id, sendable);
        }
    }

    /// What is to become of the next lookup when the generation is used up and `open` of its
    /// reservations are not settled.
    pub(super) fn next_at_the_end(&mut self, shared: &Shared, open: usize) -> NextLookup {
        if !self.hints_are_idle(shared) {
            return NextLookup::Wait;
        }
        if open == 0 {
            return NextLookup::Condense;
        }
        if self.hints.send_again() {
            return NextLookup::SendAgain;
        }
        NextLookup::Refuse(Error::unavailable(format!(
            "{open} earlier queries have not been answered, also when they were sent again, and until they are the hints cannot be renewed, so nothing was asked; see to it that the servers answer, and try again"
        )))
    }

    /// Hands the condensed state over to be the next generation.
    ///
    /// # Errors
    /// If the scheme cannot condense it.
    pub(super) fn condense(&mut self, shared: &mut Shared) -> Result<()> {
        let Some(hints) = self.hinted() else { return Ok(()) };
        let generation = hints.condense()?;
        shared.outputs.push_back(Output::Persist(Persist::CondenseHints { generation }));
        self.stage = Stage::Switching { first: false };
        Ok(())
    }

    /// Sees to it that queries whose lookups are over and have no answer are sent again, once
    /// nothing else is under way.
    pub(super) fn next_after_unanswered(&mut self, shared: &Shared) -> NextLookup {
        let unanswered = &self.hints.unanswered;
        let given_up = unanswered.ids().any(|id| !self.may_be_answered(shared, id));
        match given_up && !unanswered.asked_again() {
            false => NextLookup::Go,
            true if !self.hints_are_idle(shared) => NextLookup::Wait,
            true if self.hints.send_again() => NextLookup::SendAgain,
            true => NextLookup::Go,
        }
    }
}
