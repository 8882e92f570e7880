//! The command, as `privet` and `python -m privet` run it.

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
