//! Whole generations of lookups, and how much is permuted for them.

use super::*;
use crate::contract::Reserved;
use crate::planted::values_permuted;
use std::collections::VecDeque;

/// Every lookup of a generation, with `in_flight` under way, and edits between if there is one.
fn whole_generation(world: &mut World, sequence: Sequence, in_flight: usize) {
    let mut client = world.client();
    let total = client.supply().total;
    let mut open: VecDeque<(u64, Reserved<HarmonyQuery>)> = VecDeque::new();
    let tell = |world: &World, client: &mut HarmonyClient, (index, reserved)| {
        let record = world.tell(client, &reserved).unwrap().unwrap();
        assert_eq!(*record, world.record(index), "record {index} of {sequence:?}");
    };
    for (number, index) in world.indices(sequence, total).into_iter().enumerate() {
        if in_flight == 1 && number % 11 == 0 {
            let delta = world.edit(3);
            follow(&mut client, &delta).unwrap();
        }
        open.push_back((index, world.reserve(&mut client, index).unwrap()));
        if open.len() >= in_flight {
            tell(world, &mut client, open.pop_front().unwrap());
        }
    }
    open.into_iter().for_each(|lookup| tell(world, &mut client, lookup));
    assert_eq!(client.supply().left(), 0);
    assert!(world.hints_fit(&client));
}

#[test]
fn every_lookup_of_a_generation_finds_its_record() {
    let cuts = [(10, 2), (10, 64), (11, 8), (12, 4), (13, 16), (14, 32)];
    for (number, (k, segment_records)) in cuts.into_iter().enumerate() {
        for (other, records) in
            [(1 << (k - 1)) - 1, (1 << (k - 2)) + 1, 1 << (k - 1)].into_iter().enumerate()
        {
            let mut world = World::with(cut_small(records, 5, segment_records, k));
            let sequence = Sequence::ALL[(number + 2 * other) % 5];
            whole_generation(&mut world, sequence, [1, 3, 8][other]);
        }
    }
}

#[test]
fn whatever_is_looked_up_again_and_again_is_found() {
    for sequence in Sequence::ALL {
        for in_flight in [1, 2, 5, 8] {
            whole_generation(&mut World::cut(700, 9, 8), sequence, in_flight);
        }
    }
}

/// Somebody who knows the permutation, and asks for what lies beside the last record.
#[test]
fn lookups_that_follow_the_permutation_are_right_too() {
    let mut world = World::cut(500, 4, 16);
    let mut client = world.client();
    let mut index = 0;
    for _ in 0..client.supply().total {
        let reserved = world.reserve(&mut client, index).unwrap();
        let others = reserved.queries[0].values.iter().filter(|value| **value < 500);
        let next = others.filter(|value| u64::from(**value) != index).max().copied();
        let record = world.tell(&mut client, &reserved).unwrap().unwrap();
        assert_eq!(*record, world.record(index));
        index = next.map_or(0, u64::from);
    }
}

/// Values permuted for one lookup, on average over a generation of lookups, over `T`.
fn permuted(world: &mut World, sequence: Sequence, forgets: bool) -> f64 {
    let mut client = world.client();
    let total = client.supply().total;
    let before = values_permuted();
    for index in world.indices(sequence, total) {
        if forgets {
            client.history.forget_shortcuts();
        }
        world.get(&mut client, index).unwrap();
    }
    let values = (values_permuted() - before) as f64;
    values / total as f64 / f64::from(world.parameters.segment_records())
}

#[test]
fn a_lookup_permutes_less_than_two_and_a_half_values_for_each_cell() {
    let mut world = World::cut(8192, 2, 32);
    let random = permuted(&mut world, Sequence::Random, false);
    // 1 + 2 ln 2 for the segment and what moves from it, and some for the wanted record.
    assert!((2.3..2.5).contains(&random), "{random}");
}

#[test]
fn a_record_that_is_looked_up_again_and_again_costs_no_more() {
    let mut world = World::cut(8192, 2, 32);
    for sequence in [Sequence::OneForEver, Sequence::FewOverAndOver] {
        let with_shortcuts = permuted(&mut world, sequence, false);
        assert!((2.2..2.6).contains(&with_shortcuts), "{with_shortcuts}");
    }
    let without = permuted(&mut world, Sequence::OneForEver, true);
    assert!(without > 5.0, "{without}");
}

#[test]
fn shortcuts_lead_where_walks_lead() {
    for (records, segment_records) in [(100, 2), (1000, 8), (1024, 32)] {
        let mut world = World::cut(records, 2, segment_records);
        let mut client = world.client();
        let total = client.supply().total;
        for (number, index) in
            world.indices(Sequence::FewOverAndOver, total).into_iter().enumerate()
        {
            world.get(&mut client, index).unwrap();
            if number % 16 != 15 {
                continue;
            }
            let walks = |client: &HarmonyClient| {
                let mut cells: Vec<u32> = (0..records as u32).collect();
                client.history.locate(&mut cells);
                (cells, client.history.all_contents())
            };
            let with_shortcuts = walks(&client);
            let generation = client.generation.encoded().to_vec();
            let (cells, contents) = with_shortcuts.clone();
            // Each record is in the cell that contains it.
            let mut found = client.history.all_cells();
            found.retain(|(_, content)| u64::from(*content) < records);
            found.sort_unstable_by_key(|(_, content)| *content);
            assert!(found.iter().map(|(cell, _)| *cell).eq(cells));
            assert_eq!(contents.len() as u64, client.contents_left());
            client.history.forget_shortcuts();
            assert!(walks(&client) == with_shortcuts && generation == client.generation.encoded());
        }
    }
}
