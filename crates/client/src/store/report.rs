//! What a state directory holds, in counts and sizes; whether it is whole; and how to erase it.
//!
//! Nothing here shows contents: no key, no index, no name of a table or server.

use super::hints;
use super::part_file::CompletePart;
use super::pin_file::PinFile;
use super::{
    COMPLETE, PARTIAL, PINS, PRIVATE, TABLES, extension, files, pin_file, pin_files,
    private_folders,
};
use crate::disk::Folder;
use crate::state::NextGeneration;
use privet_core::{Blame, Epoch, Error, Result, TableId};
use privet_table::update_log::PublisherId;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a state directory holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateReport {
    /// The tables that have any stored data, in the order of their ids.
    pub tables: Vec<TableReport>,
    /// Servers whose tables are pinned.
    pub servers: u64,
    /// Tables pinned at these servers.
    pub pins: u64,
    /// The same one by one, in the order of servers and names.
    pub seen: Vec<SeenTable>,
    /// The tables that were left for their successors, each with the server at which that was.
    pub left: Vec<(String, TableId)>,
    /// Bytes of the pins' files.
    pub pin_bytes: u64,
    /// Files of pins that cannot be read.
    pub damaged_pins: u64,
}

/// A table under the name that it has at a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeenTable {
    /// The server's address.
    pub server: String,
    /// The name there.
    pub name: String,
    /// The table that was seen there last.
    pub table: TableId,
}

/// The stored data of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableReport {
    /// The table.
    pub table: TableId,
    /// The versions that servers' pins name, each once, in order.
    pub pinned: Vec<PinnedVersion>,
    /// Its downloaded parts, in the order of their names.
    pub parts: Vec<PartReport>,
    /// Its single-use hints, in the order of their schemes.
    pub hints: Vec<HintsReport>,
}

/// A pinned version of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinnedVersion {
    /// The version.
    pub epoch: Epoch,
    /// The publisher of the updates that are followed from there, if known.
    pub publisher: Option<PublisherId>,
}

/// One downloaded part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartReport {
    /// Layout, hint or table, as the file's name says.
    pub kind: String,
    /// Bytes of the file, with its checksums.
    pub bytes: u64,
    /// Whole, or still to be completed.
    pub form: PartForm,
}

/// Whether a part is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartForm {
    /// All of it is there.
    Complete,
    /// The rest is still to be fetched.
    Partial,
}

/// The single-use hints of one table under one scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintsReport {
    /// The scheme's name.
    pub scheme: String,
    /// Bytes of all their files.
    pub bytes: u64,
    /// Their condition.
    pub condition: HintsCondition,
}

/// The condition of single-use hints.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HintsCondition {
    /// Another process uses them; only their size is known.
    InUse,
    /// Damaged files, as far as they were looked at, and what is wrong; each text names its file.
    Damaged(Vec<(PathBuf, String)>),
    /// They are whole.
    Whole {
        /// The version of the table where they stand.
        epoch: Epoch,
        /// They were copied here, and will be erased before the next use.
        copied: bool,
        /// How many hints of the generation in use are used, one for each lookup. `None`: no
        /// generation is prepared yet.
        used: Option<u64>,
        /// Lookups whose answers have not arrived yet.
        unfinished: u64,
        /// How far the next generation has come.
        next: NextGeneration,
        /// Why no lookup will use them any more, if a server's answer failed verification. They
        /// stay so until they are erased.
        ended: Option<String>,
    },
}

/// The result of reading everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Files that were read, whole or damaged.
    pub files: u64,
    /// The damaged files, and what is wrong with each.
    pub damaged: Vec<(PathBuf, String)>,
    /// Places that another process uses; they were not read.
    pub in_use: Vec<PathBuf>,
    /// Hints that are whole and will never be used again: where they are, and why.
    pub ended: Vec<(PathBuf, String)>,
}

/// The folders of a state directory. Each may be missing.
pub(super) struct StateFolders {
    pub(super) pins: Option<Arc<dyn Folder>>,
    tables: Option<Arc<dyn Folder>>,
}

impl StateFolders {
    /// # Errors
    /// [`Blame::ApiMisuse`] if `root` is not a state directory.
    pub(super) fn at(root: &dyn Folder) -> Result<Self> {
        let (pins, tables) = (files::folder(root, PINS)?, files::folder(root, TABLES)?);
        if pins.is_none() && tables.is_none() {
            return Err(Error::api_misuse(format!(
                "{} is no state directory: nothing is kept there",
                root.path("").display()
            )));
        }
        Ok(Self { pins, tables })
    }

    /// The files of pins, each with its folder.
    pub(super) fn pin_files(&self) -> Result<Vec<(&dyn Folder, String)>> {
        let Some(folder) = self.pins.as_deref() else { return Ok(Vec::new()) };
        Ok(pin_files(folder)?.into_iter().map(|name| (folder, name)).collect())
    }

    /// The folders of tables, with their ids. Other folders are not Privet's.
    pub(super) fn tables(&self) -> Result<Vec<(TableId, Arc<dyn Folder>)>> {
        let Some(tables) = self.tables.as_deref() else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for name in files::folders(tables)? {
            if let (Some(id), Some(folder)) = (table_id(&name), files::folder(tables, &name)?) {
                found.push((id, folder));
            }
        }
        Ok(found)
    }

    /// Removes the folder of a table if nothing is left in it.
    pub(super) fn remove_table(&self, table: TableId) {
        if let Some(tables) = &self.tables {
            let _ = tables.remove_folder(&table.to_string());
        }
    }
}

