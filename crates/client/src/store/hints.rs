//! Single-use hints on disk. They must not be lost, not be read by others, and not be used twice.
//!
//! ```text
//! STATE/tables/<table id>/private-<scheme>/      for its owner alone, like every file in it
//!   anchor                 which generation counts, which file has its journal, and how many
//!                          commits that has at least; held locked: see `anchor`
//!   generation-<n>.hints   a generation as it was prepared; written once: see `sealed`. The one after the current one waits for its turn.
//!   journal-<n>-<k>.hints  the changes to generation n since, and the queries without answers,
//!                          in its k-th file: see `journal`
//!   preparing-<0|1>.hints  checkpoints of the next generation, in turn: see `preparation`
//!   prepared.new           the next generation while it is written
//! ```
//!
//! **A reservation is done** when the journal's commit is synced. One sync covers all reservations
//! that come together, and all answers that came before. Only then is there a [`Receipt`], and
//! nothing is sent without one. Checkpoints go to other files and do not delay this.
//!
//! **A switch is done** when the anchor names the new generation, whose file and empty journal are
//! synced before. The old generation's files are then overwritten with zeros and removed. If a
//! crash leaves any, they are erased when the hints are opened.
//!
//! **Following the table** takes two steps. The first is the journal's commit, which has the change
//! and the hints' new version. The second is the anchor, which counts the commit and names the new
//! version too. An end takes the same steps. If a crash comes between the two, opening the hints
//! completes the second before anything else asks for their version. A next generation that is
//! being prepared is for the earlier version. Each of its files says so, and counts for nothing
//! once the hints have moved on, whether or not it was erased in time.
//!
//! **Beginning anew** is done when the anchor has another lineage and no generation. Only then is
//! anything erased: a crash leaves either everything, or files that belong to no lineage. Hints
//! that have ended neither follow nor begin anew, and are not erased when a user accepts another
//! version. The record that a server was caught stays until a user erases it.
//!
//! **After a failure** to write or sync, it is unknown what reached the disk, and the handle does
//! nothing more. Opening again finds out: the journal's last commit is there or it is not, and both
//! are valid states.
//!
//! **Damage** to anything that the current generation depends on is refused, and the error names
//! the file. No older state that looks whole may take its place: it might hold a hint that was used
//! since. Damage to a generation that is only being prepared costs that preparation.
//!
//! **Copies.** Anchor and journal record where they were created (see [`Medium::place`]) and when
//! they were last written. If they lie elsewhere, or a file was changed after that time, the hints
//! are a copy or a backup. Another process may have used the original in the meantime, so they are
//! erased. Both files record this: a tool that restores a backup may skip a file that has not
//! changed since, and the journal changes with every lookup. Each file also records when the other
//! was changed last (see `anchor`), which shows a file that was put back at once.
//!
//! **Containers.** Hints that are part of an image are a copy in every container that starts from
//! it, so each container erases them. On overlayfs the anchor is copied up when it is opened. That
//! gives it another birth time, or, where birth times are not kept, a change later than its last
//! write. On Btrfs and ZFS every container has a snapshot of the image, whose name is a part of the
//! place. Hints on a volume stay, as long as all containers that use it have the same
//! `/etc/machine-id`. The lock on the anchor lets only one container at a time hold them.
//!
//! If the system cannot distinguish a copy from the original, neither can Privet: a snapshot of a
//! whole disk or of a virtual machine, say.

mod anchor;
mod journal;
mod preparation;
mod report;
mod sealed;
mod stored;
#[cfg(test)]
mod tests;
mod version;

pub(crate) use report::{Private, erase_folder, erase_folder_if, has_ended, inspect};

