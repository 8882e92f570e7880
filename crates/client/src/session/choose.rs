//! Which table and scheme to use, and whether what the servers say of it can be.

use super::agreement::{Difference, difference, disagreement, server_name};
use super::interface::{ChosenTable, SessionOptions};
use super::pins::check_publishers;
use privet_core::{Error, Result};
use privet_schemes::offline::OfflinePhase;
use privet_table::TableRoot;
use privet_table::digest::DigestParts;
use privet_wire::{SchemeDescription, ServerDescription, TableDescription};

/// Chooses table and scheme from what each server described, in order. All must agree. Returns the table in every version that all of them serve, the latest first: at least one.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the options do not single out a table and scheme that all servers serve,
/// [`Blame::Integrity`](privet_core::Blame::Integrity) if they differ on what the table is.
pub(super) fn choose(
    options: &SessionOptions,
    descriptions: &[ServerDescription],
) -> Result<Vec<ChosenTable>> {
    let Some(first) = descriptions.first() else {
        return Err(Error::api_misuse("a session needs at least one server"));
    };
    let table = choose_table(options, first)?;
    check_publishers(options, &table.name, descriptions)?;
    let (mut common, mut behind) = (Vec::new(), None);
    for version in table.versions() {
        let is_current = version.identity == table.identity;
        let scheme = match choose_scheme(options, version) {
            Ok(scheme) => scheme,
            Err(error) if is_current => return Err(error),
            Err(_) => continue,
        };
        let chosen = ChosenTable {
            software: first.software.clone(),
            name: table.name.clone(),
            identity: version.identity,
            layout: version.layout,
            scheme: scheme.clone(),
            updates: table.updates,
        };
        let others = descriptions.iter().enumerate().skip(1);
        let differs = others
            .filter_map(|(server, description)| Some((server, difference(&chosen, description)?)))
            .next();
        match differs {
            None => common.push(chosen),
            // While a table is being updated, some servers are ahead. All of them serve the version before for a while.
            Some((server, Difference::Version(_))) => {
                behind.get_or_insert((chosen, server));
            }
            Some((server, difference)) if is_current => {
                return Err(disagreement(&chosen, server, descriptions.len(), difference));
            }
            Some(_) => {}
        }
    }
    match (common.is_empty(), behind) {
        (true, Some((chosen, server))) => {
            let version =
                descriptions[server].table(&chosen.name).map(|table| table.identity.epoch);
            let difference = Difference::Version(version.unwrap_or(chosen.identity.epoch));
            Err(disagreement(&chosen, server, descriptions.len(), difference))
        }
        _ => Ok(common),
    }
}

fn choose_table<'d>(
    options: &SessionOptions,
    description: &'d ServerDescription,
) -> Result<&'d TableDescription> {
    let names = || {
        description.tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let server = server_name(0, options.servers);
    match (&options.table, description.tables.as_slice()) {
        (_, []) => Err(Error::api_misuse(format!("{server} serves no table"))),
        (None, [only]) => Ok(only),
        (None, _) => Err(Error::api_misuse(format!(
            "{server} has several tables, choose one by name (--table): {}",
            names()
        ))),
        (Some(name), _) => description.table(name).ok_or_else(|| {
            Error::api_misuse(format!("{server} has no table called {name:?}; it has: {}", names()))
        }),
    }
}

fn choose_scheme<'d>(
    options: &SessionOptions,
    table: &'d TableDescription,
) -> Result<&'d SchemeDescription> {
    let given = options.servers;
    let fits = |scheme: &&SchemeDescription| scheme.plan.servers == given;
    // The choice is made from what the first server says. Whether others say the same is looked at later.
    let name = match given {
        1 => format!("table {}", table.name),
        _ => format!("at {}, table {}", server_name(0, given), table.name),
    };
    if let Some(wanted) = options.scheme {
        let offered = table.scheme(wanted).ok_or_else(|| {
            let schemes = schemes(table);
            Error::api_misuse(format!("{name} is not served by {wanted}; it is by: {schemes}"))
        })?;
        return Some(offered).filter(fits).ok_or_else(|| {
            Error::api_misuse(format!("{wanted} {}", takes_other(offered.plan.servers, given)))
        });
    }
    table.schemes.iter().find(fits).ok_or_else(|| {
        Error::api_misuse(match table.schemes.as_slice() {
            [] => format!("{name} is served by {}", schemes(table)),
            [SchemeDescription { plan, .. }] => format!(
                "{name} is served by {}, which {}",
                plan.scheme,
                takes_other(plan.servers, given)
            ),
            _ => format!(
                "{name} is served by {}, and {}; name as many as one of them takes",
                schemes(table),
                were_named(given)
            ),
        })
    })
}

