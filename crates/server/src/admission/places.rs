//! Who holds what of the server, and who has to leave.
//!
//! Everything that a client makes the server hold has a place in a pool: a connection, a request
//! whose body is being read, a request that is being answered until the last of its response is
//! sent. Some rules keep strangers from taking the service from all others:
//!
//! - Each pool has a cap for one connection, for one [peer](Peer) and for all together. The bytes
//!   of queries and answers have one as well ([`Pool::AnswerBytes`]): some answers have megabytes.
//! - If all places of a pool are taken, the peer that holds most of them loses its slowest one to
//!   the newcomer, unless the newcomer would then hold as many itself.
//! - Otherwise somebody who holds as many as the newcomer will, and whose place is idle, loses it:
//!   a client that does not read its response, or a connection on which nothing is asked. So those
//!   who hold one place each cannot keep others out, however many they are. If nobody is idle, the
//!   newcomer is refused.
//! - A [sweep](Places::sweep) ends what takes too long: bodies that do not arrive, answers that do
//!   not begin, responses that are not read.
//!
//! A request has one place for as long as it lives. It begins among the bodies, and moves to the
//! pool of its method when all of it has arrived: until then it costs its sender as much as the
//! server, and must not take a place from others.

use super::peer::Peer;
use crate::connections::ConnectionHandle;
use crate::limits::{Cap, Limits};
use crate::observe::Metrics;
use crate::vital::Vital;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A place is idle after its client has read below the least rate for this long.
const IDLE: Duration = Duration::from_secs(2);

/// A bounded resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pool {
    Connections,
    Bodies,
    Describes,
    Answers,
    /// Bytes that requests with queries hold: those of the queries and of their answers.
    AnswerBytes,
    Fetches,
    Preparations,
}

impl Pool {
    const COUNT: usize = 7;

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Bodies => "bodies",
            Self::Describes => "describes",
            Self::Answers => "answers",
            Self::AnswerBytes => "answer-bytes",
            Self::Fetches => "fetches",
            Self::Preparations => "preparations",
        }
    }

    fn cap(self, limits: &Limits) -> Cap {
        match self {
            Self::Connections => limits.connections,
            Self::Bodies => limits.bodies,
            Self::Describes => limits.describes,
            Self::Answers => limits.answers,
            Self::AnswerBytes => limits.answer_bytes,
            Self::Fetches => limits.fetches,
            Self::Preparations => limits.preparations,
        }
    }
}

/// How much of each pool is taken: places, or bytes.
type Counts = [usize; Pool::COUNT];

/// Whose cap is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    Total,
    Peer,
    Connection,
}

/// There is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) pool: Pool,
    pub(crate) reached: Reached,
    pub(crate) limit: usize,
}

/// Why somebody has to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ousted {
    /// Others need the place, and this peer holds most.
    Crowded,
    /// The body does not arrive.
    SlowBody,
    /// The answer does not come in time.
    Late,
    /// The response is not read.
    SlowReader,
}

pub(crate) struct Places {
    limits: Limits,
    metrics: Arc<Metrics>,
    state: Mutex<PlacesState>,
}

#[derive(Default)]
struct PlacesState {
    next_id: u64,
    holders: HashMap<u64, Holder>,
    total: Counts,
    /// Only those that hold something.
    by_peer: HashMap<Peer, Counts>,
    /// Only those that hold something besides themselves.
    by_connection: HashMap<u64, Counts>,
    /// Of all that are among the bodies.
    body_bytes: u64,
}

struct Holder {
    pool: Pool,
    /// What it holds of [`Pool::AnswerBytes`].
    answer_bytes: usize,
    client: ConnectionHandle,
    since: Instant,
    seat: Arc<Seat>,
    /// Tells a request that it has to leave, as long as no response has begun.
    told: Option<oneshot::Sender<Ousted>>,
    /// What a sweep found: when, and how many bytes.
    seen: Option<(Instant, u64)>,
    /// The same, for what counts as idle.
    seen_lately: Option<(Instant, u64)>,
    /// Whether the last sweep found that its client does not read.
    idle: bool,
}

