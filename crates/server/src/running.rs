//! Starting a server, waiting for it, stopping it.

use crate::admission::{AdmissionLayer, Places};
use crate::batch::{BatchSettings, Batcher};
use crate::config;
use crate::connections::{Acceptor, Tls};
use crate::descriptors;
use crate::grpc;
use crate::hosted::{HostedTables, Maker};
use crate::observe::{Endpoint, Health, Metrics, Probe, overload};
use crate::preparations::Preparations;
use crate::scrub;
use crate::service::{LimitedService, PrivetService};
use crate::updates::Next;
use crate::updating::TableUpdates;
use crate::vital::Vital;
use crate::{ReadyTable, ServedTable, ServerConfig};
use privet_core::{Error, Result};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Connections that the system queues until they are accepted.
const BACKLOG: u32 = 1024;

/// Starts servers.
pub struct Server;

impl Server {
    /// Starts a server for `tables`. Returns when all of them are ready and clients can connect.
    /// Until then connections are refused, and `/healthz` says *starting*. Must be called within a
    /// Tokio runtime, on which the server then runs.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the configuration or a table cannot
    /// be served as it is, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if an address is
    /// not free or there is not enough memory.
    pub async fn start(config: ServerConfig, tables: Vec<ServedTable>) -> Result<RunningServer> {
        config.check()?;
        check_distinct(&tables)?;
        descriptors::ensure(config.limits.connections.total, tables.len())?;
        let tls = config.tls.as_ref().map(Tls::new).transpose()?;
        if let Some(address) = config.metrics_listen.filter(|it| !config::is_loopback(it.ip())) {
            tracing::warn!(
                %address,
                "/metrics and /healthz can be reached from other machines, without TLS and by \
                 anybody: they show the names of the tables, and when and how much is looked up"
            );
        }
        // Take both addresses first: an address in use must show before minutes of computing.
        let socket = bind(config.listen)?;
        let metrics_listener = config
            .metrics_listen
            .map(|address| bind(address).and_then(|socket| listen(socket, address)))
            .transpose()?;
        let metrics_addr = metrics_listener.as_ref().map(local_addr).transpose()?;

        let metrics = Arc::new(Metrics::new());
        if let Some(lost) = &config.log_lines_lost {
            metrics.log_lines_lost(Arc::clone(lost));
        }
        if let Some(Tls { certificates, .. }) = &tls {
            metrics.certificate_ends(certificates.end);
            if let Some(warning) = certificates.warning(SystemTime::now()) {
                tracing::warn!("{warning}");
            }
        }
        let health = Arc::new(Health::new());
        let stop = CancellationToken::new();
        let vital = Vital::new(Arc::clone(&health), stop.clone());
        let abort = CancellationToken::new();
        let end_endpoint = CancellationToken::new();
        // Ends the endpoint if the start fails.
        let endpoint_guard = end_endpoint.clone().drop_guard();
        let showing = metrics_listener.map(|listener| {
            let endpoint = Endpoint { metrics: Arc::clone(&metrics), health: Arc::clone(&health) };
            let guard = vital.guard("answers /metrics and /healthz");
            tokio::spawn(async move {
                endpoint.serve(listener, end_endpoint).await;
                drop(guard);
            })
        });

        let (maker, tables, ready) = prepare(Maker::new(config.clone()), tables).await?;
        let (maker, tables) = (Arc::new(maker.while_serving()), Arc::new(tables));
        ready.iter().for_each(|table| metrics.table(table));
        health.of_tables(tables.now().conditions());
        let settings = BatchSettings {
            threads: config.threads,
            window: config.batch_window,
            max_batch: config.max_batch,
            queries: config.limits.queries,
        };
        let batcher = Arc::new(Batcher::start(settings, Arc::clone(&metrics), &vital)?);
        let at_once = config.preparations_at_once.unwrap_or(config.threads);
        let preparations = Arc::new(Preparations::new(at_once, Arc::clone(&metrics)));
        let listener = listen(socket, config.listen)?;
        let local_addr = local_addr(&listener)?;
        let service = PrivetService::new(
            Arc::clone(&tables),
            Arc::clone(&batcher),
            Arc::clone(&preparations),
            config.query_observer.clone(),
        );
        let service = LimitedService::new(service);
        let probe = Probe::of::<LimitedService>(Arc::clone(&health));
        scrub::start(&config, Arc::clone(&tables), Arc::clone(&metrics), stop.clone(), &vital);
        let (updating, stopped) = (Arc::clone(&metrics), stop.clone());
        let updates = TableUpdates::new(tables, maker, updating, &config, stopped, vital.clone());
        let places = Places::new(config.limits, Arc::clone(&metrics));
        places.start_sweeping(&vital);
        let acceptor = Acceptor::new(
            &config,
            listener,
            tls.map(|tls| tls.acceptor),
            Arc::clone(&places),
            Arc::clone(&metrics),
            stop.clone(),
            abort.clone(),
        );
        let observed = Arc::clone(&metrics);
        let admission = AdmissionLayer::new(places, metrics);
        let connections = acceptor.start(&vital);
        let serving = grpc::serve(&config, (service, probe), connections, admission, stop.clone());
        let serving = tokio::spawn(serving);
        overload::start(observed, Arc::clone(&health), stop.clone(), &vital);
        health.set(Health::READY);
        tracing::info!(%local_addr, tls = config.tls.is_some(), tables = ready.len(), "serving");

        let ending = Ending {
            serving,
            stop: stop.clone(),
            abort: abort.clone(),
            drain_limit: config.drain_limit,
            vital: vital.clone(),
        };
        let (keeping, aborted, limit) = (updates.clone(), abort.clone(), config.drain_limit);
        let finished = tokio::spawn(async move {
            let result = ending.run(&health).await;
            tokio::select! {
                biased;
                () = aborted.cancelled() => {}
                () = keeping.keep_hints() => {}
                () = tokio::time::sleep(limit) => {}
            }
            preparations.stop().await;
            // Joins the compute threads, which may be in the middle of a pass.
            let _ = tokio::task::spawn_blocking(move || batcher.stop()).await;
            drop(endpoint_guard);
            if let Some(showing) = showing {
                let _ = showing.await;
            }
            tracing::info!("stopped");
            result
        });
        Ok(RunningServer {
            local_addr,
            metrics_addr,
            tables: ready,
            updates,
            handle: ShutdownHandle { stop, abort },
            vital,
            finished: Some(finished),
        })
    }
}

