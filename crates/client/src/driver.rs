//! Drives a [`Session`]: does what it says with sockets and files, and tells it what came of that.
//!
//! One thread owns session and state, and everything about them happens there in order: computing
//! queries, reading records, writing files. When something was computed, the thread waits until the
//! session says ([`Session::busy_until`]) and begins nothing meanwhile. The network runs beside it,
//! so that a query under computation delays no answer on its way. The next generation of single-use
//! hints is prepared on a third thread: see
//! [`Worker`].

use crate::client::{Progress, Stats};
use crate::preparation::Worker;
use crate::session::{
    ChosenTable, Event, ExchangeId, LookupId, Output, Patch, Persist, PreparationEvent, Request,
    Response, Session, Target, Value,
};
use crate::state::{HintStore, HintsKey, Opened, PartKey, PartState, State, patch_part};
use crate::transport::{Delivery, Transport, request_len};
use privet_core::{Error, Result};
use privet_kernels::Kernels;
use privet_wire::PartKind;
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::sleep_until;

mod hints;
mod precise;

use hints::hints_of;

/// Responses that may wait for the session. A chunk has at most 256 KiB, so this bounds memory; a full queue slows the sender down.
const INCOMING_CAPACITY: usize = 16;

/// How often to ask whether another process has completed a download.
const BUSY_PAUSE: Duration = Duration::from_millis(50);

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

struct Incoming {
    exchange: ExchangeId,
    delivery: Delivery,
}

/// Something that another process has.
struct Busy {
    done: u64,
    /// When it last grew.
    grew: Instant,
    ask_again: Instant,
}

enum Wanted {
    /// A part that another process is downloading.
    Part(PartKey),
    /// The same of one that is to be made out of another.
    Patch(Box<Patch>),
    /// Single-use hints, which one process at a time may have.
    Hints { key: HintsKey, to_follow: bool },
}

pub(crate) struct Driver {
    pub(crate) session: Session,
    pub(crate) state: Box<dyn State>,
    pub(crate) transports: Vec<Transport>,
    pub(crate) commands: mpsc::UnboundedReceiver<Command>,
    pub(crate) progress: Box<dyn FnMut(Progress) + Send>,
    pub(crate) stats: Arc<Mutex<Stats>>,
    /// Told once whether there is anything to look things up in.
    pub(crate) ready: Option<oneshot::Sender<Result<ChosenTable>>>,
    /// How long another process's download may stand still.
    pub(crate) busy_patience: Duration,
    /// How long everything may take, from `started`; `None` also once that is over.
    pub(crate) max_time: Option<Duration>,
    pub(crate) kernels: Kernels,
    pub(crate) started: Instant,
}

/// What the driver keeps while it runs.
struct Running {
    incoming: mpsc::Sender<Incoming>,
    exchanges: HashMap<ExchangeId, (AbortHandle, PhaseOf)>,
    replies: HashMap<LookupId, oneshot::Sender<Result<Option<Value>>>>,
    busy: Option<(Wanted, Busy)>,
    hints: Option<Box<dyn HintStore>>,
    /// Prepares a generation of hints, if one is in the making.
    worker: Option<Worker>,
    prepared: mpsc::UnboundedSender<PreparationEvent>,
    preparation: mpsc::UnboundedReceiver<PreparationEvent>,
    /// Something was handed to the hints' store that is not durable yet.
    unflushed: bool,
    /// What the last lookups brought may not have been kept.
    not_kept: bool,
    /// Waiting for nothing to be under way.
    finishing: Vec<oneshot::Sender<Result<()>>>,
}

/// Which part of the traffic an exchange counts as.
#[derive(Clone, Copy)]
enum PhaseOf {
    Describe,
    Prepare,
    /// What the next generation of hints is made from.
    Background,
    Lookup,
}

impl Running {
    /// Ends the preparation of the next generation, if one is in the making, and what is still to be told of it.
    fn stop_worker(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.stop();
            while self.preparation.try_recv().is_ok() {}
        }
    }
}

