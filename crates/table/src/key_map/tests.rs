use super::*;
use data_encoding::HEXLOWER;
use privet_core::{Blame, Reason};
use proptest::prelude::*;
use serde_json::{Value, json};

type Pair = (Vec<u8>, Vec<u8>);

mod cuckoo;
mod editing;
mod hits_and_misses;
mod key_form;
mod pairing;
mod parts;
mod ranges;
mod room;

fn fixed_seed() -> PublicSeed {
    PublicSeed::from_bytes([7; 32])
}

/// The key map and the records of a packed bucket map.
fn packed(pairs: &[Pair], seed: PublicSeed) -> (KeyMap, Vec<Vec<u8>>) {
    packed_as(KeyMapKind::Buckets, pairs, seed)
}

fn packed_as(kind: KeyMapKind, pairs: &[Pair], seed: PublicSeed) -> (KeyMap, Vec<Vec<u8>>) {
    let packed = pack_as(kind, pairs, seed).expect("these pairs can be packed");
    (packed.key_map().clone(), packed.records(pairs))
}

/// The result of a lookup of `key`. Checks that no part of it lies in two of its candidates.
fn look_up(key_map: &KeyMap, records: &[Vec<u8>], key: &[u8]) -> Option<Vec<u8>> {
    let candidates: Vec<u64> = key_map.candidates(key).collect();
    assert_eq!(candidates.len(), key_map.candidates_per_key());
    let asked: Vec<&[u8]> =
        candidates.iter().map(|candidate| &records[*candidate as usize][..]).collect();
    for (part, records) in asked.chunks(candidates.len() / key_map.parts()).enumerate() {
        let (first, second) = (part * records.len(), (part + 1) * records.len() - 1);
        assert!(first == second || candidates[first] != candidates[second]);
        let found = (first..=second).filter(|&candidate| {
            key_map.piece_in(key, candidate, asked[candidate]).expect("well-formed").is_some()
        });
        assert!(found.count() <= 1);
    }
    key_map.find(key, asked).expect("the records are well-formed")
}

/// Checks every key, some that are missing, and the key map's way to bytes and back.
fn check(kind: KeyMapKind, pairs: &[Pair], seed: PublicSeed) -> (KeyMap, Vec<Vec<u8>>) {
    let (key_map, records) = packed_as(kind, pairs, seed);
    assert_eq!((key_map.kind(), key_map.keys()), (kind, pairs.len() as u64));
    for (key, value) in pairs {
        assert_eq!(look_up(&key_map, &records, key).as_ref(), Some(value), "key {key:?}");
    }
    let present: std::collections::HashSet<&[u8]> =
        pairs.iter().map(|(key, _)| key.as_slice()).collect();
    for number in 0..200 {
        let missing = format!("missing {number}").into_bytes();
        if !present.contains(missing.as_slice()) {
            assert_eq!(look_up(&key_map, &records, &missing), None);
        }
    }
    let encoded = key_map.encode();
    let decoded = KeyMap::decode(&encoded).expect("just encoded");
    assert!(decoded == key_map && decoded.encode() == encoded);
    (key_map, records)
}

fn pairs_of_lengths(lengths: impl IntoIterator<Item = usize>) -> Vec<Pair> {
    let pair = |(number, len)| (format!("key {number}").into_bytes(), vec![number as u8; len]);
    lengths.into_iter().enumerate().map(pair).collect()
}

