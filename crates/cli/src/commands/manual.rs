//! `privet completions` and `privet man`: completion scripts for shells, and manual pages. Both
//! follow from the command's definition.

use crate::arguments::{Arguments, Completions, Man};
use crate::display;
use clap::CommandFactory as _;
use privet_core::{Error, Result};

/// Prints a script for the shell.
pub(crate) fn completions(arguments: &Completions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "privet", &mut script);
    display::write_out(&script)
}

/// Writes one page for each command to the directory, or prints the main page.
pub(crate) fn pages(arguments: &Man) -> Result<()> {
    let Some(directory) = &arguments.directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Arguments::command())
            .render(&mut page)
            .map_err(|error| Error::unavailable("the page cannot be written").caused_by(error))?;
        display::write_out(&page)?;
        return Ok(());
    };
    let written = std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), directory));
    written.map_err(|error| {
        let words = format!("cannot write to {}; choose another directory", directory.display());
        Error::api_misuse(words).caused_by(error)
    })
}
