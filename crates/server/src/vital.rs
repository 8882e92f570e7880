//! Work without which a server does not do what it promises.
//!
//! A task or thread that panics ends alone. Nobody would notice: clients would get answers from a
//! table that is no longer updated, or a signal would do nothing. So when one of these ends by a
//! panic, `/healthz` says `failed`, and the server stops with an error.

use crate::observe::Health;
use privet_core::{Error, Result};
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// The vital work of one server.
#[derive(Clone)]
pub(crate) struct Vital {
    health: Arc<Health>,
    stop: CancellationToken,
    failed: Arc<OnceLock<&'static str>>,
}

impl Vital {
    /// Fails by `health`, and ends the server by `stop`.
    pub(crate) fn new(health: Arc<Health>, stop: CancellationToken) -> Self {
        Self { health, stop, failed: Arc::default() }
    }

    /// Watches the task or thread that holds the guard. `does` says what its work is, as in "the
    /// part of the server that …".
    pub(crate) fn guard(&self, does: &'static str) -> VitalGuard {
        VitalGuard { vital: self.clone(), does }
    }

    /// Runs a task that is vital.
    pub(crate) fn spawn(
        &self,
        does: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let guard = self.guard(does);
        tokio::spawn(async move {
            task.await;
            drop(guard);
        });
    }

    /// Checks that nothing vital has failed.
    ///
    /// # Errors
    /// [`Blame::Internal`](privet_core::Blame::Internal) if something has.
    pub(crate) fn check(&self) -> Result<()> {
        match self.failed.get() {
            None => Ok(()),
            Some(does) => Err(Error::internal(format!(
                "the part of the server that {does} has failed because of a bug in this program, \
                 so the server has stopped: start it again"
            ))),
        }
    }
}

/// Ends the server with an error if a panic drops it.
#[must_use = "it watches as long as it is held"]
pub struct VitalGuard {
    vital: Vital,
    does: &'static str,
}

impl Drop for VitalGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Before anything else, which may fail as well.
            let _ = self.vital.failed.set(self.does);
            self.vital.health.set(Health::FAILED);
            self.vital.stop.cancel();
        }
    }
}

#[cfg(test)]
impl Default for Vital {
    /// Of no server.
    fn default() -> Self {
        Self::new(Arc::new(Health::new()), CancellationToken::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_in_vital_work_stops_the_server_and_its_end_does_not() {
        let health = Arc::new(Health::new());
        let stop = CancellationToken::new();
        let vital = Vital::new(Arc::clone(&health), stop.clone());
        health.set(Health::READY);
        vital.spawn("ends", async {});
        drop(vital.guard("is not needed any more"));
        tokio::task::yield_now().await;
        vital.check().unwrap();
        assert!(!stop.is_cancelled());

        vital.spawn("waits", async { panic!("planted") });
        stop.cancelled().await;
        let error = vital.check().unwrap_err().to_string();
        assert!(error.contains("the server that waits has failed"), "{error}");
        // That it ends says less than why.
        health.set(Health::DRAINING);
        assert_eq!(health.word(), "failed\n");
    }
}