/// What holder and pool both know.
#[derive(Default)]
struct Seat {
    /// Bytes received while a body or a connection is read, and bytes sent of a response.
    bytes: AtomicU64,
    /// Whether the response has begun.
    responding: AtomicBool,
    /// Whether the response waits for its client, and not for the server.
    clients_turn: AtomicBool,
}

impl Seat {
    fn is_clients_turn(&self) -> bool {
        self.clients_turn.load(Ordering::Relaxed)
    }
}

impl Holder {
    fn holds(&self, pool: Pool) -> bool {
        self.pool == pool || (pool == Pool::AnswerBytes && self.answer_bytes > 0)
    }

    /// Sends it the reason, or closes its connection if that is too late.
    fn oust(mut self, why: Ousted) {
        tracing::debug!(pool = self.pool.name(), ?why, "a place is taken back");
        if self.told.take().is_none_or(|told| told.send(why).is_err()) {
            self.client.close();
        }
    }

    /// The order in which those of one peer have to leave: first the slowest of those whose client
    /// has to do something.
    fn slowness(&self, now: Instant) -> impl Ord + use<> {
        let servers_turn = match self.pool {
            Pool::Connections | Pool::Bodies => false,
            _ => !self.seat.is_clients_turn(),
        };
        let age = now.saturating_duration_since(self.since);
        let bytes = u128::from(self.seat.bytes.load(Ordering::Relaxed));
        (servers_turn, bytes * 1000 / age.as_millis().max(1), Reverse(age))
    }
}

impl PlacesState {
    fn of_peer(&self, peer: Peer, pool: Pool) -> usize {
        self.by_peer.get(&peer).map_or(0, |counts| counts[pool as usize])
    }

    fn of_connection(&self, id: u64, pool: Pool) -> usize {
        self.by_connection.get(&id).map_or(0, |counts| counts[pool as usize])
    }

    fn count(&mut self, pool: Pool, amount: usize, client: &ConnectionHandle) {
        self.total[pool as usize] += amount;
        self.by_peer.entry(client.peer).or_default()[pool as usize] += amount;
        self.by_connection.entry(client.id).or_default()[pool as usize] += amount;
    }

    fn uncount(&mut self, holder: &Holder) {
        let client = &holder.client;
        let without = |counts: &mut Counts| {
            counts[holder.pool as usize] -= 1;
            counts[Pool::AnswerBytes as usize] -= holder.answer_bytes;
            counts.iter().all(|count| *count == 0)
        };
        without(&mut self.total);
        if self.by_peer.get_mut(&client.peer).is_some_and(without) {
            self.by_peer.remove(&client.peer);
        }
        if self.by_connection.get_mut(&client.id).is_some_and(without) {
            self.by_connection.remove(&client.id);
        }
        if holder.pool == Pool::Bodies {
            self.body_bytes -= holder.seat.bytes.load(Ordering::Relaxed);
        }
    }

    fn remove(&mut self, id: u64) -> Option<Holder> {
        let holder = self.holders.remove(&id)?;
        self.uncount(&holder);
        Some(holder)
    }

    /// Whether anything is asked on the connection of `holder`.
    fn asks(&self, holder: &Holder) -> bool {
        let held = self.by_connection.get(&holder.client.id).into_iter().flatten();
        held.sum::<usize>() > 1
    }

    /// The slowest place of `peer` in `pool`.
    fn slowest(&self, peer: Peer, pool: Pool) -> Option<u64> {
        let now = Instant::now();
        let of_peer = |holder: &Holder| holder.holds(pool) && holder.client.peer == peer;
        let holders = self.holders.iter().filter(|(_, holder)| of_peer(holder));
        holders.min_by_key(|(_, holder)| holder.slowness(now)).map(|(id, _)| *id)
    }