/// Reproducible numbers that need no more quality than tests do (SplitMix64).
fn numbers() -> impl Iterator<Item = u64> {
    let mut state = 0u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_key_is_found_and_others_are_not(
        values in prop::collection::vec(
            prop_oneof![400 => 0usize..300, 1 => 300usize..100_000],
            1..3000,
        ),
        seed: [u8; 32],
    ) {
        for kind in KeyMapKind::ALL {
            check(kind, &pairs_of_lengths(values.iter().copied()), PublicSeed::from_bytes(seed));
        }
    }

    #[test]
    fn a_key_may_be_any_bytes(
        pairs in prop::collection::btree_map(
            prop::collection::vec(any::<u8>(), 0..20),
            prop::collection::vec(any::<u8>(), 0..20),
            1..60,
        ),
    ) {
        let pairs: Vec<Pair> = pairs.into_iter().collect();
        for kind in KeyMapKind::ALL {
            check(kind, &pairs, fixed_seed());
        }
    }

    #[test]
    fn arbitrary_bytes_are_no_key_map(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Err(error) = KeyMap::decode(&bytes) {
            prop_assert_eq!(error.blame(), Blame::InvalidMessage);
        }
    }

    #[test]
    fn a_damaged_key_map_is_refused_or_harmless(
        kind in prop::sample::select(&KeyMapKind::ALL[..]),
        position in 0usize..10_000,
        flip in 1u8..=255,
    ) {
        let (key_map, _) = packed_as(kind, &pairs_of_lengths((0..64).chain([500])), fixed_seed());
        let mut bytes = key_map.encode();
        let position = position % bytes.len();
        bytes[position] ^= flip;
        match KeyMap::decode(&bytes) {
            Err(error) => prop_assert_eq!(error.blame(), Blame::InvalidMessage),
            Ok(damaged) => {
                let record = vec![0; (damaged.record_len() as usize).min(1 << 24)];
                let candidates: Vec<u64> = damaged.candidates(b"key 1").collect();
                prop_assert_eq!(candidates.len(), damaged.candidates_per_key());
                prop_assert!(candidates.iter().all(|&candidate| candidate < damaged.buckets()));
                let _ = damaged.find(b"key 1", candidates.iter().map(|_| &record[..]));
                prop_assert_eq!(damaged.encode(), bytes);
            }
        }
    }

    #[test]
    fn a_damaged_bucket_is_an_error_or_another_value(position: usize, flip in 1u8..=255) {
        let (key_map, mut records) = packed(&pairs_of_lengths(0..40), fixed_seed());
        for record in &mut records {
            let position = position % record.len();
            record[position] ^= flip;
            if let Err(error) = key_map.find(b"key 1", [&record[..]]) {
                prop_assert_eq!(error.blame(), Blame::Integrity);
            }
        }
    }
}

#[test]
fn small_and_lopsided_tables() {
    for lengths in [
        vec![0],
        vec![1],
        vec![300],
        vec![100_000],
        vec![0, 0],
        vec![5, 5],
        vec![0, 70_000],
        vec![0; 1000],
        vec![1; 17],
        (0..100).map(|number| if number == 50 { 1 << 20 } else { 10 }).collect(),
    ] {
        let pairs = pairs_of_lengths(lengths.iter().copied());
        check(KeyMapKind::Cuckoo, &pairs, fixed_seed());
        let (key_map, _) = check(KeyMapKind::Buckets, &pairs, fixed_seed());
        // One entry per bucket is the worst that equal lengths may come to.
        assert!(key_map.buckets() <= lengths.len() as u64 * 5 / 4 + 1, "{lengths:?}: {key_map:?}");
    }
}

#[test]
fn few_huge_values_go_to_the_stash_and_do_not_widen_the_buckets() {
    let lengths = (0..4000).map(|number| if number % 1000 == 0 { 10_000 } else { 100 });
    let pairs = pairs_of_lengths(lengths);
    for kind in KeyMapKind::ALL {
        let (key_map, records) = check(kind, &pairs, fixed_seed());
        assert_eq!((key_map.stash_entries(), key_map.stash_bytes()), (4, 40_000));
        assert!(key_map.record_len() < 1000);
        // A key in the stash still has candidates to ask for, and they are records like any others.
        let candidates: Vec<u64> = key_map.candidates(b"key 1000").collect();
        assert_eq!(candidates.len(), key_map.candidates_per_key());
        assert!(candidates.iter().all(|&candidate| candidate < records.len() as u64));
    }
}

#[test]
fn equal_values_are_packed_almost_without_padding() {
    for (keys, len) in [(20_000, 32), (20_000, 8), (3000, 1000)] {
        let (key_map, _) = packed(&pairs_of_lengths(std::iter::repeat_n(len, keys)), fixed_seed());
        assert!(key_map.load() > 0.94, "{keys} values of {len} bytes: load {}", key_map.load());
    }
}

