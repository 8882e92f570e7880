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
use prometheus_client::registry::{Metric, Registry};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        let mut registry = Registry::with_prefix("privet");
        registry.register("build", "The server's release", build);
        let to = &mut registry;
        Self {
            requests: new(to, "requests", "Requests by method and gRPC status"),
            request_seconds: add(
                to,
                "request_seconds",
                "From a request's first byte to its response's last, by method",
                Family::new_with_constructor(seconds),
            ),
            request_bytes: new(to, "request_bytes", "Bytes received in request bodies"),
            response_bytes: new(to, "response_bytes", "Bytes sent in response bodies"),
            shed: new(
                to,
                "shed",
                "Requests and connections refused or ended because a limit was reached: of all (total), of a peer or of a connection; evicted for others, or too slow",
            ),
            queries: new(to, "queries_answered", "Queries that went through a pass, by table"),
            batch_size: add(
                to,
                "batch_size",
                "Queries answered in one pass",
                Histogram::new(exponential_buckets(1.0, 2.0, 8)),
            ),
            answer_seconds: add(to, "answer_seconds", "Duration of a pass", seconds()),
            preparations: new(
                to,
                "preparations",
                "Requests for hints that were computed, by table",
            ),
            preparation_seconds: add(
                to,
                "preparation_seconds",
                "Duration of computing the reply to a request for hints",
                seconds(),
            ),
            hints: new(
                to,
                "hints",
                "Versions of tables by where their hint or points came from: cached, computed, rebuilt, patched, file, mapped or none",
            ),
            table_records: new(to, "table_records", "Records of a table"),
            table_record_len: new(to, "table_record_len", "Bytes of a record"),
            table_epoch: new(to, "table_epoch", "Epoch of a table in its current version"),
            table_key_map_fullness: new(
                to,
                "table_key_map_fullness",
                "Keys of a table as a share of all that it can take, about; at 1 it must be built anew",
            ),
            table_versions: new(to, "table_versions", "Versions of a table that are served"),
            updates: new(to, "updates", "Versions that took the place of the one before, by table"),
            updates_failed: new(
                to,
                "updates_failed",
                "Updates that could not be read or made ready, by table",
            ),
            table_extra_bytes: new(
                to,
                "table_extra_bytes",
                "Memory held for a table beyond its own bytes",
            ),
            table_info: new(to, "table", "Tables served: name, id and scheme; always 1"),
            table_damaged: new(
                to,
                "table_damaged",
                "1 if damage was found in a table, which is not served since then, else 0",
            ),
            scrub_passes: new(
                to,
                "scrub_passes",
                "Passes that read all that is served of a version again and found it whole, by table",
            ),
            scrub_failures: new(
                to,
                "scrub_failures",
                "Checks of what is served that could not be done, so that damage would not be found, by table",
            ),
            scrub_bytes: new(
                to,
                "scrub_bytes",
                "Bytes of tables that were read again to find damage",
            ),
            connections: new(to, "connections", "Connections open"),
            queue_depth: new(to, "queue_depth", "Queries waiting for a pass"),
            preparations_waiting: new(
                to,
                "preparations_waiting",
                "Requests for hints waiting for their turn",
            ),
            preparations_running: new(
                to,
                "preparations_running",
                "Requests for hints being computed",
            ),
            refused: AtomicU64::new(0),
            refused_full: AtomicU64::new(0),
            log_lines_lost: OnceLock::new(),
            registry: Mutex::new(registry),
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on shows how many lines of the log were lost.
    pub(crate) fn log_lines_lost(&self, lost: Arc<AtomicU64>) {
        let counter = Counter::default();
        self.registry().register(
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
        self.registry().register(
            "tls_certificate_end_seconds",
            "When the TLS certificate ends, in seconds since 1970",
            gauge,
        );
    }

    /// Announces a table that is ready, at the start. All its counters appear, at zero.
    pub(crate) fn table(&self, table: &ReadyTable) {
        let description = &table.description;
        let label = Table { table: description.name.clone() };
        let Self { queries, preparations, updates, updates_failed, .. } = self;
        let Self { scrub_passes, scrub_failures, table_damaged, .. } = self;
        let counters =
            [queries, preparations, updates, updates_failed, scrub_passes, scrub_failures];
        counters.into_iter().for_each(|counter| drop(counter.get_or_create(&label)));
        drop(table_damaged.get_or_create(&label));
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
        let registry = self.registry();
        if let Some((counter, lost)) = self.log_lines_lost.get() {
            counter.inc_by(lost.load(Ordering::Relaxed).saturating_sub(counter.get()));
        }
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &registry);
        text
    }
}

/// A metric, added to a registry.
fn add<M: Metric + Clone>(to: &mut Registry, name: &str, help: &str, metric: M) -> M {
    to.register(name, help, metric.clone());
    metric
}

/// A new metric, added to a registry.
fn new<M: Metric + Clone + Default>(to: &mut Registry, name: &str, help: &str) -> M {
    add(to, name, help, M::default())
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
