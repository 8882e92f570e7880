//! Queries that are made ahead, on threads of their own.
//!
//! The shelf begins empty, and grows with the need: whenever a query is taken and none is ready,
//! it is to hold twice as many from then on. So a program that looks one key up has at most one
//! query made in vain, and a program that looks up many has all cores make them.

use crate::session::Shelf;
use privet_core::SecretRng;
use privet_schemes::registry::{Blank, BlankMaker};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The shelf holds at most this many. A blank has the length of a query, some hundred KiB in large
/// tables.
const MOST: usize = 16;

/// A shelf that threads fill. Dropping it ends them.
pub(crate) struct FilledShelf(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    maker: Option<BlankMaker>,
    /// Counts the makers, so that no blank of an earlier one comes on the shelf.
    makers: u64,
    blanks: Vec<Blank>,
    /// How many are being made.
    making: usize,
    /// How many there should be.
    wanted: usize,
    threads: usize,
    over: bool,
}

impl FilledShelf {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() }))
    }
}

impl Shelf for FilledShelf {
    fn stock(&self, maker: Option<BlankMaker>) {
        let mut state = self.0.lock();
        let earlier = std::mem::take(&mut state.blanks);
        state.maker = maker;
        state.makers += 1;
        drop(state);
        self.0.changed.notify_all();
        drop(earlier);
    }

    fn take(&self) -> Option<Blank> {
        let mut state = self.0.lock();
        let blank = state.blanks.pop();
        if blank.is_none() {
            state.wanted = (2 * state.wanted).clamp(1, MOST);
            let cores = thread::available_parallelism().map_or(1, usize::from);
            while state.threads < cores.min(state.wanted) && self.0.spawn() {
                state.threads += 1;
            }
        }
        drop(state);
        self.0.changed.notify_all();
        blank
    }
}

impl Drop for FilledShelf {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
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

    /// Makes blanks until the shelf is dropped.
    fn run(&self) {
        let Ok(mut rng) = SecretRng::from_os() else { return };
        let mut state = self.lock();
        while !state.over {
            let lacks = state.blanks.len() + state.making < state.wanted;
            let Some(make) = state.maker.clone().filter(|_| lacks) else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let maker = state.makers;
            state.making += 1;
            drop(state);
            let blank = make(&mut rng);
            state = self.lock();
            state.making -= 1;
            if state.makers == maker {
                state.blanks.push(blank);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    /// A maker of nothing useful, which counts.
    fn counting(made: &Arc<AtomicUsize>) -> Option<BlankMaker> {
        let made = Arc::clone(made);
        Some(Arc::new(move |_: &mut SecretRng| {
            made.fetch_add(1, Ordering::SeqCst);
            Blank::of(7u32)
        }))
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
        let shelf = FilledShelf::new();
        let made = Arc::new(AtomicUsize::new(0));
        shelf.stock(counting(&made));
        let ready = || shelf.0.lock().blanks.len();
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
        until(|| ready() == MOST && shelf.0.lock().making == 0);
        let before = made.load(Ordering::SeqCst);
        thread::sleep(Duration::from_millis(20));
        assert_eq!(made.load(Ordering::SeqCst), before, "a full shelf is left alone");
    }

    #[test]
    fn blanks_of_an_earlier_maker_are_never_given_out() {
        let shelf = FilledShelf::new();
        let (began, begun) = std::sync::mpsc::channel();
        let (go_on, gate) = std::sync::mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        shelf.stock(Some(Arc::new(move |_: &mut SecretRng| {
            began.send(()).unwrap();
            let _ = gate.lock().unwrap().recv();
            Blank::of("earlier")
        })));
        assert!(shelf.take().is_none());
        begun.recv().unwrap();
        // One of the earlier maker is being made while the maker changes.
        shelf.stock(None);
        go_on.send(()).unwrap();
        until(|| shelf.0.lock().making == 0);
        assert!(shelf.take().is_none());
        let made = Arc::new(AtomicUsize::new(0));
        shelf.stock(counting(&made));
        until(|| shelf.0.lock().blanks.len() == 2);
        shelf.stock(None);
        assert!(shelf.take().is_none());
    }

    #[test]
    fn its_threads_end_with_it() {
        let shelf = FilledShelf::new();
        shelf.stock(counting(&Arc::default()));
        assert!(shelf.take().is_none());
        let shared = Arc::downgrade(&shelf.0);
        drop(shelf);
        until(|| shared.upgrade().is_none());
    }
}
