//! `privet keygen`: the key with which a table's owner signs its updates.

use crate::arguments::Keygen;
use crate::display::{self, Page};
use crate::exit::Outcome;
use privet_core::Result;
use privet_table::update_log::{NextKeyDigest, PublisherKey};
use serde::Serialize;
use std::path::Path;

/// Makes a key, writes it, and returns its public half.
pub(crate) fn report(arguments: &Keygen) -> Result<KeygenReport> {
    let key = PublisherKey::generate()?;
    key.create_file(&arguments.output)?;
    Ok(KeygenReport {
        file: arguments.output.display().to_string(),
        publisher: (!arguments.next).then(|| key.id().to_string()),
        next_key: arguments.next.then(|| key.id().as_next_key().to_string()),
    })
}

/// Makes a key, and prints its public half.
pub(crate) fn run(arguments: &Keygen) -> Result<Outcome> {
    let report = report(arguments)?;
    display::report(arguments.json, &report, || report.page())?;
    Ok(Outcome::Done)
}

/// Says so if a table was handed to the key in the file `to`, and no next key was named.
pub(crate) fn notice_no_next_key(to: Option<&Path>, next: Option<NextKeyDigest>) {
    if let (Some(to), None) = (to, next) {
        display::notice(&format!(
            "no next key was named (--next-key): whoever steals {} can lead clients to another \
             table",
            to.display()
        ));
    }
}

#[derive(Serialize)]
pub(crate) struct KeygenReport {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    publisher: Option<String>,
    /// The digest of a next key.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_key: Option<String>,
}

impl KeygenReport {
    fn page(&self) -> Page {
        let mut page = Page::default();
        page.line(format!("{} has a new secret key", self.file));
        if let Some(next_key) = &self.next_key {
            page.entry("next key", next_key);
            page.line(
                "Build tables with this digest. The key is needed once a table is handed on, and \
                 when the publisher's key was stolen: keep it offline, and a copy. If both keys \
                 are lost, clients have to accept the table anew.",
            );
            return page;
        }
        page.entry("publisher", self.publisher.as_deref().unwrap_or_default());
        page.line(
            "Whoever has this file can sign updates in the publisher's name. Without it, tables \
             that it has signed take no more updates: keep a copy. A thief of it can also lead \
             clients to a table of his own, for good, unless the table names a next key \
             (`privet keygen --next`).",
        );
        page
    }
}
