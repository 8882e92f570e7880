//! One rate, for a time.

use super::crowd::Crowd;
use super::latencies::{self, Latencies};
use super::metrics::{self, MetricsAddress, Passes};
use super::objective::Objective;
use super::processor::{Usage, Used};
use super::schedule::{self, MachineClock};
use crate::page::{duration, rate};
use hdrhistogram::Histogram;
use privet_core::quantities::count;
use privet_core::{Blame, Error, Result, SecretRng};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The most lookups in a step. All are drawn before the first.
pub(super) const MOST: f64 = 5e6;

/// A server that answers a smaller share of the rate than this does not keep up with it.
const KEEPS_UP: f64 = 0.95;
/// A server that is behind by less, in seconds, may have been disturbed at the end. Objectives say
/// whether that is too long.
const MAY_BE_BEHIND: f64 = 0.25;

/// What was measured at one rate.
#[derive(Serialize)]
pub(super) struct Step {
    /// Lookups due in a second, on average: what was asked for.
    pub(super) rate: f64,
    /// Lookups that were due.
    pub(super) due: u64,
    /// As they were drawn: lookups due in a second, from the first to the last.
    pub(super) due_per_s: f64,
    pub(super) answered: u64,
    /// Lookups answered in a second, from the first answer to the last.
    pub(super) answered_per_s: f64,
    /// By the kind of the error.
    pub(super) failed: BTreeMap<&'static str, u64>,
    /// How often a server refused a query because it had too many. Its client asked again.
    pub(super) shed: u64,
    /// By how many seconds more the answers were spread than the moments at which lookups were due.
    #[serde(skip)]
    pub(super) behind_s: f64,
    /// From when a lookup was due.
    pub(super) latency_ms: Latencies,
    /// How long after they were due lookups were handed to their clients.
    pub(super) late_ms: Late,
    /// For each server whose metrics are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) passes: Vec<Passes>,
    /// Of the machine that this program runs on.
    #[serde(flatten)]
    pub(super) processor: Usage,
    /// The share of the time in which the busiest client's thread was at work.
    pub(super) busiest_client: f64,
}

#[derive(Serialize)]
pub(super) struct Late {
    pub(super) p99: f64,
    pub(super) max: f64,
}

impl Step {
    /// Has the crowd look up at `rate` in a second, for `time`, and waits for the answers.
    ///
    /// # Errors
    /// If metrics cannot be read; if an answer was found to be wrong, or a lookup failed for a
    /// reason that may depend on what it looked up; [`Blame::ApiMisuse`] if there are more lookups
    /// than can be drawn beforehand.
    pub(super) fn run(
        crowd: &Crowd,
        rate: f64,
        time: Duration,
        metrics: &[MetricsAddress],
    ) -> Result<Self> {
        if rate * time.as_secs_f64() > MOST {
            return Err(Error::api_misuse(format!(
                "{} lookups are more than fit into one run; take less time or a lower rate",
                count((rate * time.as_secs_f64()) as u64)
            )));
        }
        let mut rng = SecretRng::from_os()?;
        let schedule = schedule::draw(rate, time, &mut rng);
        let mut targets: Vec<_> = schedule.iter().map(|_| crowd.target(&mut rng)).collect();
        let mut late = latencies::histogram()?;
        let work = all_of(metrics)?;
        let (shed, busy, used) = (crowd.shed(), crowd.busy(), Used::now());

        let (sender, receiver) = mpsc::channel();
        let started = Instant::now();
        let collected = std::thread::scope(|scope| {
            let collector = scope.spawn(|| Collected::from(receiver, &schedule));
            let begin = |number| {
                // They are taken from the end; one is as random as another.
                let Some(target) = targets.pop() else { return };
                let sender = sender.clone();
                crowd.begin(number, target, move |outcome| {
                    // The collector listens until the last of these has ended.
                    let _ = sender.send((number, started.elapsed(), outcome));
                });
            };
            let was_late = |by| latencies::record(&mut late, by);
            schedule::keep(&schedule, &mut MachineClock(started), begin, was_late);
            drop(sender);
            collector.join()
        });
        let Ok(collected) = collected else {
            return Err(Error::internal("the thread that counts answers has panicked"));
        };
        let Collected { latencies, first, last } = collected?;
        if let Some(error) = latencies.gravest().filter(|error| is_grave(error)) {
            return Err(error.clone());
        }
        let whole = started.elapsed();
        let first_due = schedule.first().copied();
        let last_due = schedule.last().copied().unwrap_or_default();
        let wall = whole.as_secs_f64();
        let passes = all_of(metrics)?.into_iter().zip(&work);
        let busy = crowd.busy().into_iter().zip(busy).map(|(now, before)| now - before);
        Ok(Self {
            rate,
            due: schedule.len() as u64,
            due_per_s: per_second(schedule.len() as u64, first_due, last_due, time.as_secs_f64()),
            answered: latencies.answered(),
            answered_per_s: per_second(latencies.answered(), first, last, wall),
            behind_s: spread(first, last) - spread(first_due, last_due),
            failed: latencies.failures().clone(),
            shed: crowd.shed() - shed,
            latency_ms: latencies,
            late_ms: Late { p99: in_ms(&late, 99.0), max: in_ms(&late, 100.0) },
            passes: passes.map(|(now, before)| now.since(before, whole)).collect(),
            processor: Used::now().since(&used, whole),
            busiest_client: busy.max().unwrap_or_default().as_secs_f64() / wall,
        })
    }

