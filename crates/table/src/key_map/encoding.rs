//! The key map as bytes. All numbers are little-endian; there is exactly one encoding of a key map.
//!
//! A bucket map has version 1, a cuckoo map version 2, so a program that knows buckets alone still reads those and refuses
//! the others by their version. Version 1:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 2 | version, 1 |
//! | 2 | 32 | hash seed |
//! | 34 | 8 | number of keys, stash included |
//! | 42 | 8 | number of buckets |
//! | 50 | 8 | bytes of a bucket |
//! | 58 | 8 | bytes of all entries in buckets |
//! | 66 | 4 | number of groups *g* |
//! | 70 | 4 | number of stash entries *s* |
//! | 74 | *g* | the groups' displacements |
//! | 74 + *g* | | *s* entries in strictly ascending order of tags: tag (8), length (4), value |
//!
//! Version 2 has no groups, and room for further kinds:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 2 | version, 2 |
//! | 2 | 1 | kind: 2 cuckoo |
//! | 3 | 64 | hash seed to bytes of all entries, as in version 1 |
//! | 67 | 4 | number of stash entries *s* |
//! | 71 | | *s* entries, as in version 1 |
//!
//! Kind 1 was a cuckoo map whose second candidate did not follow from the tag; it is refused by name.
//!
//! The number of keys and the bytes of their entries are those of the table as it was built. An [edit](super::edit) leaves them alone,
//! so that the key map changes only with its stash; the stash never has more entries than the table had keys.

use super::{KeyMap, Rule};
use privet_core::codec::Reader;
use privet_core::{Error, PublicSeed, Result, TableShape};

const BUCKETS_VERSION: u16 = 1;
const KINDS_VERSION: u16 = 2;
const CUCKOO: u8 = 2;
const UNPAIRED_CUCKOO: u8 = 1;

/// What comes before the stash, without displacements.
const LONGEST_HEAD: usize = 74;

/// The bytes that a stash entry takes besides its value.
pub(super) const STASH_ENTRY_OVERHEAD: u64 = 12;

impl KeyMap {
    /// The key map as bytes, in the one form that [`decode`](KeyMap::decode) accepts.
    pub fn encode(&self) -> Vec<u8> {
        let stash = self.stash_bytes() + self.stash_entries() * STASH_ENTRY_OVERHEAD;
        let displacements = match &self.rule {
            Rule::Displaced(displacements) => displacements.as_slice(),
            Rule::TwoCandidates => &[],
        };
        let mut out = Vec::with_capacity(LONGEST_HEAD + displacements.len() + stash as usize);
        match self.rule {
            Rule::Displaced(_) => out.extend_from_slice(&BUCKETS_VERSION.to_le_bytes()),
            Rule::TwoCandidates => {
                out.extend_from_slice(&KINDS_VERSION.to_le_bytes());
                out.push(CUCKOO);
            }
        }
        out.extend_from_slice(self.seed.as_bytes());
        for number in [self.keys, self.buckets(), self.record_len(), self.entry_bytes] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        // Both counts are below 2^32: the builder makes no more groups than keys, of which it takes fewer than 2^32.
        if let Rule::Displaced(_) = self.rule {
            out.extend_from_slice(&(displacements.len() as u32).to_le_bytes());
        }
        out.extend_from_slice(&(self.stash.len() as u32).to_le_bytes());
        out.extend_from_slice(displacements);
        for (tag, value) in &self.stash {
            out.extend_from_slice(&tag.to_le_bytes());
            out.extend_from_slice(&(value.len() as u32).to_le_bytes());
            out.extend_from_slice(value);
        }
        out
    }

    /// Reads a key map that came from outside. Allocates no more than `bytes` is long.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if `bytes` is not an encoded key map.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("a key map", bytes);
        let version = reader.u16()?;
        if version == KINDS_VERSION {
            let kind = reader.u8()?;
            if kind == UNPAIRED_CUCKOO {
                return Err(invalid(
                    "it is a cuckoo map of an earlier form, which this program does not read; build the table again",
                ));
            }
            if kind != CUCKOO {
                return Err(invalid(format!("this program does not know its kind, {kind}")));
            }
        } else if version != BUCKETS_VERSION {
            return Err(invalid(format!(
                "it has version {version}, and this program reads versions {BUCKETS_VERSION} and {KINDS_VERSION}"
            )));
        }
        let seed = PublicSeed::from_bytes(reader.array()?);
        let keys = reader.u64()?;
        let (buckets, record_len) = (reader.u64()?, reader.u64()?);
        let shape =
            TableShape::new(buckets, record_len).map_err(|error| invalid(error.message()))?;
        let entry_bytes = reader.u64()?;
        if entry_bytes > shape.bytes() {
            return Err(invalid("its entries are larger than its buckets"));
        }
        let groups = if version == BUCKETS_VERSION { Some(reader.u32()?) } else { None };
        let stash_entries = reader.u32()?;
        if u64::from(stash_entries) > keys {
            return Err(invalid(format!(
                "{stash_entries} stash entries cannot belong to {keys} keys"
            )));
        }
        let rule = match groups {
            Some(groups) if groups == 0 || u64::from(groups) > keys => {
                return Err(invalid(format!("{groups} groups cannot belong to {keys} keys")));
            }
            Some(groups) => Rule::Displaced(reader.bytes(groups as usize)?.to_vec()),
            None => Rule::TwoCandidates,
        };
        let stash = read_stash(&mut reader, stash_entries)?;
        reader.finish()?;
        Ok(Self { seed, keys, shape, entry_bytes, rule, stash })
    }
}

fn read_stash(reader: &mut Reader<'_>, entries: u32) -> Result<Vec<(u64, Vec<u8>)>> {
    // Grows with the bytes that are there, not with the number announced.
    let mut stash: Vec<(u64, Vec<u8>)> = Vec::new();
    for _ in 0..entries {
        let tag = reader.u64()?;
        if stash.last().is_some_and(|(previous, _)| *previous >= tag) {
            return Err(invalid("the tags of its stash are out of order"));
        }
        let value_len = reader.u32()? as usize;
        stash.push((tag, reader.bytes(value_len)?.to_vec()));
    }
    Ok(stash)
}

fn invalid(why: impl std::fmt::Display) -> Error {
    Error::invalid_message(format!("the key map is invalid: {why}"))
}
