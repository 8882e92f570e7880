//! A bound on what libraries log.
//!
//! Strangers cause some of it: each connection on which they break the rules of HTTP/2 is a warning
//! of `h2`. Privet's own lines are bounded where they are written. Of a library, each place in its
//! code has one line in ten seconds, so that no line is left out because of another. `RUST_LOG` can
//! ask for lines of the levels below; these are for whoever looks for a mistake, and not bounded.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

const EVERY: Duration = Duration::from_secs(10);

/// The places in libraries that have logged something.
#[derive(Default)]
pub(super) struct Bound(Mutex<HashMap<Identifier, CallsiteState>>);

struct CallsiteState {
    logged: Instant,
    left_out: u64,
}

impl Bound {
    /// How many lines of the place were left out before this one, which is logged; or `None` if it
    /// is left out as well.
    fn logs(&self, place: Identifier, now: Instant) -> Option<u64> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = places.get_mut(&place) else {
            places.insert(place, CallsiteState { logged: now, left_out: 0 });
            return Some(0);
        };
        if now.saturating_duration_since(place.logged) < EVERY {
            place.left_out += 1;
            return None;
        }
        place.logged = now;
        Some(std::mem::take(&mut place.left_out))
    }
}

impl<S: Subscriber> Layer<S> for Bound {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if metadata.target().starts_with("privet") || *metadata.level() > Level::INFO {
            return true;
        }
        let Some(left_out) = self.logs(metadata.callsite(), Instant::now()) else { return false };
        if left_out > 0 {
            tracing::warn!(
                library = metadata.target(),
                left_out,
                "a library has logged the following line more often than this log has it"
            );
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::registry;

    /// Counts what is logged.
    struct Counting(Arc<AtomicUsize>);

    impl<S: Subscriber> Layer<S> for Counting {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many lines are logged by `log`.
    fn logged(log: impl Fn()) -> usize {
        let count = Arc::new(AtomicUsize::new(0));
        let subscriber = registry().with(Counting(Arc::clone(&count))).with(Bound::default());
        tracing::subscriber::with_default(subscriber, log);
        count.load(Ordering::Relaxed)
    }

    #[test]
    fn a_library_says_the_same_once_and_privet_says_all() {
        let many = |log: fn()| logged(|| (0..100).for_each(|_| log()));
        assert_eq!(many(|| tracing::warn!(target: "h2::proto", "a stranger's stream")), 1);
        assert_eq!(many(|| tracing::error!(target: "rustls", "a stranger's record")), 1);
        assert_eq!(many(|| tracing::warn!(target: "privet_server::scrub", "damage")), 100);
        assert_eq!(many(|| tracing::debug!(target: "h2::proto", "asked for by RUST_LOG")), 100);
        let two = || {
            tracing::warn!(target: "h2::proto", "one thing");
            tracing::warn!(target: "h2::proto", "another");
        };
        assert_eq!(logged(two), 2);
    }

    #[test]
    fn a_place_may_log_again_after_a_while_and_then_says_how_much_is_missing() {
        let bound = Bound::default();
        let place = tracing::callsite::Identifier(&PLACE);
        let began = Instant::now();
        assert_eq!(bound.logs(place.clone(), began), Some(0));
        for seconds in 1..10 {
            assert_eq!(bound.logs(place.clone(), began + Duration::from_secs(seconds)), None);
        }
        assert_eq!(bound.logs(place.clone(), began + EVERY), Some(9));
        assert_eq!(bound.logs(place, began + 2 * EVERY), Some(0));
    }

    static PLACE: Here = Here;

    struct Here;

    impl tracing::callsite::Callsite for Here {
        fn set_interest(&self, _: tracing::subscriber::Interest) {}

        fn metadata(&self) -> &tracing::Metadata<'_> {
            unreachable!("nobody asks")
        }
    }
}
