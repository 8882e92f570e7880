//! Following a table to its successor.
//!
//! A server that serves another table than the pinned one may send a *lineage*: the successions
//! that lead there (`privet_table::update_log` says who signs them). The client fetches it before
//! it compares anything, and only if something that it has pinned differs. So a server learns that
//! the client was here before the succession, and not from which table or version it comes.
//!
//! From each pin the client walks on by itself, with the keys of *that* pin. Where that ends is
//! compared with what is served, as a pin would be: the very version, or an earlier one from which
//! signed epochs lead on. The scheme has to stay. Its parameters depend on the table, so they are
//! believed as at first use.
//!
//! Then everything is as at first use, except that nobody is asked:
//!
//! - The pin of the old table is replaced, and the old table is noted as *left*, in one write.
//!   Nobody leads a client back to a table that it has left, and a second succession of it is taken
//!   for what it is: two were signed.
//! - Single-use hints belong to a table's id, so they end. In the middle of a session they are
//!   closed first. The write of the pin erases them, with their journal.
//!
//! A caller may go on naming the publisher of the table before. Then the pin decides what is
//! served, and the lineage has to show a succession that the named publisher has signed.
//!
//! If the keys alone have changed (a rotation), the table keeps its id. Then the epochs lead on
//! from the pinned version, and hints follow as usual: the lineage only shows beforehand that the
//! new publisher is no stranger.

use super::interface::{ChosenTable, Output, Persist, Progress};
use super::open::Open;
use super::options::SessionOptions;
use super::pins::{compare, keys_of, pins_for};
use super::shared::Shared;
use crate::state::Pin;
use privet_core::{Error, Reason, Result};
use privet_schemes::offline::HintSource;
use privet_table::update_log::{Chain, Left, Lineage, PublisherId, TableKeys, Walk};
use privet_wire::{PartDescription, ServerDescription};
use std::sync::Arc;
use std::time::Duration;

/// Where a lineage leads from the pins that it begins at or passes.
#[derive(Default)]
pub(super) struct Ways(Vec<(Pin, Walk)>);

impl Ways {
    /// Walks from every pin of the table `chosen`, or of a table that had its name.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if a succession is not signed as it has
    /// to be for the client that has this pin, or contradicts what was pinned.
    fn walk(chosen: &ChosenTable, options: &SessionOptions, lineage: &Lineage) -> Result<Self> {
        let left: Vec<Left> = options.tables_left.iter().map(|known| known.left).collect();
        let here = pins_for(chosen, options).map(|known| known.pin);
        let elsewhere = options.pins_elsewhere.iter().map(|known| known.pin);
        let elsewhere = elsewhere.filter(|pin| pin.table.id == chosen.identity.id);
        let mut ways = Vec::new();
        for pin in here.chain(elsewhere) {
            // A publisher whom the caller names counts where none was pinned.
            let named = options.publisher.map(TableKeys::from);
            let Some(keys) = pin.keys().or(named) else { continue };
            let start = Chain::knowing_digest(pin.table, pin.layout.digest, keys, pin.last_epoch);
            let walked = lineage.walk(&start, &left).map_err(|error| {
                Error::integrity(format!(
                    "the table {} that was used before as {} is said to be continued by another: \
                     {}; nothing was asked",
                    pin.table.id,
                    chosen.name,
                    error.message()
                ))
                .because(Reason::TableReplaced)
            })?;
            ways.extend(walked.map(|walk| (pin, walk)));
        }
        Ok(Self(ways))
    }

    /// Where the lineage leads from `pin`; `None` if it does not begin there.
    pub(super) fn from(&self, pin: &Pin) -> Option<&Chain> {
        self.0.iter().find(|(from, _)| from == pin).map(|(_, walk)| &walk.end)
    }

    /// The tables that are left on the ways to the table `chosen`.
    fn left(&self, chosen: &ChosenTable) -> Vec<Left> {
        let ways = self.0.iter().filter(|(_, walk)| walk.end.identity().id == chosen.identity.id);
        let mut all: Vec<Left> = Vec::new();
        for left in ways.flat_map(|(_, walk)| &walk.left) {
            let place = all.partition_point(|other| other.id.0 < left.id.0);
            if all.get(place) != Some(left) {
                all.insert(place, *left);
            }
        }
        all
    }

    /// Who signed for the table `chosen` when this client first knew, if keys have changed since.
    fn first_publisher(&self, chosen: &ChosenTable) -> Option<PublisherId> {
        let pins = self.0.iter().map(|(pin, _)| pin);
        pins.filter(|pin| pin.table.id == chosen.identity.id).find_map(Pin::origin)
    }

