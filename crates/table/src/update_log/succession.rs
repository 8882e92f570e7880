//! The end of one history and the begin of the next, in one signed record: a *succession*.
//!
//! A list that comes out anew does not always fit into its old table: it is wider, or longer than
//! the key map, or the table takes no updates. Then its owner builds another table, with an id of
//! its own, and signs that this one continues the old one. A key that wears out is replaced in the
//! same way: a *rotation* is a succession of a table by itself, in which only the keys change.
//!
//! # Who signs
//!
//! Clients pin a table's publisher, and the digest of the publisher's *next key*, if there is one.
//! The next key is a key pair that signs nothing until it is needed, and so can stay offline.
//!
//! | the table has | a succession | that revokes |
//! |---|---|---|
//! | a next key | the next key, which becomes the publisher, and the publisher | the next key alone |
//! | none | the publisher alone, whoever is the publisher afterwards | cannot be signed |
//!
//! Somebody who has stolen the publisher's key can sign epochs, but no succession. The owner
//! answers with one that *revokes*: it follows the last good epoch, and all later ones are void.
//! A client that has followed those leaves them all the same, because the next key says so.
//!
//! A client that knows of no next key, because its pin is older, is content with the publisher's
//! signature. It can be moved by a thief, as if the table had no next key.
//!
//! # What may follow
//!
//! A succession has the number of the epoch that would come next, and names its hash and digest.
//! After a rotation, epochs go on with the next number, under the new keys: the record itself makes
//! a version, which has the same contents. Nothing follows any other succession. A client that is
//! behind need not have the epochs in between: the record names the table's digest, and who signs
//! it might as well have signed them. But it must not be *ahead*: a record with the number of an
//! epoch that the client has followed contradicts that epoch, and only a revocation may do that.
//! For the same reason only a revocation may follow another last epoch than the client's.
//!
//! A revocation always leads to another id. Otherwise one version of one id would mean two things,
//! and no client could refuse the void one.
//!
//! # One succession, as bytes
//!
//! Numbers are little-endian.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 2 | format version, 2 (an [epoch](super) has 1) |
//! | 2 | 1 | flags: 1, it revokes; 2, the next key signs; 4, the new publisher has a next key |
//! | 3 | 16 | table id |
//! | 19 | 8 | its number: that of the last epoch, and 1 |
//! | 27 | 32 | hash of the last epoch; zeros if there was none |
//! | 59 | 32 | the table's digest after that epoch |
//! | 91 | 16 | id of the successor, or the same id |
//! | 107 | 8 | number of the successor's records |
//! | 115 | 4 | bytes of a record |
//! | 119 | 32 | BLAKE3 digest of the successor's layout |
//! | 151 | 32 | BLAKE3 digest of its records |
//! | 183 | 32 | the new publisher's public key |
//! | 215 | 0 or 32 | the digest of the new publisher's next key |
//! | | 0 or 64 | the publisher's signature, unless it revokes |
//! | | 0 or 64 | the next key's signature, which is the new publisher's |
//!
//! The signatures are of the hash of everything before them. The hash is BLAKE3 in its
//! key-derivation mode with the context `privet succession v1`. A succession has one valid
//! encoding.
//!
//! A successor begins at epoch 0. The root of an authenticated table is in its layout, so the
//! layout's digest vouches for it, and the record does not repeat it.

use super::publisher::NextKeyDigest;
use super::{Chain, EpochHash, PublisherId};
use crate::digest::DigestParts;
use privet_core::codec::Reader;
use privet_core::{Epoch, Error, Result, TableDigest, TableId, TableIdentity, TableShape};
use std::fmt;

const VERSION: u16 = 2;
const WHAT: &str = "a succession";
const SIGNATURE_LEN: usize = 64;

const REVOKES: u8 = 1;
const NEXT_KEY_SIGNS: u8 = 2;
const NAMES_NEXT_KEY: u8 = 4;

/// The longest encoding of a succession, in bytes.
pub const MAX_SUCCESSION_LEN: usize = 215 + 32 + 2 * SIGNATURE_LEN;