    /// Who has to leave first if `amount` more of `client` shall find room in `pool`. Who holds
    /// nothing finds room for one request, however large it is.
    fn room(
        &self,
        pool: Pool,
        amount: usize,
        client: &ConnectionHandle,
        limits: &Limits,
    ) -> Result<Option<u64>, Refusal> {
        let cap = pool.cap(limits);
        let refusal = |reached, limit| Err(Refusal { pool, reached, limit });
        if let Some(most) = cap.per_connection
            && self.of_connection(client.id, pool) >= most
        {
            return refusal(Reached::Connection, most);
        }
        let fits = |taken: usize, cap: usize| taken == 0 || cap.saturating_sub(taken) >= amount;
        let own = self.of_peer(client.peer, pool);
        if fits(self.total[pool as usize], cap.total) {
            return match fits(own, cap.of_peer()) {
                true => Ok(None),
                false => refusal(Reached::Peer, cap.of_peer()),
            };
        }
        let largest = self.by_peer.iter().max_by_key(|(_, counts)| counts[pool as usize]);
        match largest {
            Some((peer, counts)) if counts[pool as usize] > own.saturating_add(amount) => {
                Ok(self.slowest(*peer, pool))
            }
            _ => match self.idlest(pool, own.saturating_add(amount)) {
                Some(idle) if fits(own, cap.of_peer()) => Ok(Some(idle)),
                _ => refusal(Reached::Total, cap.total),
            },
        }
    }

    /// The slowest of the idle places in `pool`, of any peer that holds `at_least` of them.
    fn idlest(&self, pool: Pool, at_least: usize) -> Option<u64> {
        let now = Instant::now();
        let is_idle = |holder: &Holder| match pool {
            Pool::Connections => !self.asks(holder),
            _ => holder.idle,
        };
        let idle = |(_, holder): &(&u64, &Holder)| {
            holder.holds(pool)
                && is_idle(holder)
                && self.of_peer(holder.client.peer, pool) >= at_least
        };
        let slowest = self.holders.iter().filter(idle);
        slowest.min_by_key(|(_, holder)| holder.slowness(now)).map(|(id, _)| *id)
    }

    /// The place among the bodies that has to leave if all together have too many bytes: the
    /// slowest of the peer that has most bytes.
    fn heaviest(&self) -> Option<u64> {
        let mut bytes: HashMap<Peer, u64> = HashMap::new();
        for holder in self.holders.values().filter(|holder| holder.pool == Pool::Bodies) {
            *bytes.entry(holder.client.peer).or_default() +=
                holder.seat.bytes.load(Ordering::Relaxed);
        }
        let (peer, _) = bytes.into_iter().max_by_key(|(_, bytes)| *bytes)?;
        self.slowest(peer, Pool::Bodies)
    }
}

