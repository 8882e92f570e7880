//! Edits of the table: hints follow them without a new offline phase.

use super::*;
use crate::contract::Updatable as _;
use privet_core::{Blame, Edit, TableDelta};
use proptest::prelude::*;

/// A random edit of the world's table, which it is then served with.
fn edit<F: AnswerForm>(world: &mut World<F>, count: u64) -> TableDelta {
    let shape = world.parameters.shape();
    let (records, record_len) = (shape.records(), world.parameters.record_len());
    let mut bytes = world.records.clone();
    let edits = (0..count).map(|_| {
        let index = world.rng.below(records);
        let mut difference = vec![0; record_len];
        world.rng.fill(&mut difference);
        let record = &mut bytes[index as usize * record_len..][..record_len];
        record.iter_mut().zip(&difference).for_each(|(byte, change)| *byte ^= change);
        Edit { index, difference }
    });
    let delta = TableDelta::new(shape, edits.collect()).unwrap();
    let rng = std::mem::replace(&mut world.rng, SecretRng::from_fixed_seed([0; 32]));
    *world = World { rng, ..World::of(world.parameters.clone(), bytes) };
    delta
}

for_both_forms!(patched_hints_are_those_of_the_edited_table);

fn patched_hints_are_those_of_the_edited_table<F: AnswerForm>() {
    for (records, record_len) in [(1, 1), (40, 5), (3000, 8)] {
        let mut world = World::<F>::new(records, record_len);
        let prepare = |world: &World<F>| {
            let mut preparation = world.preparation_with(&mut SecretRng::from_fixed_seed([4; 32]));
            preparation.absorb(0, world.server.streamed()).unwrap();
            preparation.finish().unwrap();
            preparation.generation().unwrap().to_vec()
        };
        let mut client = world.load(&prepare(&world));
        let delta = edit(&mut world, 25);
        client.apply_delta(&delta).unwrap();
        assert!(client.table.bytes() == prepare(&world), "every parity and every pair");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn lookups_and_edits_in_any_order(
        records in prop_oneof![1u64..=12, 1u64..=2000],
        seed in any::<u8>(),
        steps in prop::collection::vec(0u8..4, 40),
    ) {
        interleaved::<SingleParity>(records, seed, &steps);
        interleaved::<AllParities>(records, seed, &steps);
    }
}

fn interleaved<F: AnswerForm>(records: u64, seed: u8, steps: &[u8]) {
    let mut world = World::<F>::new(records, 3);
    world.rng = SecretRng::from_fixed_seed([seed; 32]);
    let generation = world.generation(1000);
    let mut client = world.load(&generation);
    let mut changes: Vec<Zeroizing<Vec<u8>>> = Vec::new();
    for step in steps {
        match step {
            0..=2 if client.supply().left() > 0 => {
                let index = world.rng.below(records);
                let reserved = world.reserve(&mut client, index).unwrap();
                let answer = world.answer(&reserved.queries[0]);
                let settled = client.settle(reserved.id, &[answer]).unwrap();
                client.apply(&settled).unwrap();
                changes.extend([reserved.change, settled]);
                let record = client.take_record(reserved.id).unwrap().unwrap();
                assert_eq!(&record[..], world.record(index), "known or not");
            }
            3 => {
                let count = world.rng.below(5);
                let delta = edit(&mut world, count);
                changes.push(client.apply_delta(&delta).unwrap());
            }
            _ => {}
        }
    }
    let mut again = world.load(&generation);
    changes.iter().for_each(|change| again.apply(change).unwrap());
    assert!(snapshot(&again) == snapshot(&client));
}

#[test]
fn an_edit_while_a_lookup_is_open_or_for_another_table_is_refused() {
    let mut world = World::<SingleParity>::new(700, 4);
    let mut client = world.client();
    let delta = TableDelta::new(shape(700, 4), vec![Edit { index: 3, difference: vec![1; 4] }]);
    let delta = delta.unwrap();
    let change = client.delta_change(&delta).unwrap();
    let reserved = world.reserve(&mut client, 9).unwrap();
    assert_eq!(client.apply_delta(&delta).unwrap_err().blame(), Blame::ApiMisuse);
    let before = snapshot(&client);
    assert_eq!(client.apply(&change).unwrap_err().blame(), Blame::Corrupted);
    assert!(before == snapshot(&client));
    world.settle(&mut client, &reserved).unwrap().unwrap();
    client.apply_delta(&delta).unwrap();
    let other = TableDelta::new(shape(701, 4), Vec::new()).unwrap();
    assert_eq!(client.apply_delta(&other).unwrap_err().blame(), Blame::ApiMisuse);
}
