//! Where queries become answers: at once, if a core is free, and otherwise from a queue.
//!
//! Some schemes read the whole table for an answer. Reading it from memory is the bottleneck of
//! such a *pass*, and each pass gets all of the machine: two at once would only share its memory
//! bandwidth. So there is one pass at a time, and queries for the same table and role that wait
//! meanwhile are answered together by the next one. A query that finds no pass running does not
//! wait for others: batches are what gathers while a pass runs, so the load decides how large they
//! are. With a *window* the first query of a batch waits that long for others, from its arrival.
//!
//! The answers of other schemes read a small part of the table, and share nothing
//! (`ErasedServer::shares_passes`). They are computed one by one, on as many threads as the server
//! may use, beside a pass.
//!
//! An answer that takes less time than a hand-over to another thread is worth is computed on the
//! thread that received the query: see [`Pace`].
//!
//! Lanes take turns, however much waits in one of them, so every table gets its turn. Within a lane
//! the clients' addresses take turns: a batch takes one request of each, then one more of each. So
//! who asks a thousand queries at once waits for them, and others do not. Nor do they wait for long
//! passes: while several addresses ask, one can fill only its share of a batch.
//!
//! Versions of tables come and go while the queue stays: it holds a lane only while queries wait in
//! it. When the last of them is answered, the lane is freed, if nothing else holds it.
//!
//! A request may carry several queries. They wait in parts of such a share. If its caller has
//! gone (connection lost, deadline passed), it is dropped when its turn comes, before anything is
//! computed. A request with a query that does not parse gets an error of its own and does not
//! affect the others of its batch.

mod queue;

use crate::admission::Peer;
use crate::hosted::Condition;
use crate::limits::Cap;
use crate::observe::Metrics;
use crate::secret_bytes::SecretBytes;
use crate::seldom::Seldom;
use crate::vital::Vital;
use privet_core::{Error, Result};
use privet_schemes::contract::Role;
use privet_schemes::registry::ErasedServer;
use queue::{Job, Queue, Turn};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
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
    query_len: usize,
    pace: Pace,
}

impl Lane {
    /// A lane for queries of `query_len` bytes.
    pub(crate) fn new(
        condition: Arc<Condition>,
        server: Arc<dyn ErasedServer>,
        role: Role,
        query_len: usize,
    ) -> Self {
        Self { condition, server, role, query_len, pace: Pace::default() }
    }

    /// The queries of a request.
    pub(crate) fn queries<'a>(&self, request: &'a [u8]) -> std::slice::Chunks<'a, u8> {
        request.chunks(self.query_len.max(1))
    }
}

/// How long the passes of a lane took lately: each, if they answer several queries together, and
/// otherwise for each query. It follows from the scheme's parameters and from the machine, not from
/// what is asked: a server cannot tell that.
struct Pace(AtomicU64);

impl Default for Pace {
    /// Nothing is known yet, so it counts as slow.
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl Pace {
    /// Answers that take longer are handed over to a compute thread: on a thread that receives
    /// requests they would hold up the other connections.
    const SHORT: Duration = Duration::from_micros(100);

    /// Whether `passes` of them are short together.
    fn is_short(&self, passes: usize) -> bool {
        let each = self.0.load(Ordering::Relaxed);
        each.saturating_mul(passes as u64) < Self::SHORT.as_nanos() as u64
    }

    /// Notes how long a pass took. An eighth of each is mixed in, so one pass that the system
    /// interrupts changes little.
    fn note(&self, elapsed: Duration) {
        let elapsed = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX >> 4);
        let mixed = match self.0.load(Ordering::Relaxed) {
            u64::MAX => elapsed,
            before => before - before / 8 + elapsed / 8,
        };
        self.0.store(mixed, Ordering::Relaxed);
    }
}

#[derive(Clone, Copy)]
pub(crate) struct BatchSettings {
    /// Compute threads.
    pub(crate) threads: usize,
    pub(crate) window: Duration,
    pub(crate) max_batch: usize,
    pub(crate) queries: Cap,
}

impl BatchSettings {
    /// How many queries of a batch one of several peers may have.
    fn share(&self) -> usize {
        (self.max_batch * self.queries.of_peer()).div_ceil(self.queries.total)
    }
}

