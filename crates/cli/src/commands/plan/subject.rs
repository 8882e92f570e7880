//! The table that a plan is for: a file, a file to be built, or a shape.

use crate::arguments::Plan;
use crate::commands::build::{on_empty_key, options, source};
use privet_core::{Epoch, Error, Result, TableDigest, TableId, TableIdentity, TableShape};
use privet_table::build::build_table_from;
use privet_table::import::Source;
use privet_table::snapshot::{Snapshot, is_table};
use privet_table::update_log::UpdateLog;
use std::path::Path;

pub(crate) struct Subject {
    pub(crate) identity: TableIdentity,
    pub(crate) is_by_key: bool,
    pub(crate) is_authenticated: bool,
    /// Records that every lookup asks for.
    pub(crate) records_per_lookup: u64,
    /// What clients receive to know where keys lie.
    pub(crate) layout_bytes: u64,
    /// As commands name it.
    pub(crate) file: Option<String>,
}

impl Subject {
    /// The table that was named.
    ///
    /// # Errors
    /// If it cannot be read, or is no table.
    pub(super) fn of(arguments: &Plan, given: Vec<Source>) -> Result<Self> {
        if !given.is_empty() {
            let subject = Self::built(on_empty_key(given, &arguments.reading), arguments)?;
            return Ok(Self { file: None, ..subject });
        }
        match (&arguments.table, arguments.records.zip(arguments.record_len)) {
            (Some(input), _) if is_input(input, arguments)? => {
                let subject = Self::built(vec![source(input, &arguments.reading)], arguments)?;
                let file = input.with_extension("privet").display().to_string();
                Ok(Self { file: Some(file), ..subject })
            }
            (Some(file), _) => {
                let snapshot = Snapshot::open(file)?;
                let subject = Self::of_snapshot(&snapshot);
                let log = UpdateLog::of(&snapshot)?;
                let identity = log.map_or(subject.identity, |log| log.current());
                let subject = Self { identity, ..subject };
                Ok(Self { file: Some(file.display().to_string()), ..subject })
            }
            (None, Some((records, record_len))) => {
                Ok(Self::of_shape(TableShape::new(records, record_len)?))
            }
            (None, None) => Err(Error::api_misuse("name a table, or --records and --record-len")),
        }
    }

    /// A table by number, of which only the shape is known.
    fn of_shape(shape: TableShape) -> Self {
        Self::of_identity(TableIdentity {
            id: TableId([0; 16]),
            epoch: Epoch(0),
            digest: TableDigest([0; 32]),
            shape,
        })
    }

    /// A table by number.
    pub(crate) fn of_identity(identity: TableIdentity) -> Self {
        Self {
            identity,
            is_by_key: false,
            is_authenticated: false,
            records_per_lookup: 1,
            layout_bytes: 0,
            file: None,
        }
    }

    pub(super) fn of_snapshot(snapshot: &Snapshot) -> Self {
        let key_map = snapshot.key_map();
        Self {
            identity: snapshot.identity(),
            is_by_key: key_map.is_some(),
            is_authenticated: snapshot.root().is_some(),
            records_per_lookup: key_map.map_or(1, |map| map.candidates_per_key() as u64),
            layout_bytes: snapshot.layout_bytes().len() as u64,
            file: None,
        }
    }

    /// Builds the rows as `privet build` would, into a file that goes away.
    fn built(rows: Vec<Source>, arguments: &Plan) -> Result<Self> {
        let options = options(&arguments.making, &arguments.reading)?;
        let directory = tempfile::tempdir().map_err(|error| {
            Error::unavailable("there is no room for temporary files").caused_by(error)
        })?;
        let output = directory.path().join("table.privet");
        build_table_from(&options, rows, &output, &mut |_| Ok(()))?;
        Ok(Self::of_snapshot(&Snapshot::open(&output)?))
    }
}

/// Whether a table is to be built from a file: it is no table, and its name or what was typed says
/// how it is read.
///
/// # Errors
/// If it is a table, and something was typed that is for building one.
fn is_input(file: &Path, arguments: &Plan) -> Result<bool> {
    let Plan { making, reading, .. } = arguments;
    let is_told = making.key.is_some() || making.range_from.is_some() || !reading.is_default();
    match is_table(file) {
        true if is_told => Err(Error::api_misuse(format!(
            "{} is a table already: leave out how it would be read and which column has the keys",
            file.display()
        ))),
        is_table => Ok(!is_table && (is_told || source(file, reading).tells_format())),
    }
}
