//! Looking at single-use hints without changing them, and erasing them.

use super::anchor::AnchorFile;
use super::preparation::CHECKPOINTS;
use super::{ANCHOR, erase_all, generation_name, journal_name, our_names, sealed};
use crate::disk::{Folder, Medium};
use crate::state::NextGeneration;
use crate::store::files;
use privet_core::{Blame, Epoch, Error, Result};
use std::path::PathBuf;
use std::sync::Arc;

/// The contents of one folder of hints.
pub(crate) struct Private {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) condition: Condition,
}

pub(crate) enum Condition {
    /// Another process holds them.
    InUse,
    /// Damaged files, as far as this has looked.
    Damaged(Vec<(PathBuf, String)>),
    Whole {
        epoch: Epoch,
        /// Whether the next process will erase them as a copy.
        copied: bool,
        /// Whether there is a generation to serve lookups.
        ready: bool,
        reserved: u64,
        unfinished: u64,
        next: NextGeneration,
        /// Why no lookup will use them any more, if they have ended.
        ended: Option<String>,
    },
}

/// Looks at the hints in `folder`; `None` if there never were any. With `thoroughly`, reads and
/// checks every byte that matters.
pub(crate) fn inspect(folder: &dyn Folder, thoroughly: bool) -> Result<Option<Private>> {
    let names = our_names(folder)?;
    let listed = folder.names().map_err(|error| files::failed(&folder.path(""), "list", error))?;
    let has_anchor = listed.iter().any(|name| name == ANCHOR);
    if names.is_empty() && !has_anchor {
        return Ok(None);
    }
    let mut bytes = 0;
    for name in names.iter().map(String::as_str).chain(has_anchor.then_some(ANCHOR)) {
        let medium = open(folder, name)?;
        let len = medium.map_or(Ok(0), |medium| medium.len());
        bytes += len.map_err(|error| files::failed(&folder.path(name), "look at", error))?;
    }
    let files = names.len() as u64 + u64::from(has_anchor);
    let path = folder.path(ANCHOR);
    let damage = |what: &str| {
        let error = files::blame(&path, Error::corrupted(what));
        Condition::Damaged(vec![(path.clone(), error.message().to_owned())])
    };
    if !has_anchor {
        return Ok(Some(Private { files, bytes, condition: damage("it is missing") }));
    }
    let locked = folder.lock(ANCHOR).map_err(|error| files::failed(&path, "lock", error))?;
    let condition = match locked {
        None => Condition::InUse,
        Some(medium) => match AnchorFile::read(Arc::clone(&medium), &path) {
            Err(error) if error.blame() == Blame::Corrupted && names.is_empty() => return Ok(None),
            Err(error) if error.blame() == Blame::Corrupted => damage(error.message()),
            anchor => look(folder, &anchor?, thoroughly)?,
        },
    };
    Ok(Some(Private { files, bytes, condition }))
}

fn open(folder: &dyn Folder, name: &str) -> Result<Option<Arc<dyn Medium>>> {
    folder.open(name).map_err(|error| files::failed(&folder.path(name), "open", error))
}

