//! The server's side: takes changes, says what must be built, and keeps every layer that a client
//! may still query.
//!
//! All servers of a table build the same layers. The seed of a layer's key map is a hash of its
//! keys, and the schedule counts changes. So servers that take the same changes in the same order
//! have the same layers, byte for byte. Any thread can run a build. A late build runs inside the
//! update that needs it, so a caller that asks for no builds gets the amortized form.

use super::announcement::{Announcement, Event};
use super::build::{Build, Built, Layer, Recipe};
use super::entries::Entries;
use super::schedule::{self, Standing};
use super::{KeyChange, LayeredParameters, Span, version};
use privet_core::{Result, TableId};
use privet_schemes::registry::ServerOptions;
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

/// A layered table at a server. A state machine: it does no I/O, starts no threads, and does not
/// know the time.
///
/// ```text
/// update(changes) ──► Announcement, for all clients          layer(span) ──► Arc<Layer> ── answers, on any thread
///      │
///      └─ builds() ──► Build::run(), on any thread ──► install(built) ──► Announcement
/// ```
///
/// A build has time until [`update`](Self::update) comes to the change at which its layer takes
/// over. A caller that never asks for [`builds`](Self::builds) gets the amortized form: the update
/// that needs a layer builds it.
pub struct LayeredServer {
    recipe: Arc<Recipe>,
    changes: u64,
    /// The changes that no layer in charge holds, by number: oldest first, without gaps, up to
    /// `changes`.
    list: VecDeque<(u64, KeyChange)>,
    /// The layers in charge, the oldest first.
    layers: Vec<InCharge>,
    pending: Vec<Pending>,
    /// Replaced layers, each with the number of changes up to which it is kept.
    replaced: Vec<(u64, Arc<Layer>)>,
    /// Events that were not announced yet.
    events: Vec<Event>,
}

struct InCharge {
    layer: Arc<Layer>,
    standing: Standing,
}

/// A layer that is not in charge yet.
struct Pending {
    build: Build,
    /// The highest level of its sources; `None` for a list.
    made_of: Option<u32>,
    /// The number of the change at which it takes over.
    due: u64,
    built: Option<Arc<Layer>>,
}

impl LayeredServer {
    /// A table with these keys and values; if a key comes twice, the last one counts. The first
    /// layer is built from them at once.
    ///
    /// All servers of a table must get the same `table`, parameters, keys and values, and then the
    /// same changes in the same order.
    ///
    /// # Errors
    /// As [`Build::run`]; [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a key or a value
    /// is too long.
    pub fn new(
        table: TableId,
        parameters: LayeredParameters,
        options: ServerOptions,
        first: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<Self> {
        let change = |(key, value)| KeyChange { key, value: Some(value) };
        let first = checked(first.into_iter().map(change))?;
        let entries = Arc::new(Entries::of_changes(first.iter()));
        drop(first);
        let list = parameters.list;
        let recipe = Arc::new(Recipe { table, parameters, options });
        let span = Span { first: 0, last: 0 };
        let build =
            Build { recipe: recipe.clone(), span, newer: entries, older: None, oldest: true };
        let layer = build.run()?.0;
        let level = schedule::smallest_level(layer.entries(), list);
        Ok(Self {
            recipe,
            changes: 0,
            list: VecDeque::new(),
            layers: vec![InCharge { layer, standing: Standing { level, merging: false } }],
            pending: Vec::new(),
            replaced: Vec::new(),
            events: Vec::new(),
        })
    }

    /// Takes changes, in order. Runs a build now if it is due by then and was not installed.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a key or a value is too long; then no
    /// change was taken. Otherwise as [`Build::run`]: then the changes before the one that needed
    /// the build were taken, as [`changes`](Self::changes) says, and their events come with the
    /// next announcement.
    pub fn update(&mut self, changes: Vec<KeyChange>) -> Result<Announcement> {
        let changes = checked(changes)?;
        let known = self.changes;
        self.replaced.retain(|(until, _)| *until > known);
        for change in changes {
            let number = self.changes + 1;
            self.build_what_is_due(number)?;
            self.changes = number;
            self.events.push(Event::Changed { number, change: change.clone() });
            self.list.push_back((number, change));
            self.hand_over(known);
            self.plan();
        }
        Ok(self.announce())
    }

    /// The layers that must be built and were not installed yet, the most urgent first. The call
    /// begins nothing, and a dropped build is returned again.
    pub fn builds(&self) -> Vec<Build> {
        let mut waiting: Vec<&Pending> =
            self.pending.iter().filter(|pending| pending.built.is_none()).collect();
        waiting.sort_by_key(|pending| pending.due);
        waiting.into_iter().map(|pending| pending.build.clone()).collect()
    }

    /// Takes in a built layer, and announces it, so that clients can prepare for it. Drops the
    /// layer if the server does not, or no longer, wait for it.
    pub fn install(&mut self, built: Built) -> Announcement {
        let span = built.0.description().span;
        let waiting = self
            .pending
            .iter_mut()
            .find(|pending| pending.build.span == span && pending.built.is_none());
        if let Some(pending) = waiting {
            self.events.push(built_event(&built.0, pending.due));
            pending.built = Some(built.0);
        }
        self.announce()
    }

    /// Everything that a client must know, whatever it knows already: for a new client, or one that
    /// has been away.
    pub fn state(&self) -> Announcement {
        let in_charge = self.layers.iter().flat_map(|of| {
            let span = of.layer.description().span;
            [built_event(&of.layer, span.last), Event::TakesOver(span)]
        });
        let list = self
            .list
            .iter()
            .map(|(number, change)| Event::Changed { number: *number, change: change.clone() });
        let coming = self.pending.iter().filter_map(|pending| {
            pending.built.as_ref().map(|layer| built_event(layer, pending.due))
        });
        let events = in_charge.chain(list).chain(coming).collect();
        Announcement { table: self.recipe.table, events }
    }

    /// The layer of this span: in charge, not in charge yet, or replaced not long ago. A replaced
    /// layer answers for as many more changes as the list is long, and at least until the update
    /// after the next, so that no lookup under way is lost.
    pub fn layer(&self, span: Span) -> Option<Arc<Layer>> {
        let in_charge = self.layers.iter().map(|of| &of.layer);
        let coming = self.pending.iter().filter_map(|pending| pending.built.as_ref());
        let replaced = self.replaced.iter().map(|(_, layer)| layer);
        in_charge
            .chain(coming)
            .chain(replaced)
            .find(|layer| layer.description().span == span)
            .cloned()
    }

    /// The layers in charge, the oldest first.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = &Arc<Layer>> {
        self.layers.iter().map(|of| &of.layer)
    }

