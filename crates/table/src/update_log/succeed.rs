//! Handing a table on, by its owner: to other keys, or to another table.

use super::succession::SuccessionDraft;
use super::{Lineage, LogWriter, PublisherKey, Succession, TableKeys};
use crate::digest::DigestParts;
use crate::snapshot::{Snapshot, mark};
use privet_core::{Epoch, Error, Reason, Result, TableIdentity};

/// The keys that sign a succession. [`Succession`] says which of them have to.
#[derive(Clone, Copy)]
pub struct Signers<'k> {
    /// The publisher's. Without it the succession revokes.
    pub publisher: Option<&'k PublisherKey>,
    /// The next key, which becomes the publisher's.
    pub next: Option<&'k PublisherKey>,
}

impl LogWriter<'_> {
    /// Has `keys` sign and hand on the table from now on: appends the rotation, as an epoch without
    /// changes. Reads the whole table, and checks that it is what it should be. Returns its
    /// identity afterwards.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `signers` are not those who have to
    ///   sign, the keys do not change, or the table has a successor.
    /// - [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the table's records are damaged.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be written. Open the
    ///   log again to see whether it was.
    pub fn rotate(&mut self, signers: Signers<'_>, keys: TableKeys) -> Result<TableIdentity> {
        let end = self.log().chain().clone();
        let records = self.table().verified_digest()?.get();
        let parts = DigestParts { layout: end.layout_digest(), records };
        let TableIdentity { id, shape, .. } = end.identity();
        let record =
            self.signed(&SuccessionDraft { end: &end, id, shape, parts, keys }, signers)?;
        self.write_record(record)?;
        Ok(self.log().current())
    }

    /// Ends the table for `successor`, whose epochs are signed by `keys`. Returns what was signed,
    /// and the lineage with which the successor's log [begins](super::UpdateLog::create_after). If
    /// the same was done before, does nothing: a crash may have come between the two.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `signers` are not those who have to
    ///   sign, the table has another successor, or `successor` has its id or is not at epoch 0.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be written. Open the
    ///   log again to see whether it was.
    pub fn succeed(
        &mut self,
        signers: Signers<'_>,
        successor: &Snapshot,
        keys: TableKeys,
    ) -> Result<(Succession, Lineage)> {
        let TableIdentity { id, epoch, shape, .. } = successor.identity();
        let table = self.log().current();
        if id == table.id || epoch != Epoch(0) {
            return Err(Error::api_misuse(format!(
                "{} cannot succeed the table {}: a successor has an id of its own, and no updates \
                 yet",
                successor.path().display(),
                table.id
            )));
        }
        let same = |record: &&Succession| {
            (record.new_table(), record.keys()) == (successor.identity(), keys)
        };
        let record = match self.log().succession().filter(same).cloned() {
            Some(record) => record,
            None => {
                let end = self.log().chain().clone();
                let parts = successor.header().parts;
                let draft = SuccessionDraft { end: &end, id, shape, parts, keys };
                let record = self.signed(&draft, signers)?;
                self.write_record(record.clone())?;
                record
            }
        };
        let lineage = self.log().lineage().with(&record)?;
        Ok((record, lineage))
    }

    /// Checks, before a successor is built, that these may sign that `keys` go on.
    ///
    /// # Errors
    /// As [`succeed`](Self::succeed), as far as that can be said beforehand.
    pub fn check_may_hand_on(&self, signers: Signers<'_>, keys: TableKeys) -> Result<()> {
        self.check_goes_on()?;
        self.check_signers(signers, keys)
    }

    fn signed(&self, draft: &SuccessionDraft<'_>, signers: Signers<'_>) -> Result<Succession> {
        self.check_may_hand_on(signers, draft.keys)?;
        let misused = |error: Error| Error::api_misuse(error.message());
        let record = draft.sign(signers.publisher, signers.next).map_err(misused)?;
        // If this chain does not follow it, no client would.
        record.follow(draft.end).map_err(misused)?;
        Ok(record)
    }

    fn check_signers(&self, signers: Signers<'_>, keys: TableKeys) -> Result<()> {
        if let Some(publisher) = signers.publisher {
            self.check_key(publisher)?;
        }
        let wrong = match (self.log().keys().next, signers.next.map(PublisherKey::id)) {
            (None, Some(_)) => {
                "clients know of no next key of this table: its publisher alone hands it on"
                    .to_owned()
            }
            (None, None) if signers.publisher.is_none() => {
                "no next key was named beforehand, so the publisher signs this: name the \
                 publisher's key"
                    .to_owned()
            }
            (Some(next), None) => {
                return Err(Error::api_misuse(format!(
                    "clients know that the table's next key has to sign this too: the one with the \
                     digest {next}"
                ))
                .because(Reason::NextKeyNeeded));
            }
            (Some(next), Some(key)) if key.as_next_key() != next => format!(
                "this is the next key {}, and clients know that it is {next}",
                key.as_next_key()
            ),
            (Some(_), Some(key)) if key != keys.publisher => {
                "the next key that signs a succession becomes the publisher's key".to_owned()
            }
            _ => return Ok(()),
        };
        Err(Error::api_misuse(wrong))
    }

    /// Writes a record that follows, and syncs it. Then raises the mark of the snapshot.
    fn write_record(&mut self, record: Succession) -> Result<()> {
        self.check_not_stopped()?;
        if self.is_marked {
            mark::check_can_be_raised(self.snapshot.path())?;
        }
        let mut chain = self.log.chain.clone();
        if record.is_rotation() {
            chain.follow(record.as_bytes())?;
        }
        // If anything fails from here on, only the file shows how far it got.
        self.stopped = true;
        let stored = self.write_item(record.as_bytes(), (record.number(), record.hash()))?;
        match record.is_rotation() {
            true => {
                self.log.chain = chain;
                self.log.lineage.push(record)?;
                self.log.appended(stored);
            }
            false => self.log.end_with(record, stored.end())?,
        }
        self.stopped = false;
        self.raise_mark_of_signed()
    }
}
