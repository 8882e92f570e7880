//! What each server sees, and leaks planted in clients that the same tests must catch.

use super::*;
use crate::dummy_subsets::tests::statistics::{
    PARTITION, RECORDS, THRESHOLD, View, adjacent_pairs, features, marginals, queried_partition,
};
use crate::test_statistics::difference;
use privet_core::hints::Change;

/// A client that may leak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    Honest,
    /// A used hint stays in use.
    HintUsedAgain,
    /// What takes a used hint's place does not contain the record.
    SuccessorWithoutTheRecord,
    /// Of a pair, the half that is needed is always the one below the cutoff: others are passed over.
    OnlyHalvesBelow,
}

use Behaviour::*;

/// What either server sees of one query.
struct Views {
    offline: Vec<u8>,
    online: View,
}

impl Behaviour {
    fn ask(self, world: &mut World, client: &mut DummySubsetsTwoClient, index: u64) -> Views {
        let mut reserved = client.reserve(&world.index(index), &mut world.rng).unwrap();
        if self == OnlyHalvesBelow && needs_half_above(world, client, &reserved) {
            client.apply(&reserved.change).unwrap();
            world.settle(client, &reserved);
            reserved = client.reserve(&world.index(index), &mut world.rng).unwrap();
        }
        let TwoServersQuery::Subsets(query) = &reserved.queries[1] else {
            panic!("the online server is sent subsets")
        };
        let views = Views { offline: reserved.queries[0].encode_query(), online: View::of(query) };
        if self == HintUsedAgain {
            return views;
        }
        let answers = world.answers(&reserved.queries);
        client.apply(&reserved.change).unwrap();
        let settled = client.settle(reserved.id, &answers).unwrap();
        client.apply(&settled).unwrap();
        if self == SuccessorWithoutTheRecord {
            let (_, successor) = exchanged(world, &reserved);
            let row = client.table.row_of(successor).unwrap();
            client.table.forget(row);
        }
        views
    }
}

fn exchanged(world: &World, reserved: &Reserved<TwoServersQuery>) -> (u64, u32) {
    let len = world.parameters.shape().record_len() as usize;
    match Change::decode(&reserved.change, len, 2 * len).unwrap() {
        Change::Exchange(exchange) => (exchange.index, exchange.successor),
        _ => panic!("a reservation is an exchange"),
    }
}

fn needs_half_above(
    world: &World,
    client: &DummySubsetsTwoClient,
    reserved: &Reserved<TwoServersQuery>,
) -> bool {
    let TwoServersQuery::Replenish(pair) = &reserved.queries[0] else { panic!() };
    let (index, successor) = exchanged(world, reserved);
    let (partition, _) = world.parameters.cut().place(index);
    let mut select = [0];
    Kernels::detect().subset_selects_at(client.table.key(), partition, &[successor], &mut select);
    select[0] < pair.cutoff
}

fn small_world() -> World {
    let shape = TableShape::new(RECORDS, 1).unwrap();
    let cut = DummySubsetsParameters::with_partition_records(shape, u64::from(PARTITION));
    World::with(cut.unwrap().with_hint_security(20).unwrap())
}

/// What the online server sees of each of `rounds` histories, each of a fresh client.
fn online(behaviour: Behaviour, history: &[u64], rounds: usize) -> Vec<Vec<View>> {
    let mut world = small_world();
    let of_one = |_| {
        let mut client = world.client();
        let ask = |index: &u64| behaviour.ask(&mut world, &mut client, *index).online;
        history.iter().map(ask).collect()
    };
    (0..rounds).map(of_one).collect()
}

#[test]
fn the_online_server_sees_the_same_for_every_record_and_history() {
    let fresh = features(online(Honest, &[5, 40, 99], 3000).into_iter());
    for history in [[5, 5, 5], [5, 6, 7], [127, 5, 127]] {
        let histories = online(Honest, &history, 3000);
        let views: Vec<View> =
            histories.iter().map(|views| views.last().unwrap().clone()).collect();
        assert!(marginals(&views) < THRESHOLD, "{history:?}: {}", marginals(&views));
        assert!(adjacent_pairs(&views) < THRESHOLD, "{history:?}: {}", adjacent_pairs(&views));
        let queried = queried_partition(&views, history[2]);
        assert!(queried < THRESHOLD, "{history:?}: {queried}");
        let other = features(histories.into_iter());
        assert!(difference(&fresh, &other) < THRESHOLD, "{}", difference(&fresh, &other));
    }
}

#[test]
fn a_hint_that_is_used_again_is_caught() {
    let fresh = features(online(HintUsedAgain, &[5, 40, 99], 3000).into_iter());
    let repeated = features(online(HintUsedAgain, &[5, 5, 5], 3000).into_iter());
    assert!(difference(&fresh, &repeated) > 2.5 * THRESHOLD);
}

/// How many live hints contain record 5.
fn containing(behaviour: Behaviour, history: &[u64], rounds: usize) -> Vec<u64> {
    let mut world = small_world();
    let mut counts = vec![0; 64];
    for _ in 0..rounds {
        let mut client = world.client();
        for index in history {
            behaviour.ask(&mut world, &mut client, *index);
        }
        let hints =
            crate::dummy_subsets::query::testing::all_contents(&client.table, Kernels::detect());
        counts[hints.iter().filter(|hint| hint[0] == Some(5)).count()] += 1;
    }
    counts
}

#[test]
fn the_hints_have_the_same_distribution_before_and_after_queries() {
    let before = containing(Honest, &[], 3000);
    for history in [vec![5; 12], vec![5, 6, 7, 4, 5, 6, 7, 4], (0..12).map(|k| k * 10).collect()] {
        let after = containing(Honest, &history, 3000);
        assert!(difference(&before, &after) < THRESHOLD, "{history:?} {before:?} {after:?}");
    }
    let after = containing(SuccessorWithoutTheRecord, &[5], 3000);
    assert!(difference(&before, &after) > THRESHOLD);
}

/// The offline server knows the key, so what it is sent must not depend on anything else at all: it is the same to the byte.
#[test]
fn the_offline_server_sees_the_same_bytes_whatever_is_looked_up() {
    let seen = |behaviour: Behaviour, history: &dyn Fn(u64) -> u64| -> Vec<Vec<u8>> {
        let mut world = small_world();
        let mut client = world.client();
        client.queries = u64::MAX;
        (0..60)
            .map(|number| behaviour.ask(&mut world, &mut client, history(number)).offline)
            .collect()
    };
    let histories: [&dyn Fn(u64) -> u64; 3] =
        [&|_| 5, &|number| number, &|number| 127 - number * 2];
    let honest: Vec<_> = histories.iter().map(|history| seen(Honest, history)).collect();
    assert!(honest.windows(2).all(|pair| pair[0] == pair[1]));
    let leaking: Vec<_> = histories.iter().map(|history| seen(OnlyHalvesBelow, history)).collect();
    assert!(
        leaking.windows(2).all(|pair| pair[0] != pair[1]),
        "a client that passes over pairs is caught"
    );
}
