//! Hints that are computed for one client, in reply to a request of its own.
//!
//! A reply costs as much as thousands of answers: up to seconds of a processor, and megabytes. So
//! these requests do not go through the queue of the queries:
//!
//! - Admission accepts a fixed number of them, counted from when they have arrived until the last
//!   of the reply has been sent, and refuses more. That bounds the replies in memory.
//! - A fixed number of the accepted ones is computed at once, each on a thread that may block; the
//!   others wait in order of arrival.
//! - Queries have their own compute thread, which is never used here. While hints are computed, the
//!   system shares the processors among these threads.
//!
//! If a client goes away while it waits, its place is free at once. A computation that has begun
//! runs to its end, and holds its turn until then: a client cannot have more computed by leaving
//! and coming back.
//!
//! A request holds what the other servers of its scheme must not learn. It is not logged, and the
//! server [erases](SecretBytes) its own copy when it has served or refused the request.

use crate::hosted::{Condition, Version, retired};
use crate::observe::{Metrics, OpenGuard};
use crate::secret_bytes::SecretBytes;
use crate::seldom::Seldom;
use privet_core::{Error, Result};
use privet_schemes::contract::Role;
use privet_schemes::registry::ErasedServer;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

/// The turns to compute, and the running computations.
pub(crate) struct Preparations {
    turns: Arc<Semaphore>,
    running: TaskTracker,
    metrics: Arc<Metrics>,
}

impl Preparations {
    /// With `at_once` turns.
    pub(crate) fn new(at_once: usize, metrics: Arc<Metrics>) -> Self {
        Self { turns: Arc::new(Semaphore::new(at_once)), running: TaskTracker::new(), metrics }
    }

    /// Waits for a turn and computes the reply. Dropping the future withdraws the request while it
    /// waits.
    ///
    /// # Errors
    /// The scheme's error about the request;
    /// [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) if the version was retired
    /// before its turn;
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the server is stopping.
    pub(crate) async fn reply(
        &self,
        version: Arc<Version>,
        role: Role,
        request: SecretBytes,
    ) -> Result<Vec<u8>> {
        let waiting = OpenGuard::new(&self.metrics.preparations_waiting);
        // A version that is retired meanwhile must be freed, however many wait.
        let waits_for = Arc::downgrade(&version);
        drop(version);
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| stopping())?;
        let version = waits_for.upgrade().ok_or_else(retired)?;
        let computation = Computation {
            condition: Arc::clone(&version.condition),
            server: Arc::clone(&version.server),
            role,
            request,
            running: OpenGuard::new(&self.metrics.preparations_running),
            metrics: Arc::clone(&self.metrics),
            turn,
        };
        drop(waiting);
        self.running.spawn_blocking(move || computation.run()).await.map_err(|_| stopping())?
    }

    /// Refuses all waiting requests, and waits for the running computations.
    pub(crate) async fn stop(&self) {
        self.turns.close();
        self.running.close();
        self.running.wait().await;
    }
}

fn stopping() -> Error {
    Error::unavailable("the server is stopping; ask again later or ask another one")
}

/// A request whose turn it is.
struct Computation {
    condition: Arc<Condition>,
    server: Arc<dyn ErasedServer>,
    role: Role,
    request: SecretBytes,
    metrics: Arc<Metrics>,
    // Released when the computation ends, whether or not its caller still waits.
    running: OpenGuard,
    turn: OwnedSemaphorePermit,
}

impl Computation {
    fn run(self) -> Result<Vec<u8>> {
        let Self { condition, server, role, request, metrics, running, turn } = self;
        let table = condition.table();
        let started = Instant::now();
        // A panic here is a bug of a scheme. Only this request may lose its reply.
        let reply = catch_unwind(AssertUnwindSafe(|| server.prepare(role, &request)));
        drop(request);
        let elapsed = started.elapsed();
        let Ok(reply) = reply else {
            static LOGGED: Seldom = Seldom::new();
            if LOGGED.is_due() {
                tracing::error!(table, role = role.0, "computing hints panicked");
            }
            return Err(Error::internal("the server failed to reply; this is a bug in it"));
        };
        if reply.is_ok() {
            metrics.preparation(table, elapsed);
            tracing::debug!(
                table,
                role = role.0,
                seconds = elapsed.as_secs_f64(),
                "hints computed"
            );
        }
        drop((running, turn));
        condition.or_end(reply).and_then(|reply| condition.check().map(|()| reply))
    }
}

#[cfg(test)]
mod tests;
