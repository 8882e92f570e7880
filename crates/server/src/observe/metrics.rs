//! The metrics of one server. They belong to the server, not to the process, so several servers in
//! one process do not mix.
//!
//! They use `prometheus-client` and not `metrics`: it has one registry for each server, and nothing
//! in it grows between scrapes.

use super::overload::Refused;
use crate::hosted::ReadyTable;
use privet_wire::{StatusCode, TableDescription};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MethodStatus {
    method: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Method {
    method: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Shed {
    what: &'static str,
    why: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Origin {
    origin: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Table {
    table: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TableInfo {
    table: String,
    id: String,
    scheme: &'static str,
}

/// The metrics, each with its name and meaning in [`Metrics::new`].
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    requests: Family<MethodStatus, Counter>,
    request_seconds: Family<Method, Histogram, fn() -> Histogram>,
    request_bytes: Family<Method, Counter>,
    response_bytes: Family<Method, Counter>,
    shed: Family<Shed, Counter>,
    refused: AtomicU64,
    refused_full: AtomicU64,
    queries: Family<Table, Counter>,
    batch_size: Histogram,
    answer_seconds: Histogram,
    preparations: Family<Table, Counter>,
    preparation_seconds: Histogram,
    hints: Family<Origin, Counter>,
    table_records: Family<Table, Gauge>,
    table_record_len: Family<Table, Gauge>,
    table_epoch: Family<Table, Gauge>,
    table_key_map_fullness: Family<Table, Gauge<f64, AtomicU64>>,
    table_extra_bytes: Family<Table, Gauge>,
    table_versions: Family<Table, Gauge>,
    updates: Family<Table, Counter>,
    updates_failed: Family<Table, Counter>,
    table_info: Family<TableInfo, Gauge>,
    table_damaged: Family<Table, Gauge>,
    scrub_passes: Family<Table, Counter>,
    scrub_failures: Family<Table, Counter>,
    scrub_bytes: Counter,
    log_lines_lost: OnceLock<(Counter, Arc<AtomicU64>)>,
    pub(crate) connections: Gauge,
    pub(crate) queue_depth: Gauge,
    pub(crate) preparations_waiting: Gauge,
    pub(crate) preparations_running: Gauge,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let seconds: fn() -> Histogram = || Histogram::new(exponential_buckets(0.0005, 2.0, 17));
        let metrics = Self {
            registry: Mutex::new(Registry::with_prefix("privet")),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(seconds),
            request_bytes: Family::default(),
            response_bytes: Family::default(),
            shed: Family::default(),
            refused: AtomicU64::new(0),
            refused_full: AtomicU64::new(0),
            queries: Family::default(),
            batch_size: Histogram::new(exponential_buckets(1.0, 2.0, 8)),
            answer_seconds: seconds(),
            preparations: Family::default(),
            preparation_seconds: seconds(),
            hints: Family::default(),
            table_records: Family::default(),
            table_record_len: Family::default(),
            table_epoch: Family::default(),
            table_key_map_fullness: Family::default(),
            table_extra_bytes: Family::default(),
            table_versions: Family::default(),
            updates: Family::default(),
            updates_failed: Family::default(),
            table_info: Family::default(),
            table_damaged: Family::default(),
            scrub_passes: Family::default(),
            scrub_failures: Family::default(),
            scrub_bytes: Counter::default(),
            log_lines_lost: OnceLock::new(),
            connections: Gauge::default(),
            queue_depth: Gauge::default(),
            preparations_waiting: Gauge::default(),
            preparations_running: Gauge::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&self) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        registry.register("requests", "Requests by method and gRPC status", self.requests.clone());
        registry.register(
            "request_seconds",
            "From a request's first byte to its response's last, by method",
            self.request_seconds.clone(),
        );
        registry.register(
            "request_bytes",
            "Bytes received in request bodies",
            self.request_bytes.clone(),
        );
        registry.register(
            "response_bytes",
            "Bytes sent in response bodies",
            self.response_bytes.clone(),
        );
        registry.register(
            "shed",
            "Requests and connections refused or ended because a limit was reached: of all (total), of a peer or of a connection; evicted for others, or too slow",
            self.shed.clone(),
        );
        registry.register(
            "queries_answered",
            "Queries that went through a pass, by table",
            self.queries.clone(),
        );
        registry.register("batch_size", "Queries answered in one pass", self.batch_size.clone());
        registry.register("answer_seconds", "Duration of a pass", self.answer_seconds.clone());
        registry.register(
            "preparations",
            "Requests for hints that were computed, by table",
            self.preparations.clone(),
        );
        registry.register(
            "preparation_seconds",
            "Duration of computing the reply to a request for hints",
            self.preparation_seconds.clone(),
        );
        registry.register(
            "hints",
            "Versions of tables by where their hint or points came from: cached, computed, rebuilt, patched, file, mapped or none",
            self.hints.clone(),
        );
        registry.register("table_records", "Records of a table", self.table_records.clone());
        registry.register("table_record_len", "Bytes of a record", self.table_record_len.clone());
        registry.register(
            "table_epoch",
            "Epoch of a table in its current version",
            self.table_epoch.clone(),
        );
        registry.register(
            "table_key_map_fullness",
            "Keys of a table as a share of all that it can take, about; at 1 it must be built anew",
            self.table_key_map_fullness.clone(),
        );
        registry.register(
            "table_versions",
            "Versions of a table that are served",
            self.table_versions.clone(),
        );
        registry.register(
            "updates",
            "Versions that took the place of the one before, by table",
            self.updates.clone(),
        );
        registry.register(
            "updates_failed",
            "Updates that could not be read or made ready, by table",
            self.updates_failed.clone(),
        );
        registry.register(
            "table_extra_bytes",
            "Memory held for a table beyond its own bytes",
            self.table_extra_bytes.clone(),
        );
        registry.register(
            "table",
            "Tables served: name, id and scheme; always 1",
            self.table_info.clone(),
        );
        registry.register(
            "table_damaged",
            "1 if damage was found in a table, which is not served since then, else 0",
            self.table_damaged.clone(),
        );
        registry.register(
            "scrub_passes",
            "Passes that read all that is served of a version again and found it whole, by table",
            self.scrub_passes.clone(),
        );
        registry.register(
            "scrub_failures",
            "Checks of what is served that could not be done, so that damage would not be found, by table",
            self.scrub_failures.clone(),
        );
        registry.register(
            "scrub_bytes",
            "Bytes of tables that were read again to find damage",
            self.scrub_bytes.clone(),
        );
        registry.register("connections", "Connections open", self.connections.clone());
        registry.register("queue_depth", "Queries waiting for a pass", self.queue_depth.clone());
        registry.register(
            "preparations_waiting",
            "Requests for hints waiting for their turn",
            self.preparations_waiting.clone(),
        );
        registry.register(
            "preparations_running",
            "Requests for hints being computed",
            self.preparations_running.clone(),
        );
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The server's release", build);
    }

    /// From now on shows how many lines of the log were lost.
    pub(crate) fn log_lines_lost(&self, lost: Arc<AtomicU64>) {
        let counter = Counter::default();
        self.registry.lock().unwrap_or_else(PoisonError::into_inner).register(
            "log_lines_lost",
            "Lines of the log that were lost because they could not be written in time",
            counter.clone(),
        );
        let _ = self.log_lines_lost.set((counter, lost));
    }

    /// From now on shows when the server's certificate ends.
    pub(crate) fn certificate_ends(&self, end: SystemTime) {
        let gauge = Gauge::<i64>::default();
        let since_1970 = end.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        gauge.set(since_1970.as_secs().try_into().unwrap_or(i64::MAX));
        self.registry.lock().unwrap_or_else(PoisonError::into_inner).register(
            "tls_certificate_end_seconds",
            "When the TLS certificate ends, in seconds since 1970",
            gauge,
        );
    }

    /// Announces a table that is ready, at the start. All its counters appear, at zero.
    pub(crate) fn table(&self, table: &ReadyTable) {
        let description = &table.description;
        let label = Table { table: description.name.clone() };
        drop(self.queries.get_or_create(&label));
        drop(self.preparations.get_or_create(&label));
        drop(self.updates.get_or_create(&label));
        drop(self.updates_failed.get_or_create(&label));
        drop(self.table_damaged.get_or_create(&label));
        drop(self.scrub_passes.get_or_create(&label));
        drop(self.scrub_failures.get_or_create(&label));
        for info in infos(description) {
            self.table_info.get_or_create(&info).set(1);
        }
        self.version(table);
        self.versions(&description.name, 1);
    }

    /// The table `before` has a successor, which is served in its place from now on.
    pub(crate) fn succeeded(&self, before: &TableDescription, table: &ReadyTable) {
        for info in infos(before) {
            self.table_info.remove(&info);
        }
        for info in infos(&table.description) {
            self.table_info.get_or_create(&info).set(1);
        }
        self.updated(table);
    }

    /// The table's current version is this one now.
    pub(crate) fn updated(&self, table: &ReadyTable) {
        self.version(table);
        self.updates.get_or_create(&Table { table: table.description.name.clone() }).inc();
    }

    /// An update of a table failed.
    pub(crate) fn update_failed(&self, table: &str) {
        self.updates_failed.get_or_create(&Table { table: table.to_owned() }).inc();
    }

    /// Damage was found in a table.
    pub(crate) fn damaged(&self, table: &str) {
        self.table_damaged.get_or_create(&Table { table: table.to_owned() }).set(1);
    }

    /// All of a version was read again and found whole.
    pub(crate) fn scrubbed(&self, table: &str) {
        self.scrub_passes.get_or_create(&Table { table: table.to_owned() }).inc();
    }

    /// The served data of a table could not be checked.
    pub(crate) fn scrub_failed(&self, table: &str) {
        self.scrub_failures.get_or_create(&Table { table: table.to_owned() }).inc();
    }

    /// So many bytes were read again.
    pub(crate) fn scrubbed_bytes(&self, count: u64) {
        self.scrub_bytes.inc_by(count);
    }

    /// Sets how many versions of a table are served.
    pub(crate) fn versions(&self, table: &str, count: usize) {
        self.table_versions.get_or_create(&Table { table: table.to_owned() }).set(count as i64);
    }

    /// Sets the values of a table's current version.
    fn version(&self, table: &ReadyTable) {
        let description = &table.description;
        let label = Table { table: description.name.clone() };
        let shape = description.identity.shape;
        let gauge = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.table_records.get_or_create(&label).set(gauge(shape.records()));
        self.table_record_len.get_or_create(&label).set(gauge(shape.record_len()));
        self.table_epoch.get_or_create(&label).set(gauge(description.identity.epoch.0));
        if let Some(room) = &table.room {
            self.table_key_map_fullness.get_or_create(&label).set(room.fullness());
        }
        self.table_extra_bytes.get_or_create(&label).set(gauge(table.extra_bytes));
        self.hints.get_or_create(&Origin { origin: table.hint_origin.name() }).inc();
    }

    /// A request has ended.
    pub(crate) fn request(&self, method: &'static str, status: StatusCode, elapsed: Duration) {
        self.requests.get_or_create(&MethodStatus { method, status: status.name() }).inc();
        self.request_seconds.get_or_create(&Method { method }).observe(elapsed.as_secs_f64());
    }

    /// Counts for bytes in and out of a method's bodies.
    pub(crate) fn body_bytes(&self, method: &'static str) -> (Counter, Counter) {
        let label = Method { method };
        (
            self.request_bytes.get_or_create_owned(&label),
            self.response_bytes.get_or_create_owned(&label),
        )
    }

    /// One of `what` was refused or ended because a limit was reached: `why` says which.
    pub(crate) fn shed(&self, what: &'static str, why: &'static str) {
        self.shed.get_or_create(&Shed { what, why }).inc();
        self.refused.fetch_add(1, Ordering::Relaxed);
        if why == "total" {
            self.refused_full.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How much was shed so far.
    pub(crate) fn refused(&self) -> Refused {
        Refused {
            all: self.refused.load(Ordering::Relaxed),
            full: self.refused_full.load(Ordering::Relaxed),
        }
    }

    /// A pass has ended.
    pub(crate) fn pass(&self, table: &str, queries: usize, elapsed: Duration) {
        self.queries.get_or_create(&Table { table: table.to_owned() }).inc_by(queries as u64);
        self.batch_size.observe(queries as f64);
        self.answer_seconds.observe(elapsed.as_secs_f64());
    }

    /// The reply to a request for hints has been computed.
    pub(crate) fn preparation(&self, table: &str, elapsed: Duration) {
        self.preparations.get_or_create(&Table { table: table.to_owned() }).inc();
        self.preparation_seconds.observe(elapsed.as_secs_f64());
    }

    /// All metrics in the OpenMetrics text format, which Prometheus reads.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((counter, lost)) = self.log_lines_lost.get() {
            counter.inc_by(lost.load(Ordering::Relaxed).saturating_sub(counter.get()));
        }
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &registry);
        text
    }
}

fn infos(description: &TableDescription) -> impl Iterator<Item = TableInfo> + '_ {
    description.schemes.iter().map(|scheme| TableInfo {
        table: description.name.clone(),
        id: description.identity.id.to_string(),
        scheme: scheme.plan.scheme.name(),
    })
}

/// Counts something as open for as long as it lives.
pub(crate) struct OpenGuard(Gauge);

impl OpenGuard {
    pub(crate) fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}