    /// Whether the server kept up with the rate and achieved these objectives.
    pub(super) fn is_held(&self, objectives: &[Objective]) -> bool {
        objectives.iter().all(|objective| self.latency_ms.meet(objective))
            && keeps_up(self.answered_per_s / self.due_per_s, self.behind_s)
    }

    /// Rates, latencies and failures in one line.
    pub(super) fn line(&self) -> String {
        let mut line =
            format!("{:>8}/s  answered {:>8}/s", rate(self.rate), rate(self.answered_per_s));
        let mut add = |name: String, latency| {
            line.push_str(&format!("  {name} {:<9}", in_words(latency)));
        };
        for (percent, _) in latencies::SHOWN {
            add(format!("p{percent}"), self.latency_ms.percentile(percent));
        }
        add("max".to_owned(), self.latency_ms.longest());
        for (number, what) in [(self.shed, "shed"), (self.latency_ms.failed(), "failed")] {
            if number > 0 {
                line.push_str(&format!("  {} {what}", count(number)));
            }
        }
        for passes in &self.passes {
            line.push_str(&format!("  {}", passes.words()));
        }
        line.trim_end().to_owned()
    }
}

/// Whether a server keeps up that answered `share` of the rate, and was `behind_s` seconds behind
/// at the end.
fn keeps_up(share: f64, behind_s: f64) -> bool {
    share >= KEEPS_UP || behind_s <= MAY_BE_BEHIND
}

/// A latency for people; `never` if it was none.
pub(super) fn in_words(latency: Option<Duration>) -> String {
    latency.map_or_else(|| "never".to_owned(), duration)
}

/// All outcomes of a step, and when the first and the last answer came.
struct Collected {
    latencies: Latencies,
    first: Option<Duration>,
    last: Duration,
}

type Over = (usize, Duration, Result<()>);

impl Collected {
    /// Takes outcomes until the last lookup is over.
    fn from(over: mpsc::Receiver<Over>, schedule: &[Duration]) -> Result<Self> {
        let mut collected =
            Self { latencies: Latencies::new()?, first: None, last: Duration::ZERO };
        for (number, at, outcome) in over {
            if outcome.is_ok() {
                // Outcomes may come in another order than that of their times.
                collected.first = Some(collected.first.map_or(at, |first| first.min(at)));
                collected.last = collected.last.max(at);
            }
            collected.latencies.count(schedule[number], at, outcome);
        }
        Ok(collected)
    }
}

fn all_of(metrics: &[MetricsAddress]) -> Result<Vec<metrics::Work>> {
    metrics.iter().map(MetricsAddress::read).collect()
}

