//! Updates: added and edited records, new partitions, and servers that send different updates.

use super::*;
use crate::conformance::hinted::follow;
use crate::registry::{self, PARTITION_RECORDS, Tuning};
use privet_core::{Blame, Epoch, TableIdentity};
use proptest::prelude::*;

/// A batch: at most `edits` records somewhere, and `adds` new ones.
fn batch<F: TestForm>(world: &mut World<F>, edits: u64, adds: u64, byte: u8) -> Written {
    let shape = world.parameters.shape();
    let len = shape.record_len() as usize;
    let edited = (0..edits).map(|k| (world.rng.below(shape.records()), vec![byte ^ k as u8; len]));
    let mut written: Written = edited.collect();
    let added = (0..adds).map(|k| vec![byte ^ 0x80 ^ k as u8; len]);
    written.extend((shape.records()..).zip(added));
    written
}

/// After each batch, the old client and a fresh one read the same table, and the server equals a
/// fresh one.
pub fn updates<F: TestForm>(mut world: World<F>, batches: &[(u64, u64)], lookups: u64) {
    let mut client = world.client();
    for (number, (edits, adds)) in (1u8..).zip(batches) {
        let update = batch(&mut world, *edits, *adds, number);
        let delta = world.update(&update);
        follow(&mut client, &delta).unwrap();
        assert_eq!(client.parameters().shape(), delta.shape_after());
        let fresh = server(&world.parameters, &world.records);
        assert!(fresh.held() == world.server.held(), "another table or announcement");
        let records = world.parameters.shape().records();
        let mut anew = world.client();
        for _ in 0..lookups {
            let index = world.rng.below(records);
            assert_eq!(&world.fetch(&mut client, index)[..], world.record(index));
            assert_eq!(&world.fetch(&mut anew, index)[..], world.record(index));
        }
        // What a new server would answer is what the updated one answers.
        let reserved = world.reserve(&mut anew, records - 1).unwrap();
        assert!(answers_of(&fresh, &world.parameters, &reserved) == world.answer_bytes(&reserved));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn clients_follow_with_merkle_trees(
        records in 1u64..60,
        record_len in 1u64..12,
        partition_records in 2u64..12,
        batches in prop::collection::vec((0u64..20, 0u64..20), 1..5),
    ) {
        updates(World::<MerkleForm>::cut(records, record_len, partition_records), &batches, 10);
    }
}

#[test]
fn an_update_waits_for_the_lookup_under_way() {
    let mut world = World::<MerkleForm>::cut(20, 3, 5);
    let mut client = world.client();
    let reserved = world.reserve(&mut client, 3).unwrap();
    let before = world.decoded(&world.answer_bytes(&reserved)).unwrap();
    let update = batch(&mut world, 2, 1, 9);
    let delta = world.update(&update);
    assert_eq!(client.delta_change(&delta).unwrap_err().blame(), Blame::ApiMisuse);
    let change = client.settle(reserved.id, &before).unwrap();
    client.apply(&change).unwrap();
    follow(&mut client, &delta).unwrap();
    assert_eq!(&world.fetch(&mut client, 20)[..], world.record(20));
}

#[test]
fn stale_answers_end_it() {
    // A server that has missed the update, or hides it, answers from the table before.
    let mut world = World::<MerkleForm>::cut(20, 3, 5);
    let mut client = world.client();
    let stale = server(&world.parameters, &world.records);
    let before = world.parameters.clone();
    let update = batch(&mut world, 20, 0, 9);
    let delta = world.update(&update);
    follow(&mut client, &delta).unwrap();
    let reserved = world.reserve(&mut client, 3).unwrap();
    let stale = answers_of(&stale, &before, &reserved);
    let answers = [stale[0].clone(), world.answer_bytes(&reserved)[1].clone()];
    let change = client.settle(reserved.id, &world.decoded(&answers).unwrap()).unwrap();
    client.apply(&change).unwrap();
    assert!(client.ended().unwrap().message().starts_with("the first server's answer"));
}

#[test]
fn deltas_that_do_not_fit_change_nothing() {
    let mut world = World::<MerkleForm>::cut(20, 3, 5);
    let mut client = world.client();
    let update = batch(&mut world, 2, 7, 9);
    let delta = world.update(&update);
    let (before, after) = (delta.shape(), delta.shape_after());
    let with = |before, after, commitments: &[u8]| {
        TableDelta::growing(before, after, delta.edits().to_vec(), commitments.to_vec()).unwrap()
    };
    // Invalid commitments from servers that agree on them: the client uses nothing and loses
    // nothing.
    for len in 0..delta.commitments().len() {
        let short = with(before, after, &delta.commitments()[..len]);
        assert_eq!(
            follow(&mut client, &short).unwrap_err().blame(),
            Blame::PeerMisbehaved,
            "{len}"
        );
    }
    // Another table.
    let other = with(after, after, delta.commitments());
    assert_eq!(follow(&mut client, &other).unwrap_err().blame(), Blame::ApiMisuse);
    follow(&mut client, &delta).unwrap();
    for index in 0..27 {
        assert_eq!(&world.fetch(&mut client, index)[..], world.record(index));
    }
}

/// Through the registry, as the session does it: both servers' updates are compared, and a
/// difference is the end.
#[test]
fn servers_that_tell_different_updates_end_it() {
    let tuning = Tuning::default().with(&PARTITION_RECORDS, 5u64);
    let identity = identity(20, 3);
    let plan = registry::plan(SchemeId::TapirMerkle, &identity, &tuning).unwrap();
    let mut world = World::<MerkleForm>::cut(20, 3, 5);
    // The registry chooses the levels to keep by its own rule.
    world.parameters = TapirParameters::decode(&identity, &plan.parameters).unwrap();
    world.server = server(&world.parameters, &world.records);
    let generation = world.generation();
    let update = batch(&mut world, 2, 1, 9);
    let delta = world.update(&update);
    let load = || {
        registry::hinted_client(plan.clone(), &identity, generation.clone(), Kernels::detect())
            .unwrap()
    };
    let after = TableIdentity { epoch: Epoch(1), shape: delta.shape_after(), ..identity };
    let (mut edits, mut commitments) = (delta.edits().to_vec(), delta.commitments().to_vec());
    edits[0].1[0] ^= 1;
    if let Some(last) = commitments.last_mut() {
        *last ^= 1;
    }
    let growing = |edits: &[(u64, Vec<u8>)], commitments: &[u8]| {
        let (before, after) = (delta.shape(), delta.shape_after());
        TableDelta::growing(before, after, edits.to_vec(), commitments.to_vec()).unwrap()
    };
    let fewer = growing(&delta.edits()[1..], delta.commitments());
    let others =
        [growing(&edits, delta.commitments()), growing(delta.edits(), &commitments), fewer];
    for other in others {
        for deltas in [[delta.clone(), other.clone()], [other, delta.clone()]] {
            let mut client = load();
            let hints = client.hints().unwrap();
            assert!(hints.ended().is_none());
            let change = hints.apply_deltas(&identity, &after, &deltas).unwrap();
            assert_eq!(hints.table(), identity);
            let ended = hints.ended().unwrap();
            assert_eq!(ended.blame(), Blame::Integrity);
            assert!(ended.message().starts_with("the servers tell different updates"));
            let mut again = load();
            again.hints().unwrap().apply(&change).unwrap();
            assert!(again.hints().unwrap().ended().is_some());
        }
    }
    // Not as many as there are servers.
    let mut client = load();
    for deltas in [vec![], vec![delta.clone()], vec![delta.clone(); 3]] {
        let refused = client.hints().unwrap().apply_deltas(&identity, &after, &deltas);
        assert_eq!(refused.err().unwrap().blame(), Blame::ApiMisuse);
    }
}
