//! The epochs of a table's update log that clients can fetch.
//!
//! A client that has one version of the table and the epochs that follow has the next versions too.
//! A part of updates is the epochs from one version to another, in a row, as
//! [`privet_wire::updates`] says. It is never assembled: each piece is read from the place of its
//! epochs when it is sent.
//!
//! Clients that verify also need an epoch's commitments. Those are computed here, from a server of
//! the earlier version. So for such schemes the epochs begin where this server began.

use super::part::Part;
use crate::EpochSource;
use crate::updates::{CheckedBytes, Signing};
use bytes::Bytes;
use privet_core::{Epoch, Error, Result};
use privet_wire::limits::MAX_EPOCH_LEN;
use privet_wire::updates::encoded_len;
use privet_wire::{PartDescription, UpdatesDescription};
use std::sync::Arc;

/// Bytes of the length field before each piece.
const LENGTH: usize = 4;

/// One epoch, ready to be sent.
#[derive(Clone)]
pub(crate) struct FedEpoch {
    pub(crate) epoch: Arc<dyn EpochSource>,
    /// Empty for schemes whose clients verify nothing.
    pub(crate) commitments: Arc<CheckedBytes>,
}

impl FedEpoch {
    fn is_short_enough(&self) -> bool {
        let limit = MAX_EPOCH_LEN as u64;
        self.epoch.len() <= limit && self.commitments.len() <= limit
    }

    fn encoded_len(&self) -> u64 {
        encoded_len(self.epoch.len() as usize, self.commitments.len() as usize) as u64
    }

    /// Appends bytes from `offset` on to `out`, until it has `len` of them or the epoch ends.
    fn read(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<()> {
        let epoch_len = self.epoch.len();
        let (before, between) =
            ((epoch_len as u32).to_le_bytes(), (self.commitments.len() as u32).to_le_bytes());
        let mut skipped = offset;
        // How many bytes of the next piece, which has that length, to skip.
        let mut begins = |piece_len: u64| {
            let begin = skipped.min(piece_len);
            skipped -= begin;
            begin
        };
        let begin = begins(LENGTH as u64) as usize;
        fill(out, len, &before[begin..]);
        fill_from(out, len, &*self.epoch, begins(epoch_len))?;
        let begin = begins(LENGTH as u64) as usize;
        fill(out, len, &between[begin..]);
        fill_from(out, len, &*self.commitments, begins(self.commitments.len()))
    }
}

/// How far an epoch, or its commitments, has been read again, to check that it is unchanged.
pub(crate) struct EpochReading {
    offset: u64,
    hasher: blake3::Hasher,
}

impl EpochReading {
    pub(crate) fn new() -> Self {
        Self { offset: 0, hasher: blake3::Hasher::new() }
    }

    /// Reads at most `len` more bytes. Returns how many: 0 when all were read and their digest is
    /// right.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted), with the file's name, if the bytes have
    /// changed; [`Blame::Unavailable`](privet_core::Blame::Unavailable) if they cannot be read.
    pub(crate) fn read_on(&mut self, epoch: &dyn EpochSource, len: usize) -> Result<u64> {
        let len = (epoch.len() - self.offset).min(len as u64);
        let named = |error: Error| match epoch.file() {
            Some(file) => error.within(file.display()),
            None => error,
        };
        if len > 0 {
            self.hasher.update(&epoch.read(self.offset, len as usize).map_err(named)?);
            self.offset += len;
        } else if self.hasher.finalize() != epoch.digest() {
            return Err(named(Error::corrupted("an epoch of the update log has another digest")));
        }
        Ok(len)
    }
}

fn lineage(signing: &Signing) -> Option<Arc<Part>> {
    let lineage = &signing.lineage;
    (!lineage.is_empty()).then(|| Arc::new(Part::Memory(lineage.clone())))
}

fn fill(out: &mut Vec<u8>, len: usize, bytes: &[u8]) {
    out.extend_from_slice(&bytes[..bytes.len().min(len - out.len())]);
}

/// As [`fill`], with the bytes of `source` from `begin` on. `begin` is at most its length.
fn fill_from(out: &mut Vec<u8>, len: usize, source: &dyn EpochSource, begin: u64) -> Result<()> {
    let wanted = (len - out.len()).min((source.len() - begin) as usize);
    if wanted > 0 {
        let bytes = source.read(begin, wanted)?;
        if bytes.len() != wanted {
            return Err(Error::unavailable("an epoch of the update log cannot be read"));
        }
        out.extend_from_slice(&bytes);
    }
    Ok(())
}

/// The epochs that lead up to a table's current version.
#[derive(Clone)]
pub(crate) struct Feed {
    signing: Signing,
    /// The successions that lead to the table. Streams of it end with the feed.
    lineage: Option<Arc<Part>>,
    first_epoch: Epoch,
    epochs: Vec<FedEpoch>,
    /// Where each epoch ends when all of them are encoded in a row.
    ends: Vec<u64>,
}

impl Feed {
    /// A feed without epochs yet, after `epoch`.
    pub(crate) fn new(signing: Signing, epoch: Epoch) -> Self {
        let lineage = lineage(&signing);
        Self { signing, lineage, first_epoch: epoch, epochs: Vec::new(), ends: Vec::new() }
    }

