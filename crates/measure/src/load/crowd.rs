//! Many clients in one process.
//!
//! Each has its own connections and its own thread. Clients with public hints share one state
//! directory, so that the hint is received and kept once. Clients with secret hints each have one:
//! no two may use the same hint.

use super::LoadOptions;
use super::place::StateDirectories;
use crate::machine::threads;
use crate::page::some;
use privet_client::{Client, ClientOptions, Progress, Target, Value};
use privet_core::quantities::bytes;
use privet_core::{Blame, Error, Reason, Result, SecretRng};
use privet_schemes::offline::OfflinePhase;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// How many queries of a client may be under way: as many as a server takes from one connection
/// unless told otherwise. Lookups beyond that wait in the client, which counts as part of their
/// latency.
const IN_FLIGHT: usize = 64;

/// How long the clients' threads may take to end. They end at once, unless the disk is slow.
const END: Duration = Duration::from_secs(5);

/// The bytes of keys that are looked up. The table has such a key only by accident, and a lookup
/// costs the same whether it does.
const KEY_LEN: usize = 16;

/// Clients of one table, ready for lookups.
pub struct Crowd {
    clients: Vec<Client>,
    by_number: bool,
    shed: Arc<AtomicU64>,
    /// Ends when the threads of all clients have.
    ended: mpsc::Receiver<Infallible>,
    runtime: Runtime,
    // After the clients, which write in it.
    place: StateDirectories,
}

/// What a client's thread holds until it ends.
#[derive(Clone)]
struct Watch {
    shed: Arc<AtomicU64>,
    _ends: mpsc::Sender<Infallible>,
}

impl Crowd {
    /// Connects all clients, and has each make a first lookup, which is not measured. A signal to
    /// end removes what they keep, and then calls `ends` with the exit code for it.
    ///
    /// # Errors
    /// As [`Client::connect`] and [`Client::get`];
    /// [`Blame::ApiMisuse`] if lookups ask no server anything.
    pub fn connect(given: &LoadOptions, ends: fn(i32)) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| Error::unavailable("no runtime").caused_by(error))?;
        let place = StateDirectories::new(&runtime, ends)?;
        let (ends, ended) = mpsc::channel();
        let watch = Watch { shed: Arc::default(), _ends: ends };
        let mut options = given.client.clone();
        options.session.in_flight = IN_FLIGHT;

        // What the first client receives, the others find, if it is public.
        let first = join(&options, place.state(0), &watch)?;
        let scheme = &first.table().scheme.plan;
        let secret = match scheme.offline {
            OfflinePhase::Nothing | OfflinePhase::Download { .. } => false,
            OfflinePhase::KeepTable { .. } => {
                return Err(Error::api_misuse(format!(
                    "clients of {} keep the table and ask the server nothing for a lookup, so there is nothing to measure",
                    scheme.scheme
                )));
            }
            _ => true,
        };
        options.session.schemes = vec![scheme.scheme];
        options.session.table = Some(first.table().name.clone());
        let by_number = is_looked_up_by_number(&first)?;
        let others = usize::from(given.clients) - 1;
        let others = side_by_side(others, |number| {
            let state = place.state(if secret { number + 1 } else { 0 });
            let client = join(&options, state, &watch)?;
            let target = target(&client, by_number, &mut SecretRng::from_os()?);
            answered(client.get_target_blocking(target))?;
            Ok(client)
        })?;
        let clients = [first].into_iter().chain(others).collect();
        let shed = Arc::clone(&watch.shed);
        Ok(Self { clients, by_number, shed, ended, runtime, place })
    }

    pub(super) fn first(&self) -> &Client {
        &self.clients[0]
    }

    /// What lookups are by: `number` or `key`.
    pub(super) fn by(&self) -> &'static str {
        if self.by_number { "number" } else { "key" }
    }

    /// Bytes that all clients together received before their first lookup.
    pub fn received(&self) -> u64 {
        self.clients.iter().map(|client| client.stats().prepare.down).sum()
    }

    /// Something to look up: a record drawn from all of the table, or a random key.
    pub(super) fn target(&self, rng: &mut SecretRng) -> Target {
        target(self.first(), self.by_number, rng)
    }

    /// How long a lookup takes when there is no other: the median of a few, one after the other.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub(super) fn alone(&self) -> Result<Duration> {
        const LOOKUPS: usize = 9;
        let mut rng = SecretRng::from_os()?;
        let mut times = Vec::with_capacity(LOOKUPS);
        for _ in 0..LOOKUPS {
            let target = self.target(&mut rng);
            let began = Instant::now();
            answered(self.first().get_target_blocking(target))?;
            times.push(began.elapsed());
        }
        times.sort_unstable();
        Ok(times[LOOKUPS / 2])
    }

    /// Begins the lookup with this number. `over` is called when it is over, on another thread.
    pub(super) fn begin(
        &self,
        number: usize,
        target: Target,
        over: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let lookup = self.clients[number % self.clients.len()].begin(target);
        self.runtime.spawn(async move { over(answered(lookup.outcome().await)) });
    }

    /// The table and the clients, in one line.
    pub fn heading(&self) -> String {
        let table = self.first().table();
        let shape = table.identity.shape;
        format!(
            "table {}, {}, {} of {}: {}, lookups by {}",
            table.name,
            table.scheme.plan.scheme,
            some(shape.records(), "record", "records"),
            bytes(shape.record_len()),
            some(self.clients.len() as u64, "client", "clients"),
            self.by(),
        )
    }

    /// Removes what the clients keep, before the process ends without dropping this.
    pub fn clear_up(&self) {
        self.place.remove();
    }

    /// How often servers have refused a query because they had too many. The clients ask again
    /// after a pause.
    pub(super) fn shed(&self) -> u64 {
        self.shed.load(Ordering::Relaxed)
    }

    /// How long each client has computed and written so far, on its own thread.
    pub(super) fn busy(&self) -> Vec<Duration> {
        let stats = self.clients.iter().map(Client::stats);
        stats.map(|stats| stats.query_time + stats.recover_time + stats.journal_time).collect()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.clients.clear();
        // The directory can be removed when nobody writes in it any more.
        let _ = self.ended.recv_timeout(END);
    }
}

