//! Single-use hints on disk: what must not be lost, not be read twice, and not be used twice.
//!
//! ```text
//! STATE/tables/<table id>/private-<scheme>/      for its owner alone, like every file in it
//!   anchor                 which generation counts, and how many commits of its journal; held locked: see `anchor`
//!   generation-<n>.hints   a generation as it was prepared; written once: see `sealed`. The one after the current one waits for its turn.
//!   journal-<n>.redb       the changes to generation n since, and the queries without answers: see `journal`
//!   preparing-<0|1>.hints  checkpoints of the next generation, in turn: see `preparation`
//!   prepared.new           the next generation while it is written
//! ```
//!
//! **A reservation is done** when the journal's commit is synced and the anchor has counted it: two syncs, in that order. Only then is there a
//! [`Receipt`], and without one nothing is sent. Checkpoints go to other files and take none of the time.
//!
//! **A switch is done** when the anchor names the new generation, whose file and empty journal are synced before. What belonged to the old one is then
//! overwritten with zeros and removed; what a crash leaves of it is erased when the hints are opened.
//!
//! **Following the table** takes the same two steps as a reservation: the journal's commit, which has the change and the version that the hints are of from then on, and the anchor, which
//! counts it and says that version too. What a crash leaves between the two is completed when the hints are opened, before anybody asks which version they are of. What was prepared of a next
//! generation is for the version before. Each of its files says so, and counts for nothing once the hints have moved on, whether or not it was erased in time.
//!
//! **Beginning anew** is done when the anchor has another lineage and no generation. Only then is anything erased: a crash leaves either all that was there, or files that belong to no lineage.
//! Hints that have ended neither follow nor begin anew, and are not erased because another version is accepted. That a server was caught stays on record until a user erases it.
//!
//! **After a failure** to write or sync, nothing is known of what reached the disk, and the handle does nothing more. Opening again finds out: the journal's
//! last commit is there or it is not, and either is a state that could have been.
//!
//! **Damage** to anything that the current generation rests on is refused by name. There is no way back to an older state that looks whole: it might hold a
//! hint that was used since. Damage to what is only being prepared costs the preparation.
//!
//! **Copies.** The anchor remembers where it was created (see
//! [`Medium::place`](folder::Medium::place)) and when it was last written. Elsewhere, or if the file
//! was changed later than that, the hints are a copy or a backup, and another process may have used
//! them in the meantime: they are erased.
//!
//! **Containers.** Hints that were baked into an image are a copy in every container that is
//! started from it, so each erases them. On overlayfs the anchor is copied up when it is opened:
//! that gives it another birth, and where births are not kept, a change later than its last write.
//! On Btrfs and ZFS every container has a snapshot of the image, whose name is a part of the place.
//! Hints on a volume stay, as long as all containers that use it have the same `/etc/machine-id`.
//! The lock on the anchor lets one container at a time have them.
//!
//! A copy that the system does not tell from the original is not recognised: a snapshot of a whole
//! disk or of a virtual machine, say.

mod anchor;
mod backend;
mod folder;
mod journal;
mod preparation;
mod report;
mod sealed;
#[cfg(test)]
mod tests;
mod version;

pub(crate) use folder::{Directory, Folder};
pub(crate) use report::{Condition, Private, erase_folder, erase_folder_if, has_ended, inspect};

use crate::state::{
    HintStore, HintsKey, PreparationStore, SavedHints, after_the_end, check_follows,
    check_not_lent, check_restarts, no_hints_to_end, unsettled,
};
use crate::store::files;
use anchor::{Anchor, AnchorFile, Lineage};
use folder::Medium;
use journal::{Contents, Journal, News};
use preparation::{Bench, CHECKPOINTS, UNDER_WAY, Workshop};
use privet_core::{Blame, Error, Result, SecretRng};
use privet_schemes::contract::ReservationId;
use privet_schemes::reservation::{
    self, JournalEntry, JournalReader, JournalRecord, Receipt, StoredRecord,
};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use version::Version;
use zeroize::Zeroizing;

const ANCHOR: &str = "anchor";

/// What to do about damage.
const ADVICE: &str = "the hints cannot be trusted any more: `privet state reset` erases them, and new ones are prepared at the next use";

fn generation_name(number: u64) -> String {
    format!("generation-{number}.hints")
}

fn journal_name(number: u64) -> String {
    format!("journal-{number}.redb")
}

