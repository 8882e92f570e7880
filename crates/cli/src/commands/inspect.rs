//! `privet inspect`: what a table file, or a file of its points, says about itself, and whether it
//! is whole.

use crate::arguments::Inspect;
use crate::commands::get::json_lines::{ReadAs, ShownValue};
use crate::commands::get::output::plain_lines;
use crate::display::{self, Page};
use crate::key_form::describe;
use crate::laboratory::inspect_points;
use crate::room;
use privet_core::{Error, Result, TableId, TableIdentity};
use privet_measure::machine::threads;
use privet_schemes::registry::{self, Tuning};
use privet_table::FileKind;
use privet_table::authentication::path_len;
use privet_table::build::KeyFormReport;
use privet_table::listing;
use privet_table::publish::KeysLeft;
use privet_table::snapshot::{Snapshot, ValueForm};
use privet_table::update_log::UpdateLog;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Opens the file, which checks its header, and with `--verify` reads all of it.
pub(crate) fn run(arguments: &Inspect) -> Result<()> {
    if FileKind::of(&arguments.file) == Some(FileKind::Points) {
        if arguments.head.is_some() {
            return Err(Error::api_misuse(format!(
                "{}: a file of points has no values; --head is for its table",
                arguments.file.display()
            )));
        }
        return inspect_points::run(arguments);
    }
    let table = Inspected::of(arguments)?;
    display::report(arguments.json, &table.shown(), || table.page())?;
    if let (false, Some(values)) = (arguments.json, &table.head) {
        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        display::write_out(&plain_lines(&values))?;
    }
    Ok(())
}

/// A table file and its log, and what was found in them.
pub(crate) struct Inspected {
    snapshot: Snapshot,
    log: Option<UpdateLog>,
    room: Option<KeysLeft>,
    serving: Option<Serving>,
    verified: bool,
    /// The first values, if they were asked for.
    head: Option<Vec<Vec<u8>>>,
}

/// How many more keys the table takes, with the updates of its log. An authenticated table takes no
/// updates.
fn keys_left(snapshot: &Snapshot, log: Option<&UpdateLog>) -> Result<Option<KeysLeft>> {
    let layout = log.map_or(snapshot.layout(), UpdateLog::layout);
    let key_map = layout.records().key_map().filter(|_| layout.authentication().is_none());
    let Some(key_map) = key_map else { return Ok(None) };
    Ok(Some(key_map.room(reader(snapshot, log)?)?.into()))
}

/// The table's first values, with the updates of its log.
fn first_values(snapshot: &Snapshot, log: Option<&UpdateLog>, count: u64) -> Result<Vec<Vec<u8>>> {
    let (layout, now) = match log {
        Some(log) => (log.layout(), log.current()),
        None => (snapshot.layout(), snapshot.identity()),
    };
    listing::first_values(layout, now.shape, count, reader(snapshot, log)?)
}

/// Reads the table's records, with the updates of its log.
fn reader<'t>(
    snapshot: &'t Snapshot,
    log: Option<&'t UpdateLog>,
) -> Result<impl Fn(u64) -> Result<Vec<u8>> + 't> {
    let table = log.map(|log| log.table(snapshot)).transpose()?;
    Ok(move |number| {
        let record = match &table {
            Some(table) => table.record(number),
            None => snapshot.view().record(number),
        };
        record.map(<[u8]>::to_vec).ok_or_else(|| Error::corrupted("the table lacks a record"))
    })
}

/// What is shown in JSON.
#[derive(Serialize)]
pub(crate) struct Shown<'a> {
    #[serde(flatten)]
    table: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<ShownValue<'a>>,
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
        let memory = plan.memory(now, threads());
        Some(Self {
            scheme: scheme.name(),
            memory_bytes: memory.version,
            start_bytes: memory.at_start(),
            update_bytes: memory.at_update(),
        })
    }

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