/// The queue and its compute threads.
pub(crate) struct Batcher {
    shared: Arc<SharedBatcher>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct SharedBatcher {
    settings: BatchSettings,
    metrics: Arc<Metrics>,
    state: Mutex<BatcherState>,
    changed: Condvar,
}

struct BatcherState {
    /// None is empty.
    queues: Vec<Queue>,
    waiting: usize,
    /// Queries that wait, of those peers that have any.
    by_peer: HashMap<Peer, usize>,
    /// How many batches were taken.
    turn: u64,
    /// Who asked last, and when somebody asked who was not the last.
    last: Option<Peer>,
    others_at: Option<Instant>,
    /// Whether a pass runs that shares the whole machine.
    passing: bool,
    stopped: bool,
}

/// For so long after somebody else asked, an address is taken for one of several.
const SEVERAL: Duration = Duration::from_secs(1);

impl BatcherState {
    fn asks(&mut self, peer: Peer) {
        if self.last.replace(peer).is_some_and(|last| last != peer) {
            self.others_at = Some(Instant::now());
        }
    }

    fn leaves(&mut self, peer: Peer, job: &Job) {
        self.waiting -= job.count;
        if let Some(waiting) = self.by_peer.get_mut(&peer) {
            *waiting -= job.count;
            if *waiting == 0 {
                self.by_peer.remove(&peer);
            }
        }
    }

    /// Takes the youngest job of the peer that has most queries waiting, if that is more than
    /// `than`.
    fn evict(&mut self, than: usize) -> Option<Job> {
        let largest = self.by_peer.iter().max_by_key(|(_, waiting)| **waiting);
        let (peer, _) = largest.filter(|(_, waiting)| **waiting > than)?;
        let peer = *peer;
        let queues = self.queues.iter().enumerate();
        let places = queues.filter_map(|(place, queue)| Some((queue.youngest(peer)?, place)));
        let (_, place) = places.max()?;
        let job = self.queues[place].pop_youngest(peer)?;
        self.leaves(peer, &job);
        if self.queues[place].is_empty() {
            self.queues.remove(place);
        }
        Some(job)
    }
}

impl Batcher {
    /// Starts the compute threads.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the system gives no thread.
    pub(crate) fn start(
        settings: BatchSettings,
        metrics: Arc<Metrics>,
        vital: &Vital,
    ) -> Result<Self> {
        let state = Mutex::new(BatcherState {
            queues: Vec::new(),
            waiting: 0,
            by_peer: HashMap::new(),
            turn: 0,
            last: None,
            others_at: None,
            passing: false,
            stopped: false,
        });
        let shared = Arc::new(SharedBatcher { settings, metrics, state, changed: Condvar::new() });
        let batcher = Self { shared, threads: Mutex::new(Vec::new()) };
        for _ in 0..settings.threads.max(1) {
            let compute = Arc::clone(&batcher.shared);
            let guard = vital.guard("computes answers");
            let thread = std::thread::Builder::new()
                .name("privet-compute".to_owned())
                .spawn(move || {
                    let _guard = guard;
                    compute.run();
                })
                .map_err(|source| {
                    Error::unavailable("the system gives no thread to compute on").caused_by(source)
                })?;
            batcher.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        Ok(batcher)
    }

    /// Answers the queries of a request of `peer` for `lane`, one after the other. Dropping the
    /// future withdraws them.
    ///
    /// # Errors
    /// [`Blame::Exhausted`](privet_core::Blame::Exhausted) if too many queries wait already; the
    /// scheme's error about one of the queries.
    pub(crate) async fn answer(
        &self,
        lane: &Arc<Lane>,
        peer: Peer,
        queries: SecretBytes,
    ) -> Result<Vec<u8>> {
        let count = lane.queries(&queries).len();
        let passes = match lane.server.shares_passes() {
            true => count.div_ceil(self.shared.settings.max_batch),
            false => count,
        };
        if lane.pace.is_short(passes) && self.shared.begins_at_once(lane, peer) {
            let answers = self.shared.compute(lane, lane.queries(&queries));
            self.shared.ends(lane);
            return together(answers.into_iter());
        }
        let mut all = Vec::new();
        for answer in self.shared.enqueue(lane, peer, queries)? {
            let answers = answer.await.map_err(|_| {
                Error::unavailable("the server is stopping; ask again later or ask another one")
            })??;
            match all.is_empty() {
                true => all = answers,
                false => all.extend(answers),
            }
        }
        Ok(all)
    }

    /// Stops the compute threads after what they compute now, and waits for them. Queries that
    /// still wait get an error.
    pub(crate) fn stop(&self) {
        let unanswered = {
            let mut state = self.shared.lock();
            state.stopped = true;
            state.waiting = 0;
            state.by_peer.clear();
            self.shared.metrics.queue_depth.set(0);
            std::mem::take(&mut state.queues)
        };
        drop(unanswered);
        self.shared.changed.notify_all();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a compute thread panicked");
            }
        }
    }
}

impl Drop for Batcher {
    fn drop(&mut self) {
        self.stop();
    }
}

