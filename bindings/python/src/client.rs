//! An open client.
//!
//! A client has a thread of its own, which never waits for Python: what comes of a lookup goes into
//! a queue. A caller takes it from there itself, in waits that Ctrl-C interrupts. Or a second
//! thread takes it, and calls back.

use crate::errors::{self, Raise as _};
use crate::news::News;
use crate::waiting::{self, Home, Next};
use privet_client::{BatchId, ClientOptions, Patience, Target, Value};
use privet_core::{Epoch, Error, Result};
use privet_schemes::SchemeId;
use privet_table::values::{ValueColumn, ValueType, Values};
use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// For how long a server may leave a caller waiting, if nothing else is said. A person waits for
/// it, and a server that restarts needs less.
const TIMEOUT: Duration = Duration::from_secs(30);

type Outcome = Result<Option<Value>>;

/// A function of Python's, and what it is to be called with: which of its lookups is over, and what
/// came of it.
type Reply = (Py<PyAny>, usize, Outcome);

/// A client of one table.
#[pyclass(frozen)]
pub(crate) struct Client {
    /// `None` after it was closed.
    open: Mutex<Option<Arc<privet_client::Client>>>,
    is_by_key: bool,
    values: Option<Values>,
    scheme: SchemeId,
    news: Arc<News>,
    progress: Option<Py<PyAny>>,
    /// Where replies to calls of `begin` go.
    replies: OnceLock<Sender<Reply>>,
    home: Home,
}

/// The options of a client, as a dictionary has them: all of them, `None` for the default.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    table: Option<String>,
    scheme: Vec<String>,
    verified: Option<bool>,
    state: Option<PathBuf>,
    keep: Option<bool>,
    ca_file: Option<PathBuf>,
    proxy: Vec<String>,
    accept_new_table: Option<bool>,
    root: Option<String>,
    publisher: Option<String>,
    digest: Option<String>,
    at_least_epoch: Option<u64>,
    insecure: Option<bool>,
    max_download: Option<u64>,
    compare_streams: Option<bool>,
    timeout: Option<f64>,
    max_time: Option<f64>,
    in_flight: Option<usize>,
}

impl Options {
    fn for_servers(self, urls: Vec<String>) -> Result<ClientOptions> {
        let mut options = ClientOptions::new(urls);
        if self.keep.unwrap_or(true) {
            let directory = self.state.map_or_else(privet_client::store::default_directory, Ok);
            options.state_dir = Some(directory?);
        }
        options.ca_file = self.ca_file;
        options.proxies = self.proxy;
        options.insecure = self.insecure.unwrap_or_default();
        options.max_time = self.max_time.map(seconds).transpose()?;
        let session = &mut options.session;
        session.table = self.table;
        session.schemes = self.scheme.iter().map(|name| name.parse()).collect::<Result<_>>()?;
        session.verified = self.verified.unwrap_or_default();
        session.accept_new_table = self.accept_new_table.unwrap_or_default();
        session.root = self.root.map(|root| root.parse()).transpose()?;
        session.publisher = self.publisher.map(|publisher| publisher.parse()).transpose()?;
        session.digest = self.digest.map(|digest| digest.parse()).transpose()?;
        session.at_least_epoch = self.at_least_epoch.map(Epoch);
        session.max_download = self.max_download.unwrap_or(session.max_download);
        session.compare_streams = self.compare_streams.unwrap_or_default();
        session.patience = patience(self.timeout)?;
        session.in_flight = self.in_flight.unwrap_or(session.in_flight).max(1);
        Ok(options)
    }
}

#[pymethods]
impl Client {
    /// Connects, and receives what the scheme needs first.
    #[new]
    #[pyo3(signature = (urls, options, progress=None))]
    fn new(
        py: Python<'_>,
        urls: Vec<String>,
        options: Options,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let news = Arc::new(News::of(&urls));
        let options = options.for_servers(urls).raise(py)?;
        let told = Arc::clone(&news);
        let connecting = privet_client::Client::connect(options, move |event| told.note(event));
        let tell = |py: Python<'_>| news.tell(py, progress.as_ref());
        let awaited = news.awaited();
        let client = waiting::outcome(py, connecting, tell)?;
        drop(awaited);
        news.tell(py, progress.as_ref())?;
        Ok(Self {
            is_by_key: client.is_by_key(),
            values: client.values().cloned(),
            scheme: client.table().scheme.plan.scheme,
            open: Mutex::new(Some(Arc::new(client))),
            news,
            progress,
            replies: OnceLock::new(),
            home: Home::here(),
        })
    }

