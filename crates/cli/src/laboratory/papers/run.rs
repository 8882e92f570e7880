//! One measurement: a line for `privet bench`, run in a process of its own.

use super::figures::Exact;
use super::store::{StoredReport, StoredRun};
use crate::arguments::{Arguments, Bench, Command};
use clap::Parser as _;
use privet_core::{Error, Result};
use privet_measure::machine::Machine;
use privet_schemes::registry::Work;
use std::process::Stdio;
use std::time::Duration;

/// What `privet bench` measures: a scheme on a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    pub(super) scheme: String,
    pub(super) record_len: u64,
    pub(super) records: u64,
    /// As they are typed.
    pub(super) options: Vec<String>,
}

/// What is not worth waiting for, or cannot be.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// A run that is expected to take longer is left out.
    pub(super) longest: Duration,
    /// Memory that there is.
    pub(super) memory: u64,
    /// The most records where it is not known what a run takes.
    pub(super) unknown_records: u64,
}

impl Run {
    pub(super) fn new(scheme: &str, records: u64, record_len: u64, options: &[String]) -> Self {
        Self { scheme: scheme.to_owned(), record_len, records, options: options.to_vec() }
    }

    /// The same scheme on a table of a quarter of the records, cut into partitions of half as many.
    pub(super) fn quarter(&self) -> Self {
        let mut options = self.options.clone();
        if let Some(place) = options.iter().position(|option| option == "--partition-records")
            && let Some(partition) = options.get_mut(place + 1)
            && let Ok(records) = privet_core::quantities::parse_number(partition)
        {
            *partition = (records / 2).max(1).to_string();
        }
        Self { records: (self.records / 4).max(1), options, ..self.clone() }
    }

    /// What is typed after `privet`.
    fn line(&self, queries: u64) -> Vec<String> {
        // One batch of 500 edits is what was published. Other schemes follow edits one by one.
        let edits = if self.scheme.starts_with("tapir") { 500 } else { 16 };
        let mut line = vec!["bench".to_owned(), "--scheme".to_owned(), self.scheme.clone()];
        let numbers = [
            ("--records", self.records),
            ("--record-len", self.record_len),
            ("--queries", queries),
            ("--edits", edits),
            ("--threads", 1),
        ];
        line.extend(
            numbers.iter().flat_map(|(name, value)| [(*name).to_owned(), value.to_string()]),
        );
        line.extend(self.options.iter().cloned());
        line.push("--json".to_owned());
        line
    }

    /// The line, as the command reads it.
    ///
    /// # Errors
    /// If it cannot be typed.
    pub(super) fn bench(&self, queries: u64) -> Result<Bench> {
        let line = std::iter::once("privet".to_owned()).chain(self.line(queries));
        match Arguments::try_parse_from(line).map(|typed| typed.command) {
            Ok(Command::Bench(bench)) => Ok(bench),
            Ok(_) => Err(Error::internal("a run is no `privet bench`; this is a bug")),
            Err(error) => Err(Error::internal("a run cannot be typed").caused_by(error)),
        }
    }

    /// So many queries that their median is steady: few where each reads the whole table.
    pub(super) fn queries(&self, exact: Option<&Exact>) -> u64 {
        const LONG: u64 = 8;
        const SHORT: u64 = 100;
        /// Where it is not known how many lookups the hints serve.
        const SAFE: u64 = 25;
        match exact {
            Some(Exact { work: Work::WholeTable | Work::Points, .. }) | None => LONG,
            Some(Exact { sizes, .. }) => match sizes.supply {
                Some(supply) => SHORT.min(supply),
                None if sizes.client == 0 => SHORT,
                None => SAFE,
            },
        }
    }

    /// Whether this machine can do it, in time.
    ///
    /// # Errors
    /// Why not, in words.
    pub(super) fn check(
        &self,
        exact: Option<&Exact>,
        machine: &Machine,
        limits: &Limits,
    ) -> Result<(), String> {
        let Some(exact) = exact else {
            return match self.records <= limits.unknown_records {
                true => Ok(()),
                false => Err("takes too long".to_owned()),
            };
        };
        let sizes = &exact.sizes;
        // The bench has the table twice while the server starts.
        if sizes.table + sizes.server + sizes.client > limits.memory {
            return Err("needs more memory than there is here".to_owned());
        }
        let Some(costs) = &exact.costs else { return Ok(()) };
        let once = [&costs.setup, &costs.hints, &costs.prepare];
        let each = [&costs.query, &costs.answer, &costs.recover];
        let time =
            |steps: [&_; 3]| steps.map(|step| machine.time(step).as_secs_f64()).iter().sum::<f64>();
        let queries = self.queries(Some(exact)) as f64;
        match time(once) + queries * time(each) <= limits.longest.as_secs_f64() {
            true => Ok(()),
            false => Err("takes too long".to_owned()),
        }
    }

    /// Runs it. Nothing else of this process computes meanwhile.
    ///
    /// # Errors
    /// What the process said when it failed.
    pub(super) fn measure(&self, queries: u64) -> Result<StoredRun, String> {
        let output = crate::program()
            .map_err(|error| error.to_string())?
            .args(self.line(queries))
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        let last_line = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            text.lines().last().unwrap_or("it was ended").trim_start_matches("privet: ").to_owned()
        };
        if !output.status.success() {
            return Err(last_line(&output.stderr));
        }
        StoredRun::read(&output.stdout)
    }

    /// What it is called where results are kept.
    pub(super) fn name(&self) -> String {
        let Self { scheme, record_len, records, options } = self;
        let mut name = format!("{scheme} {records} x {record_len}");
        options.iter().for_each(|option| name.push_str(&format!(" {option}")));
        name
    }
}

/// What can be known of a run beforehand, and what it gave.
pub(super) struct Known {
    pub(super) exact: Option<Exact>,
    /// The report, or why there is none.
    pub(super) report: Result<StoredReport, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_has_partitions_of_half_as_many() {
        let options = ["--partition-records".to_owned(), "1024".to_owned()];
        let quarter = Run::new("piano", 1 << 20, 32, &options).quarter();
        assert_eq!(quarter.name(), "piano 262144 x 32 --partition-records 512");
        assert_eq!(quarter.bench(8).unwrap().records, 1 << 18);
    }
}
