//! Carries out the errands of a [`Conductor`] with sockets and threads.
//!
//! One thread owns the conductor and does everything about it in order: computing queries, reading
//! records, writing files. After a computation the thread waits until the moment that the conductor
//! names ([`Errand::Wait`]), and begins nothing meanwhile. The network runs beside it, so that the
//! computation of a query delays no answer on its way. A third thread prepares the next generation
//! of single-use hints: see [`OtherThread`].

use crate::conductor::{Conductor, Errand, FinishId, Progress, Stats};
use crate::exchange::{Delivery, goes_on};
use crate::session::{ChosenTable, ExchangeId, LookupId, Request, Target, Value};
use crate::transport::Transport;
use privet_core::Result;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::sleep_until;

mod desk;
mod precise;

pub(crate) use desk::OtherThread;

/// Responses that may wait for the session. A chunk has at most 256 KiB, so this bounds memory; a
/// full queue slows the sender down.
const INCOMING_CAPACITY: usize = 16;

/// What a client asks of its driver.
pub(crate) enum Command {
    Lookup {
        target: Target,
        reply: oneshot::Sender<Result<Option<Value>>>,
    },
    /// Say when nothing is under way any more and everything is kept.
    Finish {
        reply: oneshot::Sender<Result<()>>,
    },
}

pub(crate) struct Driver {
    pub(crate) conductor: Conductor<OtherThread>,
    pub(crate) transports: Vec<Transport>,
    pub(crate) commands: mpsc::UnboundedReceiver<Command>,
    pub(crate) progress: Box<dyn FnMut(Progress) + Send>,
    pub(crate) stats: Arc<Mutex<Stats>>,
    /// Receives one message: whether lookups can begin.
    pub(crate) ready: Option<oneshot::Sender<Result<ChosenTable>>>,
    pub(crate) started: Instant,
}

/// What the driver keeps while it runs.
struct Running {
    incoming: mpsc::Sender<(ExchangeId, Delivery)>,
    exchanges: HashMap<ExchangeId, AbortHandle>,
    replies: HashMap<LookupId, oneshot::Sender<Result<Option<Value>>>>,
    finishing: HashMap<FinishId, oneshot::Sender<Result<()>>>,
}

impl Driver {
    /// Runs until the client is gone.
    pub(crate) async fn run(mut self) {
        let (sender, mut incoming) = mpsc::channel(INCOMING_CAPACITY);
        let mut running = Running {
            incoming: sender,
            exchanges: HashMap::new(),
            replies: HashMap::new(),
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
                    Some(Command::Lookup { target, reply }) => {
                        running.replies.insert(self.conductor.lookup(target), reply);
                    }
                    Some(Command::Finish { reply }) => {
                        running.finishing.insert(self.conductor.finish(), reply);
                    }
                    None => break,
                },
                message = incoming.recv() => if let Some((exchange, delivery)) = message {
                    if !goes_on(&delivery) {
                        running.exchanges.remove(&exchange);
                    }
                    self.conductor.handle_delivery(exchange, delivery, self.now());
                },
                () = prepared.notified() => {}
                () = sleep_until(wake.into()) => {}
            }
        }
        for (_, exchange) in running.exchanges {
            exchange.abort();
        }
        self.conductor.close();
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// The next errand. Statistics are published before anything that follows from them is told.
    fn next_errand(&mut self) -> Option<Errand> {
        let errand = self.conductor.poll(self.now());
        // The statistics stay valid even if another holder of the lock panicked.
        let mut stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        *stats = *self.conductor.stats();
        errand
    }

    fn carry_out(&mut self, errand: Errand, running: &mut Running) {
        match errand {
            Errand::Send { exchange, server, request, patience } => {
                let sent = self.send(exchange, server, request, patience, running);
                running.exchanges.insert(exchange, sent);
            }
            Errand::Abandon(exchange) => {
                if let Some(exchange) = running.exchanges.remove(&exchange) {
                    exchange.abort();
                }
            }
            Errand::Expect(limits) => {
                for transport in &mut self.transports {
                    transport.expect_responses(limits);
                }
            }
            Errand::Wait { until } => precise::wait_until(self.started + until),
            Errand::Reply { lookup, outcome } => {
                // The caller may have stopped waiting; the lookup took its course all the same.
                if let Some(reply) = running.replies.remove(&lookup)
                    && let Err(unwanted) = reply.send(outcome)
                {
                    // Erasing a longer value takes longer, and the next query must not wait for
                    // that.
                    tokio::task::spawn_blocking(move || drop(unwanted));
                }
            }
            Errand::Ready(outcome) => {
                if let Some(ready) = self.ready.take() {
                    let _ = ready.send(outcome.map(|table| *table));
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

    fn send(
        &self,
        exchange: ExchangeId,
        server: usize,
        request: Request,
        patience: Duration,
        running: &Running,
    ) -> AbortHandle {
        let transport = self.transports[server].clone();
        let incoming = running.incoming.clone();
        let task = tokio::spawn(async move {
            let deliver = |delivery| {
                let incoming = &incoming;
                async move { incoming.send((exchange, delivery)).await.is_ok() }
            };
            transport.exchange(request, patience, deliver).await;
        });
        task.abort_handle()
    }
}
