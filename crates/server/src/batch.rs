//! The queue in front of the compute thread: queries of different clients, answered in one pass
//! over the table.
//!
//! Reading the table from memory is the bottleneck of a pass, and several queries share one
//! reading. So queries for the same table and role are collected and answered together:
//!
//! - The first query of a batch waits at most the *window* for others to join. Under light load a
//!   query therefore takes a pass and a window; the two milliseconds gain nothing there. A window
//!   of zero costs nothing, and no query waits for others.
//! - A full batch does not wait. Nor does a batch of a scheme whose queries share nothing
//!   (`ErasedServer::shares_passes`).
//! - While a pass runs, queries gather anyway. The window counts from a query's arrival, so queries
//!   that arrived during a pass longer than the window start the next one at once. Under heavy load
//!   the window no longer matters: the load decides how large batches are.
//!
//! There is one compute thread, whatever the number of tables, because each pass gets all of the
//! machine: two at once would only share its memory bandwidth. Tables take turns by age: the batch
//! that has been due longest goes first, so every table gets its turn.
//!
//! Versions of tables come and go while the queue stays: it holds a lane only while queries wait in
//! it. When the last of them is answered, the lane is freed, if nothing else holds it.
//!
//! If a query's caller has gone (connection lost, deadline passed), the query is dropped when its
//! turn comes, before anything is computed. A query that does not parse gets an error of its own
//! and does not affect the others of its batch.

use crate::hosted::Condition;
use crate::observe::Metrics;
use crate::secret_bytes::SecretBytes;
use privet_core::{Error, Result};
use privet_schemes::contract::Role;
use privet_schemes::registry::ErasedServer;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Queries that may be answered together: those for one version of a table, one scheme and one
/// role.
pub(crate) struct Lane {
    pub(crate) condition: Arc<Condition>,
    pub(crate) server: Arc<dyn ErasedServer>,
    pub(crate) role: Role,
}

#[derive(Clone, Copy)]
pub(crate) struct BatchSettings {
    pub(crate) window: Duration,
    pub(crate) max_batch: usize,
    pub(crate) queue_limit: usize,
}

/// The queue and its compute thread.
pub(crate) struct Batcher {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    settings: BatchSettings,
    metrics: Arc<Metrics>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// None is empty.
    queues: Vec<Queue>,
    waiting: usize,
    stopped: bool,
}

struct Queue {
    lane: Arc<Lane>,
    jobs: VecDeque<Job>,
}

struct Job {
    query: SecretBytes,
    arrived: Instant,
    reply: oneshot::Sender<Result<Vec<u8>>>,
}

impl Batcher {
    /// Starts the compute thread.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the system gives no thread.
    pub(crate) fn start(settings: BatchSettings, metrics: Arc<Metrics>) -> Result<Self> {
        let state = Mutex::new(State { queues: Vec::new(), waiting: 0, stopped: false });
        let shared = Arc::new(Shared { settings, metrics, state, changed: Condvar::new() });
        let compute = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("privet-compute".to_owned())
            .spawn(move || compute.run())
            .map_err(|source| {
                Error::unavailable("the system gives no thread to compute on").caused_by(source)
            })?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Queues a query for `lane` and waits for its answer. Dropping the future withdraws the query.
    ///
    /// # Errors
    /// [`Blame::Exhausted`](privet_core::Blame::Exhausted) if too many queries wait already; the
    /// scheme's error about the query itself.
    pub(crate) async fn answer(&self, lane: &Arc<Lane>, query: SecretBytes) -> Result<Vec<u8>> {
        let answer = self.shared.enqueue(lane, query)?;
        answer.await.map_err(|_| {
            Error::unavailable("the server is stopping; ask again later or ask another one")
        })?
    }

    /// Stops the compute thread after the current pass, and waits for it. Queries that still wait
    /// get an error.
    pub(crate) fn stop(&self) {
        let unanswered = {
            let mut state = self.shared.lock();
            state.stopped = true;
            state.waiting = 0;
            self.shared.metrics.queue_depth.set(0);
            std::mem::take(&mut state.queues)
        };
        drop(unanswered);
        self.shared.changed.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the compute thread panicked");
        }
    }
}

