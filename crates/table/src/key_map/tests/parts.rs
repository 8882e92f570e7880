//! Values in several pieces, and lists of values: in both kinds of key map, with edits, and in
//! tables whose entries do not belong together.

use super::editing::key;
use super::*;
use crate::key_map::pieces::Parts;
use std::collections::BTreeMap;

fn packed_with(options: &PackOptions, pairs: &[Pair]) -> (KeyMap, Vec<Vec<u8>>, Packed) {
    let packed = pack_with(options, pairs, fixed_seed()).expect("these pairs can be packed");
    (packed.key_map().clone(), packed.records(pairs), packed)
}

/// Pairs with values of these lengths, whose bytes differ from place to place, so that pieces in a
/// wrong order show.
fn varied(lengths: impl IntoIterator<Item = usize>) -> Vec<Pair> {
    let value = |number: usize, len: usize| (0..len).map(move |i| (i * 7 + i / 256 + number) as u8);
    let numbered = lengths.into_iter().enumerate();
    numbered.map(|(number, len)| (key(number), value(number, len).collect())).collect()
}

fn any_length() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 0usize..100, 2 => 100usize..900, 1 => 900usize..9000]
}

/// The number of entries in records and in the stash. Checks that no tag occurs twice.
fn count_entries(key_map: &KeyMap, records: &[Vec<u8>]) -> usize {
    let mut tags: Vec<u64> = key_map.stash.iter().map(|(tag, _)| *tag).collect();
    for record in records {
        entry::for_each_entry(record, |tag, _| tags.push(tag)).expect("well-formed");
    }
    let count = tags.len();
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), count);
    count
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_value_is_found_in_any_number_of_parts_and_missing_keys_are_not(
        lengths in prop::collection::vec(any_length(), 1..200),
        parts in prop::option::of(1..=MOST_PARTS),
        lists: bool,
    ) {
        let pairs = varied(lengths);
        for kind in KeyMapKind::ALL {
            let options = PackOptions { kind, parts, lists, ..PackOptions::default() };
            let (key_map, records, _) = packed_with(&options, &pairs);
            if let Some(parts) = parts {
                prop_assert_eq!(key_map.parts(), usize::from(parts));
            }
            prop_assert_eq!((key_map.kind(), key_map.has_lists()), (kind, lists));
            for (key, value) in &pairs {
                let found = look_up(&key_map, &records, key);
                prop_assert_eq!(found.as_ref(), Some(value));
            }
            for number in pairs.len()..pairs.len() + 100 {
                prop_assert_eq!(look_up(&key_map, &records, &key(number)), None);
            }
            let pieces: usize =
                pairs.iter().map(|(_, value)| key_map.parts.pieces(value.len())).sum();
            prop_assert_eq!(count_entries(&key_map, &records), pieces);
            let encoded = key_map.encode();
            let version = if key_map.parts() > 1 || lists { 3 } else { encoded[0] };
            prop_assert_eq!(encoded[0], version);
            let decoded = KeyMap::decode(&encoded).expect("just encoded");
            prop_assert!(decoded == key_map && decoded.encode() == encoded);
        }
    }

    #[test]
    fn nothing_is_longer_to_read_than_the_rehearsed_record_and_value(
        lengths in prop::collection::vec(any_length(), 1..200),
        parts in prop::option::of(1..=MOST_PARTS),
        lists: bool,
    ) {
        let pairs = varied(lengths);
        for kind in KeyMapKind::ALL {
            let options = PackOptions { kind, parts, lists, ..PackOptions::default() };
            let (key_map, records, _) = packed_with(&options, &pairs);
            let entries = |record: &[u8]| {
                let mut count = 0;
                entry::for_each_entry(record, |_, _| count += 1).expect("well-formed");
                count
            };
            let crowded = key_map.crowded_record();
            prop_assert_eq!(crowded.len() as u64, key_map.record_len());
            prop_assert!(records.iter().all(|record| entries(record) <= entries(&crowded)));

            let pieces = key_map.longest_pieces();
            let longest = key_map.value(b"no such key", &pieces).expect("they belong together");
            let longest = longest.expect("the first piece is there");
            // In all parts, so that the check of the whole is computed.
            let parts = pieces.iter().flatten().count();
            prop_assert_eq!(parts, key_map.parts().min(longest.len().max(1)));
            for (key, value) in &pairs {
                prop_assert!(value.len() <= longest.len());
                let found = look_up(&key_map, &records, key);
                prop_assert_eq!(found.as_ref(), Some(value));
            }
            prop_assert_eq!(decode_list(&longest).expect("a list").len(), longest.len());
        }
    }

    #[test]
    fn pieces_are_joined_as_they_were_cut(
        value in prop::collection::vec(any::<u8>(), 0..3000),
        number in 2..=MOST_PARTS,
        piece_len in 1u32..1000,
    ) {
        let parts = Parts::new(number, piece_len).expect("valid");
        let pieces = parts.pieces(value.len());
        prop_assert!((1..=usize::from(number)).contains(&pieces));
        let mut payloads: Vec<Option<Vec<u8>>> = vec![None; number.into()];
        for (piece, payload) in payloads.iter_mut().enumerate().take(pieces) {
            let cut = parts.payload(&value, piece).into_owned();
            prop_assert_eq!(cut.len(), parts.payload_len(value.len(), piece));
            // Nine to twelve bytes before the first piece of several.
            let most = (value.len().div_ceil(pieces)).max(1) + 12;
            prop_assert!(cut.len() <= most);
            if value.len() <= usize::from(number) * piece_len as usize {
                prop_assert!(cut.len() <= piece_len as usize + 12);
            }
            *payload = Some(cut);
        }
        let joined = |payloads: &[Option<Vec<u8>>]| {
            let payloads: Vec<_> = payloads.iter().map(Option::as_deref).collect();
            parts.join(&payloads)
        };
        prop_assert_eq!(joined(&payloads).expect("as cut"), Some(value));
        // Without any one of them, or with one more, they do not belong together.
        for piece in 0..pieces {
            let mut damaged = payloads.clone();
            damaged[piece] = None;
            match joined(&damaged) {
                Ok(value) => prop_assert!(pieces == 1 && value.is_none()),
                Err(error) => prop_assert!(pieces > 1 && error.blame() == Blame::Integrity),
            }
        }
        if pieces < usize::from(number) {
            payloads[pieces] = Some(vec![1]);
            prop_assert_eq!(joined(&payloads).expect_err("one more").blame(), Blame::Integrity);
        }
    }

    /// A malicious server may send any entries.
    #[test]
    fn any_entries_are_a_value_or_an_integrity_error(
        payloads in prop::collection::vec(
            prop::option::of(prop::collection::vec(prop_oneof![0u8..6, any::<u8>()], 0..24)), 16),
        number in 1..=MOST_PARTS,
    ) {
        let parts = Parts::new(number, u32::from(number > 1)).expect("valid");
        let there: usize = payloads.iter().flatten().map(Vec::len).sum();
        let payloads: Vec<_> =
            payloads.iter().take(number.into()).map(Option::as_deref).collect();
        match parts.join(&payloads) {
            Ok(value) => {
                prop_assert_eq!(value.is_some(), payloads[0].is_some());
                prop_assert!(value.is_none_or(|value| value.len() <= there));
            }
            Err(error) => prop_assert_eq!(error.blame(), Blame::Integrity),
        }
    }

    #[test]
    fn lists_come_back_and_anything_else_is_refused(
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20),
        bytes in prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..30),
    ) {
        let list = encode_list(&values);
        prop_assert_eq!(decode_list(&list).expect("just encoded"), values);
        match decode_list(&bytes) {
            Ok(values) => prop_assert_eq!(encode_list(values), bytes),
            Err(error) => prop_assert_eq!(error.blame(), Blame::Integrity),
        }
    }

    /// Values that grow and shrink, keys that come and go, several at a time.
    #[test]
    fn any_history_leaves_what_a_plain_map_has(
        initial in prop::collection::vec(any_length(), 8..60),
        history in prop::collection::vec((0usize..70, prop::option::weighted(0.8, any_length())), 0..60),
        parts in 2..=MOST_PARTS,
        batch in 1usize..10,
    ) {
        let pairs = varied(initial);
        for kind in KeyMapKind::ALL {
            let options = PackOptions { kind, parts: Some(parts), ..PackOptions::default() };
            let (mut key_map, mut records, _) = packed_with(&options, &pairs);
            let mut oracle: BTreeMap<Vec<u8>, Vec<u8>> = pairs.iter().cloned().collect();
            for operations in history.chunks(batch) {
                let mut editor = Editor::new(&key_map, |number| Ok(records[number as usize].clone()));
                for (number, len) in operations {
                    let key = key(*number);
                    let was_there = oracle.contains_key(&key);
                    let Some(len) = len else {
                        let effect = editor.delete(&key).expect("there is always room");
                        prop_assert_eq!(effect == Effect::Deleted, was_there);
                        oracle.remove(&key);
                        continue;
                    };
                    let value: Vec<u8> = (0..*len).map(|i| (i * 5 + i / 256 + len) as u8).collect();
                    match editor.set(&key, &value) {
                        Ok(effect) => {
                            prop_assert_eq!(effect == Effect::Replaced, was_there);
                            oracle.insert(key, value);
                        }
                        Err(error) => {
                            prop_assert!(matches!(error.blame(), Blame::Exhausted | Blame::ApiMisuse));
                        }
                    }
                }
                let (changed, new_map) = editor.finish().expect("these records can be read");
                for (number, record) in changed {
                    records[number as usize] = record;
                }
                key_map = new_map.unwrap_or(key_map);
                for number in 0..70 {
                    let key = key(number);
                    let found = look_up(&key_map, &records, &key);
                    prop_assert_eq!(found.as_ref(), oracle.get(&key));
                }
                // Pieces that a shorter value no longer has are gone.
                let pieces = |value: &Vec<u8>| key_map.parts.pieces(value.len());
                prop_assert_eq!(count_entries(&key_map, &records), oracle.values().map(pieces).sum::<usize>());
                let decoded = KeyMap::decode(&key_map.encode()).expect("just encoded");
                prop_assert!(decoded == key_map);
            }
        }
    }

    #[test]
    fn a_damaged_key_map_of_parts_is_refused_or_harmless(
        kind in prop::sample::select(&KeyMapKind::ALL[..]),
        position in 0usize..10_000,
        flip in 1u8..=255,
    ) {
        let options = PackOptions { kind, parts: Some(3), lists: true, ..PackOptions::default() };
        let (key_map, ..) = packed_with(&options, &varied((0..64).chain([2000])));
        let mut bytes = key_map.encode();
        let position = position % bytes.len();
        bytes[position] ^= flip;
        match KeyMap::decode(&bytes) {
            Err(error) => prop_assert_eq!(error.blame(), Blame::InvalidMessage),
            Ok(damaged) => {
                prop_assert!(damaged.candidates_per_key() <= 32);
                let record = vec![0; (damaged.record_len() as usize).min(1 << 24)];
                let candidates: Vec<u64> = damaged.candidates(b"key 1").collect();
                prop_assert_eq!(candidates.len(), damaged.candidates_per_key());
                prop_assert!(candidates.iter().all(|&candidate| candidate < damaged.buckets()));
                if let Err(error) = damaged.find(b"key 1", candidates.iter().map(|_| &record[..])) {
                    prop_assert!(matches!(error.blame(), Blame::Integrity | Blame::ApiMisuse));
                }
                prop_assert_eq!(damaged.encode(), bytes);
            }
        }
    }
}

