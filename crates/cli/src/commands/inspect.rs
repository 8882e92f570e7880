//! `privet inspect`: what a table file, or a file of its points, says about itself, and whether it
//! is whole.

use crate::arguments::Inspect;
use crate::commands::get::json_lines::{ReadAs, ShownValue};
use crate::commands::get::output::plain_lines;
use crate::display::{self, Page};
use crate::exit::Outcome;
use crate::key_form::{Ranges, describe};
use crate::laboratory::inspect_points;
use crate::machine;
use crate::room::Left;
use privet_core::{Error, Result, TableIdentity};
use privet_schemes::registry::{self, Tuning};
use privet_table::authentication::path_len;
use privet_table::listing;
use privet_table::points_file::PointsFile;
use privet_table::snapshot::{Snapshot, ValueForm};
use privet_table::update_log::UpdateLog;
use privet_table::values::ValueColumn;
use serde::Serialize;

/// Opens the file, which checks its header, and with `--verify` reads all of it.
pub(crate) fn run(arguments: &Inspect) -> Result<Outcome> {
    if PointsFile::is_one(&arguments.file) {
        if arguments.head.is_some() {
            return Err(Error::api_misuse(format!(
                "{}: a file of points has no values; --head is for its table",
                arguments.file.display()
            )));
        }
        return inspect_points::run(arguments);
    }
    look(arguments, |report, head| {
        display::report(arguments.json, report, || report.page())?;
        if let (false, Some(values)) = (arguments.json, head) {
            let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
            display::write_out(&plain_lines(&values))?;
        }
        Ok(Outcome::Done)
    })
}

/// What a table file says, as JSON, without printing it.
pub(crate) fn report(arguments: &Inspect) -> Result<String> {
    look(arguments, |report, _| {
        serde_json::to_string(report)
            .map_err(|error| Error::internal("a report is no JSON").caused_by(error))
    })
}

/// Tells what a table file says, and its first values if they were asked for.
fn look<T>(
    arguments: &Inspect,
    tell: impl FnOnce(&InspectReport<'_>, Option<&[Vec<u8>]>) -> Result<T>,
) -> Result<T> {
    let snapshot = Snapshot::open(&arguments.file)?;
    let log = UpdateLog::of(&snapshot)?;
    if arguments.verify {
        let bar = display::byte_progress("verifying", Some(snapshot.file_bytes()));
        let verified = snapshot.verify(|done, total| {
            bar.set_length(total);
            bar.set_position(done);
        });
        bar.finish_and_clear();
        verified?;
    }
    let updates =
        log.as_ref().map(|log| Updates::of(log, &snapshot, arguments.verify)).transpose()?;
    let head = arguments.head.map(|count| first_values(&snapshot, log.as_ref(), count));
    let head = head.transpose()?;
    let reading = ReadAs::of(snapshot.layout().values());
    // A damaged record is found by --verify.
    let room = room(&snapshot, log.as_ref()).ok().flatten();
    let report = InspectReport {
        head: head
            .as_deref()
            .map(|values| ShownValue::list(values.iter().map(Vec::as_slice).collect(), reading)),
        serving: match &log {
            Some(log) => Serving::of(&log.first_table()?, &log.current()),
            None => Serving::of(&snapshot.identity(), &snapshot.identity()),
        },
        room,
        ..InspectReport::of(&snapshot, updates, arguments.verify)
    };
    tell(&report, head.as_deref())
}

/// How many more keys the table takes, with the updates of its log. An authenticated table takes no
/// updates.
fn room(snapshot: &Snapshot, log: Option<&UpdateLog>) -> Result<Option<Left>> {
    let layout = log.map_or(snapshot.layout(), UpdateLog::layout);
    let key_map = layout.records().key_map().filter(|_| layout.authentication().is_none());
    let Some(key_map) = key_map else { return Ok(None) };
    let table = log.map(|log| log.table(snapshot)).transpose()?;
    let record = |number| match &table {
        Some(table) => table.record(number),
        None => snapshot.view().record(number),
    };
    let read = |number| record(number).map(<[u8]>::to_vec).ok_or_else(missing);
    Ok(Some(Left::of(&key_map.room(read)?, key_map.parts() as u64)))
}

fn missing() -> Error {
    Error::corrupted("the table lacks a record")
}

/// The table's first values, with the updates of its log.
fn first_values(snapshot: &Snapshot, log: Option<&UpdateLog>, count: u64) -> Result<Vec<Vec<u8>>> {
    let Some(log) = log else {
        let shape = snapshot.identity().shape;
        let read = |number| snapshot.view().record(number).map(<[u8]>::to_vec).ok_or_else(missing);
        return listing::first_values(snapshot.layout(), shape, count, read);
    };
    let table = log.table(snapshot)?;
    let read = |number| table.record(number).map(<[u8]>::to_vec).ok_or_else(missing);
    listing::first_values(log.layout(), table.shape(), count, read)
}

#[derive(Serialize)]
struct InspectReport<'a> {
    file: String,
    file_bytes: u64,
    table_id: String,
    epoch: u64,
    records: u64,
    record_len: u64,
    path_len: u64,
    key_column: Option<String>,
    until_column: Option<String>,
    ranges: Option<Ranges>,
    /// How keys are written.
    key_format: Option<&'static str>,
    normalized: Vec<&'static str>,
    value: &'static str,
    value_columns: Vec<String>,
    /// If the table has column types.
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<Vec<Column>>,
    key_map: Option<&'static str>,
    keys: Option<u64>,
    multi: bool,
    parts: u64,
    records_per_lookup: u64,
    load: Option<f64>,
    stash_entries: Option<u64>,
    stash_bytes: Option<u64>,
    #[serde(flatten)]
    room: Option<Left>,
    layout_bytes: u64,
    serving: Option<Serving>,
    digest: String,
    root: Option<String>,
    created_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    updates: Option<Updates>,
    verified: bool,
    /// Present if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<ShownValue<'a>>,
}