impl Drop for Batcher {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock, so a poisoned state is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enqueue(
        &self,
        lane: &Arc<Lane>,
        query: SecretBytes,
    ) -> Result<oneshot::Receiver<Result<Vec<u8>>>> {
        let (reply, answer) = oneshot::channel();
        let mut state = self.lock();
        if state.stopped {
            // This drops the reply, and the caller then sees a server that is stopping.
            return Ok(answer);
        }
        if state.waiting >= self.settings.queue_limit {
            drop(state);
            self.metrics.shed("queue");
            return Err(Error::exhausted(format!(
                "the server is busy: {} queries are waiting already; try again in a moment",
                self.settings.queue_limit
            )));
        }
        state.waiting += 1;
        let job = Job { query, arrived: Instant::now(), reply };
        match state.queues.iter_mut().find(|queue| Arc::ptr_eq(&queue.lane, lane)) {
            Some(queue) => queue.jobs.push_back(job),
            None => state.queues.push(Queue { lane: Arc::clone(lane), jobs: [job].into() }),
        }
        self.metrics.queue_depth.set(state.waiting as i64);
        drop(state);
        self.changed.notify_all();
        Ok(answer)
    }

    fn run(&self) {
        while let Some((lane, jobs)) = self.next_batch() {
            if !jobs.is_empty() {
                self.compute(&lane, jobs);
            }
        }
    }

    /// Waits until a batch is due and takes it: those of its queries whose callers are still there.
    /// `None` once stopped.
    fn next_batch(&self) -> Option<(Arc<Lane>, Vec<Job>)> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            state = match self.next_due(&state) {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some((place, due)) => {
                    let wait = due.saturating_duration_since(Instant::now());
                    if wait.is_zero() {
                        return Some(self.take(&mut state, place));
                    }
                    self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// The queue whose batch is due first, and when.
    fn next_due(&self, state: &State) -> Option<(usize, Instant)> {
        let due = |Queue { lane, jobs }: &Queue| {
            let full = jobs.len() >= self.settings.max_batch;
            let waits = !full && lane.server.shares_passes();
            let job = jobs.front()?;
            Some(if waits { job.arrived + self.settings.window } else { job.arrived })
        };
        let queues = state.queues.iter().enumerate();
        let dues = queues.filter_map(|(place, queue)| Some((place, due(queue)?)));
        dues.min_by_key(|(_, due)| *due)
    }

    /// The oldest queries of a queue whose callers are still there, at most a batch.
    fn take(&self, state: &mut State, place: usize) -> (Arc<Lane>, Vec<Job>) {
        let mut taken = Vec::new();
        let Queue { lane, jobs } = &mut state.queues[place];
        while taken.len() < self.settings.max_batch
            && let Some(job) = jobs.pop_front()
        {
            state.waiting -= 1;
            if !job.reply.is_closed() {
                taken.push(job);
            }
        }
        self.metrics.queue_depth.set(state.waiting as i64);
        let (lane, emptied) = (Arc::clone(lane), jobs.is_empty());
        if emptied {
            // Drop the last hold on a lane where no thread waits for the lock.
            state.queues.remove(place);
        }
        (lane, taken)
    }

    fn compute(&self, lane: &Lane, jobs: Vec<Job>) {
        let started = Instant::now();
        let queries: Vec<&[u8]> = jobs.iter().map(|job| &*job.query).collect();
        // A panic here is a bug of a scheme. Only these queries may lose their answers; the server
        // must go on.
        let answers = catch_unwind(AssertUnwindSafe(|| lane.server.answer(lane.role, &queries)));
        let Ok(answers) = answers else {
            tracing::error!(
                table = lane.condition.table(),
                role = lane.role.0,
                queries = jobs.len(),
                "a pass panicked; its queries are not answered"
            );
            let bug = || Error::internal("the server failed to answer; this is a bug in it");
            jobs.into_iter().for_each(|job| drop(job.reply.send(Err(bug()))));
            return;
        };
        let elapsed = started.elapsed();
        self.metrics.pass(lane.condition.table(), jobs.len(), elapsed);
        tracing::debug!(
            table = lane.condition.table(),
            role = lane.role.0,
            queries = jobs.len(),
            seconds = elapsed.as_secs_f64(),
            "pass"
        );
        // Damage that is found before the pass ends counts for all its answers.
        let answers: Vec<_> =
            answers.into_iter().map(|answer| lane.condition.or_end(answer)).collect();
        for (job, answer) in jobs.into_iter().zip(answers) {
            let answer = lane.condition.check().and(answer);
            // The caller may have gone meanwhile.
            let _ = job.reply.send(answer);
        }
    }
}

#[cfg(test)]
mod tests;
