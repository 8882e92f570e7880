//! Requests on their way: timeouts, pauses between attempts, and what to do after a server failed.
//!
//! A *call* is one request to one server until it is answered or given up; an *exchange* is one
//! attempt at it. A retry sends the call's request again, with identical bytes.
//!
//! A *link* is what the session knows of one server. After a failure the link is in doubt: the
//! server may have been restarted with another table. The session then holds calls and asks the
//! server to describe itself again. Only if the description is the same as before do the held calls
//! leave.
//!
//! *Background* fetches are apart: their failures put no server in doubt and delay no query, and
//! their successes restore trust in none.
//!
//! No server can keep a session waiting for ever: the module `patience` says when a call ends.
//!
//! Nothing here looks at the contents of a request, except that a download goes on at a
//! [boundary](super::boundaries). No request ever goes to another server than the one that it was
//! made for.

mod patience;

use super::boundaries::Boundaries;
use super::interface::{Errand, ExchangeId, FetchId, Output, Progress, Request};
use super::options::Patience;
use patience::Failing;
use privet_core::{Blame, Error, SecretRng};
use privet_schemes::contract::ReservationId;
use privet_wire::{DescribeRequest, FetchChunk};
use std::collections::VecDeque;
use std::time::Duration;

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Describe,
    /// A part, which is kept.
    Fetch,
    /// The table or a reply, for the first generation of hints.
    Stream,
    /// The table or a reply, for the next generation of hints.
    Background,
    Answer(FetchId),
    /// The answer to a query of an earlier session.
    Resend(ReservationId),
}

enum CallState {
    /// Waits for the link to be out of doubt.
    Held,
    /// Waits before the next attempt.
    Pausing { until: Duration },
    /// Waits for a response.
    InFlight { exchange: ExchangeId, until: Duration },
}

pub(super) struct Call {
    pub(super) server: usize,
    pub(super) purpose: Purpose,
    pub(super) request: Request,
    /// Where its attempts may begin, if it is a fetch.
    boundaries: Boundaries,
    /// The next byte of this attempt, while it repeats what came before.
    repeats: Option<u64>,
    /// For so many repeated bytes, the end is still to be put off.
    to_repeat: u64,
    state: CallState,
    /// Attempts of this call that failed without progress in between, and since when.
    failing: Failing,
    /// When a fetch ends unless more bytes come before.
    ends: Option<Duration>,
    /// The server refused the request. The refusal stands if the server still describes the same.
    refusal: Option<Error>,
}

impl Call {
    fn new(server: usize, purpose: Purpose, request: Request, state: CallState) -> Self {
        Self {
            server,
            purpose,
            request,
            boundaries: Boundaries::NONE,
            repeats: None,
            to_repeat: 0,
            state,
            failing: Failing::default(),
            ends: None,
            refusal: None,
        }
    }
}

#[derive(Default)]
struct Link {
    /// The server described itself, and nothing has failed since.
    trusted: bool,
    /// The exchange in which the server last described itself.
    described: Option<ExchangeId>,
    failing: Failing,
    /// The server was given up, and no exchange with it has succeeded since.
    given_up: bool,
}

impl Link {
    /// An exchange with it succeeded.
    fn recovers(&mut self) {
        (self.failing, self.given_up) = (Failing::default(), false);
    }
}

/// A server that was given up, with its last failure.
pub(super) struct GivenUp {
    pub(super) server: usize,
    pub(super) error: Error,
}

/// A call that is over without a response.
pub(super) struct Ended {
    pub(super) server: usize,
    pub(super) purpose: Purpose,
    pub(super) error: Error,
}

pub(super) struct Calls {
    patience: Patience,
    links: Vec<Link>,
    calls: Vec<Call>,
    exchanges: u64,
    given_up: Option<GivenUp>,
}

impl Calls {
    pub(super) fn new(servers: usize, patience: Patience) -> Self {
        let links = (0..servers).map(|_| Link::default()).collect();
        Self { patience, links, calls: Vec::new(), exchanges: 0, given_up: None }
    }

