//! Hints that are computed for one client, in reply to a request of its own.
//!
//! A reply costs what thousands of answers cost: up to seconds of a processor, and megabytes. So
//! these requests go past the queue of the queries:
//!
//! - Admission lets in a fixed number of them, from when they have arrived until the last of the
//!   reply has been sent, and refuses more. That bounds the replies in memory.
//! - Of those that are in, a fixed number is computed at once, each on a thread that may block; the
//!   others wait in the order in which they came.
//! - Queries have their compute thread, which nothing here takes from them. While hints are
//!   computed, the system shares the processors among these threads.
//!
//! A client that goes away while it waits has its place free at once. A computation that has begun
//! is brought to its end, and holds its turn until then: a client cannot have more computed by
//! leaving and coming back.
//!
//! A request says what the other servers of its scheme must not learn. It is not logged, and the
//! server's own copy is [erased](SecretBytes) when it has served or was refused.

use crate::hosted::{Condition, Version};
use crate::observe::{Metrics, Open};
use crate::secret_bytes::SecretBytes;
use privet_core::{Error, Result};
use privet_schemes::contract::Role;
use privet_schemes::registry::ErasedServer;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

/// The turns to compute, and what is being computed.
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

    /// Waits for a turn and computes the reply. Dropping the future gives up waiting.
    ///
    /// # Errors
    /// What the scheme says of the request; [`Blame::Unavailable`](privet_core::Blame::Unavailable)
    /// if the server is stopping.
    pub(crate) async fn reply(
        &self,
        version: Arc<Version>,
        role: Role,
        request: SecretBytes,
    ) -> Result<Vec<u8>> {
        let waiting = Open::new(&self.metrics.preparations_waiting);
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| stopping())?;
        let computation = Computation {
            condition: Arc::clone(&version.condition),
            server: Arc::clone(&version.server),
            role,
            request,
            running: Open::new(&self.metrics.preparations_running),
            metrics: Arc::clone(&self.metrics),
            turn,
        };
        drop(waiting);
        self.running.spawn_blocking(move || computation.run()).await.map_err(|_| stopping())?
    }

    /// Refuses whatever waits, and waits for what is being computed.
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
    // Given back when the computation ends, whether anybody waits for it still or not.
    running: Open,
    turn: OwnedSemaphorePermit,
}

impl Computation {
    fn run(self) -> Result<Vec<u8>> {
        let Self { condition, server, role, request, metrics, running, turn } = self;
        let table = condition.table();
        let started = Instant::now();
        // A panic here is a bug of a scheme. It must cost this request its reply, and nobody
        // anything else.
        let reply = catch_unwind(AssertUnwindSafe(|| server.prepare(role, &request)));
        drop(request);
        let elapsed = started.elapsed();
        let Ok(reply) = reply else {
            tracing::error!(table, role = role.0, "computing hints panicked");
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
