//! Lines of the log that somebody outside could have written again and again.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest silence about something that goes on.
const EVERY: Duration = Duration::from_secs(10);

/// Something that is logged no more often than every ten seconds.
pub(crate) struct Seldom(Mutex<Option<Instant>>);

impl Seldom {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Whether it may be logged now. If so, it counts as logged.
    pub(crate) fn is_due(&self) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = logged.is_none_or(|then| then.elapsed() >= EVERY);
        if due {
            *logged = Some(Instant::now());
        }
        due
    }
}
