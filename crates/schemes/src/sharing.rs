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
