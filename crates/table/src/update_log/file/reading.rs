//! Reading a log: up to its last commit record, epoch by epoch, each checked to follow.

use super::epochs::Stored;
use super::header::{COMMIT_OFFSETS, Commit, Header};
use super::{Access, UpdateLog, cannot_read, damaged};
use crate::snapshot::Mark;
use crate::update_log::chain::{Link, check_next};
use crate::update_log::recorded::Recorded;
use crate::update_log::{EpochHash, Succession};
use privet_core::{Epoch, Error, Result, TableIdentity};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, PoisonError};

impl UpdateLog {
    /// Checks that the log has the epoch of the mark in the table file `table`.
    pub(super) fn check_reaches(&self, mark: Mark, table: &Path) -> Result<()> {
        let last = self.last_epoch();
        if last < mark.epoch.0 {
            return Err(Error::unavailable(format!(
                "it ends with epoch {last}, and {} has had epoch {}: it is an older copy than the \
                 table. If both are being copied just now, wait; if not, copy the log again, or \
                 bring back the newer one",
                table.display(),
                mark.epoch.0
            )));
        }
        // The log begins at or before the snapshot, and a mark is not before its snapshot.
        let hash = match mark.epoch.0.checked_sub(self.header.base.0) {
            None => return Ok(()),
            Some(0) => self.header.previous,
            Some(number) => {
                match usize::try_from(number - 1).ok().and_then(|at| self.epochs.get(at)) {
                    Some(stored) => Recorded::decode(&self.read(stored.place.clone())?)?.hash(),
                    None => self.last_hash(),
                }
            }
        };
        if hash != mark.hash {
            return Err(Error::integrity(format!(
                "its epoch {} is another than {} has had: the two files are of different \
                 histories, so bring back the log that belongs to the table",
                mark.epoch.0,
                table.display()
            )));
        }
        Ok(())
    }

    /// Reads from `self.end` to the committed end.
    pub(super) fn read_on(&mut self, access: Access) -> Result<()> {
        let commit = self.last_commit()?;
        let adopted = self.commit_damaged && commit.epoch.checked_add(1) == Some(self.last_epoch());
        if !adopted {
            while self.end < commit.end {
                let place = self.next_place(commit.end)?;
                self.follow_at(place)?;
            }
            let read_to =
                Commit { epoch: self.last_epoch(), end: self.end, last: self.last_hash() };
            if read_to != commit {
                return Err(damaged("its epochs are not those that it has committed"));
            }
            if self.commit_damaged {
                self.adopt_uncommitted(access)?;
            }
        }
        if self.snapshot_reached() {
            return Ok(());
        }
        Err(damaged("it ends before the epoch that its snapshot has"))
    }

    /// The newer valid commit record, which counts. Notes whether the other one is damaged.
    fn last_commit(&mut self) -> Result<Commit> {
        let mut commits = Vec::new();
        for offset in COMMIT_OFFSETS {
            let end = offset + Commit::LEN as u64;
            let bytes = if end <= self.file_len()? { self.read(offset..end)? } else { Vec::new() };
            commits.extend(Commit::parse(&self.header, &bytes));
        }
        self.commit_damaged = commits.len() < COMMIT_OFFSETS.len();
        let last = commits.into_iter().max_by_key(|commit| commit.epoch);
        last.ok_or_else(|| damaged("both of its commit records are unreadable"))
    }

    /// Takes in the epoch after the committed end, if there is one: the unreadable commit record
    /// may have been that epoch's, and then the epoch is whole.
    fn adopt_uncommitted(&mut self, access: Access) -> Result<()> {
        let file_len = self.file_len()?;
        if file_len == self.end {
            return Ok(());
        }
        let followed = self.next_place(file_len).and_then(|place| self.follow_at(place));
        // A reader must accept this: a writer may just be writing it.
        if followed.is_ok() || access == Access::Shared {
            return Ok(());
        }
        Err(damaged(
            "a commit record is unreadable, and the epoch that it may belong to is not whole",
        ))
    }

    /// The position of the next epoch, before `end`.
    fn next_place(&self, end: u64) -> Result<Range<u64>> {
        let start = self.end + 8;
        let cut = || damaged("an epoch ends beyond the end");
        if start > end {
            return Err(cut());
        }
        let mut len = [0; 8];
        len.copy_from_slice(&self.read(self.end..start)?);
        let place_end = start.checked_add(u64::from_le_bytes(len)).filter(|place| *place <= end);
        Ok(start..place_end.ok_or_else(cut)?)
    }

