//! Tables that are built, updated and inspected, and the keys of their publishers.

use crate::arguments::{Arguments, Reading};
use crate::arrow_cells::ArrowCells;
use crate::errors::Raise as _;
use crate::waiting;
use arrow::ffi_stream::RecordBatchStreamReader;
use arrow::pyarrow::FromPyArrow as _;
use privet_core::{Error, Result};
use privet_table::build::OnDuplicate;
use privet_table::import::Source;
use privet_table::publish::{self, Built, NewRows, NewTable, RowEdits, Update};
use privet_table::update_log::PublisherKey;
use pyo3::prelude::*;
use pythonize::pythonize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Rows, or the file that they are in.
pub(crate) enum Input {
    /// Arrow's stream, and its name in errors.
    Rows(String, RecordBatchStreamReader),
    File(PathBuf),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Input {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match given.extract::<(String, Bound<'py, PyAny>)>() {
            Ok((name, rows)) => {
                Ok(Self::Rows(name, RecordBatchStreamReader::from_pyarrow_bound(&rows)?))
            }
            Err(_) => given.extract().map(Self::File),
        }
    }
}

impl Input {
    /// The rows, until `stopped` is true.
    pub(crate) fn source(self, stopped: &Arc<AtomicBool>) -> Source {
        match self {
            Self::Rows(name, rows) => {
                Source::cells(name, ArrowCells::new(Box::new(rows), Arc::clone(stopped)))
            }
            Self::File(path) => Source::path(path),
        }
    }
}

/// Builds a table of `inputs`. `progress` is called with a stage, and with how many bytes are done
/// of how many.
#[pyfunction]
pub(crate) fn build<'py>(
    py: Python<'py>,
    inputs: Vec<Input>,
    path: PathBuf,
    options: Arguments,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (table, reading) = new_table(options, path).raise(py)?;
    let built = waiting::in_a_thread(py, progress, move |stopped, tell| {
        let sources = inputs.into_iter().map(|input| reading.source(input, stopped)).collect();
        match publish::build(&table, sources, tell)? {
            Built::Table(built) => Ok(built),
            // There is no report of a table that was not built.
            Built::Completed(completed) => Err(Error::api_misuse(completed)),
        }
    })?;
    Ok(pythonize(py, &built)?)
}

/// The table that is to be built, and how its inputs are read.
fn new_table(mut given: Arguments, output: PathBuf) -> Result<(NewTable, Reading)> {
    let reading = given.reading()?;
    let table = NewTable {
        output,
        force: given.flag("force")?,
        making: given.making(&reading)?,
        publisher_key: given.path("publisher_key")?,
        next_key: given.value("next_key", str::parse)?,
        succeeds: given.path("succeeds")?,
        hand_over_to: given.path("hand_over_to")?,
    };
    given.end()?;
    Ok((table, reading))
}

/// What `update` is told, as a dictionary has it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct UpdateArguments {
    set: Vec<(String, String)>,
    delete: Vec<String>,
    from_: Option<Input>,
    replace_with: Option<Input>,
    replace: bool,
    compact: Option<u32>,
    begin_history: bool,
    hand_over_to: Option<PathBuf>,
    next_key: Option<String>,
}

/// Signs the next version of the table at `path`.
#[pyfunction]
pub(crate) fn update<'py>(
    py: Python<'py>,
    path: PathBuf,
    key_file: PathBuf,
    options: UpdateArguments,
) -> PyResult<Bound<'py, PyAny>> {
    let UpdateArguments { set, delete, from_: from, replace_with: by, next_key, .. } = options;
    let next_key =
        next_key.map(|digest| digest.parse().map_err(|error: Error| error.within("`next_key`")));
    let next_key = next_key.transpose().raise(py)?;
    let wanted = Update {
        table: path,
        publisher_key: key_file,
        columns_may_change: options.replace,
        compact: options.compact,
        begin_history: options.begin_history,
        hand_over_to: options.hand_over_to,
        next_key,
        dry_run: false,
    };
    let updated = waiting::in_a_thread(py, None, move |stopped, tell| {
        let rows = match by {
            Some(by) => NewRows::Replaced {
                by: by.source(stopped),
                on_duplicate: OnDuplicate::Error,
                nested: false,
            },
            None if set.is_empty() && delete.is_empty() && from.is_none() => NewRows::AsBefore,
            None => NewRows::Edited(RowEdits {
                delete: delete.into_iter().map(String::into_bytes).collect(),
                from: from.map(|from| from.source(stopped)),
                guess_types: false,
                set,
            }),
        };
        publish::update(&wanted, rows, tell)
    })?;
    Ok(pythonize(py, &updated)?)
}

/// Makes a publisher's key in a new file. Returns the publisher, or the digest of a next key.
#[pyfunction]
pub(crate) fn keygen(py: Python<'_>, path: PathBuf, next: bool) -> PyResult<String> {
    let key = PublisherKey::generate().raise(py)?;
    key.create_file(&path).raise(py)?;
    Ok(match next {
        true => key.id().as_next_key().to_string(),
        false => key.id().to_string(),
    })
}

/// What `privet inspect --json` prints.
#[pyfunction]
pub(crate) fn inspect(py: Python<'_>, path: PathBuf, verify: bool) -> PyResult<String> {
    waiting::in_a_thread(py, None, move |_, _| privet_cli::inspected(path, verify))
}
