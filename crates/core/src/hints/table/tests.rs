//! The table under repeated lookups.

use super::*;
use std::collections::HashMap;

const RECORDS: u64 = 1 << 10;
const PARTITION: u64 = 32;
const HINTS: u32 = 16 * 80;
const LOOKUPS: u32 = 400;

/// A table of hints that have a record in every partition, one for each id from 0 on.
fn table() -> HintTable {
    let shape = TableShape::new(RECORDS, 4).unwrap();
    let form = HintForm {
        partitions: Partitions::new(shape, PARTITION, 1, 1).unwrap(),
        key: Secret::new([9; 16]),
        selects: false,
        security: 40,
    };
    let hint = |id| Some(LiveHint { id, cutoff: 0, above: false, extra: None });
    let parities = Zeroizing::new(vec![0; HINTS as usize * 4]);
    HintTable::new(form, (0..HINTS).map(hint), parities, 0, Kernels::detect()).unwrap()
}

/// How many groups may have live hints after ids below `ids` were used.
fn groups_of(ids: u32) -> usize {
    ids.div_ceil(GROUP) as usize
}

/// The memory of all lists of the table: how much of each is in use, and how much is allocated.
fn footprint(table: &HintTable) -> Vec<usize> {
    let HintTable { rows, fingerprints, groups, live, rows_of, bytes, .. } = table;
    let lens =
        [rows.len(), fingerprints.len(), groups.len(), live.len(), rows_of.len(), bytes.len()];
    let room = [
        rows.capacity(),
        fingerprints.capacity(),
        groups.capacity(),
        live.capacity(),
        rows_of.capacity(),
        bytes.capacity(),
    ];
    lens.into_iter().chain(room).collect()
}

/// The footprints after each of a number of lookups. `search_len` gets the number of used ids.
fn footprints(record: impl Fn(u32) -> u64, search_len: impl Fn(u32) -> usize) -> Vec<Vec<usize>> {
    let (mut table, mut rng) = (table(), SecretRng::from_os().unwrap());
    (0..LOOKUPS)
        .map(|lookup| {
            let index = record(lookup);
            let row = table.find(index).choose(&mut rng).unwrap();
            let id = HINTS + lookup;
            let successor = LiveHint { id, cutoff: 0, above: false, extra: Some(index) };
            table.exchange(row, successor, search_len(id + 1)).unwrap();
            footprint(&table)
        })
        .collect()
}

fn the_same(_lookup: u32) -> u64 {
    77
}

fn always_another(lookup: u32) -> u64 {
    u64::from(lookup) * 2
}

#[test]
fn the_memory_does_not_tell_how_lookups_repeat() {
    let repeated = footprints(the_same, groups_of);
    assert_eq!(repeated, footprints(always_another, groups_of));
    // No list is ever reallocated.
    let room = |footprint: &Vec<usize>| footprint[6..].to_vec();
    assert!(repeated.iter().all(|footprint| room(footprint) == room(&repeated[0])));
}

#[test]
fn memory_that_tells_how_lookups_repeat_is_noticed() {
    // A planted mistake: places are added when they are needed, as in a map of live groups.
    let when_needed = |_ids| 0;
    assert_ne!(footprints(the_same, when_needed), footprints(always_another, when_needed));
}

#[test]
fn hints_are_where_a_map_would_have_them() {
    let (mut table, mut rng) = (table(), SecretRng::from_os().unwrap());
    let mut expected: HashMap<u32, u32> = (0..HINTS).map(|id| (id, id)).collect();
    for lookup in 0..LOOKUPS {
        // Young hints are used more often, so that groups become empty and their places are used
        // again.
        let age = 1 + rng.below(if lookup % 3 == 0 { u64::from(HINTS) } else { 16 }) as u32;
        let id = HINTS + lookup;
        let Some(row) = expected.remove(&(id - age)) else { continue };
        assert_eq!(table.row_of(id - age), Some(row));
        let successor = LiveHint { id, cutoff: lookup, above: lookup % 2 == 0, extra: Some(5) };
        table.exchange(row, successor, groups_of(id + 1)).unwrap();
        expected.insert(id, row);
        assert_eq!(table.hint(row), Some(successor));
        assert_eq!(table.row_of(id - age), None);
    }
    for id in 0..HINTS + LOOKUPS {
        assert_eq!(table.row_of(id), expected.get(&id).copied(), "hint {id}");
    }
}

#[test]
fn stored_hints_that_contradict_each_other_are_refused() {
    let load = |ids: [u32; 2], extra| {
        let shape = TableShape::new(RECORDS, 4).unwrap();
        let form = HintForm {
            partitions: Partitions::new(shape, PARTITION, 1, 1).unwrap(),
            key: Secret::new([9; 16]),
            selects: false,
            security: 40,
        };
        let hint = |id| Some(LiveHint { id, cutoff: 0, above: false, extra });
        let parities = Zeroizing::new(vec![0; 8]);
        HintTable::new(form, ids.into_iter().map(hint), parities, 0, Kernels::detect())
    };
    assert!(load([9, 3], Some(RECORDS - 1)).is_ok());
    assert_eq!(load([9, 3], Some(RECORDS)).err().unwrap().blame(), crate::Blame::Corrupted);
    assert_eq!(load([9, 9], None).err().unwrap().blame(), crate::Blame::Corrupted);
}
