//! `privet get`: looks records up without the server learning which.

use crate::arguments::Get;
use crate::display;
use crate::exit::Outcome;
use crate::scheme;
use indicatif::ProgressBar;
use privet_client::{Client, ClientOptions, Progress, Stats, Target, Value};
use privet_core::{Blame, Error, Result};
use privet_schemes::offline::OfflinePhase;
use privet_wire::PartKind;
use serde::Serialize;
use serde_json::value::RawValue;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How many lookups are handed over at once: enough to keep the server's batches full, few enough that a long list needs little memory.
const AT_ONCE: usize = 256;

/// Connects, looks everything up in the order given, prints as it goes.
pub(crate) fn run(arguments: &Get) -> Result<Outcome> {
    let mut wanted: Vec<Wanted> =
        arguments.key.iter().map(|key| Wanted::Key(key.clone().into_bytes())).collect();
    wanted.extend(arguments.index.iter().map(|index| Wanted::Index(*index)));
    if let Some(path) = &arguments.keys_from {
        wanted.extend(keys_from(path)?.into_iter().map(Wanted::Key));
    }

    let next = NextGeneration::default();
    let reporter = reporter(arguments.verbose, Arc::clone(&next));
    let client = Client::connect_blocking(options(arguments)?, reporter)?;
    if arguments.verbose {
        describe(&client);
    }
    let by_key = wanted.iter().any(|wanted| matches!(wanted, Wanted::Key(_)));
    if let Some(warning) = scheme::weaker_by_key(client.table().scheme.plan.scheme)
        && by_key
    {
        say(&format!("warning: {warning}"))?;
    }
    let mut outcome = Outcome::Done;
    let mut failures = Failures::default();
    for wanted in wanted.chunks(AT_ONCE) {
        let targets: Vec<Target> = wanted.iter().map(Wanted::target).collect();
        for (wanted, value) in wanted.iter().zip(client.get_many_blocking(&targets)) {
            let printed = value.and_then(|value| {
                if value.is_none() {
                    outcome = Outcome::NotFound;
                }
                print(arguments.json, wanted, value.as_ref())
            });
            failures.note(printed);
        }
    }
    // What a client with single-use hints still owes its next generation; the answers are printed, nobody waits for it.
    failures.note(client.finish_blocking());
    if arguments.verbose {
        summarize(&client.stats(), &next);
    }
    failures.into_result().map(|()| outcome)
}

/// What went wrong, told at the end. The server must not learn whether it pleased the client what came back, so a failure does not end the other lookups.
#[derive(Default)]
struct Failures {
    /// The first, unless a later one shows that something was not to be believed.
    told: Option<Error>,
    is_first: bool,
    count: usize,
}

impl Failures {
    fn note(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.count += 1;
            let is_graver = |told: &Error| {
                error.blame() == Blame::Integrity && told.blame() != Blame::Integrity
            };
            if self.told.as_ref().is_none_or(is_graver) {
                (self.told, self.is_first) = (Some(error), self.count == 1);
            }
        }
    }

    fn into_result(self) -> Result<()> {
        let which = if self.is_first { "the first" } else { "one of them" };
        match (self.told, self.count) {
            (None, _) => Ok(()),
            (Some(error), 1) => Err(error),
            (Some(error), count) => Err(error.within(format!("{count} lookups failed; {which}"))),
        }
    }
}

fn options(arguments: &Get) -> Result<ClientOptions> {
    let mut options = ClientOptions::new(&arguments.urls);
    options.table = arguments.table.clone();
    options.schemes.clone_from(&arguments.scheme);
    options.verified = arguments.verified;
    options.state_dir = Some(match &arguments.state {
        Some(directory) => directory.clone(),
        None => privet_client::store::default_directory()?,
    });
    options.ca_file = arguments.ca_file.clone();
    options.accept_new_table = arguments.accept_new_table;
    options.root = arguments.root;
    options.publisher = arguments.publisher;
    options.max_download = arguments.max_download;
    options.compare_streams = arguments.compare_streams;
    options.insecure = arguments.insecure;
    Ok(options)
}

/// What one lookup is for.
enum Wanted {
    Key(Vec<u8>),
    Index(u64),
}

impl Wanted {
    fn target(&self) -> Target {
        match self {
            Wanted::Key(key) => Target::key(key),
            Wanted::Index(index) => Target::index(*index),
        }
    }
}

/// The keys in a file, one on each line, or in standard input for `-`.
pub(crate) fn keys_from(path: &Path) -> Result<Vec<Vec<u8>>> {
    let unreadable = |error: std::io::Error| {
        Error::api_misuse(format!("cannot read keys from {}", path.display())).caused_by(error)
    };
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(unreadable)?)
    };
    let mut keys = Vec::new();
    for line in BufReader::new(input).split(b'\n') {
        let mut line = line.map_err(unreadable)?;
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        keys.push(line);
    }
    Ok(keys)
}

