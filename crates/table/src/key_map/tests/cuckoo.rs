//! What only a cuckoo map promises.

use super::*;
use crate::key_map::cuckoo::TwoChoices;
use std::collections::HashSet;

fn cuckoo(pairs: &[Pair]) -> (KeyMap, Vec<Vec<u8>>) {
    check(KeyMapKind::Cuckoo, pairs, fixed_seed())
}

#[test]
fn records_are_nearly_nine_tenths_full_and_the_stash_stays_empty() {
    for (keys, len) in [(20_000, 32), (20_000, 8), (3000, 1000)] {
        let (key_map, _) = cuckoo(&pairs_of_lengths(std::iter::repeat_n(len, keys)));
        let load = key_map.load();
        assert!((0.84..=0.9).contains(&load), "{keys} values of {len} bytes: load {load}");
        assert_eq!(key_map.stash_entries(), 0);
    }
    let mut numbers = numbers();
    let lengths = (0..20_000).map(|_| numbers.next().unwrap_or(0) as usize % 700);
    let (key_map, _) = cuckoo(&pairs_of_lengths(lengths));
    assert!((0.84..=0.9).contains(&key_map.load()), "load {}", key_map.load());
}

#[test]
fn a_client_downloads_nothing_per_key() {
    for keys in [100, 10_000] {
        let (key_map, _) = cuckoo(&pairs_of_lengths(std::iter::repeat_n(20, keys)));
        assert_eq!(key_map.stash_entries(), 0);
        assert_eq!(key_map.encode().len(), 71);
    }
}

#[test]
fn both_candidates_are_used_and_a_lone_record_is_the_only_candidate() {
    let pairs = pairs_of_lengths(std::iter::repeat_n(20, 1000));
    let (key_map, records) = cuckoo(&pairs);
    assert_eq!(key_map.candidates_per_key(), 2);
    let places: HashSet<usize> = pairs
        .iter()
        .map(|(key, _)| {
            let found = |(candidate, record): (usize, u64)| {
                let piece = key_map.piece_in(key, candidate, &records[record as usize]);
                piece.expect("well-formed").is_some()
            };
            key_map.candidates(key).enumerate().position(found).expect("not in the stash")
        })
        .collect();
    assert_eq!(places, HashSet::from([0, 1]));

    // Any number of records, one among them: distinct, within the table, and each of them hit.
    for records in 1..20u64 {
        let map = empty(records, fixed_seed());
        let mut hit = HashSet::new();
        for number in 0..400 {
            let candidates: Vec<u64> = map.candidates(format!("{number}").as_bytes()).collect();
            assert_eq!(candidates.len() as u64, records.min(2));
            assert_eq!(candidates.iter().collect::<HashSet<_>>().len(), candidates.len());
            hit.extend(candidates);
        }
        assert_eq!(hit, (0..records).collect());
    }
}

#[test]
fn entries_without_a_place_go_to_the_stash_within_its_limits() {
    // Records of one entry each, nearly as many entries as records: two choices are not enough for
    // all.
    let pairs = pairs_of_lengths(std::iter::repeat_n(20, 640));
    let items: Vec<placement::Item> = (0..640)
        .map(|number: u32| placement::Item {
            hash: hash::KeyHash::new(fixed_seed(), &pairs[number as usize].0),
            entry_len: 29,
            number,
            pair: number,
            piece: 0,
        })
        .collect();
    let items: Vec<&placement::Item> = items.iter().collect();
    let choices = TwoChoices::new(&items, 29);
    let stashed = |homes: &[(u32, placement::Home)]| {
        homes.iter().filter(|(_, home)| *home == placement::Home::Stash).count()
    };

    let limits = placement::StashLimits::of(std::iter::repeat_n(20, 640));
    let (homes, fullest) = choices.place(700, &mut limits.room_beside_wide(&items, 29));
    // The stash takes one key in 16. The other entries without a place go where they do not fit, so
    // the records get wider.
    assert_eq!((stashed(&homes), fullest > 29), (40, true));

    // With enough room for all, every entry is placed once, and none goes to the stash or beyond
    // the width.
    let (homes, fullest) = choices.place(1600, &mut limits.room_beside_wide(&items, 29));
    assert_eq!((stashed(&homes), fullest), (0, 29));
    let placed: HashSet<u32> = homes.iter().map(|(number, _)| *number).collect();
    assert_eq!((placed.len(), homes.len()), (640, 640));
}

