//! What `privet load` prints: one JSON object, whose fields `docs/load.md` explains, or a page for
//! people.

use super::LoadMeasurements;
use super::bound::Bound;
use super::crowd::Crowd;
use super::knee::Knee;
use super::latencies::SHOWN;
use super::objective::Objective;
use super::processor::cores;
use super::step::{Step, in_words};
use crate::arguments::Load;
use crate::display::{self, Page};
use serde::{Serialize, Serializer};
use std::time::Duration;

#[derive(Serialize)]
pub(super) struct LoadReport {
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
    pub(super) fn new(arguments: &Load, crowd: &Crowd, measured: LoadMeasurements) -> Self {
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
            by: if crowd.is_by_number() { "number" } else { "key" },
            clients: arguments.clients,
            received_bytes: crowd.received(),
            seconds: arguments.time.as_secs_f64(),
            met: (!arguments.slo.is_empty()).then_some(met),
            objectives,
            steps,
            knee,
            bound,
            heading: Self::heading(arguments, crowd),
        }
    }

    /// Whether an objective was missed.
    pub(super) fn is_missed(&self) -> bool {
        self.met == Some(false)
    }

    /// The table and the clients, in one line.
    pub(super) fn heading(arguments: &Load, crowd: &Crowd) -> String {
        let table = crowd.first().table();
        let shape = table.identity.shape;
        format!(
            "table {}, {}, {} of {}: {}, lookups by {}",
            table.name,
            table.scheme.plan.scheme,
            display::some(shape.records(), "record", "records"),
            display::bytes(shape.record_len()),
            display::some(arguments.clients.into(), "client", "clients"),
            if crowd.is_by_number() { "number" } else { "key" },
        )
    }

    /// What comes below the heading and, if the knee was searched for, the lines of the steps.
    pub(super) fn page(&self) -> Page {
        let mut page = Page::default();
        match &self.knee {
            None => self.steps.iter().for_each(|step| self.add_step(&mut page, step)),
            Some(knee) => {
                page.line(self.found(knee));
            }
        }
        self.bound.add_to(&mut page);
        page
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

    fn add_step(&self, page: &mut Page, step: &Step) {
        let time = display::duration(Duration::from_secs_f64(self.seconds));
        let due = display::some(step.due, "lookup", "lookups");
        page.entry("due", format!("{}/s for {time}: {due}", rate(step.rate)));
        let answered = display::count(step.answered);
        page.entry("answered", format!("{answered}, {}/s", rate(step.answered_per_s)));
        let failed =
            step.failed.iter().map(|(kind, count)| format!("{} {kind}", display::count(*count)));
        let failed: Vec<String> = failed.collect();
        page.entry("failed", if failed.is_empty() { "0".to_owned() } else { failed.join(", ") });
        page.entry("shed", display::some(step.shed, "refusal", "refusals"));
        let percentiles = SHOWN.map(|(percent, _)| {
            format!("p{percent} {}", in_words(step.latency_ms.percentile(percent)))
        });
        let longest = in_words(step.latency_ms.longest());
        page.entry("latency", format!("{}, max {longest}", percentiles.join(", ")));
        let in_ms = |time: f64| display::duration(Duration::from_secs_f64(time / 1e3));
        page.entry(
            "begun late",
            format!("p99 {}, max {}", in_ms(step.late_ms.p99), in_ms(step.late_ms.max)),
        );
        for passes in &step.passes {
            page.entry("the server", passes.words());
        }
        let cores = cores();
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

/// A rate to three digits or to whole numbers: `0.125`, `12.5`, `1,250`.
pub(super) fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate >= 99.95 => display::count(rate.round() as u64),
        rate if rate >= 9.995 => format!("{rate:.1}"),
        rate if rate >= 0.9995 => format!("{rate:.2}"),
        rate => format!("{rate:.3}"),
    }
}

/// A time in JSON.
pub(super) fn milliseconds<S: Serializer>(
    time: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_micros() as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits_or_are_whole() {
        let rates = [0.1254, 0.9999, 1.5, 9.999, 12.34, 99.96, 1234.5, 0.0].map(rate);
        assert_eq!(rates, ["0.125", "1.00", "1.50", "10.0", "12.3", "100", "1,235", "0.000"]);
    }
}
