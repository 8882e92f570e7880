//! `privet update`: the next epoch of a table, signed and appended to the log beside its file.

mod rows;

use crate::arguments::Update;
use crate::commands::build::{Lines, left_out, named_types, on_empty_key, source};
use crate::commands::get::keys_from;
use crate::display::{self, Page};
use crate::exit::Outcome;
use privet_core::{Blame, Error, Result};
use privet_table::edit::{Counts, TableEdits};
use privet_table::import::{Source, check_value};
use privet_table::owner::{OwnedTable, begin_history};
use privet_table::snapshot::Snapshot;
use privet_table::update_log::PublisherKey;
use serde::Serialize;
use std::collections::HashSet;

/// Reads what is to change, appends the epoch, compacts if that is due, and prints what came of it.
pub(crate) fn run(arguments: &Update) -> Result<Outcome> {
    let report = report(arguments, None)?;
    display::report(arguments.json, &report, || report.page())?;
    Ok(Outcome::Done)
}

/// Reads what is to change, with the `given` rows instead of those of a file; appends the epoch;
/// and compacts if that is due.
pub(crate) fn report(arguments: &Update, given: Option<Source>) -> Result<Report> {
    let Update { set, delete, from, delete_from, compact, begin_history: begin, .. } = arguments;
    if set.is_empty()
        && delete.is_empty()
        && given.is_none()
        && from.is_none()
        && delete_from.is_none()
        && compact.is_none()
        && !begin
    {
        return Err(Error::api_misuse(
            "say what is to change: --set, --delete, --from or --delete-from; or --compact",
        ));
    }
    let key = PublisherKey::from_file(&arguments.publisher_key)?;
    if *begin {
        begin_history(&arguments.table, key.id())?;
    }
    let snapshot = Snapshot::open(&arguments.table)?;
    let mut table = OwnedTable::open(&snapshot, key)?;
    let (edits, counts, read) = edits(arguments, given, &snapshot, &table)?;
    let records_changed = edits.as_ref().map_or(0, |edits| edits.update.written().len() as u64);
    let layout_changed = edits.as_ref().is_some_and(|edits| edits.layout.is_some());
    if let Some(edits) = &edits {
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
    let publisher = table.publisher().to_string();
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
    Ok(Report {
        file: arguments.table.display().to_string(),
        epoch: identity.epoch.0,
        counts: counts.into(),
        rows_read: read.rows + read.empty_keys,
        empty_keys_skipped: read.empty_keys,
        left_out: left_out(read.lines, read.empty_keys),
        lines: read.lines.into(),
        records_changed,
        layout_changed,
        records: identity.shape.records(),
        digest: identity.digest.to_string(),
        publisher,
        log_bytes: if compacted { 0 } else { log_bytes },
        compacted,
    })
}

/// Collects what is to change, and counts what was read of files.
fn edits(
    arguments: &Update,
    given: Option<Source>,
    snapshot: &Snapshot,
    table: &OwnedTable<'_>,
) -> Result<(Option<TableEdits>, Counts, rows::Read)> {
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
    let present = |key: &[u8]| match arguments.replace || deleted.contains(key) {
        true => Ok(Vec::new()),
        false => table.values_of(key),
    };
    let values = table.layout().values();
    // Where rows of a file may have different columns, each row lists its own, and none counts as
    // missing.
    let check = |key: &[u8], value: &[u8], row_of_any: bool, is_row: bool| {
        let header = snapshot.header();
        let checked = match values {
            _ if arguments.replace => Ok(()),
            Some(values) => check_value(values, value),
            None if row_of_any || key.is_empty() => Ok(()),
            None => {
                let present = present(key)?;
                rows::check_nothing_is_lost(header, &present, value).and_then(|()| match is_row {
                    true => rows::check_types_stay(header, &present, value),
                    false => Ok(()),
                })
            }
        };
        checked.map_err(|error| match key.is_empty() || !is_row {
            true => error,
            false => error.within(rows::named(key)),
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
        read = rows::read(source, snapshot.header(), |key, value, same_columns| {
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
                check(key.as_bytes(), &value, false, false)?;
                editor.set(key.as_bytes(), &value)
            })
            .map_err(|error| error.within(rows::named(key.as_bytes())))?;
    }
    let (edits, counts) = editor.finish()?;
    Ok((edits, counts, read))
}

#[derive(Serialize)]
pub(crate) struct Report {
    file: String,
    epoch: u64,
    #[serde(flatten)]
    counts: Shown,
    rows_read: u64,
    empty_keys_skipped: u64,
    #[serde(flatten)]
    lines: Lines,
    #[serde(skip)]
    left_out: Option<String>,
    records_changed: u64,
    layout_changed: bool,
    records: u64,
    digest: String,
    /// Who signs the table's updates.
    publisher: String,
    log_bytes: u64,
    compacted: bool,
}

/// Counts of the edits to keys or rows.
#[derive(Serialize)]
struct Shown {
    inserted: u64,
    replaced: u64,
    deleted: u64,
    absent: u64,
}

impl From<Counts> for Shown {
    fn from(Counts { inserted, replaced, deleted, absent }: Counts) -> Self {
        Self { inserted, replaced, deleted, absent }
    }
}

impl Report {
    fn page(&self) -> Page {
        let mut page = Page::default();
        page.line(match self.records_changed {
            0 if !self.layout_changed => {
                format!("{}: nothing changed, the table stays at epoch {}", self.file, self.epoch)
            }
            _ => format!("{} is at epoch {}", self.file, self.epoch),
        });
        let Shown { inserted, replaced, deleted, absent } = &self.counts;
        for (name, count) in [("new", inserted), ("replaced", replaced), ("deleted", deleted)] {
            if *count > 0 {
                page.entry(name, display::count(*count));
            }
        }
        if *absent > 0 {
            page.entry("not there", format!("{} to delete", display::some(*absent, "key", "keys")));
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
