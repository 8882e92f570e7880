//! Waiting to the microsecond, on the driver's own thread.
//!
//! A query leaves at a moment that does not depend on how long it took to compute. The runtime's
//! timers go by milliseconds, and a query may take twenty microseconds; so the thread that computed
//! it waits itself. Nothing else runs there: see [`Start::run`](crate::client).
//!
//! A thread that sleeps wakes up later than one that spins, and finds a slower processor. So the
//! last stretch before the moment is spun whatever was before it, and a thread that slept has run
//! for a while again by then.

use std::time::{Duration, Instant};

/// A thread that sleeps wakes up late by less than this, usually.
const OVERSLEPT: Duration = Duration::from_micros(120);

/// A thread that has run for so long shows hardly anything of a sleep before.
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