    /// The value of a key or row: its bytes, a list of them if keys have several values, or `None`.
    /// Waits for it at most `timeout` seconds.
    #[pyo3(signature = (key, timeout=None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = key.py();
        let client = self.client(py)?;
        let until = Deadline::of(timeout).raise(py)?;
        let target = self.target(&client, key, None)?;
        let awaited = self.news.awaited();
        let (sender, mut replies) = mpsc::channel();
        let batch =
            client.begin_with(target, move |outcome| sender.send(outcome).err().map(|lost| lost.0));
        let tell = |py: Python<'_>| self.tell(py);
        let waited = waiting::next(py, &mut replies, until.moment, tell);
        let outcome = match unless_interrupted(py, &client, batch, waited)? {
            Next::Message(outcome) => outcome,
            Next::Ended => Err(gone()),
            Next::TimeIsUp => {
                client.withdraw(batch);
                Err(until.is_over())
            }
        };
        if outcome.is_ok() {
            awaited.came();
        }
        match outcome.raise(py)? {
            Some(value) => contents(py, &value).map(Some),
            None => Ok(None),
        }
    }

    /// The values of several keys or rows, in their order. An error stands in the place of the
    /// value. At least `pad_to` lookups are made. After `timeout` seconds it
    /// waits no longer, and what is not over has an error as well.
    #[pyo3(signature = (keys, pad_to, told, timeout=None))]
    fn get_many<'py>(
        &self,
        keys: &Bound<'py, PyList>,
        pad_to: usize,
        told: Option<Bound<'py, PyAny>>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = keys.py();
        let client = self.client(py)?;
        let until = Deadline::of(timeout).raise(py)?;
        let targets = self.targets(&client, keys, pad_to)?;
        let all = targets.len();
        let awaited = self.news.awaited();
        let (sender, mut replies) = mpsc::channel();
        let batch = py.detach(|| {
            client.begin_many_with(targets.into_iter().enumerate().map(|(number, target)| {
                let sender = sender.clone();
                let reply =
                    move |outcome| sender.send((number, outcome)).err().map(|lost: Lost| lost.0.1);
                (target, reply)
            }))
        });
        drop(sender);
        let mut outcomes: Vec<Option<Outcome>> = (0..keys.len()).map(|_| None).collect();
        let tell = |py: Python<'_>| self.tell(py);
        let mut done = 0;
        while done < all {
            let waited = waiting::next(py, &mut replies, until.moment, tell);
            let reply = match unless_interrupted(py, &client, batch, waited)? {
                Next::Message(reply) => reply,
                Next::Ended => break,
                Next::TimeIsUp => {
                    client.withdraw(batch);
                    for open in outcomes.iter_mut().filter(|outcome| outcome.is_none()) {
                        *open = Some(Err(until.is_over()));
                    }
                    break;
                }
            };
            let mut came = false;
            for (number, outcome) in std::iter::once(reply).chain(replies.try_iter()) {
                came |= outcome.is_ok();
                if let Some(place) = outcomes.get_mut(number) {
                    *place = Some(outcome);
                }
                done += 1;
            }
            if came {
                awaited.came();
            }
            if let Some(told) = &told {
                let called = told.call1((done, all));
                unless_interrupted(py, &client, batch, called)?;
            }
        }
        let list = PyList::empty(py);
        for outcome in outcomes {
            list.append(match outcome.unwrap_or_else(|| Err(gone())) {
                Ok(Some(value)) => contents(py, &value)?,
                Ok(None) => py.None().into_bound(py),
                Err(error) => errors::exception(py, &error)?,
            })?;
        }
        Ok(list)
    }

    /// Begins the lookups of [`get_many`](Self::get_many), and returns the number of the batch.
    /// `reply` is called for each, with its number and what came of it, on a thread of this client.
    /// Whoever has a `timeout` calls [`end`](Self::end) after it.
    #[pyo3(signature = (keys, pad_to, reply, timeout=None))]
    fn begin(
        &self,
        keys: &Bound<'_, PyList>,
        pad_to: usize,
        reply: Py<PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<u64> {
        let py = keys.py();
        let client = self.client(py)?;
        Deadline::of(timeout).raise(py)?;
        let targets = self.targets(&client, keys, pad_to)?;
        let replies = self.replies(py)?;
        let batch =
            client.begin_many_with(targets.into_iter().enumerate().map(|(number, target)| {
                let mut delivery = Delivery(Some((replies.clone(), reply.clone_ref(py), number)));
                (target, move |outcome| delivery.deliver(outcome))
            }));
        Ok(batch.0)
    }

    /// The `timeout` of a batch is over. Those of its lookups that have not begun never begin.
    /// Returns the error in the place of what came of the others.
    fn end<'py>(&self, py: Python<'py>, batch: u64, timeout: f64) -> PyResult<Bound<'py, PyAny>> {
        self.client(py)?.withdraw(BatchId(batch));
        errors::exception(py, &Deadline::of(Some(timeout)).raise(py)?.is_over())
    }

    /// Moves on to the newest version that the servers have, and returns its epoch.
    fn refresh(&self, py: Python<'_>) -> PyResult<u64> {
        let client = self.client(py)?;
        waiting::outcome(py, client.refresh(), |py| self.tell(py)).map(|table| table.epoch.0)
    }

    /// Waits until all lookups are over and everything is kept.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let client = self.client(py)?;
        let _awaited = self.news.awaited();
        waiting::outcome(py, client.finish(), |py| self.tell(py))
    }

    /// Ends the connections. Lookups under way are given up.
    fn close(&self, py: Python<'_>) {
        if !self.home.is_here() {
            // The threads that would end are another process's.
            std::mem::forget(self.lock().take());
            return;
        }
        let client = self.lock().take();
        py.detach(|| drop(client));
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.lock().is_none()
    }

    /// Whether records are looked up by key.
    #[getter]
    fn is_by_key(&self) -> bool {
        self.is_by_key
    }

    /// The name of the scheme.
    #[getter]
    fn scheme(&self) -> String {
        self.scheme.to_string()
    }

    /// The table and its scheme, as they were when the client connected.
    fn table<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let client = self.client(py)?;
        let table = client.table();
        let identity = table.identity;
        let told = PyDict::new(py);
        told.set_item("name", &table.name)?;
        told.set_item("id", identity.id.to_string())?;
        told.set_item("epoch", identity.epoch.0)?;
        told.set_item("digest", identity.digest.to_string())?;
        told.set_item("records", identity.shape.records())?;
        told.set_item("record_len", identity.shape.record_len())?;
        told.set_item("software", &table.software)?;
        told.set_item("servers", table.scheme.plan.servers)?;
        Ok(told)
    }

    /// What was done so far: bytes, and seconds.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.tell(py)?;
        let stats = self.client(py)?.stats();
        let told = PyDict::new(py);
        for (name, traffic) in [
            ("describe", stats.describe),
            ("prepare", stats.prepare),
            ("background", stats.background),
            ("lookup", stats.lookup),
        ] {
            told.set_item(format!("{name}_sent"), traffic.up)?;
            told.set_item(format!("{name}_received"), traffic.down)?;
        }
        told.set_item("lookups", stats.lookups)?;
        told.set_item("query_seconds", stats.query_time.as_secs_f64())?;
        told.set_item("recover_seconds", stats.recover_time.as_secs_f64())?;
        told.set_item("journal_seconds", stats.journal_time.as_secs_f64())?;
        told.set_item("ready_after", stats.ready_after.as_secs_f64())?;
        told.set_item("hint_was_stored", stats.hint_was_stored)?;
        Ok(told)
    }

    /// What the values are: whether they are raw, and the names and types of their columns. `None`
    /// if the table does not say.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(values) = &self.values else { return Ok(None) };
        (values.is_raw, columns(py, &values.columns)?).into_bound_py_any(py).map(Some)
    }

    /// The same as bytes, for `stream`.
    fn encoded_values<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.values.as_ref().map(|values| PyBytes::new(py, &values.encode()))
    }
}

