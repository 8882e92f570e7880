//! Which files may be overwritten.
//!
//! | what has the output's name | a table | points and other setups | a key | values |
//! |---|---|---|---|---|
//! | nothing | writes | writes | writes | writes |
//! | a file that is read meanwhile, by whatever name | never | never | never | never |
//! | a file of the kind that is written | replaces | by force | never | replaces |
//! | a table with a history of updates | never | never | never | never |
//! | any other file of Privet's | never | never | never | never |
//! | anything else | by force | never | never | replaces |
//!
//! An update only writes the table that it was given and the log beside it.

use crate::FileKind;
use crate::build::refuse_over_a_history;
use crate::import::Source;
use crate::new_file::Existing;
use crate::snapshot::Snapshot;
use privet_core::{Epoch, Error, Reason, Result};
use std::fs::Metadata;
use std::path::Path;

/// Whether a table may be built at `output` from `inputs` (`-` is standard input), and whether an
/// existing file is replaced.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it may not. The message says what to do.
pub(super) fn for_table(output: &Path, inputs: &[&Path], force: bool) -> Result<Existing> {
    refuse_over_a_history(output)?;
    if output.symlink_metadata().is_err() {
        return Ok(Existing::Keep);
    }
    if let Some(input) = inputs.iter().find(|input| is_same_file(input, output)) {
        return Err(Error::api_misuse(format!(
            "{} is the same file as {}, which would be lost: choose another name for the table",
            output.display(),
            Source::path(*input).name()
        )));
    }
    if output.is_dir() {
        return Err(Error::api_misuse(format!(
            "{}: this is a directory; name a file to write to",
            output.display()
        )));
    }
    match kept_because(output) {
        Some((what, true)) => Err(never_replaced(output, what)),
        Some((what, false)) if !force => Err(is_there(output, &format!(", and it is {what}"))),
        _ => Ok(Existing::Replace),
    }
}

/// Whether a file may be written at `output`. An existing one is only replaced with `force`, and
/// only if it is of the `same_kind`: another kind may be the table. `needed` is the reason to keep
/// it.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it may not. The message says what to do.
pub fn for_own_kind(
    output: &Path,
    force: bool,
    needed: &str,
    same_kind: fn(&Path) -> bool,
) -> Result<Existing> {
    match (force, output.symlink_metadata().is_ok()) {
        (_, false) => Ok(Existing::Keep),
        (true, true) if !same_kind(output) => Err(never_replaced(output, "another kind of file")),
        (true, true) => Ok(Existing::Replace),
        (false, true) => Err(is_there(output, &format!("; {needed}"))),
    }
}

fn is_there(output: &Path, why: &str) -> Error {
    let words = "choose another name, or replace it";
    Error::api_misuse(format!("{} is there already{why}: {words}", output.display()))
        .because(Reason::OutputExists)
}

fn never_replaced(output: &Path, what: &str) -> Error {
    Error::api_misuse(format!("{} is {what}: choose another name", output.display()))
        .because(Reason::OutputKept)
}

/// Refuses to write values over one of the `inputs`, or over one of Privet's files.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse). The message says what to do.
pub fn for_values(output: &Path, inputs: &[&Path]) -> Result<()> {
    let refused = match FileKind::of(output) {
        _ if inputs.iter().any(|input| is_same_file(input, output)) => "read by this command",
        Some(_) => "a file of Privet's",
        None => return Ok(()),
    };
    Err(Error::api_misuse(format!(
        "{} is {refused}, and would be lost: choose another name for the output",
        output.display()
    )))
}

/// Why a table does not simply replace a file, and whether it never does.
fn kept_because(output: &Path) -> Option<(&'static str, bool)> {
    Some(match FileKind::of(output) {
        Some(FileKind::Table) => match Snapshot::open(output) {
            Ok(table) if !has_had_updates(&table) => return None,
            Ok(_) => ("a table with updates, whose log is elsewhere", false),
            Err(_) => ("a table that cannot be read", false),
        },
        Some(FileKind::UpdateLog) => ("the update log of a table", true),
        Some(FileKind::Points) => ("a file of a table's points", true),
        Some(FileKind::PublisherKey) => ("a publisher's secret key", true),
        Some(FileKind::Other) => ("another file of Privet's", true),
        None => ("not a table", false),
    })
}

/// Whether epochs were signed of the table. Without its log the file does not have them.
fn has_had_updates(table: &Snapshot) -> bool {
    let epoch = table.identity().epoch;
    table.mark().map_or(epoch, |mark| mark.epoch.max(epoch)) > Epoch(0)
}

/// Whether two names lead to one file: by different spellings, through a hard or symbolic link, or
/// because the input is standard input.
fn is_same_file(input: &Path, output: &Path) -> bool {
    let read = match input == Path::new("-") {
        true => standard_input(),
        false => input.metadata().ok(),
    };
    match (read, output.metadata().ok()) {
        (Some(read), Some(written)) => same(&read, &written, input, output),
        _ => false,
    }
}

#[cfg(unix)]
fn same(read: &Metadata, written: &Metadata, _: &Path, _: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (read.dev(), read.ino()) == (written.dev(), written.ino())
}

#[cfg(not(unix))]
fn same(_: &Metadata, _: &Metadata, input: &Path, output: &Path) -> bool {
    input.canonicalize().ok().is_some_and(|input| output.canonicalize().ok() == Some(input))
}

#[cfg(unix)]
fn standard_input() -> Option<Metadata> {
    use std::os::fd::AsFd as _;
    let input = std::io::stdin().as_fd().try_clone_to_owned().ok()?;
    std::fs::File::from(input).metadata().ok()
}

#[cfg(not(unix))]
fn standard_input() -> Option<Metadata> {
    None
}
