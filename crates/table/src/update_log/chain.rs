//! Following a table from epoch to epoch.

use super::entry::{Entry, malformed};
use super::recorded::Recorded;
use super::{EpochHash, PublisherId, Succession, TableKeys};
use crate::TableLayout;
use crate::digest::layout_digest;
use privet_core::{Epoch, Error, Result, TableChanges, TableDigest, TableId, TableIdentity};

/// A position in a table's history: everything that the next epoch must agree with.
///
/// Begin a chain with the table as a snapshot or a server has it, and give it the epochs that
/// follow, in order. It needs no records: a client checks epochs in the same way as a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    identity: TableIdentity,
    layout: Option<TableLayout>,
    layout_digest: [u8; 32],
    keys: TableKeys,
    previous: Option<EpochHash>,
}

impl Chain {
    /// A chain that begins with the table `identity`, which has the layout `layout` and the keys
    /// `keys`: a [`PublisherId`] alone if there is no next key. The caller must know that the
    /// layout is this table's.
    ///
    /// `previous` is the hash of the epoch that made this version, or [`EpochHash::NONE`] if the
    /// table was built like this. A caller that does not know it (because it downloaded the table
    /// in this version, for example) gives `None`. Then the chain does not check the hash that the
    /// first epoch names. The epoch also names the table's digest before, and that is enough to
    /// show that it follows.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if no table of this shape can
    /// have this layout.
    pub fn new(
        identity: TableIdentity,
        layout: TableLayout,
        keys: impl Into<TableKeys>,
        previous: Option<EpochHash>,
    ) -> Result<Self> {
        layout.check_shape(identity.shape)?;
        let layout_digest = layout_digest(&layout.encode());
        let layout = Some(layout);
        Ok(Self { identity, layout, layout_digest, keys: keys.into(), previous })
    }

    /// The same for a caller that knows only the digest of the encoded layout.
    /// [`layout`](Self::layout) is then unknown until an epoch changes it, and whether the table
    /// may grow under it is checked where the layout is read.
    pub fn knowing_digest(
        identity: TableIdentity,
        layout_digest: [u8; 32],
        keys: impl Into<TableKeys>,
        previous: Option<EpochHash>,
    ) -> Self {
        Self { identity, layout: None, layout_digest, keys: keys.into(), previous }
    }

    /// The same position after the rotation with the hash `previous` has made the version
    /// `identity` of it.
    pub(super) fn with_keys(
        &self,
        identity: TableIdentity,
        keys: TableKeys,
        previous: EpochHash,
    ) -> Self {
        Self { identity, keys, previous: Some(previous), ..self.clone() }
    }

    /// The table at this position.
    pub fn identity(&self) -> TableIdentity {
        self.identity
    }

    /// How to read its records now, if that is known.
    pub fn layout(&self) -> Option<&TableLayout> {
        self.layout.as_ref()
    }

    /// The digest of the encoded layout.
    pub fn layout_digest(&self) -> [u8; 32] {
        self.layout_digest
    }

    /// The publisher, who must sign every epoch.
    pub fn publisher(&self) -> PublisherId {
        self.keys.publisher
    }

    /// Who signs epochs, and who may hand the table on.
    pub fn keys(&self) -> TableKeys {
        self.keys
    }

    /// The hash of the epoch that made the present version; `None` if that is not known.
    pub fn previous(&self) -> Option<EpochHash> {
        self.previous
    }

    /// Sets the hash of the epoch that made the present version, and who signs from then on.
    #[cfg(feature = "files")]
    pub(super) fn set_passed(&mut self, previous: EpochHash, keys: TableKeys) {
        (self.previous, self.keys) = (Some(previous), keys);
    }

    /// Takes the next epoch, as bytes from any source, and moves on to it; or refuses it, and
    /// stays. Allocates next to nothing for an epoch that the publisher has not signed.
    ///
    /// A rotation of the table's keys is an epoch too, without changes: the next one must be signed
    /// by the new publisher. A successor is another table, so no chain moves on to it: a
    /// [`Lineage`](super::Lineage) leads there.
    ///
    /// # Errors
    /// In this order:
    /// - [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if `bytes` is not an epoch.
    /// - [`Blame::Integrity`](privet_core::Blame::Integrity) if it is of another table; not the
    ///   next one (a gap, or a step back); not signed by the publisher; or does not continue this
    ///   history (a fork: the publisher has signed two). Or the table ends here, for its successor.
    /// - [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if its layout is not valid,
    ///   or does not fit the table.
    pub fn follow(&mut self, bytes: &[u8]) -> Result<EpochUpdate> {
        self.follow_decoded(&Recorded::decode(bytes)?)
    }

