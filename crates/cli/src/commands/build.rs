//! `privet build`: from an input file to a table file.

use super::keygen::notice_no_next_key;
use crate::arguments::{Build, Making, ReadingArguments};
use crate::display::{self, Page};
use crate::key_form::describe;
use crate::room::describe_stash;
use indicatif::ProgressBar;
use privet_core::Result;
use privet_measure::plan::many_records;
use privet_table::build::{
    BuildOptions, BuildReport, KeyShape, OnDuplicate, Progress, RangeColumns, Stage,
};
use privet_table::import::{Dialect, LinesLeftOut, Source, Types};
use privet_table::key_map::Normalization;
use privet_table::publish::{self, Built, NewTable, NewTableReport};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// Reads the input, writes the table, prints what came of it.
pub(crate) fn run(arguments: &Build) -> Result<()> {
    display::be_quiet(arguments.quiet);
    let wanted = NewTable {
        output: arguments.output.clone(),
        force: arguments.force,
        making: options(&arguments.making, &arguments.reading)?,
        publisher_key: arguments.publisher_key.clone(),
        next_key: arguments.next_key,
        succeeds: arguments.succeeds.clone(),
        hand_over_to: arguments.hand_over_to.clone(),
    };
    let sources = arguments.inputs.iter().map(|path| source(path, &arguments.reading)).collect();
    let start = Instant::now();
    let built = with_bars(|progress| publish::build(&wanted, sources, progress))?;
    let seconds = start.elapsed().as_secs_f64();
    let built = match built {
        Built::Table(built) => built,
        Built::Completed(completed) => {
            display::notice(&completed);
            return Ok(());
        }
    };
    for doubt in &built.table.doubts {
        display::notice(&format!("{doubt} (--no-header, --comment)"));
    }
    notice_no_next_key(arguments.hand_over_to.as_deref(), arguments.next_key);
    if !arguments.quiet {
        let shown = Shown { report: *built, seconds };
        display::report(arguments.json, &shown, || {
            let mut page = shown.page();
            many_records(&arguments.output).into_iter().for_each(|sentence| {
                page.line(format!("  {sentence}: see `privet plan`"));
            });
            page
        })?;
    }
    Ok(())
}

/// What is made of rows, as it was typed.
///
/// # Errors
/// If what was typed contradicts itself.
pub(crate) fn options(making: &Making, reading: &ReadingArguments) -> Result<BuildOptions> {
    Ok(BuildOptions {
        key: making.key.clone(),
        normalization: Normalization::from_names(&making.normalize)?,
        key_format: making.key_format,
        ranges: making.range_from.clone().map(|from| RangeColumns {
            from,
            to: making.range_to.clone(),
            nested: making.nested,
        }),
        key_map: making.key_map,
        value_columns: making.value.clone(),
        raw_value: making.raw_value.clone(),
        max_value: making.max_value,
        parts: making.parts,
        room: making.room.unwrap_or(0),
        on_duplicate: match making.multi {
            true => OnDuplicate::All,
            false => making.on_duplicate,
        },
        types: Types::named(&reading.types),
        guess_types: reading.types.contains(&Types::Auto),
        authenticate: making.authenticate,
        ..BuildOptions::default()
    })
}

/// The rows of a file, read as it was typed.
pub(crate) fn source(path: &Path, reading: &ReadingArguments) -> Source {
    let mut source = Source::path(path).dialect(Dialect {
        delimiter: reading.delimiter,
        no_quotes: reading.no_quotes,
        no_header: reading.no_header.then(|| reading.columns.clone()),
        comment: reading.comment.clone(),
        skip_lines: reading.skip_lines,
        spread: reading.spread,
    });
    if let Some(format) = reading.format {
        source = source.format(format);
    }
    source.on_empty_key(reading.on_empty_key)
}

/// What was left out of files, in words; nothing if nothing was.
pub(crate) fn left_out(lines: LinesLeftOut, empty_keys: u64) -> Option<String> {
    let parts = [
        (lines.first, "line at the beginning", "lines at the beginning"),
        (lines.comments, "comment line", "comment lines"),
        (lines.blank, "blank line", "blank lines"),
        (empty_keys, "row without a key", "rows without a key"),
    ];
    let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
    let parts: Vec<_> = parts.map(|(count, one, more)| display::some(count, one, more)).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Does `work`, and shows the progress that it tells: on a terminal, one bar for each stage.
pub(crate) fn with_bars<T>(
    work: impl FnOnce(&mut dyn FnMut(Progress) -> Result<()>) -> Result<T>,
) -> Result<T> {
    let mut current: Option<(Stage, ProgressBar)> = None;
    work(&mut |progress| {
        let what = progress.stage.words();
        let same = current.take().filter(|(stage, _)| *stage == progress.stage);
        let (_, bar) = current.insert(same.unwrap_or_else(|| match progress.stage {
            stage @ (Stage::Comparing | Stage::Signing | Stage::Compacting) => {
                (stage, display::working(what))
            }
            stage => (stage, display::byte_progress(what, progress.bytes_total)),
        }));
        bar.set_position(progress.bytes_done);
        Ok(())
    })
}

/// The report, and how long it took.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    report: NewTableReport,
    seconds: f64,
}

