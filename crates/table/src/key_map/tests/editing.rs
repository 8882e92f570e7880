//! Tables that change: what an editor does, compared with a plain map.

use super::*;
use std::collections::{BTreeMap, HashMap};

#[derive(Clone)]
pub(super) struct Table {
    pub(super) key_map: KeyMap,
    pub(super) records: Vec<Vec<u8>>,
}

/// A key, and its new value; `None` deletes it.
type Operation = (Vec<u8>, Option<Vec<u8>>);

impl Table {
    pub(super) fn new(kind: KeyMapKind, pairs: &[Pair]) -> Self {
        let (key_map, records) = packed_as(kind, pairs, fixed_seed());
        Self { key_map, records }
    }

    /// A cuckoo table without entries, and without a stash; each record has room for `slots` values
    /// of one byte.
    fn empty(records: u64, slots: u64) -> Self {
        let shape = TableShape::new(records, slots * entry::entry_len(1)).expect("valid");
        let (rule, parts, stash) = (Rule::TwoCandidates, Parts::ONE, Vec::new());
        let (seed, keys, entry_bytes, lists) = (fixed_seed(), 0, 0, false);
        let key_map = KeyMap {
            seed,
            keys,
            shape,
            entry_bytes,
            key_form: KeyForm::default(),
            rule,
            parts,
            lists,
            stash,
        };
        let record = vec![0; shape.record_len() as usize];
        Self { key_map, records: vec![record; records as usize] }
    }

    /// Does the operations in one batch, and returns the effect of each and which records changed.
    fn edit(&mut self, operations: &[Operation]) -> (Vec<Result<Effect>>, Vec<u64>) {
        let mut editor =
            Editor::new(&self.key_map, |number| Ok(self.records[number as usize].clone()));
        let effects = operations
            .iter()
            .map(|(key, value)| match value {
                Some(value) => editor.set(key, value),
                None => editor.delete(key),
            })
            .collect();
        let (records, key_map) = editor.finish().expect("these records can be read");
        let changed = records.keys().copied().collect();
        for (number, record) in records {
            assert_eq!(record.len() as u64, self.key_map.record_len());
            assert!(self.records[number as usize] != record, "a record is said to have changed");
            self.records[number as usize] = record;
        }
        if let Some(key_map) = key_map {
            assert!(key_map != self.key_map, "the key map is said to have changed");
            let decoded = KeyMap::decode(&key_map.encode()).expect("just encoded");
            assert!(decoded == key_map);
            self.key_map = key_map;
        }
        (effects, changed)
    }

    pub(super) fn set(&mut self, key: &[u8], value: &[u8]) -> Result<Effect> {
        let (mut effects, _) = self.edit(&[(key.to_vec(), Some(value.to_vec()))]);
        effects.pop().expect("one operation")
    }

    pub(super) fn delete(&mut self, key: &[u8]) -> Effect {
        let (mut effects, _) = self.edit(&[(key.to_vec(), None)]);
        effects.pop().expect("one operation").expect("nothing is in the way")
    }

    /// The tags in all records, each with the record in which it is.
    fn homes(&self) -> HashMap<u64, usize> {
        let mut homes = HashMap::new();
        for (number, record) in self.records.iter().enumerate() {
            entry::for_each_entry(record, |tag, _| {
                assert!(homes.insert(tag, number).is_none(), "an entry lies in two records");
            })
            .expect("well-formed");
        }
        homes
    }

    /// Checks that the table has what `oracle` has for each of `keys`, and nothing else.
    fn check(&self, oracle: &BTreeMap<Vec<u8>, Vec<u8>>, keys: &[Vec<u8>]) {
        for key in keys {
            assert_eq!(look_up(&self.key_map, &self.records, key).as_ref(), oracle.get(key));
        }
        let entries = self.homes().len() + self.key_map.stash.len();
        assert_eq!(entries, oracle.len());
    }
}

