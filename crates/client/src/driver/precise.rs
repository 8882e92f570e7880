//! Waiting to the microsecond, on the driver's own thread.
//!
//! A query leaves at a moment that does not depend on how long it took to compute, but for what the
//! system makes of the wait: a thread that sleeps wakes up later than one that spins. The runtime's
//! timers go by milliseconds, and a query may take twenty microseconds; so the thread that computed
//! it waits itself. Nothing else runs there: see [`Start::run`](crate::client).

use std::time::{Duration, Instant};

/// A thread that sleeps wakes up late by less than this, usually.
const OVERSLEPT: Duration = Duration::from_micros(120);

/// Returns at `moment`, or at once if it has passed.
pub(super) fn wait_until(moment: Instant) {
    loop {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        match left.checked_sub(OVERSLEPT) {
            Some(left) if !left.is_zero() => std::thread::sleep(left),
            _ => std::hint::spin_loop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_never_too_early() {
        for microseconds in [0, 1, 20, 150, 3000] {
            let moment = Instant::now() + Duration::from_micros(microseconds);
            wait_until(moment);
            assert!(Instant::now() >= moment, "{microseconds}");
        }
    }
}
