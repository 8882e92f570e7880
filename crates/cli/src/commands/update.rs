//! `privet update`: the next epoch of a table, signed and appended to the log beside its file.

mod rows;

use crate::arguments::Update;
use crate::commands::get::keys_from;
use crate::display::{self, Page};
use crate::exit::Outcome;
use privet_core::{Error, Result, TableIdentity};
use privet_table::edit::{TableEditor, TableEdits};
use privet_table::key_map::Effect;
use privet_table::layout::{RecordLayout, TableLayout};
use privet_table::snapshot::Snapshot;
use privet_table::update_log::{LogWriter, PublisherKey, log_path};
use serde::Serialize;
use std::collections::HashMap;

/// A compaction leaves so small a part of the table file's size, one of this many, to the last epochs: clients that stand at one of them still catch up.
const KEPT_SHARE: u64 = 4;

/// Reads what is to change, appends the epoch, compacts if that is due, and prints what came of it.
pub(crate) fn run(arguments: &Update) -> Result<Outcome> {
    let Update { set, delete, from, delete_from, compact, .. } = arguments;
    if set.is_empty()
        && delete.is_empty()
        && from.is_none()
        && delete_from.is_none()
        && compact.is_none()
    {
        return Err(Error::api_misuse(
            "say what is to change: --set, --delete, --from or --delete-from; or --compact",
        ));
    }
    let snapshot = Snapshot::open(&arguments.table)?;
    let key = PublisherKey::from_file(&arguments.publisher_key)?;
    let log = log_path(&arguments.table);
    let mut writer = match log.exists() {
        true => LogWriter::open(&log, &snapshot)?,
        false => LogWriter::create(&log, &snapshot, key.id())?,
    };
    let layout = writer.log().layout().clone();
    let mut counts = Counts::default();
    let edits = edits(arguments, &snapshot, &writer, &layout, &mut counts)?;
    let records_changed = edits.as_ref().map_or(0, |edits| edits.update.written().len() as u64);
    let layout_changed = edits.as_ref().is_some_and(|edits| edits.layout.is_some());
    if let Some(TableEdits { update, layout }) = &edits {
        let spinner = display::working("reading the table and signing");
        let appended = writer.append(&key, update, layout.as_ref());
        spinner.finish_and_clear();
        appended?;
    }
    let identity = writer.log().current();
    let log_bytes = writer.log().unfolded_bytes();
    let due = |percent: u32| {
        u128::from(log_bytes) * 100 >= u128::from(snapshot.file_bytes()) * u128::from(percent)
    };
    let compacted = log_bytes > 0 && arguments.compact.is_some_and(due);
    if compacted {
        let spinner = display::working("writing the table anew");
        let written = writer.compact(&arguments.table, snapshot.file_bytes() / KEPT_SHARE);
        spinner.finish_and_clear();
        written?;
    }
    let report = Report {
        file: arguments.table.display().to_string(),
        epoch: identity.epoch.0,
        counts,
        records_changed,
        layout_changed,
        records: identity.shape.records(),
        digest: identity.digest.to_string(),
        publisher: key.id().to_string(),
        log_bytes: if compacted { 0 } else { log_bytes },
        compacted,
    };
    display::report(arguments.json, &report, || report.page(identity))?;
    Ok(Outcome::Done)
}

/// What was done to keys or rows.
#[derive(Default, Serialize)]
struct Counts {
    inserted: u64,
    replaced: u64,
    deleted: u64,
    absent: u64,
}

impl Counts {
    fn add(&mut self, effect: Effect) {
        *match effect {
            Effect::Inserted => &mut self.inserted,
            Effect::Replaced => &mut self.replaced,
            Effect::Deleted => &mut self.deleted,
            Effect::Absent => &mut self.absent,
        } += 1;
    }
}

