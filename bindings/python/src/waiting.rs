//! Waits that Ctrl-C interrupts, and processes that were forked.

use crate::errors::{self, Raise as _};
use privet_core::{Error, Result};
use privet_table::build::Progress;
use pyo3::prelude::*;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
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

/// What `work` comes to, in a thread of its own. `progress` is called with the stages that it
/// tells, and with how many bytes are done of how many. If the wait is interrupted, the next
/// telling fails, and no more rows come once the flag that the work is given is set.
pub(crate) fn in_a_thread<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<Bound<'_, PyAny>>,
    work: impl FnOnce(&Arc<AtomicBool>, &mut dyn FnMut(Progress) -> Result<()>) -> Result<T>
    + Send
    + 'static,
) -> PyResult<T> {
    let (sender, mut messages) = mpsc::channel();
    let stopped = Arc::new(AtomicBool::new(false));
    let stops = Arc::clone(&stopped);
    let work = move || {
        let outcome = work(&stops, &mut |told| {
            let _ = sender.send(Message::Progress(told));
            match stops.load(Ordering::Relaxed) {
                true => Err(Error::api_misuse("it was interrupted")),
                false => Ok(()),
            }
        });
        let _ = sender.send(Message::Outcome(outcome));
    };
    let spawned = std::thread::Builder::new().name("privet-work".to_owned()).spawn(work);
    spawned
        .map_err(|error| Error::unavailable("the system gives no thread").caused_by(error))
        .raise(py)?;
    let mut wait = || {
        loop {
            let Next::Message(first) = next(py, &mut messages, None, |_| Ok(()))? else {
                return Err(errors::ended("the thread of the work"));
            };
            // Only the latest of what came meanwhile is worth the call.
            let (mut told, mut outcome) = (None, None);
            for message in std::iter::once(first).chain(messages.try_iter()) {
                match message {
                    Message::Progress(later) => told = Some(later),
                    Message::Outcome(last) => outcome = Some(last),
                }
            }
            if let (Some(progress), Some(told)) = (&progress, told) {
                progress.call1((told.stage.words(), told.bytes_done, told.bytes_total))?;
            }
            if let Some(outcome) = outcome {
                return outcome.raise(py);
            }
            py.check_signals()?;
        }
    };
    // The thread ends at its next row or stage. What it has begun to sign, it signs.
    wait().inspect_err(|_| stopped.store(true, Ordering::Relaxed))
}

enum Message<T> {
    Progress(Progress),
    Outcome(Result<T>),
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
