//! What a lookup asks for says nothing about its key: neither the number of records nor which they
//! are.
//!
//! Private information retrieval hides which records those are. These tests ask for more: even
//! their numbers must not say whether a key is in the table, was deleted, or lies in the stash.

use super::editing::{Table, key};
use super::*;

/// Into how many parts the records of a table are divided to count which of them are asked for.
const PARTS: u64 = 24;

/// The records that a lookup of `key` asks for, by the client's way to ask.
type Lookup<'a> = dyn Fn(&Table, &[u8]) -> Vec<u64> + 'a;

/// How often `lookup` asks for the records of each part.
fn counts(table: &Table, keys: &[Vec<u8>], lookup: &Lookup<'_>) -> Vec<u64> {
    let mut counts = vec![0; PARTS as usize];
    for key in keys {
        for record in lookup(table, key) {
            counts[(record * PARTS / table.key_map.buckets()) as usize] += 1;
        }
    }
    counts
}

/// How far counts are above what equal shares of records would bring, in standard deviations of the
/// chi-square distribution. Far below is normal for keys that a bucket map's builder has spread
/// evenly.
fn excess(counts: &[u64], records: u64) -> f64 {
    let total = counts.iter().sum::<u64>() as f64;
    let chi_square: f64 = (0..PARTS)
        .zip(counts)
        .map(|(part, &count)| {
            let first = |part: u64| (part * records).div_ceil(PARTS);
            let expected = total * (first(part + 1) - first(part)) as f64 / records as f64;
            (count as f64 - expected).powi(2) / expected
        })
        .sum();
    let freedom = PARTS as f64 - 1.0;
    (chi_square - freedom) / (2.0 * freedom).sqrt()
}

/// A table that has been edited, and keys of all four classes: present, deleted, never there, in
/// the stash.
fn edited(kind: KeyMapKind) -> (Table, [Vec<Vec<u8>>; 4]) {
    let mut table = Table::new(kind, &pairs_of_lengths(std::iter::repeat_n(20, 8000)));
    let deleted: Vec<Vec<u8>> = (0..600).map(key).collect();
    for key in &deleted {
        table.delete(key);
    }
    let is_stashed = |table: &Table, key: &[u8]| {
        let tag = hash::KeyHash::new(table.key_map.seed, key).tag;
        table.key_map.stash.iter().any(|(stash_tag, _)| *stash_tag == tag)
    };
    let mut last = 8000;
    while table.set(&key(last), &[1; 20]).is_ok() {
        last += 1;
    }
    let all = (600..last).map(key);
    let (stashed, present): (Vec<_>, Vec<_>) = all.partition(|key| is_stashed(&table, key));
    assert_eq!(stashed.len(), 500);
    let absent = (1_000_000..1_002_000).map(key).collect();
    (table, [present, deleted, absent, stashed])
}

/// What a client does: it asks for all candidates, whatever it knows.
fn honest(table: &Table, key: &[u8]) -> Vec<u64> {
    table.key_map.candidates(key).collect()
}

#[test]
fn hits_misses_and_stashed_keys_ask_for_as_many_records_spread_in_the_same_way() {
    for kind in KeyMapKind::ALL {
        let (table, classes) = edited(kind);
        for keys in &classes {
            let asked = |key: &Vec<u8>| honest(&table, key).len();
            assert!(keys.iter().all(|key| asked(key) == table.key_map.candidates_per_key()));
            let counts = counts(&table, keys, &honest);
            let excess = excess(&counts, table.key_map.buckets());
            assert!(excess < 6.0, "{kind:?}, {} keys: {excess}, {counts:?}", keys.len());
        }
    }
}

/// Mistakes that a client could make, which the test above must find.
#[test]
fn lookups_that_give_a_class_of_keys_away_are_caught() {
    let is_present =
        |table: &Table, key: &[u8]| look_up(&table.key_map, &table.records, key).is_some();
    let in_stash = |table: &Table, key: &[u8]| {
        let tag = hash::KeyHash::new(table.key_map.seed, key).tag;
        table.key_map.stash.iter().any(|(stash_tag, _)| *stash_tag == tag)
    };
    for kind in KeyMapKind::ALL {
        let (table, [present, _, absent, stashed]) = edited(kind);
        let records = table.key_map.buckets();

        // A stashed key asks for some record, since its value is known: one time in five it is the
        // first.
        let lazy_with_stash = |table: &Table, key: &[u8]| {
            let candidates = honest(table, key);
            let lazy = in_stash(table, key) && key.last().is_some_and(|&digit| digit >= b'8');
            if lazy { vec![0; candidates.len()] } else { candidates }
        };
        assert!(excess(&counts(&table, &stashed, &lazy_with_stash), records) > 6.0);
        assert!(excess(&counts(&table, &present, &lazy_with_stash), records) < 6.0);

        // A missing key asks for records of the first half a little more often.
        let biased_misses = |table: &Table, key: &[u8]| {
            let candidates = honest(table, key).into_iter();
            let biased = !is_present(table, key) && key.last().is_some_and(|&digit| digit >= b'7');
            candidates.map(|record| if biased { record / 2 } else { record }).collect()
        };
        assert!(excess(&counts(&table, &absent, &biased_misses), records) > 6.0);
        assert!(excess(&counts(&table, &present, &biased_misses), records) < 6.0);
    }
}

#[test]
fn where_a_key_lies_does_not_change_what_a_lookup_asks_for() {
    for kind in KeyMapKind::ALL {
        let (table, classes) = edited(kind);
        // The map as it was built, before any key was deleted or put into the stash.
        let built = Table::new(kind, &pairs_of_lengths(std::iter::repeat_n(20, 8000)));
        assert!(built.key_map.stash_entries() == 0 && built.key_map != table.key_map);
        for key in classes.iter().flatten() {
            assert_eq!(honest(&table, key), honest(&built, key));
        }
    }
}
