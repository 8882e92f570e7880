//! The easy way: connect, get, done.
//!
//! ```no_run
//! # async fn example() -> privet_core::Result<()> {
//! use privet_client::{Client, ClientOptions};
//!
//! let options = ClientOptions::new(["http://127.0.0.1:7700"]);
//! let client = Client::connect(options, |_progress| {}).await?;
//! match client.get(b"openssl").await? {
//!     Some(value) => println!("{}", String::from_utf8_lossy(&value)),
//!     None => println!("the table has no such key"),
//! }
//! client.finish().await?;
//! # Ok(()) }
//! ```
//!
//! For a scheme of two servers, `ClientOptions::new([url_a, url_b])` names both.
//!
//! A [`Client`] has a thread and a small runtime of its own. Its futures need no particular
//! runtime, and each has a blocking twin.

use crate::addresses::{self, Address};
use crate::conductor::{Conductor, ConductorOptions, OpenTable};
pub use crate::conductor::{Progress, Stats, Traffic};
pub use crate::driver::BatchId;
use crate::driver::{Command, Driver, FilledShelf, OtherThread};
use crate::exchange::Transport;
use crate::proxies;
use crate::session::{ChosenTable, Clock, SessionOptions, Target, Value};
use crate::state::{MemoryState, State};
use crate::store::Store;
use crate::transport::Grpc;
use privet_core::{Error, Result, TableIdentity};
use privet_kernels::Kernels;
use privet_table::values::Values;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// How long a client that ends waits at most for what it left to threads of the runtime, such as
/// the search for a host's address.
const CLOSING: Duration = Duration::from_secs(1);

/// Which servers to ask, for which table, and how.
#[derive(Clone)]
pub struct ClientOptions {
    /// The servers' addresses, one for each of the scheme's roles in order: `http://host:port` or
    /// `https://host:port`, perhaps with a path. A scheme of two servers hides what is looked up
    /// only as long as the parties that run the servers do not put together what they see. So the
    /// client refuses an address that is named twice.
    pub urls: Vec<String>,
    /// Which table to use, whom to trust, what to receive, how long to wait. The client replaces
    /// what it knows better: the number of servers, what is pinned, the clock and the shelf.
    pub session: SessionOptions,
    /// Where to keep hints, tables and pins. `None` keeps them in memory, for this client alone.
    pub state_dir: Option<PathBuf>,
    /// A PEM file with certificates to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Proxies through which the servers are reached: one for all, or one for each in their order.
    /// `http://host:port` (by CONNECT), `socks5h://host:port`, both with `name:password@` if need
    /// be, or `none`. Empty: as the environment says (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`,
    /// `NO_PROXY`, also in lower case). A proxy that cannot be used is an error, and nothing goes
    /// around it. Names of servers are looked up by the proxy.
    pub proxies: Vec<String>,
    /// Ask several servers even if the lines to two or more of them are not encrypted (`http://`,
    /// to other machines than this one). Anybody who listens on those lines sees both queries of
    /// each lookup, and can tell from them what is looked up. This is never needed for one server:
    /// a query to one server hides what is looked up from everybody.
    pub insecure: bool,
    /// How long the client may take for everything, from its beginning. After that, every open call
    /// fails with [`Blame::Unavailable`](privet_core::Blame::Unavailable). `None`: as long as it
    /// needs; [`SessionOptions::patience`] bounds each wait.
    pub max_time: Option<Duration>,
    /// How long another process's download of the same hint may stand still before this one gives
    /// up waiting for it.
    pub busy_patience: Duration,
}

impl ClientOptions {
    /// Defaults for the servers at `urls`: the only table, any scheme that fits, state in memory,
    /// at most 4 GiB of hint or table, the fastest kernels of this machine.
    pub fn new<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Self {
        Self {
            urls: urls.into_iter().map(Into::into).collect(),
            session: SessionOptions::new(0, Kernels::detect(), clock(Instant::now())),
            state_dir: None,
            ca_file: None,
            proxies: Vec::new(),
            insecure: false,
            max_time: None,
            busy_patience: Duration::from_secs(30),
        }
    }
}

/// A client of one table. Dropping it ends its connections; lookups under way are given up. A
/// program that ends after a few lookups calls [`finish`](Self::finish) first.
pub struct Client {
    commands: mpsc::UnboundedSender<Command>,
    opened: OpenTable,
    stats: Arc<Mutex<Stats>>,
    thread: JoinHandle<()>,
    /// How many batches were named.
    batches: AtomicU64,
}

