//! Waits that Ctrl-C interrupts, and processes that were forked.

use crate::errors::{self, Raise as _};
use privet_core::{Error, Result};
use pyo3::prelude::*;
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long a signal may wait for its handler.
const SLICE: Duration = Duration::from_millis(100);

/// What a wait for a message came to.
pub(crate) enum Next<T> {
    Message(T),
    /// No message will come.
    Ended,
    TimeIsUp,
}

/// The next message, if it comes before `until`. Other threads of Python run meanwhile, `between`
/// is called now and then, and a signal whose handler raises an exception ends the wait.
pub(crate) fn next<T: Send>(
    py: Python<'_>,
    messages: &mut Receiver<T>,
    until: Option<Instant>,
    mut between: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<Next<T>> {
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let slice = left.map_or(SLICE, |left| left.min(SLICE));
        // Moved in as a whole: a queue has one reader.
        let messages: &mut Receiver<T> = messages;
        match py.detach(move || messages.recv_timeout(slice)) {
            Ok(message) => return Ok(Next::Message(message)),
            Err(RecvTimeoutError::Disconnected) => return Ok(Next::Ended),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals()?;
                between(py)?;
                if left.is_some_and(|left| left.is_zero()) {
                    return Ok(Next::TimeIsUp);
                }
            }
        }
    }
}

/// What `work` comes to, on this thread, under the same conditions. If the wait is interrupted,
/// the work is dropped where it is.
pub(crate) fn outcome<T: Send>(
    py: Python<'_>,
    work: impl Future<Output = Result<T>> + Send,
    mut between: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime
        .map_err(|error| Error::unavailable("the system gives no timer").caused_by(error))
        .raise(py)?;
    let mut work = pin!(work);
    loop {
        let waited =
            py.detach(|| runtime.block_on(async { tokio::time::timeout(SLICE, &mut work).await }));
        match waited {
            Ok(outcome) => return outcome.raise(py),
            Err(_) => {
                py.check_signals()?;
                between(py)?;
            }
        }
    }
}

/// The process in which something was made. Its threads are not in a process that is forked later.
#[derive(Clone, Copy)]
pub(crate) struct Home(u32);

impl Home {
    pub(crate) fn here() -> Self {
        Self(std::process::id())
    }

    pub(crate) fn is_here(self) -> bool {
        self.0 == std::process::id()
    }

    /// # Errors
    /// `UsageError` in a forked process.
    pub(crate) fn check(self, py: Python<'_>, what: &str) -> PyResult<()> {
        match self.is_here() {
            true => Ok(()),
            false => Err(errors::raised(
                py,
                &Error::api_misuse(format!(
                    "this {what} was made before this process was forked, and cannot be used \
                     here: make one in the new process"
                )),
            )),
        }
    }
}
