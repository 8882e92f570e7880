//! `privet build`: from an input file to a table file.

use crate::arguments::{Build, InputFormat, KeyMap, OnDuplicate};
use crate::display::{self, Page};
use crate::exit::Outcome;
use crate::output_file;
use indicatif::ProgressBar;
use privet_core::Result;
use privet_table::build::{self, BuildOptions, BuildReport, Progress, Stage, build_table};
use privet_table::import::{Format, Source};
use privet_table::key_map::KeyMapKind;
use privet_table::snapshot::Snapshot;
use privet_table::update_log::{PublisherId, PublisherKey, UpdateLog, log_path};
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

/// Reads the input, writes the table, prints what came of it.
pub(crate) fn run(arguments: &Build) -> Result<Outcome> {
    display::be_quiet(arguments.quiet);
    // Before the long work.
    let mut inputs = vec![arguments.input.as_path()];
    inputs.extend(arguments.publisher_key.as_deref());
    let existing = output_file::for_table(&arguments.output, &inputs, arguments.force)?;
    let options = BuildOptions {
        key: arguments.key.clone(),
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
        authenticate: arguments.authenticate,
        existing,
    };
    let publisher = arguments.publisher_key.as_deref().map(PublisherKey::from_file).transpose()?;
    let publisher = publisher.map(|key| key.id());
    let mut source = Source::path(&arguments.input);
    if let Some(format) = arguments.format {
        source = source.format(format_of(format));
    }
    let start = Instant::now();
    let mut bars = Bars::default();
    let built =
        build_table(&options, source, &arguments.output, &mut |progress| bars.show(progress));
    bars.finish();
    let built = built?;
    let publisher =
        publisher.map(|publisher| announce(&arguments.output, publisher)).transpose()?;
    let seconds = start.elapsed().as_secs_f64();
    let report = Report { publisher, ..Report::of(&built, &arguments.output, seconds) };
    if !arguments.quiet {
        display::report(arguments.json, &report, || report.page())?;
    }
    Ok(Outcome::Done)
}

/// Makes an update log without epochs beside the table, which says who will sign them. Returns who,
/// for people.
fn announce(table: &Path, publisher: PublisherId) -> Result<String> {
    let snapshot = Snapshot::open(table)?;
    UpdateLog::create(&log_path(table), &snapshot, publisher)?;
    Ok(publisher.to_string())
}

/// The format that was named.
pub(crate) fn format_of(named: InputFormat) -> Format {
    match named {
        InputFormat::Csv => Format::Csv,
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
struct Report {
    file: String,
    rows: u64,
    keys: Option<u64>,
    records: u64,
    record_len: u64,
    path_len: u64,
    key_map: Option<&'static str>,
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
    file_bytes: u64,
    table_id: String,
    epoch: u64,
    digest: String,
    root: Option<String>,
    publisher: Option<String>,
    seconds: f64,
}

impl Report {
    fn of(built: &BuildReport, output: &Path, seconds: f64) -> Self {
        let map = built.key_map.as_ref();
        Self {
            file: output.display().to_string(),
            rows: built.rows,
            keys: map.map(|map| map.keys),
            records: built.records,
            record_len: built.record_len,
            path_len: built.authentication.map_or(0, |authentication| authentication.path_len),
            key_map: map.map(|map| map.kind.name()),
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
        if let (true, Some(keys)) = (self.multi, self.keys) {
            page.entry("keys", format!("{}, with one value or several", display::count(keys)));
        }
        if self.duplicates_dropped > 0 {
            page.entry("duplicates dropped", display::count(self.duplicates_dropped));
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