    pub(crate) fn signing(&self) -> &Signing {
        &self.signing
    }

    /// The same epochs, the last of which may have changed who signs.
    pub(crate) fn signed_by(self, signing: Signing) -> Self {
        Self { lineage: lineage(&signing), signing, ..self }
    }

    /// The successions that lead to the table, as a part to fetch.
    pub(crate) fn lineage(&self) -> Option<&Arc<Part>> {
        self.lineage.as_ref()
    }

    pub(crate) fn description(&self) -> UpdatesDescription {
        UpdatesDescription {
            publisher: self.signing.publisher,
            first_epoch: self.first_epoch,
            next_key: self.signing.next_key,
            lineage: self.lineage().map(|part| {
                let digest = *blake3::hash(&self.signing.lineage).as_bytes();
                PartDescription::new(part.len(), digest)
            }),
        }
    }

    /// The version after the last epoch.
    fn last_epoch(&self) -> u64 {
        self.first_epoch.0.saturating_add(self.epochs.len() as u64)
    }

    /// Everything of the epochs that clients fetch, in memory or in files.
    pub(crate) fn sources(&self) -> impl Iterator<Item = Arc<dyn EpochSource>> {
        let sources = self.epochs.iter().flat_map(|fed| -> [Arc<dyn EpochSource>; 2] {
            let FedEpoch { epoch, commitments } = fed.clone();
            [epoch, commitments]
        });
        sources.filter(|source| source.len() > 0)
    }

    /// The commitments of each epoch.
    #[cfg(test)]
    pub(crate) fn commitments(&self) -> impl Iterator<Item = &CheckedBytes> {
        self.epochs.iter().map(|fed| &*fed.commitments)
    }

    /// Appends the next epoch. If it is too long to send, drops it and all before it: no client
    /// could follow past it.
    pub(crate) fn push(&mut self, epoch: FedEpoch) {
        if !epoch.is_short_enough() {
            *self = Self::new(self.signing.clone(), Epoch(self.last_epoch().saturating_add(1)));
            return;
        }
        self.ends.push(self.ends.last().unwrap_or(&0) + epoch.encoded_len());
        self.epochs.push(epoch);
    }

    /// Drops the epochs that lead to `epoch` and to earlier versions.
    pub(crate) fn forget_before(&mut self, epoch: Epoch) {
        let forgotten = epoch.0.saturating_sub(self.first_epoch.0).min(self.epochs.len() as u64);
        if forgotten == 0 {
            return;
        }
        let kept = self.epochs.split_off(forgotten as usize);
        *self = Self::new(self.signing.clone(), Epoch(self.first_epoch.0 + forgotten));
        kept.into_iter().for_each(|epoch| self.push(epoch));
    }

    /// The epochs that lead from one version to another, which is served.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there are no such epochs: they begin
    /// later, or the versions are in the wrong order.
    pub(crate) fn part(self: &Arc<Self>, from: Epoch, to: Epoch) -> Result<Part> {
        if from > to {
            return Err(Error::api_misuse(format!(
                "no epochs lead from version {} back to {}: ask again what is served",
                from.0, to.0
            )));
        }
        let place = |epoch: Epoch| {
            let place = usize::try_from(epoch.0.checked_sub(self.first_epoch.0)?).ok()?;
            (place <= self.epochs.len()).then_some(place)
        };
        match (place(from), place(to)) {
            (Some(first), Some(behind)) => {
                Ok(Part::Epochs(Epochs { feed: Arc::clone(self), first, behind }))
            }
            _ => Err(Error::api_misuse(format!(
                "the epochs that follow version {} are not kept here (they begin after {}): start again with the table as it is now",
                from.0, self.first_epoch.0
            ))),
        }
    }
}

/// A range of a table's epochs, as clients fetch it.
pub(crate) struct Epochs {
    feed: Arc<Feed>,
    first: usize,
    /// One after the last.
    behind: usize,
}

impl Epochs {
    pub(super) fn len(&self) -> u64 {
        self.end_before(self.behind) - self.end_before(self.first)
    }

