//! Privet for Python: what the package `privet` cannot do in Python itself.
//!
//! | module | what it holds |
//! |---|---|
//! | [`client`] | an open client: lookups that Ctrl-C interrupts, and lookups that call back |
//! | [`server`] | a server in this process, for tests and notebooks |
//! | [`publish`] | tables that are built, updated and inspected |
//! | [`arguments`] | keyword arguments, named and written as those of the command |
//! | [`measure`] | the reports of `plan` and `bench` |
//! | [`command`] | the command |
//! | [`arrow_cells`] | rows of Arrow's record batches, for tables |
//! | [`arrow_values`] | values of lookups, as Arrow's record batches |
//! | [`news`] | what happens while a caller waits, and the first word on a silent server |
//! | [`errors`] | Privet's errors as Python's exceptions |
//! | [`waiting`] | waits that Ctrl-C interrupts |
//!
//! Everything else, the documentation for users included, is in `python/privet`.

mod arguments;
mod arrow_cells;
mod arrow_values;
mod client;
mod command;
mod errors;
mod measure;
mod news;
mod publish;
mod server;
mod waiting;

use pyo3::prelude::*;

/// What the package `privet` is made of.
#[pymodule]
mod _privet {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::arrow_values::stream;
    #[pymodule_export]
    use super::client::Client;
    #[pymodule_export]
    use super::command::{run_command, set_program};
    #[pymodule_export]
    use super::errors::is_final;
    #[pymodule_export]
    use super::measure::{bench, plan};
    #[pymodule_export]
    use super::publish::{build, inspect, keygen, update};
    #[pymodule_export]
    use super::scheme_names;
    #[pymodule_export]
    use super::server::Server;

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        privet_laboratory::register();
        Ok(())
    }
}

/// The names of all schemes.
#[pyfunction]
fn scheme_names() -> Vec<String> {
    privet_schemes::SchemeId::all().map(|scheme| scheme.to_string()).collect()
}
