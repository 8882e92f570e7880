//! `privet get`: looks records up without the server learning which.

pub(crate) mod json_lines;
mod news;
pub(crate) mod output;
mod wanted;

use crate::arguments::Get;
use crate::display::{self, Batch, notice, some};
use crate::exit::Outcome;
use indicatif::ProgressBar;
use news::{News, Retries, Silence};
use output::Output;
use privet_client::{Client, ClientOptions, Progress, Stats};
use privet_core::{Blame, Error, Result};
use privet_schemes::offline::OfflinePhase;
use privet_wire::PartKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use wanted::Queue;
pub(crate) use wanted::keys_from;

/// How many lookups are handed over at once: enough to keep the server's batches full, and few
/// enough that a long list needs little memory.
const AT_ONCE: usize = 256;

/// Connects, looks everything up in the given order, and prints results as they come.
pub(crate) fn run(arguments: &Get) -> Result<Outcome> {
    let end = arguments.max_time().and_then(|limit| Instant::now().checked_add(limit));
    display::be_quiet(arguments.quiet);
    let mut queue = Queue::new(arguments, display::shows_progress())?;
    Output::check(arguments)?;

    let news = Arc::new(News::default());
    let silence = Silence::watch(arguments, Arc::clone(&news))?;
    let reporter = reporter(arguments.verbose, Arc::clone(&news));
    let client = Client::connect_blocking(options(arguments)?, reporter)?;
    if arguments.verbose {
        describe(&client);
    }
    let mut output = Output::new(arguments, queue.single, client.values())?;
    let scheme = client.table().scheme.plan.scheme;
    if let Some(warning) = scheme.about().weaker_by_key.filter(|_| queue.by_key) {
        notice(&format!("warning: by {scheme}, {warning}"));
    }
    let mut outcome = Outcome::Done;
    let mut failures = Failures::default();
    let mut batch = Batch::new(queue.total, output.leaves_the_screen());
    loop {
        // While the command waits for keys, it asks no server, so a server cannot be late.
        let next = news.during_a_pause(|| queue.next(AT_ONCE, end));
        let wanted = match next {
            Ok(wanted) if wanted.is_empty() => break,
            Ok(wanted) => wanted,
            Err(error) => {
                failures.note(Err(error));
                break;
            }
        };
        // A server has been given up, so no more lookups begin. The servers know of the failure
        // already, so this reveals no lookup's outcome.
        if news.given_up.load(Ordering::Relaxed) {
            failures.not_begun += wanted.len();
            // Lines that a pipe may still bring are not waited for.
            if queue.may_wait() {
                break;
            }
            continue;
        }
        let lookups: Vec<_> = wanted.iter().map(|wanted| client.begin(wanted.target())).collect();
        for (wanted, lookup) in wanted.iter().zip(lookups) {
            let printed = lookup.outcome_blocking().and_then(|value| {
                news.came();
                if value.is_none() {
                    outcome = Outcome::NotFound;
                }
                output.print(wanted, value.as_ref())
            });
            failures.note(printed);
            batch.one_more();
        }
    }
    failures.note(output.finish());
    drop(batch);
    drop(silence);
    if let Some(skipped) = queue.skipped() {
        notice(&skipped);
    }
    // A client with single-use hints may still have to receive part of its next generation. The
    // answers are printed already, so nobody waits for this.
    failures.note(client.finish_blocking());
    if arguments.verbose {
        summarize(&client.stats(), &news);
    }
    failures.into_result().map(|()| outcome)
}

/// The errors of failed lookups, reported at the end. A failure does not end the other lookups,
/// since the server must not learn whether the client accepted its answer.
#[derive(Default)]
struct Failures {
    /// The first error, unless a later one is the first integrity failure.
    told: Option<Error>,
    is_first: bool,
    count: usize,
    /// Lookups that did not begin because a server was given up.
    not_begun: usize,
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
        match (self.told, self.count, self.not_begun) {
            (None, _, 0) => Ok(()),
            (None, _, left) => Err(Error::unavailable(format!(
                "a server was given up, and {} not begun",
                were(left)
            ))),
            (Some(error), 1, 0) => Err(error),
            (Some(error), count, 0) => {
                Err(error.within(format!("{count} lookups failed; {which}")))
            }
            (Some(error), count, left) => {
                let failed = some(count as u64, "lookup failed", "lookups failed");
                Err(error.within(format!("{failed} and {} not begun; {which}", were(left))))
            }
        }
    }
}

/// `1 lookup was`, `7 lookups were`
fn were(count: usize) -> String {
    some(count as u64, "lookup was", "lookups were")
}

fn options(arguments: &Get) -> Result<ClientOptions> {
    let mut options = ClientOptions::new(arguments.addresses.urls());
    arguments.trust.apply_to(&mut options);
    arguments.limits.apply_to(&mut options);
    options.table.clone_from(&arguments.table);
    options.state_dir = Some(match &arguments.state {
        Some(directory) => directory.clone(),
        None => privet_client::store::default_directory().map_err(|error| {
            Error::api_misuse(format!("{} (--state, or PRIVET_STATE)", error.message()))
        })?,
    });
    options.accept_new_table = arguments.accept_new_table;
    options.compare_streams = arguments.compare_streams;
    options.max_time = arguments.max_time();
    Ok(options)
}

/// Progress bars for what is received before the first lookup, and notices, on standard error.
fn reporter(verbose: bool, news: Arc<News>) -> impl FnMut(Progress) + Send + 'static {
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
        Progress::Retrying { url, pause, error } if verbose => {
            notice(&format!("{url}: {error}; trying again in {}", display::duration(pause)));
        }
        Progress::Retrying { url, error, .. } if retries.is_worth_telling(&url) => {
            notice(&format!("{url}: {error}; trying again"));
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