/// Clients distinguish tables by name and by id. Check both before the long work of making tables
/// ready.
fn check_distinct(tables: &[ServedTable]) -> Result<()> {
    for (place, table) in tables.iter().enumerate() {
        for other in &tables[..place] {
            if other.name == table.name {
                return Err(Error::api_misuse(format!(
                    "two tables are named {}; give one of them another name (NAME=FILE)",
                    table.name
                )));
            }
            if other.identity.id == table.identity.id {
                return Err(Error::api_misuse(format!(
                    "{} and {} are the same table, id {}; serve it once",
                    other.name, table.name, table.identity.id
                )));
            }
        }
    }
    Ok(())
}

/// A running server. Dropping it shuts the server down, without waiting.
pub struct RunningServer {
    local_addr: SocketAddr,
    metrics_addr: Option<SocketAddr>,
    tables: Vec<ReadyTable>,
    updates: TableUpdates,
    handle: ShutdownHandle,
    vital: Vital,
    finished: Option<JoinHandle<Result<()>>>,
}

impl RunningServer {
    /// The address for clients, with the port that the system chose if the port was 0.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The address of `/metrics` and `/healthz`, if they are served.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics_addr
    }

    /// The tables that are served, as they were when the server started.
    pub fn tables(&self) -> &[ReadyTable] {
        &self.tables
    }

    /// As [`TableUpdates::update`].
    ///
    /// # Errors
    /// As [`TableUpdates::update`].
    pub async fn update(&self, name: &str, next: impl Into<Next>) -> Result<ReadyTable> {
        self.updates.update(name, next).await
    }

    /// A handle that updates tables from elsewhere. It keeps them in memory as long as it lives.
    pub fn table_updates(&self) -> TableUpdates {
        self.updates.clone()
    }

    /// Begins to stop: no new connections, `/healthz` says *draining*, and requests under way get
    /// until [`drain_limit`](ServerConfig::drain_limit) to finish. Returns at once; see
    /// [`wait`](Self::wait).
    pub fn shutdown(&self) {
        self.handle.shutdown();
    }

    /// A handle that stops the server from elsewhere.
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        self.handle.clone()
    }

    /// Makes SIGTERM or SIGINT shut the server down, and a second one end it at once.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the system does not deliver
    /// signals.
    pub fn shutdown_on_signals(&self) -> Result<()> {
        let mut signals = Signals::new().map_err(|source| {
            Error::unavailable(
                "the system does not deliver signals, so the server could not stop cleanly",
            )
            .caused_by(source)
        })?;
        let handle = self.handle.clone();
        self.vital.spawn("hears signals", async move {
            signals.next().await;
            handle.shutdown();
            tracing::info!(
                "asked to stop: requests under way can finish; a second signal ends them"
            );
            signals.next().await;
            handle.abort();
        });
        Ok(())
    }

    /// Waits until the server has stopped.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it stopped by itself, or requests
    /// had to be cut off.
    pub async fn wait(mut self) -> Result<()> {
        let Some(finished) = self.finished.take() else { return Ok(()) };
        finished
            .await
            .map_err(|error| Error::unavailable("the server ended unexpectedly").caused_by(error))?
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.handle.shutdown();
    }
}

