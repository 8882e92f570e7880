//! Where a download goes on after it was interrupted.
//!
//! The offset in a request tells the server how far the client has come. An exact offset would be
//! like a name: the server that broke a download off at some byte would know the client again when
//! it asks for the rest, also at another address. So a download goes on at a *boundary*, which many
//! others have reached as well, and the bytes that the client has already are sent once more and
//! dropped. That costs less than one step for each interruption.
//!
//! A step is a 64th of the whole, but 1 MiB at least and 4 MiB at most: a line that breaks off
//! before a step has come never gets any further. Requests that follow from public numbers alone
//! begin at boundaries, so nothing is sent twice for them: see the module
//! [`preparation`](super::preparation).

use super::interface::Request;
use super::preparation::Pace;
use privet_wire::FetchRequest;

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Boundaries {
    /// The first byte that is asked of this server.
    first: u64,
    step: u64,
}

impl Boundaries {
    /// Every byte: for what is not a download.
    pub(super) const NONE: Self = Self { first: 0, step: 1 };

    /// For a download of `len` bytes; 0: unknown.
    pub(super) fn of(len: u64, pace: &Pace) -> Self {
        let (shortest, longest) = (pace.shortest_step, pace.shortest_step.saturating_mul(4));
        let share = (len / 64).min(longest).next_power_of_two();
        Self { first: 0, step: share.clamp(shortest, longest) }
    }

    /// The same for a server that sends nothing before `first`.
    pub(super) fn from(self, first: u64) -> Self {
        Self { first, ..self }
    }

    pub(super) fn step(self) -> u64 {
        self.step
    }

    /// The boundary at `offset` or before it.
    pub(super) fn at_or_before(self, offset: u64) -> u64 {
        self.first.max(offset - offset % self.step).min(offset)
    }

    /// The request that leaves for `request`, and where it begins if that is earlier.
    pub(super) fn widened(self, request: &Request) -> (Request, Option<u64>) {
        let Request::Fetch(exact) = *request else { return (request.clone(), None) };
        let offset = self.at_or_before(exact.offset);
        let again = exact.offset - offset;
        if again == 0 {
            return (request.clone(), None);
        }
        // 0 means all to the end.
        let len = if exact.len == 0 { 0 } else { exact.len.saturating_add(again) };
        (Request::Fetch(FetchRequest { offset, len, ..exact }), Some(offset))
    }
}