impl Client {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<privet_client::Client>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client(&self, py: Python<'_>) -> PyResult<Arc<privet_client::Client>> {
        self.home.check(py, "client")?;
        let open = self.lock().clone();
        open.ok_or_else(|| {
            errors::raised(py, &Error::api_misuse("this client is closed: connect another one"))
        })
    }

    /// What is to be looked up for these keys, at least `pad_to`. All keys are checked before the
    /// first is sent: a mistake shows the server nothing.
    fn targets(
        &self,
        client: &privet_client::Client,
        keys: &Bound<'_, PyList>,
        pad_to: usize,
    ) -> PyResult<Vec<Target>> {
        let wanted = keys.iter().enumerate();
        let wanted = wanted.map(|(row, key)| self.target(client, &key, Some(row)));
        let mut targets = wanted.collect::<PyResult<Vec<_>>>()?;
        let dummy = match self.is_by_key {
            true => Target::key(b""),
            false => Target::index(0),
        };
        targets.resize(targets.len().max(pad_to), dummy);
        Ok(targets)
    }

    /// What a key of Python stands for, the one of a `row` if there are several: text is written as
    /// the table's keys are, bytes are the key. No error has the key in it.
    fn target(
        &self,
        client: &privet_client::Client,
        key: &Bound<'_, PyAny>,
        row: Option<usize>,
    ) -> PyResult<Target> {
        let py = key.py();
        let place = || row.map_or_else(String::new, |row| format!("row {row}, counted from 0: "));
        let wrong = |what: &str| PyTypeError::new_err(place() + what);
        match self.is_by_key {
            true if key.is_instance_of::<PyString>() => match key.extract::<&str>() {
                Ok(text) => Ok(Target::written(text)),
                // Python's own error has the text in it.
                Err(_) => Err(wrong("a key has half of a surrogate pair")),
            },
            true if key.is_instance_of::<PyBytes>() => Ok(Target::key(key.extract::<&[u8]>()?)),
            true => Err(wrong("a key is text or bytes")),
            false if key.is_instance_of::<PyInt>() => {
                let records = client.table().identity.shape.records();
                let row = key.extract::<u64>().ok().filter(|row| *row < records);
                row.map(Target::index).ok_or_else(|| {
                    let rows = format!("{}the table has rows 0 to {}", place(), records - 1);
                    errors::raised(py, &Error::api_misuse(rows))
                })
            }
            false => Err(wrong("this table is looked up by the number of a row")),
        }
    }

