//! Tables that are ready, each in all its served versions: for each version, the scheme's server,
//! the parts that clients fetch, and the announced descriptions of both.
//!
//! A version never changes. When a table changes, the next version is made beside the served ones,
//! and then becomes the current one at once. The earlier version stays for a while, as one of the
//! table's earlier ones. Every request says which version it means. Computing an answer or hints
//! holds the version, so a retired version is freed when the last of these has ended. A stream of
//! what lies in a version's memory ends with the version: see [`fetch`](crate::fetch).
//!
//! When a table has a successor, that takes its place in the same way: the last versions of the
//! table before stay for a while as earlier ones, with their own id.

mod condition;
mod feed;
mod making;
mod part;
mod setup;
mod tables;
mod verification;

use crate::batch::Lane;
use bytes::Bytes;
use privet_core::{Error, TableIdentity};
use privet_schemes::contract::Role;
use privet_schemes::registry::{ErasedServer, SchemePlan, Tuning};
use privet_table::key_map::Room;
use privet_wire::{PartKind, TableDescription};
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) use condition::Condition;
pub(crate) use feed::EpochReading;
use feed::Feed;
pub(crate) use making::{Made, Maker};
pub(crate) use part::Part;
pub use setup::HintOrigin;
pub(crate) use tables::{HostedTables, VersionMemory};
use verification::HeldDigests;
pub(crate) use verification::ReadProgress;

/// The description of a table that is ready.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadyTable {
    /// Its name, identity and scheme as clients see them: of this version alone, without the update
    /// log and the earlier versions.
    pub description: TableDescription,
    /// How many more keys it takes, about, if it is a table by key.
    pub room: Option<Room>,
    /// Where its hint came from, and whatever else its scheme needs beside the table.
    pub hint_origin: HintOrigin,
    /// Seconds until it was ready.
    pub seconds: f64,
    /// Memory held beyond the bytes of the table itself, in bytes: padding, data of the scheme's
    /// server, and the hint if no file has it.
    pub extra_bytes: u64,
    /// Size of the points that its server answers from, in memory or in a file, for schemes that
    /// make points of a table.
    pub setup_bytes: Option<u64>,
    /// How much of the memory of the table, or of its points, the system backs with huge pages, if
    /// the system says.
    pub huge_page_bytes: Option<u64>,
}

/// The error for clients of a version that was retired before their turn came, or in the middle.
pub(crate) fn retired() -> Error {
    Error::peer_misbehaved(
        "this version of the table is not served any more; ask again what is served, and fetch \
         what belongs to it",
    )
}

/// One version of a table, ready to answer.
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) identity: TableIdentity,
    pub(crate) plan: SchemePlan,
    pub(crate) parameter_digest: [u8; 32],
    pub(crate) server: Arc<dyn ErasedServer>,
    /// One for each role.
    lanes: Vec<Arc<Lane>>,
    layout: Arc<Part>,
    hint: Option<Arc<Part>>,
    records: Arc<Part>,
    /// Its announced description.
    pub(crate) description: TableDescription,
    /// The epochs that lead up to it, if the table has an update log.
    pub(crate) feed: Option<Arc<Feed>>,
    /// The settings with which the next version is made.
    tuning: Tuning,
    origin: HintOrigin,
    /// Whether the table is served.
    pub(crate) condition: Arc<Condition>,
    /// The digests that the data behind answers had when this version was made.
    held_digests: HeldDigests,
    /// The file of points that answers come from, if they do.
    setup_file: Option<PathBuf>,
}

impl Version {
    /// What it holds in memory, in bytes: of the scheme's server, the hint and the records.
    fn memory(&self) -> u64 {
        let hint = self.hint.as_ref().map_or(0, |hint| hint.memory());
        self.server.resident_bytes() + hint + self.records.memory()
    }

    /// The part `kind`; `None` if the version has no such part of its own.
    pub(crate) fn part(&self, kind: PartKind) -> Option<&Arc<Part>> {
        match kind {
            PartKind::Layout => Some(&self.layout),
            PartKind::Hint => self.hint.as_ref(),
            PartKind::Table => Some(&self.records),
            _ => None,
        }
    }

    /// The queue for queries in that role, if the scheme has it.
    pub(crate) fn lane(&self, role: Role) -> Option<&Arc<Lane>> {
        self.lanes.get(usize::from(role.0))
    }

    fn lanes(
        condition: &Arc<Condition>,
        server: &Arc<dyn ErasedServer>,
        plan: &SchemePlan,
    ) -> Vec<Arc<Lane>> {
        let roles = u8::try_from(plan.query_lens.len()).unwrap_or(u8::MAX);
        let lane = |(role, query_len)| {
            Arc::new(Lane::new(Arc::clone(condition), Arc::clone(server), Role(role), query_len))
        };
        (0..roles).zip(plan.query_lens.iter().copied()).map(lane).collect()
    }

    fn layout_part(layout: &Arc<[u8]>) -> Arc<Part> {
        Arc::new(Part::Memory(Bytes::from_owner(Arc::clone(layout))))
    }
}

#[cfg(test)]
mod tests;
