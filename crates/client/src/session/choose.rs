//! Which table and scheme to use, and whether to believe what the servers say of it.

use super::agreement::{Difference, difference, disagreement, server_name};
use super::interface::{ChosenTable, KnownPin, SessionOptions};
use crate::state::Pin;
use privet_core::{Error, Result};
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::SchemePlan;
use privet_table::TableRoot;
use privet_table::digest::DigestParts;
use privet_table::update_log::{EpochHash, PublisherId};
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

/// Whoever signs a table's epochs is the same for all servers, and the one that the caller knows.
fn check_publishers(
    options: &SessionOptions,
    table: &str,
    descriptions: &[ServerDescription],
) -> Result<()> {
    let announced = descriptions.iter().map(|description| {
        let updates = description.table(table).and_then(|table| table.updates);
        updates.map(|updates| PublisherId(updates.publisher))
    });
    let mut expected = options.publisher;
    let id =
        descriptions.first().and_then(|first| first.table(table)).map(|table| table.identity.id);
    let pins =
        options.pins.iter().filter(|known| known.name == table && Some(known.pin.table.id) == id);
    for known in pins.filter(|_| !options.accept_new_table) {
        match (expected, known.pin.publisher) {
            (Some(expected), Some(pinned)) if expected != pinned => {
                return Err(Error::integrity(format!(
                    "table {table} was said to be published by {pinned} when {} was first used, and not by {expected}; nothing was asked. Ask the table's owner who publishes it",
                    server_name(known.server, options.servers)
                )));
            }
            (None, Some(pinned)) => expected = Some(pinned),
            _ => {}
        }
    }
    for (server, publisher) in announced.enumerate() {
        let name = server_name(server, options.servers);
        match (expected, publisher) {
            (Some(expected), Some(publisher)) if expected != publisher => {
                return Err(Error::integrity(format!(
                    "{name} says that table {table} is published by {publisher}, and not by {expected}; nothing was asked. Ask the table's owner who publishes it, and accept what the server says if that is right (--accept-new-table)"
                )));
            }
            (None, Some(_)) => expected = publisher,
            _ => {}
        }
    }
    match options.publisher {
        Some(publisher)
            if descriptions.iter().all(|description| {
                description.table(table).is_none_or(|table| table.updates.is_none())
            }) =>
        {
            Err(Error::integrity(format!(
                "no server says who signs the updates of table {table}, so that it is the one published by {publisher} cannot be known; nothing was asked. Leave out the publisher (--publisher) if the table has none"
            )))
        }
        _ => Ok(()),
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

/// What to remember of the table: that it is published by `publisher`, and that the epoch `last_epoch` has made it what it is, if these are known.
pub(super) fn pin_of(
    chosen: &ChosenTable,
    publisher: Option<PublisherId>,
    last_epoch: Option<EpochHash>,
) -> Pin {
    Pin {
        table: chosen.identity,
        parameter_digest: chosen.scheme.parameter_digest,
        layout: chosen.layout,
        hint: chosen.scheme.hint,
        publisher,
        last_epoch,
    }
}

/// Who publishes the table: as the caller knows, or as was pinned. What the servers say of it is believed when the table is first used and no later: otherwise one that wants to show other contents some day would
/// only have to name a publisher first.
pub(super) fn publisher_of(chosen: &ChosenTable, options: &SessionOptions) -> Option<PublisherId> {
    let pins = options
        .pins
        .iter()
        .filter(|known| known.name == chosen.name && known.pin.table.id == chosen.identity.id);
    let mut pins = pins.peekable();
    let announced = chosen.updates.map(|updates| PublisherId(updates.publisher));
    let believed = match pins.peek() {
        Some(_) if !options.accept_new_table => pins.find_map(|known| known.pin.publisher),
        _ => announced,
    };
    options.publisher.or(believed)
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

/// Checks that no more has to be received before the first lookup, nor kept for it, than is
/// allowed. All sizes follow from what the servers announce, and nothing larger is taken later.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is more.
pub(super) fn check_download(chosen: &ChosenTable, options: &SessionOptions) -> Result<()> {
    let plan = &chosen.scheme.plan;
    let (what, len, servers) = match plan.offline {
        OfflinePhase::Nothing => ("the record layout", 0, 1),
        OfflinePhase::Download { len } => ("the hint and the record layout", len, 1),
        OfflinePhase::KeepTable { len } => ("the whole table and its layout", len, 1),
        OfflinePhase::StreamTable { len } | OfflinePhase::StreamShuffled { len } => {
            let servers = if options.compare_streams { options.servers as u64 } else { 1 };
            ("the whole table, which is streamed, and its layout", len, servers)
        }
        OfflinePhase::Ask { .. } => {
            ("what a server computes for this client, and the record layout", plan.offline.len(), 1)
        }
        _ => ("what comes before the first lookup", plan.offline.len(), 1),
    };
    let announced = chosen.scheme.hint.map_or(0, |part| part.len).max(len);
    let received = announced.saturating_mul(servers).saturating_add(chosen.layout.len);
    let kept = plan.hints_len(&chosen.identity);
    let (scheme, name, limit) = (plan.scheme, &chosen.name, options.max_download);
    if received > limit {
        return Err(Error::api_misuse(format!(
            "to look records of table {name} up by {scheme}, {what} must be received: {received} bytes, more than the {limit} that are allowed; nothing was fetched. If you want to receive that much, allow it (--max-download)"
        )));
    }
    if kept > limit {
        return Err(Error::api_misuse(format!(
            "to look records of table {name} up by {scheme}, hints of {kept} bytes must be kept, more than the {limit} that are allowed; nothing was fetched. If you want to keep that much, allow it (--max-download)"
        )));
    }
    Ok(())
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

/// How what is served relates to what was pinned.
pub(super) enum Standing {
    /// It is what was pinned, or nothing was.
    AsPinned,
    /// It is a later version, and the epochs that lead to it from this pin can be had, signed by a publisher who is known.
    Behind(Box<Pin>),
}

/// Compares what is served with what was pinned.
///
/// # Errors
/// [`Blame::Integrity`](privet_core::Blame::Integrity) if they differ, and how, and what to do.
pub(super) fn standing(chosen: &ChosenTable, options: &SessionOptions) -> Result<Standing> {
    let seen = pin_of(chosen, None, None);
    let pins = options.pins.iter().filter(|known| known.name == chosen.name);
    let mut behind: Option<&Pin> = None;
    for KnownPin { server, pin, .. } in pins {
        // Which server matters only where there are several.
        let at = match options.servers {
            1 => String::new(),
            servers => format!("of {} ", server_name(*server, servers)),
        };
        let refused = |what: &str, advice: &str| {
            Err(Error::integrity(format!(
                "table {} {at}{what}; nothing was asked. If you expected this change, accept the new table (--accept-new-table){advice}",
                chosen.name
            )))
        };
        let announced = chosen.updates.map(|updates| PublisherId(updates.publisher));
        if pin.table.id == seen.table.id
            && let (Some(then), Some(now)) = (pin.publisher, announced)
            && then != now
        {
            return refused(
                &format!("is said to be published by {now}, and was by {then} before"),
                "",
            );
        }
        if pin.agrees_with(&seen) {
            continue;
        }
        let (then, now) = (pin.table.epoch.0, seen.table.epoch.0);
        if pin.table.id == seen.table.id && then < now {
            let updated = format!("was updated from version {then} to version {now}");
            // As in one version: otherwise a server could have its clients use a scheme that promises less.
            let plan = &chosen.scheme.plan;
            let then_plan =
                SchemePlan::from_announcement(plan.scheme, &pin.table, &plan.parameters);
            let same = then_plan.is_ok_and(|then| then.digest(&pin.table) == pin.parameter_digest);
            if !same && options.scheme != Some(plan.scheme) {
                return refused(
                    &format!(
                        "{updated}, and is served with another scheme or other parameters than before"
                    ),
                    "",
                );
            }
            let trusted = options.publisher.or(pin.publisher);
            match (trusted, chosen.updates) {
                (None, Some(updates)) => {
                    return refused(
                        &format!("{updated}, and who publishes it was not known before"),
                        &format!(
                            ", or name the publisher if you know that it is {} (--publisher)",
                            PublisherId(updates.publisher)
                        ),
                    );
                }
                (Some(_), Some(updates)) if updates.first_epoch <= pin.table.epoch => {
                    let lower = behind.is_none_or(|lowest| pin.table.epoch < lowest.table.epoch);
                    behind = if lower { Some(pin) } else { behind };
                    continue;
                }
                (Some(_), Some(updates)) => {
                    return refused(
                        &format!(
                            "{updated}, and the epochs between are no longer to be had: those after version {} are",
                            updates.first_epoch.0
                        ),
                        "",
                    );
                }
                (_, None) => return refused(&updated, ""),
            }
        }
        let what = if pin.table.id != seen.table.id {
            &format!(
                "is another table than before (id {} then, {} now)",
                pin.table.id, seen.table.id
            )
        } else if then > now {
            &format!("went back from version {then} to version {now}")
        } else if pin.table != seen.table {
            "has other contents than before under the same version: the server may be showing different clients different tables"
        } else if pin.parameter_digest != seen.parameter_digest {
            "is served with another scheme or other parameters than before"
        } else {
            "has another record layout or hint than before under the same version: the server may be showing different clients different ones"
        };
        return refused(what, "");
    }
    Ok(behind.map_or(Standing::AsPinned, |pin| Standing::Behind(Box::new(*pin))))
}
