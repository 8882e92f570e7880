//! Tables that keep changing, of any scheme: recent changes in a list that clients hold, older ones
//! in static tables of doubling size.
//!
//! A scheme answers queries on a table that does not change. Some schemes can follow edits of
//! records (the contract's `Updatable`, `UpdatingServer`). For keys that are inserted and deleted,
//! and for other schemes, there is the method of Bentley and Saxe (*Decomposable searching problems
//! I*, 1980), as Zhou, Park, Zheng and Shi use it (*Piano*, appendix A.2). It makes a static scheme
//! dynamic, with the scheme as a black box:
//!
//! ```text
//!   newest                                                                             oldest
//!   ┌──────┐ ┌─────────┐ ┌───────────────────┐ ┌──────────────────────────────────────────────┐
//!   │ list │ │ level 0 │ │      level 1      │ │                   level 2                    │  …
//!   │ ≤ 2B │ │   ≤ B   │ │       ≤ 2B        │ │                     ≤ 4B                     │
//!   └──────┘ └─────────┘ └───────────────────┘ └──────────────────────────────────────────────┘
//!    held by   a table of   its own each, static, with its own key map, hints and version
//!    clients
//! ```
//!
//! The *list* has the newest changes, B of them or somewhat more; it is public, and every client
//! has it. B changes together become a *layer*: a static table by key. Two layers of one *level*
//! are merged into one of the next level, which keeps only the newer of two changes of the same
//! key. A deleted key leaves a *tombstone*, which hides its older entries, and is dropped in the
//! oldest layer.
//!
//! A lookup always queries **every** layer, for the record in which the key would be, whatever the
//! list or any other layer holds. Then the newest entry for the key counts. The set of layers is
//! public: it follows from the number of changes and the public contents. If a lookup stopped at
//! the first layer that has the key, it would tell the server which layer that is.
//!
//! # In the background
//!
//! If layers were merged at once, one update in 2^*i* would cost as much as a table of B·2^*i*
//! entries. Here the old layers go on answering while the new layer is being built, and while
//! clients fetch what they need for it, piece by piece with the updates. At a change whose number
//! is fixed in advance, the new layer takes over. The layers that it replaces answer for B more
//! changes, so that no lookup under way is lost.
//!
//! A build (merging, packing, the scheme's own setup) cannot be split without opening the black
//! box. So it is a value, a [`Build`], which can run on any thread, at any time before it is due.
//!
//! # What happens when
//!
//! | after | what |
//! |---|---|
//! | every B changes | the list's oldest B become a layer of level 0, which takes over B/2 changes later |
//! | two layers of level *i* are there | they are merged; the new layer takes over B·2^*i* / 2 changes later |
//! | a layer was built | it is announced to clients; they fetch equal parts for it until it takes over |
//!
//! So there are at most two layers of each level, and one on average. (If the list holds one
//! change, its half counts as one, and there can be three layers of level 0 for a moment.)
//!
//! # What it costs
//!
//! For *n* entries, of which the list holds B, and with L = log₂(*n*/B):
//!
//! | | amortized for a change | at most for a change | paper, A.2 |
//! |---|---|---|---|
//! | entries that the server builds | L + 2 | none: in the background | L + 1 |
//! | entries that a client fetches | L + 2 | 4·(L + 2) | L + 1 |
//! | key maps, half a byte for an entry | (L + 2)/2 bytes | that of the largest layer, once it is built | not said |
//!
//! The paper counts one rebuild of each entry for each of the levels 0 to L. Here a list becomes a
//! layer before it is merged, and layers are merged two at a time. An entry costs what it costs in
//! a static table of that scheme. In some schemes that is more in small tables than in large ones:
//! SimplePIR's hint grows with √*n*. Then most of the cost lies in the lowest levels, and a longer
//! list reduces it.
//!
//! A lookup costs one query to each layer, at most 2·(L + 2). If a cost of the scheme grows with
//! the table's size, its sum over all layers is at most four times that of one table of *n*
//! entries.
//!
//! # Measured
//!
//! Values of 32 bytes, 1,024 changes in the list, batches of 16 changes; processor time on a
//! machine with other work, every value checked (`cargo run --release -p privet-layers --example
//! layers`). For each change, *anew* (the whole table set up for each batch) / *layers* / *the
//! paper's bound*:
//!
//! | | server µs | client bytes | tables asked, mean | server, one lookup |
//! |---|---|---|---|---|
//! | `dummy-subsets`, 2^16 | 13,794 / 55 / 24 | 177,611 / 325 / 304 | 7.5 | × 4.7 |
//! | `dummy-subsets`, 2^18 | 71,495 / 59 / 39 | 710,104 / 392 / 390 | 9.5 | × 4.6 |
//! | `dummy-subsets`, 2^20 | 341,029 / 65 / 57 | 2,840,353 / 457 / 477 | 11.5 | × 5.5 |
//! | `simplepir`, 2^18 | 92,736 / 68 / 51 | 846,862 / 2,490 / 465 | 9.5 | × 2.8 |
//! | `dpf`, 2^18 | 70,657 / 59 / 39 | 8,205 / 54 / 4.5 | 9.5 | × 3.2 |
//!
//! The worst batch at 2^20 with `dummy-subsets` is 620 KB and 101 ms at a client, against 45 MB and
//! 242 ms for starting over; the longest build in the background takes 4.7 s.
//!
//! # Which part of the paper is where
//!
//! | appendix A.2 | here |
//! |---|---|
//! | Init | [`LayeredServer::new`] |
//! | Insert, Update, Delete | [`LayeredServer::update`] with [`KeyChange`]s |
//! | Γ₋₁, the most recent updates | the list: [`Event::Changed`] |
//! | Γ₀ … Γ_L | [`Layer`]s |
//! | the merge, with duplicate suppression | [`Build::run`] |
//! | the preprocessing with every client | [`LayeredClient::due`], [`absorb`](LayeredClient::absorb) |
//! | Query | [`LayeredClient::lookup`], [`settle`](LayeredClient::settle), [`take`](LayeredClient::take) |
//! | "the client can defer the rebuild work to the next time it comes online" | [`LayeredServer::state`], which a client follows from wherever it is |
//! | removing the known-*n* assumption | the level of the oldest layer follows from its size |
//! | de-amortization (section 2.4, there for the hints of one table) | the section above |
//!
//! Γ_i is empty or one table in the paper, and up to two here; see [In the
//! background](self#in-the-background).
//!
//! # What is public, and what is trusted
//!
//! Keys, values, changes and layers are public: they are the table. The key that a client looks up
//! is secret; [`LayeredClient`] says what a server sees of it.
//!
//! Announcements are not signed. Clients believe what the server says of the table, as they do for
//! a table that does not change; with several servers, they compare
//! [versions](LayeredClient::version) before they ask. An owner signs the [update
//! log](privet_table::update_log), and servers take the changes from that.
//!
//! # Why this is a separate crate
//!
//! Layers are tables by key of a scheme, so they need both [key maps](privet_table::key_map) and
//! the schemes' registry. No command serves them yet: the announcements of a layered table have no
//! place in the wire protocol, whose descriptions name one table with one digest. So this crate
//! stands beside the served tables, and nothing else depends on it.
//!
//! A layer is never edited, so its key map uses buckets, and a lookup makes one query to each
//! layer.