/// The table whose folder is called `name`.
fn table_id(name: &str) -> Option<TableId> {
    let byte = |k: usize| u8::from_str_radix(name.get(2 * k..2 * k + 2)?, 16).ok();
    let mut id = [0; 16];
    for (k, slot) in id.iter_mut().enumerate() {
        *slot = byte(k)?;
    }
    (TableId(id).to_string() == name).then_some(TableId(id))
}

/// The files of parts in the folder of a table, in the order of their names.
fn parts(table: &dyn Folder) -> Result<Vec<(String, PartReport)>> {
    let mut parts = Vec::new();
    for name in files::names(table)? {
        let form = match extension(&name) {
            COMPLETE => PartForm::Complete,
            PARTIAL => PartForm::Partial,
            _ => continue,
        };
        let kind = name.split('-').next().unwrap_or_default().to_owned();
        let bytes = files::open_to_read(table, &name)?.map_or(Ok(0), |file| file.len())?;
        parts.push((name, PartReport { kind, bytes, form }));
    }
    Ok(parts)
}

/// The single-use hints in the folder of a table: the path, the scheme's name, the hints.
fn hints_of(
    table: &dyn Folder,
    thoroughly: bool,
) -> Result<Vec<(PathBuf, String, hints::Private)>> {
    let mut found = Vec::new();
    for (name, folder) in private_folders(table)? {
        if let Some(private) = hints::inspect(&*folder, thoroughly)? {
            let scheme = name.strip_prefix(PRIVATE).unwrap_or_default().to_owned();
            found.push((folder.path(""), scheme, private));
        }
    }
    Ok(found)
}

fn table_report(
    table: TableId,
    folder: &dyn Folder,
    pinned: Vec<PinnedVersion>,
) -> Result<Option<TableReport>> {
    let parts: Vec<_> = parts(folder)?.into_iter().map(|(_, part)| part).collect();
    let mut hints = Vec::new();
    for (_, scheme, private) in hints_of(folder, false)? {
        let hints::Private { bytes, condition, .. } = private;
        hints.push(HintsReport { scheme, bytes, condition });
    }
    let empty = parts.is_empty() && hints.is_empty();
    Ok((!empty).then_some(TableReport { table, pinned, parts, hints }))
}

/// Reports what the state directory `root` holds, without changing anything. Data that another
/// process uses is counted as far as possible.
///
/// # Errors
/// [`Blame::ApiMisuse`] if `root` is not a state directory, [`Blame::Unavailable`] if it cannot be
/// read.
pub fn report(root: &dyn Folder) -> Result<StateReport> {
    let kept = StateFolders::at(root)?;
    let mut report = StateReport::default();
    let mut all_pins = Vec::new();
    for (folder, name) in kept.pin_files()? {
        report.pin_bytes += files::open_to_read(folder, &name)?.map_or(Ok(0), |file| file.len())?;
        match pin_file::read(folder, &name)? {
            Ok(Some(PinFile { server, pins, left, .. })) => {
                report.servers += 1;
                report.pins += pins.len() as u64;
                report.seen.extend(pins.iter().map(|(name, pin)| SeenTable {
                    server: server.clone(),
                    name: name.clone(),
                    table: pin.table.id,
                }));
                report.left.extend(left.iter().map(|left| (server.clone(), left.id)));
                all_pins.extend(pins.into_iter().map(|(_, pin)| pin));
            }
            _ => report.damaged_pins += 1,
        }
    }
    report.seen.sort();
    report.left.sort();
    for (table, folder) in kept.tables()? {
        let of_table = all_pins.iter().filter(|pin| pin.table.id == table);
        let mut pinned: Vec<_> = of_table
            .map(|pin| PinnedVersion { epoch: pin.table.epoch, publisher: pin.publisher })
            .collect();
        pinned.sort_by_key(|pin| (pin.epoch, pin.publisher.map(|publisher| publisher.0)));
        pinned.dedup();
        report.tables.extend(table_report(table, &*folder, pinned)?);
    }
    Ok(report)
}

/// Reads everything in the state directory `root` and checks every checksum, without changing
/// anything. Skips incomplete downloads: these are checked when they go on.
///
/// # Errors
/// As [`report`]. Damage is not an error here.
pub fn verify(root: &dyn Folder) -> Result<Verification> {
    let kept = StateFolders::at(root)?;
    let mut verification = Verification::default();
    let mut note = |path: &Path, outcome: Result<()>| {
        verification.files += 1;
        match outcome {
            Err(error) if matches!(error.blame(), Blame::Unavailable) => return Err(error),
            Err(error) => verification.damaged.push((path.to_owned(), error.message().to_owned())),
            Ok(()) => {}
        }
        Ok(())
    };
    for (folder, name) in kept.pin_files()? {
        let path = folder.path(&name);
        let read = pin_file::read(folder, &name)?;
        note(&path, read.map(drop).map_err(|error| files::blame(&path, error)))?;
    }
    let tables = kept.tables()?;
    for (_, folder) in &tables {
        for (name, part) in parts(&**folder)? {
            match part.form {
                PartForm::Complete => {
                    note(&folder.path(&name), CompletePart::verify(&**folder, &name))?;
                }
                PartForm::Partial => {}
            }
        }
    }
    for (_, folder) in &tables {
        for (path, _, private) in hints_of(&**folder, true)? {
            match private.condition {
                HintsCondition::InUse => verification.in_use.push(path),
                HintsCondition::Damaged(damaged) => {
                    verification.files += private.files;
                    verification.damaged.extend(damaged);
                }
                HintsCondition::Whole { ended, .. } => {
                    verification.files += private.files;
                    verification.ended.extend(ended.map(|why| (path, why)));
                }
            }
        }
    }
    Ok(verification)
}