/// A column of the values.
#[derive(Serialize)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    of: String,
}

/// What it takes to serve the table by the scheme that suits it.
#[derive(Serialize)]
struct Serving {
    scheme: &'static str,
    memory_bytes: u64,
    start_bytes: u64,
    update_bytes: u64,
}

impl Serving {
    /// For the table `now`, which was `first` when its log was begun: a server chooses for that,
    /// and its clients keep what they have when the table grows. `None` if no scheme suits it.
    fn of(first: &TableIdentity, now: &TableIdentity) -> Option<Self> {
        let scheme = registry::choose(first);
        let plan = registry::plan(scheme, first, &Tuning::default()).ok()?;
        let plan = registry::plan_next(&plan, now, &Tuning::default()).ok()?;
        let memory = plan.memory(now, machine::threads());
        Some(Self {
            scheme: scheme.name(),
            memory_bytes: memory.version,
            start_bytes: memory.at_start(),
            update_bytes: memory.at_update(),
        })
    }
}

impl Serving {
    fn in_words(&self) -> String {
        let Self { scheme, memory_bytes, start_bytes, update_bytes } = self;
        match memory_bytes {
            0 => format!("no memory by {scheme}: clients get it from the file"),
            _ => format!(
                "{} of memory by {scheme}; at most {} at a start, {} when an update comes",
                display::bytes(*memory_bytes),
                display::bytes(*start_bytes),
                display::bytes(*update_bytes)
            ),
        }
    }
}

/// What came after the table file, in its update log.
#[derive(Serialize)]
struct Updates {
    epoch: u64,
    records: u64,
    digest: String,
    publisher: String,
    next_key: Option<String>,
    /// The ids of the tables that this one continues, in order.
    succeeds: Vec<String>,
    /// The id of the table that succeeds this one.
    succeeded_by: Option<String>,
    log_bytes: u64,
}

impl Updates {
    fn of(log: &UpdateLog, snapshot: &Snapshot, verify: bool) -> Result<Self> {
        if verify {
            log.table(snapshot)?.verified_digest()?;
        }
        let table = log.current();
        let lineage = log.lineage().records().iter().filter(|record| !record.is_rotation());
        Ok(Self {
            epoch: table.epoch.0,
            records: table.shape.records(),
            digest: table.digest.to_string(),
            publisher: log.publisher().to_string(),
            next_key: log.keys().next.map(|next| next.to_string()),
            succeeds: lineage.map(|record| record.old().to_string()).collect(),
            succeeded_by: log.succession().map(|record| record.new_table().id.to_string()),
            log_bytes: log.epoch_bytes(),
        })
    }
}

