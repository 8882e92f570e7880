//! Where the update log of a table lies: beside its snapshot.

use crate::snapshot::Snapshot;
use privet_core::{Error, Reason, Result};
use std::path::{Path, PathBuf};

/// The path of the update log for the table in the snapshot file `snapshot`: beside it, under its
/// name and `.updates`.
pub fn log_path(snapshot: &Path) -> PathBuf {
    beside(snapshot, ".updates")
}

/// The path that earlier versions of this program gave a log. Programs that clean up or rotate logs
/// take such a file for one of theirs. It is read, and goes on, under its name.
pub(crate) fn earlier_log_path(snapshot: &Path) -> PathBuf {
    beside(snapshot, ".log")
}

fn beside(snapshot: &Path, extension: &str) -> PathBuf {
    let mut path = snapshot.as_os_str().to_owned();
    path.push(extension);
    path.into()
}

/// The path of the log that lies beside `snapshot`, under either name. `None` if there is none.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is one under each name.
pub fn find_log(snapshot: &Path) -> Result<Option<PathBuf>> {
    let (path, earlier) = (log_path(snapshot), earlier_log_path(snapshot));
    match (path.exists(), earlier.exists()) {
        (true, true) => Err(Error::api_misuse(format!(
            "{} and {} are both there, and a table has one update log: find out which of them \
             reaches further, and move the other one elsewhere",
            path.display(),
            earlier.display()
        ))),
        (true, false) => Ok(Some(path)),
        (false, true) => Ok(Some(earlier)),
        (false, false) => Ok(None),
    }
}

/// The same for a table that may need its log.
///
/// # Errors
/// As [`find_log`]; [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the table has had a
/// log, and there is none.
pub(crate) fn find_log_of(snapshot: &Snapshot) -> Result<Option<PathBuf>> {
    let found = find_log(snapshot.path())?;
    let first = snapshot.identity().epoch;
    // Files of earlier versions have no mark, but none is beyond epoch 0 without a log.
    let reached = snapshot.mark().map(|mark| mark.epoch).or((first.0 > 0).then_some(first));
    match (found, reached) {
        (Some(found), _) => Ok(Some(found)),
        (None, None) => Ok(None),
        (None, Some(reached)) => Err(Error::unavailable(format!(
            "{} has a log of updates, which has reached epoch {}, and {} is not there: bring it \
             back from a backup, or copy it from another operator of the table",
            snapshot.path().display(),
            reached.0,
            log_path(snapshot.path()).display()
        ))
        .because(Reason::LogLost)),
    }
}