#[test]
fn entries_that_are_moved_make_room_that_plain_choices_lack() {
    // 950 records of one entry for 400 entries: two choices without moves leave some without a
    // place.
    let pairs = pairs_of_lengths(std::iter::repeat_n(0, 400));
    let (mut taken, mut without_moves) = (HashSet::new(), 0);
    let mut items = Vec::new();
    for (number, (key, _)) in (0..).zip(&pairs) {
        let hash = hash::KeyHash::new(fixed_seed(), key);
        let [first, second] = hash.candidates(950);
        without_moves += usize::from(!taken.insert(first) && !taken.insert(second));
        items.push(placement::Item { hash, entry_len: 9, number, pair: number, piece: 0 });
    }
    assert!(without_moves > 0);
    let items: Vec<&placement::Item> = items.iter().collect();
    let choices = TwoChoices::new(&items, 9);
    let (_, fullest) = choices.place(950, &mut placement::StashRoom::none());
    assert_eq!(fullest, 9);
}

#[test]
fn other_kinds_and_versions_are_refused_by_name() {
    let (key_map, _) = cuckoo(&pairs_of_lengths(0..20));
    let mut bytes = key_map.encode();
    bytes[2] = 9;
    let error = KeyMap::decode(&bytes).expect_err("no such kind");
    assert!(error.message().contains("does not know its kind, 9"), "{error}");
    bytes[2] = 1;
    let error = KeyMap::decode(&bytes).expect_err("another map's form");
    assert!(error.message().contains("a cuckoo map of an earlier form"), "{error}");
    bytes[0] = 5;
    let error = KeyMap::decode(&bytes).expect_err("no such version");
    assert!(error.message().contains("version 5, and this program reads versions 1 to 4"));
}

/// A table made by `vectors/generate_cuckoo.py`, which shares no code with this crate and places
/// the entries in its own way. Any placement is valid if lookups find the entries.
#[test]
fn known_answers() {
    let vectors = vectors("cuckoo.json");
    let encoded = bytes(&vectors["key_map"]);
    let key_map = KeyMap::decode(&encoded).expect("a key map");
    assert!(key_map.kind() == KeyMapKind::Cuckoo && key_map.encode() == encoded);
    let records: Vec<Vec<u8>> =
        vectors["records"].as_array().expect("a list").iter().map(bytes).collect();
    assert_eq!(records.len() as u64, key_map.buckets());
    assert!(key_map.stash_entries() > 0);
    let lookups = vectors["lookups"].as_array().expect("a list");
    assert!(lookups.len() > 40);
    for lookup in lookups {
        let key = bytes(&lookup["key"]);
        let candidates: Vec<Value> = key_map.candidates(&key).map(Value::from).collect();
        assert_eq!(Value::from(candidates), lookup["candidates"]);
        let expected = if lookup["value"].is_null() { None } else { Some(bytes(&lookup["value"])) };
        assert_eq!(look_up(&key_map, &records, &key), expected);
    }
    let other_sizes = vectors["other_sizes"].as_array().expect("a list");
    assert!(other_sizes.len() > 40);
    for case in other_sizes {
        let records = case["records"].as_u64().expect("a number");
        let key_map = empty(records, PublicSeed::from_bytes(std::array::from_fn(|i| i as u8)));
        let candidates: Vec<Value> =
            key_map.candidates(&bytes(&case["key"])).map(Value::from).collect();
        assert_eq!(Value::from(candidates), case["candidates"]);
    }
}

/// The map of a table without entries.
fn empty(records: u64, seed: PublicSeed) -> KeyMap {
    let shape = TableShape::new(records, 8).expect("valid");
    let (rule, parts) = (Rule::TwoCandidates, Parts::ONE);
    KeyMap {
        seed,
        keys: 1,
        shape,
        entry_bytes: 0,
        key_form: KeyForm::default(),
        rule,
        parts,
        lists: false,
        stash: Vec::new(),
    }
}

/// A table built before there were kinds of key maps still reads as a bucket map.
/// `vectors/key_map.json` holds one, byte for byte.
#[test]
fn key_maps_of_version_1_are_bucket_maps() {
    let vectors = vectors("key_map.json");
    let encoded = bytes(&vectors["key_map"]);
    assert_eq!(encoded[..2], [1, 0]);
    let key_map = KeyMap::decode(&encoded).expect("a key map");
    assert_eq!((key_map.kind(), key_map.candidates_per_key()), (KeyMapKind::Buckets, 1));
    assert_eq!(key_map.encode(), encoded);
}
