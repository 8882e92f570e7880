//! `privet update`: the next epoch of a table, signed and appended to the log beside its file.

mod rows;

use crate::arguments::Update;
use crate::commands::build::{LineCounts, left_out, named_types, on_empty_key, source};
use crate::commands::keygen::notice_no_next_key;
use crate::display::{self, Page};
use crate::exit::Outcome;
use crate::key_list::keys_from;
use crate::room::{Left, NEARLY_FULL};
use privet_core::{Blame, Error, Result};
use privet_table::edit::{Counts, HowReplaced, Replacement, TableUpdate};
use privet_table::import::{Columns, Source, check_value, common_columns};
use privet_table::key_map::RowKey;
use privet_table::owner::{OwnedTable, begin_history};
use privet_table::snapshot::{Snapshot, ValueForm};
use privet_table::update_log::PublisherKey;
use serde::Serialize;
use std::collections::HashSet;
use std::path::Path;

/// Reads what is to change, appends the epoch, compacts if that is due, and prints what came of it.
pub(crate) fn run(arguments: &Update) -> Result<Outcome> {
    let report = report(arguments, None)?;
    display::report(arguments.json, &report, || report.page())?;
    Ok(Outcome::Done)
}

/// Reads what is to change, with the `given` rows instead of those of a file; appends the epoch;
/// and compacts if that is due.
pub(crate) fn report(arguments: &Update, given: Option<Source>) -> Result<UpdateReport> {
    let Update { set, delete, from, replace_with, delete_from, compact, .. } = arguments;
    let begin = &arguments.begin_history;
    let hands_over = arguments.hand_over_to.is_some() || arguments.next_key.is_some();
    let changes = !set.is_empty()
        || !delete.is_empty()
        || given.is_some()
        || from.is_some()
        || replace_with.is_some()
        || delete_from.is_some()
        || compact.is_some()
        || *begin;
    if changes == hands_over {
        return Err(Error::api_misuse(match changes {
            true => "a table's keys change by themselves: first make the other changes",
            false => {
                "say what is to change: --set, --delete, --from, --delete-from or --replace-with; \
                 or --compact or --hand-over-to"
            }
        }));
    }
    let key = PublisherKey::from_file(&arguments.publisher_key)?;
    if *begin {
        begin_history(&arguments.table, key.id())?;
    }
    let snapshot = Snapshot::open(&arguments.table)?;
    let mut table = OwnedTable::open(&snapshot, key)?;
    let before = table.identity().epoch.0;
    let Changes { epochs, counts, duplicates_dropped, read } = match &arguments.replace_with {
        Some(path) => replacement(arguments, path, given, &table)?,
        None => edits(arguments, given, &snapshot, &table)?,
    };
    if hands_over {
        let to = arguments.hand_over_to.as_deref().map(PublisherKey::from_file).transpose()?;
        let spinner = display::working("reading the table and signing");
        let handed_over = table.hand_over(to.as_ref(), arguments.next_key);
        spinner.finish_and_clear();
        handed_over?;
        notice_no_next_key(arguments.hand_over_to.as_deref(), arguments.next_key);
    }
    let records_changed = epochs.iter().map(|edits| edits.written().len() as u64).sum();
    let layout_changed = epochs.iter().any(|edits| edits.layout.is_some());
    if arguments.dry_run {
        // Of several epochs each was checked as it was made.
        epochs.first().map(|edits| table.check(edits)).transpose()?;
    }
    for edits in epochs.iter().filter(|_| !arguments.dry_run) {
        let spinner = display::working("reading the table and signing");
        let published = table.publish(edits);
        spinner.finish_and_clear();
        published.map_err(|error| match error.blame() {
            Blame::Unavailable => error.within(
                "whether the epoch is in the log, `privet inspect` says: look before you repeat \
                 this",
            ),
            _ => error,
        })?;
    }
    let (identity, log_bytes) = (table.identity(), table.unfolded_bytes());
    let made = match arguments.dry_run {
        true => epochs.len() as u64,
        // Also the one in which keys change.
        false => identity.epoch.0 - before,
    };
    let table_parts = table.layout().records().key_map().map_or(1, |map| map.parts() as u64);
    // What was published stays published, so a failure here is none of the update.
    let room = table.room().ok().flatten().filter(|_| !arguments.dry_run);
    let room = room.map(|room| Left::of(&room, table_parts));
    let publisher = table.publisher().to_string();
    let next_key = table.keys().next.map(|next| next.to_string());
    let compacted = arguments.compact.is_some_and(|percent| table.is_worth_compacting(percent));
    if compacted {
        let spinner = display::working("writing the table anew");
        let written = table.compact();
        spinner.finish_and_clear();
        written.map_err(|error| {
            error.within(format!(
                "epoch {} is made and in the log, and only the compaction has failed; do not \
                 repeat the changes, but `privet update --compact` alone",
                identity.epoch.0
            ))
        })?;
    }
    Ok(UpdateReport {
        file: arguments.table.display().to_string(),
        dry_run: arguments.dry_run,
        epoch: before + made,
        epochs: made,
        counts: EditCounts {
            unchanged: replace_with.as_ref().map(|_| counts.unchanged),
            ..counts.into()
        },
        parts: table_parts,
        room,
        duplicates_dropped,
        rows_read: read.rows + read.empty_keys,
        empty_keys_skipped: read.empty_keys,
        left_out: left_out(read.lines, read.empty_keys),
        lines: read.lines.into(),
        records_changed,
        layout_changed,
        records: identity.shape.records(),
        digest: identity.digest.to_string(),
        publisher,
        next_key,
        hands_over,
        log_bytes: if compacted { 0 } else { log_bytes },
        compacted,
    })
}

