//! What one scheme costs for a table and its use.

use super::means::{ClientKind, Link, Prices};
use super::subject::Subject;
use crate::machine::{self, Machine};
use crate::traffic::{self, Traffic};
use privet_schemes::SchemeId;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::{SchemePlan, patches_downloads};
use privet_wire::limits::MAX_TOLD_LAYOUT_LEN;
use serde::{Serialize, Serializer};
use std::time::Duration;

/// Days of a month.
const MONTH: f64 = 30.0;
/// The load from which on queries that come during a pass share the next one.
const BUSY: f64 = 0.5;

/// How the table is used, with what means.
#[derive(Clone, Copy, Serialize)]
pub struct Use {
    /// Of a client in a day.
    #[serde(rename = "lookups_per_day")]
    pub lookups: u64,
    /// How many there are.
    pub clients: u64,
    /// Of the table in a day.
    #[serde(rename = "updates_per_day")]
    pub updates: u64,
    /// Records that an update changes.
    pub changed_records: u64,
    /// What clients run in.
    pub client: ClientKind,
    /// Their connection.
    pub link: Link,
    /// What things cost.
    pub prices: Prices,
}

/// Where nothing is said.
impl Default for Use {
    fn default() -> Self {
        let link = Link { bits_per_s: 20e6, round_trip: Duration::from_millis(40) };
        Self {
            lookups: 10,
            clients: 1000,
            updates: 0,
            changed_records: 100,
            client: ClientKind::Native,
            link,
            prices: Prices::default(),
        }
    }
}

/// What computes.
pub(super) struct Machines {
    pub(super) server: Machine,
    pub(super) client: Machine,
}

impl Machines {
    /// Clients run on a machine like the server's, unless they run in a browser.
    pub(super) fn new(server: Machine, client: ClientKind) -> Option<Self> {
        let client = match client {
            ClientKind::Native | ClientKind::Python => server.clone(),
            ClientKind::Browser => Machine::browser()?,
        };
        Some(Self { server, client })
    }
}

/// What one scheme costs.
#[derive(Serialize)]
pub(crate) struct Candidate {
    #[serde(serialize_with = "by_name")]
    pub(super) scheme: SchemeId,
    pub(super) servers: usize,
    /// Before the first lookup, over all servers, with the layout of keys.
    pub(super) first: Bytes,
    #[serde(rename = "first_s", serialize_with = "in_seconds")]
    pub(super) first_time: Duration,
    /// A lookup, over all servers.
    pub(super) lookup: Bytes,
    pub(super) round_trips: u32,
    #[serde(rename = "client_query_us", serialize_with = "in_microseconds")]
    pub(super) client_query: Duration,
    #[serde(rename = "answer_us", serialize_with = "in_microseconds")]
    pub(super) answer: Duration,
    #[serde(rename = "answer_of_eight_us", serialize_with = "in_microseconds")]
    pub(super) answer_of_eight: Duration,
    #[serde(rename = "client_recover_us", serialize_with = "in_microseconds")]
    pub(super) client_recover: Duration,
    /// From the query to the record.
    #[serde(rename = "lookup_s", serialize_with = "in_seconds")]
    pub(super) lookup_time: Duration,
    /// What a client receives in a day for lookups, updates, and hints that ran out.
    #[serde(rename = "received_per_day_bytes")]
    pub(super) day_bytes: f64,
    /// What a client keeps.
    #[serde(rename = "client_keeps_bytes")]
    pub(super) kept_bytes: u64,
    /// Whether that is secret, and each part of it good for one lookup.
    #[serde(skip)]
    pub(super) keeps_hints: bool,
    #[serde(rename = "server_setup_s", serialize_with = "in_seconds")]
    pub(super) setup: Duration,
    #[serde(rename = "server_prepare_s", serialize_with = "in_seconds")]
    pub(super) server_prepare: Duration,
    #[serde(rename = "client_prepare_s", serialize_with = "in_seconds")]
    pub(super) client_prepare: Duration,
    /// Memory of each server, while nothing changes.
    pub(super) server_bytes: u64,
    /// The most that it takes: at its start, or when it takes in an update.
    pub(super) server_peak_bytes: u64,
    /// Cores of each server that are busy on average.
    pub(super) cores: f64,
    #[serde(rename = "month")]
    pub(super) money: Money,
    pub(super) month_sum: f64,
}

fn by_name<S: Serializer>(scheme: &SchemeId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(scheme.name())
}

fn in_seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

fn in_microseconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64() * 1e6)
}

/// Bytes of messages.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Bytes {
    pub(super) up: u64,
    pub(super) down: u64,
}

impl Bytes {
    pub(super) fn sum(self) -> u64 {
        self.up + self.down
    }
}

/// What a month costs, in which all clients begin.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Money {
    pub(super) traffic_first: f64,
    pub(super) traffic_later: f64,
    pub(super) cores: f64,
    pub(super) memory: f64,
    pub(super) waiting_first: f64,
    pub(super) waiting_later: f64,
}

impl Money {
    pub(super) fn sum(&self) -> f64 {
        self.parts().iter().sum()
    }

    pub(super) fn parts(&self) -> [f64; 6] {
        let Self { traffic_first, traffic_later, cores, memory, waiting_first, waiting_later } =
            *self;
        [traffic_first, traffic_later, cores, memory, waiting_first, waiting_later]
    }
}

