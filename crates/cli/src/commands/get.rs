//! `privet get`: looks records up without the server learning which.

mod csv;
mod failures;
pub(crate) mod json_lines;
mod news;
pub(crate) mod output;
#[cfg(test)]
mod planted;
mod printer;
mod spool;
#[cfg(test)]
mod tests;
mod wanted;

use crate::advice;
use crate::arguments::Get;
use crate::display::{self, Batch, notice, some};
use crate::exit::Outcome;
use failures::Failures;
use indicatif::ProgressBar;
use news::{News, Retries, Silence};
use output::Output;
use printer::{Came, Printer};
use privet_client::{Begun, Client, ClientOptions, Progress, Stats};
use privet_core::{Error, Reason, Result};
use privet_schemes::offline::OfflinePhase;
use privet_wire::PartKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use wanted::{Queue, RequestedLookup};

/// How many lookups are handed over before the first of them must be over. The client has several
/// under way at once, far fewer than these. So it always has the next one at hand, and no query
/// waits for this command's threads. It is few enough that a long list needs little memory. (Tests
/// have fewer, so that a short list shows what a long one would.)
const WINDOW: usize = if cfg!(test) { 16 } else { 256 };

/// Connects, looks everything up in the given order, and prints results as they come.
///
/// When a lookup is handed over follows from the list and from when answers came, and from nothing
/// that an answer says: see [`printer`].
pub(crate) fn run(arguments: &Get) -> Result<Outcome> {
    let end = arguments.max_time().and_then(|limit| Instant::now().checked_add(limit));
    display::be_quiet(arguments.quiet);
    let mut queue = Queue::new(arguments)?;
    let opened = Output::check(arguments)?;

    let news = Arc::new(News::default());
    news.asked();
    let silence = Silence::watch(arguments, Arc::clone(&news))?;
    let options = options(arguments)?;
    let reporter = reporter(arguments.verbose, options.urls.clone(), Arc::clone(&news));
    let client = Client::connect_blocking(options, reporter)?;
    news.answered();
    if arguments.verbose {
        describe(&client);
    }
    let output = Output::new(arguments, opened, queue.single, queue.source(), client.values())?;
    let scheme = client.table().scheme.plan.scheme;
    if let Some(warning) = scheme.about().weaker_by_key.filter(|_| queue.by_key) {
        notice(&format!("warning: by {scheme}, {warning}"));
    }
    let batch = Batch::new(queue.total, output.leaves_the_screen());
    let printer = Printer::start(output, batch)?;

    let (begun, answers) = sync_channel(WINDOW);
    let listener = Arc::clone(&news);
    let listening = printer::thread("listening", move || listen(answers, printer, &listener))?;
    let (not_begun, handed) = hand_in(&client, &mut queue, end, begun, &news);
    let heard = listening.join();
    // A client with single-use hints may still have to receive part of its next generation.
    news.asked();
    let finished = client.finish_blocking();
    news.answered();
    // Servers see when connections end. So they end before anything waits for the reader.
    let stats = client.close_blocking();
    drop(silence);

    let Heard { outcome, mut failures, printer } =
        heard.map_err(|_| Error::internal("the thread that receives answers has ended"))?;
    failures.not_begun = not_begun;
    let printed = printer.finish();
    if let Some(skipped) = queue.skipped() {
        notice(&skipped);
    }
    if arguments.verbose {
        summarize(&stats, &news);
    }
    let is_read = printed.as_ref().is_ok_and(|is_read| *is_read);
    let failed = [failures.into_result().err(), handed.err(), printed.err(), finished.err()];
    match failed.into_iter().flatten().reduce(told_alone) {
        Some(error) => Err(error),
        None if is_read => Ok(outcome),
        // A reader who went away (`| head`) has what it wanted.
        None => Ok(Outcome::Done),
    }
}