impl Driver {
    /// Runs until the client is gone.
    pub(crate) async fn run(mut self) {
        let (sender, mut incoming) = mpsc::channel(INCOMING_CAPACITY);
        // The session has no more than two strides of the table, or two replies, on their way to the worker, so this is bounded.
        let (prepared, preparation) = mpsc::unbounded_channel();
        let mut running = Running {
            incoming: sender,
            exchanges: HashMap::new(),
            replies: HashMap::new(),
            busy: None,
            hints: None,
            worker: None,
            prepared,
            preparation,
            unflushed: false,
            not_kept: false,
            finishing: Vec::new(),
        };
        loop {
            self.do_what_is_due(&mut running);
            let wake = self.wake_time(&running);
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(Command::Lookup { target, reply }) => {
                        let lookup = self.session.lookup(target);
                        running.replies.insert(lookup, reply);
                    }
                    Some(Command::Finish { reply }) => running.finishing.push(reply),
                    None => break,
                },
                message = incoming.recv() => if let Some(message) = message {
                    self.deliver(message, &mut running);
                },
                event = running.preparation.recv() => if let Some(event) = event {
                    self.session.handle_preparation(event, self.now());
                },
                () = sleep_until(wake.into()) => {}
            }
        }
        for (exchange, _) in mem::take(&mut running.exchanges).into_values() {
            exchange.abort();
        }
        // What cannot be made durable now is sent again by the next process.
        let _ = self.flush(&mut running);
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn wake_time(&self, running: &Running) -> Instant {
        let timeout = self.session.next_timeout().map(|timeout| self.started + timeout);
        let busy = running.busy.as_ref().map(|(_, busy)| busy.ask_again);
        let end = self.max_time.and_then(|limit| self.started.checked_add(limit));
        let far = Instant::now() + Duration::from_secs(3600);
        [timeout, busy, end].into_iter().flatten().min().unwrap_or(far)
    }

    fn do_what_is_due(&mut self, running: &mut Running) {
        let now = self.now();
        self.session.handle_timeout(now);
        if let Some(limit) = self.max_time.take_if(|limit| *limit <= now) {
            running.busy = None;
            self.session.stop(Error::unavailable(format!(
                "not done within the {} s that were allowed; allow more (--max-time)",
                limit.as_secs_f64()
            )));
        }
        if running.busy.as_ref().is_some_and(|(_, busy)| busy.ask_again <= Instant::now())
            && let Some((wanted, busy)) = running.busy.take()
        {
            match wanted {
                Wanted::Part(part) => self.open(part, Some(busy), running),
                Wanted::Patch(patch) => self.patch(patch, Some(busy), running),
                Wanted::Hints { key, to_follow } => {
                    self.open_hints(key, to_follow, Some(busy), running)
                }
            }
        }
        let mut before = Instant::now();
        loop {
            let Some(output) = self.session.poll(self.now()) else {
                let Some(end) = self.session.busy_until() else { break };
                precise::wait_until(self.started + end);
                continue;
            };
            self.count_work(&output, before.elapsed());
            self.carry_out(output, running);
            before = Instant::now();
        }
        self.come_to_rest(running);
    }

    /// What was computed, and waited for after it, shows in what came of it.
    fn count_work(&self, output: &Output, took: Duration) {
        let mut stats = self.stats();
        match output {
            Output::Transmit { request: Request::Answer(_), .. }
            | Output::Persist(Persist::Journal { .. }) => {
                stats.query_time += took;
            }
            Output::Event(
                Event::Found { .. } | Event::NotFound { .. } | Event::LookupFailed { .. },
            ) => {
                stats.recover_time += took;
                stats.lookups += 1;
            }
            _ => {}
        }
    }

    fn carry_out(&mut self, output: Output, running: &mut Running) {
        match output {
            Output::Transmit { exchange, server, request, patience } => {
                self.transmit(exchange, server, request, patience, running);
            }
            Output::Abandon(exchange) => {
                if let Some((exchange, _)) = running.exchanges.remove(&exchange) {
                    exchange.abort();
                }
            }
            Output::Open(part) => self.open(part, None, running),
            Output::Patch(patch) => self.patch(patch, None, running),
            Output::OpenHints { key, to_follow } => match self.put_hints_back(running) {
                Ok(()) => self.open_hints(key, to_follow, None, running),
                Err(error) => self.session.handle_storage_failure(error),
            },
            Output::Prepare(step) => self.prepare(step, running),
            Output::Persist(persist) => {
                if let Err(error) = self.persist(persist, running) {
                    self.session.handle_storage_failure(error);
                }
            }
            Output::Event(event) => self.event(event, running),
        }
    }

    fn transmit(
        &mut self,
        exchange: ExchangeId,
        server: usize,
        request: Request,
        patience: Duration,
        running: &mut Running,
    ) {
        let phase = match &request {
            Request::Describe(_) => PhaseOf::Describe,
            Request::Fetch(_) | Request::Prepare(_) if self.is_ready() => PhaseOf::Background,
            Request::Fetch(_) | Request::Prepare(_) => PhaseOf::Prepare,
            Request::Answer(_) => PhaseOf::Lookup,
        };
        self.stats().traffic(phase).up += request_len(&request);
        let transport = self.transports[server].clone();
        let incoming = running.incoming.clone();
        let task = tokio::spawn(async move {
            let deliver = |delivery| {
                let incoming = &incoming;
                async move { incoming.send(Incoming { exchange, delivery }).await.is_ok() }
            };
            transport.exchange(request, patience, deliver).await;
        });
        running.exchanges.insert(exchange, (task.abort_handle(), phase));
    }

    fn deliver(&mut self, Incoming { exchange, delivery }: Incoming, running: &mut Running) {
        let now = self.now();
        let goes_on = matches!(delivery, Ok((Response::Chunk(_), _)));
        if let Some((_, phase)) = running.exchanges.get(&exchange)
            && let Ok((_, len)) = &delivery
        {
            self.stats().traffic(*phase).down += len;
        }
        if !goes_on {
            running.exchanges.remove(&exchange);
        }
        match delivery {
            Ok((response, _)) => self.session.handle_message(exchange, response, now),
            Err(error) => self.session.handle_failure(exchange, error, now),
        }
    }

    fn open(&mut self, part: PartKey, busy: Option<Busy>, running: &mut Running) {
        let opened = self.state.open(&part);
        self.opened(opened, part.clone(), busy, running, || Wanted::Part(part));
    }

    fn patch(&mut self, patch: Box<Patch>, busy: Option<Busy>, running: &mut Running) {
        let opened = patch_part(&mut *self.state, &patch, self.kernels);
        self.opened(opened, patch.to.clone(), busy, running, || Wanted::Patch(patch));
    }

    /// Tells the session what opening `part` came to, or asks again in a while for what is `wanted`.
    fn opened(
        &mut self,
        opened: Result<Opened>,
        part: PartKey,
        busy: Option<Busy>,
        running: &mut Running,
        wanted: impl FnOnce() -> Wanted,
    ) {
        match opened {
            Ok(Opened::Have { part: state, notice }) => {
                if let Some(notice) = notice {
                    (self.progress)(Progress::Notice(notice));
                }
                self.note_origin(&part, &state);
                self.session.handle_part(state, self.now());
            }
            Ok(Opened::Busy { done }) => {
                let (kind, total) = (part.kind, part.len);
                match self.ask_again(done, busy) {
                    Some(busy) => {
                        let done = done.min(total);
                        (self.progress)(Progress::Waiting { part: kind, done, total });
                        running.busy = Some((wanted(), busy));
                    }
                    None => self.session.handle_storage_failure(Error::unavailable(format!(
                        "another process has been holding the download of the {kind} without getting on for {} s; end it, or wait and try again",
                        self.busy_patience.as_secs()
                    ))),
                }
            }
            Err(error) => self.session.handle_storage_failure(error),
        }
    }

    /// When to ask again for something that another process has; `None` if that does not get on.
    fn ask_again(&self, done: u64, busy: Option<Busy>) -> Option<Busy> {
        let now = Instant::now();
        let grew = match &busy {
            Some(busy) if busy.done == done => busy.grew,
            _ => now,
        };
        let ask_again = now + BUSY_PAUSE;
        (now - grew < self.busy_patience).then_some(Busy { done, grew, ask_again })
    }

    fn note_origin(&self, part: &PartKey, state: &PartState) {
        if matches!(part.kind, PartKind::Hint | PartKind::Table) {
            let stored = matches!(state, PartState::Complete(_));
            self.stats().hint_was_stored.get_or_insert(stored);
        }
    }

    fn persist(&mut self, persist: Persist, running: &mut Running) -> Result<()> {
        match persist {
            Persist::Pin { server, name, pin } => {
                self.state.pin(self.transports[server].url(), &name, &pin)
            }
            Persist::Append { part, offset, bytes } => self.state.append(&part, offset, &bytes),
            Persist::Complete(part) => {
                let source = self.state.complete(&part)?;
                self.session.handle_part(PartState::Complete(source), self.now());
                Ok(())
            }
            Persist::Discard(part) => self.state.discard(&part),
            Persist::Journal { lookup, id, record } => {
                self.reserve(lookup, id, &record, running);
                Ok(())
            }
            Persist::Completion { id, change } => {
                running.unflushed = true;
                let settled = hints_of(running).and_then(|hints| hints.settle(id, &change));
                running.not_kept |= settled.is_err();
                settled
            }
            Persist::EndHints { id, change, why } => {
                // The worker's files go with the hints.
                running.stop_worker();
                hints_of(running)?.end(id, &change, &why)?;
                running.unflushed = false;
                self.session.handle_hints_ended();
                Ok(())
            }
            Persist::FollowHints { change, to } => {
                running.stop_worker();
                hints_of(running)?.follow(&change, &to)?;
                running.unflushed = false;
                self.session.handle_hints_followed(self.now());
                Ok(())
            }
            Persist::RestartHints(key) => {
                running.stop_worker();
                let hints = hints_of(running)?;
                hints.restart(&key)?;
                let saved = hints.load()?;
                running.unflushed = false;
                self.session.handle_hints(saved, self.now());
                Ok(())
            }
            Persist::SwitchHints => self.switch_hints(None, running),
            Persist::CondenseHints { generation } => self.switch_hints(Some(&generation), running),
        }
    }

    fn event(&mut self, event: Event, running: &mut Running) {
        let mut reply = |lookup, result| {
            // Whoever asked may have stopped waiting; the lookup took its course all the same.
            if let Some(reply) = running.replies.remove(&lookup)
                && let Err(unwanted) = reply.send(result)
            {
                // Erasing it takes the longer the longer it is, and the next query does not wait.
                tokio::task::spawn_blocking(move || drop(unwanted));
            }
        };
        match event {
            Event::Found { lookup, value } => reply(lookup, Ok(Some(value))),
            Event::NotFound { lookup } => reply(lookup, Ok(None)),
            Event::LookupFailed { lookup, error } => reply(lookup, Err(error)),
            Event::Described(table) => {
                for transport in &mut self.transports {
                    transport.expect_responses(&table.scheme.plan);
                }
                (self.progress)(Progress::Described(table));
            }
            Event::Updated { from, to, records, bytes } => {
                (self.progress)(Progress::Updated { from, to, records, bytes });
            }
            Event::HintsLeftBehind(why) => {
                (self.progress)(Progress::Notice(format!(
                    "the single-use hints cannot follow the table ({why}); new ones are prepared"
                )));
            }
            Event::Authenticated(root) => (self.progress)(Progress::Authenticated(root)),
            Event::Progress { part, done, total, fetched } => {
                (self.progress)(Progress::Part { part, done, total, fetched });
            }
            Event::Retrying { server, pause, error } => {
                let url = self.transports[server].url().to_owned();
                (self.progress)(Progress::Retrying { url, pause, error });
            }
            Event::GivenUp { server, error } => {
                let url = self.transports[server].url().to_owned();
                (self.progress)(Progress::GivenUp { url, error });
            }
            Event::NextGeneration { done, total } => {
                (self.progress)(Progress::NextGeneration { done, total });
            }
            Event::NotPrepared(error) => {
                (self.progress)(Progress::Notice(format!(
                    "the next hints cannot be prepared for now ({error}); the present ones go on being used"
                )));
            }
            Event::Ready => {
                self.stats().ready_after = self.now();
                self.note_hints_origin(true);
                (self.progress)(Progress::Ready);
                if let (Some(ready), Some(table)) = (self.ready.take(), self.session.table()) {
                    let _ = ready.send(Ok(table.clone()));
                }
            }
            Event::Failed(error) => {
                if let Some(ready) = self.ready.take() {
                    let _ = ready.send(Err(error));
                }
            }
        }
    }

    fn is_ready(&self) -> bool {
        self.ready.is_none()
    }

    fn stats(&self) -> std::sync::MutexGuard<'_, Stats> {
        // Numbers stay numbers, whatever happened to another holder of the lock.
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stats {
    fn traffic(&mut self, phase: PhaseOf) -> &mut crate::client::Traffic {
        match phase {
            PhaseOf::Describe => &mut self.describe,
            PhaseOf::Prepare => &mut self.prepare,
            PhaseOf::Background => &mut self.background,
            PhaseOf::Lookup => &mut self.lookup,
        }
    }
}