#[test]
fn a_set_that_finds_no_room_for_its_last_piece_changes_nothing() {
    for kind in KeyMapKind::ALL {
        let options = PackOptions { kind, parts: Some(4), ..PackOptions::default() };
        let (key_map, records, _) = packed_with(&options, &varied((0..200).map(|n| 300 + n % 40)));
        let mut editor = Editor::new(&key_map, |number| Ok(records[number as usize].clone()));
        let mut last = 200;
        while editor.set(&key(last), &vec![1; 4 * 128]).is_ok() {
            last += 1;
        }
        // A key that is there keeps its short value where the longer one has no room.
        let refused: Vec<usize> = (0..200)
            .filter(|&number| editor.set(&key(number), &vec![2; 4 * 128]).is_err())
            .collect();
        assert!(!refused.is_empty(), "{kind:?}");
        let (changed, new_map) = editor.finish().expect("these records can be read");
        let key_map = new_map.expect("the stash is used");
        let mut records = records.clone();
        records.iter_mut().zip(0..).for_each(|(record, number)| {
            if let Some(changed) = changed.get(&number) {
                record.clone_from(changed);
            }
        });
        for number in 0..=last {
            let value = match number {
                _ if number == last => None,
                0..200 if refused.contains(&number) => Some(300 + number % 40),
                _ => Some(4 * 128),
            };
            let found = look_up(&key_map, &records, &key(number));
            assert_eq!(found.map(|value| value.len()), value, "{kind:?}: key {number}");
        }
    }
}