    /// Begins a call. Its request leaves at once unless its server is in doubt. Each attempt at a
    /// fetch begins at one of the `boundaries`.
    pub(super) fn start(
        &mut self,
        boundaries: Boundaries,
        server: usize,
        purpose: Purpose,
        request: Request,
        now: Duration,
        out: &mut VecDeque<Output>,
    ) {
        let ends = matches!(request, Request::Fetch(_)).then(|| now + self.patience.grace());
        let to_repeat = match &request {
            Request::Fetch(request) => request.offset - boundaries.at_or_before(request.offset),
            _ => 0,
        };
        let call = Call::new(server, purpose, request, CallState::Held);
        self.calls.push(Call { boundaries, to_repeat, ends, ..call });
        if purpose == Purpose::Describe || self.links[server].trusted {
            self.transmit(self.calls.len() - 1, now, out);
        } else {
            self.describe_again(server, now, now, out);
        }
    }

    /// The exchange that begins next.
    pub(super) fn next_exchange(&self) -> ExchangeId {
        ExchangeId(self.exchanges)
    }

    /// Whether the server has answered a request to describe itself that left in the exchange
    /// `since` or a later one. An answer to an earlier one may be older than what came between.
    pub(super) fn is_described_since(&self, server: usize, since: ExchangeId) -> bool {
        self.links[server].described >= Some(since)
    }

    /// The call that waits for `exchange`. `None` for late and repeated responses.
    pub(super) fn waiting_for(&self, exchange: ExchangeId) -> Option<&Call> {
        self.position(exchange).map(|at| &self.calls[at])
    }

    /// Ends the call that waits for `exchange`: it was answered.
    pub(super) fn answered(&mut self, exchange: ExchangeId) -> Option<Call> {
        let call = self.calls.swap_remove(self.position(exchange)?);
        if call.purpose == Purpose::Describe {
            self.links[call.server].described = Some(exchange);
        }
        if !matches!(call.purpose, Purpose::Describe | Purpose::Background) {
            self.links[call.server].recovers();
        }
        Some(call)
    }

    /// The next `bytes` bytes of the response came: waits anew for more. Another attempt would ask
    /// for `rest`; `None`: nothing is left.
    pub(super) fn progressed(
        &mut self,
        exchange: ExchangeId,
        bytes: usize,
        rest: Option<Request>,
        now: Duration,
    ) {
        let Some(at) = self.position(exchange) else { return };
        if let Some(rest) = rest {
            self.calls[at].request = rest;
        }
        let until = now + self.patience_for(&self.calls[at]);
        let (earned, grace) = (self.patience.earned(bytes), self.patience.grace());
        let call = &mut self.calls[at];
        call.state = CallState::InFlight { exchange, until };
        call.failing = Failing::default();
        call.ends = call.ends.map(|ends| ends.saturating_add(earned).min(now + grace));
        call.to_repeat = call.to_repeat.saturating_add(bytes as u64).min(call.boundaries.step());
        if call.purpose != Purpose::Background {
            self.links[call.server].recovers();
        }
    }

    /// What is new in a chunk; `None`: nothing, because this attempt repeats what came before. A
    /// chunk out of place gets an offset that no part has.
    ///
    /// Repeated bytes are no progress. But the next one is waited for anew, and the end is put off
    /// for as many as came before, so that a slow line may repeat them.
    pub(super) fn new_part(
        &mut self,
        exchange: ExchangeId,
        mut chunk: FetchChunk,
        now: Duration,
    ) -> Option<FetchChunk> {
        let Some(at) = self.position(exchange) else { return Some(chunk) };
        let until = now + self.patience_for(&self.calls[at]);
        let grace = self.patience.grace();
        let call = &mut self.calls[at];
        let (Some(next), Request::Fetch(request)) = (call.repeats, &call.request) else {
            return Some(chunk);
        };
        if chunk.offset != next {
            // Out of place. What comes of that must not depend on how much came before, or a server
            // would find it out. So what ends before `next` is old, and all else is wrong.
            if chunk.offset.saturating_add(chunk.data.len() as u64) > next {
                chunk.offset = u64::MAX;
            }
            return Some(chunk);
        }
        let again = (request.offset - next).min(chunk.data.len() as u64);
        let counted = again.min(call.to_repeat);
        let earned = self.patience.earned(counted as usize);
        call.to_repeat -= counted;
        call.state = CallState::InFlight { exchange, until };
        call.ends = call.ends.map(|ends| ends.saturating_add(earned).min(now + grace));
        call.repeats = Some(next + again).filter(|next| *next < request.offset);
        chunk.offset += again;
        let _ = chunk.data.split_to(again as usize);
        (!chunk.data.is_empty()).then_some(chunk)
    }