#[test]
fn lengths_like_those_of_a_package_index_are_packed_tightly() {
    // Lognormal lengths: median 730 bytes, many below 1 000, a few in the tens of thousands.
    let mut numbers = numbers();
    let mut normal =
        || (0..12).map(|_| numbers.next().unwrap_or(0) as f64 / u64::MAX as f64).sum::<f64>() - 6.0;
    let lengths: Vec<usize> =
        (0..20_000).map(|_| (730.0 * (0.45 * normal()).exp()) as usize).collect();
    let lengths: Vec<usize> = lengths.into_iter().chain([20_000, 25_000, 76_000]).collect();
    let value_bytes: usize = lengths.iter().sum();
    let (key_map, _) = check(KeyMapKind::Buckets, &pairs_of_lengths(lengths), fixed_seed());
    let bytes = key_map.shape().bytes() + key_map.encode().len() as u64;
    let overhead = bytes as f64 / value_bytes as f64;
    assert!(overhead < 1.1, "overhead {overhead}, {key_map:?}, load {}", key_map.load());
}

#[test]
fn the_order_of_the_pairs_does_not_matter() {
    let pairs = pairs_of_lengths((0..500).map(|number| number * 7 % 90));
    let reversed: Vec<Pair> = pairs.iter().rev().cloned().collect();
    for kind in KeyMapKind::ALL {
        assert!(packed_as(kind, &pairs, fixed_seed()) == packed_as(kind, &reversed, fixed_seed()));
    }
}

#[test]
fn another_seed_gives_another_table() {
    let pairs = pairs_of_lengths(0..50);
    let other_seed = PublicSeed::from_bytes([8; 32]);
    for kind in KeyMapKind::ALL {
        assert!(packed_as(kind, &pairs, fixed_seed()) != packed_as(kind, &pairs, other_seed));
    }
}

#[test]
fn misuse_is_named() {
    let none: &[Pair] = &[];
    let twice = [(b"a".to_vec(), vec![1]), (b"b".to_vec(), vec![]), (b"a".to_vec(), vec![2])];
    for kind in KeyMapKind::ALL {
        let error = pack_as(kind, none, fixed_seed()).err().expect("no keys");
        assert_eq!(error.blame(), Blame::ApiMisuse);
        let error = pack_as(kind, &twice[..], fixed_seed()).err().expect("equal keys");
        assert_eq!(error.message(), "two keys are equal; a table by key needs each key once");
    }
    let (key_map, records) = packed(&twice[..2], fixed_seed());
    let error = key_map.find(b"a", [&records[0][1..]]).expect_err("too short");
    assert_eq!(error.blame(), Blame::ApiMisuse);
}

#[test]
fn a_bucket_has_one_valid_form() {
    let tag = |tag: u64| tag.to_le_bytes();
    let entry =
        |number: &[u8], tag_bytes: [u8; 8], value: &[u8]| [number, &tag_bytes, value].concat();
    let well_formed = [entry(&[2], tag(5), b"x"), entry(&[1], tag(9), b""), vec![0, 0]].concat();
    assert_eq!(entry::find_entry(&well_formed, 5).expect("valid"), Some(&b"x"[..]));
    assert_eq!(entry::find_entry(&well_formed, 9).expect("valid"), Some(&b""[..]));
    assert_eq!(entry::find_entry(&well_formed, 6).expect("valid"), None);
    assert_eq!(entry::find_entry(&well_formed[..19], 9).expect("full to the brim"), Some(&b""[..]));
    for (malformed, why) in [
        (entry(&[2], tag(5), b""), "a value is cut off"),
        (vec![2, 0, 0], "a tag is cut off"),
        (vec![0x80], "a number ends too early"),
        (entry(&[0x82, 0], tag(5), b"x"), "a number has needless bytes"),
        (vec![0x80, 0, 0, 0], "a number has needless bytes"),
        (entry(&[0xff, 0xff, 0xff, 0x7f], tag(5), b"x"), "a number is impossible"),
        (entry(&[0x81, 0x80, 0x80, 0x80, 1], tag(5), b"x"), "a number is impossible"),
        (
            [entry(&[1], tag(9), b""), entry(&[1], tag(9), b"")].concat(),
            "its tags are out of order",
        ),
        (
            [entry(&[1], tag(9), b""), entry(&[1], tag(5), b"")].concat(),
            "its tags are out of order",
        ),
        ([entry(&[1], tag(9), b""), vec![0, 0, 1]].concat(), "there are bytes after its end"),
    ] {
        // Whether the tag looked for comes before or after the fault makes no difference.
        for tag in [5, 9, 1] {
            let error = entry::find_entry(&malformed, tag).expect_err(why);
            assert_eq!(error.blame(), Blame::Integrity);
            assert!(error.message().contains(why), "{why}: {error}");
        }
    }
}