#[test]
fn a_list_is_refused_at_the_value_that_breaks_off() {
    let list = encode_list([&b"one"[..], b"", &[7; 200]]);
    assert_eq!(decode_list(&list).expect("a list"), [&b"one"[..], b"", &[7; 200]]);
    for len in 0..list.len() {
        let whole: Vec<&[u8]> = match len {
            4 => vec![b"one"],
            5 => vec![b"one", b""],
            _ => {
                let error = decode_list(&list[..len]).expect_err("it is cut off");
                assert_eq!(error.blame(), Blame::Integrity);
                continue;
            }
        };
        assert_eq!(decode_list(&list[..len]).expect("a shorter list"), whole);
    }
    assert!(values_of_list(&[]).is_err());
    let mut values = values_of_list(&list[..6]).expect("it begins like one");
    assert_eq!(values.next().map(|value| value.expect("a value").len()), Some(3));
    assert!(values.next().is_some_and(|value| value.is_ok()));
    assert!(values.next().is_some_and(|value| value.is_err()));
    assert!(values.next().is_none(), "nothing comes after the first error");
}

#[test]
fn a_table_of_lists_has_all_values_of_a_key_in_their_order() {
    let values = |number: usize| -> Vec<Vec<u8>> {
        (0..number % 7 + 1).map(|value| vec![value as u8; number * 3 % 50]).collect()
    };
    let pairs: Vec<Pair> =
        (0..300).map(|number| (key(number), encode_list(values(number)))).collect();
    for kind in KeyMapKind::ALL {
        for parts in [None, Some(3)] {
            let (key_map, records, _) = packed_with(
                &PackOptions { kind, parts, lists: true, ..PackOptions::default() },
                &pairs,
            );
            let found = |key_map: &KeyMap, records: &[Vec<u8>], number: usize| {
                let list = look_up(key_map, records, &key(number))?;
                let values = decode_list(&list).expect("a list");
                Some(values.into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>())
            };
            for number in 0..300 {
                assert_eq!(found(&key_map, &records, number), Some(values(number)));
            }

            let mut editor = Editor::new(&key_map, |number| Ok(records[number as usize].clone()));
            assert_eq!(editor.set(&key(1), b"one").expect("room"), Effect::Replaced);
            assert_eq!(editor.set_all(&key(2), &[b"b", b"a"]).expect("room"), Effect::Replaced);
            assert_eq!(editor.delete(&key(3)).expect("room"), Effect::Deleted);
            let none: [&[u8]; 0] = [];
            assert_eq!(editor.set_all(&key(4), &none).expect_err("none").blame(), Blame::ApiMisuse);
            let (changed, new_map) = editor.finish().expect("these records can be read");
            let mut after = records.clone();
            changed.into_iter().for_each(|(number, record)| after[number as usize] = record);
            let key_map = new_map.unwrap_or(key_map);
            let expected = [
                Some(vec![b"one".to_vec()]),
                Some(vec![b"b".to_vec(), b"a".to_vec()]),
                None,
                Some(values(4)),
            ];
            for (number, expected) in (1..).zip(expected) {
                assert_eq!(found(&key_map, &after, number), expected);
            }
        }
    }
    let (key_map, records) = packed(&pairs, fixed_seed());
    let mut editor = Editor::new(&key_map, |number| Ok(records[number as usize].clone()));
    let error = editor.set_all(&key(1), &[b"1", b"2"]).expect_err("one value each");
    assert_eq!(error.blame(), Blame::ApiMisuse);
    assert!(editor.set_all(&key(1), &[b"1"]).is_ok());
}

