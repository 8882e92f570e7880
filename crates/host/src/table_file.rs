//! A table file, and how to serve it.

use crate::FollowedTable;
use crate::followed;
use privet_core::{ReadRecords, Result, TableIdentity};
use privet_schemes::SchemeId;
use privet_schemes::registry::{self, Tuning};
use privet_server::{RecordSource, ServedTable};
use privet_table::snapshot::Snapshot;
use privet_table::update_log::{CurrentRecords, PublisherId, find_log};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which table file is served, and how. [`TableFile::new`] leaves everything else at its default.
#[derive(Clone, Debug)]
pub struct TableFile {
    /// The name under which clients find the table: 1 to 64 characters of `A-Z a-z 0-9 . _ -`.
    /// The server refuses any other.
    pub name: String,
    /// The file's path. Its update log, if it has one, lies beside it.
    pub path: PathBuf,
    /// The scheme that serves it; `None` for the one that suits the table
    /// ([`choose`](registry::choose)).
    pub scheme: Option<SchemeId>,
    /// The scheme's parameters that are chosen rather than computed.
    pub tuning: Tuning,
    /// The publisher of the table's updates, if the caller knows it: then a log of another
    /// publisher is refused, even if its own header names that one.
    pub publisher: Option<PublisherId>,
}

impl TableFile {
    /// The file at `path`, to be served under `name` by the scheme that suits it.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            path: path.into(),
            scheme: None,
            tuning: Tuning::default(),
            publisher: None,
        }
    }

    /// The default name for a file's table: the file's name without the extension. `None` if that
    /// is not text.
    pub fn default_name(path: &Path) -> Option<&str> {
        path.file_stem()?.to_str()
    }

    /// Whether an update log lies beside the file. [`open`](Self::open) then reads all of it.
    pub fn has_log(&self) -> bool {
        matches!(find_log(&self.path), Ok(Some(_)))
    }

    /// Opens the file and its update log, if it has one. Returns the table that a server serves
    /// first, and the object that follows its files later. The first version is the table after the
    /// log's last epoch.
    ///
    /// Verifies the epochs. Does not verify the records of the file: the server does that at its
    /// start.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the file is missing or not a table
    ///   file, or the log is not a log or belongs to another table, or there are two;
    /// - [`Blame::Corrupted`](privet_core::Blame::Corrupted) if either is damaged;
    /// - [`Blame::Integrity`](privet_core::Blame::Integrity) if the log has another publisher than
    ///   the named one, or its epochs do not follow one another;
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if either cannot be read, or the
    ///   table file was replaced in between: try again. Also if the table has had a log and it is
    ///   gone, or older than the table file.
    pub fn open(&self) -> Result<(ServedTable, FollowedTable)> {
        followed::open(self)
    }

    /// The opened table, to be served as it is.
    pub(crate) fn served(&self, snapshot: Arc<Snapshot>) -> ServedTable {
        let identity = snapshot.identity();
        let (layout, scheme) =
            (Arc::<[u8]>::from(snapshot.layout_bytes()), self.scheme_for(&identity));
        let records = FileRecords(snapshot.into());
        let table = ServedTable::new(&*self.name, identity, layout, records, scheme);
        ServedTable { tuning: self.tuning.clone(), ..table }
    }

    /// The named scheme, or the one that suits the table.
    pub(crate) fn scheme_for(&self, table: &TableIdentity) -> SchemeId {
        self.scheme.unwrap_or_else(|| registry::choose(table))
    }
}

/// The records of an open table file, guarded against changes, with the updates of its log.
pub(crate) struct FileRecords(pub(crate) CurrentRecords);

impl ReadRecords for FileRecords {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        self.0.read(offset, into)
    }
}

impl RecordSource for FileRecords {
    fn check_unchanged(&self) -> Result<()> {
        self.0.snapshot().check_unchanged()
    }

    fn file(&self) -> Option<&Path> {
        Some(self.0.snapshot().path())
    }

    fn memory(&self) -> u64 {
        self.0.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::followed::tests::Owner;
    use privet_core::{Blame, Reason};
    use privet_table::update_log::log_path;

    #[test]
    fn a_table_is_served_with_its_log_and_not_without_it() {
        let mut owner = Owner::new();
        let file = owner.table_file();
        assert!(!file.has_log());
        assert!(file.open().unwrap().0.updates.is_none());
        owner.update(&[3], false);
        assert!(file.has_log());
        assert!(file.open().unwrap().0.updates.unwrap().next.is_some());
        std::fs::remove_file(log_path(&owner.path())).unwrap();
        let error = file.open().err().expect("the log is lost");
        assert_eq!((error.blame(), error.reason()), (Blame::Unavailable, Some(Reason::LogLost)));
    }

    #[test]
    fn the_scheme_is_the_one_that_was_named_or_the_one_that_suits() {
        let owner = Owner::new();
        let chosen = owner.table_file().open().unwrap().0;
        assert_eq!(chosen.scheme, registry::choose(&chosen.identity));
        let other = SchemeId::Dpf;
        assert_ne!(chosen.scheme, other);
        let file = TableFile { scheme: Some(other), ..owner.table_file() };
        assert_eq!(file.open().unwrap().0.scheme, other);
    }

    #[test]
    fn a_table_is_named_after_its_file_and_a_missing_file_is_its_callers_mistake() {
        assert_eq!(TableFile::default_name(Path::new("some/where/a.b.privet")), Some("a.b"));
        assert_eq!(TableFile::default_name(Path::new("some/..")), None);
        let missing = TableFile::new("t", Owner::new().path().with_file_name("missing"));
        let error = missing.open().err().expect("there is no such file");
        assert_eq!(error.blame(), Blame::ApiMisuse, "{error}");
        assert!(error.message().contains("missing"), "{error}");
    }
}
