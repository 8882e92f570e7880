//! From keys to records, in a way that makes a miss look like a hit.
//!
//! Private information retrieval fetches a record by its number. A *key map* is the public function
//! from keys to record numbers that lets a client fetch a value by its key. The *candidates* of a
//! key are the records in which it may lie. Every key has equally many, whether it is in the table
//! or not, and a lookup always fetches all of them. The client downloads the key map once, with the
//! rest of what it needs to know about the table.
//!
//! | kind | candidates | a client downloads | made for |
//! |---|---|---|---|
//! | [buckets](#buckets) | 1 | half a byte per key, and the stash | tables that are mostly built anew when they change: one query per lookup |
//! | [cuckoo](#cuckoo) | 2, of a table with more than one record | some seventy bytes, and the stash | tables that keep changing: a key that comes or goes changes one record or a few, and hardly ever the key map |
//!
//! # Buckets
//!
//! The table's records are *buckets* of equal width. A key hashes to one bucket, which holds
//! several entries `length ‖ tag ‖ value` (`entry.rs` gives the exact form); the 64-bit tag is
//! another part of the key's hash and tells the entries apart. A key that is not in the table
//! hashes to a bucket like any other, and finds no entry with its tag there. A missing key is taken
//! for a present one with probability at most 2^-64 for each entry in its bucket (and in the stash,
//! below).
//!
//! # Hash and displace
//!
//! Under plain hashing the fullest bucket sets the width of all of them: with values of very
//! different lengths, half of the table would be padding. So the builder steers where keys go. A
//! key first hashes to one of many small *groups* (two keys each, on average), and each group has a
//! *displacement*: one public byte that selects one of 256 hash functions for the bucket. The
//! builder takes the groups from the largest to the smallest and gives each the displacement under
//! which its entries fit best into the room that is left. The displacements are most of the key
//! map, half a byte per key. Buckets end up 96 to 98 % full even where values differ wildly in
//! length: the records of the Debian package index, by name, take 1.03 × the bytes of its values.
//!
//! The idea is that of hash-and-displace perfect hashing (Pagh, WADS 1999; Belazzougui, Botelho and
//! Dietzfelbinger, *Hash, displace, and compress*, ESA 2009), used here to balance bytes instead of
//! to avoid collisions.
//!
//! The hash functions depend on a public seed. It is drawn *after* the keys are known, so that
//! nobody can choose keys that all fall into one bucket. It is drawn again in the rare case that
//! two keys get the same tag.
//!
//! # Cuckoo
//!
//! A key hashes to two records, its candidates, and its entry lies in either of them (or in the
//! stash). The builder chooses which. When both are full, an entry in one of them moves to *its*
//! other candidate. Two choices, and several entries to a record, are enough to fill records to
//! nine tenths. Nothing is published about the choice: there are no groups and no displacements,
//! and all that a client needs is the seed. The tag decides which records form pairs, and the rest
//! of the key's hash decides which of these pairs is the key's (`pairing.rs` has the rule). So
//! entries can be moved without knowing their keys.
//!
//! The price is that every lookup takes two queries, one for each candidate, whether or not the key
//! is found. Asking only for the candidate that is needed would show the server something about the
//! key.
//!
//! This is the map of Zhou, Park, Zheng and Shi (*Piano*, appendix A.1): cuckoo hashing under a
//! published seed, of which a client fetches all candidates.
//!
//! # What a key is
//!
//! A key is hashed as it is written, unless the builder said which differences between keys do not
//! count (`key_form.rs`), that keys are bytes and written in hexadecimal, say (`key_format.rs`), or
//! that rows answer for ranges of keys (`ranges.rs`).
//!
//! # Parts
//!
//! A value need not lie in one record. The key map says how many *parts* each key has: one, unless
//! the builder chose more. Each part is an entry like any other, with candidates of its own, and
//! holds a piece of the value (`pieces.rs`). A lookup fetches the candidates of all parts, whatever
//! the length of the value. So a long value, a short one and a missing one look the same to the
//! server.
//!
//! Parts are for tables in which some values are much longer than others, and too many for the
//! stash. With one part, the longest of them decides how wide all records are.
//!
//! # Several values of a key
//!
//! Several values are stored as one: as their list ([`encode_list`]), which may be as long as any
//! value. A key map says whether its entries hold lists.
//!
//! # The stash
//!
//! One value of 76 KB among thousands of short ones would make every bucket 76 KB wide. A few such
//! values go to the *stash*, a part of the key map itself, which every client has downloaded. In a
//! cuckoo map it also takes the few entries for which no place is found. A client whose key turns
//! out to be in the stash **still sends the queries for the key's candidates**, as for any other
//! key: [`KeyMap::candidates`] does not look into the stash, so a server cannot see it.
//!
//! # Edits
//!
//! An [`Editor`] sets and deletes single keys in a finished table, and says which records change.
//!
//! Under a bucket map an operation changes at most one record for each part of the key. The
//! displacements were chosen to fill the buckets almost completely, and an editor leaves them
//! alone. So values can be replaced by others of their length, and keys can be deleted. But most
//! new keys go to the stash, unless other keys have gone from their bucket, and soon the table must
//! be built anew.
//!
//! Under a cuckoo map a new key goes to a candidate with room, or to a place that a short path of
//! moves has made free. A deleted key leaves a gap. With values of equal length, records that are
//! nine tenths full take in new keys as others go, and never use the stash: a new key changes two
//! records on average, and hardly ever more than four. With values of very different lengths the
//! gaps are often too short for new keys. A table with values of 0 to 700 bytes, of which every key
//! was replaced by a new one, put 1 in 80 of them into the stash and refused 1 in 40; with a tenth
//! of its keys deleted before, it refused none.
//!
//! # Who chooses what
//!
//! The user chooses the kind and, if they want to, the number of parts. [`pack_with`] chooses the
//! number and width of the records and what goes to the stash, by the cost that its module states.
//!
//! | item | what it is for |
//! |---|---|
//! | [`KeyMap`] | the client's side: the [`candidates`](KeyMap::candidates) of a key, the [piece](KeyMap::piece_in) of its value in each, and its [`value`](KeyMap::value) from them |
//! | [`pack_as`], [`pack_with`] | the builder's side: from pairs to records |
//! | [`Room`] | how many keys a table still takes, about |
//! | [`Editor`] | the owner's side, later on: keys that are set and deleted in a finished table |
//! | [`encode_list`], [`decode_list`] | for all of them, if keys have several values |