/// Who signs a table's epochs, and who may hand the table on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableKeys {
    /// Signs the epochs.
    pub publisher: PublisherId,
    /// The key without which no succession is signed. `None`: the publisher alone signs it.
    pub next: Option<NextKeyDigest>,
}

impl From<PublisherId> for TableKeys {
    /// A publisher without a next key.
    fn from(publisher: PublisherId) -> Self {
        Self { publisher, next: None }
    }
}

/// A record, with a valid form, that one table continues another.
#[derive(Clone, PartialEq, Eq)]
pub struct Succession {
    bytes: Vec<u8>,
    flags: u8,
    old: TableId,
    number: Epoch,
    previous: EpochHash,
    digest_before: TableDigest,
    new: TableIdentity,
    parts: DigestParts,
    keys: TableKeys,
}

impl Succession {
    /// Whether `bytes` claim to be a succession: an epoch of the log has another version.
    pub(super) fn is_claimed_by(bytes: &[u8]) -> bool {
        bytes.starts_with(&VERSION.to_le_bytes())
    }

    /// Reads a succession, from any source. Checks its form, and no signature.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(WHAT, bytes);
        let read = &mut reader;
        let version = read.u16()?;
        if version != VERSION {
            return Err(malformed(&format!(
                "a succession has version {VERSION}, and this has version {version}"
            )));
        }
        let flags = read.u8()?;
        let revokes = flags & REVOKES != 0;
        if flags > REVOKES | NEXT_KEY_SIGNS | NAMES_NEXT_KEY
            || (revokes && flags & NEXT_KEY_SIGNS == 0)
        {
            return Err(malformed("nobody can sign a succession of its kind"));
        }
        let (old, number) = (TableId(read.array()?), Epoch(read.u64()?));
        let (previous, digest_before) = (EpochHash(read.array()?), TableDigest(read.array()?));
        let id = TableId(read.array()?);
        let (records, record_len) = (read.u64()?, u64::from(read.u32()?));
        let shape =
            TableShape::new(records, record_len).map_err(|error| malformed(error.message()))?;
        let parts = DigestParts { layout: read.array()?, records: read.array()? };
        let publisher = PublisherId(read.array()?);
        let next = match flags & NAMES_NEXT_KEY != 0 {
            true => Some(NextKeyDigest(read.array()?)),
            false => None,
        };
        let signatures = usize::from(!revokes) + usize::from(flags & NEXT_KEY_SIGNS != 0);
        read.bytes(signatures * SIGNATURE_LEN)?;
        reader.finish()?;

