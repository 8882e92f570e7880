//! `privet load`: a running server, asked at a fixed rate.
//!
//! | module | what it holds |
//! |---|---|
//! | [`objective`] | what a server must achieve |
//! | [`schedule`] | when lookups are due, and how they are begun then |
//! | [`latencies`] | how long lookups took |
//! | [`crowd`] | many clients in one process |
//! | [`place`] | where they keep what they keep |
//! | [`step`] | one rate, for a time |
//! | [`metrics`] | what a server says of its own work |
//! | [`knee`] | the search for the highest rate |
//! | [`processor`] | who used the processor |
//! | [`report`] | what is printed |
//! | [`bound`] | what limits the rate |
//! | [`curve`] | what is plotted |
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

pub(crate) use metrics::MetricsAddress;
pub(crate) use objective::{Objective, parse_rate, parse_time};

use crate::arguments::Load;
use crate::display::{self, Page, notice};
use crate::exit::Outcome;
use bound::Bound;
use crowd::Crowd;
use knee::Knee;
use privet_core::{Error, Result};
use privet_table::publish::output;
use report::LoadReport;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use step::Step;

/// Connects the clients, has them look up, and prints the report.
pub(crate) fn run(arguments: &Load) -> Result<Outcome> {
    display::be_quiet(arguments.quiet);
    if let Some(path) = &arguments.plot {
        let read: Vec<&Path> = arguments.trust.ca_file.iter().map(PathBuf::as_path).collect();
        output::for_values(path, &read)?;
    }
    let began = Instant::now();
    let spinner = display::working("connecting clients");
    let crowd = Crowd::connect(arguments);
    spinner.finish_and_clear();
    let crowd = crowd?;
    notice(&format!(
        "{} ready after {}, {} received",
        display::some(arguments.clients.into(), "client is", "clients are"),
        display::duration(began.elapsed()),
        display::bytes(crowd.received())
    ));
    let plot = plot_file(arguments)?;
    if !arguments.json {
        tell(&LoadReport::heading(arguments, &crowd), &crowd)?;
    }
    let measured = match arguments.rate {
        Some(rate) => {
            let step = Step::run(&crowd, rate, arguments.time, &arguments.metrics)?;
            let bound = Bound::of(&step, &crowd);
            let objectives = arguments.slo.clone();
            LoadMeasurements { objectives, steps: vec![step], knee: None, bound }
        }
        None => find_the_knee(arguments, &crowd)?,
    };
    let failure = arguments.rate.and_then(|_| measured.failure());
    let report = LoadReport::new(arguments, &crowd, measured);
    drop(crowd);
    if let Some((mut file, path)) = plot {
        let svg = curve::plot(&report).svg()?;
        file.write_all(svg.as_bytes()).map_err(|error| unwritable(path).caused_by(error))?;
    }
    display::report(arguments.json, &report, || report.page())?;
    match failure {
        _ if report.is_missed() => Ok(Outcome::Missed),
        Some(failure) => Err(failure),
        None => Ok(Outcome::Done),
    }
}

/// The file for the plot, if one is wanted. It is opened before minutes are spent on measuring.
fn plot_file(arguments: &Load) -> Result<Option<(File, &Path)>> {
    let Some(path) = &arguments.plot else { return Ok(None) };
    let file = File::create(path).map_err(|error| unwritable(path).caused_by(error))?;
    Ok(Some((file, path)))
}

fn unwritable(path: &Path) -> Error {
    Error::api_misuse(format!("cannot write {}", path.display()))
}

/// What was measured.
struct LoadMeasurements {
    objectives: Vec<Objective>,
    steps: Vec<Step>,
    knee: Option<Knee>,
    bound: Bound,
}

impl LoadMeasurements {
    /// The failed lookups, if there were any.
    fn failure(&self) -> Option<Error> {
        let failed: u64 = self.steps.iter().map(|step| step.latency_ms.failed()).sum();
        let first = self.steps.iter().find_map(|step| step.latency_ms.gravest())?;
        let failed = display::some(failed, "lookup failed", "lookups failed");
        Some(first.clone().within(format!("{failed}; the first")))
    }
}

/// Without a typed objective, p99 may rise by this factor over a light load.
const RISE: u32 = 10;

/// Raises the rate until the server no longer holds its objectives.
fn find_the_knee(arguments: &Load, crowd: &Crowd) -> Result<LoadMeasurements> {
    let light = light_load(crowd.alone()?, arguments.time);
    let mut objectives = arguments.slo.clone();
    let mut steps = Vec::new();
    let mut known = None;
    if objectives.is_empty() {
        let step = told(arguments, crowd, light)?;
        objectives.push(Objective { percent: 99.0, limit: RISE * p99(&step)? });
        known = Some(step.is_held(&objectives));
        steps.push(step);
    }
    let highest = (step::MOST / arguments.time.as_secs_f64()).min(objective::HIGHEST_RATE);
    let knee = knee::search(light, highest, |rate| {
        // The light load was measured already, to learn what to compare with.
        if let Some(is_held) = known.take() {
            return Ok(is_held);
        }
        let step = told(arguments, crowd, rate)?;
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
    let bound = Bound::of(step, crowd).beside_yardsticks(arguments, crowd, knee.held)?;
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

/// A step, whose line is printed when it ends: to standard error if the report is JSON.
fn told(arguments: &Load, crowd: &Crowd, rate: f64) -> Result<Step> {
    let step = Step::run(crowd, rate, arguments.time, &arguments.metrics)?;
    match arguments.json {
        true => notice(&step.line()),
        false => tell(&step.line(), crowd)?,
    }
    Ok(step)
}

/// A line on standard output, at once. If nobody reads it (`| head`), the process ends, as at the
/// end of any other report.
fn tell(line: &str, crowd: &Crowd) -> Result<()> {
    let mut page = Page::default();
    page.line(line);
    if !page.is_read()? {
        crowd.clear_up();
        display::exit(0);
    }
    Ok(())
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