#[test]
fn long_values_are_divided_where_that_saves_a_quarter_and_never_otherwise() {
    // Too many long values for the stash, among short ones: with one part, records would be as wide
    // as they are.
    let lopsided = varied((0..2000).map(|number| if number % 10 == 0 { 20_000 } else { 40 }));
    for kind in KeyMapKind::ALL {
        let (key_map, records, packed) =
            packed_with(&PackOptions { kind, ..PackOptions::default() }, &lopsided);
        let (undivided, ..) =
            packed_with(&PackOptions { kind, parts: Some(1), ..PackOptions::default() }, &lopsided);
        assert!(key_map.parts() > 1, "{key_map:?}");
        assert!(undivided.record_len() >= 20_000 && key_map.record_len() <= 12_000, "{key_map:?}");
        assert!(packed.undivided_record_len().is_some_and(|len| len >= 20_000));
        assert!(key_map.shape().bytes() < undivided.shape().bytes() * 11 / 10);
        for (key, value) in &lopsided {
            assert_eq!(look_up(&key_map, &records, key).as_ref(), Some(value));
        }
    }
    for lengths in [vec![300; 1], vec![4000; 100], vec![32; 3000], (0..900).collect()] {
        for kind in KeyMapKind::ALL {
            let pairs = varied(lengths.iter().copied());
            let (key_map, _, packed) =
                packed_with(&PackOptions { kind, ..PackOptions::default() }, &pairs);
            assert!(packed.undivided_record_len().is_none() && key_map.parts() == 1);
            // The key map is the one that is built without parts.
            assert!(key_map == packed_as(kind, &pairs, fixed_seed()).0);
        }
    }
}