use crate::disk::Folder;
#[cfg(doc)]
use crate::disk::Medium;
use crate::state::{
    HintStore, HintsKey, PreparationStore, SavedHints, after_the_end, check_follows,
    check_not_lent, check_numbers, check_restarts, no_hints_to_end, unsettled,
};
use crate::store::files::{self, StoredFile};
use anchor::{Anchor, AnchorFile, Lineage};
use journal::{Entry, Journal};
use preparation::{CHECKPOINTS, HintsFolder, NextGenerationFiles, UNDER_WAY};
use privet_core::{Blame, Error, Reason, Result, SecretRng};
use privet_schemes::contract::ReservationId;
use privet_schemes::reservation::{self, JournalEntry, JournalRecord, Receipt, StoredRecord};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use version::Version;
use zeroize::Zeroizing;

const ANCHOR: &str = "anchor";

/// What to do about damage.
const ADVICE: &str = "the hints cannot be trusted any more; new ones are prepared at the next use once these are erased";

fn generation_name(number: u64) -> String {
    format!("generation-{number}.hints")
}

/// What is wrong with a file of a generation that the journal does not go with.
const ANOTHER_FILE: &str = "it is not the file that the journal belongs to";

/// The file `number` of the journal of `generation`.
fn journal_name(generation: u64, number: u64) -> String {
    format!("journal-{generation}-{number}.hints")
}

/// Whether a file of this name belongs to Privet, or did in earlier formats.
fn is_ours(name: &str) -> bool {
    let numbered = |before, after| {
        let numbers = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        numbers.is_some_and(|numbers: &str| {
            numbers.split('-').all(|number| number.parse::<u64>().is_ok())
        })
    };
    CHECKPOINTS.contains(&name)
        || name == UNDER_WAY
        || numbered("generation-", ".hints")
        || numbered("journal-", ".hints")
        || numbered("journal-", ".redb")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds to an error about damage what to do about it.
fn advised(error: Error) -> Error {
    match error.blame() {
        Blame::Corrupted => Error::corrupted(format!("{}; {ADVICE}", error.message()))
            .because(Reason::HintsUnusable),
        _ => error,
    }
}

/// The names in `folder` of Privet's files, without the anchor.
fn our_names(folder: &dyn Folder) -> Result<Vec<String>> {
    Ok(files::names(folder)?.into_iter().filter(|name| is_ours(name)).collect())
}

fn missing(folder: &dyn Folder, name: &str) -> Error {
    files::blame(&folder.path(name), Error::corrupted("it is missing"))
}

fn erase_all(folder: &dyn Folder, names: &[String]) -> Result<()> {
    let erased: Vec<_> = names.iter().map(|name| sealed::erase(folder, name)).collect();
    erased.into_iter().collect()
}

/// The outcome of opening.
pub(crate) enum Opening {
    /// This handle holds them now.
    Have { hints: Box<KeptHints>, notice: Option<String> },
    /// Another handle holds them.
    Busy,
}

/// The single-use hints of one table.
pub(crate) struct KeptHints {
    /// The journal of the generation in use; `None` before the first.
    journal: Option<Journal>,
    hints_folder: Arc<HintsFolder>,
    anchor: AnchorFile,
    /// The key that they were opened with.
    asked: HintsKey,
    /// Changes that were settled since the last commit.
    settled: Vec<(ReservationId, Zeroizing<Vec<u8>>)>,
    poisoned: bool,
}

/// What to do with hints of another version than the requested one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// Refuse them: a table's id is public, and any server can announce it.
    Refuse,
    /// Erase them, even if they were used with other servers: the user has decided to believe what
    /// is shown now.
    Replace,
}

