//! Carries out the errands of a [`Conductor`] with sockets and threads.
//!
//! One thread owns the conductor and does everything about it in order: computing queries, reading
//! records, writing files. After a computation the thread waits until the moment that the conductor
//! names ([`Errand::Wait`]), and begins nothing meanwhile. The network runs beside it, over any
//! [`Transport`], so that the computation of a query delays no answer on its way. A third thread
//! prepares the next generation of single-use hints: see [`OtherThread`]. Others make queries
//! ahead: see [`FilledShelf`].

use crate::conductor::{Conductor, Errand, FinishId, OpenTable, Progress, Stats};
use crate::exchange::{Delivery, Transport, exchange, goes_on};
use crate::session::{ExchangeId, LookupId, Target, Value};
use privet_core::{Result, TableIdentity};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::sleep_until;

mod desk;
mod precise;
mod shelf;
#[cfg(test)]
mod tests;

pub(crate) use desk::OtherThread;
pub(crate) use shelf::FilledShelf;

/// Responses that may wait for the session. A chunk has at most 256 KiB, so this bounds memory; a
/// full queue slows the sender down.
const INCOMING_CAPACITY: usize = 16;

/// Is called with what comes of a lookup, or dropped uncalled if the driver ends before. Returns
/// an unwanted value undropped.
pub(crate) type Reply =
    Box<dyn FnOnce(Result<Option<Value>>) -> Option<Result<Option<Value>>> + Send>;

/// What a client asks of its driver.
pub(crate) enum Command {
    Lookup {
        batch: BatchId,
        target: Target,
        reply: Reply,
    },
    /// Move on to the newest version, and say which it is.
    Refresh {
        reply: oneshot::Sender<Result<TableIdentity>>,
    },
    /// Begin no more lookups of this batch, and drop their replies uncalled.
    Withdraw(BatchId),
    /// Say when nothing is under way any more and everything is kept.
    Finish {
        reply: oneshot::Sender<Result<()>>,
    },
}

/// Names lookups that were handed in together, for [`Client::withdraw`](crate::Client::withdraw).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchId(pub u64);

pub(crate) struct Driver<T> {
    pub(crate) conductor: Conductor<OtherThread>,
    /// A way to each server.
    pub(crate) transports: Vec<Arc<T>>,
    pub(crate) commands: mpsc::UnboundedReceiver<Command>,
    pub(crate) progress: Box<dyn FnMut(Progress) + Send>,
    pub(crate) stats: Arc<Mutex<Stats>>,
    /// Receives one message: whether lookups can begin.
    pub(crate) ready: Option<oneshot::Sender<Result<OpenTable>>>,
    pub(crate) started: Instant,
}

/// What the driver keeps while it runs.
struct Running {
    incoming: mpsc::Sender<(ExchangeId, Delivery)>,
    exchanges: HashMap<ExchangeId, Ongoing>,
    replies: HashMap<LookupId, (BatchId, Reply)>,
    refreshing: HashMap<LookupId, oneshot::Sender<Result<TableIdentity>>>,
    finishing: HashMap<FinishId, oneshot::Sender<Result<()>>>,
}

/// A request under way, which ends when nobody waits for it any more.
struct Ongoing(AbortHandle);

