//! The next generation while it is prepared: two files that take checkpoints in turn, and then the
//! generation itself.
//!
//! A new checkpoint overwrites the older of the two in place. So the newer one is there until this
//! one is synced, and no checkpoint is ever left behind on the disk.
//!
//! Every file names the version of the table that it is for. When the hints follow the table's
//! edits, the files for the earlier version do not. They count as missing from then on, and are
//! erased.

use super::anchor::Lineage;
use super::sealed::{self, Kind, Label};
use super::version::Version;
use super::{generation_name, lock};
use crate::disk::{Folder, Medium};
use crate::state::{NextGeneration, PreparationStore};
use crate::store::files;
use privet_core::{Blame, Error, Result};
use std::sync::{Arc, Mutex, MutexGuard};
use zeroize::Zeroizing;

pub(crate) const CHECKPOINTS: [&str; 2] = ["preparing-0.hints", "preparing-1.hints"];
pub(crate) const UNDER_WAY: &str = "prepared.new";

/// A checkpoint: the number of its file, its header, its contents.
type Checkpoint = (usize, sealed::Header, Zeroizing<Vec<u8>>);

/// What the hints in use and their next generation share. While one of the two lives, the anchor is
/// locked.
#[derive(Debug)]
pub(crate) struct HintsFolder {
    pub(crate) folder: Arc<dyn Folder>,
    pub(crate) lineage: Lineage,
    next: Mutex<Next>,
    _lock: Arc<dyn Medium>,
}

/// The next generation.
#[derive(Debug)]
pub(crate) struct Next {
    /// Its number.
    pub(crate) number: u64,
    /// The version of the table that it is prepared for: where the hints stand.
    version: Version,
    /// Whether it is complete, in the file of its number.
    pub(crate) ready: bool,
    /// Whether a preparation holds it.
    pub(crate) lent: bool,
    /// The last checkpoint, once it was looked for: its file, and its order.
    newest: Option<Option<(usize, u64)>>,
}

impl Next {
    /// The generation has become the current one.
    pub(crate) fn advance(&mut self) {
        (self.number, self.ready, self.newest) = (self.number + 1, false, None);
    }

    fn is_in(&self, kind: Kind, lineage: &Lineage, header: &sealed::Header) -> bool {
        header.is(kind, lineage, self.number) && header.version == self.version
    }
}

impl HintsFolder {
    /// Looks for files of generation `number`, prepared for `version` of the table. Erases damaged
    /// files, files for another version, and checkpoints beside a complete generation.
    pub(crate) fn open(
        folder: Arc<dyn Folder>,
        lineage: Lineage,
        number: u64,
        version: Version,
        anchor: Arc<dyn Medium>,
    ) -> Result<Self> {
        let next = Next { number, version, ready: false, lent: false, newest: None };
        let hints_folder = Self { folder, lineage, next: Mutex::new(next), _lock: anchor };
        let mut next = hints_folder.lock();
        next.ready = match hints_folder.read_generation(number) {
            Ok(Some((header, _))) => header.version == version,
            Err(error) if error.blame() != Blame::Corrupted => return Err(error),
            _ => false,
        };
        if !next.ready {
            sealed::erase(&*hints_folder.folder, &generation_name(number))?;
        }
        for (slot, name) in CHECKPOINTS.into_iter().enumerate() {
            if next.ready || hints_folder.checkpoint_header(slot, &next)?.is_none() {
                sealed::erase(&*hints_folder.folder, name)?;
            }
        }
        drop(next);
        Ok(hints_folder)
    }

    /// Goes on for `version` of the table: files for another version are erased.
    ///
    /// # Errors
    /// [`Blame::Unavailable`] if they cannot be erased.
    pub(crate) fn follow(&self, next: &mut Next, version: Version) -> Result<()> {
        next.version = version;
        self.discard(next)
    }

