//! `privet build`: from an input file to a table file.

use super::keygen::notice_no_next_key;
use super::plan;
use crate::arguments::{Build, Making, ReadingArguments, Types};
use crate::display::{self, Page};
use crate::exit::Outcome;
use crate::key_form::{Ranges, describe};
use crate::output_file;
use indicatif::ProgressBar;
use privet_core::{Error, Result};
use privet_table::build::{
    BuildOptions, BuildReport, KeyShape, OnDuplicate, Progress, RangeColumns, Stage,
    build_table_from,
};
use privet_table::import::{ColumnTypes, Dialect, LinesLeftOut, OnEmptyKey, Source};
use privet_table::key_map::Normalization;
use privet_table::owner::{self, Handover, complete_succession};
use privet_table::snapshot::Snapshot;
use privet_table::update_log::{PublisherKey, Succession, TableKeys, UpdateLog, log_path};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Reads the input, writes the table, prints what came of it.
pub(crate) fn run(arguments: &Build) -> Result<Outcome> {
    display::be_quiet(arguments.quiet);
    if let Some(completed) = complete(arguments)? {
        display::notice(&completed);
        return Ok(Outcome::Done);
    }
    let mut bars = Bars::default();
    let report = report(arguments, Vec::new(), &mut |progress| {
        bars.show(progress);
        Ok(())
    });
    bars.finish();
    let report = report?;
    if !arguments.quiet {
        let dear = || plan::many_records(&arguments.output);
        display::report(arguments.json, &report, || {
            let mut page = report.page();
            dear().into_iter().for_each(|sentence| {
                page.line(sentence);
            });
            page
        })?;
    }
    Ok(Outcome::Done)
}

/// Completes a succession that was interrupted when all but the successor's log was written. If
/// there was one, returns a sentence that says so.
pub(crate) fn complete(arguments: &Build) -> Result<Option<String>> {
    let Some(old) = &arguments.succeeds else { return Ok(None) };
    let sentence = || {
        format!(
            "{} was built before, and {} had ended for it: its log is there now, and nothing was \
             built",
            arguments.output.display(),
            old.display()
        )
    };
    Ok(complete_succession(old, &arguments.output)?.then(sentence))
}

/// Reads the input, or the `given` rows instead, and writes the table.
pub(crate) fn report(
    arguments: &Build,
    given: Vec<Source>,
    progress: &mut dyn FnMut(Progress) -> Result<()>,
) -> Result<BuildSummary> {
    // Checked before the long work.
    let standard_input = |path: &&PathBuf| path.as_os_str() == "-";
    if arguments.inputs.iter().filter(standard_input).count() > 1 {
        return Err(Error::api_misuse("standard input can be read once only: name `-` once"));
    }
    let mut inputs: Vec<&Path> = arguments.inputs.iter().map(PathBuf::as_path).collect();
    inputs.extend(arguments.publisher_key.as_deref());
    inputs.extend(arguments.hand_over_to.as_deref());
    inputs.extend(arguments.succeeds.as_deref());
    let existing = output_file::for_table(&arguments.output, &inputs, arguments.force)?;
    let options = BuildOptions {
        has_log: arguments.publisher_key.is_some() || arguments.succeeds.is_some(),
        existing,
        ..options(&arguments.making, &arguments.reading)?
    };
    let key = |path: &Option<PathBuf>| path.as_deref().map(PublisherKey::from_file).transpose();
    let (publisher, to) = (key(&arguments.publisher_key)?, key(&arguments.hand_over_to)?);
    let handover =
        Handover { publisher: publisher.as_ref(), to: to.as_ref(), next: arguments.next_key };
    if let Some(old) = &arguments.succeeds {
        owner::check_may_succeed(old, handover)?;
    } else if arguments.next_key.is_some() {
        handover.keys()?;
    }
    let sources = match given.is_empty() {
        true => arguments.inputs.iter().map(|path| source(path, &arguments.reading)).collect(),
        false => on_empty_key(given, &arguments.reading),
    };
    let start = Instant::now();
    let built = build_table_from(&options, sources, &arguments.output, progress)?;
    let succeed = |old: &PathBuf| owner::succeed(old, &arguments.output, handover);
    let succession = arguments.succeeds.as_ref().map(succeed).transpose()?;
    let keys = match &succession {
        Some(record) => Some(record.keys()),
        None => publisher.is_some().then(|| begin_log(&arguments.output, handover)).transpose()?,
    };
    let seconds = start.elapsed().as_secs_f64();
    for doubt in &built.doubts {
        display::notice(&format!("{doubt} (--no-header, --comment)"));
    }
    notice_no_next_key(arguments.hand_over_to.as_deref(), arguments.next_key);
    Ok(BuildSummary {
        publisher: keys.map(|keys| keys.publisher.to_string()),
        next_key: keys.and_then(|keys| keys.next).map(|next| next.to_string()),
        succeeds: arguments.succeeds.as_deref().map(|old| old.display().to_string()),
        void_after: succession.filter(Succession::revokes).map(|record| record.number().0 - 1),
        ..BuildSummary::of(&built, &arguments.output, seconds)
    })
}

