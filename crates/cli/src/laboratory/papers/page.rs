//! The page in Markdown.

use super::Results;
use super::data::{Paper, PaperRow, Table};
use super::figures::{Figures, TimeSource};
use super::growth::{GROWN, GROWS, power_law};
use super::metric::Metric;
use super::plots::{self, Drawn};
use super::run::Run;
use std::collections::BTreeSet;

/// Lines of text have at most so many columns.
const COLUMNS: usize = 100;

/// Text in Markdown.
#[derive(Default)]
pub(super) struct Markdown(pub(super) String);

impl Markdown {
    fn heading(&mut self, level: usize, text: &str) {
        self.0.push_str(&format!("\n{} {text}\n", "#".repeat(level)));
    }

    /// Sentences, in lines of at most so many columns.
    fn paragraph(&mut self, text: &str) {
        self.0.push('\n');
        self.wrapped("", text);
    }

    fn list(&mut self, items: &[String]) {
        if !items.is_empty() {
            self.0.push('\n');
        }
        items.iter().for_each(|item| self.wrapped("- ", item));
    }

    /// The lines after the first begin below the first word.
    fn wrapped(&mut self, mark: &str, text: &str) {
        let mut line = mark.to_owned();
        for word in text.split_whitespace() {
            if line.chars().count() + word.chars().count() > COLUMNS {
                self.0.push_str(line.trim_end());
                self.0.push('\n');
                line = " ".repeat(mark.len());
            }
            line.push_str(word);
            line.push(' ');
        }
        self.0.push_str(line.trim_end());
        self.0.push('\n');
    }

    fn table(&mut self, heading: &[String], rows: &[Vec<String>]) {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        self.0.push('\n');
        self.0.push_str(&line(heading));
        self.0.push_str(&format!("|{}\n", "---|".repeat(heading.len())));
        rows.iter().for_each(|row| self.0.push_str(&line(row)));
    }

    fn picture(&mut self, drawn: &Drawn) {
        self.0.push_str(&format!("\n![{}]({})\n", drawn.title, drawn.file));
    }
}

/// What stands before everything else.
pub(super) fn beginning(page: &mut Markdown, results: &Results, command: &str) {
    page.0.push_str("# The papers' figures, and ours\n");
    page.paragraph(&format!(
        "`{command}` made this page on one machine: {}. It read {} GB/s in sequence and did {} \
         billion AES blocks in a second, each on one core, on average over all runs. Servers and clients \
         had one thread each.",
        results.machine, results.yardsticks.0, results.yardsticks.1
    ));
    page.paragraph(
        "Each cell says what was published, and what is so here: `published → here`. The papers \
         measured on other machines, so compare orders of size, not digits. The last column \
         compares a server's work with what this machine could do at best. Read that one for how \
         good the code is.",
    );
    page.paragraph(
        "Bytes here are those of the messages with their envelopes, and exact. Times are medians, \
         and every record was compared with the table. `≈` marks a time that was not measured \
         because the table is too large for this machine, or takes too long: it lies on the power \
         law through the times of smaller tables. `–` means that there is no figure.",
    );
    page.paragraph("All that was measured is in [runs.jsonl](runs.jsonl), as `privet bench --json` printed it.");
}

/// The tables and figures of a paper.
pub(super) fn paper(page: &mut Markdown, paper: &Paper, results: &Results, drawn: &[Drawn]) {
    page.heading(2, &paper.title);
    page.paragraph(&format!(
        "{}. {}. Measured on: {}.",
        paper.authors, paper.published, paper.machine
    ));
    for table in &paper.tables {
        page.heading(3, &format!("{} (section {})", table.name, table.section));
        page.paragraph(&table.about);
        page.list(&table.notes);
        rows(page, table, results);
    }
    for figure in &paper.figures {
        page.heading(3, &format!("{} (section {})", figure.name, figure.section));
        page.paragraph(&figure.about);
        drawn
            .iter()
            .filter(|drawn| drawn.figure == figure.name)
            .for_each(|drawn| page.picture(drawn));
    }
}