    /// How many changes were taken.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// A digest of the table as it is now, for clients of several servers: see
    /// [`LayeredClient::version`](super::LayeredClient::version).
    pub fn version(&self) -> [u8; 32] {
        let layers = self.layers.iter().map(|of| &**of.layer.description());
        version(
            self.recipe.table,
            layers,
            self.list.iter().map(|(number, change)| (*number, change)),
        )
    }

    fn announce(&mut self) -> Announcement {
        Announcement { table: self.recipe.table, events: mem::take(&mut self.events) }
    }

    fn build_what_is_due(&mut self, number: u64) -> Result<()> {
        for pending in &mut self.pending {
            if pending.due <= number && pending.built.is_none() {
                let layer = pending.build.run()?.0;
                self.events.push(built_event(&layer, pending.due));
                pending.built = Some(layer);
            }
        }
        Ok(())
    }

    /// Puts the layers in charge whose time has come: all of them are built. Keeps the layers that
    /// they replace if a client can know of them, that is, if they were there after `known`
    /// changes.
    fn hand_over(&mut self, known: u64) {
        let due;
        (due, self.pending) =
            mem::take(&mut self.pending).into_iter().partition(|of| of.due <= self.changes);
        for Pending { made_of, built, build, .. } in due {
            let Some(layer) = built else { continue };
            self.events.push(Event::TakesOver(build.span));
            self.list.retain(|(number, _)| !build.span.contains_change(*number));
            let kept_until = self.changes + u64::from(self.recipe.parameters.list);
            let within = |of: &mut InCharge| build.span.contains(of.layer.description().span);
            let gone = self.layers.extract_if(.., within).map(|of| of.layer);
            let gone = gone.filter(|layer| layer.description().span.last <= known);
            self.replaced.extend(gone.map(|layer| (kept_until, layer)));

            let before = self.layers.partition_point(|of| of.layer.description().span < build.span);
            let level = match made_of {
                // Only the list went into it.
                None => 0,
                Some(level) if before > 0 => level + 1,
                Some(level) => {
                    let list = self.recipe.parameters.list;
                    schedule::level_of_oldest(layer.entries(), list, level)
                }
            };
            let standing = Standing { level, merging: false };
            self.layers.insert(before, InCharge { layer, standing });
        }
    }

    /// Plans the next builds: of the list, if it is full, and of neighbours of one level.
    fn plan(&mut self) {
        let list = self.recipe.parameters.list;
        let now = self.changes;
        if now.is_multiple_of(list.into()) {
            let span = Span { first: now + 1 - u64::from(list), last: now };
            let full = self.list.iter().filter(|(number, _)| span.contains_change(*number));
            let newer = Arc::new(Entries::of_changes(full.map(|(_, change)| change)));
            let build =
                Build { recipe: self.recipe.clone(), span, newer, older: None, oldest: false };
            let due = now + schedule::list_time(list);
            self.pending.push(Pending { build, made_of: None, due, built: None });
        }
        loop {
            let standings: Vec<Standing> = self.layers.iter().map(|of| of.standing).collect();
            let Some(at) = schedule::next_merge(&standings) else { return };
            let [older, newer] = &mut self.layers[at..at + 2] else { return };
            (older.standing.merging, newer.standing.merging) = (true, true);
            let level = older.standing.level.max(newer.standing.level);
            let span = Span {
                first: older.layer.description().span.first,
                last: newer.layer.description().span.last,
            };
            let build = Build {
                recipe: self.recipe.clone(),
                span,
                newer: newer.layer.held().clone(),
                older: Some(older.layer.held().clone()),
                oldest: at == 0,
            };
            let due = now + schedule::merge_time(list, level);
            self.pending.push(Pending { build, made_of: Some(level), due, built: None });
        }
    }
}

fn built_event(layer: &Layer, takes_over_at: u64) -> Event {
    Event::Built { layer: layer.description().clone(), takes_over_at }
}

/// Refuses changes that fit into no table, before any of them is taken.
fn checked(changes: impl IntoIterator<Item = KeyChange>) -> Result<Vec<KeyChange>> {
    changes.into_iter().map(|change| change.check().map(|()| change)).collect()
}
