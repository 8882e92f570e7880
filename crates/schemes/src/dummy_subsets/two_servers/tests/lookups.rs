//! Every record comes back, over any shape, for ever, and after edits.

use super::*;
use privet_core::{Blame, Edit, TableDelta};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_table(records in 1u64..=5000, record_len in 1u64..=300, seed in any::<u8>(), same in any::<bool>()) {
        let mut world = World::new(records, record_len);
        world.rng = SecretRng::from_fixed_seed([seed; 32]);
        let mut client = world.client();
        for _ in 0..40 {
            let index = if same { records / 2 } else { world.rng.below(records) };
            prop_assert_eq!(&world.get(&mut client, index).unwrap()[..], world.record(index));
        }
    }

    #[test]
    fn any_cut(records in 1u64..=3000, log2_partition in 0u32..=13) {
        let shape = TableShape::new(records, 5).unwrap();
        let parameters =
            DummySubsetsParameters::with_partition_records(shape, 1 << log2_partition).unwrap();
        let mut world = World::with(parameters);
        let mut client = world.client();
        for _ in 0..10 {
            let index = world.rng.below(records);
            prop_assert_eq!(&world.get(&mut client, index).unwrap()[..], world.record(index));
        }
    }

    /// Edits and lookups in any order, many edits of one record among them, and then every record.
    #[test]
    fn edits_are_followed(steps in prop::collection::vec((any::<bool>(), 0u64..60, any::<[u8; 3]>()), 1..60)) {
        let mut world = World::new(60, 3);
        let mut client = world.client();
        for (edits, index, bytes) in steps {
            if edits {
                let difference = |at: u64| Edit { index: at % 60, difference: bytes.to_vec() };
                let edits = vec![difference(index), difference(index), difference(index + 7), difference(index)];
                for edit in &edits {
                    let record = &mut world.records[edit.index as usize * 3..][..3];
                    record.iter_mut().zip(&edit.difference).for_each(|(byte, change)| *byte ^= change);
                }
                world.server = World::serve(&world.parameters, &world.records);
                let delta = TableDelta::new(world.parameters.shape(), edits).unwrap();
                client.apply_delta(&delta).unwrap();
            } else {
                prop_assert_eq!(&world.get(&mut client, index).unwrap()[..], world.record(index));
            }
        }
        for index in 0..60 {
            prop_assert_eq!(&world.get(&mut client, index).unwrap()[..], world.record(index));
        }
    }
}

#[test]
fn hints_never_run_out() {
    let mut world = World::new(200, 4);
    let mut client = world.client();
    client.queries = 100;
    // Another client's history has no repeats; in the long run the first one's hints leave more gaps.
    let mut other = world.client();
    other.queries = u64::MAX;
    let singles = u64::from(world.parameters.singles());
    // Many times as many lookups as there are hints.
    for number in 0..20 * singles {
        let index = if number % 8 > 0 { 7 } else { world.rng.below(200) };
        if client.supply().left() == 0 {
            let condensed = client.condense().unwrap();
            client = world.load(&condensed);
            client.queries = 100;
        }
        assert_eq!(&world.get(&mut client, index).unwrap()[..], world.record(index), "{number}");
        world.get(&mut other, number % 200).unwrap();
        let (work, other) = (client.table.find(index).work, other.table.find(3).work);
        assert_eq!(work, other, "after {number} lookups");
    }
}

#[test]
fn hints_are_written_down_anew_only_when_used_up_and_settled() {
    let mut world = World::new(200, 4);
    let mut client = world.client();
    client.queries = 3;
    let refused = |client: &DummySubsetsTwoClient| client.condense().err().unwrap().blame();
    assert_eq!(refused(&client), Blame::ApiMisuse);
    world.get(&mut client, 1).unwrap();
    world.get(&mut client, 2).unwrap();
    assert_eq!(refused(&client), Blame::ApiMisuse);
    let last = world.reserve(&mut client, 3).unwrap();
    assert_eq!(refused(&client), Blame::ApiMisuse, "an answer is missing");
    let index = world.index(0);
    assert_eq!(client.reserve(&index, &mut world.rng).err().unwrap().blame(), Blame::Exhausted);
    world.settle(&mut client, &last);
    client.condense().unwrap();
}

#[test]
fn edits_wait_for_answers_and_fit_the_table() {
    let mut world = World::new(200, 4);
    let mut client = world.client();
    let edit = || vec![Edit { index: 3, difference: vec![1; 4] }];
    let delta = TableDelta::new(world.parameters.shape(), edit()).unwrap();
    let other = TableDelta::new(TableShape::new(201, 4).unwrap(), edit()).unwrap();
    assert_eq!(client.delta_change(&other).err().unwrap().blame(), Blame::ApiMisuse);
    let open = world.reserve(&mut client, 3).unwrap();
    assert_eq!(client.apply_delta(&delta).err().unwrap().blame(), Blame::ApiMisuse);
    world.settle(&mut client, &open);
    client.apply_delta(&delta).unwrap();
}

#[test]
fn the_search_does_the_same_work_for_every_record_and_history() {
    let mut world = World::new(3000, 2);
    let (mut random, mut same) = (world.client(), world.client());
    (random.queries, same.queries) = (u64::MAX, u64::MAX);
    for round in 0..400 {
        let work = |client: &DummySubsetsTwoClient, index| client.table.find(index).work;
        let of_random = work(&random, world.rng.below(3000));
        assert_eq!(of_random, work(&random, 5), "round {round}");
        assert_eq!(of_random, work(&same, 5), "round {round}");
        for _ in 0..10 {
            let index = world.rng.below(3000);
            world.get(&mut random, index).unwrap();
            world.get(&mut same, 5).unwrap();
        }
    }
}
