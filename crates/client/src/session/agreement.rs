//! Whether servers agree: each with the first server, and each with its own earlier description.
//!
//! Answers of different servers belong together only if the servers have the same table, byte for
//! byte, and answer by the same scheme with the same parameters. And a server's description must
//! not change once a client has begun to ask. In both cases a server that differs gets no query.

use super::interface::ChosenTable;
use privet_core::{Epoch, Error, Reason, TableDigest, TableId};
use privet_wire::{SchemeDescription, ServerDescription};

/// What to call a server in messages: a session knows only its place among the addresses.
pub(super) fn server_name(server: usize, servers: usize) -> String {
    match (server, servers) {
        (_, 1) => "the server".to_owned(),
        (0, _) => "the first server".to_owned(),
        (1, _) => "the second server".to_owned(),
        (2, _) => "the third server".to_owned(),
        _ => format!("server number {}", server + 1),
    }
}

/// How a server's description of the chosen table differs.
pub(super) enum Difference {
    /// It has no table of that name; it has these.
    Missing(Vec<String>),
    /// Another table has that name.
    Table(TableId),
    /// It does not serve the version, but this one.
    Version(Epoch),
    /// Other contents, or another shape, in the same version.
    Contents,
    /// Another layout: keys and values lie elsewhere in the records.
    Layout,
    /// It does not serve the table by the chosen scheme.
    Scheme,
    /// It does, with other parameters.
    Parameters,
    /// It does, with another hint.
    Hint,
}

/// Compares what `description` says of the chosen table with what the servers said when it was
/// chosen. `None`: the same.
pub(super) fn difference(
    chosen: &ChosenTable,
    description: &ServerDescription,
) -> Option<Difference> {
    let Some(table) = description.table(&chosen.name) else {
        let names = description.tables.iter().map(|table| table.name.clone());
        return Some(Difference::Missing(names.collect()));
    };
    let SchemeDescription { plan, .. } = &chosen.scheme;
    let said = &chosen.identity;
    // The version may be an earlier one that is still served, or of a table with a successor.
    let Some(newest) = table.versions_of(said.id).next() else {
        return Some(Difference::Table(table.identity.id));
    };
    let mut versions = table.versions_of(said.id);
    let version = versions.find(|version| version.identity.epoch == said.epoch);
    let Some(table) = version else { return Some(Difference::Version(newest.identity.epoch)) };
    if table.identity != *said {
        Some(Difference::Contents)
    } else if table.layout != chosen.layout {
        Some(Difference::Layout)
    } else if table.schemes.contains(&chosen.scheme) {
        None
    } else if table.schemes.iter().any(|scheme| scheme.plan == *plan) {
        Some(Difference::Hint)
    } else if table.scheme(plan.scheme).is_some() {
        Some(Difference::Parameters)
    } else {
        Some(Difference::Scheme)
    }
}

/// The error if, `between` two servers, the second describes the chosen table differently from the
/// first. If it serves another table or another scheme, the user named or the operators started a
/// wrong server. If the two differ on what the same table is, one of them may lie.
pub(super) fn disagreement(
    chosen: &ChosenTable,
    between: [usize; 2],
    descriptions: &[ServerDescription],
    difference: Difference,
) -> Error {
    let (name, scheme) = (&chosen.name, chosen.scheme.plan.scheme);
    let [first, other] = between.map(|server| server_name(server, descriptions.len()));
    let one_lies =
        "One of them has another file or does not tell the truth: ask those who run them";
    let offered: Vec<_> = descriptions
        .iter()
        .map(|description| description.table(name).map_or(&[][..], |table| &table.schemes[..]))
        .collect();
    let (what, advice) = match &difference {
        Difference::Missing(names) => {
            let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            (
                format!("{other} has no table called {name}, which {first} has; it has: {has}"),
                "They have to serve the same table under the same name",
            )
        }
        Difference::Table(id) => (
            format!(
                "{other} has another table under the name {name} than {first} (id {id}, not {})",
                chosen.identity.id
            ),
            "They have to serve the same table",
        ),
        Difference::Version(epoch) => (
            format!(
                "{other} has version {} of table {name}, {first} has version {}",
                epoch.0, chosen.identity.epoch.0
            ),
            "If the table is being updated, try again when they have the same version",
        ),
        Difference::Contents => (
            format!(
                "{other} has other contents of table {name} than {first} under the same version, {}",
                chosen.identity.epoch.0
            ),
            one_lies,
        ),
        Difference::Layout => (
            format!("{other} describes another record layout for table {name} than {first}"),
            one_lies,
        ),
        Difference::Hint => (
            format!("{other} describes another {scheme} hint for table {name} than {first}"),
            one_lies,
        ),
        Difference::Scheme => (
            format!(
                "{other} does not serve table {name} by {scheme}, as {first} does: {}",
                served_by(name, &offered)
            ),
            match scheme.verifies() {
                true => {
                    "They have to be started with the same scheme. A server that cannot answer truly may hide a scheme that verifies answers: ask those who run them, and do not use a scheme that verifies none instead"
                }
                false => {
                    "They have to be started with the same scheme; or name one that all of them offer"
                }
            },
        ),
        Difference::Parameters => (
            format!("{other} serves table {name} by {scheme} with other parameters than {first}"),
            "They have to be started with the same parameters",
        ),
    };
    let message = format!("{what}; nothing was asked. {advice}");
    match difference {
        Difference::Scheme if !scheme.verifies() => {
            Error::api_misuse(message).because(Reason::SchemeNotOffered)
        }
        Difference::Version(_) => Error::integrity(message).because(Reason::VersionsDiffer),
        Difference::Missing(_) | Difference::Scheme | Difference::Parameters => {
            Error::api_misuse(message).because(Reason::ServersDisagree)
        }
        _ => Error::integrity(message).because(Reason::ServersDisagree),
    }
}

