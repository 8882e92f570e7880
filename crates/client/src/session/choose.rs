//! Which table and scheme to use, and whether the servers' descriptions of it can be true.

use super::agreement::{Difference, difference, disagreement, served_by, server_name};
use super::interface::ChosenTable;
use super::options::{KnownPin, SessionOptions};
use super::pins::{Told, check_publishers};
use super::shared::PlanIn;
use crate::state::Pin;
use privet_core::{Error, Reason, Result, TableId, TableIdentity};
use privet_schemes::SchemeId;
use privet_schemes::offline::OfflinePhase;
use privet_table::TableRoot;
use privet_table::digest::DigestParts;
use privet_wire::{SchemeDescription, ServerDescription, TableDescription};

/// Chooses table and scheme from what each server described, in order. All must agree. Returns the
/// table in every version that all of them serve, the latest first: at least one. Versions of a
/// table that it succeeds come behind.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the options do not single out a table and
/// scheme that all servers serve, [`Blame::Integrity`](privet_core::Blame::Integrity) if they
/// differ on what the table is.
pub(super) fn choose(
    options: &SessionOptions,
    descriptions: &[ServerDescription],
    plan_in: PlanIn,
) -> Result<Vec<ChosenTable>> {
    let Some(first) = descriptions.first() else {
        return Err(Error::api_misuse("a session needs at least one server"));
    };
    let table = choose_table(options, first)?;
    // If a server serves a successor already and another does not yet, both have the table before.
    let has = |id: TableId| {
        let has = |other: &TableDescription| other.versions_of(id).next().is_some();
        descriptions.iter().all(|description| description.table(&table.name).is_some_and(has))
    };
    let newest = table.versions().find(|version| has(version.identity.id)).unwrap_or(table);
    let id = newest.identity.id;
    let told = Told::by(descriptions, (&table.name, id));
    check_publishers(options, (&table.name, id), &told)?;
    let (mut common, mut behind) = (Vec::new(), None);
    for version in table.versions().skip_while(|version| version.identity.id != id) {
        let is_current = version.identity == newest.identity;
        let offer = match choose_scheme(options, version, descriptions, plan_in) {
            Ok(offer) => offer,
            Err(error) if is_current => return Err(error),
            Err(_) => continue,
        };
        let chosen = ChosenTable {
            software: first.software.clone(),
            name: table.name.clone(),
            identity: version.identity,
            layout: version.layout,
            layout_bytes: version.layout_bytes.clone(),
            scheme: offer.scheme.clone(),
            updates: match version.identity.id == id {
                true => told.first(table.updates_of(id)),
                false => table.updates_of(version.identity.id),
            },
        };
        let others = descriptions.iter().enumerate().filter(|(server, _)| *server != offer.server);
        let differs = others
            .filter_map(|(server, description)| Some((server, difference(&chosen, description)?)))
            .next();
        match differs {
            None => common.push(chosen),
            // While a table is being updated, some servers are ahead. All of them serve the earlier
            // version for a while.
            Some((server, Difference::Version(_))) => {
                behind.get_or_insert((chosen, server));
            }
            Some((server, difference)) if is_current => {
                let between = [offer.server, server];
                return Err(disagreement(&chosen, between, descriptions, difference));
            }
            Some(_) => {}
        }
    }
    match (common.is_empty(), behind) {
        (true, Some((chosen, server))) => {
            let version =
                descriptions[server].table(&chosen.name).map(|table| table.identity.epoch);
            let difference = Difference::Version(version.unwrap_or(chosen.identity.epoch));
            Err(disagreement(&chosen, [0, server], descriptions, difference))
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
            "{server} has several tables: {}; choose one by name",
            names()
        ))
        .because(Reason::TableNotChosen)),
        (Some(name), _) => description.table(name).ok_or_else(|| {
            Error::api_misuse(format!("{server} has no table called {name:?}; it has: {}", names()))
        }),
    }
}