/// Reads and checks every byte of the table file, which may take a while.
pub(crate) fn verify(snapshot: &Snapshot, what: &str) -> Result<()> {
    let bar = display::byte_progress(what, Some(snapshot.file_bytes()));
    snapshot.verify(|done, total| {
        bar.set_length(total);
        bar.set_position(done);
    })
}

/// What came after the table file, in its update log.
fn updates(log: &UpdateLog) -> Value {
    let table = log.current();
    let before = before(log);
    json!({
        "epoch": table.epoch.0,
        "records": table.shape.records(),
        "digest": table.digest.to_string(),
        "publisher": log.publisher().to_string(),
        "next_key": log.keys().next.map(|next| next.to_string()),
        "succeeds": before.iter().map(ToString::to_string).collect::<Value>(),
        "succeeded_by": log.succession().map(|record| record.new_table().id.to_string()),
        "log_bytes": log.epoch_bytes(),
    })
}

/// The tables that this one continues, in order.
fn before(log: &UpdateLog) -> Vec<TableId> {
    let lineage = log.lineage().records().iter().filter(|record| !record.is_rotation());
    lineage.map(|record| record.old()).collect()
}

impl Inspected {
    /// Opens the file, and reads as much of it as was asked for.
    pub(crate) fn of(arguments: &Inspect) -> Result<Self> {
        let (snapshot, verified) = (Snapshot::open(&arguments.file)?, arguments.verify);
        let log = UpdateLog::of(&snapshot)?;
        if verified {
            verify(&snapshot, "verifying")?;
            log.as_ref().map(|log| log.table(&snapshot)?.verified_digest()).transpose()?;
        }
        let head = arguments.head.map(|count| first_values(&snapshot, log.as_ref(), count));
        let serving = match &log {
            Some(log) => Serving::of(&log.first_table()?, &log.current()),
            None => Serving::of(&snapshot.identity(), &snapshot.identity()),
        };
        // A damaged record is found by --verify.
        let room = keys_left(&snapshot, log.as_ref()).ok().flatten();
        Ok(Self { head: head.transpose()?, room, serving, verified, log, snapshot })
    }