    /// The server's description is the same as before (or its first). Held calls leave; refused
    /// calls end.
    pub(super) fn trust(
        &mut self,
        server: usize,
        now: Duration,
        out: &mut VecDeque<Output>,
    ) -> Vec<Ended> {
        self.links[server].trusted = true;
        let mut ended = Vec::new();
        let mut at = 0;
        while at < self.calls.len() {
            let call = &mut self.calls[at];
            if call.server != server || !matches!(call.state, CallState::Held) {
                at += 1;
            } else if let Some(error) = call.refusal.take() {
                ended.extend(self.end(at, error));
            } else {
                self.transmit(at, now, out);
                at += 1;
            }
        }
        if !self.calls.iter().any(|call| call.server == server) {
            self.links[server].recovers();
        }
        ended
    }

    /// The attempt failed. Decides whether and when there is another; returns the calls that this
    /// ends.
    pub(super) fn failed(
        &mut self,
        exchange: ExchangeId,
        error: Error,
        now: Duration,
        rng: &mut SecretRng,
        out: &mut VecDeque<Output>,
    ) -> Vec<Ended> {
        let Some(at) = self.position(exchange) else { return Vec::new() };
        let (server, purpose) = (self.calls[at].server, self.calls[at].purpose);
        if self.calls[at].ends.is_some_and(|ends| ends <= now) {
            return self.end(at, error);
        }
        match error.blame() {
            Blame::Unavailable | Blame::Exhausted if purpose == Purpose::Background => {
                self.paused(at, error, now, rng, out)
            }
            // A refusal. The next query will tell whether the server has another table now.
            _ if purpose == Purpose::Background => self.end(at, error),
            // The server is there but busy: it is not in doubt.
            Blame::Exhausted if purpose != Purpose::Describe => {
                self.paused(at, error, now, rng, out)
            }
            Blame::Unavailable | Blame::Exhausted => self.link_failed(at, error, now, rng, out),
            // This address has never been a server for us.
            _ if purpose == Purpose::Describe && self.links[server].described.is_none() => {
                self.end(at, error)
            }
            _ if purpose == Purpose::Describe => self.link_failed(at, error, now, rng, out),
            // A refusal. The server may have another table now. So ask it to describe itself before
            // treating the refusal as one of this request.
            _ => {
                self.calls[at].state = CallState::Held;
                self.calls[at].refusal = Some(error);
                self.links[server].trusted = false;
                self.describe_since(server, self.next_exchange(), now, out);
                Vec::new()
            }
        }
    }

    /// Tries the call at `at` again after a pause, unless that went on for too long. Concerns only
    /// this call, unless the server was busy for all other calls as long.
    fn paused(
        &mut self,
        at: usize,
        error: Error,
        now: Duration,
        rng: &mut SecretRng,
        out: &mut VecDeque<Output>,
    ) -> Vec<Ended> {
        let (server, purpose) = (self.calls[at].server, self.calls[at].purpose);
        let patience = self.patience_with(server);
        let call = &mut self.calls[at];
        call.failing.add(now);
        let link = &mut self.links[server];
        if purpose != Purpose::Background {
            link.failing.add(now);
        }
        if call.failing.for_how_long(now) >= patience {
            // Busy for as long, and for every call: other calls would wait in vain as well.
            if purpose != Purpose::Background && link.failing.for_how_long(now) >= patience {
                return self.give_up(server, &error, out);
            }
            return self.end(at, error);
        }
        let pause = self.patience.pause(call.failing.count, rng);
        call.state = CallState::Pausing { until: now + pause };
        out.push_back(Errand::Tell(Progress::Retrying { server, pause, error }).into());
        Vec::new()
    }

