//! The table that a plan is for: a file, a file to be built, or a shape.

use super::report::shell_word;
use crate::arguments::Plan;
use crate::commands::build::{on_empty_key, options, source};
use privet_core::{Epoch, Error, Result, TableDigest, TableId, TableIdentity, TableShape};
use privet_table::authentication::shape_with_paths;
use privet_table::build::build_table_from;
use privet_table::import::Source;
use privet_table::key_map::forecast;
use privet_table::snapshot::{Snapshot, is_table};
use privet_table::update_log::UpdateLog;
use std::path::{Path, PathBuf};

/// What a Merkle root takes in a layout.
const ROOT_BYTES: u64 = 32;

pub(crate) struct Subject {
    pub(crate) identity: TableIdentity,
    /// The table when its log was begun: by that a server chooses, and goes on when it grows.
    pub(crate) first: TableIdentity,
    pub(crate) is_by_key: bool,
    pub(crate) is_authenticated: bool,
    /// Records that every lookup asks for.
    pub(crate) records_per_lookup: u64,
    /// What clients receive to know where keys lie.
    pub(crate) layout_bytes: u64,
    /// The table file, as commands name it.
    pub(crate) file: Option<PathBuf>,
    /// The command that makes that file, if it is not there.
    pub(crate) build: Option<String>,
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
        if let Some((keys, value_len)) = arguments.keys.zip(arguments.value_len) {
            return Self::forecast(keys, value_len, arguments);
        }
        match (&arguments.table, arguments.records.zip(arguments.record_len)) {
            (Some(input), _) if is_input(input, arguments)? => {
                let subject = Self::built(vec![source(input, &arguments.reading)], arguments)?;
                let file = input.with_extension("privet");
                let build = Some(build_command(input, &file, arguments));
                Ok(Self { file: Some(file), build, ..subject })
            }
            (Some(file), _) => {
                let snapshot = Snapshot::open(file)?;
                let subject = Self::of_snapshot(&snapshot);
                let log = UpdateLog::of(&snapshot)?;
                let identity = log.map_or(subject.identity, |log| log.current());
                let subject = Self { identity, ..subject };
                Ok(Self { file: Some(file.clone()), ..subject })
            }
            (None, Some((records, record_len))) => {
                Self::of_shape(TableShape::new(records, record_len)?, arguments)
            }
            (None, None) => Err(Error::api_misuse(
                "name a table, or --keys and --value-len, or --records and --record-len",
            )),
        }
    }

    /// The table that is built of as many keys with values of as many bytes.
    fn forecast(keys: u64, value_len: u64, arguments: &Plan) -> Result<Self> {
        let kind = options(&arguments.making, &arguments.reading)?.key_map;
        let forecast = forecast(kind, keys, value_len)?;
        let root_bytes = if arguments.making.authenticate { ROOT_BYTES } else { 0 };
        Ok(Self {
            is_by_key: true,
            records_per_lookup: forecast.records_per_lookup,
            layout_bytes: forecast.key_map_bytes + root_bytes,
            ..Self::of_shape(forecast.shape, arguments)?
        })
    }

    /// A table by number, of which only the shape is known, paths of an authenticated one apart.
    fn of_shape(within: TableShape, arguments: &Plan) -> Result<Self> {
        let is_authenticated = arguments.making.authenticate;
        let shape = if is_authenticated { shape_with_paths(within)? } else { within };
        let (id, epoch, digest) = (TableId([0; 16]), Epoch(0), TableDigest([0; 32]));
        let subject = Self::of_identity(TableIdentity { id, epoch, digest, shape });
        Ok(Self { is_authenticated, ..subject })
    }

    /// A table by number.
    pub(crate) fn of_identity(identity: TableIdentity) -> Self {
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
            identity: snapshot.identity(),
            first: snapshot.identity(),
            is_by_key: key_map.is_some(),
            is_authenticated: snapshot.root().is_some(),
            records_per_lookup: key_map.map_or(1, |map| map.candidates_per_key() as u64),
            layout_bytes: snapshot.layout_bytes().len() as u64,
            file: None,
            build: None,
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

/// The command that builds the planned table.
fn build_command(input: &Path, output: &Path, arguments: &Plan) -> String {
    let typed = [arguments.reading.words(), arguments.making.words()].concat();
    let words = ["privet", "build"].map(str::to_owned).into_iter();
    let words = words.chain([input.to_string_lossy().into_owned()]).chain(typed);
    let words = words.chain(["-o".to_owned(), output.to_string_lossy().into_owned()]);
    words.map(|word| shell_word(&word).into_owned()).collect::<Vec<_>>().join(" ")
}
