//! Privet's errors as Python's exceptions. Their classes are in `python/privet/_errors.py`.

use privet_cli::printable_lines;
use privet_core::{Blame, Error, Reason};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Which class stands for which blame. All others are `InternalError`.
const CLASSES: [(Blame, &str); 8] = [
    (Blame::ApiMisuse, "UsageError"),
    (Blame::InvalidMessage, "PeerError"),
    (Blame::PeerMisbehaved, "PeerError"),
    (Blame::Integrity, "IntegrityError"),
    (Blame::Exhausted, "ExhaustedError"),
    (Blame::Selective, "SelectiveError"),
    (Blame::Corrupted, "CorruptedError"),
    (Blame::Unavailable, "UnavailableError"),
];

/// Whether nobody may try again after an exception of this class.
#[pyfunction]
pub(crate) fn is_final(class_name: &str) -> bool {
    CLASSES.iter().any(|(blame, name)| *name == class_name && blame.is_final())
}

/// An error as the exception of its blame.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    match exception(py, error) {
        Ok(exception) => PyErr::from_value(exception),
        Err(failure) => failure,
    }
}

/// The exception, not raised.
pub(crate) fn exception<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let classes = MODULE
        .get_or_try_init(py, || PyResult::Ok(PyModule::import(py, "privet._errors")?.unbind()))?;
    let class = CLASSES.iter().find(|(blame, _)| *blame == error.blame());
    let class = class.map_or("InternalError", |(_, class)| *class);
    let way_out = error.reason().and_then(way_out).unwrap_or_default();
    // A server may have worded it, and a terminal may show it.
    classes.bind(py).getattr(class)?.call1((printable_lines(&format!("{error}{way_out}")),))
}

/// The argument that solves an error of a table's owner, as a sentence goes on with it.
fn way_out(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::OutputExists => " with `force`",
        Reason::NothingToChange => {
            ": `set`, `delete`, `from_` or `replace_with`; or `compact` or `hand_over_to`"
        }
        Reason::NoKeyColumn => " (`key`)",
        Reason::HistoryNotBegun => " (`begin_history`)",
        Reason::NextKeyNeeded => " (`hand_over_to`)",
        Reason::NotCompacted => " (`compact`)",
        _ => return None,
    })
}

/// Something in this process that ended on its own.
pub(crate) fn ended(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("{what} has ended; please report this"))
}

/// The result with its error as an exception.
pub(crate) trait Raise<T> {
    fn raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> Raise<T> for privet_core::Result<T> {
    fn raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raised(py, &error))
    }
}
