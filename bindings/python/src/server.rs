//! A server in this process, for tests and notebooks.

use crate::errors::{self, Raise as _};
use crate::waiting::{self, Home};
use privet_core::Error;
use privet_host::TableFile;
use privet_host::watch::{Hangups, Watching};
use privet_schemes::SchemeId;
use privet_schemes::registry::{self, Tuning};
use privet_server::{RunningServer, ServerConfig, ShutdownHandle};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;

/// How often the files of tables are looked at.
const WATCH_EVERY: Duration = Duration::from_secs(1);

type Seen = Arc<Mutex<Vec<Vec<u8>>>>;

/// A running server.
#[pyclass(frozen)]
pub(crate) struct Server {
    running: Mutex<Option<Running>>,
    address: SocketAddr,
    scheme: SchemeId,
    servers: usize,
    tuning: Tuning,
    seen: Option<Seen>,
    home: Home,
}

/// In the order in which they end.
struct Running {
    _watching: Watching,
    stop: ShutdownHandle,
    server: RunningServer,
    runtime: Runtime,
}

#[pymethods]
impl Server {
    /// Starts a server of one table.
    #[new]
    #[pyo3(signature = (path, *, name, scheme, listen, threads, cache, insecure, observe, beside))]
    #[expect(clippy::too_many_arguments, reason = "they are named, and the package has defaults")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        name: Option<String>,
        scheme: Option<String>,
        listen: String,
        threads: Option<usize>,
        cache: Option<PathBuf>,
        insecure: bool,
        observe: bool,
        beside: Option<PyRef<'_, Self>>,
    ) -> PyResult<Self> {
        let listen = listen.parse().map_err(|_| {
            Error::api_misuse("`listen` is an address and a port, such as 127.0.0.1:0")
        });
        let mut config = ServerConfig::new(listen.raise(py)?);
        config.threads = threads.unwrap_or(config.threads).max(1);
        config.cache_dir = cache;
        config.insecure = insecure;
        let seen = observe.then(Seen::default);
        if let Some(seen) = seen.clone() {
            config.query_observer = Some(Arc::new(move |request| {
                seen.lock().unwrap_or_else(PoisonError::into_inner).push(request.query.to_vec());
            }));
        }
        config.check().raise(py)?;
        let name = name.or_else(|| TableFile::default_name(&path).map(str::to_owned));
        let name = name
            .ok_or_else(|| Error::api_misuse("the file's name gives the table none: name it"))
            .raise(py)?;
        let named = scheme.map(|scheme| scheme.parse()).transpose().raise(py)?;
        let tuning = beside.map(|other| other.tuning.clone());
        let file = TableFile { scheme: named, ..TableFile::new(name, path) };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime
            .map_err(|error| Error::unavailable("no threads to serve with").caused_by(error))
            .raise(py)?;
        let starting = runtime.spawn(async move {
            let (mut table, followed) = file.open()?;
            let (scheme, identity) = (table.scheme, table.identity);
            let tuning = match tuning {
                Some(tuning) => tuning,
                None => privet_laboratory::completed(scheme, &identity, Tuning::default())?,
            };
            let servers = registry::plan(scheme, &identity, &tuning)?.servers;
            table.tuning = tuning.clone();
            let server = privet_server::Server::start(config, vec![table]).await?;
            Ok((server, followed, scheme, servers, tuning))
        });
        let starting = async {
            starting.await.unwrap_or_else(|_| Err(Error::internal("the server's start panicked")))
        };
        let started = waiting::outcome(py, starting, |_| Ok(()));
        let (server, followed, scheme, servers, tuning) = match started {
            Ok(started) => started,
            Err(error) => {
                // A hint that is still computed keeps nobody waiting.
                runtime.shutdown_background();
                return Err(error);
            }
        };
        let (updates, address) = (server.table_updates(), server.local_addr());
        let watching = {
            let _within = runtime.enter();
            Watching::start(vec![followed], updates, WATCH_EVERY, Hangups::ignored())
        };
        let stop = server.shutdown_handle();
        let running = Running { _watching: watching, stop, server, runtime };
        let running = Mutex::new(Some(running));
        Ok(Self { running, address, scheme, servers, tuning, seen, home: Home::here() })
    }

    /// Where it listens.
    #[getter]
    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The name of the scheme.
    #[getter]
    fn scheme(&self) -> String {
        self.scheme.to_string()
    }

    /// How many servers the scheme takes.
    #[getter]
    fn servers(&self) -> usize {
        self.servers
    }

    /// The queries that came since the last call.
    fn observed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let Some(seen) = &self.seen else {
            let error = Error::api_misuse("this server was not started with observe=True");
            return Err(errors::raised(py, &error));
        };
        let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
        PyList::new(py, seen.iter().map(|query| PyBytes::new(py, query)))
    }

    /// Stops, after requests under way have come to their end.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.home.check(py, "server")?;
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Running { _watching, stop, server, runtime }) = running else { return Ok(()) };
        stop.shutdown();
        let stopping = runtime.spawn(server.wait());
        let stopping = async {
            stopping.await.unwrap_or_else(|_| Err(Error::internal("the server's end panicked")))
        };
        let stopped = waiting::outcome(py, stopping, |_| Ok(()));
        drop(_watching);
        runtime.shutdown_background();
        stopped
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        match running {
            Some(running) if !self.home.is_here() => std::mem::forget(running),
            Some(Running { stop, runtime, .. }) => {
                stop.abort();
                runtime.shutdown_background();
            }
            None => {}
        }
    }
}
