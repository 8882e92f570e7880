//! What a table takes of a server's memory.

use super::{SchemePlan, patches_downloads};
use crate::offline::OfflinePhase;
use privet_core::TableIdentity;

/// What serving a table takes of a server's memory, in bytes. It follows from the scheme's
/// parameters, so it is known before anything is built. Some tens of MiB that every server takes
/// come on top; so do clients, as far as the server's limits let them, and the records that the
/// update log has changed since the table file was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerMemory {
    /// One version that is ready: the table as the scheme lays it out, what the scheme computed of
    /// it, and what clients download of that. A server that reads the download from its cache takes
    /// so much less until the first update.
    pub version: u64,
    /// What the first version takes besides while it is made.
    pub starting: u64,
    /// What a next version takes besides while it is made.
    pub updating: u64,
}

impl ServerMemory {
    /// The most while a server starts.
    pub fn at_start(&self) -> u64 {
        self.version.saturating_add(self.starting)
    }

    /// The most while a next version is made and takes over: it stands beside the one before. That
    /// one then stays for its grace period, if it is not in the way of another update.
    pub fn at_update(&self) -> u64 {
        self.version.saturating_mul(2).saturating_add(self.updating)
    }
}

impl SchemePlan {
    /// What serving the table takes of a server's memory.
    ///
    /// `threads` are those that share the server's work.
    pub fn memory(&self, identity: &TableIdentity, threads: usize) -> ServerMemory {
        let costs = self.costs(identity);
        let (beside, of_threads) = (costs.server_bytes, costs.thread_bytes * threads as u64);
        let table = match self.offline {
            // Clients fetch it from its file, and nothing is computed of it.
            OfflinePhase::KeepTable { .. } => 0,
            _ => identity.shape.bytes(),
        };
        let version = table + beside;
        // Points are computed from a copy of the records. All else that is computed stands in
        // memory once more before it is put into place.
        let computed = match self.work(identity).computed_bytes() {
            Some(_) => identity.shape.bytes(),
            None => beside,
        };
        let starting = computed + of_threads;
        let itself = (self, identity);
        let updating = match self.scheme.about().commits {
            // Clients need the commitments of each epoch. So the epochs are followed one by one,
            // from one server to the next, beside a copy of the records.
            true => table + version,
            // Growth that changes the parameters computes the download anew, as at a start.
            false if patches_downloads(itself, itself) => 0,
            false => starting,
        };
        ServerMemory { version, starting, updating }
    }
}