impl Client {
    /// Asks the servers what they serve, and checks it against what was seen before. Then fetches
    /// the layout and what the scheme needs, unless they are stored: a public hint, the table (to
    /// keep it, or to prepare single-use hints from it), or single-use hints that a server
    /// computes. `progress` is called at each step, on the client's own thread.
    ///
    /// # Errors
    /// Of every [`Blame`](privet_core::Blame); [`Blame::Integrity`](privet_core::Blame::Integrity)
    /// if the table is not the one seen before, or the servers do not agree on it;
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if one server is named twice, two are to
    /// be asked without encryption, or what is to be kept is larger than
    /// [`max_download`](SessionOptions::max_download).
    pub async fn connect(
        options: ClientOptions,
        progress: impl FnMut(Progress) + Send + 'static,
    ) -> Result<Self> {
        let (opening, opened) = begin(progress, |progress| prepare(options, progress))?;
        opening.opened(opened.await)
    }

    /// As [`connect`](Self::connect), for programs without a runtime. Asynchronous code must not
    /// call it.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_blocking(
        options: ClientOptions,
        progress: impl FnMut(Progress) + Send + 'static,
    ) -> Result<Self> {
        let (opening, opened) = begin(progress, |progress| prepare(options, progress))?;
        opening.opened(opened.blocking_recv())
    }

    /// The value of `key`, or `None` if the table does not have it. Both cost the same: one query
    /// to each server for each record in which a key of the table may lie, however long its value
    /// is. A scheme whose client holds the table sends no query. If keys have several values,
    /// [`Value::values`] has all of them. A key that somebody wrote, in hexadecimal say, is a
    /// [`Target::written`].
    ///
    /// # Errors
    /// Of every [`Blame`](privet_core::Blame). With
    /// [`Reason::MalformedKey`](privet_core::Reason::MalformedKey), the table can have no such key;
    /// the same queries were sent as for any other.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.get_target(Target::key(key)).await
    }

    /// The value in record `index`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is no such record or the table
    /// is one of keys; otherwise of every kind.
    pub async fn get_index(&self, index: u64) -> Result<Value> {
        let found = self.get_target(Target::index(index)).await?;
        found.ok_or_else(|| Error::peer_misbehaved("the record holds no value"))
    }

    /// The value of one target.
    ///
    /// # Errors
    /// As [`get`](Self::get) and [`get_index`](Self::get_index).
    pub async fn get_target(&self, target: Target) -> Result<Option<Value>> {
        received(self.ask(target).await)
    }

    /// Begins a lookup and does not wait for it. Queries leave in the order of the calls, as far as
    /// several may be under way.
    pub fn begin(&self, target: Target) -> Begun {
        Begun(self.ask(target))
    }

    /// As [`begin`](Self::begin), and calls `reply` with what came of it, on the client's own
    /// thread. It must be quick, and take as long whatever came. It returns an unwanted value
    /// undropped: erasing a longer value takes longer, and the next query must not
    /// wait for that. If the client ends before, or the lookup is withdrawn, it is dropped
    /// uncalled.
    pub fn begin_with(
        &self,
        target: Target,
        reply: impl FnOnce(Result<Option<Value>>) -> Option<Result<Option<Value>>> + Send + 'static,
    ) -> BatchId {
        self.begin_many_with(std::iter::once((target, reply)))
    }

    /// As [`begin_with`](Self::begin_with), for several lookups, which can be
    /// [withdrawn](Self::withdraw) together.
    pub fn begin_many_with<R>(&self, lookups: impl IntoIterator<Item = (Target, R)>) -> BatchId
    where
        R: FnOnce(Result<Option<Value>>) -> Option<Result<Option<Value>>> + Send + 'static,
    {
        let batch = BatchId(self.batches.fetch_add(1, Ordering::Relaxed));
        for (target, reply) in lookups {
            // If the driver is gone, this drops the command, and the reply with it.
            let _ = self.commands.send(Command::Lookup { batch, target, reply: Box::new(reply) });
        }
        batch
    }

    /// Nobody waits for these lookups any more. Those that wait for their turn never begin, so that
    /// the next one need not wait for them. Those that have begun take their course.
    ///
    /// Servers see that fewer lookups come. So call this for a reason that has nothing to do with
    /// what was looked up: a person ended the work, or its time is up.
    pub fn withdraw(&self, batch: BatchId) {
        let _ = self.commands.send(Command::Withdraw(batch));
    }

    /// The values of several targets, in their order. Several queries are under way at once. How
    /// many there are depends only on the number of targets (a scheme whose client holds the table
    /// sends none).
    pub async fn get_many(&self, targets: &[Target]) -> Vec<Result<Option<Value>>> {
        // Begin all of them before waiting for the first.
        let replies: Vec<_> = targets.iter().map(|target| self.ask(target.clone())).collect();
        let mut values = Vec::with_capacity(replies.len());
        for reply in replies {
            values.push(received(reply.await));
        }
        values
    }

    /// As [`get_target`](Self::get_target). Asynchronous code must not call it.
    ///
    /// # Errors
    /// As [`get_target`](Self::get_target).
    pub fn get_target_blocking(&self, target: Target) -> Result<Option<Value>> {
        received(self.ask(target).blocking_recv())
    }

    /// As [`get_many`](Self::get_many). Asynchronous code must not call it.
    pub fn get_many_blocking(&self, targets: &[Target]) -> Vec<Result<Option<Value>>> {
        let replies: Vec<_> = targets.iter().map(|target| self.ask(target.clone())).collect();
        replies.into_iter().map(|reply| received(reply.blocking_recv())).collect()
    }

    /// Waits until all lookups are over, until the due share of the next generation of single-use
    /// hints is prepared, and until everything is kept. The due share follows from the number of
    /// lookups: a 64th of the table, say. After that the program can end at any moment.
    ///
    /// A program that never calls this loses no lookup and no privacy. But if no program calls it,
    /// the hints will be used up one day, with no others ready.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if something cannot be kept.
    pub async fn finish(&self) -> Result<()> {
        received(self.asked(|reply| Command::Finish { reply }).await)
    }

    /// As [`finish`](Self::finish). Asynchronous code must not call it.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn finish_blocking(&self) -> Result<()> {
        received(self.asked(|reply| Command::Finish { reply }).blocking_recv())
    }

    /// Asks the servers which versions of the table they have, and moves on to the newest that all
    /// of them serve. Returns the version in which lookups are made from then on: the same as
    /// before if there is no later one, or if the client may not follow the table.
    ///
    /// Without this, a client asks before a lookup whether there is a later version, if it has not
    /// heard of the servers' versions for the time of
    /// [`Patience::description`](crate::session::Patience::description). One that holds the table
    /// never does. What a refresh sends does not depend on lookups. Lookups that are begun after it
    /// wait for it.
    ///
    /// # Errors
    /// Of every [`Blame`](privet_core::Blame), as when the client connects. If a server cannot be
    /// reached, the client goes on, and tries again at the next call.
    pub async fn refresh(&self) -> Result<TableIdentity> {
        received(self.asked(|reply| Command::Refresh { reply }).await)
    }

    /// As [`refresh`](Self::refresh). Asynchronous code must not call it.
    ///
    /// # Errors
    /// As [`refresh`](Self::refresh).
    pub fn refresh_blocking(&self) -> Result<TableIdentity> {
        received(self.asked(|reply| Command::Refresh { reply }).blocking_recv())
    }

    /// Ends the client, and returns when its connections are closed: what it did. Servers see when
    /// a connection ends, so a program that still has work to do with what it found closes first.
    /// Lookups under way are given up, as when a client is dropped. Asynchronous code must not call
    /// it.
    pub fn close_blocking(self) -> Stats {
        let Self { commands, stats, thread, .. } = self;
        drop(commands);
        // If the thread has panicked, its connections are closed too.
        let _ = thread.join();
        *stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The table and its scheme as they were when the client connected. If the table changes, the
    /// client moves on to later versions, and [`Progress::Updated`] says so.
    pub fn table(&self) -> &ChosenTable {
        &self.opened.table
    }

    /// Whether records are looked up by key, and not by number.
    pub fn is_by_key(&self) -> bool {
        self.opened.is_by_key
    }

    /// What the values of the table are, if its builder knew.
    pub fn values(&self) -> Option<&Values> {
        self.opened.values.as_ref()
    }

    /// What was done so far.
    pub fn stats(&self) -> Stats {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, target: Target) -> oneshot::Receiver<Result<Option<Value>>> {
        let (reply, receiver) = oneshot::channel();
        // The caller may have stopped waiting; the lookup took its course anyway.
        self.begin_with(target, move |outcome| reply.send(outcome).err());
        receiver
    }

    fn asked<T>(&self, command: fn(oneshot::Sender<T>) -> Command) -> oneshot::Receiver<T> {
        let (reply, receiver) = oneshot::channel();
        let _ = self.commands.send(command(reply));
        receiver
    }
}

