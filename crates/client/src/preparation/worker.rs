//! A preparer on a thread of its own.

use super::Preparer;
use crate::session::{PreparationEvent, Prepare};
use privet_core::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// A [`Preparer`] that does its steps on a thread of its own. The session bounds how many steps
/// wait for it. If it is dropped, it does none of the waiting steps, but may finish the current
/// one.
pub struct Worker {
    /// `None` only while the worker is being stopped.
    steps: Option<mpsc::Sender<Prepare>>,
    dropped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts the thread. `report` hears of each step, on that thread.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the system gives no thread.
    pub fn start(
        mut preparer: Preparer,
        report: impl Fn(PreparationEvent) + Send + 'static,
    ) -> Result<Self> {
        let (steps, queue) = mpsc::channel();
        let dropped = Arc::new(AtomicBool::new(false));
        let is_dropped = Arc::clone(&dropped);
        let thread = std::thread::Builder::new().name("privet-hints".to_owned());
        let spawned = thread.spawn(move || {
            for step in queue {
                if is_dropped.load(Ordering::Relaxed) {
                    return;
                }
                // If this thread ends, those that wait for it must hear of it.
                let done = catch_unwind(AssertUnwindSafe(|| preparer.step(step)));
                let panicked = done.is_err();
                let ended = || {
                    PreparationEvent::Failed(Error::internal(
                        "preparing hints failed; this is a bug",
                    ))
                };
                if let Some(event) = done.unwrap_or_else(|_| Some(ended())) {
                    report(event);
                }
                if panicked {
                    return;
                }
            }
        });
        let thread = spawned.map_err(|error| {
            Error::unavailable("no thread to prepare hints on").caused_by(error)
        })?;
        Ok(Self { steps: Some(steps), dropped, thread: Some(thread) })
    }

    /// Has a step done, after all those before it.
    pub fn step(&self, step: Prepare) {
        // The send fails only if the thread has ended, and then it has reported why.
        let _ = self.steps.as_ref().map(|steps| steps.send(step));
    }

    /// Waits for the current step, and does no other. On return others may use the preparer's
    /// store.
    pub fn stop(mut self) {
        self.dropped.store(true, Ordering::Relaxed);
        self.steps = None;
        if let Some(thread) = self.thread.take() {
            // It reported its own end.
            let _ = thread.join();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
    }
}
