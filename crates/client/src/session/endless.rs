//! Hints that never run out: from a used-up generation to the next, without a server.
//!
//! In some schemes, every query brings a replacement for the hint that it used. A generation of
//! such hints still serves only a fixed number of queries, so that its journal does not grow
//! without end. Then the state is *condensed* into the next generation, which holds what all the
//! answers have brought. Nothing is prepared beside lookups.
//!
//! **A generation is condensed only when it is used up and all its queries are answered.** The next
//! generation holds some of the same hints. If one more query could be made through the old
//! generation, by this process or by another after a crash, both generations could use the same
//! hint. So:
//!
//! ```text
//! used up ──► answers outstanding? ──none──► condense ──► store ──► switch ──► lookups go on
//!                   │        ▲
//!                   wait, or send them again
//! ```
//!
//! Until the switch, which is a single step on the disk, the used-up generation stays in use, and
//! serves no query. A process that finds this state condenses the generation anew and erases any
//! next generation that is stored. An earlier process may have condensed it without an answer that
//! only the journal has.
//!
//! # Answers that did not come
//!
//! In some of these schemes, and in one whose hints do run out, each record depends on the answers
//! to all queries before its own. So
//! the session asks again for a missing answer as soon as another lookup is handed in. It sends the
//! same bytes, which it keeps for this. Otherwise no lookup of this session could succeed any more,
//! until another session reads the queries from the journal. That new lookup waits until nothing
//! else is under way, and leaves beside the repeated queries. At the end of a generation it waits
//! for the answers themselves; if they fail as well, the session refuses it. In both cases the
//! session repeats everything once for all lookups that wait, and once more for later ones.

use super::hints::NextLookup;
use super::interface::{Output, Persist};
use super::open::{Open, OpenStage};
use super::shared::Shared;
use privet_core::{Error, Result};
use privet_schemes::contract::ReservationId;
use privet_schemes::reservation::Sendable;

impl Open {
    /// Keeps what was sent for a reservation until it is settled, if the scheme needs that.
    pub(super) fn keep_sent(&mut self, id: ReservationId, sendable: Sendable) {
        let hints = self.hinted();
        if hints.is_some_and(|hints| hints.is_endless() || hints.waits_for_all_answers()) {
            self.hints.unanswered.sent(id, sendable);
        }
    }

    /// What the next lookup does when the generation is used up and `open` of its reservations are
    /// not settled.
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
            "{open} earlier queries have not been answered, even after they were sent again; the hints cannot be renewed before that, so nothing was asked; make sure that the servers answer, and try again"
        )))
    }

    /// Hands over the condensed state as the next generation.
    ///
    /// # Errors
    /// If the scheme cannot condense the state.
    pub(super) fn condense(&mut self, shared: &mut Shared) -> Result<()> {
        let Some(hints) = self.hinted() else { return Ok(()) };
        let generation = hints.condense()?;
        shared.outputs.push_back(Output::Persist(Persist::CondenseHints { generation }));
        self.stage = OpenStage::Switching { first: false };
        Ok(())
    }

    /// Has queries sent again that have no answer and whose lookups are over, once nothing else is
    /// under way.
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
