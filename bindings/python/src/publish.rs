//! Tables that are built, updated and inspected, and the keys of their publishers.

use crate::arrow_cells::ArrowCells;
use crate::errors::Raise as _;
use crate::waiting;
use arrow::ffi_stream::RecordBatchStreamReader;
use arrow::pyarrow::FromPyArrow as _;
use privet_core::{Error, Result};
use privet_table::Choice;
use privet_table::build::{BuildOptions, OnDuplicate, RangeColumns};
use privet_table::import::{Dialect, Format, OnEmptyKey, Source, Types};
use privet_table::key_map::{KeyFormat, KeyMapKind, Normalization};
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

/// What `build` is told, as a dictionary has it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct BuildArguments {
    key: Option<String>,
    values: Vec<String>,
    raw: Option<String>,
    range_from: Option<String>,
    range_to: Option<String>,
    normalize: String,
    key_format: Option<String>,
    key_map: String,
    parts: Option<u8>,
    on_duplicate: String,
    on_empty_key: String,
    max_value: Option<u64>,
    authenticate: bool,
    publisher_key: Option<PathBuf>,
    next_key: Option<String>,
    succeeds: Option<PathBuf>,
    hand_over_to: Option<PathBuf>,
    format: Option<String>,
    delimiter: Option<String>,
    types: Option<String>,
    force: bool,
}

/// How an input becomes rows, until a caller stops them.
type Reading = dyn Fn(Input, &Arc<AtomicBool>) -> Source + Send;

impl BuildArguments {
    /// The table that is to be built, and how its inputs are read.
    fn checked(self, output: PathBuf) -> Result<(NewTable, Box<Reading>)> {
        let types: Vec<Types> = match &self.types {
            Some(types) => {
                types.split(',').map(|one| of("types", one.parse())).collect::<Result<_>>()?
            }
            None => Vec::new(),
        };
        let names: Vec<&str> = self.normalize.split_terminator(',').collect();
        let all = Choice { value: OnDuplicate::All, name: "all", ..OnDuplicate::CHOICES[0] };
        let duplicates = OnDuplicate::CHOICES.into_iter().chain([all]);
        if self.range_from.is_none() && self.range_to.is_some() {
            return Err(Error::api_misuse("`range_to` needs `range_from`"));
        }
        let key_format = self.key_format.as_deref();
        let key_format =
            key_format.map(|name| of("key_format", Choice::named(KeyFormat::CHOICES, name)));
        let format = self.format.as_deref();
        let format = format.map(|name| of("format", Choice::named(Format::choices(), name)));
        let delimiter = self.delimiter.map(|typed| of("delimiter", typed.parse()));
        let next_key = self.next_key.map(|digest| of("next_key", digest.parse()));
        let making = BuildOptions {
            normalization: Normalization::from_names(&names)?,
            key_format: key_format.transpose()?,
            ranges: self.range_from.map(|from| RangeColumns {
                from,
                to: self.range_to,
                nested: false,
            }),
            key_map: of("key_map", Choice::named(KeyMapKind::CHOICES, &self.key_map))?,
            key: self.key,
            value_columns: self.values,
            raw_value: self.raw,
            max_value: self.max_value,
            parts: self.parts,
            on_duplicate: of("on_duplicate", Choice::named(duplicates, &self.on_duplicate))?,
            guess_types: types.contains(&Types::Auto),
            types: Types::named(&types),
            authenticate: self.authenticate,
            ..BuildOptions::default()
        };
        let (format, delimiter) = (format.transpose()?, delimiter.transpose()?);
        let on_empty_key =
            of("on_empty_key", Choice::named(OnEmptyKey::CHOICES, &self.on_empty_key))?;
        let read = move |input: Input, stopped: &Arc<AtomicBool>| {
            let is_file = matches!(input, Input::File(_));
            let mut source = input.source(stopped).on_empty_key(on_empty_key);
            if is_file {
                source = source.dialect(Dialect { delimiter, ..Dialect::default() });
            }
            match format.filter(|_| is_file) {
                Some(format) => source.format(format),
                None => source,
            }
        };
        let table = NewTable {
            output,
            force: self.force,
            making,
            publisher_key: self.publisher_key,
            next_key: next_key.transpose()?,
            succeeds: self.succeeds,
            hand_over_to: self.hand_over_to,
        };
        Ok((table, Box::new(read)))
    }
}

/// What an argument stands for, or an error that names it.
fn of<T>(argument: &str, read: Result<T>) -> Result<T> {
    read.map_err(|error| error.within(format!("`{argument}`")))
}

/// Builds a table of `inputs`. `progress` is called with a stage, and with how many bytes are done
/// of how many.
#[pyfunction]
pub(crate) fn build<'py>(
    py: Python<'py>,
    inputs: Vec<Input>,
    path: PathBuf,
    options: BuildArguments,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (table, read) = options.checked(path).raise(py)?;
    let built = waiting::in_a_thread(py, progress, move |stopped, tell| {
        let sources = inputs.into_iter().map(|input| read(input, stopped)).collect();
        match publish::build(&table, sources, tell)? {
            Built::Table(built) => Ok(built),
            // There is no report of a table that was not built.
            Built::Completed(completed) => Err(Error::api_misuse(completed)),
        }
    })?;
    Ok(pythonize(py, &built)?)
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
    let next_key = next_key.map(|digest| of("next_key", digest.parse())).transpose().raise(py)?;
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