impl SharedBatcher {
    fn lock(&self) -> MutexGuard<'_, BatcherState> {
        // No code that can panic runs under the lock, so a poisoned state is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the queries into the queue, in parts that each fit into a peer's share of a batch, and
    /// returns where their answers will come.
    fn enqueue(
        &self,
        lane: &Arc<Lane>,
        peer: Peer,
        queries: SecretBytes,
    ) -> Result<Vec<oneshot::Receiver<Result<Vec<u8>>>>> {
        let count = lane.queries(&queries).len();
        let mut evicted = Vec::new();
        let mut state = self.lock();
        let own = state.by_peer.get(&peer).copied().unwrap_or(0);
        state.asks(peer);
        let may_wait = own < self.settings.queries.of_peer();
        if state.waiting < self.settings.queries.total && !may_wait {
            drop(state);
            return Err(self.too_many("peer", " of this address", self.settings.queries.of_peer()));
        }
        while state.waiting >= self.settings.queries.total {
            match may_wait.then(|| state.evict(own + count)).flatten() {
                Some(job) => evicted.push(job),
                None => {
                    drop(state);
                    return Err(self.too_many("total", "", self.settings.queries.total));
                }
            }
        }
        // Without a queue the replies are dropped, and the caller sees a server that is stopping.
        let answers = match state.stopped {
            true => vec![oneshot::channel().1],
            false => self.push(&mut state, lane, peer, queries),
        };
        drop(state);
        for job in evicted {
            self.metrics.shed("queries", "evicted");
            let _ = job.reply.send(Err(Error::exhausted(
                "the server is busy, and gave the place of this query to another client; try again \
                 in a moment",
            )));
        }
        self.changed.notify_one();
        Ok(answers)
    }

    fn push(
        &self,
        state: &mut BatcherState,
        lane: &Arc<Lane>,
        peer: Peer,
        queries: SecretBytes,
    ) -> Vec<oneshot::Receiver<Result<Vec<u8>>>> {
        let found = state.queues.iter().position(|queue| Arc::ptr_eq(&queue.lane, lane));
        let place = found.unwrap_or_else(|| {
            let turn = Turn { after: state.turn, served: false };
            state.queues.push(Queue::new(Arc::clone(lane), turn));
            state.queues.len() - 1
        });
        let arrived = Instant::now();
        let request = Arc::new(queries);
        let part_len = self.settings.share().saturating_mul(lane.query_len.max(1));
        let mut answers = Vec::new();
        for begin in (0..request.len()).step_by(part_len) {
            let queries = begin..request.len().min(begin.saturating_add(part_len));
            let count = lane.queries(&request[queries.clone()]).len();
            let (reply, answer) = oneshot::channel();
            answers.push(answer);
            state.waiting += count;
            *state.by_peer.entry(peer).or_default() += count;
            let request = Arc::clone(&request);
            state.queues[place].push(peer, Job { request, queries, count, arrived, reply });
        }
        self.metrics.queue_depth.set(state.waiting as i64);
        answers
    }

    fn too_many(&self, why: &'static str, whose: &str, most: usize) -> Error {
        self.metrics.shed("queries", why);
        Error::exhausted(format!(
            "the server is busy: {most} queries{whose} are waiting already; try again in a moment"
        ))
    }

    /// Whether a query may be answered now, by the thread that received it. If so, that thread says
    /// with [`ends`](Self::ends) when it is done.
    fn begins_at_once(&self, lane: &Lane, peer: Peer) -> bool {
        let mut state = self.lock();
        state.asks(peer);
        if state.stopped {
            return false;
        }
        if lane.server.shares_passes() {
            if state.passing || !state.queues.is_empty() || !self.settings.window.is_zero() {
                return false;
            }
            state.passing = true;
        }
        true
    }

    /// A batch of `lane` is answered.
    fn ends(&self, lane: &Lane) {
        if lane.server.shares_passes() {
            let mut state = self.lock();
            state.passing = false;
            let waits = !state.queues.is_empty();
            drop(state);
            if waits {
                self.changed.notify_one();
            }
        }
    }

