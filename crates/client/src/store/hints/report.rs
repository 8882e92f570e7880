//! Looking at single-use hints without changing them, and erasing them.

use super::anchor::AnchorFile;
use super::preparation::CHECKPOINTS;
use super::sealed::{self, Header};
use super::{ANCHOR, ANOTHER_FILE, erase_all, generation_name, journal_name, missing, our_names};
use crate::disk::Folder;
use crate::state::NextGeneration;
use crate::store::files::{self, StoredFile};
use crate::store::report::HintsCondition;
use privet_core::{Blame, Error, Result};

/// The contents of one folder of hints.
pub(crate) struct Private {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) condition: HintsCondition,
}

/// Looks at the hints in `folder`; `None` if there never were any. With `thoroughly`, reads and
/// checks every byte that matters.
pub(crate) fn inspect(folder: &dyn Folder, thoroughly: bool) -> Result<Option<Private>> {
    let names = our_names(folder)?;
    let has_anchor = has_anchor(folder)?;
    if names.is_empty() && !has_anchor {
        return Ok(None);
    }
    let mut bytes = 0;
    for name in names.iter().map(String::as_str).chain(has_anchor.then_some(ANCHOR)) {
        bytes += files::open(folder, name)?.map_or(Ok(0), |file| file.len())?;
    }
    let files = names.len() as u64 + u64::from(has_anchor);
    let path = folder.path(ANCHOR);
    let damage = |what: &str| {
        let error = files::blame(&path, Error::corrupted(what));
        HintsCondition::Damaged(vec![(path.clone(), error.message().to_owned())])
    };
    if !has_anchor {
        return Ok(Some(Private { files, bytes, condition: damage("it is missing") }));
    }
    let condition = match files::lock(folder, ANCHOR)? {
        None => HintsCondition::InUse,
        Some(file) => match AnchorFile::read(file) {
            Err(error) if error.blame() == Blame::Corrupted && names.is_empty() => return Ok(None),
            Err(error) if error.blame() == Blame::Corrupted => damage(error.message()),
            anchor => look(folder, &anchor?, thoroughly)?,
        },
    };
    Ok(Some(Private { files, bytes, condition }))
}

fn has_anchor(folder: &dyn Folder) -> Result<bool> {
    Ok(files::names(folder)?.iter().any(|name| name == ANCHOR))
}

/// The contents of the files behind a valid anchor.
fn look(folder: &dyn Folder, anchor: &AnchorFile, thoroughly: bool) -> Result<HintsCondition> {
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
    let (mut used, mut unfinished, mut ended) = (None, 0, None);
    let mut version = anchor.version;
    if anchor.generation > 0 {
        let mut expected = None;
        let name = journal_name(anchor.generation, anchor.journal);
        let journal = super::open_journal(folder, anchor).and_then(|journal| {
            let summary = journal.summary();
            (used, unfinished) = (Some(summary.reserved), journal.unfinished());
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
    let ready = files::open(folder, &next_name)?.is_some();
    if ready {
        note(&next_name, check(folder, &next_name, thoroughly, None))?;
    }
    let mut newest = None;
    for name in CHECKPOINTS {
        let Some(file) = files::open(folder, name)? else { continue };
        // A damaged one was perhaps being written: it counts as missing, and not as damage.
        if let Ok(Header { label, .. }) = sealed::read_header(&file) {
            newest = newest.max(Some((label.order, label.offset)));
        }
    }
    if !damaged.is_empty() {
        return Ok(HintsCondition::Damaged(damaged));
    }
    Ok(HintsCondition::Whole {
        epoch: version.table.epoch,
        copied,
        used,
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
    let file = files::open(folder, name)?.ok_or_else(|| missing(folder, name))?;
    let header = match thoroughly {
        true => sealed::read(&file)?.0,
        false => sealed::read_header(&file)?,
    };
    match expected {
        Some(expected) if expected != (header.len, header.digest) => {
            Err(file.damaged(ANOTHER_FILE))
        }
        _ => Ok(()),
    }
}

/// Whether the hints in `folder` are known to have ended. If another process holds them, this is
/// not known.
pub(crate) fn has_ended(folder: &dyn Folder) -> Result<bool> {
    let condition = inspect(folder, false)?.map(|private| private.condition);
    Ok(matches!(condition, Some(HintsCondition::Whole { ended: Some(_), .. })))
}

/// Overwrites everything in `folder` with zeros and removes it; `false` if another process holds
/// it.
pub(crate) fn erase_folder(folder: &dyn Folder) -> Result<bool> {
    match files::lock(folder, ANCHOR)? {
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
    if !has_anchor(folder)? {
        return Ok(false);
    }
    let Some(lock) = files::lock(folder, ANCHOR)? else { return Ok(false) };
    match AnchorFile::read(lock.clone()) {
        Ok(file) if superfluous(&file.anchor().version.parameter_digest) => {
            erase_locked(folder, lock)
        }
        _ => Ok(false),
    }
}

fn erase_locked(folder: &dyn Folder, _lock: StoredFile) -> Result<bool> {
    erase_all(folder, &our_names(folder)?)?;
    // Erase the anchor last: without other files, a missing anchor means that there is nothing.
    sealed::erase(folder, ANCHOR)?;
    Ok(true)
}
