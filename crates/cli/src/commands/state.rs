//! `privet state`: what a state directory holds, whether it is whole, and how to erase it. It shows
//! counts and sizes only, never a key or what was looked up.

use crate::advice;
use crate::arguments::{State, StateAction, StateReset, StateShow};
use crate::display::{self, Page, some};
use crate::exit::Outcome;
use privet_client::disk::Directory;
use privet_client::state::NextGeneration;
use privet_client::store::{
    self, Erased, HintsCondition, HintsReport, PartForm, PinnedVersion, Scope, StateReport,
    TableReport, Verification,
};
use privet_core::{Error, Reason, Result, TableId};
use serde::Serialize;
use std::path::{Path, PathBuf};

pub(crate) fn run(arguments: &State) -> Result<Outcome> {
    match &arguments.action {
        StateAction::Show(show) => self::show(show),
        StateAction::Verify(verify) => self::verify(verify),
        StateAction::Reset(reset) => self::reset(reset),
    }
}

fn directory(given: &Option<PathBuf>) -> Result<PathBuf> {
    given.clone().map_or_else(store::default_directory, Ok)
}

fn show(arguments: &StateShow) -> Result<Outcome> {
    let root = directory(&arguments.directory)?;
    let report = store::report(&Directory::existing(&root))?;
    display::report(arguments.json, &ShownState::of(&root, &report), || page(&root, &report))?;
    Ok(Outcome::Done)
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
    if report.damaged_pins > 0 {
        page.entry("damaged pins", some(report.damaged_pins, "file", "files"));
    }
    for (server, table) in &report.left {
        page.entry("left", format!("table {table} at {server}, for its successor"));
    }
    if report.tables.is_empty() {
        page.entry("tables", "none");
    }
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
            for what in what {
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
            if let Some(why) = ended {
                page.entry("  ended", ended_because(why));
            }
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

#[derive(Serialize)]
struct ShownState {
    state: String,
    pinned_tables: u64,
    pinned_servers: u64,
    pin_bytes: u64,
    damaged_pin_files: u64,
    seen: Vec<ShownSeen>,
    /// Tables that were left for their successors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left: Vec<ShownLeft>,
    tables: Vec<ShownTable>,
}

#[derive(Serialize)]
struct ShownSeen {
    server: String,
    name: String,
    table_id: String,
}

#[derive(Serialize)]
struct ShownLeft {
    server: String,
    table_id: String,
}

#[derive(Serialize)]
struct ShownTable {
    table_id: String,
    pinned: Vec<ShownPin>,
    parts: Vec<ShownPart>,
    hints: Vec<ShownHints>,
}

#[derive(Serialize)]
struct ShownPin {
    epoch: u64,
    publisher: Option<String>,
}

#[derive(Serialize)]
struct ShownPart {
    kind: String,
    bytes: u64,
    form: &'static str,
}

#[derive(Serialize)]
struct ShownHints {
    scheme: String,
    bytes: u64,
    condition: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damaged: Vec<String>,
    #[serde(flatten)]
    counts: Option<ShownCounts>,
}

#[derive(Serialize)]
struct ShownCounts {
    epoch: u64,
    copied: bool,
    used: Option<u64>,
    unfinished: u64,
    next: &'static str,
    next_offset: Option<u64>,
    ended: Option<String>,
}

impl ShownState {
    fn of(root: &Path, report: &StateReport) -> Self {
        let seen = report.seen.iter().map(|seen| ShownSeen {
            server: seen.server.clone(),
            name: seen.name.clone(),
            table_id: seen.table.to_string(),
        });
        let left = report.left.iter().map(|(server, table)| ShownLeft {
            server: server.clone(),
            table_id: table.to_string(),
        });
        Self {
            state: root.display().to_string(),
            pinned_tables: report.pins,
            pinned_servers: report.servers,
            pin_bytes: report.pin_bytes,
            damaged_pin_files: report.damaged_pins,
            seen: seen.collect(),
            left: left.collect(),
            tables: report.tables.iter().map(ShownTable::of).collect(),
        }
    }
}

impl ShownTable {
    fn of(table: &TableReport) -> Self {
        let parts = table.parts.iter().map(|part| ShownPart {
            kind: part.kind.clone(),
            bytes: part.bytes,
            form: match part.form {
                PartForm::Complete => "complete",
                PartForm::Partial => "partial",
                _ => "damaged",
            },
        });
        let pinned = table.pinned.iter().map(|pin| ShownPin {
            epoch: pin.epoch.0,
            publisher: pin.publisher.map(|publisher| publisher.to_string()),
        });
        Self {
            table_id: table.table.to_string(),
            pinned: pinned.collect(),
            parts: parts.collect(),
            hints: table.hints.iter().map(ShownHints::of).collect(),
        }
    }
}

impl ShownHints {
    fn of(hints: &HintsReport) -> Self {
        let (condition, damaged, counts) = match &hints.condition {
            HintsCondition::Damaged(what) => ("damaged", what.clone(), None),
            HintsCondition::Whole { epoch, copied, used, unfinished, next, ended } => {
                let (next, next_offset) = match next {
                    NextGeneration::None => ("none", None),
                    NextGeneration::Partial { offset } => ("partial", Some(*offset)),
                    NextGeneration::Ready => ("ready", None),
                };
                let (epoch, copied, used) = (epoch.0, *copied, *used);
                let (unfinished, ended) = (*unfinished, ended.clone());
                let counts =
                    ShownCounts { epoch, copied, used, unfinished, next, next_offset, ended };
                ("whole", Vec::new(), Some(counts))
            }
            _ => ("in-use", Vec::new(), None),
        };
        Self { scheme: hints.scheme.clone(), bytes: hints.bytes, condition, damaged, counts }
    }
}

fn verify(arguments: &StateShow) -> Result<Outcome> {
    let root = directory(&arguments.directory)?;
    let verification = store::verify(&Directory::existing(&root))?;
    display::report(arguments.json, &Verified::of(&root, &verification), || {
        verified_page(&root, &verification)
    })?;
    match verification.damaged.len() {
        0 => Ok(Outcome::Done),
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
    if verification.damaged.is_empty() {
        page.entry("damaged", "none");
    }
    for (path, why) in &verification.ended {
        page.entry("ended", format!("{}: {}", path.display(), ended_because(why)));
    }
    page
}

#[derive(Serialize)]
struct Verified {
    state: String,
    files: u64,
    damaged: Vec<Damaged>,
    in_use: Vec<String>,
    ended: Vec<Ended>,
}

#[derive(Serialize)]
struct Damaged {
    file: String,
    what: String,
}

#[derive(Serialize)]
struct Ended {
    hints: String,
    why: String,
}

impl Verified {
    fn of(root: &Path, verification: &Verification) -> Self {
        let damaged = verification
            .damaged
            .iter()
            .map(|(path, what)| Damaged { file: path.display().to_string(), what: what.clone() });
        let ended = verification
            .ended
            .iter()
            .map(|(path, why)| Ended { hints: path.display().to_string(), why: why.clone() });
        Self {
            state: root.display().to_string(),
            files: verification.files,
            damaged: damaged.collect(),
            ended: ended.collect(),
            in_use: verification.in_use.iter().map(|path| path.display().to_string()).collect(),
        }
    }
}

fn reset(arguments: &StateReset) -> Result<Outcome> {
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
    page.print()?;
    Ok(Outcome::Done)
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
