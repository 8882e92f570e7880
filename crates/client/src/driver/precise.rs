//! Waiting to the microsecond, on the driver's own thread.
//!
//! A query leaves at a moment that does not depend on how long it took to compute. The runtime's
//! timers count milliseconds, and a query may take twenty microseconds. So the thread that computed
//! it does the waiting. Nothing else runs on that thread: see [`begin`](crate::client).
//!
//! After a sleep a thread resumes later than after a spin, and on a processor with a lower clock.
//! So the thread always spins for the last stretch before the moment. By then a thread that slept
//! has been running for a while again.

use std::time::{Duration, Instant};

/// A sleeping thread usually wakes up late by less than this.
const OVERSLEPT: Duration = Duration::from_micros(120);

/// After spinning for this long, a thread shows hardly any effect of an earlier sleep.
const SPUN: Duration = Duration::from_millis(1);

/// Returns at `moment`, or at once if it has passed.
pub(super) fn wait_until(moment: Instant) {
    loop {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        match left.checked_sub(SPUN + OVERSLEPT) {
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