/// Stops a server from elsewhere.
#[derive(Clone)]
pub struct ShutdownHandle {
    stop: CancellationToken,
    abort: CancellationToken,
}

impl ShutdownHandle {
    /// As [`RunningServer::shutdown`].
    pub fn shutdown(&self) {
        self.stop.cancel();
    }

    /// Stops without finishing the requests under way.
    pub fn abort(&self) {
        self.stop.cancel();
        self.abort.cancel();
    }
}

async fn prepare(
    maker: Maker,
    tables: Vec<ServedTable>,
) -> Result<(Maker, HostedTables, Vec<ReadyTable>)> {
    let preparing = move || {
        let (tables, ready) = HostedTables::prepare(tables, &maker)?;
        Ok((maker, tables, ready))
    };
    let prepared = tokio::task::spawn_blocking(preparing).await;
    prepared.map_err(|error| {
        Error::unavailable("preparing the tables ended unexpectedly").caused_by(error)
    })?
}

/// The steps from the moment the server is asked to stop.
struct Ending {
    serving: JoinHandle<Result<(), tonic::transport::Error>>,
    stop: CancellationToken,
    abort: CancellationToken,
    drain_limit: Duration,
    vital: Vital,
}

impl Ending {
    async fn run(mut self, health: &Health) -> Result<()> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            ended = &mut self.serving => {
                // Nobody has asked it to.
                health.set(Health::FAILED);
                self.stop.cancel();
                serving_ended(ended)?;
                return Err(Error::unavailable("the server stopped by itself"));
            }
        }
        health.set(Health::DRAINING);
        let vital = self.vital.clone();
        let drained = self.drain().await;
        vital.check().and(drained)
    }

    async fn drain(mut self) -> Result<()> {
        tokio::select! {
            ended = &mut self.serving => serving_ended(ended),
            () = self.abort.cancelled() => {
                let _ = self.serving.await;
                Ok(())
            }
            () = tokio::time::sleep(self.drain_limit) => {
                self.abort.cancel();
                let _ = self.serving.await;
                Err(Error::unavailable(format!(
                    "requests were still under way {} s after the server was asked to stop; they were cut off",
                    self.drain_limit.as_secs_f64()
                )))
            }
        }
    }
}

fn serving_ended(
    ended: Result<Result<(), tonic::transport::Error>, tokio::task::JoinError>,
) -> Result<()> {
    match ended {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Error::unavailable("the server stopped by itself").caused_by(error)),
        Err(error) => Err(Error::unavailable("the server stopped by itself").caused_by(error)),
    }
}

/// Takes an address without accepting connections yet.
fn bind(address: SocketAddr) -> Result<TcpSocket> {
    let bound = || -> io::Result<TcpSocket> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // A restarted server need not wait until the system has forgotten its old connections.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(socket)
    };
    bound().map_err(|error| cannot_listen(address, error))
}

fn listen(socket: TcpSocket, address: SocketAddr) -> Result<TcpListener> {
    socket.listen(BACKLOG).map_err(|error| cannot_listen(address, error))
}

fn local_addr(listener: &TcpListener) -> Result<SocketAddr> {
    listener.local_addr().map_err(|source| {
        Error::unavailable("the system does not tell the server's own address").caused_by(source)
    })
}

fn cannot_listen(address: SocketAddr, error: io::Error) -> Error {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; another program listens there: stop it or choose another port"
        }
        io::ErrorKind::PermissionDenied => {
            "; ports below 1024 need special rights: choose a higher one"
        }
        io::ErrorKind::AddrNotAvailable => "; this machine does not have that address",
        _ => "",
    };
    Error::unavailable(format!("cannot listen on {address}: {error}{advice}")).caused_by(error)
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        // Without a console, this signal can never come.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