#[test]
fn pieces_that_are_too_wide_for_records_lie_in_the_stash_one_by_one() {
    let few = varied((0..4000).map(|number| if number % 1000 == 0 { 10_000 } else { 100 }));
    let many = varied((0..4000).map(|number| if number % 10 == 0 { 2000 } else { 100 }));
    for kind in KeyMapKind::ALL {
        for (pairs, parts, stashed) in [(&few, 1, 4..=4), (&few, 4, 16..=16), (&many, 8, 0..=20)] {
            let options = PackOptions { kind, parts: Some(parts), ..PackOptions::default() };
            let (key_map, records, _) = packed_with(&options, pairs);
            assert!(stashed.contains(&key_map.stash_entries()), "{key_map:?}");
            assert!(key_map.record_len() < 1500, "{key_map:?}");
            let found = look_up(&key_map, &records, &key(1000));
            assert_eq!(found.as_ref(), Some(&pairs[1000].1));
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let pairs = varied([1, 2]);
    for parts in [0, MOST_PARTS + 1] {
        let options = PackOptions { parts: Some(parts), ..PackOptions::default() };
        let error = pack_with(&options, &pairs[..], fixed_seed()).err().expect("no such parts");
        assert_eq!(error.blame(), Blame::ApiMisuse);
    }
    let options = PackOptions { parts: Some(3), ..PackOptions::default() };
    let (key_map, records, _) = packed_with(&options, &pairs);
    let record = &records[0][..];
    assert_eq!(key_map.piece_in(b"a", 3, record).expect_err("three").blame(), Blame::ApiMisuse);
    assert_eq!(key_map.find(b"a", [record; 2]).expect_err("three").blame(), Blame::ApiMisuse);

    // One part and no lists have an encoding of their own, and no other.
    let encoded = key_map.encode();
    for (parts, lists, piece_len) in
        [(1, 0, 0), (0, 1, 0), (17, 0, 128), (3, 2, 128), (3, 0, 0), (1, 1, 128)]
    {
        let mut bytes = encoded.clone();
        bytes[3..5].copy_from_slice(&[parts, lists]);
        bytes[5..9].copy_from_slice(&u32::to_le_bytes(piece_len));
        let error = KeyMap::decode(&bytes).expect_err("impossible");
        assert!(error.message().contains("parts for pieces of"), "{error}");
    }
    let mut bytes = encoded.clone();
    bytes[2] = 1;
    let error = KeyMap::decode(&bytes).expect_err("no such kind");
    assert!(error.message().contains("does not know its kind, 1"), "{error}");
    for len in 0..encoded.len() {
        assert!(KeyMap::decode(&encoded[..len]).is_err());
    }
}

/// The tags and candidates of all parts follow from the key alone; those of the first are what they
/// are without parts.
#[test]
fn parts_have_hashes_of_their_own_and_the_first_is_the_key_s() {
    let hashes: Vec<_> = hash::KeyHash::of_pieces(fixed_seed(), b"key").take(16).collect();
    assert!(hashes[0] == hash::KeyHash::new(fixed_seed(), b"key"));
    let mut tags: Vec<u64> = hashes.iter().map(|hash| hash.tag).collect();
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), 16);
    let mut reader =
        blake3::Hasher::new_keyed(fixed_seed().as_bytes()).update(b"key").finalize_xof();
    reader.set_position(5 * 32 + 24);
    let mut tag = [0; 8];
    reader.fill(&mut tag);
    assert_eq!(hashes[5].tag, u64::from_le_bytes(tag));
}