/// The contents of the files behind a valid anchor.
fn look(folder: &dyn Folder, anchor: &AnchorFile, thoroughly: bool) -> Result<Condition> {
    let mut copied = !anchor.is_original()?;
    let file = anchor;
    let anchor = file.anchor();
    let mut damaged = Vec::new();
    let mut note = |name: &str, outcome: Result<()>| match outcome {
        Err(error) if error.blame() == Blame::Corrupted => {
            damaged.push((folder.path(name), error.message().to_owned()));
            Ok(())
        }
        other => other,
    };
    let (mut reserved, mut unfinished, mut ended) = (0, 0, None);
    let mut version = anchor.version;
    if anchor.generation > 0 {
        let mut expected = None;
        let name = journal_name(anchor.generation, anchor.journal);
        let journal = super::open_journal(folder, anchor).and_then(|journal| {
            let summary = journal.summary();
            (reserved, unfinished) = (summary.reserved, journal.unfinished());
            ended = summary.ended.clone();
            version = summary.version;
            expected = Some((summary.generation_len, summary.generation_digest));
            copied |= !journal.is_original()? || !journal.agrees_with(file)?;
            Ok(())
        });
        note(&name, journal)?;
        let name = generation_name(anchor.generation);
        note(&name, check(folder, &name, thoroughly, expected))?;
    }
    let next_name = generation_name(anchor.generation + 1);
    let ready = open(folder, &next_name)?.is_some();
    if ready {
        note(&next_name, check(folder, &next_name, thoroughly, None))?;
    }
    let mut newest = None;
    for name in CHECKPOINTS {
        let Some(medium) = open(folder, name)? else { continue };
        // A damaged one was perhaps being written: it counts as missing, and not as damage.
        if let Ok(header) = sealed::read_header(&*medium, &folder.path(name)) {
            newest = newest.max(Some((header.order, header.offset)));
        }
    }
    if !damaged.is_empty() {
        return Ok(Condition::Damaged(damaged));
    }
    Ok(Condition::Whole {
        epoch: version.table.epoch,
        copied,
        ready: anchor.generation > 0,
        reserved,
        unfinished,
        next: match newest {
            _ if ready => NextGeneration::Ready,
            Some((_, offset)) => NextGeneration::Partial { offset },
            None => NextGeneration::None,
        },
        ended,
    })
}

fn check(
    folder: &dyn Folder,
    name: &str,
    thoroughly: bool,
    expected: Option<(u64, [u8; 32])>,
) -> Result<()> {
    let path = folder.path(name);
    let damaged = |what: &str| files::blame(&path, Error::corrupted(what));
    let medium = open(folder, name)?.ok_or_else(|| damaged("it is missing"))?;
    let header = match thoroughly {
        true => sealed::read(&*medium, &path)?.0,
        false => sealed::read_header(&*medium, &path)?,
    };
    match expected {
        Some(expected) if expected != (header.len, header.digest) => {
            Err(damaged("it is not the file that the journal belongs to"))
        }
        _ => Ok(()),
    }
}

/// Whether the hints in `folder` are known to have ended. If another process holds them, this is
/// not known.
pub(crate) fn has_ended(folder: &dyn Folder) -> Result<bool> {
    let condition = inspect(folder, false)?.map(|private| private.condition);
    Ok(matches!(condition, Some(Condition::Whole { ended: Some(_), .. })))
}

/// Overwrites everything in `folder` with zeros and removes it; `false` if another process holds
/// it.
pub(crate) fn erase_folder(folder: &dyn Folder) -> Result<bool> {
    let path = folder.path(ANCHOR);
    let locked = folder.lock(ANCHOR).map_err(|error| files::failed(&path, "lock", error))?;
    match locked {
        Some(lock) => erase_locked(folder, lock),
        None => Ok(false),
    }
}

/// The same for hints whose parameter digest makes `superfluous` true; `false` for others. Without
/// a valid anchor it is unknown which hints these are: they stay, to be reported.
pub(crate) fn erase_folder_if(
    folder: &dyn Folder,
    superfluous: impl Fn(&[u8; 32]) -> bool,
) -> Result<bool> {
    // Taking the lock would create an anchor where there is none.
    let names = folder.names().map_err(|error| files::failed(&folder.path(""), "list", error))?;
    if !names.iter().any(|name| name == ANCHOR) {
        return Ok(false);
    }
    let path = folder.path(ANCHOR);
    let locked = folder.lock(ANCHOR).map_err(|error| files::failed(&path, "lock", error))?;
    let Some(lock) = locked else { return Ok(false) };
    match AnchorFile::read(Arc::clone(&lock), &path) {
        Ok(file) if superfluous(&file.anchor().version.parameter_digest) => {
            erase_locked(folder, lock)
        }
        _ => Ok(false),
    }
}

fn erase_locked(folder: &dyn Folder, _lock: Arc<dyn Medium>) -> Result<bool> {
    erase_all(folder, &our_names(folder)?)?;
    // Erase the anchor last: without other files, a missing anchor means that there is nothing.
    sealed::erase(folder, ANCHOR)?;
    Ok(true)
}
