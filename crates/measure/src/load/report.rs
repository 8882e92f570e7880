//! What comes of it: one JSON object, whose fields `docs/load.md` explains, or the same for people.

use super::bound::Bound;
use super::crowd::Crowd;
use super::curve;
use super::knee::Knee;
use super::latencies::SHOWN;
use super::objective::Objective;
use super::step::{Step, in_words};
use super::{LoadMeasurements, LoadOptions};
use crate::machine::threads;
use crate::page::{Page, rate, seconds, some};
use crate::plot::Plot;
use privet_core::Error;
use privet_core::quantities::count;
use serde::{Serialize, Serializer};
use std::time::Duration;

/// What comes of a measurement. `docs/load.md` explains the fields.
#[derive(Serialize)]
pub struct LoadReport {
    table: String,
    scheme: &'static str,
    servers: usize,
    records: u64,
    record_len: u64,
    /// `number` or `key`.
    by: &'static str,
    clients: u16,
    /// Of all clients together, before the first lookup.
    received_bytes: u64,
    seconds: f64,
    pub(super) objectives: Vec<Objective>,
    /// Whether all typed objectives were met: at the rate that was typed, or at some rate. Null if
    /// none was typed.
    met: Option<bool>,
    pub(super) steps: Vec<Step>,
    /// If it was searched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) knee: Option<Knee>,
    bound: Bound,
    #[serde(skip)]
    pub(super) heading: String,
}

impl LoadReport {
    pub(super) fn new(options: &LoadOptions, crowd: &Crowd, measured: LoadMeasurements) -> Self {
        let LoadMeasurements { objectives, steps, knee, bound } = measured;
        let table = crowd.first().table();
        let shape = table.identity.shape;
        let holds = |step: &Step| objectives.iter().all(|goal| step.latency_ms.meet(goal));
        let met = match &knee {
            Some(knee) => knee.held.is_some(),
            None => steps.iter().all(holds),
        };
        Self {
            table: table.name.clone(),
            scheme: table.scheme.plan.scheme.name(),
            servers: table.scheme.plan.servers,
            records: shape.records(),
            record_len: shape.record_len(),
            by: crowd.by(),
            clients: options.clients,
            received_bytes: crowd.received(),
            seconds: options.time.as_secs_f64(),
            met: (!options.objectives.is_empty()).then_some(met),
            objectives,
            steps,
            knee,
            bound,
            heading: crowd.heading(),
        }
    }

    /// Whether an objective was missed.
    pub fn is_missed(&self) -> bool {
        self.met == Some(false)
    }

    /// The failed lookups, if there were any at the rate that was asked for.
    pub fn failure(&self) -> Option<Error> {
        let steps = || self.steps.iter().filter(|_| self.knee.is_none());
        let failed: u64 = steps().map(|step| step.latency_ms.failed()).sum();
        let first = steps().find_map(|step| step.latency_ms.gravest())?;
        let failed = some(failed, "lookup failed", "lookups failed");
        Some(first.clone().within(format!("{failed}; the first")))
    }

    /// Latencies against rates.
    pub fn plot(&self) -> Plot {
        curve::plot(self)
    }

    /// Says to people what comes below the heading and, if the knee was searched for, the lines of
    /// the steps.
    pub fn put_on(&self, page: &mut impl Page) {
        match &self.knee {
            None => self.steps.iter().for_each(|step| self.add_step(page, step)),
            Some(knee) => {
                page.line(self.found(knee));
            }
        }
        self.bound.add_to(page);
    }

    /// What the search found, in one line.
    fn found(&self, knee: &Knee) -> String {
        let goals: Vec<String> = self.objectives.iter().map(Objective::to_string).collect();
        let goals = goals.join(", ");
        match *knee {
            Knee { held: Some(held), missed: Some(_) } => {
                format!("this server: {} lookups/s at {goals}", rate(held))
            }
            Knee { held: Some(held), missed: None } => format!(
                "this server: at least {} lookups/s at {goals}; no more can be offered",
                rate(held)
            ),
            Knee { held: None, missed } => format!(
                "this server does not achieve {goals}, not even at {} lookups/s",
                rate(missed.unwrap_or_default())
            ),
        }
    }

    fn add_step(&self, page: &mut impl Page, step: &Step) {
        let time = seconds(self.seconds);
        let due = some(step.due, "lookup", "lookups");
        page.entry("due", format!("{}/s for {time}: {due}", rate(step.rate)));
        let answered = count(step.answered);
        page.entry("answered", format!("{answered}, {}/s", rate(step.answered_per_s)));
        let failed = step.failed.iter().map(|(kind, number)| format!("{} {kind}", count(*number)));
        let failed: Vec<String> = failed.collect();
        page.entry("failed", if failed.is_empty() { "0".to_owned() } else { failed.join(", ") });
        page.entry("shed", some(step.shed, "refusal", "refusals"));
        let percentiles = SHOWN.map(|(percent, _)| {
            format!("p{percent} {}", in_words(step.latency_ms.percentile(percent)))
        });
        let longest = in_words(step.latency_ms.longest());
        page.entry("latency", format!("{}, max {longest}", percentiles.join(", ")));
        let in_ms = |time: f64| seconds(time / 1e3);
        page.entry(
            "begun late",
            format!("p99 {}, max {}", in_ms(step.late_ms.p99), in_ms(step.late_ms.max)),
        );
        for passes in &step.passes {
            page.entry("the server", passes.words());
        }
        let cores = threads();
        let used = step.processor.cores_used.map(|used| format!("{used:.2} of {cores} cores, "));
        page.entry(
            "this program",
            format!(
                "{}busiest client {:.0} % of the time",
                used.unwrap_or_default(),
                step.busiest_client * 100.0
            ),
        );
        if let Some(busy) = step.processor.machine_busy {
            page.entry("this machine", format!("busy {:.0} % of the time", busy * 100.0));
        }
        for objective in &self.objectives {
            let met = if step.latency_ms.meet(objective) { "met" } else { "missed" };
            page.entry(&objective.to_string(), met);
        }
    }
}

/// A time in JSON.
pub(super) fn milliseconds<S: Serializer>(
    time: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_micros() as f64 / 1e3)
}
