//! What one scheme costs on one table: bytes, which are exact, and times, which are measured or
//! extrapolated.

use super::growth::power_law;
use super::run::Run;
use super::store::{StoredReport, StoredServer};
use privet_core::TableShape;
use privet_measure::bench::Subject;
use privet_measure::identity_of;
use privet_measure::traffic::{self, Traffic};
use privet_schemes::registry::{Costs, Work, plan};

/// Sizes of one scheme on one table. All but the numbers of lookups and of reads are bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Sizes {
    /// Lookups that a generation of hints serves.
    pub(super) supply: Option<u64>,
    /// Points that a server of finite differences reads.
    pub(super) reads: Option<u64>,
    pub(super) table: u64,
    /// What a server holds, the table included.
    pub(super) server: u64,
    /// What a client keeps.
    pub(super) client: u64,
    pub(super) offline_up: u64,
    pub(super) offline_down: u64,
    pub(super) online_up: u64,
    pub(super) online_down: u64,
    /// The most that one server receives and sends for a lookup.
    pub(super) server_up: u64,
    pub(super) server_down: u64,
}

/// What follows from scheme and table, without any run.
#[derive(Clone)]
pub(super) struct Exact {
    pub(super) work: Work,
    /// `None` for the lookup that is not private.
    pub(super) costs: Option<Costs>,
    pub(super) sizes: Sizes,
}

impl Exact {
    /// `None` if something has to be made first, or if the scheme does not take the table.
    pub(super) fn of(run: &Run) -> Option<Self> {
        let bench = run.bench(1).ok()?;
        let shape = TableShape::new(run.records, run.record_len).ok()?;
        let Subject::Scheme(scheme) = bench.scheme else { return Some(Self::plain(shape)) };
        let identity = identity_of(shape);
        let tuning = bench.options.read(Some(scheme)).ok()?;
        let plan = plan(scheme, &identity, &tuning).ok()?;
        let costs = plan.costs(&identity);
        let Traffic { offline_up, offline_down, lookups } = traffic::of(&plan, &identity);
        let work = plan.work(&identity);
        // Such a server sends each point that it reads.
        let points = (plan.answer_len as u64).checked_div(shape.record_len());
        let sizes = Sizes {
            supply: plan.supply(&identity),
            reads: points.filter(|_| matches!(work, Work::Lines { .. })),
            table: shape.bytes(),
            server: shape.bytes() + costs.server_bytes,
            client: traffic::kept(&plan, &identity),
            offline_up,
            offline_down,
            online_up: lookups.iter().map(|lookup| lookup.query).sum(),
            online_down: lookups.iter().map(|lookup| lookup.answer).sum(),
            server_up: lookups.iter().map(|lookup| lookup.query).max().unwrap_or(0),
            server_down: lookups.iter().map(|lookup| lookup.answer).max().unwrap_or(0),
        };
        Some(Self { work, costs: Some(costs), sizes })
    }

    /// A lookup that is not private. Its bytes are known from a run.
    fn plain(shape: TableShape) -> Self {
        let table = shape.bytes();
        Self {
            work: Work::Records { records: 1, aes_blocks: 0 },
            costs: None,
            sizes: Sizes { table, server: table, ..Sizes::default() },
        }
    }

    /// What the time of a server's answer grows with.
    fn size(&self, run: &Run) -> f64 {
        self.sizes.reads.unwrap_or(run.records) as f64
    }
}

/// All that a metric can ask for.
#[derive(Clone)]
pub(super) struct Figures {
    pub(super) sizes: Sizes,
    /// `None` if there is nothing to say.
    pub(super) times: Option<Times>,
    pub(super) times_are: TimeSource,
    /// A server's answer, to what this machine can do at best.
    pub(super) to_yardstick: Option<String>,
}

/// Where times come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeSource {
    Measured,
    Extrapolated,
}