pub(super) fn key(number: usize) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// Lengths of values: all equal, or mixed.
fn lengths(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<usize>> {
    let equal = (0usize..20, count.clone()).prop_map(|(len, count)| vec![len; count]);
    prop_oneof![equal, prop::collection::vec(prop_oneof![0usize..40, 100usize..300], count)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Every operation is done twice, once by an editor of its own and once by an editor that does
    /// several.
    #[test]
    fn any_history_leaves_what_a_plain_map_has(
        initial in lengths(1..60),
        history in prop::collection::vec((0usize..80, prop::option::weighted(0.7, any::<u8>())), 0..150),
        new_lengths in lengths(1..20),
        batch in 1usize..20,
    ) {
        let keys: Vec<Vec<u8>> = (0..80).map(key).collect();
        let pairs = pairs_of_lengths(initial);
        let operations: Vec<Operation> = history
            .iter()
            .map(|&(number, byte)| {
                let value = |byte| vec![byte; new_lengths[usize::from(byte) % new_lengths.len()]];
                (key(number), byte.map(value))
            })
            .collect();
        for kind in KeyMapKind::ALL {
            let mut table = Table::new(kind, &pairs);
            let mut oracle: BTreeMap<Vec<u8>, Vec<u8>> = pairs.iter().cloned().collect();
            for operations in operations.chunks(batch) {
                let before_batch = table.clone();
                let mut singly = Vec::new();
                for operation in operations {
                    let before = table.clone();
                    let (mut effects, changed) = table.edit(std::slice::from_ref(operation));
                    let effect = effects.pop().expect("one operation");
                    check_effect(&before, &table, operation, &effect, &mut oracle);
                    check_changed(&before, &table, &changed);
                    singly.push(effect.map_err(|error| error.message().to_owned()));
                }
                table.check(&oracle, &keys);

                let mut together = before_batch;
                let (effects, _) = together.edit(operations);
                let effects: Vec<_> = effects
                    .into_iter()
                    .map(|effect| effect.map_err(|error| error.message().to_owned()))
                    .collect();
                prop_assert_eq!(effects, singly);
                prop_assert!(together.key_map == table.key_map && together.records == table.records);
            }
        }
    }
}

fn check_effect(
    before: &Table,
    after: &Table,
    (key, value): &Operation,
    effect: &Result<Effect>,
    oracle: &mut BTreeMap<Vec<u8>, Vec<u8>>,
) {
    let expected = match (oracle.contains_key(key), value) {
        (false, Some(_)) => Effect::Inserted,
        (true, Some(_)) => Effect::Replaced,
        (true, None) => Effect::Deleted,
        (false, None) => Effect::Absent,
    };
    let fits = |value: &Vec<u8>| entry::entry_len(value.len()) <= before.key_map.record_len();
    match effect {
        Ok(effect) => {
            assert_eq!(*effect, expected);
            match value {
                Some(value) => oracle.insert(key.clone(), value.clone()),
                None => oracle.remove(key),
            };
        }
        Err(error) => {
            let value = value.as_ref().expect("a key can always be deleted");
            let blame = if fits(value) { Blame::Exhausted } else { Blame::ApiMisuse };
            assert_eq!(error.blame(), blame);
            assert!(before.key_map == after.key_map && before.records == after.records);
        }
    }
}

/// Checks that no more records change than the operation can need: one, and one more for each entry
/// that moved.
fn check_changed(before: &Table, after: &Table, changed: &[u64]) {
    let (old_homes, new_homes) = (before.homes(), after.homes());
    let moves = old_homes
        .iter()
        .filter(|(tag, home)| new_homes.get(tag).is_some_and(|new_home| new_home != *home))
        .count();
    assert!(changed.len() <= moves + 1);
    if before.key_map.kind() == KeyMapKind::Buckets {
        assert_eq!(moves, 0);
    }
}

/// Whether `key` can be given a slot besides those of the others, by the method of augmenting
/// paths, which knows nothing of records or of tags.
fn has_slot<'a>(
    key: &'a [u8],
    candidates: &HashMap<&'a [u8], Vec<u64>>,
    slots: u64,
    holders: &mut HashMap<(u64, u64), &'a [u8]>,
    tried: &mut std::collections::HashSet<(u64, u64)>,
) -> bool {
    for record in &candidates[key] {
        for slot in (0..slots).map(|slot| (*record, slot)) {
            if !tried.insert(slot) {
                continue;
            }
            let holder = holders.get(&slot).copied();
            if holder.is_none_or(|holder| has_slot(holder, candidates, slots, holders, tried)) {
                holders.insert(slot, key);
                return true;
            }
        }
    }
    false
}

#[test]
fn a_key_is_refused_only_if_no_arrangement_of_all_entries_has_room_for_it() {
    let (mut refused, mut moved) = (0, 0);
    for (records, slots) in [(1, 3), (2, 1), (3, 2), (8, 1), (13, 2), (24, 3), (100, 1)] {
        let mut table = Table::empty(records, slots);
        let keys: Vec<Vec<u8>> = (0..2 * (records * slots) as usize).map(key).collect();
        let candidates =
            keys.iter().map(|key| (&key[..], table.key_map.candidates(key).collect())).collect();
        let mut holders = HashMap::new();
        for key in &keys {
            let has_slot = has_slot(key, &candidates, slots, &mut holders, &mut Default::default());
            let (effects, changed) = table.edit(&[(key.clone(), Some(vec![1]))]);
            match &effects[0] {
                Ok(effect) => assert!(has_slot && *effect == Effect::Inserted),
                Err(error) => assert!(!has_slot && error.blame() == Blame::Exhausted),
            }
            refused += usize::from(!has_slot);
            moved += usize::from(changed.len() > 1);
        }
        assert_eq!(table.homes().len(), holders.len());
    }
    assert!(refused > 20 && moved > 10, "{refused} refused, {moved} by moving others");
}

#[test]
fn keys_come_and_go_at_nine_tenths_without_a_new_key_map() {
    let mut table =
        Table::new(KeyMapKind::Cuckoo, &pairs_of_lengths(std::iter::repeat_n(32, 4000)));
    assert!(table.key_map.load() > 0.89, "{}", table.key_map.load());
    let before = table.key_map.clone();
    let mut by_records_changed = [0; 7];
    for number in 4000..8000 {
        assert_eq!(table.delete(&key(number - 4000)), Effect::Deleted);
        let (effects, changed) = table.edit(&[(key(number), Some(vec![number as u8; 32]))]);
        assert_eq!(*effects[0].as_ref().expect("there is room"), Effect::Inserted);
        by_records_changed[changed.len()] += 1;
    }
    assert!(table.key_map == before);
    // Two records on average, of which one is the fewest possible.
    let changed: usize =
        (0..).zip(by_records_changed).map(|(records, times)| records * times).sum();
    assert!(by_records_changed[0] == 0 && changed < 2 * 4000, "{by_records_changed:?}");
    assert_eq!(table.homes().len(), 4000);
    for number in [4000, 5000, 7999] {
        let value = look_up(&table.key_map, &table.records, &key(number));
        assert_eq!(value, Some(vec![number as u8; 32]));
    }
}

#[test]
fn a_full_table_is_left_as_it_is_and_says_so() {
    for kind in KeyMapKind::ALL {
        let mut table = Table::new(kind, &pairs_of_lengths(std::iter::repeat_n(20, 640)));
        let mut last = 640;
        let error = loop {
            match table.set(&key(last), &[9; 20]) {
                Ok(effect) => assert_eq!(effect, Effect::Inserted),
                Err(error) => break error,
            }
            last += 1;
        };
        assert_eq!(
            error.message(),
            "the table is full: the records of this key have no room for a value of 20 bytes, and \
             neither has the stash, with 40 of at most 40 values in 1280 of at most 65536 bytes; \
             build the table anew"
        );
        let before = table.clone();
        let error = table.set(&key(last), &[9; 20]).expect_err("still full");
        assert_eq!(error.blame(), Blame::Exhausted);
        assert!(before.key_map == table.key_map && before.records == table.records);
        for number in 0..last {
            assert!(look_up(&table.key_map, &table.records, &key(number)).is_some());
        }

        // Values can be replaced all the same, in records and in the stash.
        for number in 0..last {
            assert_eq!(table.set(&key(number), &[7; 20]).expect("fits"), Effect::Replaced);
        }
        // When the neighbours are gone there is room for the key that was refused.
        let candidates: Vec<u64> = table.key_map.candidates(&key(last)).collect();
        for number in 0..last {
            if table.key_map.candidates(&key(number)).any(|record| candidates.contains(&record)) {
                table.delete(&key(number));
            }
        }
        assert_eq!(table.set(&key(last), &[9; 20]).expect("there is room"), Effect::Inserted);
        let value = look_up(&table.key_map, &table.records, &key(last));
        assert_eq!(value, Some(vec![9; 20]));
    }
}

#[test]
fn a_key_in_the_stash_goes_back_to_a_record_when_it_is_set_and_there_is_room() {
    for kind in KeyMapKind::ALL {
        let mut table = Table::new(kind, &pairs_of_lengths(std::iter::repeat_n(20, 640)));
        let mut last = 640;
        while table.key_map.stash_entries() == 0 {
            table.set(&key(last), &[9; 20]).expect("the stash is empty");
            last += 1;
        }
        let stashed = key(last - 1);
        // No room yet, and a value of another length may stay there.
        table.set(&stashed, &[8; 21]).expect("the stash has room");
        assert_eq!((table.key_map.stash_entries(), table.key_map.stash_bytes()), (1, 21));
        let candidates: Vec<u64> = table.key_map.candidates(&stashed).collect();
        for number in 0..last - 1 {
            if table.key_map.candidates(&key(number)).any(|record| candidates.contains(&record)) {
                table.delete(&key(number));
            }
        }
        assert_eq!(table.key_map.stash_entries(), 1);
        assert_eq!(table.set(&stashed, &[7; 20]).expect("there is room"), Effect::Replaced);
        assert_eq!(table.key_map.stash_entries(), 0);
        assert_eq!(look_up(&table.key_map, &table.records, &stashed), Some(vec![7; 20]));
    }
}

#[test]
fn a_value_that_fits_takes_the_place_of_the_one_before() {
    for kind in KeyMapKind::ALL {
        let mut table = Table::new(kind, &pairs_of_lengths(std::iter::repeat_n(20, 500)));
        let homes = table.homes();
        for number in 0..500 {
            for len in [20, 15, 20] {
                let (_, changed) = table.edit(&[(key(number), Some(vec![!(number as u8); len]))]);
                assert_eq!(changed.len(), 1);
            }
        }
        assert_eq!(table.homes(), homes);
    }
}

#[test]
fn the_stash_has_a_sixteenth_of_the_keys_and_a_fiftieth_of_the_bytes() {
    let mut key_map = Table::empty(1, 1).key_map;
    for (keys, entries) in
        [(0, 0), (1, 1), (15, 15), (16, 16), (200, 16), (272, 17), (1 << 20, 1 << 16)]
    {
        key_map.keys = keys;
        assert_eq!(edit::stash_limits(&key_map), (entries, 64 << 10));
    }
    key_map.entry_bytes = 5_000_000;
    assert_eq!(edit::stash_limits(&key_map).1, 100_000);
}

/// A builder's stash limits follow from all values. An editor knows only the number of keys and the
/// bytes of entries in records, so a stash may exceed its limits.
#[test]
fn a_stash_beyond_the_limits_stays_and_takes_no_more() {
    let mut table = Table::empty(1, 250);
    let key_of_record = key(0);
    table.set(&key_of_record, &[0; 2490]).expect("there is room");
    let tag = |number: usize| hash::KeyHash::new(fixed_seed(), &key(number)).tag;
    table.key_map.stash = (1..=40).map(|number| (tag(number), vec![1; 2000])).collect();
    table.key_map.stash.sort_unstable();
    table.key_map.keys = 1000;
    assert!(table.key_map.stash_bytes() > placement::STASH_BYTES);

    for (number, len) in [(50, 2000), (50, 0), (1, 2001)] {
        let error =
            table.set(&key(number), &vec![2; len]).map(|_| ()).expect_err("beyond the limits");
        assert_eq!(error.blame(), Blame::Exhausted);
    }
    for len in [2000, 1999] {
        assert_eq!(
            table.set(&key(1), &vec![2; len]).expect("no more than before"),
            Effect::Replaced
        );
        assert_eq!(look_up(&table.key_map, &table.records, &key(1)), Some(vec![2; len]));
    }
}

#[test]
fn what_comes_to_nothing_changes_nothing() {
    for kind in KeyMapKind::ALL {
        let mut table = Table::new(kind, &pairs_of_lengths(std::iter::repeat_n(20, 100)));
        let value = |number: usize| Some(vec![number as u8; 20]);
        let (effects, changed) = table.edit(&[
            (key(3), value(4)),
            (key(5), None),
            (key(200), None),
            (key(5), value(5)),
            (key(3), value(3)),
        ]);
        let effects: Vec<Effect> =
            effects.into_iter().map(|effect| effect.expect("fits")).collect();
        use Effect::{Absent, Deleted, Inserted, Replaced};
        assert_eq!(effects, [Replaced, Deleted, Absent, Inserted, Replaced]);
        assert_eq!(changed, [0; 0]);
    }
}

#[test]
fn a_value_beyond_the_records_goes_to_the_stash_while_that_has_room() {
    let pairs = pairs_of_lengths((0..320).map(|number| if number == 0 { 5000 } else { 20 }));
    for kind in KeyMapKind::ALL {
        let mut table = Table::new(kind, &pairs);
        assert_eq!(table.key_map.stash_entries(), 1);
        // One that was there, one from a record, and a new one.
        for (entries, (key, effect)) in
            [(key(0), Effect::Replaced), (key(1), Effect::Replaced), (key(1000), Effect::Inserted)]
                .into_iter()
                .enumerate()
        {
            assert_eq!(table.set(&key, &[1; 5000]).expect("room in the stash"), effect);
            assert_eq!(table.key_map.stash_entries(), entries as u64 + 1);
            assert_eq!(look_up(&table.key_map, &table.records, &key), Some(vec![1; 5000]));
        }
        let before = table.key_map.clone();
        let error = table.set(&key(2), &[1; 70_000]).expect_err("too long");
        assert_eq!(error.blame(), Blame::ApiMisuse);
        let width =
            format!("takes 70011 bytes, more than the {} bytes of a record", before.record_len());
        assert!(error.message().contains(&width), "{error}");
        assert!(table.key_map == before);
        assert_eq!(table.delete(&key(0)), Effect::Deleted);
        assert_eq!((table.key_map.stash_entries(), table.key_map.keys()), (2, 320));
        // A value that fits goes back to a record.
        assert_eq!(table.set(&key(1), &[2; 20]).expect("fits"), Effect::Replaced);
        assert_eq!(table.key_map.stash_entries(), 1);
    }
}

#[test]
fn records_that_cannot_be_right_are_refused() {
    let table = Table::new(KeyMapKind::Cuckoo, &pairs_of_lengths(std::iter::repeat_n(20, 100)));
    let record_len = table.key_map.record_len() as usize;
    for (read, blame) in [
        (Ok(vec![0xff; record_len]), Blame::Corrupted),
        (Ok(vec![0; record_len + 1]), Blame::ApiMisuse),
        (Err(()), Blame::Unavailable),
    ] {
        let read = |_| read.clone().map_err(|()| Error::unavailable("the disk is gone"));
        let mut editor = Editor::new(&table.key_map, read);
        assert_eq!(editor.set(b"key 1", b"").expect_err("no record").blame(), blame);
        assert_eq!(editor.delete(b"key 1").expect_err("no record").blame(), blame);
        assert!(editor.finish().expect("nothing changed").0.is_empty());
    }
}

/// An entry that lies in both of its candidates would be in one of them twice if it were moved.
#[test]
fn a_table_with_an_entry_in_two_records_is_not_made_worse() {
    let mut table = Table::empty(8, 2);
    let candidates = |key: &[u8]| {
        let mut candidates: Vec<u64> = table.key_map.candidates(key).collect();
        candidates.sort_unstable();
        candidates
    };
    let keys_of = |pair: [u64; 2]| (0..).map(key).filter(move |key| candidates(key) == pair);
    let twins: Vec<Vec<u8>> = keys_of([0, 1]).take(4).collect();
    let doubled = keys_of([0, 2]).next().expect("there is one");
    let record = |keys: &[&Vec<u8>]| {
        let mut tags: Vec<u64> =
            keys.iter().map(|key| hash::KeyHash::new(fixed_seed(), key).tag).collect();
        tags.sort_unstable();
        let mut record = Vec::new();
        tags.into_iter().for_each(|tag| entry::write_entry(&mut record, tag, b"v"));
        record.resize(table.key_map.record_len() as usize, 0);
        record
    };
    let [zero, one, two] =
        [record(&[&twins[0], &doubled]), record(&[&twins[1], &twins[2]]), record(&[&doubled])];
    table.records.splice(0..3, [zero, one, two]);
    let before = table.records.clone();
    let error = table.set(&twins[3], b"v").expect_err("the way leads through the damage");
    assert_eq!(error.blame(), Blame::Corrupted);
    assert!(table.records == before);
    // Deleting it mends the table.
    assert_eq!(table.delete(&doubled), Effect::Deleted);
    assert_eq!(table.homes().len(), 3);
    assert_eq!(table.set(&twins[3], b"v").expect("there is room"), Effect::Inserted);
}
