//! Serving a table from a file of precomputed points.

use super::points_file::PointsFile;
use privet_core::{Error, Reason, Result, TableIdentity, quantities};
use privet_host::memory;
use privet_kernels::memory::HugeBuffer;
pub(crate) use privet_laboratory::stored_setup::stores_setup as are_made_for;
use privet_laboratory::stored_setup::{StoredSetup, plan_of_setup, server_of_setup};
use privet_schemes::SchemeId;
use privet_schemes::registry::{ErasedServer, SchemePlan, ServerOptions};
use privet_server::{ServedTable, SetupSource, UpdateFeed};
use std::num::NonZero;
use std::path::Path;

/// Where answers read the points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointsIn {
    /// Read into memory, which must have room for all of them.
    Memory,
    /// Left in their file; the system keeps in memory what is used.
    File,
}

/// The same table, served from the points in `file`, by the scheme that they were computed for; a
/// caller who wants another scheme must check the result. The points belong to the table as its
/// file has it, and then follow its update log; or they belong to the table as it is now.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is no such file, or it holds no
/// points, or points of another table or of an unknown scheme;
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if its header is damaged;
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be read. The points
/// themselves are checked when the server starts.
pub(crate) fn with_points(
    table: ServedTable,
    file: &Path,
    points: PointsIn,
) -> Result<ServedTable> {
    let file = PointsFile::open(file)?;
    let table = match file.check_table(&table.identity) {
        Ok(()) => table,
        Err(_) => as_it_is(table),
    };
    file.check_table(&table.identity)?;
    let scheme: SchemeId = (file.header().scheme.parse())
        .map_err(|error: Error| Error::api_misuse(error.message()).within(file.path().display()))?;
    Ok(ServedTable { scheme, setup: Some(Box::new(FilePoints { file, points })), ..table })
}

/// The same table, beginning with the version after its updates.
fn as_it_is(table: ServedTable) -> ServedTable {
    let Some(updates) = table.updates else { return table };
    let UpdateFeed { signing, first_epoch, mut epochs, next } = updates;
    let (mut identity, mut layout, mut records) = (table.identity, table.layout, table.records);
    if let Some(next) = next {
        identity = next.identity().unwrap_or(identity);
        (layout, records) = (next.layout, next.records);
        epochs.extend(next.steps.into_iter().filter_map(|step| step.epoch));
    }
    let updates = Some(UpdateFeed { signing, first_epoch, epochs, next: None });
    ServedTable { identity, layout, records, updates, ..table }
}

/// Points in a file.
struct FilePoints {
    file: PointsFile,
    points: PointsIn,
}

impl FilePoints {
    /// All of the points, after checking that they are what was written.
    fn load(&self, threads: usize, progress: &(dyn Fn(f64) + Sync)) -> Result<StoredSetup> {
        let threads = NonZero::new(threads).unwrap_or(NonZero::<usize>::MIN);
        let report = |done: u64, total: u64| progress(done as f64 / total as f64);
        if self.points == PointsIn::File {
            // Map the file first: a change after that is noticed.
            let (mapping, start) = self.file.map()?;
            self.file.verify(threads, report)?;
            mapping
                .check_unchanged()
                .map_err(|error| Error::corrupted(error.to_string()).caused_by(error))?;
            return StoredSetup::in_file(mapping, start);
        }
        let len = self.file.header().points_len;
        let no_memory = || {
            Error::unavailable(format!(
                "there is no memory for {} of points; mapped, they stay in {}",
                quantities::bytes(len),
                self.file.path().display()
            ))
            .because(Reason::PointsFileExceedsMemory)
        };
        // The system grants more memory than it has, and ends processes when that memory is used.
        if memory::available().is_some_and(|available| available < len) {
            return Err(no_memory());
        }
        let mut points = usize::try_from(len).map_err(|_| no_memory()).and_then(|len| {
            HugeBuffer::new_zeroed(len).map_err(|error| no_memory().caused_by(error))
        })?;
        self.file.read(&mut points, threads, report)?;
        Ok(StoredSetup::from(points))
    }
}

impl SetupSource for FilePoints {
    fn plan(&self, scheme: SchemeId, table: &TableIdentity) -> Result<SchemePlan> {
        self.file.check_table(table)?;
        let header = self.file.header();
        if header.scheme != scheme.name() {
            return Err(Error::api_misuse(format!(
                "{} holds points of scheme {}, not of {scheme}",
                self.file.path().display(),
                header.scheme
            )));
        }
        plan_of_setup(scheme, table, &header.parameters, header.points_len)
    }

    fn digest(&self) -> [u8; 32] {
        self.file.header().digest
    }

    fn file(&self) -> Option<&Path> {
        Some(self.file.path())
    }

    fn server(
        &self,
        plan: SchemePlan,
        table: &TableIdentity,
        options: ServerOptions,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<Box<dyn ErasedServer>> {
        server_of_setup(plan, table, self.load(options.threads, progress)?, options)
    }
}
