//! `privet update`: the next epoch of a table, signed and appended to the log beside its file.

mod rows;

use crate::arguments::Update;
use crate::commands::get::keys_from;
use crate::display::{self, Page};
use crate::exit::Outcome;
use privet_core::{Blame, Error, Result, TableIdentity};
use privet_table::edit::{TableEditor, TableEdits};
use privet_table::key_map::Effect;
use privet_table::layout::{RecordLayout, TableLayout};
use privet_table::snapshot::Snapshot;
use privet_table::update_log::{CurrentTable, LogWriter, PublisherKey, UpdateLog, log_path};
use privet_wire::limits::{MAX_EPOCH_LEN, MAX_LAYOUT_LEN};
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;

/// A compaction leaves so small a part of the table file's size, one of this many, to the last epochs: clients that stand at one of them still catch up.
const KEPT_SHARE: u64 = 4;

/// More than an epoch has beside the layout and the records.
const EPOCH_FIELDS_LEN: u64 = 1024;

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
        true => Some(LogWriter::open(&log, &snapshot)?),
        false => None,
    };
    let epoch = snapshot.identity().epoch;
    if writer.is_none() && epoch.0 > 0 {
        return Err(Error::api_misuse(format!(
            "the table is at epoch {}, and its update log {} is not there: bring it back. Servers and clients would refuse a new one, because it cannot continue the old",
            epoch.0,
            log.display()
        )));
    }
    if let Some(writer) = &writer {
        writer.check_key(&key)?;
    }
    let layout = writer.as_ref().map_or(snapshot.layout(), |writer| writer.log().layout()).clone();
    let mut counts = Counts::default();
    let edits = edits(arguments, &snapshot, writer.as_ref(), &layout, &mut counts)?;
    let records_changed = edits.as_ref().map_or(0, |edits| edits.update.written().len() as u64);
    let layout_changed = edits.as_ref().is_some_and(|edits| edits.layout.is_some());
    if let Some(edits) = &edits {
        check_can_be_sent(edits)?;
        let spinner = display::working("reading the table and signing");
        let appended = append(&mut writer, &log, &snapshot, &key, edits);
        spinner.finish_and_clear();
        appended?;
    }
    let written = writer.as_ref().map(LogWriter::log);
    let identity = written.map_or(snapshot.identity(), UpdateLog::current);
    let log_bytes = written.map_or(0, UpdateLog::unfolded_bytes);
    let publisher = written.map(|log| log.publisher().to_string());
    let due = |percent: u32| {
        u128::from(log_bytes) * 100 >= u128::from(snapshot.file_bytes()) * u128::from(percent)
    };
    let due = log_bytes > 0 && arguments.compact.is_some_and(due);
    let compacted = match writer.filter(|_| due) {
        None => false,
        Some(writer) => {
            let spinner = display::working("writing the table anew");
            let written = writer.compact(&arguments.table, snapshot.file_bytes() / KEPT_SHARE);
            spinner.finish_and_clear();
            written.map_err(|error| {
                error.within(format!(
                    "epoch {} is made and in the log, and only the compaction has failed; do not repeat the changes, but `privet update --compact` alone",
                    identity.epoch.0
                ))
            })?;
            true
        }
    };
    let report = Report {
        file: arguments.table.display().to_string(),
        epoch: identity.epoch.0,
        counts,
        records_changed,
        layout_changed,
        records: identity.shape.records(),
        digest: identity.digest.to_string(),
        publisher,
        log_bytes: if compacted { 0 } else { log_bytes },
        compacted,
    };
    display::report(arguments.json, &report, || report.page(identity))?;
    Ok(Outcome::Done)
}

/// Refuses what servers would not send and clients not take: an epoch that is signed cannot be taken back.
fn check_can_be_sent(edits: &TableEdits) -> Result<()> {
    let TableEdits { update, layout } = edits;
    let layout_len = layout.as_ref().map_or(0, |layout| layout.encode().len() as u64);
    if layout_len > MAX_LAYOUT_LEN {
        return Err(Error::api_misuse(format!(
            "the key map, with what lies in its stash, would have {}, and clients accept at most {}: build the table anew with more room",
            display::bytes(layout_len),
            display::bytes(MAX_LAYOUT_LEN)
        )));
    }
    let shape = update.shape();
    // An epoch has a record's number and both its versions, or the one version of a new record.
    let record_len = |index: u64| match index < shape.records() {
        true => 2 * shape.record_len() + 8,
        false => shape.record_len(),
    };
    let records_len: u64 = update.written().iter().map(|(index, _)| record_len(*index)).sum();
    let len = layout_len + records_len + EPOCH_FIELDS_LEN;
    if len > MAX_EPOCH_LEN as u64 {
        return Err(Error::api_misuse(format!(
            "these changes take {}, and clients accept at most {} at once: make several updates of them, one after the other",
            display::bytes(len),
            display::bytes(MAX_EPOCH_LEN as u64)
        )));
    }
    Ok(())
}

/// Appends the epoch, to a new log if there is none yet. The log is made only now: one without epochs would tie the table to this key all the same, though nothing was signed.
fn append<'s>(
    writer: &mut Option<LogWriter<'s>>,
    log: &Path,
    snapshot: &'s Snapshot,
    key: &PublisherKey,
    edits: &TableEdits,
) -> Result<()> {
    let writer = match writer {
        Some(writer) => writer,
        None => {
            // What would be refused after the log is made.
            snapshot.verify(|_, _| ())?;
            writer.insert(LogWriter::create(log, snapshot, key.id())?)
        }
    };
    let appended = writer.append(key, &edits.update, edits.layout.as_ref());
    appended.map(|_| ()).map_err(|error| match error.blame() {
        Blame::Unavailable => error.within(
            "whether the epoch is in the log, `privet inspect` says: look before you repeat this",
        ),
        _ => error,
    })
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
    writer: Option<&LogWriter<'_>>,
    layout: &TableLayout,
    counts: &mut Counts,
) -> Result<Option<TableEdits>> {
    let updated = writer.map(LogWriter::table);
    let shape = updated.as_ref().map_or(snapshot.identity().shape, CurrentTable::shape);
    let read = |number: u64| {
        let record = match &updated {
            Some(table) => table.record(number),
            None => snapshot.view().record(number),
        };
        record.map(<[u8]>::to_vec).ok_or_else(|| {
            Error::corrupted(format!("the table has no record {number}, and its key map names it"))
        })
    };
    let mut editor = TableEditor::new(layout, shape, read)?;
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
    /// Whoever has signed the table's updates; nobody yet if there is no log.
    publisher: Option<String>,
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
        if let Some(publisher) = &self.publisher {
            page.entry("publisher", publisher);
        }
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
