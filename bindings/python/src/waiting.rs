//! Waits that Ctrl-C interrupts, and processes that were forked.

use crate::errors::{self, Raise as _};
use privet_core::{Error, Result};
use pyo3::prelude::*;
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// How long a signal may wait for its handler.
const SLICE: Duration = Duration::from_millis(100);

/// The next message, or `None` if none will come. Other threads of Python run meanwhile, `between`
/// is called now and then, and a signal whose handler raises an exception ends the wait.
pub(crate) fn next<T: Send>(
    py: Python<'_>,
    messages: &mut Receiver<T>,
    mut between: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<Option<T>> {
    loop {
        // Moved in as a whole: a queue has one reader.
        let messages: &mut Receiver<T> = messages;
        match py.detach(move || messages.recv_timeout(SLICE)) {
            Ok(message) => return Ok(Some(message)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals()?;
                between(py)?;
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
