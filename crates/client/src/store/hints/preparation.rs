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
use super::{generation_name, lock, missing};
use crate::disk::Folder;
use crate::state::{NextGeneration, PreparationStore};
use crate::store::files::{self, StoredFile};
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
    _lock: StoredFile,
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
        header.is(kind, lineage, self.number) && header.label.version == self.version
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
        anchor: StoredFile,
    ) -> Result<Self> {
        let next = Next { number, version, ready: false, lent: false, newest: None };
        let hints_folder = Self { folder, lineage, next: Mutex::new(next), _lock: anchor };
        let mut next = hints_folder.lock();
        next.ready = match hints_folder.read_generation(number) {
            Ok(Some((header, _))) => header.label.version == version,
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
            slots.push((header.map(|header| header.label.order), name));
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
        let opened = files::open(&*self.folder, &generation_name(number))?;
        let Some(file) = opened else { return Ok(None) };
        let (header, contents) = sealed::read(&file)?;
        if !header.is(Kind::Generation, &self.lineage, number) {
            return Err(file.damaged("it belongs to other hints"));
        }
        Ok(Some((header, contents)))
    }

    /// Makes the file of generation `number` durable, whichever process wrote it.
    pub(crate) fn sync_generation(&self, number: u64) -> Result<()> {
        match files::open(&*self.folder, &generation_name(number))? {
            Some(file) => file.sync(),
            None => Err(missing(&*self.folder, &generation_name(number))),
        }
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
            newest = newest.max(header.map(|header| (header.label.order, header.label.offset)));
        }
        Ok(newest.map_or(NextGeneration::None, |(_, offset)| NextGeneration::Partial { offset }))
    }

    /// The header of a checkpoint of the generation `next`, unless it is damaged or of another.
    fn checkpoint_header(&self, slot: usize, next: &Next) -> Result<Option<sealed::Header>> {
        let opened = files::open(&*self.folder, CHECKPOINTS[slot])?;
        match opened.map(|file| sealed::read_header(&file)).transpose() {
            Err(error) if error.blame() == Blame::Corrupted => Ok(None),
            other => {
                let is_in = |header: &_| next.is_in(Kind::Checkpoint, &self.lineage, header);
                Ok(other?.filter(is_in))
            }
        }
    }

    /// The last whole checkpoint of the generation `next`.
    fn newest_checkpoint(&self, next: &Next) -> Result<Option<Checkpoint>> {
        let mut newest: Option<Checkpoint> = None;
        for (slot, name) in CHECKPOINTS.iter().enumerate() {
            let Some(file) = files::open(&*self.folder, name)? else { continue };
            let (header, contents) = match sealed::read(&file) {
                Err(error) if error.blame() == Blame::Corrupted => continue,
                other => other?,
            };
            let order = header.label.order;
            let later = newest.as_ref().is_none_or(|(_, other, _)| order > other.label.order);
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
        next.newest = Some(found.as_ref().map(|(slot, header, _)| (*slot, header.label.order)));
        Ok(found.map(|(_, header, contents)| (header.label.offset, contents)))
    }

    fn save_checkpoint(&mut self, offset: u64, checkpoint: &[u8]) -> Result<()> {
        let mut next = self.0.lock();
        check_unfinished(&next)?;
        let newest = match next.newest {
            Some(newest) => newest,
            None => {
                let found = self.0.newest_checkpoint(&next)?;
                found.map(|(slot, header, _)| (slot, header.label.order))
            }
        };
        next.newest = Some(newest);
        let (slot, order) = newest.map_or((0, 1), |(slot, order)| (1 - slot, order + 1));
        let file = files::open_or_create(&*self.0.folder, CHECKPOINTS[slot])?;
        let (lineage, number, version) = (self.0.lineage, next.number, next.version);
        let label = Label { kind: Kind::Checkpoint, lineage, number, order, offset, version };
        sealed::write(&file, label, checkpoint)?;
        files::sync_names(&*self.0.folder)?;
        next.newest = Some(Some((slot, order)));
        Ok(())
    }

    fn save_generation(&mut self, generation: &[u8]) -> Result<()> {
        let mut next = self.0.lock();
        check_unfinished(&next)?;
        let folder = &*self.0.folder;
        sealed::erase(folder, UNDER_WAY)?;
        let file = files::open_or_create(folder, UNDER_WAY)?;
        let (lineage, number, version) = (self.0.lineage, next.number, next.version);
        let label = Label { kind: Kind::Generation, lineage, number, order: 0, offset: 0, version };
        sealed::write(&file, label, generation)?;
        let name = generation_name(number);
        let renamed = folder.rename(UNDER_WAY, &name);
        renamed.map_err(|error| files::failed(&folder.path(&name), "write", error))?;
        // From here on the generation counts, even if the next steps fail.
        next.ready = true;
        files::sync_names(folder)?;
        next.newest = Some(None);
        self.0.erase_checkpoints()
    }

    fn discard(&mut self) -> Result<()> {
        let mut next = self.0.lock();
        self.0.discard(&mut next)
    }
}
