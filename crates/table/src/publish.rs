//! What a table's owner does: builds the table, says who signs for it, changes it, hands it on.
//!
//! Typed options go in, and a typed report comes out. What is long tells its progress on the way. A
//! program that offers this to people turns what they say into options, and words the report.

pub mod output;
mod rows;
#[cfg(test)]
mod tests;
mod update;

pub use update::{KeysLeft, NewRows, RowEdits, Update, Updated, update};

use crate::build::{BuildOptions, BuildReport, Progress, build_table_from, written_if_any};
use crate::import::Source;
use crate::owner::{self, Handover, complete_succession};
use crate::snapshot::Snapshot;
use crate::update_log::{
    NextKeyDigest, PublisherId, PublisherKey, Succession, UpdateLog, log_path,
};
use privet_core::{Error, Result};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A table to be built, and who signs for it.
#[derive(Clone, Default)]
pub struct NewTable {
    /// The file to write.
    pub output: PathBuf,
    /// Replace a file of that name also if no build has written it: see [`output`].
    pub force: bool,
    /// What is made of the rows. Whether there is a log, and what becomes of an existing file,
    /// follows from the rest.
    pub making: BuildOptions,
    /// The file with the key of who signs the table's updates; of a table that ends for this one,
    /// the key of its publisher.
    pub publisher_key: Option<PathBuf>,
    /// The digest of the publisher's next key.
    pub next_key: Option<NextKeyDigest>,
    /// The file of the table that ends for this one.
    pub succeeds: Option<PathBuf>,
    /// The file with the key of who publishes from now on, if that changes: [`Handover::to`].
    pub hand_over_to: Option<PathBuf>,
}

/// What came of a build.
pub enum Built {
    /// There is a new table.
    Table(Box<NewTableReport>),
    /// Nothing was built. An earlier build was interrupted when all but the log of the table was
    /// written, and now that is there too; in a sentence.
    Completed(String),
}

/// The table that was built, and who signs for it.
#[derive(Serialize)]
pub struct NewTableReport {
    /// Its file.
    pub file: String,
    /// The table in figures.
    #[serde(flatten)]
    pub table: BuildReport,
    /// Who signs its updates.
    #[serde(serialize_with = "written_if_any")]
    pub publisher: Option<PublisherId>,
    /// The digest of the key without which nobody hands it on.
    #[serde(serialize_with = "written_if_any")]
    pub next_key: Option<NextKeyDigest>,
    /// The file of the table that has ended for this one.
    pub succeeds: Option<String>,
    /// The last epoch of that table that is not void, if its publisher's key was stolen.
    pub void_after: Option<u64>,
}

/// Builds a table of the rows of `sources`. If it has a publisher, also begins its log; and if
/// another table ends for it, has that signed. `progress` is called as for
/// [`build_table`](crate::build::build_table).
///
/// # Errors
/// As [`build_table_from`], [`owner::succeed`] and [`PublisherKey::from_file`]; and
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the options contradict each other, or the
/// output may not be written. Until all rows are read, a failure leaves the output as it was
/// before; afterwards the new table may stand there without its log.
pub fn build(
    wanted: &NewTable,
    sources: Vec<Source>,
    progress: &mut dyn FnMut(Progress) -> Result<()>,
) -> Result<Built> {
    let NewTable { output, publisher_key, next_key, succeeds, hand_over_to, .. } = wanted;
    if let Some(old) = succeeds
        && complete_succession(old, output)?
    {
        return Ok(Built::Completed(format!(
            "{} was built before, and {} had ended for it: its log is there now, and nothing was \
             built",
            output.display(),
            old.display()
        )));
    }
    // Checked before the long work.
    let mut read: Vec<&Path> = sources.iter().filter_map(Source::file).collect();
    if read.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(Error::api_misuse("standard input can be read once only: name `-` once"));
    }
    if hand_over_to.is_some() && succeeds.is_none() {
        return Err(Error::api_misuse(
            "a new table is handed over by the one that ends for it: say which that is",
        ));
    }
    read.extend(
        [publisher_key, hand_over_to, succeeds].into_iter().flatten().map(PathBuf::as_path),
    );
    let options = BuildOptions {
        has_log: publisher_key.is_some() || succeeds.is_some(),
        existing: output::for_table(output, &read, wanted.force)?,
        ..wanted.making.clone()
    };
    let key = |path: &Option<PathBuf>| path.as_deref().map(PublisherKey::from_file).transpose();
    let (publisher, to) = (key(publisher_key)?, key(hand_over_to)?);
    let handover = Handover { publisher: publisher.as_ref(), to: to.as_ref(), next: *next_key };
    if let Some(old) = succeeds {
        owner::check_may_succeed(old, handover)?;
    } else if next_key.is_some() {
        handover.keys()?;
    }
    let table = build_table_from(&options, sources, output, progress)?;
    let succession = succeeds.as_ref().map(|old| owner::succeed(old, output, handover));
    let succession = succession.transpose()?;
    let mut keys = succession.as_ref().map(Succession::keys);
    if succeeds.is_none() && publisher.is_some() {
        let begun = handover.keys()?;
        UpdateLog::create(&log_path(output), &Snapshot::open(output)?, begun)?;
        keys = Some(begun);
    }
    Ok(Built::Table(Box::new(NewTableReport {
        file: output.display().to_string(),
        table,
        publisher: keys.map(|keys| keys.publisher),
        next_key: keys.and_then(|keys| keys.next),
        succeeds: succeeds.as_deref().map(|old| old.display().to_string()),
        void_after: succession.filter(Succession::revokes).map(|record| record.number().0 - 1),
    })))
}
