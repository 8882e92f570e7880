//! Queries that are made ahead, on threads of their own: a program that looks up many keys has all
//! cores make them.

use crate::conductor::shelf::{LIFETIME, Moment, Stock};
use crate::session::Shelf;
use privet_core::SecretRng;
use privet_schemes::registry::{Blank, BlankMaker};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// A shelf that threads fill. Dropping it ends them.
pub(crate) struct FilledShelf(Arc<SharedShelf>);

struct SharedShelf {
    state: Mutex<ShelfState>,
    changed: Condvar,
    /// [`LIFETIME`], except in tests.
    lifetime: Duration,
}

#[derive(Default)]
struct ShelfState {
    stock: Stock,
    threads: usize,
    over: bool,
}

fn now() -> Moment {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    let running = BEGAN.get_or_init(Instant::now).elapsed();
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Moment { running, wall }
}

impl FilledShelf {
    pub(crate) fn new() -> Self {
        Self::with_lifetime(LIFETIME)
    }

    fn with_lifetime(lifetime: Duration) -> Self {
        Self(Arc::new(SharedShelf { state: Mutex::default(), changed: Condvar::new(), lifetime }))
    }
}

impl Shelf for FilledShelf {
    fn stock(&self, maker: Option<BlankMaker>) {
        let mut state = self.0.lock();
        let earlier = state.stock.renew(maker);
        drop(state);
        self.0.changed.notify_all();
        drop(earlier);
    }

    fn take(&self) -> Option<Blank> {
        let mut state = self.0.lock();
        let expired = state.stock.expired(self.0.lifetime, now());
        let blank = state.stock.take();
        if blank.is_none() {
            let cores = thread::available_parallelism().map_or(1, usize::from);
            while state.threads < cores.min(state.stock.wanted) && self.0.spawn() {
                state.threads += 1;
            }
        }
        drop(state);
        self.0.changed.notify_all();
        drop(expired);
        blank
    }
}

impl Drop for FilledShelf {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.changed.notify_all();
    }
}

impl SharedShelf {
    fn lock(&self) -> MutexGuard<'_, ShelfState> {
        // No code that can panic runs under the lock, so a poisoned state is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread. Returns whether the system gave one; without any, the session makes all
    /// blanks.
    fn spawn(self: &Arc<Self>) -> bool {
        let shared = Arc::clone(self);
        let thread = thread::Builder::new().name("privet-ahead".to_owned());
        thread.spawn(move || shared.run()).is_ok()
    }

    /// Makes blanks, and erases those that are not used, until the shelf is dropped.
    fn run(&self) {
        let mut rng = None;
        let mut state = self.lock();
        while !state.over {
            let expired = state.stock.expired(self.lifetime, now());
            if !expired.is_empty() {
                drop(state);
                drop(expired);
                state = self.lock();
                continue;
            }
            let Some((maker, make)) = state.stock.begin() else {
                state = self.wait(state);
                continue;
            };
            drop(state);
            rng = rng.or_else(|| SecretRng::from_os().ok());
            let blank = rng.as_mut().and_then(|rng| make(rng).ok());
            state = self.lock();
            state.stock.put(maker, blank, now());
        }
    }