/// What an update does to a table, and what was read of files.
struct Changes {
    epochs: Vec<TableUpdate>,
    counts: Counts,
    duplicates_dropped: u64,
    read: rows::Read,
}

/// What makes the table hold the rows of the file at `path`, or the `given` ones, and no others.
fn replacement(
    arguments: &Update,
    path: &Path,
    given: Option<Source>,
    table: &OwnedTable<'_>,
) -> Result<Changes> {
    let given = given.and_then(|rows| on_empty_key([rows], &arguments.reading).pop());
    let rows = given.unwrap_or_else(|| source(path, &arguments.reading));
    let mut rows = rows.types(named_types(&arguments.reading.types));
    if let Some(values) = table.layout().values() {
        // Which columns there have to be is compared when all rows are read.
        rows = rows.of_table("the table", values, true);
    }
    let spinner = display::working("reading the rows and comparing them with the table");
    let how = HowReplaced {
        on_duplicate: arguments.on_duplicate,
        nested: arguments.nested,
        columns_may_change: arguments.replace,
    };
    let made = table.replacement(rows, how, &mut |_| Ok(()));
    spinner.finish_and_clear();
    let Replacement { epochs, counts, rows, duplicates_dropped, empty_keys, left_out } = made?;
    let read = rows::Read { rows: rows + duplicates_dropped, empty_keys, lines: left_out };
    Ok(Changes { epochs, counts, duplicates_dropped, read })
}

/// Collects what is to change, and counts what was read of files.
fn edits(
    arguments: &Update,
    given: Option<Source>,
    snapshot: &Snapshot,
    table: &OwnedTable<'_>,
) -> Result<Changes> {
    let mut editor = table.editor()?;
    let mut deleted: HashSet<&[u8]> = HashSet::new();
    for key in &arguments.delete {
        editor.delete(key.as_bytes())?;
        deleted.insert(key.as_bytes());
    }
    let delete_from = arguments.delete_from.as_deref().map(keys_from).transpose()?;
    let (delete_from, skipped) = delete_from.unwrap_or_default();
    if let Some(skipped) = skipped {
        display::notice(&skipped);
    }
    for key in &delete_from {
        editor.delete(key)?;
        deleted.insert(key);
    }
    // Columns of a key that is deleted in the same update are not missed.
    let present = |key: RowKey<'_>| match arguments.replace || deleted.contains(key.key) {
        true => Ok(Vec::new()),
        false => table.values_of(key),
    };
    let values = table.layout().values();
    let is_raw = matches!(snapshot.header().value_form, ValueForm::Raw(_));
    // Where rows of a file may have different columns, each row lists its own, and none counts as
    // missing.
    let check = |key: RowKey<'_>, value: &[u8], row_of_any: bool, is_row: bool| {
        let checked = match values {
            _ if arguments.replace => Ok(()),
            Some(values) => check_value(values, value, Columns::Exactly),
            None if row_of_any || is_raw || key.key.is_empty() => Ok(()),
            None => check_value(&common_columns(&present(key)?), value, Columns::AtLeast),
        };
        checked.map_err(|error| match key.key.is_empty() || !is_row {
            true => error,
            false => error.within(rows::named(key.key)),
        })
    };
    let mut read = rows::Read::default();
    let given = given.and_then(|rows| on_empty_key([rows], &arguments.reading).pop());
    let from = arguments.from.as_deref().map(|path| source(path, &arguments.reading));
    if let Some(source) = given.or(from) {
        let name = source.name();
        let types = named_types(&arguments.reading.types);
        if types.len() < arguments.reading.types.len() && values.is_none() {
            return Err(Error::api_misuse(
                "--types auto is for `privet build`: name the columns and the types that the table has",
            ));
        }
        let mut source = source.types(types);
        if let Some(values) = values {
            source = source.of_table("the table", values, arguments.replace);
        }
        let format = snapshot.key_map().map_or_else(Default::default, |map| map.key_form().format);
        let header = snapshot.header();
        read = rows::read(source, header, format, |key, value, same_columns| {
            check(key, value, !same_columns, true)?;
            editor.add(key, value)
        })?;
        editor.end_rows().map_err(|error| error.within(name))?;
    } else if !arguments.reading.is_default() {
        return Err(Error::api_misuse(
            "no file is read: name one (--from), or leave out how it is read",
        ));
    }
    for (key, value) in &arguments.set {
        rows::value(snapshot.header(), key, value)
            .and_then(|value| {
                check(key.as_bytes().into(), &value, false, false)?;
                editor.set(key.as_bytes(), &value)
            })
            .map_err(|error| error.within(rows::named(key.as_bytes())))?;
    }
    let (edits, counts) = editor.finish()?;
    let epochs = edits.into_iter().collect();
    Ok(Changes { epochs, counts, duplicates_dropped: 0, read })
}

