//! What a table by key will look like, before there are keys.
//!
//! The builder decides by a [rehearsal](super::placement) with a sample of the keys, and where keys
//! go is random. So made-up keys do as well as the keys themselves. A few are placed as the
//! builder would place them. Of many, only a sample is made and the rehearsal is all there is: the
//! table that is built may then differ by an entry in the width of its records, and by some in a
//! hundred in their number.

use super::displacement::KEYS_PER_GROUP;
use super::entry::entry_len;
use super::packing::{PackOptions, Pairs, check, check_count, hash_all, pack_with, payload_lens};
use super::pieces::Parts;
use super::placement::{Plan, StashLimits};
use super::{KeyForm, KeyMap, KeyMapKind, Rule};
use privet_core::table::MAX_RECORD_LEN;
use privet_core::{PublicSeed, Result, TableShape};

/// So many keys are placed within an instant.
const FEW: u64 = 1 << 14;

/// So many stand for all where there are more. A rehearsal takes about half of them.
const SAMPLE: u64 = 1 << 13;

/// More than any overhead of an entry.
const OVERHEAD: u64 = 32;

/// A table by key as it will be, without what [authenticates](crate::authentication) it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// The records.
    pub shape: TableShape,
    /// How many records each lookup fetches.
    pub records_per_lookup: u64,
    /// The bytes of the key map, stash included, that every client downloads.
    pub key_map_bytes: u64,
}

/// The table that [`pack_with`] makes of `keys` keys with values of `value_len` bytes each.
///
/// # Errors
/// As [`pack_with`].
pub fn forecast(kind: KeyMapKind, keys: u64, value_len: u64) -> Result<Forecast> {
    let options = PackOptions { kind, ..PackOptions::default() };
    let seed = PublicSeed::from_bytes([0; 32]);
    check_count(keys)?;
    // A longer value is still refused.
    let value = vec![0; value_len.min(MAX_RECORD_LEN + 1) as usize];
    // Where a value may be as long as √E, it may be divided, and that takes all keys to decide.
    if keys <= FEW || value_len + OVERHEAD > keys {
        let packed = pack_with(&options, &MadeUp::new(keys, value), seed)?;
        let map = packed.key_map();
        return Ok(Forecast {
            shape: map.shape(),
            records_per_lookup: map.candidates_per_key() as u64,
            key_map_bytes: map.encode().len() as u64,
        });
    }
    let sample = MadeUp::new(SAMPLE, value);
    check(&options, &sample)?;
    let items = hash_all(&sample, Parts::ONE, seed)?;
    let limits = StashLimits::of(payload_lens(&sample, Parts::ONE));
    let each_stands_for = keys as f64 / SAMPLE as f64;
    let plan = Plan::by_rehearsal(kind, 1, &items, &limits, each_stands_for);
    // The fullest of a few records may have room that the fullest of many has not.
    let shape = TableShape::new(plan.buckets, plan.record_len.max(plan.width))?;
    let (rule, groups) = match kind {
        KeyMapKind::Buckets => (Rule::Displaced(Vec::new()), keys.div_ceil(KEYS_PER_GROUP as u64)),
        KeyMapKind::Cuckoo => (Rule::TwoCandidates, 0),
    };
    let map = KeyMap {
        seed,
        keys,
        shape,
        key_form: KeyForm::default(),
        entry_bytes: keys * entry_len(value_len as usize),
        rule,
        parts: Parts::ONE,
        lists: false,
        stash: Vec::new(),
    };
    Ok(Forecast {
        shape,
        records_per_lookup: kind.candidates() as u64,
        key_map_bytes: map.encode().len() as u64 + groups,
    })
}

/// Keys that nobody has, all with the same value.
struct MadeUp {
    keys: Vec<[u8; 8]>,
    value: Vec<u8>,
}

impl MadeUp {
    fn new(count: u64, value: Vec<u8>) -> Self {
        Self { keys: (0..count).map(u64::to_le_bytes).collect(), value }
    }
}

impl Pairs for MadeUp {
    fn len(&self) -> usize {
        self.keys.len()
    }

    fn key(&self, number: usize) -> &[u8] {
        &self.keys[number]
    }

    fn value(&self, _: usize) -> &[u8] {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample shows what all keys would, within an entry of width and a few records in a hundred.
    #[test]
    fn a_table_is_as_it_was_forecast() {
        for (kind, keys, value_len) in [
            (KeyMapKind::Buckets, 1, 10),
            (KeyMapKind::Buckets, 2_000, 100),
            (KeyMapKind::Buckets, 60_000, 20),
            (KeyMapKind::Cuckoo, 40_000, 100),
            (KeyMapKind::Cuckoo, 60_000, 7),
            (KeyMapKind::Buckets, 40, 200_000),
        ] {
            let forecast = forecast(kind, keys, value_len).unwrap();
            let options = PackOptions { kind, ..PackOptions::default() };
            let seed = PublicSeed::from_bytes([7; 32]);
            let packed =
                pack_with(&options, &MadeUp::new(keys, vec![1; value_len as usize]), seed).unwrap();
            let (map, what) = (packed.key_map(), format!("{kind:?}, {keys} of {value_len} bytes"));
            let about = |one: u64, other: u64, slack: u64| {
                assert!(one.abs_diff(other) <= slack, "{what}: {one}, not {other}");
            };
            let (built, planned) = (map.shape(), forecast.shape);
            about(planned.bytes(), built.bytes(), built.bytes() / 10);
            let entry = entry_len(value_len as usize);
            about(planned.record_len(), built.record_len(), 2 * entry);
            assert_eq!(forecast.records_per_lookup, map.candidates_per_key() as u64, "{what}");
            let len = map.encode().len() as u64;
            about(forecast.key_map_bytes, len, len / 20);
        }
        assert!(forecast(KeyMapKind::Buckets, 0, 1).is_err());
        assert!(forecast(KeyMapKind::Buckets, 1 << 33, 1).is_err());
        assert!(forecast(KeyMapKind::Buckets, 1 << 20, MAX_RECORD_LEN + 1).is_err());
        // Billions of keys take no longer than a sample.
        let large = forecast(KeyMapKind::Cuckoo, 4_000_000_000, 100).unwrap();
        assert!(large.shape.bytes() > 4_000_000_000 * 100);
    }
}
