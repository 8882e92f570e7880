//! The plot: latencies against the rates that were offered, both logarithmic.

use super::report::LoadReport;
use super::step::Step;
use crate::page::rate;
use crate::plot::{Axis, Look, Plot, Series};
use std::time::Duration;

pub(super) fn plot(report: &LoadReport) -> Plot {
    let mut steps: Vec<&Step> = report.steps.iter().collect();
    steps.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    let curve = |hue, label: &str, latency: &dyn Fn(&Step) -> Option<Duration>| Series {
        hue,
        label: label.to_owned(),
        look: Look::Line,
        points: steps.iter().filter_map(|step| Some((step.rate, in_ms(latency(step)?)))).collect(),
    };
    let mut series = vec![
        curve(0, "p50", &|step| step.latency_ms.percentile(50.0)),
        curve(1, "p99", &|step| step.latency_ms.percentile(99.0)),
    ];
    let (lowest, highest) = (steps.first(), steps.last());
    for objective in &report.objectives {
        let limit = in_ms(objective.limit);
        let ends = [lowest, highest].into_iter().flatten();
        series.push(Series {
            hue: series.len(),
            label: format!("limit: {objective}"),
            look: Look::Dashed,
            points: ends.map(|step| (step.rate, limit)).collect(),
        });
    }
    if let Some(held) = report.knee.and_then(|knee| knee.held) {
        let at_knee = |step: &&&Step| step.rate == held;
        let p99 = steps.iter().filter(at_knee).filter_map(|step| step.latency_ms.percentile(99.0));
        series.push(Series {
            hue: series.len(),
            label: format!("the highest rate that was held: {}/s", rate(held)),
            look: Look::Marks,
            points: p99.map(|p99| (held, in_ms(p99))).collect(),
        });
    }
    let heights: Vec<f64> =
        series.iter().flat_map(|series| &series.points).map(|point| point.1).collect();
    Plot {
        title: report.heading.clone(),
        x: Axis::counts("lookups a second", steps.iter().map(|step| step.rate)),
        y: Axis::counts("latency in milliseconds", heights.into_iter()),
        right: None,
        series,
    }
}

fn in_ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