/// One lookup as a JSON line. The value stands under `value` if it is JSON itself, under `text` if it is other text, else under `hex`. Where keys have several values, a list of them stands
/// under `values`, `texts` or `hexes`, by what all of them are.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    found: bool,
    #[serde(flatten)]
    value: Option<Shown<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Shown<'a> {
    Value(&'a RawValue),
    Text(&'a str),
    Hex(String),
    Values(Vec<&'a RawValue>),
    Texts(Vec<&'a str>),
    Hexes(Vec<String>),
}

impl<'a> Shown<'a> {
    fn of(value: &'a Value) -> Self {
        match value.is_list() {
            true => Self::list(value.values().collect()),
            false => Self::single(value),
        }
    }

    fn single(value: &'a [u8]) -> Self {
        match (json_of(value), text_of(value)) {
            (Some(json), _) => Self::Value(json),
            (None, Some(text)) => Self::Text(text),
            (None, None) => Self::Hex(hex_of(value)),
        }
    }

    fn list(values: Vec<&'a [u8]>) -> Self {
        if let Some(values) = values.iter().map(|value| json_of(value)).collect() {
            return Self::Values(values);
        }
        match values.iter().map(|value| text_of(value)).collect() {
            Some(texts) => Self::Texts(texts),
            None => Self::Hexes(values.into_iter().map(hex_of).collect()),
        }
    }
}

fn text_of(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok()
}

fn json_of(value: &[u8]) -> Option<&RawValue> {
    serde_json::from_str(text_of(value)?).ok()
}

fn hex_of(value: &[u8]) -> String {
    value.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn print(json: bool, wanted: &Wanted, value: Option<&Value>) -> Result<()> {
    if json {
        return display::write_out(json_line(wanted, value.map(Shown::of))?.as_bytes());
    }
    match (value, wanted) {
        (Some(value), _) => {
            let lines: Vec<u8> =
                value.values().flat_map(|value| [value, b"\n"]).flatten().copied().collect();
            display::write_out(&lines)
        }
        (None, Wanted::Key(key)) => say(&format!("not found: {}", String::from_utf8_lossy(key))),
        (None, Wanted::Index(index)) => say(&format!("record {index} holds no value")),
    }
}

fn json_line(wanted: &Wanted, value: Option<Shown<'_>>) -> Result<String> {
    let line = Line {
        key: match wanted {
            Wanted::Key(key) => Some(String::from_utf8_lossy(key).into_owned()),
            Wanted::Index(_) => None,
        },
        index: match wanted {
            Wanted::Key(_) => None,
            Wanted::Index(index) => Some(*index),
        },
        found: value.is_some(),
        value,
    };
    let line = serde_json::to_string(&line).map_err(|error| {
        Error::unavailable("a value cannot be printed as JSON").caused_by(error)
    })?;
    Ok(line + "\n")
}

/// How far the next generation of single-use hints is: bytes of the table taken, and in all. Nothing if none is being prepared.
type NextGeneration = Arc<Mutex<Option<(u64, u64)>>>;

/// Progress bars for what is received before the first lookup, and notices, on standard error.
fn reporter(verbose: bool, next: NextGeneration) -> impl FnMut(Progress) + Send + 'static {
    let mut bar: Option<(PartKind, ProgressBar)> = None;
    let mut offline = OfflinePhase::Nothing;
    move |progress| match progress {
        Progress::Described(table) => {
            offline = table.scheme.plan.offline;
        }
        Progress::Updated { from, to, records, bytes } => {
            let _ = say(&format!(
                "the table was updated from epoch {} to {}: {} records changed, {} of updates, signed by its publisher",
                from.0,
                to.0,
                display::count(records),
                display::bytes(bytes)
            ));
        }
        Progress::Authenticated(root) if verbose => {
            let _ = say(&format!("every record is verified against the root {root}"));
        }
        Progress::Part { part, done, total, fetched } => {
            if !fetched || total == 0 {
                return;
            }
            if bar.as_ref().is_none_or(|(shown, _)| *shown != part) {
                let fresh = display::byte_progress(activity(part, offline), Some(total));
                // What was at hand before says nothing of the rate at which the rest arrives.
                fresh.set_position(done);
                fresh.reset_eta();
                bar = Some((part, fresh));
            }
            if let Some((_, bar)) = &bar {
                bar.set_position(done);
                if done == total {
                    bar.finish_and_clear();
                }
            }
        }
        Progress::Waiting { part: PartKind::Table, done: 0, .. }
            if !matches!(offline, OfflinePhase::KeepTable { .. }) =>
        {
            let _ = say("another process has the hints for this table; waiting for it");
        }
        Progress::Waiting { part, done: 0, total } => {
            let _ = say(&format!(
                "another process is {} ({}); waiting for it",
                activity(part, offline),
                display::bytes(total)
            ));
        }
        Progress::NextGeneration { done, total } => {
            *next.lock().unwrap_or_else(PoisonError::into_inner) = Some((done, total));
        }
        Progress::Notice(notice) => {
            let _ = say(&notice);
        }
        Progress::Retrying { url, pause, error } if verbose => {
            let _ = say(&format!("{url}: {error}; trying again in {}", display::duration(pause)));
        }
        _ => {}
    }
}

/// What a client does while a part flows.
fn activity(part: PartKind, offline: OfflinePhase) -> &'static str {
    match (part, offline) {
        (PartKind::Layout, _) => "downloading the record layout",
        (PartKind::Hint, _) => "downloading the hint",
        (_, OfflinePhase::KeepTable { .. }) => "downloading the table",
        (_, OfflinePhase::Ask { .. }) => "receiving hints from the first server",
        // Nothing of the table is kept as it is.
        _ => "preparing hints from the table",
    }
}

fn say(text: &str) -> Result<()> {
    // Standard error may be closed; then there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "privet: {text}");
    Ok(())
}

fn describe(client: &Client) {
    let table = client.table();
    let identity = table.identity;
    let _ = say(&format!(
        "table {} at epoch {}, {} records of {}, digest {}, scheme {}; {} {}",
        table.name,
        identity.epoch.0,
        display::count(identity.shape.records()),
        display::bytes(identity.shape.record_len()),
        identity.digest,
        table.scheme.plan.scheme,
        if table.scheme.plan.servers == 1 {
            "server"
        } else {
            "servers that must not collude, the first"
        },
        table.software
    ));
    if let Some(words) = scheme::words(&table.scheme.plan, &identity) {
        let _ = say(&words);
    }
    if let OfflinePhase::Ask { .. } = table.scheme.plan.offline {
        let _ = say(
            "the first server computes the hints and learns their key; the second answers and must not learn it",
        );
    }
    if let Some(weaker) = scheme::weaker_promise(table.scheme.plan.scheme) {
        let _ = say(weaker);
    }
}

fn summarize(stats: &Stats, next: &NextGeneration) {
    let per = |total: Duration| {
        display::duration(total / u32::try_from(stats.lookups.max(1)).unwrap_or(u32::MAX))
    };
    let journal = match stats.journal_time {
        Duration::ZERO => String::new(),
        total => format!(", journal {}", per(total)),
    };
    let _ = say(&format!(
        "ready after {} ({} fetched); {} lookups, {} sent and {} received, query {}{journal} and recover {} each",
        display::duration(stats.ready_after),
        display::bytes(stats.prepare.down),
        stats.lookups,
        display::bytes(stats.lookup.up),
        display::bytes(stats.lookup.down),
        per(stats.query_time),
        per(stats.recover_time)
    ));
    if let Some((done, total)) = *next.lock().unwrap_or_else(PoisonError::into_inner) {
        let _ = say(&format!(
            "the next generation of hints has taken in {} of {}, {} with these lookups",
            display::bytes(done),
            display::bytes(total),
            display::bytes(stats.background.down)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_printed_as_what_they_are() {
        let key = Wanted::Key(b"k".to_vec());
        let line =
            |value: Option<&'static [u8]>| json_line(&key, value.map(Shown::single)).unwrap();
        assert_eq!(
            line(Some(br#"{"price":1.10}"#)),
            "{\"key\":\"k\",\"found\":true,\"value\":{\"price\":1.10}}\n"
        );
        assert_eq!(
            line(Some(b"plain words")),
            "{\"key\":\"k\",\"found\":true,\"text\":\"plain words\"}\n"
        );
        assert_eq!(line(Some(&[0xff, 0x00])), "{\"key\":\"k\",\"found\":true,\"hex\":\"ff00\"}\n");
        assert_eq!(line(None), "{\"key\":\"k\",\"found\":false}\n");
        assert_eq!(
            json_line(&Wanted::Index(7), Some(Shown::single(b""))).unwrap(),
            "{\"index\":7,\"found\":true,\"text\":\"\"}\n"
        );
    }

    #[test]
    fn lists_are_printed_as_what_all_of_their_values_are() {
        let key = Wanted::Key(b"k".to_vec());
        let line = |values: &[&[u8]]| json_line(&key, Some(Shown::list(values.to_vec()))).unwrap();
        assert_eq!(
            line(&[br#"{"price":1.10}"#, b"2"]),
            "{\"key\":\"k\",\"found\":true,\"values\":[{\"price\":1.10},2]}\n"
        );
        assert_eq!(
            line(&[b"2", b"plain words"]),
            "{\"key\":\"k\",\"found\":true,\"texts\":[\"2\",\"plain words\"]}\n"
        );
        assert_eq!(
            line(&[b"2", &[0xff, 0x00]]),
            "{\"key\":\"k\",\"found\":true,\"hexes\":[\"32\",\"ff00\"]}\n"
        );
        assert_eq!(line(&[b"2"]), "{\"key\":\"k\",\"found\":true,\"values\":[2]}\n");
    }
}
