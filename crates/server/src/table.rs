//! What is to be served.

use crate::UpdateFeed;
use privet_core::{Result, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::registry::{self, SchemePlan, Tuning};
use privet_schemes::stored_setup::StoredSetup;
use std::path::Path;
use std::sync::Arc;

/// One table to be served, by one scheme: the version that is served first, or from which that
/// follows.
///
/// [`new`](Self::new) takes what every table has; what is chosen beside is a field to be set.
pub struct ServedTable {
    /// The name under which clients find it: 1 to 64 characters of `A-Z a-z 0-9 . _ -`.
    pub name: String,
    /// Which table, in which version.
    pub identity: TableIdentity,
    /// The encoded record layout: how keys and values lie in records. Handed to clients as it is.
    pub layout: Arc<[u8]>,
    /// Where the records lie.
    pub records: Box<dyn RecordSource>,
    /// The scheme that serves it.
    pub scheme: SchemeId,
    /// What of the scheme's parameters is chosen rather than computed from the table's shape;
    /// [`Tuning::default`] chooses nothing. Clients hear of the outcome and need no choice of their
    /// own, but of two servers of one scheme both must make the same.
    pub tuning: Tuning,
    /// The shape that the scheme's parameters are chosen for, if it is not the table's: of a table
    /// that has grown, the one with which its history began. Parameters then stay what they were,
    /// as far as they suit the table.
    pub planned_for: Option<TableShape>,
    /// What the scheme's server answers from, if that was computed before and not at each start.
    /// Its parameters are then those it was computed with, and `tuning` chooses nothing. Only for
    /// schemes that [store their setup](registry::stores_setup).
    pub setup: Option<Box<dyn SetupSource>>,
    /// Its update log, if it has one.
    pub updates: Option<UpdateFeed>,
}

impl ServedTable {
    /// A table to be served by `scheme`, as it is: nothing else is chosen, nothing was computed
    /// before, and no updates follow. `records` holds `identity.shape.bytes()` bytes.
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

    /// What the scheme comes to on the table as it is first served.
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

/// Where a table's records lie: in memory, in a file.
///
/// The scheme's server makes a copy in the order in which it computes. The source stays, because
/// clients may also fetch the table as a whole.
pub trait RecordSource: Send + Sync {
    /// All records, one after the other in their natural order: `identity.shape.bytes()` bytes, the
    /// same on every call. They may lie in a mapped file, whose bytes somebody can change: what was
    /// made of them is of use only if they are [unchanged](Self::check_unchanged) afterwards. That
    /// it is cut short must not end the process.
    fn bytes(&self) -> &[u8];

    /// Reads as many of these bytes as `into` has, from byte `offset` on, which lie within: of a
    /// file by an ordinary read.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the file was cut short,
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be read. Both name it.
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let start = offset as usize;
        into.copy_from_slice(&self.bytes()[start..start + into.len()]);
        Ok(())
    }

    /// That all that was read so far is what was there when the source was made, as far as the
    /// system says at once.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted), with the file's name, if it was written
    /// to or cut short.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }

    /// The file in which they lie, if they lie in one.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Says that the bytes will not be needed for a while, so that a mapped file need not stay in
    /// memory. They must stay readable.
    fn release(&self);
}

/// What a scheme's server answers from, computed of a table before, and where it lies: in a file,
/// as a rule.
#[expect(clippy::len_without_is_empty, reason = "there is always something")]
pub trait SetupSource: Send + Sync {
    /// The scheme's parameters in their canonical encoding, with which it was computed.
    fn parameters(&self) -> &[u8];

    /// Refuses any table but the one, in the one version, that it was computed from: answers from
    /// that of another would be wrong, and nobody would notice.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with what both tables are.
    fn check_table(&self, table: &TableIdentity) -> Result<()>;

    /// How many bytes it has.
    fn len(&self) -> u64;

    /// Its BLAKE3 digest, which [`load`](Self::load) has found it to have.
    fn digest(&self) -> [u8; 32];

    /// The file in which it lies, if it lies in one.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// All of it, once it is found to be what was written, with so many threads. `progress` hears
    /// of the share done, from 0 to 1.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is damaged,
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be read or the memory
    /// cannot be had.
    fn load(&self, threads: usize, progress: &(dyn Fn(f64) + Sync)) -> Result<StoredSetup>;
}

impl RecordSource for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn release(&self) {}
}
