//! What limits the rate, as far as a client can know: the clients themselves, their machine, or
//! what is beyond it. If the server is on this machine too, its yardsticks say how far a server
//! could get at most.

use super::LoadOptions;
use super::crowd::Crowd;
use super::processor::Usage;
use super::step::Step;
use crate::machine::threads;
use crate::page::{Page, rate, some};
use crate::watch::{Amount, Watch};
use crate::yardsticks;
use privet_core::{Result, TableShape};
use privet_kernels::Kernels;
use privet_schemes::registry::Work;
use serde::Serialize;
use std::net::IpAddr;

/// From this share of the time on, something is at its limit.
const AT_ITS_LIMIT: f64 = 0.9;
/// From this share of a latency on, what `privet load` itself was late by counts.
const IS_LATE: f64 = 0.5;

#[derive(Debug, Serialize)]
pub(super) struct Bound {
    /// The rate at which this was seen, in lookups a second.
    rate: f64,
    by: Limit,
    /// If the server is on this machine, and its scheme has a yardstick.
    #[serde(skip_serializing_if = "Option::is_none")]
    yardstick: Option<Yardstick>,
}

/// What was at its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Limit {
    /// The thread of a client.
    Clients,
    /// The processor of the machine that `privet load` runs on, whoever used it: this program, a
    /// server that is on it too, or others.
    ThisMachine,
    /// Lookups were handed over late.
    Load,
    /// The server's passes over the table, by its metrics.
    Passes,
    /// None of these: the server, or the network.
    Server,
}

/// One core of this machine, doing only what the scheme's server cannot avoid.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Yardstick {
    Passes {
        read_gbps: f64,
        /// How often it reads the table in a second.
        table_reads_per_s: f64,
        /// Lookups that the server answered in the time of one such read.
        #[serde(skip_serializing_if = "Option::is_none")]
        lookups_per_read: Option<f64>,
    },
    Reads {
        random_reads_per_s: f64,
        reads_per_lookup: u64,
        /// The share of the lookups that it could do in a second that the server has answered.
        #[serde(skip_serializing_if = "Option::is_none")]
        share: Option<f64>,
    },
}

impl Bound {
    /// What limited a step.
    pub(super) fn of(step: &Step, crowd: &Crowd) -> Self {
        let table = crowd.first().table();
        Self::by_work(step, table.scheme.plan.work(&table.identity))
    }

    fn by_work(step: &Step, work: Work) -> Self {
        let p99 =
            step.latency_ms.percentile(99.0).map_or(f64::INFINITY, |p99| p99.as_secs_f64() * 1e3);
        let passes = step.passes.iter().map(|passes| passes.share).fold(0.0, f64::max);
        let Usage { cores_used, machine_busy } = step.processor;
        let by = if step.busiest_client >= AT_ITS_LIMIT {
            Limit::Clients
        } else if cores_used.is_some_and(|used| used >= AT_ITS_LIMIT * threads() as f64) {
            Limit::ThisMachine
        } else if step.late_ms.p99 >= IS_LATE * p99 {
            Limit::Load
        } else if work == Work::WholeTable && passes >= AT_ITS_LIMIT {
            Limit::Passes
        } else if machine_busy.is_some_and(|busy| busy >= AT_ITS_LIMIT) {
            Limit::ThisMachine
        } else {
            Limit::Server
        };
        Self { rate: step.rate, by, yardstick: None }
    }

    /// The same with the yardsticks of this machine, if all servers are on it. `held`: the rate of
    /// lookups that they stand.
    ///
    /// # Errors
    /// If they cannot be taken.
    pub(super) fn beside_yardsticks(
        mut self,
        options: &LoadOptions,
        crowd: &Crowd,
        held: Option<f64>,
        watch: Watch<'_>,
    ) -> Result<Self> {
        if options.client.urls.iter().all(|url| is_loopback(url)) {
            let table = crowd.first().table();
            let shape = table.identity.shape;
            let _taking = watch("taking this machine's yardsticks", Amount::Unknown);
            self.yardstick = Yardstick::take(table.scheme.plan.work(&table.identity), shape, held)?;
        }
        Ok(self)
    }

    pub(super) fn add_to(&self, page: &mut impl Page) {
        let at = rate(self.rate);
        page.line(match self.by {
            Limit::Clients => format!(
                "at {at}/s a client was busy all the time: take more of them, or more machines"
            ),
            Limit::ThisMachine => format!(
                "at {at}/s this machine had no more time: if the server is on another, take more machines"
            ),
            Limit::Load => format!(
                "at {at}/s this program was late itself: something else kept this machine busy"
            ),
            Limit::Passes => {
                format!("at {at}/s the server spent all its time on passes over the table")
            }
            Limit::Server => {
                format!("at {at}/s neither this program nor its clients were at their limit")
            }
        });
        if let Some(yardstick) = &self.yardstick {
            page.line(yardstick.words());
        }
    }
}

