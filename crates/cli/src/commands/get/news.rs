//! What is known of the servers while `privet get` waits, and what is printed when they are silent.

use super::printer::thread;
use crate::arguments::Get;
use crate::display::notice;
use privet_core::Result;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A failing server is named at most this often, and not at every attempt.
const BETWEEN_RETRIES: Duration = Duration::from_secs(10);

/// After so long a silence the command says so; earlier if `--timeout` is short.
const LONG_SILENCE: Duration = Duration::from_secs(10);

/// What the client's thread has reported to the command.
pub(super) struct News {
    /// A server was given up.
    pub(super) given_up: AtomicBool,
    /// For how many things the command waits that come from servers. While it waits for none, such
    /// as for keys, servers cannot be late.
    awaited: AtomicUsize,
    last: Mutex<Instant>,
    /// The progress of the next generation of single-use hints, if one is being prepared: bytes of
    /// the table taken in, and their total.
    next_generation: Mutex<Option<(u64, u64)>>,
}

impl Default for News {
    fn default() -> Self {
        let last = Mutex::new(Instant::now());
        let (given_up, awaited) = (AtomicBool::new(false), AtomicUsize::new(0));
        Self { given_up, awaited, last, next_generation: Mutex::default() }
    }
}

impl News {
    /// Notes that something has just arrived from a server.
    pub(super) fn came(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Notes that something is awaited from servers.
    pub(super) fn asked(&self) {
        if self.awaited.load(Ordering::Relaxed) == 0 {
            self.came();
        }
        self.awaited.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that it has come.
    pub(super) fn answered(&self) {
        self.came();
        self.awaited.fetch_sub(1, Ordering::Relaxed);
    }

    fn silent_for(&self) -> Duration {
        if self.awaited.load(Ordering::Relaxed) == 0 {
            return Duration::ZERO;
        }
        self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    pub(super) fn next_generation(&self, done: u64, total: u64) {
        *self.next_generation.lock().unwrap_or_else(PoisonError::into_inner) = Some((done, total));
    }

    pub(super) fn of_next_generation(&self) -> Option<(u64, u64)> {
        *self.next_generation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When each server's failure was last reported. If a server was never reachable, the command soon
/// ends and says so itself, so nothing is reported before the servers have answered once.
#[derive(Default)]
pub(super) struct Retries {
    begun: bool,
    told: HashMap<usize, Instant>,
}

impl Retries {
    /// Notes that the servers have answered.
    pub(super) fn begin(&mut self) {
        self.begun = true;
    }

    /// Whether to report that a server failed and is tried again: the first time, then at
    /// intervals.
    pub(super) fn is_worth_telling(&mut self, server: usize) -> bool {
        let now = Instant::now();
        let recently = self.told.get(&server).is_some_and(|told| now - *told < BETWEEN_RETRIES);
        if !self.begun || recently {
            return false;
        }
        self.told.insert(server, now);
        true
    }
}

/// Says on standard error that the servers are silent, for as long as they are. Ends when dropped.
pub(super) struct Silence {
    end: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Silence {
    pub(super) fn watch(arguments: &Get, news: Arc<News>) -> Result<Self> {
        let limit =
            arguments.limits.timeout().map_or(LONG_SILENCE, |limit| limit / 4).min(LONG_SILENCE);
        let servers = arguments.addresses.urls().join(" and ");
        let (end, ended) = mpsc::channel::<()>();
        let watching = move || {
            // The other end never sends; dropping it ends the loop.
            while ended.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
                let silent = news.silent_for();
                if silent >= limit {
                    notice(&format!(
                        "nothing has come from {servers} for {} s; still waiting (--timeout)",
                        silent.as_secs()
                    ));
                }
            }
        };
        Ok(Self { end: Some(end), thread: Some(thread("silence", watching)?) })
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_server_is_named_once_in_a_while() {
        let mut retries = Retries::default();
        assert!(!retries.is_worth_telling(0));
        retries.begin();
        assert!(retries.is_worth_telling(0));
        assert!(!retries.is_worth_telling(0));
        assert!(retries.is_worth_telling(1));
        let long_ago = Instant::now().checked_sub(BETWEEN_RETRIES).unwrap();
        retries.told.insert(0, long_ago);
        assert!(retries.is_worth_telling(0));
    }
}