        let keys = TableKeys { publisher, next };
        let digest = parts.combine(shape);
        let epoch = if id == old { number } else { Epoch(0) };
        let wrong = if number.0 == 0 {
            "its number is 0"
        } else if next == Some(publisher.as_next_key()) {
            "the new publisher is its own next key"
        } else if id == old && revokes {
            "it revokes versions of a table under the same id"
        } else if id == old && digest != digest_before {
            "it changes the contents under the same id"
        } else {
            let new = TableIdentity { id, epoch, digest, shape };
            let bytes = bytes.to_vec();
            return Ok(Self {
                bytes,
                flags,
                old,
                number,
                previous,
                digest_before,
                new,
                parts,
                keys,
            });
        };
        Err(malformed(wrong))
    }

    /// The succession as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The table that ends, or goes on under other keys.
    pub fn old(&self) -> TableId {
        self.old
    }

    /// The number that the next epoch of that table would have had.
    pub fn number(&self) -> Epoch {
        self.number
    }

    /// The hash of the epoch before it.
    #[cfg(feature = "files")]
    pub(super) fn previous(&self) -> EpochHash {
        self.previous
    }

    /// The digest of that table before it.
    #[cfg(feature = "files")]
    pub(super) fn digest_before(&self) -> TableDigest {
        self.digest_before
    }

    /// The table that continues it, in the version with which it does.
    pub fn new_table(&self) -> TableIdentity {
        self.new
    }

    /// The digest of that table's encoded layout.
    pub fn layout_digest(&self) -> [u8; 32] {
        self.parts.layout
    }

    /// The digest of that table's records.
    pub fn records_digest(&self) -> [u8; 32] {
        self.parts.records
    }

    /// Who signs from then on.
    pub fn keys(&self) -> TableKeys {
        self.keys
    }

    /// Whether only keys change.
    pub fn is_rotation(&self) -> bool {
        self.new.id == self.old
    }

    /// Whether the epochs that follow the one before it are void.
    pub fn revokes(&self) -> bool {
        self.flags & REVOKES != 0
    }

    /// The hash that is signed, and that the next epoch names after a rotation.
    pub fn hash(&self) -> EpochHash {
        EpochHash(hash(self.split().0))
    }

    /// Checks that this comes after the item with the hash `previous`, in the history of the table
    /// `id` under `keys`, whose contents before are not known. Returns the keys afterwards.
    ///
    /// # Errors
    /// As [`follow`](Self::follow).
    #[cfg(feature = "files")]
    pub(super) fn follow_unknown(
        &self,
        (id, epoch): (TableId, Epoch),
        keys: TableKeys,
        previous: Option<EpochHash>,
    ) -> Result<TableKeys> {
        let table = TableIdentity { id, epoch, digest: self.digest_before, shape: self.new.shape };
        let before = Chain::knowing_digest(table, self.parts.layout, keys, previous);
        super::chain::check_next(epoch, self.number)?;
        Ok(self.follow(&before)?.keys())
    }

    /// The position with which the table goes on.
    pub(super) fn begin(&self) -> Chain {
        let previous = if self.is_rotation() { self.hash() } else { EpochHash::NONE };
        Chain::knowing_digest(self.new, self.parts.layout, self.keys, Some(previous))
    }

    /// What is signed, and the signatures: the publisher's and the next key's.
    fn split(&self) -> (&[u8], Option<&[u8; SIGNATURE_LEN]>, Option<&[u8; SIGNATURE_LEN]>) {
        let mut body = &self.bytes[..];
        let mut last = |is_there: bool| {
            let (rest, signature) = body.split_last_chunk().filter(|_| is_there)?;
            body = rest;
            Some(signature)
        };
        let by_next = last(self.flags & NEXT_KEY_SIGNS != 0);
        let by_publisher = last(!self.revokes());
        (body, by_publisher, by_next)
    }

    /// Checks that this continues the table at the position `chain`, and returns the position
    /// afterwards.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if it is of another table; not signed
    /// by those who must; has the number of an epoch that is known already, unless it revokes; or
    /// directly follows the known version, and names another (a fork).
    pub(super) fn follow(&self, chain: &Chain) -> Result<Chain> {
        let table = chain.identity();
        if self.old != table.id {
            return Err(Error::integrity(format!(
                "a succession of the table {} came where one of the table {} was due: its sender \
                 serves another table",
                self.old, table.id
            )));
        }
        let (known, number) = (table.epoch.0, self.number.0);
        if number <= known && !self.revokes() {
            return Err(Error::integrity(format!(
                "a successor of the table follows its version {}, and version {known} is known \
                 already (a rollback): it leaves out what the publisher signed before",
                number - 1
            )));
        }
        // Check signatures before the comparison below: only a signed record proves a fork.
        self.check_signatures(chain.keys())?;
        let continues = chain.previous().is_none_or(|previous| previous == self.previous)
            && self.digest_before == table.digest;
        let is_next = known.checked_add(1) == Some(number);
        // Who revokes knows that others may have signed another history.
        if is_next && !continues && !self.revokes() {
            return Err(Error::integrity(format!(
                "the succession after version {known} of the table is signed and does not continue \
                 the history known so far (a fork): two were signed, and some clients see the \
                 wrong one; compare the table's digest with others before trusting either"
            )));
        }
        if is_next && self.is_rotation() {
            if self.parts.layout != chain.layout_digest() || self.keys == chain.keys() {
                return Err(malformed("it changes no keys, or something else"));
            }
            return Ok(chain.with_keys(self.new, self.keys, self.hash()));
        }
        Ok(self.begin())
    }

    /// Whether `publisher` has signed it, as the publisher of the table that is continued.
    pub(super) fn is_signed_by(&self, publisher: PublisherId) -> bool {
        let (body, by_publisher, _) = self.split();
        by_publisher.is_some_and(|signature| publisher.has_signed(&hash(body), signature))
    }

    fn check_signatures(&self, keys: TableKeys) -> Result<()> {
        let (body, by_publisher, by_next) = self.split();
        let hash = hash(body);
        let signed = |by: PublisherId, signature: Option<&[u8; SIGNATURE_LEN]>| {
            signature.is_none_or(|signature| by.has_signed(&hash, signature))
        };
        if !signed(keys.publisher, by_publisher) || !signed(self.keys.publisher, by_next) {
            return Err(Error::integrity(format!(
                "a signature of the succession of table {} is wrong: it was altered, or somebody \
                 else made it; do not follow it",
                self.old
            )));
        }
        match keys.next {
            Some(next) if by_next.is_none() || self.keys.publisher.as_next_key() != next => {
                Err(Error::integrity(format!(
                    "the succession of table {} is not signed by the publisher's next key, which \
                     was named beforehand: somebody may have stolen the publisher's key; do not \
                     follow it",
                    self.old
                )))
            }
            None if by_publisher.is_none() => Err(Error::integrity(format!(
                "somebody revokes table {}, and not with the publisher's key; no other key was \
                 named beforehand, so do not believe it",
                self.old
            ))),
            _ => Ok(()),
        }
    }
}

