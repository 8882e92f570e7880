//! A preparer on a thread of its own.

use super::Preparer;
use crate::session::{PreparationEvent, Prepare};
use privet_core::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// A [`Preparer`] that does its steps on a thread of its own. The session bounds what waits for it.
/// Dropped, it does not finish what waits, but perhaps the step that it is at.
pub struct Worker {
    /// `None` only while it is stopped.
    steps: Option<mpsc::Sender<Prepare>>,
    dropped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts the thread. `report` hears of each step, on that thread.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is no thread to be had.
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
                // Whoever waits for this thread must hear if it ends.
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
        // A thread that has ended has nothing to say.
        let _ = self.steps.as_ref().map(|steps| steps.send(step));
    }

    /// Waits for the step that it is at, and does no other. On return the preparer's store is free
    /// for others.
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
