//! What a client's thread reports, until the caller's thread reads it; and the first word on
//! a server that says nothing.

use privet_cli::printable;
use privet_client::Progress;
use pyo3::prelude::*;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// More news than this are not kept for a caller who asks for none.
const MOST_NEWS: usize = 1000;

/// After so long a silence, the caller hears of it.
const FIRST_WORD: Duration = Duration::from_secs(1);

pub(crate) struct News {
    servers: Vec<String>,
    inner: Mutex<Inner>,
}

struct Inner {
    untold: Vec<(String, u64, u64)>,
    /// How many callers wait for servers. While none does, no server is late.
    waiting: usize,
    /// When something last came, or the first of the callers began to wait.
    heard: Instant,
    /// The silence that began then was reported, or a failure that explains it.
    is_told: bool,
    /// The longest silence that ended with an answer.
    longest: Duration,
    /// The servers answered at least once.
    has_begun: bool,
    /// Servers that failed, and have been named since something last came.
    failing: HashSet<usize>,
}

impl News {
    pub(crate) fn of(servers: &[String]) -> Self {
        let inner = Inner {
            untold: Vec::new(),
            waiting: 0,
            heard: Instant::now(),
            is_told: false,
            longest: Duration::ZERO,
            has_begun: false,
            failing: HashSet::new(),
        };
        Self { servers: servers.to_vec(), inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a caller waits for servers from now on, until the returned value is dropped.
    pub(crate) fn awaited(&self) -> Awaited<'_> {
        let mut inner = self.lock();
        if inner.waiting == 0 {
            inner.starts_anew();
        }
        inner.waiting += 1;
        Awaited(self)
    }

    /// Notes what the client's thread reports.
    pub(crate) fn note(&self, event: Progress) {
        let mut inner = self.lock();
        if !matches!(
            event,
            Progress::Retrying { .. } | Progress::GivenUp { .. } | Progress::Waiting { .. }
        ) {
            inner.starts_anew();
        }
        let (what, done, total) = match event {
            Progress::Described(_) => {
                inner.has_begun = true;
                return;
            }
            Progress::Part { part, done, total, fetched: true } if total > 0 => {
                (format!("receiving the {}", part.name()), done, total)
            }
            Progress::Waiting { part, done, total } if total > 0 => {
                (format!("another process receives the {}", part.name()), done, total)
            }
            Progress::NextGeneration { done, total } if total > 0 => {
                ("preparing the next hints".to_owned(), done, total)
            }
            Progress::Updated { from, to, .. } => {
                (format!("the table was updated from epoch {} to {}", from.0, to.0), 0, 0)
            }
            Progress::Notice(text) => (printable(&text).into_owned(), 0, 0),
            // A server that was never reached is soon given up, and the error says so.
            Progress::Retrying { server, error, .. } if inner.has_begun => {
                let url = &self.servers[server];
                inner.is_told = true;
                let told = format!("{url}: {}; trying again", printable(&error.to_string()));
                if !inner.failing.insert(server) {
                    return;
                }
                (told, 0, 0)
            }
            Progress::GivenUp { server, error } => {
                let (url, error) = (&self.servers[server], error.to_string());
                (format!("{url}: {}; given up", printable(&error)), 0, 0)
            }
            _ => return,
        };
        inner.push(what, done, total);
    }

    /// Calls `progress` with what came since the last time, and with the silence of the servers if
    /// it is longer than usual.
    pub(crate) fn tell(&self, py: Python<'_>, progress: Option<&Py<PyAny>>) -> PyResult<()> {
        let mut inner = self.lock();
        let silent = inner.heard.elapsed();
        // A large table may take a server longer than that each time. It is said once.
        let usual = FIRST_WORD.max(inner.longest * 2);
        if inner.waiting > 0 && !inner.is_told && silent >= usual {
            inner.is_told = true;
            let told = format!(
                "nothing has come from {} for {} s; still waiting (`timeout`)",
                printable(&self.servers.join(" and ")),
                silent.as_secs()
            );
            inner.push(told, 0, 0);
        }
        let untold = std::mem::take(&mut inner.untold);
        drop(inner);
        let Some(progress) = progress else { return Ok(()) };
        for (what, done, total) in untold {
            progress.call1(py, (what, done, total))?;
        }
        Ok(())
    }
}

impl Inner {
    fn starts_anew(&mut self) {
        self.heard = Instant::now();
        self.is_told = false;
        self.failing.clear();
    }

    fn push(&mut self, what: String, done: u64, total: u64) {
        if self.untold.last().is_some_and(|(last, ..)| *last == what)
            || self.untold.len() == MOST_NEWS
        {
            self.untold.pop();
        }
        self.untold.push((what, done, total));
    }
}

/// A caller who waits.
pub(crate) struct Awaited<'a>(&'a News);

impl Awaited<'_> {
    /// Notes that an answer came.
    pub(crate) fn came(&self) {
        let mut inner = self.0.lock();
        inner.longest = inner.longest.max(inner.heard.elapsed());
        inner.starts_anew();
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}
