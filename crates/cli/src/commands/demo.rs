//! `privet demo`: the whole thing in one process, under each scheme, and what the server saw of it;
//! in the end, what becomes of a server that lies.

use crate::arguments::Demo;
use crate::display::{self, Page};
use crate::exit::Outcome;
use crate::tuning;
use privet_client::{Client, ClientOptions, Target};
use privet_core::{Blame, Error, Result, TableIdentity};
use privet_host::TableFile;
use privet_schemes::SchemeId;
use privet_schemes::contract::Role;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::{self, Tuning};
use privet_server::{RunningServer, ServedTable, Server, ServerConfig};
use privet_table::build::{BuildOptions, build_table};
use privet_table::import::{Format, Source};
use privet_table::snapshot::Snapshot;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// More entries than this would take longer to generate than a demonstration should.
const MOST_ENTRIES: u64 = 10_000_000;

/// Builds a phone book; under each scheme, serves it on loopback, looks people up, and shows the
/// server's side.
pub(crate) fn run(arguments: &Demo) -> Result<Outcome> {
    if arguments.entries > MOST_ENTRIES {
        return Err(Error::api_misuse(format!(
            "a demonstration has at most {MOST_ENTRIES} entries"
        )));
    }
    let unavailable =
        |what: &'static str| move |error: std::io::Error| Error::unavailable(what).caused_by(error);
    let directory =
        tempfile::tempdir().map_err(unavailable("there is no room for temporary files"))?;
    let path = phone_book(arguments.entries, directory.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(unavailable("the system gives no threads to serve with"))?;
    for (number, scheme) in (2..).zip(SchemeId::ALL) {
        let identity = Snapshot::open(&path)?.identity();
        // Client and servers are one process here, so there is nobody whom it had to be kept from.
        let tuning = tuning::completed(Tuning::default(), *scheme, &identity)?;
        if let Some(why) = unsuitable(*scheme, &identity, &tuning) {
            let mut page = Page::default();
            page.line(format!("\n{number}. Not with {scheme}: {why}."));
            page.print()?;
            continue;
        }
        let servers = runtime.block_on(start(&path, *scheme, &tuning))?;
        show(number, &servers, arguments.entries)?;
        runtime.block_on(stop(servers))?;
    }
    let servers = runtime.block_on(start_with_a_liar(&path))?;
    show_a_lie(SchemeId::ALL.len() + 2, &servers, arguments.entries)?;
    runtime.block_on(stop(servers))?;
    Ok(Outcome::Done)
}

/// Why a scheme is not shown on the table, with numbers: that is worth knowing too.
fn unsuitable(scheme: SchemeId, identity: &TableIdentity, tuning: &Tuning) -> Option<String> {
    match registry::plan(scheme, identity, tuning) {
        Err(error) => Some(error.to_string()),
        Ok(plan) if plan.offline.len() > MOST_RECEIVED => Some(format!(
            "clients would receive {} before their first lookup, for a table of {}",
            display::bytes(plan.offline.len()),
            display::bytes(identity.shape.bytes())
        )),
        Ok(plan) => match registry::setup_bytes(&plan, identity) {
            Ok(bytes) if bytes > MOST_RECEIVED => Some(format!(
                "each server would make {} of a table of {}",
                display::bytes(bytes),
                display::bytes(identity.shape.bytes())
            )),
            _ => None,
        },
    }
}

/// Receiving, or computing, more than this would take longer than a demonstration should.
const MOST_RECEIVED: u64 = 1 << 28;

/// A client of the servers, its lookups, and the servers' side of them.
fn show(number: u32, servers: &[Started], entries: u64) -> Result<()> {
    let client = connect(number, servers)?;
    let lookups = look_up(&client, entries)?;
    for (role, server) in (0..).map(Role).zip(servers) {
        let queries =
            std::mem::take(&mut *server.seen.lock().unwrap_or_else(PoisonError::into_inner));
        let name = if servers.len() == 1 {
            "the server".to_owned()
        } else {
            format!("server {}", role.0 + 1)
        };
        what_a_server_saw(role, &name, &client, &lookups, &queries)?;
    }
    Ok(())
}

const FIRST_NAMES: [&str; 8] =
    ["Ada", "Alan", "Barbara", "Claude", "Edsger", "Grace", "Katherine", "Tony"];
const LAST_NAMES: [&str; 5] = ["Archer", "Baker", "Cooper", "Miller", "Smith"];

/// The name of an entry, which is its key.
fn name(entry: u64) -> String {
    let (first, rest) = (entry % 8, entry / 8);
    format!("{} {} {}", FIRST_NAMES[first as usize], LAST_NAMES[(rest % 5) as usize], rest / 5 + 1)
}

fn phone(entry: u64) -> String {
    // A permutation of the numbers below 10^7, so that neighbours do not look alike.
    format!("555-{:07}", entry.wrapping_mul(7_654_321) % 10_000_000)
}

fn value(entry: u64) -> String {
    format!("{{\"phone\":\"{}\",\"floor\":\"{}\"}}", phone(entry), entry % 30)
}

/// Generates the input and builds the table.
fn phone_book(entries: u64, directory: &Path) -> Result<PathBuf> {
    let start = Instant::now();
    let mut csv = Vec::new();
    csv.extend_from_slice(b"name,phone,floor\n");
    for entry in 0..entries {
        // Writing to a vector cannot fail.
        let _ = writeln!(csv, "{},{},{}", name(entry), phone(entry), entry % 30);
    }
    let path = directory.join("phone-book.privet");
    let source =
        Source::reader("the generated phone book", std::io::Cursor::new(csv)).format(Format::Csv);
    let options = BuildOptions { key: Some("name".to_owned()), ..BuildOptions::default() };
    let report = build_table(&options, source, &path, &mut |_| {})?;
    let mut page = Page::default();
    page.line(format!(
        "1. A table: a phone book of {} entries, built in {}.",
        display::count(entries),
        display::duration(start.elapsed())
    ));
    page.entry(
        "records",
        format!(
            "{} of {}, several entries in each",
            display::count(report.records),
            display::bytes(report.record_len)
        ),
    );
    page.entry(
        "file",
        format!(
            "{}, {:.2} x the values themselves",
            display::bytes(report.file_bytes),
            report.overhead
        ),
    );
    page.print()?;
    Ok(path)
}

/// The queries as they reached the server.
type Seen = Arc<Mutex<Vec<Vec<u8>>>>;

/// A server, how long its start took, and what it is asked.
struct Started {
    running: RunningServer,
    elapsed: Duration,
    seen: Seen,
}

/// As many servers as the scheme takes, each with a copy of the table.
async fn start(path: &Path, scheme: SchemeId, tuning: &Tuning) -> Result<Vec<Started>> {
    let first = start_one(copy(path, scheme, tuning)?, true).await?;
    let tables = first.running.tables();
    let plan = tables.iter().flat_map(|table| &table.description.schemes).next();
    let servers = plan.map_or(1, |scheme| scheme.plan.servers);
    let mut started = vec![first];
    while started.len() < servers {
        started.push(start_one(copy(path, scheme, tuning)?, true).await?);
    }
    Ok(started)
}

/// Two servers of one table, as both say; but in the second one's copy, a bit of the last record is
/// another.
async fn start_with_a_liar(path: &Path) -> Result<Vec<Started>> {
    let table = || copy(path, SchemeId::ApirDpf, &Tuning::default());
    let (honest, mut liar) = (table()?, table()?);
    let mut records = liar.records.bytes().to_vec();
    if let Some(last) = records.last_mut() {
        *last ^= 1;
    }
    liar.records = Box::new(records);
    Ok(vec![start_one(honest, true).await?, start_one(liar, false).await?])
}

fn copy(path: &Path, scheme: SchemeId, tuning: &Tuning) -> Result<ServedTable> {
    let file = TableFile::new("phone-book", path);
    TableFile { scheme: Some(scheme), tuning: tuning.clone(), ..file }.open_without_log()
}

async fn stop(servers: Vec<Started>) -> Result<()> {
    for server in servers {
        server.running.shutdown();
        server.running.wait().await?;
    }
    Ok(())
}

/// `verified`: unless its table is meant to be another than it says.
async fn start_one(table: ServedTable, verified: bool) -> Result<Started> {
    let start = Instant::now();
    let mut config = ServerConfig::new(std::net::SocketAddr::from(([127, 0, 0, 1], 0)));
    config.verify_records = verified;
    let seen = Seen::default();
    let sees = Arc::clone(&seen);
    config.query_observer = Some(Arc::new(move |request| {
        sees.lock().unwrap_or_else(PoisonError::into_inner).push(request.query.to_vec());
    }));
    let running = Server::start(config, vec![table]).await?;
    Ok(Started { running, elapsed: start.elapsed(), seen })
}

fn connect(number: u32, servers: &[Started]) -> Result<Client> {
    let addresses: Vec<String> =
        servers.iter().map(|server| server.running.local_addr().to_string()).collect();
    let urls = addresses.iter().map(|address| format!("http://{address}"));
    let client = Client::connect_blocking(ClientOptions::new(urls), |_| {})?;
    let stats = client.stats();
    let table = client.table();
    let plan = &table.scheme.plan;
    let mut page = Page::default();
    page.line(format!(
        "\n{number}. With {}: {} at {}, ready after {}; a client, ready after {}.",
        plan.scheme,
        match servers.len() {
            1 => "a server".to_owned(),
            2 => "two servers that must not collude".to_owned(),
            count => format!("{count} servers of which no two must collude"),
        },
        addresses.join(" and "),
        display::duration(servers.iter().map(|server| server.elapsed).max().unwrap_or_default()),
        display::duration(stats.ready_after)
    ));
    let what = match plan.offline {
        OfflinePhase::Download { .. } => "a hint, the same for every client",
        OfflinePhase::StreamTable { .. } => {
            "the whole table, of which the client keeps secret hints only"
        }
        OfflinePhase::StreamArranged { .. } if plan.scheme.about().commits => {
            "the whole table and commitments to it, of which the client keeps secret hints and what it verifies answers with"
        }
        OfflinePhase::StreamArranged { .. } => {
            "the whole table in a public order, of which the client keeps secret hints only"
        }
        OfflinePhase::Ask { .. } => {
            "hints that the first server computed for this client, who keeps them secret from the second"
        }
        OfflinePhase::KeepTable { .. } => "the whole table, which the client keeps",
        _ => "nothing but how to read records",
    };
    page.entry("received once", format!("{}, {what}", display::bytes(stats.prepare.down)));
    if let Some(words) = plan.words(&table.identity) {
        page.entry("parameters", words);
    }
    page.print()?;
    Ok(client)
}

/// What was looked up, in order.
struct LookedUp {
    key: String,
    found: bool,
}

fn look_up(client: &Client, entries: u64) -> Result<Vec<LookedUp>> {
    let mut page = Page::default();
    page.line("Lookups:");
    let last = entries - 1;
    let wanted = [
        (name(0), Some(0)),
        (name(last / 2), Some(last / 2)),
        (name(last / 2), Some(last / 2)),
        (name(last), Some(last)),
        ("Nobody Nowhere 1".to_owned(), None),
        ("Eve Dropper 7".to_owned(), None),
    ];
    let mut done = Vec::new();
    for (key, entry) in wanted {
        let before = client.stats().lookup;
        let start = Instant::now();
        let found = client.get_target_blocking(Target::key(&key))?;
        let elapsed = start.elapsed();
        let after = client.stats().lookup;
        let expected = entry.map(value);
        if found.as_deref() != expected.as_ref().map(String::as_bytes) {
            return Err(Error::integrity(format!(
                "the lookup of {key:?} came back wrong: this build of Privet must not be used"
            )));
        }
        page.entry(
            &key,
            format!(
                "{:<40} {:>9}, {} up, {} down",
                expected.as_deref().unwrap_or("not found"),
                display::duration(elapsed),
                display::bytes(after.up - before.up),
                display::bytes(after.down - before.down)
            ),
        );
        done.push(LookedUp { key, found: found.is_some() });
    }
    page.print()?;
    Ok(done)
}

/// Bytes of a query that are shown.
const SHOWN: usize = 12;

/// A server's side of the same lookups.
fn what_a_server_saw(
    role: Role,
    name: &str,
    client: &Client,
    lookups: &[LookedUp],
    queries: &[Vec<u8>],
) -> Result<()> {
    let plan = &client.table().scheme.plan;
    if plan.longest_query() == 0 && queries.is_empty() {
        let mut page = Page::default();
        page.line(format!(
            "What {name} saw of them: nothing. The client has the table and asks nobody."
        ));
        return page.print();
    }
    if queries.len() != lookups.len() {
        return Err(Error::integrity(format!(
            "{} lookups sent {} queries",
            lookups.len(),
            queries.len()
        )));
    }
    let mut page = Page::default();
    page.line(format!("What {name} saw of them:"));
    for (number, query) in queries.iter().enumerate() {
        let head: Vec<String> =
            query.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
        let more = if query.len() > SHOWN { " …" } else { "" };
        page.entry(
            &format!("query {}", number + 1),
            format!("{} bytes: {}{more}", query.len(), head.join(" ")),
        );
    }
    let (repeat, other) = (agreeing(&queries[1], &queries[2]), agreeing(&queries[1], &queries[3]));
    page.line(format!(
        "   Queries 2 and 3 ask for the same name and agree in {repeat:.1} % of their bits; 2 and 4 ask for different ones and agree in {other:.1} %."
    ));
    if let Some(meaning) = plan.queries_say(&client.table().identity, role) {
        page.line(format!("   {meaning}"));
    }
    if plan.servers > 1 {
        page.line(format!(
            "   Only with the query that {} server got for the same lookup does one of these say which record is wanted.",
            if plan.servers == 2 { "the other" } else { "another" }
        ));
    }
    let comparison = match plan.queries_look_random(role) {
        true => "Bits drawn at random agree in 50 %. ",
        false => "",
    };
    let misses: Vec<&str> =
        lookups.iter().filter(|lookup| !lookup.found).map(|lookup| lookup.key.as_str()).collect();
    page.line(format!(
        "   {comparison}The misses ({}) look like the rest. That is all that the queries show.",
        misses.join(", ")
    ));
    page.print()
}

/// A lookup of an entry that both servers have alike, of which the second tells a lie nevertheless:
/// it computes with one record that is wrong.
fn show_a_lie(number: usize, servers: &[Started], entries: u64) -> Result<()> {
    let urls = servers.iter().map(|server| format!("http://{}", server.running.local_addr()));
    let client = Client::connect_blocking(ClientOptions::new(urls), |_| {})?;
    let mut page = Page::default();
    page.line(format!(
        "\n{number}. With apir-dpf, and a second server that lies: it announces the same table, but one bit of its last record is another."
    ));
    match client.get_target_blocking(Target::key(name((entries - 1) / 2))) {
        Err(error) if error.blame() == Blame::Integrity => {
            page.entry("the lookup ends with", format!("exit code 4: {error}"));
        }
        _ => {
            return Err(Error::integrity(
                "a lookup was not refused although a server lied: this build of Privet must not be used",
            ));
        }
    }
    page.line(
        "   Which entry was looked up does not matter, so whether the client refuses says nothing of it. tapir-mt, tapir-pp and apir-matrix-mt refuse as well; the clients of the first two then ask nothing ever again.",
    );
    page.print()
}

/// Percent of places at which two queries hold the same bit.
fn agreeing(one: &[u8], other: &[u8]) -> f64 {
    let different: u32 = one.iter().zip(other).map(|(a, b)| (a ^ b).count_ones()).sum();
    100.0 - 100.0 * f64::from(different) / (8 * one.len().max(1)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_is_counted_in_bits() {
        assert_eq!(agreeing(&[0b1010, 0xff], &[0b1010, 0xff]), 100.0);
        assert_eq!(agreeing(&[0b1010, 0xff], &[0b0101, 0xf0]), 50.0);
        assert_eq!(agreeing(&[0, 0], &[255, 255]), 0.0);
    }
}