/// A table of the paper.
fn rows(page: &mut Markdown, table: &Table, results: &Results) {
    let metrics: BTreeSet<Metric> =
        table.rows.iter().flat_map(|row| row.published.keys().copied()).collect();
    let heading = ["scheme", "records"].map(str::to_owned).into_iter();
    let heading = heading.chain(metrics.iter().map(|metric| metric.title().to_owned()));
    let heading: Vec<_> = heading.chain(["a server, to this machine".to_owned()]).collect();
    let lines = table.rows.iter().map(|row| {
        let run = row.run();
        let here = run.as_ref().and_then(|run| results.figures(run));
        let scheme = match (&row.ours, row.scheme.as_str()) {
            (Some(ours), theirs) => format!("{theirs} → `{ours}`"),
            (None, theirs) => theirs.to_owned(),
        };
        let records = format!("{} × {} B", power(row.records.0.0), row.record_len);
        let cells = metrics.iter().map(|metric| cell(row, *metric, here.as_ref(), table));
        let last = match (&here, &run) {
            (Some(Figures { to_yardstick: Some(ratio), .. }), _) => ratio.clone(),
            (_, Some(run)) => results.why_not(run).unwrap_or_else(|| "–".to_owned()),
            (_, None) => String::new(),
        };
        [scheme, records].into_iter().chain(cells).chain([last]).collect::<Vec<_>>()
    });
    page.table(&heading, &lines.collect::<Vec<_>>());
    for row in table.rows.iter().filter(|row| row.by.is_some()) {
        let by = row.by.as_deref().unwrap_or_default();
        page.paragraph(&format!("{} on {} records: {by}.", row.scheme, power(row.records.0.0)));
    }
}

/// `published → here`.
fn cell(row: &PaperRow, metric: Metric, here: Option<&Figures>, table: &Table) -> String {
    let published = row.published.get(&metric).map(|published| published.0.text.clone());
    let amount = here.and_then(|here| metric.of(here, table.link.as_ref().map(|link| link.0)));
    let words = here.zip(amount).map(|(here, amount)| {
        let is_guess = here.times_are == TimeSource::Extrapolated && !metric.is_exact();
        format!("{}{}", if is_guess { "≈ " } else { "" }, metric.unit().words(amount))
    });
    match (published, words, &row.ours) {
        (Some(published), Some(words), _) => format!("{published} → {words}"),
        (Some(published), None, Some(_)) => format!("{published} → –"),
        (Some(published), None, None) => published,
        (None, _, _) => "–".to_owned(),
    }
}

/// How costs grow: exponents in a table, and plots.
pub(super) fn growth(page: &mut Markdown, results: &Results, runs: &[Vec<Run>], drawn: &[Drawn]) {
    page.heading(2, "How cost grows");
    page.paragraph(
        "Each cell has the power of n by theory, for a table of n records, and the one that fits \
         what was measured: `theory: here`. The fit is the line through the larger half of the \
         sizes, on logarithmic axes. Factors of log n count as no power in theory, and as a small \
         one in a fit. Records have 32 bytes, and one byte with `doublepir` and \
         `finite-differences`. The schemes that cut tables as SinglePass does have partitions of \
         √n records. `finite-differences-many` is missing: its points fit into memory for a few \
         sizes only.",
    );
    let heading = ["scheme", "largest table"].map(str::to_owned).into_iter();
    let heading: Vec<_> =
        heading.chain(GROWS.iter().map(|metric| metric.title().to_owned())).collect();
    let rows = GROWN.iter().zip(runs).map(|(grown, runs)| {
        let measured: Vec<_> = plots::measured(results, runs).collect();
        let largest = measured.last().map_or("–".to_owned(), |(run, _)| power(run.records));
        let upper = &measured[measured.len() / 2..];
        let cells = GROWS.iter().zip(grown.theory).map(|(metric, theory)| {
            let Some(theory) = theory else { return "–".to_owned() };
            let points = upper
                .iter()
                .filter_map(|(run, here)| Some((run.records as f64, metric.of(here, None)?)));
            match power_law(&points.collect::<Vec<_>>()) {
                Some(law) => format!("{theory}: {:.2}", law.exponent),
                None => format!("{theory}: –"),
            }
        });
        [format!("`{}`", grown.scheme), largest].into_iter().chain(cells).collect::<Vec<_>>()
    });
    page.table(&heading, &rows.collect::<Vec<_>>());
    page.paragraph("In the plots, dots are measured. Faint lines have the slope of the theory.");
    drawn
        .iter()
        .filter(|drawn| drawn.figure == plots::GROWTH)
        .for_each(|drawn| page.picture(drawn));
}

/// `2^20`, or `70,607,460`.
fn power(number: u64) -> String {
    match number.is_power_of_two() {
        true => format!("2^{}", number.ilog2()),
        false => crate::display::count(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_and_items_are_indented() {
        let mut page = Markdown::default();
        page.paragraph(&"word ".repeat(30));
        page.list(&["item ".repeat(30), "short".to_owned()]);
        let lines: Vec<_> = page.0.lines().collect();
        let fits = |line: &&str| line.chars().count() <= COLUMNS && *line == line.trim_end();
        assert!(lines.iter().all(fits), "{lines:?}");
        assert!(lines.contains(&"- short") && lines.contains(&""), "{lines:?}");
        assert!(lines[1].len() > 90, "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("  item")));
    }

    #[test]
    fn numbers_of_records() {
        assert_eq!([power(1 << 20), power(70_607_460)], ["2^20", "70,607,460"]);
    }
}
