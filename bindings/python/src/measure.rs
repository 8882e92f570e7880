//! The reports of `plan` and `bench`.

use crate::arguments::{Arguments, apart, did_you_mean, lacking, one_of, within};
use crate::errors::Raise as _;
use crate::publish::Input;
use crate::waiting;
use privet_core::quantities::{parse_bytes, parse_number, parse_number_or_none};
use privet_core::{Error, Result, TableShape};
use privet_measure::bench::{BenchOptions, BenchReport, PLAIN, Subject as Measured, measure};
use privet_measure::identity_of;
use privet_measure::machine::Machine;
use privet_measure::plan::{
    ASSUMPTIONS, ClientKind, PlanOptions, PlanReport, Subject, Use, compare,
};
use privet_measure::watch::unwatched;
use privet_schemes::SchemeId;
use privet_schemes::registry::{OptionKind, SchemeOption, Tuning, Value, check_options};
use pyo3::prelude::*;
use pythonize::pythonize;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// The report of `plan`, and its drawing as SVG.
#[pyfunction]
pub(crate) fn plan<'py>(
    py: Python<'py>,
    inputs: Vec<Input>,
    options: Arguments,
) -> PyResult<(Bound<'py, PyAny>, String)> {
    let report =
        waiting::in_a_thread(py, None, move |stopped, _| planned(options, inputs, stopped))?;
    Ok((pythonize(py, &report)?, report.plot().svg().raise(py)?))
}

/// The report of `bench`.
#[pyfunction]
pub(crate) fn bench<'py>(
    py: Python<'py>,
    scheme: String,
    options: Arguments,
) -> PyResult<Bound<'py, PyAny>> {
    let report = waiting::in_a_thread(py, None, move |_, _| measured(options, &scheme))?;
    Ok(pythonize(py, &report)?)
}

const BY_KEY: &[&str] = &["key", "range_from", "keys"];
/// What says nothing without one of others.
const NEEDED: [(&str, &[&str]); 11] = [
    ("keys", &["value_len"]),
    ("value_len", &["keys"]),
    ("records", &["record_len"]),
    ("record_len", &["records"]),
    ("normalize", &["key"]),
    ("key_format", &["key"]),
    ("columns", &["no_header"]),
    ("multi", BY_KEY),
    ("key_map", BY_KEY),
    ("parts", BY_KEY),
    ("room", BY_KEY),
];
/// What says the same thing in two ways.
const EITHER: [(&str, &str); 7] = [
    ("keys", "records"),
    ("keys", "key"),
    ("keys", "range_from"),
    ("key", "range_from"),
    ("multi", "on_duplicate"),
    ("value", "raw_value"),
    ("machine", "save_machine"),
];

/// Refuses arguments that do not go together.
fn check(given: &Arguments) -> Result<()> {
    for (name, needed) in NEEDED {
        if given.has(name) && !needed.iter().any(|other| given.has(other)) {
            return Err(lacking(name, needed));
        }
    }
    let both = EITHER.iter().find(|(one, other)| given.has(one) && given.has(other));
    both.map_or(Ok(()), |(one, other)| Err(apart(one, other)))
}

fn planned(
    mut given: Arguments,
    inputs: Vec<Input>,
    stopped: &Arc<AtomicBool>,
) -> Result<PlanReport> {
    check(&given)?;
    let mut used = Use { client: ClientKind::Python, ..Use::default() };
    given.set(&mut used.lookups, "lookups", parse_number)?;
    given.set(&mut used.clients, "clients", parse_number)?;
    given.set(&mut used.updates, "updates_per_day", parse_number_or_none)?;
    given.set(&mut used.changed_records, "changed_records", parse_number)?;
    given.set(&mut used.client, "client", one_of(ClientKind::CHOICES))?;
    given.set(&mut used.link, "link", str::parse)?;
    given.set(&mut used.prices, "prices", str::parse)?;
    let mut options = PlanOptions { used, ..PlanOptions::new(privet_laboratory::is_in_browsers) };
    given.set(&mut options.servers, "servers", within(1..=13))?;
    options.may_lie = given.flag("may_lie")?;
    options.keep_hints = given.flag("keep_hints")?;
    given.set(&mut options.assume, "assume", one_of(ASSUMPTIONS))?;
    options.client_storage = given.value("client_storage", parse_bytes)?;
    options.server_memory = given.value("server_memory", parse_bytes)?;
    let (machine, save_machine) = (given.path("machine")?, given.path("save_machine")?);
    let subject = subject(&mut given, inputs)?;
    given.end()?;

    let subject = subject(stopped)?;
    let machine = Machine::of(machine.as_deref(), privet_laboratory::point_products, &unwatched)?;
    if let Some(file) = &save_machine {
        machine.write(file)?;
    }
    compare(&subject, machine, &options)
}

