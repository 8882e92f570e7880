//! `privet load`: a running server under lookups that come at a fixed rate.

use crate::arguments::Load;
use crate::display::{self, Page, notice};
use crate::exit::Outcome;
use privet_client::ClientOptions;
use privet_core::{Error, Result};
use privet_measure::load::{Crowd, LoadOptions, measure};
use privet_measure::watch::Amount;
use privet_table::publish::output;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Connects the clients, has them look up, and prints the report.
pub(crate) fn run(arguments: &Load) -> Result<Outcome> {
    display::be_quiet(arguments.quiet);
    if let Some(path) = &arguments.plot {
        let read: Vec<&Path> = arguments.trust.ca_file.iter().map(PathBuf::as_path).collect();
        output::for_values(path, &read)?;
    }
    let options = options(arguments);
    let began = Instant::now();
    let connecting = display::watch("connecting clients", Amount::Unknown);
    let crowd = Crowd::connect(&options, |code| display::exit(code));
    drop(connecting);
    let crowd = crowd?;
    notice(&format!(
        "{} ready after {}, {} received",
        display::some(options.clients.into(), "client is", "clients are"),
        display::duration(began.elapsed()),
        display::bytes(crowd.received())
    ));
    let plot = plot_file(arguments)?;
    if !arguments.json {
        tell(&crowd.heading(), &crowd)?;
    }
    let report = measure(&options, &crowd, &display::watch, &mut |line| match arguments.json {
        true => {
            notice(line);
            Ok(())
        }
        false => tell(line, &crowd),
    })?;
    drop(crowd);
    if let Some((mut file, path)) = plot {
        let svg = report.plot().svg()?;
        file.write_all(svg.as_bytes()).map_err(|error| unwritable(path).caused_by(error))?;
    }
    display::report(arguments.json, &report, || Page::of(|page| report.put_on(page)))?;
    match report.failure() {
        _ if report.is_missed() => Ok(Outcome::Missed),
        Some(failure) => Err(failure),
        None => Ok(Outcome::Done),
    }
}

fn options(arguments: &Load) -> LoadOptions {
    let mut client = ClientOptions::new(arguments.addresses.urls());
    arguments.trust.apply_to(&mut client);
    arguments.limits.apply_to(&mut client);
    client.session.table.clone_from(&arguments.table);
    LoadOptions {
        client,
        clients: arguments.clients,
        rate: arguments.rate,
        time: arguments.time,
        objectives: arguments.slo.clone(),
        metrics: arguments.metrics.clone(),
    }
}

/// The file for the plot, if one is wanted. It is opened before minutes are spent on measuring.
fn plot_file(arguments: &Load) -> Result<Option<(File, &Path)>> {
    let Some(path) = &arguments.plot else { return Ok(None) };
    let file = File::create(path).map_err(|error| unwritable(path).caused_by(error))?;
    Ok(Some((file, path)))
}

fn unwritable(path: &Path) -> Error {
    Error::api_misuse(format!("cannot write {}", path.display()))
}

/// A line on standard output, at once. If nobody reads it (`| head`), the process ends, as at the
/// end of any other report.
fn tell(line: &str, crowd: &Crowd) -> Result<()> {
    let mut page = Page::default();
    page.line(line);
    if !page.is_read()? {
        crowd.clear_up();
        display::exit(0);
    }
    Ok(())
}
