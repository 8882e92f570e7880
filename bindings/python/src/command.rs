//! The command, as `privet` and `python -m privet` run it; and the reports of `plan` and `bench`,
//! for Python.

use crate::publish::Input;
use crate::waiting;
use pyo3::prelude::*;
use std::ffi::OsString;

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

/// The report of `plan`, of `rows` if there are any, or of `bench`, as JSON.
#[pyfunction]
#[pyo3(signature = (typed, rows=vec![]))]
pub(crate) fn report(py: Python<'_>, typed: Vec<OsString>, rows: Vec<Input>) -> PyResult<String> {
    waiting::in_a_thread(py, None, move |stopped, _| {
        privet_cli::report(typed, rows.into_iter().map(|rows| rows.source(stopped)).collect())
    })
}