impl InspectReport<'_> {
    fn of(snapshot: &Snapshot, updates: Option<Updates>, verified: bool) -> Self {
        let header = snapshot.header();
        let identity = snapshot.identity();
        let key_map = snapshot.key_map();
        let root = snapshot.root();
        Self {
            file: snapshot.path().display().to_string(),
            file_bytes: snapshot.file_bytes(),
            table_id: identity.id.to_string(),
            epoch: identity.epoch.0,
            records: identity.shape.records(),
            record_len: identity.shape.record_len(),
            path_len: root.map_or(0, |_| path_len(identity.shape.records())),
            key_column: header.key_column.clone(),
            until_column: header.until_column.clone(),
            ranges: key_map.and_then(|map| Ranges::of(map.key_form())),
            key_format: key_map.map(|map| map.key_form().format.name()),
            normalized: key_map.map_or_else(Vec::new, |map| map.key_form().normalization.names()),
            value: match header.value_form {
                ValueForm::Raw(_) => "raw",
                _ => "json",
            },
            value_columns: header.value_form.columns().to_vec(),
            columns: snapshot.layout().values().map(|values| {
                let column = |column: &ValueColumn| Column {
                    name: column.name.clone(),
                    of: column.of.to_string(),
                };
                values.columns.iter().map(column).collect()
            }),
            key_map: key_map.map(|map| map.kind().name()),
            keys: key_map.map(|map| map.keys()),
            multi: key_map.is_some_and(|map| map.has_lists()),
            parts: key_map.map_or(1, |map| map.parts() as u64),
            records_per_lookup: key_map.map_or(1, |map| map.candidates_per_key() as u64),
            load: key_map.map(|map| map.load()),
            stash_entries: key_map.map(|map| map.stash_entries()),
            stash_bytes: key_map.map(|map| map.stash_bytes()),
            room: None,
            layout_bytes: snapshot.layout_bytes().len() as u64,
            serving: None,
            digest: identity.digest.to_string(),
            root: root.map(|root| root.to_string()),
            created_by: header.created_by.clone(),
            updates,
            verified,
            head: None,
        }
    }

    fn page(&self) -> Page {
        let mut page = Page::default();
        page.line(&self.file);
        page.entry("table id", &self.table_id);
        page.entry("epoch", self.epoch);
        page.entry(
            "records",
            display::records(
                self.records,
                self.record_len,
                self.root.as_ref().map(|_| self.path_len),
            ),
        );
        match (&self.key_column, self.key_map, self.keys) {
            (Some(column), Some(kind), Some(keys)) => {
                page.entry(
                    "key map",
                    format!(
                        "{kind}, {} from column {column:?}{}{}",
                        display::some(keys, "key", "keys"),
                        match &self.until_column {
                            Some(until) => format!(" to column {until:?}"),
                            None => String::new(),
                        },
                        if self.multi { ", with one value or several" } else { "" }
                    ),
                );
                describe(&mut page, self.ranges.as_ref(), self.key_format, &self.normalized);
                if self.parts > 1 {
                    let (parts, records) = (self.parts, self.records_per_lookup);
                    page.entry(
                        "parts",
                        format!(
                            "{parts}: a lookup fetches {records} records, however long the value is"
                        ),
                    );
                }
                page.entry(
                    "keys",
                    "not in the file, which has a tag for each; look one up by `privet get`",
                );
                page.entry("load", format!("{:.1} %", self.load.unwrap_or_default() * 100.0));
                page.entry(
                    "stash",
                    format!(
                        "{} {}, {}",
                        display::count(self.stash_entries.unwrap_or_default()),
                        if self.parts > 1 { "pieces of values" } else { "values" },
                        display::bytes(self.stash_bytes.unwrap_or_default())
                    ),
                );
                if let Some(room) = &self.room {
                    room.add_to(&mut page);
                }
            }
            _ => {
                page.entry("key map", "none: records are looked up by number");
            }
        }
        page.entry("value", format!("{}: {}", self.value, self.columns_in_a_line()));
        page.entry("record layout", display::bytes(self.layout_bytes));
        page.entry("file size", display::bytes(self.file_bytes));
        if let Some(serving) = &self.serving {
            page.entry("to serve it", serving.in_words());
        }
        page.entry("digest", &self.digest);
        if let Some(root) = &self.root {
            page.entry("root", root);
        }
        page.entry("created by", &self.created_by);
        if let Some(updates) = &self.updates {
            page.entry(
                "updates",
                format!(
                    "to epoch {}, {}, {}",
                    updates.epoch,
                    display::some(updates.records, "record", "records"),
                    display::bytes(updates.log_bytes)
                ),
            );
            page.entry("digest then", &updates.digest);
            page.entry("publisher", &updates.publisher);
            if let Some(next_key) = &updates.next_key {
                page.entry("next key", next_key);
            }
            if let [earlier @ .., last] = &updates.succeeds[..] {
                let more = match earlier.len() as u64 {
                    0 => String::new(),
                    more => format!(", and {} before it", display::some(more, "table", "tables")),
                };
                page.entry("succeeds", format!("the table {last}{more}"));
            }
            if let Some(id) = &updates.succeeded_by {
                page.entry("succeeded by", format!("the table {id}: this one has ended"));
            }
        }
        page.entry(
            "verified",
            if self.verified {
                "yes, every byte"
            } else {
                "header and layout only; --verify reads everything"
            },
        );
        if self.head.is_some() {
            page.line("first values:");
        }
        page
    }

    /// The first columns of the values, with their types if the table has them.
    fn columns_in_a_line(&self) -> String {
        const SHOWN: usize = 16;
        let mut names: Vec<String> = match &self.columns {
            Some(columns) => {
                columns.iter().map(|column| format!("{} ({})", column.name, column.of)).collect()
            }
            None if self.value_columns.is_empty() => return "all other columns".to_owned(),
            None => self.value_columns.clone(),
        };
        if let more @ 1.. = names.len().saturating_sub(SHOWN) {
            names.truncate(SHOWN);
            names.push(format!("and {more} more"));
        }
        names.join(", ")
    }
}