/// A scheme, and the first server that offers it.
struct Offer<'d> {
    server: usize,
    scheme: &'d SchemeDescription,
}

/// What every server offers for `version`: nothing if it does not have that version.
fn offers<'d>(
    version: &TableDescription,
    descriptions: &'d [ServerDescription],
) -> Vec<&'d [SchemeDescription]> {
    let offered = |description: &'d ServerDescription| {
        let mut versions = description.table(&version.name)?.versions();
        let same = versions
            .find(|other| (other.identity, other.layout) == (version.identity, version.layout))?;
        Some(&same.schemes[..])
    };
    descriptions.iter().map(|description| offered(description).unwrap_or_default()).collect()
}

/// Chooses among what the servers offer for `version`, by a rule of the client. The order of the
/// servers' offers has no effect:
///
/// 1. Only a scheme that takes as many servers as there are, and that the options accept.
/// 2. If the options list schemes: one that all servers offer before one that only some do.
/// 3. A pinned scheme before others.
/// 4. The first of the options' list; without one, the first of [`preference`].
///
/// Without a list, this may choose a scheme that only some servers offer; the client then refuses
/// the others. Otherwise a server that lies could move its clients to a scheme that promises less,
/// by leaving out the rest.
fn choose_scheme<'d>(
    options: &SessionOptions,
    version: &TableDescription,
    descriptions: &'d [ServerDescription],
    plan_in: PlanIn,
) -> Result<Offer<'d>> {
    let offered = offers(version, descriptions);
    let order = match options.schemes.is_empty() {
        true => preference(),
        false => options.schemes.clone(),
    };
    let all = (0..)
        .zip(&offered)
        .flat_map(|(server, schemes)| schemes.iter().map(move |scheme| Offer { server, scheme }));
    let ranked = all.filter_map(|offer| {
        let SchemeDescription { plan, .. } = offer.scheme;
        let place = order.iter().position(|scheme| *scheme == plan.scheme)?;
        if plan.servers != options.servers || (options.verified && !plan.scheme.verifies()) {
            return None;
        }
        let common = offered.iter().all(|schemes| schemes.contains(offer.scheme));
        let partial = !common && !options.schemes.is_empty();
        // A successor keeps the scheme that was pinned under its name.
        let succeeds = |known: &KnownPin| {
            let KnownPin { name, pin, .. } = known;
            let other = *name == version.name && pin.table.id != version.identity.id;
            other && !options.accept_new_table && pin.scheme == Some(plan.scheme)
        };
        let new = !options
            .pins
            .iter()
            .any(|known| is_of(offer.scheme, &known.pin, version, plan_in) || succeeds(known));
        let rank = (partial, new, place, plan.parameters.clone(), offer.server);
        Some((rank, offer))
    });
    let best = ranked.min_by(|(one, _), (other, _)| one.cmp(other)).map(|(_, offer)| offer);
    best.ok_or_else(|| nothing_fits(options, &version.name, &offered))
}

/// Whether `pin` is of this table as `scheme` serves it, in any version.
fn is_of(
    scheme: &SchemeDescription,
    pin: &Pin,
    version: &TableDescription,
    plan_in: PlanIn,
) -> bool {
    let plan = &scheme.plan;
    pin.table.id == version.identity.id
        && plan_in(plan, &pin.table)
            .is_ok_and(|then| then.digest(&pin.table) == pin.parameter_digest)
}

/// The order of preference if the caller lists no schemes, as the schemes say: see
/// [`About::preference`](privet_schemes::registry::About).
fn preference() -> Vec<SchemeId> {
    let mut schemes: Vec<_> = SchemeId::all().collect();
    schemes.sort_by_key(|scheme| scheme.about().preference);
    schemes
}