#[cfg(feature = "files")]
mod contents;
mod cuckoo;
mod displacement;
mod edit;
mod encoding;
mod entry;
mod forecast;
mod hash;
mod key_form;
mod key_format;
pub(crate) mod number;
mod packing;
mod pairing;
mod parts;
mod path;
mod pieces;
mod placement;
mod ranges;
mod room;
mod slow_keys;
mod unicode;
mod values;

#[cfg(test)]
mod tests;

#[cfg(feature = "files")]
pub(crate) use edit::Held;
pub use edit::{Editor, Effect};
pub use forecast::{Forecast, forecast};
pub(crate) use key_form::no_such_range;
pub use key_form::{Case, KeyForm, Normalization};
pub use key_format::KeyFormat;
#[cfg(feature = "files")]
pub(crate) use key_format::quoted;
pub use packing::{PackOptions, Packed, Pairs, pack_as, pack_with};
pub use pieces::MOST_PARTS;
#[cfg(feature = "files")]
pub(crate) use ranges::{Bounds, NAME_LEN};
pub use ranges::{Directory, Points, Range, RowKey};
pub use room::Room;
pub use values::{decode_list, encode_list, values_of_list};
#[cfg(feature = "files")]
pub(crate) use values::{listed_len, push_to_list};

use crate::choice::{Choice, name_of};
use hash::KeyHash;
use pairing::Pairing;
use pieces::Parts;
use privet_core::table::MAX_RECORD_LEN;
use privet_core::{Error, PublicSeed, Result, TableShape};
use privet_kernels::taint::{admit, conceal};

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

    /// All kinds, as people choose them.
    pub const CHOICES: [Choice<Self>; 2] = [
        Choice::new(Self::Buckets, "buckets", "One candidate record for each key"),
        Choice::new(Self::Cuckoo, "cuckoo", "Two candidate records for each key"),
    ];

    /// The kind's name.
    pub fn name(self) -> &'static str {
        name_of(&Self::CHOICES, &self)
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
/// A client gets it as bytes from the server ([`KeyMap::decode`]); a builder gets it from
/// [`pack_as`].
#[derive(Clone, PartialEq, Eq)]
pub struct KeyMap {
    seed: PublicSeed,
    keys: u64,
    shape: TableShape,
    entry_bytes: u64,
    key_form: KeyForm,
    rule: Rule,
    parts: Parts,
    /// Whether keys have lists of values.
    lists: bool,
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

    /// How many parts every key has, from 1 to [`MOST_PARTS`].
    pub fn parts(&self) -> usize {
        self.parts.number().into()
    }