/// Whether a file of this name is one of ours.
fn is_ours(name: &str) -> bool {
    let numbered = |before, after| {
        let number = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        number.is_some_and(|number: &str| number.parse::<u64>().is_ok())
    };
    CHECKPOINTS.contains(&name)
        || name == UNDER_WAY
        || numbered("generation-", ".hints")
        || numbered("journal-", ".redb")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds to an error about damage what to do about it.
fn advised(error: Error) -> Error {
    match error.blame() {
        Blame::Corrupted => Error::corrupted(format!("{}; {ADVICE}", error.message())),
        _ => error,
    }
}

/// The names in `folder` that are ours, apart from the anchor.
fn our_names(folder: &dyn Folder) -> Result<Vec<String>> {
    let names = folder.names().map_err(|error| files::failed(&folder.path(""), "list", error))?;
    Ok(names.into_iter().filter(|name| is_ours(name)).collect())
}

fn erase_all(folder: &dyn Folder, names: &[String]) -> Result<()> {
    let erased: Vec<_> = names.iter().map(|name| sealed::erase(folder, name)).collect();
    erased.into_iter().collect()
}

/// What opening came to.
pub(crate) enum Opening {
    /// They are this handle's.
    Have { hints: Box<Hints>, notice: Option<String> },
    /// Another handle has them.
    Busy,
}

/// The single-use hints of one table.
pub(crate) struct Hints {
    /// Of the generation in use; `None` before the first. Before the others, because it writes when it is dropped, and they hold the lock.
    journal: Option<Journal>,
    workshop: Arc<Workshop>,
    anchor: AnchorFile,
    /// The key that they were opened with.
    asked: HintsKey,
    /// Settled since the last commit.
    settled: Vec<(ReservationId, Zeroizing<Vec<u8>>)>,
    poisoned: bool,
}

/// What to do with hints of another version than the one that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// Refuse them: a table's id is public, and any server can announce it.
    Refuse,
    /// Erase them, also those that were used with other servers: somebody has decided to believe what is shown now.
    Replace,
}

impl Hints {
    /// Opens the hints that `key` names in `folder`. If `to_follow`, hints of another version of the table will do if they were used with the same servers; what becomes of all other hints, `others`
    /// says. Copies are erased.
    pub(crate) fn open(
        folder: Arc<dyn Folder>,
        key: &HintsKey,
        to_follow: bool,
        others: Others,
    ) -> Result<Opening> {
        let path = folder.path(ANCHOR);
        let locked = folder.lock(ANCHOR).map_err(|error| files::failed(&path, "lock", error))?;
        let Some(mut medium) = locked else { return Ok(Opening::Busy) };
        // A process that was killed may have left it to the system to write this out some time. What follows relies on it.
        let synced = medium.sync().and_then(|()| folder.sync());
        synced.map_err(|error| files::failed(&path, "sync", error))?;

        let names = our_names(&*folder)?;
        let (found, notice) = match AnchorFile::read(Arc::clone(&medium), &path) {
            // Nothing is written before the anchor, so without other files there was never anything.
            Err(error) if error.blame() == Blame::Corrupted && names.is_empty() => (None, None),
            Err(error) => return Err(advised(files::blame(&path, error))),
            Ok(file) if !file.is_original()? => {
                drop(file);
                match replaced_anchor(&*folder, &names, medium)? {
                    Some(fresh) => medium = fresh,
                    None => return Ok(Opening::Busy),
                }
                (None, notice_of_copy(&path, &names))
            }
            Ok(file) => {
                let found = Found::behind(&*folder, file)?;
                // Where there is nothing, there is nothing to follow.
                match found.suits(key, to_follow && !names.is_empty()) {
                    Ok(()) => (Some(found), None),
                    // Whoever asks for others is told of the end of these.
                    Err(_) if found.has_ended() => (Some(found), None),
                    Err(why) if others == Others::Refuse && !names.is_empty() => {
                        return Err(why.within(folder.path("").display()));
                    }
                    Err(_) => (None, notice_of_change(&names)),
                }
            }
        };
        let found = match found {
            Some(found) => found,
            None => Found { anchor: begin(&*folder, &medium, key)?, journal: Ok(None) },
        };
        let hints = Box::new(Self::at(folder, found, key, medium)?);
        Ok(Opening::Have { hints, notice })
    }