impl KeptHints {
    /// Opens the hints that `key` names in `folder`. If `to_follow`, hints of another version of
    /// the table are accepted if they were used with the same servers; `others` says what to do
    /// with all other hints. Copies are erased.
    pub(crate) fn open(
        folder: Arc<dyn Folder>,
        key: &HintsKey,
        to_follow: bool,
        others: Others,
    ) -> Result<Opening> {
        folder.seclude().map_err(|error| files::failed(&folder.path(""), "protect", error))?;
        let Some(mut file) = files::lock(&*folder, ANCHOR)? else { return Ok(Opening::Busy) };
        // A killed process may have left its writes unsynced. What follows relies on them.
        file.sync()?;
        files::sync_names(&*folder)?;

        let names = our_names(&*folder)?;
        let (found, notice) = match AnchorFile::read(file.clone()) {
            // The anchor is always written first, so without other files there was never anything.
            Err(error) if error.blame() == Blame::Corrupted && names.is_empty() => (None, None),
            Err(error) => return Err(advised(file.blame(error))),
            Ok(anchor) => match AnchorAndJournal::behind(&*folder, anchor)? {
                None => {
                    match replaced_anchor(&*folder, &names, file)? {
                        Some(fresh) => file = fresh,
                        None => return Ok(Opening::Busy),
                    }
                    (None, notice_of_copy(file.path(), &names))
                }
                // Hints that do not exist cannot follow.
                Some(found) => match found.suits(key, to_follow && !names.is_empty()) {
                    Ok(()) => (Some(found), None),
                    // A caller that asks for other hints hears of the end of these.
                    Err(_) if found.has_ended() => (Some(found), None),
                    Err(why) if others == Others::Refuse && !names.is_empty() => {
                        return Err(why.within(folder.path("").display()));
                    }
                    Err(_) => (None, notice_of_change(&names)),
                },
            },
        };
        let found = match found {
            Some(found) => found,
            None => AnchorAndJournal { anchor: begin(&*folder, &file, key)?, journal: Ok(None) },
        };
        let hints = Box::new(Self::at(folder, found, key, file)?);
        Ok(Opening::Have { hints, notice })
    }

    /// Opens the hints that were found, and erases files that belong to something else.
    fn at(
        folder: Arc<dyn Folder>,
        found: AnchorAndJournal,
        asked: &HintsKey,
        file: StoredFile,
    ) -> Result<Self> {
        let AnchorAndJournal { anchor, journal } = found;
        let journal = journal.map_err(advised)?;
        let Anchor { generation, journal: number, lineage, version, .. } = *anchor.anchor();
        let next = generation + 1;
        let current = [generation_name(generation), journal_name(generation, number)];
        let kept = [&current[..], &[generation_name(next)]].concat();
        let mut superfluous = our_names(&*folder)?;
        superfluous.retain(|name| !kept.contains(name) && !CHECKPOINTS.contains(&name.as_str()));
        erase_all(&*folder, &superfluous)?;
        let hints_folder = Arc::new(HintsFolder::open(folder, lineage, next, version, file)?);
        let (asked, settled) = (asked.clone(), Vec::new());
        let mut hints = Self { hints_folder, anchor, journal, asked, settled, poisoned: false };
        hints.writing(|hints| hints.renew_if_worn(&[]))?;
        Ok(hints)
    }

    fn check_poison(&self) -> Result<()> {
        match self.poisoned {
            false => Ok(()),
            true => Err(Error::unavailable(
                "an earlier write to the hints failed, so they are not used any more; start again",
            )),
        }
    }

    fn check_not_ended(&self) -> Result<()> {
        match self.journal.as_ref().and_then(|journal| journal.summary().ended.as_ref()) {
            None => Ok(()),
            Some(_) => Err(after_the_end()),
        }
    }

