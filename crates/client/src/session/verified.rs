//! Schemes that verify answers: one query after the other, and a permanent end.
//!
//! By such a scheme the client finds out a server that lies, and from then on asks nothing more.
//! For that, the session does the following:
//!
//! **Queries go strictly one after the other**
//! ([`ErasedHints::verifies`](privet_schemes::registry::ErasedHints::verifies)). From the journal
//! record of a reservation until all of its answers are settled, no other reservation is made. It
//! does not matter whether the first one belongs to the same lookup or to an earlier process. The
//! next query leaves as soon as the state allows it, before the session looks at the record that
//! has just come. A query without an answer is sent again with the next lookup, byte for byte, as
//! the module [`endless`](super::endless) says. While it stays unanswered, lookups are refused.
//!
//! **The end is kept before it is told.** An answer that fails verification changes the state as
//! any other does: into a state that makes no more queries.
//!
//! ```text
//! answer does not pass ──► nothing is sent or waited for ──► Persist::EndHints ──► handle_hints_ended ──► the lookup fails, all others too, the session is over
//! ```
//!
//! A difference between the servers' updates of the table proves that one of them lies, and ends
//! the session in the same way (the module [`following`](super::following)). That end belongs to no
//! lookup.
//!
//! The session tells nothing of the end before it would survive a crash. Otherwise a user who
//! starts again would get a second answer to compare with the first, and the server a second try.
//! Every later session finds the hints ended and fails before it asks anything. Only a user who
//! erases them begins anew. (If the end cannot be written down, the session still tells it, and
//! says that it was not written.)
//!
//! By a scheme that keeps no state, the session ends in the same way, and there is nothing to keep.
//!
//! Servers see that a client stops. It tells them only what they know: whether they sent the truth.
//! All of every answer is checked, whichever part of it was wanted.

use super::hints::{NextLookup, for_good};
use super::interface::{FetchId, Output, Persist};
use super::open::{Open, OpenStage};
use super::shared::Shared;
use privet_core::{Error, Reason, Result};
use privet_schemes::contract::ReservationId;
use zeroize::Zeroizing;

impl Open {
    /// What the next lookup does, by a scheme that verifies, if `open` reservations are not
    /// settled.
    pub(super) fn next_in_strict_order(&mut self, shared: &Shared, open: usize) -> NextLookup {
        if self.is_any_under_way(shared) {
            return NextLookup::Wait;
        }
        if open == 0 {
            return NextLookup::Go;
        }
        if self.hints.send_again() {
            return NextLookup::SendAgain;
        }
        NextLookup::Refuse(Error::unavailable(
            "an earlier query has not been answered, even after it was sent again; this scheme asks one query at a time, so nothing was asked; make sure that the servers answer, and try again",
        ))
    }

    /// Keeps the state change that settles a reservation. False: it ended the hints, and `fetch`
    /// hears of that when it is durable.
    pub(super) fn keep_settled(
        &mut self,
        shared: &mut Shared,
        id: ReservationId,
        change: Zeroizing<Vec<u8>>,
        fetch: Option<FetchId>,
    ) -> bool {
        self.hints.unanswered.settled(id);
        let Some(error) = self.hinted().and_then(|hints| hints.ended()) else {
            shared.outputs.push_back(Output::Persist(Persist::Completion { id, change }));
            return true;
        };
        self.end_hints(shared, Some(id), change, fetch, &error);
        false
    }

    /// Keeps `change`, which ends the hints because of `error`, and tells that when it is durable.
    /// `id`: the reservation that it settles, if an answer was wrong.
    pub(super) fn end_hints(
        &mut self,
        shared: &mut Shared,
        id: Option<ReservationId>,
        change: Zeroizing<Vec<u8>>,
        fetch: Option<FetchId>,
        error: &Error,
    ) {
        let error = for_good(error);
        shared.calls.abandon_all(&mut shared.outputs);
        self.hints.preparing = None;
        let why = error.message().to_owned();
        shared.outputs.push_back(Output::Persist(Persist::EndHints { id, change, why }));
        self.stage = OpenStage::Ending { fetch, error };
    }

    /// The end of the hints is durable, or could not be made so because of `storage`.
    ///
    /// # Errors
    /// The error that the hints ended with: the session ends as well.
    pub(super) fn tell_the_end(
        &mut self,
        shared: &mut Shared,
        storage: Option<&Error>,
    ) -> Result<()> {
        let OpenStage::Ending { fetch, error } = &self.stage else { return Ok(()) };
        let (fetch, mut error) = (*fetch, error.clone());
        if let Some(storage) = storage {
            error = Error::integrity(format!(
                "{}. This could not be written down ({storage}), so the next process may not know of it: erase the hints before anything else is asked",
                error.message()
            ))
            .because(Reason::HintsEnded);
        }
        if let Some(fetch) = fetch {
            self.fetch_ends_all(shared, fetch, &error);
        }
        Err(error)
    }
}

/// `error`, and what it means for a session that keeps no state.
pub(super) fn for_this_session(error: &Error) -> Error {
    Error::integrity(format!("{}. Nothing more was asked", error.message().trim_end_matches('.')))
}
