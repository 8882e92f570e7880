//! Queries that are made ahead: how many, and for how long they last.
//!
//! The shelf begins empty, and grows with the need: whenever a query is taken and none is ready,
//! it is to hold twice as many from then on. So a program that looks one key up has at most one
//! query made in vain.
//!
//! A *clone* of the process has what lies on the shelf: a virtual machine that is saved and started
//! twice, for example. Two queries that clones make of one blank would show where they differ. No
//! fresh coins can mend a blank. So each is erased when it has lain there for [`LIFETIME`], the
//! shelf is to hold fewer by those from then on, and nothing lies there while a client is idle.

use crate::session::Shelf;
use privet_core::SecretRng;
use privet_schemes::registry::{Blank, BlankMaker};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The shelf holds at most this many. A blank has the length of a query, some hundred KiB in large
/// tables.
pub(crate) const MOST: usize = 16;

/// No blank lies on the shelf for longer than this.
pub(crate) const LIFETIME: Duration = Duration::from_secs(1);

/// A moment by two clocks, each of which may begin anywhere. While a process or a machine stands
/// still, one of them may stand still as well.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// By a clock that never goes back.
    pub running: Duration,
    /// By the clock on the wall.
    pub wall: Duration,
}

impl Moment {
    /// How long after `earlier` this is, by the clock that says more. One that was set back says
    /// that it is long.
    fn since(self, earlier: Self) -> Duration {
        let wall = self.wall.checked_sub(earlier.wall).unwrap_or(Duration::MAX);
        self.running.saturating_sub(earlier.running).max(wall)
    }
}

/// What lies on a shelf, and what should.
#[derive(Default)]
pub(crate) struct Stock {
    maker: Option<BlankMaker>,
    /// Counts the makers, so that no blank of an earlier one comes on the shelf.
    makers: u64,
    /// With the moments at which they were put here, in that order.
    pub(crate) blanks: VecDeque<(Moment, Blank)>,
    /// How many are being made.
    pub(crate) making: usize,
    /// How many there should be.
    pub(crate) wanted: usize,
}

impl Stock {
    /// Has a maker from now on. Returns what those before have made.
    pub(crate) fn renew(&mut self, maker: Option<BlankMaker>) -> VecDeque<(Moment, Blank)> {
        self.maker = maker;
        self.makers += 1;
        std::mem::take(&mut self.blanks)
    }

    /// The oldest blank. If there is none, there should be more.
    pub(crate) fn take(&mut self) -> Option<Blank> {
        let blank = self.blanks.pop_front().map(|(_, blank)| blank);
        if blank.is_none() {
            self.wanted = (2 * self.wanted).clamp(1, MOST);
        }
        blank
    }

    /// Whether there are fewer than there should be.
    fn lacks(&self) -> bool {
        self.maker.is_some() && self.blanks.len() + self.making < self.wanted
    }

    /// Who makes the next blank, if one is lacking: the maker, and its number for
    /// [`put`](Self::put).
    pub(crate) fn begin(&mut self) -> Option<(u64, BlankMaker)> {
        let maker = self.maker.clone().filter(|_| self.lacks())?;
        self.making += 1;
        Some((self.makers, maker))
    }

    /// Puts a blank here that was [begun](Self::begin). `None`: it could not be made.
    pub(crate) fn put(&mut self, maker: u64, blank: Option<Blank>, now: Moment) {
        self.making -= 1;
        match blank {
            Some(blank) if self.makers == maker => self.blanks.push_back((now, blank)),
            Some(_) => {}
            // The session makes the next itself, and reports why that fails.
            None => self.wanted = 0,
        }
    }

    /// Takes what has lain here for `lifetime` off the shelf.
    pub(crate) fn expired(&mut self, lifetime: Duration, now: Moment) -> Vec<Blank> {
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
    pub(crate) fn next_expires_in(&self, lifetime: Duration, now: Moment) -> Option<Duration> {
        let oldest = self.blanks.iter().map(|(put, _)| now.since(*put)).max()?;
        Some(lifetime.saturating_sub(oldest))
    }
}

/// A shelf that the thread that polls the conductor fills when it has nothing else to do, one blank
/// at a time: it [works](Self::work). Whatever arrives meanwhile waits for the blank.
pub struct IdleShelf {
    now: fn() -> Moment,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    stock: Stock,
    rng: Option<SecretRng>,
    given: u64,
}

impl IdleShelf {
    /// An empty shelf. `now` tells the time by two clocks.
    pub fn new(now: fn() -> Moment) -> Self {
        Self { now, held: Mutex::default() }
    }

