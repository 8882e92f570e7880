//! The command, as `privet` and `python -m privet` run it; and its reports, for Python.

use crate::arrow_cells::ArrowCells;
use crate::errors::{self, Raise as _};
use crate::waiting::{self, Next};
use arrow::ffi_stream::RecordBatchStreamReader;
use arrow::pyarrow::FromPyArrow as _;
use privet_cli::Given;
use privet_core::Error;
use privet_table::build::Stage;
use privet_table::import::Source;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// Says how to start the command as a process of its own.
#[pyfunction]
pub(crate) fn set_program(words: Vec<OsString>) {
    privet_cli::set_program(words);
}

/// Runs the command as it was typed, and returns its exit code.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, typed: Vec<OsString>) -> u8 {
    py.detach(|| privet_cli::run(typed))
}

/// The report of a command as JSON. `rows` are names of inputs and objects with Arrow's stream.
/// `progress` is called with a stage, and with how many bytes are done of how many.
#[pyfunction]
#[pyo3(signature = (
    typed, rows=vec![], value_columns=vec![], set=vec![], delete=vec![], progress=None,
))]
pub(crate) fn report(
    py: Python<'_>,
    typed: Vec<OsString>,
    rows: Vec<(String, Bound<'_, PyAny>)>,
    value_columns: Vec<String>,
    set: Vec<(String, String)>,
    delete: Vec<String>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let rows = rows.into_iter().map(|(name, rows)| Ok((name, stream(&rows)?)));
    let rows = rows.collect::<PyResult<Vec<_>>>()?;
    let (sender, mut messages) = mpsc::channel();
    let stopped = Arc::new(AtomicBool::new(false));
    let stops = Arc::clone(&stopped);
    let work = move || {
        let rows = rows.into_iter().map(|(name, batches)| {
            Source::cells(name, ArrowCells::new(Box::new(batches), Arc::clone(&stops)))
        });
        let given = Given { rows: rows.collect(), value_columns, set, delete };
        let outcome = privet_cli::report(typed, given, &mut |progress| {
            let _ = sender.send(Message::Progress(progress));
            match stops.load(Ordering::Relaxed) {
                true => Err(Error::api_misuse("it was interrupted")),
                false => Ok(()),
            }
        });
        let _ = sender.send(Message::Outcome(outcome));
    };
    let spawned = std::thread::Builder::new().name("privet-report".to_owned()).spawn(work);
    spawned
        .map_err(|error| Error::unavailable("the system gives no thread").caused_by(error))
        .raise(py)?;
    let mut wait = || {
        loop {
            match waiting::next(py, &mut messages, None, |_| Ok(()))? {
                Next::Message(Message::Outcome(outcome)) => return outcome.raise(py),
                Next::Message(Message::Progress(told)) => {
                    // Only the latest of what came meanwhile is worth the call.
                    let mut told = told;
                    let mut outcome = None;
                    for message in messages.try_iter() {
                        match message {
                            Message::Progress(later) => told = later,
                            Message::Outcome(last) => outcome = Some(last),
                        }
                    }
                    if let Some(progress) = &progress {
                        progress.call1((stage(told.stage), told.bytes_done, told.bytes_total))?;
                    }
                    if let Some(outcome) = outcome {
                        return outcome.raise(py);
                    }
                    py.check_signals()?;
                }
                Next::Ended | Next::TimeIsUp => {
                    return Err(errors::ended("the thread of the command"));
                }
            }
        }
    };
    // The thread ends at its next row or stage, and leaves the output as it was.
    wait().inspect_err(|_| stopped.store(true, Ordering::Relaxed))
}

enum Message {
    Progress(privet_table::build::Progress),
    Outcome(privet_core::Result<String>),
}

fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Guessing => "looking at the columns",
        Stage::Reading => "reading",
        Stage::Packing => "packing",
        Stage::Hashing => "hashing",
        _ => "writing",
    }
}

/// The record batches of an object with Arrow's stream.
fn stream(rows: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    RecordBatchStreamReader::from_pyarrow_bound(rows)
}