/// Makes an update log without epochs beside the table. It names who will sign them. Returns the
/// keys.
fn begin_log(table: &Path, handover: Handover<'_>) -> Result<TableKeys> {
    let (snapshot, keys) = (Snapshot::open(table)?, handover.keys()?);
    UpdateLog::create(&log_path(table), &snapshot, keys)?;
    Ok(keys)
}

/// The columns whose types were named.
pub(crate) fn named_types(types: &[Types]) -> ColumnTypes {
    let named = types.iter().filter_map(|one| match one {
        Types::Column(column, one) => Some((column.clone(), *one)),
        Types::Auto => None,
    });
    named.collect()
}

/// What is made of rows, as it was typed.
///
/// # Errors
/// If what was typed contradicts itself.
pub(crate) fn options(making: &Making, reading: &ReadingArguments) -> Result<BuildOptions> {
    if reading.on_empty_key != OnEmptyKey::Error
        && making.key.is_none()
        && making.range_from.is_none()
    {
        return Err(Error::api_misuse(
            "--on-empty-key is for tables with keys: say which column they are in (--key)",
        ));
    }
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
        types: named_types(&reading.types),
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

/// Rows that a program gives, and what becomes of those without a key.
pub(crate) fn on_empty_key(
    given: impl IntoIterator<Item = Source>,
    reading: &ReadingArguments,
) -> Vec<Source> {
    given.into_iter().map(|rows| rows.on_empty_key(reading.on_empty_key)).collect()
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

/// How many lines of files were no rows, for JSON.
#[derive(Serialize)]
pub(crate) struct LineCounts {
    skipped_lines: u64,
    comment_lines: u64,
    blank_lines: u64,
}

impl From<LinesLeftOut> for LineCounts {
    fn from(lines: LinesLeftOut) -> Self {
        Self { skipped_lines: lines.first, comment_lines: lines.comments, blank_lines: lines.blank }
    }
}

/// One progress bar for each stage, on a terminal.
#[derive(Default)]
struct Bars {
    current: Option<(Stage, ProgressBar)>,
}

impl Bars {
    fn show(&mut self, progress: Progress) {
        if self.current.as_ref().is_none_or(|(stage, _)| *stage != progress.stage) {
            self.finish();
            let what = match progress.stage {
                Stage::Guessing => "looking at the columns",
                Stage::Reading => "reading",
                Stage::Packing => "packing",
                Stage::Hashing => "hashing",
                _ => "writing",
            };
            self.current =
                Some((progress.stage, display::byte_progress(what, progress.bytes_total)));
        }
        if let Some((_, bar)) = &self.current {
            bar.set_position(progress.bytes_done);
        }
    }

    fn finish(&mut self) {
        if let Some((_, bar)) = self.current.take() {
            bar.finish_and_clear();
        }
    }
}

#[derive(Serialize)]
pub(crate) struct BuildSummary {
    file: String,
    rows: u64,
    keys: Option<u64>,
    key_shape: Option<Shape>,
    records: u64,
    record_len: u64,
    path_len: u64,
    key_map: Option<&'static str>,
    ranges: Option<Ranges>,
    /// How keys are written.
    key_format: Option<&'static str>,
    normalized: Vec<&'static str>,
    multi: bool,
    parts: u64,
    undivided_record_len: Option<u64>,
    records_per_lookup: u64,
    load: f64,
    stash_entries: u64,
    stash_bytes: u64,
    layout_bytes: u64,
    value_bytes: u64,
    overhead: f64,
    rows_read: u64,
    rows_hidden: u64,
    duplicates_dropped: u64,
    empty_keys_skipped: u64,
    #[serde(flatten)]
    lines: LineCounts,
    #[serde(skip)]
    left_out: Option<String>,
    types: BTreeMap<String, &'static str>,
    file_bytes: u64,
    table_id: String,
    epoch: u64,
    digest: String,
    root: Option<String>,
    publisher: Option<String>,
    next_key: Option<String>,
    /// The file of the table that ends for this one.
    succeeds: Option<String>,
    /// The last epoch of that table that is not void, if the publisher's key was stolen.
    void_after: Option<u64>,
    seconds: f64,
}

/// What all keys have in common. A key typed in any other form is not found.
#[derive(Serialize)]
struct Shape {
    shortest: u64,
    longest: u64,
    characters: String,
    spaced: u64,
    first: Vec<String>,
}

impl Shape {
    fn of(shape: &KeyShape) -> Self {
        Self {
            shortest: shape.shortest,
            longest: shape.longest,
            characters: shape.characters(),
            spaced: shape.spaced,
            first: shape.first.clone(),
        }
    }

    fn words(&self) -> String {
        let lengths = match (self.shortest, self.longest) {
            (shortest, longest) if shortest == longest => display::bytes(longest),
            (shortest, longest) if longest < 1024 => format!("{shortest} to {longest} B"),
            (shortest, longest) => {
                format!("{} to {}", display::bytes(shortest), display::bytes(longest))
            }
        };
        format!("{lengths} long: {}", self.characters)
    }
}

impl BuildSummary {
    fn of(built: &BuildReport, output: &Path, seconds: f64) -> Self {
        let map = built.key_map.as_ref();
        Self {
            file: output.display().to_string(),
            rows: built.rows,
            keys: map.map(|map| map.keys),
            key_shape: map
                .filter(|map| map.key_form.ranges.is_none())
                .map(|map| Shape::of(&map.shape)),
            records: built.records,
            record_len: built.record_len,
            path_len: built.authentication.map_or(0, |authentication| authentication.path_len),
            key_map: map.map(|map| map.kind.name()),
            ranges: map.and_then(|map| Ranges::of(&map.key_form)),
            key_format: map.map(|map| map.key_form.format.name()),
            normalized: map.map_or_else(Vec::new, |map| map.key_form.normalization.names()),
            multi: map.is_some_and(|map| map.lists),
            parts: map.map_or(1, |map| map.parts),
            undivided_record_len: map.and_then(|map| map.undivided_record_len),
            records_per_lookup: map.map_or(1, |map| map.records_per_lookup),
            load: built.load,
            stash_entries: map.map_or(0, |map| map.stash_entries),
            stash_bytes: map.map_or(0, |map| map.stash_bytes),
            layout_bytes: map.map_or(0, |map| map.bytes),
            value_bytes: built.value_bytes,
            overhead: built.overhead,
            rows_read: built.rows
                + built.hidden
                + built.duplicates_dropped
                + built.empty_keys_skipped,
            rows_hidden: built.hidden,
            duplicates_dropped: built.duplicates_dropped,
            left_out: left_out(built.lines_left_out, built.empty_keys_skipped),
            lines: built.lines_left_out.into(),
            empty_keys_skipped: built.empty_keys_skipped,
            types: built.types.iter().map(|(column, one)| (column.clone(), one.name())).collect(),
            file_bytes: built.file_bytes,
            table_id: built.id.to_string(),
            epoch: built.epoch.0,
            digest: built.digest.to_string(),
            root: built.authentication.map(|authentication| authentication.root.to_string()),
            publisher: None,
            next_key: None,
            succeeds: None,
            void_after: None,
            seconds,
        }
    }

    fn page(&self) -> Page {
        let mut page = Page::default();
        page.line(format!("{} built in {:.1} s", self.file, self.seconds));
        page.entry("rows", display::count(self.rows));
        if let (Some(keys), Some(shape)) = (self.keys, &self.key_shape) {
            let multi = if self.multi { ", with one value or several" } else { "" };
            page.entry("keys", format!("{}{multi}, {}", display::count(keys), shape.words()));
            page.entry("such as", shape.first.join(", "));
            if shape.spaced > 0 {
                page.entry(
                    "with spaces",
                    format!(
                        "{} at an end, which lookups have to have as well",
                        display::count(shape.spaced)
                    ),
                );
            }
        }
        if self.duplicates_dropped > 0 {
            page.entry("duplicates dropped", display::count(self.duplicates_dropped));
        }
        if self.rows_hidden > 0 {
            let rows = display::some(self.rows_hidden, "row", "rows");
            page.entry("hidden", format!("{rows} by narrower ranges"));
        }
        if let Some(left_out) = &self.left_out {
            page.entry("skipped", left_out);
        }
        if !self.types.is_empty() {
            let types = self.types.iter().map(|(column, one)| format!("{column}={one}"));
            page.entry("types", types.collect::<Vec<_>>().join(","));
        }
        page.entry(
            "records",
            display::records(
                self.records,
                self.record_len,
                self.root.as_ref().map(|_| self.path_len),
            ),
        );
        match self.key_map {
            Some(kind) => {
                page.entry(
                    "key map",
                    format!(
                        "{kind}, {:.1} % full, {} downloaded by each client",
                        self.load * 100.0,
                        display::bytes(self.layout_bytes)
                    ),
                );
                describe(&mut page, self.ranges.as_ref(), self.key_format, &self.normalized);
                if self.parts > 1 {
                    page.entry("parts", self.parts_and_why());
                }
                page.entry(
                    "stash",
                    format!(
                        "{} {}, {}",
                        display::count(self.stash_entries),
                        if self.parts > 1 { "pieces of values" } else { "values" },
                        display::bytes(self.stash_bytes)
                    ),
                );
            }
            None => {
                page.entry("key map", "none: records are looked up by row number, from 0");
            }
        }
        page.entry(
            "overhead",
            format!("{:.2} x the {} of values", self.overhead, display::bytes(self.value_bytes)),
        );
        page.entry("file size", display::bytes(self.file_bytes));
        page.entry("table id", &self.table_id);
        page.entry("digest", &self.digest);
        if let Some(root) = &self.root {
            page.entry("root", root);
        }
        if let Some(publisher) = &self.publisher {
            page.entry("publisher", publisher);
        }
        if let Some(next_key) = &self.next_key {
            page.entry("next key", next_key);
        }
        if let Some(old) = &self.succeeds {
            page.entry(
                "succeeds",
                match self.void_after {
                    None => format!("{old}, which has ended: no update follows there"),
                    Some(epoch) => {
                        format!("{old}, which has ended: its updates after epoch {epoch} are void")
                    }
                },
            );
        }
        page
    }
    fn parts_and_why(&self) -> String {
        let lookup = format!(
            "{}: a lookup fetches {}, however long the value is",
            self.parts,
            display::some(self.records_per_lookup, "record", "records")
        );
        match self.undivided_record_len {
            Some(undivided) => format!(
                "{lookup}; with one part (--parts 1) they would have {}, and clients would receive more",
                display::bytes(undivided)
            ),
            None => lookup,
        }
    }
}