    fn discard(&self, next: &mut Next) -> Result<()> {
        next.newest = None;
        if std::mem::take(&mut next.ready) {
            sealed::erase(&*self.folder, &generation_name(next.number))?;
        }
        // Erase the newest last, so that a crash in between does not bring back an older one.
        let mut slots = Vec::new();
        for (slot, name) in CHECKPOINTS.into_iter().enumerate() {
            let header = self.checkpoint_header(slot, next)?;
            slots.push((header.map(|header| header.order), name));
        }
        slots.sort_unstable();
        slots.into_iter().try_for_each(|(_, name)| sealed::erase(&*self.folder, name))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Next> {
        lock(&self.next)
    }

    /// The generation `number`; `None` if there is no such file.
    pub(crate) fn read_generation(
        &self,
        number: u64,
    ) -> Result<Option<(sealed::Header, Zeroizing<Vec<u8>>)>> {
        let name = generation_name(number);
        let path = self.folder.path(&name);
        let opened = self.folder.open(&name);
        let Some(medium) = opened.map_err(|error| files::failed(&path, "open", error))? else {
            return Ok(None);
        };
        let (header, contents) = sealed::read(&*medium, &path)?;
        if !header.is(Kind::Generation, &self.lineage, number) {
            return Err(files::blame(&path, Error::corrupted("it belongs to other hints")));
        }
        Ok(Some((header, contents)))
    }

    /// Makes the file of generation `number` durable, whichever process wrote it.
    pub(crate) fn sync_generation(&self, number: u64) -> Result<()> {
        let name = generation_name(number);
        let path = self.folder.path(&name);
        let synced = || match self.folder.open(&name)? {
            Some(medium) => medium.sync(),
            None => Err(std::io::ErrorKind::NotFound.into()),
        };
        synced().map_err(|error| files::failed(&path, "sync", error))
    }

    pub(crate) fn sync_names(&self) -> Result<()> {
        self.folder.sync().map_err(|error| files::failed(&self.folder.path(""), "sync", error))
    }

    fn erase_checkpoints(&self) -> Result<()> {
        let erased = CHECKPOINTS.map(|name| sealed::erase(&*self.folder, name));
        erased.into_iter().collect()
    }

    /// How far the next generation has come, according to the headers.
    pub(crate) fn progress(&self) -> Result<NextGeneration> {
        let next = self.lock();
        if next.ready {
            return Ok(NextGeneration::Ready);
        }
        let mut newest = None;
        for slot in 0..CHECKPOINTS.len() {
            let header = self.checkpoint_header(slot, &next)?;
            newest = newest.max(header.map(|header| (header.order, header.offset)));
        }
        Ok(newest.map_or(NextGeneration::None, |(_, offset)| NextGeneration::Partial { offset }))
    }

    fn open_checkpoint(&self, slot: usize) -> Result<Option<Arc<dyn Medium>>> {
        let opened = self.folder.open(CHECKPOINTS[slot]);
        opened.map_err(|error| files::failed(&self.folder.path(CHECKPOINTS[slot]), "open", error))
    }

    /// The header of a checkpoint of the generation `next`, unless it is damaged or of another.
    fn checkpoint_header(&self, slot: usize, next: &Next) -> Result<Option<sealed::Header>> {
        let Some(medium) = self.open_checkpoint(slot)? else { return Ok(None) };
        match sealed::read_header(&*medium, &self.folder.path(CHECKPOINTS[slot])) {
            Err(error) if error.blame() == Blame::Corrupted => Ok(None),
            other => {
                let is_in = |header: &_| next.is_in(Kind::Checkpoint, &self.lineage, header);
                Ok(Some(other?).filter(is_in))
            }
        }
    }

    /// The last whole checkpoint of the generation `next`.
    fn newest_checkpoint(&self, next: &Next) -> Result<Option<Checkpoint>> {
        let mut newest: Option<Checkpoint> = None;
        for (slot, name) in CHECKPOINTS.iter().enumerate() {
            let Some(medium) = self.open_checkpoint(slot)? else { continue };
            let (header, contents) = match sealed::read(&*medium, &self.folder.path(name)) {
                Err(error) if error.blame() == Blame::Corrupted => continue,
                other => other?,
            };
            let later = newest.as_ref().is_none_or(|(_, other, _)| header.order > other.order);
            if later && next.is_in(Kind::Checkpoint, &self.lineage, &header) {
                newest = Some((slot, header, contents));
            }
        }
        Ok(newest)
    }
}

/// The files of the next generation.
pub(crate) struct NextGenerationFiles(Arc<HintsFolder>);

impl NextGenerationFiles {
    /// # Errors
    /// [`Blame::ApiMisuse`] if they are taken already.
    pub(crate) fn take(hints_folder: &Arc<HintsFolder>) -> Result<Self> {
        if std::mem::replace(&mut hints_folder.lock().lent, true) {
            return Err(Error::api_misuse(
                "the next generation of hints is being prepared already",
            ));
        }
        Ok(Self(Arc::clone(hints_folder)))
    }
}

impl Drop for NextGenerationFiles {
    fn drop(&mut self) {
        self.0.lock().lent = false;
    }
}

fn check_unfinished(next: &Next) -> Result<()> {
    match next.ready {
        false => Ok(()),
        true => Err(Error::api_misuse("the next generation of hints is complete already")),
    }
}

impl PreparationStore for NextGenerationFiles {
    fn checkpoint(&mut self) -> Result<Option<(u64, Zeroizing<Vec<u8>>)>> {
        let mut next = self.0.lock();
        let found = self.0.newest_checkpoint(&next)?;
        next.newest = Some(found.as_ref().map(|(slot, header, _)| (*slot, header.order)));
        Ok(found.map(|(_, header, contents)| (header.offset, contents)))
    }

