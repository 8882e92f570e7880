//! Requests on their way: timeouts, pauses between attempts, and what to do after a server failed.
//!
//! A *call* is one request to one server until it is answered or given up; an *exchange* is one
//! attempt at it. A retry sends the call's request as it is, so its bytes are identical.
//!
//! A *link* is what is known of one server. After a failure it is in doubt: the server may have
//! been restarted with another table. Calls are then held, the server is asked to describe itself
//! again, and only if it tells the same story do the held calls go out.
//!
//! What is fetched in the *background* stays out of that: its failures put no server in doubt and
//! hold up no query, and its successes vouch for none.
//!
//! # The end of patience
//!
//! No server can keep a session waiting for ever, whatever it does. A call ends at the latest when:
//!
//! - its server has failed, and kept failing, for [`Patience::give_up_after`]. Then the server is
//!   *given up*: all calls to it end together, and so do lookups that wait for their turn, which
//!   would each have waited as long. A later call tries once more, briefly;
//! - its own attempts have failed for as long, whatever the server did for other calls meanwhile;
//! - what it fetches comes slower than [`Patience::least_rate`]. Every byte that counts puts the
//!   end off by as long as it may take at that rate, across all attempts, so neither a byte now and
//!   then nor one with each attempt keeps a call alive.
//!
//! Nothing here looks at what a request contains, nor does any request ever go to another server
//! than the one that it was made for.

use super::agreement::server_name;
use super::interface::{Event, ExchangeId, FetchId, Output, Request};
use super::options::Patience;
use privet_core::{Blame, Error, Reason, SecretRng};
use privet_schemes::contract::ReservationId;
use privet_wire::DescribeRequest;
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
    state: CallState,
    /// Attempts of this call that failed without progress in between, and since when.
    failing: Failing,
    /// When a fetch ends unless bytes come before.
    ends: Option<Duration>,
    /// The server refused the request; that stands if it still tells the same story.
    refusal: Option<Error>,
}

/// A row of failures without a success in between.
#[derive(Clone, Copy, Default)]
struct Failing {
    count: u32,
    since: Option<Duration>,
}

impl Failing {
    fn add(&mut self, now: Duration) {
        self.count = self.count.saturating_add(1);
        self.since.get_or_insert(now);
    }

    fn for_how_long(&self, now: Duration) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }
}

#[derive(Default)]
struct Link {
    /// It described itself, and nothing failed since.
    trusted: bool,
    /// It described itself at least once.
    known: bool,
    failing: Failing,
    /// It was given up, and nothing good was heard of it since.
    given_up: bool,
}

impl Link {
    /// It does what it should.
    fn recovers(&mut self) {
        (self.failing, self.given_up) = (Failing::default(), false);
    }
}