    /// Waits for news, or for the end of a blank's time.
    fn wait<'a>(&self, state: MutexGuard<'a, ShelfState>) -> MutexGuard<'a, ShelfState> {
        match state.stock.next_expires_in(self.lifetime, now()) {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(time) => {
                let waited = self.changed.wait_timeout(state, time);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conductor::shelf::MOST;
    use privet_core::Error;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A maker of nothing useful, which counts.
    fn counting(made: &Arc<AtomicUsize>) -> Option<BlankMaker> {
        let made = Arc::clone(made);
        Some(Arc::new(move |_: &mut SecretRng| {
            made.fetch_add(1, Ordering::SeqCst);
            Ok(Blank::of(7u32))
        }))
    }

    /// A shelf from which nothing is taken because of its age.
    fn lasting() -> FilledShelf {
        FilledShelf::with_lifetime(Duration::from_secs(3600))
    }

    fn until(what: impl Fn() -> bool) {
        let began = Instant::now();
        while !what() {
            assert!(began.elapsed() < Duration::from_secs(60), "it does not come");
            thread::yield_now();
        }
    }

    #[test]
    fn the_shelf_holds_more_the_more_are_missed_up_to_its_limit() {
        let shelf = lasting();
        let made = Arc::new(AtomicUsize::new(0));
        shelf.stock(counting(&made));
        let ready = || shelf.0.lock().stock.blanks.len();
        assert_eq!(ready(), 0, "nothing is made before the first is needed");
        assert!(shelf.take().is_none());
        until(|| ready() == 1);
        assert!(shelf.take().is_some());
        until(|| ready() == 1);
        for wanted in [2, 4, 8, 16, 16] {
            // One is missed as soon as somebody takes them faster than they are made.
            while shelf.take().is_some() {}
            until(|| ready() >= wanted);
            assert!(ready() <= MOST);
        }
        until(|| ready() == MOST && shelf.0.lock().stock.making == 0);
        let before = made.load(Ordering::SeqCst);
        thread::sleep(Duration::from_millis(20));
        assert_eq!(made.load(Ordering::SeqCst), before, "a full shelf is left alone");
    }

    #[test]
    fn blanks_of_an_earlier_maker_are_never_given_out() {
        let shelf = lasting();
        let (began, begun) = std::sync::mpsc::channel();
        let (go_on, gate) = std::sync::mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        shelf.stock(Some(Arc::new(move |_: &mut SecretRng| {
            began.send(()).unwrap();
            let _ = gate.lock().unwrap().recv();
            Ok(Blank::of("earlier"))
        })));
        assert!(shelf.take().is_none());
        begun.recv().unwrap();
        // One of the earlier maker is being made while the maker changes.
        shelf.stock(None);
        go_on.send(()).unwrap();
        until(|| shelf.0.lock().stock.making == 0);
        assert!(shelf.take().is_none());
        let made = Arc::new(AtomicUsize::new(0));
        shelf.stock(counting(&made));
        until(|| shelf.0.lock().stock.blanks.len() == 2);
        shelf.stock(None);
        assert!(shelf.take().is_none());
    }

    #[test]
    fn its_threads_end_with_it() {
        let shelf = lasting();
        shelf.stock(counting(&Arc::default()));
        assert!(shelf.take().is_none());
        let shared = Arc::downgrade(&shelf.0);
        drop(shelf);
        until(|| shared.upgrade().is_none());
    }

    #[test]
    fn what_an_idle_client_does_not_use_is_erased() {
        let shelf = FilledShelf::with_lifetime(Duration::from_millis(1));
        let kept = Arc::new(());
        let made = Arc::downgrade(&kept);
        let kept = Mutex::new(Some(kept));
        let maker = move |_: &mut SecretRng| Ok(Blank::of(kept.lock().unwrap().take()));
        shelf.stock(Some(Arc::new(maker)));
        assert!(shelf.take().is_none());
        until(|| made.upgrade().is_none());
        until(|| shelf.0.lock().stock.wanted == 0 && shelf.0.lock().stock.blanks.is_empty());
    }

    /// Even if no thread has come to erase it.
    #[test]
    fn what_is_too_old_is_given_to_nobody() {
        let shelf = FilledShelf::with_lifetime(Duration::ZERO);
        shelf.0.lock().stock.blanks.push_back((now(), Blank::of(7u32)));
        assert!(shelf.take().is_none());
        let shelf = lasting();
        shelf.0.lock().stock.blanks.push_back((now(), Blank::of(7u32)));
        assert!(shelf.take().is_some());
    }

    #[test]
    fn a_maker_that_fails_is_not_asked_again_before_the_next_need() {
        let shelf = lasting();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let fails = Error::unavailable("no entropy");
        shelf.stock(Some(Arc::new(move |_: &mut SecretRng| {
            count.fetch_add(1, Ordering::SeqCst);
            Err(fails.clone())
        })));
        for times in 1..=3 {
            assert!(shelf.take().is_none());
            until(|| asked.load(Ordering::SeqCst) == times && shelf.0.lock().stock.wanted == 0);
        }
    }
}
