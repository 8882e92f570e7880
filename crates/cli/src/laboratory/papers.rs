//! `privet papers`: the figures of the papers, and the same measured here, on one page.
//!
//! The papers' figures are data. Each row names what measures the same here: a run of `privet
//! bench`, in a process of its own. What does not fit this machine is extrapolated.
//!
//! | module | what it holds |
//! |---|---|
//! | [`data`] | what was published |
//! | [`metric`] | what is measured |
//! | [`mod@run`] | one measurement, and whether this machine can make it |
//! | [`store`] | results on disk, so that a later call goes on |
//! | [`figures`] | what a scheme costs on a table: exact bytes, and times |
//! | [`growth`] | power laws |
//! | [`page`], [`plots`] | what is written |

pub(crate) mod arguments;
mod data;
mod figures;
mod growth;
mod metric;
mod page;
mod plots;
mod run;
mod store;

pub(crate) use data::Name;

use crate::display;
use arguments::Papers;
use clap::ValueEnum as _;
use data::PaperRow;
use figures::{Exact, Figures};
use growth::GROWN;
use page::Markdown;
use privet_core::{Error, Result};
use privet_measure::machine::Machine;
use run::{Known, Limits, Run};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use store::Store;

/// Measures, and writes the page.
pub(crate) fn run(arguments: &Papers) -> Result<()> {
    let names = match arguments.names.as_slice() {
        [] => Name::value_variants(),
        names => names,
    };
    let papers = names.iter().map(|name| Ok((*name, name.read()?))).collect::<Result<Vec<_>>>()?;
    let growth: Vec<Vec<Run>> = match arguments.names.is_empty() {
        true => GROWN.iter().map(|grown| grown.runs(arguments.largest())).collect(),
        false => Vec::new(),
    };
    let mut wanted: BTreeSet<Run> = growth.iter().flatten().cloned().collect();
    for (_, paper) in &papers {
        let rows = paper.tables.iter().flat_map(|table| &table.rows);
        wanted.extend(rows.filter_map(PaperRow::run));
        for figure in &paper.figures {
            wanted.extend(figure.schemes.iter().flat_map(|scheme| figure.runs(scheme)));
        }
    }
    let results = Results::measured(wanted, arguments)?;

    let folder = &arguments.output;
    let mut page = Markdown::default();
    page::beginning(&mut page, &results, &arguments.line());
    for (name, paper) in &papers {
        let name =
            name.to_possible_value().map_or(String::new(), |name| name.get_name().to_owned());
        let drawn = plots::of_paper(&name, paper, &results, folder)?;
        page::paper(&mut page, paper, &results, &drawn);
    }
    if !growth.is_empty() {
        let drawn = plots::of_growth(&results, &growth, folder)?;
        page::growth(&mut page, &results, &growth, &drawn);
    }
    let file = folder.join("README.md");
    std::fs::write(&file, page.0)
        .map_err(|error| Error::unavailable(format!("cannot write {}: {error}", file.display())))?;
    display::write_out(format!("{}\n", file.display()).as_bytes())
}

/// What all runs gave.
struct Results {
    known: BTreeMap<Run, Known>,
    machine: String,
    /// Means over all runs: 10^9 bytes read, and 10^9 AES blocks, in a second.
    yardsticks: (String, String),
}

/// How many quarterings are tried to find tables that fit.
const QUARTERINGS: usize = 6;
/// Through so many smaller tables goes a power law.
const SMALLER: usize = 3;

