//! When lookups are due, and how they are begun then.
//!
//! The schedule is drawn before the first lookup, and nothing that a server does changes it. (A
//! load program that waits for answers before it asks again asks less of a server that stalls, and
//! so leaves out the very lookups that would have been slow: *coordinated omission*.)

use privet_core::SecretRng;
use std::time::{Duration, Instant};

/// The moments of a Poisson process of `rate` events in a second, in order, within `time` from its
/// beginning. At least one: without any there is nothing to measure.
pub(super) fn draw(rate: f64, time: Duration, rng: &mut SecretRng) -> Vec<Duration> {
    let mut due = Vec::new();
    let mut at = 0.0;
    loop {
        at += gap(rng) / rate;
        match Duration::try_from_secs_f64(at) {
            Ok(at) if at < time => due.push(at),
            _ => break,
        }
    }
    if due.is_empty() {
        due.push(Duration::ZERO);
    }
    due
}

/// A time from the exponential distribution of mean 1.
fn gap(rng: &mut SecretRng) -> f64 {
    // 53 bits are as many as a double holds; in (0, 1], since the logarithm of 0 is no time.
    let uniform = ((rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
    -uniform.ln()
}

/// A clock to keep a schedule by.
pub(super) trait Clock {
    /// The time since the schedule began.
    fn now(&self) -> Duration;
    /// Waits for that moment.
    fn wait_until(&mut self, at: Duration);
}

/// The machine's clock.
pub(super) struct MachineClock(pub(super) Instant);

impl Clock for MachineClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn wait_until(&mut self, at: Duration) {
        std::thread::sleep(at.saturating_sub(self.now()));
    }
}

/// Calls `begin` with each lookup's number when it is due, or as soon afterwards as the earlier
/// calls allow, and `late` with how long afterwards that was.
pub(super) fn keep(
    schedule: &[Duration],
    clock: &mut impl Clock,
    mut begin: impl FnMut(usize),
    mut late: impl FnMut(Duration),
) {
    for (number, due) in schedule.iter().enumerate() {
        if clock.now() < *due {
            clock.wait_until(*due);
        }
        late(clock.now().saturating_sub(*due));
        begin(number);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    /// A clock that stands still but for whoever holds its hands.
    #[derive(Clone, Default)]
    pub(in super::super) struct FakeClock(Rc<Cell<Duration>>);

    impl FakeClock {
        pub(in super::super) fn advance(&self, by: Duration) {
            self.0.set(self.0.get() + by);
        }
    }

    impl Clock for FakeClock {
        fn now(&self) -> Duration {
            self.0.get()
        }

        fn wait_until(&mut self, at: Duration) {
            self.0.set(self.0.get().max(at));
        }
    }

    fn milliseconds(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    #[test]
    fn a_schedule_has_the_rate_and_the_spread_of_a_poisson_process() {
        let mut rng = SecretRng::from_os().unwrap();
        let (rate, time) = (1000.0, Duration::from_secs(100));
        let due = draw(rate, time, &mut rng);
        assert!(due.is_sorted() && due.iter().all(|due| *due < time));
        // 100,000 are expected, with a standard deviation of 316: six of them to each side.
        assert!((98_000..102_000).contains(&due.len()), "{}", due.len());
        // Gaps of an exponential distribution: 1/e of them are longer than the mean. The standard
        // deviation of their share is 0.0015.
        let long = due.windows(2).filter(|pair| (pair[1] - pair[0]).as_secs_f64() > 1.0 / rate);
        let share = long.count() as f64 / due.len() as f64;
        assert!((share - (-1f64).exp()).abs() < 0.01, "{share}");
    }

    #[test]
    fn there_is_always_something_to_measure() {
        let mut rng = SecretRng::from_os().unwrap();
        assert_eq!(draw(1e-9, milliseconds(1), &mut rng), [Duration::ZERO]);
    }

    #[test]
    fn lookups_begin_when_they_are_due_however_long_others_take() {
        let schedule = [0, 10, 20, 30, 100].map(milliseconds);
        let mut clock = FakeClock::default();
        let hands = clock.clone();
        let (mut began, mut lateness) = (Vec::new(), Vec::new());
        // The second call holds the generator up for 25 ms.
        let begin = |number| {
            began.push((number, hands.now()));
            hands.advance(if number == 1 { milliseconds(25) } else { Duration::ZERO });
        };
        keep(&schedule, &mut clock, begin, |late| lateness.push(late));
        let expected = [(0, 0), (1, 10), (2, 35), (3, 35), (4, 100)];
        assert_eq!(began, expected.map(|(number, at)| (number, milliseconds(at))));
        assert_eq!(lateness, [0, 0, 15, 5, 0].map(milliseconds));
    }
}
