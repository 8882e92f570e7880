//! `privet demo --web`: a page that looks records up, and shows beside it what the servers saw.
//!
//! | module | what it holds |
//! |---|---|
//! | `page` | the files of the page, built from `bindings/web/demo` |
//! | `rows` | the rows of the table |
//! | `stage` | the servers, honest and lying, and what they see |
//! | `service` | what the page's browser asks of this program |

mod page;
mod rows;
mod service;
mod stage;

use super::ENTRIES;
use crate::arguments::Demo;
use crate::display::{self, Page};
use privet_core::{Error, Result, SecretRng};
use privet_measure::machine::Machine;
use privet_measure::plan::{ClientKind, PlanOptions, Subject, Use, compare};
use privet_server::WebOrigin;
use rows::Rows;
use service::{Question, Service};
use stage::{Seen, Stage, unavailable};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tokio::net::TcpListener;

/// The page has all keys in memory, to complete what is typed.
const MOST_ENTRIES: u64 = 1_000_000;

/// Serves the page until somebody ends the program.
pub(super) fn run(arguments: &Demo) -> Result<()> {
    if !arguments.listen.ip().is_loopback() {
        return Err(Error::api_misuse(format!(
            "{} can be reached from other machines, and the page shows what was looked up: \
             listen on 127.0.0.1",
            arguments.listen
        )));
    }
    let entries = arguments.entries.unwrap_or(ENTRIES);
    if entries > MOST_ENTRIES {
        return Err(Error::api_misuse(format!("the page has at most {MOST_ENTRIES} entries")));
    }
    if page::FILES.is_empty() {
        return Err(Error::api_misuse(
            "this program was built without its page; `make demo-web` builds one with it",
        ));
    }
    let directory =
        tempfile::tempdir().map_err(unavailable("there is no room for temporary files"))?;
    let table = directory.path().join("table.privet");
    let rows = {
        let _building = display::working("building the table");
        let packages = if arguments.entries.is_none() { Rows::packages() } else { None };
        let rows = packages.unwrap_or_else(|| Rows::people(entries));
        rows.build(&table)?;
        rows
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(unavailable("the system gives no threads to serve with"))?;
    let ended = runtime.block_on(serve(arguments, rows, &table));
    runtime.shutdown_background();
    ended
}

async fn serve(arguments: &Demo, rows: Rows, table: &Path) -> Result<()> {
    let unheard = unavailable("the page's address is not free");
    let listener = TcpListener::bind(arguments.listen).await.map_err(&unheard)?;
    let host = host(listener.local_addr().map_err(&unheard)?);
    let origin: WebOrigin = format!("http://{host}").parse()?;
    let seen = Arc::new(Seen::new());
    let (stage, last) = {
        let _starting = display::working("starting the servers");
        Stage::start(&rows, table, &origin, &seen).await?
    };
    let (stage, last) = (Arc::new(stage), last.ok_or_else(|| Error::internal("no server runs"))?);
    last.shutdown_on_signals()?;
    let subject = Subject::of_file(table)?;
    let asked = Arc::clone(&stage);
    let costs = OnceLock::new();
    let ask = move |question: Question<'_>| match question {
        Question::Busy(cast) => asked.busy(cast).map(|microseconds| microseconds.to_string()),
        Question::Costs => {
            let costs: &Result<String> = costs.get_or_init(|| costs_of(&subject));
            costs.clone()
        }
    };
    let mut page = Page::default();
    page.line(format!("{} {}", display::count(rows.keys().len() as u64), rows.what));
    let token = token()?;
    page.line(format!("the page is at http://{host}/#{token}"));
    page.line("whoever has this address can read there what you look up");
    page.announce();
    let shown = (&stage.playing[..], seen);
    let service = Service::new((host, token), page::FILES, rows, shown, Arc::new(ask));
    tokio::select! {
        () = Arc::new(service).serve(listener) => Ok(()),
        ended = last.wait() => ended,
    }
}

/// What browsers send as the host of this address: they leave the usual port out.
fn host(address: SocketAddr) -> String {
    let host = address.to_string();
    host.strip_suffix(":80").map(str::to_owned).unwrap_or(host)
}

/// What nobody guesses: 128 bits, as hexadecimal digits.
fn token() -> Result<String> {
    let mut bits = [0; 16];
    SecretRng::from_os()?.fill(&mut bits);
    Ok(format!("{:032x}", u128::from_le_bytes(bits)))
}

/// What each scheme costs for the table on this machine, for clients in a browser.
fn costs_of(subject: &Subject) -> Result<String> {
    let machine = Machine::of(None, privet_laboratory::point_products, &display::watch)?;
    let used = Use { client: ClientKind::Browser, ..Use::default() };
    // Two operators: what needs more is not shown.
    let options =
        PlanOptions { servers: 2, used, ..PlanOptions::new(privet_laboratory::is_in_browsers) };
    let report = compare(subject, machine, &options)?;
    serde_json::to_string(&report)
        .map_err(|error| Error::internal(format!("the costs cannot be written: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_port_is_no_part_of_the_host() {
        for (address, expected) in [
            ("127.0.0.1:80", "127.0.0.1"),
            ("[::1]:80", "[::1]"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("[::80]:7780", "[::80]:7780"),
        ] {
            assert_eq!(host(address.parse().unwrap()), expected);
        }
    }

    #[test]
    fn each_run_has_a_token_of_its_own() {
        let (one, other) = (token().unwrap(), token().unwrap());
        assert_ne!(one, other);
        for token in [one, other] {
            assert_eq!(token.len(), 32);
            assert!(token.bytes().all(|digit| digit.is_ascii_hexdigit()), "{token}");
        }
    }
}