    fn run(&self) {
        while let Some((lane, jobs)) = self.next_batch() {
            let queries = jobs.iter();
            let queries = queries.flat_map(|job| lane.queries(&job.request[job.queries.clone()]));
            let mut answers = self.compute(&lane, queries).into_iter();
            // The next pass need not wait until the answers are handed out.
            self.ends(&lane);
            for job in jobs {
                // The caller may have gone meanwhile.
                let _ = job.reply.send(together(answers.by_ref().take(job.count)));
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
                        let batch = self.take(&mut state, place);
                        let others_wait = !state.queues.is_empty();
                        drop(state);
                        if others_wait {
                            self.changed.notify_one();
                        }
                        return Some(batch);
                    }
                    self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// The queue whose batch goes next, of those that may be answered now, and when it is due.
    fn next_due(&self, state: &BatcherState) -> Option<(usize, Instant)> {
        let due = |queue: &Queue| {
            let shares = queue.lane.server.shares_passes();
            if shares && state.passing {
                return None;
            }
            let waits = shares && queue.waiting < self.settings.max_batch;
            let oldest = queue.oldest()?;
            Some(if waits { oldest + self.settings.window } else { oldest })
        };
        let now = Instant::now();
        let queues = state.queues.iter().enumerate();
        let dues = queues.filter_map(|(place, queue)| Some((place, due(queue)?)));
        // Of those that are due, the one whose turn it is; otherwise the one that is due first.
        let turn = |place: usize| state.queues[place].turn;
        dues.min_by_key(|(place, due)| match *due <= now {
            true => (false, turn(*place), *due),
            false => (true, Turn::default(), *due),
        })
    }

    /// How many queries of a batch one peer may have now.
    fn share(&self, state: &BatcherState) -> usize {
        match state.others_at {
            Some(then) if then.elapsed() < SEVERAL => self.settings.share(),
            _ => self.settings.max_batch,
        }
    }

    /// Jobs of a queue whose callers are still there, of each peer in its turn: at most a batch of
    /// queries, or one job if queries share nothing.
    fn take(&self, state: &mut BatcherState, place: usize) -> (Arc<Lane>, Vec<Job>) {
        let mut taken = Vec::new();
        let lane = Arc::clone(&state.queues[place].lane);
        let shares = lane.server.shares_passes();
        state.passing |= shares;
        state.turn += 1;
        state.queues[place].turn = Turn { after: state.turn, served: true };
        let mut room = self.settings.max_batch;
        let share = self.share(state);
        let mut of_peer: HashMap<Peer, usize> = HashMap::new();
        while room > 0
            && (shares || taken.is_empty())
            && let Some((peer, job)) = state.queues[place]
                .pop(|peer| room.min(share - of_peer.get(&peer).copied().unwrap_or(0)))
        {
            state.leaves(peer, &job);
            if !job.reply.is_closed() {
                room -= job.count;
                *of_peer.entry(peer).or_default() += job.count;
                taken.push(job);
            }
        }
        self.metrics.queue_depth.set(state.waiting as i64);
        if state.queues[place].is_empty() {
            // Drop the last hold on a lane where no thread waits for the lock.
            state.queues.remove(place);
        }
        (lane, taken)
    }

    /// The answers to `queries`, in as many passes as they need.
    fn compute<'a>(
        &self,
        lane: &Lane,
        queries: impl Iterator<Item = &'a [u8]>,
    ) -> Vec<Result<Vec<u8>>> {
        let queries: Vec<_> = queries.collect();
        queries.chunks(self.settings.max_batch).flat_map(|batch| self.pass(lane, batch)).collect()
    }

    fn pass(&self, lane: &Lane, queries: &[&[u8]]) -> Vec<Result<Vec<u8>>> {
        let started = Instant::now();
        // A panic here is a bug of a scheme. Only these queries may lose their answers; the server
        // must go on.
        let answers = catch_unwind(AssertUnwindSafe(|| lane.server.answer(lane.role, queries)));
        let Ok(answers) = answers else {
            static LOGGED: Seldom = Seldom::new();
            if LOGGED.is_due() {
                tracing::error!(
                    table = lane.condition.table(),
                    role = lane.role.0,
                    queries = queries.len(),
                    "a pass panicked; its queries are not answered"
                );
            }
            let bug = |_: &&[u8]| {
                Err(Error::internal("the server failed to answer; this is a bug in it"))
            };
            return queries.iter().map(bug).collect();
        };
        let elapsed = started.elapsed();
        let passes = if lane.server.shares_passes() { 1 } else { queries.len() };
        lane.pace.note(elapsed / u32::try_from(passes).unwrap_or(u32::MAX));
        self.metrics.pass(lane.condition.table(), queries.len(), elapsed);
        tracing::debug!(
            table = lane.condition.table(),
            role = lane.role.0,
            queries = queries.len(),
            seconds = elapsed.as_secs_f64(),
            "pass"
        );
        // Damage that is found before the pass ends counts for all its answers.
        let answers: Vec<_> =
            answers.into_iter().map(|answer| lane.condition.or_end(answer)).collect();
        answers.into_iter().map(|answer| lane.condition.check().and(answer)).collect()
    }
}

/// The answers to the queries of a request, one after the other.
fn together(mut answers: impl Iterator<Item = Result<Vec<u8>>>) -> Result<Vec<u8>> {
    let mut all = answers.next().unwrap_or_else(|| Ok(Vec::new()))?;
    for answer in answers {
        all.extend(answer?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