/// The error if server number `server` of `servers` changes its description in the middle of a
/// session.
pub(super) fn changed_midway(
    chosen: &ChosenTable,
    server: usize,
    servers: usize,
    difference: Difference,
) -> Error {
    let (name, server) = (&chosen.name, server_name(server, servers));
    let now = match difference {
        Difference::Missing(_) => format!("no longer serves table {name}"),
        Difference::Table(_) => format!("now serves another table as table {name}"),
        Difference::Version(epoch) => format!(
            "went from version {} to version {} of table {name}",
            chosen.identity.epoch.0, epoch.0
        ),
        Difference::Contents => {
            format!("changed the contents of table {name} under the same version")
        }
        Difference::Layout | Difference::Hint => {
            format!("changed the record layout or the hint of table {name} under the same version")
        }
        Difference::Scheme | Difference::Parameters => {
            format!("changed the scheme or the parameters that table {name} is served by")
        }
    };
    Error::integrity(format!(
        "{server} {now} while it was being used; nothing more was asked. Ask those who run it why"
    ))
}

/// The error if a server no longer serves the version whose digest the caller demands.
pub(super) fn no_longer(
    chosen: &ChosenTable,
    server: usize,
    servers: usize,
    now: Epoch,
    demanded: TableDigest,
) -> Error {
    Error::integrity(format!(
        "{} no longer serves version {} of table {}, whose digest {demanded} was demanded, but version {}; nothing more was asked. Ask whoever published the digest which one is right now",
        server_name(server, servers),
        chosen.identity.epoch.0,
        chosen.name,
        now.0
    ))
    .because(Reason::DigestDiffers)
}

/// The schemes by which the servers serve the table, in words.
pub(super) fn served_by(table: &str, offered: &[&[SchemeDescription]]) -> String {
    match offered {
        [first, others @ ..] if others.iter().any(|other| schemes(other) != schemes(first)) => {
            let each = offered.iter().enumerate().map(|(server, offered)| {
                format!("{} by {}", server_name(server, others.len() + 1), schemes(offered))
            });
            format!("table {table} is served at {}", each.collect::<Vec<_>>().join(", at "))
        }
        [first, ..] => format!("table {table} is served by {}", schemes(first)),
        [] => format!("table {table} is not served"),
    }
}

/// The names of schemes, with the number of servers of each if that differs.
fn schemes(offered: &[SchemeDescription]) -> String {
    match offered {
        [] => "schemes that this version does not know".to_owned(),
        [only] => only.plan.scheme.to_string(),
        _ => {
            let names = offered.iter().map(|scheme| match scheme.plan.servers {
                1 => format!("{} (one server)", scheme.plan.scheme),
                2 => format!("{} (two servers)", scheme.plan.scheme),
                servers => format!("{} ({servers} servers)", scheme.plan.scheme),
            });
            names.collect::<Vec<_>>().join(", ")
        }
    }
}