    fn save_checkpoint(&mut self, offset: u64, checkpoint: &[u8]) -> Result<()> {
        let mut next = self.0.lock();
        check_unfinished(&next)?;
        let newest = match next.newest {
            Some(newest) => newest,
            None => {
                let found = self.0.newest_checkpoint(&next)?;
                found.map(|(slot, header, _)| (slot, header.order))
            }
        };
        next.newest = Some(newest);
        let (slot, order) = newest.map_or((0, 1), |(slot, order)| (1 - slot, order + 1));
        let path = self.0.folder.path(CHECKPOINTS[slot]);
        let created = self.0.folder.create(CHECKPOINTS[slot]);
        let medium = created.map_err(|error| files::failed(&path, "create", error))?;
        let (lineage, number, version) = (self.0.lineage, next.number, next.version);
        let label = Label { kind: Kind::Checkpoint, lineage, number, order, offset, version };
        sealed::write(&*medium, &path, label, checkpoint)?;
        self.0.sync_names()?;
        next.newest = Some(Some((slot, order)));
        Ok(())
    }

    fn save_generation(&mut self, generation: &[u8]) -> Result<()> {
        let mut next = self.0.lock();
        check_unfinished(&next)?;
        let folder = &self.0.folder;
        sealed::erase(&**folder, UNDER_WAY)?;
        let path = folder.path(UNDER_WAY);
        let created = folder.create(UNDER_WAY);
        let medium = created.map_err(|error| files::failed(&path, "create", error))?;
        let (lineage, number, version) = (self.0.lineage, next.number, next.version);
        let label = Label { kind: Kind::Generation, lineage, number, order: 0, offset: 0, version };
        sealed::write(&*medium, &path, label, generation)?;
        let name = generation_name(number);
        let renamed = folder.rename(UNDER_WAY, &name);
        renamed.map_err(|error| files::failed(&folder.path(&name), "write", error))?;
        // From here on the generation counts, even if the next steps fail.
        next.ready = true;
        self.0.sync_names()?;
        next.newest = Some(None);
        self.0.erase_checkpoints()
    }

    fn discard(&mut self) -> Result<()> {
        let mut next = self.0.lock();
        self.0.discard(&mut next)
    }
}
