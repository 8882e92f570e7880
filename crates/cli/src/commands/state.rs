//! `privet state`: what a state directory holds, whether it is whole, and how to erase it. It shows
//! counts and sizes only, never a key or what was looked up.

use crate::advice;
use crate::arguments::{State, StateAction, StateReset, StateShow};
use crate::display::{self, Page, some};
use privet_client::disk::Directory;
use privet_client::state::NextGeneration;
use privet_client::store::{
    self, Erased, HintsCondition, HintsReport, PartForm, PinnedVersion, Scope, StateReport,
    TableReport, Verification,
};
use privet_core::{Error, Reason, Result, TableId};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub(crate) fn run(arguments: &State) -> Result<()> {
    match &arguments.action {
        StateAction::Show(show) => self::show(show),
        StateAction::Verify(verify) => self::verify(verify),
        StateAction::Reset(reset) => self::reset(reset),
    }
}

fn directory(given: &Option<PathBuf>) -> Result<PathBuf> {
    given.clone().map_or_else(store::default_directory, Ok)
}

fn show(arguments: &StateShow) -> Result<()> {
    let root = directory(&arguments.directory)?;
    let report = store::report(&Directory::existing(&root))?;
    display::report(arguments.json, &in_json(&root, &report), || page(&root, &report))
}

fn page(root: &Path, report: &StateReport) -> Page {
    let mut page = Page::default();
    page.line(root.display().to_string());
    page.entry(
        "pins",
        format!(
            "{} from {}, {}",
            tables(report.pins),
            servers(report.servers),
            display::bytes(report.pin_bytes)
        ),
    );
    let damaged = report.damaged_pins;
    page.entry_if("damaged pins", (damaged > 0).then(|| some(damaged, "file", "files")));
    for (server, table) in &report.left {
        page.entry("left", format!("table {table} at {server}, for its successor"));
    }
    page.entry_if("tables", report.tables.is_empty().then_some("none"));
    let seen_at = |page: &mut Page, table: TableId| {
        for seen in report.seen.iter().filter(|seen| seen.table == table) {
            page.entry("seen as", format!("{} at {}", seen.name, seen.server));
        }
    };
    for table in &report.tables {
        page.line(format!("table {}", table.table));
        seen_at(&mut page, table.table);
        for pin in &table.pinned {
            page.entry("pinned", in_version(pin));
        }
        for part in &table.parts {
            let form = match part.form {
                PartForm::Complete => "complete",
                PartForm::Partial => "partly downloaded",
                _ => "damaged, will be fetched again",
            };
            page.entry(&part.kind, format!("{}, {form}", display::bytes(part.bytes)));
        }
        for hints in &table.hints {
            hints_entries(&mut page, hints);
        }
    }
    // Of some tables, the state only records that they were seen.
    let mut only_seen: Vec<TableId> = report.seen.iter().map(|seen| seen.table).collect();
    only_seen.sort();
    only_seen.dedup();
    only_seen.retain(|seen| report.tables.iter().all(|table| table.table != *seen));
    for table in only_seen {
        page.line(format!("table {table}"));
        seen_at(&mut page, table);
    }
    page
}

fn in_version(pin: &PinnedVersion) -> String {
    match pin.publisher {
        None => format!("epoch {}", pin.epoch.0),
        Some(publisher) => format!("epoch {}, updates signed by {publisher}", pin.epoch.0),
    }
}

fn hints_entries(page: &mut Page, hints: &HintsReport) {
    page.entry("private hints", format!("{}, {}", hints.scheme, display::bytes(hints.bytes)));
    match &hints.condition {
        HintsCondition::InUse => {
            page.entry("  condition", "in use by another process, which alone can tell more");
        }
        HintsCondition::Damaged(what) => {
            for (_, what) in what {
                page.entry("  damaged", what);
            }
        }
        HintsCondition::Whole { epoch, copied, used, unfinished, next, ended } => {
            page.entry("  epoch", epoch.0);
            page.entry(
                "  used",
                used.map_or("none prepared yet".to_owned(), |used| {
                    format!("by {}", some(used, "lookup", "lookups"))
                }),
            );
            page.entry("  unfinished lookups", display::count(*unfinished));
            let next = match next {
                NextGeneration::None => "not begun".to_owned(),
                NextGeneration::Partial { offset } => {
                    format!("{} received", display::bytes(*offset))
                }
                NextGeneration::Ready => "ready".to_owned(),
            };
            page.entry("  next generation", next);
            page.entry_if("  ended", ended.as_deref().map(ended_because));
            if *copied {
                page.entry("  copied", "yes: the next lookup erases them and prepares new ones");
            }
        }
        _ => {}
    }
}

/// Why hints have ended, and what to do about it.
fn ended_because(why: &str) -> String {
    advice::told_anywhere(&Error::integrity(why).because(Reason::HintsEnded))
}

fn tables(count: u64) -> String {
    some(count, "table", "tables")
}

fn servers(count: u64) -> String {
    some(count, "server", "servers")
}

fn in_json(root: &Path, report: &StateReport) -> Value {
    let seen = report.seen.iter().map(
        |seen| json!({"server": seen.server, "name": seen.name, "table_id": seen.table.to_string()}),
    );
    let tables = report.tables.iter().map(table_in_json);
    let mut shown = json!({
        "state": root.display().to_string(),
        "pinned_tables": report.pins,
        "pinned_servers": report.servers,
        "pin_bytes": report.pin_bytes,
        "damaged_pin_files": report.damaged_pins,
        "seen": seen.collect::<Value>(),
    });
    if !report.left.is_empty() {
        let left = report.left.iter();
        let left =
            left.map(|(server, table)| json!({"server": server, "table_id": table.to_string()}));
        shown["left"] = left.collect();
    }
    shown["tables"] = tables.collect();
    shown
}

