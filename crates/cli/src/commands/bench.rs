//! `privet bench`: one scheme measured on one shape.

use crate::arguments::Bench;
use crate::display::{self, Page};
use crate::laboratory::reference_string;
use privet_core::{Result, TableShape};
use privet_measure::bench::{BenchOptions, Subject, measure};
use privet_measure::identity_of;
use std::time::Instant;

/// Runs the measurement and prints its report.
pub(crate) fn run(arguments: &Bench) -> Result<()> {
    let scheme = match arguments.scheme {
        Subject::Scheme(scheme) => Some(scheme),
        Subject::Plain => None,
    };
    let shape = TableShape::new(arguments.records, arguments.record_len)?;
    let (mut tuning, mut reference_string_s) = (arguments.options.read(scheme)?, None);
    if let Some(scheme) = scheme {
        let identity = identity_of(shape);
        if reference_string::is_missing(scheme, &identity, &tuning) {
            let start = Instant::now();
            tuning = reference_string::completed(tuning, scheme, &identity)?;
            reference_string_s = Some(start.elapsed().as_secs_f64());
        }
    }
    let options = BenchOptions {
        subject: arguments.scheme,
        shape,
        queries: arguments.queries,
        batch: arguments.batch,
        edits: arguments.edits,
        threads: arguments.threads,
        seed: arguments.seed,
        kernel: arguments.kernel,
        zero_bit: privet_laboratory::zero_bit(&tuning),
        tuning,
        reference_string_s,
    };
    let report = measure(&options, &display::watch)?;
    display::report(arguments.json, &report, || Page::of(|page| report.put_on(page)))
}
