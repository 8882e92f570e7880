//! From keys to records: one or two records answer a key, and a miss looks like a hit.
//!
//! Private information retrieval fetches a record by its number. A *key map* is the public function from keys to record
//! numbers that lets a client fetch a value by its key. A key has as many *candidates*, records in which it may lie, as every other
//! key of the table, whether it is there or not, and a lookup always fetches all of them. The client downloads the key map
//! once, with the rest of what it needs to know about the table.
//!
//! | kind | candidates | a client downloads | made for |
//! |---|---|---|---|
//! | [buckets](#buckets) | 1 | half a byte per key, and the stash | tables that are mostly built anew when they change: one query per lookup |
//! | [cuckoo](#cuckoo) | 2, of a table with more than one record | some seventy bytes, and the stash | tables that keep changing: a key that comes or goes changes one record or a few, and hardly ever the key map |
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
//! # Cuckoo
//!
//! A key hashes to two records, its candidates, and its entry lies in either of them (or in the stash). The builder chooses
//! which; when both are full, an entry in one of them moves to *its* other candidate. Two choices, and several entries to a record, are
//! enough to fill records to nine tenths without publishing anything about the choice: there are no groups and no
//! displacements, and all that a client needs is the seed. The tag decides which records belong together and the rest of the key's hash
//! which of these pairs is the key's (`pairing.rs` has the rule), so entries can be moved without knowing their keys.
//!
//! The price is that every lookup takes two queries, for both candidates, found or not: which of the two is needed would tell
//! the server something about the key.
//!
//! This is the map of Zhou, Park, Zheng and Shi (*Piano*, appendix A.1): cuckoo hashing under a published seed, of which a client
//! fetches all candidates.
//!
//! # The stash
//!
//! One value of 76 KB among thousands of short ones would make every bucket 76 KB wide. A few such values go to the
//! *stash*, a part of the key map itself, which every client has downloaded. In a cuckoo map it also takes the few entries for which no place is
//! found. A client whose key turns out to be in the stash **still sends the queries for the key's candidates**, like for any other
//! key: [`KeyMap::candidates`] does not even look into the stash, so a server cannot tell.
//!
//! # Edits
//!
//! An [`Editor`] sets and deletes single keys in a finished table, and says which records change.
//!
//! Under a bucket map an operation changes one record at most. The displacements, which an editor leaves alone, were chosen to fill the
//! buckets to the brim. So values can be replaced by others of their length, and keys deleted, but of the new keys most go to the stash
//! unless others have gone from their bucket, and the table is soon to be built anew.
//!
//! Under a cuckoo map a new key is put into a candidate with room, or takes a place from which a short path of entries has moved on; a
//! deleted key leaves a gap. With values of equal length, records that are nine tenths full take in new keys as others go, and never
//! use the stash: a new key changes two records on average, and hardly ever more than four. With values of very different
//! lengths the gaps are not as long as new keys need. A table with values of 0 to 700 bytes, of which every key was replaced by a new one, put 1 in
//! 80 of them into the stash and refused 1 in 40; with a tenth of its keys deleted before, it refused none.
//!
//! # Who chooses what
//!
//! Only the kind is left to the user: [`pack`] chooses the records' number and width and what goes to the stash, by
//! the cost that its module states.
//!
//! | item | what it is for |
//! |---|---|
//! | [`KeyMap`] | the client's side: the [`candidates`](KeyMap::candidates) of a key, and its value [`find_in`](KeyMap::find_in) each of them |
//! | [`pack`], [`pack_as`] | the builder's side: from pairs to records |
//! | [`Editor`] | the owner's side, later on: keys that are set and deleted in a finished table |

mod cuckoo;
mod displacement;
mod edit;
mod encoding;
mod entry;
mod hash;
mod packing;
mod pairing;
mod path;
mod placement;

#[cfg(test)]
mod tests;

pub use edit::{Editor, Edits, Effect};
pub use packing::{Packed, Pairs, pack, pack_as};

use hash::KeyHash;
use pairing::Pairing;
use privet_core::{Error, PublicSeed, Result, TableShape};

/// How keys get to records: see the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyMapKind {
    /// One candidate per key, found through published displacements.
    #[default]
    Buckets,
    /// Two candidates per key, and nothing published but a seed.
    Cuckoo,
}

impl KeyMapKind {
    /// All kinds, the usual one first.
    pub const ALL: [Self; 2] = [Self::Buckets, Self::Cuckoo];

    /// The kind's name, as it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Buckets => "buckets",
            Self::Cuckoo => "cuckoo",
        }
    }

    /// How many records a lookup fetches from a table with more than one.
    fn candidates(self) -> usize {
        match self {
            Self::Buckets => 1,
            Self::Cuckoo => 2,
        }
    }
}

