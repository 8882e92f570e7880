//! Splitting independent pieces of work over a few threads.

use std::sync::{Mutex, PoisonError};

/// Calls `work` once for every item, on up to `threads` threads (0 counts as 1), including the
/// calling one. A thread fetches the next item when it is done with the last, so a thread that the
/// operating system delays does not delay the others. Fewer threads are used if there are fewer
/// items or the system refuses to start more. On WebAssembly, only the calling thread works.
pub fn for_each<I>(threads: usize, items: Vec<I>, work: impl Fn(I) + Sync)
where
    I: Send,
{
    let threads =
        if cfg!(target_family = "wasm") { 1 } else { threads.clamp(1, items.len().max(1)) };
    if threads == 1 {
        items.into_iter().for_each(work);
        return;
    }
    let queue = Mutex::new(items.into_iter());
    let drain = || {
        loop {
            // The lock guards only `next`, which does not panic, so a poisoned queue is still
            // intact.
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            match next {
                Some(item) => work(item),
                None => break,
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // A refused thread is not an error: the others do its work.
            if std::thread::Builder::new().spawn_scoped(scope, drain).is_err() {
                break;
            }
        }
        drain();
    });
}
