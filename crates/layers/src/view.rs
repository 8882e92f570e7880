//! A client's view of a layered table: public, and the same for all clients that followed the same
//! announcements.

use super::announcement::{Announcement, Event, LayerDescription};
use super::{KeyChange, Span};
use privet_core::{Error, Result, TableId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// There are at most two layers of each of at most 64 levels, in charge or coming.
const MAX_LAYERS: usize = 256;

/// The layers and the list. Together, the layers in charge and the list hold each change from 0 to
/// the last exactly once.
#[derive(Clone)]
pub(super) struct View {
    table: TableId,
    /// The most changes that the list can hold: those that do not fill it, and those of which a
    /// layer is being built.
    longest_list: usize,
    pub(super) changes: u64,
    pub(super) list: BTreeMap<u64, Arc<KeyChange>>,
    /// Layers in charge, the oldest first.
    pub(super) layers: BTreeMap<Span, Arc<LayerDescription>>,
    /// Coming layers, and when each takes over.
    pub(super) coming: BTreeMap<Span, (Arc<LayerDescription>, u64)>,
}

impl View {
    /// An empty view.
    pub(super) fn empty(table: TableId, list: u32) -> Self {
        Self {
            table,
            longest_list: 2 * list as usize,
            changes: 0,
            list: BTreeMap::new(),
            layers: BTreeMap::new(),
            coming: BTreeMap::new(),
        }
    }

    /// The view after an announcement, part of which may be known already.
    ///
    /// # Errors
    /// [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) if it does not follow, or
    /// events in between were not announced.
    pub(super) fn after(&self, announcement: &Announcement) -> Result<Self> {
        if announcement.table != self.table {
            return Err(misbehaved("the announcement is of another table"));
        }
        let mut view = self.clone();
        for event in &announcement.events {
            match event {
                Event::Changed { number, change } => view.changed(*number, change)?,
                Event::Built { layer, takes_over_at } => view.built(layer, *takes_over_at)?,
                Event::TakesOver(span) => view.takes_over(*span)?,
            }
        }
        // A layer that was coming when the client left may have been merged since.
        let View { layers, coming, .. } = &mut view;
        coming.retain(|span, _| !layers.keys().any(|of| of.contains(*span)));
        view.check()?;
        Ok(view)
    }

    fn changed(&mut self, number: u64, change: &KeyChange) -> Result<()> {
        if number <= self.changes {
            return Ok(());
        }
        if self.layers.is_empty() || number != self.changes + 1 {
            return Err(misbehaved(
                "changes before the announced ones are missing; ask for the table's state",
            ));
        }
        change.check().map_err(|error| misbehaved(error.message()))?;
        self.changes = number;
        self.list.insert(number, Arc::new(change.clone()));
        Ok(())
    }

    fn built(&mut self, layer: &Arc<LayerDescription>, takes_over_at: u64) -> Result<()> {
        let known = self.layers.get(&layer.span);
        let known = known.or(self.coming.get(&layer.span).map(|(known, _)| known));
        match known {
            Some(known) if known == layer => Ok(()),
            Some(_) => Err(Error::integrity(
                "a layer is announced that differs from what was announced before; the server does not tell all clients the same",
            )),
            None => {
                self.coming.insert(layer.span, (layer.clone(), takes_over_at));
                Ok(())
            }
        }
    }

    fn takes_over(&mut self, span: Span) -> Result<()> {
        if self.layers.contains_key(&span) {
            return Ok(());
        }
        let Some((layer, _)) = self.coming.remove(&span) else {
            return Err(misbehaved("a layer takes over that was not announced"));
        };
        self.layers.retain(|of, _| !span.contains(*of));
        self.list.retain(|number, _| !span.contains_change(*number));
        self.layers.insert(span, layer);
        self.changes = self.changes.max(span.last);
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.layers.len() + self.coming.len() > MAX_LAYERS || self.list.len() > self.longest_list
        {
            return Err(misbehaved("there are more layers or more changes than possible"));
        }
        let spans = self.layers.keys().map(|span| (span.first, span.last));
        let listed = self.list.keys().map(|number| (*number, *number));
        let mut next = 0u64;
        for (first, last) in spans.chain(listed) {
            if first != next {
                return Err(misbehaved(
                    "the layers and the list do not hold each change once; ask for the table's state",
                ));
            }
            next = last.saturating_add(1);
        }
        if next != self.changes.saturating_add(1) {
            return Err(misbehaved("the newest changes are in no layer and not in the list"));
        }
        Ok(())
    }
}

fn misbehaved(how: &str) -> Error {
    Error::peer_misbehaved(format!("the announced layers make no sense: {how}"))
}