    /// The keys at the end of the ways.
    fn keys(&self) -> Option<TableKeys> {
        self.0.iter().map(|(_, walk)| walk.end.keys()).next()
    }
}

/// The lineage of the table, if something that is pinned or known differs and it may explain that.
pub(super) fn needs_lineage(
    chosen: &ChosenTable,
    options: &SessionOptions,
) -> Option<PartDescription> {
    let updates = chosen.updates?;
    let lineage = updates.lineage.filter(|_| !options.accept_new_table)?;
    let other = |publisher: PublisherId| publisher.0 != updates.publisher;
    let differs =
        |pin: &Pin| pin.table.id != chosen.identity.id || pin.publisher.is_some_and(other);
    let of_table = |pin: &Pin| pin.table.id == chosen.identity.id;
    let elsewhere = options.pins_elsewhere.iter().map(|known| &known.pin);
    let needed = pins_for(chosen, options).any(|known| differs(&known.pin))
        || elsewhere.filter(|pin| of_table(pin)).any(differs)
        || options.publisher.is_some_and(other);
    needed.then_some(lineage)
}

/// Whether `description` has a table that may succeed the one in use: the lineage decides.
pub(super) fn is_a_successor(
    chosen: &ChosenTable,
    description: &ServerDescription,
    options: &SessionOptions,
) -> bool {
    let updates = description.table(&chosen.name).and_then(|table| table.updates);
    updates.is_some_and(|updates| updates.lineage.is_some()) && keys_of(chosen, options).is_some()
}

impl Open {
    /// The lineage is there: whatever waits for it is compared now.
    pub(super) fn use_lineage(
        &mut self,
        shared: &mut Shared,
        source: &Arc<dyn HintSource>,
        now: Duration,
    ) -> Result<()> {
        // The wire's limit for lineages bounds this.
        let mut bytes = vec![0; source.len() as usize];
        source.read_at(0, &mut bytes)?;
        let lineage = Lineage::decode(&bytes)?;
        let ways = Ways::walk(&self.chosen, &shared.options, &lineage)?;
        let standing = compare(&self.chosen, &shared.options, shared.parts.plan_in, &ways)?;
        check_announced(&self.chosen, &shared.options, &ways, Some(&lineage))?;
        self.left = ways.left(&self.chosen);
        self.first_publisher = ways.first_publisher(&self.chosen);
        let (from, to) = (self.left.first().map(|left| left.id), self.chosen.identity.id);
        if let Some(from) = from {
            self.keys = ways.keys();
            // The hints of a table that ends are erased with its pin.
            shared.outputs.push_back(Output::Persist(Persist::CloseHints));
            shared.tell(Progress::Notice(format!(
                "the table {to} succeeds the table {from}: those who publish them have signed that"
            )));
        }
        self.stand(shared, standing, now)
    }
}

/// Checks that the announced publisher is the one to whom every way leads, and that the caller
/// named no other: or, if there is a lineage, one who was the publisher before, of a table that is
/// pinned by now.
///
/// # Errors
/// [`Blame::Integrity`](privet_core::Blame::Integrity) if it is another.
pub(super) fn check_announced(
    chosen: &ChosenTable,
    options: &SessionOptions,
    ways: &Ways,
    lineage: Option<&Lineage>,
) -> Result<()> {
    let Some(updates) = chosen.updates else { return Ok(()) };
    let announced = PublisherId(updates.publisher);
    let known = |named: PublisherId| {
        let begins = ways.0.iter().any(|(pin, _)| pin.publisher.is_none_or(|it| it == named));
        let is_pinned = || pins_for(chosen, options).any(|known| known.pin.publisher.is_some());
        // Anybody can show a lineage of other tables.
        let leads_here = |lineage: &&Lineage| {
            lineage.end().is_some_and(|(table, keys)| {
                table.id == chosen.identity.id && keys.publisher == announced
            })
        };
        let signed = lineage.filter(leads_here).is_some_and(|lineage| lineage.is_signed_by(named));
        begins || (signed && is_pinned())
    };
    let wrong = options.publisher.filter(|named| *named != announced && !known(*named));
    let mut ends = ways.0.iter().map(|(_, walk)| walk.end.publisher());
    match wrong.or_else(|| ends.find(|publisher| *publisher != announced)) {
        Some(other) => Err(another_publisher(&chosen.name, other)),
        None => Ok(()),
    }
}

fn another_publisher(table: &str, other: PublisherId) -> Error {
    Error::integrity(format!(
        "the server names another publisher of table {table} than {other}, and no signed \
         succession leads from the one to the other; nothing was asked. Ask the table's owner who \
         publishes it, and accept what the server says if that is right"
    ))
    .because(Reason::PublisherDiffers)
}
