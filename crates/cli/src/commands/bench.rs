//! `privet bench`: one scheme measured on one shape.

use crate::arguments::Bench;
use crate::display::{self, Page};
use crate::exit::Outcome;
use crate::laboratory::schemes::zero_bit;
use privet_core::{Result, TableShape};
use privet_measure::bench::{BenchOptions, BenchReport, Subject, measure};

/// Runs the measurement and prints its report.
pub(crate) fn run(arguments: &Bench) -> Result<Outcome> {
    let report = report(arguments)?;
    display::report(arguments.json, &report, || Page::of(|page| report.put_on(page)))?;
    Ok(Outcome::Done)
}

/// Runs the measurement.
pub(crate) fn report(arguments: &Bench) -> Result<BenchReport> {
    let scheme = match arguments.scheme {
        Subject::Scheme(scheme) => Some(scheme),
        Subject::Plain => None,
    };
    let options = BenchOptions {
        subject: arguments.scheme,
        shape: TableShape::new(arguments.records, arguments.record_len)?,
        queries: arguments.queries,
        batch: arguments.batch,
        edits: arguments.edits,
        threads: arguments.threads,
        seed: arguments.seed,
        kernel: arguments.kernel,
        tuning: arguments.options.read(scheme)?,
        zero_bit: zero_bit(&arguments.options),
    };
    measure(&options, &display::watch)
}
