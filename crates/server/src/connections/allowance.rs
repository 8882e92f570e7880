//! How much the server reads from a peer that asks for nothing.
//!
//! HTTP/2 has frames that cost the server work and are part of no request: pings, settings, window
//! updates. Nothing in the protocol bounds them, and a peer that sends nothing else can keep a
//! processor busy. So each peer has an allowance of bytes. Whatever it sends is taken from it;
//! requests, their bodies and the responses to them add to it, more than they cost. Who asks is
//! therefore never slowed down. Who does not, or asks so much that it is refused again and again,
//! is read slowly once the allowance is used up. Its connections stay open, and the network makes
//! it wait.

use crate::admission::Peer;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most that a peer can have saved up, in bytes: more than a few connections can have sent
/// before the server sees what they ask for.
const MOST: f64 = (4 << 20) as f64;

/// What is added without a request, in bytes a second: thousands of pings.
const RATE: f64 = (64 << 10) as f64;

/// What each request adds, in bytes: more than its headers and all frames around it have. One that
/// is refused takes as much away.
const REQUEST: usize = 1 << 10;

/// The shortest wait: the clock of the runtime is no finer.
const SHORTEST: Duration = Duration::from_millis(1);

/// Peers with a full allowance are forgotten whenever this many more are known.
const FORGET_EVERY: usize = 1024;

/// The allowance of one peer, over all its connections.
pub(crate) struct Allowance(Mutex<Saved>);

struct Saved {
    bytes: f64,
    at: Instant,
}

impl Saved {
    fn add(&mut self, bytes: f64) {
        self.bytes = (self.bytes + bytes).min(MOST);
    }

    fn pass(&mut self, now: Instant) {
        self.add(now.saturating_duration_since(self.at).as_secs_f64() * RATE);
        self.at = now;
    }
}

impl Allowance {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Saved { bytes: MOST, at: Instant::now() }))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Saved) -> T) -> T {
        // Nothing that can panic runs under the lock.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// So many bytes were read.
    pub(crate) fn spend(&self, len: usize) {
        self.with(|saved| saved.bytes -= len as f64);
    }

    /// A request was not refused.
    pub(crate) fn answered(&self) {
        self.with(|saved| saved.add(REQUEST as f64));
    }

    /// A request was refused because there were too many. It cost the server more than its bytes,
    /// so whoever does not ask less is read slowly.
    pub(crate) fn refused(&self) {
        self.spend(REQUEST);
    }

    /// So many bytes of a request's body came.
    pub(crate) fn body(&self, len: usize) {
        self.with(|saved| saved.add(len as f64 * 1.125));
    }

    /// So many bytes of a response were sent: the client has to open its window for more.
    pub(crate) fn response(&self, len: usize) {
        self.with(|saved| saved.add(len as f64 / 16.0));
    }

    /// How long to wait before more is read, if the peer asks for nothing until then.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        self.with(|saved| {
            saved.pass(now);
            let wait = || Duration::from_secs_f64(-saved.bytes / RATE).max(SHORTEST);
            (saved.bytes < 0.0).then(wait)
        })
    }

    fn is_full(&self, now: Instant) -> bool {
        self.with(|saved| {
            saved.pass(now);
            saved.bytes >= MOST
        })
    }
}

/// The allowances of all peers that have a connection, or had one lately.
pub(super) struct Allowances {
    of: HashMap<Peer, Arc<Allowance>>,
    forget_at: usize,
}

impl Allowances {
    pub(super) fn new() -> Self {
        Self { of: HashMap::new(), forget_at: FORGET_EVERY }
    }

    pub(super) fn of(&mut self, peer: Peer, now: Instant) -> Arc<Allowance> {
        if self.of.len() >= self.forget_at {
            self.of.retain(|_, known| Arc::strong_count(known) > 1 || !known.is_full(now));
            self.forget_at = self.of.len() + FORGET_EVERY;
        }
        Arc::clone(self.of.entry(peer).or_insert_with(|| Arc::new(Allowance::new())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_is_never_slowed_down() {
        let allowance = Allowance::new();
        let now = Instant::now();
        for _ in 0..100_000 {
            // Headers, a query in one frame, the window for an answer.
            allowance.spend(300 + 9 + 2000 + 13);
            allowance.answered();
            allowance.body(2000);
            allowance.response(4000);
            assert_eq!(allowance.wait(now), None);
        }
        // A request of many megabytes, of which the server has read ahead what it may.
        for _ in 0..1000 {
            allowance.spend(16 << 10);
            assert_eq!(allowance.wait(now), None);
            allowance.body((16 << 10) - 9);
        }
    }

    #[test]
    fn who_does_not_ask_is_read_slowly_once_its_allowance_is_used_up() {
        let allowance = Allowance::new();
        let mut now = Instant::now();
        let (mut read, mut waited) = (0, Duration::ZERO);
        while waited < Duration::from_secs(100) {
            match allowance.wait(now) {
                None => {
                    allowance.spend(1700);
                    read += 1700;
                }
                Some(wait) => {
                    now += wait;
                    waited += wait;
                }
            }
        }
        let expected = MOST + 100.0 * RATE;
        assert!((read as f64 - expected).abs() < 0.01 * expected, "{read}");
        // It pays for its own past only: now it asks.
        allowance.answered();
        allowance.answered();
        assert_eq!(allowance.wait(now), None);
    }

    #[test]
    fn who_is_refused_again_and_again_is_read_slowly() {
        let (allowance, now) = (Allowance::new(), Instant::now());
        let refusals = (0..100_000).take_while(|_| {
            allowance.spend(400);
            allowance.body(300);
            allowance.refused();
            allowance.wait(now).is_none()
        });
        assert!((3000..4500).contains(&refusals.count()));
    }

    #[test]
    fn a_peer_is_not_forgotten_by_coming_again_and_the_known_ones_stay_few() {
        let (mut allowances, mut now) = (Allowances::new(), Instant::now());
        allowances.of(Peer::V4(0), now).spend(MOST as usize + 1000);
        for number in 1..10 * FORGET_EVERY as u32 {
            allowances.of(Peer::V4(number), now);
        }
        assert!(allowances.of.len() <= FORGET_EVERY + 1, "{}", allowances.of.len());
        assert!(allowances.of(Peer::V4(0), now).wait(now).is_some());
        now += Duration::from_secs(3600);
        for number in 1..=2 * FORGET_EVERY as u32 {
            allowances.of(Peer::V6(number.into()), now);
        }
        assert!(!allowances.of.contains_key(&Peer::V4(0)));
    }
}