    /// Reads the epoch at `place` and follows it, or skips it if the snapshot has it already.
    fn follow_at(&mut self, place: Range<u64>) -> Result<()> {
        let bytes = self.read(place.clone())?;
        let as_damage = |error: Error| damaged(error.message()).caused_by(error);
        if self.ended.is_some() {
            return Err(damaged("something follows the table's succession"));
        }
        let stored = Stored::new(place, &bytes);
        let recorded = Recorded::decode(&bytes).map_err(as_damage)?;
        match recorded {
            _ if !self.snapshot_reached() => self.pass_over(&recorded).map_err(as_damage)?,
            Recorded::Succession(record) if !record.is_rotation() => {
                self.end_with(record, stored.place.end).map_err(as_damage)?;
                return Ok(());
            }
            _ => {
                let update = self.chain.follow_decoded(&recorded).map_err(as_damage)?;
                Arc::make_mut(&mut self.written)
                    .extend(update.changes.records().map(|(index, _, new)| (index, new.to_vec())));
                if let Some(layout) = update.layout {
                    self.layout = layout;
                }
                if let Recorded::Succession(rotation) = recorded {
                    self.lineage.push(rotation).map_err(as_damage)?;
                }
            }
        }
        self.appended(stored);
        Ok(())
    }

    /// Takes the succession that ends the log, at `end`.
    pub(in crate::update_log) fn end_with(&mut self, record: Succession, end: u64) -> Result<()> {
        check_next(self.current().epoch, record.number())?;
        record.follow(&self.chain)?;
        (self.ended, self.end) = (Some(record), end);
        Ok(())
    }

    /// The number of the last epoch that was read, or of the succession; or the base.
    pub(in crate::update_log) fn last_epoch(&self) -> u64 {
        // At most the number of the last epoch, and 1.
        self.header.base.0 + self.epochs.len() as u64 + u64::from(self.ended.is_some())
    }

    /// The hash of the last epoch or of the succession; for a log without any, of the epoch that
    /// made its base.
    pub(in crate::update_log) fn last_hash(&self) -> EpochHash {
        let ended = self.ended.as_ref().map(Succession::hash);
        // The chain of a log knows it: without epochs, from the header.
        ended.or(self.chain.previous()).unwrap_or(EpochHash::NONE)
    }

    /// Whether all epochs that the snapshot has were read.
    fn snapshot_reached(&self) -> bool {
        self.last_epoch() >= self.snapshot.epoch.0
    }

    /// Checks an epoch that the snapshot already has.
    fn pass_over(&mut self, recorded: &Recorded<'_>) -> Result<()> {
        let Header { id, digest, .. } = self.header;
        let digest = self.epochs.is_empty().then_some(digest);
        let (keys, previous) = (self.chain.keys(), self.chain.previous());
        let epoch = Epoch(self.last_epoch());
        let (after, keys) = match recorded {
            Recorded::Epoch(entry) => {
                Link { id, epoch, publisher: keys.publisher, previous, digest }.check(entry)?;
                ((entry.after, entry.digest_after(self.chain.layout_digest())), keys)
            }
            Recorded::Succession(record) => {
                let keys = record.follow_unknown((id, epoch), keys, previous)?;
                let TableIdentity { shape, digest, .. } = record.new_table();
                if !record.is_rotation() {
                    return Err(damaged("its snapshot is later than the table's succession"));
                }
                self.lineage.push(record.clone())?;
                ((shape, digest), keys)
            }
        };
        let leads_here = after == (self.snapshot.shape, self.snapshot.digest);
        if recorded.number() == self.snapshot.epoch && !leads_here {
            return Err(Error::integrity("its epochs do not lead to the snapshot"));
        }
        self.chain.set_passed(recorded.hash(), keys);
        Ok(())
    }

    pub(in crate::update_log) fn file_len(&self) -> Result<u64> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(file.metadata().map_err(|error| cannot_read(&self.path, error))?.len())
    }

    /// The bytes in `range`. Allocates only after checking that they are there.
    pub(super) fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |error| cannot_read(&self.path, error);
        if range.end > file.metadata().map_err(failed)?.len() {
            return Err(damaged("it ends too early"));
        }
        file.seek(SeekFrom::Start(range.start)).map_err(failed)?;
        let mut bytes = vec![0; (range.end - range.start) as usize];
        file.read_exact(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    /// Notes an epoch that is in the file and committed.
    pub(in crate::update_log) fn appended(&mut self, stored: Stored) {
        self.end = stored.place.end;
        self.epochs.push(stored);
    }
}
