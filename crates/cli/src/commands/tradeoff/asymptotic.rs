//! The powers of the number of records that storage and reads tend to.

use super::{field_in_words, power};
use crate::display::Page;
use crate::plot::{Axis, Look, Plot, Series};
use privet_schemes::finite_differences::tradeoff::{Exponents, Family, MeanDegree};
use serde::Serialize;

/// Points on the curve in the report. The page for people shows every tenth.
const STEPS: u32 = 50;

/// Points on the curve that is drawn.
const DRAWN: u32 = 400;

/// The axis of the paper's figure ends here. Points that need more storage are not drawn.
const MOST_STORAGE: f64 = 5.0;

/// The curve. `docs/tradeoff.md` explains the fields.
#[derive(Serialize)]
pub(super) struct Report {
    servers: u32,
    field: u32,
    individual_degree: u32,
    /// Ordered from the fewest reads to the least storage.
    curve: Vec<Point>,
}

#[derive(Serialize)]
struct Point {
    /// The degree divided by the number of variables.
    mean_degree: f64,
    storage_exponent: f64,
    reads_exponent: f64,
    precomputed_storage_exponent: f64,
    precomputed_reads_exponent: f64,
}

impl Report {
    pub(super) fn new(family: Family) -> Self {
        let point = |mean: MeanDegree| {
            let (now, before) = (family.exponents(mean), family.precomputed_exponents(mean));
            Point {
                mean_degree: mean.value(),
                storage_exponent: now.storage,
                reads_exponent: now.reads,
                precomputed_storage_exponent: before.storage,
                precomputed_reads_exponent: before.reads,
            }
        };
        Self {
            servers: family.servers(),
            field: family.field(),
            individual_degree: family.individual_degree(),
            curve: family.curve(STEPS).map(point).collect(),
        }
    }

    pub(super) fn page(&self) -> Page {
        let mut page = Page::default();
        page.line(format!(
            "{} servers over the field of {}, no power of a variable above {}. For n records, if the variables and the degree grow in proportion:",
            self.servers,
            field_in_words(self.field),
            self.individual_degree
        ));
        let cells = |point: &Point| {
            [
                format!("{:.2}", point.mean_degree),
                power(point.storage_exponent),
                power(point.reads_exponent),
                power(point.precomputed_storage_exponent),
                power(point.precomputed_reads_exponent),
            ]
        };
        let tenth = (STEPS / 10) as usize;
        let rows: Vec<_> = self.curve.iter().skip(tenth - 1).step_by(tenth).map(cells).collect();
        let heading = [
            "degree / variables",
            "storage",
            "reads",
            "storage, precomputed",
            "reads, precomputed",
        ];
        page.table(heading, &rows);
        page.line(
            "Precomputed: each server keeps not the values of the polynomial but, at every point, all derivatives that an answer needs.",
        );
        page
    }
}

/// Reads against storage with the axes of the paper's figures: reads from n^(1/s) to n, storage up
/// to n^5. The plot also has the curve for the highest power of a variable that the field allows,
/// and the one for precomputed derivatives. `mark` is one polynomial and its label.
pub(super) fn plot(family: Family, mark: Option<(String, Exponents)>) -> Plot {
    let servers = family.servers();
    let mut families: Vec<Family> = [1, family.individual_degree(), family.field() - 1]
        .into_iter()
        .filter_map(|highest| Family::new(servers, family.field(), highest).ok())
        .collect();
    families.dedup();
    let mut series: Vec<Series> = families
        .iter()
        .enumerate()
        .map(|(hue, family)| {
            let highest = family.individual_degree();
            Series {
                hue,
                label: match highest {
                    1 => "finite differences, variables to the power 1".to_owned(),
                    highest => format!("finite differences, variables to the power {highest}"),
                },
                look: if highest == 1 { Look::Line } else { Look::Dashed },
                points: drawn(family.curve(DRAWN).map(|mean| family.exponents(mean))),
            }
        })
        .collect();
    if let Some(first) = families.first() {
        series.push(Series {
            hue: series.len(),
            label: "precomputed derivatives, variables to the power 1".to_owned(),
            look: Look::Faint,
            points: drawn(first.curve(DRAWN).map(|mean| first.precomputed_exponents(mean))),
        });
    }
    if let Some((label, exponents)) = mark {
        let (hue, points) = (series.len(), drawn([exponents].into_iter()));
        series.push(Series { label, hue, look: Look::Marks, points });
    }
    Plot {
        title: format!(
            "Finite differences for n records: {servers} servers, field of {}",
            field_in_words(family.field())
        ),
        x: Axis::linear(
            "exponent of the reads of each server, log reads / log n",
            1.0 / f64::from(servers),
            1.0,
            0.1,
        ),
        y: Axis::linear(
            "exponent of the storage on each server, log storage / log n",
            0.8,
            MOST_STORAGE,
            0.5,
        ),
        right: None,
        series,
    }
}

fn drawn(curve: impl Iterator<Item = Exponents>) -> Vec<(f64, f64)> {
    curve.map(|exponents| (exponents.reads, exponents.storage)).collect()
}
