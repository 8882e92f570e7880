//! The epochs of a log as they are sent on, or kept by a compaction.

use super::header::Header;
use super::{LENGTH_LEN, UpdateLog, damaged};
use crate::update_log::recorded::Recorded;
use crate::update_log::{EpochSource, Lineage};
use privet_core::{Epoch, Error, Result};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The encoding of an epoch in the file: its position, and its digest when it was checked.
#[derive(Clone)]
pub(in crate::update_log) struct Stored {
    pub(super) place: Range<u64>,
    digest: [u8; 32],
}

impl Stored {
    /// An epoch whose checked bytes `bytes` lie at `place`.
    pub(in crate::update_log) fn new(place: Range<u64>, bytes: &[u8]) -> Self {
        Self { place, digest: *blake3::hash(bytes).as_bytes() }
    }

    /// Where it ends in the file.
    pub(in crate::update_log) fn end(&self) -> u64 {
        self.place.end
    }
}

impl UpdateLog {
    /// The epochs after `epoch`, in order, encoded: what a client at `epoch` needs. Empty if that
    /// is the last.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the log begins later (its older
    /// epochs are only in the snapshot), or ends earlier. For each epoch:
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be read,
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it has changed.
    pub fn epochs_from(
        &self,
        epoch: Epoch,
    ) -> Result<impl ExactSizeIterator<Item = Result<Vec<u8>>> + '_> {
        Ok(self.places_from(epoch)?.iter().map(|Stored { place, digest }| {
            let bytes = self.read(place.clone())?;
            // A client would refuse a damaged epoch too, and blame its server.
            match blake3::hash(&bytes) == *digest {
                true => Ok(bytes),
                false => Err(damaged("an epoch has changed since it was read first")
                    .within(self.path.display())),
            }
        }))
    }

    /// The same epochs, to be sent piece by piece: their bytes are not checked again. They can be
    /// read even after the file was replaced.
    ///
    /// # Errors
    /// As [`epochs_from`](Self::epochs_from) of all of them.
    pub fn stored_from(
        &self,
        epoch: Epoch,
    ) -> Result<impl ExactSizeIterator<Item = Arc<dyn EpochSource>> + '_> {
        let stored = |stored: &Stored| -> Arc<dyn EpochSource> {
            let (path, file) = (Arc::clone(&self.path), Arc::clone(&self.file));
            Arc::new(StoredEpoch { path, file, stored: stored.clone() })
        };
        Ok(self.places_from(epoch)?.iter().map(stored))
    }

    /// The positions of the epochs after `epoch`.
    fn places_from(&self, epoch: Epoch) -> Result<&[Stored]> {
        let (base, last) = (self.base().0, self.current().epoch.0);
        let Some(known) = epoch.0.checked_sub(base) else {
            return Err(Error::api_misuse(format!(
                "the epochs that follow epoch {} are no longer kept (the log begins after epoch {base}): start again with the table as it is now",
                epoch.0
            )));
        };
        let Some(places) = usize::try_from(known).ok().and_then(|known| self.epochs.get(known..))
        else {
            return Err(Error::api_misuse(format!(
                "there is no epoch {} yet: the table is at epoch {last}",
                epoch.0
            )));
        };
        Ok(places)
    }

    /// The last epochs, encoded, as many as fit into `limit` bytes; and the header and lineage of a
    /// log that begins with them.
    pub(in crate::update_log) fn latest(
        &self,
        limit: u64,
    ) -> Result<(Header, Lineage, Vec<Vec<u8>>)> {
        let first_records = self.header.first_records;
        let mut header =
            Header { first_records, ..Header::new(self.current(), self.keys(), self.last_hash()) };
        let mut epochs = Vec::new();
        for Stored { place, .. } in self.epochs.iter().rev() {
            if self.end - (place.start - LENGTH_LEN) > limit {
                break;
            }
            let bytes = self.read(place.clone())?;
            let recorded = Recorded::decode(&bytes)?;
            header.base = Epoch(recorded.number().0 - 1);
            (header.digest, header.previous) = (recorded.digest_before(), recorded.previous());
            epochs.push(bytes);
        }
        epochs.reverse();
        let lineage = self.lineage.until(header.id, header.base);
        header.keys = self.keys_at(header.base);
        Ok((header.after(&lineage.encode()), lineage, epochs))
    }
}

/// An epoch of a log, in the log's file.
struct StoredEpoch {
    path: Arc<Path>,
    file: Arc<Mutex<File>>,
    stored: Stored,
}

impl EpochSource for StoredEpoch {
    fn len(&self) -> u64 {
        self.stored.place.end - self.stored.place.start
    }

    fn digest(&self) -> [u8; 32] {
        self.stored.digest
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        if offset.checked_add(len as u64).is_none_or(|end| end > self.len()) {
            return Err(Error::api_misuse(format!("the epoch has {} bytes", self.len())));
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = vec![0; len];
        let read = file
            .seek(SeekFrom::Start(self.stored.place.start + offset))
            .and_then(|_| file.read_exact(&mut bytes));
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged("an epoch that was read before is cut off"),
            _ => Error::unavailable("an epoch of the update log can no longer be read")
                .caused_by(error),
        })?;
        Ok(bytes)
    }
}
