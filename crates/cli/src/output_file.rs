//! Which files a command may overwrite.
//!
//! | what has the output's name | `build` | `setup` | `keygen` | `get`, `load` |
//! |---|---|---|---|---|
//! | nothing | writes | writes | writes | writes |
//! | a file that the command reads, by whatever name | never | never | never | never |
//! | a file of the kind that it writes | replaces | with `--force` | never | replaces |
//! | a table with a history of updates | never | never | never | never |
//! | any other file of Privet's | never | never | never | never |
//! | anything else | with `--force` | never | never | replaces |
//!
//! `update` only writes the table that it was given and the log beside it.

use privet_core::{Epoch, Error, Result};
use privet_table::FileKind;
use privet_table::build::refuse_over_a_history;
use privet_table::new_file::Existing;
use privet_table::snapshot::Snapshot;
use std::fs::Metadata;
use std::path::Path;

/// Whether a table may be built at `output` from `inputs` (`-` is standard input), and whether an
/// existing file is replaced.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it may not. The message says what to do.
pub(crate) fn for_table(output: &Path, inputs: &[&Path], force: bool) -> Result<Existing> {
    refuse_over_a_history(output)?;
    if output.symlink_metadata().is_err() {
        return Ok(Existing::Keep);
    }
    if let Some(input) = inputs.iter().find(|input| is_same_file(input, output)) {
        let name = match *input == Path::new("-") {
            true => "standard input".to_owned(),
            false => input.display().to_string(),
        };
        return Err(Error::api_misuse(format!(
            "{} is the same file as {name}, which would be lost: choose another name for the table",
            output.display()
        )));
    }
    if output.is_dir() {
        return Err(Error::api_misuse(format!(
            "{}: this is a directory; name a file to write to",
            output.display()
        )));
    }
    match kept_because(output) {
        Some(Protection::Always(what)) => Err(Error::api_misuse(format!(
            "{} is {what}, which --force does not replace either: choose another name",
            output.display()
        ))),
        Some(Protection::UnlessForced(what)) if !force => Err(Error::api_misuse(format!(
            "{} is there already, and it is {what}: choose another name, or replace it with --force",
            output.display()
        ))),
        _ => Ok(Existing::Replace),
    }
}

/// Whether a file may be written at `output`. An existing one is only replaced with `force`, and
/// only if it is of the `same_kind`: another kind may be the table. `needed` is the reason to keep
/// it.
pub(crate) fn for_own_kind(
    output: &Path,
    force: bool,
    needed: &str,
    same_kind: fn(&Path) -> bool,
) -> Result<Existing> {
    match (force, output.symlink_metadata().is_ok()) {
        (_, false) => Ok(Existing::Keep),
        (true, true) if !same_kind(output) => Err(Error::api_misuse(format!(
            "{} is another kind of file, which --force does not replace: choose another name",
            output.display()
        ))),
        (true, true) => Ok(Existing::Replace),
        (false, true) => Err(Error::api_misuse(format!(
            "{} is there already; {needed}: choose another name, or replace it with --force",
            output.display()
        ))),
    }
}

/// Refuses to write values over one of the `inputs` of the command, or over one of Privet's files.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse). The message says what to do.
pub(crate) fn for_values(output: &Path, inputs: &[&Path]) -> Result<()> {
    let refused = match FileKind::of(output) {
        _ if inputs.iter().any(|input| is_same_file(input, output)) => "read by this command",
        _ if crate::laboratory::reference_string::is_one(output) => {
            "a reference string of tapir-pp"
        }
        Some(_) => "a file of Privet's",
        None => return Ok(()),
    };
    Err(Error::api_misuse(format!(
        "{} is {refused}, and would be lost: choose another name for the output",
        output.display()
    )))
}

/// Why a table does not simply replace a file.
enum Protection {
    Always(&'static str),
    UnlessForced(&'static str),
}

fn kept_because(output: &Path) -> Option<Protection> {
    match FileKind::of(output) {
        Some(FileKind::Table) => match Snapshot::open(output) {
            Ok(table) if !has_had_updates(&table) => None,
            Ok(_) => Some(Protection::UnlessForced("a table with updates, whose log is elsewhere")),
            Err(_) => Some(Protection::UnlessForced("a table that cannot be read")),
        },
        Some(FileKind::UpdateLog) => Some(Protection::Always("the update log of a table")),
        Some(FileKind::Points) => Some(Protection::Always("a file of a table's points")),
        Some(FileKind::PublisherKey) => Some(Protection::Always("a publisher's secret key")),
        None if crate::laboratory::reference_string::is_one(output) => {
            Some(Protection::Always("a reference string of tapir-pp"))
        }
        None => Some(Protection::UnlessForced("not a table")),
    }
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