#[derive(Serialize)]
pub(crate) struct UpdateReport {
    file: String,
    /// Nothing was signed. Records and digest are those of the table as it is.
    dry_run: bool,
    epoch: u64,
    /// How many epochs this update made.
    epochs: u64,
    #[serde(flatten)]
    counts: EditCounts,
    /// In how many parts values lie. If they are several, `deleted` of a replacement counts parts.
    #[serde(skip)]
    parts: u64,
    #[serde(flatten)]
    room: Option<Left>,
    duplicates_dropped: u64,
    rows_read: u64,
    empty_keys_skipped: u64,
    #[serde(flatten)]
    lines: LineCounts,
    #[serde(skip)]
    left_out: Option<String>,
    records_changed: u64,
    layout_changed: bool,
    records: u64,
    digest: String,
    /// Who signs the table's updates.
    publisher: String,
    /// The digest of the key without which nobody hands the table on.
    next_key: Option<String>,
    #[serde(skip)]
    hands_over: bool,
    log_bytes: u64,
    compacted: bool,
}

/// Counts of the edits to keys or rows.
#[derive(Serialize)]
struct EditCounts {
    inserted: u64,
    replaced: u64,
    deleted: u64,
    absent: u64,
    /// Of a replacement: those that have what they had.
    unchanged: Option<u64>,
}

impl From<Counts> for EditCounts {
    fn from(Counts { inserted, replaced, deleted, absent, .. }: Counts) -> Self {
        Self { inserted, replaced, deleted, absent, unchanged: None }
    }
}

impl UpdateReport {
    fn page(&self) -> Page {
        let mut page = Page::default();
        page.line(match self.records_changed {
            _ if self.hands_over => {
                format!("{} is at epoch {}, in which its keys change", self.file, self.epoch)
            }
            0 if !self.layout_changed => {
                format!("{}: nothing changed, the table stays at epoch {}", self.file, self.epoch)
            }
            _ if self.dry_run => {
                let epochs = display::some(self.epochs, "epoch", "epochs");
                format!("{} would be at epoch {}, {epochs} later", self.file, self.epoch)
            }
            _ if self.epochs > 1 => {
                format!("{} is at epoch {}, {} later", self.file, self.epoch, self.epochs)
            }
            _ => format!("{} is at epoch {}", self.file, self.epoch),
        });
        let EditCounts { inserted, replaced, deleted, absent, unchanged } = &self.counts;
        for (name, count) in [("new", inserted), ("replaced", replaced)] {
            if *count > 0 {
                page.entry(name, display::count(*count));
            }
        }
        if *deleted > 0 {
            page.entry(
                "deleted",
                match (unchanged, self.parts) {
                    (Some(_), 2..) => display::some(*deleted, "piece", "pieces") + " of values",
                    _ => display::count(*deleted),
                },
            );
        }
        if let Some(unchanged) = unchanged {
            page.entry("as before", display::count(*unchanged));
        }
        if *absent > 0 {
            page.entry("not there", format!("{} to delete", display::some(*absent, "key", "keys")));
        }
        if self.duplicates_dropped > 0 {
            page.entry("duplicates dropped", display::count(self.duplicates_dropped));
        }
        if let Some(left_out) = &self.left_out {
            page.entry("skipped", left_out);
        }
        page.entry(
            "changed",
            format!(
                "{} of {} records{}",
                display::count(self.records_changed),
                display::count(self.records),
                if self.layout_changed { ", and the key map" } else { "" }
            ),
        );
        if let Some(room) = self.room.filter(|room| *inserted > 0 || room.is_short()) {
            room.add_to(&mut page);
        }
        if self.dry_run {
            page.line("It fits. Nothing was signed.");
            return page;
        }
        page.entry("digest", &self.digest);
        page.entry("publisher", &self.publisher);
        if let Some(next_key) = &self.next_key {
            page.entry("next key", next_key);
        }
        page.entry(
            "log",
            match self.compacted {
                true => "the table file has all changes".to_owned(),
                false => display::bytes(self.log_bytes),
            },
        );
        if self.room.is_some_and(|room| room.is_short()) {
            page.line(NEARLY_FULL);
        }
        page
    }
}
