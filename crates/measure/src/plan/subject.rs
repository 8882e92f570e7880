//! The table that a plan is for: a file, rows to be built, or a shape.

use super::advice::build_command;
use crate::identity_of;
use privet_core::{Error, Result, TableIdentity, TableShape};
use privet_table::FileKind;
use privet_table::authentication::shape_with_paths;
use privet_table::build::{BuildOptions, build_table_from};
use privet_table::import::Source;
use privet_table::key_map::forecast;
use privet_table::snapshot::Snapshot;
use privet_table::update_log::UpdateLog;
use std::path::{Path, PathBuf};

/// What a Merkle root takes in a layout.
const ROOT_BYTES: u64 = 32;

/// The table that a plan is for.
pub struct Subject {
    pub(super) identity: TableIdentity,
    /// The table when its log was begun: by that a server chooses, and goes on when it grows.
    pub(super) first: TableIdentity,
    pub(super) is_by_key: bool,
    pub(super) is_authenticated: bool,
    /// Records that every lookup asks for.
    pub(super) records_per_lookup: u64,
    /// What clients receive to know where keys lie.
    pub(super) layout_bytes: u64,
    /// The table file, as commands name it.
    pub(super) file: Option<PathBuf>,
    /// The command that makes that file, if it is not there.
    pub(super) build: Option<String>,
}

impl Subject {
    /// A table file; or, if it is none and has `rows`, the table that is built of them. `is_told`
    /// says that somebody said how the file is read, and `words` are the command's words for that
    /// and for `options`.
    ///
    /// # Errors
    /// As [`of_file`](Self::of_file) and [`of_rows`](Self::of_rows); and if it is a table, and
    /// something was said about its rows.
    pub fn of_path(
        file: &Path,
        rows: Source,
        is_told: bool,
        words: &[String],
        options: &BuildOptions,
    ) -> Result<Self> {
        match FileKind::of(file) == Some(FileKind::Table) {
            true if is_told => Err(Error::api_misuse(format!(
                "{} is a table already: leave out how it would be read and which column has the keys",
                file.display()
            ))),
            false if is_told || rows.tells_format() => {
                let table = file.with_extension("privet");
                let build = Some(build_command(file, words, &table));
                Ok(Self { file: Some(table), build, ..Self::of_rows(vec![rows], options)? })
            }
            _ => Self::of_file(file),
        }
    }

    /// A table file, with the updates of its log.
    ///
    /// # Errors
    /// If it cannot be read, or is no table.
    pub fn of_file(file: &Path) -> Result<Self> {
        let snapshot = Snapshot::open(file)?;
        let subject = Self::of_snapshot(&snapshot);
        let identity = UpdateLog::of(&snapshot)?.map_or(subject.identity, |log| log.current());
        Ok(Self { identity, file: Some(file.to_owned()), ..subject })
    }

    /// The table that is built of these rows, into a file that goes away.
    ///
    /// # Errors
    /// As [`build_table_from`].
    pub fn of_rows(rows: Vec<Source>, options: &BuildOptions) -> Result<Self> {
        let directory = tempfile::tempdir().map_err(|error| {
            Error::unavailable("there is no room for temporary files").caused_by(error)
        })?;
        let output = directory.path().join("table.privet");
        build_table_from(options, rows, &output, &mut |_| Ok(()))?;
        Ok(Self::of_snapshot(&Snapshot::open(&output)?))
    }

    /// The table that is built of as many keys with values of as many bytes.
    ///
    /// # Errors
    /// As [`forecast`].
    pub fn of_keys(keys: u64, value_len: u64, options: &BuildOptions) -> Result<Self> {
        let forecast = forecast(options.key_map, keys, value_len)?;
        let root_bytes = if options.authenticate { ROOT_BYTES } else { 0 };
        Ok(Self {
            is_by_key: true,
            records_per_lookup: forecast.records_per_lookup,
            layout_bytes: forecast.key_map_bytes + root_bytes,
            ..Self::of_shape(forecast.shape, options.authenticate)?
        })
    }

    /// A table by number, of which only the shape is known, paths of an authenticated one apart.
    ///
    /// # Errors
    /// As [`shape_with_paths`].
    pub fn of_shape(within: TableShape, is_authenticated: bool) -> Result<Self> {
        let shape = if is_authenticated { shape_with_paths(within)? } else { within };
        Ok(Self { is_authenticated, ..Self::of_identity(identity_of(shape)) })
    }

    /// A table by number.
    pub(super) fn of_identity(identity: TableIdentity) -> Self {
        Self {
            identity,
            first: identity,
            is_by_key: false,
            is_authenticated: false,
            records_per_lookup: 1,
            layout_bytes: 0,
            file: None,
            build: None,
        }
    }

    pub(super) fn of_snapshot(snapshot: &Snapshot) -> Self {
        let key_map = snapshot.key_map();
        Self {
            is_by_key: key_map.is_some(),
            is_authenticated: snapshot.root().is_some(),
            records_per_lookup: key_map.map_or(1, |map| map.candidates_per_key() as u64),
            layout_bytes: snapshot.layout_bytes().len() as u64,
            ..Self::of_identity(snapshot.identity())
        }
    }
}