/// The error if no scheme fits: what each server offers, and what to do.
fn nothing_fits(options: &SessionOptions, table: &str, offered: &[&[SchemeDescription]]) -> Error {
    let (served, given) = (served_by(table, offered), options.servers);
    let list = |schemes: &[SchemeId]| {
        schemes.iter().map(|scheme| scheme.name()).collect::<Vec<_>>().join(", ")
    };
    let offers = || offered.iter().flat_map(|schemes| schemes.iter().map(|scheme| &scheme.plan));
    let accepted: Vec<SchemeId> = preference()
        .into_iter()
        .filter(|scheme| options.schemes.is_empty() || options.schemes.contains(scheme))
        .filter(|scheme| !options.verified || scheme.verifies())
        .collect();
    // The options accept a scheme that is offered, but it takes another number of servers.
    let other_number = offers().find(|plan| accepted.contains(&plan.scheme));
    let message = match (other_number, &options.schemes[..], options.verified) {
        (Some(plan), [_, ..], _) | (Some(plan), _, true) => {
            format!("{served}; {} {}", plan.scheme, takes_other(plan.servers, given))
        }
        (None, schemes @ [_, ..], verified) => format!(
            "{served}, and {} was to be used{}; name one that all servers offer",
            list(schemes),
            if verified { ", with verified answers" } else { "" }
        ),
        (None, [], true) => format!(
            "{served}, and only schemes that verify answers were to be used: {}. Ask those who run the servers for one of these, or allow the others",
            list(&accepted)
        ),
        (None, [], false) => served,
        (Some(first), [], false) => match offers().all(|plan| plan.scheme == first.scheme) {
            true => format!("{served}, which {}", takes_other(first.servers, given)),
            false => {
                format!("{served}, and {}; name as many as one of them takes", were_named(given))
            }
        },
    };
    let reason = match (other_number, &options.schemes[..], options.verified) {
        (Some(_), ..) => Reason::NumberOfServers,
        (None, [], true) => Reason::NoSchemeVerifies,
        (None, ..) => Reason::SchemeNotOffered,
    };
    Error::api_misuse(message).because(reason)
}

/// What to do if a scheme takes `servers` servers and the user named another number of them. The
/// text goes on after the scheme's name.
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

/// Keeps the versions that the caller accepts, of those that all servers serve.
///
/// # Errors
/// None of them. [`Blame::Integrity`](privet_core::Blame::Integrity) if the caller demands another
/// digest, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the servers are behind.
pub(super) fn demanded(
    served: Vec<ChosenTable>,
    options: &SessionOptions,
) -> Result<Vec<ChosenTable>> {
    let SessionOptions { digest, at_least_epoch, .. } = options;
    // A successor counts from 0 again, so the versions of the table before say nothing of it.
    let newest = served.first().map(|version| version.identity.id);
    let is_demanded = |version: &ChosenTable| {
        let TableIdentity { id, epoch, .. } = version.identity;
        digest.is_none_or(|digest| version.identity.digest == digest)
            && at_least_epoch.is_none_or(|least| epoch >= least && Some(id) == newest)
    };
    let (accepted, others): (Vec<_>, Vec<_>) = served.into_iter().partition(is_demanded);
    let Some(first) = others.first().filter(|_| accepted.is_empty()) else { return Ok(accepted) };
    let versions = others.iter().map(|version| {
        let TableIdentity { epoch, digest, .. } = version.identity;
        format!("version {} with the digest {digest}", epoch.0)
    });
    let versions = versions.collect::<Vec<_>>().join(", and for a while ");
    let served = format!("table {} is served in {versions}", first.name);
    let newest = first.identity.epoch;
    match (digest, at_least_epoch) {
        (_, Some(least)) if newest < *least => Err(Error::unavailable(format!(
            "{served}, and at least version {} was demanded; nothing was asked. The servers are behind: try again later, or demand less",
            least.0
        ))
        .because(Reason::VersionTooEarly)),
        (Some(digest), _) => Err(Error::integrity(format!(
            "{served}, and the digest {digest} was demanded; nothing was asked. The servers are behind or ahead of that version, or have another table: ask whoever published the digest which one is right now"
        ))
        .because(Reason::DigestDiffers)),
        // Some version is late enough, so it can only be the digest.
        (None, _) => Err(Error::internal("no version of the table was accepted")),
    }
}