impl Yardstick {
    fn take(work: Work, shape: TableShape, held: Option<f64>) -> Result<Option<Self>> {
        let kernels = Kernels::detect();
        Ok(match work {
            Work::WholeTable => {
                let read_gbps = yardsticks::read_gbps(kernels)?;
                let table_reads_per_s = read_gbps * 1e9 / shape.bytes() as f64;
                let lookups_per_read = held.map(|held| held / table_reads_per_s);
                Some(Self::Passes { read_gbps, table_reads_per_s, lookups_per_read })
            }
            Work::Records { records: reads_per_lookup, .. }
            | Work::Lines { lines: reads_per_lookup, .. } => {
                let random_reads_per_s = yardsticks::random_reads(kernels, work.reads(shape))?;
                let share = held.map(|held| held * reads_per_lookup as f64 / random_reads_per_s);
                Some(Self::Reads { random_reads_per_s, reads_per_lookup, share })
            }
            Work::Nothing | Work::Points => None,
        })
    }

    fn words(&self) -> String {
        match self {
            Self::Passes { read_gbps, table_reads_per_s, lookups_per_read } => {
                let answered = lookups_per_read.map(|lookups| {
                    format!("; the server answers {} lookups in the time of one", rate(lookups))
                });
                format!(
                    "one core of this machine, idle, reads the table {} times a second ({read_gbps:.1} GB/s){}",
                    rate(*table_reads_per_s),
                    answered.unwrap_or_default()
                )
            }
            Self::Reads { random_reads_per_s, reads_per_lookup, share } => {
                let answered =
                    share.map(|share| format!("; the server does {} of that", rate(share)));
                format!(
                    "one core of this machine, idle, reads the {} for {} lookups a second{}",
                    some(*reads_per_lookup, "record", "records"),
                    rate(random_reads_per_s / (*reads_per_lookup).max(1) as f64),
                    answered.unwrap_or_default()
                )
            }
        }
    }
}

/// Whether an address is of this machine.
fn is_loopback(url: &str) -> bool {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or(authority);
    let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        None => authority.split(':').next().unwrap_or(authority),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::super::metrics::Passes;
    use super::super::step::Late;
    use super::super::step::tests::quiet;
    use super::*;

    #[test]
    fn whatever_is_at_its_limit_bounds_the_rate() {
        let by = |step: Step| Bound::by_work(&step, Work::WholeTable).by;
        assert_eq!(by(quiet()), Limit::Server);
        assert_eq!(by(Step { busiest_client: 0.95, ..quiet() }), Limit::Clients);
        let used = |cores_used, machine_busy| Step {
            processor: Usage { cores_used, machine_busy },
            ..quiet()
        };
        assert_eq!(by(used(Some(threads() as f64), None)), Limit::ThisMachine);
        assert_eq!(by(used(None, Some(0.95))), Limit::ThisMachine);
        assert_eq!(by(used(None, None)), Limit::Server);
        let late = || Late { p99: 6.0, max: 7.0 };
        assert_eq!(by(Step { late_ms: late(), ..quiet() }), Limit::Load);
        let passes = || vec![Passes { share: 0.95, queries_each: 8.0 }];
        assert_eq!(by(Step { passes: passes(), ..quiet() }), Limit::Passes);
        let step = Step { passes: passes(), ..used(None, Some(0.95)) };
        assert_eq!(by(step), Limit::Passes, "a server that is on this machine too");
        // What the clients cannot do says nothing of the server.
        assert_eq!(by(Step { passes: passes(), late_ms: late(), ..quiet() }), Limit::Load);
        // Answers that share nothing run side by side.
        let reads = Work::Records { records: 1, aes_blocks: 0 };
        let step = Step { passes: passes(), ..quiet() };
        assert_eq!(Bound::by_work(&step, reads).by, Limit::Server);
    }

    #[test]
    fn addresses_of_this_machine_are_known() {
        for here in
            ["http://127.0.0.1:7700", "https://localhost", "http://[::1]:7700/", "http://127.1.2.3"]
        {
            assert!(is_loopback(here), "{here}");
        }
        for elsewhere in
            ["http://10.0.0.1:7700", "https://localhost.example.org", "http://[::2]:1", "x"]
        {
            assert!(!is_loopback(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn yardsticks_are_in_the_words_of_their_kind() {
        let passes = Yardstick::Passes {
            read_gbps: 32.0,
            table_reads_per_s: 953.7,
            lookups_per_read: Some(2.5),
        };
        assert_eq!(
            passes.words(),
            "one core of this machine, idle, reads the table 954 times a second (32.0 GB/s); the server answers 2.50 lookups in the time of one"
        );
        let reads =
            Yardstick::Reads { random_reads_per_s: 1e8, reads_per_lookup: 1000, share: Some(0.25) };
        assert_eq!(
            reads.words(),
            "one core of this machine, idle, reads the 1,000 records for 100,000 lookups a second; the server does 0.250 of that"
        );
    }
}
