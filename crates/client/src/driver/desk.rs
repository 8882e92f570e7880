//! Hints are prepared on a thread of their own.

use crate::conductor::Desk;
use crate::preparation::{Preparer, Worker};
use crate::session::{PreparationEvent, Prepare};
use privet_core::Result;
use std::sync::{Arc, mpsc};
use tokio::sync::Notify;

/// A [`Worker`], if hints are being prepared, and the events that it has reported.
pub(crate) struct OtherThread {
    worker: Option<Worker>,
    // The session has at most two strides of the table, or two replies, on their way to the worker,
    // so this is bounded.
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
    /// Notified whenever [`done`](Desk::done) has something to return.
    pub(super) fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }
}

impl Desk for OtherThread {
    fn start(&mut self, preparer: Preparer) -> Result<()> {
        let (report, wake) = (self.report.clone(), Arc::clone(&self.wake));
        let worker = Worker::start(preparer, move |event| {
            // If the driver is gone, no one needs the event.
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
