//! The state through interruptions: a client is killed anywhere between Query, Recover and
//! UpdateHint and goes on from its journal.

use super::*;
use privet_core::Blame;
use proptest::prelude::*;

/// One client and its journal, killed after every change.
pub fn through_crashes<F: TestForm>(mut world: World<F>, steps: Vec<u8>) {
    let generation = world.generation();
    let born = world.announced();
    let mut client = world.load(&generation);
    let mut journal: Vec<Zeroizing<Vec<u8>>> = Vec::new();
    let replay = |journal: &[Zeroizing<Vec<u8>>]| {
        let mut client =
            TapirClient::load(born.clone(), generation.clone(), Kernels::detect()).unwrap();
        journal.iter().for_each(|change| client.apply(change).unwrap());
        client
    };
    for step in steps {
        match step {
            0..6 => {
                let wanted = world.rng.below(world.parameters.shape().records());
                let reserved = client.reserve(&world.index(wanted), &mut world.rng).unwrap();
                journal.push(reserved.change.clone());
                // Killed after the journal record, before or after the queries were sent: they are
                // sent again, and their answers still work.
                client = replay(&journal);
                assert_eq!(client.open(), [reserved.id]);
                let refused = client.reserve(&world.index(wanted), &mut world.rng);
                assert_eq!(refused.err().unwrap().blame(), Blame::ApiMisuse);
                assert_eq!(client.shown(), reserved.queries);
                let answers = world.decoded(&world.answer_bytes(&reserved)).unwrap();
                let change = client.settle(reserved.id, &answers).unwrap();
                journal.push(change);
                // Killed before the record was taken: it is returned again.
                client = replay(&journal);
                let record = client.take_record(reserved.id).unwrap().unwrap();
                assert_eq!(&record[..], world.record(wanted));
                assert!(client.open().is_empty() && client.take_record(reserved.id).is_none());
            }
            _ => {
                let shape = world.parameters.shape();
                let record = |byte: u8| vec![byte; shape.record_len() as usize];
                let index = world.rng.below(shape.records());
                let mut written = Written::from([(index, record(step))]);
                if step % 2 == 0 {
                    written.extend((shape.records()..).zip((0..5).map(record)));
                }
                let delta = world.update(&written);
                journal.push(client.delta_change(&delta).unwrap());
                client = replay(&journal);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn a_client_killed_after_every_change_goes_on_with_merkle_trees(
        records in 2u64..60,
        partition_records in 2u64..12,
        steps in prop::collection::vec(0u8..9, 1..30),
    ) {
        through_crashes(World::<MerkleForm>::cut(records, 3, partition_records), steps);
    }
}

#[test]
fn the_end_survives_as_well() {
    let mut world = World::<MerkleForm>::cut(30, 3, 6);
    let generation = world.generation();
    let mut client = world.load(&generation);
    let reserved = world.reserve(&mut client, 4).unwrap();
    let mut answers = world.answer_bytes(&reserved);
    answers[1][0] ^= 1;
    let end = client.settle(reserved.id, &world.decoded(&answers).unwrap()).unwrap();
    for _ in 0..3 {
        let mut client = world.load(&generation);
        client.apply(&reserved.change).unwrap();
        client.apply(&end).unwrap();
        assert!(client.ended().unwrap().message().starts_with("the second server's answer"));
        assert_eq!(client.supply().used, 1);
        assert!(client.open().is_empty());
        assert_eq!(
            client.take_record(reserved.id).unwrap().err().unwrap().blame(),
            Blame::Integrity
        );
        assert!(client.take_record(reserved.id).is_none());
        let index = world.index(4);
        let refused = client.reserve(&index, &mut world.rng).err().unwrap();
        assert_eq!(refused.blame(), Blame::Integrity);
        assert_eq!(client.condense().unwrap_err().blame(), Blame::Integrity);
        assert!(client.apply(&reserved.change).is_err());
    }
}

#[test]
fn changes_that_are_none_are_refused() {
    let mut world = World::<MerkleForm>::cut(30, 3, 6);
    let mut client = world.client();
    for change in
        [&[][..], &[0], &[9, 9], &[1], &[1, 1], &[2, 0], &[3], &[3, 0], &[3, 9], &[3, 1, 1]]
    {
        assert_eq!(client.apply(change).unwrap_err().blame(), Blame::Corrupted, "{change:?}");
    }
    assert_eq!(&world.fetch(&mut client, 7)[..], world.record(7));
}
