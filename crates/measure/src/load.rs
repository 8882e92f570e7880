//! A running server, asked at a fixed rate.
//!
//! | module | what it holds |
//! |---|---|
//! | `objective` | what a server must achieve |
//! | `schedule` | when lookups are due, and how they are begun then |
//! | `latencies` | how long lookups took |
//! | `crowd` | many clients in one process |
//! | `place` | where they keep what they keep |
//! | `step` | one rate, for a time |
//! | `metrics` | what a server says of its own work |
//! | `knee` | the search for the highest rate |
//! | `processor` | who used the processor |
//! | `report` | what comes of it |
//! | `bound` | what limits the rate |
//! | `curve` | its plot |
//!
//! The loop is *open*: lookups begin by a schedule that was drawn beforehand, and a latency counts
//! from the moment at which its lookup was due, whatever held it up.

mod bound;
mod crowd;
mod curve;
mod knee;
mod latencies;
mod metrics;
mod objective;
mod place;
mod processor;
mod report;
mod schedule;
mod step;

pub use crowd::Crowd;
pub use metrics::{MetricsAddress, Work};
pub use objective::{Objective, parse_rate, parse_time};
pub use report::LoadReport;

use crate::watch::Watch;
use bound::Bound;
use knee::Knee;
use privet_client::ClientOptions;
use privet_core::{Error, Result};
use std::time::Duration;
use step::Step;

/// Which server is measured, by how many clients, and how.
pub struct LoadOptions {
    /// Whom clients ask, and what they trust. Where they keep what they keep is replaced, and how
    /// many queries they have under way.
    pub client: ClientOptions,
    /// How many clients look up, in turn; at least 1.
    pub clients: u16,
    /// Lookups that begin in a second. `None`: find how many the server stands.
    pub rate: Option<f64>,
    /// For how long at each rate.
    pub time: Duration,
    /// What the server must achieve.
    pub objectives: Vec<Objective>,
    /// Where the servers publish their metrics.
    pub metrics: Vec<MetricsAddress>,
}

/// Has the clients look up. `hears` is told a line of each step while the rate is searched for, and
/// ends the search by an error.
///
/// # Errors
/// As [`Client::get`](privet_client::Client::get); the error of `hears`; if metrics or yardsticks
/// cannot be had.
pub fn measure(
    options: &LoadOptions,
    crowd: &Crowd,
    watch: Watch<'_>,
    hears: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<LoadReport> {
    let measured = match options.rate {
        Some(rate) => {
            let step = Step::run(crowd, rate, options.time, &options.metrics)?;
            let bound = Bound::of(&step, crowd);
            let objectives = options.objectives.clone();
            LoadMeasurements { objectives, steps: vec![step], knee: None, bound }
        }
        None => find_the_knee(options, crowd, watch, hears)?,
    };
    Ok(LoadReport::new(options, crowd, measured))
}

/// What was measured.
struct LoadMeasurements {
    objectives: Vec<Objective>,
    steps: Vec<Step>,
    knee: Option<Knee>,
    bound: Bound,
}

/// Without a typed objective, p99 may rise by this factor over a light load.
const RISE: u32 = 10;

/// Raises the rate until the server no longer holds its objectives.
fn find_the_knee(
    options: &LoadOptions,
    crowd: &Crowd,
    watch: Watch<'_>,
    hears: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<LoadMeasurements> {
    let mut told = |rate| {
        let step = Step::run(crowd, rate, options.time, &options.metrics)?;
        hears(&step.line())?;
        Ok::<_, Error>(step)
    };
    let light = light_load(crowd.alone()?, options.time);
    let mut objectives = options.objectives.clone();
    let mut steps = Vec::new();
    let mut known = None;
    if objectives.is_empty() {
        let step = told(light)?;
        objectives.push(Objective { percent: 99.0, limit: RISE * p99(&step)? });
        known = Some(step.is_held(&objectives));
        steps.push(step);
    }
    let highest = (step::MOST / options.time.as_secs_f64()).min(objective::HIGHEST_RATE);
    let knee = knee::search(light, highest, |rate| {
        // The light load was measured already, to learn what to compare with.
        if let Some(is_held) = known.take() {
            return Ok(is_held);
        }
        let step = told(rate)?;
        let is_held = step.is_held(&objectives);
        steps.push(step);
        Ok(is_held)
    })?;
    // At the lowest rate that was too high, what bounds the rate is at its limit.
    let decisive = |step: &&Step| knee.missed.or(knee.held) == Some(step.rate);
    let step = steps
        .iter()
        .rfind(decisive)
        .ok_or_else(|| Error::internal("a rate was found without being measured; this is a bug"))?;
    let bound = Bound::of(step, crowd).beside_yardsticks(options, crowd, knee.held, watch)?;
    Ok(LoadMeasurements { objectives, steps, knee: Some(knee), bound })
}

/// A rate at which lookups hardly ever wait for each other, if one takes `alone`: one tenth of what
/// would be possible one after the other, or more if that makes too few lookups in `time`.
fn light_load(alone: Duration, time: Duration) -> f64 {
    const ENOUGH: f64 = 20.0;
    let one_by_one = 1.0 / alone.as_secs_f64().max(1e-6);
    (one_by_one / 10.0).max((ENOUGH / time.as_secs_f64()).min(one_by_one / 2.0))
}

fn p99(step: &Step) -> Result<Duration> {
    step.latency_ms.percentile(99.0).ok_or_else(|| {
        let failure = step.latency_ms.gravest().cloned();
        let failure = failure.unwrap_or_else(|| Error::unavailable("nothing was answered"));
        failure.within("lookups failed under a light load")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_light_load_is_light_and_has_lookups() {
        let seconds = Duration::from_secs_f64;
        let light = |alone, time| light_load(seconds(alone), seconds(time));
        assert!((light(0.001, 10.0) - 100.0).abs() < 1e-6, "a tenth");
        assert!((light(0.1, 10.0) - 2.0).abs() < 1e-6, "twenty lookups");
        assert!((light(1.0, 10.0) - 0.5).abs() < 1e-6, "never more than half");
        assert!(light(0.0, 10.0).is_finite());
    }
}