fn table_in_json(table: &TableReport) -> Value {
    let parts = table.parts.iter().map(|part| {
        let form = match part.form {
            PartForm::Complete => "complete",
            PartForm::Partial => "partial",
            _ => "damaged",
        };
        json!({"kind": part.kind, "bytes": part.bytes, "form": form})
    });
    let pinned = table.pinned.iter().map(|pin| {
        let publisher = pin.publisher.map(|publisher| publisher.to_string());
        json!({"epoch": pin.epoch.0, "publisher": publisher})
    });
    json!({
        "table_id": table.table.to_string(),
        "pinned": pinned.collect::<Value>(),
        "parts": parts.collect::<Value>(),
        "hints": table.hints.iter().map(hints_in_json).collect::<Value>(),
    })
}

fn hints_in_json(hints: &HintsReport) -> Value {
    let condition = match &hints.condition {
        HintsCondition::Damaged(_) => "damaged",
        HintsCondition::Whole { .. } => "whole",
        _ => "in-use",
    };
    let mut shown = json!({"scheme": hints.scheme, "bytes": hints.bytes, "condition": condition});
    match &hints.condition {
        HintsCondition::Damaged(what) if !what.is_empty() => {
            shown["damaged"] = what.iter().map(|(_, what)| what.as_str()).collect();
        }
        HintsCondition::Whole { epoch, copied, used, unfinished, next, ended } => {
            let (next, next_offset) = match next {
                NextGeneration::None => ("none", None),
                NextGeneration::Partial { offset } => ("partial", Some(*offset)),
                NextGeneration::Ready => ("ready", None),
            };
            shown["epoch"] = json!(epoch.0);
            shown["copied"] = json!(copied);
            shown["used"] = json!(used);
            shown["unfinished"] = json!(unfinished);
            shown["next"] = json!(next);
            shown["next_offset"] = json!(next_offset);
            shown["ended"] = json!(ended);
        }
        _ => {}
    }
    shown
}

fn verify(arguments: &StateShow) -> Result<()> {
    let root = directory(&arguments.directory)?;
    let verification = store::verify(&Directory::existing(&root))?;
    display::report(arguments.json, &verified_in_json(&root, &verification), || {
        verified_page(&root, &verification)
    })?;
    match verification.damaged.len() {
        0 => Ok(()),
        1 => Err(Error::integrity("one file is damaged")),
        count => Err(Error::integrity(format!("{count} files are damaged"))),
    }
}

fn verified_page(root: &Path, verification: &Verification) -> Page {
    let mut page = Page::default();
    page.line(root.display().to_string());
    page.entry("files read", display::count(verification.files));
    for path in &verification.in_use {
        page.entry("not read", format!("{}: another process uses it", path.display()));
    }
    for (_, what) in &verification.damaged {
        page.entry("damaged", what);
    }
    page.entry_if("damaged", verification.damaged.is_empty().then_some("none"));
    for (path, why) in &verification.ended {
        page.entry("ended", format!("{}: {}", path.display(), ended_because(why)));
    }
    page
}

fn verified_in_json(root: &Path, verification: &Verification) -> Value {
    let name = |path: &PathBuf| path.display().to_string();
    let damaged = verification.damaged.iter();
    let damaged = damaged.map(|(path, what)| json!({"file": name(path), "what": what}));
    let ended = verification.ended.iter();
    let ended = ended.map(|(path, why)| json!({"hints": name(path), "why": why}));
    json!({
        "state": root.display().to_string(),
        "files": verification.files,
        "damaged": damaged.collect::<Value>(),
        "in_use": verification.in_use.iter().map(name).collect::<Value>(),
        "ended": ended.collect::<Value>(),
    })
}

fn reset(arguments: &StateReset) -> Result<()> {
    let root = directory(&arguments.directory)?;
    let scope = match (&arguments.table, &arguments.server) {
        (Some(table), _) => Scope::Table(TableId(*table)),
        (None, Some(server)) => Scope::Server(server.clone()),
        (None, None) => Scope::Everything,
    };
    let folder = Directory::existing(&root);
    let erased = match arguments.yes {
        true => store::reset(&folder, &scope)?,
        false => store::what_reset_would_erase(&folder, &scope)?,
    };
    let (words, consequence) = match scope {
        Scope::Server(server) => (
            format!("{} of {server}", some(erased.pins, "pin", "pins")),
            "Without them, whatever that server shows next is believed.",
        ),
        _ => (
            in_words(&erased),
            "Hints and downloads are prepared anew at the next lookup; without the pins, whatever the servers show then is believed.",
        ),
    };
    if !arguments.yes {
        return Err(Error::api_misuse(format!(
            "this would erase {words} from {}. {consequence} If that is what you want, say so with --yes",
            root.display()
        )));
    }
    let mut page = Page::default();
    page.line(format!("erased {words} from {}", root.display()));
    page.print()
}

fn in_words(erased: &Erased) -> String {
    format!(
        "{}, {} and {} of {}",
        some(erased.hints, "set of private hints", "sets of private hints"),
        some(erased.parts, "downloaded part", "downloaded parts"),
        some(erased.pins, "pin", "pins"),
        tables(erased.tables),
    )
}