/// What to do about a scheme that takes `servers` servers when another number was named. Goes on from the scheme's name.
fn takes_other(servers: usize, given: usize) -> String {
    let named = were_named(given);
    match servers {
        1 => format!("takes one server, and {named}: name one address"),
        2 => format!(
            "takes two servers, run by parties that do not collude, and {named}: name the addresses of both"
        ),
        _ => format!(
            "takes {servers} servers, run by parties that do not collude, and {named}: name the addresses of all"
        ),
    }
}

fn were_named(given: usize) -> String {
    match given {
        1 => "one was named".to_owned(),
        2 => "two were named".to_owned(),
        _ => format!("{given} were named"),
    }
}

fn schemes(table: &TableDescription) -> String {
    if table.schemes.is_empty() {
        return "schemes that this version does not know".to_owned();
    }
    let names = table.schemes.iter().map(|scheme| match scheme.plan.servers {
        1 => format!("{} (one server)", scheme.plan.scheme),
        2 => format!("{} (two servers)", scheme.plan.scheme),
        servers => format!("{} ({servers} servers)", scheme.plan.scheme),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// Checks that the table has the root that the caller knows, if there is one. It follows from what was announced, so this comes before anything else is believed or kept.
///
/// # Errors
/// [`Blame::Integrity`](privet_core::Blame::Integrity) if it has another.
pub(super) fn check_root(chosen: &ChosenTable, options: &SessionOptions) -> Result<()> {
    let Some(root) = options.root else { return Ok(()) };
    if TableRoot::of(chosen.identity.shape, chosen.layout.digest) == root {
        return Ok(());
    }
    Err(Error::integrity(format!(
        "table {} does not have the root that was given (--root): it is another table or another version, or was built without --authenticate, or is not what its owner built; nothing was asked",
        chosen.name
    )))
}

/// Checks that a table that is to be received is the one that is described: the digest of its records and that of its layout must come to the table's own. So
/// that the digest that every received byte is checked against is as good as the one that is pinned.
///
/// # Errors
/// [`Blame::Integrity`](privet_core::Blame::Integrity) if they do not.
pub(super) fn check_table_digest(chosen: &ChosenTable) -> Result<()> {
    let (OfflinePhase::StreamTable { .. } | OfflinePhase::KeepTable { .. }, Some(records)) =
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

/// Checks that what is fetched to be kept, which is for the servers to say, is no more than `limit` bytes. What is streamed is not kept, and has bounds of its own.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is more.
pub(super) fn check_download(chosen: &ChosenTable, limit: u64) -> Result<()> {
    let what = match chosen.scheme.plan.offline {
        OfflinePhase::Download { .. } => "the hint for",
        OfflinePhase::KeepTable { .. } => "all of",
        _ => return Ok(()),
    };
    let len = chosen.scheme.hint.map_or(0, |part| part.len);
    if len <= limit {
        return Ok(());
    }
    let (scheme, name) = (chosen.scheme.plan.scheme, &chosen.name);
    Err(Error::api_misuse(format!(
        "{scheme} keeps {what} table {name} on this side: {len} bytes, more than the {limit} that are allowed; nothing was fetched. If you want to keep that much, allow it (--max-download)"
    )))
}

/// Checks that there is something to compare if the options ask for that.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is not.
pub(super) fn check_comparable(chosen: &ChosenTable, options: &SessionOptions) -> Result<()> {
    let scheme = chosen.scheme.plan.scheme;
    let streams = matches!(
        chosen.scheme.plan.offline,
        OfflinePhase::StreamTable { .. } | OfflinePhase::StreamShuffled { .. }
    );
    if !options.compare_streams || (streams && options.servers > 1) {
        return Ok(());
    }
    Err(Error::api_misuse(format!(
        "by {scheme} no table is streamed from two servers, so there is nothing to compare; nothing was asked. Leave out --compare-streams"
    )))
}
