//! `privet demo`: builds a table, looks records up under three schemes that differ in kind (or
//! under all of them), shows what the servers saw, and shows how a lying server is caught.

mod phone_book;
mod scheme;
mod servers;
mod web;

use crate::arguments::Demo;
use crate::display::{self, Page};
use crate::laboratory::reference_string;
use phone_book::PhoneBook;
use privet_client::{Client, Target};
use privet_core::{Blame, Error, Result, TableIdentity};
use privet_schemes::SchemeId;
use privet_schemes::registry::{self, Tuning};
use privet_table::snapshot::Snapshot;
use servers::Servers;

/// Entries of the table if nobody says how many.
const ENTRIES: u64 = 200_000;

/// Generating more entries than this would take longer than a demonstration should.
const MOST_ENTRIES: u64 = 10_000_000;

/// Receiving, or computing, more than this would take longer than a demonstration should.
const MOST_RECEIVED: u64 = 1 << 28;

/// One of each kind: a hint that is the same for all clients, two servers without client state, and
/// single-use hints.
const SHOWN: [SchemeId; 3] = [SchemeId::SimplePir, SchemeId::Dpf, SchemeId::DummySubsets];

/// Builds a phone book; under each scheme, serves it on loopback, looks people up, and shows what
/// reached the servers.
pub(crate) fn run(arguments: &Demo) -> Result<()> {
    if arguments.web {
        return web::run(arguments);
    }
    let entries = arguments.entries.unwrap_or(ENTRIES);
    if entries > MOST_ENTRIES {
        return Err(Error::api_misuse(format!(
            "a demonstration has at most {MOST_ENTRIES} entries"
        )));
    }
    let unavailable =
        |what: &'static str| move |error: std::io::Error| Error::unavailable(what).caused_by(error);
    let directory =
        tempfile::tempdir().map_err(unavailable("there is no room for temporary files"))?;
    let book = PhoneBook::build(entries, directory.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(unavailable("the system gives no threads to serve with"))?;
    let schemes = if arguments.all { SchemeId::all().collect() } else { SHOWN.to_vec() };
    for (number, scheme) in (2..).zip(schemes.iter().copied()) {
        let identity = Snapshot::open(book.path())?.identity();
        // Client and servers are one process here, so no secret has to be kept from either of them.
        let tuning = reference_string::completed(Tuning::default(), scheme, &identity)?;
        if let Some(why) = unsuitable(scheme, &identity, &tuning) {
            Page::default().line(format!("\n{number}. Not with {scheme}: {why}.")).print()?;
            continue;
        }
        let servers = runtime.block_on(Servers::start(book.path(), scheme, &tuning))?;
        scheme::show(number, &servers, &book)?;
        runtime.block_on(servers.stop())?;
    }
    let servers = runtime.block_on(Servers::start_with_a_liar(book.path()))?;
    show_a_lie(schemes.len() + 2, &servers, &book)?;
    runtime.block_on(servers.stop())?;
    if !arguments.all {
        let others = SchemeId::all().count() - SHOWN.len();
        let mut page = Page::default();
        page.line(format!("\n`privet demo --all` shows the other {others} schemes as well."));
        page.print()?;
    }
    Ok(())
}

/// Why a scheme is not shown on the table, with numbers. The reason informs the reader too.
fn unsuitable(scheme: SchemeId, identity: &TableIdentity, tuning: &Tuning) -> Option<String> {
    match registry::plan(scheme, identity, tuning) {
        Err(error) => Some(error.to_string()),
        Ok(plan) if plan.offline.len() > MOST_RECEIVED => Some(format!(
            "clients would receive {} before their first lookup, for a table of {}",
            display::bytes(plan.offline.len()),
            display::bytes(identity.shape.bytes())
        )),
        Ok(plan) => match plan.work(identity).computed_bytes() {
            Some(bytes) if bytes > MOST_RECEIVED => Some(format!(
                "each server would make {} of a table of {}",
                display::bytes(bytes),
                display::bytes(identity.shape.bytes())
            )),
            _ => None,
        },
    }
}

/// Looks up an entry that is the same on both servers. The second server still gives a wrong
/// answer, because it computes with one wrong record.
fn show_a_lie(number: usize, servers: &Servers, book: &PhoneBook) -> Result<()> {
    let client = Client::connect_blocking(servers.client_options(), |_| {})?;
    let mut page = Page::default();
    page.line(format!(
        "\n{number}. apir-dpf, and a second server that lies: one bit of its last record is wrong."
    ));
    match client.get_target_blocking(Target::key(book.name(book.entries() / 2))) {
        Err(error) if error.blame() == Blame::Integrity => {
            page.paragraph(format!("The lookup ends with exit code 4: {error}."));
        }
        _ => {
            return Err(Error::integrity(
                "a lookup was not refused although a server lied: this build of Privet must not be used",
            ));
        }
    }
    page.paragraph(
        "The client refuses whichever entry was looked up, so that it refuses says nothing.",
    );
    page.print()
}