mod announcement;
mod build;
mod client;
mod entries;
mod schedule;
mod server;
mod view;

#[cfg(test)]
mod tests;

pub use announcement::{Announcement, Event, LayerDescription};
pub use build::{Build, Built, Layer};
pub use client::{
    Due, HintStore, LayerQuery, LayeredClient, Logged, LookupNumber, NoHints, Queries,
};
pub use server::LayeredServer;

use privet_core::{Error, Result, TableId};
use privet_schemes::SchemeId;

/// The longest key.
pub const MAX_KEY_LEN: usize = 1 << 16;

/// The longest value. The longest value of a layer decides how wide all its records are, apart from
/// the few values in its stash.
pub const MAX_VALUE_LEN: usize = 1 << 20;

/// The longest list.
pub const MAX_LIST: u32 = 1 << 20;

/// The parameters of a layered table.
#[derive(Clone, Debug)]
pub struct LayeredParameters {
    scheme: SchemeId,
    list: u32,
}

impl LayeredParameters {
    /// Layers of this scheme, and B: how many changes make a layer.
    ///
    /// A longer list means fewer layers and less to rebuild, but each client holds more. The paper
    /// takes about √*n*·log *n*, so that the list is no larger than the hints of its scheme.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the list is empty or longer than
    /// [`MAX_LIST`].
    pub fn new(scheme: SchemeId, list: u32) -> Result<Self> {
        if !(1..=MAX_LIST).contains(&list) {
            return Err(Error::api_misuse(format!(
                "a layered table needs a list of 1 to {MAX_LIST} changes, not {list}"
            )));
        }
        Ok(Self { scheme, list })
    }

    /// The layers' scheme.
    pub fn scheme(&self) -> SchemeId {
        self.scheme
    }

    /// B.
    pub fn list(&self) -> u32 {
        self.list
    }
}

/// One change of a table by key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyChange {
    /// The key, of at most [`MAX_KEY_LEN`] bytes.
    pub key: Vec<u8>,
    /// Its new value, of at most [`MAX_VALUE_LEN`] bytes; `None`: the key is deleted.
    pub value: Option<Vec<u8>>,
}

impl KeyChange {
    fn check(&self) -> Result<()> {
        let value_len = self.value.as_ref().map_or(0, Vec::len);
        if self.key.len() > MAX_KEY_LEN || value_len > MAX_VALUE_LEN {
            return Err(Error::api_misuse(format!(
                "a key of {} bytes with a value of {value_len} is too long for a layered table: the limits are {MAX_KEY_LEN} and {MAX_VALUE_LEN}",
                self.key.len()
            )));
        }
        Ok(())
    }
}

/// The changes that a layer holds, from the first to the last. It names the layer: no two layers of
/// a table have the same span. The table's first contents count as change 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The number of its first change.
    pub first: u64,
    /// The number of its last change; not below `first`.
    pub last: u64,
}

impl Span {
    fn contains(self, other: Span) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    fn contains_change(self, number: u64) -> bool {
        (self.first..=self.last).contains(&number)
    }
}

/// A digest of a layered table in one version: of its layers and its list.
fn version<'a>(
    table: TableId,
    layers: impl Iterator<Item = &'a LayerDescription>,
    list: impl Iterator<Item = (u64, &'a KeyChange)>,
) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("privet layered table v1, version");
    for layer in layers {
        let identity = layer.identity(table);
        hasher.update(&identity.id.0);
        hasher.update(&identity.digest.0);
        hasher.update(&(layer.parameters.len() as u64).to_le_bytes());
        hasher.update(&layer.parameters);
    }
    for (number, change) in list {
        hasher.update(&number.to_le_bytes());
        hasher.update(&(change.key.len() as u64).to_le_bytes());
        hasher.update(&change.key);
        let value = change.value.as_deref();
        hasher.update(&value.map_or(u64::MAX, |value| value.len() as u64).to_le_bytes());
        hasher.update(value.unwrap_or(&[]));
    }
    *hasher.finalize().as_bytes()
}