/// Hands everything in, and returns how many lookups did not begin because a server was given up.
/// Waits for keys, and while [`WINDOW`] lookups are not over. Fails if there are more keys that
/// cannot be read.
fn hand_in(
    client: &Client,
    queue: &mut Queue,
    end: Option<Instant>,
    begun: SyncSender<(RequestedLookup, Begun)>,
    news: &News,
) -> (usize, Result<()>) {
    let mut not_begun = 0;
    loop {
        let lookup = match queue.next(end) {
            Ok(Some(lookup)) => lookup,
            Ok(None) => return (not_begun, Ok(())),
            Err(error) => return (not_begun, Err(error)),
        };
        // A server has been given up, so no more lookups begin. The servers know of the failure
        // already, so this reveals no lookup's outcome.
        if news.given_up.load(Ordering::Relaxed) {
            not_begun += 1;
            // Lines that a pipe may still bring are not waited for.
            if queue.may_wait() {
                return (not_begun, Ok(()));
            }
            continue;
        }
        #[cfg(test)]
        if planted::is_over() {
            return (not_begun, Ok(()));
        }
        news.asked();
        let handed_in = client.begin(lookup.wanted.target());
        // If the thread that listens panicked, that shows when it is joined.
        if begun.send((lookup, handed_in)).is_err() {
            return (not_begun, Ok(()));
        }
    }
}

/// What came of all lookups.
struct Heard {
    outcome: Outcome,
    failures: Failures,
    printer: Printer,
}

/// Waits for the outcome of each lookup, in their order, and hands it on. This takes as long
/// whatever the outcome is.
fn listen(answers: Receiver<(RequestedLookup, Begun)>, mut printer: Printer, news: &News) -> Heard {
    let mut outcome = Outcome::Done;
    let mut failures = Failures::default();
    for (lookup, begun) in answers {
        let came = begun.outcome_blocking();
        news.answered();
        let came = match came {
            Ok(Some(value)) => Came::Found(value),
            Ok(None) => Came::NotFound,
            Err(error) if error.reason() == Some(Reason::MalformedKey) => {
                Came::Malformed(error.message().to_owned())
            }
            Err(error) => {
                failures.note(error);
                Came::Failed
            }
        };
        outcome = match came {
            Came::Malformed(_) => Outcome::Malformed,
            Came::NotFound if outcome == Outcome::Done => Outcome::NotFound,
            _ => outcome,
        };
        printer.hand_over(lookup, came);
    }
    Heard { outcome, failures, printer }
}

/// Which of two errors the command ends with. The other one is reported here.
fn told_alone(first: Error, second: Error) -> Error {
    let (told, other) = first.by_gravity(second);
    // The end of the time allowed shows in several places, and is reported once.
    if other.reason().is_none() || other.reason() != told.reason() {
        display::say_lines(&advice::told_anywhere(&other));
    }
    told
}

fn options(arguments: &Get) -> Result<ClientOptions> {
    let mut options = ClientOptions::new(arguments.addresses.urls());
    arguments.trust.apply_to(&mut options);
    arguments.limits.apply_to(&mut options);
    options.session.table.clone_from(&arguments.table);
    options.state_dir = Some(match &arguments.state {
        Some(directory) => directory.clone(),
        None => privet_client::store::default_directory().map_err(|error| {
            Error::api_misuse(format!("{} (--state, or PRIVET_STATE)", error.message()))
        })?,
    });
    options.session.accept_new_table = arguments.accept_new_table;
    options.session.compare_streams = arguments.compare_streams;
    options.max_time = arguments.max_time();
    Ok(options)
}