impl Drop for Ongoing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T: Transport> Driver<T> {
    /// Runs until the client is gone.
    pub(crate) async fn run(mut self) {
        let (sender, mut incoming) = mpsc::channel(INCOMING_CAPACITY);
        let mut running = Running {
            incoming: sender,
            exchanges: HashMap::new(),
            replies: HashMap::new(),
            refreshing: HashMap::new(),
            finishing: HashMap::new(),
        };
        let prepared = self.conductor.desk().wake();
        loop {
            self.conductor.handle_timeout(self.now());
            while let Some(errand) = self.next_errand() {
                self.carry_out(errand, &mut running);
            }
            let wake = self.conductor.wake_at().and_then(|wake| self.started.checked_add(wake));
            let wake = wake.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.take(command, &mut running),
                    None => break,
                },
                message = incoming.recv() => if let Some(message) = message {
                    self.deliver(message, &mut running);
                },
                () = prepared.notified() => {}
                () = sleep_until(wake.into()) => {}
            }
            // What has come meanwhile as well: lookups that are handed in together share a sync.
            while let Ok(command) = self.commands.try_recv() {
                self.take(command, &mut running);
            }
            while let Ok(message) = incoming.try_recv() {
                self.deliver(message, &mut running);
            }
        }
        drop(running);
        self.conductor.close();
    }

    fn take(&mut self, command: Command, running: &mut Running) {
        match command {
            Command::Lookup { batch, target, reply } => {
                running.replies.insert(self.conductor.lookup(target), (batch, reply));
            }
            Command::Withdraw(batch) => {
                let open = running.replies.iter().filter(|(_, (of, _))| *of == batch);
                let unwanted = open.map(|(lookup, _)| *lookup).collect();
                for lookup in self.conductor.withdraw(&unwanted) {
                    running.replies.remove(&lookup);
                }
            }
            Command::Refresh { reply } => {
                running.refreshing.insert(self.conductor.refresh(), reply);
            }
            Command::Finish { reply } => {
                running.finishing.insert(self.conductor.finish(), reply);
            }
        }
    }

    fn deliver(&mut self, (exchange, delivery): (ExchangeId, Delivery), running: &mut Running) {
        if !goes_on(&delivery) {
            running.exchanges.remove(&exchange);
        }
        self.conductor.handle_delivery(exchange, delivery, self.now());
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// The next errand. Statistics are published before anything that follows from them.
    fn next_errand(&mut self) -> Option<Errand> {
        let errand = self.conductor.poll(self.now());
        // The statistics stay valid even if another holder of the lock panicked.
        let mut stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        *stats = *self.conductor.stats();
        errand
    }

    fn carry_out(&mut self, errand: Errand, running: &mut Running) {
        match errand {
            Errand::Send { exchange: id, server, request, patience } => {
                let limit = self.conductor.longest_response(&request);
                let (transport, incoming) =
                    (Arc::clone(&self.transports[server]), running.incoming.clone());
                let task = async move {
                    let deliver = |delivery| {
                        let incoming = &incoming;
                        async move { incoming.send((id, delivery)).await.is_ok() }
                    };
                    exchange(&*transport, request, limit, patience, deliver).await;
                };
                running.exchanges.insert(id, Ongoing(tokio::spawn(task).abort_handle()));
            }
            Errand::Abandon(exchange) => {
                running.exchanges.remove(&exchange);
            }
            Errand::Wait { until } => precise::wait_until(self.started + until),
            Errand::Reply { lookup, outcome: Err(error) }
                if let Some(reply) = running.refreshing.remove(&lookup) =>
            {
                let _ = reply.send(Err(error));
            }
            Errand::Refreshed { refresh, table } => {
                if let Some(reply) = running.refreshing.remove(&refresh) {
                    let _ = reply.send(Ok(table));
                }
            }
            Errand::Reply { lookup, outcome } => {
                if let Some((_, reply)) = running.replies.remove(&lookup)
                    && let Some(unwanted) = reply(outcome)
                {
                    // Erasing a longer value takes longer, and the next query must not wait for
                    // that.
                    tokio::task::spawn_blocking(move || drop(unwanted));
                }
            }
            Errand::Ready(outcome) => {
                if let Some(ready) = self.ready.take() {
                    let _ = ready.send(outcome.map(|opened| *opened));
                }
            }
            Errand::Finished { ticket, outcome } => {
                if let Some(reply) = running.finishing.remove(&ticket) {
                    let _ = reply.send(outcome);
                }
            }
            Errand::Tell(progress) => (self.progress)(progress),
        }
    }
}
