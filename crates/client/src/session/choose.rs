//! Which table and scheme to use, and whether to believe what the servers say of it.

use super::interface::{ChosenTable, KnownPin, SessionOptions};
use crate::state::Pin;
use privet_core::{Error, Result};
use privet_schemes::offline::OfflinePhase;
use privet_table::digest::DigestParts;
use privet_wire::{SchemeDescription, ServerDescription, TableDescription};

/// Chooses table and scheme from what each server described, in order. All must agree.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the options do not single out a table and scheme that are served,
/// [`Blame::Integrity`](privet_core::Blame::Integrity) if the servers differ.
pub(super) fn choose(
    options: &SessionOptions,
    descriptions: &[ServerDescription],
) -> Result<ChosenTable> {
    let Some(first) = descriptions.first() else {
        return Err(Error::api_misuse("a session needs at least one server"));
    };
    let table = choose_table(options, first)?;
    let scheme = choose_scheme(options, table)?;
    let chosen = ChosenTable {
        software: first.software.clone(),
        name: table.name.clone(),
        identity: table.identity,
        layout: table.layout,
        scheme: scheme.clone(),
    };
    for (server, description) in descriptions.iter().enumerate().skip(1) {
        if !same(&chosen, description) {
            return Err(Error::integrity(format!(
                "server {server} describes table {} otherwise than server 0 does: they serve different versions, or one of them does not tell the truth; nothing was asked",
                chosen.name
            )));
        }
    }
    Ok(chosen)
}

fn choose_table<'d>(
    options: &SessionOptions,
    description: &'d ServerDescription,
) -> Result<&'d TableDescription> {
    let names = || {
        description.tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    match (&options.table, description.tables.as_slice()) {
        (_, []) => Err(Error::api_misuse("the server serves no table")),
        (None, [only]) => Ok(only),
        (None, _) => Err(Error::api_misuse(format!(
            "the server has several tables, choose one by name (--table): {}",
            names()
        ))),
        (Some(name), _) => description.table(name).ok_or_else(|| {
            Error::api_misuse(format!(
                "the server has no table called {name:?}; it has: {}",
                names()
            ))
        }),
    }
}

fn choose_scheme<'d>(
    options: &SessionOptions,
    table: &'d TableDescription,
) -> Result<&'d SchemeDescription> {
    let fits = |scheme: &&SchemeDescription| scheme.plan.servers == options.servers;
    if let Some(wanted) = options.scheme {
        let offered = table.scheme(wanted).ok_or_else(|| {
            Error::api_misuse(format!(
                "table {} is not served by {wanted}; it is by: {}",
                table.name,
                schemes(table)
            ))
        })?;
        return Some(offered).filter(fits).ok_or_else(|| {
            Error::api_misuse(format!(
                "{wanted} takes {} servers, {} were named",
                offered.plan.servers, options.servers
            ))
        });
    }
    table.schemes.iter().find(fits).ok_or_else(|| {
        Error::api_misuse(format!(
            "no scheme that serves table {} takes {} servers; it is served by: {}",
            table.name,
            options.servers,
            schemes(table)
        ))
    })
}

fn schemes(table: &TableDescription) -> String {
    if table.schemes.is_empty() {
        return "schemes that this version does not know".to_owned();
    }
    let names = table
        .schemes
        .iter()
        .map(|scheme| format!("{} ({} servers)", scheme.plan.scheme, scheme.plan.servers));
    names.collect::<Vec<_>>().join(", ")
}

/// Whether `description` still says of the chosen table what was said when it was chosen.
pub(super) fn same(chosen: &ChosenTable, description: &ServerDescription) -> bool {
    description.table(&chosen.name).is_some_and(|table| {
        table.identity == chosen.identity
            && table.layout == chosen.layout
            && table.schemes.contains(&chosen.scheme)
    })
}

