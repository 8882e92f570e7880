//! Queries that are made ahead, on threads of their own.
//!
//! The shelf begins empty, and grows with the need: whenever a query is taken and none is ready,
//! it is to hold twice as many from then on. So a program that looks one key up has at most one
//! query made in vain, and a program that looks up many has all cores make them.
//!
//! A *clone* of the process has what lies on the shelf: a virtual machine that is saved and started
//! twice, for example. Two queries that clones make of one blank would show where they differ. No
//! fresh coins can mend a blank. So each is erased when it has lain there for [`LIFETIME`], the
//! shelf is to hold fewer by those from then on, and nothing lies there while a client is idle.

use crate::session::Shelf;
use privet_core::SecretRng;
use privet_schemes::registry::{Blank, BlankMaker};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// The shelf holds at most this many. A blank has the length of a query, some hundred KiB in large
/// tables.
const MOST: usize = 16;

/// No blank lies on the shelf for longer than this.
const LIFETIME: Duration = Duration::from_secs(1);

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
    maker: Option<BlankMaker>,
    /// Counts the makers, so that no blank of an earlier one comes on the shelf.
    makers: u64,
    /// With the moments at which they were put here, in that order.
    blanks: VecDeque<(Moment, Blank)>,
    /// How many are being made.
    making: usize,
    /// How many there should be.
    wanted: usize,
    threads: usize,
    over: bool,
}

/// A moment by two clocks. While a process or a machine stands still, one of them may stand still
/// as well.
#[derive(Clone, Copy)]
struct Moment {
    running: Instant,
    wall: SystemTime,
}

impl Moment {
    fn now() -> Self {
        Self { running: Instant::now(), wall: SystemTime::now() }
    }

    /// How long after `earlier` this is, by the clock that says more. One that was set back says
    /// that it is long.
    fn since(self, earlier: Self) -> Duration {
        let wall = self.wall.duration_since(earlier.wall).unwrap_or(Duration::MAX);
        self.running.saturating_duration_since(earlier.running).max(wall)
    }
}

impl ShelfState {
    /// Takes what has lain here for `lifetime` off the shelf.
    fn expired(&mut self, lifetime: Duration, now: Moment) -> Vec<Blank> {
        let is_old = |(put, _): &(Moment, Blank)| now.since(*put) >= lifetime;
        // Mostly none is.
        if !self.blanks.iter().any(is_old) {
            return Vec::new();
        }
        let (old, kept): (Vec<_>, Vec<_>) = self.blanks.drain(..).partition(is_old);
        self.blanks = kept.into();
        self.wanted = self.wanted.saturating_sub(old.len());
        old.into_iter().map(|(_, blank)| blank).collect()
    }

    /// When the next will have lain here for `lifetime`.
    fn next_expires_in(&self, lifetime: Duration, now: Moment) -> Option<Duration> {
        let oldest = self.blanks.iter().map(|(put, _)| now.since(*put)).max()?;
        Some(lifetime.saturating_sub(oldest))
    }
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
        let earlier = std::mem::take(&mut state.blanks);
        state.maker = maker;
        state.makers += 1;
        drop(state);
        self.0.changed.notify_all();
        drop(earlier);
    }

    fn take(&self) -> Option<Blank> {
        let mut state = self.0.lock();
        let expired = state.expired(self.0.lifetime, Moment::now());
        let blank = state.blanks.pop_front().map(|(_, blank)| blank);
        if blank.is_none() {
            state.wanted = (2 * state.wanted).clamp(1, MOST);
            let cores = thread::available_parallelism().map_or(1, usize::from);
            while state.threads < cores.min(state.wanted) && self.0.spawn() {
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
            let expired = state.expired(self.lifetime, Moment::now());
            if !expired.is_empty() {
                drop(state);
                drop(expired);
                state = self.lock();
                continue;
            }
            let lacks = state.blanks.len() + state.making < state.wanted;
            let Some(make) = state.maker.clone().filter(|_| lacks) else {
                state = self.wait(state);
                continue;
            };
            let maker = state.makers;
            state.making += 1;
            drop(state);
            rng = rng.or_else(|| SecretRng::from_os().ok());
            let blank = rng.as_mut().and_then(|rng| make(rng).ok());
            state = self.lock();
            state.making -= 1;
            match blank {
                Some(blank) if state.makers == maker => {
                    state.blanks.push_back((Moment::now(), blank));
                }
                Some(_) => {}
                // The session makes the next itself, and reports why that fails.
                None => state.wanted = 0,
            }
        }
    }

    /// Waits for news, or for the end of a blank's time.
    fn wait<'a>(&self, state: MutexGuard<'a, ShelfState>) -> MutexGuard<'a, ShelfState> {
        match state.next_expires_in(self.lifetime, Moment::now()) {
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
    use privet_core::Error;
    use std::sync::OnceLock;
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
        let shelf = lasting();
        shelf.stock(counting(&Arc::default()));
        assert!(shelf.take().is_none());
        let shared = Arc::downgrade(&shelf.0);
        drop(shelf);
        until(|| shared.upgrade().is_none());
    }

    /// Blanks that were put on a shelf in these milliseconds, by the running and by the wall clock.
    fn put_at(times: &[(u64, u64)]) -> ShelfState {
        let put = |(running, wall): &(u64, u64)| (moment(*running, *wall), Blank::of(7u32));
        ShelfState {
            blanks: times.iter().map(put).collect(),
            wanted: times.len(),
            ..ShelfState::default()
        }
    }

    fn moment(running: u64, wall: u64) -> Moment {
        static BEGAN: OnceLock<Instant> = OnceLock::new();
        let began = *BEGAN.get_or_init(Instant::now);
        Moment {
            running: began + Duration::from_millis(running),
            wall: SystemTime::UNIX_EPOCH + Duration::from_millis(wall),
        }
    }

    #[test]
    fn nothing_lies_on_the_shelf_for_longer_than_a_second_by_either_clock() {
        for (now, old) in [
            ((999, 999), 0),
            ((1000, 1000), 1),
            ((1250, 1250), 2),
            ((9000, 9000), 4),
            // The machine stood still, or the process, or a clock was set.
            ((600, 90_000), 4),
            ((90_000, 600), 4),
            ((600, 100), 3),
        ] {
            let mut state = put_at(&[(0, 0), (200, 200), (400, 400), (600, 600)]);
            let expired = state.expired(LIFETIME, moment(now.0, now.1));
            assert_eq!(expired.len(), old, "{now:?}");
            assert_eq!((state.blanks.len(), state.wanted), (4 - old, 4 - old), "{now:?}");
            let next = state.next_expires_in(LIFETIME, moment(now.0, now.1));
            assert!(next.is_none_or(|next| !next.is_zero() && next <= LIFETIME), "{now:?}");
        }
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
        until(|| shelf.0.lock().wanted == 0 && shelf.0.lock().blanks.is_empty());
    }

    /// Even if no thread has come to erase it.
    #[test]
    fn what_is_too_old_is_given_to_nobody() {
        let shelf = FilledShelf::with_lifetime(Duration::ZERO);
        shelf.0.lock().blanks.push_back((Moment::now(), Blank::of(7u32)));
        assert!(shelf.take().is_none());
        let shelf = lasting();
        shelf.0.lock().blanks.push_back((Moment::now(), Blank::of(7u32)));
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
            until(|| asked.load(Ordering::SeqCst) == times && shelf.0.lock().wanted == 0);
        }
    }
}