/// What all keys have in common. A key typed in any other form is not found.
fn shape_in_words(shape: &KeyShape) -> String {
    let lengths = match (shape.shortest, shape.longest) {
        (shortest, longest) if shortest == longest => display::bytes(longest),
        (shortest, longest) if longest < 1024 => format!("{shortest} to {longest} B"),
        (shortest, longest) => {
            format!("{} to {}", display::bytes(shortest), display::bytes(longest))
        }
    };
    format!("{lengths} long: {}", shape.characters)
}

impl Shown {
    fn page(&self) -> Page {
        let (report, table) = (&self.report, &self.report.table);
        let mut page = Page::default();
        page.line(format!("{} built in {:.1} s", report.file, self.seconds));
        page.entry("rows", display::count(table.rows));
        if let (Some(keys), Some(shape)) = (table.keys, &table.key_shape) {
            let multi = if table.multi { ", with one value or several" } else { "" };
            page.entry(
                "keys",
                format!("{}{multi}, {}", display::count(keys), shape_in_words(shape)),
            );
            page.entry("such as", shape.first.join(", "));
            let spaced = (shape.spaced > 0).then(|| display::count(shape.spaced));
            let spaced = spaced.map(|n| n + " at an end, which lookups have to have as well");
            page.entry_if("with spaces", spaced);
        }
        page.count_if("duplicates dropped", table.duplicates_dropped);
        if table.rows_hidden > 0 {
            let rows = display::some(table.rows_hidden, "row", "rows");
            page.entry("hidden", format!("{rows} by narrower ranges"));
        }
        page.entry_if("skipped", left_out(table.lines_left_out, table.empty_keys_skipped));
        if !table.types.is_empty() {
            let types: BTreeMap<_, _> = table.types.iter().cloned().collect();
            let types = types.iter().map(|(column, one)| format!("{column}={}", one.name()));
            page.entry("types", types.collect::<Vec<_>>().join(","));
        }
        let path_len = table.root.map(|_| table.path_len);
        page.entry("records", display::records(table.records, table.record_len, path_len));
        match table.key_map {
            Some(kind) => {
                page.entry(
                    "key map",
                    format!(
                        "{kind}, {:.1} % full, {} downloaded by each client",
                        table.load * 100.0,
                        display::bytes(table.layout_bytes)
                    ),
                );
                describe(&mut page, &table.key_form);
                if table.parts > 1 {
                    page.entry("parts", parts_and_why(table));
                }
                describe_stash(&mut page, table.stash_entries, table.stash_bytes, table.parts);
            }
            None => {
                page.entry("key map", "none: records are looked up by row number, from 0");
            }
        }
        page.entry(
            "overhead",
            format!("{:.2} x the {} of values", table.overhead, display::bytes(table.value_bytes)),
        );
        page.entry("file size", display::bytes(table.file_bytes));
        page.entry("table id", table.id);
        page.entry("digest", table.digest);
        page.entry_if("root", table.root);
        page.entry_if("publisher", report.publisher);
        page.entry_if("next key", report.next_key);
        if let Some(old) = &report.succeeds {
            page.entry(
                "succeeds",
                match report.void_after {
                    None => format!("{old}, which has ended: no update follows there"),
                    Some(epoch) => {
                        format!("{old}, which has ended: its updates after epoch {epoch} are void")
                    }
                },
            );
        }
        page
    }
}

fn parts_and_why(table: &BuildReport) -> String {
    let lookup = format!(
        "{}: a lookup fetches {}, however long the value is",
        table.parts,
        display::some(table.records_per_lookup, "record", "records")
    );
    match table.undivided_record_len {
        Some(undivided) => format!(
            "{lookup}; with one part (--parts 1) they would have {}, and clients would receive more",
            display::bytes(undivided)
        ),
        None => lookup,
    }
}