/// The error for a server that no longer says the same, in the middle of a session.
pub(super) fn changed_midway(
    chosen: &ChosenTable,
    server: usize,
    description: &ServerDescription,
) -> Error {
    let now = match description.table(&chosen.name) {
        None => "no longer serves".to_owned(),
        Some(table) if table.identity.id != chosen.identity.id => {
            "now serves another table as".to_owned()
        }
        Some(table) if table.identity != chosen.identity => {
            format!(
                "went from version {} to version {} of",
                chosen.identity.epoch.0, table.identity.epoch.0
            )
        }
        Some(_) => "changed how it serves".to_owned(),
    };
    Error::integrity(format!(
        "server {server} {now} table {} while it was being used; nothing more was asked. Start again to look at what it serves now",
        chosen.name
    ))
}

pub(super) fn pin_of(chosen: &ChosenTable) -> Pin {
    Pin {
        table: chosen.identity.id,
        epoch: chosen.identity.epoch,
        digest: chosen.identity.digest,
        parameter_digest: chosen.scheme.parameter_digest,
        parts_digest: parts_digest(chosen),
    }
}

/// Checks that a table that is to be streamed is the one that is described: the digest of its records and that of its layout must come to the table's own. So
/// that the digest that every streamed byte is checked against is as good as the one that is pinned.
///
/// # Errors
/// [`Blame::Integrity`](privet_core::Blame::Integrity) if they do not.
pub(super) fn check_streamed(chosen: &ChosenTable) -> Result<()> {
    let (OfflinePhase::StreamTable { .. }, Some(records)) =
        (chosen.scheme.plan.offline, chosen.scheme.hint)
    else {
        return Ok(());
    };
    let parts = DigestParts { layout: chosen.layout.digest, records: records.digest };
    if parts.combine(chosen.identity.shape) == chosen.identity.digest {
        return Ok(());
    }
    Err(Error::integrity(format!(
        "the server announces digests of the layout and of the records of table {} that do not come to the table's digest: they belong to different tables, or the server is at fault; nothing was asked",
        chosen.name
    )))
}

fn parts_digest(chosen: &ChosenTable) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("privet 2026-11 digest of a table's parts");
    for part in [Some(chosen.layout), chosen.scheme.hint].into_iter().flatten() {
        hasher.update(&part.len.to_le_bytes());
        hasher.update(&part.digest);
    }
    *hasher.finalize().as_bytes()
}

/// Compares what is served with what was pinned.
///
/// # Errors
/// [`Blame::Integrity`](privet_core::Blame::Integrity) if they differ, and how, and what to do.
pub(super) fn check_pins(chosen: &ChosenTable, pins: &[KnownPin]) -> Result<()> {
    let seen = pin_of(chosen);
    for KnownPin { server, pin, .. } in pins.iter().filter(|known| known.name == chosen.name) {
        if *pin == seen {
            continue;
        }
        let (then, now) = (pin.epoch.0, seen.epoch.0);
        let what = if pin.table != seen.table {
            format!("is another table than before (id {} then, {} now)", pin.table, seen.table)
        } else if then < now {
            format!("was updated from version {then} to version {now}")
        } else if then > now {
            format!("went back from version {then} to version {now}")
        } else if pin.digest != seen.digest {
            "has other contents than before under the same version: the server may be showing different clients different tables".to_owned()
        } else if pin.parameter_digest != seen.parameter_digest {
            "is served with another scheme or other parameters than before".to_owned()
        } else {
            "has another record layout or hint than before under the same version: the server may be showing different clients different ones".to_owned()
        };
        // Which server matters only where there are several.
        let at = if pins.iter().any(|known| known.server > 0) {
            format!("of server {} ", server + 1)
        } else {
            String::new()
        };
        return Err(Error::integrity(format!(
            "table {} {at}{what}; nothing was asked. If you expected this change, accept the new table (--accept-new-table)",
            chosen.name
        )));
    }
    Ok(())
}
