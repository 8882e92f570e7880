//! `privet keygen`: the key with which a table's owner signs its updates.

use crate::arguments::Keygen;
use crate::display::{self, Page};
use privet_core::Result;
use privet_table::update_log::{NextKeyDigest, PublisherKey};
use serde_json::json;
use std::path::Path;

/// Makes a key, writes it, and prints its public half.
pub(crate) fn run(arguments: &Keygen) -> Result<()> {
    let key = PublisherKey::generate()?;
    key.create_file(&arguments.output)?;
    let (name, made) = match arguments.next {
        true => ("next_key", key.id().as_next_key().to_string()),
        false => ("publisher", key.id().to_string()),
    };
    let file = arguments.output.display().to_string();
    display::report(arguments.json, &json!({ "file": file, name: made }), || {
        let mut page = Page::default();
        page.line(format!("{file} has a new secret key"));
        page.entry(&name.replace('_', " "), &made);
        page.line(match arguments.next {
            true => {
                "Build tables with this digest. The key is needed once a table is handed on, and \
                 when the publisher's key was stolen: keep it offline, and a copy. If both keys \
                 are lost, clients have to accept the table anew."
            }
            false => {
                "Whoever has this file can sign updates in the publisher's name. Without it, tables \
                 that it has signed take no more updates: keep a copy. A thief of it can also lead \
                 clients to a table of his own, for good, unless the table names a next key \
                 (`privet keygen --next`)."
            }
        });
        page
    })
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