    fn link_failed(
        &mut self,
        at: usize,
        error: Error,
        now: Duration,
        rng: &mut SecretRng,
        out: &mut VecDeque<Output>,
    ) -> Vec<Ended> {
        let (server, purpose) = (self.calls[at].server, self.calls[at].purpose);
        let patience = self.patience_with(server);
        let call = &mut self.calls[at];
        call.state = CallState::Held;
        call.failing.add(now);
        if purpose != Purpose::Describe
            && call.failing.for_how_long(now) >= self.patience.give_up_after
        {
            // Other calls may have been answered all the while. Those that wait leave once the
            // server has described itself.
            self.links[server].trusted = false;
            let ended = self.end(at, error);
            self.describe_again(server, now, now, out);
            return ended;
        }
        let link = &mut self.links[server];
        // Calls that fail together are one failure.
        if !link.trusted && purpose != Purpose::Describe {
            self.describe_again(server, now, now, out);
            return Vec::new();
        }
        link.trusted = false;
        link.failing.add(now);
        if link.failing.for_how_long(now) >= patience {
            return self.give_up(server, &error, out);
        }
        let pause = self.patience.pause(link.failing.count, rng);
        if purpose == Purpose::Describe {
            self.calls[at].state = CallState::Pausing { until: now + pause };
        } else {
            self.describe_again(server, now + pause, now, out);
        }
        out.push_back(Errand::Tell(Progress::Retrying { server, pause, error }).into());
        Vec::new()
    }

    /// Ends the call at `at`.
    fn end(&mut self, at: usize, error: Error) -> Vec<Ended> {
        let Call { server, purpose, .. } = self.calls.remove(at);
        vec![Ended { server, purpose, error }]
    }

    /// Takes out the calls that are `meant`, and abandons those in flight.
    fn take_out(&mut self, meant: impl Fn(&Call) -> bool, out: &mut VecDeque<Output>) -> Vec<Call> {
        let taken: Vec<_> = self.calls.extract_if(.., |call| meant(call)).collect();
        for call in &taken {
            if let CallState::InFlight { exchange, .. } = call.state {
                out.push_back(Errand::Abandon(exchange).into());
            }
        }
        taken
    }

    /// Ends every call to `server`.
    fn give_up(&mut self, server: usize, error: &Error, out: &mut VecDeque<Output>) -> Vec<Ended> {
        let link = &mut self.links[server];
        (link.failing, link.given_up) = (Failing::default(), true);
        let taken = self.take_out(|call| call.server == server, out).into_iter();
        self.given_up = Some(GivenUp { server, error: error.clone() });
        taken.map(|call| Ended { server, purpose: call.purpose, error: error.clone() }).collect()
    }

    /// The server that was given up since this was last asked.
    pub(super) fn take_given_up(&mut self) -> Option<GivenUp> {
        self.given_up.take()
    }

    /// Ends all calls without reporting them: the session is over.
    pub(super) fn abandon_all(&mut self, out: &mut VecDeque<Output>) {
        self.take_out(|_| true, out);
    }

    /// Ends all calls for `purpose` without reporting them.
    pub(super) fn abandon(&mut self, purpose: Purpose, out: &mut VecDeque<Output>) {
        self.take_out(|call| call.purpose == purpose, out);
    }