/// The public function from keys to records, and the few values that lie in no record.
///
/// A client gets it as bytes from the server ([`KeyMap::decode`]); a builder gets it from [`pack_as`].
#[derive(Clone, PartialEq, Eq)]
pub struct KeyMap {
    seed: PublicSeed,
    keys: u64,
    shape: TableShape,
    entry_bytes: u64,
    rule: Rule,
    // In ascending order of tags, no tag twice.
    stash: Vec<(u64, Vec<u8>)>,
}

/// How a key's hash becomes its candidates.
#[derive(Clone, PartialEq, Eq)]
enum Rule {
    /// By the displacement of the key's group; there is at least one group.
    Displaced(Vec<u8>),
    /// By one word of the hash and the tag, which pairs off the records.
    TwoCandidates,
}

impl KeyMap {
    /// How keys get to records.
    pub fn kind(&self) -> KeyMapKind {
        match self.rule {
            Rule::Displaced(_) => KeyMapKind::Buckets,
            Rule::TwoCandidates => KeyMapKind::Cuckoo,
        }
    }

    /// How many candidates every key has, 1 or 2: how many records each lookup fetches. Never more than the table has records.
    pub fn candidates_per_key(&self) -> usize {
        // A table has at least one record, so the smaller of the two is at least 1.
        self.kind().candidates().min(usize::try_from(self.buckets()).unwrap_or(usize::MAX))
    }

    /// The records in which `key` may lie, each in `[0, buckets())`, all different, [`candidates_per_key`](KeyMap::candidates_per_key) of
    /// them. Defined for every key, in the table or not; all of them must be fetched for every key alike, and
    /// [`find_in`](KeyMap::find_in) asked about each: at most one of them has the value, or the stash has it, and then every
    /// answer says so.
    pub fn candidates(&self, key: &[u8]) -> impl ExactSizeIterator<Item = u64> + use<> {
        self.candidates_of(&KeyHash::new(self.seed, key))
    }

    fn candidates_of(&self, hash: &KeyHash) -> impl ExactSizeIterator<Item = u64> + use<> {
        let candidates = match &self.rule {
            Rule::Displaced(displacements) => {
                let group = hash.group(displacements.len() as u64);
                [hash.bucket(displacements[group as usize], self.buckets()), 0]
            }
            Rule::TwoCandidates => hash.candidates(self.buckets()),
        };
        candidates.into_iter().take(self.candidates_per_key())
    }

    /// The other candidate of an entry tagged `tag` that lies in `record`; `record` itself if it has no other.
    fn other_candidate(&self, record: u64, tag: u64) -> u64 {
        match self.rule {
            Rule::Displaced(_) => record,
            Rule::TwoCandidates => Pairing::new(tag, self.buckets()).other(record),
        }
    }

    /// The value of `key`, given one of the records that [`candidates`](KeyMap::candidates) names; `None` if neither this record
    /// nor the stash has the key. The whole stash and the whole record are looked through in either case.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `record` is not [`record_len`](KeyMap::record_len) bytes long.
    /// - [`Blame::Integrity`](privet_core::Blame::Integrity) if it is not a bucket.
    pub fn find_in(&self, key: &[u8], record: &[u8]) -> Result<Option<Vec<u8>>> {
        if record.len() as u64 != self.record_len() {
            return Err(Error::api_misuse(format!(
                "a bucket of this table has {} bytes, not {}",
                self.record_len(),
                record.len()
            )));
        }
        let tag = KeyHash::new(self.seed, key).tag;
        let in_record = entry::find_entry(record, tag)?;
        let mut in_stash = None;
        for (stash_tag, value) in &self.stash {
            if *stash_tag == tag {
                in_stash = Some(value.as_slice());
            }
        }
        Ok(in_stash.or(in_record).map(<[u8]>::to_vec))
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

    /// How many keys the table had when it was built. Edits since then are not counted, so that an edit that leaves the stash alone
    /// leaves the key map as it is, and clients need not fetch it again.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// How many keys have their value in the stash, edits included.
    pub fn stash_entries(&self) -> u64 {
        self.stash.len() as u64
    }

    /// The bytes of the values in the stash.
    pub fn stash_bytes(&self) -> u64 {
        self.stash.iter().map(|(_, value)| value.len() as u64).sum()
    }

    /// The part of all buckets that held entries and not padding when the table was built, in `[0, 1]`. As with [`keys`](KeyMap::keys),
    /// edits since then are not counted.
    pub fn load(&self) -> f64 {
        self.entry_bytes as f64 / self.shape.bytes() as f64
    }
}

impl std::fmt::Debug for KeyMap {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("KeyMap")
            .field("kind", &self.kind())
            .field("keys", &self.keys)
            .field("shape", &self.shape)
            .field("stash_entries", &self.stash.len())
            .finish()
    }
}