fn join(options: &ClientOptions, state: std::path::PathBuf, watch: &Watch) -> Result<Client> {
    let options = ClientOptions { state_dir: Some(state), ..options.clone() };
    let watch = watch.clone();
    Client::connect_blocking(options, move |progress| {
        if let Progress::Retrying { error, .. } = progress
            && error.blame() == Blame::Exhausted
        {
            watch.shed.fetch_add(1, Ordering::Relaxed);
        }
    })
}

/// Whether a lookup was answered. That a random key is no address, say, shows only after that.
fn answered(outcome: Result<Option<Value>>) -> Result<()> {
    match outcome {
        Err(error) if error.reason() == Some(Reason::MalformedKey) => Ok(()),
        outcome => outcome.map(drop),
    }
}

fn is_looked_up_by_number(client: &Client) -> Result<bool> {
    let mut rng = SecretRng::from_os()?;
    match client.get_target_blocking(target(client, true, &mut rng)) {
        Ok(_) => Ok(true),
        Err(error) if error.reason() == Some(Reason::LookedUpByKey) => {
            answered(client.get_target_blocking(target(client, false, &mut rng))).map(|()| false)
        }
        Err(error) => Err(error),
    }
}

fn target(client: &Client, by_number: bool, rng: &mut SecretRng) -> Target {
    if by_number {
        return Target::index(rng.below(client.table().identity.shape.records()));
    }
    let mut key = [0; KEY_LEN];
    rng.fill(&mut key);
    Target::key(key)
}

/// Makes `count` things, as many at once as there are cores.
///
/// # Errors
/// The gravest one. Nothing is begun after the first.
fn side_by_side<T: Send>(count: usize, make: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Ok(Vec::with_capacity(count)));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let thing = make(number);
            let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
            match (thing, made.as_mut()) {
                (Ok(thing), Ok(things)) => things.push(thing),
                (Err(error), Ok(_)) => *made = Err(error),
                (Err(error), Err(told)) => *told = told.clone().by_gravity(error).0,
                (Ok(_), Err(_)) => return,
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads().min(count) {
            scope.spawn(work);
        }
    });
    made.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_made_or_the_first_error_is_told() {
        let mut made = side_by_side(20, Ok).unwrap();
        made.sort_unstable();
        assert_eq!(made, (0..20).collect::<Vec<_>>());
        assert!(side_by_side(0, Ok).unwrap().is_empty());
        let error = side_by_side(20, |number| match number {
            7 => Err(Error::unavailable("the seventh")),
            _ => Ok(()),
        });
        assert_eq!(error.unwrap_err().message(), "the seventh");
    }
}
