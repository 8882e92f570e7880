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
//! **After a failure** to write or sync, nothing is known of what reached the disk, and the handle does nothing more. Opening again finds out: the journal's
//! last commit is there or it is not, and either is a state that could have been.
//!
//! **Damage** to anything that the current generation rests on is refused by name. There is no way back to an older state that looks whole: it might hold a
//! hint that was used since. Damage to what is only being prepared costs the preparation.
//!
//! **Copies.** The anchor remembers where it was created (see [`Medium::place`](folder::Medium::place)) and when it was last written. Elsewhere, or if the file was changed later than that,
//! the hints are a copy or a backup, and another process may have used them in the meantime: they are erased. A copy that the system does not tell from the original (a snapshot of the whole disk, say) is not recognised.

mod anchor;
mod backend;
mod folder;
mod journal;
mod preparation;
mod report;
mod sealed;
#[cfg(test)]
mod tests;

pub(crate) use folder::{Directory, Folder};
pub(crate) use report::{Condition, Private, erase_folder, erase_folder_if, inspect};

use crate::state::{HintStore, HintsKey, PreparationStore, SavedHints, after_the_end};
use crate::store::files;
use anchor::{Anchor, AnchorFile, Lineage};
use folder::Medium;
use journal::Journal;
use preparation::{Bench, CHECKPOINTS, UNDER_WAY, Workshop};
use privet_core::{Blame, Error, Result, SecretRng};
use privet_schemes::contract::ReservationId;
use privet_schemes::reservation::{self, Receipt, Sendable};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// Settled since the last commit.
    settled: Vec<(ReservationId, Zeroizing<Vec<u8>>)>,
    poisoned: bool,
}

impl Hints {
    /// Opens the hints that `key` names in `folder`. Copies are erased, and so are hints of another key if `replace_others`; otherwise they are kept and refused, because a
    /// table's id is public and any server can announce it.
    pub(crate) fn open(
        folder: Arc<dyn Folder>,
        key: &HintsKey,
        replace_others: bool,
    ) -> Result<Opening> {
        let path = folder.path(ANCHOR);
        let locked = folder.lock(ANCHOR).map_err(|error| files::failed(&path, "lock", error))?;
        let Some(medium) = locked else { return Ok(Opening::Busy) };
        // A process that was killed may have left it to the system to write this out some time. What follows relies on it.
        let synced = medium.sync().and_then(|()| folder.sync());
        synced.map_err(|error| files::failed(&path, "sync", error))?;
        let place = medium.place().map_err(|error| files::failed(&path, "look at", error))?;

        let names = our_names(&*folder)?;
        let (anchor, notice) = match AnchorFile::read(Arc::clone(&medium), &path) {
            // Nothing is written before the anchor, so without other files there was never anything.
            Err(error) if error.blame() == Blame::Corrupted && names.is_empty() => (None, None),
            Err(error) => return Err(advised(files::blame(&path, error))),
            Ok(file) if !file.is_original()? => (None, notice_of_copy(&path, &names)),
            Ok(file)
                if file.anchor().is_for_table(key)
                    && !file.anchor().is_for(key)
                    && !replace_others
                    && !names.is_empty() =>
            {
                return Err(Error::api_misuse(format!(
                    "the hints in {} were used with other servers, or with the same ones named in another order: what one of them has learned of the hints, another must not. Nothing was asked. Name the servers as before, or begin anew (privet state reset)",
                    folder.path("").display()
                )));
            }
            Ok(file) if !file.anchor().is_for(key) && !replace_others && !names.is_empty() => {
                return Err(Error::integrity(format!(
                    "the hints in {} are for another version of the table than this server shows; nothing was asked, and they were kept. If you believe this server, accept its table (--accept-new-table): that erases them",
                    folder.path("").display()
                )));
            }
            Ok(file) if !file.anchor().is_for(key) => (None, notice_of_change(&names)),
            Ok(file) => (Some(file), None),
        };
        let anchor = match anchor {
            Some(anchor) => anchor,
            None => {
                erase_all(&*folder, &names)?;
                let first = Anchor::new(key, fresh_lineage()?, place);
                let anchor = AnchorFile::begin(Arc::clone(&medium), &path, first)?;
                let synced = folder.sync();
                synced.map_err(|error| files::failed(&path, "sync", error))?;
                anchor
            }
        };
        let hints = Box::new(Self::at(folder, anchor, medium)?);
        Ok(Opening::Have { hints, notice })
    }

