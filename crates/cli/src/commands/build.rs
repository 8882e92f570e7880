//! `privet build`: from an input file to a table file.

use super::plan;
use crate::arguments::{Build, Delimiter, InputFormat, KeyMap, OnDuplicate, OnEmptyKey, Types};
use crate::display::{self, Page};
use crate::exit::Outcome;
use crate::key_form::{Ranges, describe};
use crate::output_file;
use indicatif::ProgressBar;
use privet_core::{Error, Result};
use privet_table::build::{
    self, BuildOptions, BuildReport, KeyShape, Progress, RangeColumns, Stage, build_table_from,
};
use privet_table::import::{self, ColumnTypes, Format, Source};
use privet_table::key_map::{KeyMapKind, Normalization};
use privet_table::snapshot::Snapshot;
use privet_table::update_log::{PublisherId, PublisherKey, UpdateLog, log_path};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Reads the input, writes the table, prints what came of it.
pub(crate) fn run(arguments: &Build) -> Result<Outcome> {
    display::be_quiet(arguments.quiet);
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

/// Reads the input, or the `given` rows instead, and writes the table.
pub(crate) fn report(
    arguments: &Build,
    given: Vec<Source>,
    progress: &mut dyn FnMut(Progress) -> Result<()>,
) -> Result<Report> {
    // Checked before the long work.
    let standard_input = |path: &&PathBuf| path.as_os_str() == "-";
    if arguments.inputs.iter().filter(standard_input).count() > 1 {
        return Err(Error::api_misuse("standard input can be read once only: name `-` once"));
    }
    let mut inputs: Vec<&Path> = arguments.inputs.iter().map(PathBuf::as_path).collect();
    inputs.extend(arguments.publisher_key.as_deref());
    let existing = output_file::for_table(&arguments.output, &inputs, arguments.force)?;
    let options = BuildOptions {
        key: arguments.key.clone(),
        normalization: Normalization::from_names(&arguments.normalize)?,
        ranges: arguments
            .range_from
            .clone()
            .map(|from| RangeColumns { from, to: arguments.range_to.clone() }),
        key_map: match arguments.key_map {
            KeyMap::Buckets => KeyMapKind::Buckets,
            KeyMap::Cuckoo => KeyMapKind::Cuckoo,
        },
        value_columns: arguments.value.clone(),
        raw_value: arguments.raw_value.clone(),
        max_value: arguments.max_value,
        parts: arguments.parts,
        on_duplicate: match arguments.on_duplicate {
            _ if arguments.multi => build::OnDuplicate::All,
            OnDuplicate::Error => build::OnDuplicate::Error,
            OnDuplicate::First => build::OnDuplicate::First,
            OnDuplicate::Last => build::OnDuplicate::Last,
        },
        types: named_types(&arguments.types),
        guess_types: arguments.types.contains(&Types::Auto),
        authenticate: arguments.authenticate,
        has_log: arguments.publisher_key.is_some(),
        existing,
    };
    let publisher = arguments.publisher_key.as_deref().map(PublisherKey::from_file).transpose()?;
    let publisher = publisher.map(|key| key.id());
    let source = |path: &PathBuf| {
        source(path, arguments.format, arguments.delimiter, arguments.on_empty_key)
    };
    let sources = match given.is_empty() {
        true => arguments.inputs.iter().map(source).collect(),
        false => given.into_iter().map(|rows| on_empty_key(rows, arguments.on_empty_key)).collect(),
    };
    let start = Instant::now();
    let built = build_table_from(&options, sources, &arguments.output, progress)?;
    let publisher =
        publisher.map(|publisher| announce(&arguments.output, publisher)).transpose()?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(Report { publisher, ..Report::of(&built, &arguments.output, seconds) })
}

/// Makes an update log without epochs beside the table. It names the publisher who will sign them.
/// Returns that publisher, for the report.
fn announce(table: &Path, publisher: PublisherId) -> Result<String> {
    let snapshot = Snapshot::open(table)?;
    UpdateLog::create(&log_path(table), &snapshot, publisher)?;
    Ok(publisher.to_string())
}

/// The columns whose types were named.
pub(crate) fn named_types(types: &[Types]) -> ColumnTypes {
    let named = types.iter().filter_map(|one| match one {
        Types::Column(column, one) => Some((column.clone(), *one)),
        Types::Auto => None,
    });
    named.collect()
}

/// The rows of a file, read with the given options.
pub(crate) fn source(
    path: &Path,
    format: Option<InputFormat>,
    delimiter: Option<Delimiter>,
    empty_key: OnEmptyKey,
) -> Source {
    let mut source = on_empty_key(Source::path(path), empty_key);
    if let Some(format) = format {
        source = source.format(format_of(format));
    }
    if let Some(Delimiter(delimiter)) = delimiter {
        source = source.delimiter(delimiter);
    }
    source
}

/// The same rows, and what becomes of those without a key.
pub(crate) fn on_empty_key(source: Source, typed: OnEmptyKey) -> Source {
    source.on_empty_key(match typed {
        OnEmptyKey::Error => import::OnEmptyKey::Error,
        OnEmptyKey::Skip => import::OnEmptyKey::Skip,
    })
}

fn format_of(named: InputFormat) -> Format {
    match named {
        InputFormat::Csv => Format::Csv,
        InputFormat::Tsv => Format::Tsv,
        InputFormat::Jsonl => Format::JsonLines,
        InputFormat::Parquet => Format::Parquet,
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
pub(crate) struct Report {
    file: String,
    rows: u64,
    keys: Option<u64>,
    key_shape: Option<Shape>,
    records: u64,
    record_len: u64,
    path_len: u64,
    key_map: Option<&'static str>,
    ranges: Option<Ranges>,
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
    duplicates_dropped: u64,
    empty_keys_skipped: u64,
    types: BTreeMap<String, &'static str>,
    file_bytes: u64,
    table_id: String,
    epoch: u64,
    digest: String,
    root: Option<String>,
    publisher: Option<String>,
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

impl Report {
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
            duplicates_dropped: built.duplicates_dropped,
            empty_keys_skipped: built.empty_keys_skipped,
            types: built.types.iter().map(|(column, one)| (column.clone(), one.name())).collect(),
            file_bytes: built.file_bytes,
            table_id: built.id.to_string(),
            epoch: built.epoch.0,
            digest: built.digest.to_string(),
            root: built.authentication.map(|authentication| authentication.root.to_string()),
            publisher: None,
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
        if self.empty_keys_skipped > 0 {
            page.entry(
                "skipped",
                format!("{} rows without a key", display::count(self.empty_keys_skipped)),
            );
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
                describe(&mut page, self.ranges.as_ref(), &self.normalized);
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