    /// Opens what was found, and erases what belongs to something else.
    fn at(
        folder: Arc<dyn Folder>,
        found: Found,
        asked: &HintsKey,
        medium: Arc<dyn Medium>,
    ) -> Result<Self> {
        let Found { anchor, journal } = found;
        let journal = journal.map_err(advised)?;
        let Anchor { generation, lineage, version, .. } = *anchor.anchor();
        let (current, next) = (generation, generation + 1);
        let kept = [generation_name(current), journal_name(current), generation_name(next)];
        let mut superfluous = our_names(&*folder)?;
        superfluous.retain(|name| !kept.contains(name) && !CHECKPOINTS.contains(&name.as_str()));
        erase_all(&*folder, &superfluous)?;
        let workshop = Arc::new(Workshop::open(folder, lineage, next, version, medium)?);
        let (asked, settled) = (asked.clone(), Vec::new());
        Ok(Self { workshop, anchor, journal, asked, settled, poisoned: false })
    }

    fn check_poison(&self) -> Result<()> {
        match self.poisoned {
            false => Ok(()),
            true => Err(Error::unavailable(
                "an earlier write to the hints failed, so nothing more is done with them; start again",
            )),
        }
    }

    fn check_not_ended(&self) -> Result<()> {
        match self.journal.as_ref().and_then(|journal| journal.summary().ended.as_ref()) {
            None => Ok(()),
            Some(_) => Err(after_the_end()),
        }
    }

    /// Runs a step that writes. If it fails, it was the last.
    fn writing<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.check_poison()?;
        let outcome = step(self);
        if outcome.is_err() {
            self.poisoned = true;
            if let Some(journal) = &self.journal {
                journal.seal_off();
            }
        }
        outcome.map_err(advised)
    }

    /// Commits what was settled, and what is new, to journal and anchor.
    fn commit(&mut self, news: &News<'_>) -> Result<()> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        journal.commit(&self.settled, news)?;
        self.settled.clear();
        count(&mut self.anchor, journal)
    }

    /// Where the hints stand.
    fn version(&self) -> Version {
        self.anchor.anchor().version
    }

    /// Makes the prepared generation `number` the current one.
    fn advance(&mut self, number: u64) -> Result<()> {
        let workshop = Arc::clone(&self.workshop);
        let folder = &*workshop.folder;
        let missing = || {
            Error::corrupted(format!(
                "{} is missing",
                folder.path(&generation_name(number)).display()
            ))
        };
        let (header, _) = workshop.read_generation(number)?.ok_or_else(missing)?;
        let name = journal_name(number);
        let path = folder.path(&name);
        sealed::erase(folder, &name)?;
        let created = folder.create(&name);
        let medium = created.map_err(|error| files::failed(&path, "create", error))?;
        let journal = Journal::create(medium, &path, &header)?;
        workshop.sync_generation(number)?;
        workshop.sync_names()?;
        let summary = journal.summary().digest();
        let old = self.anchor.anchor().clone();
        let old_number = old.generation;
        self.anchor.write_twice(Anchor { generation: number, commits: 0, summary, ..old })?;

        self.settled.clear();
        drop(self.journal.replace(journal));
        erase_all(folder, &[journal_name(old_number), generation_name(old_number)])
    }
}