    /// Sends requests whose pause is over; returns the exchanges whose time is up.
    pub(super) fn due(
        &mut self,
        now: Duration,
        out: &mut VecDeque<Output>,
    ) -> Vec<(ExchangeId, Error)> {
        let mut late = Vec::new();
        for at in 0..self.calls.len() {
            let Call { server, purpose, .. } = self.calls[at];
            match self.calls[at].state {
                // Meanwhile another call put the server in doubt, and it is being asked to describe
                // itself.
                CallState::Pausing { until }
                    if until <= now
                        && purpose != Purpose::Describe
                        && !self.links[server].trusted =>
                {
                    self.calls[at].state = CallState::Held;
                }
                CallState::Pausing { until } if until <= now => self.transmit(at, now, out),
                CallState::InFlight { exchange, until }
                    if until.min(self.calls[at].ends.unwrap_or(until)) <= now =>
                {
                    let error = self.too_late(&self.calls[at], until <= now);
                    out.push_back(Errand::Abandon(exchange).into());
                    late.push((exchange, error));
                }
                _ => {}
            }
        }
        late
    }

    /// When [`due`](Self::due) will have something to do.
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        let times = self.calls.iter().filter_map(|call| match call.state {
            CallState::Held => None,
            CallState::Pausing { until } => Some(until),
            CallState::InFlight { until, .. } => Some(until.min(call.ends.unwrap_or(until))),
        });
        times.min()
    }

    /// Whether there is a call for `purpose`.
    pub(super) fn is_open(&self, purpose: Purpose) -> bool {
        self.calls.iter().any(|call| call.purpose == purpose)
    }

    /// Whether a call for `purpose` waits for a response, not for its next attempt.
    pub(super) fn is_in_flight(&self, purpose: Purpose) -> bool {
        let waits = |call: &Call| matches!(call.state, CallState::InFlight { .. });
        self.calls.iter().any(|call| call.purpose == purpose && waits(call))
    }

    fn position(&self, exchange: ExchangeId) -> Option<usize> {
        let waits = |call: &Call| matches!(call.state, CallState::InFlight { exchange: of, .. } if of == exchange);
        self.calls.iter().position(waits)
    }

    fn transmit(&mut self, at: usize, now: Duration, out: &mut VecDeque<Output>) {
        let patience = self.patience_for(&self.calls[at]);
        let exchange = ExchangeId(self.exchanges);
        self.exchanges += 1;
        let call = &mut self.calls[at];
        call.state = CallState::InFlight { exchange, until: now + patience };
        let (request, repeats) = call.boundaries.widened(&call.request);
        call.repeats = repeats;
        out.push_back(Errand::Send { exchange, server: call.server, request, patience }.into());
    }

    /// Asks the server to describe itself, unless a request for that is under way that left in the
    /// exchange `since` or a later one. The session does not wait for the answer to an earlier one:
    /// it may be older than what the session wants to know.
    pub(super) fn describe_since(
        &mut self,
        server: usize,
        since: ExchangeId,
        now: Duration,
        out: &mut VecDeque<Output>,
    ) {
        let earlier = self.calls.iter().enumerate().find_map(|(at, call)| match call.state {
            CallState::InFlight { exchange, .. }
                if call.server == server
                    && call.purpose == Purpose::Describe
                    && exchange < since =>
            {
                Some((at, exchange))
            }
            _ => None,
        });
        match earlier {
            Some((at, exchange)) => {
                out.push_back(Errand::Abandon(exchange).into());
                self.transmit(at, now, out);
            }
            None => self.describe_again(server, now, now, out),
        }
    }

    /// Plans a request to the server, at `when`, to describe itself. If one is planned or under way
    /// already, it stays as it is.
    pub(super) fn describe_again(
        &mut self,
        server: usize,
        when: Duration,
        now: Duration,
        out: &mut VecDeque<Output>,
    ) {
        if self.calls.iter().any(|call| call.server == server && call.purpose == Purpose::Describe)
        {
            return;
        }
        let request = Request::Describe(DescribeRequest::default());
        let state = CallState::Pausing { until: when };
        self.calls.push(Call::new(server, Purpose::Describe, request, state));
        if when <= now {
            self.transmit(self.calls.len() - 1, now, out);
        }
    }
}