    pub(super) fn follow_decoded(&mut self, next: &Recorded<'_>) -> Result<EpochUpdate> {
        match next {
            Recorded::Epoch(entry) => self.follow_changes(entry),
            Recorded::Succession(rotation) => self.follow_rotation(rotation),
        }
    }

    fn follow_changes(&mut self, entry: &Entry<'_>) -> Result<EpochUpdate> {
        let before = self.identity;
        Link {
            id: before.id,
            epoch: before.epoch,
            publisher: self.keys.publisher,
            previous: self.previous,
            digest: Some(before.digest),
        }
        .check(entry)?;
        if entry.before != before.shape {
            return Err(Error::integrity(
                "the next epoch of the table was made for another number of records, or wider or narrower ones: its publisher's program is at fault",
            ));
        }
        let (layout, digest) = match entry.layout() {
            Some(encoded) => (Some(TableLayout::decode(encoded)?), layout_digest(encoded)),
            None => (None, self.layout_digest),
        };
        if layout.is_some() && digest == self.layout_digest {
            return Err(malformed("the layout that it changes stays the same"));
        }
        if let Some(layout) = layout.as_ref().or(self.layout.as_ref()) {
            layout.check_shape(entry.after)?;
        }

        let digest_after = entry.digest_after(digest);
        let after = TableIdentity {
            epoch: entry.epoch,
            digest: digest_after,
            shape: entry.after,
            ..before
        };
        let (hash, changes) = (entry.hash(), entry.changes()?);
        (self.identity, self.layout_digest, self.previous) = (after, digest, Some(hash));
        if layout.is_some() {
            self.layout.clone_from(&layout);
        }
        Ok(EpochUpdate { after, changes, layout, hash })
    }

    fn follow_rotation(&mut self, rotation: &Succession) -> Result<EpochUpdate> {
        let before = self.identity;
        if !rotation.is_rotation() {
            return Err(Error::integrity(format!(
                "no epoch follows version {} of the table {}: it has a successor",
                before.epoch.0, before.id
            )));
        }
        check_next(before.epoch, rotation.number())?;
        let next = rotation.follow(self)?;
        *self = next;
        let changes = TableChanges::none(before.shape);
        Ok(EpochUpdate { after: self.identity, changes, layout: None, hash: rotation.hash() })
    }
}

/// Checks that the epoch `came` comes after the epoch `before`.
pub(super) fn check_next(before: Epoch, came: Epoch) -> Result<()> {
    let (before, came) = (before.0, came.0);
    if came <= before {
        return Err(Error::integrity(format!(
            "epoch {came} came when the table was at epoch {before} already (a rollback): its sender is behind, or contradicts what it sent before"
        )));
    }
    if came - before > 1 {
        return Err(Error::integrity(format!(
            "epoch {came} came when the table was at epoch {before} (a gap): the epochs in between are missing; ask for those after {before}"
        )));
    }
    Ok(())
}

/// What an epoch must match to follow the one before.
pub(super) struct Link {
    pub(super) id: TableId,
    /// The epoch before.
    pub(super) epoch: Epoch,
    pub(super) publisher: PublisherId,
    /// `None`: unknown.
    pub(super) previous: Option<EpochHash>,
    /// `None`: unknown.
    pub(super) digest: Option<TableDigest>,
}

impl Link {
    pub(super) fn check(&self, entry: &Entry<'_>) -> Result<()> {
        if entry.id != self.id {
            return Err(Error::integrity(format!(
                "an epoch of the table {} came where one of the table {} was due: its sender serves another table",
                entry.id, self.id
            )));
        }
        check_next(self.epoch, entry.epoch)?;
        let came = entry.epoch.0;
        // Check the signature before the comparison below: only an epoch that the publisher signed
        // proves that the publisher has two histories.
        if !entry.is_signed_by(&self.publisher) {
            return Err(Error::integrity(format!(
                "the signature of epoch {came} is not one of the publisher {}: it was altered, or somebody else made it; do not follow it",
                self.publisher
            )));
        }
        let continues = self.previous.is_none_or(|previous| previous == entry.previous)
            && self.digest.is_none_or(|digest| digest == entry.digest_before);
        if !continues {
            return Err(Error::integrity(format!(
                "epoch {came} is signed by the table's publisher and does not continue the history known so far (a fork): the publisher has signed two, and some clients see the \
                 wrong one; compare the table's digest with others before trusting either"
            )));
        }
        Ok(())
    }
}

/// An epoch that was checked and that followed.
#[derive(Clone, Debug)]
pub struct EpochUpdate {
    /// The table after.
    pub after: TableIdentity,
    /// The changes of its records: none if it changes only the table's keys.
    pub changes: TableChanges,
    /// How to read the records after, if that has changed.
    pub layout: Option<TableLayout>,
    /// Its hash, which the next epoch names.
    pub hash: EpochHash,
}