impl Places {
    pub(crate) fn new(limits: Limits, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self { limits, metrics, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, PlacesState> {
        // No code that can panic runs under the lock, so a poisoned state is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection.
    pub(crate) fn connection(
        self: &Arc<Self>,
        client: &ConnectionHandle,
    ) -> Result<AdmissionPlace, Refusal> {
        self.enter(Pool::Connections, None, client, None)
    }

    /// A place among the bodies for a request that will be answered in `pool`. It is refused now
    /// if there would be no place there: a refusal costs least before the body is read.
    pub(crate) fn request(
        self: &Arc<Self>,
        pool: Pool,
        client: &ConnectionHandle,
        told: oneshot::Sender<Ousted>,
    ) -> Result<AdmissionPlace, Refusal> {
        self.enter(Pool::Bodies, Some(pool), client, Some(told))
    }

    fn enter(
        self: &Arc<Self>,
        pool: Pool,
        next: Option<Pool>,
        client: &ConnectionHandle,
        told: Option<oneshot::Sender<Ousted>>,
    ) -> Result<AdmissionPlace, Refusal> {
        let mut state = self.lock();
        let room = match next.map(|next| state.room(next, 1, client, &self.limits)) {
            Some(Err(refusal)) => Err(refusal),
            _ => state.room(pool, 1, client, &self.limits),
        };
        let leaving = self.or_count(room)?.and_then(|id| state.remove(id));
        let id = state.next_id;
        state.next_id += 1;
        state.count(pool, 1, client);
        let seat = Arc::new(Seat::default());
        let holder = Holder {
            pool,
            answer_bytes: 0,
            client: client.clone(),
            since: Instant::now(),
            seat: Arc::clone(&seat),
            told,
            seen: None,
            seen_lately: None,
            idle: false,
        };
        state.holders.insert(id, holder);
        drop(state);
        self.oust(leaving, Ousted::Crowded);
        Ok(AdmissionPlace { places: Arc::clone(self), id, seat, advanced: AtomicBool::new(false) })
    }

    fn oust(&self, holder: Option<Holder>, why: Ousted) {
        if let Some(holder) = holder {
            let reason = match why {
                Ousted::Crowded => "evicted",
                Ousted::SlowBody | Ousted::SlowReader => "slow",
                Ousted::Late => return holder.oust(why),
            };
            self.metrics.shed(holder.pool.name(), reason);
            holder.oust(why);
        }
    }

    fn or_count<T>(&self, room: Result<T, Refusal>) -> Result<T, Refusal> {
        room.inspect_err(|refusal| {
            let reason = match refusal.reached {
                Reached::Total => "total",
                Reached::Peer => "peer",
                Reached::Connection => "connection",
            };
            self.metrics.shed(refusal.pool.name(), reason);
        })
    }

    /// Moves a request to `pool`: all of it has arrived.
    fn advance(&self, id: u64, pool: Pool) -> Result<(), Refusal> {
        let mut state = self.lock();
        let Some(mut holder) = state.remove(id) else {
            // It has been told to leave.
            return Ok(());
        };
        let room = self.or_count(state.room(pool, 1, &holder.client, &self.limits))?;
        let leaving = room.and_then(|id| state.remove(id));
        holder.pool = pool;
        holder.since = Instant::now();
        holder.seat.bytes.store(0, Ordering::Relaxed);
        state.count(pool, 1, &holder.client);
        state.holders.insert(id, holder);
        drop(state);
        self.oust(leaving, Ousted::Crowded);
        Ok(())
    }

    /// Gives a request room for `bytes` among the answers.
    fn hold_answers(&self, id: u64, bytes: usize) -> Result<(), Refusal> {
        let mut leaving = Vec::new();
        let mut state = self.lock();
        let Some(mut holder) = state.holders.remove(&id) else {
            // It has been told to leave.
            return Ok(());
        };
        let outcome = loop {
            match state.room(Pool::AnswerBytes, bytes, &holder.client, &self.limits) {
                Ok(Some(other)) => leaving.extend(state.remove(other)),
                Ok(None) => break Ok(()),
                Err(refusal) => break Err(refusal),
            }
        };
        if outcome.is_ok() {
            holder.answer_bytes += bytes;
            state.count(Pool::AnswerBytes, bytes, &holder.client);
        }
        state.holders.insert(id, holder);
        drop(state);
        for other in leaving {
            self.oust(Some(other), Ousted::Crowded);
        }
        self.or_count(outcome)
    }

    /// Counts bytes of a body that has not arrived yet.
    fn received(&self, id: u64, len: u64) {
        let mut state = self.lock();
        let Some(holder) = state.holders.get(&id) else { return };
        holder.seat.bytes.fetch_add(len, Ordering::Relaxed);
        state.body_bytes += len;
        let over = state.body_bytes > self.limits.body_bytes;
        let leaving =
            over.then(|| state.heaviest()).flatten().and_then(|heaviest| state.remove(heaviest));
        drop(state);
        self.oust(leaving, Ousted::Crowded);
    }

    fn leave(&self, id: u64) {
        // Drop what it held after the lock.
        let _left = self.lock().remove(id);
    }

    /// Ends what takes too long, until nobody can hold a place any more.
    pub(crate) fn start_sweeping(self: &Arc<Self>, vital: &Vital) {
        let Limits { body_deadline, request_deadline, preparation_deadline, stall_limit, .. } =
            self.limits;
        let shortest = body_deadline.min(request_deadline).min(preparation_deadline);
        let pause =
            (shortest.min(stall_limit) / 8).clamp(Duration::from_millis(5), Duration::from_secs(1));
        let places = Arc::downgrade(self);
        vital.spawn("ends what takes too long", async move {
            loop {
                tokio::time::sleep(pause).await;
                let Some(places) = places.upgrade() else { return };
                places.sweep(Instant::now());
            }
        });
    }

    fn sweep(&self, now: Instant) {
        let mut leaving = Vec::new();
        let mut state = self.lock();
        for (id, holder) in &mut state.holders {
            if let Some(why) = holder.too_slow(now, &self.limits) {
                leaving.push((*id, why));
            }
        }
        let leaving: Vec<_> =
            leaving.into_iter().map(|(id, why)| (state.remove(id), why)).collect();
        drop(state);
        for (holder, why) in leaving {
            self.oust(holder, why);
        }
    }
}

impl Holder {
    fn too_slow(&mut self, now: Instant, limits: &Limits) -> Option<Ousted> {
        let (deadline, why) = match self.pool {
            Pool::Connections => return None,
            _ if self.seat.is_clients_turn() => return self.reads_too_slowly(now, limits),
            _ if self.seat.responding.load(Ordering::Relaxed) => {
                (self.seen, self.seen_lately, self.idle) = (None, None, false);
                return None;
            }
            Pool::Bodies => (limits.body_deadline, Ousted::SlowBody),
            Pool::Preparations => (limits.preparation_deadline, Ousted::Late),
            Pool::Describes | Pool::Answers | Pool::AnswerBytes | Pool::Fetches => {
                (limits.request_deadline, Ousted::Late)
            }
        };
        (now.saturating_duration_since(self.since) >= deadline).then_some(why)
    }

    fn reads_too_slowly(&mut self, now: Instant, limits: &Limits) -> Option<Ousted> {
        let bytes = self.seat.bytes.load(Ordering::Relaxed);
        if let Some(slow) = is_slow(&mut self.seen_lately, IDLE, now, bytes, limits) {
            self.idle = slow;
        }
        let slow = is_slow(&mut self.seen, limits.stall_limit, now, bytes, limits);
        (slow == Some(true)).then_some(Ousted::SlowReader)
    }
}

/// Whether less than the least rate was read since it was `seen`, if that is at least `limit` ago.
fn is_slow(
    seen: &mut Option<(Instant, u64)>,
    limit: Duration,
    now: Instant,
    bytes: u64,
    limits: &Limits,
) -> Option<bool> {
    let (then, before) = *seen.get_or_insert((now, bytes));
    let elapsed = now.saturating_duration_since(then);
    if elapsed < limit {
        return None;
    }
    *seen = Some((now, bytes));
    let least = limits.least_rate as f64 * elapsed.as_secs_f64();
    Some(((bytes - before) as f64) < least.max(1.0))
}

/// A place, until it is dropped.
pub(crate) struct AdmissionPlace {
    places: Arc<Places>,
    id: u64,
    seat: Arc<Seat>,
    advanced: AtomicBool,
}

impl AdmissionPlace {
    /// So many bytes came on a connection.
    pub(crate) fn heard(&self, len: usize) {
        self.seat.bytes.fetch_add(len as u64, Ordering::Relaxed);
    }

    /// Whether anything is asked on the connection whose place this is.
    pub(crate) fn is_asked(&self) -> bool {
        let state = self.places.lock();
        state.holders.get(&self.id).is_some_and(|holder| state.asks(holder))
    }

    /// So many bytes came of a body that has not ended.
    pub(crate) fn received(&self, len: usize) {
        self.places.received(self.id, len as u64);
    }

    /// All of a request has arrived, and it needs a place in `pool` now. Later calls do nothing.
    pub(crate) fn advance(&self, pool: Pool) -> Result<(), Refusal> {
        match self.advanced.swap(true, Ordering::Relaxed) {
            true => Ok(()),
            false => self.places.advance(self.id, pool),
        }
    }

    /// The request holds `bytes` of queries and answers from now on.
    pub(crate) fn hold_answers(&self, bytes: usize) -> Result<(), Refusal> {
        self.places.hold_answers(self.id, bytes)
    }

    /// The response has begun, and its client has to read it.
    pub(crate) fn responds(&self) {
        self.seat.responding.store(true, Ordering::Relaxed);
        self.waits_for_client(true);
    }

    /// So many bytes of a response were sent.
    pub(crate) fn sent(&self, len: usize) {
        self.seat.bytes.fetch_add(len as u64, Ordering::Relaxed);
    }

    /// Whether it is the client that has to do something now, or the server.
    pub(crate) fn waits_for_client(&self, client: bool) {
        self.seat.clients_turn.store(client, Ordering::Relaxed);
    }
}

impl Drop for AdmissionPlace {
    fn drop(&mut self) {
        self.places.leave(self.id);
    }
}

#[cfg(test)]
mod tests;
