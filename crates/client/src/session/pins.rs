//! The served table, compared with what was pinned before: at these servers, and at others.
//!
//! A table's id says what the table *is*. Its name is only what a server calls it, and a server can
//! change that at any time. So a pin counts for its table under every name:
//!
//! - **Under its name**: where a name is pinned, a client believes only the pinned table under it.
//! - **By its id**: a table that was pinned at one of these servers, under any name, is compared
//!   with that pin. The client refuses an older version, other contents, another scheme and another
//!   publisher under a new name as under the old one, whether or not the caller gave the new name.
//! - **Elsewhere**: a table that was pinned at other servers must not contradict those pins: no
//!   other contents of the same version, no other publisher, no missing publisher, and, if the
//!   table is new here, no older version. It may be a later version, and another scheme may serve
//!   it. What was used here before in exactly this version stays valid, so that accepting it once
//!   is enough.
//! - **Without a name**: a caller who names no table means the one that was used last. If a server
//!   has only one table, the client takes that table for it, but only if the names agree. Otherwise
//!   a server could evade every pin with a new name and a new id. A caller who names the table has
//!   chosen it, so a server may have many.
//!
//! A table may also be the *successor* of the pinned one. Then the lineage that the server sends
//! leads there from the pin, and the module `succession` decides.
//!
//! None of this is asked of a caller who accepts whatever the servers show. The new pin then holds
//! for every name that the table has there, so that the next session has nothing to refuse.

use super::agreement::server_name;
use super::interface::ChosenTable;
use super::options::{KnownPin, SessionOptions, TableLeft};
use super::shared::PlanIn;
use super::succession::Ways;
use crate::state::{Pin, PinElsewhere};
use privet_core::{Epoch, Error, Reason, Result, TableId};
use privet_table::update_log::{Chain, EpochHash, NextKeyDigest, PublisherId, TableKeys};
use privet_wire::{PartDescription, ServerDescription, UpdatesDescription};

/// How the served table relates to the pin.
pub(super) enum Standing {
    /// It agrees with the pin, or there is none.
    AsPinned,
    /// It is a later version. The epochs from this pin to it are available, and a known publisher
    /// has signed them.
    Behind(Box<Pin>),
}

/// Compares the served table with the pins.
///
/// # Errors
/// [`Blame::Integrity`](privet_core::Blame::Integrity) if they differ; the text says how, and what
/// to do.
pub(super) fn compare(
    chosen: &ChosenTable,
    options: &SessionOptions,
    plan_in: PlanIn,
    ways: &Ways,
) -> Result<Standing> {
    check_not_left(chosen, options)?;
    // A fault of the table comes before a fault of its name.
    let standing = standing(chosen, options, plan_in, ways)?;
    check_elsewhere(chosen, options, ways)?;
    check_name(chosen, options)?;
    Ok(standing)
}

/// The pins at these servers that are of the table `chosen`, by any name, or have its name.
pub(super) fn pins_for<'o>(
    chosen: &'o ChosenTable,
    options: &'o SessionOptions,
) -> impl Iterator<Item = &'o KnownPin> {
    options
        .pins
        .iter()
        .filter(|known| known.name == chosen.name || known.pin.table.id == chosen.identity.id)
}