    fn tell(&self, py: Python<'_>) -> PyResult<()> {
        self.news.tell(py, self.progress.as_ref())
    }

    /// The queue of a thread that calls back.
    fn replies(&self, py: Python<'_>) -> PyResult<&Sender<Reply>> {
        if let Some(replies) = self.replies.get() {
            return Ok(replies);
        }
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().name("privet-replies".to_owned());
        thread
            .spawn(move || call_back(&receiver))
            .map_err(|error| Error::unavailable("the system gives no thread").caused_by(error))
            .raise(py)?;
        // If another thread was faster, this one's ends.
        Ok(self.replies.get_or_init(|| sender))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !self.home.is_here() {
            std::mem::forget(self.lock().take());
        }
    }
}

/// A reply that is delivered once: if not by the client, then as it is dropped.
struct Delivery(Option<(Sender<Reply>, Py<PyAny>, usize)>);

impl Delivery {
    /// Returns the outcome if nobody takes it any more.
    fn deliver(&mut self, outcome: Outcome) -> Option<Outcome> {
        let (replies, reply, number) = self.0.take()?;
        replies.send((reply, number, outcome)).err().map(|lost| lost.0.2)
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.deliver(Err(gone()));
    }
}

fn call_back(replies: &Receiver<Reply>) {
    while let Ok(reply) = replies.recv() {
        let called = Python::try_attach(|py| {
            for (reply, number, outcome) in std::iter::once(reply).chain(replies.try_iter()) {
                let outcome = match outcome {
                    Ok(Some(value)) => contents(py, &value),
                    Ok(None) => Ok(py.None().into_bound(py)),
                    Err(error) => errors::exception(py, &error),
                };
                let called = outcome.and_then(|outcome| reply.call1(py, (number, outcome)));
                if let Err(error) = called {
                    error.write_unraisable(py, None);
                }
            }
        });
        if called.is_none() {
            // Python is ending.
            return;
        }
    }
}