/// Progress bars for what is received before the first lookup, and notices, on standard error.
fn reporter(
    verbose: bool,
    urls: Vec<String>,
    news: Arc<News>,
) -> impl FnMut(Progress) + Send + 'static {
    let seen = Arc::clone(&news);
    let mut retries = Retries::default();
    let mut bar: Option<(PartKind, ProgressBar)> = None;
    let mut offline = OfflinePhase::Nothing;
    let mut show = move |progress| match progress {
        Progress::Described(table) => {
            offline = table.scheme.plan.offline;
            retries.begin();
        }
        Progress::Updated { from, to, records, bytes } => {
            notice(&format!(
                "the table was updated from epoch {} to {}: {} changed, {} of updates, signed by its publisher",
                from.0,
                to.0,
                some(records, "record", "records"),
                display::bytes(bytes)
            ));
        }
        Progress::Authenticated(root) if verbose => {
            notice(&format!("every record is verified against the root {root}"));
        }
        Progress::Part { part, done, total, fetched } => {
            if !fetched || total == 0 {
                return;
            }
            if bar.as_ref().is_none_or(|(shown, _)| *shown != part) {
                let fresh = display::byte_progress(activity(part, offline), Some(total));
                // Bytes that were there before must not count towards the rate at which the rest
                // arrives.
                fresh.set_position(done);
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
            notice("another process has the hints for this table; waiting for it");
        }
        Progress::Waiting { part, done: 0, total } => {
            notice(&format!(
                "another process is {} ({}); waiting for it",
                activity(part, offline),
                display::bytes(total)
            ));
        }
        Progress::NextGeneration { done, total } => {
            news.next_generation(done, total);
        }
        Progress::Notice(text) => {
            notice(&text);
        }
        Progress::Retrying { server, pause, error } if verbose => {
            let url = &urls[server];
            notice(&format!("{url}: {error}; trying again in {}", display::duration(pause)));
        }
        Progress::Retrying { server, error, .. } if retries.is_worth_telling(server) => {
            notice(&format!("{}: {error}; trying again", urls[server]));
        }
        Progress::GivenUp { .. } => news.given_up.store(true, Ordering::Relaxed),
        _ => {}
    };
    move |progress| {
        if !matches!(progress, Progress::Retrying { .. } | Progress::Waiting { .. }) {
            seen.came();
        }
        show(progress);
    }
}

/// What a client does while it receives a part.
fn activity(part: PartKind, offline: OfflinePhase) -> &'static str {
    match (part, offline) {
        (PartKind::Layout, _) => "downloading the record layout",
        (PartKind::Hint, _) => "downloading the hint",
        (_, OfflinePhase::KeepTable { .. }) => "downloading the table",
        (_, OfflinePhase::Ask { .. }) => "receiving hints from the first server",
        // With these schemes the client keeps hints, and no part of the table itself.
        _ => "preparing hints from the table",
    }
}

fn describe(client: &Client) {
    let table = client.table();
    let identity = table.identity;
    notice(&format!(
        "table {} at epoch {}, {} of {}, digest {}, scheme {}; {} runs {}",
        table.name,
        identity.epoch.0,
        some(identity.shape.records(), "record", "records"),
        display::bytes(identity.shape.record_len()),
        identity.digest,
        table.scheme.plan.scheme,
        match table.scheme.plan.servers {
            1 => "the server",
            _ => "the servers must not collude, and the first",
        },
        table.software
    ));
    if let Some(words) = table.scheme.plan.words(&identity) {
        notice(&words);
    }
    if let OfflinePhase::Ask { .. } = table.scheme.plan.offline {
        notice(
            "the first server computes the hints and learns their key; the second answers and must not learn it",
        );
    }
    if let Some(weaker) = table.scheme.plan.scheme.about().weaker_promise {
        notice(weaker);
    }
}

fn summarize(stats: &Stats, news: &News) {
    let per = |total: Duration| {
        display::duration(total / u32::try_from(stats.lookups.max(1)).unwrap_or(u32::MAX))
    };
    let journal = match stats.journal_time {
        Duration::ZERO => String::new(),
        total => format!(", journal {}", per(total)),
    };
    notice(&format!(
        "ready after {} ({} fetched); {}, {} sent and {} received, query {}{journal} and recover {} each",
        display::duration(stats.ready_after),
        display::bytes(stats.prepare.down),
        some(stats.lookups, "lookup", "lookups"),
        display::bytes(stats.lookup.up),
        display::bytes(stats.lookup.down),
        per(stats.query_time),
        per(stats.recover_time)
    ));
    if let Some((done, total)) = news.of_next_generation() {
        notice(&format!(
            "the next generation of hints has taken in {} of {}, {} with these lookups",
            display::bytes(done),
            display::bytes(total),
            display::bytes(stats.background.down)
        ));
    }
}