/// A lookup that has begun. Dropping this does not stop it.
pub struct Begun(oneshot::Receiver<Result<Option<Value>>>);

impl Begun {
    /// What came of it.
    ///
    /// # Errors
    /// As [`Client::get`] and [`Client::get_index`].
    pub async fn outcome(self) -> Result<Option<Value>> {
        received(self.0.await)
    }

    /// As [`outcome`](Self::outcome). Asynchronous code must not call it.
    ///
    /// # Errors
    /// As [`outcome`](Self::outcome).
    pub fn outcome_blocking(self) -> Result<Option<Value>> {
        received(self.0.blocking_recv())
    }
}

type Received<T> = std::result::Result<Result<T>, oneshot::error::RecvError>;

fn received<T>(reply: Received<T>) -> Result<T> {
    reply.unwrap_or_else(|_| Err(Error::unavailable("the client's own thread has ended")))
}

/// A client whose thread runs, before it is known whether lookups can begin.
pub(crate) struct Opening {
    commands: mpsc::UnboundedSender<Command>,
    stats: Arc<Mutex<Stats>>,
    thread: JoinHandle<()>,
}

impl Opening {
    pub(crate) fn opened(self, opened: Received<OpenTable>) -> Result<Client> {
        let Self { commands, stats, thread } = self;
        let opened = received(opened)?;
        Ok(Client { commands, opened, stats, thread, batches: AtomicU64::new(0) })
    }
}