impl Results {
    /// Makes the runs, and those of smaller tables where one cannot be made.
    fn measured(wanted: BTreeSet<Run>, arguments: &Papers) -> Result<Self> {
        let mut store = Store::open(&arguments.output)?;
        let file = arguments.machine.as_deref();
        let machine = Machine::of(file, privet_laboratory::point_products, &display::watch)?;
        let limits = Limits {
            longest: arguments.longest(),
            memory: privet_host::memory::available().map_or(u64::MAX, |bytes| bytes / 10 * 9),
            unknown_records: arguments.unknown_records(),
        };

        // What was measured before counts, however long it took.
        let judge = |run: &Run, exact: Option<&Exact>| match store.report(run) {
            Some(_) => Ok(()),
            None => run.check(exact, &machine, &limits),
        };
        let mut judged = BTreeMap::new();
        for run in wanted {
            let exact = Exact::of(&run);
            let judgement = judge(&run, exact.as_ref());
            if judgement.is_err() {
                let smaller = std::iter::successors(Some(run.quarter()), |run| Some(run.quarter()));
                let smaller = smaller.take(QUARTERINGS).map(|run| (Exact::of(&run), run));
                let fitting = smaller
                    .filter(|(exact, run)| exact.is_some() && judge(run, exact.as_ref()).is_ok());
                judged.extend(fitting.take(SMALLER).map(|(exact, run)| (run, (exact, Ok(())))));
            }
            judged.insert(run, (exact, judgement));
        }

        let bar = display::count_progress("measuring", judged.len() as u64);
        let mut known = BTreeMap::new();
        for (run, (exact, judgement)) in judged {
            bar.set_message(run.name());
            let report = judgement.and_then(|()| match store.report(&run) {
                Some(report) => Ok(report.clone()),
                None => {
                    let measured = run.measure(run.queries(exact.as_ref()))?;
                    let report = measured.report.clone();
                    store.keep(&run, measured).map_err(|error| error.to_string())?;
                    Ok(report)
                }
            });
            known.insert(run, Known { exact, report });
            bar.inc(1);
        }
        bar.finish_and_clear();
        let machine = store.machine().to_owned();
        Ok(Self { yardsticks: yardsticks(&known), known, machine })
    }

    /// What a run cost, or would cost.
    fn figures(&self, run: &Run) -> Option<Figures> {
        let known = self.known.get(run)?;
        match (&known.report, &known.exact) {
            (Ok(report), exact) => Some(Figures::measured(run, exact.as_ref(), report)),
            (Err(_), Some(exact)) if exact.costs.is_some() => {
                Some(Figures::extrapolated(run, exact, &self.smaller(run)))
            }
            (Err(_), _) => None,
        }
    }

    /// What the largest tables below that of `run` cost.
    fn smaller<'r>(&'r self, run: &'r Run) -> Vec<(&'r Run, &'r Exact, &'r store::StoredReport)> {
        let alike = self
            .known
            .iter()
            .filter(|(other, _)| other.scheme == run.scheme && other.record_len == run.record_len);
        let made = alike.filter_map(|(other, known)| {
            Some((other, known.exact.as_ref()?, known.report.as_ref().ok()?))
        });
        // Finite differences cost what their points cost, with any variables and degree.
        let mut quarters = vec![run.quarter()];
        while quarters.len() < QUARTERINGS {
            quarters.extend(quarters.last().map(Run::quarter));
        }
        let mut made: Vec<_> = made
            .filter(|(other, exact, _)| exact.sizes.reads.is_some() || quarters.contains(other))
            .collect();
        made.sort_by_key(|(other, exact, _)| {
            std::cmp::Reverse(exact.sizes.reads.unwrap_or(other.records))
        });
        made.truncate(SMALLER);
        made
    }

    /// Why a run was not made.
    fn why_not(&self, run: &Run) -> Option<String> {
        self.known.get(run)?.report.as_ref().err().cloned()
    }
}

fn yardsticks(known: &BTreeMap<Run, Known>) -> (String, String) {
    let reports: Vec<_> = known.values().filter_map(|known| known.report.as_ref().ok()).collect();
    let mean = |of: fn(&store::Yardsticks) -> f64| {
        reports.iter().map(|report| of(&report.yardsticks)).sum::<f64>()
            / reports.len().max(1) as f64
    };
    (
        format!("{:.1}", mean(|yardsticks| yardsticks.read_gbps)),
        format!("{:.2}", mean(|yardsticks| yardsticks.aes_blocks_per_s) / 1e9),
    )
}

impl Papers {
    /// The largest tables whose growth is measured have 2 to this power of records.
    fn largest(&self) -> u32 {
        if self.quick { 18 } else { 26 }
    }

    fn longest(&self) -> Duration {
        let quick = Duration::from_secs(2);
        self.longest.unwrap_or(if self.quick { quick } else { Duration::from_secs(600) })
    }

    fn unknown_records(&self) -> u64 {
        if self.quick { 1 << 14 } else { 1 << 20 }
    }

    /// The line that was typed, without the folder.
    fn line(&self) -> String {
        let names = self.names.iter().filter_map(|name| name.to_possible_value());
        let mut line = "privet papers".to_owned();
        names.for_each(|name| line.push_str(&format!(" {}", name.get_name())));
        if self.quick {
            line.push_str(" --quick");
        }
        if let Some(longest) = self.longest {
            line.push_str(&match longest.as_secs() {
                0 => format!(" --longest {}us", longest.as_micros()),
                seconds => format!(" --longest {seconds}s"),
            });
        }
        line
    }
}