    /// Runs a step that writes. If it fails, no other step runs.
    fn writing<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.check_poison()?;
        let outcome = step(self);
        self.poisoned |= outcome.is_err();
        outcome.map_err(advised)
    }

    /// Commits what was settled, and what is new, to the journal.
    fn commit(&mut self, news: &[Entry<'_>]) -> Result<()> {
        let settled = std::mem::take(&mut self.settled);
        let entries = settled.iter();
        let entries =
            entries.flat_map(|(id, change)| [Entry::Finished(id.0), Entry::Change(change)]);
        let mut entries: Vec<_> =
            entries.chain(news.iter().copied()).chain([Entry::AnchorChanged(0)]).collect();
        self.renew_if_worn(&entries)?;
        // Another journal changes the anchor.
        entries.pop();
        entries.push(Entry::AnchorChanged(self.anchor.changed()?));
        self.journal.as_mut().map_or(Ok(()), |journal| journal.commit(&entries))
    }

    /// Has the anchor count all commits of the journal, and name the version where the hints stand.
    fn count(&mut self) -> Result<()> {
        self.journal.as_ref().map_or(Ok(()), |journal| count(&mut self.anchor, journal))
    }

    /// Where the hints stand.
    fn version(&self) -> Version {
        self.anchor.anchor().version
    }

    /// Makes the prepared generation `number` the current one.
    fn advance(&mut self, number: u64) -> Result<()> {
        let hints_folder = Arc::clone(&self.hints_folder);
        let folder = &*hints_folder.folder;
        let missing = || missing(folder, &generation_name(number));
        let (header, _) = hints_folder.read_generation(number)?.ok_or_else(missing)?;
        hints_folder.sync_generation(number)?;
        let old = self.anchor.anchor().generation;
        self.begin_journal(number, 1, |file| Journal::create(file, &header))?;
        self.settled.clear();
        sealed::erase(folder, &generation_name(old))
    }

    /// Replaces the journal by one without useless entries, if it has no room for `entries` or was
    /// not found as it was left.
    fn renew_if_worn(&mut self, entries: &[Entry<'_>]) -> Result<()> {
        let worn = self.journal.take_if(|journal| journal.is_worn(entries));
        let Some(worn) = worn else { return Ok(()) };
        let Anchor { generation, journal, .. } = *self.anchor.anchor();
        self.begin_journal(generation, journal + 1, |file| worn.renewed(file, entries))
    }

    /// Makes the journal that `begin` writes the one in use, as file `number` of `generation`, and
    /// erases the earlier one.
    fn begin_journal(
        &mut self,
        generation: u64,
        number: u64,
        begin: impl FnOnce(StoredFile) -> Result<Journal>,
    ) -> Result<()> {
        let hints_folder = Arc::clone(&self.hints_folder);
        let folder = &*hints_folder.folder;
        let name = journal_name(generation, number);
        sealed::erase(folder, &name)?;
        let journal = begin(files::open_or_create(folder, &name)?)?;
        files::sync_names(folder)?;
        let old = self.anchor.anchor().clone();
        let (old_generation, old_number) = (old.generation, old.journal);
        let anchor = counting(Anchor { generation, journal: number, ..old }, &journal)?;
        self.anchor.write_twice(anchor)?;
        self.journal = Some(journal);
        sealed::erase(folder, &journal_name(old_generation, old_number))
    }
}

impl Drop for KeptHints {
    fn drop(&mut self) {
        if !self.poisoned {
            // If this fails, the next opening does it.
            let _ = self.count();
        }
    }
}

/// Erases the files `names` and the anchor of a copy, and locks a new anchor in its place: the file
/// system of a container may give a copied-up file another number at the next start. `None`:
/// another process was faster.
fn replaced_anchor(
    folder: &dyn Folder,
    names: &[String],
    copied: StoredFile,
) -> Result<Option<StoredFile>> {
    erase_all(folder, names)?;
    // Remove this last: while it is there, any files left beside it are known to be a copy.
    files::remove_if_there(folder, ANCHOR)?;
    drop(copied);
    files::lock(folder, ANCHOR)
}

fn fresh_lineage() -> Result<Lineage> {
    let mut lineage = [0; 16];
    SecretRng::from_os()?.fill(&mut lineage);
    Ok(lineage)
}

fn notice_of_copy(path: &Path, names: &[String]) -> Option<String> {
    let holds = !names.is_empty();
    holds.then(|| {
        format!(
            "the single-use hints beside {} were copied or restored from a backup; the original may have used them since, so they were erased, and new ones will be prepared",
            path.display()
        )
    })
}

fn notice_of_change(names: &[String]) -> Option<String> {
    let holds = !names.is_empty();
    holds.then(|| {
        "the table or its parameters changed; the hints for the former version were erased, and new ones will be prepared".to_owned()
    })
}

/// An anchor in its file, and the journal that it names.
struct AnchorAndJournal {
    anchor: AnchorFile,
    /// `None` before the first generation. An error matters only if these are the requested hints.
    journal: Result<Option<Journal>>,
}

impl AnchorAndJournal {
    /// Opens the journal that `anchor` names, and has the anchor count commits that it has not
    /// counted yet: only then does it say where the hints stand. `None` if either file is a copy.
    fn behind(folder: &dyn Folder, mut anchor: AnchorFile) -> Result<Option<Self>> {
        if !anchor.is_original()? {
            return Ok(None);
        }
        let journal = match anchor.anchor().generation {
            0 => Ok(None),
            _ => open_journal(folder, anchor.anchor()).map(Some),
        };
        if let Ok(Some(journal)) = &journal {
            if !journal.is_original()? || !journal.agrees_with(&anchor)? {
                return Ok(None);
            }
            count(&mut anchor, journal)?;
        }
        Ok(Some(Self { anchor, journal }))
    }

    /// Whether the hints have ended.
    fn has_ended(&self) -> bool {
        let journal = self.journal.as_ref().ok().and_then(Option::as_ref);
        journal.is_some_and(|journal| journal.summary().ended.is_some())
    }

    /// Checks that these are the hints that `key` names, or, if `to_follow`, that they are for some
    /// version of its table.
    fn suits(&self, key: &HintsKey, to_follow: bool) -> Result<()> {
        let Anchor { version, servers, .. } = self.anchor.anchor();
        let suits = match to_follow {
            true => version.table.id == key.table.id,
            false => *version == Version::of(key),
        };
        if !suits {
            return Err(Error::integrity(
                "the stored hints are for another version of the table than this server shows; nothing was asked, and the hints were kept. If you believe this server, accept its table, which erases them",
            )
            .because(Reason::HintsOfAnotherVersion));
        }
        if *servers != key.servers {
            return Err(Error::api_misuse(
                "the stored hints were used with other servers, or with the same servers in another order: a server must not learn of the hints what another has learned. Nothing was asked. Name the servers as before, or erase the hints and begin anew",
            )
            .because(Reason::HintsOfOtherServers));
        }
        Ok(())
    }
}

/// The contents of `anchor` once it has counted all commits of `journal`.
fn counting(anchor: Anchor, journal: &Journal) -> Result<Anchor> {
    let journal::Summary { commits, version, seal, .. } = *journal.summary();
    Ok(Anchor { commits, version, seal, journal_changed: journal.changed()?, ..anchor })
}

/// Has the anchor count all commits of `journal`, if it has not yet, and name the version where the
/// hints stand.
fn count(anchor: &mut AnchorFile, journal: &Journal) -> Result<()> {
    if anchor.anchor().commits == journal.summary().commits {
        return Ok(());
    }
    anchor.write(counting(anchor.anchor().clone(), journal)?)
}

/// Begins a new lineage for `key`, and then erases files of older ones.
fn begin(folder: &dyn Folder, file: &StoredFile, key: &HintsKey) -> Result<AnchorFile> {
    let first = Anchor::new(key, fresh_lineage()?, file.place()?);
    let anchor = AnchorFile::begin(file.clone(), first)?;
    files::sync_names(folder)?;
    erase_all(folder, &our_names(folder)?)?;
    Ok(anchor)
}

/// Opens the journal that the anchor names. Nothing is written.
fn open_journal(folder: &dyn Folder, anchor: &Anchor) -> Result<Journal> {
    let name = journal_name(anchor.generation, anchor.journal);
    let file = files::open(folder, &name)?.ok_or_else(|| missing(folder, &name))?;
    Journal::open(file, anchor)
}
