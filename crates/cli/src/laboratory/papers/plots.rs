//! Plots over the number of records, both axes logarithmic.

use super::Results;
use super::data::{Figure, Paper, Text};
use super::figures::{Figures, TimeSource};
use super::growth::{GROWN, GROWS, PowerLaw};
use super::metric::{Metric, Unit};
use super::run::Run;
use privet_core::Result;
use privet_measure::plot::{Axis, Look, Plot, Series};
use privet_schemes::SchemeId;
use std::path::Path;

/// The name of the plots that show growth.
pub(super) const GROWTH: &str = "growth";

/// A plot in a file.
pub(super) struct Drawn {
    /// The figure that it belongs to.
    pub(super) figure: String,
    pub(super) title: String,
    pub(super) file: String,
}

/// The figures of a paper: rings are published, dots are measured here.
pub(super) fn of_paper(
    name: &str,
    paper: &Paper,
    results: &Results,
    folder: &Path,
) -> Result<Vec<Drawn>> {
    let mut drawn = Vec::new();
    for figure in &paper.figures {
        for metric in &figure.y {
            let ours = figure.schemes.iter().enumerate().map(|(hue, scheme)| {
                let runs: Vec<Run> = figure.runs(scheme).collect();
                line(scheme, hue, Look::Line, measured(results, &runs), *metric)
            });
            let theirs = figure.labels.iter().enumerate().map(|(hue, label)| Series {
                label: format!("{label}, published"),
                hue,
                look: Look::Marks,
                points: published(paper, figure, label, *metric),
            });
            let file = format!("{name}-{}-{}.svg", slug(&figure.name), slug(metric.title()));
            let title = format!("{}: {}", figure.name, metric.title());
            let plot = over_records(&title, *metric, ours.chain(theirs).collect());
            plot.write(&folder.join(&file))?;
            drawn.push(Drawn { figure: figure.name.clone(), title, file });
        }
    }
    Ok(drawn)
}

/// What the paper's tables have of a figure.
fn published(paper: &Paper, figure: &Figure, label: &str, metric: Metric) -> Vec<(f64, f64)> {
    let rows = paper.tables.iter().flat_map(|table| &table.rows);
    let rows = rows.filter(|row| row.scheme == label && row.record_len == figure.record_len);
    let point = rows.filter_map(|row| {
        let Text(quantity) = row.published.get(&metric)?;
        Some((row.records.0.0 as f64, quantity.amount))
    });
    point.filter(|(_, amount)| *amount > 0.0).collect()
}

/// How cost grows, with one server and with more.
pub(super) fn of_growth(results: &Results, runs: &[Vec<Run>], folder: &Path) -> Result<Vec<Drawn>> {
    let mut drawn = Vec::new();
    for (place, metric) in GROWS.into_iter().enumerate() {
        for (count, words) in [(1, "one server"), (2, "two servers")] {
            let of_count = |scheme: &str| {
                let scheme = SchemeId::all().find(|known| known.name() == scheme);
                scheme.is_some_and(|scheme| *scheme.about().servers.start() == count)
            };
            let grown = GROWN.iter().zip(runs).filter(|(grown, _)| of_count(grown.scheme));
            let mut series = Vec::new();
            for (hue, (grown, runs)) in grown.enumerate() {
                let look = if hue < 5 { Look::Line } else { Look::Dashed };
                let line = line(grown.scheme, hue, look, measured(results, runs), metric);
                let theory = grown.theory.get(place).copied().flatten();
                if let (Some(last), Some(theory)) = (line.points.last(), theory) {
                    let law = PowerLaw::through(*last, theory);
                    let points = line.points.iter().map(|(x, _)| (*x, law.at(*x))).collect();
                    series.push(Series { label: String::new(), hue, look: Look::Faint, points });
                }
                series.push(line);
            }
            if series.iter().all(|series| series.points.is_empty()) {
                continue;
            }
            let file = format!("{GROWTH}-{}-{count}.svg", slug(metric.title()));
            let title = format!("{}, {words}", metric.title());
            over_records(&title, metric, series).write(&folder.join(&file))?;
            drawn.push(Drawn { figure: GROWTH.to_owned(), title, file });
        }
    }
    Ok(drawn)
}

/// Those runs that were made, with what they gave, the smallest first.
pub(super) fn measured<'r>(
    results: &'r Results,
    runs: &'r [Run],
) -> impl Iterator<Item = (&'r Run, Figures)> {
    let made = runs.iter().filter_map(|run| Some((run, results.figures(run)?)));
    made.filter(|(_, figures)| figures.times_are == TimeSource::Measured)
}

fn line<'r>(
    label: &str,
    hue: usize,
    look: Look,
    measured: impl Iterator<Item = (&'r Run, Figures)>,
    metric: Metric,
) -> Series {
    let points = measured
        .filter_map(|(run, figures)| Some((run.records as f64, metric.of(&figures, None)?)));
    // Nothing is nowhere on a logarithmic axis.
    let points = points.filter(|(_, amount)| *amount > 0.0).collect();
    Series { label: label.to_owned(), hue, look, points }
}

fn over_records(title: &str, metric: Metric, series: Vec<Series>) -> Plot {
    let points = || series.iter().flat_map(|series| &series.points);
    let amounts = || points().map(|(_, amount)| *amount);
    let y = match metric.unit() {
        Unit::Bytes => Axis::bytes(metric.unit().axis(), amounts()),
        unit => Axis::counts(unit.axis(), amounts()),
    };
    let x = Axis::counts("records", points().map(|(records, _)| *records));
    Plot { title: title.to_owned(), x, y, right: None, series }
}

/// A name for a file.
fn slug(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    words.join("-")
}
