//! How long calls wait, and the end of patience.
//!
//! No server can keep a session waiting for ever, whatever it does. A call ends at the latest when:
//!
//! - its server has failed, and kept failing, for [`Patience::give_up_after`]. Then the server is
//!   *given up*: all calls to it end together, and so do lookups that wait for their turn, because
//!   each would have waited as long. A later call tries once more, briefly;
//! - its own attempts have failed for as long, even if the server answered other calls meanwhile;
//! - its response comes slower than [`Patience::least_rate`]. Every new byte puts the end off by
//!   the time that it may take at that rate, across all attempts. So a server cannot keep a call
//!   alive with a byte now and then, nor with one byte at each attempt.

use super::{Call, Calls};
use crate::session::agreement::server_name;
use crate::session::interface::Request;
use crate::session::options::Patience;
use privet_core::quantities::seconds;
use privet_core::{Error, Reason, SecretRng};
use std::time::Duration;

/// A row of failures without a success in between.
#[derive(Clone, Copy, Default)]
pub(super) struct Failing {
    pub(super) count: u32,
    since: Option<Duration>,
}

impl Failing {
    pub(super) fn add(&mut self, now: Duration) {
        self.count = self.count.saturating_add(1);
        self.since.get_or_insert(now);
    }

    pub(super) fn for_how_long(&self, now: Duration) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }
}

impl Calls {
    /// How long a server may go on failing.
    pub(super) fn patience_with(&self, server: usize) -> Duration {
        let link = &self.links[server];
        match link.described.is_some() && !link.given_up {
            true => self.patience.give_up_after,
            false => self.patience.first_contact,
        }
    }

    /// Names the server that was too slow, and its call. `silent`: no byte came in the time that
    /// the session waits for one.
    pub(super) fn too_late(&self, call: &Call, silent: bool) -> Error {
        let server = server_name(call.server, self.links.len());
        let waited = seconds(self.patience_for(call));
        let message = match (&call.request, silent) {
            (Request::Fetch(request), false) => format!(
                "{server} sends the {} slower than {} bytes a second; if the line is that slow, allow that rate",
                request.part, self.patience.least_rate
            ),
            (Request::Fetch(request), true) => format!(
                "{server} sent nothing of the {} for {waited}; allow more time",
                request.part
            ),
            (Request::Describe(_), _) => {
                format!("{server} did not describe itself within {waited}; allow more time")
            }
            (Request::Prepare(_), _) => {
                format!("{server} did not send hints within {waited}; allow more time")
            }
            (Request::Answer(_), _) => {
                format!("{server} did not answer within {waited}; allow more time")
            }
        };
        let slowly = matches!((&call.request, silent), (Request::Fetch(_), false));
        let reason = if slowly { Reason::TooSlow } else { Reason::NoAnswerInTime };
        Error::unavailable(message).because(reason)
    }

    pub(super) fn patience_for(&self, call: &Call) -> Duration {
        match call.request {
            Request::Describe(_) => self.patience.describe,
            Request::Fetch(_) => self.patience.chunk,
            Request::Prepare(_) => self.patience.reply,
            Request::Answer(_) => self.patience.answer,
        }
    }
}

impl Patience {
    /// How long a fetch may go on without a new byte, over all its attempts: the longest allowed
    /// silence, plus the time that a server may be away.
    pub(super) fn grace(&self) -> Duration {
        self.chunk.saturating_add(self.give_up_after)
    }

    /// The time that so many bytes may take.
    pub(super) fn earned(&self, bytes: usize) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.least_rate.max(1) as f64)
    }

    /// The pause after the `failures`-th failure in a row: doubled each time, bounded, and
    /// shortened by up to half at random.
    pub(super) fn pause(&self, failures: u32, rng: &mut SecretRng) -> Duration {
        let doubled = self.first_pause.saturating_mul(1 << failures.saturating_sub(1).min(20));
        let full = doubled.min(self.longest_pause);
        full.mul_f64(0.5 + 0.5 * f64::from(rng.next_u32()) / f64::from(u32::MAX))
    }
}
