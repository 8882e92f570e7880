//! Tables to be served.

use crate::UpdateFeed;
use privet_core::{ReadRecords, Result, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::registry::{self, ErasedServer, SchemePlan, ServerOptions, Tuning};
use std::path::Path;
use std::sync::Arc;

/// One table to be served, by one scheme: the version that is served first, or from which that
/// version follows.
///
/// [`new`](Self::new) takes what every table has; optional settings are fields.
pub struct ServedTable {
    /// The name under which clients find it: 1 to 64 characters of `A-Z a-z 0-9 . _ -`.
    pub name: String,
    /// The table's id and version.
    pub identity: TableIdentity,
    /// The encoded record layout: how keys and values lie in records. Clients get it unchanged.
    pub layout: Arc<[u8]>,
    /// The source of the records.
    pub records: Box<dyn RecordSource>,
    /// The scheme that serves it.
    pub scheme: SchemeId,
    /// The scheme's parameters that are chosen rather than computed from the table's shape;
    /// [`Tuning::default`] chooses nothing. Clients receive the outcome and choose nothing
    /// themselves, but both servers of a scheme must make the same choice.
    pub tuning: Tuning,
    /// The shape that the scheme's parameters are chosen for, if it is not the table's: for a table
    /// that has grown, its first shape. The parameters then stay the same, as far as they suit the
    /// table.
    pub planned_for: Option<TableShape>,
    /// The scheme's server, if it answers from precomputed data. The parameters are then those of
    /// the computation, and `tuning` chooses nothing.
    pub setup: Option<Box<dyn SetupSource>>,
    /// Its update log, if it has one.
    pub updates: Option<UpdateFeed>,
}

impl ServedTable {
    /// A table to be served by `scheme`, with nothing else chosen, nothing precomputed, and no
    /// updates. `records` holds `identity.shape.bytes()` bytes.
    pub fn new(
        name: impl Into<String>,
        identity: TableIdentity,
        layout: impl Into<Arc<[u8]>>,
        records: impl RecordSource + 'static,
        scheme: SchemeId,
    ) -> Self {
        Self {
            name: name.into(),
            identity,
            layout: layout.into(),
            records: Box::new(records),
            scheme,
            tuning: Tuning::default(),
            planned_for: None,
            setup: None,
            updates: None,
        }
    }

    /// The scheme's plan for the table as it is first served.
    pub(crate) fn plan(&self) -> Result<SchemePlan> {
        let first = TableIdentity {
            shape: self.planned_for.unwrap_or(self.identity.shape),
            ..self.identity
        };
        let plan = registry::plan(self.scheme, &first, &self.tuning)?;
        match first == self.identity {
            true => Ok(plan),
            false => registry::plan_next(&plan, &self.identity, &self.tuning),
        }
    }
}

/// The source of a table's records, in their natural order: memory or a file.
///
/// The scheme's server makes a copy in the order in which it computes. The source stays, because
/// clients may also fetch the table as a whole. Another program can change a file: what was read
/// is valid only if the source is [unchanged](Self::check_unchanged) afterwards.
pub trait RecordSource: ReadRecords {
    /// Checks that everything read so far is unchanged since the source was made, as far as the
    /// system can say without reading.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted), with the file's name, if it was written
    /// to or cut short.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }

    /// The file of the records, if they lie in one.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// How many bytes of memory it holds.
    fn memory(&self) -> u64;
}

/// A scheme's server that answers from precomputed data, usually in a file.
pub trait SetupSource: Send + Sync {
    /// The plan with which the data was computed. Refuses any table but the one, in the one
    /// version, that it was computed from: with the data of another table, answers would be wrong,
    /// and nobody would notice.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the identities of both tables, or
    /// if the data is of another scheme; [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it
    /// does not fit the table.
    fn plan(&self, scheme: SchemeId, table: &TableIdentity) -> Result<SchemePlan>;

    /// The BLAKE3 digest of the data, which [`server`](Self::server) has checked.
    fn digest(&self) -> [u8; 32];

    /// Its file, if it lies in one.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// The server, after checking that the data is what was written. `progress` is called with the
    /// share done, from 0 to 1.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is damaged,
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be read or there is not
    /// enough memory.
    fn server(
        &self,
        plan: SchemePlan,
        table: &TableIdentity,
        options: ServerOptions,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<Box<dyn ErasedServer>>;
}

impl RecordSource for Vec<u8> {
    fn memory(&self) -> u64 {
        self.capacity() as u64
    }
}
