//! Hints are prepared on a thread of their own.

use crate::conductor::Desk;
use crate::preparation::{Preparer, Worker};
use crate::session::{PreparationEvent, Prepare};
use privet_core::Result;
use std::sync::{Arc, mpsc};
use tokio::sync::Notify;

/// A [`Worker`], if hints are in the making, and what it has done.
pub(crate) struct OtherThread {
    worker: Option<Worker>,
    // The session has no more than two strides of the table, or two replies, on their way to the
    // worker, so this is bounded.
    report: mpsc::Sender<PreparationEvent>,
    reported: mpsc::Receiver<PreparationEvent>,
    wake: Arc<Notify>,
}

impl Default for OtherThread {
    fn default() -> Self {
        let (report, reported) = mpsc::channel();
        Self { worker: None, report, reported, wake: Arc::default() }
    }
}

impl OtherThread {
    /// Told whenever there is something to be asked for with [`done`](Desk::done).
    pub(super) fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }
}

impl Desk for OtherThread {
    fn start(&mut self, preparer: Preparer) -> Result<()> {
        let (report, wake) = (self.report.clone(), Arc::clone(&self.wake));
        let worker = Worker::start(preparer, move |event| {
            // A driver that is gone has no use for it.
            let _ = report.send(event);
            wake.notify_one();
        })?;
        self.worker = Some(worker);
        Ok(())
    }

    fn step(&mut self, step: Prepare) {
        if let Some(worker) = &self.worker {
            worker.step(step);
        }
    }

    fn stop(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.stop();
            while self.reported.try_recv().is_ok() {}
        }
    }

    fn done(&mut self) -> Option<PreparationEvent> {
        self.reported.try_recv().ok()
    }
}