/// What reads the table that a plan is for, until it is stopped.
fn subject(
    given: &mut Arguments,
    mut inputs: Vec<Input>,
) -> Result<impl FnOnce(&Arc<AtomicBool>) -> Result<Subject> + use<>> {
    let before = given.taken();
    let reading = given.reading()?;
    let is_read = given.taken() > before;
    let making = given.making(&reading)?;
    let is_told = is_read || making.key.is_some() || making.ranges.is_some();
    let words = given.words_since(before);
    let keys = given.value("keys", parse_number)?.zip(given.value("value_len", parse_bytes)?);
    let shape = shape(given)?;
    let is_forecast = keys.is_some() || shape.is_some();
    if inputs.is_empty() != is_forecast {
        return Err(Error::api_misuse(
            "a plan is for data, or for `keys` and `value_len`, or for `records` and `record_len`",
        ));
    }
    Ok(move |stopped: &Arc<AtomicBool>| match (keys, shape) {
        (Some((keys, value_len)), _) => Subject::of_keys(keys, value_len, &making),
        (_, Some(shape)) => Subject::of_shape(shape, making.authenticate),
        _ => match (inputs.pop(), inputs.is_empty(), words) {
            (Some(Input::File(file)), true, Some(words)) => {
                let rows = reading.source(Input::File(file.clone()), stopped);
                Subject::of_path(&file, rows, is_told, &words, &making)
            }
            (last, ..) => {
                let rows = inputs.into_iter().chain(last);
                let rows = rows.map(|input| reading.source(input, stopped)).collect();
                Subject::of_rows(rows, &making)
            }
        },
    })
}

/// The shape of a table by number.
fn shape(given: &mut Arguments) -> Result<Option<TableShape>> {
    let records = given.value("records", parse_number)?;
    let shape = records.zip(given.value("record_len", parse_bytes)?);
    shape.map(|(records, record_len)| TableShape::new(records, record_len)).transpose()
}

fn measured(mut given: Arguments, scheme: &str) -> Result<BenchReport> {
    check(&given)?;
    let scheme = match scheme {
        PLAIN => None,
        name => Some(name.parse::<SchemeId>().map_err(|error| {
            let meant = did_you_mean(name, SchemeId::all().map(SchemeId::name));
            Error::api_misuse(format!("`scheme`: {error}{meant}"))
        })?),
    };
    let subject = scheme.map_or(Measured::Plain, Measured::Scheme);
    let shape = shape(&mut given)?.ok_or_else(|| lacking("bench", &["records"]))?;
    let mut options = BenchOptions::new(subject, shape);
    given.set(&mut options.queries, "queries", parse_number)?;
    given.set(&mut options.batch, "batch", parse_number)?;
    given.set(&mut options.edits, "edits", parse_number)?;
    given.set(&mut options.seed, "seed", str::parse)?;
    options.threads = given.value("threads", within(1..=1024))?;
    options.kernel = given.value("kernel", str::parse)?;
    options.tuning = tuning(&mut given, scheme)?;
    given.end()?;
    let identity = identity_of(shape);
    if let Some(scheme) = scheme
        && privet_laboratory::missing_string(scheme, &identity, &options.tuning).is_some()
    {
        let start = Instant::now();
        options.tuning = privet_laboratory::completed(scheme, &identity, options.tuning)?;
        options.reference_string_s = Some(start.elapsed().as_secs_f64());
    }
    options.zero_bit = privet_laboratory::zero_bit(&options.tuning);
    measure(&options, &unwatched)
}

/// What is chosen about a scheme.
fn tuning(given: &mut Arguments, scheme: Option<SchemeId>) -> Result<Tuning> {
    let options = SchemeId::all().flat_map(|scheme| scheme.about().options).copied();
    let (chosen, others): (Vec<_>, Vec<_>) =
        options.partition(|option| given.has(&in_python(option.name)));
    others.into_iter().for_each(|option| given.leave(in_python(option.name)));
    for option in &chosen {
        let has = |other: &&str| given.has(&in_python(other));
        if let Some(needed) = option.requires.filter(|needed| !has(needed)) {
            return Err(lacking(&in_python(option.name), &[&in_python(needed)]));
        }
        if let Some(other) = option.conflicts_with.iter().find(|other| has(other)) {
            return Err(apart(&in_python(option.name), &in_python(other)));
        }
    }
    // An option with an error text of its own is checked by the plan, whose error names the table.
    check_options(scheme, chosen.iter().copied().filter(|option| option.elsewhere.is_none()))?;
    // An option of several schemes is there several times, and taken once.
    chosen.into_iter().try_fold(Tuning::default(), |tuning, option| {
        Ok(tuning.with_some(option, value(given, option)?))
    })
}

fn value(given: &mut Arguments, option: &SchemeOption) -> Result<Option<Value>> {
    let name = in_python(option.name);
    Ok(match option.kind {
        OptionKind::Amount { value_name: "BYTES" } => {
            given.value(&name, parse_bytes)?.map(Value::from)
        }
        OptionKind::Amount { .. } => given.value(&name, parse_number)?.map(Value::from),
        OptionKind::Count { least, most, .. } => {
            given.value(&name, within(least..=most))?.map(Value::from)
        }
        OptionKind::File { .. } => {
            let read = |path: PathBuf| option.read(&path, File::open(&path));
            given.path(&name)?.map(read).transpose()?
        }
        _ => given.flag(&name)?.then_some(Value::Given),
    })
}

/// The name of a scheme's option as Python has it.
fn in_python(option: &str) -> String {
    option.replace('-', "_")
}