    /// As [`Part::copy`].
    pub(super) fn copy(&self, offset: u64, max_len: usize) -> Result<Bytes> {
        let len = self.len().saturating_sub(offset).min(max_len as u64) as usize;
        let mut out = Vec::with_capacity(len);
        if len == 0 {
            return Ok(Bytes::new());
        }
        let start = self.end_before(self.first) + offset;
        let mut number = self.feed.ends.partition_point(|end| *end <= start);
        while out.len() < len {
            let position = start + out.len() as u64;
            let within = position - self.end_before(number);
            self.feed.epochs[number].read(within, len, &mut out)?;
            number += 1;
        }
        Ok(out.into())
    }

    fn end_before(&self, number: usize) -> u64 {
        number.checked_sub(1).map_or(0, |before| self.feed.ends[before])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_core::Blame;
    use privet_wire::updates::encode;

    /// Epochs whose lengths are close to that of their length field, and the bytes to send for
    /// each.
    fn feed() -> (Arc<Feed>, Vec<Vec<u8>>) {
        let mut feed = Feed::new([7; 32].into(), Epoch(10));
        let mut sent = Vec::new();
        for (number, (epoch, commitments)) in
            [(1, 0), (0, 0), (3, 5), (4, 1), (300, 0), (17, 40)].into_iter().enumerate()
        {
            let bytes = |len: usize, first: u8| -> Vec<u8> {
                (0..len).map(|at| first.wrapping_add(at as u8)).collect()
            };
            let epoch = bytes(epoch, 16 * number as u8 + 1);
            let commitments = bytes(commitments, 200 - number as u8);
            let mut encoded = Vec::new();
            encode(&epoch, &commitments, &mut encoded).unwrap();
            sent.push(encoded);
            let [epoch, commitments] =
                [epoch, commitments].map(|bytes| Arc::new(CheckedBytes::from(bytes)));
            feed.push(FedEpoch { epoch, commitments });
        }
        (Arc::new(feed), sent)
    }

    #[test]
    fn a_piece_of_any_length_from_any_place_is_that_piece_of_the_whole() {
        let (feed, sent) = feed();
        for from in 0..=sent.len() {
            for to in from..=sent.len() {
                let whole = sent[from..to].concat();
                let part = feed.part(Epoch(10 + from as u64), Epoch(10 + to as u64)).unwrap();
                assert_eq!(part.len(), whole.len() as u64);
                for offset in 0..=whole.len() {
                    for len in [1, 2, 5, 64, 1000] {
                        let piece = part.copy(offset as u64, len).unwrap();
                        let end = whole.len().min(offset + len);
                        assert_eq!(piece, whole[offset..end], "{from} to {to}: {len} at {offset}");
                    }
                }
                assert!(part.copy(u64::MAX, usize::MAX).unwrap().is_empty());
            }
        }
    }

    #[test]
    fn what_is_not_kept_or_leads_nowhere_is_refused() {
        let (feed, _) = feed();
        for (from, to) in [(9, 12), (0, 16), (12, 11), (16, 17), (17, 17), (u64::MAX, u64::MAX)] {
            let refused = feed.part(Epoch(from), Epoch(to)).err().unwrap();
            assert_eq!(refused.blame(), Blame::ApiMisuse, "{from} to {to}");
        }
        let mut later = (*feed).clone();
        later.forget_before(Epoch(12));
        assert_eq!(later.description().first_epoch, Epoch(12));
        let later = Arc::new(later);
        assert!(later.part(Epoch(11), Epoch(16)).is_err());
        let (rest, before) = (later.part(Epoch(12), Epoch(16)), feed.part(Epoch(12), Epoch(16)));
        assert_eq!(rest.unwrap().copy(0, 1000).unwrap(), before.unwrap().copy(0, 1000).unwrap());
        let mut none = (*later).clone();
        none.forget_before(Epoch(u64::MAX));
        assert_eq!(none.description().first_epoch, Epoch(16));
    }

    struct Long;

    impl EpochSource for Long {
        fn len(&self) -> u64 {
            MAX_EPOCH_LEN as u64 + 1
        }

        fn read(&self, _offset: u64, _len: usize) -> Result<Vec<u8>> {
            Err(Error::unavailable("never read"))
        }

        fn digest(&self) -> [u8; 32] {
            [0; 32]
        }
    }

    #[test]
    fn an_epoch_that_is_too_long_to_be_sent_is_where_the_epochs_begin() {
        let (feed, sent) = feed();
        let mut feed = (*feed).clone();
        let commitments = Arc::new(CheckedBytes::from(Vec::new()));
        feed.push(FedEpoch { epoch: Arc::new(Long), commitments: Arc::clone(&commitments) });
        assert_eq!(feed.description().first_epoch.0, 10 + sent.len() as u64 + 1);
        let epoch = Arc::new(CheckedBytes::from(vec![3]));
        feed.push(FedEpoch { epoch, commitments });
        let feed = Arc::new(feed);
        assert_eq!(feed.part(Epoch(17), Epoch(18)).unwrap().len(), 9);
        assert!(feed.part(Epoch(16), Epoch(18)).is_err());
    }
}