    /// Makes a blank if one is lacking, and erases what nobody has used. Returns after what time to
    /// call this again at the latest. `None`: after the next lookup.
    pub fn work(&self) -> Option<Duration> {
        let mut held = self.lock();
        let Held { stock, rng, .. } = &mut *held;
        drop(stock.expired(LIFETIME, (self.now)()));
        if let Some((maker, make)) = stock.begin() {
            if rng.is_none() {
                *rng = SecretRng::from_os().ok();
            }
            let blank = rng.as_mut().and_then(|rng| make(rng).ok());
            stock.put(maker, blank, (self.now)());
        }
        if stock.lacks() {
            return Some(Duration::ZERO);
        }
        stock.next_expires_in(LIFETIME, (self.now)())
    }

    /// How many blanks were there when a query was made.
    pub fn given(&self) -> u64 {
        self.lock().given
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf for IdleShelf {
    fn stock(&self, maker: Option<BlankMaker>) {
        drop(self.lock().stock.renew(maker));
    }

    fn take(&self) -> Option<Blank> {
        let mut held = self.lock();
        drop(held.stock.expired(LIFETIME, (self.now)()));
        let blank = held.stock.take();
        held.given += u64::from(blank.is_some());
        blank
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_core::Error;
    use std::cell::Cell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn moment(running: u64, wall: u64) -> Moment {
        Moment { running: Duration::from_millis(running), wall: Duration::from_millis(wall) }
    }

    /// Blanks that were put on a shelf in these milliseconds, by the running and by the wall clock.
    fn put_at(times: &[(u64, u64)]) -> Stock {
        let put = |(running, wall): &(u64, u64)| (moment(*running, *wall), Blank::of(7u32));
        Stock { blanks: times.iter().map(put).collect(), wanted: times.len(), ..Stock::default() }
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
            let mut stock = put_at(&[(0, 0), (200, 200), (400, 400), (600, 600)]);
            let expired = stock.expired(LIFETIME, moment(now.0, now.1));
            assert_eq!(expired.len(), old, "{now:?}");
            assert_eq!((stock.blanks.len(), stock.wanted), (4 - old, 4 - old), "{now:?}");
            let next = stock.next_expires_in(LIFETIME, moment(now.0, now.1));
            assert!(next.is_none_or(|next| !next.is_zero() && next <= LIFETIME), "{now:?}");
        }
    }

    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(0) };
    }

    /// A shelf whose clocks stand still, and how many blanks were made for it.
    fn idle() -> (IdleShelf, Arc<AtomicUsize>) {
        let made = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&made);
        let shelf = IdleShelf::new(|| moment(NOW.get(), NOW.get()));
        shelf.stock(Some(Arc::new(move |_: &mut SecretRng| {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(Blank::of(7u32))
        })));
        (shelf, made)
    }

    #[test]
    fn an_idle_thread_makes_one_blank_at_a_time_as_many_as_were_missed() {
        let (shelf, made) = idle();
        assert_eq!(shelf.work(), None, "nothing is made before the first is needed");
        assert!(shelf.take().is_none() && shelf.take().is_none());
        assert_eq!(shelf.work(), Some(Duration::ZERO));
        assert_eq!(made.load(Ordering::SeqCst), 1);
        assert_eq!(shelf.work(), Some(LIFETIME));
        assert_eq!(shelf.work(), Some(LIFETIME));
        assert_eq!(made.load(Ordering::SeqCst), 2, "a full shelf is left alone");
        assert!(shelf.take().is_some() && shelf.take().is_some() && shelf.take().is_none());
        assert_eq!(shelf.given(), 2);
    }

    #[test]
    fn what_an_idle_thread_made_is_given_once_and_not_for_long() {
        let (shelf, made) = idle();
        assert!(shelf.take().is_none());
        shelf.work();
        NOW.set(999);
        assert_eq!(shelf.work(), Some(Duration::from_millis(1)));
        NOW.set(1000);
        // Even if the thread has not worked since.
        assert!(shelf.take().is_none());
        shelf.work();
        NOW.set(2000);
        assert_eq!(shelf.work(), None, "nothing lies here while nobody looks up");
        assert_eq!(made.load(Ordering::SeqCst), 2);
        assert!(shelf.take().is_none());
        shelf.work();
        shelf.stock(None);
        assert!(shelf.take().is_none(), "it was of an earlier maker");
        shelf.stock(Some(Arc::new(|_: &mut SecretRng| Err(Error::unavailable("no entropy")))));
        assert_eq!(shelf.work(), None);
        assert_eq!(shelf.given(), 0);
    }
}
