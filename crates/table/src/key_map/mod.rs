//! From keys to records: one record answers a key, and a miss looks like a hit.
//!
//! Private information retrieval fetches a record by its number. A *key map* is the public function from keys to record
//! numbers that lets a client fetch a value by its key with **one** query, always, whether the key is there or not. The
//! client downloads the key map once, with the rest of what it needs to know about the table.
//!
//! # Buckets
//!
//! The table's records are *buckets* of equal width. A key hashes to one bucket, which holds several entries
//! `length ‖ tag ‖ value` (`entry.rs` gives the exact form); the 64-bit tag is another part of the key's hash and tells
//! the entries apart. A key that is not in the table hashes to a bucket like any other, and finds no entry with its
//! tag there. A missing key is taken for a present one with probability at most 2^-64 for each entry in its bucket (and
//! in the stash, below).
//!
//! # Hash and displace
//!
//! Under plain hashing the fullest bucket sets the width of all of them: with values of very different lengths, half of
//! the table would be padding. So the builder steers. A key first hashes to one of many small *groups* (two keys each, on
//! average), and each group has a *displacement*: one public byte that selects one of 256 hash functions for the bucket.
//! The builder takes the groups from the largest to the smallest and gives each the displacement under which its entries
//! fit best into what room is left. The displacements are most of the key map, half a byte per key, and buckets end
//! up more than nine tenths full.
//!
//! The idea is that of hash-and-displace perfect hashing (Pagh, WADS 1999; Belazzougui, Botelho and Dietzfelbinger,
//! *Hash, displace, and compress*, ESA 2009), used here to balance bytes instead of to avoid collisions.
//!
//! The hash functions hang on a public seed that is drawn *after* the keys are known, so that nobody can choose keys that
//! all fall into one bucket, and drawn again in the rare case that two keys get the same tag.
//!
//! # The stash
//!
//! One value of 76 KB among thousands of short ones would make every bucket 76 KB wide. A few such values go to the
//! *stash*, a part of the key map itself, which every client has downloaded. A client whose key turns out to be in the
//! stash **still sends the query for the key's bucket**, like for any other key: [`KeyMap::locate`] does not even look
//! into the stash, so a server cannot tell.
//!
//! # Who chooses what
//!
//! Nothing is left to the user: [`pack`] chooses the buckets' number and width and what goes to the stash, by
//! the cost that its module states.
//!
//! | item | what it is for |
//! |---|---|
//! | [`KeyMap`] | the client's side: [`locate`](KeyMap::locate) a key, [`find_in`](KeyMap::find_in) its bucket |
//! | [`pack`] | the builder's side: from pairs to buckets |

mod encoding;
mod entry;
mod hash;
mod packing;
mod placement;

#[cfg(test)]
mod tests;

pub use packing::{Packed, Pairs, pack};

use hash::KeyHash;
use privet_core::{Error, PublicSeed, Result, TableShape};

/// The public function from keys to buckets, and the few values that fit into no bucket.
///
/// A client gets it as bytes from the server ([`KeyMap::decode`]); a builder gets it from [`pack`].
#[derive(Clone, PartialEq, Eq)]
pub struct KeyMap {
    seed: PublicSeed,
    keys: u64,
    shape: TableShape,
    entry_bytes: u64,
    displacements: Vec<u8>,
    // In ascending order of tags, no tag twice.
    stash: Vec<(u64, Vec<u8>)>,
}

impl KeyMap {
    /// The record that holds the bucket of `key`, in `[0, buckets())`. Defined for every key, in the table or not; the
    /// query that fetches it must be sent for every key alike.
    pub fn locate(&self, key: &[u8]) -> u64 {
        let hash = KeyHash::new(self.seed, key);
        let group = hash.group(self.displacements.len() as u64);
        hash.bucket(self.displacements[group as usize], self.buckets())
    }

    /// The value of `key`, given the record that [`locate`](KeyMap::locate) names; `None` if the table does not have
    /// the key. The whole stash and the whole bucket are looked through in either case.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `bucket` is not [`record_len`](KeyMap::record_len) bytes long.
    /// - [`Blame::Integrity`](privet_core::Blame::Integrity) if it is not a bucket.
    pub fn find_in(&self, key: &[u8], bucket: &[u8]) -> Result<Option<Vec<u8>>> {
        if bucket.len() as u64 != self.record_len() {
            return Err(Error::api_misuse(format!(
                "a bucket of this table has {} bytes, not {}",
                self.record_len(),
                bucket.len()
            )));
        }
        let tag = KeyHash::new(self.seed, key).tag;
        let in_bucket = entry::find_entry(bucket, tag)?;
        let mut in_stash = None;
        for (stash_tag, value) in &self.stash {
            if *stash_tag == tag {
                in_stash = Some(value.as_slice());
            }
        }
        Ok(in_stash.or(in_bucket).map(<[u8]>::to_vec))
    }

    /// The number of buckets, which is the number of records of the table.
    pub fn buckets(&self) -> u64 {
        self.shape.records()
    }

    /// The width of a bucket in bytes, which is the width of the table's records.
    pub fn record_len(&self) -> u64 {
        self.shape.record_len()
    }

    /// Number and width of the buckets.
    pub fn shape(&self) -> TableShape {
        self.shape
    }

    /// How many keys the table has.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// How many of the keys have their value in the stash.
    pub fn stash_entries(&self) -> u64 {
        self.stash.len() as u64
    }

    /// The bytes of the values in the stash.
    pub fn stash_bytes(&self) -> u64 {
        self.stash.iter().map(|(_, value)| value.len() as u64).sum()
    }

    /// The part of all buckets that holds entries and not padding, in `[0, 1]`.
    pub fn load(&self) -> f64 {
        self.entry_bytes as f64 / self.shape.bytes() as f64
    }
}

impl std::fmt::Debug for KeyMap {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("KeyMap")
            .field("keys", &self.keys)
            .field("shape", &self.shape)
            .field("groups", &self.displacements.len())
            .field("stash_entries", &self.stash.len())
            .finish()
    }
}
