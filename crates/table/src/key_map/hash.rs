//! What a key hashes to, and how a hash becomes a bucket or two candidates.
//!
//! One call of keyed BLAKE3 gives 32 bytes, read as four little-endian 64-bit words:
//!
//! | bytes | word | use in a bucket map | use in a cuckoo map |
//! |---|---|---|---|
//! | 0..8 | group | which displacement applies to this key | none |
//! | 8..16 | first | where the key goes under displacement 0 | the first candidate |
//! | 16..24 | second | how far each further displacement moves it | none |
//! | 24..32 | tag | tells the key's entry from its neighbours | the same, and which record is the [other candidate](super::pairing) |
//!
//! A key whose value may lie in several [pieces](super::pieces) has such words for each piece:
//! BLAKE3 gives as many bytes as are asked for, and piece *j* takes those from 32·*j* on. So the
//! first piece hashes like the only piece of a table with one part, whose encoding is what it was
//! before there were parts.
//!
//! The four words are independent, so a tag says nothing about a bucket, and a bucket nothing about
//! a tag. In a cuckoo map the tag says which records form pairs, and nothing about which of these
//! pairs is the key's.

use super::pairing::Pairing;
use privet_core::PublicSeed;

/// The four words of a key's hash under one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyHash {
    group: u64,
    first: u64,
    second: u64,
    /// Written before the key's value in its bucket.
    pub(super) tag: u64,
}

impl KeyHash {
    /// Hashes `key` with BLAKE3 under `seed`, for the first piece of its value.
    #[cfg(test)]
    pub(super) fn new(seed: PublicSeed, key: &[u8]) -> Self {
        Self::from_words(words(blake3::keyed_hash(seed.as_bytes(), key).as_bytes()))
    }

    /// Hashes `key` with BLAKE3 under `seed`, for all pieces that its value may have. The iterator
    /// does not end.
    pub(super) fn of_pieces(seed: PublicSeed, key: &[u8]) -> impl Iterator<Item = Self> + use<> {
        let mut reader = blake3::Hasher::new_keyed(seed.as_bytes()).update(key).finalize_xof();
        std::iter::repeat_with(move || {
            let mut bytes = [0; 32];
            reader.fill(&mut bytes);
            Self::from_words(words(&bytes))
        })
    }

    fn from_words([group, first, second, tag]: [u64; 4]) -> Self {
        Self { group, first, second, tag }
    }

    /// The key's group, in `[0, groups)`.
    pub(super) fn group(&self, groups: u64) -> u64 {
        scale(self.group, groups)
    }

    /// The key's bucket under `displacement`, in `[0, buckets)`.
    pub(super) fn bucket(&self, displacement: u8, buckets: u64) -> u64 {
        let word = self.first.wrapping_add(self.second.wrapping_mul(u64::from(displacement)));
        scale(word, buckets)
    }

    /// The key's two candidates, each in `[0, records)`, and different from each other unless there
    /// is only one record.
    pub(super) fn candidates(&self, records: u64) -> [u64; 2] {
        let pairing = Pairing::new(self.tag, records);
        let first = pairing.first(self.first);
        [first, pairing.other(first)]
    }
}

/// `floor(word · bound / 2^64)`: maps a uniform word to `[0, bound)`. Every result has probability
/// `1/bound` up to an error below 2^-64, so for the sizes here (at most 2^48) the relative error is
/// below 2^-16. It costs only a little balance between buckets; buckets are not secret.
pub(super) fn scale(word: u64, bound: u64) -> u64 {
    ((u128::from(word) * u128::from(bound)) >> 64) as u64
}

fn words(bytes: &[u8; 32]) -> [u64; 4] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}
