//! Telling how far work on several threads is.

use std::sync::{Mutex, PoisonError};

/// Reports how much of some work is done, in ascending order.
pub struct ProgressReporter<'a> {
    done: Mutex<u128>,
    total: u128,
    report: &'a (dyn Fn(f64) + Sync),
}

impl<'a> ProgressReporter<'a> {
    /// Begins at zero. `total` is the whole work, in any unit.
    pub fn new(total: u128, report: &'a (dyn Fn(f64) + Sync)) -> Self {
        Self { done: Mutex::new(0), total, report }
    }

    /// Reports that so much more is done.
    pub fn add(&self, work: u128) {
        // Holds the lock during the report: otherwise a thread could overtake another between its
        // count and its report.
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        *done += work;
        (self.report)(*done as f64 / self.total as f64);
    }

    /// Reports that the given share of the next `work` is done. The caller adds the whole later.
    pub fn within(&self, work: u128, share: f64) {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        (self.report)((*done as f64 + work as f64 * share) / self.total as f64);
    }
}
