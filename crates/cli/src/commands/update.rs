//! `privet update`: the next epoch of a table, signed and appended to the log beside its file.

use crate::arguments::Update;
use crate::commands::build::{left_out, source, with_bars};
use crate::commands::keygen::notice_no_next_key;
use crate::display::{self, Page};
use crate::key_list::keys_from;
use crate::room::{self, NEARLY_FULL};
use privet_core::{Error, Result};
use privet_table::import::Types;
use privet_table::publish::{self, NewRows, RowEdits, Updated};

/// Reads what is to change, appends the epoch, compacts if that is due, and prints what came of it.
pub(crate) fn run(arguments: &Update) -> Result<()> {
    let wanted = publish::Update {
        table: arguments.table.clone(),
        publisher_key: arguments.publisher_key.clone(),
        columns_may_change: arguments.replace,
        compact: arguments.compact,
        begin_history: arguments.begin_history,
        hand_over_to: arguments.hand_over_to.clone(),
        next_key: arguments.next_key,
        dry_run: arguments.dry_run,
    };
    let rows = new_rows(arguments)?;
    let updated = with_bars(|progress| publish::update(&wanted, rows, progress))?;
    notice_no_next_key(arguments.hand_over_to.as_deref(), arguments.next_key);
    let hands_over = arguments.hand_over_to.is_some() || arguments.next_key.is_some();
    display::report(arguments.json, &updated, || page(&updated, hands_over))
}

/// The rows that the table is to have, as they were typed.
fn new_rows(arguments: &Update) -> Result<NewRows> {
    let Update { set, delete, from, replace_with, delete_from, reading, .. } = arguments;
    let rows = |path| source(path, reading).types(Types::named(&reading.types));
    if let Some(path) = replace_with {
        let (on_duplicate, nested) = (arguments.on_duplicate, arguments.nested);
        return Ok(NewRows::Replaced { by: rows(path), on_duplicate, nested });
    }
    if from.is_none() && !reading.words().is_empty() {
        return Err(Error::api_misuse(
            "no file is read: name one (--from), or leave out how it is read",
        ));
    }
    if set.is_empty() && delete.is_empty() && from.is_none() && delete_from.is_none() {
        return Ok(NewRows::AsBefore);
    }
    let mut delete: Vec<_> = delete.iter().map(|key| key.as_bytes().to_vec()).collect();
    if let Some(path) = delete_from {
        let (keys, skipped) = keys_from(path)?;
        skipped.into_iter().for_each(|skipped| display::notice(&skipped));
        delete.extend(keys);
    }
    Ok(NewRows::Edited(RowEdits {
        delete,
        from: from.as_deref().map(rows),
        guess_types: reading.types.contains(&Types::Auto),
        set: set.clone(),
    }))
}

fn page(report: &Updated, hands_over: bool) -> Page {
    let mut page = Page::default();
    page.line(match report.records_changed {
        _ if hands_over => {
            format!("{} is at epoch {}, in which its keys change", report.file, report.epoch)
        }
        0 if !report.layout_changed => {
            format!("{}: nothing changed, the table stays at epoch {}", report.file, report.epoch)
        }
        _ if report.dry_run => {
            let epochs = display::some(report.epochs, "epoch", "epochs");
            format!("{} would be at epoch {}, {epochs} later", report.file, report.epoch)
        }
        _ if report.epochs > 1 => {
            format!("{} is at epoch {}, {} later", report.file, report.epoch, report.epochs)
        }
        _ => format!("{} is at epoch {}", report.file, report.epoch),
    });
    let Updated { inserted, replaced, deleted, absent, unchanged, .. } = report;
    page.count_if("new", *inserted);
    page.count_if("replaced", *replaced);
    if *deleted > 0 {
        page.entry(
            "deleted",
            match (unchanged, report.parts) {
                (Some(_), 2..) => display::some(*deleted, "piece", "pieces") + " of values",
                _ => display::count(*deleted),
            },
        );
    }
    page.entry_if("as before", unchanged.map(display::count));
    let absent = (*absent > 0).then(|| display::some(*absent, "key", "keys") + " to delete");
    page.entry_if("not there", absent);
    page.count_if("duplicates dropped", report.duplicates_dropped);
    page.entry_if("skipped", left_out(report.lines_left_out, report.empty_keys_skipped));
    page.entry(
        "changed",
        format!(
            "{} of {} records{}",
            display::count(report.records_changed),
            display::count(report.records),
            if report.layout_changed { ", and the key map" } else { "" }
        ),
    );
    if let Some(room) = report.room.filter(|room| *inserted > 0 || room.is_short) {
        room::describe(&mut page, &room, report.parts);
    }
    if report.dry_run {
        page.line("It fits. Nothing was signed.");
        return page;
    }
    page.entry("digest", report.digest);
    page.entry("publisher", report.publisher);
    page.entry_if("next key", report.next_key);
    page.entry(
        "log",
        match report.compacted {
            true => "the table file has all changes".to_owned(),
            false => display::bytes(report.log_bytes),
        },
    );
    if report.room.is_some_and(|room| room.is_short) {
        page.line(NEARLY_FULL);
    }
    page
}