#[test]
fn entry_lengths_are_those_written() {
    for len in [0, 1, 126, 127, 128, 16_382, 16_383, 1 << 21] {
        let mut bucket = Vec::new();
        entry::write_entry(&mut bucket, 3, &vec![1; len]);
        assert_eq!(bucket.len() as u64, entry::entry_len(len));
        assert_eq!(entry::find_entry(&bucket, 3).expect("valid").map(<[u8]>::len), Some(len));
    }
}

#[test]
fn decoding_allocates_no_more_than_it_was_sent() {
    // 2^32 - 1 groups or stash entries are announced, and not there.
    for (kind, keys_at, fields) in
        [(KeyMapKind::Buckets, 34, &[66, 70][..]), (KeyMapKind::Cuckoo, 35, &[67])]
    {
        let (key_map, _) = packed_as(kind, &pairs_of_lengths([3, 4]), fixed_seed());
        for &field in fields {
            let mut bytes = key_map.encode();
            bytes[keys_at..keys_at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
            bytes[field..field + 4].copy_from_slice(&u32::MAX.to_le_bytes());
            let error = KeyMap::decode(&bytes).expect_err("nothing behind it");
            assert!(error.message().contains("ends too early"), "{error}");
        }
        let bytes = key_map.encode();
        for len in 0..bytes.len() {
            assert!(KeyMap::decode(&bytes[..len]).is_err());
        }
        assert!(KeyMap::decode(&[&bytes[..], &[0]].concat()).is_err());
    }
}

/// The vectors that every implementation must reproduce. Set `PRIVET_WRITE_VECTORS` to write the
/// file anew, which is right only when the format itself changes.
#[test]
fn known_answers() {
    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/key_map.json");
    let mut pairs = pairs_of_lengths((0..40).map(|number| number * 5 % 23));
    pairs.push(("Schlüssel".into(), vec![0xab; 300]));
    let answers = answers(&pairs);
    if std::env::var_os("PRIVET_WRITE_VECTORS").is_some() {
        let text = serde_json::to_string_pretty(&answers).expect("JSON") + "\n";
        std::fs::write(FILE, text).expect("the vectors can be written");
    }
    assert_eq!(answers, vectors("key_map.json"));
}

/// What `vectors/` has under this name.
fn vectors(name: &str) -> Value {
    let path = format!("{}/../../vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the vectors are there");
    serde_json::from_str(&text).expect("JSON")
}

fn bytes(hexadecimal: &Value) -> Vec<u8> {
    HEXLOWER.decode(hexadecimal.as_str().expect("text").as_bytes()).expect("hexadecimal")
}

fn answers(pairs: &[Pair]) -> Value {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (key_map, records) = check(KeyMapKind::Buckets, pairs, fixed_seed());
    let mut keys: Vec<&[u8]> = pairs.iter().map(|(key, _)| key.as_slice()).collect();
    keys.extend([&b""[..], b"missing", b"key 40"]);
    let lookup = |key: &[u8]| {
        let value = look_up(&key_map, &records, key);
        json!({ "key": hex(key), "bucket": key_map.candidates(key).next(), "value": value.map(|value| hex(&value)) })
    };
    json!({
        "about": "A table by key. Bytes are in hexadecimal. `pairs` packed under `seed` give `key_map` and `records`; a \
                  lookup of `key` fetches record `bucket` and finds `value`, or null.",
        "seed": hex(fixed_seed().as_bytes()),
        "pairs": pairs.iter().map(|(key, value)| json!({"key": hex(key), "value": hex(value)})).collect::<Vec<_>>(),
        "key_map": hex(&key_map.encode()),
        "records": records.iter().map(|record| hex(record)).collect::<Vec<_>>(),
        "lookups": keys.into_iter().map(lookup).collect::<Vec<_>>(),
    })
}