    pub(crate) fn shown(&self) -> Shown<'_> {
        let snapshot = &self.snapshot;
        let (header, identity, root) = (snapshot.header(), snapshot.identity(), snapshot.root());
        let (key_map, values) = (snapshot.key_map(), snapshot.layout().values());
        let mut table = Map::new();
        let mut add = |more: Value| {
            if let Value::Object(more) = more {
                table.extend(more);
            }
        };
        add(json!({
            "file": snapshot.path().display().to_string(),
            "file_bytes": snapshot.file_bytes(),
            "table_id": identity.id.to_string(),
            "epoch": identity.epoch.0,
            "records": identity.shape.records(),
            "record_len": identity.shape.record_len(),
            "path_len": root.map_or(0, |_| path_len(identity.shape.records())),
            "key_column": header.key_column,
            "until_column": header.until_column,
        }));
        add(json!(KeyFormReport::from(key_map.map(|map| map.key_form()))));
        add(json!({ "value": self.value_form(), "value_columns": header.value_form.columns() }));
        if let Some(values) = values {
            let columns = values.columns.iter();
            let columns = columns.map(|one| json!({"name": one.name, "type": one.of.to_string()}));
            add(json!({ "columns": columns.collect::<Value>() }));
        }
        add(json!({
            "key_map": key_map.map(|map| map.kind().name()),
            "keys": key_map.map(|map| map.keys()),
            "multi": key_map.is_some_and(|map| map.has_lists()),
            "parts": key_map.map_or(1, |map| map.parts()),
            "records_per_lookup": key_map.map_or(1, |map| map.candidates_per_key()),
            "load": key_map.map(|map| map.load()),
            "stash_entries": key_map.map(|map| map.stash_entries()),
            "stash_bytes": key_map.map(|map| map.stash_bytes()),
        }));
        add(json!(self.room));
        add(json!({
            "layout_bytes": snapshot.layout_bytes().len(),
            "serving": self.serving,
            "digest": identity.digest.to_string(),
            "root": root.map(|root| root.to_string()),
            "created_by": header.created_by,
        }));
        if let Some(log) = &self.log {
            add(json!({ "updates": updates(log) }));
        }
        add(json!({ "verified": self.verified }));
        let reading = ReadAs::of(values);
        let head = self
            .head
            .as_deref()
            .map(|values| ShownValue::list(values.iter().map(Vec::as_slice).collect(), reading));
        Shown { table, head }
    }

    fn value_form(&self) -> &'static str {
        match self.snapshot.header().value_form {
            ValueForm::Raw(_) => "raw",
            _ => "json",
        }
    }

    fn page(&self) -> Page {
        let snapshot = &self.snapshot;
        let (header, identity, root) = (snapshot.header(), snapshot.identity(), snapshot.root());
        let shape = identity.shape;
        let mut page = Page::default();
        page.line(snapshot.path().display().to_string());
        page.entry("table id", identity.id);
        page.entry("epoch", identity.epoch.0);
        let path_len = root.map(|_| path_len(shape.records()));
        page.entry("records", display::records(shape.records(), shape.record_len(), path_len));
        match (&header.key_column, snapshot.key_map()) {
            (Some(column), Some(map)) => {
                let parts = map.parts() as u64;
                page.entry(
                    "key map",
                    format!(
                        "{}, {} from column {column:?}{}{}",
                        map.kind().name(),
                        display::some(map.keys(), "key", "keys"),
                        match &header.until_column {
                            Some(until) => format!(" to column {until:?}"),
                            None => String::new(),
                        },
                        if map.has_lists() { ", with one value or several" } else { "" }
                    ),
                );
                describe(&mut page, &Some(map.key_form()).into());
                if parts > 1 {
                    let records = map.candidates_per_key();
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
                page.entry("load", format!("{:.1} %", map.load() * 100.0));
                room::describe_stash(&mut page, map.stash_entries(), map.stash_bytes(), parts);
                if let Some(room) = &self.room {
                    room::describe(&mut page, room, parts);
                }
            }
            _ => {
                page.entry("key map", "none: records are looked up by number");
            }
        }
        page.entry("value", format!("{}: {}", self.value_form(), self.columns_in_a_line()));
        page.entry("record layout", display::bytes(snapshot.layout_bytes().len() as u64));
        page.entry("file size", display::bytes(snapshot.file_bytes()));
        page.entry_if("to serve it", self.serving.as_ref().map(Serving::in_words));
        page.entry("digest", identity.digest);
        page.entry_if("root", root);
        page.entry("created by", &header.created_by);
        if let Some(log) = &self.log {
            let table = log.current();
            page.entry(
                "updates",
                format!(
                    "to epoch {}, {}, {}",
                    table.epoch.0,
                    display::some(table.shape.records(), "record", "records"),
                    display::bytes(log.epoch_bytes())
                ),
            );
            page.entry("digest then", table.digest);
            page.entry("publisher", log.publisher());
            page.entry_if("next key", log.keys().next);
            if let [earlier @ .., last] = &before(log)[..] {
                let more = match earlier.len() as u64 {
                    0 => String::new(),
                    more => format!(", and {} before it", display::some(more, "table", "tables")),
                };
                page.entry("succeeds", format!("the table {last}{more}"));
            }
            if let Some(record) = log.succession() {
                let id = record.new_table().id;
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
        let form = &self.snapshot.header().value_form;
        let mut names: Vec<String> = match self.snapshot.layout().values() {
            Some(values) => {
                let columns = values.columns.iter();
                columns.map(|column| format!("{} ({})", column.name, column.of)).collect()
            }
            None if form.columns().is_empty() => return "all other columns".to_owned(),
            None => form.columns().to_vec(),
        };
        if let more @ 1.. = names.len().saturating_sub(SHOWN) {
            names.truncate(SHOWN);
            names.push(format!("and {more} more"));
        }
        names.join(", ")
    }
}
