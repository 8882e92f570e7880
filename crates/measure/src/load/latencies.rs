//! How long lookups took.

use super::objective::Objective;
use hdrhistogram::Histogram;
use privet_core::{Error, Result};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use std::collections::BTreeMap;
use std::time::Duration;

/// Percentiles that reports show, with their names in JSON.
pub(super) const SHOWN: [(f64, &str); 4] =
    [(50.0, "p50"), (90.0, "p90"), (99.0, "p99"), (99.9, "p999")];

/// An hour in microseconds. Longer times count as this.
const LONGEST: u64 = 3_600_000_000;

/// A histogram of times in microseconds, to three digits.
pub(super) fn histogram() -> Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, LONGEST, 3).map_err(|error| {
        Error::internal("a histogram has impossible bounds; this is a bug").caused_by(error)
    })
}

/// Counts a time.
pub(super) fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_micros()).unwrap_or(LONGEST).max(1));
}

/// The latencies of lookups, and the failures among them.
pub(super) struct Latencies {
    answered: Histogram<u64>,
    /// By kind of error.
    failures: BTreeMap<&'static str, u64>,
    /// The first, unless only a later one says not to try again.
    gravest: Option<Error>,
}

impl Latencies {
    pub(super) fn new() -> Result<Self> {
        Ok(Self { answered: histogram()?, failures: BTreeMap::new(), gravest: None })
    }

    /// Counts a lookup that was due at `due`, and over at `over`.
    pub(super) fn count(&mut self, due: Duration, over: Duration, outcome: Result<()>) {
        match outcome {
            Ok(()) => record(&mut self.answered, over.saturating_sub(due)),
            Err(error) => {
                let kind = error.reason().map_or_else(|| error.blame().name(), |why| why.name());
                *self.failures.entry(kind).or_default() += 1;
                self.gravest = Some(match self.gravest.take() {
                    None => error,
                    Some(told) => told.by_gravity(error).0,
                });
            }
        }
    }

    pub(super) fn answered(&self) -> u64 {
        self.answered.len()
    }

    pub(super) fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    pub(super) fn failures(&self) -> &BTreeMap<&'static str, u64> {
        &self.failures
    }

    pub(super) fn gravest(&self) -> Option<&Error> {
        self.gravest.as_ref()
    }

    /// The time within which `percent` of all lookups were answered. `None` if fewer were: failures
    /// count as slower than any answer.
    pub(super) fn percentile(&self, percent: f64) -> Option<Duration> {
        let (answered, all) = (self.answered(), self.answered() + self.failed());
        let rank = ((percent / 100.0 * all as f64).ceil() as u64).max(1);
        let micros = match rank {
            rank if rank > answered => return None,
            _ if answered == all => self.answered.value_at_percentile(percent),
            rank => self.answered.value_at_quantile(rank as f64 / answered as f64),
        };
        Some(Duration::from_micros(micros))
    }

    /// The longest latency of those that were answered.
    pub(super) fn longest(&self) -> Option<Duration> {
        (self.answered() > 0).then(|| Duration::from_micros(self.answered.max()))
    }

    pub(super) fn meet(&self, objective: &Objective) -> bool {
        self.percentile(objective.percent).is_some_and(|latency| latency <= objective.limit)
    }
}

/// In milliseconds; null for a percentile that was not answered.
impl Serialize for Latencies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let in_ms = |time: Option<Duration>| time.map(|time| time.as_micros() as f64 / 1e3);
        let mut map = serializer.serialize_map(None)?;
        for (percent, name) in SHOWN {
            map.serialize_entry(name, &in_ms(self.percentile(percent)))?;
        }
        map.serialize_entry("max", &in_ms(self.longest()))?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::super::schedule::tests::FakeClock;
    use super::super::schedule::{Clock as _, keep};
    use super::*;

    fn milliseconds(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    /// Equal up to the three digits of the histogram.
    fn is_about(time: Option<Duration>, expected: u64) -> bool {
        let (time, expected) = (time.unwrap().as_secs_f64(), milliseconds(expected).as_secs_f64());
        (time / expected - 1.0).abs() < 2e-3
    }

    #[test]
    fn a_stall_counts_for_every_lookup_that_was_due_in_it() {
        // A lookup each millisecond. Each takes one, but the one at 100 ms holds all up for 500.
        let schedule: Vec<Duration> = (0..1000).map(milliseconds).collect();
        let mut clock = FakeClock::default();
        let hands = clock.clone();
        let mut latencies = Latencies::new().unwrap();
        let lookup = |number| {
            hands.advance(milliseconds(if number == 100 { 500 } else { 1 }));
            latencies.count(schedule[number], hands.now(), Ok(()));
        };
        keep(&schedule, &mut clock, lookup, |_| ());
        // From there on all are late by 499 ms, since each takes as long as the gap between two. A
        // program that began each lookup only after the one before would show 1 ms even at p99.
        assert!(is_about(latencies.percentile(9.0), 1));
        assert!(is_about(latencies.percentile(50.0), 500));
        assert!(is_about(latencies.longest(), 500));
    }

    #[test]
    fn percentiles_are_of_all_lookups() {
        let mut latencies = Latencies::new().unwrap();
        for number in 1..=90 {
            latencies.count(milliseconds(5), milliseconds(5 + number), Ok(()));
        }
        assert!(is_about(latencies.percentile(100.0), 90));
        for _ in 0..10 {
            latencies.count(Duration::ZERO, Duration::ZERO, Err(Error::unavailable("gone")));
        }
        assert!(is_about(latencies.percentile(50.0), 50));
        assert!(is_about(latencies.percentile(90.0), 90));
        assert_eq!(latencies.percentile(90.5), None, "these failed");
        let p90 = |limit| Objective { percent: 90.0, limit: milliseconds(limit) };
        assert!(latencies.meet(&p90(91)) && !latencies.meet(&p90(89)));
        assert!(!latencies.meet(&Objective { percent: 99.0, limit: milliseconds(1000) }));
        assert_eq!((latencies.answered(), latencies.failed()), (90, 10));
        assert_eq!(latencies.failures()["unavailable"], 10);
        latencies.count(Duration::ZERO, Duration::ZERO, Err(Error::integrity("a lie")));
        assert_eq!(latencies.gravest().unwrap().message(), "a lie");
        let json = serde_json::to_value(&latencies).unwrap();
        assert!(json["p99"].is_null() && json["p50"].as_f64().unwrap() > 49.0, "{json}");
    }

    #[test]
    fn no_lookup_is_no_objective_met() {
        let latencies = Latencies::new().unwrap();
        assert_eq!((latencies.percentile(50.0), latencies.longest()), (None, None));
        assert!(!latencies.meet(&Objective { percent: 50.0, limit: milliseconds(1) }));
    }
}