/// What a channel gives back if nobody takes it.
type Lost = mpsc::SendError<(usize, Outcome)>;

/// Withdraws `batch` if a person has interrupted the wait for it. Any other error may follow from
/// what came, for instance one of a progress function. So it changes nothing that
/// servers see.
fn unless_interrupted<T>(
    py: Python<'_>,
    client: &privet_client::Client,
    batch: BatchId,
    waited: PyResult<T>,
) -> PyResult<T> {
    waited.inspect_err(|error| {
        if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            client.withdraw(batch);
        }
    })
}

/// When a caller waits no longer.
struct Deadline {
    seconds: f64,
    moment: Option<Instant>,
}

impl Deadline {
    fn of(timeout: Option<f64>) -> Result<Self> {
        let wait = timeout.map(positive_seconds).transpose()?;
        let moment = wait.and_then(|wait| Instant::now().checked_add(wait));
        Ok(Self { seconds: timeout.unwrap_or_default(), moment })
    }

    fn is_over(&self) -> Error {
        Error::unavailable(format!(
            "no answer within the {} s of `timeout`; allow more time",
            self.seconds
        ))
    }
}

/// How long to wait for what, for a caller who waits about `timeout` seconds for a server that does
/// not answer.
fn patience(timeout: Option<f64>) -> Result<Patience> {
    let Some(timeout) = timeout else {
        // What a server computes or sends for long is no silence.
        let Patience { chunk, reply, .. } = Patience::default();
        return Ok(Patience { chunk, reply, ..Patience::within(TIMEOUT) });
    };
    Ok(Patience::within(positive_seconds(timeout)?))
}

fn positive_seconds(timeout: f64) -> Result<Duration> {
    let wait = seconds(timeout)?;
    match wait.is_zero() {
        true => Err(Error::api_misuse("a `timeout` is a number of seconds above 0")),
        false => Ok(wait),
    }
}

fn gone() -> Error {
    Error::unavailable("the client was closed before the lookup was over")
}

fn seconds(seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| Error::api_misuse("a time is a number of seconds from 0"))
}

/// The bytes of a value, or a list of them.
fn contents<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
    match value.is_list() {
        true => PyList::new(py, value.values().map(bytes)).map(Bound::into_any),
        false => Ok(bytes(value).into_any()),
    }
}

fn columns<'py>(py: Python<'py>, columns: &[ValueColumn]) -> PyResult<Bound<'py, PyTuple>> {
    let column = |column: &ValueColumn| (&column.name, kind(py, &column.of)?).into_bound_py_any(py);
    PyTuple::new(py, columns.iter().map(column).collect::<PyResult<Vec<_>>>()?)
}

/// A type as a tuple: its name and what it is made of.
fn kind<'py>(py: Python<'py>, of: &ValueType) -> PyResult<Bound<'py, PyAny>> {
    match of {
        ValueType::Null => ("null",).into_bound_py_any(py),
        ValueType::Boolean => ("boolean",).into_bound_py_any(py),
        ValueType::Integer { bits, is_signed } => {
            ("integer", *bits, *is_signed).into_bound_py_any(py)
        }
        ValueType::Float(bits) => ("float", *bits).into_bound_py_any(py),
        ValueType::Number => ("number",).into_bound_py_any(py),
        ValueType::Decimal { digits, places } => {
            ("decimal", *digits, *places).into_bound_py_any(py)
        }
        ValueType::Text => ("text",).into_bound_py_any(py),
        ValueType::Bytes => ("bytes",).into_bound_py_any(py),
        ValueType::Date => ("date",).into_bound_py_any(py),
        ValueType::Time(places) => ("time", *places).into_bound_py_any(py),
        ValueType::Timestamp { places, zone } => {
            ("timestamp", *places, zone.as_deref()).into_bound_py_any(py)
        }
        ValueType::List(of) => ("list", kind(py, of)?).into_bound_py_any(py),
        ValueType::Struct(fields) => ("struct", columns(py, fields)?).into_bound_py_any(py),
        ValueType::Map(of) => ("map", kind(py, of)?).into_bound_py_any(py),
        _ => ("any",).into_bound_py_any(py),
    }
}