/// A table made by `vectors/generate_parts.py`, which shares no code with this crate, and cuts
/// values and places pieces in its own way.
#[test]
fn known_answers() {
    let vectors = vectors("parts.json");
    let encoded = bytes(&vectors["key_map"]);
    let key_map = KeyMap::decode(&encoded).expect("a key map");
    assert_eq!((key_map.kind(), key_map.parts()), (KeyMapKind::Cuckoo, 4));
    assert!(key_map.has_lists() && key_map.stash_entries() > 0 && key_map.encode() == encoded);
    let records: Vec<Vec<u8>> =
        vectors["records"].as_array().expect("a list").iter().map(bytes).collect();
    let lookups = vectors["lookups"].as_array().expect("a list");
    assert!(lookups.len() > 40);
    for lookup in lookups {
        let key = bytes(&lookup["key"]);
        let candidates: Vec<Value> = key_map.candidates(&key).map(Value::from).collect();
        assert_eq!(Value::from(candidates), lookup["candidates"]);
        let list = look_up(&key_map, &records, &key);
        let values = list.as_deref().map(|list| decode_list(list).expect("a list"));
        let expected: Option<Vec<Vec<u8>>> =
            lookup["values"].as_array().map(|values| values.iter().map(bytes).collect());
        assert_eq!(values.map(|values| values.into_iter().map(<[u8]>::to_vec).collect()), expected);
    }
}