/// Erases what `names` says and the anchor of a copy, and locks a new anchor in its place: the file
/// system of a container may give a file that was copied up another number at the next start.
/// `None`: another process was quicker.
fn replaced_anchor(
    folder: &dyn Folder,
    names: &[String],
    copied: Arc<dyn Medium>,
) -> Result<Option<Arc<dyn Medium>>> {
    erase_all(folder, names)?;
    let path = folder.path(ANCHOR);
    // Last: as long as it is there, what is left beside it is a copy.
    folder.remove(ANCHOR).map_err(|error| files::failed(&path, "remove", error))?;
    drop(copied);
    folder.lock(ANCHOR).map_err(|error| files::failed(&path, "lock", error))
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
struct Found {
    anchor: AnchorFile,
    /// `None` before the first generation. An error matters only if these are the hints that are wanted.
    journal: Result<Option<Journal>>,
}

impl Found {
    /// Opens the journal behind `anchor`, and has the anchor count its last commit if it did not come to that: only then does it say where the hints stand.
    fn behind(folder: &dyn Folder, mut anchor: AnchorFile) -> Result<Self> {
        let journal = match anchor.anchor().generation {
            0 => Ok(None),
            number => {
                let name = journal_name(number);
                let path = folder.path(&name);
                let medium = folder.open(&name);
                let medium = medium.map_err(|error| files::failed(&path, "open", error))?;
                open_journal(medium, &path, anchor.anchor()).map(Some)
            }
        };
        if let Ok(Some(journal)) = &journal
            && journal.summary().commits != anchor.anchor().commits
        {
            count(&mut anchor, journal)?;
        }
        Ok(Self { anchor, journal })
    }

    /// Whether they have ended.
    fn has_ended(&self) -> bool {
        let journal = self.journal.as_ref().ok().and_then(Option::as_ref);
        journal.is_some_and(|journal| journal.summary().ended.is_some())
    }

    /// Checks that these are hints that `key` names, or, if `to_follow`, that they are for some version of its table.
    fn suits(&self, key: &HintsKey, to_follow: bool) -> Result<()> {
        let Anchor { version, servers, .. } = self.anchor.anchor();
        let suits = match to_follow {
            true => version.table.id == key.table.id,
            false => *version == Version::of(key),
        };
        if !suits {
            return Err(Error::integrity(
                "the hints that are kept here are for another version of the table than this server shows; nothing was asked, and they were kept. If you believe this server, accept its table (--accept-new-table): that erases them",
            ));
        }
        if *servers != key.servers {
            return Err(Error::api_misuse(
                "the hints that are kept here were used with other servers, or with the same ones named in another order: what one of them has learned of the hints, another must not. Nothing was asked. Name the servers as before, or begin anew (privet state reset)",
            ));
        }
        Ok(())
    }
}

/// Has the anchor count the journal's last commit, and say where the hints stand by it.
fn count(anchor: &mut AnchorFile, journal: &Journal) -> Result<()> {
    let summary = journal.summary();
    let (commits, version, summary) = (summary.commits, summary.version, summary.digest());
    anchor.write(Anchor { commits, version, summary, ..anchor.anchor().clone() })
}

/// Begins a new lineage for `key`, and then erases what there is of older ones.
fn begin(folder: &dyn Folder, medium: &Arc<dyn Medium>, key: &HintsKey) -> Result<AnchorFile> {
    let path = folder.path(ANCHOR);
    let place = medium.place().map_err(|error| files::failed(&path, "look at", error))?;
    let first = Anchor::new(key, fresh_lineage()?, place);
    let anchor = AnchorFile::begin(Arc::clone(medium), &path, first)?;
    folder.sync().map_err(|error| files::failed(&path, "sync", error))?;
    erase_all(folder, &our_names(folder)?)?;
    Ok(anchor)
}

/// Opens the journal of the anchor's generation, and checks that it is the one and has every commit that was counted.
fn open_journal(medium: Option<Arc<dyn Medium>>, path: &Path, anchor: &Anchor) -> Result<Journal> {
    let damaged = |what: &str| files::blame(path, Error::corrupted(what));
    let journal = Journal::open(medium.ok_or_else(|| damaged("it is missing"))?, path)?;
    let summary = journal.summary();
    let fault = if (summary.lineage, summary.generation) != (anchor.lineage, anchor.generation) {
        Some("it belongs to other hints")
    } else if summary.commits == anchor.commits {
        (summary.digest() != anchor.summary).then_some("it is not as it was left")
    } else if summary.commits < anchor.commits {
        Some("it has lost its last changes")
    } else if summary.commits > anchor.commits + 1 {
        Some("it has more changes than were counted")
    } else {
        None
    };
    match fault {
        None => Ok(journal),
        Some(fault) => {
            journal.seal_off();
            Err(damaged(fault))
        }
    }
}

impl HintStore for Hints {
    fn load(&mut self) -> Result<SavedHints> {
        self.flush()?;
        let next = self.workshop.progress()?;
        let (version, asked) = (self.version(), Version::of(&self.asked));
        let stands_at = (version != asked).then(|| version.as_key(&self.asked));
        let Some(journal) = &self.journal else {
            return Ok(SavedHints { next, stands_at, ..SavedHints::default() });
        };
        let summary = journal.summary();
        let (number, prepared_for) = (summary.generation, summary.prepared_for);
        let expected = (summary.generation_len, summary.generation_digest);
        let read = self.workshop.read_generation(number).map_err(advised)?;
        let path = self.workshop.folder.path(&generation_name(number));
        let damaged = |what: &str| advised(files::blame(&path, Error::corrupted(what)));
        let (header, generation) = read.ok_or_else(|| damaged("it is missing"))?;
        if (header.len, header.digest) != expected {
            return Err(damaged("it is not the file that the journal belongs to"));
        }
        let mut contents = journal.load().map_err(advised)?;
        let ids: Vec<_> = contents.unfinished.iter().map(|(id, _)| *id).collect();
        let stored = StoredRecord::read_all(&mut contents).map_err(advised)?;
        Ok(SavedHints {
            generation: Some(generation),
            changes: contents.changes,
            unfinished: ids.into_iter().zip(stored).collect(),
            next,
            prepared_for: (prepared_for != asked || version != asked).then_some(prepared_for.table),
            ended: journal.summary().ended.clone(),
            stands_at,
        })
    }

    fn reserve(&mut self, id: ReservationId, record: &JournalRecord) -> Result<Receipt> {
        self.check_poison()?;
        let Some(journal) = &self.journal else {
            return Err(Error::api_misuse("there are no hints to reserve from"));
        };
        self.check_not_ended()?;
        let due = journal.summary().reserved;
        if id.0 != due {
            let given = id.0;
            return Err(Error::api_misuse(format!("reservation {given} came when {due} was due")));
        }
        self.writing(|hints| Receipt::append(&mut Entry { hints, id }, record))
    }

    fn settle(&mut self, id: ReservationId, change: &[u8]) -> Result<()> {
        self.check_poison()?;
        let journal = self.journal.as_ref();
        let known = journal.map_or(Ok(false), |journal| journal.is_unfinished(id));
        let again = self.settled.iter().any(|(settled, _)| *settled == id);
        if again || !known.map_err(advised)? {
            return Err(Error::api_misuse("a reservation was settled that is not unfinished"));
        }
        self.settled.push((id, Zeroizing::new(change.to_vec())));
        Ok(())
    }

    fn end(&mut self, id: Option<ReservationId>, change: &[u8], why: &str) -> Result<()> {
        self.check_poison()?;
        if self.journal.is_none() {
            return Err(no_hints_to_end());
        }
        self.check_not_ended()?;
        let change = match id {
            Some(id) => {
                self.settle(id, change)?;
                None
            }
            None => Some(change),
        };
        self.writing(|hints| hints.commit(&News::Ended { change, why }))
    }

    fn follow(&mut self, change: &[u8], to: &HintsKey) -> Result<()> {
        self.check_poison()?;
        let Some(journal) = &self.journal else {
            return Err(Error::api_misuse("there are no hints that could follow the table"));
        };
        self.check_not_ended()?;
        check_follows(&self.version().as_key(&self.asked), to)?;
        if journal.summary().unfinished != self.settled.len() as u64 {
            return Err(unsettled());
        }
        let workshop = Arc::clone(&self.workshop);
        let mut next = workshop.lock();
        check_not_lent(next.lent)?;
        let to = Version::of(to);
        self.writing(|hints| {
            hints.commit(&News::Followed { change, to })?;
            workshop.follow(&mut next, to)
        })
    }

    fn restart(&mut self, key: &HintsKey) -> Result<()> {
        self.check_poison()?;
        self.check_not_ended()?;
        check_restarts(&self.asked, key)?;
        check_not_lent(self.workshop.lock().lent)?;
        self.writing(|hints| {
            let (folder, medium) = (Arc::clone(&hints.workshop.folder), hints.anchor.medium());
            // It writes when it is dropped, and its file is to be erased.
            hints.journal = None;
            hints.settled.clear();
            let anchor = begin(&*folder, &medium, key)?;
            *hints = Self::at(folder, Found { anchor, journal: Ok(None) }, key, medium)?;
            Ok(())
        })
    }

    fn flush(&mut self) -> Result<()> {
        self.check_poison()?;
        if self.settled.is_empty() {
            return Ok(());
        }
        self.writing(|hints| hints.commit(&News::Nothing))
    }

    fn preparation(&mut self) -> Result<Box<dyn PreparationStore>> {
        self.check_poison()?;
        Ok(Box::new(Bench::take(&self.workshop)?))
    }

    fn switch(&mut self) -> Result<()> {
        self.check_poison()?;
        self.check_not_ended()?;
        let workshop = Arc::clone(&self.workshop);
        // Held throughout, so that nothing is prepared under a number that changes.
        let mut next = workshop.lock();
        if !next.ready {
            return Err(Error::api_misuse("there is no prepared generation to switch to"));
        }
        let number = next.number;
        self.writing(|hints| hints.advance(number))?;
        next.advance();
        Ok(())
    }
}

/// One reservation on its way into the journal.
struct Entry<'a> {
    hints: &'a mut Hints,
    id: ReservationId,
}

impl reservation::Journal for Entry<'_> {
    fn append_and_sync(&mut self, entry: JournalEntry<'_>) -> Result<()> {
        let (id, JournalEntry { change, record }) = (self.id, entry);
        self.hints.commit(&News::Reserved { id, change, record })
    }
}

impl JournalReader for Contents {
    fn records(&mut self) -> Result<Vec<Zeroizing<Vec<u8>>>> {
        let unfinished = std::mem::take(&mut self.unfinished);
        Ok(unfinished.into_iter().map(|(_, record)| record).collect())
    }
}