/// A server that was given up, for what it last failed with.
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

    /// Begins a call. It goes out at once unless its server is in doubt.
    pub(super) fn start(
        &mut self,
        server: usize,
        purpose: Purpose,
        request: Request,
        now: Duration,
        out: &mut VecDeque<Output>,
    ) {
        let state = CallState::Held;
        let ends = matches!(request, Request::Fetch(_)).then(|| now + self.patience.grace());
        self.calls.push(Call {
            server,
            purpose,
            request,
            state,
            failing: Failing::default(),
            ends,
            refusal: None,
        });
        if purpose == Purpose::Describe || self.links[server].trusted {
            self.transmit(self.calls.len() - 1, now, out);
        } else {
            self.describe_again(server, now, now, out);
        }
    }

    /// Has a server describe itself, unless it is being asked already.
    pub(super) fn describe_now(
        &mut self,
        server: usize,
        now: Duration,
        out: &mut VecDeque<Output>,
    ) {
        self.describe_again(server, now, now, out);
    }

    /// The call that waits for `exchange`. `None` for late and repeated responses, which nobody
    /// waits for.
    pub(super) fn waiting_for(&self, exchange: ExchangeId) -> Option<&Call> {
        self.position(exchange).map(|at| &self.calls[at])
    }

    /// Ends the call that waits for `exchange`: it was answered.
    pub(super) fn answered(&mut self, exchange: ExchangeId) -> Option<Call> {
        let call = self.calls.swap_remove(self.position(exchange)?);
        if !matches!(call.purpose, Purpose::Describe | Purpose::Background) {
            self.links[call.server].recovers();
        }
        Some(call)
    }

    /// The next `bytes` bytes of the response came: waits anew for more. Another attempt would ask
    /// for `rest`; `None`: there is none.
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
        if call.purpose != Purpose::Background {
            self.links[call.server].recovers();
        }
    }

    /// The server told the same story as before (or its first). What was held goes out; refused
    /// calls end.
    pub(super) fn trust(
        &mut self,
        server: usize,
        now: Duration,
        out: &mut VecDeque<Output>,
    ) -> Vec<Ended> {
        let link = &mut self.links[server];
        (link.trusted, link.known) = (true, true);
        let mut ended = Vec::new();
        let mut at = 0;
        while at < self.calls.len() {
            let call = &mut self.calls[at];
            if call.server != server || !matches!(call.state, CallState::Held) {
                at += 1;
            } else if let Some(error) = call.refusal.take() {
                let Call { server, purpose, .. } = self.calls.remove(at);
                ended.push(Ended { server, purpose, error });
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
            self.calls.remove(at);
            return vec![Ended { server, purpose, error }];
        }
        match error.blame() {
            Blame::Unavailable | Blame::Exhausted if purpose == Purpose::Background => {
                self.paused(at, error, now, rng, out)
            }
            // A refusal. Whether the server has another table now, the next query will tell.
            _ if purpose == Purpose::Background => {
                self.calls.remove(at);
                vec![Ended { server, purpose, error }]
            }
            // There and busy: its story is not in doubt.
            Blame::Exhausted if purpose != Purpose::Describe => {
                self.paused(at, error, now, rng, out)
            }
            Blame::Unavailable | Blame::Exhausted => self.link_failed(at, error, now, rng, out),
            // Whoever is there has never been a server of ours.
            _ if purpose == Purpose::Describe && !self.links[server].known => {
                self.calls.remove(at);
                vec![Ended { server, purpose, error }]
            }
            _ if purpose == Purpose::Describe => self.link_failed(at, error, now, rng, out),
            // A refusal. Perhaps because the server has another table now: ask, before believing
            // that it is about this request.
            _ => {
                self.calls[at].state = CallState::Held;
                self.calls[at].refusal = Some(error);
                self.links[server].trusted = false;
                self.describe_from_now_on(server, now, out);
                Vec::new()
            }
        }
    }

    /// Tries the call at `at` again after a pause, unless that went on for too long. Concerns
    /// nothing but this call, unless the server was busy for all others as long.
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
            // Busy for as long, and for everybody: others would wait in vain as well.
            if purpose != Purpose::Background && link.failing.for_how_long(now) >= patience {
                (link.failing, link.given_up) = (Failing::default(), true);
                return self.give_up(server, &error, out);
            }
            self.calls.remove(at);
            return vec![Ended { server, purpose, error }];
        }
        let pause = self.patience.pause(call.failing.count, rng);
        call.state = CallState::Pausing { until: now + pause };
        out.push_back(Output::Event(Event::Retrying { server, pause, error }));
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
            // Others may have been answered all the while. Those that wait go out once it has
            // described itself.
            self.calls.remove(at);
            self.links[server].trusted = false;
            self.describe_again(server, now, now, out);
            return vec![Ended { server, purpose, error }];
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
            (link.failing, link.given_up) = (Failing::default(), true);
            return self.give_up(server, &error, out);
        }
        let pause = self.patience.pause(link.failing.count, rng);
        if purpose == Purpose::Describe {
            self.calls[at].state = CallState::Pausing { until: now + pause };
        } else {
            self.describe_again(server, now + pause, now, out);
        }
        out.push_back(Output::Event(Event::Retrying { server, pause, error }));
        Vec::new()
    }

    fn give_up(&mut self, server: usize, error: &Error, out: &mut VecDeque<Output>) -> Vec<Ended> {
        let mut ended = Vec::new();
        self.calls.retain(|call| {
            if call.server == server {
                if let CallState::InFlight { exchange, .. } = call.state {
                    out.push_back(Output::Abandon(exchange));
                }
                ended.push(Ended { server, purpose: call.purpose, error: error.clone() });
            }
            call.server != server
        });
        self.given_up = Some(GivenUp { server, error: error.clone() });
        ended
    }

    /// How long a server may go on failing.
    fn patience_with(&self, server: usize) -> Duration {
        let link = &self.links[server];
        match link.known && !link.given_up {
            true => self.patience.give_up_after,
            false => self.patience.first_contact,
        }
    }

    /// The server that was given up since this was last asked.
    pub(super) fn take_given_up(&mut self) -> Option<GivenUp> {
        self.given_up.take()
    }

    /// Ends all calls, without a word: the session is over.
    pub(super) fn abandon_all(&mut self, out: &mut VecDeque<Output>) {
        for call in self.calls.drain(..) {
            if let CallState::InFlight { exchange, .. } = call.state {
                out.push_back(Output::Abandon(exchange));
            }
        }
    }

    /// Ends all calls for `purpose`, without a word.
    pub(super) fn abandon(&mut self, purpose: Purpose, out: &mut VecDeque<Output>) {
        self.calls.retain(|call| {
            if let CallState::InFlight { exchange, .. } = call.state
                && call.purpose == purpose
            {
                out.push_back(Output::Abandon(exchange));
            }
            call.purpose != purpose
        });
    }

    /// Sends what has paused long enough; returns the exchanges whose time is up.
    pub(super) fn due(
        &mut self,
        now: Duration,
        out: &mut VecDeque<Output>,
    ) -> Vec<(ExchangeId, Error)> {
        let mut late = Vec::new();
        for at in 0..self.calls.len() {
            let Call { server, purpose, .. } = self.calls[at];
            match self.calls[at].state {
                // Meanwhile another call put the server in doubt: it is being asked to describe
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
                    out.push_back(Output::Abandon(exchange));
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

    /// Whether a call for `purpose` waits for a response: not for its next attempt.
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
        out.push_back(Output::Transmit {
            exchange,
            server: call.server,
            request: call.request.clone(),
            patience,
        });
    }

    /// Asks the server to describe itself. A description that is on its way may be older than what
    /// is in doubt since `now`, and is not waited for.
    fn describe_from_now_on(&mut self, server: usize, now: Duration, out: &mut VecDeque<Output>) {
        let asked = self.calls.iter().position(|call| {
            let waits = matches!(call.state, CallState::InFlight { .. });
            waits && call.server == server && call.purpose == Purpose::Describe
        });
        match asked {
            Some(at) => {
                if let CallState::InFlight { exchange, .. } = self.calls[at].state {
                    out.push_back(Output::Abandon(exchange));
                }
                self.transmit(at, now, out);
            }
            None => self.describe_again(server, now, now, out),
        }
    }

    /// Sees to it that the server is asked to describe itself, at `when` or, if it is being asked
    /// already, as planned.
    fn describe_again(
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
        self.calls.push(Call {
            server,
            purpose: Purpose::Describe,
            request: Request::Describe(DescribeRequest::default()),
            state: CallState::Pausing { until: when },
            failing: Failing::default(),
            ends: None,
            refusal: None,
        });
        if when <= now {
            self.transmit(self.calls.len() - 1, now, out);
        }
    }

    /// Who was too slow with what. `silent`: nothing at all came for as long as that is waited for.
    fn too_late(&self, call: &Call, silent: bool) -> Error {
        let server = server_name(call.server, self.links.len());
        let waited = self.patience_for(call).as_secs_f64();
        let message = match (&call.request, silent) {
            (Request::Fetch(request), false) => format!(
                "{server} sends the {} slower than {} bytes a second; if the line is that slow, allow it",
                request.part, self.patience.least_rate
            ),
            (Request::Fetch(request), true) => format!(
                "{server} sent nothing of the {} for {waited} s; have more patience",
                request.part
            ),
            (Request::Describe(_), _) => {
                format!("{server} did not describe itself within {waited} s; have more patience")
            }
            (Request::Prepare(_), _) => {
                format!("{server} did not send hints within {waited} s; have more patience")
            }
            (Request::Answer(_), _) => {
                format!("{server} did not answer within {waited} s; have more patience")
            }
        };
        let slowly = matches!((&call.request, silent), (Request::Fetch(_), false));
        let reason = if slowly { Reason::TooSlow } else { Reason::NoAnswerInTime };
        Error::unavailable(message).because(reason)
    }

    fn patience_for(&self, call: &Call) -> Duration {
        match call.request {
            Request::Describe(_) => self.patience.describe,
            Request::Fetch(_) => self.patience.chunk,
            Request::Prepare(_) => self.patience.reply,
            Request::Answer(_) => self.patience.answer,
        }
    }
}

impl Patience {
    /// How long a fetch may go on without a byte that counts, with all its attempts: through the
    /// longest silence, and then as long as a server that was there may be away.
    fn grace(&self) -> Duration {
        self.chunk.saturating_add(self.give_up_after)
    }

    /// How long so many bytes may take.
    fn earned(&self, bytes: usize) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.least_rate.max(1) as f64)
    }

    /// The pause after the `failures`-th failure in a row: doubled each time, bounded, and
    /// shortened by up to half at random.
    fn pause(&self, failures: u32, rng: &mut SecretRng) -> Duration {
        let doubled = self.first_pause.saturating_mul(1 << failures.saturating_sub(1).min(20));
        let full = doubled.min(self.longest_pause);
        full.mul_f64(0.5 + 0.5 * f64::from(rng.next_u32()) / f64::from(u32::MAX))
    }
}