impl Candidate {
    pub(super) fn new(plan: SchemePlan, subject: &Subject, how: &Use, machines: &Machines) -> Self {
        let identity = &subject.identity;
        let costs = plan.costs(identity);
        let Traffic { offline_up, offline_down, lookups } = traffic::of(&plan, identity);
        let first = Bytes { up: offline_up, down: offline_down };
        let each = subject.records_per_lookup;
        let lookup = Bytes {
            up: each * lookups.iter().map(|server| server.query).sum::<u64>(),
            down: each * lookups.iter().map(|server| server.answer).sum::<u64>(),
        };
        let layout = subject.layout_bytes;
        let is_asked = !lookups.is_empty();
        let of_client = |operations| machines.client.time(operations) * each as u32;
        let of_server = |operations| machines.server.time(operations) * each as u32;
        let (client_query, client_recover) = (of_client(&costs.query), of_client(&costs.recover));
        let (answer, answer_of_eight) =
            (of_server(&costs.answer), of_server(&costs.answer_of_eight));
        let client_prepare = machines.client.time(&costs.prepare);
        let server_prepare = machines.server.time(&costs.hints);
        let network = match is_asked {
            true => how.link.round_trip + how.link.time(lookup.sum()),
            false => Duration::ZERO,
        };
        let lookup_time = client_query + network + answer + client_recover;
        // Clients compute while they receive, unless a server has to compute first.
        let received = how.link.time(first.sum()).max(client_prepare);
        let first_time = match plan.offline {
            // A small layout comes with the description.
            OfflinePhase::Nothing if layout <= MAX_TOLD_LAYOUT_LEN as u64 => how.link.time(layout),
            OfflinePhase::Nothing => how.link.time(layout) + how.link.round_trip,
            // It comes beside the first query.
            _ if plan.scheme.about().queries_first => {
                (received + how.link.round_trip).saturating_sub(lookup_time) + how.link.time(layout)
            }
            _ => server_prepare + received + how.link.time(layout) + how.link.round_trip,
        };

        let (lookups_a_day, clients) = (how.lookups as f64, how.clients as f64);
        let used_up = match (plan.supply(identity), plan.offline) {
            (
                Some(supply),
                OfflinePhase::StreamTable { .. } | OfflinePhase::StreamArranged { .. },
            ) => lookups_a_day * each as f64 / supply as f64,
            _ => 0.0,
        };
        let keeps_hints = plan.hints_len(identity) > 0;
        // A visit to a page is taken to be a day's.
        let is_lost = how.client == ClientKind::Browser && keeps_hints;
        let generations = if is_lost { used_up.max(1.0) } else { used_up };
        let update = update_bytes(&plan, subject, how, first);

        let other_bytes = generations * first.down as f64 + how.updates as f64 * update;
        let day_bytes = lookups_a_day * lookup.down as f64 + other_bytes;

        let first = Bytes { down: first.down + layout, ..first };
        let load = clients * lookups_a_day / 86_400.0;
        let alone = load * answer.as_secs_f64();
        let answering = if alone < BUSY { alone } else { load * answer_of_eight.as_secs_f64() };
        let setup = machines.server.time(&costs.setup);
        let cores = answering
            + clients * generations.max(1.0 / MONTH) / 86_400.0 * server_prepare.as_secs_f64()
            + how.updates as f64 / 86_400.0 * setup.as_secs_f64();
        let memory = plan.memory(identity, machine::threads());
        let server_bytes = memory.version;
        let server_peak_bytes = match how.updates {
            0 => memory.at_start(),
            _ => memory.at_start().max(memory.at_update()),
        };
        let servers = plan.servers;
        let month = MONTH * clients;
        let money = Money {
            traffic_first: clients * first.down as f64 / 1e9 * how.prices.traffic,
            traffic_later: month * day_bytes / 1e9 * how.prices.traffic,
            cores: servers as f64 * cores * how.prices.core,
            memory: servers as f64 * server_bytes as f64 / f64::from(1 << 30) * how.prices.memory,
            waiting_first: clients * if is_lost { MONTH } else { 1.0 } * first_time.as_secs_f64()
                / 3600.0
                * how.prices.waiting,
            waiting_later: month * lookups_a_day * lookup_time.as_secs_f64() / 3600.0
                * how.prices.waiting,
        };
        Self {
            scheme: plan.scheme,
            servers,
            first,
            first_time,
            lookup,
            round_trips: u32::from(is_asked),
            client_query,
            answer,
            answer_of_eight,
            client_recover,
            lookup_time,
            day_bytes,
            kept_bytes: traffic::kept(&plan, identity),
            keeps_hints,
            setup,
            client_prepare,
            server_prepare,
            server_bytes,
            server_peak_bytes,
            cores,
            month_sum: money.sum(),
            money,
        }
    }
}

/// What an update takes in which each changed record stands before and after.
pub(super) fn epoch_bytes(subject: &Subject, how: &Use) -> f64 {
    let shape = subject.identity.shape;
    let changed = how.changed_records.min(shape.records());
    changed as f64 * 2.0 * (shape.record_len() + 4) as f64
}

/// What a client receives when the table is updated: the epoch, in which each changed record stands
/// before and after, or what it downloaded anew.
fn update_bytes(plan: &SchemePlan, subject: &Subject, how: &Use, first: Bytes) -> f64 {
    let identity = &subject.identity;
    let epoch = epoch_bytes(subject, how);
    let version = (plan, identity);
    match plan.offline {
        OfflinePhase::Nothing => 0.0,
        OfflinePhase::Download { .. } if !patches_downloads(version, version) => first.down as f64,
        _ => epoch.min(first.down as f64),
    }
}