fn standing(
    chosen: &ChosenTable,
    options: &SessionOptions,
    plan_in: PlanIn,
    ways: &Ways,
) -> Result<Standing> {
    let seen = pin_of(chosen, None, None);
    let announced = chosen.updates.map(|updates| PublisherId(updates.publisher));
    let mut behind: Option<Pin> = None;
    for KnownPin { server, name, pin } in pins_for(chosen, options) {
        // The same check as within one version. Otherwise a server could move its clients to a
        // scheme that promises less, or to parameters of its own making. That the caller names the
        // scheme does not change this: parameters of the same scheme hold promises too (a reference
        // string does).
        let same_parameters = || {
            let then_plan = plan_in(&chosen.scheme.plan, &pin.table);
            then_plan.is_ok_and(|then| then.digest(&pin.table) == pin.parameter_digest)
        };
        // The server matters only if there are several.
        let mut at = match options.servers {
            1 => String::new(),
            servers => format!("of {} ", server_name(*server, servers)),
        };
        if *name != chosen.name {
            at += &format!("was used before as table {name}, and ");
        }
        let refused = |what: &str, advice: &str, reason: Reason| {
            Err(Error::integrity(format!(
                "table {} {at}{what}; nothing was asked. If you expected this change, accept the new table{advice}",
                chosen.name
            ))
            .because(reason))
        };
        let replaced = |what: &str| refused(what, "", Reason::TableReplaced);
        if let Some(way) = ways.from(pin)
            && pin.table.id != seen.table.id
        {
            // Parameters depend on the table. The client believes them as at first use.
            let scheme = chosen.scheme.plan.scheme;
            if pin.scheme.map_or_else(|| !same_parameters(), |pinned| pinned != scheme) {
                return replaced("was succeeded by one that is served by another scheme");
            }
            let lower = behind.is_none_or(|lowest| way.identity().epoch < lowest.table.epoch);
            match way_to(way, chosen) {
                Ok(None) => {}
                Ok(Some(from)) => behind = if lower { Some(from) } else { behind },
                Err(what) => return replaced(&what),
            }
            continue;
        }
        if pin.agrees_with(&seen) {
            let other = |publisher: PublisherId| announced.is_some_and(|now| now != publisher);
            if pin.publisher.is_some_and(other) {
                return refused(
                    "has another publisher than before under the same version",
                    "",
                    Reason::PublisherDiffers,
                );
            }
            continue;
        }
        let (then, now) = (pin.table.epoch.0, seen.table.epoch.0);
        if pin.table.id == seen.table.id && then < now {
            let updated = format!("was updated from version {then} to version {now}");
            if !same_parameters() {
                return replaced(&format!(
                    "{updated}, and is served with another scheme or other parameters than before"
                ));
            }
            let trusted = options.publisher.or(pin.publisher);
            match (trusted, chosen.updates) {
                (None, Some(updates)) => {
                    return refused(
                        &format!("{updated}, and its publisher was not known before"),
                        &format!(
                            ", or name the publisher if you know that it is {}",
                            PublisherId(updates.publisher)
                        ),
                        Reason::PublisherUnknown,
                    );
                }
                (Some(_), Some(updates)) if updates.first_epoch <= pin.table.epoch => {
                    let lower = behind.is_none_or(|lowest| pin.table.epoch < lowest.table.epoch);
                    behind = if lower { Some(*pin) } else { behind };
                    continue;
                }
                (Some(_), Some(updates)) => {
                    return replaced(&format!(
                        "{updated}, and the epochs in between are no longer available: only those after version {} are",
                        updates.first_epoch.0
                    ));
                }
                (_, None) => return replaced(&updated),
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
            let (advice, reason) = match options.schemes.is_empty() && !options.verified {
                true => ("", Reason::TableReplaced),
                false => (
                    ", or, if you have chosen another scheme, keep its data in a place of its own",
                    Reason::SchemeReplaced,
                ),
            };
            return refused(
                "is served with another scheme or other parameters than before",
                advice,
                reason,
            );
        } else {
            "has another record layout or hint than before under the same version: the server may be showing different clients different ones"
        };
        return replaced(what);
    }
    Ok(behind.map_or(Standing::AsPinned, |pin| Standing::Behind(Box::new(pin))))
}

/// Where the epochs begin that lead from a succession, which ends at `way`, to the served version.
/// `None`: it leads to this very version. Otherwise what is wrong.
fn way_to(way: &Chain, chosen: &ChosenTable) -> Result<Option<Pin>, String> {
    let (end, served) = (way.identity(), chosen.identity);
    if end.id != served.id {
        return Err(format!("was succeeded by another table (id {}, not {})", end.id, served.id));
    }
    if (end, way.layout_digest()) == (served, chosen.layout.digest) {
        return Ok(None);
    }
    if end.epoch >= served.epoch {
        return Err("has other contents than its publisher has signed for the successor".to_owned());
    }
    match chosen.updates {
        Some(updates) if updates.first_epoch <= end.epoch => Ok(Some(Pin {
            table: end,
            // Nothing was downloaded for this version, so nothing is patched.
            parameter_digest: [0; 32],
            scheme: Some(chosen.scheme.plan.scheme),
            layout: PartDescription { len: 0, digest: way.layout_digest() },
            hint: None,
            publisher: Some(way.publisher()),
            last_epoch: way.previous(),
            next_key: way.keys().next,
            first_publisher: None,
        })),
        _ => Err(format!(
            "was succeeded by one that has reached version {} since, and the epochs after its \
             version {}, which show that, are no longer available; who runs the server may still \
             have a log with them",
            served.epoch.0, end.epoch.0
        )),
    }
}

/// Checks that nobody leads this client back to a table that it has left for its successor.
fn check_not_left(chosen: &ChosenTable, options: &SessionOptions) -> Result<()> {
    let id = chosen.identity.id;
    let is_known = options.pins.iter().any(|known| known.pin.table.id == id);
    let left = |known: &&TableLeft| known.left.id == id && (known.here || !is_known);
    if options.tables_left.iter().any(|known| left(&known)) {
        return Err(Error::integrity(format!(
            "table {} is one that was left before for its successor (id {id}), so nobody leads \
             back to it; nothing was asked. The server is behind, or somebody serves the old \
             table on purpose. If you want the old table all the same, accept it",
            chosen.name
        ))
        .because(Reason::TableReplaced));
    }
    Ok(())
}

/// Checks that the table does not contradict its pins at other servers.
fn check_elsewhere(chosen: &ChosenTable, options: &SessionOptions, ways: &Ways) -> Result<()> {
    let id = chosen.identity.id;
    let seen = pin_of(chosen, None, None);
    let announced = chosen.updates.map(|updates| PublisherId(updates.publisher));
    let mut known = options.pins.iter().map(|known| &known.pin).filter(|pin| pin.table.id == id);
    let contents = |pin: &Pin| (pin.table, pin.layout, pin.publisher);
    if known.clone().any(|pin| contents(pin) == (seen.table, seen.layout, announced)) {
        // It is exactly what was used here before. Nothing of it is new, and a caller who accepted
        // it then need not do so again.
        return Ok(());
    }
    // A version that is behind the one elsewhere has been compared with the pins here, if there are
    // any.
    let known_here = known.next().is_some();
    for PinElsewhere { server, name, pin } in &options.pins_elsewhere {
        if pin.table.id != id {
            continue;
        }
        let (then, now) = (pin.table.epoch.0, seen.table.epoch.0);
        let same_contents = (pin.table, pin.layout) == (seen.table, seen.layout);
        // Its keys may have changed on the way, which is no contradiction.
        let rotated = ways.from(pin).is_some_and(|way| Some(way.publisher()) == announced);
        let what = match (pin.publisher, announced) {
            (Some(there), Some(here))
                if there != here && options.publisher != Some(here) && !rotated =>
            {
                format!("has the publisher {here} here, and {there} there")
            }
            (Some(there), None) if then < now => {
                format!(
                    "is version {now} here without a publisher, and has the publisher {there} there"
                )
            }
            _ if then > now && !known_here => {
                format!("is version {now} here, and was version {then} there")
            }
            _ if then == now && !same_contents => {
                format!("has other contents of version {now} than there")
            }
            _ => continue,
        };
        return Err(Error::integrity(format!(
            "table {} was used before as table {name} of {server}, and {what}; nothing was asked. One of the two is behind, or does not tell the truth. If you believe what is served here, accept it, and forget the other server if it lies",
            chosen.name
        ))
        .because(Reason::ContradictedElsewhere));
    }
    Ok(())
}

/// Checks that a table that the caller did not name is the one that was used last at each server.
fn check_name(chosen: &ChosenTable, options: &SessionOptions) -> Result<()> {
    if options.table.is_some() {
        return Ok(());
    }
    let name = &chosen.name;
    for server in 0..options.servers {
        let mut pins = options.pins.iter().filter(|known| known.server == server);
        let Some(last) = pins.next_back().filter(|last| last.name != *name) else { continue };
        let which = match last.pin.table.id == chosen.identity.id {
            true => "the same table by its id",
            false => "another table by its id",
        };
        return Err(Error::integrity(format!(
            "the only table of {} is {name}, and the table used there last was {}: {which}; nothing was asked. If {name} is the table that you want, name it",
            server_name(server, options.servers),
            last.name
        ))
        .because(Reason::TableRenamed));
    }
    Ok(())
}

/// What servers say of the updates of one table, each in its place.
pub(super) struct Told {
    updates: Vec<Option<UpdatesDescription>>,
    /// Whether some servers have a change of keys already and others do not. All serve the version
    /// before, and its keys count: those who are ahead are left out.
    keys_change: bool,
}

impl Told {
    pub(super) fn by(descriptions: &[ServerDescription], (table, id): (&str, TableId)) -> Self {
        let told = descriptions.iter().map(|description| {
            let newest = description.table(table)?.versions_of(id).next()?;
            Some((newest.identity.epoch, newest.updates?))
        });
        let mut told: Vec<Option<(Epoch, UpdatesDescription)>> = told.collect();
        let keys = |updates: &UpdatesDescription| (updates.publisher, updates.next_key);
        let mut keys_change = false;
        if let Some((first, before)) = told.iter().flatten().min_by_key(|told| told.0).copied() {
            for known in &mut told {
                keys_change |= known
                    .take_if(|(epoch, updates)| {
                        *epoch > first
                            && updates.lineage.is_some()
                            && keys(updates) != keys(&before)
                    })
                    .is_some();
            }
        }
        let updates = told.into_iter().map(|told| told.map(|(_, updates)| updates)).collect();
        Self { updates, keys_change }
    }

    /// The updates that the first server has, under the keys of the versions that all have.
    pub(super) fn first(&self, first: Option<UpdatesDescription>) -> Option<UpdatesDescription> {
        let before = self.updates.iter().flatten().next().filter(|_| self.keys_change);
        let Some(before) = before else { return first };
        let UpdatesDescription { publisher, next_key, .. } = *before;
        first.map(|first| UpdatesDescription { publisher, next_key, lineage: None, ..first })
    }

    /// Checks that keys do not change now, or that the caller knows the publisher before. Otherwise
    /// one server alone could name keys, by staying behind.
    fn check_known(&self, options: &SessionOptions, (table, id): (&str, TableId)) -> Result<()> {
        let publisher = self.updates.iter().flatten().map(|it| PublisherId(it.publisher)).next();
        let mut pins = options.pins.iter().map(|known| &known.pin).filter(|it| it.table.id == id);
        let is_pinned = pins.clone().next().is_some() && !options.accept_new_table;
        let is_known = is_pinned
            && pins.all(|pin| pin.publisher == publisher)
            && options.publisher.is_none_or(|named| Some(named) == publisher);
        if !self.keys_change || is_known {
            return Ok(());
        }
        Err(Error::unavailable(format!(
            "the servers are in the middle of a change of keys of table {table}: some have it and \
             others do not yet; nothing was asked. Try again when all have it"
        ))
        .because(Reason::VersionsDiffer))
    }
}

/// Checks that all servers name the same publisher of the table with this name and id, and that it
/// is the one that the caller knows.
///
/// # Errors
/// [`Blame::Integrity`](privet_core::Blame::Integrity) if they do not;
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the keys change now, and the caller
/// does not know those before.
pub(super) fn check_publishers(
    options: &SessionOptions,
    (table, id): (&str, TableId),
    told: &Told,
) -> Result<()> {
    told.check_known(options, (table, id))?;
    let updates = || told.updates.iter().copied();
    let announced = updates().map(|updates| Some(PublisherId(updates?.publisher)));
    // With a lineage, keys may have changed on the way. The module `succession` checks that.
    let has_lineage =
        !options.accept_new_table && updates().flatten().any(|updates| updates.lineage.is_some());
    let mut expected = options.publisher.filter(|_| !has_lineage);
    let pins = options.pins.iter().filter(|known| known.pin.table.id == id);
    for known in pins.filter(|_| !options.accept_new_table && !has_lineage) {
        match (expected, known.pin.publisher) {
            (Some(expected), Some(pinned)) if expected != pinned => {
                return Err(Error::integrity(format!(
                    "table {table} had the publisher {pinned} when {} was first used, and not {expected}; nothing was asked. Ask the table's owner who publishes it, and accept the table as it is now if that is right",
                    server_name(known.server, options.servers)
                ))
                .because(Reason::PublisherDiffers));
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
                    "{name} says that table {table} is published by {publisher}, and not by {expected}; nothing was asked. Ask the table's owner who publishes it, and accept what the server says if that is right"
                ))
                .because(Reason::PublisherDiffers));
            }
            (None, Some(_)) => expected = publisher,
            _ => {}
        }
    }
    let mut next_keys: Vec<_> = updates().flatten().map(|updates| updates.next_key).collect();
    next_keys.dedup();
    if next_keys.len() > 1 {
        return Err(Error::integrity(format!(
            "the servers name different next keys of the publisher of table {table}; nothing was \
             asked. One of them has another log or does not tell the truth: ask those who run them"
        ))
        .because(Reason::ServersDisagree));
    }
    match options.publisher {
        Some(publisher) if updates().all(|updates| updates.is_none()) => {
            Err(Error::integrity(format!(
                "no server says who signs the updates of table {table}, so the client cannot check that its publisher is {publisher}; nothing was asked. Leave out the publisher if the table has none"
            ))
            .because(Reason::NotPublished))
        }
        _ => Ok(()),
    }
}

