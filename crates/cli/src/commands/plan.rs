//! `privet plan`: which scheme suits a table, who is trusted, and how the table is used; with what
//! each would cost.

use super::build::{options, source};
use crate::arguments::Plan;
use crate::display::{self, Page};
use privet_core::{Error, Result, TableShape};
use privet_measure::machine::Machine;
use privet_measure::plan::{PlanOptions, Subject, Use, compare};

/// Computes what each scheme costs, prints the ranking, and draws it if that is asked for.
pub(crate) fn run(arguments: &Plan) -> Result<()> {
    let subject = subject(arguments)?;
    let file = arguments.machine.as_deref();
    let machine = Machine::of(file, privet_laboratory::point_products, &display::watch)?;
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
        in_browsers: privet_laboratory::is_in_browsers,
    };
    let report = compare(&subject, machine, &options)?;
    if let Some(file) = &arguments.svg {
        report.plot().write(file)?;
    }
    display::report(arguments.json, &report, || Page::of(|page| report.put_on(page)))
}

/// The table that was named.
///
/// # Errors
/// If it cannot be read, or is no table.
fn subject(arguments: &Plan) -> Result<Subject> {
    let Plan { making, reading, .. } = arguments;
    if let Some((keys, value_len)) = arguments.keys.zip(arguments.value_len) {
        return Subject::of_keys(keys, value_len, &options(making, reading)?);
    }
    match (&arguments.table, arguments.records.zip(arguments.record_len)) {
        (Some(file), _) => {
            let (read, made) = (reading.words(), making.words());
            let is_told = making.key.is_some() || making.range_from.is_some() || !read.is_empty();
            let (rows, words) = (source(file, reading), [read, made].concat());
            Subject::of_path(file, rows, is_told, &words, &options(making, reading)?)
        }
        (None, Some((records, record_len))) => {
            Subject::of_shape(TableShape::new(records, record_len)?, making.authenticate)
        }
        (None, None) => Err(Error::api_misuse(
            "name a table, or --keys and --value-len, or --records and --record-len",
        )),
    }
}
