//! `privet plan`: which scheme suits a table, who is trusted, and how the table is used; with what
//! each would cost.

use super::build::{on_empty_key, options, source};
use crate::arguments::Plan;
use crate::display::{self, Page};
use crate::laboratory::schemes;
use privet_core::{Error, Result, TableShape};
use privet_measure::machine::Machine;
use privet_measure::plan::{PlanOptions, PlanReport, Subject, Use, compare, shell_word};
use privet_table::FileKind;
use privet_table::import::Source;
use std::path::Path;

/// Computes what each scheme costs, and prints the ranking.
pub(crate) fn run(arguments: &Plan) -> Result<()> {
    let report = report(arguments, Vec::new())?;
    display::report(arguments.json, &report, || Page::of(|page| report.put_on(page)))
}

/// Computes what each scheme costs, for a table of the `given` rows if there are any, and draws it
/// if that is asked for.
pub(crate) fn report(arguments: &Plan, given: Vec<Source>) -> Result<PlanReport> {
    let subject = subject(arguments, given)?;
    let file = arguments.machine.as_deref();
    let machine = Machine::of(file, schemes::point_products, &display::watch)?;
    if let Some(file) = &arguments.save_machine {
        machine.write(file)?;
    }
    let used = Use {
        lookups: arguments.lookups,
        clients: arguments.clients,
        updates: arguments.updates_per_day,
        changed_records: arguments.changed_records,
        client: arguments.client,
        link: arguments.link,
        prices: arguments.prices,
    };
    let options = PlanOptions {
        servers: arguments.servers,
        may_lie: arguments.may_lie,
        keep_hints: arguments.keep_hints,
        assume: arguments.assume,
        used,
        client_storage: arguments.client_storage,
        server_memory: arguments.server_memory,
        in_browsers: schemes::is_in_browsers,
    };
    let report = compare(&subject, machine, &options)?;
    if let Some(file) = &arguments.svg {
        report.plot().write(file)?;
    }
    Ok(report)
}

/// The table that was named.
///
/// # Errors
/// If it cannot be read, or is no table.
fn subject(arguments: &Plan, given: Vec<Source>) -> Result<Subject> {
    let Plan { making, reading, .. } = arguments;
    if !given.is_empty() {
        let rows = on_empty_key(given, reading);
        return Subject::of_rows(rows, &options(making, reading)?);
    }
    if let Some((keys, value_len)) = arguments.keys.zip(arguments.value_len) {
        return Subject::of_keys(keys, value_len, &options(making, reading)?);
    }
    match (&arguments.table, arguments.records.zip(arguments.record_len)) {
        (Some(input), _) if is_input(input, arguments)? => {
            let rows = vec![source(input, reading)];
            let file = input.with_extension("privet");
            let build = build_command(input, &file, arguments);
            Ok(Subject::of_rows(rows, &options(making, reading)?)?.in_file(file, build))
        }
        (Some(file), _) => Subject::of_file(file),
        (None, Some((records, record_len))) => {
            Subject::of_shape(TableShape::new(records, record_len)?, making.authenticate)
        }
        (None, None) => Err(Error::api_misuse(
            "name a table, or --keys and --value-len, or --records and --record-len",
        )),
    }
}

/// Whether a table is to be built from a file: it is no table, and its name or what was typed says
/// how it is read.
///
/// # Errors
/// If it is a table, and something was typed that is for building one.
fn is_input(file: &Path, arguments: &Plan) -> Result<bool> {
    let Plan { making, reading, .. } = arguments;
    let is_told =
        making.key.is_some() || making.range_from.is_some() || !reading.words().is_empty();
    match FileKind::of(file) == Some(FileKind::Table) {
        true if is_told => Err(Error::api_misuse(format!(
            "{} is a table already: leave out how it would be read and which column has the keys",
            file.display()
        ))),
        is_table => Ok(!is_table && (is_told || source(file, reading).tells_format())),
    }
}

/// The command that builds the planned table.
fn build_command(input: &Path, output: &Path, arguments: &Plan) -> String {
    let typed = [arguments.reading.words(), arguments.making.words()].concat();
    let words = ["privet", "build"].map(str::to_owned).into_iter();
    let words = words.chain([input.to_string_lossy().into_owned()]).chain(typed);
    let words = words.chain(["-o".to_owned(), output.to_string_lossy().into_owned()]);
    words.map(|word| shell_word(&word).into_owned()).collect::<Vec<_>>().join(" ")
}
