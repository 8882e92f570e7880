//! The mark of a table that has a log of updates: how far the log reached when the table's owner
//! last wrote to it.
//!
//! Without it a table file would look whole when its log is lost or is an old one, and a server
//! would take the table back to an earlier version.
//!
//! # Layout
//!
//! The mark is the only part of a snapshot file that changes. It stands outside everything that the
//! table's digest is made of, in two pages before the records. Each page has one *slot* at its
//! start, and zeros:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | epoch: the log reaches at least so far |
//! | 8 | 32 | hash of that epoch, zeros for a table that has had none |
//! | 40 | 32 | BLAKE3 digest of the file's header checksum and the bytes before it |
//!
//! The later valid slot counts. A new mark goes over the other one, and only after its epoch is in
//! the log and synced. So a crash leaves the mark before, and a log that reaches further: that is
//! no fault, and the next update makes up for it.
//!
//! # Readers of the file
//!
//! A reader notices by the time of modification that a file was written to, and then uses none of
//! its records. A mark changes no record, so its writer puts the time back. Between the two it
//! holds a lock on the file, for which a reader [waits](wait_for_writer) before it believes that
//! the file has changed. If the writer is killed between the two, servers take the file for a
//! changed one, and have to be started again.

use super::{PAGE, Snapshot};
use crate::new_file::cannot;
use crate::update_log::EpochHash;
use privet_core::codec::Reader;
use privet_core::{Epoch, Error, Result, TableIdentity};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// The two pages before the records.
pub(super) const BYTES: u64 = 2 * PAGE;

const SLOT_LEN: usize = 72;

/// How far the log of a table reached when its owner last wrote to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The last epoch, or the table's first version if there was none.
    pub epoch: Epoch,
    /// Its hash.
    pub hash: EpochHash,
}

/// Where the slots begin in a file whose records begin at `records`.
pub(super) fn offsets(records: u64) -> [u64; 2] {
    [records - BYTES, records - PAGE]
}

impl Mark {
    /// The mark of a table whose log has no epoch yet.
    pub fn before_the_first(epoch: Epoch) -> Self {
        Self { epoch, hash: EpochHash::NONE }
    }

    /// The slot, in a file whose header has this checksum.
    pub(super) fn encode(&self, header: &[u8; 32]) -> [u8; SLOT_LEN] {
        let mut out = [0; SLOT_LEN];
        let (fields, checksum) = out.split_at_mut(SLOT_LEN - 32);
        fields[..8].copy_from_slice(&self.epoch.0.to_le_bytes());
        fields[8..].copy_from_slice(&self.hash.0);
        checksum.copy_from_slice(
            blake3::Hasher::new().update(header).update(fields).finalize().as_bytes(),
        );
        out
    }

    /// `None` if this is no slot of the file.
    fn parse(slot: &[u8], header: &[u8; 32]) -> Option<Self> {
        let mut reader = Reader::new("a mark", slot);
        let epoch = Epoch(reader.u64().ok()?);
        let mark = Self { epoch, hash: EpochHash(reader.array().ok()?) };
        (mark.encode(header) == slot).then_some(mark)
    }
}

/// What the two pages say.
pub(super) struct Slots([Option<Mark>; 2]);

impl Slots {
    /// Reads the two `pages`. `None` if there is anything but slots in them, or no valid slot.
    pub(super) fn read(pages: &[u8], header: &[u8; 32]) -> Option<Self> {
        let mut slots = [None; 2];
        for (found, page) in slots.iter_mut().zip(pages.chunks(PAGE as usize)) {
            let (slot, rest) = page.split_at_checked(SLOT_LEN)?;
            if rest.iter().any(|&byte| byte != 0) {
                return None;
            }
            *found = Mark::parse(slot, header);
        }
        slots.iter().any(Option::is_some).then_some(Self(slots))
    }

    /// The mark that counts, and which slot the next one goes to.
    pub(super) fn latest(&self) -> Option<(Mark, usize)> {
        match self.0 {
            [Some(first), Some(second)] if second.epoch > first.epoch => Some((second, 0)),
            [Some(first), _] => Some((first, 1)),
            [None, Some(second)] => Some((second, 0)),
            [None, None] => None,
        }
    }
}

/// Checks, before an epoch is signed, that the mark in the file at `path` can be raised afterwards.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if this user cannot write to it, or not
/// put its time back: only its owner can.
pub(crate) fn check_can_be_raised(path: &Path) -> Result<()> {
    let (_, file) = open(path)?;
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    modified.and_then(|time| file.set_modified(time)).map_err(|error| {
        Error::unavailable(format!(
            "{} has to note each update, and its owner alone can do that: sign as the user who \
             owns the file",
            path.display()
        ))
        .caused_by(error)
    })
}

/// Raises the mark in the file at `path`, which must have the table `identity`. A mark that reaches
/// as far already stays.
///
/// # Errors
/// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be written, or another
///   table file took the place of this one;
/// - as [`Snapshot::open`].
pub(crate) fn raise(path: &Path, identity: TableIdentity, mark: Mark) -> Result<()> {
    let (snapshot, mut file) = open(path)?;
    let offsets = offsets(snapshot.parsed.records.start as u64);
    let latest = snapshot.slots.as_ref().and_then(Slots::latest);
    let Some((present, slot)) = latest.filter(|_| snapshot.identity() == identity) else {
        let replaced = "another file took its place while it was updated";
        return Err(Error::unavailable(replaced).within(path.display()));
    };
    if present.epoch >= mark.epoch {
        return Ok(());
    }
    let mut write = || {
        let locked = hold(|| file.try_lock());
        let modified = file.metadata()?.modified()?;
        file.seek(SeekFrom::Start(offsets[slot]))?;
        let written = file.write_all(&mark.encode(&snapshot.parsed.checksum));
        // Also after a failure: no record has changed.
        file.set_modified(modified)?;
        written?;
        // The bytes need not be on the disk for that: readers see them already.
        if locked {
            file.unlock()?;
        }
        file.sync_all()
    };
    write().map_err(|error| cannot("write to", path, error))
}

/// The file at `path`, twice: read, and for writing.
fn open(path: &Path) -> Result<(Snapshot, File)> {
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file = file.map_err(|error| cannot("write to", path, error))?;
    Ok((Snapshot::open(path)?, file))
}

/// Returns when nobody is writing a mark to `file`.
pub(super) fn wait_for_writer(file: &File) {
    if hold(|| file.try_lock_shared()) {
        let _ = file.unlock();
    }
}

/// Takes a lock, or goes on without it: after a second, because anybody who may read the file can
/// hold a lock on it for ever; and at once where the system has no locks.
fn hold(lock: impl Fn() -> std::result::Result<(), TryLockError>) -> bool {
    const TRIES: u32 = 100;
    for _ in 0..TRIES {
        match lock() {
            Ok(()) => return true,
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_secs(1) / TRIES),
            Err(TryLockError::Error(_)) => return false,
        }
    }
    false
}
