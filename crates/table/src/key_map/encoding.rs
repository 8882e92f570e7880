//! The key map as bytes. All numbers are little-endian; there is exactly one encoding of a key map.
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

use super::KeyMap;
use privet_core::codec::Reader;
use privet_core::{Error, PublicSeed, Result, TableShape};

const VERSION: u16 = 1;

/// The bytes that a stash entry takes besides its value.
pub(super) const STASH_ENTRY_OVERHEAD: u64 = 12;

impl KeyMap {
    /// The key map as bytes, in the one form that [`decode`](KeyMap::decode) accepts.
    pub fn encode(&self) -> Vec<u8> {
        let stash = self.stash_bytes() + self.stash_entries() * STASH_ENTRY_OVERHEAD;
        let mut out = Vec::with_capacity(74 + self.displacements.len() + stash as usize);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(self.seed.as_bytes());
        for number in [self.keys, self.buckets(), self.record_len(), self.entry_bytes] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        // Both counts are below 2^32: the builder makes no more groups than keys, of which it takes fewer than 2^32.
        out.extend_from_slice(&(self.displacements.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.stash.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.displacements);
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
        if version != VERSION {
            return Err(invalid(format!(
                "it has version {version}, and this program reads version {VERSION}"
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
        let (groups, stash_entries) = (reader.u32()?, reader.u32()?);
        if groups == 0 || u64::from(groups) > keys || u64::from(stash_entries) > keys {
            return Err(invalid(format!(
                "{groups} groups and {stash_entries} stash entries cannot belong to {keys} keys"
            )));
        }
        let displacements = reader.bytes(groups as usize)?.to_vec();
        let stash = read_stash(&mut reader, stash_entries)?;
        reader.finish()?;
        Ok(Self { seed, keys, shape, entry_bytes, displacements, stash })
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
