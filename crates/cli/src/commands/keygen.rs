//! `privet keygen`: the key with which a table's owner signs its updates.

use crate::arguments::Keygen;
use crate::display::{self, Page};
use crate::exit::Outcome;
use privet_core::Result;
use privet_table::update_log::PublisherKey;
use serde::Serialize;

/// Makes a key, writes it, and returns its public half.
pub(crate) fn report(arguments: &Keygen) -> Result<Report> {
    let key = PublisherKey::generate()?;
    key.create_file(&arguments.output)?;
    Ok(Report { file: arguments.output.display().to_string(), publisher: key.id().to_string() })
}

/// Makes a key, and prints its public half.
pub(crate) fn run(arguments: &Keygen) -> Result<Outcome> {
    let report = report(arguments)?;
    display::report(arguments.json, &report, || report.page())?;
    Ok(Outcome::Done)
}

#[derive(Serialize)]
pub(crate) struct Report {
    file: String,
    publisher: String,
}

impl Report {
    fn page(&self) -> Page {
        let mut page = Page::default();
        page.line(format!("{} has a new secret key", self.file));
        page.entry("publisher", &self.publisher);
        page.line(
            "Whoever has this file can sign updates in the publisher's name. Without it, a table that it has signed can be built anew, and not updated: keep a copy.",
        );
        page
    }
}
