//! The entries of a layer: keys in ascending order, each once, with a value or the note that it was
//! deleted.

use super::KeyChange;
use privet_table::key_map::Pairs;
use std::collections::BTreeMap;

/// The first byte of what a layer's table holds for a key with a value. For a deleted key, the
/// *tombstone*, it holds no bytes at all.
const PRESENT: u8 = 1;

/// Keys and their contents, in a row in one stretch of memory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Entries {
    bytes: Vec<u8>,
    /// Where each entry's key ends, and where its value does.
    ends: Vec<(usize, usize)>,
}

impl Entries {
    /// The newest change of each key, of `changes` in their order.
    pub(super) fn of_changes<'a>(changes: impl Iterator<Item = &'a KeyChange>) -> Self {
        let newest: BTreeMap<&[u8], Option<&[u8]>> =
            changes.map(|change| (change.key.as_slice(), change.value.as_deref())).collect();
        let mut entries = Self::default();
        for (key, value) in newest {
            entries.push(key, value);
        }
        entries
    }

    /// The entries of both; for a key that both have, the entry of `newer`.
    pub(super) fn merged(newer: &Self, older: &Self) -> Self {
        let mut merged = Self::default();
        merged.bytes.reserve(newer.bytes.len() + older.bytes.len());
        merged.ends.reserve(newer.ends.len() + older.ends.len());
        let (mut new, mut old) = (newer.iter().peekable(), older.iter().peekable());
        while let Some(&(key, held)) = new.peek() {
            match old.peek() {
                Some(&(older_key, older_held)) if older_key < key => {
                    merged.push_held(older_key, older_held);
                    old.next();
                    continue;
                }
                Some(&(older_key, _)) if older_key == key => {
                    old.next();
                }
                _ => {}
            }
            merged.push_held(key, held);
            new.next();
        }
        old.for_each(|(key, held)| merged.push_held(key, held));
        merged
    }

    /// The entries without tombstones, for the oldest layer. If nothing is left, one tombstone
    /// stays, because a table has at least one record.
    pub(super) fn without_tombstones(&self) -> Self {
        let mut kept = Self::default();
        for (key, held) in self.iter().filter(|(_, held)| !held.is_empty()) {
            kept.push_held(key, held);
        }
        if kept.is_empty() {
            kept.push(self.iter().next().map_or(&[], |(key, _)| key), None);
        }
        kept
    }

    /// All bytes, for a digest.
    pub(super) fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for (key_end, value_end) in &self.ends {
            hasher.update(&(*key_end as u64).to_le_bytes());
            hasher.update(&(*value_end as u64).to_le_bytes());
        }
        hasher.update(&self.bytes);
        *hasher.finalize().as_bytes()
    }

    fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.bytes.extend(key);
        let key_end = self.bytes.len();
        if let Some(value) = value {
            self.bytes.push(PRESENT);
            self.bytes.extend(value);
        }
        self.ends.push((key_end, self.bytes.len()));
    }

    fn push_held(&mut self, key: &[u8], held: &[u8]) {
        self.bytes.extend(key);
        let key_end = self.bytes.len();
        self.bytes.extend(held);
        self.ends.push((key_end, self.bytes.len()));
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.ends.len()).map(|number| (self.key(number), self.value(number)))
    }
}

impl Pairs for Entries {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn key(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before].1);
        &self.bytes[start..self.ends[number].0]
    }

    fn value(&self, number: usize) -> &[u8] {
        let (start, end) = self.ends[number];
        &self.bytes[start..end]
    }
}

/// Decodes what a layer's table holds for a key: `Some(None)` is a tombstone. `None`: not valid.
pub(super) fn read_held(held: &[u8]) -> Option<Option<&[u8]>> {
    match held.split_first() {
        None => Some(None),
        Some((&PRESENT, value)) => Some(Some(value)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn changes() -> impl Strategy<Value = Vec<KeyChange>> {
        let change = (0..8u8, proptest::option::of(any::<u8>()));
        proptest::collection::vec(change, 1..40).prop_map(|changes| {
            let change = |(key, value): (u8, Option<u8>)| KeyChange {
                // Keys of different lengths, one a prefix of the other.
                key: vec![1; key.into()],
                value: value.map(|byte| vec![byte; byte as usize % 3]),
            };
            changes.into_iter().map(change).collect()
        })
    }

    proptest! {
        /// Split into any two parts and merged, a history yields its newest changes; without
        /// tombstones, it yields the same as a map.
        #[test]
        fn the_newest_change_of_each_key_is_left(changes in changes(), cut in any::<prop::sample::Index>()) {
            let (older, newer) = changes.split_at(cut.index(changes.len() + 1));
            let merged = Entries::merged(&Entries::of_changes(newer.iter()), &Entries::of_changes(older.iter()));
            prop_assert_eq!(&merged, &Entries::of_changes(changes.iter()));

            let mut map = BTreeMap::new();
            for KeyChange { key, value } in &changes {
                match value {
                    Some(value) => map.insert(key.clone(), value.clone()),
                    None => map.remove(key),
                };
            }
            let kept = merged.without_tombstones();
            let values: Vec<_> = kept
                .iter()
                .filter_map(|(key, held)| Some((key.to_vec(), read_held(held).unwrap()?.to_vec())))
                .collect();
            prop_assert_eq!(kept.len(), map.len().max(1));
            prop_assert_eq!(values, map.into_iter().collect::<Vec<_>>());
        }
    }
}