/// Checks that the table has the root that the caller knows, if the caller knows one. The root
/// follows from what the servers announced, so this check comes before the client believes or keeps
/// anything else.
///
/// # Errors
/// [`Blame::Integrity`](privet_core::Blame::Integrity) if it has another.
pub(super) fn check_root(chosen: &ChosenTable, options: &SessionOptions) -> Result<()> {
    let Some(root) = options.root else { return Ok(()) };
    if TableRoot::of(chosen.identity.shape, chosen.layout.digest) == root {
        return Ok(());
    }
    Err(Error::integrity(format!(
        "table {} does not have the root that was given: it is another table, another build or another version, or was built without authentication, or is not what its owner built; nothing was asked. Ask its owner which root it has now",
        chosen.name
    ))
    .because(Reason::RootDiffers))
}

/// Checks that a table to be received is the described one: the digests of its records and of its
/// layout must lead to the table's own digest. Then the digest that checks every received byte is
/// as good as the pinned one.
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
        "the server announces digests of the layout and of the records of table {} that do not give the table's digest: they belong to different tables, or the server is at fault; nothing was asked",
        chosen.name
    )))
}

/// Checks that the client receives no more before the first lookup, and keeps no more for it, than
/// is allowed. All sizes follow from what the servers announce, and the client later accepts
/// nothing larger.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is more.
pub(super) fn check_download(chosen: &ChosenTable, options: &SessionOptions) -> Result<()> {
    let plan = &chosen.scheme.plan;
    let (what, len, servers) = match plan.offline {
        OfflinePhase::Nothing => ("the record layout", 0, 1),
        OfflinePhase::Download { len } => ("the hint and the record layout", len, 1),
        OfflinePhase::KeepTable { len } => ("the whole table and its layout", len, 1),
        OfflinePhase::StreamTable { len } | OfflinePhase::StreamArranged { len } => {
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
            "to look records of table {name} up by {scheme}, {what} must be received: {received} bytes, more than the {limit} that are allowed; nothing was fetched. If you want to receive that much, allow it"
        ))
        .because(Reason::TooMuchToDownload));
    }
    if kept > limit {
        return Err(Error::api_misuse(format!(
            "to look records of table {name} up by {scheme}, hints of {kept} bytes must be kept, more than the {limit} that are allowed; nothing was fetched. If you want to keep that much, allow it"
        ))
        .because(Reason::TooMuchToDownload));
    }
    Ok(())
}

/// Checks that there are streams to compare if the options ask for a comparison.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is not.
pub(super) fn check_comparable(chosen: &ChosenTable, options: &SessionOptions) -> Result<()> {
    let scheme = chosen.scheme.plan.scheme;
    let streams = matches!(
        chosen.scheme.plan.offline,
        OfflinePhase::StreamTable { .. } | OfflinePhase::StreamArranged { .. }
    );
    if !options.compare_streams || (streams && options.servers > 1) {
        return Ok(());
    }
    Err(Error::api_misuse(format!(
        "{scheme} does not stream the table from two servers, so there is nothing to compare; nothing was asked. Leave out the comparison"
    ))
    .because(Reason::NothingToCompare))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_has_a_place_and_those_that_verify_come_first() {
        privet_laboratory::register();
        let order = preference();
        let places = order.iter().map(|scheme| scheme.about().preference);
        // If two schemes had the same place, a server's description would decide between them.
        assert!(places.is_sorted_by(|one, other| one < other));
        assert!(order.is_sorted_by_key(|scheme| !scheme.verifies()));
        let weaker = [SchemeId::PianoAllParities, SchemeId::Piano];
        assert!(order.ends_with(&weaker));
        let names: Vec<&str> = order.iter().map(|scheme| scheme.name()).collect();
        let first = ["apir-dpf", "apir-matrix-mt", "tapir-mt", "tapir-pp", "finite-differences"];
        assert!(names.starts_with(&first), "{names:?}");
    }
}
