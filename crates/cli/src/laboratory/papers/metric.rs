//! What the papers measure, and how the same is read off a run here.

use super::figures::Figures;
use crate::display;
use privet_measure::plan::Link;
use serde::Deserialize;
use std::time::Duration;

/// What is measured. The order is that of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Metric {
    /// What a client keeps between lookups.
    ClientStorage,
    /// All that a server stores for the scheme.
    ServerStorage,
    /// What Beimel, Ishai and Malkin would store.
    PrecomputedStorage,
    /// What a client sends and receives before its first lookup.
    OfflineBytes,
    /// What a server computes once for a table.
    ServerOnce,
    /// What is computed for a client before its first lookup.
    OfflineTime,
    /// The same, on eight threads.
    #[serde(rename = "offline-time-8-threads")]
    OfflineTimeEightThreads,
    OnlineBytes,
    OnlineUp,
    OnlineDown,
    /// What one server receives and sends.
    ServerUp,
    ServerDown,
    /// What a lookup takes the client and all servers.
    OnlineTime,
    ClientTime,
    /// What a lookup takes the slowest server.
    ServerTime,
    /// A lookup and its share of what came before.
    AmortizedBytes,
    AmortizedTime,
    /// The share alone.
    AmortizedOfflineBytes,
    AmortizedOfflineTime,
    #[serde(rename = "amortized-offline-time-8-threads")]
    AmortizedOfflineTimeEightThreads,
    /// A lookup over a link.
    WideAreaTime,
    /// What a server reads for a lookup.
    ServerReads,
    /// Lookups in a second.
    Throughput,
    /// Bytes of the table over the time of a lookup.
    PassRate,
    /// For each record of a batch of 500 that changed.
    EditServerTime,
    EditClientTime,
    EditBytes,
    /// How many times as much the second of two schemes takes.
    Factor,
}

/// What a metric counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Bytes,
    Seconds,
    BytesPerSecond,
    PerSecond,
    Count,
}

impl Metric {
    /// The heading of its column.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::ClientStorage => "client keeps",
            Self::ServerStorage => "server stores",
            Self::PrecomputedStorage => "precomputed derivatives",
            Self::OfflineBytes => "first use, bytes",
            Self::ServerOnce => "server, once",
            Self::OfflineTime => "first use, time",
            Self::OfflineTimeEightThreads => "first use, 8 threads",
            Self::OnlineBytes => "lookup, bytes",
            Self::OnlineUp => "sent",
            Self::OnlineDown => "received",
            Self::ServerUp => "a server receives",
            Self::ServerDown => "a server sends",
            Self::OnlineTime => "lookup, time",
            Self::ClientTime => "client",
            Self::ServerTime => "server",
            Self::AmortizedBytes => "with its share, bytes",
            Self::AmortizedTime => "with its share, time",
            Self::AmortizedOfflineBytes => "share, bytes",
            Self::AmortizedOfflineTime => "share, time",
            Self::AmortizedOfflineTimeEightThreads => "share, 8 threads",
            Self::WideAreaTime => "over the link",
            Self::ServerReads => "reads",
            Self::Throughput => "lookups a second",
            Self::PassRate => "pass",
            Self::EditServerTime => "edit, server",
            Self::EditClientTime => "edit, client",
            Self::EditBytes => "edit, bytes",
            Self::Factor => "factor",
        }
    }

    pub(super) fn unit(self) -> Unit {
        match self {
            Self::ClientStorage
            | Self::ServerStorage
            | Self::PrecomputedStorage
            | Self::OfflineBytes
            | Self::OnlineBytes
            | Self::OnlineUp
            | Self::OnlineDown
            | Self::ServerUp
            | Self::ServerDown
            | Self::AmortizedBytes
            | Self::AmortizedOfflineBytes
            | Self::EditBytes => Unit::Bytes,
            Self::ServerReads | Self::Factor => Unit::Count,
            Self::Throughput => Unit::PerSecond,
            Self::PassRate => Unit::BytesPerSecond,
            _ => Unit::Seconds,
        }
    }

    /// The same here. `None` if it was not measured, or is not measured here at all.
    pub(super) fn of(self, here: &Figures, link: Option<Link>) -> Option<f64> {
        let sizes = &here.sizes;
        let bytes = |bytes: u64| Some(bytes as f64);
        let share = |whole: f64| sizes.supply.map(|supply| whole / supply as f64);
        let times = here.times.as_ref();
        let lookup = |parallel: bool| {
            let servers = if parallel { times?.slowest_answer } else { times?.answers };
            Some(times?.query + servers + times?.recover)
        };
        let offline = || Some(times?.hints + times?.prepare);
        match self {
            Self::ClientStorage => bytes(sizes.client),
            Self::ServerStorage => bytes(sizes.server),
            Self::OfflineBytes => bytes(sizes.offline_up + sizes.offline_down),
            Self::ServerOnce => times.map(|times| times.setup),
            Self::OfflineTime => offline(),
            Self::OnlineBytes => bytes(sizes.online_up + sizes.online_down),
            Self::OnlineUp => bytes(sizes.online_up),
            Self::OnlineDown => bytes(sizes.online_down),
            Self::ServerUp => bytes(sizes.server_up),
            Self::ServerDown => bytes(sizes.server_down),
            Self::OnlineTime => lookup(false),
            Self::ClientTime => times.map(|times| times.query + times.recover),
            Self::ServerTime => times.map(|times| times.slowest_answer),
            Self::AmortizedBytes => {
                let online = (sizes.online_up + sizes.online_down) as f64;
                Some(online + share((sizes.offline_up + sizes.offline_down) as f64).unwrap_or(0.0))
            }
            Self::AmortizedTime => Some(lookup(false)? + share(offline()?).unwrap_or(0.0)),
            Self::AmortizedOfflineBytes => share((sizes.offline_up + sizes.offline_down) as f64),
            Self::AmortizedOfflineTime => share(offline()?),
            Self::WideAreaTime => {
                let link = link?;
                let moved = link.time(sizes.online_up + sizes.online_down) + link.round_trip;
                Some(lookup(true)? + moved.as_secs_f64())
            }
            Self::ServerReads => sizes.reads.and_then(bytes),
            Self::Throughput => times.map(|times| 1.0 / times.slowest_answer),
            Self::PassRate => times.map(|times| sizes.table as f64 / times.slowest_answer),
            Self::EditServerTime => times?.edit_server,
            Self::EditClientTime => times?.edit_client,
            Self::PrecomputedStorage
            | Self::OfflineTimeEightThreads
            | Self::AmortizedOfflineTimeEightThreads
            | Self::EditBytes
            | Self::Factor => None,
        }
    }

    /// Whether bytes alone decide it, so that no run is needed.
    pub(super) fn is_exact(self) -> bool {
        matches!(self.unit(), Unit::Bytes | Unit::Count)
    }
}

impl Unit {
    /// An amount for people.
    pub(super) fn words(self, amount: f64) -> String {
        match self {
            Self::Bytes => display::bytes(amount.round() as u64),
            Self::Seconds => {
                display::duration(Duration::try_from_secs_f64(amount).unwrap_or(Duration::MAX))
            }
            Self::BytesPerSecond => format!("{:.1} GB/s", amount / 1e9),
            Self::PerSecond => format!("{}/s", display::count(amount.round() as u64)),
            Self::Count => display::count(amount.round() as u64),
        }
    }

    /// What stands beside an axis.
    pub(super) fn axis(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Seconds => "seconds",
            Self::BytesPerSecond => "bytes in a second",
            Self::PerSecond => "in a second",
            Self::Count => "",
        }
    }
}