/// Seconds.
#[derive(Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) setup: f64,
    pub(super) hints: f64,
    pub(super) prepare: f64,
    pub(super) query: f64,
    /// All servers together.
    pub(super) answers: f64,
    pub(super) slowest_answer: f64,
    pub(super) recover: f64,
    /// For each record that changed.
    pub(super) edit_server: Option<f64>,
    pub(super) edit_client: Option<f64>,
}

impl Times {
    fn of(report: &StoredReport) -> Self {
        let answers = report.online.servers.iter().map(|server| server.answer_us / 1e6);
        let edits = report.edits.as_ref();
        Self {
            setup: report.offline.server_s,
            hints: report.offline.prepare_s.unwrap_or(0.0),
            prepare: report.offline.client_s,
            query: report.online.client_query_us / 1e6,
            answers: answers.clone().sum(),
            slowest_answer: answers.fold(0.0, f64::max),
            recover: report.online.client_recover_us / 1e6,
            edit_server: edits.map(|edits| edits.server_update_ms / 1e3 / edits.records as f64),
            edit_client: edits.map(|edits| edits.client_update_ms / 1e3 / edits.records as f64),
        }
    }

    /// Each time on the line through those of smaller tables, on logarithmic axes.
    fn extrapolated(smaller: &[(f64, Self)], size: f64) -> Self {
        let along = |of: &dyn Fn(&Self) -> f64| {
            let points: Vec<_> = smaller.iter().map(|(size, times)| (*size, of(times))).collect();
            power_law(&points).map_or(0.0, |law| law.at(size))
        };
        Self {
            setup: along(&|times| times.setup),
            hints: along(&|times| times.hints),
            prepare: along(&|times| times.prepare),
            query: along(&|times| times.query),
            answers: along(&|times| times.answers),
            slowest_answer: along(&|times| times.slowest_answer),
            recover: along(&|times| times.recover),
            edit_server: None,
            edit_client: None,
        }
    }
}

impl Figures {
    /// What was measured.
    pub(super) fn measured(run: &Run, exact: Option<&Exact>, report: &StoredReport) -> Self {
        let table = run.records * run.record_len;
        let servers = &report.online.servers;
        let of_servers = |of: fn(&StoredServer) -> u64| servers.iter().map(of).max().unwrap_or(0);
        let sizes = Sizes {
            supply: exact.and_then(|exact| exact.sizes.supply),
            reads: exact.and_then(|exact| exact.sizes.reads),
            table,
            server: table + report.server_extra_bytes,
            client: report.client_state_bytes,
            offline_up: report.offline.up_bytes,
            offline_down: report.offline.down_bytes,
            online_up: report.online.up_bytes,
            online_down: report.online.down_bytes,
            server_up: of_servers(|server| server.up_bytes),
            server_down: of_servers(|server| server.down_bytes),
        };
        Self {
            sizes,
            times: Some(Times::of(report)),
            times_are: TimeSource::Measured,
            to_yardstick: to_yardstick(report),
        }
    }

    /// What is known of a run that is not made: bytes, and times by those of `smaller` tables.
    pub(super) fn extrapolated(
        run: &Run,
        exact: &Exact,
        smaller: &[(&Run, &Exact, &StoredReport)],
    ) -> Self {
        let sized = smaller.iter().map(|(run, exact, report)| (exact.size(run), Times::of(report)));
        let sized: Vec<_> = sized.collect();
        // The least for a line.
        let times = (sized.len() >= 2).then(|| Times::extrapolated(&sized, exact.size(run)));
        Self { sizes: exact.sizes, times, times_are: TimeSource::Extrapolated, to_yardstick: None }
    }
}

/// How many times as long a server's answer takes as the yardstick that bounds it.
fn to_yardstick(report: &StoredReport) -> Option<String> {
    let ratios = &report.ratios;
    let read = ratios.answer_to_read.map(|ratio| format!("{ratio:.2} × read"));
    read.or_else(|| Some(format!("{:.1} × random reads", ratios.answer_to_random_reads?)))
}