/// The pin for the table, with its `keys` and the epoch `last_epoch` that made this version, if
/// they are known. It says of no change of keys.
pub(super) fn pin_of(
    chosen: &ChosenTable,
    keys: Option<TableKeys>,
    last_epoch: Option<EpochHash>,
) -> Pin {
    Pin {
        table: chosen.identity,
        parameter_digest: chosen.scheme.parameter_digest,
        scheme: Some(chosen.scheme.plan.scheme),
        layout: chosen.layout,
        hint: chosen.scheme.hint,
        publisher: keys.map(|keys| keys.publisher),
        last_epoch,
        next_key: keys.and_then(|keys| keys.next),
        first_publisher: None,
    }
}

/// Who signs for the table: the pinned publisher, or the one that the caller knows; and the pinned
/// next key. Servers are believed on this when the table is first used, and never later. Otherwise
/// a server that wants to show other contents some day could name keys of its own first.
pub(super) fn keys_of(chosen: &ChosenTable, options: &SessionOptions) -> Option<TableKeys> {
    let pins = options.pins.iter().filter(|known| known.pin.table.id == chosen.identity.id);
    let mut pins = pins.peekable();
    let announced = chosen.updates.map(|updates| TableKeys {
        publisher: PublisherId(updates.publisher),
        next: updates.next_key.map(NextKeyDigest),
    });
    let believed = match pins.peek() {
        Some(_) if !options.accept_new_table => pins.find_map(|known| known.pin.keys()),
        _ => announced,
    };
    believed.or_else(|| options.publisher.map(TableKeys::from))
}
