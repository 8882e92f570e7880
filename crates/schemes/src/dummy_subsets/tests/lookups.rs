//! Every record comes back, over any shape and any sequence of queries, and failures are as rare as the formula says.

use super::*;
use crate::contract::Updatable as _;
use crate::test_tables::sequences;
use privet_core::{Blame, Edit, TableDelta};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_table_any_sequence(
        records in 1u64..=5000,
        record_len in 1u64..=300,
        sequence in sequences(),
        seed in any::<u8>(),
    ) {
        let mut world = World::new(records, record_len);
        world.rng = SecretRng::from_fixed_seed([seed; 32]);
        let mut client = world.client();
        for index in world.indices(sequence, 40) {
            prop_assert_eq!(&world.get(&mut client, index).unwrap()[..], world.record(index));
        }
    }

    /// Edits and lookups in any order, many edits of one record among them, and then every record: through hints of the offline phase, through ones that have taken a used hint's place, and
    /// through pairs that were in reserve when the edits came.
    #[test]
    fn edits_are_followed(
        steps in prop::collection::vec((any::<bool>(), 0u64..60, any::<[u8; 3]>()), 1..60),
    ) {
        let mut world = World::new(60, 3);
        let mut client = world.client();
        for (edits, index, bytes) in steps {
            if edits {
                let edit = |at: u64| Edit { index: at % 60, difference: bytes.to_vec() };
                let edits = vec![edit(index), edit(index), edit(index + 7), edit(index)];
                for edit in &edits {
                    let record = &mut world.records[edit.index as usize * 3..][..3];
                    record.iter_mut().zip(&edit.difference).for_each(|(byte, change)| *byte ^= change);
                }
                let view = TableView::new(identity(world.parameters.shape()), &world.records).unwrap();
                world.server =
                    DummySubsetsServer::new(world.parameters.clone(), view, Kernels::detect()).unwrap();
                let delta = TableDelta::new(world.parameters.shape(), edits).unwrap();
                client.apply_delta(&delta).unwrap();
            } else {
                prop_assert_eq!(&world.get(&mut client, index).unwrap()[..], world.record(index));
            }
        }
        for index in (0..60).cycle().take(client.supply().left() as usize) {
            prop_assert_eq!(&world.get(&mut client, index).unwrap()[..], world.record(index));
        }
    }

    #[test]
    fn any_cut_of_a_table(
        records in 1u64..=3000,
        log2_partition in 0u32..=13,
        sequence in sequences(),
    ) {
        let shape = TableShape::new(records, 5).unwrap();
        let parameters = DummySubsetsParameters::with_partition_records(shape, 1 << log2_partition);
        let parameters = parameters.unwrap().with_hint_security(40).unwrap();
        let mut world = World::with(parameters);
        let mut client = world.client();
        let mut failed = 0;
        for index in world.indices(sequence, 20) {
            match world.get(&mut client, index) {
                Ok(record) => prop_assert_eq!(&record[..], world.record(index)),
                Err(_) => failed += 1,
            }
        }
        prop_assert!(failed == 0, "λ_hint = 40 fails with probability e^-20");
    }
}

#[test]
fn a_generation_serves_all_its_queries_whatever_they_are_and_then_says_so() {
    for sequence in Sequence::ALL {
        let mut world = World::new(900, 3);
        let mut client = world.client();
        let total = client.supply().total;
        assert!(total >= 1200, "half of λ_hint times the records of a partition, but for ties");
        for index in world.indices(sequence, total) {
            assert_eq!(&world.get(&mut client, index).unwrap()[..], world.record(index));
        }
        assert_eq!(client.supply().left(), 0);
        let index = world.index(0);
        let refused = client.reserve(&index, &mut world.rng);
        assert_eq!(refused.err().unwrap().blame(), Blame::Exhausted);
    }
}

#[test]
fn no_hint_contains_the_record_as_often_as_the_formula_says() {
    let shape = TableShape::new(400, 1).unwrap();
    let cut = DummySubsetsParameters::with_partition_records(shape, 16).unwrap();
    // 64 hints are the fewest: λ_hint = 3 is what they come to here.
    let parameters = cut.with_hint_security(3).unwrap();
    let expected = parameters.failure_probability();
    assert!((0.05..0.25).contains(&expected), "{expected}");
    let mut world = World::with(parameters);
    let (mut failed, mut asked) = (0, 0);
    for _ in 0..200 {
        // Fresh hints each time: failures of one generation are not independent.
        let client = world.client();
        for index in [0, 1, 17, 399] {
            let index = world.index(index);
            asked += 1;
            failed += u32::from(client.table.find(index.expose()).choose(&mut world.rng).is_none());
        }
    }
    let rate = f64::from(failed) / f64::from(asked);
    let deviation = (expected / f64::from(asked)).sqrt();
    assert!((rate - expected).abs() < 6.0 * deviation, "{rate} observed, {expected} expected");
}

#[test]
fn a_lookup_without_a_hint_sends_a_cover_and_fails() {
    let shape = TableShape::new(4000, 2).unwrap();
    let cut = DummySubsetsParameters::with_partition_records(shape, 64).unwrap();
    let mut world = World::with(cut.with_hint_security(1).unwrap());
    let mut client = world.client();
    let (mut found, mut failed) = (0, 0);
    for index in 0..30 {
        let reserved = world.reserve(&mut client, index * 131).unwrap();
        match world.settle(&mut client, &reserved).unwrap() {
            Ok(record) => {
                found += 1;
                assert_eq!(&record[..], world.record(index * 131));
            }
            Err(error) => {
                failed += 1;
                assert_eq!(error.blame(), Blame::Selective);
            }
        }
    }
    assert!(failed > 5 && found > 3, "{failed} failed, {found} found");
    assert_eq!(client.supply().used, 30, "a failure uses up as much as a success");
}

#[test]
fn every_arm_prepares_the_same_hints() {
    use privet_kernels::Arm;
    let world = World::new(3000, 17);
    let generations = Arm::available().into_iter().map(|arm| {
        let mut preparation = DummySubsetsPreparation::begin(
            world.parameters.clone(),
            world.digest(),
            &mut SecretRng::from_fixed_seed([5; 32]),
            Kernels::with_arm(arm).unwrap(),
        )
        .unwrap();
        preparation.absorb(0, &world.records).unwrap();
        preparation.finish().unwrap();
        preparation.generation().unwrap().to_vec()
    });
    let generations: Vec<_> = generations.collect();
    assert!(generations.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn edits_wait_for_answers_and_fit_the_table() {
    let mut world = World::new(200, 4);
    let mut client = world.client();
    let edits = || vec![Edit { index: 3, difference: vec![1; 4] }];
    let delta = TableDelta::new(world.parameters.shape(), edits()).unwrap();
    let other = TableDelta::new(TableShape::new(201, 4).unwrap(), edits()).unwrap();
    assert_eq!(client.apply_delta(&other).err().unwrap().blame(), Blame::ApiMisuse);
    let open = world.reserve(&mut client, 3).unwrap();
    assert_eq!(client.apply_delta(&delta).err().unwrap().blame(), Blame::ApiMisuse);
    world.settle(&mut client, &open).unwrap().unwrap();
    client.apply_delta(&delta).unwrap();
}
