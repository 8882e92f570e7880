//! Work that several threads share.

use privet_core::Result;
use std::sync::{Mutex, PoisonError};

/// Gives each item to one of up to `threads` threads, one of which is the caller. Each thread works
/// with a function of its own. If the system refuses some threads, the others do all the work.
///
/// # Errors
/// The first error of a worker. No item is begun after that.
pub fn share<I, W>(
    threads: usize,
    items: impl Iterator<Item = I> + Send,
    worker: impl Fn() -> W + Sync,
) -> Result<()>
where
    W: FnMut(I) -> Result<()>,
{
    // The items that are left, and the first error.
    let queue = Mutex::new((items.fuse(), Ok(())));
    let drain = || {
        let mut work = worker();
        loop {
            let next = match &mut *queue.lock().unwrap_or_else(PoisonError::into_inner) {
                (items, Ok(())) => items.next(),
                (_, Err(_)) => None,
            };
            let Some(item) = next else { break };
            if let Err(error) = work(item) {
                let (_, outcome) = &mut *queue.lock().unwrap_or_else(PoisonError::into_inner);
                if outcome.is_ok() {
                    *outcome = Err(error);
                }
            }
        }
    };
    match threads {
        // There are no threads on WebAssembly.
        2.. if !cfg!(target_family = "wasm") => std::thread::scope(|scope| {
            for _ in 1..threads {
                if std::thread::Builder::new().spawn_scoped(scope, drain).is_err() {
                    break;
                }
            }
            drain();
        }),
        _ => drain(),
    }
    let (_, outcome) = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcome
}

/// Reports how much of some work is done, in ascending order.
pub struct Progress<'a> {
    done: Mutex<u128>,
    total: u128,
    report: &'a (dyn Fn(f64) + Sync),
}

impl<'a> Progress<'a> {
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