pub(super) fn malformed(how: &str) -> Error {
    Error::invalid_message(format!(
        "a succession of a table is malformed ({how}): it was damaged on the way, or a newer \
         program made it"
    ))
}

fn hash(body: &[u8]) -> [u8; 32] {
    blake3::derive_key("privet succession v1", body)
}

impl fmt::Debug for Succession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Succession")
            .field("old", &self.old)
            .field("number", &self.number)
            .field("new", &self.new)
            .field("revokes", &self.revokes())
            .finish_non_exhaustive()
    }
}

/// The contents of a succession, before it is signed.
#[cfg(any(test, feature = "files"))]
pub(super) struct SuccessionDraft<'a> {
    /// Where the table that ends stands.
    pub(super) end: &'a Chain,
    /// The successor's id and shape.
    pub(super) id: TableId,
    pub(super) shape: TableShape,
    pub(super) parts: DigestParts,
    pub(super) keys: TableKeys,
}

#[cfg(any(test, feature = "files"))]
impl SuccessionDraft<'_> {
    /// The succession, signed by these. A record without the publisher's signature revokes.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if there is no such record.
    pub(super) fn sign(
        &self,
        publisher: Option<&super::PublisherKey>,
        next: Option<&super::PublisherKey>,
    ) -> Result<Succession> {
        let Self { end, id, shape, parts, keys } = self;
        let TableIdentity { id: old, epoch, digest, .. } = end.identity();
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(publisher.is_none(), REVOKES)
            | flag(next.is_some(), NEXT_KEY_SIGNS)
            | flag(keys.next.is_some(), NAMES_NEXT_KEY);
        let mut out = Vec::with_capacity(MAX_SUCCESSION_LEN);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.push(flags);
        out.extend_from_slice(&old.0);
        out.extend_from_slice(&epoch.0.wrapping_add(1).to_le_bytes());
        out.extend_from_slice(&end.previous().unwrap_or(EpochHash::NONE).0);
        out.extend_from_slice(&digest.0);
        out.extend_from_slice(&id.0);
        out.extend_from_slice(&shape.records().to_le_bytes());
        // At most 2^24.
        out.extend_from_slice(&(shape.record_len() as u32).to_le_bytes());
        for field in [parts.layout, parts.records, keys.publisher.0] {
            out.extend_from_slice(&field);
        }
        out.extend(keys.next.iter().flat_map(|next| next.0));
        let hash = hash(&out);
        for key in [publisher, next].into_iter().flatten() {
            out.extend_from_slice(&key.sign(&hash));
        }
        Succession::decode(&out)
    }
}