/// Whether an error says more than that something was not there or too slow.
fn is_grave(error: &Error) -> bool {
    !matches!(error.blame(), Blame::Unavailable | Blame::Exhausted)
}

/// The rate of `count` events from the first to the last: of answers, this does not count the time
/// that the first one took. A single event counts against the whole time, in seconds.
fn per_second(count: u64, first: Option<Duration>, last: Duration, whole: f64) -> f64 {
    match count {
        0 | 1 => count as f64 / whole.max(f64::MIN_POSITIVE),
        count => (count - 1) as f64 / spread(first, last).max(1e-9),
    }
}

/// Seconds from the first event, if there was one, to the last.
fn spread(first: Option<Duration>, last: Duration) -> f64 {
    last.saturating_sub(first.unwrap_or(last)).as_secs_f64()
}

fn in_ms(histogram: &Histogram<u64>, percent: f64) -> f64 {
    histogram.value_at_percentile(percent) as f64 / 1e3
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A step in which a hundred lookups took 10 ms each, and nothing was at its limit.
    pub(in super::super) fn quiet() -> Step {
        let mut latency_ms = Latencies::new().unwrap();
        for _ in 0..100 {
            latency_ms.count(Duration::ZERO, Duration::from_millis(10), Ok(()));
        }
        Step {
            rate: 100.0,
            due: 100,
            due_per_s: 100.0,
            answered: 100,
            answered_per_s: 100.0,
            behind_s: 0.0,
            failed: BTreeMap::new(),
            shed: 0,
            latency_ms,
            late_ms: Late { p99: 0.1, max: 0.2 },
            passes: Vec::new(),
            processor: Usage { cores_used: Some(0.1), machine_busy: Some(0.2) },
            busiest_client: 0.1,
        }
    }

    #[test]
    fn outcomes_count_from_when_they_were_due_in_whatever_order_they_come() {
        let milliseconds = Duration::from_millis;
        let schedule = [0, 10, 20, 30].map(milliseconds);
        let (sender, receiver) = mpsc::channel();
        sender.send((1, milliseconds(35), Ok(()))).unwrap();
        sender.send((3, milliseconds(55), Ok(()))).unwrap();
        sender.send((0, milliseconds(5), Ok(()))).unwrap();
        sender.send((2, milliseconds(99), Err(Error::unavailable("gone")))).unwrap();
        drop(sender);
        let Collected { latencies, first, last } = Collected::from(receiver, &schedule).unwrap();
        assert_eq!((first, last), (Some(milliseconds(5)), milliseconds(55)));
        assert_eq!((latencies.answered(), latencies.failed()), (3, 1));
        assert_eq!(latencies.percentile(25.0).unwrap().as_millis(), 5);
        assert_eq!(latencies.longest().unwrap().as_millis(), 25);
        // Two gaps between three answers, in 50 ms.
        assert!((per_second(3, first, last, 1.0) - 40.0).abs() < 1e-9);
        assert_eq!(per_second(1, Some(last), last, 2.0), 0.5);
        assert_eq!(per_second(0, None, Duration::ZERO, 2.0), 0.0);
    }

    #[test]
    fn a_server_keeps_up_unless_it_is_far_behind() {
        assert!(keeps_up(1.0, 0.0) && keeps_up(0.96, 0.4));
        assert!(!keeps_up(0.94, 0.6));
        // In a short step the last answer counts for too much.
        assert!(keeps_up(0.7, 0.03));
    }

    #[test]
    fn a_rate_is_held_if_every_objective_is_met() {
        let p99 = |ms| Objective { percent: 99.0, limit: Duration::from_millis(ms) };
        let p50 = |ms| Objective { percent: 50.0, limit: Duration::from_millis(ms) };
        assert!(quiet().is_held(&[]) && quiet().is_held(&[p99(11), p50(11)]));
        assert!(!quiet().is_held(&[p99(11), p50(9)]));
        assert!(!Step { answered_per_s: 90.0, behind_s: 1.0, ..quiet() }.is_held(&[p99(11)]));
    }
}