    /// Opens what `anchor` names, and erases what it does not.
    fn at(
        folder: Arc<dyn Folder>,
        mut anchor: AnchorFile,
        medium: Arc<dyn Medium>,
    ) -> Result<Self> {
        let Anchor { generation, lineage, .. } = *anchor.anchor();
        let journal = match generation {
            0 => None,
            number => {
                let name = journal_name(number);
                let path = folder.path(&name);
                let medium = folder.open(&name);
                let medium = medium.map_err(|error| files::failed(&path, "open", error))?;
                Some(open_journal(medium, &path, anchor.anchor()).map_err(advised)?)
            }
        };
        if let Some(journal) = &journal {
            let summary = journal.summary();
            let counted = anchor.anchor().clone();
            // The anchor did not come to count the last commit.
            if summary.commits != counted.commits {
                let (commits, summary) = (summary.commits, summary.digest());
                anchor.write(Anchor { commits, summary, ..counted })?;
            }
        }
        let (current, next) = (generation, generation + 1);
        let kept = [generation_name(current), journal_name(current), generation_name(next)];
        let mut superfluous = our_names(&*folder)?;
        superfluous.retain(|name| !kept.contains(name) && !CHECKPOINTS.contains(&name.as_str()));
        erase_all(&*folder, &superfluous)?;
        let workshop = Arc::new(Workshop::open(folder, lineage, next, medium)?);
        Ok(Self { workshop, anchor, journal, settled: Vec::new(), poisoned: false })
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

    /// Commits what was settled, and a reservation or why there are none any more, to journal and anchor.
    fn commit(
        &mut self,
        reserved: Option<(ReservationId, &[u8], &[u8])>,
        ended: Option<&str>,
    ) -> Result<()> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        journal.commit(&self.settled, reserved, ended)?;
        self.settled.clear();
        let summary = journal.summary();
        let (commits, summary) = (summary.commits, summary.digest());
        self.anchor.write(Anchor { commits, summary, ..self.anchor.anchor().clone() })
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
        let journal =
            Journal::create(medium, &path, workshop.lineage, number, header.len, header.digest)?;
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
        let Some(journal) = &self.journal else {
            return Ok(SavedHints { next, ..SavedHints::default() });
        };
        let summary = journal.summary();
        let (number, expected) =
            (summary.generation, (summary.generation_len, summary.generation_digest));
        let read = self.workshop.read_generation(number).map_err(advised)?;
        let path = self.workshop.folder.path(&generation_name(number));
        let damaged = |what: &str| advised(files::blame(&path, Error::corrupted(what)));
        let (header, generation) = read.ok_or_else(|| damaged("it is missing"))?;
        if (header.len, header.digest) != expected {
            return Err(damaged("it is not the file that the journal belongs to"));
        }
        let contents = journal.load().map_err(advised)?;
        Ok(SavedHints {
            generation: Some(generation),
            changes: contents.changes,
            unfinished: contents.unfinished,
            next,
        })
    }

    fn reserve(&mut self, id: ReservationId, record: &[u8]) -> Result<Receipt> {
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
        let (change, _) = Sendable::from_journal(record).map_err(|error| {
            Error::api_misuse("what was reserved does not parse").caused_by(error)
        })?;
        self.writing(|hints| Receipt::append(&mut Entry { hints, id, change: &change }, record))
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

    fn end(&mut self, id: ReservationId, change: &[u8], why: &str) -> Result<()> {
        self.settle(id, change)?;
        self.writing(|hints| hints.commit(None, Some(why)))
    }

    fn flush(&mut self) -> Result<()> {
        self.check_poison()?;
        if self.settled.is_empty() {
            return Ok(());
        }
        self.writing(|hints| hints.commit(None, None))
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
    change: &'a [u8],
}

impl reservation::Journal for Entry<'_> {
    fn append_and_sync(&mut self, record: &[u8]) -> Result<()> {
        self.hints.commit(Some((self.id, self.change, record)), None)
    }
}