fn edits(
    arguments: &Update,
    snapshot: &Snapshot,
    writer: &LogWriter<'_>,
    layout: &TableLayout,
    counts: &mut Counts,
) -> Result<Option<TableEdits>> {
    let table = writer.table();
    let read = |number: u64| {
        table.record(number).map(<[u8]>::to_vec).ok_or_else(|| {
            Error::corrupted(format!("the table has no record {number}, and its key map names it"))
        })
    };
    let mut editor = TableEditor::new(layout, table.shape(), read)?;
    let by_key = matches!(layout.records(), RecordLayout::Keyed(_));
    let has_lists = layout.records().key_map().is_some_and(|map| map.has_lists());

    let mut deleted: Vec<Vec<u8>> = arguments.delete.iter().map(|key| key.clone().into()).collect();
    if let Some(path) = &arguments.delete_from {
        deleted.extend(keys_from(path)?);
    }
    for key in &deleted {
        let effect = editor.delete(key);
        counts.add(effect.map_err(|error| error.within(rows::named(key)))?);
    }
    if let Some(path) = &arguments.from {
        let mut lists = has_lists.then(ValuesByKey::default);
        rows::read(path, arguments.format, snapshot.header(), |key, value| {
            if let Some(lists) = &mut lists {
                lists.add(key, value);
            } else if by_key {
                counts.add(editor.set(key, value)?);
            } else {
                editor.append_row(value)?;
                counts.inserted += 1;
            }
            Ok(())
        })?;
        let lists = lists.unwrap_or_default();
        for (key, values) in lists.in_order() {
            let effect = editor.set_all(key, values);
            counts.add(effect.map_err(|error| {
                error.within(rows::named(key)).within(path.display().to_string())
            })?);
        }
    }
    let mut lists = ValuesByKey::default();
    for (key, value) in &arguments.set {
        let outcome = rows::value(snapshot.header(), key, value).and_then(|value| {
            if has_lists {
                lists.add(key.as_bytes(), &value);
            } else if by_key {
                counts.add(editor.set(key.as_bytes(), &value)?);
            } else {
                editor.set_row(rows::number(key)?, &value)?;
                counts.replaced += 1;
            }
            Ok(())
        });
        outcome.map_err(|error| error.within(rows::named(key.as_bytes())))?;
    }
    for (key, values) in lists.in_order() {
        let effect = editor.set_all(key, values);
        counts.add(effect.map_err(|error| error.within(rows::named(key)))?);
    }
    editor.finish()
}

/// The values of keys that have several, in the order of their rows, by keys in the order of their first.
#[derive(Default)]
struct ValuesByKey {
    numbers: HashMap<Vec<u8>, usize>,
    values: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
}

impl ValuesByKey {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        let number = *self.numbers.entry(key.to_vec()).or_insert(self.values.len());
        if number == self.values.len() {
            self.values.push((key.to_vec(), Vec::new()));
        }
        self.values[number].1.push(value.to_vec());
    }

    fn in_order(&self) -> impl Iterator<Item = (&[u8], &[Vec<u8>])> {
        self.values.iter().map(|(key, values)| (key.as_slice(), values.as_slice()))
    }
}

#[derive(Serialize)]
struct Report {
    file: String,
    epoch: u64,
    #[serde(flatten)]
    counts: Counts,
    records_changed: u64,
    layout_changed: bool,
    records: u64,
    digest: String,
    publisher: String,
    log_bytes: u64,
    compacted: bool,
}

impl Report {
    fn page(&self, identity: TableIdentity) -> Page {
        let mut page = Page::default();
        page.line(match self.records_changed {
            0 if !self.layout_changed => {
                format!("{}: nothing changed, the table stays at epoch {}", self.file, self.epoch)
            }
            _ => format!("{} is at epoch {}", self.file, self.epoch),
        });
        let Counts { inserted, replaced, deleted, absent } = &self.counts;
        for (name, count) in [("new", inserted), ("replaced", replaced), ("deleted", deleted)] {
            if *count > 0 {
                page.entry(name, display::count(*count));
            }
        }
        if *absent > 0 {
            page.entry("not there", format!("{} keys to delete", display::count(*absent)));
        }
        page.entry(
            "changed",
            format!(
                "{} of {} records{}",
                display::count(self.records_changed),
                display::count(identity.shape.records()),
                if self.layout_changed { ", and the key map" } else { "" }
            ),
        );
        page.entry("digest", &self.digest);
        page.entry("publisher", &self.publisher);
        page.entry(
            "log",
            match self.compacted {
                true => "the table file has all changes".to_owned(),
                false => display::bytes(self.log_bytes),
            },
        );
        page
    }
}