    /// Whether what the table has for a key is a list of values, to be read with [`decode_list`].
    pub fn has_lists(&self) -> bool {
        self.lists
    }

    /// How many candidates every key has, over all its parts: how many records each lookup fetches.
    /// Each part has 1 or 2, and never more than the table has records.
    pub fn candidates_per_key(&self) -> usize {
        self.parts() * self.candidates_per_part()
    }

    fn candidates_per_part(&self) -> usize {
        // A table has at least one record, so the smaller of the two is at least 1.
        self.kind().candidates().min(usize::try_from(self.buckets()).unwrap_or(usize::MAX))
    }

    /// The records in which `key` may lie, each in `[0, buckets())`,
    /// [`candidates_per_key`](KeyMap::candidates_per_key) of them: those of the first part, which
    /// differ from each other, then those of the next, and so on. Defined for every key, in the
    /// table or not.
    ///
    /// A lookup must fetch all of them for every key, even where two parts name the same record,
    /// and look at them only then. [`value`](KeyMap::value) puts together what
    /// [`piece_in`](KeyMap::piece_in) finds in each.
    ///
    /// For keys that are hashed as they are written, no branch depends on the key, except that
    /// hashing takes longer for a longer key. In a cuckoo map no address depends on the key either.
    /// In a bucket map one does for each part: that of the displacement of its group. Where a
    /// [`KeyForm`] changes keys first, its branches and addresses may depend on the key.
    pub fn candidates<'m>(&'m self, key: &[u8]) -> impl Iterator<Item = u64> + use<'m> {
        self.hashes_of(key).flat_map(|hash| self.candidates_of(&hash))
    }

    /// The hashes of a key's parts.
    fn hashes_of(&self, key: &[u8]) -> impl Iterator<Item = KeyHash> + use<> {
        self.hashes_of_formed(&self.key_form.apply(key))
    }

    /// The hashes of the parts of a key that has the form of the table's keys already.
    fn hashes_of_formed(&self, key: &[u8]) -> impl Iterator<Item = KeyHash> + use<> {
        KeyHash::of_pieces(self.seed, key).take(self.parts())
    }

    /// The tags of the parts of such a key.
    #[cfg(feature = "files")]
    pub(crate) fn tags_of_formed(&self, key: &[u8]) -> impl Iterator<Item = u64> + use<> {
        self.hashes_of_formed(key).map(|hash| hash.tag)
    }

    /// The same map for keys of another form.
    #[cfg(feature = "files")]
    pub(crate) fn with_key_form(self, key_form: KeyForm) -> Self {
        Self { key_form, ..self }
    }

    /// What becomes of a key before it is hashed. Keys that become the same are the same key.
    pub fn key_form(&self) -> &KeyForm {
        &self.key_form
    }

    fn candidates_of(&self, hash: &KeyHash) -> impl ExactSizeIterator<Item = u64> + use<> {
        let candidates = match &self.rule {
            Rule::Displaced(displacements) => {
                let group = hash.group(displacements.len() as u64);
                // This address depends on the key. The list has half a byte for each key.
                let displacement = conceal(displacements[admit(group) as usize]);
                [hash.bucket(displacement, self.buckets()), 0]
            }
            Rule::TwoCandidates => hash.candidates(self.buckets()),
        };
        candidates.into_iter().take(self.candidates_per_part())
    }

    /// The other candidate of an entry tagged `tag` that lies in `record`; `record` itself if it
    /// has no other.
    fn other_candidate(&self, record: u64, tag: u64) -> u64 {
        match self.rule {
            Rule::Displaced(_) => record,
            Rule::TwoCandidates => Pairing::new(tag, self.buckets()).other(record),
        }
    }

    /// What `record` holds for `key`; `None` if nothing. `record` came as number `candidate` of
    /// those that [`candidates`](KeyMap::candidates) names. The whole record is looked through in
    /// either case.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `record` is not
    ///   [`record_len`](KeyMap::record_len) bytes long, or there is no such candidate.
    /// - [`Blame::Integrity`](privet_core::Blame::Integrity) if it is not a bucket.
    pub fn piece_in<'r>(
        &self,
        key: &[u8],
        candidate: usize,
        record: &'r [u8],
    ) -> Result<Option<&'r [u8]>> {
        if record.len() as u64 != self.record_len() {
            return Err(Error::api_misuse(format!(
                "a bucket of this table has {} bytes, not {}",
                self.record_len(),
                record.len()
            )));
        }
        let part = candidate / self.candidates_per_part();
        let hash = self.hashes_of(key).nth(part).ok_or_else(|| {
            Error::api_misuse(format!("a key has {} candidates", self.candidates_per_key()))
        })?;
        entry::find_entry(record, hash.tag)
    }

    /// The value of `key`, from what [`piece_in`](KeyMap::piece_in) found in each of its
    /// candidates, in their order; `None` if neither they nor the stash have the key. The whole
    /// stash is looked through in any case. In a table of [lists](KeyMap::has_lists), the value is
    /// a list.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if these are not as many as there are
    ///   candidates.
    /// - [`Blame::Integrity`](privet_core::Blame::Integrity) if the pieces do not belong together.
    pub fn value<P: AsRef<[u8]>>(
        &self,
        key: &[u8],
        found: &[Option<P>],
    ) -> Result<Option<Vec<u8>>> {
        if found.len() != self.candidates_per_key() {
            return Err(Error::api_misuse(format!(
                "a key has {} candidates, and {} were looked at",
                self.candidates_per_key(),
                found.len()
            )));
        }
        let parts = self.hashes_of(key).zip(found.chunks(self.candidates_per_part()));
        let pieces: Vec<Option<&[u8]>> = parts
            .map(|(hash, found)| {
                let in_record = found.iter().flatten().next().map(AsRef::as_ref);
                self.find_in_stash(hash.tag).or(in_record)
            })
            .collect();
        self.parts.join(&pieces)
    }

    /// What the stash has under `tag`. Looks through all of it.
    fn find_in_stash(&self, tag: u64) -> Option<&[u8]> {
        let mut found = None;
        for (stash_tag, piece) in &self.stash {
            if *stash_tag == tag {
                found = Some(piece.as_slice());
            }
        }
        found
    }

    /// The value of `key`, from the records that [`candidates`](KeyMap::candidates) names, in their
    /// order: [`piece_in`](KeyMap::piece_in) all of them, and [`value`](KeyMap::value).
    ///
    /// # Errors
    /// As these two.
    pub fn find<'r>(
        &self,
        key: &[u8],
        records: impl IntoIterator<Item = &'r [u8]>,
    ) -> Result<Option<Vec<u8>>> {
        let numbered = records.into_iter().enumerate();
        let pieces: Vec<Option<&[u8]>> = numbered
            .map(|(candidate, record)| self.piece_in(key, candidate, record))
            .collect::<Result<_>>()?;
        self.value(key, &pieces)
    }

    /// A record with as many entries as there can be. It takes longest to look through
    /// ([`piece_in`](KeyMap::piece_in)), so that time can be measured without a table.
    pub fn crowded_record(&self) -> Vec<u8> {
        let mut record = Vec::with_capacity(self.record_len() as usize);
        for tag in 0..self.record_len() / entry::entry_len(0) {
            entry::write_entry(&mut record, tag, &[]);
        }
        record.resize(self.record_len() as usize, 0);
        record
    }

    /// Pieces of a value at least as long as any in records or in the stash, one for each
    /// candidate, in as many parts as there are. They take longest to put together
    /// ([`value`](KeyMap::value)). The value is all zeros: as a list, it is as many empty values as
    /// there are zeros.
    pub fn longest_pieces(&self) -> Vec<Option<Vec<u8>>> {
        let in_stash = self.stash.iter().map(|(_, piece)| piece.len()).max().unwrap_or_default();
        let each = in_stash.max(self.record_len() as usize);
        let value_len = (each * self.parts()).min(MAX_RECORD_LEN as usize);
        let per_part = self.candidates_per_part();
        let mut pieces = self.parts.payloads_of_zeros(value_len).into_iter();
        let piece_at = |candidate: usize| {
            // Each part has its piece in the first of its candidates.
            if candidate.is_multiple_of(per_part) { pieces.next() } else { None }
        };
        (0..self.candidates_per_key()).map(piece_at).collect()
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

    /// How many keys the table had when it was built. Edits since then are not counted, so that an
    /// edit that leaves the stash alone leaves the key map as it is, and clients need not fetch it
    /// again.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// How many values are in the stash, edits included; with more than one part, how many pieces
    /// of values.
    pub fn stash_entries(&self) -> u64 {
        self.stash.len() as u64
    }

    /// The bytes of all values, or pieces of values, in the stash.
    pub fn stash_bytes(&self) -> u64 {
        self.stash.iter().map(|(_, value)| value.len() as u64).sum()
    }

    /// The part of all buckets that held entries and not padding when the table was built, in `[0,
    /// 1]`. As with [`keys`](KeyMap::keys), edits since then are not counted.
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
            .field("parts", &self.parts())
            .field("stash_entries", &self.stash.len())
            .finish()
    }
}
