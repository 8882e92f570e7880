//! Tells operators that clients are refused: in the log, and by `/healthz` if it lasts.

use super::{Health, Metrics};
use crate::vital::Vital;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const LOOK: Duration = Duration::from_secs(1);

/// In looks. The server counts as overloaded after as many in which newcomers found all places
/// taken, and as ready again after as many in which none did.
const LASTS: u32 = 10;

/// In looks: the log says it no more often than that.
const LOG_EVERY: u32 = 10;

/// Looks once a second, until `stop`.
pub(crate) fn start(
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    stop: CancellationToken,
    vital: &Vital,
) {
    let mut watch = Watch::default();
    let watching = stop.run_until_cancelled_owned(async move {
        loop {
            tokio::time::sleep(LOOK).await;
            let seen = watch.look(metrics.refused());
            if let Some(refused) = seen.log {
                tracing::warn!(
                    refused,
                    "clients were refused or cut off because limits were reached; \
                     privet_shed_total on /metrics says which"
                );
            }
            if health.is_overloaded() != seen.overloaded {
                match seen.overloaded {
                    true => tracing::warn!("overloaded: not ready for more clients"),
                    false => tracing::info!("no longer overloaded"),
                }
                health.set_overloaded(seen.overloaded);
            }
        }
    });
    vital.spawn("notices overload", async move {
        watching.await;
    });
}

/// How much was refused so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Refused {
    /// For any limit.
    pub(crate) all: u64,
    /// Because all places were taken, whoever held them.
    pub(crate) full: u64,
}

#[derive(Default)]
struct Watch {
    before: Refused,
    logged: u64,
    since_log: u32,
    level: u32,
    overloaded: bool,
}

struct Seen {
    /// How many to log now.
    log: Option<u64>,
    overloaded: bool,
}

impl Watch {
    fn look(&mut self, refused: Refused) -> Seen {
        self.level = match refused.full > self.before.full {
            true => (self.level + 1).min(LASTS),
            false => self.level.saturating_sub(1),
        };
        self.overloaded = match self.level {
            LASTS => true,
            0 => false,
            _ => self.overloaded,
        };
        self.before = refused;
        self.since_log = self.since_log.saturating_sub(1);
        let new = refused.all - self.logged;
        let log = (new > 0 && self.since_log == 0).then(|| {
            self.since_log = LOG_EVERY;
            self.logged = refused.all;
            new
        });
        Seen { log, overloaded: self.overloaded }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_says_at_once_that_clients_are_refused_and_then_once_in_ten_seconds() {
        let mut watch = Watch::default();
        let logged: Vec<_> =
            (1..=25).filter_map(|all| watch.look(Refused { all, full: 0 }).log).collect();
        assert_eq!(logged, [1, 10, 10]);
        // What came after the last line is not lost.
        let mut later = (0..10).filter_map(|_| watch.look(Refused { all: 25, full: 0 }).log);
        assert_eq!(later.next(), Some(4));
        assert_eq!(later.next(), None);
    }

    #[test]
    fn a_server_is_overloaded_after_ten_seconds_of_full_places_and_ready_after_ten_without() {
        let mut watch = Watch::default();
        let mut full = 0;
        let mut look = |is_full: bool| {
            full += u64::from(is_full);
            watch.look(Refused { all: full, full }).overloaded
        };
        // One bad second now and then is no overload.
        assert!((0..50).all(|second| !look(second % 2 == 0)));
        assert_eq!((0..10).filter(|_| look(true)).count(), 1);
        assert_eq!((0..10).filter(|_| look(false)).count(), 9);
        assert!(!look(true));
    }

    #[test]
    fn one_client_at_its_own_limits_does_not_make_a_server_unready() {
        let mut watch = Watch::default();
        assert!((1..100).all(|all| !watch.look(Refused { all, full: 0 }).overloaded));
    }
}