/// A conductor, a way to each server, and the start from which the times of both count.
pub(crate) type Prepared<T> = (Conductor<OtherThread>, Vec<Arc<T>>, Instant);

/// Starts a client's thread, which drives what `prepare` gives it over any transport. Also returns
/// what receives whether lookups can begin.
pub(crate) fn begin<T: Transport>(
    progress: impl FnMut(Progress) + Send + 'static,
    prepare: impl FnOnce(&mut dyn FnMut(Progress)) -> Result<Prepared<T>> + Send + 'static,
) -> Result<(Opening, oneshot::Receiver<Result<OpenTable>>)> {
    let (sender, commands) = mpsc::unbounded_channel();
    let (ready, opened) = oneshot::channel();
    let stats = Arc::new(Mutex::new(Stats::default()));
    let shared = Arc::clone(&stats);
    let run = move || {
        let mut progress = Box::new(progress);
        // One thread for the network beside this one.
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let no_runtime = |error| Error::unavailable("no runtime for the client").caused_by(error);
        let runtime = match runtime.map_err(no_runtime) {
            Ok(runtime) => runtime,
            Err(error) => return drop(ready.send(Err(error))),
        };
        runtime.block_on(async {
            match prepare(&mut progress) {
                Ok((conductor, transports, started)) => {
                    let (ready, stats) = (Some(ready), shared);
                    let driver =
                        Driver { conductor, transports, commands, progress, stats, ready, started };
                    driver.run().await;
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        });
        // The connections close now, and not when somebody has time.
        runtime.shutdown_timeout(CLOSING);
    };
    let thread = std::thread::Builder::new().name("privet-client".to_owned()).spawn(run);
    let thread =
        thread.map_err(|error| Error::unavailable("no thread for the client").caused_by(error))?;
    Ok((Opening { commands: sender, stats, thread }, opened))
}

fn prepare(options: ClientOptions, progress: &mut dyn FnMut(Progress)) -> Result<Prepared<Grpc>> {
    let addresses: Vec<Address> =
        options.urls.iter().map(|url| Address::parse(url)).collect::<Result<_>>()?;
    let ways = proxies::ways(&addresses, &options.proxies, &|name| std::env::var_os(name))?;
    let seen = |(address, way): (Address, &Option<_>)| match way {
        None => address,
        Some(_) => address.behind_a_proxy(),
    };
    let addresses: Vec<Address> = addresses.into_iter().zip(&ways).map(seen).collect();
    addresses::check_distinct(&addresses)?;
    if !options.insecure {
        addresses::check_encrypted(&addresses)?;
    }
    if let Some(notice) = addresses::one_host_notice(&addresses) {
        progress(Progress::Notice(notice));
    }
    let mut state: Box<dyn State> = match &options.state_dir {
        Some(directory) => {
            let store =
                Store::open(directory)?.replacing_damaged_pins(options.session.accept_new_table);
            // Earlier releases kept pins under the address as the user gave it, without slashes at
            // its end.
            for (given, address) in options.urls.iter().zip(&addresses) {
                store.adopt_pins(given.trim_end_matches('/'), address.url())?;
            }
            Box::new(store)
        }
        None => Box::new(MemoryState::default()),
    };
    let mut transports = Vec::new();
    let started = Instant::now();
    let mut session = options.session;
    session.clock = clock(started);
    session.shelf = Some(Arc::new(FilledShelf::new()));
    for (address, way) in addresses.iter().zip(ways) {
        transports.push(Arc::new(Grpc::new(address, options.ca_file.as_deref(), way)?));
    }
    session.recall(&mut *state, &addresses)?;
    let options = ConductorOptions {
        session,
        addresses: addresses.iter().map(|address| address.url().to_owned()).collect(),
        busy_patience: options.busy_patience,
        max_time: options.max_time,
    };
    let desk = OtherThread::default();
    let conductor = Conductor::new(options, state, desk, started.elapsed())?;
    Ok((conductor, transports, started))
}

fn clock(started: Instant) -> Clock {
    Clock::new(move || started.elapsed()).resting(std::thread::sleep)
}
